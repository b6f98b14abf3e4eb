//! Bounces and complaints: each counts once, in any order, on several nodes.

use bytes::Bytes;
use futures_util::future::{LocalBoxFuture, join_all};
use message::address::Mailbox as Author;
use model::email::{Email, EmailRollup, Ingress};
use model::event::{Event, EventKind};
use model::id::EmailId;
use model::recipient::{DsnOptions as Wish, Recipient, RecipientKind, RecipientState};
use model::suppression::{Suppression, SuppressionReason};
use queue::subsystems::idle::{self, IdleQueue};
use serde_json::json;
use store::engine::{Batch, Store};

use super::*;

const RECIPIENTS: [&str; 2] = ["ada@recipient.example", "bob@recipient.example"];

pub(super) fn at(hours: i64) -> Timestamp {
    Timestamp::from_second(1_800_000_000 + hours * 3_600).unwrap()
}

/// Creates a node on a store without running jobs.
pub(super) fn node(store: Store) -> BounceProcessor {
    let facts = ServiceHosts {
        return_path_host: "rp.service.example".parse().unwrap(),
        spf_include_host: "spf.service.example".parse().unwrap(),
        ownership_label: "_service".to_owned(),
        mail_host: "mx.service.example".parse().unwrap(),
        pages_host: None,
    };
    let queue = IdleQueue::new(store, idle::settings());
    BounceProcessor::new(queue.services.clone(), &queue.delivery, facts)
}

/// An email to two recipients with given states.
struct Ground {
    store: Store,
    returned: BounceProcessor,
    email: EmailId,
}

impl Ground {
    async fn with_states(states: [RecipientState; 2]) -> Self {
        let store = Store::memory();
        let ground = Self { returned: node(store.clone()), store, email: EmailId::new(at(0), 7) };
        let mut batch = Batch::progress();
        let account = model::account::Account {
            id: ground.account(),
            email: "owner@acme.example".parse().unwrap(),
            plan: model::account::Plan::Dedicated,
            production: true,
            payment_method: false,
            suspended: false,
            created_at: at(0),
        };
        store::account::create(&mut batch, &account);
        let recipients: Vec<Recipient> = (0..2)
            .map(|n| Recipient {
                index: u16::try_from(n).unwrap(),
                address: RECIPIENTS[n].parse().unwrap(),
                kind: RecipientKind::To,
                state: states[n],
                attempts: 1,
                last_response: None,
                error: None,
                mx_host: Some("mx.recipient.example".to_owned()),
                last_event: (EventKind::Delivered, at(1)),
                delivered_at: (states[n] == RecipientState::Delivered).then_some(at(1)),
                bounced_at: None,
                complained_at: None,
                next_attempt_at: (states[n] == RecipientState::Deferred).then_some(at(48)),
                notify: Wish::default(),
            })
            .collect();
        store::email::create(&mut batch, &ground.new_email(), &recipients, Bytes::from_static(b"x").into());
        ground.store.commit(batch).await.unwrap();
        ground
    }

    fn account(&self) -> AccountId {
        AccountId::new(at(0), 1)
    }

    fn new_email(&self) -> Email {
        let from = Author { name: None, address: "hello@acme.example".parse().unwrap() };
        Email {
            domain: Some("acme.example".parse().unwrap()),
            size_bytes: 1,
            ..Email::new(self.email, self.account(), Ingress::Api, from, at(0))
        }
    }

    fn path(&self, recipient: u16) -> Address {
        let task = TaskId { email: self.email, recipient };
        self.returned.keys.verp.address(task, &"rp.acme.example".parse().unwrap()).unwrap()
    }

    fn arrival(&self, recipient: u16, message: &str, hours: i64) -> InboundMessage {
        InboundMessage {
            received_at: at(hours),
            peer: "192.0.2.9".parse().unwrap(),
            helo: "mx.recipient.example".to_owned(),
            reverse_path: None,
            recipient: self.path(recipient),
            message: Bytes::from(message.replace('\n', "\r\n")),
            authenticated: vec!["recipient.example".parse().unwrap()],
        }
    }

    async fn process(&self, recipient: u16, message: &str, hours: i64) -> Result<BounceHandling, BounceError> {
        self.returned.process(BounceMailbox::ReturnPath, &self.arrival(recipient, message, hours), &[]).await
    }

    async fn process_complaint(&self, message: &str) {
        let arrival = self.arrival(0, message, 20);
        self.returned.process(BounceMailbox::Complaints, &arrival, &[]).await.unwrap();
    }

    async fn recipients(&self) -> Vec<Recipient> {
        store::email::get(&self.store, self.account(), self.email).await.unwrap().unwrap().recipients
    }

