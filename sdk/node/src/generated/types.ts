// Generated from sdk/operations.json by sdk/generate; do not edit.

// Objects of answers and events, with the API's names. A newer server may add fields and values of enums.

/** The recipients and sender addresses that are allowed */
export type AccessLevel =
  | "sandbox"
  | "self_test"
  | "production"
  | (string & {});

/** Whether the first sale or all sales earn a commission */
export type AffiliateCampaignCommissionDuration =
  | "once"
  | "recurring"
  | (string & {});

/** The rate that applies */
export type AffiliateCampaignCommissionType =
  | "percent"
  | "flat"
  | (string & {});

/** The rate that applies; `none` earns nothing */
export type AffiliateCampaignProductRateCommissionType =
  | "percent"
  | "flat"
  | "none"
  | (string & {});

/** The people who can see the campaign */
export type AffiliateCampaignVisibility =
  | "public"
  | "private"
  | "unlisted"
  | (string & {});

/** `hit`: the commission was lowered to it; `other_currency`: not applied, because amounts are not converted */
export type AffiliateCommissionDetailCalculationCapEffect =
  | "unreached"
  | "hit"
  | "other_currency"
  | (string & {});

/**
 * `override`: the partner's own rate; `product`: the campaign's rate of the product or price; `tier`: the
 * campaign's rate from a number of paying customers on; `base`: the campaign's rate; `second_tier`: the
 * recruiter's share
 */
export type AffiliateCommissionDetailCalculationRateRule =
  | "override"
  | "product"
  | "tier"
  | "base"
  | "second_tier"
  | (string & {});

/** The status; `earned` while it is in a payout */
export type AffiliateCommissionStatus =
  | "pending"
  | "earned"
  | "paid"
  | "reversed"
  | (string & {});

/** The payout method */
export type AffiliatePayoutMethod =
  | "paypal"
  | "wise"
  | "bank"
  | "other"
  | "stripe"
  | (string & {});

/** The status */
export type AffiliatePayoutStatus =
  | "draft"
  | "processing"
  | "paid"
  | "failed"
  | (string & {});

/** Why the referral earns no commission */
export type AffiliateReferralBlockedReason =
  | "self_referral"
  | "existing_customer"
  | (string & {});

/** The source */
export type AffiliateReferralSource =
  | "api"
  | "signup"
  | "checkout"
  | "metadata"
  | (string & {});

/** The status */
export type AffiliateReferralStatus =
  | "lead"
  | "trialing"
  | "active"
  | "cancelled"
  | "refunded"
  | "rejected"
  | (string & {});

/** The source */
export type AffiliateSource =
  | "api"
  | "import"
  | "portal"
  | (string & {});

/** The status */
export type AffiliateStatus =
  | "invited"
  | "pending"
  | "active"
  | "suspended"
  | "rejected"
  | (string & {});

/** The scope */
export type ApiKeyScope =
  | "full"
  | "sending"
  | (string & {});

/** A kind of operations */
export type ApprovalKind =
  | "send"
  | "delete"
  | "manage"
  | (string & {});

/** The status; `failed` means that the response is an error, `interrupted` that it may have been executed */
export type ApprovalStatus =
  | "pending"
  | "expired"
  | "rejected"
  | "approved"
  | "executing"
  | "executed"
  | "failed"
  | "interrupted"
  | (string & {});

/** The policy that required or offered TLS */
export type AttemptTlsPolicy =
  | "dane"
  | "mta-sts"
  | "opportunistic"
  | (string & {});

/** How the request arrived; `approval` is a request that a person approved */
export type AuditEntrySurface =
  | "api"
  | "dashboard"
  | "mcp"
  | "approval"
  | (string & {});

/** Result of the check */
export type AuthenticationResult =
  | "none"
  | "pass"
  | "fail"
  | "softfail"
  | "neutral"
  | "temperror"
  | "permerror"
  | (string & {});

/** The action to perform */
export type AutomationAction =
  | "activate"
  | "pause"
  | "archive"
  | "cancel_runs"
  | (string & {});

/**
 * `run`: it starts a run; `filtered`: the trigger's filter excludes it; `repeated`: an earlier event had
 * already started the person's only run
 */
export type AutomationReplayEventEffect =
  | "run"
  | "filtered"
  | "repeated"
  | (string & {});

/** The cause of the cancellation */
export type AutomationRunCancelledBy =
  | "event"
  | "api"
  | (string & {});

/** How the run completed */
export type AutomationRunEndedBy =
  | "all_steps"
  | "condition"
  | (string & {});

/** Whether the run is live or a test */
export type AutomationRunMode =
  | "live"
  | "dry_run"
  | "test_send"
  | (string & {});

/** The status */
export type AutomationRunStatus =
  | "queued"
  | "running"
  | "waiting"
  | "completed"
  | "failed"
  | "cancelled"
  | (string & {});

/** The status */
export type AutomationRunStepStatus =
  | "pending"
  | "running"
  | "waiting"
  | "completed"
  | "failed"
  | "skipped"
  | (string & {});

/** The step type */
export type AutomationRunStepType =
  | "send_email"
  | "delay"
  | "wait_for_event"
  | "condition"
  | "sms"
  | (string & {});

/** The status */
export type AutomationStatus =
  | "draft"
  | "active"
  | "paused"
  | "archived"
  | (string & {});

/** Whether it was accepted */
export type BatchResultStatus =
  | "sent"
  | "scheduled"
  | "failed"
  | (string & {});

/** The category */
export type CategoryOptOutCategory =
  | "product"
  | "newsletter"
  | (string & {});

/** The comparison operator */
export type ConditionOperator =
  | "eq"
  | "neq"
  | "gt"
  | "gte"
  | "lt"
  | "lte"
  | "contains"
  | "starts_with"
  | "ends_with"
  | "exists"
  | "is_empty"
  | "in"
  | (string & {});

/** The value of the dimension */
export type ConversionKind =
  | "sign_up"
  | "subscription"
  | (string & {});

/** The initial status; defaults to `active` */
export type CreateAffiliateStatus =
  | "active"
  | "pending"
  | "invited"
  | (string & {});

/** Content-Disposition */
export type Disposition =
  | "attachment"
  | "inline"
  | (string & {});

/** DKIM alignment mode */
export type DmarcAlignment =
  | "relaxed"
  | "strict"
  | (string & {});

/** The policy for mail that fails */
export type DmarcPolicy =
  | "none"
  | "quarantine"
  | "reject"
  | (string & {});

/** The action */
export type DnsChangeAction =
  | "create"
  | "update"
  | "skip"
  | "conflict"
  | (string & {});

/** The result */
export type DnsChangeOutcome =
  | "unchanged"
  | "done"
  | "failed"
  | "unclear"
  | "not_done"
  | (string & {});

/** The provider */
export type DnsProvider =
  | "cloudflare"
  | "route53"
  | "digitalocean"
  | "hetzner"
  | "gandi"
  | "rfc2136"
  | "bunny"
  | "desec"
  | "dnsimple"
  | "gcore"
  | "godaddy"
  | "hostinger"
  | "infomaniak"
  | "ionos"
  | "linode"
  | "namecom"
  | "netlify"
  | "ns1"
  | "porkbun"
  | "scaleway"
  | "vercel"
  | "vultr"
  | (string & {});

/** The condition that the claim waits for */
export type DomainClaimBlockedReason =
  | "grace_period"
  | "recent_owner_activity"
  | "pending_scheduled_emails"
  | (string & {});

/** The status */
export type DomainClaimStatus =
  | "pending"
  | "blocked"
  | "verified"
  | "completed"
  | "expired"
  | "cancelled"
  | (string & {});

/** The purpose of the record */
export type DomainRecordPurpose =
  | "ownership"
  | "dkim"
  | "return_path"
  | "spf"
  | "dmarc"
  | "inbound"
  | "tracking"
  | (string & {});

/** The result */
export type DomainRecordStatus =
  | "pending"
  | "verified"
  | "missing"
  | "mismatch"
  | "conflict"
  | (string & {});

/** The record type */
export type DomainRecordType =
  | "TXT"
  | "CNAME"
  | "MX"
  | (string & {});

/** Whether email can be sent from the domain */
export type DomainStatus =
  | "unverified"
  | "verified"
  | (string & {});

/** A category */
export type EmailCategory =
  | "transactional"
  | "product"
  | "newsletter"
  | (string & {});

export type EmailMetric =
  | "sent"
  | "delivered"
  | "bounced"
  | "failed"
  | "delayed"
  | "complained"
  | "opened"
  | "clicked"
  | "suppressed"
  | "unsubscribed"
  | "delivery_time"
  | (string & {});

/** The dimension of the row, if dimensions were requested */
export type EmailMetricsDimension =
  | "domain"
  | "tag"
  | "template"
  | "provider"
  | "category"
  | (string & {});

/** The status */
export type EmailStatus =
  | "queued"
  | "scheduled"
  | "sent"
  | "delivered"
  | "bounced"
  | "failed"
  | "cancelled"
  | (string & {});

export type FunnelGrouping =
  | "source"
  | "came_from"
  | "signup_method"
  | (string & {});

export type GetReceivedEmailAttachments =
  | "inline"
  | "none"
  | (string & {});

export type Granularity =
  | "hour"
  | "day"
  | (string & {});

export type ListEmailsStatus =
  | "scheduled"
  | "queued"
  | "sent"
  | "delivered"
  | "bounced"
  | "failed"
  | "cancelled"
  | (string & {});

export type ListReceivedEmailsOrder =
  | "desc"
  | "asc"
  | (string & {});

export type ListWebhookEventsOrder =
  | "asc"
  | "desc"
  | (string & {});

/** If some recipients are suppressed: `skip` sends to the others, `fail` rejects the email */
export type OnSuppressed =
  | "fail"
  | "skip"
  | (string & {});

/** The plan */
export type Plan =
  | "free"
  | "pro"
  | "scale"
  | "dedicated"
  | (string & {});

/** The delivery status */
export type RecipientStatus =
  | "queued"
  | "deferred"
  | "delivered"
  | "bounced"
  | "failed"
  | "cancelled"
  | "suppressed"
  | (string & {});

/** The header field */
export type RecipientType =
  | "to"
  | "cc"
  | "bcc"
  | (string & {});

/** Whether a person can have several runs */
export type Reentry =
  | "always"
  | "once"
  | "while_not_running"
  | (string & {});

/** Deliveries with this status */
export type ReplayWebhookDeliveriesStatus =
  | "failed"
  | "delivered"
  | (string & {});

/** The reason; `fraud` also reverses the recruiting partner's commission */
export type ReverseAffiliateCommissionReason =
  | "manual"
  | "fraud"
  | (string & {});

/** Why it was reversed */
export type ReverseReason =
  | "refund"
  | "dispute"
  | "fraud"
  | "manual"
  | "partner_deleted"
  | "blocked"
  | "expired"
  | "excluded"
  | (string & {});

/** The email is stored and will be delivered */
export type SentStatus =
  | "sent"
  | "scheduled"
  | (string & {});

/** How TLS is started */
export type SmtpSecurity =
  | "starttls"
  | "tls"
  | (string & {});

/** Spam status */
export type SpamStatus =
  | "not_checked"
  | "not_spam"
  | "spam"
  | (string & {});

/** The reason of the suppression that exists */
export type SuppressionImportForecastLeftOutExistingReason =
  | "hard_bounce"
  | "soft_bounce"
  | "complaint"
  | "unsubscribe"
  | "smtp_failure"
  | "manual"
  | "import"
  | (string & {});

/**
 * `created`: a suppression would be created or get this reason; `exists`: the address is already suppressed;
 * `repeated`: an earlier line has the address; `invalid`: the line would be skipped
 */
export type SuppressionImportForecastLeftOutResult =
  | "created"
  | "exists"
  | "repeated"
  | "invalid"
  | (string & {});

/** Status */
export type SuppressionImportStatus =
  | "queued"
  | "running"
  | "completed"
  | "failed"
  | (string & {});

/** Reason */
export type SuppressionReason =
  | "hard_bounce"
  | "soft_bounce"
  | "complaint"
  | "unsubscribe"
  | "smtp_failure"
  | "manual"
  | "import"
  | (string & {});

/** `created` by this request, `exists` already, or `failed` */
export type SuppressionResultStatus =
  | "created"
  | "exists"
  | "failed"
  | (string & {});

/** The source */
export type SuppressionSource =
  | "system"
  | "api"
  | "dashboard"
  | "recipient"
  | "import"
  | (string & {});

/** Status */
export type TemplateStatus =
  | "draft"
  | "published"
  | "archived"
  | (string & {});

/** Type; default: `string` */
export type TemplateVariableType =
  | "string"
  | "number"
  | "boolean"
  | "object"
  | "list"
  | (string & {});

/** `opportunistic`: TLS if the remote host offers it; `enforced`: never without TLS */
export type TlsMode =
  | "opportunistic"
  | "enforced"
  | (string & {});

/** The limit or schedule that blocks the recipient */
export type WaitReasonCause =
  | "scheduled_at"
  | "not_allowed"
  | "held"
  | "account_suspended"
  | "queue_held"
  | "paused"
  | "suspended"
  | "schedule"
  | "other_node"
  | "resting"
  | "unreachable"
  | "rate"
  | "warm_up"
  | "connections"
  | "turn"
  | "reply"
  | "look_up"
  | "memory"
  | (string & {});

/** Status */
export type WebhookDeliveryStatus =
  | "pending"
  | "delivered"
  | "failed"
  | (string & {});

/** Why the endpoint is disabled */
export type WebhookDisabledReason =
  | "gone"
  | "failing"
  | "customer"
  | (string & {});

/** Type */
export type WebhookEventType =
  | "email.received"
  | "email.sent"
  | "email.delivered"
  | "email.delivery_delayed"
  | "email.bounced"
  | "email.complained"
  | "email.opened"
  | "email.clicked"
  | "email.failed"
  | "email.suppressed"
  | "email.scheduled"
  | "contact.unsubscribed"
  | "automation.started"
  | "automation.step_completed"
  | "automation.completed"
  | "automation.failed"
  | "email.cancelled"
  | "domain.verified"
  | "domain.degraded"
  | "suppression.created"
  | "suppression.deleted"
  | "webhook.disabled"
  | "affiliate.created"
  | "affiliate.approved"
  | "affiliate.updated"
  | "referral.created"
  | "referral.converted"
  | "commission.created"
  | "commission.earned"
  | "commission.reversed"
  | "commission.paid"
  | "payout.created"
  | "payout.paid"
  | "payout.failed"
  | (string & {});

/** Retry schedule */
export type WebhookRetryPolicy =
  | "default"
  | "extended"
  | (string & {});

/** The account with its limits and usage */
export interface Account {
  /** The account */
  account: AccountDetails;
  /** Limits of the plan; null is unlimited */
  limits: AccountLimits;
  /** Usage of the account */
  usage: AccountUsage;
}

/** The account */
export interface AccountDetails {
  /** `acct_…` */
  id: string;
  /** The owner's address */
  email: string;
  /** The plan */
  plan: Plan;
  /** The recipients and sender addresses that are allowed */
  access_level: AccessLevel;
  /** Sender address for accounts without a verified domain */
  sandbox_sender: string | null;
  /** Whether the account is suspended: its email is rejected */
  suspended: boolean;
  /** Available parts of the service */
  features: AccountFeatures;
  /** When it was created */
  created_at: string;
}

/** Available parts of the service */
export interface AccountFeatures {
  /** Whether this part of the service is available */
  inbound: boolean;
  /** Whether this part of the service is available */
  automations: boolean;
  /** Whether this part of the service is available */
  sms: boolean;
  /** Whether this part of the service is available */
  affiliates: boolean;
}

/** Limits of the plan; null is unlimited */
export interface AccountLimits {
  /** Emails per calendar month (UTC), counted per recipient */
  emails_per_month: number | null;
  /** Emails per day (UTC), counted per recipient */
  emails_per_day: number | null;
  /** Sending domains */
  domains: number | null;
  /** API requests per second */
  requests_per_second: number;
  /** Days for which emails are retained */
  retention_days: number;
  /** Storage limits, as a number of objects or in bytes; null is unlimited */
  storage: AccountLimitsStorage;
}

