//! `ApiTimestamp`: a point in time in the objects of responses and events.

use jiff::Timestamp;
use model::timestamp;
use schema::{Schemas, ToSchema};
use serde::{Serialize, Serializer};
use serde_json::{Value, json};

/// A time in ISO 8601 with milliseconds and `Z`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ApiTimestamp(pub Timestamp);

impl Serialize for ApiTimestamp {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&timestamp::to_rfc3339(self.0))
    }
}

impl ToSchema for ApiTimestamp {
    fn schema(_: &mut Schemas) -> Value {
        json!({"type": "string", "format": "date-time"})
    }
}
