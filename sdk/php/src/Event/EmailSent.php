<?php
// Generated from sdk/operations.json by sdk/generate; do not edit.

declare(strict_types=1);

namespace Postrider\Event;

use Postrider\Types;
use Postrider\WebhookEvent;

/**
 * The event `email.sent`.
 *
 * @phpstan-import-type EmailSentData from Types
 *
 * @extends WebhookEvent<EmailSentData>
 */
final class EmailSent extends WebhookEvent
{
    public const TYPE = 'email.sent';
}
