<?php
// Generated from sdk/operations.json by sdk/generate; do not edit.

declare(strict_types=1);

namespace Postrider\Laravel\Events;

/**
 * The webhook `affiliate.approved` came.
 *
 * @extends WebhookReceived<\Postrider\Event\AffiliateApproved>
 */
final class AffiliateApproved extends WebhookReceived
{
}
