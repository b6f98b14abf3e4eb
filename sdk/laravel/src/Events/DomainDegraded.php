<?php
// Generated from sdk/operations.json by sdk/generate; do not edit.

declare(strict_types=1);

namespace Postrider\Laravel\Events;

/**
 * The webhook `domain.degraded` came.
 *
 * @extends WebhookReceived<\Postrider\Event\DomainDegraded>
 */
final class DomainDegraded extends WebhookReceived
{
}
