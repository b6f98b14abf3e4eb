//! `JsonTimestamp`: a point in time as every response, error and event of the API writes it.

use std::fmt;

use jiff::Timestamp;
use schema::{Schemas, ToSchema};
use serde::{Serialize, Serializer};
use serde_json::{Value, json};

/// A timestamp in responses: RFC 3339 in UTC with milliseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct JsonTimestamp(pub Timestamp);

impl fmt::Display for JsonTimestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.3}", self.0)
    }
}

impl Serialize for JsonTimestamp {
    fn serialize<S: Serializer>(&self, out: S) -> Result<S::Ok, S::Error> {
        out.collect_str(self)
    }
}

impl ToSchema for JsonTimestamp {
    fn schema(_: &mut Schemas) -> Value {
        json!({"type": "string", "format": "date-time"})
    }
}
