<?php
// Generated from sdk/operations.json by sdk/generate; do not edit.

declare(strict_types=1);

namespace Postrider\Laravel\Events;

/**
 * The webhook `automation.completed` came.
 *
 * @extends WebhookReceived<\Postrider\Event\AutomationCompleted>
 */
final class AutomationCompleted extends WebhookReceived
{
}
