<?php
// Generated from sdk/operations.json by sdk/generate; do not edit.

declare(strict_types=1);

namespace Postrider\Event;

use Postrider\Types;
use Postrider\WebhookEvent;

/**
 * The event `automation.failed`.
 *
 * @phpstan-import-type AutomationFailedData from Types
 *
 * @extends WebhookEvent<AutomationFailedData>
 */
final class AutomationFailed extends WebhookEvent
{
    public const TYPE = 'automation.failed';
}
