<?php
// Generated from sdk/operations.json by sdk/generate; do not edit.

declare(strict_types=1);

namespace Postrider\Event;

use Postrider\Types;
use Postrider\WebhookEvent;

/**
 * The event `affiliate.approved`.
 *
 * @phpstan-import-type AffiliateApprovedData from Types
 *
 * @extends WebhookEvent<AffiliateApprovedData>
 */
final class AffiliateApproved extends WebhookEvent
{
    public const TYPE = 'affiliate.approved';
}
