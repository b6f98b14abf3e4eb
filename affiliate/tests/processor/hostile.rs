//! Invalid input: errors name the field, and nothing panics.

use affiliate::processor::{
    AMOUNT_MAX, Charge, Checkout, ConnectedAccount, CreditNote, Customer, FieldProblem, Invoice, InvoicePayment,
    JsonReadError, MetadataKeys, ReadContext, ReferralHint, Refund, ResponsePage, ReversedTransfer, StateVersion,
    StripeObject as _, Subscription, WebhookEvent, signature, synthesize_event,
};
use bytes::Bytes;
use model::affiliate::program::ProcessorMode;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::{VISIT, fixture, second};

/// Parses a fixture with one value replaced or removed.
fn read_with(name: &str, pointer: &str, value: Option<Value>) -> Result<(), JsonReadError> {
    let mut body: Value = serde_json::from_slice(&fixture(name)).unwrap();
    let (parent, field) = pointer.rsplit_once('/').unwrap();
    let parent = body.pointer_mut(parent).unwrap();
    match (parent, value) {
        (Value::Object(object), Some(value)) => drop(object.insert(field.to_owned(), value)),
        (Value::Object(object), None) => drop(object.shift_remove(field)),
        (Value::Array(list), Some(value)) => list[field.parse::<usize>().unwrap()] = value,
        _ => panic!("{pointer} is in no object"),
    }
    let event = WebhookEvent::read(&serde_json::to_vec(&body).unwrap())?;
    event.read_fact(&MetadataKeys::default()).map(drop)
}

#[test]
fn an_error_names_the_field() {
    use FieldProblem::*;
    let invoice = "since_basil/invoice_paid";
    let long = "x".repeat(256);
    let cases: [(&str, &str, Option<Value>, &str, FieldProblem); 24] = [
        (invoice, "/id", None, "id", Missing),
        (invoice, "/type", Some(json!(7)), "type", NotAnId),
        (invoice, "/created", Some(json!("now")), "created", NotATime),
        (invoice, "/created", Some(json!(i64::MAX)), "created", NotATime),
        (invoice, "/livemode", Some(json!("yes")), "livemode", NotAFlag),
        (invoice, "/data/object", None, "data.object", Missing),
        (invoice, "/data/object", Some(json!([])), "data.object", NotAnObject),
        (invoice, "/data/object/id", None, "data.object.id", Missing),
        (invoice, "/data/object/id", Some(json!("")), "data.object.id", Missing),
        (invoice, "/data/object/id", Some(json!(long)), "data.object.id", NotAnId),
        (invoice, "/data/object/customer", Some(json!("a\nb")), "data.object.customer", NotAnId),
        (invoice, "/data/object/total", Some(json!(1e30)), "data.object.total", NotAnAmount),
        (invoice, "/data/object/total", Some(json!("13560")), "data.object.total", NotAnAmount),
        (invoice, "/data/object/total", Some(json!(135.6)), "data.object.total", NotAnAmount),
        (invoice, "/data/object/total", Some(json!(u64::MAX)), "data.object.total", NotAnAmount),
        (invoice, "/data/object/amount_paid", Some(Value::Null), "data.object.amount_paid", Missing),
        (invoice, "/data/object/currency", Some(json!("euro")), "data.object.currency", NotACurrency),
        (invoice, "/data/object/lines/data", Some(json!("none")), "data.object.lines.data", NotAList),
        (invoice, "/data/object/lines/data/1", Some(json!(1)), "data.object.lines.data[1]", NotAnObject),
        (
            invoice,
            "/data/object/lines/data/1/taxes/0/amount",
            Some(json!(null)),
            "data.object.lines.data[1].taxes[0].amount",
            Missing,
        ),
        (
            invoice,
            "/data/object/total_taxes",
            Some(json!([{"amount": i64::MAX}, {"amount": 1}])),
            "data.object.total_taxes[0].amount",
            AmountTooLarge,
        ),
        (
            "localstripe/invoice_payment_succeeded",
            "/data/object/charge/amount_refunded",
            Some(json!(-1)),
            "data.object.charge.amount_refunded",
            Negative,
        ),
        ("since_basil/charge_refunded", "/data/object/amount_refunded", None, "data.object.amount_refunded", Missing),
        (
            "since_basil/invoice_payment_paid",
            "/data/object/invoice",
            Some(json!({"id": 5})),
            "data.object.invoice",
            NotAnId,
        ),
    ];
    for (name, pointer, value, field, problem) in cases {
        let expected = JsonReadError { field: field.to_owned(), problem };
        assert_eq!(read_with(name, pointer, value), Err(expected), "{pointer}");
    }
    let too_many = json!(vec![json!({"amount": 1}); 1_001]);
    let error = read_with(invoice, "/data/object/lines/data", Some(too_many)).unwrap_err();
    assert_eq!(error.to_string(), "data.object.lines.data has more than 1000 entries");
}

