<?php
// Generated from sdk/operations.json by sdk/generate; do not edit.

declare(strict_types=1);

namespace Postrider\Laravel\Events;

/**
 * The webhook `contact.unsubscribed` came.
 *
 * @extends WebhookReceived<\Postrider\Event\ContactUnsubscribed>
 */
final class ContactUnsubscribed extends WebhookReceived
{
}
