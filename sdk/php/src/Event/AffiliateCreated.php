<?php
// Generated from sdk/operations.json by sdk/generate; do not edit.

declare(strict_types=1);

namespace Postrider\Event;

use Postrider\Types;
use Postrider\WebhookEvent;

/**
 * The event `affiliate.created`.
 *
 * @phpstan-import-type AffiliateCreatedData from Types
 *
 * @extends WebhookEvent<AffiliateCreatedData>
 */
final class AffiliateCreated extends WebhookEvent
{
    public const TYPE = 'affiliate.created';
}
