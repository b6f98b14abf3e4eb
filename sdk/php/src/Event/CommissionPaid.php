<?php
// Generated from sdk/operations.json by sdk/generate; do not edit.

declare(strict_types=1);

namespace Postrider\Event;

use Postrider\Types;
use Postrider\WebhookEvent;

/**
 * The event `commission.paid`.
 *
 * @phpstan-import-type CommissionPaidData from Types
 *
 * @extends WebhookEvent<CommissionPaidData>
 */
final class CommissionPaid extends WebhookEvent
{
    public const TYPE = 'commission.paid';
}
