//! TLS reporting (RFC 8460): sessions are counted by day and reported once to the domains that ask for it, also over
//! restarts.

use std::io::Read as _;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;
use message::tls_report::{AppliedTlsPolicy, Day, TlsResultType};
use model::recipient::RecipientState;
use model::tls_report_delivery::{ReportSendState, ReportState};
use postrider::config::Config;
use serde_json::Value;
use store::tls_daily_stats::StoredTlsStats;

use crate::database::Server;
use crate::two_nodes::nodes;
use crate::world::sink::ReceivedMessage;
use crate::world::{DOMAIN, TestWorld, ZONE};

const CONTACT: &str = "tls_report_contact = \"postmaster@acme.example\"";

fn zone() -> String {
    format!(
        "{ZONE}\n_smtp._tls.dest.example. TXT \"v=TLSRPTv1; rua=mailto:tls@reports.example\"\nreports.example. MX 10 mx.dest.example.\n"
    )
}

async fn stats_of_day(world: &TestWorld, domain: &str, day: Day) -> Option<StoredTlsStats> {
    store::tls_daily_stats::get(&world.server.store, day, &domain.parse().unwrap()).await.unwrap()
}

fn advance_clock_to(world: &TestWorld, time: Timestamp) {
    let clock = &world.server.clock;
    clock.advance(Duration::try_from(time.duration_since(clock.now())).unwrap());
}

/// Advances the clock to noon of the next day, so that the day does not end during the test.
fn advance_to_noon(world: &TestWorld) -> Day {
    let tomorrow = Day::containing(world.server.clock.now()).ends_at();
    advance_clock_to(world, tomorrow + Duration::from_secs(12 * 3600));
    Day::containing(world.server.clock.now())
}

/// A time at which all reports of the day are due.
fn the_day_after(day: Day) -> Timestamp {
    day.ends_at() + Duration::from_secs(5 * 3600)
}

async fn deliver(world: &TestWorld, to: &str) {
    let email = world.relay(&[to], "hello").await;
    world.wait(email, |e| e.recipients[0].state == RecipientState::Delivered).await;
}

