# Generated from sdk/operations.json by sdk/generate; do not edit.

"""Params, answers and webhook events. At run time all are dicts.

Values of an enum that a newer server adds are plain strings.
"""

from __future__ import annotations

import datetime
from typing import Any, Dict, List, Literal, Mapping, Optional, Sequence, TypedDict, Union

from ._deadline import Cancellation


class CallOptions(TypedDict, total=False):
    """Options of each call."""

    timeout: float
    """Deadline of the call with its retries, in seconds."""
    max_retries: int
    if_match: str
    """The revision that the object must have, for calls that accept If-Match."""
    extra_headers: Mapping[str, str]
    cancellation: Cancellation
    """Cancels the call from another thread. With AsyncPostrider, cancel the task instead."""


class IdempotentOptions(CallOptions, total=False):
    """Options of calls that are carried out once for each idempotency key."""

    idempotency_key: str


AccessLevel = Union[Literal["sandbox", "self_test", "production"], str]
AffiliateCampaignCommissionDuration = Union[Literal["once", "recurring"], str]
AffiliateCampaignCommissionType = Union[Literal["percent", "flat"], str]
AffiliateCampaignProductRateCommissionType = Union[Literal["percent", "flat", "none"], str]
AffiliateCampaignVisibility = Union[Literal["public", "private", "unlisted"], str]
AffiliateCommissionDetailCalculationCapEffect = Union[Literal["unreached", "hit", "other_currency"], str]
AffiliateCommissionDetailCalculationRateRule = Union[Literal["override", "product", "tier", "base", "second_tier"], str]
AffiliateCommissionStatus = Union[Literal["pending", "earned", "paid", "reversed"], str]
AffiliatePayoutMethod = Union[Literal["paypal", "wise", "bank", "other", "stripe"], str]
AffiliatePayoutStatus = Union[Literal["draft", "processing", "paid", "failed"], str]
AffiliateReferralBlockedReason = Union[Literal["self_referral", "existing_customer"], str]
AffiliateReferralSource = Union[Literal["api", "signup", "checkout", "metadata"], str]
AffiliateReferralStatus = Union[Literal["lead", "trialing", "active", "cancelled", "refunded", "rejected"], str]
AffiliateSource = Union[Literal["api", "import", "portal"], str]
AffiliateStatus = Union[Literal["invited", "pending", "active", "suspended", "rejected"], str]
ApiKeyScope = Union[Literal["full", "sending"], str]
ApprovalKind = Union[Literal["send", "delete", "manage"], str]
ApprovalStatus = Union[Literal["pending", "expired", "rejected", "approved", "executing", "executed", "failed", "interrupted"], str]
AttemptTlsPolicy = Union[Literal["dane", "mta-sts", "opportunistic"], str]
AuditEntrySurface = Union[Literal["api", "dashboard", "mcp", "approval"], str]
AuthenticationResult = Union[Literal["none", "pass", "fail", "softfail", "neutral", "temperror", "permerror"], str]
AutomationAction = Union[Literal["activate", "pause", "archive", "cancel_runs"], str]
AutomationReplayEventEffect = Union[Literal["run", "filtered", "repeated"], str]
AutomationRunCancelledBy = Union[Literal["event", "api"], str]
AutomationRunEndedBy = Union[Literal["all_steps", "condition"], str]
AutomationRunMode = Union[Literal["live", "dry_run", "test_send"], str]
AutomationRunStatus = Union[Literal["queued", "running", "waiting", "completed", "failed", "cancelled"], str]
AutomationRunStepStatus = Union[Literal["pending", "running", "waiting", "completed", "failed", "skipped"], str]
AutomationRunStepType = Union[Literal["send_email", "delay", "wait_for_event", "condition", "sms"], str]
AutomationStatus = Union[Literal["draft", "active", "paused", "archived"], str]
BatchResultStatus = Union[Literal["sent", "scheduled", "failed"], str]
CategoryOptOutCategory = Union[Literal["product", "newsletter"], str]
ConditionOperator = Union[Literal["eq", "neq", "gt", "gte", "lt", "lte", "contains", "starts_with", "ends_with", "exists", "is_empty", "in"], str]
ConversionKind = Union[Literal["sign_up", "subscription"], str]
CreateAffiliateStatus = Union[Literal["active", "pending", "invited"], str]
Disposition = Union[Literal["attachment", "inline"], str]
DmarcAlignment = Union[Literal["relaxed", "strict"], str]
DmarcPolicy = Union[Literal["none", "quarantine", "reject"], str]
DnsChangeAction = Union[Literal["create", "update", "skip", "conflict"], str]
DnsChangeOutcome = Union[Literal["unchanged", "done", "failed", "unclear", "not_done"], str]
DnsProvider = Union[Literal["cloudflare", "route53", "digitalocean", "hetzner", "gandi", "rfc2136", "bunny", "desec", "dnsimple", "gcore", "godaddy", "hostinger", "infomaniak", "ionos", "linode", "namecom", "netlify", "ns1", "porkbun", "scaleway", "vercel", "vultr"], str]
DomainClaimBlockedReason = Union[Literal["grace_period", "recent_owner_activity", "pending_scheduled_emails"], str]
DomainClaimStatus = Union[Literal["pending", "blocked", "verified", "completed", "expired", "cancelled"], str]
DomainRecordPurpose = Union[Literal["ownership", "dkim", "return_path", "spf", "dmarc", "inbound", "tracking"], str]
DomainRecordStatus = Union[Literal["pending", "verified", "missing", "mismatch", "conflict"], str]
DomainRecordType = Union[Literal["TXT", "CNAME", "MX"], str]
DomainStatus = Union[Literal["unverified", "verified"], str]
EmailCategory = Union[Literal["transactional", "product", "newsletter"], str]
EmailMetric = Union[Literal["sent", "delivered", "bounced", "failed", "delayed", "complained", "opened", "clicked", "suppressed", "unsubscribed", "delivery_time"], str]
EmailMetricsDimension = Union[Literal["domain", "tag", "template", "provider", "category"], str]
EmailStatus = Union[Literal["queued", "scheduled", "sent", "delivered", "bounced", "failed", "cancelled"], str]
FunnelGrouping = Union[Literal["source", "came_from", "signup_method"], str]
GetReceivedEmailAttachments = Union[Literal["inline", "none"], str]
Granularity = Union[Literal["hour", "day"], str]
ListEmailsStatus = Union[Literal["scheduled", "queued", "sent", "delivered", "bounced", "failed", "cancelled"], str]
ListReceivedEmailsOrder = Union[Literal["desc", "asc"], str]
ListWebhookEventsOrder = Union[Literal["asc", "desc"], str]
OnSuppressed = Union[Literal["fail", "skip"], str]
Plan = Union[Literal["free", "pro", "scale", "dedicated"], str]
RecipientStatus = Union[Literal["queued", "deferred", "delivered", "bounced", "failed", "cancelled", "suppressed"], str]
RecipientType = Union[Literal["to", "cc", "bcc"], str]
Reentry = Union[Literal["always", "once", "while_not_running"], str]
ReplayWebhookDeliveriesStatus = Union[Literal["failed", "delivered"], str]
ReverseAffiliateCommissionReason = Union[Literal["manual", "fraud"], str]
ReverseReason = Union[Literal["refund", "dispute", "fraud", "manual", "partner_deleted", "blocked", "expired", "excluded"], str]
SentStatus = Union[Literal["sent", "scheduled"], str]
SmtpSecurity = Union[Literal["starttls", "tls"], str]
SpamStatus = Union[Literal["not_checked", "not_spam", "spam"], str]
SuppressionImportForecastLeftOutExistingReason = Union[Literal["hard_bounce", "soft_bounce", "complaint", "unsubscribe", "smtp_failure", "manual", "import"], str]
SuppressionImportForecastLeftOutResult = Union[Literal["created", "exists", "repeated", "invalid"], str]
SuppressionImportStatus = Union[Literal["queued", "running", "completed", "failed"], str]
SuppressionReason = Union[Literal["hard_bounce", "soft_bounce", "complaint", "unsubscribe", "smtp_failure", "manual", "import"], str]
SuppressionResultStatus = Union[Literal["created", "exists", "failed"], str]
SuppressionSource = Union[Literal["system", "api", "dashboard", "recipient", "import"], str]
TemplateStatus = Union[Literal["draft", "published", "archived"], str]
TemplateVariableType = Union[Literal["string", "number", "boolean", "object", "list"], str]
TlsMode = Union[Literal["opportunistic", "enforced"], str]
WaitReasonCause = Union[Literal["scheduled_at", "not_allowed", "held", "account_suspended", "queue_held", "paused", "suspended", "schedule", "other_node", "resting", "unreachable", "rate", "warm_up", "connections", "turn", "reply", "look_up", "memory"], str]
WebhookDeliveryStatus = Union[Literal["pending", "delivered", "failed"], str]
WebhookDisabledReason = Union[Literal["gone", "failing", "customer"], str]
WebhookEventType = Union[Literal["email.received", "email.sent", "email.delivered", "email.delivery_delayed", "email.bounced", "email.complained", "email.opened", "email.clicked", "email.failed", "email.suppressed", "email.scheduled", "contact.unsubscribed", "automation.started", "automation.step_completed", "automation.completed", "automation.failed", "email.cancelled", "domain.verified", "domain.degraded", "suppression.created", "suppression.deleted", "webhook.disabled", "affiliate.created", "affiliate.approved", "affiliate.updated", "referral.created", "referral.converted", "commission.created", "commission.earned", "commission.reversed", "commission.paid", "payout.created", "payout.paid", "payout.failed"], str]
WebhookRetryPolicy = Union[Literal["default", "extended"], str]

class Account(TypedDict):
    """The account with its limits and usage"""

    account: AccountDetails
    """The account"""
    limits: AccountLimits
    """Limits of the plan; null is unlimited"""
    usage: AccountUsage
    """Usage of the account"""


class AccountDetails(TypedDict):
    """The account"""

    id: str
    """`acct_…`"""
    email: str
    """The owner's address"""
    plan: Plan
    """The plan"""
    access_level: AccessLevel
    """The recipients and sender addresses that are allowed"""
    sandbox_sender: Optional[str]
    """Sender address for accounts without a verified domain"""
    suspended: bool
    """Whether the account is suspended: its email is rejected"""
    features: AccountFeatures
    """Available parts of the service"""
    created_at: str
    """When it was created"""


class AccountFeatures(TypedDict):
    """Available parts of the service"""

    inbound: bool
    """Whether this part of the service is available"""
    automations: bool
    """Whether this part of the service is available"""
    sms: bool
    """Whether this part of the service is available"""
    affiliates: bool
    """Whether this part of the service is available"""


class AccountLimits(TypedDict):
    """Limits of the plan; null is unlimited"""

    emails_per_month: Optional[int]
    """Emails per calendar month (UTC), counted per recipient"""
    emails_per_day: Optional[int]
    """Emails per day (UTC), counted per recipient"""
    domains: Optional[int]
    """Sending domains"""
    requests_per_second: int
    """API requests per second"""
    retention_days: int
    """Days for which emails are retained"""
    storage: AccountLimitsStorage
    """Storage limits, as a number of objects or in bytes; null is unlimited"""


class AccountLimitsStorage(TypedDict):
    """Storage limits, as a number of objects or in bytes; null is unlimited"""

    email_bytes: Optional[int]
    """Bytes of the messages of sent emails within the retention period"""
    suppressions: Optional[int]
    """Suppressed addresses and domains, of any origin"""
    category_opt_outs: Optional[int]
    """Opt-outs from one category"""
    templates: Optional[int]
    """Templates, including archived ones"""
    template_bytes: Optional[int]
    """Bytes of drafts and versions of templates"""
    product_events: Optional[int]
    """Product events within the retention period"""
    product_event_bytes: Optional[int]
    """Bytes of product events"""
    received_emails: Optional[int]
    """Received emails within the retention period"""
    received_bytes: Optional[int]
    """Bytes of the messages of received emails"""
    automations: Optional[int]
    """Automations, including archived ones"""
    automation_bytes: Optional[int]
    """Bytes of all versions of automations"""
    webhooks: Optional[int]
    """Webhook endpoints"""
    api_keys: Optional[int]
    """API keys"""
    smtp_credentials: Optional[int]
    """SMTP credentials"""
    users: Optional[int]
    """Users, including invited ones"""
    domain_claims: Optional[int]
    """Claims to domains of other accounts, including closed ones"""
    affiliates: Optional[int]
    """Partners of the affiliate program"""
    affiliate_links: Optional[int]
    """Links of partners"""
    affiliate_campaigns: Optional[int]
    """Campaigns of the affiliate program"""
    affiliate_referrals: Optional[int]
    """People referred by partners"""
    affiliate_event_bytes: Optional[int]
    """Bytes of events of the payment processor within 90 days"""


class AccountUsage(TypedDict):
    """Usage of the account"""

    period_start: str
    """Start of the month"""
    period_end: str
    """End of the month"""
    emails_month: int
    """Emails sent this month"""
    emails_day: int
    """Emails sent today"""
    domains: int
    """Sending domains"""
    overage: int
    """Emails sent this month beyond the number that the plan includes"""
    resets_at: str
    """When the daily count resets"""
    storage: AccountUsageStorage
    """Stored objects or bytes; null if the plan has no limit or the count is being computed"""


class AccountUsageStorage(TypedDict):
    """Stored objects or bytes; null if the plan has no limit or the count is being computed"""

    email_bytes: Optional[int]
    """Bytes of the messages of sent emails within the retention period"""
    suppressions: Optional[int]
    """Suppressed addresses and domains, of any origin"""
    category_opt_outs: Optional[int]
    """Opt-outs from one category"""
    templates: Optional[int]
    """Templates, including archived ones"""
    template_bytes: Optional[int]
    """Bytes of drafts and versions of templates"""
    product_events: Optional[int]
    """Product events within the retention period"""
    product_event_bytes: Optional[int]
    """Bytes of product events"""
    received_emails: Optional[int]
    """Received emails within the retention period"""
    received_bytes: Optional[int]
    """Bytes of the messages of received emails"""
    automations: Optional[int]
    """Automations, including archived ones"""
    automation_bytes: Optional[int]
    """Bytes of all versions of automations"""
    webhooks: Optional[int]
    """Webhook endpoints"""
    api_keys: Optional[int]
    """API keys"""
    smtp_credentials: Optional[int]
    """SMTP credentials"""
    users: Optional[int]
    """Users, including invited ones"""
    domain_claims: Optional[int]
    """Claims to domains of other accounts, including closed ones"""
    affiliates: Optional[int]
    """Partners of the affiliate program"""
    affiliate_links: Optional[int]
    """Links of partners"""
    affiliate_campaigns: Optional[int]
    """Campaigns of the affiliate program"""
    affiliate_referrals: Optional[int]
    """People referred by partners"""
    affiliate_event_bytes: Optional[int]
    """Bytes of events of the payment processor within 90 days"""


class Affiliate(TypedDict):
    """A partner"""

    object: Literal["affiliate"]
    """The object type"""
    id: str
    """The partner's id (`aff_…`)"""
    email: str
    """The unique email address"""
    first_name: Optional[str]
    """The given name"""
    last_name: Optional[str]
    """The family name"""
    company: Optional[str]
    """The company"""
    website: Optional[str]
    """The website"""
    country: Optional[str]
    """Two letters (ISO 3166-1)"""
    status: AffiliateStatus
    """The status"""
    source: AffiliateSource
    """The source"""
    campaign_id: str
    """The campaign (`cmp_…`)"""
    parent_affiliate_id: Optional[str]
    """The partner that recruited this one (`aff_…`)"""
    tags: List[str]
    """Tags for the owner's use"""
    payout_method: Optional[AffiliatePayoutMethod]
    """The payout method"""
    payout_ready: bool
    """Whether a payout destination with an allowed method is set"""
    approved_at: Optional[str]
    """When the partner was first approved"""
    links: List[AffiliateLink]
    """All links of the partner; in a list, only the primary link"""
    created_at: str
    """When it was created"""
    updated_at: str
    """When it was last changed"""


class AffiliateApprovedData(TypedDict, total=False):
    """`data` of `affiliate.approved`."""

    event_id: str
    """The event's id (`evt_…`), the same in every delivery: use it to recognise repetitions"""
    affiliate: Affiliate
    """The partner after the change"""
    program_id: str
    """The affiliate program (`prog_…`)"""
    affiliate_id: str
    """The partner (`aff_…`)"""


class _AffiliateCampaignRequired(TypedDict):
    object: Literal["affiliate_campaign"]
    """The object type"""
    id: str
    """The campaign's id (`cmp_…`)"""
    name: str
    """The unique name of the campaign"""
    is_default: bool
    """Whether this is the default campaign"""
    visibility: AffiliateCampaignVisibility
    """The people who can see the campaign"""
    auto_approve: bool
    """Whether applications are approved automatically"""
    commission_type: AffiliateCampaignCommissionType
    """The rate that applies"""
    commission_bps: int
    """The percentage of a sale in basis points"""
    commission_flat_cents: int
    """The amount per sale, in minor units of the program's currency"""
    commission_duration: AffiliateCampaignCommissionDuration
    """Whether the first sale or all sales earn a commission"""
    recurring_months: Optional[int]
    """For how many months sales earn a commission; null is unlimited"""
    max_commission_cents: Optional[int]
    """Maximum commission per sale"""
    tiers: List[AffiliateCampaignTier]
    """Rates by number of paying customers"""
    product_rates: List[AffiliateCampaignProductRate]
    """Rates of products and prices"""
    second_tier_bps: int
    """The recruiting partner's percentage of the same sale in basis points"""
    lead_bounty_cents: int
    """The amount per lead in minor units"""
    cookie_days: int
    """For how many days a visit is credited to the partner"""
    hold_days: int
    """For how many days a commission is held for refunds"""
    archived_at: Optional[str]
    """When the campaign was archived and stopped accepting partners"""
    created_at: str
    """When it was created"""
    updated_at: str
    """When it was last changed"""


class AffiliateCampaign(_AffiliateCampaignRequired, total=False):
    """The commission terms of partners"""

    affiliate_count: int
    """Number of partners; only in lists"""


class AffiliateCampaignProductRate(TypedDict):
    """The rate of a product or of one of its prices"""

    product_id: str
    """The payment processor's product id"""
    price_id: Optional[str]
    """The payment processor's price id"""
    commission_type: AffiliateCampaignProductRateCommissionType
    """The rate that applies; `none` earns nothing"""
    commission_bps: int
    """The percentage in basis points"""
    commission_flat_cents: int
    """The amount in minor units"""
    label: Optional[str]
    """A label for your own use"""


class AffiliateCampaignTier(TypedDict):
    """A rate that applies from a number of paying customers; `commission_type` selects one of the two rates"""

    min_paid_customers: int
    """Number of paying customers, including the current one"""
    commission_bps: int
    """The percentage in basis points"""
    commission_flat_cents: int
    """The amount in minor units"""


class AffiliateCommission(TypedDict):
    """A line of the ledger"""

    object: Literal["affiliate_commission"]
    """The object type"""
    id: str
    """The commission's id (`com_…`)"""
    affiliate_id: str
    """The partner (`aff_…`)"""
    referral_id: str
    """The referral (`ref_…`)"""
    tier: int
    """1: earned by the referring partner; 2: earned by the partner that recruited it"""
    status: AffiliateCommissionStatus
    """The status; `earned` while it is in a payout"""
    amount_cents: int
    """The amount in minor units"""
    sale_amount_cents: int
    """The sale amount that the commission is based on; 0 for a bounty"""
    currency: str
    """The currency of `amount_cents`"""
    description: str
    """The reason for the commission"""
    processor_invoice_id: Optional[str]
    """The payment processor's invoice id"""
    processor_charge_id: Optional[str]
    """The payment processor's charge id"""
    earns_at: str
    """When the hold period ends"""
    earned_at: Optional[str]
    """When the commission was earned"""
    paid_at: Optional[str]
    """When it was paid out"""
    reversed_at: Optional[str]
    """When it was reversed"""
    reverse_reason: Optional[ReverseReason]
    """Why it was reversed"""
    payout_id: Optional[str]
    """The payout (`pay_…`)"""
    created_at: str
    """When it was created"""
    updated_at: str
    """When it was last changed"""


class AffiliateCommissionDetail(TypedDict):
    """A commission with its calculation"""

    commission: AffiliateCommission
    formula: str
    """The calculation in one line: `20 % of 49.00 usd = 9.80 usd (campaign rate)`"""
    calculation: Optional[AffiliateCommissionDetailCalculation]
    """Null for a bounty"""


class AffiliateCommissionDetailCalculation(TypedDict):
    """The calculation of a commission on a sale"""

    currency: str
    """The currency of the sale"""
    paid_cents: int
    """The amount that the customer paid, in minor units"""
    tax_cents: int
    """The tax included in it"""
    base_cents: int
    """The amount that the commission is calculated on: paid, without tax, before refunds"""
    remaining_base_cents: int
    """Remainder of the base after refunds"""
    paying_customers: int
    """The partner's number of paying customers at that time, including this one"""
    rates: List[AffiliateCommissionDetailCalculationRate]
    """The rates, by lines of the sale"""
    cap: Optional[AffiliateCommissionDetailCalculationCap]
    """The maximum commission of a sale"""


class AffiliateCommissionDetailCalculationCap(TypedDict):
    """The maximum commission of a sale"""

    max_commission_cents: int
    """The maximum in minor units"""
    currency: str
    """Its currency"""
    effect: AffiliateCommissionDetailCalculationCapEffect
    """`hit`: the commission was lowered to it; `other_currency`: not applied, because amounts are not converted"""


class AffiliateCommissionDetailCalculationRate(TypedDict):
    """Lines of the sale that have the same rate"""

    base_cents: int
    """The part of the sale that the rate applies to, after refunds, in minor units"""
    commission_bps: Optional[int]
    """The rate in basis points; null for a fixed amount"""
    commission_flat_cents: Optional[int]
    """The fixed amount in minor units; null for a share"""
    rule: AffiliateCommissionDetailCalculationRateRule
    """`override`: the partner's own rate; `product`: the campaign's rate of the product or price; `tier`: the
    campaign's rate from a number of paying customers on; `base`: the campaign's rate; `second_tier`: the
    recruiter's share"""
    product: Optional[str]
    """The product's id at the payment processor"""
    min_paid_customers: Optional[int]
    """The number of paying customers from which the tier applies"""


class AffiliateCreatedData(TypedDict, total=False):
    """`data` of `affiliate.created`."""

    event_id: str
    """The event's id (`evt_…`), the same in every delivery: use it to recognise repetitions"""
    affiliate: Affiliate
    """The partner after the change"""
    program_id: str
    """The affiliate program (`prog_…`)"""
    affiliate_id: str
    """The partner (`aff_…`)"""


class AffiliateLink(TypedDict):
    """A link of a partner"""

    object: Literal["affiliate_link"]
    """The object type"""
    id: str
    """The link's id (`afl_…`)"""
    affiliate_id: str
    """The partner (`aff_…`)"""
    token: str
    """The value of the `via` parameter"""
    url: str
    """The URL with the token"""
    destination_url: Optional[str]
    """The destination: a path or a URL on the website"""
    label: Optional[str]
    """The label"""
    is_primary: bool
    """Whether this is the primary link"""
    created_at: str
    """When it was created"""


class AffiliatePayout(TypedDict):
    """A payout to one partner in one currency"""

    object: Literal["affiliate_payout"]
    """The object type"""
    id: str
    """The payout's id (`pay_…`)"""
    affiliate_id: str
    """The partner (`aff_…`)"""
    run_id: str
    """The payout run (`prn_…`)"""
    amount_cents: int
    """The amount in minor units"""
    currency: str
    """The currency"""
    method: AffiliatePayoutMethod
    """The payout method"""
    status: AffiliatePayoutStatus
    """The status"""
    processor_transfer_id: Optional[str]
    """The payment processor's transfer id"""
    external_reference: Optional[str]
    """Reference of the payment, as proof"""
    failure_reason: Optional[str]
    """Why the payout failed; while it is `processing`, why the transfer has not been made yet"""
    paid_at: Optional[str]
    """When it was paid"""
    created_at: str
    """When it was drafted"""
    updated_at: str
    """When it was last changed"""


class AffiliateReferral(TypedDict):
    """A person referred by a partner"""

    object: Literal["affiliate_referral"]
    """The object type"""
    id: str
    """The referral's id (`ref_…`)"""
    affiliate_id: str
    """The partner (`aff_…`)"""
    status: AffiliateReferralStatus
    """The status"""
    source: AffiliateReferralSource
    """The source"""
    email: Optional[str]
    """The person's email address"""
    processor_customer_id: Optional[str]
    """The payment processor's customer id"""
    sub_id: Optional[str]
    """The partner's own tag"""
    blocked_reason: Optional[AffiliateReferralBlockedReason]
    """Why the referral earns no commission"""
    revenue_cents: int
    """Payments in `currency` minus refunds, without tax, in minor units"""
    currency: Optional[str]
    """The currency of the first payment that postrider received"""
    converted_at: Optional[str]
    """When the customer first paid"""
    expires_at: str
    """The customer must pay before this time to be credited to the partner"""
    created_at: str
    """When it was created"""
    updated_at: str
    """When it was last changed"""


class AffiliateUpdatedData(TypedDict, total=False):
    """`data` of `affiliate.updated`."""

    event_id: str
    """The event's id (`evt_…`), the same in every delivery: use it to recognise repetitions"""
    affiliate: Affiliate
    """The partner after the change"""
    program_id: str
    """The affiliate program (`prog_…`)"""
    affiliate_id: str
    """The partner (`aff_…`)"""


class ApiKey(TypedDict):
    """An API key, without its secret"""

    id: str
    """`key_…`"""
    name: str
    """The name"""
    scope: ApiKeyScope
    """The scope"""
    hint: str
    """The displayable part of the secret"""
    enabled: bool
    """Whether the credential is enabled"""
    domain_id: Optional[str]
    """The only domain that the credential may send from; null allows all"""
    allowed_ips: List[str]
    """Addresses and networks that may use the credential; empty allows all"""
    last_used_at: Optional[str]
    """When it was last used, to about a minute"""
    last_used_ip: Optional[str]
    """The IP address of the last use"""
    expires_at: Optional[str]
    """When the credential expires"""
    policy: Optional[ClientPolicy]
    created_at: str
    """When it was created"""


class _ApplyDomainDnsParamsRequired(TypedDict):
    provider: DnsProvider
    """The DNS provider of the zone"""


class ApplyDomainDnsParams(_ApplyDomainDnsParamsRequired, total=False):
    """Params of `domains.dns.apply`."""

    credentials: Optional[Mapping[str, str]]
    """An object. cloudflare: `api_token`; route53: `access_key_id`, `secret_access_key`, `session_token?`, `region?`,
    `hosted_zone_id?`; digitalocean: `api_token`; hetzner: `api_token`; gandi: `api_token`; rfc2136: `server`,
    `key_name`, `algorithm?`, `secret`; bunny: `api_token`; desec: `api_token`; dnsimple: `account_id`, `api_token`;
    gcore: `api_token`; godaddy: `api_key`, `api_secret`; hostinger: `api_token`; infomaniak: `api_token`; ionos:
    `api_token`; linode: `api_token`; namecom: `username`, `api_token`; netlify: `api_token`; ns1: `api_token`;
    porkbun: `api_key`, `secret_api_key`; scaleway: `api_token`; vercel: `api_token`; vultr: `api_token`"""
    use_saved: Optional[bool]
    """Whether to use the saved credentials for the provider"""
    dry_run: Optional[bool]
    """Preview the changes without publishing them"""
    merge_spf: Optional[bool]
    """Whether to add the service's include to an existing SPF record"""


