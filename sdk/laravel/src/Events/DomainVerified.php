<?php
// Generated from sdk/operations.json by sdk/generate; do not edit.

declare(strict_types=1);

namespace Postrider\Laravel\Events;

/**
 * The webhook `domain.verified` came.
 *
 * @extends WebhookReceived<\Postrider\Event\DomainVerified>
 */
final class DomainVerified extends WebhookReceived
{
}
