//! Cost of an invoice: events are ingested one after the other, as webhooks are after signature verification, and
//! committed with all their effects.

use std::time::Duration;

use affiliate::ledger::IngestOutcome;
use serde_json::Value;
use store::affiliate::commission;

use super::gauge::{cpu, ms, spread_of, start};
use super::house::House;
use super::scale::{Fate, Scale, fate, spread, stem};
use super::told;

async fn hear(house: &House, (name, events): (&str, &[Value])) {
    let ledger = house.ledger();
    let mut times = Vec::with_capacity(events.len());
    let bodies: Vec<Vec<u8>> = events.iter().map(|event| event.to_string().into_bytes()).collect();
    let (before, all) = (cpu(), start());
    for body in &bodies {
        let began = start();
        let answer = ledger.ingest(house.account, body).await;
        times.push(began.elapsed());
        assert!(matches!(answer, IngestOutcome::Done | IngestOutcome::Duplicate), "{answer:?}");
    }
    let (spent, took) = (cpu() - before, all.elapsed());
    for event in events {
        let invoice = event["data"]["object"]["id"].as_str().unwrap();
        let lines = commission::list_by_invoice(house.store(), house.account, invoice).await.unwrap();
        assert!(!lines.is_empty(), "no commission was written for {event}");
    }
    let each = |of: Duration| ms(of) / bodies.len().max(1) as f64;
    let [middle, p99, most] = spread_of(times);
    println!("{name:<40} {middle:>8.3} {p99:>8.3} {most:>8.3} {:>8.3} {:>8.3}", each(spent), each(took));
}

pub(crate) async fn measure(house: &House, scale: &Scale, count: u64) {
    println!(
        "\n{:<40} {:>8} {:>8} {:>8} {:>8} {:>8}",
        format!("ms per invoice, {count} invoices"),
        "p50",
        "p99",
        "most",
        "CPU",
        "mean"
    );
    let of = |wanted: Fate| {
        let all = (0..).map(|number| spread(number * 13) % scale.referrals / 20 * 20);
        let there = (0..20).find(|place| fate(*place) == wanted).unwrap();
        all.map(move |twenty| twenty + there)
    };
    let now = house.now.as_second();
    let paid = |(nth, referral): (u64, u64), email: bool| {
        let id = format!("in_new_{}_{nth}", stem(referral));
        let mut invoice = told::invoice(&id, &stem(referral), ("usd", now + 60));
        if email {
            invoice["customer_email"] = format!("person{referral}@buyers.example").into();
        }
        told::event(&format!("evt_{id}"), ("invoice.paid", now + 60), &invoice)
    };
    let count = usize::try_from(count).unwrap();
    let next: Vec<_> = (0..).zip(of(Fate::Active)).take(count).map(|it| paid(it, false)).collect();
    hear(house, ("further invoice of a customer", &next)).await;
    let first: Vec<_> = (0..).zip(of(Fate::Lead)).take(count).map(|it| paid(it, true)).collect();
    hear(house, ("first invoice of a lead, matched by email", &first)).await;
    hear(house, ("duplicate event", &next)).await;
}
