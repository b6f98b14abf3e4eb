<?php
// Generated from sdk/operations.json by sdk/generate; do not edit.

declare(strict_types=1);

namespace Postrider\Event;

use Postrider\Types;
use Postrider\WebhookEvent;

/**
 * The event `email.cancelled`.
 *
 * @phpstan-import-type EmailCancelledData from Types
 *
 * @extends WebhookEvent<EmailCancelledData>
 */
final class EmailCancelled extends WebhookEvent
{
    public const TYPE = 'email.cancelled';
}
