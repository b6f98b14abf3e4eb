<?php
// Generated from sdk/operations.json by sdk/generate; do not edit.

declare(strict_types=1);

namespace Postrider\Event;

use Postrider\Types;
use Postrider\WebhookEvent;

/**
 * The event `commission.reversed`.
 *
 * @phpstan-import-type CommissionReversedData from Types
 *
 * @extends WebhookEvent<CommissionReversedData>
 */
final class CommissionReversed extends WebhookEvent
{
    public const TYPE = 'commission.reversed';
}