async fn wait_for_report_state(world: &TestWorld, domain: &str, day: Day, state: ReportState) -> StoredTlsStats {
    let booked = async {
        loop {
            let found = stats_of_day(world, domain, day).await;
            if let Some(found) = found.filter(|f| f.stats.book.as_ref().is_some_and(|b| b.state == state)) {
                return found;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(crate::world::PATIENCE, booked).await.expect("the report's state is stored")
}

fn decode_report(received: &ReceivedMessage) -> Value {
    let (_, part) = received.content.split_once("Content-Type: application/tlsrpt+gzip").expect("the report");
    let (_, body) = part.split_once("\r\n\r\n").unwrap();
    let base64: String = body.split("--=_tlsrpt").next().unwrap().split_whitespace().collect();
    let mut json = Vec::new();
    let packed = STANDARD.decode(base64).unwrap();
    flate2::read::GzDecoder::new(&packed[..]).read_to_end(&mut json).unwrap();
    serde_json::from_slice(&json).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_day_is_counted_and_reported_once() {
    let mut world = TestWorld::start_with(CONTACT).await;
    world.names.set(&zone());
    let day = advance_to_noon(&world);
    deliver(&world, "one@dest.example").await;
    world.server.clock.advance(Duration::from_secs(60));
    deliver(&world, "two@dest.example").await;
    deliver(&world, "three@other.example").await;
    // Counts survive a restart.
    world = world.restart(CONTACT).await;
    let found = stats_of_day(&world, "dest.example", day).await.expect("a stored count");
    let counted: u64 = found.stats.counts.policies.iter().map(|policy| policy.failed).sum();
    assert!((1..=2).contains(&counted), "{:?}", found.stats.counts);

    let before = world.sink.received().len();
    advance_clock_to(&world, the_day_after(day));
    let found = wait_for_report_state(&world, "dest.example", day, ReportState::Sent).await;
    wait_for_report_state(&world, "other.example", day, ReportState::Unwanted).await;
    let received = world.sink.wait_for(before + 1).await;
    let message = received.last().unwrap();
    assert_eq!(message.recipient, "tls@reports.example");
    for field in [
        "From: <postmaster@acme.example>",
        "TLS-Report-Domain: dest.example",
        "TLS-Report-Submitter: acme.example",
        "TLS-Required: No",
        "DKIM-Signature:",
        "multipart/report",
    ] {
        assert!(message.content.contains(field), "{field}: {}", message.content);
    }
    let report = decode_report(message);
    assert_eq!(report["report-id"], format!("{day}.dest.example@{DOMAIN}"));
    assert_eq!(report["contact-info"], "postmaster@acme.example");
    let policy = &report["policies"][0];
    assert_eq!(policy["policy"]["policy-type"], "no-policy-found");
    assert_eq!(policy["policy"]["policy-domain"], "dest.example");
    assert_eq!(policy["summary"]["total-failure-session-count"], counted);
    assert_eq!(policy["failure-details"][0]["result-type"], "starttls-not-supported");
    assert_eq!(policy["failure-details"][0]["receiving-mx-hostname"], "mx.dest.example");
    assert_eq!(policy["failure-details"][0]["failed-session-count"], counted);
    let sendings = found.stats.book.unwrap().sendings;
    assert!(matches!(sendings[0].state, ReportSendState::Mailed(_)), "{sendings:?}");

    // Neither a restart nor the next poll sends it again, and the delivery of the report itself is not counted.
    world = world.restart(CONTACT).await;
    advance_clock_to(&world, the_day_after(day) + Duration::from_secs(3600));
    deliver(&world, "four@other.example").await;
    let reports =
        |received: &[ReceivedMessage]| received.iter().filter(|t| t.recipient == "tls@reports.example").count();
    assert_eq!(reports(&world.sink.received()), 1);
    world.server.queue.drain().await;
    assert!(stats_of_day(&world, "reports.example", Day::containing(world.server.clock.now())).await.is_none());
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_contact_days_are_counted_and_nothing_is_sent() {
    let world = TestWorld::start().await;
    world.names.set(&zone());
    let day = advance_to_noon(&world);
    deliver(&world, "one@dest.example").await;
    advance_clock_to(&world, the_day_after(day));
    deliver(&world, "two@other.example").await;
    world.server.queue.drain().await;
    let found = stats_of_day(&world, "dest.example", day).await.expect("a stored count");
    assert_eq!(found.stats.book, None);
    assert_eq!(world.sink.received().len(), 2);
    assert!(found.day.ends_at() < world.server.clock.now() && found.day.ends_at() > Timestamp::UNIX_EPOCH);
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn counts_of_all_nodes_are_added_and_one_node_reports() {
    let server = Server::start(&[]);
    let contact: message::address::Address = "postmaster@acme.example".parse().unwrap();
    let change = |_, config: &mut Config| config.delivery.tls_report_contact = Some(contact.clone());
    let [first, second] = nodes(&server, change).await;
    first.names.set(&zone());
    second.names.set(&zone());
    let day = advance_to_noon(&first);
    assert_eq!(advance_to_noon(&second), day);
    // The node that accepts an email delivers it.
    deliver(&first, "one@dest.example").await;
    deliver(&second, "two@dest.example").await;
    let connections = u64::try_from(first.sink.connections()).unwrap();
    second.end().await;
    advance_clock_to(&first, the_day_after(day));
    let found = wait_for_report_state(&first, "dest.example", day, ReportState::Sent).await;
    assert_eq!((connections, found.stats.counts.policies[0].failed), (2, 2));
    let received = first.sink.wait_for(3).await;
    assert_eq!(decode_report(&received[2])["policies"][0]["summary"]["total-failure-session-count"], 2);
    first.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn invalid_dnssec_signatures_are_counted_for_the_tls_report() {
    // This name server signs nothing.
    let world = TestWorld::start_with("dane = \"on\"\n").await;
    let waits = world.relay(&["one@dest.example"], "hello").await;
    world.wait(waits, |e| e.recipients[0].state == RecipientState::Deferred).await;
    world.server.queue.drain().await;
    let found =
        stats_of_day(&world, "dest.example", Day::containing(world.server.clock.now())).await.expect("a stored count");
    let [policy] = found.stats.counts.policies.as_slice() else { panic!("{:?}", found.stats.counts) };
    assert_eq!((&policy.applied, policy.failed), (&AppliedTlsPolicy::unverifiable_tlsa(), 1));
    let failure = &policy.details[0].failure;
    assert!(failure.reason.contains("signatures of dest.example"), "{failure:?}");
    assert_eq!(failure.result, TlsResultType::DnssecInvalid);
    world.end().await;
}
