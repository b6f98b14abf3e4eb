//! JSON objects of the affiliate program, used in API responses and in events.

use std::collections::BTreeMap;

use jiff::Timestamp;
use mail::affiliate::campaign::{Campaign, CommissionDuration, CommissionRate, ProductRate, RateTier, Visibility};
use mail::affiliate::commission::{Commission, ReversalReason};
use mail::affiliate::money::Currency;
use mail::affiliate::partner::{Partner, PartnerLink, PartnerSource, PartnerStatus};
use mail::affiliate::payout::{PayoutRun, PayoutRunStatus, PayoutStatus, SkipReason, SkippedPartner};
use mail::affiliate::program::{
    AffiliateProgram, AfterPayout, Attribution, PayoutMethod, ProcessorMode, ProgramStatus,
};
use mail::affiliate::referral::{Referral, ReferralBlock, ReferralSource, ReferralStatus};
use mail::id::{CampaignId, CommissionId, PartnerId, PartnerLinkId, PayoutId, PayoutRunId, ProgramId, ReferralId};
use mail::timestamp;
use serde::{Serialize, Serializer};

use crate::partner_emails::MailBlockReason;
use crate::payouts::PayoutView;
use crate::portal::host::PortalHostError;

/// A time in ISO 8601 with milliseconds and `Z`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ApiTimestamp(pub Timestamp);

impl Serialize for ApiTimestamp {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&timestamp::to_rfc3339(self.0))
    }
}

#[derive(Debug, Clone, Serialize)]
pub struct ProgramObject {
    object: &'static str,
    id: ProgramId,
    status: ProgramStatus,
    mode: ProcessorMode,
    website_url: String,
    currency: Currency,
    attribution: Attribution,
    new_customers_only: bool,
    metadata_key: String,
    exclude_key: String,
    default_campaign_id: Option<CampaignId>,
    min_payout: BTreeMap<Currency, i64>,
    allowed_methods: Vec<PayoutMethod>,
    payout_after_refund: AfterPayout,
    count_invoiceless_payments: bool,
    share_customer_email: bool,
    suspended_accrue: bool,
    allowed_origins: Vec<String>,
    publishable_key: String,
    banned_referrers: Vec<String>,
    portal_domain: Option<String>,
    portal_domain_error: Option<String>,
    terms_url: Option<String>,
    mail_from: Option<String>,
    mail_error: Option<String>,
    velocity_per_hour: u32,
    max_bounties_per_day: u32,
    rev: u64,
    created_at: ApiTimestamp,
    updated_at: ApiTimestamp,
}

impl ProgramObject {
    /// Builds the object; `portal_fault` and `unmailable` explain why the portal or mail to partners does not work.
    #[must_use]
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
            mail_error: unmailable.map(|cause| format!("partners who did not request the mail are {cause}")),
            velocity_per_hour: settings.velocity_per_hour,
            max_bounties_per_day: settings.max_bounties_per_day,
            rev: program.rev,
            created_at: ApiTimestamp(program.created_at),
            updated_at: ApiTimestamp(program.updated_at),
        }
    }
}

