//! Queue administration: trace, top, hold, release, retry, drop, suspend, pace, reroute.

use std::time::Duration;

use model::destination::{Destination, OperatorSuspension, PaceOverride, RouteOverride};
use model::event::EventKind;
use model::id::EmailId;
use model::recipient::RecipientState;
use model::task_filter::TaskFilter;
use queue::admin::queue_admin::{BulkCommandHandle, CommandProgress, LimitingFactor, WaitCause};
use queue::admin::queue_command::QueueCommand;

use crate::world::sink::{Behaviour, Sink};
use crate::world::{PATIENCE, TestWorld};

#[tokio::test(flavor = "multi_thread")]
async fn hold_release_retry_and_drop() {
    let world = TestWorld::start().await;
    let queue = &world.server.queue;
    world.sink.script("grey@dest.example", &[Behaviour::AtRcpt("451 4.7.1 greylisted")]);
    let id = world.relay(&["grey@dest.example"], "later").await;
    world.wait(id, |e| e.recipients[0].state == RecipientState::Deferred).await;
    queue.delivery.admin.command_email(id, &QueueCommand::Hold).await.unwrap();
    let trace = queue.delivery.admin.trace_email(id).await.unwrap();
    assert!(trace.waits[0].cause == WaitCause::Held, "{:?}", trace.waits);
    queue.delivery.admin.command_email(id, &QueueCommand::Release).await.unwrap();
    let trace = queue.delivery.admin.trace_email(id).await.unwrap();
    assert!(trace.waits[0].until.is_some(), "{:?}", trace.waits);
    assert_eq!(queue.delivery.admin.command_email(id, &QueueCommand::Retry).await.unwrap(), 1);
    world.wait(id, |e| e.recipients[0].state == RecipientState::Delivered).await;
    assert!(
        queue.delivery.admin.command_email(id, &QueueCommand::Retry).await.is_err(),
        "nothing is left in the queue"
    );

    world.sink.script("drop@dest.example", &[Behaviour::AtRcpt("451 4.7.1 greylisted")]);
    let id = world.relay(&["drop@dest.example"], "never").await;
    world.wait(id, |e| e.recipients[0].state == RecipientState::Deferred).await;
    queue.delivery.admin.command_email(id, &QueueCommand::Drop).await.unwrap();
    let email = world.email(id).await;
    assert_eq!(email.recipients[0].state, RecipientState::Cancelled);

    world.sink.script("fail@dest.example", &[Behaviour::AtRcpt("451 4.7.1 greylisted")]);
    let id = world.relay(&["fail@dest.example"], "returned").await;
    world.wait(id, |e| e.recipients[0].state == RecipientState::Deferred).await;
    queue.delivery.admin.command_email(id, &QueueCommand::Hold).await.unwrap();
    queue.delivery.admin.command_email(id, &QueueCommand::Fail).await.unwrap();
    let email = world.email(id).await;
    assert_eq!(email.recipients[0].state, RecipientState::Failed);
    let trace = queue.delivery.admin.trace_email(id).await.unwrap();
    assert!(trace.waits.is_empty(), "{:?}", trace.waits);
    let failed = trace.events.iter().find(|event| event.kind == EventKind::Failed).unwrap();
    assert!(failed.detail.to_string().contains("gave up delivery"), "{failed:?}");
    assert!(queue.delivery.admin.command_email(id, &QueueCommand::Fail).await.is_err(), "nothing is left in the queue");
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn only_senders_by_smtp_get_a_bounce_message_for_ended_delivery() {
    let world = TestWorld::start().await;
    let queue = &world.server.queue;
    for name in ["api@dest.example", "smtp@dest.example"] {
        world.sink.script(name, &[Behaviour::AtRcpt("451 4.7.1 greylisted")]);
    }
    let body = r#"{"from": "ada@acme.example", "to": "api@dest.example", "subject": "Hello", "text": "Hello"}"#;
    let (status, sent) = world.call("POST", "/emails", body).await;
    assert!(status < 300, "{sent}");
    let by_api: EmailId = sent["id"].as_str().unwrap().parse().unwrap();
    let by_smtp = world.relay(&["smtp@dest.example"], "by SMTP").await;
    for id in [by_api, by_smtp] {
        world.wait(id, |e| e.recipients[0].state == RecipientState::Deferred).await;
        queue.delivery.admin.command_email(id, &QueueCommand::Fail).await.unwrap();
        let events = queue.delivery.admin.trace_email(id).await.unwrap().events;
        assert!(events.iter().any(|event| event.kind == EventKind::Failed), "{events:?}");
    }
    let reports = world.sink.wait_for(1).await;
    assert!(reports[0].content.contains("Final-Recipient: rfc822; smtp@dest.example"), "{:?}", reports[0].content);
    let emails = store::email::list(&world.server.store, world.account, None, 10).await.unwrap();
    assert_eq!(emails.len(), 3, "two emails and one report");
    world.end().await;
}

/// Waits until a bulk command has made this progress. Returns the number of changed recipients.
pub(crate) async fn wait_for_command_progress(
    handle: &BulkCommandHandle,
    condition: impl Fn(CommandProgress) -> bool,
) -> u64 {
    let waiting = async {
        loop {
            let moved = handle.wait_for_progress();
            let progress = handle.progress().await.unwrap();
            if condition(progress.clone()) {
                return progress.done;
            }
            moved.await;
        }
    };
    tokio::time::timeout(PATIENCE, waiting).await.expect("the command does not finish")
}

/// Waits until a bulk command is finished. Returns the number of changed recipients.
pub(crate) async fn wait_for_command(handle: BulkCommandHandle) -> u64 {
    wait_for_command_progress(&handle, |progress| progress.partitions_left == 0).await
}

/// Waits until an email's first recipient waits for this cause.
async fn wait_for_cause(world: &TestWorld, id: EmailId, expected: WaitCause) {
    let poll = async {
        loop {
            let waiting = world.server.queue.delivery.admin.trace_email(id).await.unwrap().waits;
            if waiting.first().is_some_and(|waiting| waiting.cause == expected) {
                return;
            }
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(PATIENCE, poll).await.expect("the email waits for another cause")
}

pub(crate) fn to(domain: &str) -> TaskFilter {
    TaskFilter { to: Some(domain.parse().unwrap()), ..TaskFilter::default() }
}

pub(crate) fn suspend(because: &str) -> impl Fn(&mut model::destination::DestinationOverrides) {
    let suspension =
        OperatorSuspension { since: jiff::Timestamp::UNIX_EPOCH, until: None, because: Some(because.to_owned()) };
    move |overrides| overrides.suspension = Some(suspension.clone())
}

#[tokio::test(flavor = "multi_thread")]
async fn bulk_commands_change_all_matching_recipients() {
    let world = TestWorld::start().await;
    let queue = &world.server.queue;
    let mut ids = Vec::new();
    for name in ["a@dest.example", "b@dest.example", "c@other.example"] {
        world.sink.script(name, &[Behaviour::AtRcpt("451 4.7.1 greylisted")]);
        let id = world.relay(&[name], "later").await;
        world.wait(id, |e| e.recipients[0].state == RecipientState::Deferred).await;
        ids.push(id);
    }
    assert_eq!(
        wait_for_command(queue.delivery.admin.command_matching(to("dest.example"), &QueueCommand::Hold).await.unwrap())
            .await,
        2
    );
    let cause = async |n: usize| queue.delivery.admin.trace_email(ids[n]).await.unwrap().waits[0].cause.clone();
    assert_eq!(cause(0).await, WaitCause::Held);
    assert_eq!(cause(2).await, WaitCause::Schedule { attempt: 2 });
    let top = queue.delivery.admin.top_destinations(10, |_| {}).await.unwrap();
    let longest = &top.destinations[0];
    assert_eq!((top.tasks, top.count, longest.tasks, longest.held), (3, 2, 2, 2));
    assert_eq!((longest.name.as_str(), longest.limit), ("10 mx.dest.example", LimitingFactor::Held));
    assert!(longest.last_reply.as_ref().unwrap().contains("greylisted"));
    assert_eq!(top.destinations[1].limit, LimitingFactor::Schedule);

    let held = TaskFilter { held: Some(true), ..TaskFilter::default() };
    assert_eq!(
        wait_for_command(queue.delivery.admin.command_matching(held.clone(), &QueueCommand::Release).await.unwrap())
            .await,
        2
    );
    assert_eq!(
        wait_for_command(queue.delivery.admin.command_matching(held, &QueueCommand::Drop).await.unwrap()).await,
        0
    );
    assert_eq!(
        wait_for_command(
            queue.delivery.admin.command_matching(to("dest.example"), &QueueCommand::Retry).await.unwrap()
        )
        .await,
        2
    );
    for id in &ids[..2] {
        world.wait(*id, |e| e.recipients[0].state == RecipientState::Delivered).await;
    }
    assert_eq!(
        wait_for_command(
            queue.delivery.admin.command_matching(TaskFilter::default(), &QueueCommand::Drop).await.unwrap()
        )
        .await,
        1
    );
    assert_eq!(world.email(ids[2]).await.recipients[0].state, RecipientState::Cancelled);
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_suspended_destination_waits_until_it_is_resumed() {
    let world = TestWorld::start().await;
    let queue = &world.server.queue;
    for destination in
        [Destination::Domain("dest.example".parse().unwrap()), Destination::MailHost("dest.example".parse().unwrap())]
    {
        queue.delivery.queues.change_override(&destination, suspend("they asked us to")).await.unwrap();
        let id = world.relay(&["a@dest.example"], "later").await;
        let other = world.relay(&["a@other.example"], "now").await;
        world.wait(other, |e| e.recipients[0].state == RecipientState::Delivered).await;
        let waiting = async {
            loop {
                let waiting = queue.delivery.admin.trace_email(id).await.unwrap().waits.remove(0);
                // Its mail hosts may still be looked up.
                if !matches!(waiting.cause, WaitCause::LookUp | WaitCause::Turn) {
                    return waiting;
                }
                tokio::task::yield_now().await;
            }
        };
        let waiting = tokio::time::timeout(PATIENCE, waiting).await.unwrap();
        let because = Some("they asked us to".to_owned());
        assert_eq!(waiting.cause, WaitCause::Suspended { destination: destination.clone(), because });
        assert_eq!(world.email(id).await.recipients[0].attempts, 0);
        queue.delivery.queues.change_override(&destination, |overrides| overrides.suspension = None).await.unwrap();
        world.wait(id, |e| e.recipients[0].state == RecipientState::Delivered).await;
        assert_eq!(queue.delivery.queues.list_overrides(), [], "a lifted suspension leaves no override");
    }
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn destination_overrides_survive_a_restart() {
    let world = TestWorld::start().await;
    let hosts = Destination::MailHost("dest.example".parse().unwrap());
    let pace = PaceOverride { connections_max: Some(1), messages_per_second: Some(0.5) };
    world.server.queue.delivery.queues.change_override(&hosts, |overrides| overrides.pace = pace).await.unwrap();
    let domain = Destination::Domain("other.example".parse().unwrap());
    world.server.queue.delivery.queues.change_override(&domain, suspend("for now")).await.unwrap();
    let id = world.relay(&["a@other.example"], "later").await;
    let ordered = world.server.queue.delivery.queues.list_overrides();
    let world = world.restart("").await;
    assert_eq!(world.server.queue.delivery.queues.list_overrides(), ordered);
    let first = world.relay(&["a@dest.example"], "at once").await;
    world.wait(first, |e| e.recipients[0].state == RecipientState::Delivered).await;
    let statuses = world.server.queue.delivery.queues.ready_queue_statuses();
    let site = statuses.iter().find(|site| site.name == "10 mx.dest.example").unwrap();
    assert_eq!(site.connections.max, 1);
    assert_eq!(world.email(id).await.recipients[0].attempts, 0);
    world.server.queue.delivery.queues.change_override(&domain, |overrides| overrides.suspension = None).await.unwrap();
    world.wait(id, |e| e.recipients[0].state == RecipientState::Delivered).await;
    world.end().await;
}

/// Name of the mail host that received the mail of this recipient.
async fn receiving_sink<'s>(recipient: &str, sinks: [(&'s str, &Sink); 2]) -> Option<&'s str> {
    let has_received = |sink: &Sink| sink.received().iter().any(|message| message.recipient == recipient);
    sinks.into_iter().find(|(_, sink)| has_received(sink)).map(|(name, _)| name)
}

#[tokio::test(flavor = "multi_thread")]
async fn smarthosts_by_domain_by_override_and_as_fail_over() {
    let relay = Sink::start().await;
    let smarthosts = format!(
        "[[delivery.smarthosts]]\nname = \"partner\"\nhosts = [\"{0}\"]\ndomains = [\"other.example\"]\n\
         [[delivery.smarthosts]]\nname = \"late\"\nhosts = [\"{0}\"]\ndomains = [\"dead.example\"]\n\
         when = \"fail-over\"\n",
        relay.address
    );
    let world = TestWorld::start_with(&smarthosts).await;
    let queue = &world.server.queue;
    let sinks = [("relay", &relay), ("mx", &world.sink)];
    let send = async |to: &str| {
        let id = world.relay(&[to], "on its way").await;
        world.wait(id, |e| e.recipients[0].state == RecipientState::Delivered).await;
        receiving_sink(to, sinks).await
    };
    assert_eq!(send("one@other.example").await, Some("relay"));
    assert_eq!(send("one@dest.example").await, Some("mx"));
    assert_eq!(send("one@dead.example").await, Some("relay"));

    let partner = || Some(RouteOverride::Smarthost("partner".parse().unwrap()));
    let dest = Destination::Domain("dest.example".parse().unwrap());
    let other = Destination::Domain("other.example".parse().unwrap());
    queue.delivery.queues.change_override(&dest, |overrides| overrides.route = partner()).await.unwrap();
    queue
        .delivery
        .queues
        .change_override(&other, |overrides| overrides.route = Some(RouteOverride::MailHosts))
        .await
        .unwrap();
    assert_eq!(send("two@dest.example").await, Some("relay"));
    assert_eq!(send("two@other.example").await, Some("mx"));
    let unknown = Some(RouteOverride::Smarthost("nobody".parse().unwrap()));
    assert!(
        queue.delivery.queues.change_override(&dest, |overrides| overrides.route.clone_from(&unknown)).await.is_err()
    );
    queue.delivery.queues.change_override(&dest, |overrides| overrides.route = None).await.unwrap();
    assert_eq!(send("three@dest.example").await, Some("mx"));

    world.sink.script("four@dest.example", &[Behaviour::AtRcpt("451 4.7.1 greylisted")]);
    let id = world.relay(&["four@dest.example"], "later").await;
    world.wait(id, |e| e.recipients[0].state == RecipientState::Deferred).await;
    assert_eq!(
        wait_for_command(
            queue.delivery.admin.command_matching(to("dest.example"), &QueueCommand::Reroute(partner())).await.unwrap()
        )
        .await,
        1
    );
    queue.delivery.admin.command_email(id, &QueueCommand::Retry).await.unwrap();
    world.wait(id, |e| e.recipients[0].state == RecipientState::Delivered).await;
    assert_eq!(receiving_sink("four@dest.example", sinks).await, Some("relay"));
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn domains_behind_one_provider_share_its_connections() {
    let smarthosts = "[[delivery.pace]]\nmail_host = \"example\"\nconnections_max = 1\n";
    let world = TestWorld::start_with(smarthosts).await;
    world.sink.script("slow@dest.example", &[Behaviour::StallAfterDot]);
    let slow = world.relay(&["slow@dest.example"], "takes its time").await;
    let queue = &world.server.queue;
    wait_for_cause(&world, slow, WaitCause::Reply).await;
    // Another domain with other hosts of the same provider.
    let other = world.relay(&["a@other.example"], "waits for it").await;
    wait_for_cause(&world, other, WaitCause::Connections { max: 1, slowed: None }).await;
    let hosts = Destination::MailHost("example".parse().unwrap());
    let pace = PaceOverride { connections_max: Some(2), messages_per_second: None };
    queue.delivery.queues.change_override(&hosts, |overrides| overrides.pace = pace).await.unwrap();
    world.wait(other, |e| e.recipients[0].state == RecipientState::Delivered).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_waiting_email_is_explained_after_its_dns_records_expired() {
    let world = TestWorld::start_with("[[delivery.pace]]\nconnections_max = 1\n").await;
    world.sink.script("slow@dest.example", &[Behaviour::StallAfterDot]);
    world.relay(&["slow@dest.example"], "takes its time").await;
    // The connection is busy with this message; later mail waits.
    world.sink.wait_for(1).await;
    let waiting_email = world.relay(&["a@dest.example"], "waits for it").await;
    let busy = WaitCause::Connections { max: 1, slowed: None };
    wait_for_cause(&world, waiting_email, busy.clone()).await;
    // The zone's TTL is one minute.
    world.server.clock.advance(Duration::from_secs(120));
    let queue = &world.server.queue;
    let waiting = queue.delivery.admin.trace_email(waiting_email).await.unwrap().waits.remove(0);
    assert_eq!((waiting.cause, waiting.position), (busy, Some(0)));
    assert_eq!(waiting.destination.as_deref(), Some("10 mx.dest.example"));
    let top = queue.delivery.admin.top_destinations(10, |_| {}).await.unwrap();
    let longest = &top.destinations[0];
    assert_eq!((longest.name.as_str(), longest.limit), ("10 mx.dest.example", LimitingFactor::Connections));
    assert_eq!((longest.tasks, longest.connections), (2, 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bulk_command_waits_for_a_running_attempt_and_is_applied_once() {
    let relay = Sink::start().await;
    let world =
        TestWorld::start_with(&format!("[[delivery.smarthosts]]\nname = \"partner\"\nhosts = \"{}\"\n", relay.address))
            .await;
    let queue = &world.server.queue;
    world.sink.script("c@other.example", &[Behaviour::AtRcpt("451 4.7.1 greylisted")]);
    let other = world.relay(&["c@other.example"], "another").await;
    world.wait(other, |e| e.recipients[0].state == RecipientState::Deferred).await;
    let partner = Some(RouteOverride::Smarthost("partner".parse().unwrap()));
    for order in [QueueCommand::Hold, QueueCommand::Reroute(partner), QueueCommand::Drop] {
        let address = "a@dest.example";
        world.sink.script(address, &[Behaviour::AtRcptLater("451 4.7.1 greylisted")]);
        let id = world.relay(&[address], "being tried").await;
        wait_for_cause(&world, id, WaitCause::Reply).await;
        let handle = queue.delivery.admin.command_matching(to("dest.example"), &order).await.unwrap();
        assert_eq!(wait_for_command_progress(&handle, |progress| progress.busy == 1).await, 0, "{order:?}");
        // A command about other recipients does not wait for this attempt.
        assert_eq!(
            wait_for_command(
                queue.delivery.admin.command_matching(to("other.example"), &QueueCommand::Hold).await.unwrap()
            )
            .await,
            1
        );
        assert_eq!(handle.progress().await.unwrap().busy, 1);
        world.sink.release_reply();
        assert_eq!(
            wait_for_command_progress(&handle, |progress| (progress.partitions_left, progress.busy) == (0, 0)).await,
            1,
            "{order:?}"
        );

        let trace_now = async || queue.delivery.admin.trace_email(id).await.unwrap();
        let is_done = |trace: &queue::admin::queue_admin::EmailTrace| match (&order, trace.waits.first()) {
            (QueueCommand::Hold, Some(waiting)) => waiting.cause == WaitCause::Held,
            (QueueCommand::Reroute(_), Some(waiting)) => waiting.destination.as_ref().unwrap().contains("partner"),
            (_, waiting) => waiting.is_none(),
        };
        let trace = trace_now().await;
        assert!(is_done(&trace), "{order:?} {:?}", trace.waits);
        assert_eq!((trace.attempts.len(), trace.email.recipients[0].attempts), (1, 1));
        if order == QueueCommand::Drop {
            let ends = trace.events.iter().filter(|event| event.kind == EventKind::Cancelled).count();
            assert_eq!((trace.email.recipients[0].state, ends), (RecipientState::Cancelled, 1));
            continue;
        }
        // A later command takes effect: the first one is not carried out again.
        let back = if order == QueueCommand::Hold { QueueCommand::Release } else { QueueCommand::Reroute(None) };
        queue.delivery.admin.command_email(id, &back).await.unwrap();
        assert_eq!(
            wait_for_command(
                queue.delivery.admin.command_matching(to("other.example"), &QueueCommand::Hold).await.unwrap()
            )
            .await,
            1
        );
        assert_eq!(handle.progress().await.unwrap().done, 1);
        let trace = trace_now().await;
        assert!(!is_done(&trace), "{order:?} {:?}", trace.waits);
        queue.delivery.admin.command_email(id, &QueueCommand::Drop).await.unwrap();
    }
    world.end().await;
}
