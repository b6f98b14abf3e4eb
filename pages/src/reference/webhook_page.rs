//! `/docs/webhooks`: how events arrive, and each event.

use super::languages::{examples, json_block};
use super::operation::ApiTable;
use super::schema::SchemaReader;
use super::text_section;
use crate::block::{Block, CodeBlock, DocPage, Section, TableRow};
use crate::highlight::CodeLanguage;

/// A delivery, as it arrives. The signatures belong to the secret `whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=`.
const DELIVERY: &str = r#"POST /webhooks HTTP/1.1
content-type: application/json
service-signature: t=1767261601,v1=73d1d171b7792518bf34eb652caafd4d13e94b75b22b20e832da53925b9329e7
webhook-id: evt_01TEST
webhook-timestamp: 1767261601
webhook-signature: v1,leGq6P5XZxszBtppSdgPTG85IB61BP80s0YeiHeC2vU=

{"type":"email.delivered","created_at":"2026-01-01T10:00:01.000Z","data":{"event_id":"evt_01TEST","email_id":"msg_01TEST","status":"delivered"}}"#;

/// Writes the page.
pub fn page(table: &ApiTable) -> DocPage {
    let mut sections = vec![delivery_section(), verification_section(), overview_section(table)];
    let reader = SchemaReader::new(table);
    sections.extend(table.webhook_events.iter().map(|event| {
        let mut prose = vec![Block::Text(event.description.clone())];
        if event.explicit {
            prose.push(Block::Text("An endpoint gets this event only if it is listed in its `events`.".into()));
        }
        let data = &event.schema["properties"]["data"];
        prose.push(Block::Fields { title: "Fields of `data`".into(), groups: reader.outer_groups(data) });
        Section {
            id: event_anchor(&event.kind),
            title: format!("`{}`", event.kind),
            short_title: Some(event.kind.clone()),
            prose,
            aside: vec![json_block("Body", &event.example)],
        }
    }));
    DocPage {
        slug: "webhooks".into(),
        title: "Webhooks".into(),
        lead:
            "The server posts each event to your endpoints, signed. Events are stored before they are sent, and can be \
               replayed for 30 days."
                .into(),
        sections,
    }
}

/// The anchor of an event: `email-delivered`.
pub fn event_anchor(kind: &str) -> String {
    kind.replace(['.', '_'], "-")
}

fn delivery_section() -> Section {
    let rules = [
        "Respond with a status from 200 to 299 within 15 seconds, and process the event afterwards.",
        "Any other response is a failure, including redirects. Failed deliveries are retried after 5 s, 30 s, 2 min \
         and 2 min; with \
         `retry_policy: extended` for about 28 hours.",
        "Status 410 disables the endpoint. `retry-after` with 429 or 503 is respected.",
        "An event can arrive twice, and events can arrive out of order. An event's id, `data.event_id`, stays the \
         same; `created_at` gives the order.",
        "A body has less than 20 KB.",
    ];
    let prose = vec![
        Block::Text(
            "[Create an endpoint](/docs/webhook-endpoints#create-webhook) and keep its `secret`, which is shown once."
                .into(),
        ),
        Block::List(rules.map(str::to_owned).to_vec()),
        Block::Text(
            "Without a public address, read the same events as [pages or as a stream](/docs/webhook-events).".into(),
        ),
    ];
    let code = CodeBlock { title: "Delivery".into(), language: CodeLanguage::Http, text: DELIVERY.into() };
    Section { aside: vec![Block::Code(code)], ..text_section("deliveries", "Deliveries", prose) }
}

fn verification_section() -> Section {
    let prose =
        vec![
        Block::Text("Verify the signature before you parse the body. The SDKs do it with one call, and accept both \
            sets of headers:".into()),
        Block::Facts(vec![
            (
                "`Service-Signature`".into(),
                "`t=…,v1=…`: HMAC-SHA256 in hexadecimal over `t`, a dot and the raw body. The key is the whole secret.".into(),
            ),
            (
                "`webhook-signature`".into(),
                "`v1,…`: base64, over `webhook-id`, a dot, `webhook-timestamp`, a dot and the raw body. The key is the \
                 decoded part after `whsec_`. This is [Standard Webhooks](https://www.standardwebhooks.com)."
                    .into(),
            ),
        ]),
        Block::Text(
            "Refuse a timestamp that differs by more than five minutes. During a secret rotation there are two `v1` \
             values; one valid value is enough. Compare in constant time."
                .into(),
        ),
    ];
    let aside = vec![examples("Verify", |language| language.verification.to_owned())];
    Section { aside, ..text_section("verify", "Verify the signature", prose) }
}

fn overview_section(table: &ApiTable) -> Section {
    let note = "An endpoint with an empty list of `events` gets all events except those that must be listed.";
    let rows = table.webhook_events.iter().map(|event| TableRow {
        id: None,
        cells: vec![
            format!("[`{}`](#{})", event.kind, event_anchor(&event.kind)),
            event.description.clone(),
            if event.explicit { "Yes".into() } else { String::new() },
        ],
    });
    let head = ["Event", "Sent when", "Must be listed"].map(str::to_owned).to_vec();
    let table = Block::Table { caption: "Events".into(), head, rows: rows.collect() };
    text_section("events", "Events", vec![Block::Text(note.into()), table])
}