/** Storage limits, as a number of objects or in bytes; null is unlimited */
export interface AccountLimitsStorage {
  /** Bytes of the messages of sent emails within the retention period */
  email_bytes: number | null;
  /** Suppressed addresses and domains, of any origin */
  suppressions: number | null;
  /** Opt-outs from one category */
  category_opt_outs: number | null;
  /** Templates, including archived ones */
  templates: number | null;
  /** Bytes of drafts and versions of templates */
  template_bytes: number | null;
  /** Product events within the retention period */
  product_events: number | null;
  /** Bytes of product events */
  product_event_bytes: number | null;
  /** Received emails within the retention period */
  received_emails: number | null;
  /** Bytes of the messages of received emails */
  received_bytes: number | null;
  /** Automations, including archived ones */
  automations: number | null;
  /** Bytes of all versions of automations */
  automation_bytes: number | null;
  /** Webhook endpoints */
  webhooks: number | null;
  /** API keys */
  api_keys: number | null;
  /** SMTP credentials */
  smtp_credentials: number | null;
  /** Users, including invited ones */
  users: number | null;
  /** Claims to domains of other accounts, including closed ones */
  domain_claims: number | null;
  /** Partners of the affiliate program */
  affiliates: number | null;
  /** Links of partners */
  affiliate_links: number | null;
  /** Campaigns of the affiliate program */
  affiliate_campaigns: number | null;
  /** People referred by partners */
  affiliate_referrals: number | null;
  /** Bytes of events of the payment processor within 90 days */
  affiliate_event_bytes: number | null;
}

/** Usage of the account */
export interface AccountUsage {
  /** Start of the month */
  period_start: string;
  /** End of the month */
  period_end: string;
  /** Emails sent this month */
  emails_month: number;
  /** Emails sent today */
  emails_day: number;
  /** Sending domains */
  domains: number;
  /** Emails sent this month beyond the number that the plan includes */
  overage: number;
  /** When the daily count resets */
  resets_at: string;
  /** Stored objects or bytes; null if the plan has no limit or the count is being computed */
  storage: AccountUsageStorage;
}

/** Stored objects or bytes; null if the plan has no limit or the count is being computed */
export interface AccountUsageStorage {
  /** Bytes of the messages of sent emails within the retention period */
  email_bytes: number | null;
  /** Suppressed addresses and domains, of any origin */
  suppressions: number | null;
  /** Opt-outs from one category */
  category_opt_outs: number | null;
  /** Templates, including archived ones */
  templates: number | null;
  /** Bytes of drafts and versions of templates */
  template_bytes: number | null;
  /** Product events within the retention period */
  product_events: number | null;
  /** Bytes of product events */
  product_event_bytes: number | null;
  /** Received emails within the retention period */
  received_emails: number | null;
  /** Bytes of the messages of received emails */
  received_bytes: number | null;
  /** Automations, including archived ones */
  automations: number | null;
  /** Bytes of all versions of automations */
  automation_bytes: number | null;
  /** Webhook endpoints */
  webhooks: number | null;
  /** API keys */
  api_keys: number | null;
  /** SMTP credentials */
  smtp_credentials: number | null;
  /** Users, including invited ones */
  users: number | null;
  /** Claims to domains of other accounts, including closed ones */
  domain_claims: number | null;
  /** Partners of the affiliate program */
  affiliates: number | null;
  /** Links of partners */
  affiliate_links: number | null;
  /** Campaigns of the affiliate program */
  affiliate_campaigns: number | null;
  /** People referred by partners */
  affiliate_referrals: number | null;
  /** Bytes of events of the payment processor within 90 days */
  affiliate_event_bytes: number | null;
}

/** A partner */
export interface Affiliate {
  /** The object type */
  object: "affiliate";
  /** The partner's id (`aff_…`) */
  id: string;
  /** The unique email address */
  email: string;
  /** The given name */
  first_name: string | null;
  /** The family name */
  last_name: string | null;
  /** The company */
  company: string | null;
  /** The website */
  website: string | null;
  /** Two letters (ISO 3166-1) */
  country: string | null;
  /** The status */
  status: AffiliateStatus;
  /** The source */
  source: AffiliateSource;
  /** The campaign (`cmp_…`) */
  campaign_id: string;
  /** The partner that recruited this one (`aff_…`) */
  parent_affiliate_id: string | null;
  /** Tags for the owner's use */
  tags: string[];
  /** The payout method */
  payout_method: AffiliatePayoutMethod | null;
  /** Whether a payout destination with an allowed method is set */
  payout_ready: boolean;
  /** When the partner was first approved */
  approved_at: string | null;
  /** All links of the partner; in a list, only the primary link */
  links: AffiliateLink[];
  /** When it was created */
  created_at: string;
  /** When it was last changed */
  updated_at: string;
}

/** `data` of `affiliate.approved`. */
export interface AffiliateApprovedData {
  /** The event's id (`evt_…`), the same in every delivery: use it to recognise repetitions */
  event_id?: string;
  /** The partner after the change */
  affiliate?: Affiliate;
  /** The affiliate program (`prog_…`) */
  program_id?: string;
  /** The partner (`aff_…`) */
  affiliate_id?: string;
}

/** The commission terms of partners */
export interface AffiliateCampaign {
  /** The object type */
  object: "affiliate_campaign";
  /** The campaign's id (`cmp_…`) */
  id: string;
  /** The unique name of the campaign */
  name: string;
  /** Whether this is the default campaign */
  is_default: boolean;
  /** The people who can see the campaign */
  visibility: AffiliateCampaignVisibility;
  /** Whether applications are approved automatically */
  auto_approve: boolean;
  /** The rate that applies */
  commission_type: AffiliateCampaignCommissionType;
  /** The percentage of a sale in basis points */
  commission_bps: number;
  /** The amount per sale, in minor units of the program's currency */
  commission_flat_cents: number;
  /** Whether the first sale or all sales earn a commission */
  commission_duration: AffiliateCampaignCommissionDuration;
  /** For how many months sales earn a commission; null is unlimited */
  recurring_months: number | null;
  /** Maximum commission per sale */
  max_commission_cents: number | null;
  /** Rates by number of paying customers */
  tiers: AffiliateCampaignTier[];
  /** Rates of products and prices */
  product_rates: AffiliateCampaignProductRate[];
  /** The recruiting partner's percentage of the same sale in basis points */
  second_tier_bps: number;
  /** The amount per lead in minor units */
  lead_bounty_cents: number;
  /** For how many days a visit is credited to the partner */
  cookie_days: number;
  /** For how many days a commission is held for refunds */
  hold_days: number;
  /** When the campaign was archived and stopped accepting partners */
  archived_at: string | null;
  /** When it was created */
  created_at: string;
  /** When it was last changed */
  updated_at: string;
  /** Number of partners; only in lists */
  affiliate_count?: number;
}

/** The rate of a product or of one of its prices */
export interface AffiliateCampaignProductRate {
  /** The payment processor's product id */
  product_id: string;
  /** The payment processor's price id */
  price_id: string | null;
  /** The rate that applies; `none` earns nothing */
  commission_type: AffiliateCampaignProductRateCommissionType;
  /** The percentage in basis points */
  commission_bps: number;
  /** The amount in minor units */
  commission_flat_cents: number;
  /** A label for your own use */
  label: string | null;
}

/** A rate that applies from a number of paying customers; `commission_type` selects one of the two rates */
export interface AffiliateCampaignTier {
  /** Number of paying customers, including the current one */
  min_paid_customers: number;
  /** The percentage in basis points */
  commission_bps: number;
  /** The amount in minor units */
  commission_flat_cents: number;
}

/** A line of the ledger */
export interface AffiliateCommission {
  /** The object type */
  object: "affiliate_commission";
  /** The commission's id (`com_…`) */
  id: string;
  /** The partner (`aff_…`) */
  affiliate_id: string;
  /** The referral (`ref_…`) */
  referral_id: string;
  /** 1: earned by the referring partner; 2: earned by the partner that recruited it */
  tier: number;
  /** The status; `earned` while it is in a payout */
  status: AffiliateCommissionStatus;
  /** The amount in minor units */
  amount_cents: number;
  /** The sale amount that the commission is based on; 0 for a bounty */
  sale_amount_cents: number;
  /** The currency of `amount_cents` */
  currency: string;
  /** The reason for the commission */
  description: string;
  /** The payment processor's invoice id */
  processor_invoice_id: string | null;
  /** The payment processor's charge id */
  processor_charge_id: string | null;
  /** When the hold period ends */
  earns_at: string;
  /** When the commission was earned */
  earned_at: string | null;
  /** When it was paid out */
  paid_at: string | null;
  /** When it was reversed */
  reversed_at: string | null;
  /** Why it was reversed */
  reverse_reason: ReverseReason | null;
  /** The payout (`pay_…`) */
  payout_id: string | null;
  /** When it was created */
  created_at: string;
  /** When it was last changed */
  updated_at: string;
}

/** A commission with its calculation */
export interface AffiliateCommissionDetail {
  commission: AffiliateCommission;
  /** The calculation in one line: `20 % of 49.00 usd = 9.80 usd (campaign rate)` */
  formula: string;
  /** Null for a bounty */
  calculation: AffiliateCommissionDetailCalculation | null;
}

/** The calculation of a commission on a sale */
export interface AffiliateCommissionDetailCalculation {
  /** The currency of the sale */
  currency: string;
  /** The amount that the customer paid, in minor units */
  paid_cents: number;
  /** The tax included in it */
  tax_cents: number;
  /** The amount that the commission is calculated on: paid, without tax, before refunds */
  base_cents: number;
  /** Remainder of the base after refunds */
  remaining_base_cents: number;
  /** The partner's number of paying customers at that time, including this one */
  paying_customers: number;
  /** The rates, by lines of the sale */
  rates: AffiliateCommissionDetailCalculationRate[];
  /** The maximum commission of a sale */
  cap: AffiliateCommissionDetailCalculationCap | null;
}

/** The maximum commission of a sale */
export interface AffiliateCommissionDetailCalculationCap {
  /** The maximum in minor units */
  max_commission_cents: number;
  /** Its currency */
  currency: string;
  /** `hit`: the commission was lowered to it; `other_currency`: not applied, because amounts are not converted */
  effect: AffiliateCommissionDetailCalculationCapEffect;
}

/** Lines of the sale that have the same rate */
export interface AffiliateCommissionDetailCalculationRate {
  /** The part of the sale that the rate applies to, after refunds, in minor units */
  base_cents: number;
  /** The rate in basis points; null for a fixed amount */
  commission_bps: number | null;
  /** The fixed amount in minor units; null for a share */
  commission_flat_cents: number | null;
  /**
   * `override`: the partner's own rate; `product`: the campaign's rate of the product or price; `tier`: the
   * campaign's rate from a number of paying customers on; `base`: the campaign's rate; `second_tier`: the
   * recruiter's share
   */
  rule: AffiliateCommissionDetailCalculationRateRule;
  /** The product's id at the payment processor */
  product: string | null;
  /** The number of paying customers from which the tier applies */
  min_paid_customers: number | null;
}

/** `data` of `affiliate.created`. */
export interface AffiliateCreatedData {
  /** The event's id (`evt_…`), the same in every delivery: use it to recognise repetitions */
  event_id?: string;
  /** The partner after the change */
  affiliate?: Affiliate;
  /** The affiliate program (`prog_…`) */
  program_id?: string;
  /** The partner (`aff_…`) */
  affiliate_id?: string;
}

/** A link of a partner */
export interface AffiliateLink {
  /** The object type */
  object: "affiliate_link";
  /** The link's id (`afl_…`) */
  id: string;
  /** The partner (`aff_…`) */
  affiliate_id: string;
  /** The value of the `via` parameter */
  token: string;
  /** The URL with the token */
  url: string;
  /** The destination: a path or a URL on the website */
  destination_url: string | null;
  /** The label */
  label: string | null;
  /** Whether this is the primary link */
  is_primary: boolean;
  /** When it was created */
  created_at: string;
}

/** A payout to one partner in one currency */
export interface AffiliatePayout {
  /** The object type */
  object: "affiliate_payout";
  /** The payout's id (`pay_…`) */
  id: string;
  /** The partner (`aff_…`) */
  affiliate_id: string;
  /** The payout run (`prn_…`) */
  run_id: string;
  /** The amount in minor units */
  amount_cents: number;
  /** The currency */
  currency: string;
  /** The payout method */
  method: AffiliatePayoutMethod;
  /** The status */
  status: AffiliatePayoutStatus;
  /** The payment processor's transfer id */
  processor_transfer_id: string | null;
  /** Reference of the payment, as proof */
  external_reference: string | null;
  /** Why the payout failed; while it is `processing`, why the transfer has not been made yet */
  failure_reason: string | null;
  /** When it was paid */
  paid_at: string | null;
  /** When it was drafted */
  created_at: string;
  /** When it was last changed */
  updated_at: string;
}

/** A person referred by a partner */
export interface AffiliateReferral {
  /** The object type */
  object: "affiliate_referral";
  /** The referral's id (`ref_…`) */
  id: string;
  /** The partner (`aff_…`) */
  affiliate_id: string;
  /** The status */
  status: AffiliateReferralStatus;
  /** The source */
  source: AffiliateReferralSource;
  /** The person's email address */
  email: string | null;
  /** The payment processor's customer id */
  processor_customer_id: string | null;
  /** The partner's own tag */
  sub_id: string | null;
  /** Why the referral earns no commission */
  blocked_reason: AffiliateReferralBlockedReason | null;
  /** Payments in `currency` minus refunds, without tax, in minor units */
  revenue_cents: number;
  /** The currency of the first payment that postrider received */
  currency: string | null;
  /** When the customer first paid */
  converted_at: string | null;
  /** The customer must pay before this time to be credited to the partner */
  expires_at: string;
  /** When it was created */
  created_at: string;
  /** When it was last changed */
  updated_at: string;
}

/** `data` of `affiliate.updated`. */
export interface AffiliateUpdatedData {
  /** The event's id (`evt_…`), the same in every delivery: use it to recognise repetitions */
  event_id?: string;
  /** The partner after the change */
  affiliate?: Affiliate;
  /** The affiliate program (`prog_…`) */
  program_id?: string;
  /** The partner (`aff_…`) */
  affiliate_id?: string;
}

/** An API key, without its secret */
export interface ApiKey {
  /** `key_…` */
  id: string;
  /** The name */
  name: string;
  /** The scope */
  scope: ApiKeyScope;
  /** The displayable part of the secret */
  hint: string;
  /** Whether the credential is enabled */
  enabled: boolean;
  /** The only domain that the credential may send from; null allows all */
  domain_id: string | null;
  /** Addresses and networks that may use the credential; empty allows all */
  allowed_ips: string[];
  /** When it was last used, to about a minute */
  last_used_at: string | null;
  /** The IP address of the last use */
  last_used_ip: string | null;
  /** When the credential expires */
  expires_at: string | null;
  policy: ClientPolicy | null;
  /** When it was created */
  created_at: string;
}

/** The published records */
export interface ApplyDomainDnsResponse {
  domain: Domain;
  /** The change of each record */
  changes: DnsChange[];
  /** Whether all records are now published at the provider */
  applied: boolean;
  /** Warnings, for example about ignored fields */
  warnings?: string[];
}

/** A client's request that waits for a person's decision, or has been decided */
export interface Approval {
  /** `apr_…` */
  id: string;
  /** The status; `failed` means that the response is an error, `interrupted` that it may have been executed */
  status: ApprovalStatus;
  /** The kind of operation that the policy holds */
  kind: ApprovalKind;
  /** The API key (`key_…`) or grant of an app (`grant_…`) that made the request */
  client_id: string;
  /** The operation */
  operation: string;
  /** The method */
  method: string;
  /** The path with the query */
  path: string;
  /** The `Idempotency-Key` of the request */
  idempotency_key: string | null;
  /** The `If-Match` of the request: it is executed only if the object still has this version */
  if_match: string | null;
  /** The body as JSON text; only in the response for one approval, until the content is deleted */
  body: string | null;
  /** The emails that the request sends; only in the response for one approval, until the content is deleted */
  emails: ApprovalEmail[] | null;
  /** SHA-256 of the request and its emails; a decision names it */
  hash: string;
  /** The page on which a person decides */
  url: string;
  /** When the request was made */
  created_at: string;
  /** End of the time for a decision */
  expires_at: string;
  /** The user who decided */
  decided_by: string | null;
  /** When it was decided */
  decided_at: string | null;
  /** The status of the response, once the request was executed */
  response_status: number | null;
  /** The code of the error, if the response is one */
  error_code: string | null;
  /** The body of the response, for 24 hours; only in the response for one approval */
  response: Record<string, unknown> | null;
}

