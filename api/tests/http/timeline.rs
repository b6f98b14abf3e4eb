//! The events of an email, in the store and over HTTP.

use crate::world::World;
use http::StatusCode;
use jiff::{SignedDuration, Timestamp};
use message::outcome::AttemptPhase;
use message::reply::{Enhanced, SmtpReply};
use model::attempt::{Attempt, AttemptTls, TlsPolicy};
use model::event::{Event, EventKind};
use model::id::{AccountId, EmailId, EventId};
use model::recipient::RecipientState;
use serde_json::{Value, json};
use store::engine::Batch;

const MAIL: &str = r#"{"from":"a@example.com","to":["b@example.net","c@example.net"],"subject":"s","text":"t"}"#;

struct Story {
    world: World,
    account: AccountId,
    id: EmailId,
    path: String,
    accepted_at: Timestamp,
}

impl Story {
    async fn start() -> Self {
        let world = World::start().await;
        let id = world.post("/emails", MAIL).await.json()["id"].as_str().unwrap().to_owned();
        let account = store::account::find(&world.services.store, "owner1@example.com").await.unwrap().unwrap();
        let (path, id): (_, EmailId) = (format!("/emails/{id}"), id.parse().unwrap());
        Self { world, account: account.id, id, path, accepted_at: id.born_at() }
    }

    fn accepted_plus(&self, seconds: i64) -> Timestamp {
        self.accepted_at + SignedDuration::from_secs(seconds)
    }

    /// Settles a recipient, with its attempt and its event.
    async fn settle_recipient(&self, index: u16, state: RecipientState, kind: EventKind, reply: SmtpReply) {
        let at = self.accepted_plus(i64::from(index) + 1);
        let store = &self.world.services.store;
        let found = store::email::get(store, self.account, self.id).await.unwrap().unwrap();
        let mut recipient = found.recipients[usize::from(index)].clone();
        recipient.state = state;
        recipient.attempts = 1;
        recipient.last_event = (kind, at);
        recipient.last_response = Some(reply.clone());
        recipient.next_attempt_at = None;
        recipient.delivered_at = (state == RecipientState::Delivered).then_some(at);
        recipient.bounced_at = (state == RecipientState::Bounced).then_some(at);
        let attempt = Attempt {
            recipient: index,
            number: 1,
            created_at: at,
            duration_ms: 12,
            phase: AttemptPhase::Rcpt,
            mx_host: Some("mx.example.net".into()),
            ip: Some("192.0.2.1".parse().unwrap()),
            source: None,
            tls: Some(AttemptTls {
                version: "TLSv1.3".into(),
                cipher: "x".into(),
                verified: false,
                policy: TlsPolicy::default(),
            }),
            reply: Some(reply),
            error: None,
            transcript: "S: 220".into(),
            next_attempt_at: None,
        };
        let event = Event {
            id: EventId::new(at, index.into()),
            account: self.account,
            subject: self.id.into(),
            kind,
            recipient: Some(recipient.address.clone()),
            created_at: at,
            detail: json!({}),
        };
        let mut batch = Batch::progress();
        store::email::put_recipient(&mut batch, self.account, self.id, &recipient);
        store::attempt::put(&mut batch, self.account, self.id, &attempt);
        store::event::record(&mut batch, &event, 0);
        store.commit(batch).await.unwrap();
    }
}

/// A worked example: one recipient delivered, one bounced.
#[tokio::test]
async fn a_mixed_result_shows_both() {
    let story = Story::start().await;
    let ok = SmtpReply::new(250, Enhanced::new(2, 0, 0), "OK");
    story.settle_recipient(0, RecipientState::Delivered, EventKind::Delivered, ok).await;
    let unknown = SmtpReply::new(550, Enhanced::new(5, 1, 1), "user unknown");
    story.settle_recipient(1, RecipientState::Bounced, EventKind::Bounced, unknown).await;

    let email = &story.world.get(&story.path).await.json()["email"];
    assert_eq!(email["status"], "delivered");
    assert_eq!(email["last_event"], "email.bounced");
    assert_eq!(email["bounce_reason"], "550 5.1.1 user unknown");
    assert_eq!(email["delivered_at"], format!("{:.3}", story.accepted_plus(1)));
    assert_eq!(email["bounced_at"], format!("{:.3}", story.accepted_plus(2)));
    assert_eq!(email["counts"], json!({"queued": 0, "delivered": 1, "bounced": 1, "failed": 0}));
    assert_eq!(
        email["recipients"][1]["last_response"],
        json!({"smtp_code": 550, "enhanced_code": "5.1.1", "text": "user unknown"})
    );

    let attempts = story.world.get(&format!("{}/attempts", story.path)).await.json();
    assert_eq!(
        attempts["attempts"][0],
        json!({
            "n": 1, "recipient": "c@example.net", "mx_host": "mx.example.net", "ip": "192.0.2.1",
            "tls": {"version": "TLSv1.3", "cipher": "x", "verified": false, "policy": "opportunistic"},
            "smtp_code": 550, "enhanced_code": "5.1.1", "response": "user unknown", "error": null, "phase": "rcpt",
            "duration_ms": 12, "created_at": format!("{:.3}", story.accepted_plus(2)), "next_attempt_at": null,
            "transcript": "S: 220",
        })
    );
    story.world.end().await;
}

#[tokio::test]
async fn events_are_paged_from_the_newest() {
    let story = Story::start().await;
    let ok = || SmtpReply::new(250, Enhanced::new(2, 0, 0), "OK");
    story.settle_recipient(0, RecipientState::Delivered, EventKind::Delivered, ok()).await;
    story.settle_recipient(1, RecipientState::Delivered, EventKind::Delivered, ok()).await;
    let mut collected: Vec<Value> = Vec::new();
    let mut path = format!("{}/events?limit=2", story.path);
    loop {
        let page = story.world.get(&path).await;
        assert_eq!(page.status, StatusCode::OK);
        let page = page.json();
        collected.extend(page["events"].as_array().unwrap().iter().map(|event| event["recipient"].clone()));
        let Some(cursor) = page["next_cursor"].as_str() else { break };
        path = format!("{}/events?limit=2&cursor={cursor}", story.path);
    }
    assert_eq!(collected, [json!("c@example.net"), json!("b@example.net"), Value::Null]);
    // A cursor of another list is refused.
    assert_eq!(story.world.get("/emails?cursor=AgAAAAE").await.code(), "invalid_cursor");
    story.world.end().await;
}
