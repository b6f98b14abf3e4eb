//! The answer to what has nothing more to say: `{"ok": true}`.

use serde::Serialize;
use serde_json::{Value, json};

use crate::schema::{self, Describe, Schemas};

/// It was done.
#[derive(Debug, Serialize)]
pub struct Done {
    ok: bool,
}

impl Done {
    /// It was.
    pub const OK: Self = Self { ok: true };
}

impl Describe for Done {
    fn schema(schemas: &mut Schemas) -> Value {
        schemas.named("Done", |_| {
            schema::object("It was done", [("ok", json!({"type": "boolean", "const": true}))])
        })
    }
}
