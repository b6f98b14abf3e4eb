<?php
// Generated from sdk/operations.json by sdk/generate; do not edit.

declare(strict_types=1);

namespace Postrider\Laravel\Events;

/**
 * The webhook `webhook.disabled` came.
 *
 * @extends WebhookReceived<\Postrider\Event\WebhookDisabled>
 */
final class WebhookDisabled extends WebhookReceived
{
}
