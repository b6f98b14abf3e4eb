<?php
// Generated from sdk/operations.json by sdk/generate; do not edit.

declare(strict_types=1);

namespace Postrider\Event;

use Postrider\Types;
use Postrider\WebhookEvent;

/**
 * The event `affiliate.updated`.
 *
 * @phpstan-import-type AffiliateUpdatedData from Types
 *
 * @extends WebhookEvent<AffiliateUpdatedData>
 */
final class AffiliateUpdated extends WebhookEvent
{
    public const TYPE = 'affiliate.updated';
}
