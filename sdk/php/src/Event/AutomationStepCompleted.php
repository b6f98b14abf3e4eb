<?php
// Generated from sdk/operations.json by sdk/generate; do not edit.

declare(strict_types=1);

namespace Postrider\Event;

use Postrider\Types;
use Postrider\WebhookEvent;

/**
 * The event `automation.step_completed`.
 *
 * @phpstan-import-type AutomationStepCompletedData from Types
 *
 * @extends WebhookEvent<AutomationStepCompletedData>
 */
final class AutomationStepCompleted extends WebhookEvent
{
    public const TYPE = 'automation.step_completed';
}
