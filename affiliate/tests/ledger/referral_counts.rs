//! Referral counts by link: each referral counts once as a lead, and once as a customer at its first payment.

use affiliate::context::no_extension;
use affiliate::referrals::{PartnerSelector, ReferralDraft};
use model::affiliate::partner::{PartnerLink, PartnerLinkToken};
use model::affiliate::referral::ReferralCounts;
use model::id::{PartnerId, PartnerLinkId};
use store::affiliate::referral_counts::ReferralCountsByLink;
use store::affiliate::{partner_link, sums};
use store::engine::Batch;

use super::processor_objects::checkout;
use super::world::World;

const PEOPLE: u64 = 40;

fn counts(leads: u64, customers: u64) -> ReferralCounts {
    ReferralCounts { leads, customers }
}

impl World {
    async fn referral_counts(&self, partner: PartnerId) -> ReferralCountsByLink {
        self.ledger.referral_counts((self.account, partner)).await.unwrap()
    }

    async fn links(&self, partner: PartnerId) -> Vec<PartnerLink> {
        partner_link::list(self.store(), self.account, partner).await.unwrap()
    }

    /// Creates a further link of Ada's.
    async fn link(&self, token: &str) -> PartnerLinkId {
        let (now, token) = (self.clock.now(), PartnerLinkToken::parse(token).unwrap());
        let free = partner_link::find_free_token(self.store(), self.account, &token, now).await.unwrap().unwrap();
        let id = PartnerLinkId::new(now, 7);
        let link = PartnerLink { id, token, ..self.links(self.ada).await.swap_remove(0) };
        let mut batch = Batch::progress();
        partner_link::create(&mut batch, &link, free);
        self.store().commit(batch).await.unwrap();
        id
    }

    async fn refer(&self, selector: PartnerSelector, email: &str) {
        let draft = ReferralDraft { partner: selector, email: email.parse().unwrap(), customer: None, sub_id: None };
        self.ledger.refer(self.account, &draft, &no_extension).await.unwrap();
    }

    /// Folds pending changes into the sums.
    async fn fold(&self, partner: PartnerId) -> bool {
        let key = (self.account, partner);
        let (stored, mut batch) =
            (sums::read::<ReferralCountsByLink>(self.store(), key).await.unwrap(), Batch::progress());
        stored.fold(&mut batch, key);
        self.store().commit(batch).await.is_ok()
    }
}

#[tokio::test]
async fn referrals_are_counted_by_link() {
    let world = World::new().await;
    let podcast = world.link("podcast").await;
    let main = world.links(world.ada).await.into_iter().find(|link| link.id != podcast).unwrap().id;
    let visit = world.visit("podcast", "0123456789abcdef").await;
    assert!(world.sign_up(visit, "grace@example.net").await);
    assert!(!world.sign_up(visit, "grace@example.net").await);
    world.refer(PartnerSelector::Token(PartnerLinkToken::parse("ADA").unwrap()), "alan@example.net").await;
    world.refer(PartnerSelector::Id(world.ada), "edsger@example.net").await;
    let session = checkout("cs_1", Some("cus_1"), &visit.to_string());
    world.ingest_object("checkout.session.completed", 13, session).await;
    // A second invoice, or one delivered twice, adds no customer, and a refund removes none.
    for number in [1, 2, 1] {
        world.ingest_event(&world.paid(&format!("in_{number}"), "cus_1", 10_000, 14)).await;
    }
    let found = world.referral_counts(world.ada).await;
    assert_eq!(found.links.into_iter().collect::<Vec<_>>(), [(main, counts(1, 0)), (podcast, counts(1, 1))]);
    assert_eq!(
        (found.elsewhere, world.referral_counts(world.bob).await),
        (counts(1, 0), ReferralCountsByLink::default())
    );
    world.audit().await;
}

#[tokio::test]
async fn lapsed_referrals_and_deleted_links_keep_their_counts() {
    let world = World::new().await;
    let podcast = world.link("podcast").await;
    let visit = world.visit("podcast", "0123456789abcdef").await;
    assert!(world.sign_up(visit, "grace@example.net").await && world.sign_up(visit, "alan@example.net").await);
    let link = world.links(world.ada).await.into_iter().find(|link| link.id == podcast).unwrap();
    let mut batch = Batch::progress();
    partner_link::delete(&mut batch, &link, None);
    world.store().commit(batch).await.unwrap();
    for is_folded in [false, true] {
        let found = world.referral_counts(world.ada).await;
        assert_eq!((found.total(), found.elsewhere), (counts(2, 0), counts(2, 0)), "{is_folded}");
        assert!(world.fold(world.ada).await);
    }
    let session = checkout("cs_1", Some("cus_1"), &visit.to_string());
    world.ingest_object("checkout.session.completed", 13, session).await;
    world.ingest_event(&world.paid("in_1", "cus_1", 10_000, 14)).await;
    assert_eq!(world.referral_counts(world.ada).await.elsewhere, counts(2, 1));
    world.advance_days(40);
    for email in ["grace@example.net", "alan@example.net"] {
        world.refer(PartnerSelector::Token(PartnerLinkToken::parse("bob").unwrap()), email).await;
    }
    let of_bob = world.referral_counts(world.bob).await;
    assert_eq!((of_bob.total(), of_bob.links.len()), (counts(1, 0), 1), "the other one is a customer");
    assert_eq!(world.referral_counts(world.ada).await.total(), counts(2, 1));
    world.audit().await;
}

#[tokio::test]
async fn concurrent_referrals_are_counted_once_during_folding() {
    let world = World::with_settings(store::engine::Store::memory(), super::world::terms(), |settings| {
        settings.velocity_per_hour = 5;
    })
    .await;
    let visits = [world.visit("ada", "0123456789abcdef").await, world.visit("ada", "123456789abcdef0").await];
    let world = std::sync::Arc::new(world);
    let mut tasks = tokio::task::JoinSet::new();
    for number in 0..PEOPLE {
        let (world, visit) = (world.clone(), visits[usize::from(number % 2 == 0)]);
        tasks.spawn(async move {
            world.sign_up(visit, &format!("p{number}@example.net")).await;
            world.fold(world.ada).await;
            let invoice = world.paid(&format!("in_{number}"), &format!("cus_{number}"), 1_000, 14);
            let session = checkout(&format!("cs_{number}"), Some(&format!("cus_{number}")), &visit.to_string());
            let session = world.event("checkout.session.completed", 13, session);
            if number % 4 == 0 {
                world.ingest_event(&session).await;
                world.ingest_event(&invoice).await;
            }
        });
    }
    while let Some(done) = tasks.join_next().await {
        done.unwrap();
    }
    let found = world.referral_counts(world.ada).await;
    let by_link: Vec<_> = found.links.values().copied().collect();
    assert_eq!(by_link, [counts(PEOPLE, PEOPLE / 4)]);
    assert!(world.fold(world.ada).await);
    assert_eq!(world.referral_counts(world.ada).await, found);
    world.audit().await;
}

#[tokio::test]
async fn a_read_during_another_fold_is_repeated() {
    let world = World::new().await;
    world.refer(PartnerSelector::Id(world.ada), "alan@example.net").await;
    let key = (world.account, world.ada);
    let stale = sums::read::<ReferralCountsByLink>(world.store(), key).await.unwrap();
    assert_eq!(stale.changes(), 1);
    assert!(world.fold(world.ada).await);
    let mut batch = Batch::progress();
    stale.fold(&mut batch, key);
    assert!(world.store().commit(batch).await.is_err());
    assert_eq!(world.referral_counts(world.ada).await.total(), counts(1, 0));
}