    async fn events(&self) -> Vec<Event> {
        store::event::list(&self.store, self.account(), self.email, 100).await.unwrap()
    }

    async fn kinds(&self) -> Vec<EventKind> {
        self.events().await.iter().map(|event| event.kind).collect()
    }

    async fn suppression(&self, recipient: usize) -> Option<Suppression> {
        let target = RECIPIENTS[recipient].parse().unwrap();
        let found = store::suppression::get(&self.store, self.account(), &target).await.unwrap();
        found.map(|found| found.suppression)
    }
}

fn dsn(action: &str, status: &str, diagnostic: &str) -> String {
    format!(
        "From: MAILER-DAEMON@mx.recipient.example\nContent-Type: multipart/report; report-type=delivery-status; boundary=b\n\n\
         --b\n\nSorry.\n--b\nContent-Type: message/delivery-status\n\nReporting-MTA: dns; mx.recipient.example\n\n\
         Final-Recipient: rfc822; someone@inside.example\nAction: {action}\nStatus: {status}\nDiagnostic-Code: smtp; {diagnostic}\n\n--b--\n"
    )
}

fn unknown() -> String {
    dsn("failed", "5.1.1", "550 5.1.1 user unknown")
}

fn arf(enclosed: &str) -> String {
    format!(
        "From: fbl@recipient.example\nContent-Type: multipart/report; report-type=feedback-report; boundary=b\n\n\
         --b\nContent-Type: message/feedback-report\n\nFeedback-Type: abuse\nUser-Agent: Some/1\nVersion: 1\n\n\
         --b\nContent-Type: message/rfc822\n\n{enclosed}\n\nHello\n--b--\n"
    )
}

use RecipientState::{Bounced, Deferred, Delivered, Failed};

#[tokio::test]
async fn a_delivered_email_bounces_later_and_gets_a_complaint() {
    let ground = Ground::with_states([Delivered, Delivered]).await;
    ground.process(0, &unknown(), 25).await.unwrap();
    let [ada, bob] = ground.recipients().await.try_into().unwrap();
    assert_eq!((ada.state, bob.state), (Bounced, Delivered));
    assert_eq!(ada.delivered_at, Some(at(1)), "the delivery time stays");
    assert!(ada.bounced_at.is_some());
    let hard = ground.suppression(0).await.unwrap();
    assert_eq!((hard.reason, hard.expires_at, hard.email), (SuppressionReason::HardBounce, None, Some(ground.email)));
    let events = ground.events().await;
    assert_eq!(events[0].recipient.as_ref().unwrap().to_string(), RECIPIENTS[0]);
    assert_eq!(
        events[0].detail,
        json!({"bounce_reason": "550 5.1.1 user unknown", "bounce": {
            "type": "hard", "category": "unknown_user", "smtp_code": 550, "enhanced_code": "5.1.1",
            "diagnostic": "smtp; 550 5.1.1 user unknown", "mx_host": "mx.recipient.example", "async": true,
        }, "suppression_id": hard.id, "suppressed_until": null})
    );
    let rollup = EmailRollup::from_recipients(&[ada]);
    assert_eq!(serde_json::to_value(rollup.status).unwrap(), "bounced");
    assert_eq!(rollup.bounce_reason.as_deref(), Some("550 5.1.1 user unknown"));
    ground.process_complaint(&arf(&format!("Return-Path: <{}>", ground.path(0)))).await;
    let [ada, _] = ground.recipients().await.try_into().unwrap();
    assert_eq!((ada.state, ada.last_event.0), (Bounced, EventKind::Complained));
    assert!(ada.complained_at.is_some());
    let complaint = ground.suppression(0).await.unwrap();
    assert_eq!((complaint.id, complaint.reason), (hard.id, SuppressionReason::Complaint), "upgraded");
    let event = ground.events().await.pop().unwrap();
    assert_eq!(event.kind, EventKind::Complained);
    assert_eq!(
        event.detail,
        json!({"complaint": {"feedback_type": "abuse", "source": "fbl", "user_agent": "Some/1", "arrived_at": model::timestamp::to_rfc3339(at(20))},
            "suppression_id": hard.id})
    );
}

#[tokio::test]
async fn a_complaint_first_and_a_bounce_after_it() {
    let ground = Ground::with_states([Delivered, Delivered]).await;
    ground.process(0, &arf("From: x"), 20).await.unwrap();
    ground.process(0, &unknown(), 25).await.unwrap();
    let ada = ground.recipients().await.remove(0);
    assert_eq!((ada.state, ada.last_event.0), (Bounced, EventKind::Bounced));
    assert!(ada.complained_at.is_some());
    assert_eq!(
        ground.suppression(0).await.unwrap().reason,
        SuppressionReason::Complaint,
        "a complaint takes precedence"
    );
    assert_eq!(ground.kinds().await, [EventKind::Complained, EventKind::Bounced]);
}

