<?php
// Generated from sdk/operations.json by sdk/generate; do not edit.

declare(strict_types=1);

namespace Postrider\Event;

use Postrider\Types;
use Postrider\WebhookEvent;

/**
 * The event `payout.created`.
 *
 * @phpstan-import-type PayoutCreatedData from Types
 *
 * @extends WebhookEvent<PayoutCreatedData>
 */
final class PayoutCreated extends WebhookEvent
{
    public const TYPE = 'payout.created';
}
