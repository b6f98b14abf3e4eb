//! The answer to what has nothing more to say: `{"ok": true}`.

use serde::Serialize;
use serde_json::{Value, json};

use crate::schema::{self, Schemas, ToSchema};

/// It was done.
#[derive(Debug, Serialize)]
pub struct OkResponse {
    ok: bool,
}

impl OkResponse {
    /// It was.
    pub const OK: Self = Self { ok: true };
}

impl ToSchema for OkResponse {
    fn schema(schemas: &mut Schemas) -> Value {
        schemas
            .component("Done", |_| schema::object("It was done", [("ok", json!({"type": "boolean", "const": true}))]))
    }
}
