<?php
// Generated from sdk/operations.json by sdk/generate; do not edit.

declare(strict_types=1);

namespace Postrider\Event;

use Postrider\Types;
use Postrider\WebhookEvent;

/**
 * The event `domain.degraded`.
 *
 * @phpstan-import-type DomainDegradedData from Types
 *
 * @extends WebhookEvent<DomainDegradedData>
 */
final class DomainDegraded extends WebhookEvent
{
    public const TYPE = 'domain.degraded';
}
