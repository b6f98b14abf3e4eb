//! Affiliate program: the settings and the payment processor of an account's program. An account has at most one, which
//! its owner enables before any API call works.

use std::collections::BTreeMap;

use jiff::Timestamp;
use message::address::{Address, DomainName};
use message::words;
use serde::{Deserialize, Serialize};

use super::money::Currency;
use crate::domain::SealedSecret;
use crate::id::{AccountId, CampaignId, ProgramId};

/// Maximum number of webhook signing secrets: two during a rotation.
pub const WEBHOOK_SECRETS_MAX: usize = 2;
/// Upper bound of the thresholds at which a partner's referrals or bounties are held for review.
pub const REVIEW_THRESHOLD_MAX: i64 = 1_000_000;

words! {
    ProgramStatus {
        /// Steps are missing, or the program was not started yet.
        Setup = "setup",
        /// Accepts visits and referrals.
        Live = "live",
        /// Accepts no visits and no new referrals. Existing customers still earn commissions.
        Paused = "paused",
    }
}

words! {
    /// Mode of the payment processor.
    ProcessorMode {
        /// Test mode: no real money.
        Test = "test",
        /// Live mode: real money.
        Live = "live",
    }
}

words! {
    /// The partner who gets a visitor with clicks on links of several partners.
    Attribution {
        /// The partner of the first click.
        FirstClick = "first_click",
        /// The partner of the last click.
        LastClick = "last_click",
    }
}

words! {
    /// The effect of a refund on a commission that is already paid out.
    AfterPayout {
        /// None: the loss is the program's.
        Absorb = "absorb",
        /// The amount is deducted from the partner's next payout.
        Offset = "offset",
    }
}

words! {
    PayoutMethod {
        /// PayPal, to an email address.
        Paypal = "paypal",
        /// Wise, to an email address.
        Wise = "wise",
        Bank = "bank",
        /// Another method.
        Other = "other",
        /// Transfer by the payment processor.
        Stripe = "stripe",
    }
}

impl PayoutMethod {
    /// True if a person pays and records the payment. Transfers by the payment processor are settled automatically.
    pub const fn is_manual(self) -> bool {
        !matches!(self, Self::Stripe)
    }
}

words! {
    /// A step that is missing before a program can go live.
    MissingStep {
        Processor = "processor",
        Campaign = "campaign",
    }
}

/// Settings that the owner can change.
#[message::row::omit_none]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProgramSettings {
    /// The customer's website, which referral links lead to.
    pub website_url: String,
    /// The currency of flat amounts, bounties and caps.
    pub currency: Currency,
    pub mode: ProcessorMode,
    pub attribution: Attribution,
    /// If true, customers who paid before they were referred earn no commission.
    pub new_customers_only: bool,
    /// The metadata key at the payment processor that names a referral.
    pub metadata_key: String,
    /// The metadata key at the payment processor that excludes an object from commissions if its value is `false`.
    pub exclude_key: String,
    /// Minimum payout per currency, in minor units.
    pub min_payout: BTreeMap<Currency, i64>,
    /// Payout methods that partners can choose.
    pub allowed_methods: Vec<PayoutMethod>,
    /// The effect of a refund after the commission was paid out.
    pub payout_after_refund: AfterPayout,
    /// True if a paid checkout without an invoice earns commissions.
    pub count_invoiceless_payments: bool,
    /// True if partners see the email addresses of people they referred.
    pub share_customer_email: bool,
    /// True if suspended partners still earn commissions from existing customers.
    pub suspended_accrue: bool,
    /// Web origins whose pages can report visits; empty allows the website's origin.
    pub allowed_origins: Vec<String>,
    /// Hosts that must not link to the program. Referrals from there are held for review.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub banned_referrers: Vec<DomainName>,
    /// The partner portal's own host name, if it has one.
    pub portal_domain: Option<DomainName>,
    pub terms_url: Option<String>,
    /// Sender of partner emails; the sandbox sender if `None`.
    pub mail_from: Option<Address>,
    /// A partner's new referrals per hour above this number are held for review.
    pub velocity_per_hour: u32,
    /// A partner's bounties per day above this number are held for review.
    pub max_bounties_per_day: u32,
}

impl ProgramSettings {
    /// Default settings.
    pub fn new(website_url: String, currency: Currency, mode: ProcessorMode) -> Self {
        Self {
            website_url,
            currency,
            mode,
            attribution: Attribution::FirstClick,
            new_customers_only: true,
            metadata_key: "stx_referral".to_owned(),
            exclude_key: "stx".to_owned(),
            min_payout: BTreeMap::new(),
            allowed_methods: PayoutMethod::ALL.to_vec(),
            payout_after_refund: AfterPayout::Absorb,
            count_invoiceless_payments: false,
            share_customer_email: false,
            suspended_accrue: true,
            allowed_origins: Vec::new(),
            banned_referrers: Vec::new(),
            portal_domain: None,
            terms_url: None,
            mail_from: None,
            velocity_per_hour: 50,
            max_bounties_per_day: 50,
        }
    }
}

/// The connected payment processor.
#[message::row::omit_none]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PaymentProcessor {
    /// Base URL of its API.
    pub api_base: String,
    /// The API key. Without a key, only webhook events are received.
    pub restricted_key: Option<SealedSecret>,
    /// One or two signing secrets of its webhook events.
    pub webhook_secrets: Vec<SealedSecret>,
    /// The account id at the processor. Events of other accounts are ignored.
    pub account_id: Option<String>,
    /// True for real money, as the processor's API reports.
    pub livemode: Option<bool>,
}

impl PaymentProcessor {
    /// True if the processor's API can be called.
    pub fn has_api_access(&self) -> bool {
        self.restricted_key.is_some()
    }
}

/// An account's affiliate program.
#[message::row::omit_none]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AffiliateProgram {
    pub id: ProgramId,
    pub account: AccountId,
    pub status: ProgramStatus,
    pub settings: ProgramSettings,
    /// The campaign that partners join if they name none.
    pub default_campaign: Option<CampaignId>,
    /// The public key in the website's pages; not a secret.
    pub publishable_key: String,
    /// `None` until a processor is connected.
    pub processor: Option<PaymentProcessor>,
    /// Revision, incremented by every change.
    pub rev: u64,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
}

impl AffiliateProgram {
    /// The steps that are missing before the program can go live. The public API does not show programs with missing
    /// steps.
    pub fn missing_steps(&self) -> Vec<MissingStep> {
        let mut missing = Vec::new();
        if self.processor.is_none() {
            missing.push(MissingStep::Processor);
        }
        if self.default_campaign.is_none() {
            missing.push(MissingStep::Campaign);
        }
        missing
    }
}
