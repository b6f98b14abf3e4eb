//! `Words` and `Examples`: the texts that the operation table does not have.

use std::collections::BTreeMap;
use std::path::Path;

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::error::GenerateError;
use crate::schema::Schema;

/// `sdk/generate/words.json`.
#[derive(Debug, Default, Deserialize)]
pub struct Words {
    /// Description of each resource.
    pub resources: BTreeMap<String, String>,
    /// Better names for types: derived name → name.
    pub types: BTreeMap<String, String>,
    /// Schemas of fields of webhook events whose own schema says nothing, because their example is null or empty.
    #[serde(default)]
    pub event_fields: BTreeMap<String, Schema>,
}

/// `sdk/examples.json`: operation id → `{path, params}`.
pub type Examples = BTreeMap<String, Value>;

pub fn read_json<T: DeserializeOwned>(path: &Path) -> Result<T, GenerateError> {
    let text = std::fs::read_to_string(path);
    let text = text.map_err(|cause| GenerateError::File { path: path.to_owned(), cause })?;
    serde_json::from_str(&text).map_err(|cause| GenerateError::Json { path: path.to_owned(), cause })
}
