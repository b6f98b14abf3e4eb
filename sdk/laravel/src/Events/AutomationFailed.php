<?php
// Generated from sdk/operations.json by sdk/generate; do not edit.

declare(strict_types=1);

namespace Postrider\Laravel\Events;

/**
 * The webhook `automation.failed` came.
 *
 * @extends WebhookReceived<\Postrider\Event\AutomationFailed>
 */
final class AutomationFailed extends WebhookReceived
{
}
