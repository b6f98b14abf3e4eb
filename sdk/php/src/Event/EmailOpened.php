<?php
// Generated from sdk/operations.json by sdk/generate; do not edit.

declare(strict_types=1);

namespace Postrider\Event;

use Postrider\Types;
use Postrider\WebhookEvent;

/**
 * The event `email.opened`.
 *
 * @phpstan-import-type EmailOpenedData from Types
 *
 * @extends WebhookEvent<EmailOpenedData>
 */
final class EmailOpened extends WebhookEvent
{
    public const TYPE = 'email.opened';
}
