<?php
// Generated from sdk/operations.json by sdk/generate; do not edit.

declare(strict_types=1);

namespace Postrider\Laravel\Events;

/**
 * The webhook `commission.paid` came.
 *
 * @extends WebhookReceived<\Postrider\Event\CommissionPaid>
 */
final class CommissionPaid extends WebhookReceived
{
}
