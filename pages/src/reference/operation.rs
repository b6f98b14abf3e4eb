//! The operations of the API, read from the files of `sdk/`, which are compiled in.

use std::collections::BTreeMap;
use std::ops::Deref;
use std::sync::LazyLock;

use mcp::operation_table::OperationTable;
pub use mcp::operation_table::{KeyScope, Operation, Parameter, RequestBody};
use serde::Deserialize;
use serde_json::Value;

const SNIPPETS: &str = include_str!("../../../sdk/snippets.json");
const ANSWERS: &str = include_str!("../../../sdk/answers.json");
const WORDS: &str = include_str!("../../../sdk/generate/words.json");

/// All that the reference describes: the operation table, with examples and texts.
#[derive(Debug)]
pub struct ApiTable {
    table: &'static OperationTable,
    /// Examples by operation and language, with placeholders (`{{email_id}}`).
    pub snippets: BTreeMap<String, BTreeMap<String, String>>,
    /// Recorded answers by operation.
    pub answers: BTreeMap<String, Value>,
    /// A sentence for each resource.
    pub resource_texts: BTreeMap<String, String>,
}

#[derive(Debug, Deserialize)]
pub struct ApiErrorCode {
    pub code: String,
    pub status: u16,
    pub description: String,
}

impl Deref for ApiTable {
    type Target = OperationTable;

    fn deref(&self) -> &OperationTable {
        self.table
    }
}

/// The anchor of an operation.
pub fn anchor(operation: &Operation) -> String {
    operation.id.replace('_', "-")
}

impl ApiTable {
    /// The table that is compiled in.
    ///
    /// # Panics
    /// Never: a test reads the files.
    pub fn load() -> &'static Self {
        static TABLE: LazyLock<ApiTable> = LazyLock::new(|| {
            ApiTable::parse().unwrap_or_else(|error| panic!("a file of sdk/ has another form: {error}"))
        });
        &TABLE
    }

    fn parse() -> Result<Self, serde_json::Error> {
        #[derive(Deserialize)]
        struct Words {
            resources: BTreeMap<String, String>,
        }
        Ok(Self {
            table: OperationTable::get(),
            snippets: serde_json::from_str(SNIPPETS)?,
            answers: serde_json::from_str(ANSWERS)?,
            resource_texts: serde_json::from_str::<Words>(WORDS)?.resources,
        })
    }

    pub fn operation(&self, id: &str) -> Option<&Operation> {
        self.operations.iter().find(|operation| operation.id == id)
    }

    /// The errors by name, in the order of their status.
    pub fn errors(&self) -> Vec<(&str, ApiErrorCode)> {
        let parsed = self.error_codes.iter().filter_map(|(name, code)| {
            let code = ApiErrorCode::deserialize(code).ok()?;
            Some((name.as_str(), code))
        });
        let mut errors: Vec<_> = parsed.collect();
        errors.sort_by_key(|(_, code)| code.status);
        errors
    }

    /// The schema that a reference names.
    pub fn referenced<'t>(&'t self, schema: &Value) -> Option<(&'t str, &'t Value)> {
        let name = OperationTable::referred(schema)?;
        self.schemas.get_key_value(name).map(|(name, schema)| (name.as_str(), schema))
    }
}

/// Replaces `{{email_id}}` by `EMAIL_ID`. `{{name}}`, a variable of templates, stays.
pub fn name_placeholders(code: &str) -> String {
    let (mut named, mut rest) = (String::new(), code);
    while let Some((before, after)) = rest.split_once("{{") {
        let Some((name, tail)) = after.split_once("}}") else { break };
        named.push_str(before);
        let is_placeholder = name != "name" && name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_');
        if is_placeholder {
            named.push_str(&name.to_uppercase());
            rest = tail;
        } else {
            named.push_str("{{");
            rest = after;
        }
    }
    named + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_files_are_read() {
        let table = ApiTable::load();
        assert_eq!(table.errors().len(), table.error_codes.len());
        assert!(table.operations.iter().all(|operation| table.snippets.contains_key(&operation.id)));
        for recorded in table.answers.keys() {
            assert!(table.operations.iter().any(|operation| operation.id == *recorded), "{recorded}");
        }
    }

    #[test]
    fn placeholders_are_named() {
        assert_eq!(name_placeholders("get {{email_id}} {{}"), "get EMAIL_ID {{}");
        assert_eq!(name_placeholders("'Hi {{name}} {{tomorrow}}' => [{{\n}}]"), "'Hi {{name}} TOMORROW' => [{{\n}}]");
    }
}
