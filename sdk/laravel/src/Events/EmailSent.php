<?php
// Generated from sdk/operations.json by sdk/generate; do not edit.

declare(strict_types=1);

namespace Postrider\Laravel\Events;

/**
 * The webhook `email.sent` came.
 *
 * @extends WebhookReceived<\Postrider\Event\EmailSent>
 */
final class EmailSent extends WebhookReceived
{
}