/** An attachment of such an email */
export interface ApprovalAttachment {
  /** The file name */
  name: string;
  /** The media type */
  content_type: string;
  /** The size */
  size_bytes: number;
  /** SHA-256 of the content, in hexadecimal */
  sha256: string;
}

/** An email that a held request sends */
export interface ApprovalEmail {
  /** The author */
  from: string;
  /** All recipients: those of to, cc and bcc */
  recipients: string[];
  /** The header field To */
  to: string[];
  /** The header field Cc */
  cc: string[];
  /** Recipients that no header field names */
  bcc: string[];
  /** Where replies go */
  reply_to: string[];
  /** The subject */
  subject: string;
  /** The plain-text body */
  text: string | null;
  /** The HTML body */
  html: string | null;
  /** The custom header fields */
  headers: ApprovalHeader[];
  /** The attachments, without their contents */
  attachments: ApprovalAttachment[];
  /** The category */
  category: EmailCategory;
  /** When it is sent, if not at once */
  scheduled_at: string | null;
}

/** A custom header field of such an email */
export interface ApprovalHeader {
  /** The name */
  name: string;
  /** The value */
  value: string;
}

/** A response with a single object */
export interface ApproveAffiliateResponse {
  affiliate: Affiliate;
  /** Warnings, for example about ignored fields */
  warnings?: string[];
}

/** A delivery attempt */
export interface Attempt {
  /** Number of the attempt for this recipient, from 1 */
  n: number;
  /** The recipient */
  recipient: string | null;
  /** The host */
  mx_host: string | null;
  /** The host's IP address */
  ip: string | null;
  /** Null for plain text */
  tls: AttemptTls | null;
  /** The three-digit SMTP reply code */
  smtp_code: number | null;
  /** The enhanced status code (RFC 3463) */
  enhanced_code: string | null;
  /** The text of the response */
  response: string | null;
  /** The error, if it was not a response of a host */
  error: string | null;
  /** The phase that the attempt reached */
  phase: string;
  /** Duration in milliseconds */
  duration_ms: number;
  /** When it started */
  created_at: string;
  /** When the next attempt is due */
  next_attempt_at: string | null;
  /** The SMTP transcript */
  transcript: string;
}

/** A page of the list */
export interface AttemptList {
  /** The entries, newest first */
  attempts: Attempt[];
  /** Whether there are more */
  has_more: boolean;
  /** The `cursor` of the next page */
  next_cursor: string | null;
}

/** TLS */
export interface AttemptTls {
  /** `TLSv1.3` */
  version: string;
  /** The cipher suite */
  cipher: string;
  /** Whether the certificate was verified */
  verified: boolean;
  /** The policy that required or offered TLS */
  policy: AttemptTlsPolicy;
}

/** An action of a credential or a user */
export interface AuditEntry {
  /** `req_…`, the response's `x-request-id` */
  id: string;
  /** The operation */
  operation: string;
  /** The id of the object, if the operation concerns one */
  object_id: string | null;
  /** The path; email addresses are redacted */
  path: string;
  /** The response status */
  status: number;
  /** The error's code */
  error_code: string | null;
  /** How the request arrived; `approval` is a request that a person approved */
  surface: AuditEntrySurface;
  /** The API key of the request */
  api_key_id: string | null;
  /** The grant of the app that made the request */
  grant_id: string | null;
  /** The user whose session made the request */
  user_id: string | null;
  /** The approval that the request waits for, or after which it was carried out */
  approval_id: string | null;
  /** The user who approved the request */
  approved_by: string | null;
  /** The IP address of the request */
  ip: string | null;
  /** When it was received */
  created_at: string;
}

/** An automation */
export interface Automation {
  /** The automation's id (`aut_…`) */
  id: string;
  /** The name */
  name: string;
  /** The status */
  status: AutomationStatus;
  /** The version that new runs follow */
  version: number;
  trigger: AutomationTrigger;
  /** The steps of a run, in order */
  steps: AutomationStep[];
  /** Number of runs by status */
  counts: AutomationCounts;
  /** When it was created */
  created_at: string;
  /** When it was last changed */
  updated_at: string;
  /** When it was last activated */
  activated_at: string | null;
}

/** `data` of `automation.completed`. */
export interface AutomationCompletedData {
  /** The event's id (`evt_…`), the same in every delivery: use it to recognise repetitions */
  event_id?: string;
  /** The automation */
  automation_id?: string;
  /** The automation's name when the run started */
  automation_name?: string;
  /** The run (`run_…`) */
  run_id?: string;
  /** The run's status: `running`, `completed` or `failed` */
  status?: string;
  /** The event's name */
  event_name?: string;
  /** The event that started the run (`ae_…`, `evt_…`) */
  source_event_id?: string;
  /** The person's `user_id` in the product */
  user_id?: string;
  /** The person's email address */
  email?: string;
  step_index?: number | null;
  step_type?: string | null;
  error?: string | null;
  /** How the run completed */
  ended_by?: string;
  /** When the run was created */
  started_at?: string;
  /** When it ended */
  completed_at?: string;
}

/** Comparisons of which all or any must be true */
export interface AutomationCondition {
  /** All must be true */
  all?: ConditionTerm[] | null;
  /** At least one must be true */
  any?: ConditionTerm[] | null;
}

/** Number of runs by status */
export interface AutomationCounts {
  /** Runs that execute a step */
  running: number;
  /** Runs that wait for a time or an event */
  waiting: number;
  /** Runs that completed */
  completed: number;
  /** Runs that failed */
  failed: number;
  /** Runs that were cancelled */
  cancelled: number;
}

/** `data` of `automation.failed`. */
export interface AutomationFailedData {
  /** The event's id (`evt_…`), the same in every delivery: use it to recognise repetitions */
  event_id?: string;
  /** The automation */
  automation_id?: string;
  /** The automation's name when the run started */
  automation_name?: string;
  /** The run (`run_…`) */
  run_id?: string;
  /** The run's status: `running`, `completed` or `failed` */
  status?: string;
  /** The event's name */
  event_name?: string;
  /** The event that started the run (`ae_…`, `evt_…`) */
  source_event_id?: string;
  /** The person's `user_id` in the product */
  user_id?: string;
  /** The person's email address */
  email?: string;
  /** The step that the event is about, counted from 0; null if it is about none */
  step_index?: number;
  /** The type of that step, for example `send_email` */
  step_type?: string;
  /** The error, if it failed */
  error?: string;
  ended_by?: string | null;
  /** When the run was created */
  started_at?: string;
  /** When it ended */
  completed_at?: string;
}

/** The result of a replay */
export interface AutomationReplay {
  /** Sums of all replayed events */
  totals: AutomationReplayTotals;
  /** The events, newest first */
  events: AutomationReplayEvent[];
  /** Whether all requested events were replayed; false if time ran out */
  complete: boolean;
}

/** A past event, and what the steps would do with it */
export interface AutomationReplayEvent {
  /** The event's id (`ae_…`) */
  event_id: string;
  /** When it was received */
  created_at: string;
  /** The person's user id */
  user_id: string | null;
  /** The person's email address */
  email: string | null;
  /**
   * `run`: it starts a run; `filtered`: the trigger's filter excludes it; `repeated`: an earlier event had
   * already started the person's only run
   */
  effect: AutomationReplayEventEffect;
  /** The messages that would be sent or suppressed, in order */
  messages: AutomationReplayEventMessage[];
  /** `completed` or `failed`; null without a run */
  status: AutomationRunStatus | null;
  /** How the run would complete */
  ended_by: AutomationRunEndedBy | null;
  /** The position of its last step, from 0 */
  last_step_index: number | null;
  /** Why it would fail */
  error: string | null;
  /** The run that the event started then, if it is among the newest 2,000 runs */
  past_run: AutomationReplayEventPastRun | null;
}

/** A message that would be sent, unless it is suppressed */
export interface AutomationReplayEventMessage {
  /** The position of its step, from 0 */
  step_index: number;
  /** The step type */
  type: AutomationRunStepType;
  /** The email's subject, or the beginning of the text message */
  text: string;
  /** Whether its recipients are suppressed or have opted out, so that it would not be sent */
  suppressed: boolean;
}

/** The run that the event started then */
export interface AutomationReplayEventPastRun {
  /** The run's id (`run_…`) */
  id: string;
  /** The version that it followed */
  automation_version: number;
  /** Its status */
  status: AutomationRunStatus;
  /** Emails and text messages that it has sent */
  messages_sent: number;
}

/** Sums of all replayed events */
export interface AutomationReplayTotals {
  /** Replayed events */
  events: number;
  /** Events that start a run */
  runs: number;
  /** Events for which a message would be sent */
  reached: number;
  /** Messages that would be sent */
  messages: number;
  /** Messages that would not be sent, because their recipients are suppressed or have opted out */
  suppressed: number;
  /** Runs that would fail */
  failed: number;
  /** Events that started a run then */
  past_runs: number;
  /** Messages that these runs have sent */
  past_messages: number;
}

/** A run: one person's execution of an automation */
export interface AutomationRun {
  /** The run's id (`run_…`) */
  id: string;
  /** The automation */
  automation_id: string;
  /** The version of the automation */
  automation_version: number;
  /** The status */
  status: AutomationRunStatus;
  /** Whether the run is live or a test */
  mode: AutomationRunMode;
  /** The event that started it (`ae_…`, `evt_…`) */
  event_id: string;
  /** The event's name */
  event_name: string;
  /** The person's `user_id` in the product */
  user_id: string | null;
  /** The person's email address */
  email: string | null;
  /** The current step */
  current_step_index: number;
  /** All steps, in order */
  steps: AutomationRunStep[];
  /** The current wait */
  wait: AutomationRunWait | null;
  /** How the run completed */
  ended_by: AutomationRunEndedBy | null;
  /** The cause of the cancellation */
  cancelled_by: AutomationRunCancelledBy | null;
  /** The error, if it failed */
  error: string | null;
  /** When it was created */
  created_at: string;
  /** When the first step started */
  started_at: string | null;
  /** When it ended */
  completed_at: string | null;
}

/** A step of a run */
export interface AutomationRunStep {
  /** The position, from 0 */
  index: number;
  /** The step's key */
  key: string | null;
  /** The step type */
  type: AutomationRunStepType;
  /** The status */
  status: AutomationRunStepStatus;
  /** The result: `email_id`, or `withheld` with the reason why no reply was sent */
  output: Record<string, unknown> | null;
  /** The error, if the step failed */
  error: string | null;
  /** When it started */
  started_at: string | null;
  /** When it ended */
  completed_at: string | null;
}

/** The current wait */
export interface AutomationRunWait {
  /** The awaited event; null if the run waits for a time only */
  event: string | null;
  /** End of the wait */
  until: string;
}

/** `data` of `automation.started`. */
export interface AutomationStartedData {
  /** The event's id (`evt_…`), the same in every delivery: use it to recognise repetitions */
  event_id?: string;
  /** The automation */
  automation_id?: string;
  /** The automation's name when the run started */
  automation_name?: string;
  /** The run (`run_…`) */
  run_id?: string;
  /** The run's status: `running`, `completed` or `failed` */
  status?: string;
  /** The event's name */
  event_name?: string;
  /** The event that started the run (`ae_…`, `evt_…`) */
  source_event_id?: string;
  /** The person's `user_id` in the product */
  user_id?: string;
  /** The person's email address */
  email?: string;
  step_index?: number | null;
  step_type?: string | null;
  error?: string | null;
  ended_by?: string | null;
  /** When the run was created */
  started_at?: string;
  completed_at?: string | null;
}

/** A step; its other fields depend on its type */
export interface AutomationStep {
  /** The step type */
  type: AutomationRunStepType;
  /** Key by which other steps refer to this step */
  key?: string | null;
  /** The name */
  name?: string | null;
  [field: string]: unknown;
}

/** `data` of `automation.step_completed`. */
export interface AutomationStepCompletedData {
  /** The event's id (`evt_…`), the same in every delivery: use it to recognise repetitions */
  event_id?: string;
  /** The automation */
  automation_id?: string;
  /** The automation's name when the run started */
  automation_name?: string;
  /** The run (`run_…`) */
  run_id?: string;
  /** The run's status: `running`, `completed` or `failed` */
  status?: string;
  /** The event's name */
  event_name?: string;
  /** The step that the event is about, counted from 0; null if it is about none */
  step_index?: number;
  /** The type of that step, for example `send_email` */
  step_type?: string;
  error?: string | null;
  /** What the step produced */
  output?: StepOutput;
}

/** The runs of a version by step */
export interface AutomationStepCounts {
  /** The version */
  version: number;
  /** The steps, in order */
  steps: AutomationStepCountsStep[];
  /** Runs of the version that were counted: those among the newest 1,000 runs of the automation */
  runs: number;
  /** Whether there are older runs */
  has_more: boolean;
  /** Whether there are more waiting runs than the 1,000 that were counted */
  has_more_waiting: boolean;
}

/** The runs at one step */
export interface AutomationStepCountsStep {
  /** The position, from 0 */
  index: number;
  /** Runs that wait at the step or execute it */
  waiting: number;
  /** Runs that completed the step and continued, or ended after the last one */
  passed: number;
  /** Runs that failed at the step */
  failed: number;
  /** Runs that completed at the step although others follow: a condition was false, or a wait ended the run */
  ended: number;
  /** Runs that were cancelled at the step */
  cancelled: number;
}

/** The trigger that starts a run */
export interface AutomationTrigger {
  /** The event name: your own (`user.created`) or the service's (`email.opened`) */
  event: string;
  filter?: AutomationCondition | null;
  /** Events that cancel the person's runs */
  cancel_on_events?: string[] | null;
  /** Whether a person can have several runs */
  reentry?: Reentry | null;
  /** Whether opens and clicks by machines trigger as well */
  include_machine?: boolean | null;
}

/** A version */
export interface AutomationVersion {
  /** 1, 2, 3 … */
  version: number;
  trigger: AutomationTrigger;
  /** The steps of a run, in order */
  steps: AutomationStep[];
  /** When it was created */
  created_at: string;
}

/** The result of one email */
export interface BatchResult {
  /** The position in the batch, from 0 */
  index: number;
  /** The email's id (`msg_…`) */
  id: string | null;
  /** Whether it was accepted */
  status: BatchResultStatus;
  /** Warnings, for example about ignored fields */
  warnings?: string[];
  /** Whether the email was sent before with its own `idempotency_key` */
  replayed?: boolean;
  /** The error, if the email was not accepted */
  error?: BatchResultError;
}

/** The error, if the email was not accepted */
export interface BatchResultError {
  /** Message for people */
  message: string;
  /** Code for programs, as in responses to single requests */
  code: string;
  /** Details of the error */
  details?: Record<string, unknown>;
  /** The page to upgrade the account */
  upgrade_url?: string;
}

/** A response with a run */
export interface CancelAutomationRunResponse {
  run: AutomationRun;
}

/** A response with an email */
export interface CancelEmailResponse {
  email: EmailDetail;
}

/** An address that has opted out of a category */
export interface CategoryOptOut {
  /** `opt_…` */
  id: string;
  /** The email address in lower case */
  email: string;
  /** The category */
  category: CategoryOptOutCategory;
  /** The name */
  category_label: string;
  /** The source */
  source: SuppressionSource;
  /** The email that caused it */
  email_id: string | null;
  /** When it was created */
  created_at: string;
}

/** A page of the list */
export interface CategoryOptOutList {
  /** The entries, newest first */
  category_opt_outs: CategoryOptOut[];
  /** Whether there are more */
  has_more: boolean;
  /** The `cursor` of the next page */
  next_cursor: string | null;
}

/** The results */
export interface CheckSuppressionsResponse {
  /** An entry for each address, in the order of the request */
  data: SuppressionCheck[];
  /** Warnings, for example about ignored fields */
  warnings?: string[];
}

