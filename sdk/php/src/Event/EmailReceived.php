<?php
// Generated from sdk/operations.json by sdk/generate; do not edit.

declare(strict_types=1);

namespace Postrider\Event;

use Postrider\Types;
use Postrider\WebhookEvent;

/**
 * The event `email.received`.
 *
 * @phpstan-import-type EmailReceivedData from Types
 *
 * @extends WebhookEvent<EmailReceivedData>
 */
final class EmailReceived extends WebhookEvent
{
    public const TYPE = 'email.received';
}
