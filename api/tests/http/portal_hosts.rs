//! Hosts of a program's portal: which are allowed, and for how long.

use http::{Method, StatusCode};
use model::credential::ApiKeyScope;
use model::domain::DomainState;
use serde_json::{Value, json};
use store::engine::Batch;

use crate::affiliate_program::{owner, set_up};
use crate::affiliates::partner;
use crate::portal::{Browser, login_link, text, update_program};
use crate::world::{BASE_URL, TestResponse, TestSession, World};

async fn set_portal_domain(world: &World, session: &TestSession, host: &str) -> TestResponse {
    owner(world, session, Method::PATCH, "", json!({"portal_domain": host})).await
}

async fn status_at(world: &World, host: &str) -> StatusCode {
    let browser = Browser { headers: vec![("host", host.to_owned())], ..Browser::new(world) };
    browser.get("/portal/sign-in").await.status
}

async fn get_program(world: &World, session: &TestSession) -> Value {
    owner(world, session, Method::GET, "", json!({})).await.json()["program"].clone()
}

/// A page without a program key reports that the key is missing.
#[tokio::test]
async fn page_without_a_key_names_the_missing_key() {
    let world = World::start().await;
    set_up(&world, 1).await;
    for page in ["sign-in", "join"] {
        let nothing = Browser::new(&world).get(&format!("/portal/{page}")).await;
        assert_eq!(nothing.status, StatusCode::NOT_FOUND);
        assert!(text(&nothing).contains("has no program key (?key=pk_"), "{}", text(&nothing));
        assert!(!text(&nothing).contains("portal_domain"), "{}", text(&nothing));
        let invalid = Browser::new(&world).get(&format!("/portal/{page}?key=pk_1")).await;
        assert_eq!(invalid.status, StatusCode::NOT_FOUND);
        assert!(text(&invalid).contains("No partner program has the key"), "{}", text(&invalid));
    }
    world.end().await;
}

#[tokio::test]
async fn portal_host_must_be_within_a_verified_domain() {
    let sandbox = "hello@service.example".parse().unwrap();
    let world = World::with_parts(|parts| parts.sandbox_sender = Some(sandbox)).await;
    world.accounts.links.set_base_url(BASE_URL);
    let session = set_up(&world, 1).await;
    world.account(2, ApiKeyScope::Full).await;
    world.create_domain(1, "shop.example").await;
    world.create_domain(1, "service.example").await;
    world.create_domain(1, "example.net").await;
    world.create_domain(1, "example.test").await;
    world.create_domain(2, "theirs.shop.example").await;
    let mut tracked = world.create_domain(1, "tracked.example").await;
    let before = tracked.clone();
    tracked.delivery.tracking_host = Some("click.deep.tracked.example".parse().unwrap());
    tracked.inbound_enabled = true;
    let mut batch = Batch::progress();
    store::domain::update(&mut batch, &before, &tracked);
    world.services.store.commit(batch).await.unwrap();
    world.create_domain(1, "deep.tracked.example").await;
    for (host, reason) in [
        ("partners.nobodys.example", "verified domain"),
        ("example", "verified domain"),
        ("shop.example.org", "verified domain"),
        ("notshop.example", "verified domain"),
        ("partners.theirs.shop.example", "verified domain"),
        ("theirs.shop.example", "verified domain"),
        ("click.deep.tracked.example", "tracking host"),
        ("rp.shop.example", "return path"),
        ("mta-sts.shop.example", "MTA-STS"),
        ("tracked.example", "receives mail"),
        ("service.example", "of this service"),
        ("api.example.test", "of this service"),
        ("rp.example.net", "of this service"),
        ("mx.example.net", "of this service"),
        ("a_b.shop.example", "not a valid website host"),
        ("a.b.c.d.e.f.g.h.i.j.k.shop.example", "not a valid website host"),
    ] {
        let refused = set_portal_domain(&world, &session, host).await;
        assert_eq!(refused.status, StatusCode::BAD_REQUEST, "{host}");
        let message = refused.json()["error"]["details"]["fields"]["portal_domain"].to_string();
        assert!(message.contains(reason), "{host}: {message}");
        assert_eq!(status_at(&world, host).await, StatusCode::NOT_FOUND);
    }
    for host in ["shop.example", "partners.shop.example", "a.b.shop.example", "portal.deep.tracked.example"] {
        let duplicate = set_portal_domain(&world, &session, host).await;
        assert_eq!(duplicate.status, StatusCode::OK, "{host}: {duplicate:?}");
        assert_eq!(duplicate.json()["program"]["portal_domain_error"], Value::Null);
        assert_eq!(status_at(&world, host).await, StatusCode::OK, "{host}");
    }
    world.end().await;
}

/// The portal loses its host when the domain is lost: links use the service's own host again, and the domain's new
/// owner can use the host.
#[tokio::test]
async fn a_portals_host_ends_with_its_domain() {
    let world = World::start().await;
    world.accounts.links.set_base_url(BASE_URL);
    let session = set_up(&world, 1).await;
    let ada = partner(&world, json!({"email": "ada@example.org"})).await;
    let domain = world.create_domain(1, "shop.example").await;
    update_program(&world, &session, json!({"portal_domain": "partners.shop.example"})).await;
    let host = "partners.shop.example";
    assert_eq!(status_at(&world, host).await, StatusCode::OK);
    assert!(login_link(&world, &ada).await.starts_with("https://partners.shop.example/"));

    let change = async |before: &model::domain::SendingDomain, state| {
        let after = model::domain::SendingDomain { state, ..before.clone() };
        let mut batch = Batch::progress();
        store::domain::update(&mut batch, before, &after);
        world.services.store.commit(batch).await.unwrap();
        after
    };
    let ended = async || {
        assert_eq!(status_at(&world, host).await, StatusCode::NOT_FOUND);
        let link = login_link(&world, &ada).await;
        assert!(link.starts_with(&format!("{BASE_URL}/")), "{link}");
        let program = get_program(&world, &session).await;
        let message = program["portal_domain_error"].as_str().unwrap().to_owned();
        assert!(message.contains("verified domain"), "{message}");
    };
    let lost = change(&domain, DomainState::Unverified).await;
    ended().await;
    // The host works again when the domain is verified again.
    change(&lost, DomainState::Verified).await;
    assert_eq!(status_at(&world, host).await, StatusCode::OK);
    assert_eq!(get_program(&world, &session).await["portal_domain_error"], Value::Null);
    // Others cannot use it in between, because they do not own the domain.
    world.account(2, ApiKeyScope::Full).await;
    let other = set_up(&world, 2).await;
    assert_eq!(set_portal_domain(&world, &other, host).await.status, StatusCode::BAD_REQUEST);
    world.accounts.domains.delete(domain.account, domain.id).await.unwrap();
    ended().await;
    assert_eq!(set_portal_domain(&world, &other, host).await.status, StatusCode::BAD_REQUEST);
    // Now the domain belongs to another account, as after a claim.
    world.create_domain(2, "shop.example").await;
    ended().await;
    assert_eq!(set_portal_domain(&world, &session, "other.shop.example").await.status, StatusCode::BAD_REQUEST);
    let duplicate = set_portal_domain(&world, &other, host).await;
    assert_eq!(duplicate.status, StatusCode::OK, "{duplicate:?}");
    assert_eq!(status_at(&world, host).await, StatusCode::OK);
    assert_eq!(get_program(&world, &session).await["portal_domain"], Value::Null);
    world.end().await;
}