class _ApplyDomainDnsResponseRequired(TypedDict):
    domain: Domain
    changes: List[DnsChange]
    """The change of each record"""
    applied: bool
    """Whether all records are now published at the provider"""


class ApplyDomainDnsResponse(_ApplyDomainDnsResponseRequired, total=False):
    """The published records"""

    warnings: List[str]
    """Warnings, for example about ignored fields"""


class Approval(TypedDict):
    """A client's request that waits for a person's decision, or has been decided"""

    id: str
    """`apr_…`"""
    status: ApprovalStatus
    """The status; `failed` means that the response is an error, `interrupted` that it may have been executed"""
    kind: ApprovalKind
    """The kind of operation that the policy holds"""
    client_id: str
    """The API key (`key_…`) or grant of an app (`grant_…`) that made the request"""
    operation: str
    """The operation"""
    method: str
    """The method"""
    path: str
    """The path with the query"""
    idempotency_key: Optional[str]
    """The `Idempotency-Key` of the request"""
    if_match: Optional[str]
    """The `If-Match` of the request: it is executed only if the object still has this version"""
    body: Optional[str]
    """The body as JSON text; only in the response for one approval, until the content is deleted"""
    emails: Optional[List[ApprovalEmail]]
    """The emails that the request sends; only in the response for one approval, until the content is deleted"""
    hash: str
    """SHA-256 of the request and its emails; a decision names it"""
    url: str
    """The page on which a person decides"""
    created_at: str
    """When the request was made"""
    expires_at: str
    """End of the time for a decision"""
    decided_by: Optional[str]
    """The user who decided"""
    decided_at: Optional[str]
    """When it was decided"""
    response_status: Optional[int]
    """The status of the response, once the request was executed"""
    error_code: Optional[str]
    """The code of the error, if the response is one"""
    response: Optional[Dict[str, Any]]
    """The body of the response, for 24 hours; only in the response for one approval"""


class ApprovalAttachment(TypedDict):
    """An attachment of such an email"""

    name: str
    """The file name"""
    content_type: str
    """The media type"""
    size_bytes: int
    """The size"""
    sha256: str
    """SHA-256 of the content, in hexadecimal"""


_ApprovalEmailRequired = TypedDict(
    "_ApprovalEmailRequired",
    {
        "from": "str",
        "recipients": "List[str]",
        "to": "List[str]",
        "cc": "List[str]",
        "bcc": "List[str]",
        "reply_to": "List[str]",
        "subject": "str",
        "text": "Optional[str]",
        "html": "Optional[str]",
        "headers": "List[ApprovalHeader]",
        "attachments": "List[ApprovalAttachment]",
        "category": "EmailCategory",
        "scheduled_at": "Optional[str]",
    },
)
_ApprovalEmailOptional = TypedDict(
    "_ApprovalEmailOptional",
    {
    },
    total=False,
)


class ApprovalEmail(_ApprovalEmailRequired, _ApprovalEmailOptional):
    """An email that a held request sends

    from: The author
    recipients: All recipients: those of to, cc and bcc
    to: The header field To
    cc: The header field Cc
    bcc: Recipients that no header field names
    reply_to: Where replies go
    subject: The subject
    text: The plain-text body
    html: The HTML body
    headers: The custom header fields
    attachments: The attachments, without their contents
    category: The category
    scheduled_at: When it is sent, if not at once
    """


class ApprovalHeader(TypedDict):
    """A custom header field of such an email"""

    name: str
    """The name"""
    value: str
    """The value"""


class ApproveAffiliateParams(TypedDict, total=False):
    """Params of `affiliates.approve`."""

    send_email: Optional[bool]
    """Whether to notify the partner by email; defaults to true"""


class _ApproveAffiliateResponseRequired(TypedDict):
    affiliate: Affiliate


class ApproveAffiliateResponse(_ApproveAffiliateResponseRequired, total=False):
    """A response with a single object"""

    warnings: List[str]
    """Warnings, for example about ignored fields"""


class Attempt(TypedDict):
    """A delivery attempt"""

    n: int
    """Number of the attempt for this recipient, from 1"""
    recipient: Optional[str]
    """The recipient"""
    mx_host: Optional[str]
    """The host"""
    ip: Optional[str]
    """The host's IP address"""
    tls: Optional[AttemptTls]
    """Null for plain text"""
    smtp_code: Optional[int]
    """The three-digit SMTP reply code"""
    enhanced_code: Optional[str]
    """The enhanced status code (RFC 3463)"""
    response: Optional[str]
    """The text of the response"""
    error: Optional[str]
    """The error, if it was not a response of a host"""
    phase: str
    """The phase that the attempt reached"""
    duration_ms: int
    """Duration in milliseconds"""
    created_at: str
    """When it started"""
    next_attempt_at: Optional[str]
    """When the next attempt is due"""
    transcript: str
    """The SMTP transcript"""


class AttemptList(TypedDict):
    """A page of the list"""

    attempts: List[Attempt]
    """The entries, newest first"""
    has_more: bool
    """Whether there are more"""
    next_cursor: Optional[str]
    """The `cursor` of the next page"""


class AttemptTls(TypedDict):
    """TLS"""

    version: str
    """`TLSv1.3`"""
    cipher: str
    """The cipher suite"""
    verified: bool
    """Whether the certificate was verified"""
    policy: AttemptTlsPolicy
    """The policy that required or offered TLS"""


class AuditEntry(TypedDict):
    """An action of a credential or a user"""

    id: str
    """`req_…`, the response's `x-request-id`"""
    operation: str
    """The operation"""
    object_id: Optional[str]
    """The id of the object, if the operation concerns one"""
    path: str
    """The path; email addresses are redacted"""
    status: int
    """The response status"""
    error_code: Optional[str]
    """The error's code"""
    surface: AuditEntrySurface
    """How the request arrived; `approval` is a request that a person approved"""
    api_key_id: Optional[str]
    """The API key of the request"""
    grant_id: Optional[str]
    """The grant of the app that made the request"""
    user_id: Optional[str]
    """The user whose session made the request"""
    approval_id: Optional[str]
    """The approval that the request waits for, or after which it was carried out"""
    approved_by: Optional[str]
    """The user who approved the request"""
    ip: Optional[str]
    """The IP address of the request"""
    created_at: str
    """When it was received"""


class Automation(TypedDict):
    """An automation"""

    id: str
    """The automation's id (`aut_…`)"""
    name: str
    """The name"""
    status: AutomationStatus
    """The status"""
    version: int
    """The version that new runs follow"""
    trigger: AutomationTrigger
    steps: List[AutomationStep]
    """The steps of a run, in order"""
    counts: AutomationCounts
    """Number of runs by status"""
    created_at: str
    """When it was created"""
    updated_at: str
    """When it was last changed"""
    activated_at: Optional[str]
    """When it was last activated"""


class AutomationCompletedData(TypedDict, total=False):
    """`data` of `automation.completed`."""

    event_id: str
    """The event's id (`evt_…`), the same in every delivery: use it to recognise repetitions"""
    automation_id: str
    """The automation"""
    automation_name: str
    """The automation's name when the run started"""
    run_id: str
    """The run (`run_…`)"""
    status: str
    """The run's status: `running`, `completed` or `failed`"""
    event_name: str
    """The event's name"""
    source_event_id: str
    """The event that started the run (`ae_…`, `evt_…`)"""
    user_id: str
    """The person's `user_id` in the product"""
    email: str
    """The person's email address"""
    step_index: Optional[int]
    step_type: Optional[str]
    error: Optional[str]
    ended_by: str
    """How the run completed"""
    started_at: str
    """When the run was created"""
    completed_at: str
    """When it ended"""


class AutomationCondition(TypedDict, total=False):
    """Comparisons of which all or any must be true"""

    all: Optional[List[ConditionTerm]]
    """All must be true"""
    any: Optional[List[ConditionTerm]]
    """At least one must be true"""


class AutomationCounts(TypedDict):
    """Number of runs by status"""

    running: int
    """Runs that execute a step"""
    waiting: int
    """Runs that wait for a time or an event"""
    completed: int
    """Runs that completed"""
    failed: int
    """Runs that failed"""
    cancelled: int
    """Runs that were cancelled"""


class AutomationFailedData(TypedDict, total=False):
    """`data` of `automation.failed`."""

    event_id: str
    """The event's id (`evt_…`), the same in every delivery: use it to recognise repetitions"""
    automation_id: str
    """The automation"""
    automation_name: str
    """The automation's name when the run started"""
    run_id: str
    """The run (`run_…`)"""
    status: str
    """The run's status: `running`, `completed` or `failed`"""
    event_name: str
    """The event's name"""
    source_event_id: str
    """The event that started the run (`ae_…`, `evt_…`)"""
    user_id: str
    """The person's `user_id` in the product"""
    email: str
    """The person's email address"""
    step_index: int
    """The step that the event is about, counted from 0; null if it is about none"""
    step_type: str
    """The type of that step, for example `send_email`"""
    error: str
    """The error, if it failed"""
    ended_by: Optional[str]
    started_at: str
    """When the run was created"""
    completed_at: str
    """When it ended"""


class AutomationReplay(TypedDict):
    """The result of a replay"""

    totals: AutomationReplayTotals
    """Sums of all replayed events"""
    events: List[AutomationReplayEvent]
    """The events, newest first"""
    complete: bool
    """Whether all requested events were replayed; false if time ran out"""


class AutomationReplayEvent(TypedDict):
    """A past event, and what the steps would do with it"""

    event_id: str
    """The event's id (`ae_…`)"""
    created_at: str
    """When it was received"""
    user_id: Optional[str]
    """The person's user id"""
    email: Optional[str]
    """The person's email address"""
    effect: AutomationReplayEventEffect
    """`run`: it starts a run; `filtered`: the trigger's filter excludes it; `repeated`: an earlier event had already
    started the person's only run"""
    messages: List[AutomationReplayEventMessage]
    """The messages that would be sent or suppressed, in order"""
    status: Optional[AutomationRunStatus]
    """`completed` or `failed`; null without a run"""
    ended_by: Optional[AutomationRunEndedBy]
    """How the run would complete"""
    last_step_index: Optional[int]
    """The position of its last step, from 0"""
    error: Optional[str]
    """Why it would fail"""
    past_run: Optional[AutomationReplayEventPastRun]
    """The run that the event started then, if it is among the newest 2,000 runs"""


class AutomationReplayEventMessage(TypedDict):
    """A message that would be sent, unless it is suppressed"""

    step_index: int
    """The position of its step, from 0"""
    type: AutomationRunStepType
    """The step type"""
    text: str
    """The email's subject, or the beginning of the text message"""
    suppressed: bool
    """Whether its recipients are suppressed or have opted out, so that it would not be sent"""


class AutomationReplayEventPastRun(TypedDict):
    """The run that the event started then"""

    id: str
    """The run's id (`run_…`)"""
    automation_version: int
    """The version that it followed"""
    status: AutomationRunStatus
    """Its status"""
    messages_sent: int
    """Emails and text messages that it has sent"""


class AutomationReplayTotals(TypedDict):
    """Sums of all replayed events"""

    events: int
    """Replayed events"""
    runs: int
    """Events that start a run"""
    reached: int
    """Events for which a message would be sent"""
    messages: int
    """Messages that would be sent"""
    suppressed: int
    """Messages that would not be sent, because their recipients are suppressed or have opted out"""
    failed: int
    """Runs that would fail"""
    past_runs: int
    """Events that started a run then"""
    past_messages: int
    """Messages that these runs have sent"""


class AutomationRun(TypedDict):
    """A run: one person's execution of an automation"""

    id: str
    """The run's id (`run_…`)"""
    automation_id: str
    """The automation"""
    automation_version: int
    """The version of the automation"""
    status: AutomationRunStatus
    """The status"""
    mode: AutomationRunMode
    """Whether the run is live or a test"""
    event_id: str
    """The event that started it (`ae_…`, `evt_…`)"""
    event_name: str
    """The event's name"""
    user_id: Optional[str]
    """The person's `user_id` in the product"""
    email: Optional[str]
    """The person's email address"""
    current_step_index: int
    """The current step"""
    steps: List[AutomationRunStep]
    """All steps, in order"""
    wait: Optional[AutomationRunWait]
    """The current wait"""
    ended_by: Optional[AutomationRunEndedBy]
    """How the run completed"""
    cancelled_by: Optional[AutomationRunCancelledBy]
    """The cause of the cancellation"""
    error: Optional[str]
    """The error, if it failed"""
    created_at: str
    """When it was created"""
    started_at: Optional[str]
    """When the first step started"""
    completed_at: Optional[str]
    """When it ended"""


class AutomationRunStep(TypedDict):
    """A step of a run"""

    index: int
    """The position, from 0"""
    key: Optional[str]
    """The step's key"""
    type: AutomationRunStepType
    """The step type"""
    status: AutomationRunStepStatus
    """The status"""
    output: Optional[Dict[str, Any]]
    """The result: `email_id`, or `withheld` with the reason why no reply was sent"""
    error: Optional[str]
    """The error, if the step failed"""
    started_at: Optional[str]
    """When it started"""
    completed_at: Optional[str]
    """When it ended"""


class AutomationRunWait(TypedDict):
    """The current wait"""

    event: Optional[str]
    """The awaited event; null if the run waits for a time only"""
    until: str
    """End of the wait"""


class AutomationStartedData(TypedDict, total=False):
    """`data` of `automation.started`."""

    event_id: str
    """The event's id (`evt_…`), the same in every delivery: use it to recognise repetitions"""
    automation_id: str
    """The automation"""
    automation_name: str
    """The automation's name when the run started"""
    run_id: str
    """The run (`run_…`)"""
    status: str
    """The run's status: `running`, `completed` or `failed`"""
    event_name: str
    """The event's name"""
    source_event_id: str
    """The event that started the run (`ae_…`, `evt_…`)"""
    user_id: str
    """The person's `user_id` in the product"""
    email: str
    """The person's email address"""
    step_index: Optional[int]
    step_type: Optional[str]
    error: Optional[str]
    ended_by: Optional[str]
    started_at: str
    """When the run was created"""
    completed_at: Optional[str]


class _AutomationStepRequired(TypedDict):
    type: AutomationRunStepType
    """The step type"""


class AutomationStep(_AutomationStepRequired, total=False):
    """A step; its other fields depend on its type"""

    key: Optional[str]
    """Key by which other steps refer to this step"""
    name: Optional[str]
    """The name"""


class AutomationStepCompletedData(TypedDict, total=False):
    """`data` of `automation.step_completed`."""

    event_id: str
    """The event's id (`evt_…`), the same in every delivery: use it to recognise repetitions"""
    automation_id: str
    """The automation"""
    automation_name: str
    """The automation's name when the run started"""
    run_id: str
    """The run (`run_…`)"""
    status: str
    """The run's status: `running`, `completed` or `failed`"""
    event_name: str
    """The event's name"""
    step_index: int
    """The step that the event is about, counted from 0; null if it is about none"""
    step_type: str
    """The type of that step, for example `send_email`"""
    error: Optional[str]
    output: StepOutput
    """What the step produced"""


class AutomationStepCounts(TypedDict):
    """The runs of a version by step"""

    version: int
    """The version"""
    steps: List[AutomationStepCountsStep]
    """The steps, in order"""
    runs: int
    """Runs of the version that were counted: those among the newest 1,000 runs of the automation"""
    has_more: bool
    """Whether there are older runs"""
    has_more_waiting: bool
    """Whether there are more waiting runs than the 1,000 that were counted"""


class AutomationStepCountsStep(TypedDict):
    """The runs at one step"""

    index: int
    """The position, from 0"""
    waiting: int
    """Runs that wait at the step or execute it"""
    passed: int
    """Runs that completed the step and continued, or ended after the last one"""
    failed: int
    """Runs that failed at the step"""
    ended: int
    """Runs that completed at the step although others follow: a condition was false, or a wait ended the run"""
    cancelled: int
    """Runs that were cancelled at the step"""


class _AutomationTriggerRequired(TypedDict):
    event: str
    """The event name: your own (`user.created`) or the service's (`email.opened`)"""


class AutomationTrigger(_AutomationTriggerRequired, total=False):
    """The trigger that starts a run"""

    filter: Optional[AutomationCondition]
    cancel_on_events: Optional[List[str]]
    """Events that cancel the person's runs"""
    reentry: Optional[Reentry]
    """Whether a person can have several runs"""
    include_machine: Optional[bool]
    """Whether opens and clicks by machines trigger as well"""


class AutomationVersion(TypedDict):
    """A version"""

    version: int
    """1, 2, 3 …"""
    trigger: AutomationTrigger
    steps: List[AutomationStep]
    """The steps of a run, in order"""
    created_at: str
    """When it was created"""


_BatchItemRequired = TypedDict(
    "_BatchItemRequired",
    {
        "to": "Union[str, Sequence[str]]",
    },
)
_BatchItemOptional = TypedDict(
    "_BatchItemOptional",
    {
        "from": "Optional[Union[str, EmailAddress]]",
        "cc": "Optional[Union[str, Sequence[str]]]",
        "bcc": "Optional[Union[str, Sequence[str]]]",
        "reply_to": "Optional[Union[str, Sequence[str]]]",
        "subject": "Optional[str]",
        "html": "Optional[str]",
        "text": "Optional[str]",
        "headers": "Optional[Mapping[str, str]]",
        "tags": "Optional[Union[Sequence[EmailTag], Mapping[str, str]]]",
        "category": "Optional[EmailCategory]",
        "scheduled_at": "Optional[Union[str, datetime.datetime]]",
        "expires_in": "Optional[int]",
        "on_suppressed": "Optional[OnSuppressed]",
        "unsubscribe": "Optional[bool]",
        "template": "Optional[Union[str, EmailTemplate]]",
        "variables": "Optional[Mapping[str, Any]]",
        "idempotency_key": "Optional[str]",
    },
    total=False,
)


class BatchItem(_BatchItemRequired, _BatchItemOptional):
    """An email to send. Without `template`, `from`, `subject`, and `html` or `text` are required

    from: The author: `Ada <ada@example.com>`; its domain must be verified
    to: Recipients
    cc: Recipients of a copy
    bcc: Recipients of a blind copy
    reply_to: Addresses for replies (also `replyTo`)
    subject: The subject
    html: The HTML body (also `htmlBody`, `html_body`)
    text: The plain-text body (also `textBody`, `text_body`, `plain_body`)
    headers: Custom headers; headers that control transport are rejected
    tags: Stored with the email and sent along with its events
    category: The category
    scheduled_at: When to send the email; attachments are not supported (also `scheduledAt`)
    expires_in: Lifetime in seconds: the email is sent with priority and fails after this time
    on_suppressed: If some recipients are suppressed: `skip` sends to the others, `fail` rejects the email
    unsubscribe: Managed unsubscribe (RFC 8058)
    template: A published template: its alias, its id (`tpl_…`), or an object. It provides the bodies, and the
        subject, author, reply addresses and category if they are omitted (also `template_id`, `templateId`,
        `template_alias`, `templateAlias`)
    variables: The template's variables by name (also `template_data`, `templateData`, `data_variables`,
        `dataVariables`, `dynamic_template_data`)
    idempotency_key: Idempotency key of this email: for 24 hours the same email with the same key, in any batch,
        is not sent again and gets the same entry (also `idempotencyKey`)
    """


class _BatchResultRequired(TypedDict):
    index: int
    """The position in the batch, from 0"""
    id: Optional[str]
    """The email's id (`msg_…`)"""
    status: BatchResultStatus
    """Whether it was accepted"""


class BatchResult(_BatchResultRequired, total=False):
    """The result of one email"""

    warnings: List[str]
    """Warnings, for example about ignored fields"""
    replayed: bool
    """Whether the email was sent before with its own `idempotency_key`"""
    error: BatchResultError
    """The error, if the email was not accepted"""


class _BatchResultErrorRequired(TypedDict):
    message: str
    """Message for people"""
    code: str
    """Code for programs, as in responses to single requests"""


class BatchResultError(_BatchResultErrorRequired, total=False):
    """The error, if the email was not accepted"""

    details: Dict[str, Any]
    """Details of the error"""
    upgrade_url: str
    """The page to upgrade the account"""


class CancelAutomationRunResponse(TypedDict):
    """A response with a run"""

    run: AutomationRun


class CancelEmailResponse(TypedDict):
    """A response with an email"""

    email: EmailDetail


class CategoryOptOut(TypedDict):
    """An address that has opted out of a category"""

    id: str
    """`opt_…`"""
    email: str
    """The email address in lower case"""
    category: CategoryOptOutCategory
    """The category"""
    category_label: str
    """The name"""
    source: SuppressionSource
    """The source"""
    email_id: Optional[str]
    """The email that caused it"""
    created_at: str
    """When it was created"""


class CategoryOptOutList(TypedDict):
    """A page of the list"""

    category_opt_outs: List[CategoryOptOut]
    """The entries, newest first"""
    has_more: bool
    """Whether there are more"""
    next_cursor: Optional[str]
    """The `cursor` of the next page"""


class CheckSuppressionsParams(TypedDict):
    """Params of `suppressions.check`."""

    emails: Sequence[str]


class _CheckSuppressionsResponseRequired(TypedDict):
    data: List[SuppressionCheck]
    """An entry for each address, in the order of the request"""


class CheckSuppressionsResponse(_CheckSuppressionsResponseRequired, total=False):
    """The results"""

    warnings: List[str]
    """Warnings, for example about ignored fields"""


_ClientPolicyRequired = TypedDict(
    "_ClientPolicyRequired",
    {
        "recipients": "List[str]",
        "from": "Optional[str]",
        "sends_per_day": "Optional[int]",
        "categories": "List[EmailCategory]",
        "approve": "List[ApprovalKind]",
    },
)
_ClientPolicyOptional = TypedDict(
    "_ClientPolicyOptional",
    {
    },
    total=False,
)


class ClientPolicy(_ClientPolicyRequired, _ClientPolicyOptional):
    """What a client may do below its scope

    recipients: The recipients that it may send to; empty allows all
    from: The only sender address
    sends_per_day: Maximum number of recipients per day (UTC)
    categories: The categories of email that it may send; empty allows all
    approve: The kinds of operations that wait for a person's approval
    """


_ClientPolicyRequestRequired = TypedDict(
    "_ClientPolicyRequestRequired",
    {
    },
)
_ClientPolicyRequestOptional = TypedDict(
    "_ClientPolicyRequestOptional",
    {
        "recipients": "Optional[Sequence[str]]",
        "from": "Optional[str]",
        "sends_per_day": "Optional[int]",
        "categories": "Optional[Sequence[EmailCategory]]",
        "approve": "Optional[Sequence[ApprovalKind]]",
    },
    total=False,
)


class ClientPolicyRequest(_ClientPolicyRequestRequired, _ClientPolicyRequestOptional):
    """The rules for the client below its scope

    recipients: The recipients that it may send to: addresses and patterns like `*@example.com`; empty allows
        all
    from: The only sender address
    sends_per_day: Maximum number of recipients per day (UTC)
    categories: The categories of email that it may send; empty allows all
    approve: The kinds of operations that wait for a person's approval
    """


class CommissionCreatedData(TypedDict, total=False):
    """`data` of `commission.created`."""

    event_id: str
    """The event's id (`evt_…`), the same in every delivery: use it to recognise repetitions"""
    commission: AffiliateCommission
    """The commission after the change"""
    program_id: str
    """The affiliate program (`prog_…`)"""
    affiliate_id: str
    """The partner (`aff_…`)"""


class CommissionEarnedData(TypedDict, total=False):
    """`data` of `commission.earned`."""

    event_id: str
    """The event's id (`evt_…`), the same in every delivery: use it to recognise repetitions"""
    commission: AffiliateCommission
    """The commission after the change"""
    program_id: str
    """The affiliate program (`prog_…`)"""
    affiliate_id: str
    """The partner (`aff_…`)"""


class CommissionOverride(TypedDict):
    """The partner's own rate; takes precedence over the campaign's"""

    commission_type: Literal["percent"]
    commission_bps: int
    """The percentage of a sale in basis points"""


class CommissionPaidData(TypedDict, total=False):
    """`data` of `commission.paid`."""

    event_id: str
    """The event's id (`evt_…`), the same in every delivery: use it to recognise repetitions"""
    commission: AffiliateCommission
    """The commission after the change"""
    payout_id: str
    """The payout that paid it (`pay_…`)"""
    program_id: str
    """The affiliate program (`prog_…`)"""
    affiliate_id: str
    """The partner (`aff_…`)"""


class CommissionReversedData(TypedDict, total=False):
    """`data` of `commission.reversed`."""

    event_id: str
    """The event's id (`evt_…`), the same in every delivery: use it to recognise repetitions"""
    commission: AffiliateCommission
    """The commission after the change"""
    program_id: str
    """The affiliate program (`prog_…`)"""
    affiliate_id: str
    """The partner (`aff_…`)"""


class _ConditionTermRequired(TypedDict):
    field: str
    """The field to compare: `event.data.plan`, `event.email`, `wait.received`"""
    op: ConditionOperator
    """The comparison operator"""


class ConditionTerm(_ConditionTermRequired, total=False):
    """A comparison"""

    value: Any
    """The value to compare with; may be a reference"""


class ConnectDns(TypedDict):
    """The page to redirect the customer to"""

    url: str
    """The page at the DNS provider where the domain's owner signs in and approves the records"""


class ContactUnsubscribedData(TypedDict, total=False):
    """`data` of `contact.unsubscribed`."""

    event_id: str
    """The event's id (`evt_…`), the same in every delivery: use it to recognise repetitions"""
    email_id: str
    """The email whose link or button was used (`msg_…`)"""
    email: str
    """The address that unsubscribed"""
    source: str
    """Always `recipient`"""
    scope: str
    """`all`: from all email that is not transactional; `category`: from one category"""
    category: str
    """The category, if `scope` is `category`"""
    category_label: str
    """The category's name, as the recipient sees it"""
    suppression_id: Optional[str]
    category_opt_out_id: str
    """The opt-out (`opt_…`), if `scope` is `category`"""


class Conversion(TypedDict):
    """A sign-up or subscription; recorded once per `subject_id`"""

    event_id: str
    """The first event that reported it (`ae_…`)"""
    kind: ConversionKind
    """The value of the dimension"""
    subject_id: str
    """The id of the user or subscription"""
    user_id: Optional[str]
    """The person's user id in your product"""
    email: Optional[str]
    """The person's email address"""
    visitor_id: Optional[str]
    """The cookie `stx_vid`"""
    source: Optional[str]
    """The measured source of the first visit"""
    came_from: Optional[str]
    """The source as named by the event"""
    signup_method: Optional[str]
    """The sign-up method"""
    gclid: Optional[str]
    """The Google Ads click id that gets the credit"""
    gbraid: Optional[str]
    """The `gbraid` click id of an app campaign"""
    wbraid: Optional[str]
    """The `wbraid` click id of an app campaign"""
    value: Optional[float]
    """The value"""
    currency: Optional[str]
    """The currency of the value"""
    occurred_at: str
    """When it happened"""


