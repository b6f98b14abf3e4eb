//! The request rate limit of an account: the API and submission share one bucket; trusted relay hosts are exempt.

use std::time::Duration;

use postrider::config::OnOff;
use smtp::handler::{Hook, HookVerdict, SaslCredentials, SessionHandler as _};

use crate::world::TestWorld;

/// Reply of submission to a further RCPT of an authenticated session.
async fn recipient(world: &TestWorld) -> String {
    let recipient = Hook::RcptTo("a@dest.example".parse().unwrap());
    let submission = world.server.submission_handler("postrider");
    let mut visitor = None;
    let credentials =
        SaslCredentials { username: "postrider".to_owned(), password: world.password.expose().to_owned() };
    let login = Hook::Authenticate(credentials, "127.0.0.1".parse().unwrap());
    assert!(matches!(submission.handle(&mut visitor, login).await, HookVerdict::AuthenticatedAs(_)));
    match submission.handle(&mut visitor, recipient).await {
        HookVerdict::Accept => "granted".to_owned(),
        HookVerdict::Reply(reply) => reply.to_string(),
        HookVerdict::AuthenticatedAs(_) => "a login".to_owned(),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn api_and_submission_share_one_rate_limit() {
    let world = TestWorld::start().await;
    let changes = world.reload_with(|config| {
        config.api.rate_limit = OnOff::On;
        config.plans.dedicated.requests_per_second = 1;
    });
    assert_eq!(changes.applied, ["api.rate_limit", "plans.dedicated.requests_per_second"]);
    let clock = &world.server.clock;
    // A full bucket holds two requests, one from each side here.
    clock.advance(Duration::from_secs(3_600));
    assert_eq!(world.call("GET", "/emails", "").await.0, 200);
    assert_eq!(recipient(&world).await, "granted");
    let refused = recipient(&world).await;
    assert!(refused.starts_with("451 4.7.0 rate_limit_exceeded: "), "{refused}");
    let (status, body) = world.call("GET", "/emails", "").await;
    assert_eq!((status, body["error"]["code"].as_str()), (429, Some("rate_limit_exceeded")));
    // A trusted host is not rate limited.
    for n in 0..5 {
        world.relay(&["a@dest.example"], &format!("message {n}")).await;
    }
    clock.advance(Duration::from_secs(2));
    assert_eq!(recipient(&world).await, "granted");
    world.reload_with(|config| config.api.rate_limit = OnOff::Off);
    for _ in 0..5 {
        assert_eq!(recipient(&world).await, "granted");
    }
    world.end().await;
}
