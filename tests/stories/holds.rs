//! Holds: the mail of a suspended account, and the whole queue after a restore from a backup.

use std::time::Duration;

use mail::account::Plan;
use mail::destination::{Destination, PaceOverride};
use mail::event::EventKind;
use mail::id::EmailId;
use mail::recipient::RecipientState;
use postrider::cli::admin::restore;
use postrider::services::store_options;
use queue::domains::NewDomain;
use queue::queue_admin::WaitCause;
use queue::queue_command::QueueCommand;
use serde_json::json;

use crate::database::Server;
use crate::two_nodes::{end, nodes};
use crate::world::sink::Behaviour;
use crate::world::{PATIENCE, TestWorld};

const LATER: Duration = Duration::from_secs(600);
const GREY: &[Behaviour] = &[Behaviour::AtRcpt("451 4.7.1 greylisted")];

async fn cause(world: &TestWorld, id: EmailId) -> WaitCause {
    world.world.worker.trace_email(id).await.unwrap().waits.remove(0).cause
}

/// Waits until an email waits for this cause.
async fn until_cause(world: &TestWorld, id: EmailId, wanted: WaitCause) {
    let seen = async {
        while cause(world, id).await != wanted {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(PATIENCE, seen).await.expect("the email waits for another cause");
}

/// An email that was tried once and is due for a retry.
async fn deferred(world: &TestWorld, to: &str) -> EmailId {
    world.sink.script(to, GREY);
    let id = world.relay(&[to], "later").await;
    world.wait(id, |e| e.recipients[0].state == RecipientState::Deferred).await;
    id
}

async fn delivered(world: &TestWorld, id: EmailId) {
    world.wait(id, |e| e.recipients[0].state == RecipientState::Delivered).await;
}

async fn attempts(world: &TestWorld, id: EmailId) -> u32 {
    world.email(id).await.recipients[0].attempts
}

/// Sends mail of another account to these recipients and waits until it arrived. Held mail would have arrived by then.
async fn others_mail_goes(world: &mut TestWorld, to: &[&str]) {
    let (enrolment, name) = (&world.world.provisioning, "else.example".parse().unwrap());
    let other = enrolment.create_account("owner@else.example".parse().unwrap(), Plan::Dedicated, true).await.unwrap();
    let domains = world.world.intake.domains();
    domains.create(other.account.id, NewDomain::with_name(name), None).await.unwrap();
    domains.force_verify(&"else.example".parse().unwrap()).await.unwrap();
    let ours = std::mem::replace(&mut world.api_key, other.api_key);
    let before = world.sink.taken().len();
    for to in to {
        let mail = json!({"from": "a@else.example", "to": to, "subject": "s", "text": "t"});
        let (status, answer) = world.call("POST", "/emails", &mail.to_string()).await;
        assert_eq!(status, 200, "{answer}");
    }
    world.api_key = ours;
    let taken = world.sink.wait_for(before + to.len()).await;
    assert!(taken[before..].iter().all(|taken| to.contains(&taken.recipient.as_str())));
}

#[tokio::test(flavor = "multi_thread")]
async fn mail_of_a_suspended_account_is_held_until_the_suspension_is_lifted() {
    let mut world = TestWorld::start().await;
    let host = Destination::MailHost("slow.example".parse().unwrap());
    let one = PaceOverride { connections_max: Some(1), messages_per_second: None };
    world.world.worker.order_destination(&host, |standing| standing.pace = one).await.unwrap();
    let retried = deferred(&world, "retried@dest.example").await;
    let by_hand = deferred(&world, "by-hand@dest.example").await;
    world.world.worker.command_email(by_hand, &QueueCommand::Hold).await.unwrap();
    world.sink.script("asked@slow.example", &[Behaviour::AtRcptLater("451 4.7.1 later")]);
    let asked = world.relay(&["asked@slow.example"], "being tried").await;
    world.sink.asked().await;
    let in_line = world.relay(&["in-line@slow.example"], "in memory").await;
    until_cause(&world, in_line, WaitCause::Connections { max: 1, slowed: None }).await;

    world.suspend(true).await;
    for id in [retried, in_line] {
        assert_eq!(cause(&world, id).await, WaitCause::AccountSuspended);
    }
    assert_eq!(cause(&world, by_hand).await, WaitCause::Held);
    let waiting = world.world.worker.count_held(Some(world.account)).await.unwrap();
    assert_eq!(waiting.recipients, 4);
    // A running attempt finishes.
    world.sink.go_on();
    world.wait(asked, |e| e.recipients[0].state == RecipientState::Deferred).await;
    world.world.clock.advance(LATER);
    others_mail_goes(&mut world, &["a@dest.example", "b@slow.example"]).await;
    for (id, tried) in [(retried, 1), (asked, 1), (in_line, 0)] {
        assert_eq!(cause(&world, id).await, WaitCause::AccountSuspended);
        assert_eq!(attempts(&world, id).await, tried);
    }
    // An operator's retry of one email does not lift the suspension.
    world.world.worker.command_email(retried, &QueueCommand::Retry).await.unwrap();
    assert_eq!(cause(&world, retried).await, WaitCause::AccountSuspended);

    world.suspend(false).await;
    for id in [retried, asked, in_line] {
        delivered(&world, id).await;
    }
    assert_eq!((cause(&world, by_hand).await, attempts(&world, by_hand).await), (WaitCause::Held, 1));
    world.world.worker.command_email(by_hand, &QueueCommand::Release).await.unwrap();
    delivered(&world, by_hand).await;
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn mail_of_a_suspended_account_expires() {
    let world = TestWorld::start().await;
    let id = deferred(&world, "late@dest.example").await;
    world.suspend(true).await;
    let world = world.restart("").await;
    assert_eq!(cause(&world, id).await, WaitCause::AccountSuspended, "after a restart, too");
    world.world.clock.advance(Duration::from_secs(49 * 3_600));
    world.suspend(false).await;
    let email = world.wait(id, |e| e.recipients[0].state.is_terminal()).await;
    assert_eq!(email.recipients[0].last_event.0, EventKind::Bounced);
    assert_eq!((email.recipients[0].attempts, world.sink.taken().len()), (1, 0), "no host was contacted");
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_account_suspension_applies_on_the_other_node() {
    let server = Server::start(&[]);
    let [one, two] = nodes(&server, |_, _| {}).await;
    one.sink.script("other-node@dest.example", GREY);
    let id = two.relay(&["other-node@dest.example"], "later").await;
    two.wait(id, |e| e.recipients[0].state == RecipientState::Deferred).await;
    one.suspend(true).await;
    until_cause(&two, id, WaitCause::AccountSuspended).await;
    one.suspend(false).await;
    one.world.clock.advance(LATER);
    two.world.clock.advance(LATER);
    delivered(&two, id).await;
    end([one, two]).await;
}

/// Backs up a store with a waiting email, delivers that email, then continues with the restored backup.
async fn restored(send: bool) -> (TestWorld, EmailId) {
    let world = TestWorld::start().await;
    let id = deferred(&world, "again@dest.example").await;
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("backup");
    world.world.store.backup(&file, |_| {}).await.unwrap();
    world.world.clock.advance(LATER);
    delivered(&world, id).await;
    assert_eq!(world.sink.taken().len(), 1);
    let mut config = world.config();
    config.data_dir = directory.path().to_owned();
    restore(&file, &store_options(&config), send).unwrap();
    let world = world.move_to(directory).await;
    world.world.clock.advance(LATER);
    (world, id)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_restored_store_sends_nothing_until_the_hold_is_lifted() {
    let (world, id) = restored(false).await;
    assert_eq!(cause(&world, id).await, WaitCause::QueueHeld);
    let new = world.relay(&["new@dest.example"], "accepted all the same").await;
    // The hold survives restarts.
    let world = world.restart("").await;
    world.world.clock.advance(LATER);
    for id in [id, new] {
        assert_eq!(cause(&world, id).await, WaitCause::QueueHeld);
    }
    let waiting = world.world.worker.count_held(None).await.unwrap();
    assert_eq!(waiting.recipients, 2);
    assert_eq!(waiting.oldest, Some(world.email(id).await.email.created_at));
    assert_eq!(world.sink.taken().len(), 1, "nothing was sent again");
    assert!(world.world.worker.lift_queue_hold().await.unwrap().is_some());
    for id in [id, new] {
        delivered(&world, id).await;
    }
    assert_eq!(world.sink.taken().len(), 3);
    let world = world.restart("").await;
    assert_eq!(world.world.worker.queue_hold(), None, "lifting is permanent");
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_store_restored_with_send_sends_at_once() {
    let (world, id) = restored(true).await;
    delivered(&world, id).await;
    world.end().await;
}
