<?php
// Generated from sdk/operations.json by sdk/generate; do not edit.

declare(strict_types=1);

namespace Postrider\Event;

use Postrider\Types;
use Postrider\WebhookEvent;

/**
 * The event `email.delivery_delayed`.
 *
 * @phpstan-import-type EmailDeliveryDelayedData from Types
 *
 * @extends WebhookEvent<EmailDeliveryDelayedData>
 */
final class EmailDeliveryDelayed extends WebhookEvent
{
    public const TYPE = 'email.delivery_delayed';
}