class ConversionList(TypedDict):
    """A page of the list"""

    conversions: List[Conversion]
    """The entries, newest first"""
    has_more: bool
    """Whether there are more"""
    next_cursor: Optional[str]
    """The `cursor` of the next page"""


class CountAutomationStepsParams(TypedDict, total=False):
    """Params of `automations.stepCounts`."""

    version: int
    """The version whose steps are counted; the current one if omitted"""


class CountAutomationStepsResponse(TypedDict):
    """A response with the counts"""

    step_counts: AutomationStepCounts


_CountEventsParamsRequired = TypedDict(
    "_CountEventsParamsRequired",
    {
    },
)
_CountEventsParamsOptional = TypedDict(
    "_CountEventsParamsOptional",
    {
        "name": "Union[str, Sequence[str]]",
        "from": "str",
        "to": "str",
        "granularity": "Granularity",
    },
    total=False,
)


class CountEventsParams(_CountEventsParamsRequired, _CountEventsParamsOptional):
    """Params of `events.counts`.

    name: Filter by event names, separated by commas; all if omitted. `visit` counts visits. At most 1,000 names
        per account are counted separately, the others as `(other)`
    from: Start: a timestamp, or a date in UTC. The first period is the one that contains it. Default: 30 days
        before `to` (with `hour`: one day)
    to: End, exclusive. Default: now, including the current period
    granularity: Length of a period: at most 92 days with `hour`, three years with `day`. Hours and days are in
        UTC; counts are stored for two years
    """


_CountVisitsParamsRequired = TypedDict(
    "_CountVisitsParamsRequired",
    {
    },
)
_CountVisitsParamsOptional = TypedDict(
    "_CountVisitsParamsOptional",
    {
        "from": "str",
        "to": "str",
    },
    total=False,
)


class CountVisitsParams(_CountVisitsParamsRequired, _CountVisitsParamsOptional):
    """Params of `visits.counts`.

    from: Start: a timestamp, or a date in UTC. The first day is the one that contains it. Default: 30 days
        before `to`
    to: End, exclusive. Default: now, including today
    """


class _CreateAffiliateCampaignParamsRequired(TypedDict):
    name: str
    """The unique name of the campaign"""


class CreateAffiliateCampaignParams(_CreateAffiliateCampaignParamsRequired, total=False):
    """Params of `affiliateCampaigns.create`."""

    visibility: Optional[AffiliateCampaignVisibility]
    """The people who can see the campaign; defaults to `public`"""
    auto_approve: Optional[bool]
    """Whether partners who apply with the program's form are approved automatically; defaults to false"""
    commission_type: Optional[AffiliateCampaignCommissionType]
    """The rate that applies; defaults to `percent`"""
    commission_bps: Optional[int]
    """The percentage of a sale in basis points, with `percent`"""
    commission_flat_cents: Optional[int]
    """The amount per sale in minor units, with `flat`"""
    commission_duration: Optional[AffiliateCampaignCommissionDuration]
    """Whether the first sale or all sales earn a commission; defaults to `recurring`"""
    recurring_months: Optional[int]
    """For how many months sales earn a commission; null is unlimited"""
    max_commission_cents: Optional[int]
    """Maximum commission per sale"""
    tiers: Optional[Sequence[AffiliateCampaignTier]]
    """Rates by number of paying customers"""
    product_rates: Optional[Sequence[CreateAffiliateCampaignProductRate]]
    """Rates of products and prices"""
    second_tier_bps: Optional[int]
    """The recruiting partner's percentage of the same sale in basis points; defaults to 0"""
    lead_bounty_cents: Optional[int]
    """The amount per lead in minor units; defaults to 0"""
    cookie_days: Optional[int]
    """For how many days a visit is credited to the partner"""
    hold_days: Optional[int]
    """For how many days a commission is held for refunds"""
    archived_at: Optional[Union[str, datetime.datetime]]
    """When the campaign was archived and stopped accepting partners; null restores it"""
    make_default: Optional[bool]
    """Whether it becomes the default campaign"""


class _CreateAffiliateCampaignProductRateRequired(TypedDict):
    product_id: str
    """The payment processor's product id"""
    commission_type: AffiliateCampaignProductRateCommissionType
    """The rate that applies; `none` earns nothing"""


class CreateAffiliateCampaignProductRate(_CreateAffiliateCampaignProductRateRequired, total=False):
    """The rate of a product or of one of its prices"""

    price_id: Optional[str]
    """The payment processor's price id; null applies to all prices of the product"""
    commission_bps: int
    """The percentage in basis points, with `percent`"""
    commission_flat_cents: int
    """The amount in minor units, with `flat`"""
    label: Optional[str]
    """A label for your own use"""


class _CreateAffiliateCampaignResponseRequired(TypedDict):
    campaign: AffiliateCampaign


class CreateAffiliateCampaignResponse(_CreateAffiliateCampaignResponseRequired, total=False):
    """A response with a single object"""

    warnings: List[str]
    """Warnings, for example about ignored fields"""


class _CreateAffiliateLinkParamsRequired(TypedDict):
    token: str
    """The token of the link; it is not changed"""


class CreateAffiliateLinkParams(_CreateAffiliateLinkParamsRequired, total=False):
    """Params of `affiliates.links.create`."""

    destination_url: Optional[str]
    """The destination: a path or a URL on the website"""
    label: Optional[str]
    """A label for your own use"""


class _CreateAffiliateLinkResponseRequired(TypedDict):
    link: AffiliateLink


class CreateAffiliateLinkResponse(_CreateAffiliateLinkResponseRequired, total=False):
    """A response with a single object"""

    warnings: List[str]
    """Warnings, for example about ignored fields"""


class _CreateAffiliateLoginLinkResponseRequired(TypedDict):
    object: Literal["affiliate_login_link"]
    """The object type"""
    url: str
    """The URL to redirect the browser to; it works once"""
    expires_at: str
    """When the link expires: one minute after its creation"""


class CreateAffiliateLoginLinkResponse(_CreateAffiliateLoginLinkResponseRequired, total=False):
    """A link that signs a partner in to the portal; redirect the partner's browser to it at once"""

    warnings: List[str]
    """Warnings, for example about ignored fields"""


class _CreateAffiliateParamsRequired(TypedDict):
    email: str
    """The person's email address"""


class CreateAffiliateParams(_CreateAffiliateParamsRequired, total=False):
    """Params of `affiliates.create`."""

    first_name: Optional[str]
    """The given name"""
    last_name: Optional[str]
    """The family name"""
    company: Optional[str]
    """The company"""
    website: Optional[str]
    """The website; `https://` is optional"""
    country: Optional[str]
    """Two letters (ISO 3166-1)"""
    campaign_id: Optional[str]
    """The campaign, by id (`cmp_…`) or name"""
    tags: Optional[Sequence[str]]
    """Tags for the owner's use"""
    notes: Optional[str]
    """Private notes"""
    token: Optional[str]
    """The token of the partner's link; derived from the name if omitted"""
    status: Optional[CreateAffiliateStatus]
    """The initial status; defaults to `active`"""
    paypal_email: Optional[str]
    """The address for PayPal payouts"""
    send_invite: Optional[bool]
    """Whether to notify the partner by email; defaults to true"""


class _CreateAffiliateReferralParamsRequired(TypedDict):
    email: str
    """The person's email address"""


class CreateAffiliateReferralParams(_CreateAffiliateReferralParamsRequired, total=False):
    """Params of `affiliateReferrals.create`."""

    affiliate_id: Optional[str]
    """The partner's id (`aff_…`); either this or `token` is required"""
    token: Optional[str]
    """The token of a link of the partner"""
    processor_customer_id: Optional[str]
    """The payment processor's customer id; assigns later payments to the referral"""
    sub_id: Optional[str]
    """A tag for the partner's reports"""


class _CreateAffiliateReferralResponseRequired(TypedDict):
    referral: AffiliateReferral
    created: bool
    """Whether the request created the referral; false if the person was referred before"""


class CreateAffiliateReferralResponse(_CreateAffiliateReferralResponseRequired, total=False):
    """A created or existing referral"""

    warnings: List[str]
    """Warnings, for example about ignored fields"""


class _CreateAffiliateResponseRequired(TypedDict):
    affiliate: Affiliate


class CreateAffiliateResponse(_CreateAffiliateResponseRequired, total=False):
    """A response with a single object"""

    warnings: List[str]
    """Warnings, for example about ignored fields"""


class _CreateApiKeyParamsRequired(TypedDict):
    name: str
    """The name"""
    scope: ApiKeyScope
    """The scope"""


class CreateApiKeyParams(_CreateApiKeyParamsRequired, total=False):
    """Params of `apiKeys.create`."""

    domain_id: Optional[str]
    """The only domain (`dom_…`) that the credential may send from; null allows all"""
    allowed_ips: Optional[Sequence[str]]
    """Addresses and networks that may use the credential; empty allows all"""
    expires_at: Optional[Union[str, datetime.datetime]]
    """When the credential expires"""
    policy: Optional[ClientPolicyRequest]
    """The rules for the client below its scope"""


class _CreateApiKeyResponseRequired(TypedDict):
    api_key: ApiKey
    secret: str
    """The secret; shown only in this response"""


class CreateApiKeyResponse(_CreateApiKeyResponseRequired, total=False):
    """API key"""

    warnings: List[str]
    """Warnings, for example about ignored fields"""


class CreateAutomationParams(TypedDict):
    """Params of `automations.create`."""

    name: str
    """The name"""
    trigger: AutomationTrigger
    steps: Sequence[Union[AutomationStep, Mapping[str, Any]]]
    """The steps of a run, in order"""


class _CreateAutomationResponseRequired(TypedDict):
    automation: Automation


class CreateAutomationResponse(_CreateAutomationResponseRequired, total=False):
    """A response with an automation"""

    warnings: List[str]
    """Warnings, for example about ignored fields"""


class CreateCategoryOptOutParams(TypedDict):
    """Params of `categoryOptOuts.create`."""

    email: str
    """The address"""
    category: CategoryOptOutCategory
    """The category"""


class _CreateCategoryOptOutResponseRequired(TypedDict):
    category_opt_out: CategoryOptOut


class CreateCategoryOptOutResponse(_CreateCategoryOptOutResponseRequired, total=False):
    """An opt-out"""

    warnings: List[str]
    """Warnings, for example about ignored fields"""


class CreateDomainClaimParams(TypedDict):
    """Params of `domains.claims.create`."""

    name: str
    """The domain"""


class _CreateDomainClaimResponseRequired(TypedDict):
    claim: DomainClaim


class CreateDomainClaimResponse(_CreateDomainClaimResponseRequired, total=False):
    """A claim"""

    warnings: List[str]
    """Warnings, for example about ignored fields"""


class _CreateDomainParamsRequired(TypedDict):
    name: str
    """The domain, like `example.com` or a subdomain, `mail.example.com`"""


class CreateDomainParams(_CreateDomainParamsRequired, total=False):
    """Params of `domains.create`."""

    open_tracking: Optional[bool]
    """Whether opens are tracked by a pixel in the HTML"""
    click_tracking: Optional[bool]
    """Whether links in the HTML are rewritten to track clicks"""
    tls_mode: Optional[TlsMode]
    """`opportunistic`: TLS if the remote host offers it; `enforced`: never without TLS"""
    inbound_enabled: Optional[bool]
    """Whether mail to the domain is received"""
    inbound_addresses: Optional[Sequence[str]]
    """Addresses that receive mail: `support@example.com`, sub-addresses (`support+*@example.com`) or all
    (`*@example.com`); empty means all. `postmaster` always receives mail"""
    tracking_host: Optional[str]
    """Your own host for tracking links; null uses the service's host"""
    dkim_selector: Optional[str]
    """The selector of the RSA key; generated if omitted"""
    dkim_private_key: Optional[str]
    """An existing RSA key of 2,048 to 4,096 bits in PEM; a new key is generated if omitted"""


class _CreateDomainResponseRequired(TypedDict):
    domain: Domain


class CreateDomainResponse(_CreateDomainResponseRequired, total=False):
    """A domain"""

    warnings: List[str]
    """Warnings, for example about ignored fields"""


class _CreateSmtpCredentialParamsRequired(TypedDict):
    name: str
    """The name"""


class CreateSmtpCredentialParams(_CreateSmtpCredentialParamsRequired, total=False):
    """Params of `smtpCredentials.create`."""

    domain_id: Optional[str]
    """The only domain (`dom_…`) that the credential may send from; null allows all"""
    allowed_ips: Optional[Sequence[str]]
    """Addresses and networks that may use the credential; empty allows all"""
    expires_at: Optional[Union[str, datetime.datetime]]
    """When the credential expires"""
    policy: Optional[ClientPolicyRequest]
    """The rules for the client below its scope"""


class _CreateSmtpCredentialResponseRequired(TypedDict):
    smtp_credential: SmtpCredential
    password: str
    """The secret; shown only in this response"""


class CreateSmtpCredentialResponse(_CreateSmtpCredentialResponseRequired, total=False):
    """SMTP credential"""

    warnings: List[str]
    """Warnings, for example about ignored fields"""


class CreateSuppressionParams(TypedDict, total=False):
    """Params of `suppressions.create`."""

    email: Optional[str]
    """An address, or `@domain.tld`"""
    emails: Optional[Sequence[str]]
    """Several addresses or domains"""
    note: Optional[str]
    """Free text"""
    expires_at: Optional[Union[str, datetime.datetime]]
    """Expiry; never if omitted"""


class CreateSuppressionResponse(TypedDict, total=False):
    """CreateSuppressionResponse"""

    suppression: Suppression
    warnings: List[str]
    """Warnings, for example about ignored fields"""
    data: List[SuppressionResult]
    """An entry for each address, in the order of the request"""


_CreateTemplateParamsRequired = TypedDict(
    "_CreateTemplateParamsRequired",
    {
    },
)
_CreateTemplateParamsOptional = TypedDict(
    "_CreateTemplateParamsOptional",
    {
        "name": "Optional[str]",
        "alias": "Optional[str]",
        "category": "Optional[EmailCategory]",
        "unsubscribe_enabled": "Optional[bool]",
        "from": "Optional[Union[str, EmailAddress]]",
        "reply_to": "Optional[Union[str, Sequence[str]]]",
        "subject": "Optional[str]",
        "preheader": "Optional[str]",
        "html": "Optional[str]",
        "mjml": "Optional[str]",
        "text": "Optional[str]",
        "variables": "Optional[Sequence[TemplateVariable]]",
    },
    total=False,
)


class CreateTemplateParams(_CreateTemplateParamsRequired, _CreateTemplateParamsOptional):
    """Params of `templates.create`.

    name: Name, unique in the account
    alias: Name for API calls, unique in the account
    category: Category
    unsubscribe_enabled: Managed unsubscribe; always on for product and newsletter
    from: Default author, unless the send request has one: `Ada <ada@example.com>` or an object
    reply_to: Default `Reply-To`, unless the send request has one
    subject: Markup of the subject
    preheader: Markup of the preview text after the subject
    html: Markup of the HTML body
    mjml: MJML source of the HTML body, in place of `html`, which is compiled from it. Null removes the source
        and keeps the compiled `html`; a new `html` removes the source
    text: Markup of the plain-text body
    variables: Declared variables; undeclared ones are required
    """


class _CreateTemplateResponseRequired(TypedDict):
    template: Template


class CreateTemplateResponse(_CreateTemplateResponseRequired, total=False):
    """A template"""

    warnings: List[str]
    """Warnings about ignored fields"""


class _CreateWebhookParamsRequired(TypedDict):
    url: str
    """URL for deliveries: https, at a public address"""


class CreateWebhookParams(_CreateWebhookParamsRequired, total=False):
    """Params of `webhooks.create`."""

    events: Optional[Sequence[WebhookEventType]]
    """The events to send; empty: all except email.cancelled, domain.verified, domain.degraded, suppression.created,
    suppression.deleted, webhook.disabled, which must be named"""
    enabled: Optional[bool]
    """Whether events are sent; default: true"""
    description: Optional[str]
    """Your description"""
    domain_ids: Optional[Sequence[str]]
    """Only events of these domains (`dom_…`) are sent; empty: all"""
    inbound_addresses: Optional[Sequence[str]]
    """Only mail received for these addresses is sent: an address (`support@example.com`), its sub-addresses
    (`support+*@example.com`) or a whole domain (`*@example.com`); empty: all received mail. Other events are not
    affected"""
    retry_policy: Optional[WebhookRetryPolicy]
    """`default`: five attempts within five minutes; `extended`: eight within 28 hours"""


class _CreateWebhookResponseRequired(TypedDict):
    webhook: Webhook
    secret: str
    """Signing secret (`whsec_…`); it is not shown again"""


class CreateWebhookResponse(_CreateWebhookResponseRequired, total=False):
    """An endpoint and its secret"""

    warnings: List[str]
    """Warnings, for example about ignored fields"""


class DeleteDomainParams(TypedDict, total=False):
    """Params of `domains.delete`."""

    force: bool
    """Delete the domain even if emails from it are scheduled"""


class DeleteSuppressionParams(TypedDict, total=False):
    """Params of `suppressions.delete`."""

    force: bool
    """Also delete a suppression caused by a complaint"""


class DeleteSuppressionResponse(TypedDict):
    """The suppression was deleted"""

    ok: bool
    id: str
    """Its id"""


class DeliveryTime(TypedDict):
    """How long deliveries took, from the queue to the recipient's mail host. Times are exact to about 20 %, and those
    below 0.1 seconds count as 0.05"""

    measured: int
    """Measured deliveries: all since the release that introduced the measurement"""
    p50_seconds: Optional[float]
    """Half of the measured deliveries took at most about this many seconds; null without any"""
    p99_seconds: Optional[float]
    """99 of 100 measured deliveries took at most about this many seconds; null without any"""


class DnsChange(TypedDict):
    """The change of one record"""

    action: DnsChangeAction
    """The action"""
    outcome: DnsChangeOutcome
    """The result"""
    record: DomainRecord
    replaces: Optional[str]
    """The value that is replaced"""
    reason: Optional[str]
    """The reason; for a conflict, how to resolve it"""


class Domain(TypedDict):
    """A sending domain"""

    id: str
    """`dom_…`"""
    name: str
    """The name"""
    status: DomainStatus
    """Whether email can be sent from the domain"""
    inbound_enabled: bool
    """Whether mail to the domain is received"""
    inbound_addresses: List[str]
    """Addresses that receive mail; empty means all (catch-all)"""
    open_tracking: bool
    """Whether opens are tracked by a pixel in the HTML"""
    click_tracking: bool
    """Whether links in the HTML are rewritten to track clicks"""
    tls_mode: TlsMode
    """`opportunistic`: TLS if the remote host offers it; `enforced`: never without TLS"""
    tracking_host: Optional[str]
    """Your own host for tracking links; null uses the service's host"""
    dkim: DomainDkim
    """The DKIM keys of the domain"""
    dkim_ready: bool
    """Whether the service can sign for the domain"""
    records: List[DomainRecord]
    """The records to publish, the required ones first"""
    degraded_since: Optional[str]
    """Since when a required record is missing; after 72 hours the domain becomes unverified"""
    verified_at: Optional[str]
    """When the domain was first verified"""
    last_checked_at: Optional[str]
    """When the DNS was last checked"""
    created_at: str
    """When the domain was added"""
    updated_at: str
    """When it was last changed"""


class DomainClaim(TypedDict):
    """A claim to a domain of another account"""

    id: str
    """`clm_…`"""
    name: str
    """The domain"""
    status: DomainClaimStatus
    """The status"""
    record: DomainRecord
    blocked_reason: Optional[DomainClaimBlockedReason]
    """The condition that the claim waits for"""
    grace_ends_at: Optional[str]
    """End of the other account's grace period"""
    created_at: str
    """When it was created"""
    expires_at: str
    """When the claim expires"""


class DomainClaimList(TypedDict):
    """A page of the list"""

    claims: List[DomainClaim]
    """The entries, newest first"""
    has_more: bool
    """Whether there are more"""
    next_cursor: Optional[str]
    """The `cursor` of the next page"""


class DomainDegradedData(TypedDict, total=False):
    """`data` of `domain.degraded`."""

    event_id: str
    """The event's id (`evt_…`), the same in every delivery: use it to recognise repetitions"""
    domain_id: str
    """The domain (`dom_…`)"""
    domain: str
    """The domain's name"""
    status: str
    """Whether email can be sent from the domain"""
    verified_at: str
    """When the domain was first verified"""
    degraded_since: str
    """Since when a required record is missing; after 72 hours the domain becomes unverified"""


class DomainDkim(TypedDict):
    """The DKIM keys of the domain"""

    selector: str
    """Selector of the RSA key; the Ed25519 key's selector appends an `e`"""
    key_bits: int
    """Size of the RSA key in bits"""
    pending_selector: Optional[str]
    """Selector of new keys; they sign as soon as their record is found"""
    former_selector: Optional[str]
    """Selector of the previous keys; keep their record until `former_until`"""
    former_until: Optional[str]
    """When the previous keys' record can be removed"""


class DomainDmarc(TypedDict):
    """A summary of DMARC reports"""

    domain: str
    """The domain"""
    policy: Optional[DomainDmarcPolicy]
    """The policy"""
    totals: DomainDmarcTotals
    """Totals of all sources"""
    sources: List[DomainDmarcSource]
    """Sources, most messages first"""
    reporters: List[DomainDmarcReporter]
    """Reporting organizations, most messages first"""
    days: List[DomainDmarcDay]
    """All days of the range"""


class DomainDmarcDay(TypedDict):
    """A UTC day"""

    date: str
    """Date"""
    sent: Optional[int]
    """Recipients of email that this service accepted"""
    reported: int
    """Messages in reports"""
    passed: int
    """Messages that passed"""
    failed: int
    """Messages that failed"""


class DomainDmarcPolicy(TypedDict):
    """The published policy, according to the latest report"""

    p: DmarcPolicy
    """The policy for mail that fails"""
    sp: Optional[DmarcPolicy]
    """The policy for subdomains, if it differs"""
    adkim: DmarcAlignment
    """DKIM alignment mode"""
    aspf: DmarcAlignment
    """SPF alignment mode"""


class DomainDmarcReporter(TypedDict):
    """A reporting organization"""

    domain: str
    """The domain that sent the reports"""
    name: str
    """The organization's name in its reports"""
    reports: int
    """Number of reports"""
    messages: int
    """Messages in these reports"""
    last_report_at: str
    """When the last report was received"""


class DomainDmarcSource(TypedDict):
    """Messages from one source address"""

    ip: Optional[str]
    """The source address; null for the sum of all others"""
    host: Optional[str]
    """The forward-confirmed host name; null if it was not found in time"""
    ours: bool
    """Whether this service sends from the address"""
    messages: int
    """Messages"""
    passed: int
    """Messages that passed DMARC, by aligned DKIM or SPF"""
    failed: int
    """Messages that failed"""
    dkim_aligned: int
    """Messages with aligned DKIM"""
    spf_aligned: int
    """Messages with aligned SPF"""
    quarantined: int
    """Messages quarantined by the policy"""
    rejected: int
    """Messages rejected by the policy"""


class DomainDmarcTotals(TypedDict):
    """Totals of all sources"""

    messages: int
    """Messages"""
    passed: int
    """Messages that passed DMARC, by aligned DKIM or SPF"""
    failed: int
    """Messages that failed"""
    dkim_aligned: int
    """Messages with aligned DKIM"""
    spf_aligned: int
    """Messages with aligned SPF"""
    quarantined: int
    """Messages quarantined by the policy"""
    rejected: int
    """Messages rejected by the policy"""


class DomainList(TypedDict):
    """A page of the list"""

    domains: List[Domain]
    """The entries, newest first"""
    has_more: bool
    """Whether there are more"""
    next_cursor: Optional[str]
    """The `cursor` of the next page"""


class DomainRecord(TypedDict):
    """A DNS record with the result of its last check"""

    purpose: DomainRecordPurpose
    """The purpose of the record"""
    type: DomainRecordType
    """The record type"""
    name: str
    """The fully qualified name"""
    value: str
    """The value to publish; for SPF, merged with the existing record"""
    ttl: int
    """The TTL in seconds"""
    priority: Optional[int]
    """The preference of an MX record"""
    required: bool
    """Whether the record is required for verification"""
    status: DomainRecordStatus
    """The result"""
    found: List[str]
    """Values found in the DNS"""
    error: Optional[str]
    """The problem and how to fix it"""
    checked_at: Optional[str]
    """When the record was last checked"""


class DomainVerifiedData(TypedDict, total=False):
    """`data` of `domain.verified`."""

    event_id: str
    """The event's id (`evt_…`), the same in every delivery: use it to recognise repetitions"""
    domain_id: str
    """The domain (`dom_…`)"""
    domain: str
    """The domain's name"""
    status: str
    """Whether email can be sent from the domain"""
    verified_at: str
    """When the domain was first verified"""
    degraded_since: Optional[str]


class Done(TypedDict):
    """The operation succeeded"""

    ok: bool


class DryRunAutomationParams(TypedDict, total=False):
    """Params of `automations.dryRun`."""

    trigger: Optional[AutomationTrigger]
    steps: Optional[Sequence[Union[AutomationStep, Mapping[str, Any]]]]
    """The steps; the stored ones if omitted"""
    user_id: Optional[str]
    """The person's user id in your product"""
    email: Optional[str]
    """The person's email address"""
    data: Optional[Mapping[str, Any]]
    """Event data, at most 65536 bytes and 32 levels. Automations receive it unchanged; credentials in it are stored as
    `REDACTED`. For sign-ups and subscriptions: `id`, `visitor_id`, `gclid`, `gbraid`, `wbraid` (or the cookie
    `rnl_ad`), `came_from`, `signup_method`, `invited`, `internal`, `value`, `currency`"""


class _DryRunAutomationResponseRequired(TypedDict):
    run: AutomationRun


class DryRunAutomationResponse(_DryRunAutomationResponseRequired, total=False):
    """A response with a run"""

    warnings: List[str]
    """Warnings, for example about ignored fields"""


class DryRunSuppressionImportParams(TypedDict):
    """Params of `suppressions.dryRunImport`."""

    csv: str
    """The list: CSV with a column of addresses, with or without a header line"""


class _DryRunSuppressionImportResponseRequired(TypedDict):
    dry_run: SuppressionImportForecast


class DryRunSuppressionImportResponse(_DryRunSuppressionImportResponseRequired, total=False):
    """A response with the result that an import would have"""

    warnings: List[str]
    """Warnings, for example about ignored fields"""


class DuplicateAutomationParams(TypedDict, total=False):
    """Params of `automations.duplicate`."""

    name: Optional[str]
    """The name; derived from the original's if absent"""


class _DuplicateAutomationResponseRequired(TypedDict):
    automation: Automation


class DuplicateAutomationResponse(_DuplicateAutomationResponseRequired, total=False):
    """A response with an automation"""

    warnings: List[str]
    """Warnings, for example about ignored fields"""


class DuplicateTemplateParams(TypedDict, total=False):
    """Params of `templates.duplicate`."""

    name: Optional[str]
    """Name; default: `… (copy)`"""
    alias: Optional[str]
    """Alias; none by default"""


