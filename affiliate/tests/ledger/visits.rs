//! Visits: attribution, sign-ups, and fraud flags.

use affiliate::context::{Context, no_extension};
use affiliate::ledger::ingest::{FactIngest, IngestOutcome};
use affiliate::ledger::manual_actions::ReferralDecision;
use affiliate::visits::{CapturedVisit, VisitRequest, VisitSource};
use model::affiliate::partner::{PartnerLinkToken, PartnerStatus};
use model::affiliate::program::{Attribution, ProgramStatus};
use model::affiliate::referral::{FraudFlag, Referral, ReferralBlock, ReferralSource, ReferralStatus, ReviewStatus};
use model::id::{PartnerId, VisitId};
use model::metric::Hour;
use serde_json::{Value, json};
use store::affiliate::listing::ListPageRequest;
use store::affiliate::{click_count, partner, partner_link, program, referral, self_referral_guard};
use store::engine::{Batch, Store};
use store::task::PARTITIONS;

use super::processor_objects::{checkout, invoice, subscription};
use super::world::{World, terms};

const VISITOR: &str = "0123456789abcdef";
const PERSON: &str = "grace@example.net";

fn arrival(token: &str, visitor: Option<&str>) -> VisitRequest {
    VisitRequest {
        brought: VisitSource::Link(PartnerLinkToken::parse(token).unwrap()),
        visitor: visitor.map(str::to_owned),
        url: format!("https://shop.example/?via={token}"),
        referrer: "https://blog.example/".to_owned(),
        sub_id: None,
        from: Some("192.0.2.7".parse().unwrap()),
    }
}

impl World {
    async fn capture(&self, arrival: &VisitRequest) -> Option<CapturedVisit> {
        self.ledger.capture_visit(self.account, arrival).await.unwrap()
    }

    /// Records a visit of a visitor by the link with this token.
    pub(crate) async fn visit(&self, token: &str, visitor: &str) -> VisitId {
        self.capture(&arrival(token, Some(visitor))).await.unwrap().visit.id
    }

    pub(crate) async fn sign_up(&self, visit: VisitId, email: &str) -> bool {
        self.ledger.sign_up_visitor(self.account, visit, &email.parse().unwrap(), None).await.unwrap()
    }

    async fn all_referrals(&self) -> Vec<Referral> {
        let wanted = ListPageRequest { before: None, limit: 100, from: None };
        referral::list(self.store(), self.account, &referral::ReferralFilter::default(), wanted).await.unwrap().rows
    }

    async fn change_program(&self, change: impl FnOnce(&mut model::affiliate::program::AffiliateProgram)) {
        let before = program::get(self.store(), self.account).await.unwrap().unwrap();
        let mut after = before.clone();
        change(&mut after);
        let mut batch = Batch::progress();
        program::update(&mut batch, &before, &after);
        self.store().commit(batch).await.unwrap();
    }

    pub(crate) async fn change_partner(
        &self,
        id: PartnerId,
        change: impl FnOnce(&mut model::affiliate::partner::Partner),
    ) {
        let before = partner::get(self.store(), self.account, id).await.unwrap().unwrap();
        let mut after = before.clone();
        change(&mut after);
        let mut batch = Batch::progress();
        partner::update(&mut batch, &before, &after);
        self.store().commit(batch).await.unwrap();
    }

    async fn clicks(&self, partner: PartnerId) -> Vec<(String, u64)> {
        self.ledger.count_clicks(0..=PARTITIONS - 1).await.unwrap();
        let days = click_count::daily_clicks(self.store(), self.account, partner, Hour(0)..Hour(i64::MAX));
        days.await.unwrap().into_iter().map(|day| (day.sub_id, day.clicks)).collect()
    }
}