/** What a client may do below its scope */
export interface ClientPolicy {
  /** The recipients that it may send to; empty allows all */
  recipients: string[];
  /** The only sender address */
  from: string | null;
  /** Maximum number of recipients per day (UTC) */
  sends_per_day: number | null;
  /** The categories of email that it may send; empty allows all */
  categories: EmailCategory[];
  /** The kinds of operations that wait for a person's approval */
  approve: ApprovalKind[];
}

/** `data` of `commission.created`. */
export interface CommissionCreatedData {
  /** The event's id (`evt_…`), the same in every delivery: use it to recognise repetitions */
  event_id?: string;
  /** The commission after the change */
  commission?: AffiliateCommission;
  /** The affiliate program (`prog_…`) */
  program_id?: string;
  /** The partner (`aff_…`) */
  affiliate_id?: string;
}

/** `data` of `commission.earned`. */
export interface CommissionEarnedData {
  /** The event's id (`evt_…`), the same in every delivery: use it to recognise repetitions */
  event_id?: string;
  /** The commission after the change */
  commission?: AffiliateCommission;
  /** The affiliate program (`prog_…`) */
  program_id?: string;
  /** The partner (`aff_…`) */
  affiliate_id?: string;
}

/** `data` of `commission.paid`. */
export interface CommissionPaidData {
  /** The event's id (`evt_…`), the same in every delivery: use it to recognise repetitions */
  event_id?: string;
  /** The commission after the change */
  commission?: AffiliateCommission;
  /** The payout that paid it (`pay_…`) */
  payout_id?: string;
  /** The affiliate program (`prog_…`) */
  program_id?: string;
  /** The partner (`aff_…`) */
  affiliate_id?: string;
}

/** `data` of `commission.reversed`. */
export interface CommissionReversedData {
  /** The event's id (`evt_…`), the same in every delivery: use it to recognise repetitions */
  event_id?: string;
  /** The commission after the change */
  commission?: AffiliateCommission;
  /** The affiliate program (`prog_…`) */
  program_id?: string;
  /** The partner (`aff_…`) */
  affiliate_id?: string;
}

/** A comparison */
export interface ConditionTerm {
  /** The field to compare: `event.data.plan`, `event.email`, `wait.received` */
  field: string;
  /** The comparison operator */
  op: ConditionOperator;
  /** The value to compare with; may be a reference */
  value?: unknown;
}

/** The page to redirect the customer to */
export interface ConnectDns {
  /** The page at the DNS provider where the domain's owner signs in and approves the records */
  url: string;
}

/** `data` of `contact.unsubscribed`. */
export interface ContactUnsubscribedData {
  /** The event's id (`evt_…`), the same in every delivery: use it to recognise repetitions */
  event_id?: string;
  /** The email whose link or button was used (`msg_…`) */
  email_id?: string;
  /** The address that unsubscribed */
  email?: string;
  /** Always `recipient` */
  source?: string;
  /** `all`: from all email that is not transactional; `category`: from one category */
  scope?: string;
  /** The category, if `scope` is `category` */
  category?: string;
  /** The category's name, as the recipient sees it */
  category_label?: string;
  suppression_id?: string | null;
  /** The opt-out (`opt_…`), if `scope` is `category` */
  category_opt_out_id?: string;
}

/** A sign-up or subscription; recorded once per `subject_id` */
export interface Conversion {
  /** The first event that reported it (`ae_…`) */
  event_id: string;
  /** The value of the dimension */
  kind: ConversionKind;
  /** The id of the user or subscription */
  subject_id: string;
  /** The person's user id in your product */
  user_id: string | null;
  /** The person's email address */
  email: string | null;
  /** The cookie `stx_vid` */
  visitor_id: string | null;
  /** The measured source of the first visit */
  source: string | null;
  /** The source as named by the event */
  came_from: string | null;
  /** The sign-up method */
  signup_method: string | null;
  /** The Google Ads click id that gets the credit */
  gclid: string | null;
  /** The `gbraid` click id of an app campaign */
  gbraid: string | null;
  /** The `wbraid` click id of an app campaign */
  wbraid: string | null;
  /** The value */
  value: number | null;
  /** The currency of the value */
  currency: string | null;
  /** When it happened */
  occurred_at: string;
}

/** A page of the list */
export interface ConversionList {
  /** The entries, newest first */
  conversions: Conversion[];
  /** Whether there are more */
  has_more: boolean;
  /** The `cursor` of the next page */
  next_cursor: string | null;
}

/** A response with the counts */
export interface CountAutomationStepsResponse {
  step_counts: AutomationStepCounts;
}

/** A response with a single object */
export interface CreateAffiliateCampaignResponse {
  campaign: AffiliateCampaign;
  /** Warnings, for example about ignored fields */
  warnings?: string[];
}

/** A response with a single object */
export interface CreateAffiliateLinkResponse {
  link: AffiliateLink;
  /** Warnings, for example about ignored fields */
  warnings?: string[];
}

/** A link that signs a partner in to the portal; redirect the partner's browser to it at once */
export interface CreateAffiliateLoginLinkResponse {
  /** The object type */
  object: "affiliate_login_link";
  /** The URL to redirect the browser to; it works once */
  url: string;
  /** When the link expires: one minute after its creation */
  expires_at: string;
  /** Warnings, for example about ignored fields */
  warnings?: string[];
}

/** A created or existing referral */
export interface CreateAffiliateReferralResponse {
  referral: AffiliateReferral;
  /** Whether the request created the referral; false if the person was referred before */
  created: boolean;
  /** Warnings, for example about ignored fields */
  warnings?: string[];
}

/** A response with a single object */
export interface CreateAffiliateResponse {
  affiliate: Affiliate;
  /** Warnings, for example about ignored fields */
  warnings?: string[];
}

/** API key */
export interface CreateApiKeyResponse {
  api_key: ApiKey;
  /** The secret; shown only in this response */
  secret: string;
  /** Warnings, for example about ignored fields */
  warnings?: string[];
}

/** A response with an automation */
export interface CreateAutomationResponse {
  automation: Automation;
  /** Warnings, for example about ignored fields */
  warnings?: string[];
}

/** An opt-out */
export interface CreateCategoryOptOutResponse {
  category_opt_out: CategoryOptOut;
  /** Warnings, for example about ignored fields */
  warnings?: string[];
}

/** A claim */
export interface CreateDomainClaimResponse {
  claim: DomainClaim;
  /** Warnings, for example about ignored fields */
  warnings?: string[];
}

/** A domain */
export interface CreateDomainResponse {
  domain: Domain;
  /** Warnings, for example about ignored fields */
  warnings?: string[];
}

/** SMTP credential */
export interface CreateSmtpCredentialResponse {
  smtp_credential: SmtpCredential;
  /** The secret; shown only in this response */
  password: string;
  /** Warnings, for example about ignored fields */
  warnings?: string[];
}

export interface CreateSuppressionResponse {
  suppression?: Suppression;
  /** Warnings, for example about ignored fields */
  warnings?: string[];
  /** An entry for each address, in the order of the request */
  data?: SuppressionResult[];
}

/** A template */
export interface CreateTemplateResponse {
  template: Template;
  /** Warnings about ignored fields */
  warnings?: string[];
}

/** An endpoint and its secret */
export interface CreateWebhookResponse {
  webhook: Webhook;
  /** Signing secret (`whsec_…`); it is not shown again */
  secret: string;
  /** Warnings, for example about ignored fields */
  warnings?: string[];
}

/** The suppression was deleted */
export interface DeleteSuppressionResponse {
  ok: boolean;
  /** Its id */
  id: string;
}

/**
 * How long deliveries took, from the queue to the recipient's mail host. Times are exact to about 20 %, and
 * those below 0.1 seconds count as 0.05
 */
export interface DeliveryTime {
  /** Measured deliveries: all since the release that introduced the measurement */
  measured: number;
  /** Half of the measured deliveries took at most about this many seconds; null without any */
  p50_seconds: number | null;
  /** 99 of 100 measured deliveries took at most about this many seconds; null without any */
  p99_seconds: number | null;
}

/** The change of one record */
export interface DnsChange {
  /** The action */
  action: DnsChangeAction;
  /** The result */
  outcome: DnsChangeOutcome;
  record: DomainRecord;
  /** The value that is replaced */
  replaces: string | null;
  /** The reason; for a conflict, how to resolve it */
  reason: string | null;
}

/** A sending domain */
export interface Domain {
  /** `dom_…` */
  id: string;
  /** The name */
  name: string;
  /** Whether email can be sent from the domain */
  status: DomainStatus;
  /** Whether mail to the domain is received */
  inbound_enabled: boolean;
  /** Addresses that receive mail; empty means all (catch-all) */
  inbound_addresses: string[];
  /** Whether opens are tracked by a pixel in the HTML */
  open_tracking: boolean;
  /** Whether links in the HTML are rewritten to track clicks */
  click_tracking: boolean;
  /** `opportunistic`: TLS if the remote host offers it; `enforced`: never without TLS */
  tls_mode: TlsMode;
  /** Your own host for tracking links; null uses the service's host */
  tracking_host: string | null;
  /** The DKIM keys of the domain */
  dkim: DomainDkim;
  /** Whether the service can sign for the domain */
  dkim_ready: boolean;
  /** The records to publish, the required ones first */
  records: DomainRecord[];
  /** Since when a required record is missing; after 72 hours the domain becomes unverified */
  degraded_since: string | null;
  /** When the domain was first verified */
  verified_at: string | null;
  /** When the DNS was last checked */
  last_checked_at: string | null;
  /** When the domain was added */
  created_at: string;
  /** When it was last changed */
  updated_at: string;
}

/** A claim to a domain of another account */
export interface DomainClaim {
  /** `clm_…` */
  id: string;
  /** The domain */
  name: string;
  /** The status */
  status: DomainClaimStatus;
  record: DomainRecord;
  /** The condition that the claim waits for */
  blocked_reason: DomainClaimBlockedReason | null;
  /** End of the other account's grace period */
  grace_ends_at: string | null;
  /** When it was created */
  created_at: string;
  /** When the claim expires */
  expires_at: string;
}

/** A page of the list */
export interface DomainClaimList {
  /** The entries, newest first */
  claims: DomainClaim[];
  /** Whether there are more */
  has_more: boolean;
  /** The `cursor` of the next page */
  next_cursor: string | null;
}

/** `data` of `domain.degraded`. */
export interface DomainDegradedData {
  /** The event's id (`evt_…`), the same in every delivery: use it to recognise repetitions */
  event_id?: string;
  /** The domain (`dom_…`) */
  domain_id?: string;
  /** The domain's name */
  domain?: string;
  /** Whether email can be sent from the domain */
  status?: string;
  /** When the domain was first verified */
  verified_at?: string;
  /** Since when a required record is missing; after 72 hours the domain becomes unverified */
  degraded_since?: string;
}

/** The DKIM keys of the domain */
export interface DomainDkim {
  /** Selector of the RSA key; the Ed25519 key's selector appends an `e` */
  selector: string;
  /** Size of the RSA key in bits */
  key_bits: number;
  /** Selector of new keys; they sign as soon as their record is found */
  pending_selector: string | null;
  /** Selector of the previous keys; keep their record until `former_until` */
  former_selector: string | null;
  /** When the previous keys' record can be removed */
  former_until: string | null;
}

/** A summary of DMARC reports */
export interface DomainDmarc {
  /** The domain */
  domain: string;
  /** The policy */
  policy: DomainDmarcPolicy | null;
  /** Totals of all sources */
  totals: DomainDmarcTotals;
  /** Sources, most messages first */
  sources: DomainDmarcSource[];
  /** Reporting organizations, most messages first */
  reporters: DomainDmarcReporter[];
  /** All days of the range */
  days: DomainDmarcDay[];
}

/** A UTC day */
export interface DomainDmarcDay {
  /** Date */
  date: string;
  /** Recipients of email that this service accepted */
  sent: number | null;
  /** Messages in reports */
  reported: number;
  /** Messages that passed */
  passed: number;
  /** Messages that failed */
  failed: number;
}

/** The published policy, according to the latest report */
export interface DomainDmarcPolicy {
  /** The policy for mail that fails */
  p: DmarcPolicy;
  /** The policy for subdomains, if it differs */
  sp: DmarcPolicy | null;
  /** DKIM alignment mode */
  adkim: DmarcAlignment;
  /** SPF alignment mode */
  aspf: DmarcAlignment;
}

/** A reporting organization */
export interface DomainDmarcReporter {
  /** The domain that sent the reports */
  domain: string;
  /** The organization's name in its reports */
  name: string;
  /** Number of reports */
  reports: number;
  /** Messages in these reports */
  messages: number;
  /** When the last report was received */
  last_report_at: string;
}

/** Messages from one source address */
export interface DomainDmarcSource {
  /** The source address; null for the sum of all others */
  ip: string | null;
  /** The forward-confirmed host name; null if it was not found in time */
  host: string | null;
  /** Whether this service sends from the address */
  ours: boolean;
  /** Messages */
  messages: number;
  /** Messages that passed DMARC, by aligned DKIM or SPF */
  passed: number;
  /** Messages that failed */
  failed: number;
  /** Messages with aligned DKIM */
  dkim_aligned: number;
  /** Messages with aligned SPF */
  spf_aligned: number;
  /** Messages quarantined by the policy */
  quarantined: number;
  /** Messages rejected by the policy */
  rejected: number;
}

/** Totals of all sources */
export interface DomainDmarcTotals {
  /** Messages */
  messages: number;
  /** Messages that passed DMARC, by aligned DKIM or SPF */
  passed: number;
  /** Messages that failed */
  failed: number;
  /** Messages with aligned DKIM */
  dkim_aligned: number;
  /** Messages with aligned SPF */
  spf_aligned: number;
  /** Messages quarantined by the policy */
  quarantined: number;
  /** Messages rejected by the policy */
  rejected: number;
}

/** A page of the list */
export interface DomainList {
  /** The entries, newest first */
  domains: Domain[];
  /** Whether there are more */
  has_more: boolean;
  /** The `cursor` of the next page */
  next_cursor: string | null;
}

/** A DNS record with the result of its last check */
export interface DomainRecord {
  /** The purpose of the record */
  purpose: DomainRecordPurpose;
  /** The record type */
  type: DomainRecordType;
  /** The fully qualified name */
  name: string;
  /** The value to publish; for SPF, merged with the existing record */
  value: string;
  /** The TTL in seconds */
  ttl: number;
  /** The preference of an MX record */
  priority: number | null;
  /** Whether the record is required for verification */
  required: boolean;
  /** The result */
  status: DomainRecordStatus;
  /** Values found in the DNS */
  found: string[];
  /** The problem and how to fix it */
  error: string | null;
  /** When the record was last checked */
  checked_at: string | null;
}

/** `data` of `domain.verified`. */
export interface DomainVerifiedData {
  /** The event's id (`evt_…`), the same in every delivery: use it to recognise repetitions */
  event_id?: string;
  /** The domain (`dom_…`) */
  domain_id?: string;
  /** The domain's name */
  domain?: string;
  /** Whether email can be sent from the domain */
  status?: string;
  /** When the domain was first verified */
  verified_at?: string;
  degraded_since?: string | null;
}

/** The operation succeeded */
export interface Done {
  ok: boolean;
}

/** A response with a run */
export interface DryRunAutomationResponse {
  run: AutomationRun;
  /** Warnings, for example about ignored fields */
  warnings?: string[];
}

/** A response with the result that an import would have */
export interface DryRunSuppressionImportResponse {
  dry_run: SuppressionImportForecast;
  /** Warnings, for example about ignored fields */
  warnings?: string[];
}

/** A response with an automation */
export interface DuplicateAutomationResponse {
  automation: Automation;
  /** Warnings, for example about ignored fields */
  warnings?: string[];
}

/** A template */
export interface DuplicateTemplateResponse {
  template: Template;
  /** Warnings about ignored fields */
  warnings?: string[];
}

