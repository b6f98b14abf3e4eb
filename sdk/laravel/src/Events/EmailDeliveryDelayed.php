<?php
// Generated from sdk/operations.json by sdk/generate; do not edit.

declare(strict_types=1);

namespace Postrider\Laravel\Events;

/**
 * The webhook `email.delivery_delayed` came.
 *
 * @extends WebhookReceived<\Postrider\Event\EmailDeliveryDelayed>
 */
final class EmailDeliveryDelayed extends WebhookReceived
{
}
