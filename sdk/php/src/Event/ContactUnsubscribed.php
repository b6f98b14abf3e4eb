<?php
// Generated from sdk/operations.json by sdk/generate; do not edit.

declare(strict_types=1);

namespace Postrider\Event;

use Postrider\Types;
use Postrider\WebhookEvent;

/**
 * The event `contact.unsubscribed`.
 *
 * @phpstan-import-type ContactUnsubscribedData from Types
 *
 * @extends WebhookEvent<ContactUnsubscribedData>
 */
final class ContactUnsubscribed extends WebhookEvent
{
    public const TYPE = 'contact.unsubscribed';
}
