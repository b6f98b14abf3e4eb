//! Rows written by earlier releases (`tests/golden/processor_state`) must decode, and encode to the same bytes.

use std::path::Path;

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::{ChargeState, ConnectedAccountState, CustomerState, InvoiceState, PaymentState};

fn read_and_write<T: Serialize + DeserializeOwned>(name: &str) {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/processor_state").join(name);
    for line in std::fs::read_to_string(file).unwrap().lines() {
        // A row is `[format version, {…}]` (`store/src/codec.rs`).
        let (format, value): (u8, T) = serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"));
        assert_eq!(serde_json::to_string(&(format, value)).unwrap(), line);
    }
}

#[test]
fn rows_of_earlier_releases_keep_their_bytes() {
    read_and_write::<ConnectedAccountState>("account.jsonl");
    read_and_write::<ChargeState>("charge.jsonl");
    read_and_write::<CustomerState>("customer.jsonl");
    read_and_write::<InvoiceState>("invoice.jsonl");
    read_and_write::<PaymentState>("payment.jsonl");
}
