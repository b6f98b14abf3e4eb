//! Source pools: mail of some accounts is sent from addresses of their own. New addresses are warmed up: mail over the
//! daily limit waits, or is sent from another pool.

use std::time::Duration;

use model::id::EmailId;
use model::pool::WarmUpOverride;
use model::recipient::RecipientState;
use model::slug::PoolName;
use queue::admin::queue_admin::WaitCause;
use serde_json::json;

use crate::deadlines::code_for;
use crate::world::{TestWorld, ZONE};

const TWO: &str = "source_addresses = [\"127.0.0.1\"]\n\
    [[delivery.pools]]\nname = \"paid\"\naddresses = [\"127.0.0.21\"]\nplans = [\"dedicated\"]\n\
    hostname = \"out2.postrider.example\"\n\
    [[delivery.pools]]\nname = \"theirs\"\naddresses = [\"127.0.0.31\", \"127.0.0.32\"]\n";
/// A warm-up with its start in the future counts as its first day: 48 messages a day, two an hour.
const WARMING: &str = "[[delivery.pools]]\nname = \"new\"\naddresses = [\"127.0.0.41\"]\nplans = [\"dedicated\"]\n\
    warm_up = \"2400-01-01\"\nwarm_up_messages = [48, 480]\n";

fn pool(name: &str) -> PoolName {
    name.parse().unwrap()
}

async fn delivered(world: &TestWorld, id: EmailId) {
    world.wait(id, |e| e.recipients[0].state == RecipientState::Delivered).await;
}

