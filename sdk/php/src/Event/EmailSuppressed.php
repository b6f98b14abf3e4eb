<?php
// Generated from sdk/operations.json by sdk/generate; do not edit.

declare(strict_types=1);

namespace Postrider\Event;

use Postrider\Types;
use Postrider\WebhookEvent;

/**
 * The event `email.suppressed`.
 *
 * @phpstan-import-type EmailSuppressedData from Types
 *
 * @extends WebhookEvent<EmailSuppressedData>
 */
final class EmailSuppressed extends WebhookEvent
{
    public const TYPE = 'email.suppressed';
}
