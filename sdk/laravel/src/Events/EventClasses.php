<?php
// Generated from sdk/operations.json by sdk/generate; do not edit.

declare(strict_types=1);

namespace Postrider\Laravel\Events;

/**
 * The class of each webhook event.
 *
 * @internal
 */
final class EventClasses
{
    /** @var array<string, class-string<WebhookReceived>> */
    public const CLASSES = [
        'email.received' => EmailReceived::class,
        'email.sent' => EmailSent::class,
        'email.delivered' => EmailDelivered::class,
        'email.delivery_delayed' => EmailDeliveryDelayed::class,
        'email.bounced' => EmailBounced::class,
        'email.complained' => EmailComplained::class,
        'email.opened' => EmailOpened::class,
        'email.clicked' => EmailClicked::class,
        'email.failed' => EmailFailed::class,
        'email.suppressed' => EmailSuppressed::class,
        'email.scheduled' => EmailScheduled::class,
        'contact.unsubscribed' => ContactUnsubscribed::class,
        'automation.started' => AutomationStarted::class,
        'automation.step_completed' => AutomationStepCompleted::class,
        'automation.completed' => AutomationCompleted::class,
        'automation.failed' => AutomationFailed::class,
        'email.cancelled' => EmailCancelled::class,
        'domain.verified' => DomainVerified::class,
        'domain.degraded' => DomainDegraded::class,
        'suppression.created' => SuppressionCreated::class,
        'suppression.deleted' => SuppressionDeleted::class,
        'webhook.disabled' => WebhookDisabled::class,
        'affiliate.created' => AffiliateCreated::class,
        'affiliate.approved' => AffiliateApproved::class,
        'affiliate.updated' => AffiliateUpdated::class,
        'referral.created' => ReferralCreated::class,
        'referral.converted' => ReferralConverted::class,
        'commission.created' => CommissionCreated::class,
        'commission.earned' => CommissionEarned::class,
        'commission.reversed' => CommissionReversed::class,
        'commission.paid' => CommissionPaid::class,
        'payout.created' => PayoutCreated::class,
        'payout.paid' => PayoutPaid::class,
        'payout.failed' => PayoutFailed::class,
    ];
}
