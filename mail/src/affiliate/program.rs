//! An account's affiliate program: one at most, set up by its owner before the API does anything with it.

use std::collections::BTreeMap;

use jiff::Timestamp;

use super::money::Currency;
use super::word::words;
use crate::address::{Address, DomainName};
use crate::domain::SealedSecret;
use crate::id::{AccountId, CampaignId, ProgramId};

/// Secrets that the processor's signatures may be made with: two while one takes the other's place.
pub const WEBHOOK_SECRETS_MAX: usize = 2;

words! {
    /// Where a program stands.
    ProgramStatus {
        /// Steps are missing, or it was never made to go live.
        Setup = "setup",
        /// It takes visits and referrals.
        Live = "live",
        /// It takes no visits and no new referrals; customers whom it has go on counting.
        Paused = "paused",
    }
}

words! {
    /// Whose money it is about.
    ProcessorMode {
        /// The processor's test mode.
        Test = "test",
        /// Real money.
        Live = "live",
    }
}

words! {
    /// Whose a visitor is who came by two partners' links.
    Attribution {
        /// The first one's.
        FirstClick = "first_click",
        /// The last one's.
        LastClick = "last_click",
    }
}

words! {
    /// What a refund does after the commission was paid out.
    AfterPayout {
        /// Nothing: the loss is the program's.
        Absorb = "absorb",
        /// It is taken off the partner's next payout.
        Offset = "offset",
    }
}

words! {
    /// How partners are paid.
    PayoutMethod {
        /// By PayPal, to an email address.
        Paypal = "paypal",
        /// By Wise, to an email address.
        Wise = "wise",
        /// By bank transfer.
        Bank = "bank",
        /// In another way.
        Other = "other",
        /// By the processor's own transfers.
        Stripe = "stripe",
    }
}

impl PayoutMethod {
    /// Whether a person pays and says so; the processor's own transfers settle by themselves.
    #[must_use]
    pub const fn is_manual(self) -> bool {
        !matches!(self, Self::Stripe)
    }
}

words! {
    /// A step that is missing before a program can go live.
    MissingStep {
        /// No payment processor is connected.
        Processor = "processor",
        /// There is no default campaign.
        Campaign = "campaign",
    }
}

/// What the owner may set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProgramSettings {
    /// Where the customer's website is; links lead there.
    pub website_url: String,
    /// The currency of flat amounts, bounties and caps.
    pub currency: Currency,
    /// Whose money it is about.
    pub mode: ProcessorMode,
    /// Whose a visitor is.
    pub attribution: Attribution,
    /// Customers who paid before they were referred never earn.
    pub new_customers_only: bool,
    /// The key of the processor's metadata that names a referral.
    pub metadata_key: String,
    /// The key of the processor's metadata that excludes when it is `false`.
    pub exclude_key: String,
    /// The least that is paid out, by currency.
    pub min_payout: BTreeMap<Currency, i64>,
    /// Methods that partners may be paid by.
    pub allowed_methods: Vec<PayoutMethod>,
    /// What a refund does after the commission was paid out.
    pub payout_after_refund: AfterPayout,
    /// Whether a checkout that was paid without an invoice counts.
    pub count_invoiceless_payments: bool,
    /// Whether partners see the email addresses of those they brought.
    pub share_customer_email: bool,
    /// Whether suspended partners go on earning by customers whom they have brought.
    pub suspended_accrue: bool,
    /// Web origins whose pages may capture visits; empty means that of the website.
    pub allowed_origins: Vec<String>,
    /// Hosts whose links are not wanted: who comes from there is looked at.
    pub banned_referrers: Vec<DomainName>,
    /// The host of the partner portal, where it has one of its own.
    pub portal_domain: Option<DomainName>,
    /// Where the program's terms stand.
    pub terms_url: Option<String>,
    /// Who writes to partners; the sandbox's sender otherwise.
    pub mail_from: Option<Address>,
    /// New referrals of one partner in an hour before they are looked at.
    pub velocity_per_hour: u32,
    /// Bounties of one partner in a day before they are looked at.
    pub max_bounties_per_day: u32,
}

impl ProgramSettings {
    /// The defaults (completions-affiliate.md 2.1, affiliate-admin.md 2).
    #[must_use]
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

/// The payment processor that a program is connected to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PaymentProcessor {
    /// The address of its API.
    pub api_base: String,
    /// The key by which it is asked; without one it is only listened to.
    pub restricted_key: Option<SealedSecret>,
    /// The secrets that its events are signed with: one or two.
    pub webhook_secrets: Vec<SealedSecret>,
    /// The account there; events of another one are ignored.
    pub account_id: Option<String>,
    /// Whether its money is real, as it said when it was asked.
    pub livemode: Option<bool>,
}

impl PaymentProcessor {
    /// Whether it can be asked, and not only listened to.
    #[must_use]
    pub fn has_api_access(&self) -> bool {
        self.restricted_key.is_some()
    }
}

/// A program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AffiliateProgram {
    /// Its id.
    pub id: ProgramId,
    /// Whose it is.
    pub account: AccountId,
    /// Where it stands.
    pub status: ProgramStatus,
    /// What the owner has set.
    pub settings: ProgramSettings,
    /// The campaign that takes partners who name none.
    pub default_campaign: Option<CampaignId>,
    /// The key that pages of the website bring; no secret.
    pub publishable_key: String,
    /// The processor, once it is connected.
    pub processor: Option<PaymentProcessor>,
    /// Grows with each change.
    pub rev: u64,
    /// When it was enabled.
    pub created_at: Timestamp,
    /// When it was changed last.
    pub updated_at: Timestamp,
}

impl AffiliateProgram {
    /// What is missing before it can go live. The API knows no program that misses anything.
    #[must_use]
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
