//! Cost of an invoice: events are ingested one after the other, as webhooks are after signature verification, and
//! committed with all their effects.

use std::time::Duration;

use affiliate::ledger::ingest::{FactIngest, IngestOutcome};
use serde_json::Value;
use store::affiliate::commission;

use super::fixture::Fixture;
use super::gauge::{cpu, ms, spread_of, start};
use super::processor_objects;
use super::scale::{Fate, Scale, fate, spread, stem};

async fn ingest_all(fixture: &Fixture, name: &str, events: &[Value]) {
    let ingest = FactIngest::new(&fixture.ledger(), None);
    let mut times = Vec::with_capacity(events.len());
    let bodies: Vec<Vec<u8>> = events.iter().map(|event| event.to_string().into_bytes()).collect();
    let (before, all) = (cpu(), start());
    for body in &bodies {
        let started = start();
        let answer = ingest.ingest(fixture.account, body).await;
        times.push(started.elapsed());
        assert!(matches!(answer, IngestOutcome::Done | IngestOutcome::Duplicate), "{answer:?}");
    }
    let (cpu_time, elapsed) = (cpu() - before, all.elapsed());
    for event in events {
        let invoice = event["data"]["object"]["id"].as_str().unwrap();
        let lines = commission::list_by_invoice(fixture.store(), fixture.account, invoice).await.unwrap();
        assert!(!lines.is_empty(), "no commission was written for {event}");
    }
    let per_invoice = |duration: Duration| ms(duration) / bodies.len().max(1) as f64;
    let [middle, p99, maximum] = spread_of(times);
    println!(
        "{name:<40} {middle:>8.3} {p99:>8.3} {maximum:>8.3} {:>8.3} {:>8.3}",
        per_invoice(cpu_time),
        per_invoice(elapsed)
    );
}

pub(crate) async fn measure(fixture: &Fixture, scale: &Scale, count: u64) {
    println!(
        "\n{:<40} {:>8} {:>8} {:>8} {:>8} {:>8}",
        format!("ms per invoice, {count} invoices"),
        "p50",
        "p99",
        "most",
        "CPU",
        "mean"
    );
    let referrals_with = |wanted: Fate| {
        let all = (0..).map(|number| spread(number * 13) % scale.referrals / 20 * 20);
        let offset = (0..20).find(|candidate| fate(*candidate) == wanted).unwrap();
        all.map(move |twenty| twenty + offset)
    };
    let now = fixture.now.as_second();
    let paid = |(nth, referral): (u64, u64), email: bool| {
        let id = format!("in_new_{}_{nth}", stem(referral));
        let mut invoice = processor_objects::invoice(&id, &stem(referral), "usd", now + 60);
        if email {
            invoice["customer_email"] = format!("person{referral}@buyers.example").into();
        }
        processor_objects::event(&format!("evt_{id}"), "invoice.paid", now + 60, &invoice)
    };
    let count = usize::try_from(count).unwrap();
    let next: Vec<_> =
        (0..).zip(referrals_with(Fate::Active)).take(count).map(|numbered| paid(numbered, false)).collect();
    ingest_all(fixture, "further invoice of a customer", &next).await;
    let first: Vec<_> =
        (0..).zip(referrals_with(Fate::Lead)).take(count).map(|numbered| paid(numbered, true)).collect();
    ingest_all(fixture, "first invoice of a lead, matched by email", &first).await;
    ingest_all(fixture, "duplicate event", &next).await;
}
