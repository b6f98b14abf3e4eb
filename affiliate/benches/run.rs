//! Benchmark of drafting, approving and cancelling a very large run on disk.
//!
//! `cargo bench -p affiliate --bench run` drafts 100,000 partners; `PARTNERS=1000` drafts fewer. It prints seconds,
//! partners per second and peak memory, which must not grow with the run. Target: 30 seconds for the draft.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a benchmark fails by panicking, and prints its results")]

use affiliate::context::no_extension;
use std::sync::Arc;
use std::time::Instant;

use affiliate::audit::audit;
use affiliate::context::Context;
use model::affiliate::campaign::{Campaign, CommissionDuration as Months, CommissionRate, CommissionTerms, Visibility};
use model::affiliate::commission::{
    Commission, CommissionOrigin, CommissionState, FreezeReasons, ReconciliationState, TermsSnapshot,
};
use model::affiliate::money::BasisPoints;
use model::affiliate::partner::{
    Partner, PartnerLink, PartnerLinkToken, PartnerSource, PartnerStatus, PayoutDestination,
};
use model::affiliate::program::{
    AffiliateProgram, PaymentProcessor, PayoutMethod, ProcessorMode, ProgramSettings, ProgramStatus,
};
use model::affiliate::referral::{Referral, ReferralActivity, ReferralSource, ReferralStatus};
use model::domain::SealedSecret;
use model::id::{AccountId, CampaignId, CommissionId, PartnerId, PartnerLinkId, ProgramId, ReferralId};
use net::clock::Clock;
use net::entropy::Entropy;
use queue::services::Services;
use store::affiliate::{campaign, commission, partner, partner_link, program, referral};
use store::engine::{Batch, RedbOptions, Store};

/// Partners per commit.
const AT_ONCE: usize = 500;

fn terms() -> CommissionTerms {
    CommissionTerms {
        base: CommissionRate::Percent(BasisPoints::try_from(2_000).unwrap()),
        unused: 0,
        tiers: Vec::new(),
        products: Vec::new(),
        duration: Months::Recurring(None),
        max_commission: None,
        second_tier: BasisPoints::default(),
        lead_bounty: 500,
        cookie_days: 30,
        hold_days: 0,
    }
}

async fn program(ledger: &Context, account: AccountId, plan: CampaignId, now: jiff::Timestamp) {
    let entropy = Entropy::default();
    let mut batch = Batch::intake();
    let settings = ProgramSettings::new("https://shop.example".to_owned(), "usd".parse().unwrap(), ProcessorMode::Live);
    let processor = PaymentProcessor {
        api_base: "https://api.stripe.example".to_owned(),
        restricted_key: None,
        webhook_secrets: vec![SealedSecret(String::new())],
        account_id: None,
        livemode: None,
    };
    let program = AffiliateProgram {
        id: ProgramId::new(now, entropy.u128()),
        account,
        status: ProgramStatus::Live,
        settings,
        default_campaign: Some(plan),
        publishable_key: "pk_bench".to_owned(),
        processor: Some(processor),
        rev: 1,
        created_at: now,
        updated_at: now,
    };
    program::create(&mut batch, &program);
    let campaign = Campaign {
        id: plan,
        account,
        name: "Plan".to_owned(),
        visibility: Visibility::Public,
        auto_approve: true,
        terms: terms(),
        archived_at: None,
        rev: 1,
        created_at: now,
        updated_at: now,
    };
    campaign::create(&mut batch, &campaign);
    ledger.store().commit(batch).await.unwrap();
}