#[tokio::test]
async fn the_attribution_model_selects_the_visit_and_each_click_is_counted() {
    for (model, expected) in [(Attribution::FirstClick, "ada"), (Attribution::LastClick, "bob")] {
        let world = World::new().await;
        world.change_program(|program| program.settings.attribution = model).await;
        let of_ada = world.visit("ada", VISITOR).await;
        assert_eq!(world.visit("ADA", VISITOR).await, of_ada, "a page that is loaded anew");
        world.advance_days(1);
        let captured = world.capture(&arrival("bob", Some(VISITOR))).await.unwrap();
        let partner_name = captured.partner.unwrap().email.local_part().to_owned();
        assert_eq!(partner_name, expected);
        assert_eq!(captured.visit.id == of_ada, expected == "ada");
        // Another visitor, one without the script, and one with a tag.
        world.visit("bob", "another-visitor").await;
        world.capture(&VisitRequest { sub_id: Some("june".to_owned()), ..arrival("bob", None) }).await.unwrap();
        assert_eq!(world.clicks(world.ada).await, [(String::new(), 1)]);
        assert_eq!(world.clicks(world.bob).await, [(String::new(), 2), ("june".to_owned(), 1)]);
        // After the attribution window the visit has lapsed.
        world.advance_days(40);
        assert_eq!(world.capture(&arrival("bob", Some(VISITOR))).await.unwrap().partner.unwrap().id, world.bob);
        world.audit().await;
    }
}

#[tokio::test]
async fn visits_need_an_active_partner_and_existing_ones_stay() {
    let world = World::new().await;
    assert_eq!(world.capture(&arrival("nobody", Some(VISITOR))).await, None);
    let visit = world.visit("ada", VISITOR).await;
    world.change_partner(world.ada, |ada| ada.status = PartnerStatus::Suspended).await;
    assert_eq!(world.capture(&arrival("ada", Some("another-visitor"))).await, None);
    assert_eq!(world.capture(&arrival("bob", Some(VISITOR))).await.unwrap().visit.id, visit, "the first click");
    assert!(world.sign_up(visit, PERSON).await);
    assert_eq!(world.all_referrals().await[0].partner, world.ada);
    world.change_program(|program| program.status = ProgramStatus::Paused).await;
    assert_eq!(world.capture(&arrival("bob", Some("another-visitor"))).await, None);
    assert!(!world.sign_up(visit, "other@example.net").await);
    // A paused program adds no referral, and existing ones continue.
    let other = checkout("cs_1", Some("cus_other"), &visit.to_string());
    world.ingest_object("checkout.session.completed", 10, other).await;
    world.ingest_event(&world.paid("in_1", "cus_other", 5_000, 11)).await;
    assert_eq!(world.all_referrals().await.len(), 1);
    world.audit().await;
}

#[tokio::test]
async fn a_paused_program_adds_no_referrals_but_existing_ones_earn() {
    let world = World::new().await;
    let lead = world.lead("lin@example.org", Some("cus_1")).await;
    let visit = world.visit("ada", VISITOR).await;
    world.change_program(|program| program.status = ProgramStatus::Paused).await;
    world.ingest_object("checkout.session.completed", 10, checkout("cs_2", Some("cus_2"), &visit.to_string())).await;
    world.ingest_event(&world.paid("in_2", "cus_2", 5_000, 11)).await;
    world.ingest_event(&world.paid("in_1", "cus_1", 10_000, 12)).await;
    assert_eq!(world.outline().await, ["in_1/1 2000 of 10000 pending", "in_1/2 500 of 10000 pending"]);
    let referrals = world.all_referrals().await;
    assert_eq!((referrals.len(), referrals[0].id), (1, lead.id));
    assert_eq!(referrals[0].status, ReferralStatus::Active);
    world.audit().await;
}

#[tokio::test]
async fn a_visit_passed_to_another_domain_belongs_to_the_visitor_there() {
    let world = World::new().await;
    let visit = world.visit("ada", VISITOR).await;
    let over =
        |id, visitor: &str| VisitRequest { brought: VisitSource::HandedOver(id), ..arrival("ada", Some(visitor)) };
    let captured = world.capture(&over(visit, "on-another-domain")).await.unwrap();
    assert_eq!(captured.visit.id, visit);
    world.advance_days(1);
    assert_eq!(world.visit("bob", "on-another-domain").await, visit, "the first click");
    let third_visit = world.visit("bob", "a-third-visitor").await;
    assert_eq!(world.capture(&over(visit, "a-third-visitor")).await.unwrap().visit.id, visit, "it was earlier");
    assert_eq!(world.capture(&over(third_visit, VISITOR)).await.unwrap().visit.id, visit);
    let unknown = VisitId::new(world.clock.now(), 7);
    assert_eq!(world.capture(&over(unknown, VISITOR)).await, None);
    world.advance_days(31);
    assert_eq!(world.capture(&over(visit, VISITOR)).await, None, "it has lapsed");
    assert_eq!(world.clicks(world.ada).await, [(String::new(), 1)]);
}

