<?php
// Generated from sdk/operations.json by sdk/generate; do not edit.

declare(strict_types=1);

namespace Postrider\Event;

use Postrider\Types;
use Postrider\WebhookEvent;

/**
 * The event `commission.created`.
 *
 * @phpstan-import-type CommissionCreatedData from Types
 *
 * @extends WebhookEvent<CommissionCreatedData>
 */
final class CommissionCreated extends WebhookEvent
{
    public const TYPE = 'commission.created';
}
