<?php
// Generated from sdk/operations.json by sdk/generate; do not edit.

declare(strict_types=1);

namespace Postrider\Laravel\Events;

/**
 * The webhook `payout.paid` came.
 *
 * @extends WebhookReceived<\Postrider\Event\PayoutPaid>
 */
final class PayoutPaid extends WebhookReceived
{
}
