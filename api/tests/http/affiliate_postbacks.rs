//! Postbacks: a partner's own events, sent to the partner's URL, signed and retried.

use std::time::Duration;

use http::{Method, StatusCode};
use model::id::{AccountId, PartnerId};
use model::webhook_delivery::WebhookDeliveryStatus;
use serde_json::{Value, json};

use crate::affiliate_program::{owner, set_up};
use crate::affiliates::partner;
use crate::webhooks::Receiver;
use crate::world::{TestSession, World};
use ::affiliate::partners::postbacks::PostbackDelivery;
use ::affiliate::service::AffiliateService;

struct Program {
    world: World,
    session: TestSession,
    service: AffiliateService,
    account: AccountId,
}

impl Program {
    async fn start() -> Self {
        let world = World::with_worker().await;
        let session = set_up(&world, 1).await;
        let (service, account) = (world.affiliate.clone(), world.tenant().await.account().id);
        Self { world, session, service, account }
    }

    /// A partner with this postback URL; returns the signing secret.
    async fn partner(&self, token: &str, url: &str) -> (PartnerId, String) {
        let made = partner(&self.world, json!({"email": format!("{token}@example.org"), "token": token})).await;
        let id = made["id"].as_str().unwrap().to_owned();
        self.change(&id, json!({"postback_url": url})).await;
        let path = format!("/partners/{id}");
        let inside = owner(&self.world, &self.session, Method::GET, &path, json!({})).await.json();
        assert_eq!(inside["postback_url"], json!(url));
        (id.parse().unwrap(), inside["postback_secret"].as_str().unwrap().to_owned())
    }

    async fn change(&self, id: &str, body: Value) {
        let changed = self.world.call(Method::PATCH, &format!("/affiliates/{id}"), &body).await;
        assert_eq!(changed.status, StatusCode::OK, "{changed:?}");
    }

    async fn create_referral(&self, token: &str, email: &str) -> Value {
        let body = json!({"token": token, "email": email});
        let response = self.world.call(Method::POST, "/affiliate-referrals", &body).await;
        assert_eq!(response.status, StatusCode::CREATED, "{response:?}");
        response.json()["referral"].clone()
    }

    /// The partner's postback log, once `passes` holds.
    async fn log(&self, partner: PartnerId, passes: impl Fn(&[PostbackDelivery]) -> bool) -> Vec<PostbackDelivery> {
        loop {
            let settled = self.world.services.outcome_recorded.notified();
            let (log, _) = self.service.partners.list_postbacks(self.account, partner, None, 50).await.unwrap();
            if passes(&log) {
                return log;
            }
            settled.await;
        }
    }
}

fn is_done(status: WebhookDeliveryStatus) -> impl Fn(&[PostbackDelivery]) -> bool {
    move |log| log.first().is_some_and(|sent| sent.delivery.status == status)
}

#[tokio::test]
async fn postbacks_contain_only_own_events_and_masked_addresses() {
    let program = Program::start().await;
    let (mut adas, mut bobs) = (Receiver::start(&["200 OK"]).await, Receiver::start(&["200 OK"]).await);
    let (ada, secret) = program.partner("ada", &adas.url()).await;
    let (_, other) = program.partner("bob", &bobs.url()).await;
    let referral = program.create_referral("ada", "grace@example.net").await;
    let postback = adas.next().await;
    assert!(postback.is_signed_with(&secret) && !postback.is_signed_with(&other));
    let body = postback.json();
    assert_eq!((&body["type"], &body["data"]["affiliate_id"]), (&json!("referral.created"), &json!(ada)));
    assert_eq!(body["data"]["referral"]["id"], referral["id"]);
    assert_eq!(body["data"]["referral"]["email"], json!("g***@example.net"));
    assert_eq!(postback.header("webhook-id"), body["data"]["event_id"].as_str().unwrap());
    // The next postback to Bob is about Bob's referral.
    program.create_referral("bob", "edsger@example.net").await;
    assert_eq!(bobs.next().await.json()["data"]["referral"]["email"], json!("e***@example.net"));
    let shared = json!({"share_customer_email": true});
    let set = owner(&program.world, &program.session, Method::PATCH, "", shared).await;
    assert_eq!(set.status, StatusCode::OK);
    program.create_referral("ada", "alan@example.net").await;
    assert_eq!(adas.next().await.json()["data"]["referral"]["email"], json!("alan@example.net"));
    let log = program.log(ada, |log| log.len() == 2 && log.iter().all(|sent| sent.attempts.len() == 1)).await;
    assert!(log.iter().all(|sent| sent.delivery.status == WebhookDeliveryStatus::Delivered));
    assert_eq!(log[0].attempts[0].response_status, Some(200));
    program.world.end().await;
}

