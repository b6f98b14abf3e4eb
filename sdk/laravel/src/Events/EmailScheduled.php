<?php
// Generated from sdk/operations.json by sdk/generate; do not edit.

declare(strict_types=1);

namespace Postrider\Laravel\Events;

/**
 * The webhook `email.scheduled` came.
 *
 * @extends WebhookReceived<\Postrider\Event\EmailScheduled>
 */
final class EmailScheduled extends WebhookReceived
{
}
