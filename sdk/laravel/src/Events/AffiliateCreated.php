<?php
// Generated from sdk/operations.json by sdk/generate; do not edit.

declare(strict_types=1);

namespace Postrider\Laravel\Events;

/**
 * The webhook `affiliate.created` came.
 *
 * @extends WebhookReceived<\Postrider\Event\AffiliateCreated>
 */
final class AffiliateCreated extends WebhookReceived
{
}
