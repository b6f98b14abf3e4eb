<?php
// Generated from sdk/operations.json by sdk/generate; do not edit.

declare(strict_types=1);

namespace Postrider\Event;

use Postrider\Types;
use Postrider\WebhookEvent;

/**
 * The event `automation.started`.
 *
 * @phpstan-import-type AutomationStartedData from Types
 *
 * @extends WebhookEvent<AutomationStartedData>
 */
final class AutomationStarted extends WebhookEvent
{
    public const TYPE = 'automation.started';
}
