<?php
// Generated from sdk/operations.json by sdk/generate; do not edit.

declare(strict_types=1);

namespace Postrider\Event;

use Postrider\Types;
use Postrider\WebhookEvent;

/**
 * The event `email.complained`.
 *
 * @phpstan-import-type EmailComplainedData from Types
 *
 * @extends WebhookEvent<EmailComplainedData>
 */
final class EmailComplained extends WebhookEvent
{
    public const TYPE = 'email.complained';
}
