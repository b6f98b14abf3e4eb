<?php
// Generated from sdk/operations.json by sdk/generate; do not edit.

declare(strict_types=1);

namespace Postrider;

/** The events that this SDK knows. A newer server can have more. */
final class EventTypes
{
    /** @var array<string, class-string<WebhookEvent>> */
    public const CLASSES = [
        'email.received' => Event\EmailReceived::class,
        'email.sent' => Event\EmailSent::class,
        'email.delivered' => Event\EmailDelivered::class,
        'email.delivery_delayed' => Event\EmailDeliveryDelayed::class,
        'email.bounced' => Event\EmailBounced::class,
        'email.complained' => Event\EmailComplained::class,
        'email.opened' => Event\EmailOpened::class,
        'email.clicked' => Event\EmailClicked::class,
        'email.failed' => Event\EmailFailed::class,
        'email.suppressed' => Event\EmailSuppressed::class,
        'email.scheduled' => Event\EmailScheduled::class,
        'contact.unsubscribed' => Event\ContactUnsubscribed::class,
        'automation.started' => Event\AutomationStarted::class,
        'automation.step_completed' => Event\AutomationStepCompleted::class,
        'automation.completed' => Event\AutomationCompleted::class,
        'automation.failed' => Event\AutomationFailed::class,
        'email.cancelled' => Event\EmailCancelled::class,
        'domain.verified' => Event\DomainVerified::class,
        'domain.degraded' => Event\DomainDegraded::class,
        'suppression.created' => Event\SuppressionCreated::class,
        'suppression.deleted' => Event\SuppressionDeleted::class,
        'webhook.disabled' => Event\WebhookDisabled::class,
        'affiliate.created' => Event\AffiliateCreated::class,
        'affiliate.approved' => Event\AffiliateApproved::class,
        'affiliate.updated' => Event\AffiliateUpdated::class,
        'referral.created' => Event\ReferralCreated::class,
        'referral.converted' => Event\ReferralConverted::class,
        'commission.created' => Event\CommissionCreated::class,
        'commission.earned' => Event\CommissionEarned::class,
        'commission.reversed' => Event\CommissionReversed::class,
        'commission.paid' => Event\CommissionPaid::class,
        'payout.created' => Event\PayoutCreated::class,
        'payout.paid' => Event\PayoutPaid::class,
        'payout.failed' => Event\PayoutFailed::class,
    ];
}
