<?php
// Generated from sdk/operations.json by sdk/generate; do not edit.

declare(strict_types=1);

namespace Postrider\Event;

use Postrider\Types;
use Postrider\WebhookEvent;

/**
 * The event `suppression.created`.
 *
 * @phpstan-import-type SuppressionCreatedData from Types
 *
 * @extends WebhookEvent<SuppressionCreatedData>
 */
final class SuppressionCreated extends WebhookEvent
{
    public const TYPE = 'suppression.created';
}