/// The connected payment processor, without secrets.
#[derive(Debug, Clone, Serialize)]
pub struct ProcessorObject {
    kind: &'static str,
    api_base: String,
    account_id: Option<String>,
    livemode: Option<bool>,
    has_key: bool,
    webhook_secrets_count: usize,
    webhook_url: String,
    last_event_at: Option<ApiTimestamp>,
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
    #[must_use]
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

#[derive(Debug, Clone, Serialize)]
pub struct LinkObject {
    object: &'static str,
    id: PartnerLinkId,
    affiliate_id: PartnerId,
    token: String,
    url: String,
    destination_url: Option<String>,
    label: Option<String>,
    is_primary: bool,
    created_at: ApiTimestamp,
}

impl LinkObject {
    #[must_use]
    pub fn of(link: &PartnerLink, partner: &Partner, program: &AffiliateProgram) -> Self {
        Self {
            object: "affiliate_link",
            id: link.id,
            affiliate_id: link.partner,
            token: link.token.as_str().to_owned(),
            url: crate::links::link_url(&program.settings.website_url, link),
            destination_url: link.destination_url.clone(),
            label: link.label.clone(),
            is_primary: link.id == partner.primary_link,
            created_at: ApiTimestamp(link.created_at),
        }
    }
}

#[derive(Debug, Clone, Serialize)]
pub struct PartnerObject {
    object: &'static str,
    id: PartnerId,
    email: String,
    first_name: Option<String>,
    last_name: Option<String>,
    company: Option<String>,
    website: Option<String>,
    country: Option<String>,
    status: PartnerStatus,
    source: PartnerSource,
    campaign_id: CampaignId,
    parent_affiliate_id: Option<PartnerId>,
    tags: Vec<String>,
    payout_method: Option<PayoutMethod>,
    payout_ready: bool,
    approved_at: Option<ApiTimestamp>,
    links: Vec<LinkObject>,
    created_at: ApiTimestamp,
    updated_at: ApiTimestamp,
}

impl PartnerObject {
    /// Builds the object of a partner with the given links.
    #[must_use]
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
#[derive(Debug, Clone, Copy, Serialize)]
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

#[derive(Debug, Clone, Serialize)]
struct TierObject {
    min_paid_customers: u32,
    commission_bps: u16,
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

#[derive(Debug, Clone, Serialize)]
struct ProductRateObject {
    product_id: String,
    price_id: Option<String>,
    #[serde(flatten)]
    rate: RateFields,
    label: Option<String>,
}

impl From<&ProductRate> for ProductRateObject {
    fn from(rate: &ProductRate) -> Self {
        Self {
            product_id: rate.product.clone(),
            price_id: rate.price.clone(),
            rate: RateFields::of(rate.rate, rate.unused),
            label: rate.label.clone(),
        }
    }
}

#[derive(Debug, Clone, Serialize)]
pub struct CampaignObject {
    object: &'static str,
    id: CampaignId,
    name: String,
    is_default: bool,
    visibility: Visibility,
    auto_approve: bool,
    #[serde(flatten)]
    rate: RateFields,
    commission_duration: &'static str,
    recurring_months: Option<u16>,
    max_commission_cents: Option<i64>,
    tiers: Vec<TierObject>,
    product_rates: Vec<ProductRateObject>,
    second_tier_bps: u16,
    lead_bounty_cents: i64,
    cookie_days: u16,
    hold_days: u16,
    archived_at: Option<ApiTimestamp>,
    created_at: ApiTimestamp,
    updated_at: ApiTimestamp,
    #[serde(skip_serializing_if = "Option::is_none")]
    affiliate_count: Option<usize>,
}

impl CampaignObject {
    #[must_use]
    pub fn of(campaign: &Campaign, program: &AffiliateProgram) -> Self {
        let terms = &campaign.terms;
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
            rate: RateFields::of(Some(terms.base), terms.unused),
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

#[derive(Debug, Clone, Serialize)]
pub struct ReferralObject {
    object: &'static str,
    id: ReferralId,
    affiliate_id: PartnerId,
    status: ReferralStatus,
    source: ReferralSource,
    email: Option<String>,
    processor_customer_id: Option<String>,
    sub_id: Option<String>,
    blocked_reason: Option<ReferralBlock>,
    revenue_cents: i64,
    currency: Option<Currency>,
    converted_at: Option<ApiTimestamp>,
    expires_at: ApiTimestamp,
    created_at: ApiTimestamp,
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

#[derive(Debug, Clone, Serialize)]
pub struct CommissionObject {
    object: &'static str,
    id: CommissionId,
    affiliate_id: PartnerId,
    referral_id: ReferralId,
    tier: u8,
    status: &'static str,
    amount_cents: i64,
    sale_amount_cents: i64,
    currency: Currency,
    description: String,
    processor_invoice_id: Option<String>,
    processor_charge_id: Option<String>,
    earns_at: ApiTimestamp,
    earned_at: Option<ApiTimestamp>,
    paid_at: Option<ApiTimestamp>,
    reversed_at: Option<ApiTimestamp>,
    reverse_reason: Option<ReversalReason>,
    payout_id: Option<PayoutId>,
    created_at: ApiTimestamp,
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

#[derive(Debug, Clone, Serialize)]
pub struct PayoutObject {
    object: &'static str,
    id: PayoutId,
    affiliate_id: PartnerId,
    run_id: PayoutRunId,
    amount_cents: i64,
    currency: Currency,
    method: PayoutMethod,
    status: PayoutStatus,
    processor_transfer_id: Option<String>,
    external_reference: Option<String>,
    failure_reason: Option<String>,
    paid_at: Option<ApiTimestamp>,
    created_at: ApiTimestamp,
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

/// A payout of a run as the owner sees it, with its destination.
#[derive(Debug, Clone, Serialize)]
pub struct DraftPayoutObject {
    #[serde(flatten)]
    payout: PayoutObject,
    destination: String,
}

impl From<&PayoutView> for DraftPayoutObject {
    fn from(view: &PayoutView) -> Self {
        Self { payout: view.into(), destination: view.payout.destination.clone() }
    }
}

#[derive(Debug, Clone, Serialize)]
pub struct PayoutRunObject {
    object: &'static str,
    id: PayoutRunId,
    status: PayoutRunStatus,
    partial: bool,
    rev: u64,
    cutoff: ApiTimestamp,
    totals: BTreeMap<Currency, i64>,
    payouts_count: u32,
    comparing: bool,
    uncompared_count: u32,
    created_at: ApiTimestamp,
    approved_at: Option<ApiTimestamp>,
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

/// A partner that is not in a run.
#[derive(Debug, Clone, Serialize)]
pub struct SkippedPartnerObject {
    affiliate_id: PartnerId,
    currency: Currency,
    amount_cents: i64,
    reason: SkipReason,
}

impl From<&SkippedPartner> for SkippedPartnerObject {
    fn from(skipped: &SkippedPartner) -> Self {
        let SkippedPartner { partner, currency, amount, reason } = *skipped;
        Self { affiliate_id: partner, currency, amount_cents: amount, reason }
    }
}
