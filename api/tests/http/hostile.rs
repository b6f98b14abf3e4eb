//! The parser of send requests against hostile input.
//!
//! It must not panic, and nothing that it accepts may break out of a header field: the composed message has no bare
//! CR or LF and no unrequested field, and the envelope has valid addresses without duplicates.

use std::collections::HashSet;

use api::emails::send::SendRequest;
use jiff::Timestamp;
use message::compose::compose;
use message::header::parse_fields;
use model::draft::DraftContent;
use proptest::prelude::*;
use serde_json::{Value, json};

fn check(body: &[u8]) {
    let Ok(request) = SendRequest::from_json(body) else { return };
    let Ok(draft) = request.email.into_draft_without_template() else { return };
    let DraftContent::Parts(parts) = &draft.content else { panic!("not composed") };
    let mut collected = HashSet::new();
    assert!(!draft.recipients.is_empty());
    for recipient in &draft.recipients {
        assert!(collected.insert(&recipient.address), "{}", recipient.address);
        assert!(
            !recipient.address.to_string().contains(['\r', '\n', ' '])
                || recipient.address.local_part().starts_with('"')
        );
    }
    let message = compose(parts, "id@example.com", Timestamp::UNIX_EPOCH);
    let text = String::from_utf8_lossy(&message);
    assert!(!text.replace("\r\n", "").contains(['\r', '\n']), "a bare CR or LF: {text:?}");
    let (found, _) = parse_fields(&message);
    for field in &found {
        let name = String::from_utf8_lossy(&message[field.start..field.name_end]).to_lowercase();
        assert!(!name.starts_with("evil"), "{text}");
    }
    let count = |name: &str| found.iter().filter(|field| field.has_name(&message, name)).count();
    for name in ["From", "Subject", "Message-ID", "Date", "MIME-Version"] {
        assert!(count(name) == 1, "{name}: {text}");
    }
    assert_eq!(count("Bcc"), 0);
}

/// Strings that try to break out, and ordinary ones.
fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        "[a-z0-9]{1,8}@[a-z]{1,8}\\.example",
        "[A-Za-z ,\"<>@.\\\\]{0,20} <[a-z]{1,4}@[a-z]{1,4}\\.example>",
        "[a-zA-Z0-9 .-]{0,20}(\\r\\n|\\n|\\r|\\r\\n )Evil: [a-z]{0,5}",
        "[\\PC]{0,30}",
        ".{0,30}",
        "[A-Za-z0-9+/=\\n]{0,24}",
        "[a-z]{1,5}\\.(exe|txt|js\\.| EXE)",
        Just("=?utf-8?B?DQpFdmlsOiB4?=".to_owned()),
        Just("a\u{2028}Evil: x\u{85}".to_owned()),
    ]
}

fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        4 => text().prop_map(Value::String),
        1 => any::<i64>().prop_map(Value::from),
        1 => any::<bool>().prop_map(Value::from),
        1 => Just(Value::Null),
    ];
    leaf.prop_recursive(3, 24, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            prop::collection::vec((name(), inner), 0..6).prop_map(|fields| Value::Object(fields.into_iter().collect())),
        ]
    })
}

const NAMES: &[&str] = &[
    "from",
    "to",
    "cc",
    "bcc",
    "subject",
    "html",
    "htmlBody",
    "text",
    "reply_to",
    "headers",
    "tags",
    "attachments",
    "category",
    "unsubscribe",
    "template",
    "HtmlBody",
    "email",
    "name",
    "value",
    "data",
    "content_type",
    "content_id",
    "filename",
    "X-A",
];

fn name() -> impl Strategy<Value = String> {
    prop_oneof![4 => prop::sample::select(NAMES).prop_map(str::to_owned), 1 => text()]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, ..ProptestConfig::default() })]

    #[test]
    fn bytes(body in prop::collection::vec(any::<u8>(), 0..200)) {
        check(&body);
    }

    #[test]
    fn random_objects(fields in prop::collection::vec((name(), value()), 0..10)) {
        let body: serde_json::Map<String, Value> = fields.into_iter().collect();
        check(Value::Object(body).to_string().as_bytes());
    }

    /// A valid request with one part replaced: most of these reach composition.
    #[test]
    fn nearly_valid_requests(index in 0usize..14, text in text(), value in value()) {
        let mut body = json!({
            "from": {"email": "a@example.com", "name": "A"}, "to": ["b@example.net"], "subject": "s",
            "html": "h", "text": "t", "headers": {"X-A": "b"}, "tags": {"k": "v"},
            "reply_to": "r@example.net",
            "attachments": [{"name": "a.txt", "data": "aGk=", "content_type": "text/plain", "content_id": null}],
        });
        let pointer = [
            "/from/name", "/from/email", "/to/0", "/subject", "/html", "/text", "/headers/X-A", "/tags/k",
            "/reply_to", "/attachments/0/name", "/attachments/0/content_type", "/attachments/0/content_id",
            "/attachments/0/data", "/to",
        ][index];
        *body.pointer_mut(pointer).unwrap() = Value::String(text);
        check(body.to_string().as_bytes());
        *body.pointer_mut(pointer).unwrap() = value;
        check(body.to_string().as_bytes());
    }

    /// A valid request, truncated or with one byte changed.
    /// Attachments with arbitrary bytes and a text type.
    #[test]
    fn files(data in prop::collection::vec(prop::sample::select(b"a.\r\n\0\xff".to_vec()), 0..12), inline in any::<bool>()) {
        let data = base64::Engine::encode(&base64::engine::general_purpose::STANDARD, data);
        let mut file = json!({"name": "a.txt", "data": data, "content_type": "text/plain"});
        if inline {
            file["content_id"] = json!("x");
        }
        check(json!({
            "from": "a@example.com", "to": "b@example.net", "subject": "s", "text": "t", "attachments": [file],
        }).to_string().as_bytes());
    }

    #[test]
    fn damaged_requests(cut in 0usize..140, at in 0usize..140, byte in any::<u8>()) {
        let good = br#"{"from":"Ada <a@example.com>","to":["b@example.net","c@example.net"],"subject":"s","text":"t","headers":{"X-A":"b"},"tags":{"k":"v"}}"#;
        check(&good[..cut.min(good.len())]);
        let mut changed = good.to_vec();
        let at = at.min(good.len() - 1);
        changed[at] = byte;
        check(&changed);
    }
}
