//! Test world: a live program with two partners, and events of its processor.

use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use affiliate::audit::audit;
use affiliate::context::{Context, no_extension};
use affiliate::ledger::ingest::{FactIngest, IngestOutcome};
use affiliate::referrals::{PartnerSelector, ReferralDraft};
use jiff::{SignedDuration, Timestamp};
use model::affiliate::campaign::{Campaign, CommissionDuration as Months, CommissionRate, CommissionTerms, Visibility};
use model::affiliate::commission::Commission;
use model::affiliate::money::BasisPoints;
use model::affiliate::partner::{Partner, PartnerLink, PartnerLinkToken, PartnerSource, PartnerStatus};
use model::affiliate::program::{AffiliateProgram, PaymentProcessor, ProcessorMode, ProgramSettings, ProgramStatus};
use model::affiliate::referral::Referral;
use model::domain::SealedSecret;
use model::event::Subject;
use model::id::{AccountId, CampaignId, PartnerId, PartnerLinkId, ProgramId, ReferralId};
use net::clock::Clock;
use net::entropy::Entropy;
use queue::services::Services;
use serde_json::Value;
use store::affiliate::listing::ListPageRequest;
use store::affiliate::{campaign, commission, partner, partner_link, program, referral};
use store::engine::{Batch, PostgresOptions, Store};
use store::task::PARTITIONS;

use super::processor_objects;

thread_local! {
    /// Creates a new database per test; set while the tests of this thread run on PostgreSQL.
    pub(crate) static DATABASES: RefCell<Option<Box<dyn Fn() -> PostgresOptions>>> = const { RefCell::new(None) };
}

/// Returns a store in a new database, if the thread runs on PostgreSQL.
pub(crate) async fn connected() -> Option<Store> {
    let database = DATABASES.with_borrow(|connect| connect.as_ref().map(|connect| connect()))?;
    Some(Store::connect(&database).await.unwrap())
}

/// Returns a new store, in memory or in a new database.
pub(crate) async fn fresh() -> Store {
    connected().await.unwrap_or_else(Store::memory)
}

pub(crate) const SECRET: &str = "whsec_test";

pub(crate) struct World {
    pub(crate) ledger: Context,
    pub(crate) clock: Clock,
    pub(crate) account: AccountId,
    /// The partner who sells, and its recruiter Bob.
    pub(crate) ada: PartnerId,
    pub(crate) bob: PartnerId,
    /// Unix time of the world's start.
    pub(crate) start: i64,
    events: AtomicU32,
}

pub(crate) fn points(points: u16) -> BasisPoints {
    BasisPoints::try_from(points).unwrap()
}

pub(crate) fn terms() -> CommissionTerms {
    CommissionTerms {
        base: CommissionRate::Percent(points(2_000)),
        unused: 0,
        tiers: Vec::new(),
        products: Vec::new(),
        duration: Months::Recurring(None),
        max_commission: None,
        second_tier: points(500),
        lead_bounty: 0,
        cookie_days: 30,
        hold_days: 30,
    }
}

impl World {
    /// 20 % for Ada, 5 % for her recruiter, 30 days of hold.
    pub(crate) async fn new() -> Self {
        Self::with_settings(fresh().await, terms(), |_| {}).await
    }

