<?php
// Generated from sdk/operations.json by sdk/generate; do not edit.

declare(strict_types=1);

namespace Postrider\Event;

use Postrider\Types;
use Postrider\WebhookEvent;

/**
 * The event `suppression.deleted`.
 *
 * @phpstan-import-type SuppressionDeletedData from Types
 *
 * @extends WebhookEvent<SuppressionDeletedData>
 */
final class SuppressionDeleted extends WebhookEvent
{
    public const TYPE = 'suppression.deleted';
}
