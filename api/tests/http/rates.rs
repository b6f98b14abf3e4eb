//! The request rate limit of an account, and the API version.

use std::time::Duration;

use crate::world::{TestResponse, World};
use http::{Method, StatusCode};
use http_body_util::Full;
use model::credential::ApiKeyScope;
use model::plan::{PlanLimits, Plans};

const MAIL: &str = r#"{"from":"a@example.com","to":"b@example.net","subject":"s","text":"t"}"#;

/// `ratelimit-limit`, `ratelimit-remaining`, `ratelimit-reset`.
fn rate_limit_headers(response: &TestResponse) -> Option<[u32; 3]> {
    let number = |name| response.headers.get(name)?.to_str().ok()?.parse().ok();
    Some([number("ratelimit-limit")?, number("ratelimit-remaining")?, number("ratelimit-reset")?])
}

/// A world with the rate limiter on and a stopped clock, so that slow requests leave the same rest as fast ones.
async fn world_with_rate(per_second: u32) -> World {
    let world = World::start().await;
    world.services.clock.stop();
    world.accounts.limits.requests.set_enabled(true);
    let limits = PlanLimits { requests_per_second: per_second, ..Plans::default().dedicated };
    world.accounts.limits.plans.replace(Plans { free: limits, pro: limits, scale: limits, dedicated: limits });
    world
}

#[tokio::test]
async fn responses_have_rate_limit_headers() {
    let world = world_with_rate(1_000).await;
    let sending = world.account(2, ApiKeyScope::Sending).await;
    let unknown = world.get("/emails/msg_00000000000000000000000000").await;
    let nowhere = world.get("/nowhere").await;
    let deleted = world.call(Method::DELETE, "/emails", &serde_json::json!({})).await;
    let invalid = world.post("/emails", "{}").await;
    let forbidden = world.get_as(&sending, "/emails/msg_00000000000000000000000000/raw").await;
    let sent = world.post("/emails", MAIL).await;
    let batch = world.post("/emails/batch", format!("[{MAIL},{MAIL},{MAIL}]")).await;
    for (response, status) in [
        (&unknown, 404),
        (&nowhere, 404),
        (&deleted, 405),
        (&invalid, 400),
        (&forbidden, 403),
        (&sent, 200),
        (&batch, 200),
    ] {
        assert_eq!(response.status.as_u16(), status);
        let [limit, remaining, reset_s] = rate_limit_headers(response).unwrap();
        assert!(limit == 1_000 && (900..=1_000).contains(&remaining) && reset_s == 1, "{response:?}");
    }
    for response in [
        world.get_as("rnl_nobody", "/emails").await,
        world.get_as("rnl_nobody", "/nowhere").await,
        world.get_as("rnl_nobody", "/openapi.json").await,
        world.get("/healthz").await,
    ] {
        assert_eq!(rate_limit_headers(&response), None, "{response:?}");
    }
    world.end().await;
}

#[tokio::test]
async fn requests_over_the_rate_are_refused() {
    let world = world_with_rate(1).await;
    // A batch counts as one request, and so does a refused one.
    let batch = world.post("/emails/batch", format!("[{MAIL},{MAIL},{MAIL}]")).await;
    assert_eq!((batch.status, rate_limit_headers(&batch)), (StatusCode::OK, Some([1, 1, 1])));
    let invalid = world.post("/emails", "{}").await;
    assert_eq!((invalid.code().as_str(), rate_limit_headers(&invalid)), ("validation_error", Some([1, 0, 1])));
    let refused = world.post("/emails", MAIL).await;
    assert_eq!((refused.status, refused.code().as_str()), (StatusCode::TOO_MANY_REQUESTS, "rate_limit_exceeded"));
    assert_eq!(refused.headers["retry-after"], refused.headers["ratelimit-reset"]);
    assert_eq!(rate_limit_headers(&refused), Some([1, 0, 1]), "the wait for the next request, not for an empty bucket");
    assert!(refused.json()["error"]["request_id"].is_string());
    // Unknown paths are limited too.
    assert_eq!(world.get("/nowhere").await.code(), "rate_limit_exceeded");
    // Other accounts are not affected.
    let other = world.account(3, ApiKeyScope::Full).await;
    assert_eq!(world.get_as(&other, "/emails").await.status, StatusCode::OK);
    let wait_s: u64 = refused.headers["retry-after"].to_str().unwrap().parse().unwrap();
    world.services.clock.advance(Duration::from_secs(wait_s));
    assert_eq!(world.post("/emails", MAIL).await.status, StatusCode::OK);
    world.end().await;
}

#[tokio::test]
async fn disabled_limiter_counts_nothing() {
    let world = world_with_rate(1).await;
    world.accounts.limits.requests.set_enabled(false);
    for _ in 0..5 {
        let response = world.get("/emails").await;
        assert_eq!((response.status, rate_limit_headers(&response)), (StatusCode::OK, None));
    }
    world.end().await;
}

#[tokio::test]
async fn unknown_api_version_is_refused() {
    let world = World::start().await;
    for (version, status) in [(api::version::DEFAULT, 200), ("1999-01-01", 400), ("yesterday", 400), ("2026-11-1", 400)]
    {
        let request = world.request(Method::GET, "/emails").header("service-version", version);
        let response = world.send(request.body(Full::default()).unwrap()).await;
        assert_eq!(response.status.as_u16(), status, "{version}");
        if status == 400 {
            assert_eq!(response.code(), "validation_error");
            assert!(response.json()["error"]["details"]["fields"]["Service-Version"].is_string());
        }
    }
    world.end().await;
}
