<?php
// Generated from sdk/operations.json by sdk/generate; do not edit.

declare(strict_types=1);

namespace Postrider\Event;

use Postrider\Types;
use Postrider\WebhookEvent;

/**
 * The event `automation.completed`.
 *
 * @phpstan-import-type AutomationCompletedData from Types
 *
 * @extends WebhookEvent<AutomationCompletedData>
 */
final class AutomationCompleted extends WebhookEvent
{
    public const TYPE = 'automation.completed';
}