/** An email */
export interface Email {
  /** Its id (`msg_…`) */
  id: string;
  /** The author */
  from: string;
  /** Recipients */
  to: string[];
  /** Recipients of a copy */
  cc: string[];
  /** Recipients of a blind copy */
  bcc: string[];
  /** Addresses for replies */
  reply_to: string[];
  /** The subject */
  subject: string;
  /** The status */
  status: EmailStatus;
  /** The latest event, like `email.delivered` */
  last_event: string;
  /** The response of the first server that rejected the email */
  bounce_reason: string | null;
  /** The tags */
  tags: EmailTag[];
  /** True if only the recipient may read the content, like that of a sign-in link: it cannot be resent */
  confidential: boolean;
  /** When the email is scheduled to be sent */
  scheduled_at: string | null;
  /** When it was cancelled */
  cancelled_at: string | null;
  /** When it was accepted */
  created_at: string;
  /** When it entered the queue */
  sent_at: string | null;
  /** When it was delivered to the first recipient */
  delivered_at: string | null;
  /** When the first recipient bounced */
  bounced_at: string | null;
}

/** The refusal */
export interface EmailBounce {
  /** `hard`: the host refused permanently; `soft`: it kept refusing until the email expired */
  type?: string;
  /**
   * `unknown_user`, `mailbox_full`, `inactive`, `domain_not_found`, `message_too_large` or `undetermined`;
   * also `content_rejected`, `policy` or `reputation` if a report came after the delivery
   */
  category?: string;
  /** The reply's SMTP code */
  smtp_code?: number;
  /** The reply's enhanced status code (RFC 3463), for example `5.1.1` */
  enhanced_code?: string;
  /** The reply with its kind (RFC 3464 2.3.6), for example `smtp; 550 5.1.1 …` */
  diagnostic?: string;
  /** The mail host that refused */
  mx_host?: string;
  /** Whether the host first accepted the email and reported the failure later */
  async?: boolean;
}

/** `data` of `email.bounced`. */
export interface EmailBouncedData {
  /** The event's id (`evt_…`), the same in every delivery: use it to recognise repetitions */
  event_id?: string;
  /** The email (`msg_…`) */
  email_id?: string;
  /** The Message-ID (RFC 5322) with its angle brackets */
  message_id?: string;
  /** The author, as it was sent */
  from?: string;
  /** The recipients */
  to?: string[];
  cc?: string[];
  /** The recipient that the event is about */
  rcpt_to?: string;
  /** The subject */
  subject?: string;
  /** The tags that the send request gave */
  tags?: EmailTag[];
  /** The category: `transactional`, `product` or `newsletter` */
  category?: string;
  template_id?: string | null;
  /** The sending domain */
  domain?: string;
  /** When the email entered the queue; null in `email.scheduled`, `email.cancelled` and `email.suppressed` */
  sent_at?: string;
  /** The status that belongs to the event; `delivered` for opens, clicks and complaints */
  status?: string;
  /** The reply of the mail host that refused the email */
  bounce_reason?: string;
  /** The refusal */
  bounce?: EmailBounce;
  suppression_id?: string | null;
  suppressed_until?: string | null;
}

/** `data` of `email.cancelled`. */
export interface EmailCancelledData {
  /** The event's id (`evt_…`), the same in every delivery: use it to recognise repetitions */
  event_id?: string;
  /** The email (`msg_…`) */
  email_id?: string;
  /** The Message-ID (RFC 5322) with its angle brackets */
  message_id?: string;
  /** The author, as it was sent */
  from?: string;
  /** The recipients */
  to?: string[];
  cc?: string[];
  /** When the email entered the queue; null in `email.scheduled`, `email.cancelled` and `email.suppressed` */
  sent_at?: string;
  /** The subject */
  subject?: string;
  /** The tags that the send request gave */
  tags?: EmailTag[];
  /** The category: `transactional`, `product` or `newsletter` */
  category?: string;
  template_id?: string | null;
  /** The sending domain */
  domain?: string;
  /** The status that belongs to the event; `delivered` for opens, clicks and complaints */
  status?: string;
  /** Who cancelled it: `customer` or `operator` */
  by?: string;
  /** How many recipients the event is about */
  recipients_count?: number;
}

/** The visit of the link */
export interface EmailClick {
  /** The link's target */
  url?: string;
  /** The IP address of the visitor */
  ip?: string;
  /** The visitor's `User-Agent` */
  user_agent?: string;
  /** Whether a program followed it, for example a scanner: it does not count as a click */
  machine?: boolean;
  /** Whether it is the recipient's first click */
  first?: boolean;
}

/** `data` of `email.clicked`. */
export interface EmailClickedData {
  /** The event's id (`evt_…`), the same in every delivery: use it to recognise repetitions */
  event_id?: string;
  /** The email (`msg_…`) */
  email_id?: string;
  /** The Message-ID (RFC 5322) with its angle brackets */
  message_id?: string;
  /** The author, as it was sent */
  from?: string;
  /** The recipients */
  to?: string[];
  cc?: string[];
  /** The recipient that the event is about */
  rcpt_to?: string;
  /** The subject */
  subject?: string;
  /** The tags that the send request gave */
  tags?: EmailTag[];
  /** The category: `transactional`, `product` or `newsletter` */
  category?: string;
  template_id?: string | null;
  /** The sending domain */
  domain?: string;
  /** When the email entered the queue; null in `email.scheduled`, `email.cancelled` and `email.suppressed` */
  sent_at?: string;
  /** The status that belongs to the event; `delivered` for opens, clicks and complaints */
  status?: string;
  /** The visit of the link */
  click?: EmailClick;
}

/** `data` of `email.complained`. */
export interface EmailComplainedData {
  /** The event's id (`evt_…`), the same in every delivery: use it to recognise repetitions */
  event_id?: string;
  /** The email (`msg_…`) */
  email_id?: string;
  /** The Message-ID (RFC 5322) with its angle brackets */
  message_id?: string;
  /** The author, as it was sent */
  from?: string;
  /** The recipients */
  to?: string[];
  cc?: string[];
  /** The recipient that the event is about */
  rcpt_to?: string;
  /** The subject */
  subject?: string;
  /** The tags that the send request gave */
  tags?: EmailTag[];
  /** The category: `transactional`, `product` or `newsletter` */
  category?: string;
  template_id?: string | null;
  /** The sending domain */
  domain?: string;
  /** When the email entered the queue; null in `email.scheduled`, `email.cancelled` and `email.suppressed` */
  sent_at?: string;
  /** The status that belongs to the event; `delivered` for opens, clicks and complaints */
  status?: string;
  /** The recipient's report of spam */
  complaint?: EmailComplaint;
  suppression_id?: string | null;
}

/** The recipient's report of spam */
export interface EmailComplaint {
  /** The kind of report (RFC 5965), for example `abuse` */
  feedback_type?: string;
  /** `fbl`: the feedback loop of a mailbox provider */
  source?: string;
  /** The program that wrote the report */
  user_agent?: string;
  /** When the reported email arrived, if the report says so */
  arrived_at?: string;
}

/** The attempt that failed for now */
export interface EmailDelay {
  /** The reply's SMTP code; null if there was no reply */
  smtp_code?: number;
  /** The reply's enhanced status code (RFC 3463), for example `4.7.1` */
  enhanced_code?: string;
  /** The reply, or the error of the attempt */
  diagnostic?: string;
  /** The number of the attempt, from 1; null if another host reported the delay */
  attempt?: number;
  /** When it will be retried; null if another host retries it */
  next_attempt_at?: string;
  /** When delivery is given up; null if another host retries it */
  expires_at?: string;
  /**
   * Whether the connection was lost before the reply to the content, so that the recipient may get the email
   * twice
   */
  unconfirmed?: boolean;
}

/** `data` of `email.delivered`. */
export interface EmailDeliveredData {
  /** The event's id (`evt_…`), the same in every delivery: use it to recognise repetitions */
  event_id?: string;
  /** The email (`msg_…`) */
  email_id?: string;
  /** The Message-ID (RFC 5322) with its angle brackets */
  message_id?: string;
  /** The author, as it was sent */
  from?: string;
  /** The recipients */
  to?: string[];
  cc?: string[];
  /** The recipient that the event is about */
  rcpt_to?: string;
  /** The subject */
  subject?: string;
  /** The tags that the send request gave */
  tags?: EmailTag[];
  /** The category: `transactional`, `product` or `newsletter` */
  category?: string;
  template_id?: string | null;
  /** The sending domain */
  domain?: string;
  /** When the email entered the queue; null in `email.scheduled`, `email.cancelled` and `email.suppressed` */
  sent_at?: string;
  /** The status that belongs to the event; `delivered` for opens, clicks and complaints */
  status?: string;
  /** When the mail host accepted the email */
  delivered_at?: string;
  /** The successful attempt */
  delivery?: EmailDelivery;
}

/** The successful attempt */
export interface EmailDelivery {
  /** The mail host that accepted it */
  mx_host?: string;
  /** The mail host's last reply */
  smtp_response?: string;
  /** The TLS version, for example `TLSv1.3`; null if the connection was not encrypted */
  tls?: string;
  /** How many attempts were made, with this one */
  attempts?: number;
  /** Time of the attempt in milliseconds */
  duration_ms?: number;
}

/** `data` of `email.delivery_delayed`. */
export interface EmailDeliveryDelayedData {
  /** The event's id (`evt_…`), the same in every delivery: use it to recognise repetitions */
  event_id?: string;
  /** The email (`msg_…`) */
  email_id?: string;
  /** The Message-ID (RFC 5322) with its angle brackets */
  message_id?: string;
  /** The author, as it was sent */
  from?: string;
  /** The recipients */
  to?: string[];
  cc?: string[];
  /** The recipient that the event is about */
  rcpt_to?: string;
  /** The subject */
  subject?: string;
  /** The tags that the send request gave */
  tags?: EmailTag[];
  /** The category: `transactional`, `product` or `newsletter` */
  category?: string;
  template_id?: string | null;
  /** The sending domain */
  domain?: string;
  /** When the email entered the queue; null in `email.scheduled`, `email.cancelled` and `email.suppressed` */
  sent_at?: string;
  /** The status that belongs to the event; `delivered` for opens, clicks and complaints */
  status?: string;
  /** The attempt that failed for now */
  delay?: EmailDelay;
}

/** An email with its recipients */
export interface EmailDetail {
  /** Its id (`msg_…`) */
  id: string;
  /** The author */
  from: string;
  /** Recipients */
  to: string[];
  /** Recipients of a copy */
  cc: string[];
  /** Recipients of a blind copy */
  bcc: string[];
  /** Addresses for replies */
  reply_to: string[];
  /** The subject */
  subject: string;
  /** The status */
  status: EmailStatus;
  /** The latest event, like `email.delivered` */
  last_event: string;
  /** The response of the first server that rejected the email */
  bounce_reason: string | null;
  /** The tags */
  tags: EmailTag[];
  /** True if only the recipient may read the content, like that of a sign-in link: it cannot be resent */
  confidential: boolean;
  /** When the email is scheduled to be sent */
  scheduled_at: string | null;
  /** When it was cancelled */
  cancelled_at: string | null;
  /** When it was accepted */
  created_at: string;
  /** When it entered the queue */
  sent_at: string | null;
  /** When it was delivered to the first recipient */
  delivered_at: string | null;
  /** When the first recipient bounced */
  bounced_at: string | null;
  /** The Message-ID (RFC 5322) with its angle brackets */
  message_id: string;
  /** The HTML body; null when the message is no longer stored */
  html: string | null;
  /** The plain-text body; null when the message is no longer stored */
  text: string | null;
  /** Custom headers */
  headers: Record<string, string>;
  /** The category */
  category: EmailCategory;
  /** The attachments without their content */
  attachments: EmailDetailAttachment[];
  /** The template that was used */
  template: EmailDetailTemplate | null;
  /** The email that this one was resent from */
  resent_from: string | null;
  /** Lifetime in seconds */
  expires_in: number | null;
  /** Whether managed unsubscribe is on */
  unsubscribe: boolean;
  /** Size of the message in bytes */
  size: number;
  /** Recipients with their status */
  recipients: Recipient[];
  /** Number of recipients by status; `suppressed` and `cancelled` are omitted if zero */
  counts: EmailDetailCounts;
}

/** A file */
export interface EmailDetailAttachment {
  /** Id (`att_…`) for `GET /emails/{id}/attachments/{att_id}` */
  id: string;
  /** The name */
  name: string | null;
  /** The MIME type */
  content_type: string;
  /** Decoded size in bytes */
  size: number;
  /** The Content-ID that `cid:` in the HTML refers to */
  content_id: string | null;
}

/** Number of recipients by status; `suppressed` and `cancelled` are omitted if zero */
export interface EmailDetailCounts {
  /** In the queue */
  queued: number;
  /** Delivered */
  delivered: number;
  /** Bounced */
  bounced: number;
  /** Failed */
  failed: number;
  /** Not sent because suppressed or opted out */
  suppressed?: number;
  /** Cancelled */
  cancelled?: number;
}

/** A template */
export interface EmailDetailTemplate {
  /** The template's id (`tpl_…`) */
  id: string;
  /** The template's alias at that time */
  alias: string | null;
  /** The version */
  version: number;
}

/** An event of an email */
export interface EmailEvent {
  /** The event's id (`evt_…`) */
  id: string;
  /** The event name, like `email.delivered` */
  type: string;
  /** The recipient; null if the event concerns all */
  recipient: string | null;
  /** When it happened */
  created_at: string;
  /** Details of the event */
  detail: Record<string, unknown>;
}

/** A page of the list */
export interface EmailEventList {
  /** The entries, newest first */
  events: EmailEvent[];
  /** Whether there are more */
  has_more: boolean;
  /** The `cursor` of the next page */
  next_cursor: string | null;
}

/** `data` of `email.failed`. */
export interface EmailFailedData {
  /** The event's id (`evt_…`), the same in every delivery: use it to recognise repetitions */
  event_id?: string;
  /** The email (`msg_…`) */
  email_id?: string;
  /** The Message-ID (RFC 5322) with its angle brackets */
  message_id?: string;
  /** The author, as it was sent */
  from?: string;
  /** The recipients */
  to?: string[];
  cc?: string[];
  /** The recipient that the event is about */
  rcpt_to?: string;
  /** The subject */
  subject?: string;
  /** The tags that the send request gave */
  tags?: EmailTag[];
  /** The category: `transactional`, `product` or `newsletter` */
  category?: string;
  template_id?: string | null;
  /** The sending domain */
  domain?: string;
  /** When the email entered the queue; null in `email.scheduled`, `email.cancelled` and `email.suppressed` */
  sent_at?: string;
  /** The status that belongs to the event; `delivered` for opens, clicks and complaints */
  status?: string;
  /** Why delivery was given up */
  failure?: EmailFailure;
  suppression_id?: string | null;
  suppressed_until?: string | null;
}

/** Why delivery was given up */
export interface EmailFailure {
  /**
   * `expired`, `tls_required`, `dns_error`, `rejected`, `render_error`, `unconfirmed`, or a refusal of the
   * sender: `content_rejected`, `policy`, `reputation`
   */
  reason?: string;
  /** The last reply or error */
  message?: string;
  /** The last reply's SMTP code; null if there was no reply */
  smtp_code?: number;
}

/** A header field */
export interface EmailHeader {
  /** Name */
  name: string;
  /** Value, unfolded */
  value: string;
}

/** A page of the list */
export interface EmailList {
  /** The entries, newest first */
  emails: Email[];
  /** Whether there are more */
  has_more: boolean;
  /** The `cursor` of the next page */
  next_cursor: string | null;
  /**
   * Present if a page has fewer entries than requested although there are more: emails accepted before this
   * time have not been searched yet
   */
  searched_until?: string;
  /** Present while the search index lags: later events may not be found yet */
  as_of?: string;
}

/** Email metrics, counted per recipient; contains the requested counters */
export interface EmailMetrics {
  /** Totals of the range */
  totals: EmailMetricsTotals;
  /**
   * The periods, oldest first: without dimensions all periods, with dimensions those in which a value was
   * counted
   */
  rows: EmailMetricsRow[];
}

/** One period, or one value of a dimension in a period */
export interface EmailMetricsRow {
  /** Start of the hour or day */
  period_start: string;
  /** The dimension of the row, if dimensions were requested */
  dimension?: EmailMetricsDimension;
  /** The value of the dimension */
  value?: string;
  /** Recipients of accepted email; scheduled email counts when it is sent */
  sent?: number;
  /** Recipients whose server accepted the email */
  delivered?: number;
  /** Recipients whose server rejected the email */
  bounced?: number;
  /** Recipients that failed for another reason */
  failed?: number;
  /** Recipients deferred at the first attempt */
  delayed?: number;
  /** Recipients who reported spam */
  complained?: number;
  /** Recipients who opened the email, each counted once, without machines */
  opened?: number;
  /** Recipients who clicked a link, each counted once, without machines */
  clicked?: number;
  /** Recipients that were suppressed or had opted out */
  suppressed?: number;
  /** Unsubscribes through the email's link */
  unsubscribed?: number;
  /** How long deliveries took */
  delivery_time?: DeliveryTime;
}

