//! Reply rules: a destination's reply suspends, slows down or reclassifies. The site waits, `trace` shows why, and
//! other sites are not affected.

use std::time::Duration;

use model::destination::{Destination, PaceOverride};
use model::recipient::RecipientState;
use model::suppression::SuppressionReason;
use postrider::reload;
use queue::admin::queue_admin::WaitCause;
use queue::admin::queue_command::QueueCommand;

use crate::world::TestWorld;
use crate::world::sink::Behaviour;

const PAUSE: &str = "[[delivery.replies]]\nprovider = \"dest.example\"\ncode = \"4.7.28\"\naction = \"pause\"\n";
const TOO_MUCH: &str = "421 4.7.28 an unusual rate of mail from you";

#[tokio::test(flavor = "multi_thread")]
async fn a_paused_destination_shows_its_reason_and_resumes() {
    let world = TestWorld::start_with(PAUSE).await;
    let queue = &world.server.queue;
    world.sink.script("first@dest.example", &[Behaviour::AtRcpt(TOO_MUCH)]);
    let first = world.relay(&["first@dest.example"], "too much").await;
    world.wait(first, |e| e.recipients[0].state == RecipientState::Deferred).await;
    let mut waiting = Vec::new();
    for n in 0..5 {
        waiting.push(world.relay(&["next@dest.example"], &format!("number {n}")).await);
    }
    let other = world.relay(&["one@other.example"], "not their business").await;
    world.wait(other, |e| e.recipients[0].state == RecipientState::Delivered).await;

    let now = world.server.clock.now();
    for id in &waiting {
        let trace = queue.delivery.admin.trace_email(*id).await.unwrap();
        let description = trace.waits[0].cause.to_string();
        assert!(description.contains("paused until"), "{description}");
        assert!(description.ends_with("after the reply: 421 4.7.28 an unusual rate of mail from you"), "{description}");
        let wait = trace.waits[0].until.unwrap().duration_since(now).as_secs();
        assert!((800..=900).contains(&wait), "{wait}");
    }
    let statuses = queue.delivery.queues.ready_queue_statuses();
    let suspended: Vec<_> = statuses.iter().filter(|site| site.throttle.backoff_description(now).is_some()).collect();
    assert!(matches!(suspended.as_slice(), [site] if site.name == "10 mx.dest.example"), "{statuses:#?}");
    assert_eq!(world.sink.received().len(), 1, "no attempt during the pause");

    world.server.clock.advance(Duration::from_secs(16 * 60));
    world.wait(first, |e| e.recipients[0].state == RecipientState::Delivered).await;
    for id in waiting {
        let email = world.wait(id, |e| e.recipients[0].state == RecipientState::Delivered).await;
        assert_eq!(email.recipients[0].attempts, 1, "waiting is no attempt");
    }
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_retry_command_ends_a_pause_after_its_rule_was_removed() {
    let world = TestWorld::start().await;
    let changes = world.reload(PAUSE);
    assert_eq!(changes, reload::ConfigChanges { applied: vec!["delivery.replies"], needs_restart: Vec::new() });
    world.sink.script("first@dest.example", &[Behaviour::AtRcpt(TOO_MUCH), Behaviour::AtRcpt(TOO_MUCH)]);
    let first = world.relay(&["first@dest.example"], "too much").await;
    world.wait(first, |e| e.recipients[0].state == RecipientState::Deferred).await;
    let next = world.relay(&["next@dest.example"], "waits").await;
    world.reload("");
    world.server.queue.delivery.admin.command_email(next, &QueueCommand::Retry).await.unwrap();
    world.wait(next, |e| e.recipients[0].state == RecipientState::Delivered).await;
    world.server.queue.delivery.admin.command_email(first, &QueueCommand::Retry).await.unwrap();
    world.wait(first, |e| e.recipients[0].attempts == 2).await;
    let statuses = world.server.queue.delivery.queues.ready_queue_statuses();
    let now = world.server.clock.now();
    assert!(statuses.iter().all(|site| site.throttle.backoff_description(now).is_none()), "{statuses:#?}");
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn reply_rules_turn_permanent_into_temporary_and_back() {
    let rows = "[[delivery.replies]]\ntext = \"come back tomorrow\"\naction = \"temporary\"\n\
                [[delivery.replies]]\ntext = \"has left\"\naction = \"permanent\"\n\
                [[delivery.replies]]\ntext = \"less of it\"\naction = \"slow-down\"\n";
    let world = TestWorld::start_with(rows).await;
    world.sink.script("busy@dest.example", &[Behaviour::AtRcpt("550 5.7.1 Come back TOMORROW")]);
    let busy = world.relay(&["busy@dest.example"], "later").await;
    let email = world.wait(busy, |e| e.recipients[0].state == RecipientState::Deferred).await;
    assert_eq!(email.recipients[0].last_response.as_ref().unwrap().code, 550, "the reply is shown unchanged");

    world.sink.script("gone@other.example", &[Behaviour::AtRcpt("450 4.2.1 account disabled, she has left")]);
    let expired = world.relay(&["gone@other.example"], "never").await;
    world.wait(expired, |e| e.recipients[0].state == RecipientState::Bounced).await;
    let events = store::event::list(&world.server.store, world.account, expired, 10).await.unwrap();
    let bounce = &events.last().unwrap().detail["bounce"];
    assert_eq!((&bounce["type"], &bounce["category"]), (&"soft".into(), &"inactive".into()));
    let target = "gone@other.example".parse::<model::suppression::SuppressionTarget>().unwrap();
    let found = store::suppression::get(&world.server.store, world.account, &target).await.unwrap().unwrap();
    assert_eq!(found.suppression.reason, SuppressionReason::SoftBounce);
    assert!(found.suppression.expires_at.is_some(), "not permanent");

    world.sink.script("slow@slow.example", &[Behaviour::AtRcpt("450 4.2.0 less of it")]);
    let slow = world.relay(&["slow@slow.example"], "slowly").await;
    world.wait(slow, |e| e.recipients[0].state == RecipientState::Deferred).await;
    let statuses = world.server.queue.delivery.queues.ready_queue_statuses();
    let slowed: Vec<_> = statuses.iter().filter(|site| site.throttle.messages_per_second.is_some()).collect();
    assert!(matches!(slowed.as_slice(), [site] if site.name == "10 mx.slow.example"), "{statuses:#?}");

    world.server.clock.advance(Duration::from_secs(75));
    world.wait(busy, |e| e.recipients[0].state == RecipientState::Delivered).await;
    world.wait(slow, |e| e.recipients[0].state == RecipientState::Delivered).await;
    // The third message is the DSN about the bounce.
    world.sink.wait_for(3).await;
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refusal_in_the_greeting_suspends_the_host_at_once() {
    let rows = "[[delivery.replies]]\ntext = \"your address is blocked\"\naction = \"back-off\"\n";
    let world = TestWorld::start_with(rows).await;
    world.sink.script_greeting("554 5.7.1 your address is blocked for now");
    let first = world.relay(&["first@dest.example"], "too soon").await;
    let email = world.wait(first, |e| e.recipients[0].state == RecipientState::Deferred).await;
    assert_eq!(email.recipients[0].attempts, 1);
    let next = world.relay(&["next@dest.example"], "waits").await;
    let trace = world.server.queue.delivery.admin.trace_email(next).await.unwrap();
    assert!(trace.waits[0].cause.to_string().contains("in backoff until"), "{:?}", trace.waits);
    world.server.clock.advance(Duration::from_secs(75));
    for id in [first, next] {
        world.wait(id, |e| e.recipients[0].state == RecipientState::Delivered).await;
    }
    assert_eq!(world.email(next).await.recipients[0].attempts, 1);
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reply_of_one_host_applies_to_all_hosts_of_its_provider() {
    let world = TestWorld::start().await;
    world.names.set(
        "one.example MX 10 one-example.mail.protection.outlook.com.\n\
         two.example MX 10 two-example.mail.protection.outlook.com.\n\
         *.mail.protection.outlook.com A 127.0.0.1\n\
         other.example MX 10 mx.other.example.\nmx.other.example A 127.0.0.1\n",
    );
    let limited = "451 4.7.650 The mail server has been temporarily rate limited due to IP reputation.";
    world.sink.script("first@one.example", &[Behaviour::AtRcpt(limited)]);
    let first = world.relay(&["first@one.example"], "too much").await;
    world.wait(first, |e| e.recipients[0].state == RecipientState::Deferred).await;
    let next = world.relay(&["next@two.example"], "the same provider").await;
    let other = world.relay(&["one@other.example"], "not their business").await;
    world.wait(other, |e| e.recipients[0].state == RecipientState::Delivered).await;
    let waiting = world.server.queue.delivery.admin.trace_email(next).await.unwrap().waits.remove(0);
    assert!(waiting.cause.to_string().ends_with("rate limited due to IP reputation."), "{}", waiting.cause);
    assert_eq!(world.sink.received().len(), 1, "no other attempt");

    world.server.clock.advance(Duration::from_secs(75));
    world.wait(first, |e| e.recipients[0].state == RecipientState::Delivered).await;
    world.wait(next, |e| e.recipients[0].state == RecipientState::Delivered).await;
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pace_override_for_one_name_of_a_provider_survives_a_site_of_another_name() {
    let world = TestWorld::start().await;
    world.names.set(
        "one.example MX 10 one-example.mail.protection.outlook.com.\n\
         *.mail.protection.outlook.com A 127.0.0.1\n\
         two.example MX 10 two-example.k-v1.mx.microsoft.\n\
         *.k-v1.mx.microsoft A 127.0.0.1\n",
    );
    let queue = &world.server.queue;
    let hosts = Destination::MailHost("outlook.com".parse().unwrap());
    let pace = PaceOverride { connections_max: Some(1), messages_per_second: Some(0.001) };
    queue.delivery.queues.change_override(&hosts, |overrides| overrides.pace = pace).await.unwrap();
    for to in ["1@one.example", "2@two.example"] {
        let id = world.relay(&[to], "goes").await;
        world.wait(id, |e| e.recipients[0].state == RecipientState::Delivered).await;
    }
    let slow = world.relay(&["3@one.example"], "waits").await;
    let waiting = queue.delivery.admin.trace_email(slow).await.unwrap().waits.remove(0);
    assert_eq!(waiting.cause, WaitCause::Rate, "{}", waiting.cause);
    // A changed pace applies to mail that is already waiting.
    queue.delivery.queues.change_override(&hosts, |overrides| overrides.pace = PaceOverride::default()).await.unwrap();
    world.wait(slow, |e| e.recipients[0].state == RecipientState::Delivered).await;
    world.end().await;
}