#[test]
fn invalid_bodies_are_errors_and_do_not_panic() {
    let error_of = |body: &[u8]| WebhookEvent::read(body).unwrap_err().to_string();
    assert_eq!(error_of(b""), "body is not JSON");
    assert_eq!(error_of(b"\xff"), "body is not JSON");
    assert_eq!(error_of(b"[]"), "body is not an object");
    assert_eq!(error_of("[".repeat(1 << 20).as_bytes()), "body is not JSON");
    assert_eq!(error_of("{\"a\":".repeat(100_000).as_bytes()), "body is not JSON");
    assert_eq!(error_of(br#"{"\u0024serde_json::private::RawValue":"1"}"#), "body has a field with a reserved name");
    assert_eq!(ResponsePage::read(&Bytes::from_static(b"{}")).unwrap_err().to_string(), "data is missing");
    assert_eq!(
        ResponsePage::read(&Bytes::from_static(br#"{"data":{}}"#)).unwrap_err().to_string(),
        "data is not a list"
    );
}

#[test]
fn amounts_are_limited() {
    let (invoice, charge) = ("since_basil/invoice_paid", "since_basil/charge_refunded");
    assert_eq!(read_with(invoice, "/data/object/total", Some(json!(AMOUNT_MAX))), Ok(()));
    for (name, pointer, amount, field) in [
        (invoice, "/data/object/total", AMOUNT_MAX + 1, "data.object.total"),
        (invoice, "/data/object/lines/data/1/amount", -AMOUNT_MAX - 1, "data.object.lines.data[1].amount"),
        (charge, "/data/object/amount_refunded", i64::MAX, "data.object.amount_refunded"),
    ] {
        let expected = JsonReadError { field: field.to_owned(), problem: FieldProblem::AmountTooLarge };
        assert_eq!(read_with(name, pointer, Some(json!(amount))), Err(expected));
    }
}

/// Returns a page of `number` objects.
fn page_of(object: impl Fn(usize) -> String, number: usize) -> Bytes {
    let objects: Vec<String> = (0..number).map(object).collect();
    format!(r#"{{"object":"list","has_more":true,"data":[{}]}}"#, objects.join(",")).into()
}

#[test]
fn a_page_is_bounded() {
    let small = |nth| format!(r#"{{"id":"in_{nth}"}}"#);
    let page = ResponsePage::read(&page_of(small, 100)).unwrap();
    assert_eq!((page.objects.len(), page.next().as_deref()), (100, Some("in_99")));
    let error = ResponsePage::read(&page_of(small, 101)).unwrap_err();
    assert_eq!(error.to_string(), "data has more than 100 objects");
    // An object above the size limit is reported by its id; the others are parsed.
    let large = |nth| {
        let filler = "x".repeat(if nth == 1 { 64 << 10 } else { 0 });
        format!(r#"{{"number":"{filler}","id":"in_{nth}"}}"#)
    };
    let page = ResponsePage::read(&page_of(large, 3)).unwrap();
    let checked: Vec<_> = page.objects.iter().map(|object| object.check_size().map_err(|e| e.to_string())).collect();
    assert_eq!(checked, [Ok(()), Err("in_1 is larger than 65536 bytes".to_owned()), Ok(())]);
    let fields: String = (0..1_001).map(|nth| format!(r#""f{nth}":1,"#)).collect();
    let keys = &MetadataKeys::default();
    let reading = &ReadContext { keys, as_of: StateVersion::fetched(second(1_767_270_000)) };
    let error = Charge::read(&format!(r#"{{{fields}"id":"ch_1"}}"#), reading).unwrap_err();
    assert_eq!(error.to_string(), "body has more than 1000 fields");
}

/// Peak memory of the process in bytes.
#[cfg(target_os = "linux")]
fn peak() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<usize>().unwrap() << 10
}

/// Each page has 6 MiB. Parsed into a tree of values, one took about 300 MiB.
#[cfg(target_os = "linux")]
#[test]
fn a_response_uses_no_more_memory_than_its_bytes() {
    let fill = |unit: &str| unit.repeat((60 << 10) / unit.len());
    let nest = "[".repeat(30 << 10) + &"]".repeat(30 << 10);
    let before = peak();
    for (path, filler) in [
        ("other", nest.clone()),
        ("lines", nest),
        ("metadata", format!("[{}0]", fill("[],"))),
        ("refunds", format!("[{}0]", fill("{},"))),
        ("customer", format!("{{{}\"z\":0}}", fill(r#""a":{},"#))),
        ("payments", format!("{{\"data\":[{}{{}}]}}", fill("{},"))),
    ] {
        let page = page_of(|nth| format!(r#"{{"id":"in_{nth}","{path}":{filler}}}"#), 100);
        assert!(page.len() > 5 << 20, "{path}");
        let read = ResponsePage::read(&page).unwrap();
        assert_eq!(read.objects.len(), 100);
        for object in &read.objects {
            object.check_size().unwrap();
            read_as_everything(
                synthesize_event(object.text(), "asked_1", "invoice.paid", second(0), ProcessorMode::Live).as_bytes(),
                false,
            );
        }
    }
    let grown = (peak() - before) >> 20;
    assert!(grown < 64, "{grown} MiB for pages of 6 MiB");
}

#[test]
fn unused_fields_are_ignored() {
    for (pointer, value) in [
        ("/data/object/metadata", json!("text")),
        ("/data/object/metadata", json!({"stx_referral": 5, "stx": [], "": null})),
        ("/data/object/number", json!({"odd": true})),
        ("/data/object/parent", json!(null)),
        ("/data/object/lines", json!(null)),
        ("/data/object/customer_email", json!("x".repeat(5_000))),
        ("/type", json!("invoice.finalized")),
        ("/api_version", json!(null)),
    ] {
        assert_eq!(read_with("since_basil/invoice_paid", pointer, Some(value)), Ok(()), "{pointer}");
    }
    assert_eq!(read_with("since_basil/invoice_paid", "/type", Some(json!("v2.core.event"))), Ok(()));
}

#[test]
fn hints_are_visit_and_referral_ids_only() {
    assert!(ReferralHint::read(VISIT).is_some());
    for text in ["", "vis_", "vis_1", "user_1", "com_01JB3Q4N5T6V7W8X9Y0ZABCDEF", "vis_01JB3Q4N5T6V7W8X9Y0ZABCDEF0"] {
        assert_eq!(ReferralHint::read(text), None, "{text}");
    }
}

const FIXTURES: [&str; 8] = [
    "before_basil/invoice_paid",
    "before_basil/charge_refunded",
    "before_basil/dispute_created",
    "since_basil/invoice_paid",
    "since_basil/credit_note_created",
    "since_basil/checkout_paid_later",
    "since_basil/transfer_reversed",
    "localstripe/invoice_payment_succeeded",
];
const KINDS: [&str; 11] = [
    "checkout.session.completed",
    "customer.updated",
    "customer.subscription.updated",
    "invoice.paid",
    "invoice_payment.paid",
    "charge.refunded",
    "refund.created",
    "credit_note.voided",
    "charge.dispute.closed",
    "transfer.reversed",
    "account.updated",
];

/// Parses the body as an event of each type, and if small also as an object of each type.
fn read_as_everything(body: &[u8], is_small: bool) {
    let keys = &MetadataKeys::default();
    let reading = &ReadContext { keys, as_of: StateVersion::fetched(second(1_767_270_000)) };
    let _ = ResponsePage::read(&Bytes::copy_from_slice(body));
    let Ok(event) = WebhookEvent::read(body) else { return };
    let _ = event.read_fact(keys);
    if !is_small {
        return;
    }
    let Ok(body) = serde_json::from_slice::<Value>(body) else { return };
    let object = &body.pointer("/data/object").unwrap_or(&body).to_string();
    let _ = Checkout::read(object, reading).map(|checkout| checkout.sale());
    let _ = Customer::read(object, reading);
    let _ = Subscription::read(object, reading);
    let _ = Invoice::read(object, reading);
    let _ = InvoicePayment::read(object, reading);
    let _ = Charge::read(object, reading);
    let _ = Refund::read(object, reading);
    let _ = CreditNote::read(object, reading);
    let _ = ReversedTransfer::read(object, reading);
    let _ = ConnectedAccount::read(object, reading);
}

/// Arbitrary JSON that sometimes contains names and values with a meaning.
fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        ".{0,12}".prop_map(Value::from),
        prop::sample::select(vec!["paid", "void", "eur", "in_1", "false", "inclusive"]).prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 32, 4, |inner| {
        let name = prop::sample::select(vec!["id", "amount", "data", "object", "charge", "payment", "metadata"]);
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map(name, inner, 0..4)
                .prop_map(|map| map.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()),
        ]
    })
}

/// Collects the JSON pointers of all values.
fn collect_paths(value: &Value, at: String, paths: &mut Vec<String>) {
    let inner: Vec<(String, &Value)> = match value {
        Value::Object(object) => object.iter().map(|(name, value)| (name.clone(), value)).collect(),
        Value::Array(list) => list.iter().enumerate().map(|(index, value)| (index.to_string(), value)).collect(),
        _ => Vec::new(),
    };
    for (name, value) in inner {
        collect_paths(value, format!("{at}/{name}"), paths);
    }
    paths.push(at);
}

proptest! {
    #[test]
    fn no_bytes_panic(body in prop::collection::vec(any::<u8>(), 0..200), header in ".{0,200}") {
        read_as_everything(&body, true);
        let _ = signature::verify(&header, &body, &["whsec"], second(0));
    }

    #[test]
    fn no_damage_panics(
        name in prop::sample::select(FIXTURES.to_vec()),
        kind in prop::sample::select(KINDS.to_vec()),
        path in any::<prop::sample::Index>(),
        value in any_json(),
        cut in any::<prop::sample::Index>(),
    ) {
        let mut body: Value = serde_json::from_slice(&fixture(name)).unwrap();
        body["type"] = kind.into();
        let mut all = Vec::new();
        collect_paths(&body, String::new(), &mut all);
        let path: &String = path.get(&all);
        *body.pointer_mut(path).unwrap() = value;
        let bytes = serde_json::to_vec(&body).unwrap();
        read_as_everything(&bytes, true);
        read_as_everything(&bytes[..cut.index(bytes.len())], true);
    }

    #[test]
    fn signatures_verify(body in prop::collection::vec(any::<u8>(), 0..200), at in 0_i64..9_999_999_999) {
        let header = signature::sign("whsec", second(at), &body);
        prop_assert_eq!(signature::verify(&header, &body, &["other", "whsec"], second(at)), Ok(second(at)));
    }
}
