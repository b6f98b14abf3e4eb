//! JSON objects of the affiliate program, used in API responses and in events.

use std::collections::BTreeMap;

use jiff::Timestamp;
use model::affiliate::campaign::{Campaign, CommissionDuration, CommissionRate, ProductRate, RateTier, Visibility};
use model::affiliate::commission::{Commission, ReversalReason};
use model::affiliate::money::{BasisPoints, CENTS_MAX, Currency};
use model::affiliate::partner::{LINKS_MAX, Partner, PartnerLink, PartnerSource, PartnerStatus, TAGS_MAX};
use model::affiliate::payout::{PayoutRun, PayoutRunStatus, PayoutStatus, SkipReason, SkippedPartner};
use model::affiliate::program::{
    AffiliateProgram, AfterPayout, Attribution, PayoutMethod, ProcessorMode, ProgramStatus, REVIEW_THRESHOLD_MAX,
    WEBHOOK_SECRETS_MAX,
};
use model::affiliate::referral::{Referral, ReferralBlock, ReferralSource, ReferralStatus};
use model::id::{CampaignId, CommissionId, PartnerId, PartnerLinkId, PayoutId, PayoutRunId, ProgramId, ReferralId};
use schema::ToSchema;
use serde::Serialize;
use store::affiliate::commission::CommissionStatus;

pub use crate::api_timestamp::ApiTimestamp;
use crate::error::{MailBlockReason, PortalHostError};
use crate::payouts::view::PayoutView;

/// An affiliate program
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(name = "AffiliateProgram")]
pub struct ProgramObject {
    /// The object type
    #[schema(const = "affiliate_program")]
    object: &'static str,
    /// The program's id (`prog_…`)
    id: ProgramId,
    /// The status
    status: ProgramStatus,
    /// Whether live or test payments count
    mode: ProcessorMode,
    /// The website that partner links lead to
    website_url: String,
    /// The currency of flat amounts, bounties and caps
    currency: Currency,
    /// The link that gets the credit if a visitor used several
    attribution: Attribution,
    /// Whether customers who paid before they were referred earn nothing
    new_customers_only: bool,
    /// The metadata key that names the referral in the payment processor
    metadata_key: String,
    /// The metadata key that excludes a payment if its value is `false`
    exclude_key: String,
    /// The default campaign (`cmp_…`)
    default_campaign_id: Option<CampaignId>,
    /// The minimum payout in minor units, by currency
    #[schema(additionalProperties = {"type": "integer", "minimum": 0}, examples = [{"usd": 5000}])]
    min_payout: BTreeMap<Currency, i64>,
    /// Payout methods that partners can choose
    #[schema(items = {"type": "string", "enum": PayoutMethod::WORDS, "description": "A payout method"})]
    allowed_methods: Vec<PayoutMethod>,
    /// The consequence if a sale is refunded after the payout
    payout_after_refund: AfterPayout,
    /// Whether checkouts without an invoice earn commissions
    count_invoiceless_payments: bool,
    /// Whether partners see the email addresses of customers they referred
    share_customer_email: bool,
    /// Whether suspended partners continue to earn from existing referrals
    suspended_accrue: bool,
    /// Web origins that may record visits; if empty, the website's origin
    allowed_origins: Vec<String>,
    /// The public key for web pages
    publishable_key: String,
    /// Referrals from pages of these hosts are held for review
    banned_referrers: Vec<String>,
    /// The host name of the partner portal
    portal_domain: Option<String>,
    /// Why the portal is not available at its own host, and how to fix that; null if it is available
    portal_domain_error: Option<String>,
    /// URL of the program's terms
    terms_url: Option<String>,
    /// Sender address of partner email; without it, only email that a partner requested is sent
    mail_from: Option<String>,
    /// Why email to partners is not sent, and how to fix that; null if it is sent
    mail_error: Option<String>,
    /// Referrals of a partner per hour above which they are held for review
    #[schema(minimum = 1, maximum = REVIEW_THRESHOLD_MAX)]
    velocity_per_hour: u32,
    /// Bounties of a partner per day above which they are held for review
    #[schema(minimum = 1, maximum = REVIEW_THRESHOLD_MAX)]
    max_bounties_per_day: u32,
    /// Version number; increases with each change
    rev: u64,
    /// When it was enabled
    created_at: ApiTimestamp,
    /// When it was last changed
    updated_at: ApiTimestamp,
}

