<?php
// Generated from sdk/operations.json by sdk/generate; do not edit.

declare(strict_types=1);

namespace Postrider\Event;

use Postrider\Types;
use Postrider\WebhookEvent;

/**
 * The event `referral.created`.
 *
 * @phpstan-import-type ReferralCreatedData from Types
 *
 * @extends WebhookEvent<ReferralCreatedData>
 */
final class ReferralCreated extends WebhookEvent
{
    public const TYPE = 'referral.created';
}
