<?php
// Generated from sdk/operations.json by sdk/generate; do not edit.

declare(strict_types=1);

namespace Postrider\Event;

use Postrider\Types;
use Postrider\WebhookEvent;

/**
 * The event `email.failed`.
 *
 * @phpstan-import-type EmailFailedData from Types
 *
 * @extends WebhookEvent<EmailFailedData>
 */
final class EmailFailed extends WebhookEvent
{
    public const TYPE = 'email.failed';
}