/// Source addresses of the received messages, ordered by recipient.
fn sources(world: &TestWorld) -> Vec<String> {
    let mut received = world.sink.received();
    received.sort_by(|one, other| one.recipient.cmp(&other.recipient));
    received.iter().map(|received| received.from.to_string()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn mail_leaves_from_the_pool_of_the_plan_or_of_the_account() {
    let world = TestWorld::start_with(TWO).await;
    let queue = &world.server.queue;
    let first = world.relay(&["1@dest.example"], "by plan").await;
    delivered(&world, first).await;
    let attempts = store::attempt::list(&world.server.store, world.account, first, 10).await.unwrap();
    assert_eq!(attempts[0].source.map(|ip| ip.to_string()).as_deref(), Some("127.0.0.21"));
    assert_eq!(world.sink.received()[0].helo, "out2.postrider.example");

    queue.delivery.queues.assign_pool(world.account, Some(pool("theirs"))).await.unwrap();
    assert!(queue.delivery.queues.assign_pool(world.account, Some(pool("nobodys"))).await.is_err());
    delivered(&world, world.relay(&["2@dest.example"], "by order").await).await;
    assert!(sources(&world)[1].starts_with("127.0.0.3"), "{:?}", sources(&world));
    assert_eq!(world.sink.received()[1].helo, "out.postrider.example");
    assert_eq!(queue.delivery.queues.accounts_by_pool()[&pool("theirs")], [world.account]);

    let world = world.restart(TWO).await;
    delivered(&world, world.relay(&["3@dest.example"], "still by order").await).await;
    assert!(sources(&world)[2].starts_with("127.0.0.3"), "{:?}", sources(&world));
    world.server.queue.delivery.queues.assign_pool(world.account, None).await.unwrap();
    delivered(&world, world.relay(&["4@dest.example"], "by plan again").await).await;
    assert_eq!(sources(&world)[3], "127.0.0.21");
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_warm_up_limits_mail_and_explains_the_wait() {
    let world = TestWorld::start_with(WARMING).await;
    let queue = &world.server.queue;
    delivered(&world, world.relay(&["1@dest.example"], "the first").await).await;
    let second = world.relay(&["2@dest.example"], "waits").await;
    delivered(&world, world.relay(&["3@other.example"], "another provider").await).await;

    let now = world.server.clock.now();
    let waiting = queue.delivery.admin.trace_email(second).await.unwrap().waits.remove(0);
    assert_eq!(waiting.cause, WaitCause::WarmUp { pool: pool("new"), per_day: 48 }, "{}", waiting.cause);
    let wait = waiting.until.unwrap().duration_since(now).as_secs();
    assert!((1_700..=1_800).contains(&wait), "{wait}");
    let status = queue.delivery.queues.pool_statuses().into_iter().find(|p| p.source.pool == pool("new")).unwrap();
    let warm_up = status.warm_up.unwrap();
    assert_eq!((warm_up.day, warm_up.days, warm_up.per_day), (1, 2, 48));
    assert_eq!(warm_up.used_up[0].0, "dest.example");

    world.server.clock.advance(Duration::from_secs(1_801));
    delivered(&world, second).await;
    let third = world.relay(&["4@dest.example"], "waits, too").await;
    queue.delivery.queues.warm_up_pool(pool("new"), Some(WarmUpOverride::Over)).await.unwrap();
    delivered(&world, third).await;
    assert_eq!(sources(&world), ["127.0.0.41"; 4]);
    let email = world.email(third).await;
    assert_eq!(email.recipients[0].attempts, 1, "waiting is no attempt");
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn mail_over_the_warm_up_limit_spills_over_to_another_pool() {
    let pools = format!("source_addresses = [\"127.0.0.11\"]\n{WARMING}spill_over = \"default\"\n");
    let world = TestWorld::start_with(&pools).await;
    for n in 1..=4 {
        delivered(&world, world.relay(&[&format!("{n}@dest.example")], "some").await).await;
    }
    assert_eq!(sources(&world), ["127.0.0.41", "127.0.0.11", "127.0.0.11", "127.0.0.11"]);
    world.server.clock.advance(Duration::from_secs(1_801));
    delivered(&world, world.relay(&["5@dest.example"], "half an hour later").await).await;
    assert_eq!(sources(&world)[4], "127.0.0.41");
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn mail_waiting_for_a_warm_up_moves_to_a_newly_assigned_pool() {
    let pools = format!("{WARMING}[[delivery.pools]]\nname = \"theirs\"\naddresses = [\"127.0.0.31\"]\n");
    let world = TestWorld::start_with(&pools).await;
    delivered(&world, world.relay(&["1@dest.example"], "the first").await).await;
    let second = world.relay(&["2@dest.example"], "waits").await;
    world.server.queue.delivery.queues.assign_pool(world.account, Some(pool("theirs"))).await.unwrap();
    delivered(&world, second).await;
    assert_eq!(sources(&world), ["127.0.0.41", "127.0.0.31"]);
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn expiring_mail_is_sent_first_during_a_warm_up() {
    let world = TestWorld::start_with(WARMING).await;
    let mut zone = ZONE.to_owned();
    for domain in ["one", "two", "three", "four"] {
        let host = format!("{domain}.dest.example");
        zone += &format!("{domain}.example. MX 10 {host}.\n{host}. A 127.0.0.1\n");
    }
    world.names.set(&zone);
    delivered(&world, world.relay(&["1@dest.example"], "the first").await).await;
    let mut patient = Vec::new();
    for domain in ["one", "two", "three"] {
        patient.push(world.relay(&[&format!("a@{domain}.example")], "has time").await);
    }
    let code = code_for(&world, "a@four.example", json!({"expires_in": 7_200})).await;
    let queue = &world.server.queue;
    for id in patient.iter().chain([&code]) {
        let waiting = queue.delivery.admin.trace_email(*id).await.unwrap().waits.remove(0);
        assert_eq!(waiting.cause, WaitCause::WarmUp { pool: pool("new"), per_day: 48 }, "{}", waiting.cause);
    }
    world.server.clock.advance(Duration::from_secs(1_801));
    delivered(&world, code).await;
    assert_eq!(world.sink.received().len(), 2, "the expiring email is sent first");
    for count in 3..=5 {
        world.server.clock.advance(Duration::from_secs(1_801));
        world.sink.wait_for(count).await;
    }
    for id in patient {
        delivered(&world, id).await;
    }
    world.end().await;
}
