//! JSON objects of the affiliate program, used in API responses and in events.

use std::collections::BTreeMap;

use jiff::Timestamp;
use model::affiliate::campaign::{Campaign, CommissionDuration, CommissionRate, ProductRate, RateTier, Visibility};
use model::affiliate::commission::{Commission, ReversalReason};
use model::affiliate::money::{BasisPoints, CENTS_MAX, Currency};
use model::affiliate::partner::{LINKS_MAX, Partner, PartnerLink, PartnerSource, PartnerStatus, TAGS_MAX};
use model::affiliate::payout::{PayoutRun, PayoutRunStatus, PayoutStatus, SkipReason, SkippedPartner};
use model::affiliate::program::{
    AffiliateProgram, AfterPayout, Attribution, PaymentProcessor, PayoutMethod, ProcessorMode, ProgramStatus,
    REVIEW_THRESHOLD_MAX, WEBHOOK_SECRETS_MAX,
};
use model::affiliate::referral::{Referral, ReferralBlock, ReferralSource, ReferralStatus};
use model::id::{CampaignId, CommissionId, PartnerId, PartnerLinkId, PayoutId, PayoutRunId, ProgramId, ReferralId};
use schema::ToSchema;
use serde::Serialize;
use store::affiliate::commission::CommissionStatus;

pub use crate::api_timestamp::ApiTimestamp;
use crate::error::{MailBlockReason, PortalHostError};
use crate::payouts::view::PayoutView;