#[tokio::test]
async fn repeated_reports_count_once_on_all_nodes() {
    let ground = Ground::with_states([Delivered, Delivered]).await;
    let other = Ground { returned: node(ground.store.clone()), store: ground.store.clone(), email: ground.email };
    let (bounce, complaint) = (unknown(), arf("From: x"));
    let full = dsn("failed", "5.2.2", "552 5.2.2 mailbox full");
    let mut all: Vec<LocalBoxFuture<'_, Result<BounceHandling, BounceError>>> = Vec::new();
    for node in [&ground, &other] {
        for message in [&bounce, &complaint, &full, &bounce, &complaint] {
            all.push(Box::pin(node.process(0, message, 20)));
            all.push(Box::pin(node.process(1, message, 20)));
        }
    }
    for outcome in join_all(all).await {
        outcome.unwrap();
    }
    let mut kinds = ground.kinds().await;
    kinds.sort_unstable_by_key(|kind| kind.name());
    use EventKind as E;
    assert_eq!(kinds, [E::Bounced, E::Bounced, E::Complained, E::Complained]);
    for index in 0..2 {
        assert_eq!(ground.suppression(index).await.unwrap().reason, SuppressionReason::Complaint);
    }
}

#[tokio::test]
async fn a_temporary_cause_is_a_soft_bounce() {
    let ground = Ground::with_states([Delivered, Delivered]).await;
    ground.process(0, &dsn("failed", "4.4.7", "451 4.4.1 no answer"), 25).await.unwrap();
    let soft = ground.suppression(0).await.unwrap();
    assert_eq!(soft.reason, SuppressionReason::SoftBounce);
    assert!(soft.expires_at.is_some());
    let event_detail = ground.events().await.pop().unwrap().detail;
    assert_eq!((&event_detail["bounce"]["type"], event_detail["suppressed_until"].is_string()), (&json!("soft"), true));
    // A reason about the sender suppresses for a day. The recipient still bounces, since it was delivered and no retry
    // follows.
    ground.process(1, &dsn("failed", "5.7.1", "554 5.7.1 this is spam"), 25).await.unwrap();
    assert_eq!(ground.recipients().await[1].state, Bounced);
    assert_eq!(ground.suppression(1).await.unwrap().reason, SuppressionReason::SmtpFailure);
    let event_detail = ground.events().await.pop().unwrap().detail;
    let bounce = (&event_detail["bounce"]["type"], &event_detail["bounce"]["category"]);
    assert_eq!(bounce, (&json!("soft"), &json!("content_rejected")));
}

#[tokio::test]
async fn a_delay_is_reported_once_and_changes_no_state() {
    let ground = Ground::with_states([Delivered, Deferred]).await;
    let delay_report = dsn("delayed", "4.4.1", "451 4.4.1 no answer");
    for _ in 0..3 {
        ground.process(0, &delay_report, 6).await.unwrap();
        ground.process(1, &delay_report, 6).await.unwrap();
    }
    assert_eq!(ground.kinds().await, [EventKind::DeliveryDelayed]);
    assert_eq!(ground.recipients().await[0].state, Delivered);
    ground.process(0, &unknown(), 30).await.unwrap();
    assert_eq!(ground.recipients().await[0].state, Bounced);
}

#[tokio::test]
async fn reports_without_effect_change_nothing() {
    let ground = Ground::with_states([Deferred, Failed]).await;
    let before = ground.recipients().await;
    // The first recipient's task decides its outcome; the second has failed already.
    ground.process(0, &unknown(), 25).await.unwrap();
    ground.process(1, &unknown(), 25).await.unwrap();
    assert_eq!(ground.recipients().await, before);
    let early = ground.process(0, &arf("From: x"), 25).await;
    assert!(matches!(early, Err(BounceError::StillDelivering)), "{early:?}");
    // A report that arrives during the attempt must be delivered again later.
    let ground = Ground::with_states([RecipientState::Queued, Delivered]).await;
    let early = ground.process(0, &unknown(), 25).await;
    assert!(matches!(early, Err(BounceError::StillDelivering)), "{early:?}");
    let ground = Ground::with_states([Delivered, Delivered]).await;
    let before = ground.recipients().await;
    let vacation = "From: ada@recipient.example\nSubject: Away\nAuto-Submitted: auto-replied\n\nI am away.\n";
    for message in [vacation, "", "\n", &dsn("delivered", "2.0.0", "250 ok"), &dsn("relayed", "2.0.0", "250 ok")] {
        ground.process(0, message, 25).await.unwrap();
    }
    // Quoted bounce texts count only from a bounce sender.
    let quoted = format!(
        "From: postmaster@recipient.example\nSubject: Undelivered mail\n\n{}\n",
        "I'm sorry to have to inform you that your message could not be delivered."
    );
    let from_ada =
        InboundMessage { reverse_path: "ada@recipient.example".parse().ok(), ..ground.arrival(0, &quoted, 25) };
    ground.returned.process(BounceMailbox::ReturnPath, &from_ada, &[]).await.unwrap();
    let (old, old_complaint) = (unknown(), arf("From: x"));
    let too_late = 1 + 30 * 24 + 1;
    ground.process(0, &old, too_late).await.unwrap();
    ground.process(0, &old_complaint, too_late).await.unwrap();
    assert_eq!(ground.recipients().await, before);
    assert!(ground.events().await.is_empty());
    assert!(ground.suppression(0).await.is_none() && ground.suppression(1).await.is_none());
}

