<?php
// Generated from sdk/operations.json by sdk/generate; do not edit.

declare(strict_types=1);

namespace Postrider\Event;

use Postrider\Types;
use Postrider\WebhookEvent;

/**
 * The event `email.bounced`.
 *
 * @phpstan-import-type EmailBouncedData from Types
 *
 * @extends WebhookEvent<EmailBouncedData>
 */
final class EmailBounced extends WebhookEvent
{
    public const TYPE = 'email.bounced';
}