/// Declares an object with the value of each of its fields: `from` one row, or `of` several. Values that several fields
/// need follow the rows, each as `let`.
macro_rules! api_object {
    ($(#[$about:meta])* $name:ident from($row:ident: &$source:ty $(; let $shared:pat = $made:expr)*) {
        $($(#[$each:meta])* $field:ident: $type:ty = $value:expr,)*
    }) => {
        #[derive(Debug, Clone, Serialize, ToSchema)]
        $(#[$about])*
        pub struct $name {
            $($(#[$each])* $field: $type,)*
        }

        impl From<&$source> for $name {
            fn from($row: &$source) -> Self {
                $(let $shared = $made;)*
                Self { $($field: $value,)* }
            }
        }
    };
    ($(#[$about:meta])* $name:ident of($($row:ident: $source:ty),+ $(; let $shared:pat = $made:expr)*) {
        $($(#[$each:meta])* $field:ident: $type:ty = $value:expr,)*
    }) => {
        #[derive(Debug, Clone, Serialize, ToSchema)]
        $(#[$about])*
        pub struct $name {
            $($(#[$each])* $field: $type,)*
        }

        impl $name {
            pub fn of($($row: $source),+) -> Self {
                $(let $shared = $made;)*
                Self { $($field: $value,)* }
            }
        }
    };
}

api_object! {
    /// An affiliate program
    #[schema(name = "AffiliateProgram")]
    ProgramObject of(
        program: &AffiliateProgram,
        portal_fault: Option<PortalHostError>,
        unmailable: Option<MailBlockReason>
    ) {
        /// The object type
        #[schema(const = "affiliate_program")]
        object: &'static str = "affiliate_program",
        /// The program's id (`prog_…`)
        id: ProgramId = program.id,
        /// The status
        status: ProgramStatus = program.status,
        /// Whether live or test payments count
        mode: ProcessorMode = program.settings.mode,
        /// The website that partner links lead to
        website_url: String = program.settings.website_url.clone(),
        /// The currency of flat amounts, bounties and caps
        currency: Currency = program.settings.currency,
        /// The link that gets the credit if a visitor used several
        attribution: Attribution = program.settings.attribution,
        /// Whether customers who paid before they were referred earn nothing
        new_customers_only: bool = program.settings.new_customers_only,
        /// The metadata key that names the referral in the payment processor
        metadata_key: String = program.settings.metadata_key.clone(),
        /// The metadata key that excludes a payment if its value is `false`
        exclude_key: String = program.settings.exclude_key.clone(),
        /// The default campaign (`cmp_…`)
        default_campaign_id: Option<CampaignId> = program.default_campaign,
        /// The minimum payout in minor units, by currency
        #[schema(additionalProperties = {"type": "integer", "minimum": 0}, examples = [{"usd": 5000}])]
        min_payout: BTreeMap<Currency, i64> = program.settings.min_payout.clone(),
        /// Payout methods that partners can choose
        #[schema(items = {"type": "string", "enum": PayoutMethod::WORDS, "description": "A payout method"})]
        allowed_methods: Vec<PayoutMethod> = program.settings.allowed_methods.clone(),
        /// The consequence if a sale is refunded after the payout
        payout_after_refund: AfterPayout = program.settings.payout_after_refund,
        /// Whether checkouts without an invoice earn commissions
        count_invoiceless_payments: bool = program.settings.count_invoiceless_payments,
        /// Whether partners see the email addresses of customers they referred
        share_customer_email: bool = program.settings.share_customer_email,
        /// Whether suspended partners continue to earn from existing referrals
        suspended_accrue: bool = program.settings.suspended_accrue,
        /// Web origins that may record visits; if empty, the website's origin
        allowed_origins: Vec<String> = program.settings.allowed_origins.clone(),
        /// The public key for web pages
        publishable_key: String = program.publishable_key.clone(),
        /// Referrals from pages of these hosts are held for review
        banned_referrers: Vec<String> = program.settings.banned_referrers.iter().map(ToString::to_string).collect(),
        /// The host name of the partner portal
        portal_domain: Option<String> = program.settings.portal_domain.as_ref().map(ToString::to_string),
        /// Why the portal is not available at its own host, and how to fix that; null if it is available
        portal_domain_error: Option<String> = portal_fault.map(|fault| format!("the host {fault}")),
        /// URL of the program's terms
        terms_url: Option<String> = program.settings.terms_url.clone(),
        /// Sender address of partner email; without it, only email that a partner requested is sent
        mail_from: Option<String> = program.settings.mail_from.as_ref().map(ToString::to_string),
        /// Why email to partners is not sent, and how to fix that; null if it is sent
        mail_error: Option<String> = unmailable.map(|cause| format!("partners who did not ask for the email are {cause}")),
        /// Referrals of a partner per hour above which they are held for review
        #[schema(minimum = 1, maximum = REVIEW_THRESHOLD_MAX)]
        velocity_per_hour: u32 = program.settings.velocity_per_hour,
        /// Bounties of a partner per day above which they are held for review
        #[schema(minimum = 1, maximum = REVIEW_THRESHOLD_MAX)]
        max_bounties_per_day: u32 = program.settings.max_bounties_per_day,
        /// Version number; increases with each change
        rev: u64 = program.rev,
        /// When it was enabled
        created_at: ApiTimestamp = ApiTimestamp(program.created_at),
        /// When it was last changed
        updated_at: ApiTimestamp = ApiTimestamp(program.updated_at),
    }
}

api_object! {
    /// The payment processor
    #[schema(name = "AffiliateProcessor")]
    ProcessorObject of(
        processor: &PaymentProcessor,
        program: &AffiliateProgram,
        events: ProcessorEventSummary,
        base_url: &str
    ) {
        /// The object type
        #[schema(const = "stripe")]
        kind: &'static str = "stripe",
        /// The base URL of the payment processor's API
        api_base: String = processor.api_base.clone(),
        /// The payment processor's account id; events of other accounts are ignored
        account_id: Option<String> = processor.account_id.clone(),
        /// Whether payments are live; null if unknown
        livemode: Option<bool> = processor.livemode,
        /// Whether an API key is set; without one only events are received
        has_key: bool = processor.restricted_key.is_some(),
        /// Number of accepted signing secrets
        #[schema(minimum = 1, maximum = WEBHOOK_SECRETS_MAX)]
        webhook_secrets_count: usize = processor.webhook_secrets.len(),
        /// The webhook URL for the payment processor's events
        webhook_url: String = processor_events_url(base_url, program),
        /// When the last event was received
        last_event_at: Option<ApiTimestamp> = events.last_event_at.map(ApiTimestamp),
        /// Number of events that could not be processed
        failed_events: usize = events.failed_events,
    }
}

/// The URL for the payment processor's events.
pub fn processor_events_url(base_url: &str, program: &AffiliateProgram) -> String {
    format!("{base_url}/processor/stripe/{}", program.id)
}

/// Summary of the processor's events.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ProcessorEventSummary {
    /// Time of the last received event.
    pub last_event_at: Option<Timestamp>,
    /// Number of failed events.
    pub failed_events: usize,
}

api_object! {
    /// A link of a partner
    #[schema(name = "AffiliateLink")]
    LinkObject of(link: &PartnerLink, partner: &Partner, program: &AffiliateProgram) {
        /// The object type
        #[schema(const = "affiliate_link")]
        object: &'static str = "affiliate_link",
        /// The link's id (`afl_…`)
        id: PartnerLinkId = link.id,
        /// The partner (`aff_…`)
        affiliate_id: PartnerId = link.partner,
        /// The value of the `via` parameter
        #[schema(examples = ["ada"])]
        token: String = link.token.as_str().to_owned(),
        /// The URL with the token
        #[schema(examples = ["https://shop.example/?via=ada"])]
        url: String = crate::partners::link_url::link_url(&program.settings.website_url, link),
        /// The destination: a path or a URL on the website
        destination_url: Option<String> = link.destination_url.clone(),
        /// The label
        label: Option<String> = link.label.clone(),
        /// Whether this is the primary link
        is_primary: bool = link.id == partner.primary_link,
        /// When it was created
        created_at: ApiTimestamp = ApiTimestamp(link.created_at),
    }
}

api_object! {
    /// A partner
    #[schema(name = "Affiliate")]
    PartnerObject of(partner: &Partner, links: &[PartnerLink], program: &AffiliateProgram) {
        /// The object type
        #[schema(const = "affiliate")]
        object: &'static str = "affiliate",
        /// The partner's id (`aff_…`)
        id: PartnerId = partner.id,
        /// The unique email address
        email: String = partner.email.to_string(),
        /// The given name
        first_name: Option<String> = partner.first_name.clone(),
        /// The family name
        last_name: Option<String> = partner.last_name.clone(),
        /// The company
        company: Option<String> = partner.company.clone(),
        /// The website
        website: Option<String> = partner.website.clone(),
        /// Two letters (ISO 3166-1)
        country: Option<String> = partner.country.clone(),
        /// The status
        status: PartnerStatus = partner.status,
        /// The source
        source: PartnerSource = partner.source,
        /// The campaign (`cmp_…`)
        campaign_id: CampaignId = partner.campaign,
        /// The partner that recruited this one (`aff_…`)
        parent_affiliate_id: Option<PartnerId> = partner.parent,
        /// Tags for the owner's use
        #[schema(maxItems = TAGS_MAX)]
        tags: Vec<String> = partner.tags.clone(),
        /// The payout method
        payout_method: Option<PayoutMethod> = partner.payout.as_ref().map(|payout| payout.method),
        /// Whether a payout destination with an allowed method is set
        payout_ready: bool = partner.is_payout_ready(&program.settings.allowed_methods),
        /// When the partner was first approved
        approved_at: Option<ApiTimestamp> = partner.approved_at.map(ApiTimestamp),
        /// All links of the partner; in a list, only the primary link
        #[schema(maxItems = 2 * LINKS_MAX)]
        links: Vec<LinkObject> = links.iter().map(|link| LinkObject::of(link, partner, program)).collect(),
        /// When it was created
        created_at: ApiTimestamp = ApiTimestamp(partner.created_at),
        /// When it was last changed
        updated_at: ApiTimestamp = ApiTimestamp(partner.updated_at),
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

api_object! {
    /// A rate that applies from a number of paying customers; `commission_type` selects one of the two rates
    TierObject from(tier: &RateTier; let rate = RateFields::of(Some(tier.rate), tier.unused)) {
        /// Number of paying customers, including the current one
        #[schema(minimum = 1, maximum = u32::MAX)]
        min_paid_customers: u32 = tier.min_paid_customers,
        /// The percentage in basis points
        #[schema(maximum = BasisPoints::ALL.get())]
        commission_bps: u16 = rate.commission_bps,
        /// The amount in minor units
        #[schema(minimum = 0, maximum = CENTS_MAX)]
        commission_flat_cents: i64 = rate.commission_flat_cents,
    }
}

api_object! {
    /// The rate of a product or of one of its prices
    ProductRateObject from(product: &ProductRate; let rate = RateFields::of(product.rate, product.unused)) {
        /// The payment processor's product id
        product_id: String = product.product.clone(),
        /// The payment processor's price id
        price_id: Option<String> = product.price.clone(),
        /// The rate that applies; `none` earns nothing
        #[schema(enum = ["percent", "flat", "none"])]
        commission_type: &'static str = rate.commission_type,
        /// The percentage in basis points
        #[schema(maximum = BasisPoints::ALL.get())]
        commission_bps: u16 = rate.commission_bps,
        /// The amount in minor units
        #[schema(minimum = 0, maximum = CENTS_MAX)]
        commission_flat_cents: i64 = rate.commission_flat_cents,
        /// A label for your own use
        label: Option<String> = product.label.clone(),
    }
}

api_object! {
    /// The commission terms of partners
    #[schema(name = "AffiliateCampaign")]
    CampaignObject of(
        campaign: &Campaign,
        program: &AffiliateProgram,
        partners: Option<usize>;
        let rate = RateFields::of(Some(campaign.terms.base), campaign.terms.unused);
        let (duration, months) = duration_fields(campaign.terms.duration)
    ) {
        /// The object type
        #[schema(const = "affiliate_campaign")]
        object: &'static str = "affiliate_campaign",
        /// The campaign's id (`cmp_…`)
        id: CampaignId = campaign.id,
        /// The unique name of the campaign
        name: String = campaign.name.clone(),
        /// Whether this is the default campaign
        is_default: bool = program.default_campaign == Some(campaign.id),
        /// The people who can see the campaign
        visibility: Visibility = campaign.visibility,
        /// Whether applications are approved automatically
        auto_approve: bool = campaign.auto_approve,
        /// The rate that applies
        #[schema(enum = ["percent", "flat"])]
        commission_type: &'static str = rate.commission_type,
        /// The percentage of a sale in basis points
        #[schema(maximum = BasisPoints::ALL.get())]
        commission_bps: u16 = rate.commission_bps,
        /// The amount per sale, in minor units of the program's currency
        #[schema(minimum = 0, maximum = CENTS_MAX)]
        commission_flat_cents: i64 = rate.commission_flat_cents,
        /// Whether the first sale or all sales earn a commission
        #[schema(enum = ["once", "recurring"])]
        commission_duration: &'static str = duration,
        /// For how many months sales earn a commission; null is unlimited
        #[schema(minimum = 1, maximum = u16::MAX)]
        recurring_months: Option<u16> = months,
        /// Maximum commission per sale
        #[schema(minimum = 0, maximum = CENTS_MAX)]
        max_commission_cents: Option<i64> = campaign.terms.max_commission,
        /// Rates by number of paying customers
        tiers: Vec<TierObject> = campaign.terms.tiers.iter().map(TierObject::from).collect(),
        /// Rates of products and prices
        product_rates: Vec<ProductRateObject> = campaign.terms.products.iter().map(ProductRateObject::from).collect(),
        /// The recruiting partner's percentage of the same sale in basis points
        #[schema(maximum = BasisPoints::ALL.get())]
        second_tier_bps: u16 = campaign.terms.second_tier.get(),
        /// The amount per lead in minor units
        #[schema(minimum = 0, maximum = CENTS_MAX)]
        lead_bounty_cents: i64 = campaign.terms.lead_bounty,
        /// For how many days a visit is credited to the partner
        #[schema(minimum = 1, maximum = 365)]
        cookie_days: u16 = campaign.terms.cookie_days,
        /// For how many days a commission is held for refunds
        #[schema(maximum = 365)]
        hold_days: u16 = campaign.terms.hold_days,
        /// When the campaign was archived and stopped accepting partners
        archived_at: Option<ApiTimestamp> = campaign.archived_at.map(ApiTimestamp),
        /// When it was created
        created_at: ApiTimestamp = ApiTimestamp(campaign.created_at),
        /// When it was last changed
        updated_at: ApiTimestamp = ApiTimestamp(campaign.updated_at),
        /// Number of partners; only in lists
        #[serde(skip_serializing_if = "Option::is_none")]
        affiliate_count: Option<usize> = partners,
    }
}

/// Returns the shown type of a duration and its months.
fn duration_fields(duration: CommissionDuration) -> (&'static str, Option<u16>) {
    match duration {
        CommissionDuration::Once => ("once", None),
        CommissionDuration::Recurring(months) => ("recurring", months),
    }
}

api_object! {
    /// A person referred by a partner
    #[schema(name = "AffiliateReferral")]
    ReferralObject from(referral: &Referral) {
        /// The object type
        #[schema(const = "affiliate_referral")]
        object: &'static str = "affiliate_referral",
        /// The referral's id (`ref_…`)
        id: ReferralId = referral.id,
        /// The partner (`aff_…`)
        affiliate_id: PartnerId = referral.partner,
        /// The status
        status: ReferralStatus = referral.status,
        /// The source
        source: ReferralSource = referral.source,
        /// The person's email address
        email: Option<String> = referral.email.as_ref().map(ToString::to_string),
        /// The payment processor's customer id
        processor_customer_id: Option<String> = referral.customer.clone(),
        /// The partner's own tag
        sub_id: Option<String> = referral.sub_id.clone(),
        /// Why the referral earns no commission
        blocked_reason: Option<ReferralBlock> = referral.blocked,
        /// Payments in `currency` minus refunds, without tax, in minor units
        revenue_cents: i64 = referral.revenue_cents,
        /// The currency of the first payment that postrider received
        currency: Option<Currency> = referral.currency,
        /// When the customer first paid
        converted_at: Option<ApiTimestamp> = referral.converted_at.map(ApiTimestamp),
        /// The customer must pay before this time to be credited to the partner
        expires_at: ApiTimestamp = ApiTimestamp(referral.expires_at),
        /// When it was created
        created_at: ApiTimestamp = ApiTimestamp(referral.created_at),
        /// When it was last changed
        updated_at: ApiTimestamp = ApiTimestamp(referral.updated_at),
    }
}

api_object! {
    /// A line of the ledger
    #[schema(name = "AffiliateCommission")]
    CommissionObject from(line: &Commission) {
        /// The object type
        #[schema(const = "affiliate_commission")]
        object: &'static str = "affiliate_commission",
        /// The commission's id (`com_…`)
        id: CommissionId = line.id,
        /// The partner (`aff_…`)
        affiliate_id: PartnerId = line.partner,
        /// The referral (`ref_…`)
        referral_id: ReferralId = line.referral,
        /// 1: earned by the referring partner; 2: earned by the partner that recruited it
        #[schema(minimum = 1, maximum = 2, examples = [1])]
        tier: u8 = line.level().number(),
        /// The status; `earned` while it is in a payout
        #[schema(enum = CommissionStatus::WORDS)]
        status: &'static str = line.status.word(),
        /// The amount in minor units
        #[schema(minimum = 1, maximum = i64::MAX)]
        amount_cents: i64 = line.amount,
        /// The sale amount that the commission is based on; 0 for a bounty
        sale_amount_cents: i64 = line.sale_amount(),
        /// The currency of `amount_cents`
        currency: Currency = line.currency,
        /// The reason for the commission
        description: String = line.description(),
        /// The payment processor's invoice id
        processor_invoice_id: Option<String> = line.sold_invoice().map(|sale| sale.invoice.clone()),
        /// The payment processor's charge id
        processor_charge_id: Option<String> = line.sold_invoice().and_then(|sale| sale.charge.clone()),
        /// When the hold period ends
        earns_at: ApiTimestamp = ApiTimestamp(line.earns_at),
        /// When the commission was earned
        earned_at: Option<ApiTimestamp> = line.status.earned_at().map(ApiTimestamp),
        /// When it was paid out
        paid_at: Option<ApiTimestamp> = line.status.paid_at().map(ApiTimestamp),
        /// When it was reversed
        reversed_at: Option<ApiTimestamp> = line.status.reversed().map(|(at, _)| ApiTimestamp(at)),
        /// Why it was reversed
        reverse_reason: Option<ReversalReason> = line.status.reversed().map(|(_, reason)| reason),
        /// The payout (`pay_…`)
        payout_id: Option<PayoutId> = line.status.payout(),
        /// When it was created
        created_at: ApiTimestamp = ApiTimestamp(line.created_at),
        /// When it was last changed
        updated_at: ApiTimestamp = ApiTimestamp(line.updated_at),
    }
}

api_object! {
    /// A payout to one partner in one currency
    #[schema(name = "AffiliatePayout")]
    PayoutObject from(view: &PayoutView) {
        /// The object type
        #[schema(const = "affiliate_payout")]
        object: &'static str = "affiliate_payout",
        /// The payout's id (`pay_…`)
        id: PayoutId = view.payout.id,
        /// The partner (`aff_…`)
        affiliate_id: PartnerId = view.payout.partner,
        /// The payout run (`prn_…`)
        run_id: PayoutRunId = view.payout.run,
        /// The amount in minor units
        #[schema(minimum = 0)]
        amount_cents: i64 = view.payout.amount,
        /// The currency
        currency: Currency = view.payout.currency,
        /// The payout method
        method: PayoutMethod = view.payout.method,
        /// The status
        status: PayoutStatus = view.status,
        /// The payment processor's transfer id
        processor_transfer_id: Option<String> = view.payout.transfer.clone(),
        /// Reference of the payment, as proof
        external_reference: Option<String> = view.payout.reference.clone(),
        /// Why the payout failed; while it is `processing`, why the transfer has not been made yet
        failure_reason: Option<String> = view.payout.failure_or_obstacle().map(str::to_owned),
        /// When it was paid
        paid_at: Option<ApiTimestamp> = view.payout.paid_at.map(ApiTimestamp),
        /// When it was drafted
        created_at: ApiTimestamp = ApiTimestamp(view.payout.created_at),
        /// When it was last changed
        updated_at: ApiTimestamp = ApiTimestamp(view.updated_at()),
    }
}

api_object! {
    /// A payout to one partner in one currency, with its destination
    #[schema(name = "AffiliatePayoutOfRun")]
    DraftPayoutObject from(view: &PayoutView) {
        #[serde(flatten)]
        payout: PayoutObject = view.into(),
        /// The payout destination
        destination: String = view.payout.destination.clone(),
    }
}

api_object! {
    /// A set of payouts that are approved together
    #[schema(name = "AffiliatePayoutRun")]
    PayoutRunObject from(run: &PayoutRun) {
        /// The object type
        #[schema(const = "affiliate_payout_run")]
        object: &'static str = "affiliate_payout_run",
        /// The payout run's id (`prn_…`)
        id: PayoutRunId = run.id,
        /// The status
        status: PayoutRunStatus = run.status,
        /// Whether some payouts of the run failed
        partial: bool = run.is_partial,
        /// Version number; increases with each change
        rev: u64 = run.rev,
        /// The run includes commissions earned until this time
        cutoff: ApiTimestamp = ApiTimestamp(run.cutoff),
        /// The sum of the payouts by currency
        #[schema(examples = [{"usd": 5000}])]
        totals: BTreeMap<Currency, i64> = run.totals.clone(),
        /// Number of payouts
        payouts_count: u32 = run.payouts,
        /// Whether charges are still being compared with the payment processor, which blocks the approval
        comparing: bool = !run.is_reconciled(),
        /// Commissions whose charges could not be compared because the payment processor did not respond
        uncompared_count: u32 = run.uncompared,
        /// When it was drafted
        created_at: ApiTimestamp = ApiTimestamp(run.created_at),
        /// When it was approved
        approved_at: Option<ApiTimestamp> = run.approved_at.map(ApiTimestamp),
        /// When its last payout was settled
        completed_at: Option<ApiTimestamp> = run.completed_at.map(ApiTimestamp),
    }
}

api_object! {
    /// A partner that is skipped in a run
    #[schema(name = "SkippedAffiliate")]
    SkippedPartnerObject from(skipped: &SkippedPartner) {
        /// The partner (`aff_…`)
        affiliate_id: PartnerId = skipped.partner,
        /// The currency
        currency: Currency = skipped.currency,
        /// The amount that is not paid, in minor units
        #[schema(minimum = 0)]
        amount_cents: i64 = skipped.amount,
        /// Why
        reason: SkipReason = skipped.reason,
    }
}