/** Totals of the range */
export interface EmailMetricsTotals {
  /** Recipients of accepted email; scheduled email counts when it is sent */
  sent?: number;
  /** Recipients whose server accepted the email */
  delivered?: number;
  /** Recipients whose server rejected the email */
  bounced?: number;
  /** Recipients that failed for another reason */
  failed?: number;
  /** Recipients deferred at the first attempt */
  delayed?: number;
  /** Recipients who reported spam */
  complained?: number;
  /** Recipients who opened the email, each counted once, without machines */
  opened?: number;
  /** Recipients who clicked a link, each counted once, without machines */
  clicked?: number;
  /** Recipients that were suppressed or had opted out */
  suppressed?: number;
  /** Unsubscribes through the email's link */
  unsubscribed?: number;
  /** How long deliveries took */
  delivery_time?: DeliveryTime;
  /** `delivered` divided by `sent`, rounded to four digits */
  delivery_rate?: number;
  /** `bounced` divided by `sent`, rounded to four digits */
  bounce_rate?: number;
  /** `complained` divided by `delivered`, rounded to four digits */
  complaint_rate?: number;
  /** `opened` divided by `delivered`, rounded to four digits */
  open_rate?: number;
  /** `clicked` divided by `delivered`, rounded to four digits */
  click_rate?: number;
  /** `unsubscribed` divided by `delivered`, rounded to four digits */
  unsubscribe_rate?: number;
}

/** The fetch of the tracking image */
export interface EmailOpen {
  /** The IP address that fetched it */
  ip?: string;
  /** The `User-Agent` of the fetch */
  user_agent?: string;
  /** Whether a program fetched it, for example a scanner: it does not count as an open */
  machine?: boolean;
  proxy?: string | null;
  /** Whether it is the recipient's first open */
  first?: boolean;
}

/** `data` of `email.opened`. */
export interface EmailOpenedData {
  /** The event's id (`evt_…`), the same in every delivery: use it to recognise repetitions */
  event_id?: string;
  /** The email (`msg_…`) */
  email_id?: string;
  /** The Message-ID (RFC 5322) with its angle brackets */
  message_id?: string;
  /** The author, as it was sent */
  from?: string;
  /** The recipients */
  to?: string[];
  cc?: string[];
  /** The recipient that the event is about */
  rcpt_to?: string;
  /** The subject */
  subject?: string;
  /** The tags that the send request gave */
  tags?: EmailTag[];
  /** The category: `transactional`, `product` or `newsletter` */
  category?: string;
  template_id?: string | null;
  /** The sending domain */
  domain?: string;
  /** When the email entered the queue; null in `email.scheduled`, `email.cancelled` and `email.suppressed` */
  sent_at?: string;
  /** The status that belongs to the event; `delivered` for opens, clicks and complaints */
  status?: string;
  /** The fetch of the tracking image */
  open?: EmailOpen;
}

/** `data` of `email.received`. */
export interface EmailReceivedData {
  /** The event's id (`evt_…`), the same in every delivery: use it to recognise repetitions */
  event_id?: string;
  /** The received email (`inb_…`) */
  email_id?: string;
  /** The addresses of the `To` header field */
  to?: string[];
  /** The author, as in the `From` header field */
  from?: string;
  /** The subject */
  subject?: string;
  /** Always `received` */
  status?: string;
  /** The envelope recipient at your domain */
  rcpt_to?: string;
  cc?: string[];
  /** The Message-ID (RFC 5322) with its angle brackets; empty if it has none */
  message_id?: string;
  /** Message-ID of the email that this one replies to */
  in_reply_to?: string;
  /** Message-IDs of the thread, oldest first */
  references?: string[];
  /** Spam status */
  spam_status?: string;
  /** Number of attachments; those beyond 2,000 parts are not counted */
  attachment_count?: number;
  /** The first attachments */
  attachments?: ReceivedEmailAttachment[];
  /** Time of receipt */
  received_at?: string;
  /** The receiving domain */
  domain?: string;
  /** Envelope sender; null for the null reverse path of bounces */
  envelope_from?: string;
  /** Authentication results */
  auth?: EmailReceivedDataAuth;
}

/** Authentication results */
export interface EmailReceivedDataAuth {
  /** SPF result of the envelope sender */
  spf?: string;
  /** DKIM result */
  dkim?: string;
  /** DMARC result of the author's domain */
  dmarc?: string;
}

/** `data` of `email.scheduled`. */
export interface EmailScheduledData {
  /** The event's id (`evt_…`), the same in every delivery: use it to recognise repetitions */
  event_id?: string;
  /** The email (`msg_…`) */
  email_id?: string;
  /** The Message-ID (RFC 5322) with its angle brackets */
  message_id?: string;
  /** The author, as it was sent */
  from?: string;
  /** The recipients */
  to?: string[];
  cc?: string[];
  /** When the email entered the queue; null in `email.scheduled`, `email.cancelled` and `email.suppressed` */
  sent_at?: string;
  /** The subject */
  subject?: string;
  /** The tags that the send request gave */
  tags?: EmailTag[];
  /** The category: `transactional`, `product` or `newsletter` */
  category?: string;
  template_id?: string | null;
  /** The sending domain */
  domain?: string;
  /** The status that belongs to the event; `delivered` for opens, clicks and complaints */
  status?: string;
  /** When the email is to be sent */
  scheduled_at?: string;
}

/** `data` of `email.sent`. */
export interface EmailSentData {
  /** The event's id (`evt_…`), the same in every delivery: use it to recognise repetitions */
  event_id?: string;
  /** The email (`msg_…`) */
  email_id?: string;
  /** The Message-ID (RFC 5322) with its angle brackets */
  message_id?: string;
  /** The author, as it was sent */
  from?: string;
  /** The recipients */
  to?: string[];
  cc?: string[];
  /** When the email entered the queue; null in `email.scheduled`, `email.cancelled` and `email.suppressed` */
  sent_at?: string;
  /** The subject */
  subject?: string;
  /** The tags that the send request gave */
  tags?: EmailTag[];
  /** The category: `transactional`, `product` or `newsletter` */
  category?: string;
  template_id?: string | null;
  /** The sending domain */
  domain?: string;
  /** The status that belongs to the event; `delivered` for opens, clicks and complaints */
  status?: string;
  /** How many recipients the event is about */
  recipients_count?: number;
}

/** `data` of `email.suppressed`. */
export interface EmailSuppressedData {
  /** The event's id (`evt_…`), the same in every delivery: use it to recognise repetitions */
  event_id?: string;
  /** The email (`msg_…`) */
  email_id?: string;
  /** The Message-ID (RFC 5322) with its angle brackets */
  message_id?: string;
  /** The author, as it was sent */
  from?: string;
  /** The recipients */
  to?: string[];
  cc?: string[];
  /** When the email entered the queue; null in `email.scheduled`, `email.cancelled` and `email.suppressed` */
  sent_at?: string;
  /** The subject */
  subject?: string;
  /** The tags that the send request gave */
  tags?: EmailTag[];
  /** The category: `transactional`, `product` or `newsletter` */
  category?: string;
  template_id?: string | null;
  /** The sending domain */
  domain?: string;
  /** The status that belongs to the event; `delivered` for opens, clicks and complaints */
  status?: string;
  /** The recipients to whom the email was not sent */
  suppressed?: EmailSuppression[];
}

export interface EmailSuppression {
  /** The address */
  email?: string;
  /** The suppression's reason, for example `hard_bounce`; `unsubscribe` for an opt-out */
  reason?: string;
  suppression_id?: string | null;
  category?: string | null;
  category_opt_out_id?: string | null;
}

/** A tag */
export interface EmailTag {
  /** The name, without a colon */
  name: string;
  /** The value */
  value: string;
}

/** Counts */
export interface EventCounts {
  /** Totals of the range by name */
  totals: EventCountsTotal[];
  /** Counts by name, for periods with events, oldest first */
  counts: EventCountsCount[];
}

/** The counts of one period */
export interface EventCountsCount {
  /** The event name */
  name: string;
  /** Start of the hour or day */
  period_start: string;
  /** Counted events (or visits) */
  count: number;
  /** `user.created` events of invited teammates, which are seats and not sign-ups */
  seats: number;
  /** Events of your own team, which are excluded */
  excluded: number;
  /** Sign-ups, each user counted once */
  sign_ups: number;
  /** Subscriptions, each counted once */
  subscriptions: number;
  /** First-time visitors */
  visitors: number;
}

/** The totals of one event name */
export interface EventCountsTotal {
  /** The event name */
  name: string;
  /** Counted events (or visits) */
  count: number;
  /** `user.created` events of invited teammates, which are seats and not sign-ups */
  seats: number;
  /** Events of your own team, which are excluded */
  excluded: number;
  /** Sign-ups, each user counted once */
  sign_ups: number;
  /** Subscriptions, each counted once */
  subscriptions: number;
  /** First-time visitors */
  visitors: number;
}

/** A funnel; your own team and invited teammates are excluded */
export interface Funnel {
  /** Start of the range in which the first step was done */
  from: string;
  /** End of the range (exclusive) */
  to: string;
  /** The steps */
  steps: FunnelStep[];
  /** The steps by group, if `group_by` was given; largest group first */
  groups: FunnelGroup[];
}

/** A group */
export interface FunnelGroup {
  /** The group's value; `(unknown)` if there is none */
  group: string;
  /** The steps */
  steps: FunnelStep[];
}

/** A set-up step */
export interface FunnelStep {
  /** The event name */
  name: string;
  /** People who did this step after all previous steps, in order */
  people: number;
  /** Share of the people who did the first step, in basis points */
  of_first_bp: number;
  /** Share of the people who did the previous step, in basis points */
  of_previous_bp: number;
}

/** API key */
export interface GetApiKeyResponse {
  api_key: ApiKey;
}

/** An approval */
export interface GetApprovalResponse {
  approval: Approval;
}

/** A response with an automation */
export interface GetAutomationResponse {
  automation: Automation;
}

/** A response with a run */
export interface GetAutomationRunResponse {
  run: AutomationRun;
}

/** A summary of DMARC reports */
export interface GetDomainDmarcResponse {
  dmarc: DomainDmarc;
}

/** Metrics */
export interface GetEmailMetricsResponse {
  metrics: EmailMetrics;
}

/** A response with an email */
export interface GetEmailResponse {
  email: EmailDetail;
}

/** A funnel */
export interface GetFunnelResponse {
  funnel: Funnel;
}

/** A grant */
export interface GetGrantResponse {
  grant: Grant;
}

/** A request */
export interface GetLogResponse {
  log: LoggedRequest;
}

/** SMTP credential */
export interface GetSmtpCredentialResponse {
  smtp_credential: SmtpCredential;
}

/** A template */
export interface GetTemplateResponse {
  template: Template;
  /** Warnings about ignored fields */
  warnings?: string[];
}

/** A version */
export interface GetTemplateVersionResponse {
  version: TemplateVersionDetail;
}

/** A user's grant to an app */
export interface Grant {
  /** `grant_…` */
  id: string;
  /** The client's id: `client_…`, or the URL of its metadata document */
  client_id: string;
  /** The name that the client gave itself; it is not verified */
  client_name: string;
  /** The user who gave the grant; it ends if the user is removed or gets a lower role */
  user_id: string;
  /** `read`, `send`, `manage` */
  scopes: string[];
  /** The rules for the client below its scopes; null without a rule */
  policy: ClientPolicy | null;
  /** `api`, `mcp`: the parts of the service that accept its tokens */
  resources: string[];
  /** When it was last used, to about a minute */
  last_used_at: string | null;
  /** The IP address of the last use */
  last_used_ip: string | null;
  /** When it ends, unless its client refreshes it */
  expires_at: string;
  /** When it was given */
  created_at: string;
}

/** An import of suppressions */
export interface ImportSuppressionsResponse {
  /** An import of suppressions */
  import: SuppressionImport;
  /** Warnings, for example about ignored fields */
  warnings?: string[];
}

/** A page of the list */
export interface ListAffiliateCampaignsResponse {
  /** The entries, newest first */
  data: AffiliateCampaign[];
  /** Whether there are more */
  has_more: boolean;
  /** The `cursor` of the next page */
  next_cursor: string | null;
}

/** A page of the list */
export interface ListAffiliateCommissionsResponse {
  /** The entries, newest first */
  data: AffiliateCommission[];
  /** Whether there are more */
  has_more: boolean;
  /** The `cursor` of the next page */
  next_cursor: string | null;
}

/** A page of the list */
export interface ListAffiliateLinksResponse {
  /** The entries, newest first */
  data: AffiliateLink[];
  /** Whether there are more */
  has_more: boolean;
  /** The `cursor` of the next page */
  next_cursor: string | null;
}

/** A page of the list */
export interface ListAffiliatePayoutsResponse {
  /** The entries, newest first */
  data: AffiliatePayout[];
  /** Whether there are more */
  has_more: boolean;
  /** The `cursor` of the next page */
  next_cursor: string | null;
}

/** A page of the list */
export interface ListAffiliateReferralsResponse {
  /** The entries, newest first */
  data: AffiliateReferral[];
  /** Whether there are more */
  has_more: boolean;
  /** The `cursor` of the next page */
  next_cursor: string | null;
}

/** A page of the list */
export interface ListAffiliatesResponse {
  /** The entries, newest first */
  data: Affiliate[];
  /** Whether there are more */
  has_more: boolean;
  /** The `cursor` of the next page */
  next_cursor: string | null;
}

/** A page of the list */
export interface ListApiKeysResponse {
  /** The entries, newest first */
  api_keys: ApiKey[];
  /** Whether there are more */
  has_more: boolean;
  /** The `cursor` of the next page */
  next_cursor: string | null;
}

/** A page of the list */
export interface ListApprovalsResponse {
  /** The entries, newest first */
  approvals: Approval[];
  /** Whether there are more */
  has_more: boolean;
  /** The `cursor` of the next page */
  next_cursor: string | null;
}

/** A page of the list */
export interface ListAuditLogResponse {
  /** The entries, newest first */
  entries: AuditEntry[];
  /** Whether there are more */
  has_more: boolean;
  /** The `cursor` of the next page */
  next_cursor: string | null;
}

/** A page of the list */
export interface ListAutomationRunsResponse {
  /** The entries, newest first */
  runs: AutomationRun[];
  /** Whether there are more */
  has_more: boolean;
  /** The `cursor` of the next page */
  next_cursor: string | null;
}

/** A page of the list */
export interface ListAutomationVersionsResponse {
  /** The entries, newest first */
  versions: AutomationVersion[];
  /** Whether there are more */
  has_more: boolean;
  /** The `cursor` of the next page */
  next_cursor: string | null;
}

/** A page of the list */
export interface ListAutomationsResponse {
  /** The entries, newest first */
  automations: Automation[];
  /** Whether there are more */
  has_more: boolean;
  /** The `cursor` of the next page */
  next_cursor: string | null;
}

/** A page of the list */
export interface ListGrantsResponse {
  /** The entries, newest first */
  grants: Grant[];
  /** Whether there are more */
  has_more: boolean;
  /** The `cursor` of the next page */
  next_cursor: string | null;
}

/** A page of the list */
export interface ListLogsResponse {
  /** The entries, newest first */
  logs: LoggedRequest[];
  /** Whether there are more */
  has_more: boolean;
  /** The `cursor` of the next page */
  next_cursor: string | null;
}

/** A page of the list */
export interface ListSmtpCredentialsResponse {
  /** The entries, newest first */
  smtp_credentials: SmtpCredential[];
  /** Whether there are more */
  has_more: boolean;
  /** The `cursor` of the next page */
  next_cursor: string | null;
}

