//! Concurrent operations on an affiliate program. The store is on disk, so commits take time and operations read
//! state that others are about to change.

use ::affiliate::context::no_extension;
use ::affiliate::error::AffiliateError;
use ::affiliate::ledger::ingest::FactIngest;
use ::affiliate::partners::changes::PartnerChange;
use ::affiliate::partners::links::LinkDraft;
use ::affiliate::referrals::{PartnerSelector, ReferralDraft};
use ::affiliate::service::AffiliateService;
use futures_util::future::join_all;
use http::{Method, StatusCode};
use model::affiliate::partner::{LINKS_MAX, PartnerLinkToken, PartnerSource};
use model::affiliate::partner_fields::{PartnerDraft, PartnerOrigin};
use model::id::{AccountId, PartnerId};
use serde_json::json;
use store::engine::{RedbOptions, Store};

use crate::affiliate_ledger::event;
use crate::affiliate_program::{owner, set_up};
use crate::world::{Backend, World};

struct Shop {
    world: World,
    service: AffiliateService,
    account: AccountId,
    _directory: tempfile::TempDir,
}

impl Shop {
    async fn open() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let options = RedbOptions { segment_bytes: 4 << 20, ..RedbOptions::new(directory.path().join("store")) };
        let world = World::with_backend(Backend::new(Store::open(&options).unwrap()).await).await;
        set_up(&world, 1).await;
        let service = world.affiliate.clone();
        let account = world.tenant().await.account().id;
        Self { world, service, account, _directory: directory }
    }

    async fn partner(&self, name: &str) -> PartnerId {
        let email = format!("{name}@example.org").parse().unwrap();
        let token = Some(PartnerLinkToken::parse(name).unwrap());
        let draft = PartnerDraft { token, ..PartnerDraft::new(email, PartnerOrigin::entered(PartnerSource::Api)) };
        self.service.partners.create_partner(self.account, &draft, &no_extension).await.unwrap().partner.id
    }

    /// Makes one partner the recruiter of another.
    async fn recruit(&self, partner: PartnerId, parent: PartnerId) -> Result<(), AffiliateError> {
        let change = PartnerChange { parent: Some(Some(parent)), ..PartnerChange::default() };
        self.service.partners.change_partner(self.account, partner, None, &change).await.map(|_| ())
    }

    async fn audit(&self) {
        let audit = ::affiliate::audit::audit(&self.service.ledger, self.account).await.unwrap();
        assert!(audit.ok, "{:#?}", audit.broken);
    }

    async fn close(self) {
        self.world.end().await;
    }
}

#[tokio::test]
async fn partners_cannot_recruit_each_other() {
    let shop = Shop::open().await;
    let chain = [shop.partner("ada").await, shop.partner("bob").await, shop.partner("cyd").await];
    let [ada, bob, cyd] = chain;
    shop.recruit(bob, cyd).await.unwrap();
    let done = futures_util::join!(shop.recruit(ada, bob), shop.recruit(cyd, ada));
    assert_ne!(done.0.is_ok(), done.1.is_ok(), "{done:?}");
    shop.audit().await;
    shop.close().await;
}

#[tokio::test]
async fn concurrent_links_stay_within_the_limit() {
    let shop = Shop::open().await;
    let ada = shop.partner("ada").await;
    let link = async |number: usize| {
        let token = PartnerLinkToken::parse(&format!("ada-{number}")).unwrap();
        let draft = LinkDraft { token, destination_url: None, label: None };
        shop.service.context.create_link(shop.account, ada, &draft, &no_extension).await
    };
    let made = join_all((0..75).map(link)).await;
    assert_eq!(made.iter().filter(|made| made.is_ok()).count(), LINKS_MAX - 1);
    for refused in made.iter().filter_map(|made| made.as_ref().err()) {
        assert!(matches!(refused, AffiliateError::Fields(_)), "{refused:?}");
    }
    assert_eq!(shop.service.context.list_links(shop.account, ada).await.unwrap().len(), LINKS_MAX);
    shop.close().await;
}

#[tokio::test]
async fn concurrent_leads_over_the_velocity_are_held_for_review() {
    let shop = Shop::open().await;
    let session = shop.world.session(1).await;
    let bounty = json!({"name": "Partners", "commission_bps": 2000, "lead_bounty_cents": 500});
    let path = "/campaigns/default";
    assert_eq!(owner(&shop.world, &session, Method::PUT, path, bounty).await.status, StatusCode::OK);
    for (name, limits) in [
        ("ada", json!({"velocity_per_hour": 20, "max_bounties_per_day": 1_000})),
        ("bob", json!({"velocity_per_hour": 1_000, "max_bounties_per_day": 20})),
    ] {
        assert_eq!(owner(&shop.world, &session, Method::PATCH, "", limits).await.status, StatusCode::OK);
        let partner = shop.partner(name).await;
        let lead = async |number: usize| {
            let draft = ReferralDraft {
                partner: PartnerSelector::Id(partner),
                email: format!("{name}{number}@example.net").parse().unwrap(),
                customer: None,
                sub_id: None,
            };
            shop.service.ledger.refer(shop.account, &draft, &no_extension).await.unwrap().referral
        };
        let leads = join_all((0..75).map(lead)).await;
        let looked_at = leads.iter().filter(|lead| lead.is_frozen()).count();
        assert_eq!(looked_at, 55, "{name}");
    }
    shop.audit().await;
    shop.close().await;
}

#[tokio::test]
async fn invoice_during_partner_deletion_is_reversed() {
    let shop = Shop::open().await;
    for number in 0..20 {
        let name = format!("p{number}");
        let partner = shop.partner(&name).await;
        let draft = ReferralDraft {
            partner: PartnerSelector::Id(partner),
            email: format!("{name}@example.net").parse().unwrap(),
            customer: Some(format!("cus_{name}")),
            sub_id: None,
        };
        shop.service.ledger.refer(shop.account, &draft, &no_extension).await.unwrap();
        let now = shop.world.services.clock.now().as_second();
        let invoice = json!({
            "id": format!("in_{name}"), "object": "invoice", "customer": format!("cus_{name}"), "currency": "usd",
            "status": "paid", "total": 5_000, "total_excluding_tax": 5_000, "amount_paid": 5_000,
            "status_transitions": {"paid_at": now},
        });
        let paid = event(&shop.world, &format!("evt_{name}"), "invoice.paid", &invoice).to_string();
        let ingest = FactIngest::new(&shop.service.ledger, None);
        let hear = ingest.ingest(shop.account, paid.as_bytes());
        let delete = shop.service.partners.delete_partner(shop.account, partner, None);
        // While the first commit is in progress, the second operation reads the earlier state.
        let deleted =
            if number % 2 == 0 { futures_util::join!(hear, delete).1 } else { futures_util::join!(delete, hear).0 };
        deleted.unwrap();
    }
    shop.audit().await;
    shop.close().await;
}