class _DuplicateTemplateResponseRequired(TypedDict):
    template: Template


class DuplicateTemplateResponse(_DuplicateTemplateResponseRequired, total=False):
    """A template"""

    warnings: List[str]
    """Warnings about ignored fields"""


_EmailRequired = TypedDict(
    "_EmailRequired",
    {
        "id": "str",
        "from": "str",
        "to": "List[str]",
        "cc": "List[str]",
        "bcc": "List[str]",
        "reply_to": "List[str]",
        "subject": "str",
        "status": "EmailStatus",
        "last_event": "str",
        "bounce_reason": "Optional[str]",
        "tags": "List[EmailTag]",
        "confidential": "bool",
        "scheduled_at": "Optional[str]",
        "cancelled_at": "Optional[str]",
        "created_at": "str",
        "sent_at": "Optional[str]",
        "delivered_at": "Optional[str]",
        "bounced_at": "Optional[str]",
    },
)
_EmailOptional = TypedDict(
    "_EmailOptional",
    {
    },
    total=False,
)


class Email(_EmailRequired, _EmailOptional):
    """An email

    id: Its id (`msg_…`)
    from: The author
    to: Recipients
    cc: Recipients of a copy
    bcc: Recipients of a blind copy
    reply_to: Addresses for replies
    subject: The subject
    status: The status
    last_event: The latest event, like `email.delivered`
    bounce_reason: The response of the first server that rejected the email
    tags: The tags
    confidential: True if only the recipient may read the content, like that of a sign-in link: it cannot be
        resent
    scheduled_at: When the email is scheduled to be sent
    cancelled_at: When it was cancelled
    created_at: When it was accepted
    sent_at: When it entered the queue
    delivered_at: When it was delivered to the first recipient
    bounced_at: When the first recipient bounced
    """


class _EmailAddressRequired(TypedDict):
    email: str
    """The address"""


class EmailAddress(_EmailAddressRequired, total=False):
    """An address and a display name"""

    name: Optional[str]
    """The display name"""


class _EmailAttachmentRequired(TypedDict):
    name: str
    """The file name; not accepted: .exe, .bat, .cmd, .com, .scr, .js, .vbs, .dll"""
    data: Union[str, bytes]
    """The content in base64, at most 10 MB decoded"""


class EmailAttachment(_EmailAttachmentRequired, total=False):
    """A file"""

    content_type: str
    """The content type"""
    content_id: str
    """The Content-ID that `cid:` in the HTML refers to; makes the file inline"""


_EmailBounceRequired = TypedDict(
    "_EmailBounceRequired",
    {
    },
)
_EmailBounceOptional = TypedDict(
    "_EmailBounceOptional",
    {
        "type": "str",
        "category": "str",
        "smtp_code": "int",
        "enhanced_code": "str",
        "diagnostic": "str",
        "mx_host": "str",
        "async": "bool",
    },
    total=False,
)


class EmailBounce(_EmailBounceRequired, _EmailBounceOptional):
    """The refusal

    type: `hard`: the host refused permanently; `soft`: it kept refusing until the email expired
    category: `unknown_user`, `mailbox_full`, `inactive`, `domain_not_found`, `message_too_large` or
        `undetermined`; also `content_rejected`, `policy` or `reputation` if a report came after the delivery
    smtp_code: The reply's SMTP code
    enhanced_code: The reply's enhanced status code (RFC 3463), for example `5.1.1`
    diagnostic: The reply with its kind (RFC 3464 2.3.6), for example `smtp; 550 5.1.1 …`
    mx_host: The mail host that refused
    async: Whether the host first accepted the email and reported the failure later
    """


_EmailBouncedDataRequired = TypedDict(
    "_EmailBouncedDataRequired",
    {
    },
)
_EmailBouncedDataOptional = TypedDict(
    "_EmailBouncedDataOptional",
    {
        "event_id": "str",
        "email_id": "str",
        "message_id": "str",
        "from": "str",
        "to": "List[str]",
        "cc": "List[str]",
        "rcpt_to": "str",
        "subject": "str",
        "tags": "List[EmailTag]",
        "category": "str",
        "template_id": "Optional[str]",
        "domain": "str",
        "sent_at": "str",
        "status": "str",
        "bounce_reason": "str",
        "bounce": "EmailBounce",
        "suppression_id": "Optional[str]",
        "suppressed_until": "Optional[str]",
    },
    total=False,
)


class EmailBouncedData(_EmailBouncedDataRequired, _EmailBouncedDataOptional):
    """`data` of `email.bounced`.

    event_id: The event's id (`evt_…`), the same in every delivery: use it to recognise repetitions
    email_id: The email (`msg_…`)
    message_id: The Message-ID (RFC 5322) with its angle brackets
    from: The author, as it was sent
    to: The recipients
    rcpt_to: The recipient that the event is about
    subject: The subject
    tags: The tags that the send request gave
    category: The category: `transactional`, `product` or `newsletter`
    domain: The sending domain
    sent_at: When the email entered the queue; null in `email.scheduled`, `email.cancelled` and
        `email.suppressed`
    status: The status that belongs to the event; `delivered` for opens, clicks and complaints
    bounce_reason: The reply of the mail host that refused the email
    bounce: The refusal
    """


_EmailCancelledDataRequired = TypedDict(
    "_EmailCancelledDataRequired",
    {
    },
)
_EmailCancelledDataOptional = TypedDict(
    "_EmailCancelledDataOptional",
    {
        "event_id": "str",
        "email_id": "str",
        "message_id": "str",
        "from": "str",
        "to": "List[str]",
        "cc": "List[str]",
        "sent_at": "str",
        "subject": "str",
        "tags": "List[EmailTag]",
        "category": "str",
        "template_id": "Optional[str]",
        "domain": "str",
        "status": "str",
        "by": "str",
        "recipients_count": "int",
    },
    total=False,
)


class EmailCancelledData(_EmailCancelledDataRequired, _EmailCancelledDataOptional):
    """`data` of `email.cancelled`.

    event_id: The event's id (`evt_…`), the same in every delivery: use it to recognise repetitions
    email_id: The email (`msg_…`)
    message_id: The Message-ID (RFC 5322) with its angle brackets
    from: The author, as it was sent
    to: The recipients
    sent_at: When the email entered the queue; null in `email.scheduled`, `email.cancelled` and
        `email.suppressed`
    subject: The subject
    tags: The tags that the send request gave
    category: The category: `transactional`, `product` or `newsletter`
    domain: The sending domain
    status: The status that belongs to the event; `delivered` for opens, clicks and complaints
    by: Who cancelled it: `customer` or `operator`
    recipients_count: How many recipients the event is about
    """


class EmailClick(TypedDict, total=False):
    """The visit of the link"""

    url: str
    """The link's target"""
    ip: str
    """The IP address of the visitor"""
    user_agent: str
    """The visitor's `User-Agent`"""
    machine: bool
    """Whether a program followed it, for example a scanner: it does not count as a click"""
    first: bool
    """Whether it is the recipient's first click"""


_EmailClickedDataRequired = TypedDict(
    "_EmailClickedDataRequired",
    {
    },
)
_EmailClickedDataOptional = TypedDict(
    "_EmailClickedDataOptional",
    {
        "event_id": "str",
        "email_id": "str",
        "message_id": "str",
        "from": "str",
        "to": "List[str]",
        "cc": "List[str]",
        "rcpt_to": "str",
        "subject": "str",
        "tags": "List[EmailTag]",
        "category": "str",
        "template_id": "Optional[str]",
        "domain": "str",
        "sent_at": "str",
        "status": "str",
        "click": "EmailClick",
    },
    total=False,
)


class EmailClickedData(_EmailClickedDataRequired, _EmailClickedDataOptional):
    """`data` of `email.clicked`.

    event_id: The event's id (`evt_…`), the same in every delivery: use it to recognise repetitions
    email_id: The email (`msg_…`)
    message_id: The Message-ID (RFC 5322) with its angle brackets
    from: The author, as it was sent
    to: The recipients
    rcpt_to: The recipient that the event is about
    subject: The subject
    tags: The tags that the send request gave
    category: The category: `transactional`, `product` or `newsletter`
    domain: The sending domain
    sent_at: When the email entered the queue; null in `email.scheduled`, `email.cancelled` and
        `email.suppressed`
    status: The status that belongs to the event; `delivered` for opens, clicks and complaints
    click: The visit of the link
    """


_EmailComplainedDataRequired = TypedDict(
    "_EmailComplainedDataRequired",
    {
    },
)
_EmailComplainedDataOptional = TypedDict(
    "_EmailComplainedDataOptional",
    {
        "event_id": "str",
        "email_id": "str",
        "message_id": "str",
        "from": "str",
        "to": "List[str]",
        "cc": "List[str]",
        "rcpt_to": "str",
        "subject": "str",
        "tags": "List[EmailTag]",
        "category": "str",
        "template_id": "Optional[str]",
        "domain": "str",
        "sent_at": "str",
        "status": "str",
        "complaint": "EmailComplaint",
        "suppression_id": "Optional[str]",
    },
    total=False,
)


class EmailComplainedData(_EmailComplainedDataRequired, _EmailComplainedDataOptional):
    """`data` of `email.complained`.

    event_id: The event's id (`evt_…`), the same in every delivery: use it to recognise repetitions
    email_id: The email (`msg_…`)
    message_id: The Message-ID (RFC 5322) with its angle brackets
    from: The author, as it was sent
    to: The recipients
    rcpt_to: The recipient that the event is about
    subject: The subject
    tags: The tags that the send request gave
    category: The category: `transactional`, `product` or `newsletter`
    domain: The sending domain
    sent_at: When the email entered the queue; null in `email.scheduled`, `email.cancelled` and
        `email.suppressed`
    status: The status that belongs to the event; `delivered` for opens, clicks and complaints
    complaint: The recipient's report of spam
    """


class EmailComplaint(TypedDict, total=False):
    """The recipient's report of spam"""

    feedback_type: str
    """The kind of report (RFC 5965), for example `abuse`"""
    source: str
    """`fbl`: the feedback loop of a mailbox provider"""
    user_agent: str
    """The program that wrote the report"""
    arrived_at: str
    """When the reported email arrived, if the report says so"""


class EmailDelay(TypedDict, total=False):
    """The attempt that failed for now"""

    smtp_code: int
    """The reply's SMTP code; null if there was no reply"""
    enhanced_code: str
    """The reply's enhanced status code (RFC 3463), for example `4.7.1`"""
    diagnostic: str
    """The reply, or the error of the attempt"""
    attempt: int
    """The number of the attempt, from 1; null if another host reported the delay"""
    next_attempt_at: str
    """When it will be retried; null if another host retries it"""
    expires_at: str
    """When delivery is given up; null if another host retries it"""
    unconfirmed: bool
    """Whether the connection was lost before the reply to the content, so that the recipient may get the email twice"""


_EmailDeliveredDataRequired = TypedDict(
    "_EmailDeliveredDataRequired",
    {
    },
)
_EmailDeliveredDataOptional = TypedDict(
    "_EmailDeliveredDataOptional",
    {
        "event_id": "str",
        "email_id": "str",
        "message_id": "str",
        "from": "str",
        "to": "List[str]",
        "cc": "List[str]",
        "rcpt_to": "str",
        "subject": "str",
        "tags": "List[EmailTag]",
        "category": "str",
        "template_id": "Optional[str]",
        "domain": "str",
        "sent_at": "str",
        "status": "str",
        "delivered_at": "str",
        "delivery": "EmailDelivery",
    },
    total=False,
)


class EmailDeliveredData(_EmailDeliveredDataRequired, _EmailDeliveredDataOptional):
    """`data` of `email.delivered`.

    event_id: The event's id (`evt_…`), the same in every delivery: use it to recognise repetitions
    email_id: The email (`msg_…`)
    message_id: The Message-ID (RFC 5322) with its angle brackets
    from: The author, as it was sent
    to: The recipients
    rcpt_to: The recipient that the event is about
    subject: The subject
    tags: The tags that the send request gave
    category: The category: `transactional`, `product` or `newsletter`
    domain: The sending domain
    sent_at: When the email entered the queue; null in `email.scheduled`, `email.cancelled` and
        `email.suppressed`
    status: The status that belongs to the event; `delivered` for opens, clicks and complaints
    delivered_at: When the mail host accepted the email
    delivery: The successful attempt
    """


class EmailDelivery(TypedDict, total=False):
    """The successful attempt"""

    mx_host: str
    """The mail host that accepted it"""
    smtp_response: str
    """The mail host's last reply"""
    tls: str
    """The TLS version, for example `TLSv1.3`; null if the connection was not encrypted"""
    attempts: int
    """How many attempts were made, with this one"""
    duration_ms: int
    """Time of the attempt in milliseconds"""


_EmailDeliveryDelayedDataRequired = TypedDict(
    "_EmailDeliveryDelayedDataRequired",
    {
    },
)
_EmailDeliveryDelayedDataOptional = TypedDict(
    "_EmailDeliveryDelayedDataOptional",
    {
        "event_id": "str",
        "email_id": "str",
        "message_id": "str",
        "from": "str",
        "to": "List[str]",
        "cc": "List[str]",
        "rcpt_to": "str",
        "subject": "str",
        "tags": "List[EmailTag]",
        "category": "str",
        "template_id": "Optional[str]",
        "domain": "str",
        "sent_at": "str",
        "status": "str",
        "delay": "EmailDelay",
    },
    total=False,
)


class EmailDeliveryDelayedData(_EmailDeliveryDelayedDataRequired, _EmailDeliveryDelayedDataOptional):
    """`data` of `email.delivery_delayed`.

    event_id: The event's id (`evt_…`), the same in every delivery: use it to recognise repetitions
    email_id: The email (`msg_…`)
    message_id: The Message-ID (RFC 5322) with its angle brackets
    from: The author, as it was sent
    to: The recipients
    rcpt_to: The recipient that the event is about
    subject: The subject
    tags: The tags that the send request gave
    category: The category: `transactional`, `product` or `newsletter`
    domain: The sending domain
    sent_at: When the email entered the queue; null in `email.scheduled`, `email.cancelled` and
        `email.suppressed`
    status: The status that belongs to the event; `delivered` for opens, clicks and complaints
    delay: The attempt that failed for now
    """


_EmailDetailRequired = TypedDict(
    "_EmailDetailRequired",
    {
        "id": "str",
        "from": "str",
        "to": "List[str]",
        "cc": "List[str]",
        "bcc": "List[str]",
        "reply_to": "List[str]",
        "subject": "str",
        "status": "EmailStatus",
        "last_event": "str",
        "bounce_reason": "Optional[str]",
        "tags": "List[EmailTag]",
        "confidential": "bool",
        "scheduled_at": "Optional[str]",
        "cancelled_at": "Optional[str]",
        "created_at": "str",
        "sent_at": "Optional[str]",
        "delivered_at": "Optional[str]",
        "bounced_at": "Optional[str]",
        "message_id": "str",
        "html": "Optional[str]",
        "text": "Optional[str]",
        "headers": "Dict[str, str]",
        "category": "EmailCategory",
        "attachments": "List[EmailDetailAttachment]",
        "template": "Optional[EmailDetailTemplate]",
        "resent_from": "Optional[str]",
        "expires_in": "Optional[int]",
        "unsubscribe": "bool",
        "size": "int",
        "recipients": "List[Recipient]",
        "counts": "EmailDetailCounts",
    },
)
_EmailDetailOptional = TypedDict(
    "_EmailDetailOptional",
    {
    },
    total=False,
)


class EmailDetail(_EmailDetailRequired, _EmailDetailOptional):
    """An email with its recipients

    id: Its id (`msg_…`)
    from: The author
    to: Recipients
    cc: Recipients of a copy
    bcc: Recipients of a blind copy
    reply_to: Addresses for replies
    subject: The subject
    status: The status
    last_event: The latest event, like `email.delivered`
    bounce_reason: The response of the first server that rejected the email
    tags: The tags
    confidential: True if only the recipient may read the content, like that of a sign-in link: it cannot be
        resent
    scheduled_at: When the email is scheduled to be sent
    cancelled_at: When it was cancelled
    created_at: When it was accepted
    sent_at: When it entered the queue
    delivered_at: When it was delivered to the first recipient
    bounced_at: When the first recipient bounced
    message_id: The Message-ID (RFC 5322) with its angle brackets
    html: The HTML body; null when the message is no longer stored
    text: The plain-text body; null when the message is no longer stored
    headers: Custom headers
    category: The category
    attachments: The attachments without their content
    template: The template that was used
    resent_from: The email that this one was resent from
    expires_in: Lifetime in seconds
    unsubscribe: Whether managed unsubscribe is on
    size: Size of the message in bytes
    recipients: Recipients with their status
    counts: Number of recipients by status; `suppressed` and `cancelled` are omitted if zero
    """


class EmailDetailAttachment(TypedDict):
    """A file"""

    id: str
    """Id (`att_…`) for `GET /emails/{id}/attachments/{att_id}`"""
    name: Optional[str]
    """The name"""
    content_type: str
    """The MIME type"""
    size: int
    """Decoded size in bytes"""
    content_id: Optional[str]
    """The Content-ID that `cid:` in the HTML refers to"""


class _EmailDetailCountsRequired(TypedDict):
    queued: int
    """In the queue"""
    delivered: int
    """Delivered"""
    bounced: int
    """Bounced"""
    failed: int
    """Failed"""


class EmailDetailCounts(_EmailDetailCountsRequired, total=False):
    """Number of recipients by status; `suppressed` and `cancelled` are omitted if zero"""

    suppressed: int
    """Not sent because suppressed or opted out"""
    cancelled: int
    """Cancelled"""


class EmailDetailTemplate(TypedDict):
    """A template"""

    id: str
    """The template's id (`tpl_…`)"""
    alias: Optional[str]
    """The template's alias at that time"""
    version: int
    """The version"""


class EmailEvent(TypedDict):
    """An event of an email"""

    id: str
    """The event's id (`evt_…`)"""
    type: str
    """The event name, like `email.delivered`"""
    recipient: Optional[str]
    """The recipient; null if the event concerns all"""
    created_at: str
    """When it happened"""
    detail: Dict[str, Any]
    """Details of the event"""


class EmailEventList(TypedDict):
    """A page of the list"""

    events: List[EmailEvent]
    """The entries, newest first"""
    has_more: bool
    """Whether there are more"""
    next_cursor: Optional[str]
    """The `cursor` of the next page"""


_EmailFailedDataRequired = TypedDict(
    "_EmailFailedDataRequired",
    {
    },
)
_EmailFailedDataOptional = TypedDict(
    "_EmailFailedDataOptional",
    {
        "event_id": "str",
        "email_id": "str",
        "message_id": "str",
        "from": "str",
        "to": "List[str]",
        "cc": "List[str]",
        "rcpt_to": "str",
        "subject": "str",
        "tags": "List[EmailTag]",
        "category": "str",
        "template_id": "Optional[str]",
        "domain": "str",
        "sent_at": "str",
        "status": "str",
        "failure": "EmailFailure",
        "suppression_id": "Optional[str]",
        "suppressed_until": "Optional[str]",
    },
    total=False,
)


class EmailFailedData(_EmailFailedDataRequired, _EmailFailedDataOptional):
    """`data` of `email.failed`.

    event_id: The event's id (`evt_…`), the same in every delivery: use it to recognise repetitions
    email_id: The email (`msg_…`)
    message_id: The Message-ID (RFC 5322) with its angle brackets
    from: The author, as it was sent
    to: The recipients
    rcpt_to: The recipient that the event is about
    subject: The subject
    tags: The tags that the send request gave
    category: The category: `transactional`, `product` or `newsletter`
    domain: The sending domain
    sent_at: When the email entered the queue; null in `email.scheduled`, `email.cancelled` and
        `email.suppressed`
    status: The status that belongs to the event; `delivered` for opens, clicks and complaints
    failure: Why delivery was given up
    """


class EmailFailure(TypedDict, total=False):
    """Why delivery was given up"""

    reason: str
    """`expired`, `tls_required`, `dns_error`, `rejected`, `render_error`, `unconfirmed`, or a refusal of the sender:
    `content_rejected`, `policy`, `reputation`"""
    message: str
    """The last reply or error"""
    smtp_code: int
    """The last reply's SMTP code; null if there was no reply"""


class EmailHeader(TypedDict):
    """A header field"""

    name: str
    """Name"""
    value: str
    """Value, unfolded"""


class _EmailListRequired(TypedDict):
    emails: List[Email]
    """The entries, newest first"""
    has_more: bool
    """Whether there are more"""
    next_cursor: Optional[str]
    """The `cursor` of the next page"""


class EmailList(_EmailListRequired, total=False):
    """A page of the list"""

    searched_until: str
    """Present if a page has fewer entries than requested although there are more: emails accepted before this time
    have not been searched yet"""
    as_of: str
    """Present while the search index lags: later events may not be found yet"""


class EmailMetrics(TypedDict):
    """Email metrics, counted per recipient; contains the requested counters"""

    totals: EmailMetricsTotals
    """Totals of the range"""
    rows: List[EmailMetricsRow]
    """The periods, oldest first: without dimensions all periods, with dimensions those in which a value was counted"""


class _EmailMetricsRowRequired(TypedDict):
    period_start: str
    """Start of the hour or day"""


class EmailMetricsRow(_EmailMetricsRowRequired, total=False):
    """One period, or one value of a dimension in a period"""

    dimension: EmailMetricsDimension
    """The dimension of the row, if dimensions were requested"""
    value: str
    """The value of the dimension"""
    sent: int
    """Recipients of accepted email; scheduled email counts when it is sent"""
    delivered: int
    """Recipients whose server accepted the email"""
    bounced: int
    """Recipients whose server rejected the email"""
    failed: int
    """Recipients that failed for another reason"""
    delayed: int
    """Recipients deferred at the first attempt"""
    complained: int
    """Recipients who reported spam"""
    opened: int
    """Recipients who opened the email, each counted once, without machines"""
    clicked: int
    """Recipients who clicked a link, each counted once, without machines"""
    suppressed: int
    """Recipients that were suppressed or had opted out"""
    unsubscribed: int
    """Unsubscribes through the email's link"""
    delivery_time: DeliveryTime
    """How long deliveries took"""


class EmailMetricsTotals(TypedDict, total=False):
    """Totals of the range"""

    sent: int
    """Recipients of accepted email; scheduled email counts when it is sent"""
    delivered: int
    """Recipients whose server accepted the email"""
    bounced: int
    """Recipients whose server rejected the email"""
    failed: int
    """Recipients that failed for another reason"""
    delayed: int
    """Recipients deferred at the first attempt"""
    complained: int
    """Recipients who reported spam"""
    opened: int
    """Recipients who opened the email, each counted once, without machines"""
    clicked: int
    """Recipients who clicked a link, each counted once, without machines"""
    suppressed: int
    """Recipients that were suppressed or had opted out"""
    unsubscribed: int
    """Unsubscribes through the email's link"""
    delivery_time: DeliveryTime
    """How long deliveries took"""
    delivery_rate: float
    """`delivered` divided by `sent`, rounded to four digits"""
    bounce_rate: float
    """`bounced` divided by `sent`, rounded to four digits"""
    complaint_rate: float
    """`complained` divided by `delivered`, rounded to four digits"""
    open_rate: float
    """`opened` divided by `delivered`, rounded to four digits"""
    click_rate: float
    """`clicked` divided by `delivered`, rounded to four digits"""
    unsubscribe_rate: float
    """`unsubscribed` divided by `delivered`, rounded to four digits"""


class EmailOpen(TypedDict, total=False):
    """The fetch of the tracking image"""

    ip: str
    """The IP address that fetched it"""
    user_agent: str
    """The `User-Agent` of the fetch"""
    machine: bool
    """Whether a program fetched it, for example a scanner: it does not count as an open"""
    proxy: Optional[str]
    first: bool
    """Whether it is the recipient's first open"""


_EmailOpenedDataRequired = TypedDict(
    "_EmailOpenedDataRequired",
    {
    },
)
_EmailOpenedDataOptional = TypedDict(
    "_EmailOpenedDataOptional",
    {
        "event_id": "str",
        "email_id": "str",
        "message_id": "str",
        "from": "str",
        "to": "List[str]",
        "cc": "List[str]",
        "rcpt_to": "str",
        "subject": "str",
        "tags": "List[EmailTag]",
        "category": "str",
        "template_id": "Optional[str]",
        "domain": "str",
        "sent_at": "str",
        "status": "str",
        "open": "EmailOpen",
    },
    total=False,
)


class EmailOpenedData(_EmailOpenedDataRequired, _EmailOpenedDataOptional):
    """`data` of `email.opened`.

    event_id: The event's id (`evt_…`), the same in every delivery: use it to recognise repetitions
    email_id: The email (`msg_…`)
    message_id: The Message-ID (RFC 5322) with its angle brackets
    from: The author, as it was sent
    to: The recipients
    rcpt_to: The recipient that the event is about
    subject: The subject
    tags: The tags that the send request gave
    category: The category: `transactional`, `product` or `newsletter`
    domain: The sending domain
    sent_at: When the email entered the queue; null in `email.scheduled`, `email.cancelled` and
        `email.suppressed`
    status: The status that belongs to the event; `delivered` for opens, clicks and complaints
    open: The fetch of the tracking image
    """


_EmailReceivedDataRequired = TypedDict(
    "_EmailReceivedDataRequired",
    {
    },
)
_EmailReceivedDataOptional = TypedDict(
    "_EmailReceivedDataOptional",
    {
        "event_id": "str",
        "email_id": "str",
        "to": "List[str]",
        "from": "str",
        "subject": "str",
        "status": "str",
        "rcpt_to": "str",
        "cc": "List[str]",
        "message_id": "str",
        "in_reply_to": "str",
        "references": "List[str]",
        "spam_status": "str",
        "attachment_count": "int",
        "attachments": "List[ReceivedEmailAttachment]",
        "received_at": "str",
        "domain": "str",
        "envelope_from": "str",
        "auth": "EmailReceivedDataAuth",
    },
    total=False,
)


class EmailReceivedData(_EmailReceivedDataRequired, _EmailReceivedDataOptional):
    """`data` of `email.received`.

    event_id: The event's id (`evt_…`), the same in every delivery: use it to recognise repetitions
    email_id: The received email (`inb_…`)
    to: The addresses of the `To` header field
    from: The author, as in the `From` header field
    subject: The subject
    status: Always `received`
    rcpt_to: The envelope recipient at your domain
    message_id: The Message-ID (RFC 5322) with its angle brackets; empty if it has none
    in_reply_to: Message-ID of the email that this one replies to
    references: Message-IDs of the thread, oldest first
    spam_status: Spam status
    attachment_count: Number of attachments; those beyond 2,000 parts are not counted
    attachments: The first attachments
    received_at: Time of receipt
    domain: The receiving domain
    envelope_from: Envelope sender; null for the null reverse path of bounces
    auth: Authentication results
    """


class EmailReceivedDataAuth(TypedDict, total=False):
    """Authentication results"""

    spf: str
    """SPF result of the envelope sender"""
    dkim: str
    """DKIM result"""
    dmarc: str
    """DMARC result of the author's domain"""


