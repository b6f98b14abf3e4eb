//! `ExampleEvent`: the event of a test, named by the request.

use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::example_payloads::example_for;
use crate::fields;
use crate::request_object::RequestValue;
use crate::schema::Schemas;

/// An event of the service with its example.
#[derive(Debug)]
pub(crate) struct ExampleEvent {
    pub(crate) name: String,
    pub(crate) example: Value,
}

impl RequestValue for ExampleEvent {
    type Value = Self;

    fn schema(_: &mut Schemas) -> Value {
        json!({"type": "string"})
    }

    fn parse(value: &RawValue) -> Result<Self, String> {
        let name = fields::parse_text(value)?.into_owned();
        let example = example_for(&name).ok_or_else(|| "is not a known event".to_owned())?;
        Ok(Self { name, example })
    }
}