    pub(crate) async fn with_settings(store: Store, terms: CommissionTerms, set: fn(&mut ProgramSettings)) -> Self {
        let (clock, entropy) = (Clock::default(), Entropy::default());
        let now = clock.now();
        let account = AccountId::new(now, entropy.u128());
        let plan = CampaignId::new(now, entropy.u128());
        let mut settings =
            ProgramSettings::new("https://shop.example".to_owned(), "usd".parse().unwrap(), ProcessorMode::Live);
        set(&mut settings);
        let program = AffiliateProgram {
            id: ProgramId::new(now, entropy.u128()),
            account,
            status: ProgramStatus::Live,
            settings,
            default_campaign: Some(plan),
            publishable_key: format!("pk_{:032x}", entropy.u128()),
            processor: Some(PaymentProcessor {
                api_base: "https://api.stripe.example".to_owned(),
                restricted_key: None,
                webhook_secrets: vec![SealedSecret(String::new())],
                account_id: Some("acct_own".to_owned()),
                livemode: Some(true),
            }),
            rev: 1,
            created_at: now,
            updated_at: now,
        };
        let mut batch = Batch::intake();
        program::create(&mut batch, &program);
        let campaign = Campaign {
            id: plan,
            account,
            name: "Plan".to_owned(),
            visibility: Visibility::Public,
            auto_approve: true,
            terms,
            archived_at: None,
            rev: 1,
            created_at: now,
            updated_at: now,
        };
        campaign::create(&mut batch, &campaign);
        store.commit(batch).await.unwrap();
        let ledger = Context::new(&Services::new(store, clock.clone(), entropy), Arc::new(|| {}));
        let bob = partner_named(&ledger, &campaign, "bob", None).await;
        let ada = partner_named(&ledger, &campaign, "ada", Some(bob)).await;
        let start = now.as_second();
        Self { ledger, clock, account, ada, bob, start, events: AtomicU32::default() }
    }

    pub(crate) fn store(&self) -> &Store {
        self.ledger.store()
    }

    /// Returns the ledger of another node on the same store.
    pub(crate) fn other_node(&self) -> Context {
        let services = Services::new(self.store().clone(), self.clock.clone(), Entropy::default());
        Context::new(&services, Arc::new(|| {}))
    }

    /// Creates a lead of Ada's.
    pub(crate) async fn lead(&self, email: &str, customer: Option<&str>) -> Referral {
        let draft = ReferralDraft {
            partner: PartnerSelector::Id(self.ada),
            email: email.parse().unwrap(),
            customer: customer.map(str::to_owned),
            sub_id: None,
        };
        self.ledger.refer(self.account, &draft, &no_extension).await.unwrap().referral
    }

    /// Returns an event with a unique id, created `after` seconds after the start.
    pub(crate) fn event(&self, kind: &str, after: i64, object: Value) -> Value {
        let id = format!("evt_{}", self.events.fetch_add(1, Ordering::Relaxed));
        processor_objects::event(&id, kind, self.start + after, object)
    }

    /// Returns the event of a paid invoice.
    pub(crate) fn paid(&self, id: &str, customer: &str, amount: i64, after: i64) -> Value {
        self.event("invoice.paid", after, processor_objects::invoice(id, customer, amount, self.start + after))
    }

    /// Ingests without enrichment.
    pub(crate) fn ingest(&self) -> FactIngest {
        FactIngest::new(&self.ledger, None)
    }

    pub(crate) async fn try_ingest(&self, event: &Value) -> IngestOutcome {
        self.ingest().ingest(self.account, event.to_string().as_bytes()).await
    }

    /// Ingests an event that must have an effect.
    pub(crate) async fn ingest_event(&self, event: &Value) {
        let answer = self.try_ingest(event).await;
        assert!(matches!(answer, IngestOutcome::Done), "{event}: {answer:?}");
    }

    /// Ingests an event created `after` seconds after the start.
    pub(crate) async fn ingest_object(&self, kind: &str, after: i64, object: Value) {
        self.ingest_event(&self.event(kind, after, object)).await;
    }

    pub(crate) async fn referral(&self, id: ReferralId) -> Referral {
        referral::get(self.store(), self.account, id).await.unwrap().unwrap()
    }

    pub(crate) async fn lines(&self) -> Vec<Commission> {
        let wanted = ListPageRequest { before: None, limit: 1_000, from: None };
        let filter = commission::CommissionFilter::default();
        commission::list(self.store(), self.account, &filter, wanted).await.unwrap().rows
    }