impl ProgramObject {
    /// Builds the object; `portal_fault` and `unmailable` explain why the portal or mail to partners does not work.
    pub fn of(
        program: &AffiliateProgram,
        portal_fault: Option<PortalHostError>,
        unmailable: Option<MailBlockReason>,
    ) -> Self {
        let settings = program.settings.clone();
        Self {
            object: "affiliate_program",
            id: program.id,
            status: program.status,
            mode: settings.mode,
            website_url: settings.website_url,
            currency: settings.currency,
            attribution: settings.attribution,
            new_customers_only: settings.new_customers_only,
            metadata_key: settings.metadata_key,
            exclude_key: settings.exclude_key,
            default_campaign_id: program.default_campaign,
            min_payout: settings.min_payout,
            allowed_methods: settings.allowed_methods,
            payout_after_refund: settings.payout_after_refund,
            count_invoiceless_payments: settings.count_invoiceless_payments,
            share_customer_email: settings.share_customer_email,
            suspended_accrue: settings.suspended_accrue,
            allowed_origins: settings.allowed_origins,
            publishable_key: program.publishable_key.clone(),
            banned_referrers: settings.banned_referrers.iter().map(ToString::to_string).collect(),
            portal_domain: settings.portal_domain.map(|name| name.to_string()),
            portal_domain_error: portal_fault.map(|fault| format!("the host {fault}")),
            terms_url: settings.terms_url,
            mail_from: settings.mail_from.map(|sender| sender.to_string()),
            mail_error: unmailable.map(|cause| format!("partners who did not ask for the email are {cause}")),
            velocity_per_hour: settings.velocity_per_hour,
            max_bounties_per_day: settings.max_bounties_per_day,
            rev: program.rev,
            created_at: ApiTimestamp(program.created_at),
            updated_at: ApiTimestamp(program.updated_at),
        }
    }
}

/// The payment processor
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(name = "AffiliateProcessor")]
pub struct ProcessorObject {
    /// The object type
    #[schema(const = "stripe")]
    kind: &'static str,
    /// The base URL of the payment processor's API
    api_base: String,
    /// The payment processor's account id; events of other accounts are ignored
    account_id: Option<String>,
    /// Whether payments are live; null if unknown
    livemode: Option<bool>,
    /// Whether an API key is set; without one only events are received
    has_key: bool,
    /// Number of accepted signing secrets
    #[schema(minimum = 1, maximum = WEBHOOK_SECRETS_MAX)]
    webhook_secrets_count: usize,
    /// The webhook URL for the payment processor's events
    webhook_url: String,
    /// When the last event was received
    last_event_at: Option<ApiTimestamp>,
    /// Number of events that could not be processed
    failed_events: usize,
}

/// Summary of the processor's events.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ProcessorEventSummary {
    /// Time of the last received event.
    pub last_event_at: Option<Timestamp>,
    /// Number of failed events.
    pub failed_events: usize,
}

impl ProcessorObject {
    /// Builds the object if a processor is connected; `base_url` is the base of the webhook URL.
    pub fn of(program: &AffiliateProgram, events: ProcessorEventSummary, base_url: &str) -> Option<Self> {
        let processor = program.processor.as_ref()?;
        Some(Self {
            kind: "stripe",
            api_base: processor.api_base.clone(),
            account_id: processor.account_id.clone(),
            livemode: processor.livemode,
            has_key: processor.restricted_key.is_some(),
            webhook_secrets_count: processor.webhook_secrets.len(),
            webhook_url: format!("{base_url}/processor/stripe/{}", program.id),
            last_event_at: events.last_event_at.map(ApiTimestamp),
            failed_events: events.failed_events,
        })
    }
}

