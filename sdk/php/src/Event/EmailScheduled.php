<?php
// Generated from sdk/operations.json by sdk/generate; do not edit.

declare(strict_types=1);

namespace Postrider\Event;

use Postrider\Types;
use Postrider\WebhookEvent;

/**
 * The event `email.scheduled`.
 *
 * @phpstan-import-type EmailScheduledData from Types
 *
 * @extends WebhookEvent<EmailScheduledData>
 */
final class EmailScheduled extends WebhookEvent
{
    public const TYPE = 'email.scheduled';
}
