//! The response `{"ok": true}` of operations that return nothing else.

use schema::ToSchema;
use serde::Serialize;

/// The operation succeeded
#[derive(Debug, Serialize, ToSchema)]
#[schema(name = "Done")]
pub struct OkResponse {
    #[schema(const = true)]
    ok: bool,
}

impl OkResponse {
    pub const OK: Self = Self { ok: true };
}
