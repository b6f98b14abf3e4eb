// Generated from sdk/operations.json by sdk/generate; do not edit.

// Webhook events.

import type {
  EmailReceivedData,
  EmailSentData,
  EmailDeliveredData,
  EmailDeliveryDelayedData,
  EmailBouncedData,
  EmailComplainedData,
  EmailOpenedData,
  EmailClickedData,
  EmailFailedData,
  EmailSuppressedData,
  EmailScheduledData,
  ContactUnsubscribedData,
  AutomationStartedData,
  AutomationStepCompletedData,
  AutomationCompletedData,
  AutomationFailedData,
  EmailCancelledData,
  DomainVerifiedData,
  DomainDegradedData,
  SuppressionCreatedData,
  SuppressionDeletedData,
  WebhookDisabledData,
  AffiliateCreatedData,
  AffiliateApprovedData,
  AffiliateUpdatedData,
  ReferralCreatedData,
  ReferralConvertedData,
  CommissionCreatedData,
  CommissionEarnedData,
  CommissionReversedData,
  CommissionPaidData,
  PayoutCreatedData,
  PayoutPaidData,
  PayoutFailedData,
} from "./types.js";

export interface EmailReceivedEvent {
  type: "email.received";
  created_at: string;
  data: EmailReceivedData;
}

export interface EmailSentEvent {
  type: "email.sent";
  created_at: string;
  data: EmailSentData;
}

export interface EmailDeliveredEvent {
  type: "email.delivered";
  created_at: string;
  data: EmailDeliveredData;
}

export interface EmailDeliveryDelayedEvent {
  type: "email.delivery_delayed";
  created_at: string;
  data: EmailDeliveryDelayedData;
}

export interface EmailBouncedEvent {
  type: "email.bounced";
  created_at: string;
  data: EmailBouncedData;
}

export interface EmailComplainedEvent {
  type: "email.complained";
  created_at: string;
  data: EmailComplainedData;
}

export interface EmailOpenedEvent {
  type: "email.opened";
  created_at: string;
  data: EmailOpenedData;
}

export interface EmailClickedEvent {
  type: "email.clicked";
  created_at: string;
  data: EmailClickedData;
}

export interface EmailFailedEvent {
  type: "email.failed";
  created_at: string;
  data: EmailFailedData;
}

export interface EmailSuppressedEvent {
  type: "email.suppressed";
  created_at: string;
  data: EmailSuppressedData;
}

export interface EmailScheduledEvent {
  type: "email.scheduled";
  created_at: string;
  data: EmailScheduledData;
}

export interface ContactUnsubscribedEvent {
  type: "contact.unsubscribed";
  created_at: string;
  data: ContactUnsubscribedData;
}

export interface AutomationStartedEvent {
  type: "automation.started";
  created_at: string;
  data: AutomationStartedData;
}

export interface AutomationStepCompletedEvent {
  type: "automation.step_completed";
  created_at: string;
  data: AutomationStepCompletedData;
}

export interface AutomationCompletedEvent {
  type: "automation.completed";
  created_at: string;
  data: AutomationCompletedData;
}

export interface AutomationFailedEvent {
  type: "automation.failed";
  created_at: string;
  data: AutomationFailedData;
}

export interface EmailCancelledEvent {
  type: "email.cancelled";
  created_at: string;
  data: EmailCancelledData;
}

export interface DomainVerifiedEvent {
  type: "domain.verified";
  created_at: string;
  data: DomainVerifiedData;
}

export interface DomainDegradedEvent {
  type: "domain.degraded";
  created_at: string;
  data: DomainDegradedData;
}

export interface SuppressionCreatedEvent {
  type: "suppression.created";
  created_at: string;
  data: SuppressionCreatedData;
}

export interface SuppressionDeletedEvent {
  type: "suppression.deleted";
  created_at: string;
  data: SuppressionDeletedData;
}

export interface WebhookDisabledEvent {
  type: "webhook.disabled";
  created_at: string;
  data: WebhookDisabledData;
}

export interface AffiliateCreatedEvent {
  type: "affiliate.created";
  created_at: string;
  data: AffiliateCreatedData;
}

export interface AffiliateApprovedEvent {
  type: "affiliate.approved";
  created_at: string;
  data: AffiliateApprovedData;
}

export interface AffiliateUpdatedEvent {
  type: "affiliate.updated";
  created_at: string;
  data: AffiliateUpdatedData;
}

export interface ReferralCreatedEvent {
  type: "referral.created";
  created_at: string;
  data: ReferralCreatedData;
}

export interface ReferralConvertedEvent {
  type: "referral.converted";
  created_at: string;
  data: ReferralConvertedData;
}

export interface CommissionCreatedEvent {
  type: "commission.created";
  created_at: string;
  data: CommissionCreatedData;
}

export interface CommissionEarnedEvent {
  type: "commission.earned";
  created_at: string;
  data: CommissionEarnedData;
}

export interface CommissionReversedEvent {
  type: "commission.reversed";
  created_at: string;
  data: CommissionReversedData;
}

export interface CommissionPaidEvent {
  type: "commission.paid";
  created_at: string;
  data: CommissionPaidData;
}

export interface PayoutCreatedEvent {
  type: "payout.created";
  created_at: string;
  data: PayoutCreatedData;
}

export interface PayoutPaidEvent {
  type: "payout.paid";
  created_at: string;
  data: PayoutPaidData;
}

export interface PayoutFailedEvent {
  type: "payout.failed";
  created_at: string;
  data: PayoutFailedData;
}

/** An event; `type` tells which. A newer server may send other types: handle them as `default` of a `switch`. */
export type WebhookEvent =
  | EmailReceivedEvent
  | EmailSentEvent
  | EmailDeliveredEvent
  | EmailDeliveryDelayedEvent
  | EmailBouncedEvent
  | EmailComplainedEvent
  | EmailOpenedEvent
  | EmailClickedEvent
  | EmailFailedEvent
  | EmailSuppressedEvent
  | EmailScheduledEvent
  | ContactUnsubscribedEvent
  | AutomationStartedEvent
  | AutomationStepCompletedEvent
  | AutomationCompletedEvent
  | AutomationFailedEvent
  | EmailCancelledEvent
  | DomainVerifiedEvent
  | DomainDegradedEvent
  | SuppressionCreatedEvent
  | SuppressionDeletedEvent
  | WebhookDisabledEvent
  | AffiliateCreatedEvent
  | AffiliateApprovedEvent
  | AffiliateUpdatedEvent
  | ReferralCreatedEvent
  | ReferralConvertedEvent
  | CommissionCreatedEvent
  | CommissionEarnedEvent
  | CommissionReversedEvent
  | CommissionPaidEvent
  | PayoutCreatedEvent
  | PayoutPaidEvent
  | PayoutFailedEvent;

/** An event of a type that this version does not know. */
export interface UnknownEvent {
  type: string;
  created_at: string;
  data: Record<string, unknown>;
}

/** An event of the stream. `cursor` is its place: `after` continues there. */
export type StreamedEvent = WebhookEvent & { id: string; cursor: string };
