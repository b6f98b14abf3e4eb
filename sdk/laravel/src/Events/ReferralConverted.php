<?php
// Generated from sdk/operations.json by sdk/generate; do not edit.

declare(strict_types=1);

namespace Postrider\Laravel\Events;

/**
 * The webhook `referral.converted` came.
 *
 * @extends WebhookReceived<\Postrider\Event\ReferralConverted>
 */
final class ReferralConverted extends WebhookReceived
{
}
