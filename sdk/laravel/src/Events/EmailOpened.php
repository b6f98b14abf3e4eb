<?php
// Generated from sdk/operations.json by sdk/generate; do not edit.

declare(strict_types=1);

namespace Postrider\Laravel\Events;

/**
 * The webhook `email.opened` came.
 *
 * @extends WebhookReceived<\Postrider\Event\EmailOpened>
 */
final class EmailOpened extends WebhookReceived
{
}