_EmailScheduledDataRequired = TypedDict(
    "_EmailScheduledDataRequired",
    {
    },
)
_EmailScheduledDataOptional = TypedDict(
    "_EmailScheduledDataOptional",
    {
        "event_id": "str",
        "email_id": "str",
        "message_id": "str",
        "from": "str",
        "to": "List[str]",
        "cc": "List[str]",
        "sent_at": "str",
        "subject": "str",
        "tags": "List[EmailTag]",
        "category": "str",
        "template_id": "Optional[str]",
        "domain": "str",
        "status": "str",
        "scheduled_at": "str",
    },
    total=False,
)


class EmailScheduledData(_EmailScheduledDataRequired, _EmailScheduledDataOptional):
    """`data` of `email.scheduled`.

    event_id: The event's id (`evt_…`), the same in every delivery: use it to recognise repetitions
    email_id: The email (`msg_…`)
    message_id: The Message-ID (RFC 5322) with its angle brackets
    from: The author, as it was sent
    to: The recipients
    sent_at: When the email entered the queue; null in `email.scheduled`, `email.cancelled` and
        `email.suppressed`
    subject: The subject
    tags: The tags that the send request gave
    category: The category: `transactional`, `product` or `newsletter`
    domain: The sending domain
    status: The status that belongs to the event; `delivered` for opens, clicks and complaints
    scheduled_at: When the email is to be sent
    """


_EmailSentDataRequired = TypedDict(
    "_EmailSentDataRequired",
    {
    },
)
_EmailSentDataOptional = TypedDict(
    "_EmailSentDataOptional",
    {
        "event_id": "str",
        "email_id": "str",
        "message_id": "str",
        "from": "str",
        "to": "List[str]",
        "cc": "List[str]",
        "sent_at": "str",
        "subject": "str",
        "tags": "List[EmailTag]",
        "category": "str",
        "template_id": "Optional[str]",
        "domain": "str",
        "status": "str",
        "recipients_count": "int",
    },
    total=False,
)


class EmailSentData(_EmailSentDataRequired, _EmailSentDataOptional):
    """`data` of `email.sent`.

    event_id: The event's id (`evt_…`), the same in every delivery: use it to recognise repetitions
    email_id: The email (`msg_…`)
    message_id: The Message-ID (RFC 5322) with its angle brackets
    from: The author, as it was sent
    to: The recipients
    sent_at: When the email entered the queue; null in `email.scheduled`, `email.cancelled` and
        `email.suppressed`
    subject: The subject
    tags: The tags that the send request gave
    category: The category: `transactional`, `product` or `newsletter`
    domain: The sending domain
    status: The status that belongs to the event; `delivered` for opens, clicks and complaints
    recipients_count: How many recipients the event is about
    """


_EmailSuppressedDataRequired = TypedDict(
    "_EmailSuppressedDataRequired",
    {
    },
)
_EmailSuppressedDataOptional = TypedDict(
    "_EmailSuppressedDataOptional",
    {
        "event_id": "str",
        "email_id": "str",
        "message_id": "str",
        "from": "str",
        "to": "List[str]",
        "cc": "List[str]",
        "sent_at": "str",
        "subject": "str",
        "tags": "List[EmailTag]",
        "category": "str",
        "template_id": "Optional[str]",
        "domain": "str",
        "status": "str",
        "suppressed": "List[EmailSuppression]",
    },
    total=False,
)


class EmailSuppressedData(_EmailSuppressedDataRequired, _EmailSuppressedDataOptional):
    """`data` of `email.suppressed`.

    event_id: The event's id (`evt_…`), the same in every delivery: use it to recognise repetitions
    email_id: The email (`msg_…`)
    message_id: The Message-ID (RFC 5322) with its angle brackets
    from: The author, as it was sent
    to: The recipients
    sent_at: When the email entered the queue; null in `email.scheduled`, `email.cancelled` and
        `email.suppressed`
    subject: The subject
    tags: The tags that the send request gave
    category: The category: `transactional`, `product` or `newsletter`
    domain: The sending domain
    status: The status that belongs to the event; `delivered` for opens, clicks and complaints
    suppressed: The recipients to whom the email was not sent
    """


class EmailSuppression(TypedDict, total=False):
    """EmailSuppression"""

    email: str
    """The address"""
    reason: str
    """The suppression's reason, for example `hard_bounce`; `unsubscribe` for an opt-out"""
    suppression_id: Optional[str]
    category: Optional[str]
    category_opt_out_id: Optional[str]


class EmailTag(TypedDict):
    """A tag"""

    name: str
    """The name, without a colon"""
    value: str
    """The value"""


class EmailTemplate(TypedDict, total=False):
    """A template"""

    id: str
    """Its id"""
    alias: str
    """The template's alias, instead of its id"""
    version: int
    """A version other than the published one"""
    variables: Mapping[str, Any]
    """The template's variables by name"""


class EventCounts(TypedDict):
    """Counts"""

    totals: List[EventCountsTotal]
    """Totals of the range by name"""
    counts: List[EventCountsCount]
    """Counts by name, for periods with events, oldest first"""


class EventCountsCount(TypedDict):
    """The counts of one period"""

    name: str
    """The event name"""
    period_start: str
    """Start of the hour or day"""
    count: int
    """Counted events (or visits)"""
    seats: int
    """`user.created` events of invited teammates, which are seats and not sign-ups"""
    excluded: int
    """Events of your own team, which are excluded"""
    sign_ups: int
    """Sign-ups, each user counted once"""
    subscriptions: int
    """Subscriptions, each counted once"""
    visitors: int
    """First-time visitors"""


class EventCountsTotal(TypedDict):
    """The totals of one event name"""

    name: str
    """The event name"""
    count: int
    """Counted events (or visits)"""
    seats: int
    """`user.created` events of invited teammates, which are seats and not sign-ups"""
    excluded: int
    """Events of your own team, which are excluded"""
    sign_ups: int
    """Sign-ups, each user counted once"""
    subscriptions: int
    """Subscriptions, each counted once"""
    visitors: int
    """First-time visitors"""


class ExportSuppressionsParams(TypedDict, total=False):
    """Params of `suppressions.export`."""

    email: str
    """An address, or `@domain.tld`"""
    reason: str
    """Any of these reasons, separated by commas: hard_bounce, soft_bounce, complaint, unsubscribe, smtp_failure,
    manual, import"""
    source: str
    """Any of these sources, separated by commas: system, api, dashboard, recipient, import"""
    created_after: Union[str, datetime.datetime]
    """Only those created after this time"""
    created_before: Union[str, datetime.datetime]
    """Only those created before this time"""


class _ForwardReceivedEmailParamsRequired(TypedDict):
    to: Union[str, Sequence[str]]
    """Recipients"""


class ForwardReceivedEmailParams(_ForwardReceivedEmailParamsRequired, total=False):
    """Params of `receivedEmails.forward`."""

    text: Optional[str]
    """Text above the forwarded message"""


_FunnelRequired = TypedDict(
    "_FunnelRequired",
    {
        "from": "str",
        "to": "str",
        "steps": "List[FunnelStep]",
        "groups": "List[FunnelGroup]",
    },
)
_FunnelOptional = TypedDict(
    "_FunnelOptional",
    {
    },
    total=False,
)


class Funnel(_FunnelRequired, _FunnelOptional):
    """A funnel; your own team and invited teammates are excluded

    from: Start of the range in which the first step was done
    to: End of the range (exclusive)
    steps: The steps
    groups: The steps by group, if `group_by` was given; largest group first
    """


class FunnelGroup(TypedDict):
    """A group"""

    group: str
    """The group's value; `(unknown)` if there is none"""
    steps: List[FunnelStep]
    """The steps"""


class FunnelStep(TypedDict):
    """A set-up step"""

    name: str
    """The event name"""
    people: int
    """People who did this step after all previous steps, in order"""
    of_first_bp: int
    """Share of the people who did the first step, in basis points"""
    of_previous_bp: int
    """Share of the people who did the previous step, in basis points"""


class GetApiKeyResponse(TypedDict):
    """API key"""

    api_key: ApiKey


class GetApprovalResponse(TypedDict):
    """An approval"""

    approval: Approval


class GetAutomationResponse(TypedDict):
    """A response with an automation"""

    automation: Automation


class GetAutomationRunResponse(TypedDict):
    """A response with a run"""

    run: AutomationRun


_GetDomainDmarcParamsRequired = TypedDict(
    "_GetDomainDmarcParamsRequired",
    {
    },
)
_GetDomainDmarcParamsOptional = TypedDict(
    "_GetDomainDmarcParamsOptional",
    {
        "from": "str",
        "to": "str",
    },
    total=False,
)


class GetDomainDmarcParams(_GetDomainDmarcParamsRequired, _GetDomainDmarcParamsOptional):
    """Params of `domains.dmarc`.

    from: Start of the range, a time or a UTC date; extended to the start of its day. Default: 30 days before
        `to`. At most 92 days; reports are retained for thirteen months
    to: End of the range (exclusive), extended to the end of its day. Default: now
    """


class GetDomainDmarcResponse(TypedDict):
    """A summary of DMARC reports"""

    dmarc: DomainDmarc


_GetEmailMetricsParamsRequired = TypedDict(
    "_GetEmailMetricsParamsRequired",
    {
    },
)
_GetEmailMetricsParamsOptional = TypedDict(
    "_GetEmailMetricsParamsOptional",
    {
        "from": "str",
        "to": "str",
        "granularity": "Granularity",
        "dimensions": "Union[str, Sequence[EmailMetricsDimension]]",
        "domain": "str",
        "category": "EmailCategory",
        "metrics": "Union[str, Sequence[EmailMetric]]",
    },
    total=False,
)


class GetEmailMetricsParams(_GetEmailMetricsParamsRequired, _GetEmailMetricsParamsOptional):
    """Params of `emails.metrics`.

    from: Start: a timestamp, or a date in UTC. The first period is the one that contains it. Default: 30 days
        before `to` (with `hour`: one day)
    to: End, exclusive. Default: now, including the current period
    granularity: Length of a period: at most 92 days with `hour`, three years with `day`. Hours and days are in
        UTC; counts are stored for two years
    dimensions: Group by sending domain, by tag (`name:value`), by template alias, by the provider of the
        recipient's mail host (known from the first attempt on, so `sent` is not counted by provider), or by
        category. With several dimensions, each has its own rows. At most 100 values per hour are counted apart, the
        others together as `(other)`: other domains, other tags and so on. With a filter, pairs of category and
        domain are the values, so that `category` can be `(other)` too: email of the domain whose category was not
        counted apart. The category of email that was counted before counts had categories is `(unknown)`
    domain: Count the email of this sending domain only. With a filter, `dimensions` can be `domain` and
        `category`
    category: Count the email of this category only, alone or together with `domain`
    metrics: Counters to return, and `delivery_time`: how long deliveries took; all if omitted
    """


class GetEmailMetricsResponse(TypedDict):
    """Metrics"""

    metrics: EmailMetrics


class GetEmailResponse(TypedDict):
    """A response with an email"""

    email: EmailDetail


_GetFunnelParamsRequired = TypedDict(
    "_GetFunnelParamsRequired",
    {
        "steps": "Union[str, Sequence[str]]",
    },
)
_GetFunnelParamsOptional = TypedDict(
    "_GetFunnelParamsOptional",
    {
        "from": "str",
        "to": "str",
        "group_by": "FunnelGrouping",
    },
    total=False,
)


class GetFunnelParams(_GetFunnelParamsRequired, _GetFunnelParamsOptional):
    """Params of `funnels.get`.

    steps: The steps in order: event names and `visit`. For each person the first occurrence of a step counts
    from: Start of the range of the first step, a time or a UTC date. Default: 30 days before `to`
    to: End of the range (exclusive). Default: now
    group_by: Group by the source of the first visit, by `came_from` or by `signup_method`; at most 50 groups,
        the others as `(other)`
    """


class GetFunnelResponse(TypedDict):
    """A funnel"""

    funnel: Funnel


class GetGrantResponse(TypedDict):
    """A grant"""

    grant: Grant


class GetLogResponse(TypedDict):
    """A request"""

    log: LoggedRequest


class GetReceivedEmailParams(TypedDict, total=False):
    """Params of `receivedEmails.get`."""

    attachments: GetReceivedEmailAttachments
    """`inline`: attachments are included in base64; `none`: only their metadata. Fetch large attachments one by one"""


class GetSmtpCredentialResponse(TypedDict):
    """SMTP credential"""

    smtp_credential: SmtpCredential


class _GetTemplateResponseRequired(TypedDict):
    template: Template


class GetTemplateResponse(_GetTemplateResponseRequired, total=False):
    """A template"""

    warnings: List[str]
    """Warnings about ignored fields"""


class GetTemplateVersionResponse(TypedDict):
    """A version"""

    version: TemplateVersionDetail


class Grant(TypedDict):
    """A user's grant to an app"""

    id: str
    """`grant_…`"""
    client_id: str
    """The client's id: `client_…`, or the URL of its metadata document"""
    client_name: str
    """The name that the client gave itself; it is not verified"""
    user_id: str
    """The user who gave the grant; it ends if the user is removed or gets a lower role"""
    scopes: List[str]
    """`read`, `send`, `manage`"""
    policy: Optional[ClientPolicy]
    """The rules for the client below its scopes; null without a rule"""
    resources: List[str]
    """`api`, `mcp`: the parts of the service that accept its tokens"""
    last_used_at: Optional[str]
    """When it was last used, to about a minute"""
    last_used_ip: Optional[str]
    """The IP address of the last use"""
    expires_at: str
    """When it ends, unless its client refreshes it"""
    created_at: str
    """When it was given"""


class ImportSuppressionsParams(TypedDict):
    """Params of `suppressions.import`."""

    csv: str
    """The list: CSV with a column of addresses, with or without a header line"""


_ImportSuppressionsResponseRequired = TypedDict(
    "_ImportSuppressionsResponseRequired",
    {
        "import": "SuppressionImport",
    },
)
_ImportSuppressionsResponseOptional = TypedDict(
    "_ImportSuppressionsResponseOptional",
    {
        "warnings": "List[str]",
    },
    total=False,
)


class ImportSuppressionsResponse(_ImportSuppressionsResponseRequired, _ImportSuppressionsResponseOptional):
    """An import of suppressions

    import: An import of suppressions
    warnings: Warnings, for example about ignored fields
    """


class ListAffiliateCampaignsParams(TypedDict, total=False):
    """Params of `affiliateCampaigns.list`."""

    include_archived: bool
    """Whether to include archived campaigns"""


class ListAffiliateCampaignsResponse(TypedDict):
    """A page of the list"""

    data: List[AffiliateCampaign]
    """The entries, newest first"""
    has_more: bool
    """Whether there are more"""
    next_cursor: Optional[str]
    """The `cursor` of the next page"""


class ListAffiliateCommissionsParams(TypedDict, total=False):
    """Params of `affiliateCommissions.list`."""

    limit: int
    """Number of entries"""
    cursor: str
    """`next_cursor` of the previous page"""
    status: Union[str, Sequence[AffiliateCommissionStatus]]
    """Filter by status; several separated by commas"""
    affiliate_id: str
    """The partner (`aff_…`)"""
    referral_id: str
    """The referral (`ref_…`)"""
    payout_id: str
    """The payout (`pay_…`) that the commissions are in"""
    currency: Union[str, Sequence[str]]
    """Filter by currency; several separated by commas"""
    created_after: Union[str, datetime.datetime]
    """Only those created at this time or later"""
    created_before: Union[str, datetime.datetime]
    """Only those created before this time"""


class ListAffiliateCommissionsResponse(TypedDict):
    """A page of the list"""

    data: List[AffiliateCommission]
    """The entries, newest first"""
    has_more: bool
    """Whether there are more"""
    next_cursor: Optional[str]
    """The `cursor` of the next page"""


class ListAffiliateLinksParams(TypedDict, total=False):
    """Params of `affiliates.links.list`."""

    limit: int
    """Number of entries"""
    cursor: str
    """`next_cursor` of the previous page"""


class ListAffiliateLinksResponse(TypedDict):
    """A page of the list"""

    data: List[AffiliateLink]
    """The entries, newest first"""
    has_more: bool
    """Whether there are more"""
    next_cursor: Optional[str]
    """The `cursor` of the next page"""


class ListAffiliatePayoutsParams(TypedDict, total=False):
    """Params of `affiliatePayouts.list`."""

    limit: int
    """Number of entries"""
    cursor: str
    """`next_cursor` of the previous page"""
    status: Union[str, Sequence[AffiliatePayoutStatus]]
    """Filter by status; several separated by commas"""
    affiliate_id: str
    """The partner (`aff_…`)"""
    run_id: str
    """The payout run (`prn_…`)"""


class ListAffiliatePayoutsResponse(TypedDict):
    """A page of the list"""

    data: List[AffiliatePayout]
    """The entries, newest first"""
    has_more: bool
    """Whether there are more"""
    next_cursor: Optional[str]
    """The `cursor` of the next page"""


class ListAffiliateReferralsParams(TypedDict, total=False):
    """Params of `affiliateReferrals.list`."""

    limit: int
    """Number of entries"""
    cursor: str
    """`next_cursor` of the previous page"""
    status: Union[str, Sequence[AffiliateReferralStatus]]
    """Filter by status; several separated by commas"""
    source: Union[str, Sequence[AffiliateReferralSource]]
    """Filter by source; several separated by commas"""
    affiliate_id: str
    """The partner (`aff_…`)"""
    email: str
    """The exact email address, case-insensitive"""
    created_after: Union[str, datetime.datetime]
    """Only those created at this time or later"""
    created_before: Union[str, datetime.datetime]
    """Only those created before this time"""


class ListAffiliateReferralsResponse(TypedDict):
    """A page of the list"""

    data: List[AffiliateReferral]
    """The entries, newest first"""
    has_more: bool
    """Whether there are more"""
    next_cursor: Optional[str]
    """The `cursor` of the next page"""


class ListAffiliatesParams(TypedDict, total=False):
    """Params of `affiliates.list`."""

    limit: int
    """Number of entries"""
    cursor: str
    """`next_cursor` of the previous page"""
    status: Union[str, Sequence[AffiliateStatus]]
    """Filter by status; several separated by commas"""
    campaign_id: str
    """The campaign, by id (`cmp_…`) or name"""
    email: str
    """The exact email address, case-insensitive"""


class ListAffiliatesResponse(TypedDict):
    """A page of the list"""

    data: List[Affiliate]
    """The entries, newest first"""
    has_more: bool
    """Whether there are more"""
    next_cursor: Optional[str]
    """The `cursor` of the next page"""


class ListApiKeysParams(TypedDict, total=False):
    """Params of `apiKeys.list`."""

    limit: int
    """Number of entries"""
    cursor: str
    """`next_cursor` of the previous page"""


class ListApiKeysResponse(TypedDict):
    """A page of the list"""

    api_keys: List[ApiKey]
    """The entries, newest first"""
    has_more: bool
    """Whether there are more"""
    next_cursor: Optional[str]
    """The `cursor` of the next page"""


class ListApprovalsParams(TypedDict, total=False):
    """Params of `approvals.list`."""

    limit: int
    """Number of entries"""
    cursor: str
    """`next_cursor` of the previous page"""
    status: ApprovalStatus
    """Filter by status"""


class ListApprovalsResponse(TypedDict):
    """A page of the list"""

    approvals: List[Approval]
    """The entries, newest first"""
    has_more: bool
    """Whether there are more"""
    next_cursor: Optional[str]
    """The `cursor` of the next page"""


class ListAuditLogParams(TypedDict, total=False):
    """Params of `auditLog.list`."""

    limit: int
    """Number of entries"""
    cursor: str
    """`next_cursor` of the previous page"""
    api_key_id: str
    """Filter by API key"""
    grant_id: str
    """Filter by the grant of an app"""
    user_id: str
    """Filter by user"""
    operation: str
    """Filter by operation, like `delete_domain`"""
    object_id: str
    """Filter by the id of the object, or of the approval"""
    created_after: Union[str, datetime.datetime]
    """Only entries after this time"""
    created_before: Union[str, datetime.datetime]
    """Only entries before this time"""


class ListAuditLogResponse(TypedDict):
    """A page of the list"""

    entries: List[AuditEntry]
    """The entries, newest first"""
    has_more: bool
    """Whether there are more"""
    next_cursor: Optional[str]
    """The `cursor` of the next page"""


class ListAutomationRunsParams(TypedDict, total=False):
    """Params of `automations.runs.list`."""

    limit: int
    """Number of entries"""
    cursor: str
    """`next_cursor` of the previous page"""
    status: str
    """Only these values: queued, running, waiting, completed, failed, cancelled; several separated by commas"""
    email: str
    """Filter by the person's email address"""
    user_id: str
    """Filter by the person's `user_id` in the product"""


class ListAutomationRunsResponse(TypedDict):
    """A page of the list"""

    runs: List[AutomationRun]
    """The entries, newest first"""
    has_more: bool
    """Whether there are more"""
    next_cursor: Optional[str]
    """The `cursor` of the next page"""


class ListAutomationVersionsParams(TypedDict, total=False):
    """Params of `automations.versions.list`."""

    limit: int
    """Number of entries"""
    cursor: str
    """`next_cursor` of the previous page"""


class ListAutomationVersionsResponse(TypedDict):
    """A page of the list"""

    versions: List[AutomationVersion]
    """The entries, newest first"""
    has_more: bool
    """Whether there are more"""
    next_cursor: Optional[str]
    """The `cursor` of the next page"""


class ListAutomationsParams(TypedDict, total=False):
    """Params of `automations.list`."""

    limit: int
    """Number of entries"""
    cursor: str
    """`next_cursor` of the previous page"""
    status: str
    """Only these values: draft, active, paused, archived; several separated by commas"""


class ListAutomationsResponse(TypedDict):
    """A page of the list"""

    automations: List[Automation]
    """The entries, newest first"""
    has_more: bool
    """Whether there are more"""
    next_cursor: Optional[str]
    """The `cursor` of the next page"""


class ListCategoryOptOutsParams(TypedDict, total=False):
    """Params of `categoryOptOuts.list`."""

    limit: int
    """Number of entries"""
    cursor: str
    """`next_cursor` of the previous page"""
    email: str
    """Filter by email address"""
    category: str
    """Filter by category: product, newsletter; several separated by commas"""


class ListConversionsParams(TypedDict, total=False):
    """Params of `conversions.list`."""

    limit: int
    """Number of entries"""
    cursor: str
    """`next_cursor` of the previous page"""
    kind: ConversionKind
    """Filter by kind"""
    source: str
    """Filter by the measured source of the first visit"""
    email: str
    """Filter by email address"""
    user_id: str
    """Filter by user id"""
    created_after: Union[str, datetime.datetime]
    """Only those whose event was received after this time"""
    created_before: Union[str, datetime.datetime]
    """Only those whose event was received before this time"""


class ListDomainClaimsParams(TypedDict, total=False):
    """Params of `domains.claims.list`."""

    limit: int
    """Number of entries"""
    cursor: str
    """`next_cursor` of the previous page"""


class ListDomainsParams(TypedDict, total=False):
    """Params of `domains.list`."""

    limit: int
    """Number of entries"""
    cursor: str
    """`next_cursor` of the previous page"""
    status: Union[str, Sequence[DomainStatus]]
    """Filter by verification status"""
    q: str
    """Filter by text in the name"""


class ListEmailAttemptsParams(TypedDict, total=False):
    """Params of `emails.attempts.list`."""

    limit: int
    """Number of entries"""
    cursor: str
    """`next_cursor` of the previous page"""


class ListEmailEventsParams(TypedDict, total=False):
    """Params of `emails.events.list`."""

    limit: int
    """Number of entries"""
    cursor: str
    """`next_cursor` of the previous page"""


_ListEmailsParamsRequired = TypedDict(
    "_ListEmailsParamsRequired",
    {
    },
)
_ListEmailsParamsOptional = TypedDict(
    "_ListEmailsParamsOptional",
    {
        "limit": "int",
        "cursor": "str",
        "status": "Union[str, Sequence[ListEmailsStatus]]",
        "to": "str",
        "from": "str",
        "tag": "Union[str, Sequence[str]]",
        "category": "Union[str, Sequence[EmailCategory]]",
        "template": "str",
        "domain_id": "str",
        "q": "str",
        "created_after": "Union[str, datetime.datetime]",
        "created_before": "Union[str, datetime.datetime]",
    },
    total=False,
)


class ListEmailsParams(_ListEmailsParamsRequired, _ListEmailsParamsOptional):
    """Params of `emails.list`.

    limit: Maximum number of entries. With filters a page may be shorter, or empty, while `has_more` is true: a
        request reads a bounded number of emails. Continue with `next_cursor`
    cursor: `next_cursor` of the previous page; repeat the same filters
    status: Filter by status; several separated by commas
    to: Filter by recipient address in `to`, `cc` or `bcc`; several separated by commas
    from: Filter by sender address; several separated by commas
    tag: Filter by tag, `name:value`; if repeated, all must match
    category: Filter by category; several separated by commas
    template: Filter by template, by id or by the alias used when sending; several separated by commas
    domain_id: Filter by sending domain (`dom_…`); several separated by commas
    q: Words in the subject; all must match, in any order, case-insensitive
    created_after: Only emails accepted after this time
    created_before: Only emails accepted before this time
    """


class ListEventsParams(TypedDict, total=False):
    """Params of `events.list`."""

    limit: int
    """Number of entries"""
    cursor: str
    """`next_cursor` of the previous page"""
    name: str
    """Filter by event name"""
    email: str
    """Filter by email address"""
    user_id: str
    """Filter by user id"""
    created_after: Union[str, datetime.datetime]
    """Only events received after this time"""
    created_before: Union[str, datetime.datetime]
    """Only events received before this time"""


class ListGrantsParams(TypedDict, total=False):
    """Params of `grants.list`."""

    limit: int
    """Number of entries"""
    cursor: str
    """`next_cursor` of the previous page"""


class ListGrantsResponse(TypedDict):
    """A page of the list"""

    grants: List[Grant]
    """The entries, newest first"""
    has_more: bool
    """Whether there are more"""
    next_cursor: Optional[str]
    """The `cursor` of the next page"""


class ListLogsParams(TypedDict, total=False):
    """Params of `logs.list`."""

    limit: int
    """Number of entries"""
    cursor: str
    """`next_cursor` of the previous page"""
    method: str
    """Filter by method, like `POST`"""
    status: str
    """Filter by status or status class, like `404` or `4xx`"""
    path: str
    """Filter by path prefix, like `/emails`"""
    operation: str
    """Filter by operation, like `send_email`"""
    api_key_id: str
    """Filter by API key (`key_…`)"""
    user_id: str
    """Filter by the user (`user_…`) whose session made the request"""
    created_after: Union[str, datetime.datetime]
    """Only requests received after this time"""
    created_before: Union[str, datetime.datetime]
    """Only requests received before this time"""


class ListLogsResponse(TypedDict):
    """A page of the list"""

    logs: List[LoggedRequest]
    """The entries, newest first"""
    has_more: bool
    """Whether there are more"""
    next_cursor: Optional[str]
    """The `cursor` of the next page"""


