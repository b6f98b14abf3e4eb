<?php
// Generated from sdk/operations.json by sdk/generate; do not edit.

declare(strict_types=1);

namespace Postrider\Laravel\Events;

/**
 * The webhook `email.clicked` came.
 *
 * @extends WebhookReceived<\Postrider\Event\EmailClicked>
 */
final class EmailClicked extends WebhookReceived
{
}
