//! Holds: the mail of a suspended account, and the whole queue after a restore from a backup.

use std::process::Command;
use std::time::Duration;

use accounts::domains::NewDomain;
use model::account::Plan;
use model::destination::{Destination, PaceOverride};
use model::event::EventKind;
use model::id::EmailId;
use model::recipient::RecipientState;
use postrider::cli::admin::restore;
use postrider::services::store_options;
use postrider::{admin, serve};
use queue::admin::queue_admin::WaitCause;
use queue::admin::queue_command::QueueCommand;
use serde_json::{Value, json};

use crate::database::Server;
use crate::two_nodes::{end_nodes, nodes};
use crate::world::sink::Behaviour;
use crate::world::{PATIENCE, TestWorld};

const LATER: Duration = Duration::from_secs(600);
const GREY: &[Behaviour] = &[Behaviour::AtRcpt("451 4.7.1 greylisted")];

async fn cause(world: &TestWorld, id: EmailId) -> WaitCause {
    world.server.queue.delivery.admin.trace_email(id).await.unwrap().waits.remove(0).cause
}

/// Waits until an email waits for this cause.
async fn wait_for_cause(world: &TestWorld, id: EmailId, expected: WaitCause) {
    let poll = async {
        while cause(world, id).await != expected {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(PATIENCE, poll).await.expect("the email waits for another cause");
}

/// An email that was tried once and is due for a retry.
async fn submit_deferred(world: &TestWorld, to: &str) -> EmailId {
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
async fn deliver_mail_of_another_account(world: &mut TestWorld, to: &[&str]) {
    let (provisioning, name) = (&world.server.provisioning, "else.example".parse().unwrap());
    let other =
        provisioning.create_account("owner@else.example".parse().unwrap(), Plan::Dedicated, true).await.unwrap();
    let domains = &world.server.accounts.domains;
    domains.create(other.account.id, NewDomain::with_name(name), None).await.unwrap();
    domains.force_verify(&"else.example".parse().unwrap()).await.unwrap();
    let own_api_key = std::mem::replace(&mut world.api_key, other.api_key);
    let received_before = world.sink.received().len();
    for to in to {
        let mail = json!({"from": "a@else.example", "to": to, "subject": "s", "text": "t"});
        let (status, response) = world.call("POST", "/emails", &mail.to_string()).await;
        assert_eq!(status, 200, "{response}");
    }
    world.api_key = own_api_key;
    let received = world.sink.wait_for(received_before + to.len()).await;
    assert!(received[received_before..].iter().all(|received| to.contains(&received.recipient.as_str())));
}

#[tokio::test(flavor = "multi_thread")]
async fn mail_of_a_suspended_account_is_held_until_the_suspension_is_lifted() {
    let mut world = TestWorld::start().await;
    let host = Destination::MailHost("slow.example".parse().unwrap());
    let single_connection = PaceOverride { connections_max: Some(1), messages_per_second: None };
    world
        .server
        .queue
        .delivery
        .queues
        .change_override(&host, |overrides| overrides.pace = single_connection)
        .await
        .unwrap();
    let retried = submit_deferred(&world, "retried@dest.example").await;
    let by_hand = submit_deferred(&world, "by-hand@dest.example").await;
    world.server.queue.delivery.admin.command_email(by_hand, &QueueCommand::Hold).await.unwrap();
    world.sink.script("asked@slow.example", &[Behaviour::AtRcptLater("451 4.7.1 later")]);
    let in_attempt = world.relay(&["asked@slow.example"], "being tried").await;
    world.sink.pending_reply().await;
    let in_line = world.relay(&["in-line@slow.example"], "in memory").await;
    wait_for_cause(&world, in_line, WaitCause::Connections { max: 1, slowed: None }).await;

    world.suspend(true).await;
    for id in [retried, in_line] {
        assert_eq!(cause(&world, id).await, WaitCause::AccountSuspended);
    }
    assert_eq!(cause(&world, by_hand).await, WaitCause::Held);
    let waiting = world.server.queue.delivery.queues.count_held_mail(Some(world.account)).await.unwrap();
    assert_eq!(waiting.recipients, 4);
    // A running attempt finishes.
    world.sink.release_reply();
    world.wait(in_attempt, |e| e.recipients[0].state == RecipientState::Deferred).await;
    world.server.clock.advance(LATER);
    deliver_mail_of_another_account(&mut world, &["a@dest.example", "b@slow.example"]).await;
    for (id, attempt_count) in [(retried, 1), (in_attempt, 1), (in_line, 0)] {
        assert_eq!(cause(&world, id).await, WaitCause::AccountSuspended);
        assert_eq!(attempts(&world, id).await, attempt_count);
    }
    // An operator's retry of one email does not lift the suspension.
    world.server.queue.delivery.admin.command_email(retried, &QueueCommand::Retry).await.unwrap();
    assert_eq!(cause(&world, retried).await, WaitCause::AccountSuspended);

    world.suspend(false).await;
    for id in [retried, in_attempt, in_line] {
        delivered(&world, id).await;
    }
    assert_eq!((cause(&world, by_hand).await, attempts(&world, by_hand).await), (WaitCause::Held, 1));
    world.server.queue.delivery.admin.command_email(by_hand, &QueueCommand::Release).await.unwrap();
    delivered(&world, by_hand).await;
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn mail_of_a_suspended_account_expires() {
    let world = TestWorld::start().await;
    let id = submit_deferred(&world, "late@dest.example").await;
    world.suspend(true).await;
    let world = world.restart("").await;
    assert_eq!(cause(&world, id).await, WaitCause::AccountSuspended, "after a restart, too");
    world.server.clock.advance(Duration::from_secs(49 * 3_600));
    world.suspend(false).await;
    let email = world.wait(id, |e| e.recipients[0].state.is_terminal()).await;
    assert_eq!(email.recipients[0].last_event.0, EventKind::Bounced);
    assert_eq!((email.recipients[0].attempts, world.sink.received().len()), (1, 0), "no host was contacted");
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_account_suspension_applies_on_the_other_node() {
    let server = Server::start(&[]);
    let [first, second] = nodes(&server, |_, _| {}).await;
    first.sink.script("other-node@dest.example", GREY);
    let id = second.relay(&["other-node@dest.example"], "later").await;
    second.wait(id, |e| e.recipients[0].state == RecipientState::Deferred).await;
    first.suspend(true).await;
    wait_for_cause(&second, id, WaitCause::AccountSuspended).await;
    first.suspend(false).await;
    first.server.clock.advance(LATER);
    second.server.clock.advance(LATER);
    delivered(&second, id).await;
    end_nodes([first, second]).await;
}

/// Backs up a store with a waiting email, delivers that email, then continues with the restored backup.
async fn restore_store(send: bool) -> (TestWorld, EmailId) {
    let world = TestWorld::start().await;
    let id = submit_deferred(&world, "again@dest.example").await;
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("backup");
    world.server.store.backup(&file, |_| {}).await.unwrap();
    world.server.clock.advance(LATER);
    delivered(&world, id).await;
    assert_eq!(world.sink.received().len(), 1);
    let mut config = world.config();
    config.data_dir = directory.path().to_owned();
    restore(&file, &store_options(&config), send).unwrap();
    let world = world.restart_in_directory(directory).await;
    world.server.clock.advance(LATER);
    (world, id)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_restored_store_sends_nothing_until_the_hold_is_lifted() {
    let (world, id) = restore_store(false).await;
    assert_eq!(cause(&world, id).await, WaitCause::QueueHeld);
    let new = world.relay(&["new@dest.example"], "accepted all the same").await;
    // The hold survives restarts.
    let world = world.restart("").await;
    world.server.clock.advance(LATER);
    for id in [id, new] {
        assert_eq!(cause(&world, id).await, WaitCause::QueueHeld);
    }
    let waiting = world.server.queue.delivery.queues.count_held_mail(None).await.unwrap();
    assert_eq!(waiting.recipients, 2);
    assert_eq!(waiting.oldest, Some(world.email(id).await.email.created_at));
    assert_eq!(world.sink.received().len(), 1, "nothing was sent again");
    assert!(world.server.queue.delivery.queues.lift_queue_hold().await.unwrap().is_some());
    for id in [id, new] {
        delivered(&world, id).await;
    }
    assert_eq!(world.sink.received().len(), 3);
    let world = world.restart("").await;
    assert_eq!(world.server.queue.delivery.queues.queue_hold(), None, "lifting is permanent");
    world.end().await;
}

/// Runs `postrider admin` on this server.
async fn run_admin(world: &TestWorld, line: &str) -> Value {
    let mut command = Command::new(env!("CARGO_BIN_EXE_postrider"));
    command.args(["admin", "--json"]).args(line.split(' ')).arg("--data-dir").arg(world.config().data_dir);
    let output = tokio::task::spawn_blocking(move || command.output().unwrap()).await.unwrap();
    assert!(output.status.success(), "{line}: {output:?}");
    serde_json::from_slice(&output.stdout).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn only_a_release_of_everything_lifts_the_hold() {
    let (world, id) = restore_store(false).await;
    let config = world.config();
    let permissions = serve::admin_permissions(&config, &world.server, world.listeners(), None);
    let (socket, stop) = (admin::bind(&config.data_dir).unwrap(), world.listeners().stop.clone());
    world.listeners().spawn(admin::serve(socket, world.server.clone(), permissions, stop));
    for filter in ["--before 2199-01-01T00:00:00Z", "--older 1m", "--to dest.example"] {
        run_admin(&world, &format!("queue release {filter}")).await;
        assert_eq!(cause(&world, id).await, WaitCause::QueueHeld, "{filter}");
    }
    let released = run_admin(&world, "queue release --all").await;
    assert_eq!((&released["recipients"], &released["has_more"]), (&json!(1), &json!(false)));
    delivered(&world, id).await;
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_store_restored_with_send_sends_at_once() {
    let (world, id) = restore_store(true).await;
    delivered(&world, id).await;
    world.end().await;
}