_ListReceivedEmailsParamsRequired = TypedDict(
    "_ListReceivedEmailsParamsRequired",
    {
    },
)
_ListReceivedEmailsParamsOptional = TypedDict(
    "_ListReceivedEmailsParamsOptional",
    {
        "limit": "int",
        "cursor": "str",
        "order": "ListReceivedEmailsOrder",
        "to": "str",
        "from": "str",
        "domain_id": "str",
        "spam_status": "Union[str, Sequence[SpamStatus]]",
        "received_after": "Union[str, datetime.datetime]",
        "received_before": "Union[str, datetime.datetime]",
    },
    total=False,
)


class ListReceivedEmailsParams(_ListReceivedEmailsParamsRequired, _ListReceivedEmailsParamsOptional):
    """Params of `receivedEmails.list`.

    limit: Number of entries
    cursor: `next_cursor` of the previous page
    order: `desc`: newest first. `asc`: in the order of arrival; the last page has a cursor too, and later
        arrivals follow it without gaps
    to: Envelope recipient; any of several, separated by commas
    from: Address of the author or of the envelope sender; any of several, separated by commas
    domain_id: Receiving domain (`dom_…`); any of several, separated by commas
    spam_status: Spam status; any of several, separated by commas
    received_after: Only those received after this time
    received_before: Only those received before this time
    """


class ListSmtpCredentialsParams(TypedDict, total=False):
    """Params of `smtpCredentials.list`."""

    limit: int
    """Number of entries"""
    cursor: str
    """`next_cursor` of the previous page"""


class ListSmtpCredentialsResponse(TypedDict):
    """A page of the list"""

    smtp_credentials: List[SmtpCredential]
    """The entries, newest first"""
    has_more: bool
    """Whether there are more"""
    next_cursor: Optional[str]
    """The `cursor` of the next page"""


class ListSuppressionImportsParams(TypedDict, total=False):
    """Params of `suppressions.listImports`."""

    limit: int
    """Number of entries"""
    cursor: str
    """`next_cursor` of the previous page"""


class ListSuppressionsParams(TypedDict, total=False):
    """Params of `suppressions.list`."""

    limit: int
    """Number of entries"""
    cursor: str
    """`next_cursor` of the previous page"""
    email: str
    """An address, or `@domain.tld`"""
    reason: str
    """Any of these reasons, separated by commas: hard_bounce, soft_bounce, complaint, unsubscribe, smtp_failure,
    manual, import"""
    source: str
    """Any of these sources, separated by commas: system, api, dashboard, recipient, import"""
    created_after: Union[str, datetime.datetime]
    """Only those created after this time"""
    created_before: Union[str, datetime.datetime]
    """Only those created before this time"""


class ListTemplateVersionsParams(TypedDict, total=False):
    """Params of `templates.versions.list`."""

    limit: int
    """Number of entries"""
    cursor: str
    """`next_cursor` of the previous page"""


class ListTemplatesParams(TypedDict, total=False):
    """Params of `templates.list`."""

    limit: int
    """Number of entries"""
    cursor: str
    """`next_cursor` of the previous page"""
    category: str
    """Any of these, separated by commas: transactional, product, newsletter"""
    status: str
    """Any of these, separated by commas: draft, published, archived"""


class ListWebhookDeliveriesParams(TypedDict, total=False):
    """Params of `webhooks.deliveries.list`."""

    limit: int
    """Number of entries"""
    cursor: str
    """`next_cursor` of the previous page"""
    status: str
    """Any of these, separated by commas: pending, delivered, failed"""
    type: str
    """Any of these, separated by commas: email.received, email.sent, email.delivered, email.delivery_delayed,
    email.bounced, email.complained, email.opened, email.clicked, email.failed, email.suppressed, email.scheduled,
    contact.unsubscribed, automation.started, automation.step_completed, automation.completed, automation.failed,
    email.cancelled, domain.verified, domain.degraded, suppression.created, suppression.deleted, webhook.disabled,
    affiliate.created, affiliate.approved, affiliate.updated, referral.created, referral.converted,
    commission.created, commission.earned, commission.reversed, commission.paid, payout.created, payout.paid,
    payout.failed"""
    created_after: Union[str, datetime.datetime]
    """Only those created after this time"""
    created_before: Union[str, datetime.datetime]
    """Only those created before this time"""


class ListWebhookEventsParams(TypedDict, total=False):
    """Params of `webhookEvents.list`."""

    limit: int
    """Number of entries"""
    cursor: str
    """`next_cursor` of the previous page"""
    types: str
    """Any of these, separated by commas: email.received, email.sent, email.delivered, email.delivery_delayed,
    email.bounced, email.complained, email.opened, email.clicked, email.failed, email.suppressed, email.scheduled,
    contact.unsubscribed, automation.started, automation.step_completed, automation.completed, automation.failed,
    email.cancelled, domain.verified, domain.degraded, suppression.created, suppression.deleted, webhook.disabled,
    affiliate.created, affiliate.approved, affiliate.updated, referral.created, referral.converted,
    commission.created, commission.earned, commission.reversed, commission.paid, payout.created, payout.paid,
    payout.failed"""
    order: ListWebhookEventsOrder
    """`asc`: oldest first, and the last page has a cursor too, for polling; `desc`: newest first"""


class ListWebhooksParams(TypedDict, total=False):
    """Params of `webhooks.list`."""

    limit: int
    """Number of entries"""
    cursor: str
    """`next_cursor` of the previous page"""


class LoggedRequest(TypedDict):
    """A logged request; its query and body are not stored"""

    id: str
    """`req_…`, the response's `x-request-id`"""
    method: str
    """The method"""
    path: str
    """The path; email addresses are redacted"""
    operation: str
    """The operation"""
    status: int
    """The response status"""
    error_code: Optional[str]
    """The error's code"""
    duration_ms: int
    """Duration in milliseconds"""
    api_key_id: Optional[str]
    """The API key of the request"""
    user_id: Optional[str]
    """The user whose session made the request"""
    grant_id: Optional[str]
    """The grant whose access token made the request"""
    created_at: str
    """When it was received"""


class MarkAffiliatePayoutPaidParams(TypedDict):
    """Params of `affiliatePayouts.markPaid`."""

    reference: str
    """Reference of the payment, as proof"""


class _MarkAffiliatePayoutPaidResponseRequired(TypedDict):
    payout: AffiliatePayout


class MarkAffiliatePayoutPaidResponse(_MarkAffiliatePayoutPaidResponseRequired, total=False):
    """A response with a single object"""

    warnings: List[str]
    """Warnings, for example about ignored fields"""


class OneAffiliate(TypedDict):
    """A response with a single object"""

    affiliate: Affiliate


class OneAffiliateCampaign(TypedDict):
    """A response with a single object"""

    campaign: AffiliateCampaign


class OneAffiliatePayout(TypedDict):
    """A response with a single object"""

    payout: AffiliatePayout


class OneAffiliateReferral(TypedDict):
    """A response with a single object"""

    referral: AffiliateReferral


class OneDomain(TypedDict):
    """A domain"""

    domain: Domain


class OneDomainClaim(TypedDict):
    """A claim"""

    claim: DomainClaim


_OneImportRequired = TypedDict(
    "_OneImportRequired",
    {
        "import": "SuppressionImport",
    },
)
_OneImportOptional = TypedDict(
    "_OneImportOptional",
    {
    },
    total=False,
)


class OneImport(_OneImportRequired, _OneImportOptional):
    """An import of suppressions

    import: An import of suppressions
    """


class OneProductEvent(TypedDict):
    """A product event"""

    event: ProductEvent


class OneReceivedEmail(TypedDict):
    """A received email"""

    received_email: ReceivedEmailDetail


class OneSuppression(TypedDict):
    """A suppression"""

    suppression: Suppression


class OneWebhook(TypedDict):
    """An endpoint"""

    webhook: Webhook


class OneWebhookDelivery(TypedDict):
    """A delivery"""

    delivery: WholeWebhookDelivery


class PayoutCreatedData(TypedDict, total=False):
    """`data` of `payout.created`."""

    event_id: str
    """The event's id (`evt_…`), the same in every delivery: use it to recognise repetitions"""
    payout_id: str
    """The payout (`pay_…`)"""
    program_id: str
    """The affiliate program (`prog_…`)"""
    affiliate_id: str
    """The partner (`aff_…`)"""


class PayoutFailedData(TypedDict, total=False):
    """`data` of `payout.failed`."""

    event_id: str
    """The event's id (`evt_…`), the same in every delivery: use it to recognise repetitions"""
    payout_id: str
    """The payout (`pay_…`)"""
    program_id: str
    """The affiliate program (`prog_…`)"""
    affiliate_id: str
    """The partner (`aff_…`)"""


class PayoutPaidData(TypedDict, total=False):
    """`data` of `payout.paid`."""

    event_id: str
    """The event's id (`evt_…`), the same in every delivery: use it to recognise repetitions"""
    payout_id: str
    """The payout (`pay_…`)"""
    program_id: str
    """The affiliate program (`prog_…`)"""
    affiliate_id: str
    """The partner (`aff_…`)"""


class PreviewTemplateParams(TypedDict, total=False):
    """Params of `templates.preview`."""

    variables: Optional[Mapping[str, Any]]
    """The template's variables by name"""
    version: Optional[Union[Literal["draft"], int]]
    """The version to render; default: the draft"""
    changes: Optional[UnsavedTemplateDraft]


class ProductEvent(TypedDict):
    """A product event"""

    id: str
    """`ae_…`"""
    name: str
    """The event name"""
    user_id: Optional[str]
    """The person's user id in your product"""
    email: Optional[str]
    """The person's email address"""
    data: Dict[str, Any]
    """Event data; credentials are stored as `REDACTED`"""
    source: str
    """The source, like `api`"""
    created_at: str
    """When it was accepted"""


class ProductEventList(TypedDict):
    """A page of the list"""

    events: List[ProductEvent]
    """The entries, newest first"""
    has_more: bool
    """Whether there are more"""
    next_cursor: Optional[str]
    """The `cursor` of the next page"""


class PublishTemplateParams(TypedDict, total=False):
    """Params of `templates.publish`."""

    note: Optional[str]
    """Note of the version"""


class _PublishTemplateResponseRequired(TypedDict):
    template: Template
    version: TemplateVersion


class PublishTemplateResponse(_PublishTemplateResponseRequired, total=False):
    """The template and its new version"""

    warnings: List[str]
    """Warnings, for example about ignored fields"""


class QueuedWebhookDelivery(TypedDict):
    """A queued delivery"""

    delivery: WebhookDelivery


_ReceivedEmailRequired = TypedDict(
    "_ReceivedEmailRequired",
    {
        "email_id": "str",
        "to": "List[str]",
        "from": "str",
        "subject": "str",
        "status": "Literal[\"received\"]",
        "rcpt_to": "str",
        "cc": "List[str]",
        "message_id": "str",
        "in_reply_to": "Optional[str]",
        "references": "List[str]",
        "spam_status": "SpamStatus",
        "attachment_count": "int",
        "received_at": "str",
        "domain": "str",
        "envelope_from": "Optional[str]",
        "attachments": "List[ReceivedEmailAttachment]",
        "auth": "ReceivedEmailAuth",
    },
)
_ReceivedEmailOptional = TypedDict(
    "_ReceivedEmailOptional",
    {
    },
    total=False,
)


class ReceivedEmail(_ReceivedEmailRequired, _ReceivedEmailOptional):
    """A received email

    email_id: Id (`inb_…`)
    to: Addresses of the `To` header field
    from: Author: `Ada <ada@example.com>`
    subject: Subject
    rcpt_to: Envelope recipient
    cc: Addresses of the `Cc` header field
    message_id: Message-ID with angle brackets; empty if missing
    in_reply_to: Message-ID of the email that this one replies to
    references: Message-IDs of the thread, oldest first
    spam_status: Spam status
    attachment_count: Number of attachments; those beyond 2,000 parts are not counted
    received_at: Time of receipt
    domain: Receiving domain
    envelope_from: Envelope sender; null for the null reverse path of bounces
    attachments: The first attachments
    auth: Authentication results
    """


class ReceivedEmailAttachment(TypedDict):
    """An attachment"""

    filename: str
    """File name; generated if the sender gave none"""
    content_type: str
    """MIME type"""
    size: int
    """Decoded size in bytes"""


class ReceivedEmailAuth(TypedDict):
    """Authentication results"""

    spf: AuthenticationResult
    """SPF result of the envelope sender"""
    dkim: AuthenticationResult
    """DKIM result"""
    dmarc: AuthenticationResult
    """DMARC result of the author's domain"""


_ReceivedEmailDetailRequired = TypedDict(
    "_ReceivedEmailDetailRequired",
    {
        "email_id": "str",
        "to": "List[str]",
        "from": "str",
        "subject": "str",
        "status": "Literal[\"received\"]",
        "rcpt_to": "str",
        "cc": "List[str]",
        "message_id": "str",
        "in_reply_to": "Optional[str]",
        "references": "List[str]",
        "spam_status": "SpamStatus",
        "attachment_count": "int",
        "received_at": "str",
        "domain": "str",
        "envelope_from": "Optional[str]",
        "text": "Optional[str]",
        "html": "Optional[str]",
        "stripped_text": "Optional[str]",
        "headers": "List[EmailHeader]",
        "auth": "ReceivedEmailDetailAuth",
        "spam_score": "Optional[float]",
        "size": "int",
        "attachments": "List[ReceivedEmailDetailAttachment]",
    },
)
_ReceivedEmailDetailOptional = TypedDict(
    "_ReceivedEmailDetailOptional",
    {
    },
    total=False,
)


class ReceivedEmailDetail(_ReceivedEmailDetailRequired, _ReceivedEmailDetailOptional):
    """A received email with texts, header fields and attachments

    email_id: Id (`inb_…`)
    to: Addresses of the `To` header field
    from: Author: `Ada <ada@example.com>`
    subject: Subject
    rcpt_to: Envelope recipient
    cc: Addresses of the `Cc` header field
    message_id: Message-ID with angle brackets; empty if missing
    in_reply_to: Message-ID of the email that this one replies to
    references: Message-IDs of the thread, oldest first
    spam_status: Spam status
    attachment_count: Number of attachments; those beyond 2,000 parts are not counted
    received_at: Time of receipt
    domain: Receiving domain
    envelope_from: Envelope sender; null for the null reverse path of bounces
    text: Plain text
    html: HTML, unchanged: sanitize it before you display it
    stripped_text: Plain text without quoted replies
    headers: Header fields in order
    auth: Authentication results
    spam_score: Spam score
    size: Size of the message in bytes
    attachments: Attachments
    """


class ReceivedEmailDetailAttachment(TypedDict):
    """An attachment"""

    id: str
    """`att_` and its index, from 0"""
    filename: str
    """File name; generated if the sender gave none"""
    content_type: str
    """MIME type"""
    size: int
    """Decoded size in bytes"""
    charset: Optional[str]
    """Declared character set; the bytes are unchanged"""
    content_id: Optional[str]
    """Content-ID, by which HTML refers to it"""
    disposition: Disposition
    """Content-Disposition"""
    data: Optional[str]
    """Bytes in base64; null with `attachments=none`"""


class ReceivedEmailDetailAuth(TypedDict):
    """Authentication results"""

    spf: AuthenticationResult
    """Result of the check"""
    dkim: AuthenticationResult
    """Result of the check"""
    dmarc: AuthenticationResult
    """Result of the check"""
    arc: AuthenticationResult
    """Result of the check"""


class ReceivedEmailList(TypedDict):
    """A page of received emails"""

    received_emails: List[ReceivedEmail]
    """The received emails, in the requested order"""
    has_more: bool
    """Whether there are more"""
    next_cursor: Optional[str]
    """The `cursor` of the next page"""


class Recipient(TypedDict):
    """A recipient"""

    email: str
    """The address"""
    type: RecipientType
    """The header field"""
    status: RecipientStatus
    """The delivery status"""
    attempts: int
    """Number of delivery attempts"""
    last_response: Optional[RecipientLastResponse]
    """The last response of the destination"""
    error: Optional[str]
    """Why the last attempt failed, if it was not a response of a host"""
    mx_host: Optional[str]
    """The mail host of the last response"""
    delivered_at: Optional[str]
    """When it was delivered"""
    bounced_at: Optional[str]
    """When it bounced"""
    opened_at: Optional[str]
    """When it was first opened"""
    clicked_at: Optional[str]
    """When a link was first clicked"""
    complained_at: Optional[str]
    """When the recipient reported spam"""
    next_attempt_at: Optional[str]
    """When the next attempt is due"""
    waits_for: Optional[WaitReason]
    """Why the recipient waits; null if no further automatic action is pending"""


class RecipientLastResponse(TypedDict):
    """An SMTP reply"""

    smtp_code: int
    """The three-digit SMTP reply code"""
    enhanced_code: Optional[str]
    """The enhanced status code (RFC 3463), like `5.1.1`"""
    text: str
    """The text of the response"""


class ReferralConvertedData(TypedDict, total=False):
    """`data` of `referral.converted`."""

    event_id: str
    """The event's id (`evt_…`), the same in every delivery: use it to recognise repetitions"""
    referral: AffiliateReferral
    """The referral after the change"""
    program_id: str
    """The affiliate program (`prog_…`)"""
    affiliate_id: str
    """The partner (`aff_…`)"""


class ReferralCreatedData(TypedDict, total=False):
    """`data` of `referral.created`."""

    event_id: str
    """The event's id (`evt_…`), the same in every delivery: use it to recognise repetitions"""
    referral: AffiliateReferral
    """The referral after the change"""
    program_id: str
    """The affiliate program (`prog_…`)"""
    affiliate_id: str
    """The partner (`aff_…`)"""


class RejectAffiliateParams(TypedDict, total=False):
    """Params of `affiliates.reject`."""

    reason: Optional[str]
    """The reason, as free text"""
    send_email: Optional[bool]
    """Whether to notify the partner by email; defaults to true"""


class _RejectAffiliateResponseRequired(TypedDict):
    affiliate: Affiliate


class RejectAffiliateResponse(_RejectAffiliateResponseRequired, total=False):
    """A response with a single object"""

    warnings: List[str]
    """Warnings, for example about ignored fields"""


class ReplayAutomationParams(TypedDict, total=False):
    """Params of `automations.replay`."""

    trigger: Optional[AutomationTrigger]
    steps: Optional[Sequence[Union[AutomationStep, Mapping[str, Any]]]]
    """The steps; the stored ones if omitted"""
    limit: Optional[int]
    """The number of past events, newest first; default: 100"""


class _ReplayAutomationResponseRequired(TypedDict):
    replay: AutomationReplay


class ReplayAutomationResponse(_ReplayAutomationResponseRequired, total=False):
    """A response with a replay"""

    warnings: List[str]
    """Warnings, for example about ignored fields"""


class _ReplayWebhookDeliveriesParamsRequired(TypedDict):
    since: Union[str, datetime.datetime]
    """Deliveries created at this time or later"""


class ReplayWebhookDeliveriesParams(_ReplayWebhookDeliveriesParamsRequired, total=False):
    """Params of `webhooks.replay`."""

    until: Optional[Union[str, datetime.datetime]]
    """Deliveries created before this time; default: now"""
    status: Optional[ReplayWebhookDeliveriesStatus]
    """Deliveries with this status"""
    events: Optional[Sequence[WebhookEventType]]
    """Deliveries of these events; default: all"""


class _ReplayWebhookDeliveriesResponseRequired(TypedDict):
    queued: int
    """Number of queued deliveries"""
    next_since: Optional[str]
    """`since` of the next request, if there were too many deliveries for one"""


class ReplayWebhookDeliveriesResponse(_ReplayWebhookDeliveriesResponseRequired, total=False):
    """The queued deliveries"""

    warnings: List[str]
    """Warnings, for example about ignored fields"""


class ReplyToReceivedEmailParams(TypedDict, total=False):
    """Params of `receivedEmails.reply`."""

    html: Optional[str]
    """The HTML body"""
    text: Optional[str]
    """The plain-text body"""


class ResendEmailParams(TypedDict, total=False):
    """Params of `emails.resend`."""

    attachments: Optional[bool]
    """Whether the new email also has the attachments; without them, the response has the warning `attachments_omitted`"""


class _ReverseAffiliateCommissionParamsRequired(TypedDict):
    status: Literal["reversed"]
    """Reverses the commission"""


class ReverseAffiliateCommissionParams(_ReverseAffiliateCommissionParamsRequired, total=False):
    """Params of `affiliateCommissions.reverse`."""

    reason: Optional[ReverseAffiliateCommissionReason]
    """The reason; `fraud` also reverses the recruiting partner's commission"""
    note: Optional[str]
    """Your team's note; sent with the event"""


class _ReverseAffiliateCommissionResponseRequired(TypedDict):
    commission: AffiliateCommission


class ReverseAffiliateCommissionResponse(_ReverseAffiliateCommissionResponseRequired, total=False):
    """A response with a single object"""

    warnings: List[str]
    """Warnings, for example about ignored fields"""


class _RollBackTemplateParamsRequired(TypedDict):
    version: int
    """The version to publish again"""


class RollBackTemplateParams(_RollBackTemplateParamsRequired, total=False):
    """Params of `templates.rollBack`."""

    note: Optional[str]
    """Note of the version"""


class _RollBackTemplateResponseRequired(TypedDict):
    template: Template
    version: TemplateVersion


class RollBackTemplateResponse(_RollBackTemplateResponseRequired, total=False):
    """The template and its new version"""

    warnings: List[str]
    """Warnings, for example about ignored fields"""


class RotateApiKeyParams(TypedDict, total=False):
    """Params of `apiKeys.rotate`."""

    grace_hours: Optional[int]
    """For how many hours the previous secret stays valid"""


class _RotateApiKeyResponseRequired(TypedDict):
    api_key: ApiKey
    secret: str
    """The secret; shown only in this response"""


class RotateApiKeyResponse(_RotateApiKeyResponseRequired, total=False):
    """API key"""

    warnings: List[str]
    """Warnings, for example about ignored fields"""


class RotateSmtpCredentialParams(TypedDict, total=False):
    """Params of `smtpCredentials.rotate`."""

    grace_hours: Optional[int]
    """For how many hours the previous secret stays valid"""


class _RotateSmtpCredentialResponseRequired(TypedDict):
    smtp_credential: SmtpCredential
    password: str
    """The secret; shown only in this response"""


class RotateSmtpCredentialResponse(_RotateSmtpCredentialResponseRequired, total=False):
    """SMTP credential"""

    warnings: List[str]
    """Warnings, for example about ignored fields"""


class RotateWebhookSecretParams(TypedDict, total=False):
    """Params of `webhooks.rotateSecret`."""

    grace_hours: Optional[int]
    """Hours during which the old secret still signs, in addition to the new one"""


class _RotateWebhookSecretResponseRequired(TypedDict):
    webhook: Webhook
    secret: str
    """Signing secret (`whsec_…`); it is not shown again"""


class RotateWebhookSecretResponse(_RotateWebhookSecretResponseRequired, total=False):
    """An endpoint and its secret"""

    warnings: List[str]
    """Warnings, for example about ignored fields"""


class SaveDnsCredentialsParams(TypedDict):
    """Params of `dnsCredentials.save`."""

    credentials: Mapping[str, str]
    """An object. cloudflare: `api_token`; route53: `access_key_id`, `secret_access_key`, `session_token?`, `region?`,
    `hosted_zone_id?`; digitalocean: `api_token`; hetzner: `api_token`; gandi: `api_token`; rfc2136: `server`,
    `key_name`, `algorithm?`, `secret`; bunny: `api_token`; desec: `api_token`; dnsimple: `account_id`, `api_token`;
    gcore: `api_token`; godaddy: `api_key`, `api_secret`; hostinger: `api_token`; infomaniak: `api_token`; ionos:
    `api_token`; linode: `api_token`; namecom: `username`, `api_token`; netlify: `api_token`; ns1: `api_token`;
    porkbun: `api_key`, `secret_api_key`; scaleway: `api_token`; vercel: `api_token`; vultr: `api_token`"""


class _SaveDnsCredentialsResponseRequired(TypedDict):
    dns_credentials: SavedDnsCredentials


class SaveDnsCredentialsResponse(_SaveDnsCredentialsResponseRequired, total=False):
    """The saved credentials"""

    warnings: List[str]
    """Warnings, for example about ignored fields"""


class SavedDnsCredentials(TypedDict):
    """Saved credentials; secrets are never returned"""

    provider: DnsProvider
    """The provider"""
    saved_at: str
    """When they were saved"""


class SavedDnsCredentialsList(TypedDict):
    """A page of the list"""

    dns_credentials: List[SavedDnsCredentials]
    """The entries, newest first"""
    has_more: bool
    """Whether there are more"""
    next_cursor: Optional[str]
    """The `cursor` of the next page"""


class SendBatchParams(TypedDict):
    """Params of `emails.sendBatch`."""

    emails: Sequence[BatchItem]


class _SendBatchResponseRequired(TypedDict):
    data: List[BatchResult]
    """One entry per email, in order"""


class SendBatchResponse(_SendBatchResponseRequired, total=False):
    """The results of a batch"""

    warnings: List[str]
    """Warnings, for example about ignored fields"""


_SendEmailParamsRequired = TypedDict(
    "_SendEmailParamsRequired",
    {
        "to": "Union[str, Sequence[str]]",
    },
)
_SendEmailParamsOptional = TypedDict(
    "_SendEmailParamsOptional",
    {
        "from": "Optional[Union[str, EmailAddress]]",
        "cc": "Optional[Union[str, Sequence[str]]]",
        "bcc": "Optional[Union[str, Sequence[str]]]",
        "reply_to": "Optional[Union[str, Sequence[str]]]",
        "subject": "Optional[str]",
        "html": "Optional[str]",
        "text": "Optional[str]",
        "headers": "Optional[Mapping[str, str]]",
        "tags": "Optional[Union[Sequence[EmailTag], Mapping[str, str]]]",
        "attachments": "Optional[Sequence[EmailAttachment]]",
        "category": "Optional[EmailCategory]",
        "scheduled_at": "Optional[Union[str, datetime.datetime]]",
        "expires_in": "Optional[int]",
        "on_suppressed": "Optional[OnSuppressed]",
        "unsubscribe": "Optional[bool]",
        "template": "Optional[Union[str, EmailTemplate]]",
        "variables": "Optional[Mapping[str, Any]]",
    },
    total=False,
)


class SendEmailParams(_SendEmailParamsRequired, _SendEmailParamsOptional):
    """Params of `emails.send`.

    from: The author: `Ada <ada@example.com>`; its domain must be verified
    to: Recipients
    cc: Recipients of a copy
    bcc: Recipients of a blind copy
    reply_to: Addresses for replies (also `replyTo`)
    subject: The subject
    html: The HTML body (also `htmlBody`, `html_body`)
    text: The plain-text body (also `textBody`, `text_body`, `plain_body`)
    headers: Custom headers; headers that control transport are rejected
    tags: Stored with the email and sent along with its events
    attachments: The attachments
    category: The category
    scheduled_at: When to send the email; attachments are not supported (also `scheduledAt`)
    expires_in: Lifetime in seconds: the email is sent with priority and fails after this time
    on_suppressed: If some recipients are suppressed: `skip` sends to the others, `fail` rejects the email
    unsubscribe: Managed unsubscribe (RFC 8058)
    template: A published template: its alias, its id (`tpl_…`), or an object. It provides the bodies, and the
        subject, author, reply addresses and category if they are omitted (also `template_id`, `templateId`,
        `template_alias`, `templateAlias`)
    variables: The template's variables by name (also `template_data`, `templateData`, `data_variables`,
        `dataVariables`, `dynamic_template_data`)
    """