/// A link of a partner
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(name = "AffiliateLink")]
pub struct LinkObject {
    /// The object type
    #[schema(const = "affiliate_link")]
    object: &'static str,
    /// The link's id (`afl_…`)
    id: PartnerLinkId,
    /// The partner (`aff_…`)
    affiliate_id: PartnerId,
    /// The value of the `via` parameter
    #[schema(examples = ["ada"])]
    token: String,
    /// The URL with the token
    #[schema(examples = ["https://shop.example/?via=ada"])]
    url: String,
    /// The destination: a path or a URL on the website
    destination_url: Option<String>,
    /// The label
    label: Option<String>,
    /// Whether this is the primary link
    is_primary: bool,
    /// When it was created
    created_at: ApiTimestamp,
}

impl LinkObject {
    pub fn of(link: &PartnerLink, partner: &Partner, program: &AffiliateProgram) -> Self {
        Self {
            object: "affiliate_link",
            id: link.id,
            affiliate_id: link.partner,
            token: link.token.as_str().to_owned(),
            url: crate::partners::link_url::link_url(&program.settings.website_url, link),
            destination_url: link.destination_url.clone(),
            label: link.label.clone(),
            is_primary: link.id == partner.primary_link,
            created_at: ApiTimestamp(link.created_at),
        }
    }
}

/// A partner
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(name = "Affiliate")]
pub struct PartnerObject {
    /// The object type
    #[schema(const = "affiliate")]
    object: &'static str,
    /// The partner's id (`aff_…`)
    id: PartnerId,
    /// The unique email address
    email: String,
    /// The given name
    first_name: Option<String>,
    /// The family name
    last_name: Option<String>,
    /// The company
    company: Option<String>,
    /// The website
    website: Option<String>,
    /// Two letters (ISO 3166-1)
    country: Option<String>,
    /// The status
    status: PartnerStatus,
    /// The source
    source: PartnerSource,
    /// The campaign (`cmp_…`)
    campaign_id: CampaignId,
    /// The partner that recruited this one (`aff_…`)
    parent_affiliate_id: Option<PartnerId>,
    /// Tags for the owner's use
    #[schema(maxItems = TAGS_MAX)]
    tags: Vec<String>,
    /// The payout method
    payout_method: Option<PayoutMethod>,
    /// Whether a payout destination with an allowed method is set
    payout_ready: bool,
    /// When the partner was first approved
    approved_at: Option<ApiTimestamp>,
    /// All links of the partner; in a list, only the primary link
    #[schema(maxItems = 2 * LINKS_MAX)]
    links: Vec<LinkObject>,
    /// When it was created
    created_at: ApiTimestamp,
    /// When it was last changed
    updated_at: ApiTimestamp,
}

impl PartnerObject {
    /// Builds the object of a partner with the given links.
    pub fn of(partner: &Partner, links: &[PartnerLink], program: &AffiliateProgram) -> Self {
        Self {
            object: "affiliate",
            id: partner.id,
            email: partner.email.to_string(),
            first_name: partner.first_name.clone(),
            last_name: partner.last_name.clone(),
            company: partner.company.clone(),
            website: partner.website.clone(),
            country: partner.country.clone(),
            status: partner.status,
            source: partner.source,
            campaign_id: partner.campaign,
            parent_affiliate_id: partner.parent,
            tags: partner.tags.clone(),
            payout_method: partner.payout.as_ref().map(|payout| payout.method),
            payout_ready: partner.is_payout_ready(&program.settings.allowed_methods),
            approved_at: partner.approved_at.map(ApiTimestamp),
            links: links.iter().map(|link| LinkObject::of(link, partner, program)).collect(),
            created_at: ApiTimestamp(partner.created_at),
            updated_at: ApiTimestamp(partner.updated_at),
        }
    }
}

/// A rate as shown: its type and two numbers, of which the type selects one.
struct RateFields {
    commission_type: &'static str,
    commission_bps: u16,
    commission_flat_cents: i64,
}

