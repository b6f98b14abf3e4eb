<?php
// Generated from sdk/operations.json by sdk/generate; do not edit.

declare(strict_types=1);

namespace Postrider\Event;

use Postrider\Types;
use Postrider\WebhookEvent;

/**
 * The event `payout.failed`.
 *
 * @phpstan-import-type PayoutFailedData from Types
 *
 * @extends WebhookEvent<PayoutFailedData>
 */
final class PayoutFailed extends WebhookEvent
{
    public const TYPE = 'payout.failed';
}