class SendEventParams(TypedDict, total=False):
    """Params of `events.send`."""

    name: Optional[str]
    """The event name, like `user.created`. No control characters, no leading or trailing spaces, no name of an event
    of the service (`email.delivered`)"""
    type: Optional[str]
    """Alias of `name`; one of them is required"""
    user_id: Optional[str]
    """The person's user id in your product"""
    email: Optional[str]
    """The person's email address"""
    data: Optional[Mapping[str, Any]]
    """Event data, at most 65536 bytes and 32 levels. Automations receive it unchanged; credentials in it are stored as
    `REDACTED`. For sign-ups and subscriptions: `id`, `visitor_id`, `gclid`, `gbraid`, `wbraid` (or the cookie
    `rnl_ad`), `came_from`, `signup_method`, `invited`, `internal`, `value`, `currency`"""
    dry_run: Optional[bool]
    """Dashboard sessions only: run an automation as a test without sending anything"""
    test_send: Optional[bool]
    """Dashboard sessions only: run an automation as a test and send its messages"""
    automation_id: Optional[str]
    """Dashboard sessions only: the automation to test"""


class _SendEventResponseRequired(TypedDict):
    event: ProductEvent
    matched_automations: int
    """Number of active automations that the event triggered"""
    resumed_runs: int
    """Number of waiting runs that the event resumed"""
    cancelled_runs: int
    """Number of runs that the event cancelled"""


class SendEventResponse(_SendEventResponseRequired, total=False):
    """The event was accepted"""

    run: AutomationRun
    warnings: List[str]
    """Warnings, for example about ignored fields"""


class _SentRequired(TypedDict):
    id: str
    """The email's id (`msg_…`)"""
    status: SentStatus
    """The email is stored and will be delivered"""


class Sent(_SentRequired, total=False):
    """The email was accepted"""

    warnings: List[str]
    """Warnings, for example about ignored fields"""


class SmtpCredential(TypedDict):
    """An SMTP credential, without its password"""

    id: str
    """`smtp_…`"""
    name: str
    """The name"""
    host: str
    """The SMTP host"""
    port: int
    """The port"""
    security: SmtpSecurity
    """How TLS is started"""
    username: str
    """The user name; the same for all credentials"""
    hint: str
    """The displayable part of the password"""
    enabled: bool
    """Whether the credential is enabled"""
    domain_id: Optional[str]
    """The only domain that the credential may send from; null allows all"""
    allowed_ips: List[str]
    """Addresses and networks that may use the credential; empty allows all"""
    last_used_at: Optional[str]
    """When it was last used, to about a minute"""
    last_used_ip: Optional[str]
    """The IP address of the last use"""
    expires_at: Optional[str]
    """When the credential expires"""
    policy: Optional[ClientPolicy]
    created_at: str
    """When it was created"""


class StepOutput(TypedDict, total=False):
    """What the step produced"""

    email_id: str
    """The email that the step sent (`msg_…`); only of steps that send one"""


class StreamEvent(TypedDict):
    """An event, as in a webhook body"""

    id: str
    """Id (`evt_…`)"""
    type: WebhookEventType
    """Type"""
    created_at: str
    """Time of the event"""
    data: Dict[str, Any]
    """The `data` of the webhook body"""


class StreamEventList(TypedDict):
    """A page of the stream"""

    events: List[StreamEvent]
    """The events, in the requested order"""
    has_more: bool
    """Whether there are more events now"""
    next_cursor: Optional[str]
    """The `cursor` of the next page; with `asc` also on the last page, for polling"""


class Suppression(TypedDict):
    """A suppressed address or domain"""

    id: str
    """Id (`sup_…`)"""
    email: str
    """The address in lower case, as used for comparison; or `@domain.tld` for a whole domain"""
    reason: SuppressionReason
    """Reason"""
    source: SuppressionSource
    """Source"""
    email_id: Optional[str]
    """The email that caused it"""
    detail: Optional[SuppressionDetail]
    """The reply of the remote host"""
    note: Optional[str]
    """Note"""
    expires_at: Optional[str]
    """Expiry; null means never"""
    created_at: str
    """Time of creation"""


class _SuppressionCheckRequired(TypedDict):
    email: str
    """The address in lower case, as used for comparison; an invalid entry is unchanged"""
    suppressed: bool
    """Whether nothing is sent to the address"""
    reason: Optional[SuppressionReason]
    """Reason of the suppression of the address or its domain"""
    categories: List[CategoryOptOutCategory]
    """Categories that the address opted out of"""
    suppression_id: Optional[str]
    """Id of the suppression (`sup_…`)"""
    expires_at: Optional[str]
    """Expiry of the suppression; null means never"""


class SuppressionCheck(_SuppressionCheckRequired, total=False):
    """The result for one address"""

    error: SuppressionCheckError
    """Present if the entry is not an address"""


class _SuppressionCheckErrorRequired(TypedDict):
    message: str
    """Message for people"""
    code: str
    """Code for programs, as in responses to single requests"""


class SuppressionCheckError(_SuppressionCheckErrorRequired, total=False):
    """Present if the entry is not an address"""

    details: Dict[str, Any]
    """Details of the error"""
    upgrade_url: str
    """The page to upgrade the account"""


class SuppressionCreatedData(TypedDict, total=False):
    """`data` of `suppression.created`."""

    event_id: str
    """The event's id (`evt_…`), the same in every delivery: use it to recognise repetitions"""
    suppression_id: str
    """The suppression (`sup_…`)"""
    email: str
    """The address in lower case, as used for comparison; or `@domain.tld` for a whole domain"""
    reason: str
    """Reason"""
    source: str
    """Source"""
    email_id: Optional[str]
    expires_at: Optional[str]
    created_at: str
    """Time of creation"""


class SuppressionDeletedData(TypedDict, total=False):
    """`data` of `suppression.deleted`."""

    event_id: str
    """The event's id (`evt_…`), the same in every delivery: use it to recognise repetitions"""
    suppression_id: str
    """The suppression (`sup_…`)"""
    email: str
    """The address in lower case, as used for comparison; or `@domain.tld` for a whole domain"""
    reason: str
    """Reason"""
    source: str
    """Source"""
    email_id: Optional[str]
    expires_at: Optional[str]
    created_at: str
    """Time of creation"""


class SuppressionDetail(TypedDict):
    """The reply of the remote host"""

    smtp_code: Optional[int]
    """SMTP reply code"""
    enhanced_code: Optional[str]
    """Enhanced status code (RFC 3463)"""
    diagnostic: str
    """Text of the reply"""


class SuppressionImport(TypedDict):
    """An import of suppressions"""

    id: str
    """Id (`imp_…`)"""
    status: SuppressionImportStatus
    """Status"""
    counts: SuppressionImportCounts
    """Progress"""
    errors: List[SuppressionImportError]
    """The first invalid lines"""
    created_at: str
    """Time of the request"""
    completed_at: Optional[str]
    """Time of completion"""


class SuppressionImportCounts(TypedDict):
    """Progress"""

    total: int
    """Records in the list"""
    processed: int
    """Records read so far"""
    created: int
    """Suppressions created"""
    exists: int
    """Addresses that were already suppressed"""
    invalid: int
    """Invalid records"""
    refused: int
    """Records refused because the plan's quota is used up"""


class SuppressionImportError(TypedDict):
    """An invalid line"""

    line: int
    """Line number, from 1"""
    message: str
    """The error message"""


class SuppressionImportForecast(TypedDict):
    """The result that an import would have"""

    counts: SuppressionImportForecastCounts
    """The number of lines by result"""
    left_out: List[SuppressionImportForecastLeftOut]
    """The first 100 lines that would be skipped"""
    lines: List[SuppressionImportForecastLeftOut]
    """The first 100 other lines"""


class SuppressionImportForecastCounts(TypedDict):
    """The number of lines by result"""

    total: int
    """Records in the list"""
    created: int
    """Suppressions that would be created or changed"""
    exists: int
    """Records whose address is already suppressed, or is on an earlier line"""
    repeated: int
    """Records whose address is on an earlier line"""
    invalid: int
    """Invalid records"""
    refused: int
    """Records that the plan has no room for"""


class SuppressionImportForecastLeftOut(TypedDict):
    """A line with the result that an import would have"""

    line: int
    """Line number, from 1"""
    email: Optional[str]
    """The address or domain; null if the line is invalid"""
    reason: Optional[SuppressionReason]
    """The reason in the list; null if the line is invalid"""
    result: SuppressionImportForecastLeftOutResult
    """`created`: a suppression would be created or get this reason; `exists`: the address is already suppressed;
    `repeated`: an earlier line has the address; `invalid`: the line would be skipped"""
    existing_reason: Optional[SuppressionImportForecastLeftOutExistingReason]
    """The reason of the suppression that exists"""
    message: Optional[str]
    """Why the line would be skipped"""


class SuppressionImportList(TypedDict):
    """A page of the list"""

    imports: List[SuppressionImport]
    """The imports, newest first; the newest 100 are kept"""
    has_more: bool
    """Whether there are more"""
    next_cursor: Optional[str]
    """The `cursor` of the next page"""


class SuppressionList(TypedDict):
    """A page of the list"""

    suppressions: List[Suppression]
    """The entries, newest first"""
    has_more: bool
    """Whether there are more"""
    next_cursor: Optional[str]
    """The `cursor` of the next page"""


class _SuppressionResultRequired(TypedDict):
    index: int
    """Index in the request, from 0"""
    id: Optional[str]
    """The suppression's id (`sup_…`)"""
    status: SuppressionResultStatus
    """`created` by this request, `exists` already, or `failed`"""


class SuppressionResult(_SuppressionResultRequired, total=False):
    """The result for one address"""

    warnings: List[str]
    """Differences from the request or from the suppression before"""
    error: SuppressionResultError
    """The error"""


class _SuppressionResultErrorRequired(TypedDict):
    message: str
    """Message for people"""
    code: str
    """Code for programs, as in responses to single requests"""


class SuppressionResultError(_SuppressionResultErrorRequired, total=False):
    """The error"""

    details: Dict[str, Any]
    """Details of the error"""
    upgrade_url: str
    """The page to upgrade the account"""


class SuspendAffiliateParams(TypedDict, total=False):
    """Params of `affiliates.suspend`."""

    reason: Optional[str]
    """The reason, as free text"""


class _SuspendAffiliateResponseRequired(TypedDict):
    affiliate: Affiliate


class SuspendAffiliateResponse(_SuspendAffiliateResponseRequired, total=False):
    """A response with a single object"""

    warnings: List[str]
    """Warnings, for example about ignored fields"""


_TemplateRequired = TypedDict(
    "_TemplateRequired",
    {
        "id": "str",
        "alias": "Optional[str]",
        "name": "str",
        "category": "EmailCategory",
        "unsubscribe_enabled": "bool",
        "from": "Optional[str]",
        "reply_to": "List[str]",
        "subject": "Optional[str]",
        "preheader": "Optional[str]",
        "variables": "List[TemplateVariable]",
        "status": "TemplateStatus",
        "draft_version": "int",
        "published_version": "Optional[int]",
        "has_unpublished_changes": "bool",
        "published_at": "Optional[str]",
        "created_at": "str",
        "updated_at": "str",
    },
)
_TemplateOptional = TypedDict(
    "_TemplateOptional",
    {
        "html": "Optional[str]",
        "mjml": "Optional[str]",
        "text": "Optional[str]",
    },
    total=False,
)


class Template(_TemplateRequired, _TemplateOptional):
    """A template: its draft, and the state of its publication

    id: Id (`tpl_…`)
    alias: Name for API calls
    name: Display name
    category: Category
    unsubscribe_enabled: Managed unsubscribe; always on for product and newsletter
    from: Default author, unless the send request has one
    reply_to: Default `Reply-To`, unless the send request has one
    subject: Markup of the subject
    preheader: Markup of the preview text after the subject
    html: Markup of the HTML body, compiled if there is `mjml`; omitted in lists
    mjml: MJML source of the HTML body, or null; omitted in lists
    text: Markup of the plain-text body; omitted in lists
    variables: Declared variables
    status: Status
    draft_version: Number of changes of the draft; send it as `if_version`
    published_version: The published version, which is sent
    has_unpublished_changes: Whether the draft differs from the published version
    published_at: Time of the last publication
    created_at: Time of creation
    updated_at: Time of the last change
    """


class TemplateList(TypedDict):
    """A page of the list"""

    templates: List[Template]
    """The entries, newest first"""
    has_more: bool
    """Whether there are more"""
    next_cursor: Optional[str]
    """The `cursor` of the next page"""


class TemplatePreview(TypedDict):
    """The rendered template"""

    subject: Optional[str]
    """The subject"""
    html: Optional[str]
    """The HTML body; tags of missing variables stay"""
    text: Optional[str]
    """The plain-text body"""
    missing_variables: List[str]
    """Required variables that are missing: a send would be refused"""
    unused_variables: List[str]
    """Given or declared variables that the template does not use"""
    suggested_variables: Dict[str, Any]
    """Example variables for this template"""
    warnings: List[str]
    """Warnings about the content"""
    size_bytes: int
    """Size of both bodies in bytes"""


class _TemplateVariableRequired(TypedDict):
    key: str
    """Name"""


class TemplateVariable(_TemplateVariableRequired, total=False):
    """A declared variable"""

    type: TemplateVariableType
    """Type; default: `string`"""
    required: bool
    """Whether a send without it is refused; default: true unless there is a fallback"""
    fallback_value: Any
    """Value if the send request has none"""


class TemplateVersion(TypedDict):
    """A published version"""

    number: int
    """Version number: 1, 2, 3 …"""
    note: Optional[str]
    """Note"""
    published_at: str
    """Time of publication"""
    published_by: str
    """Email of the account that published it"""


_TemplateVersionDetailRequired = TypedDict(
    "_TemplateVersionDetailRequired",
    {
        "number": "int",
        "note": "Optional[str]",
        "published_at": "str",
        "published_by": "str",
        "category": "EmailCategory",
        "unsubscribe_enabled": "bool",
        "from": "Optional[str]",
        "reply_to": "List[str]",
        "subject": "Optional[str]",
        "preheader": "Optional[str]",
        "html": "Optional[str]",
        "mjml": "Optional[str]",
        "text": "Optional[str]",
        "variables": "List[TemplateVariable]",
    },
)
_TemplateVersionDetailOptional = TypedDict(
    "_TemplateVersionDetailOptional",
    {
    },
    total=False,
)


class TemplateVersionDetail(_TemplateVersionDetailRequired, _TemplateVersionDetailOptional):
    """A published version

    number: Version number: 1, 2, 3 …
    note: Note
    published_at: Time of publication
    published_by: Email of the account that published it
    category: Category
    unsubscribe_enabled: Managed unsubscribe; always on for product and newsletter
    from: Default author, unless the send request has one
    reply_to: Default `Reply-To`, unless the send request has one
    subject: Markup of the subject
    preheader: Markup of the preview text after the subject
    html: Markup of the HTML body, compiled if there is `mjml`; omitted in lists
    mjml: MJML source of the HTML body, or null; omitted in lists
    text: Markup of the plain-text body; omitted in lists
    variables: Declared variables
    """


class TemplateVersionList(TypedDict):
    """A page of the list"""

    versions: List[TemplateVersion]
    """The entries, newest first"""
    has_more: bool
    """Whether there are more"""
    next_cursor: Optional[str]
    """The `cursor` of the next page"""


class _TestEventParamsRequired(TypedDict):
    event: str
    """The event name"""


class TestEventParams(_TestEventParamsRequired, total=False):
    """Params of `emails.testEvent`."""

    email_id: Optional[str]
    """The email that the event is about (`msg_…`)"""
    deliver: Optional[bool]
    """Whether to send it to subscribed endpoints; defaults to true"""


class _TestEventResponseRequired(TypedDict):
    payload: TestedEventPayload
    """The body of a delivery"""
    queued: bool
    """Whether deliveries were enqueued"""
    deliveries: List[TestedEventDelivery]
    """One delivery per endpoint"""


class TestEventResponse(_TestEventResponseRequired, total=False):
    """A test event as sent to webhooks"""

    warnings: List[str]
    """Warnings, for example about ignored fields"""


_TestTemplateParamsRequired = TypedDict(
    "_TestTemplateParamsRequired",
    {
        "to": "Union[str, Sequence[str]]",
    },
)
_TestTemplateParamsOptional = TypedDict(
    "_TestTemplateParamsOptional",
    {
        "from": "Optional[Union[str, EmailAddress]]",
        "variables": "Optional[Mapping[str, Any]]",
        "version": "Optional[Union[Literal[\"draft\"], int]]",
    },
    total=False,
)


class TestTemplateParams(_TestTemplateParamsRequired, _TestTemplateParamsOptional):
    """Params of `templates.testSend`.

    to: Recipients: an address or a list
    from: Author; default: the template's
    variables: The template's variables by name
    version: The version to render; default: the draft
    """


class TestWebhookParams(TypedDict):
    """Params of `webhooks.test`."""

    event: str
    """An event name"""


class _TestWebhookResponseRequired(TypedDict):
    delivery: WebhookDelivery


class TestWebhookResponse(_TestWebhookResponseRequired, total=False):
    """A queued delivery"""

    warnings: List[str]
    """Warnings, for example about ignored fields"""


class TestedEventDelivery(TypedDict):
    """A delivery"""

    id: str
    """`whd_…`"""
    webhook_id: str
    """The endpoint (`whk_…`)"""
    url: str
    """The endpoint's URL"""
    status: WebhookDeliveryStatus
    """The status"""


class TestedEventPayload(TypedDict):
    """The body of a delivery"""

    type: str
    """The event's name"""
    created_at: str
    """When it happened"""
    data: Dict[str, Any]
    """The event data; `test` is true"""


_UnsavedTemplateDraftRequired = TypedDict(
    "_UnsavedTemplateDraftRequired",
    {
    },
)
_UnsavedTemplateDraftOptional = TypedDict(
    "_UnsavedTemplateDraftOptional",
    {
        "name": "Optional[str]",
        "alias": "Optional[str]",
        "category": "Optional[EmailCategory]",
        "unsubscribe_enabled": "Optional[bool]",
        "from": "Optional[Union[str, EmailAddress]]",
        "reply_to": "Optional[Union[str, Sequence[str]]]",
        "subject": "Optional[str]",
        "preheader": "Optional[str]",
        "html": "Optional[str]",
        "mjml": "Optional[str]",
        "text": "Optional[str]",
        "variables": "Optional[Sequence[TemplateVariable]]",
    },
    total=False,
)


class UnsavedTemplateDraft(_UnsavedTemplateDraftRequired, _UnsavedTemplateDraftOptional):
    """Content that a preview renders in place of the draft's; it is not stored. Null removes a field; `name` and
    `alias` have no effect

    name: Name, unique in the account
    alias: Name for API calls, unique in the account
    category: Category
    unsubscribe_enabled: Managed unsubscribe; always on for product and newsletter
    from: Default author, unless the send request has one: `Ada <ada@example.com>` or an object
    reply_to: Default `Reply-To`, unless the send request has one
    subject: Markup of the subject
    preheader: Markup of the preview text after the subject
    html: Markup of the HTML body
    mjml: MJML source of the HTML body, in place of `html`, which is compiled from it. Null removes the source
        and keeps the compiled `html`; a new `html` removes the source
    text: Markup of the plain-text body
    variables: Declared variables; undeclared ones are required
    """


class UpdateAffiliateCampaignParams(TypedDict, total=False):
    """Params of `affiliateCampaigns.update`."""

    name: Optional[str]
    """The unique name of the campaign"""
    visibility: Optional[AffiliateCampaignVisibility]
    """The people who can see the campaign; defaults to `public`"""
    auto_approve: Optional[bool]
    """Whether partners who apply with the program's form are approved automatically; defaults to false"""
    commission_type: Optional[AffiliateCampaignCommissionType]
    """The rate that applies; defaults to `percent`"""
    commission_bps: Optional[int]
    """The percentage of a sale in basis points, with `percent`"""
    commission_flat_cents: Optional[int]
    """The amount per sale in minor units, with `flat`"""
    commission_duration: Optional[AffiliateCampaignCommissionDuration]
    """Whether the first sale or all sales earn a commission; defaults to `recurring`"""
    recurring_months: Optional[int]
    """For how many months sales earn a commission; null is unlimited"""
    max_commission_cents: Optional[int]
    """Maximum commission per sale"""
    tiers: Optional[Sequence[AffiliateCampaignTier]]
    """Rates by number of paying customers"""
    product_rates: Optional[Sequence[CreateAffiliateCampaignProductRate]]
    """Rates of products and prices"""
    second_tier_bps: Optional[int]
    """The recruiting partner's percentage of the same sale in basis points; defaults to 0"""
    lead_bounty_cents: Optional[int]
    """The amount per lead in minor units; defaults to 0"""
    cookie_days: Optional[int]
    """For how many days a visit is credited to the partner"""
    hold_days: Optional[int]
    """For how many days a commission is held for refunds"""
    archived_at: Optional[Union[str, datetime.datetime]]
    """When the campaign was archived and stopped accepting partners; null restores it"""
    make_default: Optional[bool]
    """Whether it becomes the default campaign"""


class _UpdateAffiliateCampaignResponseRequired(TypedDict):
    campaign: AffiliateCampaign


class UpdateAffiliateCampaignResponse(_UpdateAffiliateCampaignResponseRequired, total=False):
    """A response with a single object"""

    warnings: List[str]
    """Warnings, for example about ignored fields"""


class UpdateAffiliateParams(TypedDict, total=False):
    """Params of `affiliates.update`."""

    first_name: Optional[str]
    """The given name"""
    last_name: Optional[str]
    """The family name"""
    company: Optional[str]
    """The company"""
    website: Optional[str]
    """The website; `https://` is optional"""
    country: Optional[str]
    """Two letters (ISO 3166-1)"""
    campaign_id: Optional[str]
    """The campaign, by id (`cmp_…`) or name"""
    tags: Optional[Sequence[str]]
    """Tags for the owner's use"""
    notes: Optional[str]
    """Private notes"""
    parent_affiliate_id: Optional[str]
    """The partner that recruited this one (`aff_…`)"""
    postback_url: Optional[str]
    """The URL that receives the partner's own events"""
    email_opt_out: Optional[bool]
    """Whether the partner has opted out of email, except security email and email it requests"""
    commission_override: Optional[CommissionOverride]
    """The partner's own rate; takes precedence over the campaign's"""
    token: Optional[str]
    """The new token of the primary link; the old one stops working"""


class _UpdateAffiliateResponseRequired(TypedDict):
    affiliate: Affiliate


class UpdateAffiliateResponse(_UpdateAffiliateResponseRequired, total=False):
    """A response with a single object"""

    warnings: List[str]
    """Warnings, for example about ignored fields"""


class UpdateApiKeyParams(TypedDict, total=False):
    """Params of `apiKeys.update`."""

    name: Optional[str]
    """The name"""
    allowed_ips: Optional[Sequence[str]]
    """Addresses and networks that may use the credential; empty allows all"""
    enabled: Optional[bool]
    """Whether the credential is enabled"""
    policy: Optional[ClientPolicyRequest]
    """The rules for the client below its scope; null removes all rules"""


class _UpdateApiKeyResponseRequired(TypedDict):
    api_key: ApiKey


class UpdateApiKeyResponse(_UpdateApiKeyResponseRequired, total=False):
    """API key"""

    warnings: List[str]
    """Warnings, for example about ignored fields"""


class UpdateAutomationParams(TypedDict, total=False):
    """Params of `automations.update`."""

    action: Optional[AutomationAction]
    """The action to perform"""
    name: Optional[str]
    """The name"""
    trigger: Optional[AutomationTrigger]
    steps: Optional[Sequence[Union[AutomationStep, Mapping[str, Any]]]]
    """The steps of a run, in order"""


class _UpdateAutomationResponseRequired(TypedDict):
    automation: Automation


class UpdateAutomationResponse(_UpdateAutomationResponseRequired, total=False):
    """A response with an automation"""

    warnings: List[str]
    """Warnings, for example about ignored fields"""


class UpdateDomainParams(TypedDict, total=False):
    """Params of `domains.update`."""

    open_tracking: Optional[bool]
    """Whether opens are tracked by a pixel in the HTML"""
    click_tracking: Optional[bool]
    """Whether links in the HTML are rewritten to track clicks"""
    tls_mode: Optional[TlsMode]
    """`opportunistic`: TLS if the remote host offers it; `enforced`: never without TLS"""
    inbound_enabled: Optional[bool]
    """Whether mail to the domain is received"""
    inbound_addresses: Optional[Sequence[str]]
    """Addresses that receive mail: `support@example.com`, sub-addresses (`support+*@example.com`) or all
    (`*@example.com`); empty means all. `postmaster` always receives mail"""
    tracking_host: Optional[str]
    """Your own host for tracking links; null uses the service's host"""


class _UpdateDomainResponseRequired(TypedDict):
    domain: Domain


class UpdateDomainResponse(_UpdateDomainResponseRequired, total=False):
    """A domain"""

    warnings: List[str]
    """Warnings, for example about ignored fields"""


class UpdateEmailParams(TypedDict, total=False):
    """Params of `emails.update`."""

    scheduled_at: Optional[Union[str, datetime.datetime]]
    """The new time to send the email"""
    cancel: Optional[bool]
    """Cancels the email; must be true"""


class _UpdateEmailResponseRequired(TypedDict):
    email: EmailDetail


class UpdateEmailResponse(_UpdateEmailResponseRequired, total=False):
    """A response with an email"""

    warnings: List[str]
    """Warnings, for example about ignored fields"""


class UpdateSmtpCredentialParams(TypedDict, total=False):
    """Params of `smtpCredentials.update`."""

    name: Optional[str]
    """The name"""
    allowed_ips: Optional[Sequence[str]]
    """Addresses and networks that may use the credential; empty allows all"""
    enabled: Optional[bool]
    """Whether the credential is enabled"""
    policy: Optional[ClientPolicyRequest]
    """The rules for the client below its scope; null removes all rules"""


class _UpdateSmtpCredentialResponseRequired(TypedDict):
    smtp_credential: SmtpCredential


class UpdateSmtpCredentialResponse(_UpdateSmtpCredentialResponseRequired, total=False):
    """SMTP credential"""

    warnings: List[str]
    """Warnings, for example about ignored fields"""


_UpdateTemplateParamsRequired = TypedDict(
    "_UpdateTemplateParamsRequired",
    {
    },
)
_UpdateTemplateParamsOptional = TypedDict(
    "_UpdateTemplateParamsOptional",
    {
        "name": "Optional[str]",
        "alias": "Optional[str]",
        "category": "Optional[EmailCategory]",
        "unsubscribe_enabled": "Optional[bool]",
        "from": "Optional[Union[str, EmailAddress]]",
        "reply_to": "Optional[Union[str, Sequence[str]]]",
        "subject": "Optional[str]",
        "preheader": "Optional[str]",
        "html": "Optional[str]",
        "mjml": "Optional[str]",
        "text": "Optional[str]",
        "variables": "Optional[Sequence[TemplateVariable]]",
        "status": "Optional[TemplateStatus]",
        "if_version": "Optional[int]",
    },
    total=False,
)


