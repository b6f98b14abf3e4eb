//! The published MTA-STS policy of receiving domains.

use api::state::OwnMtaStsPolicy;
use http::{Method, Request};
use http_body_util::Full;
use message::mta_sts::{MtaStsMode, MtaStsPolicy};
use serde_json::json;

use crate::world::{TestResponse, World};

async fn fetch_policy(world: &World, host: &str) -> TestResponse {
    let request = Request::get("/.well-known/mta-sts.txt").header("host", host);
    world.send(request.body(Full::default()).unwrap()).await
}

#[tokio::test]
async fn policy_is_served_for_receiving_domains() {
    let mx = "mx.service.example".parse().unwrap();
    let world =
        World::with_options(|options| options.mta_sts = Some(OwnMtaStsPolicy { mode: MtaStsMode::Enforce, mx })).await;
    let domain = world.domain(world.tenant().await.account().id).await;
    let host = format!("mta-sts.{}", domain.name);
    assert_eq!(fetch_policy(&world, &host).await.status, 404, "its mail is received elsewhere");
    let path = format!("/domains/{}", domain.name);
    let patched = world.call(Method::PATCH, &path, &json!({"inbound_enabled": true})).await;
    assert_eq!(patched.status, 200);
    let found = fetch_policy(&world, &host.to_uppercase()).await;
    assert_eq!(found.headers["content-type"], "text/plain; charset=utf-8");
    let policy = MtaStsPolicy::parse(&found.body).unwrap();
    assert!(policy.mode == MtaStsMode::Enforce && policy.covers(&"mx.service.example".parse().unwrap()));
    for host in ["mta-sts.other.example", domain.name.as_str(), "mta-sts.", "127.0.0.1"] {
        assert_eq!(fetch_policy(&world, host).await.status, 404, "{host}");
    }
    assert_eq!(fetch_policy(&World::start().await, &host).await.status, 404, "there is no policy");
}