/// Writes a partner with one lead and its earned bounty.
async fn partner_of(
    ledger: &Context,
    batch: &mut Batch,
    account: AccountId,
    plan: CampaignId,
    now: jiff::Timestamp,
    number: usize,
) {
    let entropy = Entropy::default();
    let (id, link) = (PartnerId::new(now, entropy.u128()), PartnerLinkId::new(now, entropy.u128()));
    let email = format!("partner{number}@partners.example");
    let partner = Partner {
        id,
        account,
        email: email.parse().unwrap(),
        first_name: Some("Ada".to_owned()),
        last_name: Some(format!("No. {number}")),
        company: None,
        website: None,
        country: Some("DE".to_owned()),
        status: PartnerStatus::Active,
        source: PartnerSource::Import,
        campaign: plan,
        parent: None,
        tags: Vec::new(),
        payout: Some(PayoutDestination { method: PayoutMethod::Paypal, destination: email, is_able: true }),
        payouts_failed: 0,
        notes: None,
        postback_url: None,
        postback_secret: SealedSecret("x".repeat(80)),
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
    partner::create(batch, &partner);
    let token = PartnerLinkToken::parse(&format!("p{number:06}")).unwrap();
    let free = partner_link::find_free_token(ledger.store(), account, &token, now).await.unwrap().unwrap();
    let link =
        PartnerLink { id: link, account, partner: id, token, destination_url: None, label: None, created_at: now };
    partner_link::create(batch, &link, free);
    let lead = lead(&partner, ReferralId::new(now, entropy.u128()));
    referral::create(batch, &lead, None);
    commission::create(batch, &bounty(&lead, plan, CommissionId::new(now, entropy.u128())));
}

fn lead(partner: &Partner, id: ReferralId) -> Referral {
    let (account, now) = (partner.account, partner.created_at);
    Referral {
        id,
        account,
        partner: partner.id,
        status: ReferralStatus::Lead,
        source: ReferralSource::Api,
        email: None,
        customer: None,
        later_customers: Vec::new(),
        sub_id: None,
        link: None,
        visit: None,
        blocked: None,
        rejection: None,
        review: None,
        dealings: ReferralActivity::default(),
        revenue_cents: 0,
        currency: None,
        claimed_at: now,
        converted_at: None,
        expires_at: now,
        rev: 1,
        created_at: now,
        updated_at: now,
    }
}

fn bounty(lead: &Referral, plan: CampaignId, id: CommissionId) -> Commission {
    let now = lead.created_at;
    Commission {
        id,
        account: lead.account,
        partner: lead.partner,
        referral: lead.id,
        origin: CommissionOrigin::Bounty,
        amount: 500,
        currency: "usd".parse().unwrap(),
        status: CommissionState::Earned { earned_at: now, frozen: FreezeReasons::default() },
        earns_at: now,
        comparison: ReconciliationState::Needless,
        snapshot: TermsSnapshot { campaign: plan, campaign_rev: 1, hold_days: 0 },
        waived: Vec::new(),
        note: None,
        created_at: now,
        updated_at: now,
        rev: 1,
    }
}

/// Peak memory of the process in MB.
fn memory_mb() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap_or_default();
    line.split_whitespace().nth(1).and_then(|kb| kb.parse::<u64>().ok()).unwrap_or(0) / 1024
}

#[expect(clippy::disallowed_methods, reason = "a benchmark measures the machine's time")]
fn start() -> Instant {
    Instant::now()
}

fn report(step: &str, partners: usize, started: Instant) {
    let seconds = started.elapsed().as_secs_f64();
    #[expect(clippy::cast_precision_loss, reason = "an approximate figure for display")]
    let rate = partners as f64 / seconds;
    println!("{step}: {seconds:.2} s, {rate:.0} partners/s, peak memory {} MB", memory_mb());
}

async fn measure(partners: usize) {
    let directory = tempfile::tempdir().unwrap();
    let store = Store::open(&RedbOptions::new(directory.path().join("store"))).unwrap();
    let (clock, entropy) = (Clock::default(), Entropy::default());
    let now = clock.now();
    let (account, plan) = (AccountId::new(now, entropy.u128()), CampaignId::new(now, entropy.u128()));
    let ledger = Context::new(&Services::new(store, clock, entropy), Arc::new(|| {}));
    program(&ledger, account, plan, now).await;
    let started = start();
    for chunk in (0..partners).collect::<Vec<_>>().chunks(AT_ONCE) {
        let mut batch = Batch::intake();
        for number in chunk {
            partner_of(&ledger, &mut batch, account, plan, now, *number).await;
        }
        ledger.store().commit(batch).await.unwrap();
    }
    report("made", partners, started);
    let started = start();
    let run = ledger.begin_run(account, None, &no_extension).await.unwrap();
    let run = ledger.finish_draft(account, run).await.unwrap().run.unwrap();
    report("drafted", partners, started);
    assert_eq!(usize::try_from(run.payouts), Ok(partners));
    let started = start();
    ledger.cancel_run(account, run.id, None, &no_extension).await.unwrap();
    report("cancelled", partners, started);
    let run = ledger.begin_run(account, None, &no_extension).await.unwrap();
    let run = ledger.finish_draft(account, run).await.unwrap().run.unwrap();
    let started = start();
    ledger.approve_run(account, run.id, run.rev, &run.totals, &no_extension).await.unwrap();
    report("approved", partners, started);
    if partners <= 10_000 {
        assert!(audit(&ledger, account).await.unwrap().ok);
    }
    ledger.store().close().await;
}

fn main() {
    let partners = std::env::var("PARTNERS").ok().and_then(|text| text.parse().ok()).unwrap_or(100_000);
    tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap().block_on(measure(partners));
}