class UpdateTemplateParams(_UpdateTemplateParamsRequired, _UpdateTemplateParamsOptional):
    """Params of `templates.update`.

    name: Name, unique in the account
    alias: Name for API calls, unique in the account
    category: Category
    unsubscribe_enabled: Managed unsubscribe; always on for product and newsletter
    from: Default author, unless the send request has one: `Ada <ada@example.com>` or an object
    reply_to: Default `Reply-To`, unless the send request has one
    subject: Markup of the subject
    preheader: Markup of the preview text after the subject
    html: Markup of the HTML body
    mjml: MJML source of the HTML body, in place of `html`, which is compiled from it. Null removes the source
        and keeps the compiled `html`; a new `html` removes the source
    text: Markup of the plain-text body
    variables: Declared variables; undeclared ones are required
    status: `archived`, or the status before archiving
    if_version: The `draft_version` that the client has seen: 409 if it has changed
    """


class _UpdateTemplateResponseRequired(TypedDict):
    template: Template


class UpdateTemplateResponse(_UpdateTemplateResponseRequired, total=False):
    """A template"""

    warnings: List[str]
    """Warnings about ignored fields"""


class UpdateWebhookParams(TypedDict, total=False):
    """Params of `webhooks.update`."""

    url: Optional[str]
    """URL for deliveries: https, at a public address"""
    events: Optional[Sequence[WebhookEventType]]
    """The events to send; empty: all except email.cancelled, domain.verified, domain.degraded, suppression.created,
    suppression.deleted, webhook.disabled, which must be named"""
    enabled: Optional[bool]
    """Whether events are sent; default: true"""
    description: Optional[str]
    """Your description"""
    domain_ids: Optional[Sequence[str]]
    """Only events of these domains (`dom_…`) are sent; empty: all"""
    inbound_addresses: Optional[Sequence[str]]
    """Only mail received for these addresses is sent: an address (`support@example.com`), its sub-addresses
    (`support+*@example.com`) or a whole domain (`*@example.com`); empty: all received mail. Other events are not
    affected"""
    retry_policy: Optional[WebhookRetryPolicy]
    """`default`: five attempts within five minutes; `extended`: eight within 28 hours"""


class _UpdateWebhookResponseRequired(TypedDict):
    webhook: Webhook


class UpdateWebhookResponse(_UpdateWebhookResponseRequired, total=False):
    """An endpoint"""

    warnings: List[str]
    """Warnings, for example about ignored fields"""


class VerifiedDomain(TypedDict):
    """A domain after a verification"""

    domain: Domain
    verified: bool
    """Whether email can be sent from the domain; `records` shows what is missing"""


class VisitCounts(TypedDict):
    """Visits, and sign-ups and subscriptions of people whose first visit had the source"""

    totals: List[VisitCountsTotal]
    """The whole range, by source"""
    visits: List[VisitCountsVisit]
    """By day and source, oldest first; at most 200 sources per day, the others as `(other)`"""


class VisitCountsTotal(TypedDict):
    """A source"""

    source: str
    """Source: `utm_source`, the host of the previous page, `ad`, or `(direct)`"""
    visits: int
    """Visits"""
    visitors: int
    """First-time visitors"""
    sign_ups: int
    """Sign-ups, each user counted once"""
    subscriptions: int
    """Subscriptions, each counted once"""


class VisitCountsVisit(TypedDict):
    """A source on a day"""

    period_start: str
    """Start of the day"""
    source: str
    """Source: `utm_source`, the host of the previous page, `ad`, or `(direct)`"""
    visits: int
    """Visits"""
    visitors: int
    """First-time visitors"""
    sign_ups: int
    """Sign-ups, each user counted once"""
    subscriptions: int
    """Subscriptions, each counted once"""


class WaitReason(TypedDict):
    """Why a recipient waits"""

    cause: WaitReasonCause
    """The limit or schedule that blocks the recipient"""
    text: str
    """The cause as a sentence"""
    destination: Optional[str]
    """The destination's mail hosts, once known"""
    place: Optional[int]
    """Number of recipients ahead in the destination's queue, if known"""
    until: Optional[str]
    """When the wait ends, if known"""


class Webhook(TypedDict):
    """A webhook endpoint"""

    id: str
    """Id (`whk_…`)"""
    url: str
    """URL for deliveries"""
    events: List[str]
    """The events that are sent; empty: all except those that must be named"""
    enabled: bool
    """Whether events are sent"""
    description: Optional[str]
    """Your description"""
    domain_ids: List[str]
    """Only events of these domains are sent"""
    inbound_addresses: List[str]
    """Only mail received for these addresses is sent"""
    retry_policy: WebhookRetryPolicy
    """Retry schedule"""
    failing_since: Optional[str]
    """Start of the current failures; null if deliveries succeed"""
    disabled_reason: Optional[WebhookDisabledReason]
    """Why the endpoint is disabled"""
    created_at: str
    """Time of creation"""
    updated_at: str
    """Time of the last change"""


class WebhookAttempt(TypedDict):
    """An attempt"""

    n: int
    """Attempt number, from 1"""
    at: str
    """Start time"""
    response_status: Optional[int]
    """HTTP status"""
    response_body: str
    """First 4 KB of the response body"""
    duration_ms: int
    """Duration in milliseconds"""
    error: Optional[str]
    """Why there was no response"""


class WebhookDelivery(TypedDict):
    """The delivery of an event to an endpoint"""

    id: str
    """Id (`whd_…`)"""
    webhook_id: str
    """The endpoint (`whk_…`)"""
    event_id: str
    """The event (`evt_…`), sent as `webhook-id`"""
    type: str
    """Event name"""
    status: WebhookDeliveryStatus
    """Status"""
    attempts_count: int
    """Number of attempts"""
    next_attempt_at: Optional[str]
    """Time of the next attempt"""
    response_status: Optional[int]
    """Last HTTP status of the endpoint"""
    created_at: str
    """Time of creation"""
    delivered_at: Optional[str]
    """Time of delivery"""


class WebhookDeliveryList(TypedDict):
    """A page of the list"""

    deliveries: List[WebhookDelivery]
    """The entries, newest first"""
    has_more: bool
    """Whether there are more"""
    next_cursor: Optional[str]
    """The `cursor` of the next page"""


class WebhookDisabledData(TypedDict, total=False):
    """`data` of `webhook.disabled`."""

    event_id: str
    """The event's id (`evt_…`), the same in every delivery: use it to recognise repetitions"""
    webhook_id: str
    """The endpoint (`whk_…`)"""
    url: str
    """URL for deliveries"""
    disabled_reason: str
    """Why the endpoint is disabled"""
    failing_since: str
    """Start of the current failures; null if deliveries succeed"""


class WebhookList(TypedDict):
    """A page of the list"""

    webhooks: List[Webhook]
    """The entries, newest first"""
    has_more: bool
    """Whether there are more"""
    next_cursor: Optional[str]
    """The `cursor` of the next page"""


class WholeWebhookDelivery(TypedDict):
    """A delivery with its body and attempts"""

    id: str
    """Id (`whd_…`)"""
    webhook_id: str
    """The endpoint (`whk_…`)"""
    event_id: str
    """The event (`evt_…`), sent as `webhook-id`"""
    type: str
    """Event name"""
    status: WebhookDeliveryStatus
    """Status"""
    attempts_count: int
    """Number of attempts"""
    next_attempt_at: Optional[str]
    """Time of the next attempt"""
    response_status: Optional[int]
    """Last HTTP status of the endpoint"""
    created_at: str
    """Time of creation"""
    delivered_at: Optional[str]
    """Time of delivery"""
    payload: Optional[Dict[str, Any]]
    """The body; null when the event is no longer stored"""
    attempts: List[WebhookAttempt]
    """The attempts, oldest first"""


class EmailReceived(TypedDict):
    """The event `email.received`."""

    type: Literal["email.received"]
    created_at: str
    data: EmailReceivedData


class EmailSent(TypedDict):
    """The event `email.sent`."""

    type: Literal["email.sent"]
    created_at: str
    data: EmailSentData


class EmailDelivered(TypedDict):
    """The event `email.delivered`."""

    type: Literal["email.delivered"]
    created_at: str
    data: EmailDeliveredData


class EmailDeliveryDelayed(TypedDict):
    """The event `email.delivery_delayed`."""

    type: Literal["email.delivery_delayed"]
    created_at: str
    data: EmailDeliveryDelayedData


class EmailBounced(TypedDict):
    """The event `email.bounced`."""

    type: Literal["email.bounced"]
    created_at: str
    data: EmailBouncedData


class EmailComplained(TypedDict):
    """The event `email.complained`."""

    type: Literal["email.complained"]
    created_at: str
    data: EmailComplainedData


class EmailOpened(TypedDict):
    """The event `email.opened`."""

    type: Literal["email.opened"]
    created_at: str
    data: EmailOpenedData


class EmailClicked(TypedDict):
    """The event `email.clicked`."""

    type: Literal["email.clicked"]
    created_at: str
    data: EmailClickedData


class EmailFailed(TypedDict):
    """The event `email.failed`."""

    type: Literal["email.failed"]
    created_at: str
    data: EmailFailedData


class EmailSuppressed(TypedDict):
    """The event `email.suppressed`."""

    type: Literal["email.suppressed"]
    created_at: str
    data: EmailSuppressedData


class EmailScheduled(TypedDict):
    """The event `email.scheduled`."""

    type: Literal["email.scheduled"]
    created_at: str
    data: EmailScheduledData


class ContactUnsubscribed(TypedDict):
    """The event `contact.unsubscribed`."""

    type: Literal["contact.unsubscribed"]
    created_at: str
    data: ContactUnsubscribedData


class AutomationStarted(TypedDict):
    """The event `automation.started`."""

    type: Literal["automation.started"]
    created_at: str
    data: AutomationStartedData


class AutomationStepCompleted(TypedDict):
    """The event `automation.step_completed`."""

    type: Literal["automation.step_completed"]
    created_at: str
    data: AutomationStepCompletedData


class AutomationCompleted(TypedDict):
    """The event `automation.completed`."""

    type: Literal["automation.completed"]
    created_at: str
    data: AutomationCompletedData


class AutomationFailed(TypedDict):
    """The event `automation.failed`."""

    type: Literal["automation.failed"]
    created_at: str
    data: AutomationFailedData


class EmailCancelled(TypedDict):
    """The event `email.cancelled`."""

    type: Literal["email.cancelled"]
    created_at: str
    data: EmailCancelledData


class DomainVerified(TypedDict):
    """The event `domain.verified`."""

    type: Literal["domain.verified"]
    created_at: str
    data: DomainVerifiedData


class DomainDegraded(TypedDict):
    """The event `domain.degraded`."""

    type: Literal["domain.degraded"]
    created_at: str
    data: DomainDegradedData


class SuppressionCreated(TypedDict):
    """The event `suppression.created`."""

    type: Literal["suppression.created"]
    created_at: str
    data: SuppressionCreatedData


class SuppressionDeleted(TypedDict):
    """The event `suppression.deleted`."""

    type: Literal["suppression.deleted"]
    created_at: str
    data: SuppressionDeletedData


class WebhookDisabled(TypedDict):
    """The event `webhook.disabled`."""

    type: Literal["webhook.disabled"]
    created_at: str
    data: WebhookDisabledData


class AffiliateCreated(TypedDict):
    """The event `affiliate.created`."""

    type: Literal["affiliate.created"]
    created_at: str
    data: AffiliateCreatedData


class AffiliateApproved(TypedDict):
    """The event `affiliate.approved`."""

    type: Literal["affiliate.approved"]
    created_at: str
    data: AffiliateApprovedData


class AffiliateUpdated(TypedDict):
    """The event `affiliate.updated`."""

    type: Literal["affiliate.updated"]
    created_at: str
    data: AffiliateUpdatedData


class ReferralCreated(TypedDict):
    """The event `referral.created`."""

    type: Literal["referral.created"]
    created_at: str
    data: ReferralCreatedData


class ReferralConverted(TypedDict):
    """The event `referral.converted`."""

    type: Literal["referral.converted"]
    created_at: str
    data: ReferralConvertedData


class CommissionCreated(TypedDict):
    """The event `commission.created`."""

    type: Literal["commission.created"]
    created_at: str
    data: CommissionCreatedData


class CommissionEarned(TypedDict):
    """The event `commission.earned`."""

    type: Literal["commission.earned"]
    created_at: str
    data: CommissionEarnedData


class CommissionReversed(TypedDict):
    """The event `commission.reversed`."""

    type: Literal["commission.reversed"]
    created_at: str
    data: CommissionReversedData


class CommissionPaid(TypedDict):
    """The event `commission.paid`."""

    type: Literal["commission.paid"]
    created_at: str
    data: CommissionPaidData


class PayoutCreated(TypedDict):
    """The event `payout.created`."""

    type: Literal["payout.created"]
    created_at: str
    data: PayoutCreatedData


class PayoutPaid(TypedDict):
    """The event `payout.paid`."""

    type: Literal["payout.paid"]
    created_at: str
    data: PayoutPaidData


class PayoutFailed(TypedDict):
    """The event `payout.failed`."""

    type: Literal["payout.failed"]
    created_at: str
    data: PayoutFailedData


WebhookEvent = Union[
    EmailReceived,
    EmailSent,
    EmailDelivered,
    EmailDeliveryDelayed,
    EmailBounced,
    EmailComplained,
    EmailOpened,
    EmailClicked,
    EmailFailed,
    EmailSuppressed,
    EmailScheduled,
    ContactUnsubscribed,
    AutomationStarted,
    AutomationStepCompleted,
    AutomationCompleted,
    AutomationFailed,
    EmailCancelled,
    DomainVerified,
    DomainDegraded,
    SuppressionCreated,
    SuppressionDeleted,
    WebhookDisabled,
    AffiliateCreated,
    AffiliateApproved,
    AffiliateUpdated,
    ReferralCreated,
    ReferralConverted,
    CommissionCreated,
    CommissionEarned,
    CommissionReversed,
    CommissionPaid,
    PayoutCreated,
    PayoutPaid,
    PayoutFailed,
]


class StreamedEvent(StreamEvent):
    """An event of the stream. `cursor` is its place: pass it as `after` to continue behind it."""

    cursor: str


class SendEmailFields(SendEmailParams, IdempotentOptions):
    """Params and options of `emails.send` as keywords."""


class SendBatchFields(SendBatchParams, IdempotentOptions):
    """Params and options of `emails.sendBatch` as keywords."""


class ListEmailsFields(ListEmailsParams, CallOptions, total=False):
    """Params and options of `emails.list` as keywords."""


class GetEmailMetricsFields(GetEmailMetricsParams, CallOptions, total=False):
    """Params and options of `emails.metrics` as keywords."""


class UpdateEmailFields(UpdateEmailParams, CallOptions, total=False):
    """Params and options of `emails.update` as keywords."""


class ResendEmailFields(ResendEmailParams, IdempotentOptions, total=False):
    """Params and options of `emails.resend` as keywords."""


class TestEventFields(TestEventParams, CallOptions):
    """Params and options of `emails.testEvent` as keywords."""


class ListEmailEventsFields(ListEmailEventsParams, CallOptions, total=False):
    """Params and options of `emails.events.list` as keywords."""


class ListEmailAttemptsFields(ListEmailAttemptsParams, CallOptions, total=False):
    """Params and options of `emails.attempts.list` as keywords."""


class ListLogsFields(ListLogsParams, CallOptions, total=False):
    """Params and options of `logs.list` as keywords."""


class CreateApiKeyFields(CreateApiKeyParams, CallOptions):
    """Params and options of `apiKeys.create` as keywords."""


class ListApiKeysFields(ListApiKeysParams, CallOptions, total=False):
    """Params and options of `apiKeys.list` as keywords."""


class UpdateApiKeyFields(UpdateApiKeyParams, CallOptions, total=False):
    """Params and options of `apiKeys.update` as keywords."""


class RotateApiKeyFields(RotateApiKeyParams, CallOptions, total=False):
    """Params and options of `apiKeys.rotate` as keywords."""


class CreateSmtpCredentialFields(CreateSmtpCredentialParams, CallOptions):
    """Params and options of `smtpCredentials.create` as keywords."""


class ListSmtpCredentialsFields(ListSmtpCredentialsParams, CallOptions, total=False):
    """Params and options of `smtpCredentials.list` as keywords."""


class UpdateSmtpCredentialFields(UpdateSmtpCredentialParams, CallOptions, total=False):
    """Params and options of `smtpCredentials.update` as keywords."""


class RotateSmtpCredentialFields(RotateSmtpCredentialParams, CallOptions, total=False):
    """Params and options of `smtpCredentials.rotate` as keywords."""


class CreateDomainFields(CreateDomainParams, CallOptions):
    """Params and options of `domains.create` as keywords."""


class ListDomainsFields(ListDomainsParams, CallOptions, total=False):
    """Params and options of `domains.list` as keywords."""


class UpdateDomainFields(UpdateDomainParams, CallOptions, total=False):
    """Params and options of `domains.update` as keywords."""


class DeleteDomainFields(DeleteDomainParams, CallOptions, total=False):
    """Params and options of `domains.delete` as keywords."""


class GetDomainDmarcFields(GetDomainDmarcParams, CallOptions, total=False):
    """Params and options of `domains.dmarc` as keywords."""


class CreateDomainClaimFields(CreateDomainClaimParams, CallOptions):
    """Params and options of `domains.claims.create` as keywords."""


class ListDomainClaimsFields(ListDomainClaimsParams, CallOptions, total=False):
    """Params and options of `domains.claims.list` as keywords."""


class ApplyDomainDnsFields(ApplyDomainDnsParams, CallOptions):
    """Params and options of `domains.dns.apply` as keywords."""


class SaveDnsCredentialsFields(SaveDnsCredentialsParams, CallOptions):
    """Params and options of `dnsCredentials.save` as keywords."""


class ListSuppressionsFields(ListSuppressionsParams, CallOptions, total=False):
    """Params and options of `suppressions.list` as keywords."""


class CreateSuppressionFields(CreateSuppressionParams, CallOptions, total=False):
    """Params and options of `suppressions.create` as keywords."""


class CheckSuppressionsFields(CheckSuppressionsParams, CallOptions):
    """Params and options of `suppressions.check` as keywords."""


class ImportSuppressionsFields(ImportSuppressionsParams, CallOptions):
    """Params and options of `suppressions.import` as keywords."""


class DryRunSuppressionImportFields(DryRunSuppressionImportParams, CallOptions):
    """Params and options of `suppressions.dryRunImport` as keywords."""


class ListSuppressionImportsFields(ListSuppressionImportsParams, CallOptions, total=False):
    """Params and options of `suppressions.listImports` as keywords."""


class ExportSuppressionsFields(ExportSuppressionsParams, CallOptions, total=False):
    """Params and options of `suppressions.export` as keywords."""


class DeleteSuppressionFields(DeleteSuppressionParams, CallOptions, total=False):
    """Params and options of `suppressions.delete` as keywords."""


class ListCategoryOptOutsFields(ListCategoryOptOutsParams, CallOptions, total=False):
    """Params and options of `categoryOptOuts.list` as keywords."""


class CreateCategoryOptOutFields(CreateCategoryOptOutParams, CallOptions):
    """Params and options of `categoryOptOuts.create` as keywords."""


class CreateTemplateFields(CreateTemplateParams, CallOptions, total=False):
    """Params and options of `templates.create` as keywords."""


class ListTemplatesFields(ListTemplatesParams, CallOptions, total=False):
    """Params and options of `templates.list` as keywords."""


class UpdateTemplateFields(UpdateTemplateParams, CallOptions, total=False):
    """Params and options of `templates.update` as keywords."""


class PublishTemplateFields(PublishTemplateParams, CallOptions, total=False):
    """Params and options of `templates.publish` as keywords."""


class ListTemplateVersionsFields(ListTemplateVersionsParams, CallOptions, total=False):
    """Params and options of `templates.versions.list` as keywords."""


class RollBackTemplateFields(RollBackTemplateParams, CallOptions):
    """Params and options of `templates.rollBack` as keywords."""


class PreviewTemplateFields(PreviewTemplateParams, CallOptions, total=False):
    """Params and options of `templates.preview` as keywords."""


class TestTemplateFields(TestTemplateParams, CallOptions):
    """Params and options of `templates.testSend` as keywords."""


class DuplicateTemplateFields(DuplicateTemplateParams, CallOptions, total=False):
    """Params and options of `templates.duplicate` as keywords."""


class SendEventFields(SendEventParams, IdempotentOptions, total=False):
    """Params and options of `events.send` as keywords."""


class ListEventsFields(ListEventsParams, CallOptions, total=False):
    """Params and options of `events.list` as keywords."""


class CountEventsFields(CountEventsParams, CallOptions, total=False):
    """Params and options of `events.counts` as keywords."""


class GetFunnelFields(GetFunnelParams, CallOptions):
    """Params and options of `funnels.get` as keywords."""


class ListConversionsFields(ListConversionsParams, CallOptions, total=False):
    """Params and options of `conversions.list` as keywords."""


class CountVisitsFields(CountVisitsParams, CallOptions, total=False):
    """Params and options of `visits.counts` as keywords."""


class CreateWebhookFields(CreateWebhookParams, CallOptions):
    """Params and options of `webhooks.create` as keywords."""


class ListWebhooksFields(ListWebhooksParams, CallOptions, total=False):
    """Params and options of `webhooks.list` as keywords."""


class UpdateWebhookFields(UpdateWebhookParams, CallOptions, total=False):
    """Params and options of `webhooks.update` as keywords."""


class RotateWebhookSecretFields(RotateWebhookSecretParams, CallOptions, total=False):
    """Params and options of `webhooks.rotateSecret` as keywords."""


class TestWebhookFields(TestWebhookParams, CallOptions):
    """Params and options of `webhooks.test` as keywords."""


class ListWebhookDeliveriesFields(ListWebhookDeliveriesParams, CallOptions, total=False):
    """Params and options of `webhooks.deliveries.list` as keywords."""


class ReplayWebhookDeliveriesFields(ReplayWebhookDeliveriesParams, CallOptions):
    """Params and options of `webhooks.replay` as keywords."""


class ListWebhookEventsFields(ListWebhookEventsParams, CallOptions, total=False):
    """Params and options of `webhookEvents.list` as keywords."""


class ListReceivedEmailsFields(ListReceivedEmailsParams, CallOptions, total=False):
    """Params and options of `receivedEmails.list` as keywords."""


class GetReceivedEmailFields(GetReceivedEmailParams, CallOptions, total=False):
    """Params and options of `receivedEmails.get` as keywords."""


class ReplyToReceivedEmailFields(ReplyToReceivedEmailParams, IdempotentOptions, total=False):
    """Params and options of `receivedEmails.reply` as keywords."""


class ForwardReceivedEmailFields(ForwardReceivedEmailParams, IdempotentOptions):
    """Params and options of `receivedEmails.forward` as keywords."""


class CreateAutomationFields(CreateAutomationParams, CallOptions):
    """Params and options of `automations.create` as keywords."""


class ListAutomationsFields(ListAutomationsParams, CallOptions, total=False):
    """Params and options of `automations.list` as keywords."""


class UpdateAutomationFields(UpdateAutomationParams, CallOptions, total=False):
    """Params and options of `automations.update` as keywords."""


class DuplicateAutomationFields(DuplicateAutomationParams, CallOptions, total=False):
    """Params and options of `automations.duplicate` as keywords."""


class DryRunAutomationFields(DryRunAutomationParams, CallOptions, total=False):
    """Params and options of `automations.dryRun` as keywords."""


class ReplayAutomationFields(ReplayAutomationParams, CallOptions, total=False):
    """Params and options of `automations.replay` as keywords."""


class CountAutomationStepsFields(CountAutomationStepsParams, CallOptions, total=False):
    """Params and options of `automations.stepCounts` as keywords."""


class ListAutomationVersionsFields(ListAutomationVersionsParams, CallOptions, total=False):
    """Params and options of `automations.versions.list` as keywords."""


class ListAutomationRunsFields(ListAutomationRunsParams, CallOptions, total=False):
    """Params and options of `automations.runs.list` as keywords."""


class ListAffiliatesFields(ListAffiliatesParams, CallOptions, total=False):
    """Params and options of `affiliates.list` as keywords."""


class CreateAffiliateFields(CreateAffiliateParams, IdempotentOptions):
    """Params and options of `affiliates.create` as keywords."""


class UpdateAffiliateFields(UpdateAffiliateParams, CallOptions, total=False):
    """Params and options of `affiliates.update` as keywords."""


class ApproveAffiliateFields(ApproveAffiliateParams, IdempotentOptions, total=False):
    """Params and options of `affiliates.approve` as keywords."""


class RejectAffiliateFields(RejectAffiliateParams, IdempotentOptions, total=False):
    """Params and options of `affiliates.reject` as keywords."""


class SuspendAffiliateFields(SuspendAffiliateParams, IdempotentOptions, total=False):
    """Params and options of `affiliates.suspend` as keywords."""


class ListAffiliateLinksFields(ListAffiliateLinksParams, CallOptions, total=False):
    """Params and options of `affiliates.links.list` as keywords."""


class CreateAffiliateLinkFields(CreateAffiliateLinkParams, IdempotentOptions):
    """Params and options of `affiliates.links.create` as keywords."""


class ListAffiliateCampaignsFields(ListAffiliateCampaignsParams, CallOptions, total=False):
    """Params and options of `affiliateCampaigns.list` as keywords."""


class CreateAffiliateCampaignFields(CreateAffiliateCampaignParams, IdempotentOptions):
    """Params and options of `affiliateCampaigns.create` as keywords."""


class UpdateAffiliateCampaignFields(UpdateAffiliateCampaignParams, CallOptions, total=False):
    """Params and options of `affiliateCampaigns.update` as keywords."""


class ListAffiliateReferralsFields(ListAffiliateReferralsParams, CallOptions, total=False):
    """Params and options of `affiliateReferrals.list` as keywords."""


class CreateAffiliateReferralFields(CreateAffiliateReferralParams, IdempotentOptions):
    """Params and options of `affiliateReferrals.create` as keywords."""


class ListAffiliateCommissionsFields(ListAffiliateCommissionsParams, CallOptions, total=False):
    """Params and options of `affiliateCommissions.list` as keywords."""


class ReverseAffiliateCommissionFields(ReverseAffiliateCommissionParams, CallOptions):
    """Params and options of `affiliateCommissions.reverse` as keywords."""


class ListAffiliatePayoutsFields(ListAffiliatePayoutsParams, CallOptions, total=False):
    """Params and options of `affiliatePayouts.list` as keywords."""


class MarkAffiliatePayoutPaidFields(MarkAffiliatePayoutPaidParams, IdempotentOptions):
    """Params and options of `affiliatePayouts.markPaid` as keywords."""


class ListGrantsFields(ListGrantsParams, CallOptions, total=False):
    """Params and options of `grants.list` as keywords."""


class ListApprovalsFields(ListApprovalsParams, CallOptions, total=False):
    """Params and options of `approvals.list` as keywords."""


class ListAuditLogFields(ListAuditLogParams, CallOptions, total=False):
    """Params and options of `auditLog.list` as keywords."""
