<?php
// Generated from sdk/operations.json by sdk/generate; do not edit.

declare(strict_types=1);

namespace Postrider\Laravel\Events;

/**
 * The webhook `automation.started` came.
 *
 * @extends WebhookReceived<\Postrider\Event\AutomationStarted>
 */
final class AutomationStarted extends WebhookReceived
{
}