impl RateFields {
    /// Returns the shown fields of a rate; `unused` is the stored number of the other type.
    fn of(rate: Option<CommissionRate>, unused: i64) -> Self {
        match rate {
            Some(CommissionRate::Percent(bps)) => {
                Self { commission_type: "percent", commission_bps: bps.get(), commission_flat_cents: unused }
            }
            Some(CommissionRate::Flat(cents)) => {
                let commission_bps = u16::try_from(unused).unwrap_or_default();
                Self { commission_type: "flat", commission_bps, commission_flat_cents: cents }
            }
            None => Self { commission_type: "none", commission_bps: 0, commission_flat_cents: 0 },
        }
    }
}

/// A rate that applies from a number of paying customers; `commission_type` selects one of the two rates
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct TierObject {
    /// Number of paying customers, including the current one
    #[schema(minimum = 1, maximum = u32::MAX)]
    min_paid_customers: u32,
    /// The percentage in basis points
    #[schema(maximum = BasisPoints::ALL.get())]
    commission_bps: u16,
    /// The amount in minor units
    #[schema(minimum = 0, maximum = CENTS_MAX)]
    commission_flat_cents: i64,
}

impl From<&RateTier> for TierObject {
    fn from(tier: &RateTier) -> Self {
        let rate = RateFields::of(Some(tier.rate), tier.unused);
        Self {
            min_paid_customers: tier.min_paid_customers,
            commission_bps: rate.commission_bps,
            commission_flat_cents: rate.commission_flat_cents,
        }
    }
}

/// The rate of a product or of one of its prices
#[derive(Debug, Clone, Serialize, ToSchema)]
struct ProductRateObject {
    /// The payment processor's product id
    product_id: String,
    /// The payment processor's price id
    price_id: Option<String>,
    /// The rate that applies; `none` earns nothing
    #[schema(enum = ["percent", "flat", "none"])]
    commission_type: &'static str,
    /// The percentage in basis points
    #[schema(maximum = BasisPoints::ALL.get())]
    commission_bps: u16,
    /// The amount in minor units
    #[schema(minimum = 0, maximum = CENTS_MAX)]
    commission_flat_cents: i64,
    /// A label for your own use
    label: Option<String>,
}

impl From<&ProductRate> for ProductRateObject {
    fn from(product: &ProductRate) -> Self {
        let rate = RateFields::of(product.rate, product.unused);
        Self {
            product_id: product.product.clone(),
            price_id: product.price.clone(),
            commission_type: rate.commission_type,
            commission_bps: rate.commission_bps,
            commission_flat_cents: rate.commission_flat_cents,
            label: product.label.clone(),
        }
    }
}

/// The commission terms of partners
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(name = "AffiliateCampaign")]
pub struct CampaignObject {
    /// The object type
    #[schema(const = "affiliate_campaign")]
    object: &'static str,
    /// The campaign's id (`cmp_…`)
    id: CampaignId,
    /// The unique name of the campaign
    name: String,
    /// Whether this is the default campaign
    is_default: bool,
    /// The people who can see the campaign
    visibility: Visibility,
    /// Whether applications are approved automatically
    auto_approve: bool,
    /// The rate that applies
    #[schema(enum = ["percent", "flat"])]
    commission_type: &'static str,
    /// The percentage of a sale in basis points
    #[schema(maximum = BasisPoints::ALL.get())]
    commission_bps: u16,
    /// The amount per sale, in minor units of the program's currency
    #[schema(minimum = 0, maximum = CENTS_MAX)]
    commission_flat_cents: i64,
    /// Whether the first sale or all sales earn a commission
    #[schema(enum = ["once", "recurring"])]
    commission_duration: &'static str,
    /// For how many months sales earn a commission; null is unlimited
    #[schema(minimum = 1, maximum = u16::MAX)]
    recurring_months: Option<u16>,
    /// Maximum commission per sale
    #[schema(minimum = 0, maximum = CENTS_MAX)]
    max_commission_cents: Option<i64>,
    /// Rates by number of paying customers
    tiers: Vec<TierObject>,
    /// Rates of products and prices
    product_rates: Vec<ProductRateObject>,
    /// The recruiting partner's percentage of the same sale in basis points
    #[schema(maximum = BasisPoints::ALL.get())]
    second_tier_bps: u16,
    /// The amount per lead in minor units
    #[schema(minimum = 0, maximum = CENTS_MAX)]
    lead_bounty_cents: i64,
    /// For how many days a visit is credited to the partner
    #[schema(minimum = 1, maximum = 365)]
    cookie_days: u16,
    /// For how many days a commission is held for refunds
    #[schema(maximum = 365)]
    hold_days: u16,
    /// When the campaign was archived and stopped accepting partners
    archived_at: Option<ApiTimestamp>,
    /// When it was created
    created_at: ApiTimestamp,
    /// When it was last changed
    updated_at: ApiTimestamp,
    /// Number of partners; only in lists
    #[serde(skip_serializing_if = "Option::is_none")]
    affiliate_count: Option<usize>,
}

