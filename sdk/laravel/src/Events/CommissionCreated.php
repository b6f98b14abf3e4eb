<?php
// Generated from sdk/operations.json by sdk/generate; do not edit.

declare(strict_types=1);

namespace Postrider\Laravel\Events;

/**
 * The webhook `commission.created` came.
 *
 * @extends WebhookReceived<\Postrider\Event\CommissionCreated>
 */
final class CommissionCreated extends WebhookReceived
{
}
