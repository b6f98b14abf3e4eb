<?php
// Generated from sdk/operations.json by sdk/generate; do not edit.

declare(strict_types=1);

namespace Postrider\Event;

use Postrider\Types;
use Postrider\WebhookEvent;

/**
 * The event `payout.paid`.
 *
 * @phpstan-import-type PayoutPaidData from Types
 *
 * @extends WebhookEvent<PayoutPaidData>
 */
final class PayoutPaid extends WebhookEvent
{
    public const TYPE = 'payout.paid';
}