impl CampaignObject {
    pub fn of(campaign: &Campaign, program: &AffiliateProgram) -> Self {
        let terms = &campaign.terms;
        let rate = RateFields::of(Some(terms.base), terms.unused);
        let (commission_duration, recurring_months) = match terms.duration {
            CommissionDuration::Once => ("once", None),
            CommissionDuration::Recurring(months) => ("recurring", months),
        };
        Self {
            object: "affiliate_campaign",
            id: campaign.id,
            name: campaign.name.clone(),
            is_default: program.default_campaign == Some(campaign.id),
            visibility: campaign.visibility,
            auto_approve: campaign.auto_approve,
            commission_type: rate.commission_type,
            commission_bps: rate.commission_bps,
            commission_flat_cents: rate.commission_flat_cents,
            commission_duration,
            recurring_months,
            max_commission_cents: terms.max_commission,
            tiers: terms.tiers.iter().map(TierObject::from).collect(),
            product_rates: terms.products.iter().map(ProductRateObject::from).collect(),
            second_tier_bps: terms.second_tier.get(),
            lead_bounty_cents: terms.lead_bounty,
            cookie_days: terms.cookie_days,
            hold_days: terms.hold_days,
            archived_at: campaign.archived_at.map(ApiTimestamp),
            created_at: ApiTimestamp(campaign.created_at),
            updated_at: ApiTimestamp(campaign.updated_at),
            affiliate_count: None,
        }
    }

    /// Adds the number of partners.
    #[must_use]
    pub fn with_count(self, partners: usize) -> Self {
        Self { affiliate_count: Some(partners), ..self }
    }
}

/// A person referred by a partner
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(name = "AffiliateReferral")]
pub struct ReferralObject {
    /// The object type
    #[schema(const = "affiliate_referral")]
    object: &'static str,
    /// The referral's id (`ref_…`)
    id: ReferralId,
    /// The partner (`aff_…`)
    affiliate_id: PartnerId,
    /// The status
    status: ReferralStatus,
    /// The source
    source: ReferralSource,
    /// The person's email address
    email: Option<String>,
    /// The payment processor's customer id
    processor_customer_id: Option<String>,
    /// The partner's own tag
    sub_id: Option<String>,
    /// Why the referral earns no commission
    blocked_reason: Option<ReferralBlock>,
    /// Payments minus refunds, without tax, in minor units
    revenue_cents: i64,
    /// The currency of the first payment
    currency: Option<Currency>,
    /// When the customer first paid
    converted_at: Option<ApiTimestamp>,
    /// The customer must pay before this time to be credited to the partner
    expires_at: ApiTimestamp,
    /// When it was created
    created_at: ApiTimestamp,
    /// When it was last changed
    updated_at: ApiTimestamp,
}

