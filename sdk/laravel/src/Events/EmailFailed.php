<?php
// Generated from sdk/operations.json by sdk/generate; do not edit.

declare(strict_types=1);

namespace Postrider\Laravel\Events;

/**
 * The webhook `email.failed` came.
 *
 * @extends WebhookReceived<\Postrider\Event\EmailFailed>
 */
final class EmailFailed extends WebhookReceived
{
}
