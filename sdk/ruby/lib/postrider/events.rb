# frozen_string_literal: true

# Generated from sdk/operations.json by sdk/generate; do not edit.

require_relative "webhook_event"

module Postrider
  # The events that this SDK knows. A newer server can have more.
  module Events
    # The event `email.received`.
    class EmailReceived < WebhookEvent
    end

    # The event `email.sent`.
    class EmailSent < WebhookEvent
    end

    # The event `email.delivered`.
    class EmailDelivered < WebhookEvent
    end

    # The event `email.delivery_delayed`.
    class EmailDeliveryDelayed < WebhookEvent
    end

    # The event `email.bounced`.
    class EmailBounced < WebhookEvent
    end

    # The event `email.complained`.
    class EmailComplained < WebhookEvent
    end

    # The event `email.opened`.
    class EmailOpened < WebhookEvent
    end

    # The event `email.clicked`.
    class EmailClicked < WebhookEvent
    end

    # The event `email.failed`.
    class EmailFailed < WebhookEvent
    end

    # The event `email.suppressed`.
    class EmailSuppressed < WebhookEvent
    end

    # The event `email.scheduled`.
    class EmailScheduled < WebhookEvent
    end

    # The event `contact.unsubscribed`.
    class ContactUnsubscribed < WebhookEvent
    end

    # The event `automation.started`.
    class AutomationStarted < WebhookEvent
    end

    # The event `automation.step_completed`.
    class AutomationStepCompleted < WebhookEvent
    end

    # The event `automation.completed`.
    class AutomationCompleted < WebhookEvent
    end

    # The event `automation.failed`.
    class AutomationFailed < WebhookEvent
    end

    # The event `email.cancelled`.
    class EmailCancelled < WebhookEvent
    end

    # The event `domain.verified`.
    class DomainVerified < WebhookEvent
    end

    # The event `domain.degraded`.
    class DomainDegraded < WebhookEvent
    end

    # The event `suppression.created`.
    class SuppressionCreated < WebhookEvent
    end

    # The event `suppression.deleted`.
    class SuppressionDeleted < WebhookEvent
    end

    # The event `webhook.disabled`.
    class WebhookDisabled < WebhookEvent
    end

    # The event `affiliate.created`.
    class AffiliateCreated < WebhookEvent
    end

    # The event `affiliate.approved`.
    class AffiliateApproved < WebhookEvent
    end

    # The event `affiliate.updated`.
    class AffiliateUpdated < WebhookEvent
    end

    # The event `referral.created`.
    class ReferralCreated < WebhookEvent
    end

    # The event `referral.converted`.
    class ReferralConverted < WebhookEvent
    end

    # The event `commission.created`.
    class CommissionCreated < WebhookEvent
    end

    # The event `commission.earned`.
    class CommissionEarned < WebhookEvent
    end

    # The event `commission.reversed`.
    class CommissionReversed < WebhookEvent
    end

    # The event `commission.paid`.
    class CommissionPaid < WebhookEvent
    end

    # The event `payout.created`.
    class PayoutCreated < WebhookEvent
    end

    # The event `payout.paid`.
    class PayoutPaid < WebhookEvent
    end

    # The event `payout.failed`.
    class PayoutFailed < WebhookEvent
    end

    # Classes by type.
    TYPES = {
      "email.received" => EmailReceived,
      "email.sent" => EmailSent,
      "email.delivered" => EmailDelivered,
      "email.delivery_delayed" => EmailDeliveryDelayed,
      "email.bounced" => EmailBounced,
      "email.complained" => EmailComplained,
      "email.opened" => EmailOpened,
      "email.clicked" => EmailClicked,
      "email.failed" => EmailFailed,
      "email.suppressed" => EmailSuppressed,
      "email.scheduled" => EmailScheduled,
      "contact.unsubscribed" => ContactUnsubscribed,
      "automation.started" => AutomationStarted,
      "automation.step_completed" => AutomationStepCompleted,
      "automation.completed" => AutomationCompleted,
      "automation.failed" => AutomationFailed,
      "email.cancelled" => EmailCancelled,
      "domain.verified" => DomainVerified,
      "domain.degraded" => DomainDegraded,
      "suppression.created" => SuppressionCreated,
      "suppression.deleted" => SuppressionDeleted,
      "webhook.disabled" => WebhookDisabled,
      "affiliate.created" => AffiliateCreated,
      "affiliate.approved" => AffiliateApproved,
      "affiliate.updated" => AffiliateUpdated,
      "referral.created" => ReferralCreated,
      "referral.converted" => ReferralConverted,
      "commission.created" => CommissionCreated,
      "commission.earned" => CommissionEarned,
      "commission.reversed" => CommissionReversed,
      "commission.paid" => CommissionPaid,
      "payout.created" => PayoutCreated,
      "payout.paid" => PayoutPaid,
      "payout.failed" => PayoutFailed
    }.freeze
  end
end