impl From<&Referral> for ReferralObject {
    fn from(referral: &Referral) -> Self {
        Self {
            object: "affiliate_referral",
            id: referral.id,
            affiliate_id: referral.partner,
            status: referral.status,
            source: referral.source,
            email: referral.email.as_ref().map(ToString::to_string),
            processor_customer_id: referral.customer.clone(),
            sub_id: referral.sub_id.clone(),
            blocked_reason: referral.blocked,
            revenue_cents: referral.revenue_cents,
            currency: referral.currency,
            converted_at: referral.converted_at.map(ApiTimestamp),
            expires_at: ApiTimestamp(referral.expires_at),
            created_at: ApiTimestamp(referral.created_at),
            updated_at: ApiTimestamp(referral.updated_at),
        }
    }
}

/// A line of the ledger
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(name = "AffiliateCommission")]
pub struct CommissionObject {
    /// The object type
    #[schema(const = "affiliate_commission")]
    object: &'static str,
    /// The commission's id (`com_…`)
    id: CommissionId,
    /// The partner (`aff_…`)
    affiliate_id: PartnerId,
    /// The referral (`ref_…`)
    referral_id: ReferralId,
    /// 1: earned by the referring partner; 2: earned by the partner that recruited it
    #[schema(minimum = 1, maximum = 2, examples = [1])]
    tier: u8,
    /// The status; `earned` while it is in a payout
    #[schema(enum = CommissionStatus::WORDS)]
    status: &'static str,
    /// The amount in minor units
    #[schema(minimum = 1, maximum = i64::MAX)]
    amount_cents: i64,
    /// The sale amount that the commission is based on; 0 for a bounty
    sale_amount_cents: i64,
    /// The currency of `amount_cents`
    currency: Currency,
    /// The reason for the commission
    description: String,
    /// The payment processor's invoice id
    processor_invoice_id: Option<String>,
    /// The payment processor's charge id
    processor_charge_id: Option<String>,
    /// When the hold period ends
    earns_at: ApiTimestamp,
    /// When the commission was earned
    earned_at: Option<ApiTimestamp>,
    /// When it was paid out
    paid_at: Option<ApiTimestamp>,
    /// When it was reversed
    reversed_at: Option<ApiTimestamp>,
    /// Why it was reversed
    reverse_reason: Option<ReversalReason>,
    /// The payout (`pay_…`)
    payout_id: Option<PayoutId>,
    /// When it was created
    created_at: ApiTimestamp,
    /// When it was last changed
    updated_at: ApiTimestamp,
}

impl From<&Commission> for CommissionObject {
    fn from(line: &Commission) -> Self {
        let (sale, status) = (line.sold_invoice(), line.status);
        Self {
            object: "affiliate_commission",
            id: line.id,
            affiliate_id: line.partner,
            referral_id: line.referral,
            tier: line.level().number(),
            status: status.word(),
            amount_cents: line.amount,
            sale_amount_cents: line.sale_amount(),
            currency: line.currency,
            description: line.description(),
            processor_invoice_id: sale.map(|sale| sale.invoice.clone()),
            processor_charge_id: sale.and_then(|sale| sale.charge.clone()),
            earns_at: ApiTimestamp(line.earns_at),
            earned_at: status.earned_at().map(ApiTimestamp),
            paid_at: status.paid_at().map(ApiTimestamp),
            reversed_at: status.reversed().map(|(at, _)| ApiTimestamp(at)),
            reverse_reason: status.reversed().map(|(_, reason)| reason),
            payout_id: status.payout(),
            created_at: ApiTimestamp(line.created_at),
            updated_at: ApiTimestamp(line.updated_at),
        }
    }
}

/// A payout to one partner in one currency
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(name = "AffiliatePayout")]
pub struct PayoutObject {
    /// The object type
    #[schema(const = "affiliate_payout")]
    object: &'static str,
    /// The payout's id (`pay_…`)
    id: PayoutId,
    /// The partner (`aff_…`)
    affiliate_id: PartnerId,
    /// The payout run (`prn_…`)
    run_id: PayoutRunId,
    /// The amount in minor units
    #[schema(minimum = 0)]
    amount_cents: i64,
    /// The currency
    currency: Currency,
    /// The payout method
    method: PayoutMethod,
    /// The status
    status: PayoutStatus,
    /// The payment processor's transfer id
    processor_transfer_id: Option<String>,
    /// Reference of the payment, as proof
    external_reference: Option<String>,
    /// Why the payout failed; while it is `processing`, why the transfer has not been made yet
    failure_reason: Option<String>,
    /// When it was paid
    paid_at: Option<ApiTimestamp>,
    /// When it was drafted
    created_at: ApiTimestamp,
    /// When it was last changed
    updated_at: ApiTimestamp,
}