#[tokio::test]
async fn a_sign_up_is_a_lead_once() {
    let world = World::with_settings(Store::memory(), mail_terms(500), |_| {}).await;
    let tagged = VisitRequest { sub_id: Some("june".to_owned()), ..arrival("ada", Some(VISITOR)) };
    let visit = world.capture(&tagged).await.unwrap().visit;
    world.advance_days(2);
    assert!(world.sign_up(visit.id, "Grace@Example.net").await);
    assert!(!world.sign_up(visit.id, PERSON).await);
    let bobs = world.visit("bob", "another-visitor").await;
    assert!(!world.sign_up(bobs, PERSON).await, "the first who claims a person keeps it");
    let referrals = world.all_referrals().await;
    let [lead] = &referrals[..] else { panic!("{referrals:?}") };
    assert_eq!((lead.source, lead.status, lead.partner), (ReferralSource::Signup, ReferralStatus::Lead, world.ada));
    assert_eq!((lead.sub_id.as_deref(), lead.visit, lead.link), (Some("june"), Some(visit.id), Some(visit.link)));
    assert_eq!((lead.claimed_at, lead.expires_at), (visit.clicked_at, visit.expires_at));
    assert_eq!(world.outline().await, ["bounty/1 500 of 0 pending"]);
    assert!(world.sign_up(bobs, "bob+shop@partners.example").await);
    assert_eq!(world.all_referrals().await[0].blocked, Some(ReferralBlock::SelfReferral));
    world.advance_days(60);
    assert!(!world.sign_up(visit.id, "late@example.net").await, "the visit has lapsed");
    world.audit().await;
}

fn mail_terms(lead_bounty: i64) -> model::affiliate::campaign::CommissionTerms {
    model::affiliate::campaign::CommissionTerms { lead_bounty, ..terms() }
}

/// A step of a customer's history: a sign-up, or an event of the processor.
#[derive(Debug, Clone)]
enum Happens {
    SignsUp,
    Told(Value),
}

async fn happen(world: &World, visit: VisitId, order: &[Happens]) {
    for step in order {
        match step {
            Happens::SignsUp => drop(world.sign_up(visit, PERSON).await),
            Happens::Told(event) => {
                let answer = world.try_ingest(event).await;
                assert!(matches!(answer, IngestOutcome::Done | IngestOutcome::Duplicate), "{event}: {answer:?}");
            }
        }
    }
}

fn orders<T: Clone>(items: &[T]) -> Vec<Vec<T>> {
    let Some((first, others)) = items.split_first() else { return vec![Vec::new()] };
    let mut all = Vec::new();
    for order in orders(others) {
        for at in 0..=order.len() {
            let mut with = order.clone();
            with.insert(at, first.clone());
            all.push(with);
        }
    }
    all
}

#[tokio::test]
async fn a_visit_earns_in_any_order_of_events() {
    let events_of = |world: &World, visit: VisitId| {
        let mut session = checkout("cs_1", Some("cus_1"), &visit.to_string());
        session["customer_details"]["email"] = json!(PERSON);
        (session["invoice"], session["payment_intent"]) = (json!("in_1"), json!("pi_in_1"));
        let mut bought = subscription("sub_1", "cus_1", "active");
        bought["metadata"] = json!({"stx_referral": visit.to_string()});
        let mut paid = invoice("in_1", "cus_1", 10_000, world.start + 12);
        paid["customer_email"] = json!(PERSON);
        vec![
            Happens::SignsUp,
            Happens::Told(world.event("checkout.session.completed", 13, session)),
            Happens::Told(world.event("customer.created", 10, json!({"id": "cus_1", "email": PERSON}))),
            Happens::Told(world.event("customer.subscription.created", 11, bought)),
            Happens::Told(world.event("invoice.paid", 12, paid)),
        ]
    };
    for number in 0..orders(&[0, 1, 2, 3, 4]).len() {
        let world = World::new().await;
        let visit = world.visit("ada", VISITOR).await;
        let order = orders(&events_of(&world, visit)).swap_remove(number);
        happen(&world, visit, &order).await;
        assert_eq!(world.outline().await, ["in_1/1 2000 of 10000 pending", "in_1/2 500 of 10000 pending"], "{order:?}");
        let referrals = world.all_referrals().await;
        let [referral] = &referrals[..] else { panic!("{order:?}: {referrals:?}") };
        assert_eq!(
            (referral.status, referral.partner, referral.visit),
            (ReferralStatus::Active, world.ada, Some(visit))
        );
        assert_eq!((referral.customer.as_deref(), referral.revenue_cents), (Some("cus_1"), 10_000), "{order:?}");
        assert_eq!(referral.email.as_ref().map(ToString::to_string).as_deref(), Some(PERSON), "{order:?}");
        assert_ne!(referral.source, ReferralSource::Metadata, "{order:?}");
        world.audit().await;
    }
}

