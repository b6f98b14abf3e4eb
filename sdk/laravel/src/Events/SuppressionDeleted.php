<?php
// Generated from sdk/operations.json by sdk/generate; do not edit.

declare(strict_types=1);

namespace Postrider\Laravel\Events;

/**
 * The webhook `suppression.deleted` came.
 *
 * @extends WebhookReceived<\Postrider\Event\SuppressionDeleted>
 */
final class SuppressionDeleted extends WebhookReceived
{
}