impl From<&PayoutView> for PayoutObject {
    fn from(view: &PayoutView) -> Self {
        let payout = &view.payout;
        Self {
            object: "affiliate_payout",
            id: payout.id,
            affiliate_id: payout.partner,
            run_id: payout.run,
            amount_cents: payout.amount,
            currency: payout.currency,
            method: payout.method,
            status: view.status,
            processor_transfer_id: payout.transfer.clone(),
            external_reference: payout.reference.clone(),
            failure_reason: payout.failure_or_obstacle().map(str::to_owned),
            paid_at: payout.paid_at.map(ApiTimestamp),
            created_at: ApiTimestamp(payout.created_at),
            updated_at: ApiTimestamp(view.updated_at()),
        }
    }
}

/// A payout to one partner in one currency, with its destination
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(name = "AffiliatePayoutOfRun")]
pub struct DraftPayoutObject {
    #[serde(flatten)]
    payout: PayoutObject,
    /// The payout destination
    destination: String,
}

impl From<&PayoutView> for DraftPayoutObject {
    fn from(view: &PayoutView) -> Self {
        Self { payout: view.into(), destination: view.payout.destination.clone() }
    }
}

/// A set of payouts that are approved together
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(name = "AffiliatePayoutRun")]
pub struct PayoutRunObject {
    /// The object type
    #[schema(const = "affiliate_payout_run")]
    object: &'static str,
    /// The payout run's id (`prn_…`)
    id: PayoutRunId,
    /// The status
    status: PayoutRunStatus,
    /// Whether some payouts of the run failed
    partial: bool,
    /// Version number; increases with each change
    rev: u64,
    /// The run includes commissions earned until this time
    cutoff: ApiTimestamp,
    /// The sum of the payouts by currency
    #[schema(examples = [{"usd": 5000}])]
    totals: BTreeMap<Currency, i64>,
    /// Number of payouts
    payouts_count: u32,
    /// Whether charges are still being compared with the payment processor, which blocks the approval
    comparing: bool,
    /// Commissions whose charges could not be compared because the payment processor did not respond
    uncompared_count: u32,
    /// When it was drafted
    created_at: ApiTimestamp,
    /// When it was approved
    approved_at: Option<ApiTimestamp>,
    /// When its last payout was settled
    completed_at: Option<ApiTimestamp>,
}

impl From<&PayoutRun> for PayoutRunObject {
    fn from(run: &PayoutRun) -> Self {
        Self {
            object: "affiliate_payout_run",
            id: run.id,
            status: run.status,
            partial: run.is_partial,
            rev: run.rev,
            cutoff: ApiTimestamp(run.cutoff),
            totals: run.totals.clone(),
            payouts_count: run.payouts,
            comparing: !run.is_reconciled(),
            uncompared_count: run.uncompared,
            created_at: ApiTimestamp(run.created_at),
            approved_at: run.approved_at.map(ApiTimestamp),
            completed_at: run.completed_at.map(ApiTimestamp),
        }
    }
}

/// A partner that is skipped in a run
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(name = "SkippedAffiliate")]
pub struct SkippedPartnerObject {
    /// The partner (`aff_…`)
    affiliate_id: PartnerId,
    /// The currency
    currency: Currency,
    /// The amount that is not paid, in minor units
    #[schema(minimum = 0)]
    amount_cents: i64,
    /// Why
    reason: SkipReason,
}

impl From<&SkippedPartner> for SkippedPartnerObject {
    fn from(skipped: &SkippedPartner) -> Self {
        let SkippedPartner { partner, currency, amount, reason } = *skipped;
        Self { affiliate_id: partner, currency, amount_cents: amount, reason }
    }
}
