<?php
// Generated from sdk/operations.json by sdk/generate; do not edit.

declare(strict_types=1);

namespace Postrider\Event;

use Postrider\Types;
use Postrider\WebhookEvent;

/**
 * The event `commission.earned`.
 *
 * @phpstan-import-type CommissionEarnedData from Types
 *
 * @extends WebhookEvent<CommissionEarnedData>
 */
final class CommissionEarned extends WebhookEvent
{
    public const TYPE = 'commission.earned';
}
