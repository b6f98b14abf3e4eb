<?php
// Generated from sdk/operations.json by sdk/generate; do not edit.

declare(strict_types=1);

namespace Postrider\Event;

use Postrider\Types;
use Postrider\WebhookEvent;

/**
 * The event `email.clicked`.
 *
 * @phpstan-import-type EmailClickedData from Types
 *
 * @extends WebhookEvent<EmailClickedData>
 */
final class EmailClicked extends WebhookEvent
{
    public const TYPE = 'email.clicked';
}
