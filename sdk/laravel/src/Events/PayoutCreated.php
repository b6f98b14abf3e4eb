<?php
// Generated from sdk/operations.json by sdk/generate; do not edit.

declare(strict_types=1);

namespace Postrider\Laravel\Events;

/**
 * The webhook `payout.created` came.
 *
 * @extends WebhookReceived<\Postrider\Event\PayoutCreated>
 */
final class PayoutCreated extends WebhookReceived
{
}
