<?php
// Generated from sdk/operations.json by sdk/generate; do not edit.

declare(strict_types=1);

namespace Postrider\Laravel\Events;

/**
 * The webhook `email.bounced` came.
 *
 * @extends WebhookReceived<\Postrider\Event\EmailBounced>
 */
final class EmailBounced extends WebhookReceived
{
}
