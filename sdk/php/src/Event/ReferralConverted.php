<?php
// Generated from sdk/operations.json by sdk/generate; do not edit.

declare(strict_types=1);

namespace Postrider\Event;

use Postrider\Types;
use Postrider\WebhookEvent;

/**
 * The event `referral.converted`.
 *
 * @phpstan-import-type ReferralConvertedData from Types
 *
 * @extends WebhookEvent<ReferralConvertedData>
 */
final class ReferralConverted extends WebhookEvent
{
    public const TYPE = 'referral.converted';
}