/** A logged request; its query and body are not stored */
export interface LoggedRequest {
  /** `req_…`, the response's `x-request-id` */
  id: string;
  /** The method */
  method: string;
  /** The path; email addresses are redacted */
  path: string;
  /** The operation */
  operation: string;
  /** The response status */
  status: number;
  /** The error's code */
  error_code: string | null;
  /** Duration in milliseconds */
  duration_ms: number;
  /** The API key of the request */
  api_key_id: string | null;
  /** The user whose session made the request */
  user_id: string | null;
  /** The grant whose access token made the request */
  grant_id: string | null;
  /** When it was received */
  created_at: string;
}

/** A response with a single object */
export interface MarkAffiliatePayoutPaidResponse {
  payout: AffiliatePayout;
  /** Warnings, for example about ignored fields */
  warnings?: string[];
}

/** A response with a single object */
export interface OneAffiliate {
  affiliate: Affiliate;
}

/** A response with a single object */
export interface OneAffiliateCampaign {
  campaign: AffiliateCampaign;
}

/** A response with a single object */
export interface OneAffiliatePayout {
  payout: AffiliatePayout;
}

/** A response with a single object */
export interface OneAffiliateReferral {
  referral: AffiliateReferral;
}

/** A domain */
export interface OneDomain {
  domain: Domain;
}

/** A claim */
export interface OneDomainClaim {
  claim: DomainClaim;
}

/** An import of suppressions */
export interface OneImport {
  /** An import of suppressions */
  import: SuppressionImport;
}

/** A product event */
export interface OneProductEvent {
  event: ProductEvent;
}

/** A received email */
export interface OneReceivedEmail {
  received_email: ReceivedEmailDetail;
}

/** A suppression */
export interface OneSuppression {
  suppression: Suppression;
}

/** An endpoint */
export interface OneWebhook {
  webhook: Webhook;
}

/** A delivery */
export interface OneWebhookDelivery {
  delivery: WholeWebhookDelivery;
}

/** `data` of `payout.created`. */
export interface PayoutCreatedData {
  /** The event's id (`evt_…`), the same in every delivery: use it to recognise repetitions */
  event_id?: string;
  /** The payout (`pay_…`) */
  payout_id?: string;
  /** The affiliate program (`prog_…`) */
  program_id?: string;
  /** The partner (`aff_…`) */
  affiliate_id?: string;
}

/** `data` of `payout.failed`. */
export interface PayoutFailedData {
  /** The event's id (`evt_…`), the same in every delivery: use it to recognise repetitions */
  event_id?: string;
  /** The payout (`pay_…`) */
  payout_id?: string;
  /** The affiliate program (`prog_…`) */
  program_id?: string;
  /** The partner (`aff_…`) */
  affiliate_id?: string;
}

/** `data` of `payout.paid`. */
export interface PayoutPaidData {
  /** The event's id (`evt_…`), the same in every delivery: use it to recognise repetitions */
  event_id?: string;
  /** The payout (`pay_…`) */
  payout_id?: string;
  /** The affiliate program (`prog_…`) */
  program_id?: string;
  /** The partner (`aff_…`) */
  affiliate_id?: string;
}

/** A product event */
export interface ProductEvent {
  /** `ae_…` */
  id: string;
  /** The event name */
  name: string;
  /** The person's user id in your product */
  user_id: string | null;
  /** The person's email address */
  email: string | null;
  /** Event data; credentials are stored as `REDACTED` */
  data: Record<string, unknown>;
  /** The source, like `api` */
  source: string;
  /** When it was accepted */
  created_at: string;
}

/** A page of the list */
export interface ProductEventList {
  /** The entries, newest first */
  events: ProductEvent[];
  /** Whether there are more */
  has_more: boolean;
  /** The `cursor` of the next page */
  next_cursor: string | null;
}

/** The template and its new version */
export interface PublishTemplateResponse {
  template: Template;
  version: TemplateVersion;
  /** Warnings, for example about ignored fields */
  warnings?: string[];
}

/** A queued delivery */
export interface QueuedWebhookDelivery {
  delivery: WebhookDelivery;
}

/** A received email */
export interface ReceivedEmail {
  /** Id (`inb_…`) */
  email_id: string;
  /** Addresses of the `To` header field */
  to: string[];
  /** Author: `Ada <ada@example.com>` */
  from: string;
  /** Subject */
  subject: string;
  status: "received";
  /** Envelope recipient */
  rcpt_to: string;
  /** Addresses of the `Cc` header field */
  cc: string[];
  /** Message-ID with angle brackets; empty if missing */
  message_id: string;
  /** Message-ID of the email that this one replies to */
  in_reply_to: string | null;
  /** Message-IDs of the thread, oldest first */
  references: string[];
  /** Spam status */
  spam_status: SpamStatus;
  /** Number of attachments; those beyond 2,000 parts are not counted */
  attachment_count: number;
  /** Time of receipt */
  received_at: string;
  /** Receiving domain */
  domain: string;
  /** Envelope sender; null for the null reverse path of bounces */
  envelope_from: string | null;
  /** The first attachments */
  attachments: ReceivedEmailAttachment[];
  /** Authentication results */
  auth: ReceivedEmailAuth;
}

/** An attachment */
export interface ReceivedEmailAttachment {
  /** File name; generated if the sender gave none */
  filename: string;
  /** MIME type */
  content_type: string;
  /** Decoded size in bytes */
  size: number;
}

/** Authentication results */
export interface ReceivedEmailAuth {
  /** SPF result of the envelope sender */
  spf: AuthenticationResult;
  /** DKIM result */
  dkim: AuthenticationResult;
  /** DMARC result of the author's domain */
  dmarc: AuthenticationResult;
}

/** A received email with texts, header fields and attachments */
export interface ReceivedEmailDetail {
  /** Id (`inb_…`) */
  email_id: string;
  /** Addresses of the `To` header field */
  to: string[];
  /** Author: `Ada <ada@example.com>` */
  from: string;
  /** Subject */
  subject: string;
  status: "received";
  /** Envelope recipient */
  rcpt_to: string;
  /** Addresses of the `Cc` header field */
  cc: string[];
  /** Message-ID with angle brackets; empty if missing */
  message_id: string;
  /** Message-ID of the email that this one replies to */
  in_reply_to: string | null;
  /** Message-IDs of the thread, oldest first */
  references: string[];
  /** Spam status */
  spam_status: SpamStatus;
  /** Number of attachments; those beyond 2,000 parts are not counted */
  attachment_count: number;
  /** Time of receipt */
  received_at: string;
  /** Receiving domain */
  domain: string;
  /** Envelope sender; null for the null reverse path of bounces */
  envelope_from: string | null;
  /** Plain text */
  text: string | null;
  /** HTML, unchanged: sanitize it before you display it */
  html: string | null;
  /** Plain text without quoted replies */
  stripped_text: string | null;
  /** Header fields in order */
  headers: EmailHeader[];
  /** Authentication results */
  auth: ReceivedEmailDetailAuth;
  /** Spam score */
  spam_score: number | null;
  /** Size of the message in bytes */
  size: number;
  /** Attachments */
  attachments: ReceivedEmailDetailAttachment[];
}

/** An attachment */
export interface ReceivedEmailDetailAttachment {
  /** `att_` and its index, from 0 */
  id: string;
  /** File name; generated if the sender gave none */
  filename: string;
  /** MIME type */
  content_type: string;
  /** Decoded size in bytes */
  size: number;
  /** Declared character set; the bytes are unchanged */
  charset: string | null;
  /** Content-ID, by which HTML refers to it */
  content_id: string | null;
  /** Content-Disposition */
  disposition: Disposition;
  /** Bytes in base64; null with `attachments=none` */
  data: string | null;
}

/** Authentication results */
export interface ReceivedEmailDetailAuth {
  /** Result of the check */
  spf: AuthenticationResult;
  /** Result of the check */
  dkim: AuthenticationResult;
  /** Result of the check */
  dmarc: AuthenticationResult;
  /** Result of the check */
  arc: AuthenticationResult;
}

/** A page of received emails */
export interface ReceivedEmailList {
  /** The received emails, in the requested order */
  received_emails: ReceivedEmail[];
  /** Whether there are more */
  has_more: boolean;
  /** The `cursor` of the next page */
  next_cursor: string | null;
}

/** A recipient */
export interface Recipient {
  /** The address */
  email: string;
  /** The header field */
  type: RecipientType;
  /** The delivery status */
  status: RecipientStatus;
  /** Number of delivery attempts */
  attempts: number;
  /** The last response of the destination */
  last_response: RecipientLastResponse | null;
  /** Why the last attempt failed, if it was not a response of a host */
  error: string | null;
  /** The mail host of the last response */
  mx_host: string | null;
  /** When it was delivered */
  delivered_at: string | null;
  /** When it bounced */
  bounced_at: string | null;
  /** When it was first opened */
  opened_at: string | null;
  /** When a link was first clicked */
  clicked_at: string | null;
  /** When the recipient reported spam */
  complained_at: string | null;
  /** When the next attempt is due */
  next_attempt_at: string | null;
  /** Why the recipient waits; null if no further automatic action is pending */
  waits_for: WaitReason | null;
}

/** An SMTP reply */
export interface RecipientLastResponse {
  /** The three-digit SMTP reply code */
  smtp_code: number;
  /** The enhanced status code (RFC 3463), like `5.1.1` */
  enhanced_code: string | null;
  /** The text of the response */
  text: string;
}

/** `data` of `referral.converted`. */
export interface ReferralConvertedData {
  /** The event's id (`evt_…`), the same in every delivery: use it to recognise repetitions */
  event_id?: string;
  /** The referral after the change */
  referral?: AffiliateReferral;
  /** The affiliate program (`prog_…`) */
  program_id?: string;
  /** The partner (`aff_…`) */
  affiliate_id?: string;
}

/** `data` of `referral.created`. */
export interface ReferralCreatedData {
  /** The event's id (`evt_…`), the same in every delivery: use it to recognise repetitions */
  event_id?: string;
  /** The referral after the change */
  referral?: AffiliateReferral;
  /** The affiliate program (`prog_…`) */
  program_id?: string;
  /** The partner (`aff_…`) */
  affiliate_id?: string;
}

/** A response with a single object */
export interface RejectAffiliateResponse {
  affiliate: Affiliate;
  /** Warnings, for example about ignored fields */
  warnings?: string[];
}

/** A response with a replay */
export interface ReplayAutomationResponse {
  replay: AutomationReplay;
  /** Warnings, for example about ignored fields */
  warnings?: string[];
}

/** The queued deliveries */
export interface ReplayWebhookDeliveriesResponse {
  /** Number of queued deliveries */
  queued: number;
  /** `since` of the next request, if there were too many deliveries for one */
  next_since: string | null;
  /** Warnings, for example about ignored fields */
  warnings?: string[];
}

/** A response with a single object */
export interface ReverseAffiliateCommissionResponse {
  commission: AffiliateCommission;
  /** Warnings, for example about ignored fields */
  warnings?: string[];
}

/** The template and its new version */
export interface RollBackTemplateResponse {
  template: Template;
  version: TemplateVersion;
  /** Warnings, for example about ignored fields */
  warnings?: string[];
}

/** API key */
export interface RotateApiKeyResponse {
  api_key: ApiKey;
  /** The secret; shown only in this response */
  secret: string;
  /** Warnings, for example about ignored fields */
  warnings?: string[];
}

/** SMTP credential */
export interface RotateSmtpCredentialResponse {
  smtp_credential: SmtpCredential;
  /** The secret; shown only in this response */
  password: string;
  /** Warnings, for example about ignored fields */
  warnings?: string[];
}

/** An endpoint and its secret */
export interface RotateWebhookSecretResponse {
  webhook: Webhook;
  /** Signing secret (`whsec_…`); it is not shown again */
  secret: string;
  /** Warnings, for example about ignored fields */
  warnings?: string[];
}

/** The saved credentials */
export interface SaveDnsCredentialsResponse {
  dns_credentials: SavedDnsCredentials;
  /** Warnings, for example about ignored fields */
  warnings?: string[];
}

/** Saved credentials; secrets are never returned */
export interface SavedDnsCredentials {
  /** The provider */
  provider: DnsProvider;
  /** When they were saved */
  saved_at: string;
}

/** A page of the list */
export interface SavedDnsCredentialsList {
  /** The entries, newest first */
  dns_credentials: SavedDnsCredentials[];
  /** Whether there are more */
  has_more: boolean;
  /** The `cursor` of the next page */
  next_cursor: string | null;
}

/** The results of a batch */
export interface SendBatchResponse {
  /** One entry per email, in order */
  data: BatchResult[];
  /** Warnings, for example about ignored fields */
  warnings?: string[];
}

/** The event was accepted */
export interface SendEventResponse {
  event: ProductEvent;
  /** Number of active automations that the event triggered */
  matched_automations: number;
  /** Number of waiting runs that the event resumed */
  resumed_runs: number;
  /** Number of runs that the event cancelled */
  cancelled_runs: number;
  run?: AutomationRun;
  /** Warnings, for example about ignored fields */
  warnings?: string[];
}

/** The email was accepted */
export interface Sent {
  /** The email's id (`msg_…`) */
  id: string;
  /** The email is stored and will be delivered */
  status: SentStatus;
  /** Warnings, for example about ignored fields */
  warnings?: string[];
}

/** An SMTP credential, without its password */
export interface SmtpCredential {
  /** `smtp_…` */
  id: string;
  /** The name */
  name: string;
  /** The SMTP host */
  host: string;
  /** The port */
  port: number;
  /** How TLS is started */
  security: SmtpSecurity;
  /** The user name; the same for all credentials */
  username: string;
  /** The displayable part of the password */
  hint: string;
  /** Whether the credential is enabled */
  enabled: boolean;
  /** The only domain that the credential may send from; null allows all */
  domain_id: string | null;
  /** Addresses and networks that may use the credential; empty allows all */
  allowed_ips: string[];
  /** When it was last used, to about a minute */
  last_used_at: string | null;
  /** The IP address of the last use */
  last_used_ip: string | null;
  /** When the credential expires */
  expires_at: string | null;
  policy: ClientPolicy | null;
  /** When it was created */
  created_at: string;
}

/** What the step produced */
export interface StepOutput {
  /** The email that the step sent (`msg_…`); only of steps that send one */
  email_id?: string;
}

/** An event, as in a webhook body */
export interface StreamEvent {
  /** Id (`evt_…`) */
  id: string;
  /** Type */
  type: WebhookEventType;
  /** Time of the event */
  created_at: string;
  /** The `data` of the webhook body */
  data: Record<string, unknown>;
}

/** A page of the stream */
export interface StreamEventList {
  /** The events, in the requested order */
  events: StreamEvent[];
  /** Whether there are more events now */
  has_more: boolean;
  /** The `cursor` of the next page; with `asc` also on the last page, for polling */
  next_cursor: string | null;
}

/** A suppressed address or domain */
export interface Suppression {
  /** Id (`sup_…`) */
  id: string;
  /** The address in lower case, as used for comparison; or `@domain.tld` for a whole domain */
  email: string;
  /** Reason */
  reason: SuppressionReason;
  /** Source */
  source: SuppressionSource;
  /** The email that caused it */
  email_id: string | null;
  /** The reply of the remote host */
  detail: SuppressionDetail | null;
  /** Note */
  note: string | null;
  /** Expiry; null means never */
  expires_at: string | null;
  /** Time of creation */
  created_at: string;
}

/** The result for one address */
export interface SuppressionCheck {
  /** The address in lower case, as used for comparison; an invalid entry is unchanged */
  email: string;
  /** Whether nothing is sent to the address */
  suppressed: boolean;
  /** Reason of the suppression of the address or its domain */
  reason: SuppressionReason | null;
  /** Categories that the address opted out of */
  categories: CategoryOptOutCategory[];
  /** Id of the suppression (`sup_…`) */
  suppression_id: string | null;
  /** Expiry of the suppression; null means never */
  expires_at: string | null;
  /** Present if the entry is not an address */
  error?: SuppressionCheckError;
}

/** Present if the entry is not an address */
export interface SuppressionCheckError {
  /** Message for people */
  message: string;
  /** Code for programs, as in responses to single requests */
  code: string;
  /** Details of the error */
  details?: Record<string, unknown>;
  /** The page to upgrade the account */
  upgrade_url?: string;
}

