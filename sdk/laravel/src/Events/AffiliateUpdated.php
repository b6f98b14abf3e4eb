<?php
// Generated from sdk/operations.json by sdk/generate; do not edit.

declare(strict_types=1);

namespace Postrider\Laravel\Events;

/**
 * The webhook `affiliate.updated` came.
 *
 * @extends WebhookReceived<\Postrider\Event\AffiliateUpdated>
 */
final class AffiliateUpdated extends WebhookReceived
{
}
