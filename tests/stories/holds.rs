//! Mail is held: an account's that is suspended, and all of it where the store was restored from a backup.

use std::time::Duration;

use mail::account::Plan;
use mail::destination::{Destination, PaceOverride};
use mail::event::EventKind;
use mail::id::EmailId;
use mail::recipient::RecipientState;
use postrider::cli::admin::restore;
use postrider::world::store_options;
use queue::domains::NewDomain;
use queue::operate::WaitCause;
use queue::order::QueueCommand;
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

/// Returns when an email waits for this.
async fn until_cause(world: &TestWorld, id: EmailId, wanted: WaitCause) {
    let seen = async {
        while cause(world, id).await != wanted {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(PATIENCE, seen).await.expect("it waits for something else");
}

/// An email that was tried once, and is to be tried again.
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

/// Somebody else's mail goes to these recipients, and arrives: what would go by now has gone.
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
async fn a_suspended_accounts_mail_is_held_until_that_is_lifted() {
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
    // What is being tried ends with its attempt.
    world.sink.go_on();
    world.wait(asked, |e| e.recipients[0].state == RecipientState::Deferred).await;
    world.world.clock.advance(LATER);
    others_mail_goes(&mut world, &["a@dest.example", "b@slow.example"]).await;
    for (id, tried) in [(retried, 1), (asked, 1), (in_line, 0)] {
        assert_eq!(cause(&world, id).await, WaitCause::AccountSuspended);
        assert_eq!(attempts(&world, id).await, tried);
    }
    // The operator's word about one email does not undo the suspension.
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
async fn what_expires_while_its_account_is_suspended_is_ended() {
    let world = TestWorld::start().await;
    let id = deferred(&world, "late@dest.example").await;
    world.suspend(true).await;
    let world = world.restart("").await;
    assert_eq!(cause(&world, id).await, WaitCause::AccountSuspended, "after a restart, too");
    world.world.clock.advance(Duration::from_secs(49 * 3_600));
    world.suspend(false).await;
    let email = world.wait(id, |e| e.recipients[0].state.is_terminal()).await;
    assert_eq!(email.recipients[0].last_event.0, EventKind::Bounced);
    assert_eq!((email.recipients[0].attempts, world.sink.taken().len()), (1, 0), "nobody was asked");
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_suspension_is_heeded_by_the_other_node() {
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

/// Backs up a world in which an email waits, has it delivered, and goes on with the backup in the place of the store.
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
async fn a_restored_store_sends_nothing_before_it_is_told_to() {
    let (world, id) = restored(false).await;
    assert_eq!(cause(&world, id).await, WaitCause::QueueHeld);
    let new = world.relay(&["new@dest.example"], "accepted all the same").await;
    // Over restarts.
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
    assert_eq!(world.world.worker.queue_hold(), None, "it is lifted for good");
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_restored_store_sends_at_once_where_that_was_said() {
    let (world, id) = restored(true).await;
    delivered(&world, id).await;
    world.end().await;
}