/** `data` of `suppression.created`. */
export interface SuppressionCreatedData {
  /** The event's id (`evt_…`), the same in every delivery: use it to recognise repetitions */
  event_id?: string;
  /** The suppression (`sup_…`) */
  suppression_id?: string;
  /** The address in lower case, as used for comparison; or `@domain.tld` for a whole domain */
  email?: string;
  /** Reason */
  reason?: string;
  /** Source */
  source?: string;
  email_id?: string | null;
  expires_at?: string | null;
  /** Time of creation */
  created_at?: string;
}

/** `data` of `suppression.deleted`. */
export interface SuppressionDeletedData {
  /** The event's id (`evt_…`), the same in every delivery: use it to recognise repetitions */
  event_id?: string;
  /** The suppression (`sup_…`) */
  suppression_id?: string;
  /** The address in lower case, as used for comparison; or `@domain.tld` for a whole domain */
  email?: string;
  /** Reason */
  reason?: string;
  /** Source */
  source?: string;
  email_id?: string | null;
  expires_at?: string | null;
  /** Time of creation */
  created_at?: string;
}

/** The reply of the remote host */
export interface SuppressionDetail {
  /** SMTP reply code */
  smtp_code: number | null;
  /** Enhanced status code (RFC 3463) */
  enhanced_code: string | null;
  /** Text of the reply */
  diagnostic: string;
}

/** An import of suppressions */
export interface SuppressionImport {
  /** Id (`imp_…`) */
  id: string;
  /** Status */
  status: SuppressionImportStatus;
  /** Progress */
  counts: SuppressionImportCounts;
  /** The first invalid lines */
  errors: SuppressionImportError[];
  /** Time of the request */
  created_at: string;
  /** Time of completion */
  completed_at: string | null;
}

/** Progress */
export interface SuppressionImportCounts {
  /** Records in the list */
  total: number;
  /** Records read so far */
  processed: number;
  /** Suppressions created */
  created: number;
  /** Addresses that were already suppressed */
  exists: number;
  /** Invalid records */
  invalid: number;
  /** Records refused because the plan's quota is used up */
  refused: number;
}

/** An invalid line */
export interface SuppressionImportError {
  /** Line number, from 1 */
  line: number;
  /** The error message */
  message: string;
}

/** The result that an import would have */
export interface SuppressionImportForecast {
  /** The number of lines by result */
  counts: SuppressionImportForecastCounts;
  /** The first 100 lines that would be skipped */
  left_out: SuppressionImportForecastLeftOut[];
  /** The first 100 other lines */
  lines: SuppressionImportForecastLeftOut[];
}

/** The number of lines by result */
export interface SuppressionImportForecastCounts {
  /** Records in the list */
  total: number;
  /** Suppressions that would be created or changed */
  created: number;
  /** Records whose address is already suppressed, or is on an earlier line */
  exists: number;
  /** Records whose address is on an earlier line */
  repeated: number;
  /** Invalid records */
  invalid: number;
  /** Records that the plan has no room for */
  refused: number;
}

/** A line with the result that an import would have */
export interface SuppressionImportForecastLeftOut {
  /** Line number, from 1 */
  line: number;
  /** The address or domain; null if the line is invalid */
  email: string | null;
  /** The reason in the list; null if the line is invalid */
  reason: SuppressionReason | null;
  /**
   * `created`: a suppression would be created or get this reason; `exists`: the address is already
   * suppressed; `repeated`: an earlier line has the address; `invalid`: the line would be skipped
   */
  result: SuppressionImportForecastLeftOutResult;
  /** The reason of the suppression that exists */
  existing_reason: SuppressionImportForecastLeftOutExistingReason | null;
  /** Why the line would be skipped */
  message: string | null;
}

/** A page of the list */
export interface SuppressionImportList {
  /** The imports, newest first; the newest 100 are kept */
  imports: SuppressionImport[];
  /** Whether there are more */
  has_more: boolean;
  /** The `cursor` of the next page */
  next_cursor: string | null;
}

/** A page of the list */
export interface SuppressionList {
  /** The entries, newest first */
  suppressions: Suppression[];
  /** Whether there are more */
  has_more: boolean;
  /** The `cursor` of the next page */
  next_cursor: string | null;
}

/** The result for one address */
export interface SuppressionResult {
  /** Index in the request, from 0 */
  index: number;
  /** The suppression's id (`sup_…`) */
  id: string | null;
  /** `created` by this request, `exists` already, or `failed` */
  status: SuppressionResultStatus;
  /** Differences from the request or from the suppression before */
  warnings?: string[];
  /** The error */
  error?: SuppressionResultError;
}

/** The error */
export interface SuppressionResultError {
  /** Message for people */
  message: string;
  /** Code for programs, as in responses to single requests */
  code: string;
  /** Details of the error */
  details?: Record<string, unknown>;
  /** The page to upgrade the account */
  upgrade_url?: string;
}

/** A response with a single object */
export interface SuspendAffiliateResponse {
  affiliate: Affiliate;
  /** Warnings, for example about ignored fields */
  warnings?: string[];
}

/** A template: its draft, and the state of its publication */
export interface Template {
  /** Id (`tpl_…`) */
  id: string;
  /** Name for API calls */
  alias: string | null;
  /** Display name */
  name: string;
  /** Category */
  category: EmailCategory;
  /** Managed unsubscribe; always on for product and newsletter */
  unsubscribe_enabled: boolean;
  /** Default author, unless the send request has one */
  from: string | null;
  /** Default `Reply-To`, unless the send request has one */
  reply_to: string[];
  /** Markup of the subject */
  subject: string | null;
  /** Markup of the preview text after the subject */
  preheader: string | null;
  /** Markup of the HTML body, compiled if there is `mjml`; omitted in lists */
  html?: string | null;
  /** MJML source of the HTML body, or null; omitted in lists */
  mjml?: string | null;
  /** Markup of the plain-text body; omitted in lists */
  text?: string | null;
  /** Declared variables */
  variables: TemplateVariable[];
  /** Status */
  status: TemplateStatus;
  /** Number of changes of the draft; send it as `if_version` */
  draft_version: number;
  /** The published version, which is sent */
  published_version: number | null;
  /** Whether the draft differs from the published version */
  has_unpublished_changes: boolean;
  /** Time of the last publication */
  published_at: string | null;
  /** Time of creation */
  created_at: string;
  /** Time of the last change */
  updated_at: string;
}

/** A page of the list */
export interface TemplateList {
  /** The entries, newest first */
  templates: Template[];
  /** Whether there are more */
  has_more: boolean;
  /** The `cursor` of the next page */
  next_cursor: string | null;
}

/** The rendered template */
export interface TemplatePreview {
  /** The subject */
  subject: string | null;
  /** The HTML body; tags of missing variables stay */
  html: string | null;
  /** The plain-text body */
  text: string | null;
  /** Required variables that are missing: a send would be refused */
  missing_variables: string[];
  /** Given or declared variables that the template does not use */
  unused_variables: string[];
  /** Example variables for this template */
  suggested_variables: Record<string, unknown>;
  /** Warnings about the content */
  warnings: string[];
  /** Size of both bodies in bytes */
  size_bytes: number;
}

/** A declared variable */
export interface TemplateVariable {
  /** Name */
  key: string;
  /** Type; default: `string` */
  type?: TemplateVariableType;
  /** Whether a send without it is refused; default: true unless there is a fallback */
  required?: boolean;
  /** Value if the send request has none */
  fallback_value?: unknown;
}

/** A published version */
export interface TemplateVersion {
  /** Version number: 1, 2, 3 … */
  number: number;
  /** Note */
  note: string | null;
  /** Time of publication */
  published_at: string;
  /** Email of the account that published it */
  published_by: string;
}

/** A published version */
export interface TemplateVersionDetail {
  /** Version number: 1, 2, 3 … */
  number: number;
  /** Note */
  note: string | null;
  /** Time of publication */
  published_at: string;
  /** Email of the account that published it */
  published_by: string;
  /** Category */
  category: EmailCategory;
  /** Managed unsubscribe; always on for product and newsletter */
  unsubscribe_enabled: boolean;
  /** Default author, unless the send request has one */
  from: string | null;
  /** Default `Reply-To`, unless the send request has one */
  reply_to: string[];
  /** Markup of the subject */
  subject: string | null;
  /** Markup of the preview text after the subject */
  preheader: string | null;
  /** Markup of the HTML body, compiled if there is `mjml`; omitted in lists */
  html: string | null;
  /** MJML source of the HTML body, or null; omitted in lists */
  mjml: string | null;
  /** Markup of the plain-text body; omitted in lists */
  text: string | null;
  /** Declared variables */
  variables: TemplateVariable[];
}

/** A page of the list */
export interface TemplateVersionList {
  /** The entries, newest first */
  versions: TemplateVersion[];
  /** Whether there are more */
  has_more: boolean;
  /** The `cursor` of the next page */
  next_cursor: string | null;
}

/** A test event as sent to webhooks */
export interface TestEventResponse {
  /** The body of a delivery */
  payload: TestedEventPayload;
  /** Whether deliveries were enqueued */
  queued: boolean;
  /** One delivery per endpoint */
  deliveries: TestedEventDelivery[];
  /** Warnings, for example about ignored fields */
  warnings?: string[];
}

/** A queued delivery */
export interface TestWebhookResponse {
  delivery: WebhookDelivery;
  /** Warnings, for example about ignored fields */
  warnings?: string[];
}

/** A delivery */
export interface TestedEventDelivery {
  /** `whd_…` */
  id: string;
  /** The endpoint (`whk_…`) */
  webhook_id: string;
  /** The endpoint's URL */
  url: string;
  /** The status */
  status: WebhookDeliveryStatus;
}

/** The body of a delivery */
export interface TestedEventPayload {
  /** The event's name */
  type: string;
  /** When it happened */
  created_at: string;
  /** The event data; `test` is true */
  data: Record<string, unknown>;
}

/** A response with a single object */
export interface UpdateAffiliateCampaignResponse {
  campaign: AffiliateCampaign;
  /** Warnings, for example about ignored fields */
  warnings?: string[];
}

/** A response with a single object */
export interface UpdateAffiliateResponse {
  affiliate: Affiliate;
  /** Warnings, for example about ignored fields */
  warnings?: string[];
}

/** API key */
export interface UpdateApiKeyResponse {
  api_key: ApiKey;
  /** Warnings, for example about ignored fields */
  warnings?: string[];
}

/** A response with an automation */
export interface UpdateAutomationResponse {
  automation: Automation;
  /** Warnings, for example about ignored fields */
  warnings?: string[];
}

/** A domain */
export interface UpdateDomainResponse {
  domain: Domain;
  /** Warnings, for example about ignored fields */
  warnings?: string[];
}

/** A response with an email */
export interface UpdateEmailResponse {
  email: EmailDetail;
  /** Warnings, for example about ignored fields */
  warnings?: string[];
}

/** SMTP credential */
export interface UpdateSmtpCredentialResponse {
  smtp_credential: SmtpCredential;
  /** Warnings, for example about ignored fields */
  warnings?: string[];
}

/** A template */
export interface UpdateTemplateResponse {
  template: Template;
  /** Warnings about ignored fields */
  warnings?: string[];
}

/** An endpoint */
export interface UpdateWebhookResponse {
  webhook: Webhook;
  /** Warnings, for example about ignored fields */
  warnings?: string[];
}

/** A domain after a verification */
export interface VerifiedDomain {
  domain: Domain;
  /** Whether email can be sent from the domain; `records` shows what is missing */
  verified: boolean;
}

/** Visits, and sign-ups and subscriptions of people whose first visit had the source */
export interface VisitCounts {
  /** The whole range, by source */
  totals: VisitCountsTotal[];
  /** By day and source, oldest first; at most 200 sources per day, the others as `(other)` */
  visits: VisitCountsVisit[];
}

/** A source */
export interface VisitCountsTotal {
  /** Source: `utm_source`, the host of the previous page, `ad`, or `(direct)` */
  source: string;
  /** Visits */
  visits: number;
  /** First-time visitors */
  visitors: number;
  /** Sign-ups, each user counted once */
  sign_ups: number;
  /** Subscriptions, each counted once */
  subscriptions: number;
}

/** A source on a day */
export interface VisitCountsVisit {
  /** Start of the day */
  period_start: string;
  /** Source: `utm_source`, the host of the previous page, `ad`, or `(direct)` */
  source: string;
  /** Visits */
  visits: number;
  /** First-time visitors */
  visitors: number;
  /** Sign-ups, each user counted once */
  sign_ups: number;
  /** Subscriptions, each counted once */
  subscriptions: number;
}

/** Why a recipient waits */
export interface WaitReason {
  /** The limit or schedule that blocks the recipient */
  cause: WaitReasonCause;
  /** The cause as a sentence */
  text: string;
  /** The destination's mail hosts, once known */
  destination: string | null;
  /** Number of recipients ahead in the destination's queue, if known */
  place: number | null;
  /** When the wait ends, if known */
  until: string | null;
}

/** A webhook endpoint */
export interface Webhook {
  /** Id (`whk_…`) */
  id: string;
  /** URL for deliveries */
  url: string;
  /** The events that are sent; empty: all except those that must be named */
  events: string[];
  /** Whether events are sent */
  enabled: boolean;
  /** Your description */
  description: string | null;
  /** Only events of these domains are sent */
  domain_ids: string[];
  /** Only mail received for these addresses is sent */
  inbound_addresses: string[];
  /** Retry schedule */
  retry_policy: WebhookRetryPolicy;
  /** Start of the current failures; null if deliveries succeed */
  failing_since: string | null;
  /** Why the endpoint is disabled */
  disabled_reason: WebhookDisabledReason | null;
  /** Time of creation */
  created_at: string;
  /** Time of the last change */
  updated_at: string;
}

/** An attempt */
export interface WebhookAttempt {
  /** Attempt number, from 1 */
  n: number;
  /** Start time */
  at: string;
  /** HTTP status */
  response_status: number | null;
  /** First 4 KB of the response body */
  response_body: string;
  /** Duration in milliseconds */
  duration_ms: number;
  /** Why there was no response */
  error: string | null;
}

/** The delivery of an event to an endpoint */
export interface WebhookDelivery {
  /** Id (`whd_…`) */
  id: string;
  /** The endpoint (`whk_…`) */
  webhook_id: string;
  /** The event (`evt_…`), sent as `webhook-id` */
  event_id: string;
  /** Event name */
  type: string;
  /** Status */
  status: WebhookDeliveryStatus;
  /** Number of attempts */
  attempts_count: number;
  /** Time of the next attempt */
  next_attempt_at: string | null;
  /** Last HTTP status of the endpoint */
  response_status: number | null;
  /** Time of creation */
  created_at: string;
  /** Time of delivery */
  delivered_at: string | null;
}

/** A page of the list */
export interface WebhookDeliveryList {
  /** The entries, newest first */
  deliveries: WebhookDelivery[];
  /** Whether there are more */
  has_more: boolean;
  /** The `cursor` of the next page */
  next_cursor: string | null;
}

/** `data` of `webhook.disabled`. */
export interface WebhookDisabledData {
  /** The event's id (`evt_…`), the same in every delivery: use it to recognise repetitions */
  event_id?: string;
  /** The endpoint (`whk_…`) */
  webhook_id?: string;
  /** URL for deliveries */
  url?: string;
  /** Why the endpoint is disabled */
  disabled_reason?: string;
  /** Start of the current failures; null if deliveries succeed */
  failing_since?: string;
}

/** A page of the list */
export interface WebhookList {
  /** The entries, newest first */
  webhooks: Webhook[];
  /** Whether there are more */
  has_more: boolean;
  /** The `cursor` of the next page */
  next_cursor: string | null;
}

/** A delivery with its body and attempts */
export interface WholeWebhookDelivery {
  /** Id (`whd_…`) */
  id: string;
  /** The endpoint (`whk_…`) */
  webhook_id: string;
  /** The event (`evt_…`), sent as `webhook-id` */
  event_id: string;
  /** Event name */
  type: string;
  /** Status */
  status: WebhookDeliveryStatus;
  /** Number of attempts */
  attempts_count: number;
  /** Time of the next attempt */
  next_attempt_at: string | null;
  /** Last HTTP status of the endpoint */
  response_status: number | null;
  /** Time of creation */
  created_at: string;
  /** Time of delivery */
  delivered_at: string | null;
  /** The body; null when the event is no longer stored */
  payload: Record<string, unknown> | null;
  /** The attempts, oldest first */
  attempts: WebhookAttempt[];
}