    /// Describes each line, sorted: invoice, tier, amount, remaining sale, status and reason.
    pub(crate) async fn outline(&self) -> Vec<String> {
        let mut outline: Vec<String> = self.lines().await.iter().map(|line| self.words(line)).collect();
        outline.sort();
        outline
    }

    fn words(&self, line: &Commission) -> String {
        let invoice = line.sold_invoice().map_or("bounty", |sale| sale.invoice.as_str());
        let reason = line.status.reversed().map_or("", |(_, reason)| reason.word());
        let ice = if line.status.frozen().is_frozen() { "frozen" } else { "" };
        let text = format!(
            "{invoice}/{} {} of {} {} {reason}{ice}",
            line.level().number(),
            line.amount,
            line.sale_amount(),
            line.status.word(),
        );
        text.trim_end().to_owned()
    }

    /// Returns the event types of an object, sorted: two commits may have the same millisecond.
    pub(crate) async fn event_kinds(&self, subject: impl Into<Subject>) -> Vec<&'static str> {
        let events = store::event::list(self.store(), self.account, subject, 100).await.unwrap();
        let mut kinds: Vec<_> = events.iter().map(|event| event.kind.name()).collect();
        kinds.sort_unstable();
        kinds
    }

    pub(crate) async fn paying(&self, partner: PartnerId) -> u32 {
        store::affiliate::customer_counts::get(self.store(), self.account, partner).await.unwrap().paying
    }

    pub(crate) async fn audit(&self) {
        let audit = audit(&self.ledger, self.account).await.unwrap();
        assert!(audit.ok, "{:#?}", audit.broken);
        assert_eq!(audit.checked.partners, 2);
    }

    pub(crate) fn advance_days(&self, days: u64) {
        self.clock.advance(Duration::from_secs(days * 86_400));
    }

    /// Releases the holds that have ended.
    pub(crate) async fn end_holds(&self) -> usize {
        let released = self.ledger.release_holds(0..=PARTITIONS - 1, self.clock.now()).await.unwrap();
        assert_eq!(released.failed, 0);
        released.earned
    }

    pub(crate) fn second(&self, after: i64) -> Timestamp {
        Timestamp::from_second(self.start + after).unwrap()
    }
}

async fn partner_named(ledger: &Context, campaign: &Campaign, name: &str, parent: Option<PartnerId>) -> PartnerId {
    // Older than the event retention, so the audit expects no events.
    let now = campaign.created_at - SignedDuration::from_hours(24 * 100);
    let entropy = Entropy::default();
    let (id, link) = (PartnerId::new(now, entropy.u128()), PartnerLinkId::new(now, entropy.u128()));
    let partner = Partner {
        id,
        account: campaign.account,
        email: format!("{name}@partners.example").parse().unwrap(),
        first_name: None,
        last_name: None,
        company: None,
        website: None,
        country: None,
        status: PartnerStatus::Active,
        source: PartnerSource::Api,
        campaign: campaign.id,
        parent,
        tags: Vec::new(),
        payout: None,
        payouts_failed: 0,
        notes: None,
        postback_url: None,
        postback_secret: SealedSecret(String::new()),
        email_opt_out: false,
        commission_override: None,
        primary_link: link,
        was_paid: false,
        approved_at: Some(now),
        terms_accepted_at: None,
        rev: 1,
        created_at: now,
        updated_at: now,
    };
    let token = PartnerLinkToken::parse(name).unwrap();
    let free = partner_link::find_free_token(ledger.store(), campaign.account, &token, now).await.unwrap().unwrap();
    let link = PartnerLink {
        id: link,
        account: campaign.account,
        partner: id,
        token,
        destination_url: None,
        label: None,
        created_at: now,
    };
    let mut batch = Batch::intake();
    partner::create(&mut batch, &partner);
    partner_link::create(&mut batch, &link, free);
    ledger.store().commit(batch).await.unwrap();
    id
}
