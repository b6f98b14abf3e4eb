//! Tests of the parsers of the processor's JSON: fixtures in the shapes before and since Basil, fixtures of
//! localstripe, and invalid input.

#![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

mod before_basil;
mod hostile;
mod localstripe;
mod since_basil;

use affiliate::processor::{MetadataKeys, ReferralHint, WebhookEvent, WebhookFact};
use jiff::Timestamp;

const VISIT: &str = "vis_01JB3Q4N5T6V7W8X9Y0ZABCDEF";
const REFERRAL: &str = "ref_01JB3Q4N5T6V7W8X9Y0ZABCDEG";

fn fixture(name: &str) -> Vec<u8> {
    let path = format!("{}/tests/processor/fixtures/{name}.json", env!("CARGO_MANIFEST_DIR"));
    std::fs::read(&path).unwrap_or_else(|error| panic!("{path}: {error}"))
}

fn fact(name: &str) -> WebhookFact {
    WebhookEvent::read(&fixture(name)).unwrap().read_fact(&MetadataKeys::default()).unwrap()
}

fn second(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

fn visit() -> ReferralHint {
    ReferralHint::read(VISIT).unwrap()
}

fn referral() -> ReferralHint {
    ReferralHint::read(REFERRAL).unwrap()
}

/// Parses a fixture and expects this kind of fact.
macro_rules! read_fact {
    ($kind:ident in $name:expr) => {
        match crate::fact($name) {
            affiliate::processor::WebhookFact::$kind(fact) => fact,
            other => panic!("{}: {other:?}", $name),
        }
    };
}
pub(crate) use read_fact;
