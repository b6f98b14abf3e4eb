<?php
// Generated from sdk/operations.json by sdk/generate; do not edit.

declare(strict_types=1);

namespace Postrider\Event;

use Postrider\Types;
use Postrider\WebhookEvent;

/**
 * The event `webhook.disabled`.
 *
 * @phpstan-import-type WebhookDisabledData from Types
 *
 * @extends WebhookEvent<WebhookDisabledData>
 */
final class WebhookDisabled extends WebhookEvent
{
    public const TYPE = 'webhook.disabled';
}