#[tokio::test]
async fn concurrent_events_with_metadata_only_earn_once() {
    let world = World::new().await;
    let visit = world.visit("ada", VISITOR).await;
    let marked = json!({"id": "cus_1", "email": PERSON, "metadata": {"stx_referral": visit.to_string()}});
    let other = world.other_node();
    let (customer_event, invoice_event) =
        (world.event("customer.created", 10, marked), world.paid("in_1", "cus_1", 10_000, 12));
    let (body_one, body_two) = (customer_event.to_string(), invoice_event.to_string());
    let results = futures(&world, &other, &body_one, &body_two).await;
    assert!(results, "one of them failed");
    assert_eq!(world.outline().await, ["in_1/1 2000 of 10000 pending", "in_1/2 500 of 10000 pending"]);
    assert_eq!(world.all_referrals().await[0].source, ReferralSource::Metadata);
    world.audit().await;
}

async fn futures(world: &World, other: &Context, first: &str, second: &str) -> bool {
    let (ingest, other) = (world.ingest(), FactIngest::new(other, None));
    let (a, b) =
        tokio::join!(ingest.ingest(world.account, first.as_bytes()), other.ingest(world.account, second.as_bytes()),);
    matches!((a, b), (IngestOutcome::Done, IngestOutcome::Done))
}

#[tokio::test]
async fn earlier_payers_earn_nothing_and_two_buyers_of_one_browser_are_two_referrals() {
    let world = World::new().await;
    world.advance_days(1);
    let visit = world.visit("ada", VISITOR).await;
    let after = 86_400 + 10;
    for (number, customer) in ["cus_old", "cus_new", "cus_third"].into_iter().enumerate() {
        if number == 0 {
            world.ingest_event(&world.paid("in_before", customer, 5_000, 100)).await;
        }
        let session = checkout(&format!("cs_{number}"), Some(customer), &visit.to_string());
        world.ingest_object("checkout.session.completed", after, session).await;
        world.ingest_event(&world.paid(&format!("in_{number}"), customer, 10_000, after + 1)).await;
    }
    let referrals = world.all_referrals().await;
    let blocked: Vec<_> = referrals.iter().rev().map(|referral| referral.blocked).collect();
    assert_eq!(blocked, [Some(ReferralBlock::ExistingCustomer), None, None]);
    assert_eq!(world.outline().await.len(), 4);
    world.audit().await;
}

#[tokio::test]
async fn purchases_with_an_identified_email_belong_to_the_visit() {
    let world = World::new().await;
    let visit = world.visit("ada", VISITOR).await;
    world.clock.advance(std::time::Duration::from_secs(1));
    let other_visit = world.visit("bob", "another-visitor").await;
    for id in [visit, other_visit] {
        world.ledger.identify_visitor(world.account, id, &PERSON.parse().unwrap()).await.unwrap();
    }
    assert!(world.all_referrals().await.is_empty(), "no lead");
    let mut paid = invoice("in_1", "cus_1", 10_000, world.start + 12);
    paid["customer_email"] = json!(PERSON);
    world.ingest_object("invoice.paid", 12, paid).await;
    assert_eq!(world.all_referrals().await[0].partner, world.ada);
    assert_eq!(world.outline().await.len(), 2);
    world.audit().await;
}

