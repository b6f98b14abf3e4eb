<?php
// Generated from sdk/operations.json by sdk/generate; do not edit.

declare(strict_types=1);

namespace Postrider\Laravel\Events;

/**
 * The webhook `automation.step_completed` came.
 *
 * @extends WebhookReceived<\Postrider\Event\AutomationStepCompleted>
 */
final class AutomationStepCompleted extends WebhookReceived
{
}
