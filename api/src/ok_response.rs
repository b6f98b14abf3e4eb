//! The response `{"ok": true}` of operations that return nothing else.

use serde::Serialize;
use serde_json::{Value, json};

use crate::schema::{self, Schemas, ToSchema};

#[derive(Debug, Serialize)]
pub struct OkResponse {
    ok: bool,
}

impl OkResponse {
    pub const OK: Self = Self { ok: true };
}

impl ToSchema for OkResponse {
    fn schema(schemas: &mut Schemas) -> Value {
        schemas.component("Done", |_| {
            schema::object("The operation succeeded", [("ok", json!({"type": "boolean", "const": true}))])
        })
    }
}