#[tokio::test]
async fn an_email_claimed_by_another_referral_stays_there() {
    let world = World::new().await;
    world.lead(PERSON, None).await;
    let visit = world.visit("bob", VISITOR).await;
    let mut session = checkout("cs_1", Some("cus_1"), &visit.to_string());
    session["customer_details"]["email"] = json!(PERSON);
    world.ingest_object("checkout.session.completed", 13, session).await;
    world.ingest_event(&world.paid("in_1", "cus_1", 10_000, 12)).await;
    let referrals = world.all_referrals().await;
    assert_eq!((referrals.len(), referrals[0].partner), (1, world.ada));
    world.audit().await;
}

#[tokio::test]
async fn suspicious_leads_are_frozen_for_review() {
    use FraudFlag::{BannedReferrer, CompanyDomain, DisposableDomain, PaidClick, SameIp};
    let world = World::new().await;
    world.change_program(|program| program.settings.banned_referrers = vec!["coupons.example".parse().unwrap()]).await;
    let (home, cafe) = ("192.0.2.7".parse().unwrap(), "198.51.100.1".parse().unwrap());
    let mut batch = Batch::progress();
    self_referral_guard::record_portal_visit(
        &mut batch,
        world.account,
        world.ada,
        Some("adas-own-browser"),
        Some(home),
        world.clock.now(),
    );
    world.store().commit(batch).await.unwrap();
    let from_cafe = |token: &str| VisitRequest { from: Some(cafe), ..arrival(token, None) };
    let ad = VisitRequest { url: "https://shop.example/?via=ada&gclid=x".to_owned(), ..from_cafe("ada") };
    let coupon = VisitRequest { referrer: "https://www.coupons.example/".to_owned(), ..from_cafe("ada") };
    let cases = [
        (from_cafe("ada"), "a@example.net", vec![]),
        (ad, "b@example.net", vec![PaidClick]),
        (coupon, "c@example.net", vec![BannedReferrer]),
        (from_cafe("ada"), "d@mailinator.com", vec![DisposableDomain]),
        (from_cafe("ada"), "e@sales.partners.example", vec![CompanyDomain]),
        (arrival("ada", None), "f@example.net", vec![SameIp]),
        (arrival("bob", None), "g@example.net", vec![]),
    ];
    for (arrival, email, flags) in cases {
        let visit = world.capture(&arrival).await.unwrap().visit.id;
        assert!(world.sign_up(visit, email).await, "{email}");
        let lead = world.all_referrals().await.swap_remove(0);
        let found = lead.review.as_ref().map(|review| review.flags.clone()).unwrap_or_default();
        assert_eq!((found, lead.is_frozen()), (flags.clone(), !flags.is_empty()), "{email}");
    }
    let own_visit = world.visit("ada", "adas-own-browser").await;
    assert!(world.sign_up(own_visit, "h@example.net").await);
    assert_eq!(world.all_referrals().await[0].blocked, Some(ReferralBlock::SelfReferral));
    world.audit().await;
}

#[tokio::test]
async fn leads_beyond_the_velocity_limit_earn_after_review() {
    let world = World::with_settings(Store::memory(), mail_terms(0), |settings| settings.velocity_per_hour = 2).await;
    let visit = world.visit("ada", VISITOR).await;
    for number in 0..3 {
        assert!(world.sign_up(visit, &format!("p{number}@example.net")).await);
    }
    let third = world.all_referrals().await.swap_remove(0);
    assert_eq!(third.review.as_ref().unwrap().flags, [FraudFlag::Velocity]);
    let mut session = checkout("cs_1", Some("cus_1"), &visit.to_string());
    session["customer_details"]["email"] = json!("p2@example.net");
    world.ingest_object("checkout.session.completed", 13, session).await;
    world.ingest_event(&world.paid("in_1", "cus_1", 10_000, 14)).await;
    world.advance_days(31);
    world.end_holds().await;
    assert_eq!(world.outline().await, ["in_1/1 2000 of 10000 pending frozen", "in_1/2 500 of 10000 pending frozen"]);
    let decided = world
        .ledger
        .decide_referral(world.account, third.id, ReferralDecision::Allow, None, &no_extension)
        .await
        .unwrap();
    assert_eq!(decided.review.unwrap().status, ReviewStatus::Allowed);
    world.end_holds().await;
    assert_eq!(world.outline().await, ["in_1/1 2000 of 10000 earned", "in_1/2 500 of 10000 earned"]);
    let links = partner_link::list(world.store(), world.account, world.ada).await.unwrap();
    assert_eq!(links.len(), 1);
    world.audit().await;
}