#[tokio::test]
async fn owner_sees_the_postback_log() {
    let program = Program::start().await;
    let accepting = Receiver::start(&["200 OK", "500 Internal Server Error"]).await;
    let (ada, _) = program.partner("ada", &accepting.url()).await;
    for email in ["grace@example.net", "alan@example.net"] {
        program.create_referral("ada", email).await;
    }
    let log = program.log(ada, |log| log.len() == 2 && log.iter().all(|sent| !sent.attempts.is_empty())).await;
    let path = format!("/partners/{ada}/postbacks");
    let list = async |query: &str| {
        let path = format!("{path}{query}");
        let response = owner(&program.world, &program.session, Method::GET, &path, json!({})).await;
        assert_eq!(response.status, StatusCode::OK, "{response:?}");
        response.json()
    };
    let all = list("").await;
    assert_eq!((&all["has_more"], all["data"].as_array().unwrap().len()), (&json!(false), 2));
    for (row, sent) in all["data"].as_array().unwrap().iter().zip(&log) {
        let delivery = &sent.delivery;
        assert_eq!((&row["id"], &row["event_id"]), (&json!(delivery.id), &json!(delivery.event)));
        assert_eq!((&row["type"], &row["error"]), (&json!("referral.created"), &Value::Null));
        assert!(row["attempts_count"].as_u64().unwrap() >= 1, "{row}");
        let (status, answered) = (row["status"].as_str().unwrap(), row["response_status"].as_u64().unwrap());
        assert!(matches!((status, answered), ("delivered", 200) | ("pending", 500)), "{row}");
        assert_eq!(row["next_attempt_at"].is_null(), status == "delivered");
    }
    let first = list("?limit=1").await;
    assert_eq!((&first["has_more"], &first["data"][0]), (&json!(true), &all["data"][0]));
    let second = list(&format!("?limit=1&cursor={}", first["next_cursor"].as_str().unwrap())).await;
    assert_eq!((&second["has_more"], &second["data"][0]), (&json!(false), &all["data"][1]));
    for (path, status) in
        [("/partners/aff_x/postbacks", StatusCode::NOT_FOUND), (&format!("{path}?cursor=x"), StatusCode::BAD_REQUEST)]
    {
        assert_eq!(owner(&program.world, &program.session, Method::GET, path, json!({})).await.status, status);
    }
    program.world.end().await;
}

#[tokio::test]
async fn postback_is_tried_four_times_without_delaying_others() {
    let program = Program::start().await;
    let (mut adas, mut bobs) = (Receiver::start(&["410 Gone", "500 No"]).await, Receiver::start(&["200 OK"]).await);
    let (ada, _) = program.partner("ada", &adas.url()).await;
    program.partner("bob", &bobs.url()).await;
    // After 410 Gone there is no retry. The URL stays, and the next event is sent there.
    program.create_referral("ada", "one@example.net").await;
    adas.next().await;
    program.log(ada, is_done(WebhookDeliveryStatus::Failed)).await;
    program.create_referral("ada", "two@example.net").await;
    let first = adas.next().await;
    for (attempt, wait) in [(1, 5), (2, 30), (3, 120)] {
        let was_booked = move |log: &[PostbackDelivery]| log.first().is_some_and(|sent| sent.attempts.len() == attempt);
        let log = program.log(ada, was_booked).await;
        let due = log[0].delivery.next_attempt_at.unwrap().duration_since(log[0].attempts[attempt - 1].at);
        assert!(due.as_secs() >= wait && due.as_secs() < wait + 60, "attempt {attempt}: {due:?}");
        program.create_referral("bob", &format!("bobs-{attempt}@example.net")).await;
        bobs.next().await;
        program.world.services.clock.advance(Duration::from_secs(180));
        let again = adas.next().await;
        assert_eq!(
            (again.body.as_str(), again.header("webhook-id")),
            (first.body.as_str(), first.header("webhook-id"))
        );
    }
    let log = program.log(ada, is_done(WebhookDeliveryStatus::Failed)).await;
    assert_eq!((log[0].attempts.len(), log[1].attempts.len()), (4, 1));
    program.world.end().await;
}

#[tokio::test]
async fn postback_url_is_tested_and_removed() {
    let program = Program::start().await;
    let mut adas = Receiver::start(&["302 Found", "204 No Content"]).await;
    let (ada, secret) = program.partner("ada", &adas.url()).await;
    program.service.partners.send_test_postback(program.account, ada).await.unwrap();
    let postback = adas.next().await;
    assert!(postback.is_signed_with(&secret));
    assert_eq!(
        (&postback.json()["type"], &postback.json()["data"]["test"]),
        (&json!("referral.created"), &json!(true))
    );
    let log = program.log(ada, is_done(WebhookDeliveryStatus::Failed)).await;
    assert_eq!((log[0].attempts.len(), log[0].attempts[0].response_status), (1, Some(302)), "no redirects");
    program.change(&ada.to_string(), json!({"postback_url": null})).await;
    assert!(program.service.partners.send_test_postback(program.account, ada).await.is_err());
    program.create_referral("ada", "grace@example.net").await;
    program.world.queue.events.outbox.dispatch_outbox().await.unwrap();
    assert_eq!(
        program.service.partners.list_postbacks(program.account, ada, None, 50).await.unwrap().0.len(),
        1,
        "no delivery is created"
    );
    program.world.end().await;
}
