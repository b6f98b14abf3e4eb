<?php
// Generated from sdk/operations.json by sdk/generate; do not edit.

declare(strict_types=1);

namespace Postrider\Event;

use Postrider\Types;
use Postrider\WebhookEvent;

/**
 * The event `domain.verified`.
 *
 * @phpstan-import-type DomainVerifiedData from Types
 *
 * @extends WebhookEvent<DomainVerifiedData>
 */
final class DomainVerified extends WebhookEvent
{
    public const TYPE = 'domain.verified';
}
