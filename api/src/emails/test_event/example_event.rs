//! `ExampleEvent`: the event of a test, named by the request.

use httpd::request_object::RequestValue;
use model::event::EventKind;

use crate::prelude::*;

/// An event of the service.
#[derive(Debug)]
pub(crate) struct ExampleEvent(pub(crate) EventKind);

impl RequestValue for ExampleEvent {
    type Value = Self;

    fn schema(_: &mut Schemas) -> Value {
        json!({"type": "string"})
    }

    fn parse(value: &RawValue) -> Result<Self, String> {
        let name = fields::parse_text(value)?;
        EventKind::from_name(&name).map(Self).ok_or_else(|| "is not a known event".to_owned())
    }
}
