<?php
// Generated from sdk/operations.json by sdk/generate; do not edit.

declare(strict_types=1);

namespace Postrider\Laravel\Events;

/**
 * The webhook `commission.reversed` came.
 *
 * @extends WebhookReceived<\Postrider\Event\CommissionReversed>
 */
final class CommissionReversed extends WebhookReceived
{
}
