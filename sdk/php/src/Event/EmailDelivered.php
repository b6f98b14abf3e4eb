<?php
// Generated from sdk/operations.json by sdk/generate; do not edit.

declare(strict_types=1);

namespace Postrider\Event;

use Postrider\Types;
use Postrider\WebhookEvent;

/**
 * The event `email.delivered`.
 *
 * @phpstan-import-type EmailDeliveredData from Types
 *
 * @extends WebhookEvent<EmailDeliveredData>
 */
final class EmailDelivered extends WebhookEvent
{
    public const TYPE = 'email.delivered';
}