#[tokio::test]
async fn forged_paths_are_rejected_and_purged_emails_are_accepted() {
    let ground = Ground::with_states([Delivered, Delivered]).await;
    let path = ground.path(0).to_string();
    let at = |host: &str| path.replace("rp.acme.example", host);
    for (text, mailbox) in [
        (path.clone(), Some(BounceMailbox::ReturnPath)),
        (path.to_uppercase(), Some(BounceMailbox::ReturnPath)),
        (path.replace("-0-", "-1-"), None),
        // Valid only at the host it was made for, and at the service's return-path host.
        (at("rp.service.example"), Some(BounceMailbox::ReturnPath)),
        (at("rp.evil.example"), None),
        (at("rp.mail.acme.example"), None),
        (at("acme.example"), None),
        (at("mx.acme.example"), None),
        ("hello@rp.acme.example".to_owned(), None),
        ("fbl@rp.service.example".to_owned(), Some(BounceMailbox::Complaints)),
        ("Abuse@rp.service.example".to_owned(), Some(BounceMailbox::Complaints)),
        ("dmarc@rp.service.example".to_owned(), Some(BounceMailbox::DmarcReports)),
        ("dmarc@rp.acme.example".to_owned(), None),
        ("tls-reports@rp.service.example".to_owned(), Some(BounceMailbox::TlsReports)),
    ] {
        assert_eq!(ground.returned.find_mailbox(&text.parse().unwrap()).await.unwrap(), mailbox, "{text}");
    }
    let forged: Address = path.replace("-0-", "-1-").parse().unwrap();
    let arrival = InboundMessage { recipient: forged, ..ground.arrival(0, &unknown(), 20) };
    ground.returned.process(BounceMailbox::ReturnPath, &arrival, &[]).await.unwrap();
    let mut batch = Batch::progress();
    store::email::purge(&ground.store, &mut batch, ground.account(), &[ground.email]).await.unwrap();
    ground.store.commit(batch).await.unwrap();
    ground.process(0, &unknown(), 20).await.unwrap();
    assert!(ground.events().await.is_empty() && ground.suppression(0).await.is_none());
}

#[tokio::test]
async fn a_bounce_during_a_purge_conflicts_with_it() {
    let ground = Ground::with_states([Delivered, Delivered]).await;
    let mut purge = Batch::progress();
    store::email::purge(&ground.store, &mut purge, ground.account(), &[ground.email]).await.unwrap();
    ground.process(0, &unknown(), 20).await.unwrap();
    let outcome = ground.store.commit(purge).await;
    assert!(matches!(outcome, Err(store::engine::CommitError::Conflict { .. })), "{outcome:?}");
}

/// Some hosts send reports with a non-null return path. Those of RFC 3464 are accepted, because the signed return path
/// proves that the sender had the email. Free-form bounces count if the sender's name is that of a mailer daemon.
#[tokio::test]
async fn a_report_with_a_reverse_path_is_accepted() {
    let free = "From: MAILER-DAEMON@recipient.example\nSubject: failure notice\n\nI'm sorry to have to inform you that your \
                message could not be delivered.\n<ada@recipient.example>: 550 5.1.1 user unknown\n";
    for (message, sender) in
        [(unknown(), "ada@recipient.example"), (free.to_owned(), "mailer-daemon@recipient.example")]
    {
        let ground = Ground::with_states([Delivered, Delivered]).await;
        let arrival = InboundMessage { reverse_path: sender.parse().ok(), ..ground.arrival(0, &message, 25) };
        ground.returned.process(BounceMailbox::ReturnPath, &arrival, &[]).await.unwrap();
        assert_eq!(ground.recipients().await[0].state, Bounced, "{sender}");
    }
}
