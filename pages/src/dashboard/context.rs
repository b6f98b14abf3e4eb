//! The context of a request, for the functions of the page table.

use std::sync::atomic::{AtomicBool, Ordering};

pub use html::fragment::raw;
use jiff::{SignedDuration, Timestamp};
use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::backend::{Backend, Call, Failure, Reply};
use super::request::{Fields, PageRequest};
use super::viewer::Viewer;

/// Most answers of a list that are read for one page, as long as they have no entries.
const EMPTY_PAGES_MAX: usize = 5;
/// No further answer is asked for when this time has passed since the first one.
const EMPTY_PAGES_DURATION_MAX: SignedDuration = SignedDuration::from_millis(20);

/// A routed request with its user and the operations.
pub struct Context<'a> {
    pub request: &'a PageRequest,
    /// Path parameters, decoded.
    pub parameters: Vec<(String, String)>,
    pub viewer: Option<&'a Viewer>,
    pub backend: &'a dyn Backend,
    /// The form that was refused, when its page is shown again.
    pub refused: Option<RefusedForm>,
}

/// A page of a list of the API, whatever the API calls the entries.
#[derive(Debug, Clone, Deserialize)]
pub struct List<T> {
    #[serde(
        alias = "accounts",
        alias = "approvals",
        alias = "attempts",
        alias = "automations",
        alias = "category_opt_outs",
        alias = "claims",
        alias = "conversions",
        alias = "data",
        alias = "deliveries",
        alias = "domains",
        alias = "events",
        alias = "grants",
        alias = "imports",
        alias = "logs",
        alias = "runs",
        alias = "suppressions",
        alias = "templates",
        alias = "versions",
        alias = "webhooks"
    )]
    pub entries: Vec<T>,
    pub next_cursor: Option<String>,
}

impl<T> Default for List<T> {
    fn default() -> Self {
        Self { entries: Vec::new(), next_cursor: None }
    }
}

#[derive(Debug)]
pub struct RefusedForm {
    /// The form's name in the page table.
    pub name: String,
    pub failure: Failure,
    /// The page shows the failure beside the form.
    is_shown: AtomicBool,
}

impl RefusedForm {
    pub fn new(name: impl Into<String>, failure: Failure) -> Self {
        Self { name: name.into(), failure, is_shown: AtomicBool::new(false) }
    }
}

impl Context<'_> {
    /// A path parameter, decoded; empty if the path has none of that name.
    pub fn parameter(&self, name: &str) -> &str {
        self.parameters.iter().find(|(other, _)| other == name).map_or("", |(_, value)| value)
    }

    /// The path parameter `id`.
    pub fn id(&self) -> &str {
        self.parameter("id")
    }

    pub fn query(&self) -> &Fields {
        &self.request.query
    }

    pub fn form(&self) -> &Fields {
        &self.request.form
    }

    pub fn now(&self) -> Timestamp {
        self.backend.now()
    }

    pub fn allows(&self, operation: &str) -> bool {
        self.backend.allows(operation)
    }

    /// Calls an operation.
    pub async fn perform(&self, call: &Call) -> Result<Reply, Failure> {
        self.backend.perform(call).await
    }

    /// Calls an operation and reads its answer.
    pub async fn read<T: DeserializeOwned>(&self, call: &Call) -> Result<T, Failure> {
        self.perform(call).await?.read()
    }

    /// Calls an operation and reads one field of its answer.
    pub async fn read_field<T: DeserializeOwned>(&self, name: &str, call: &Call) -> Result<T, Failure> {
        self.perform(call).await?.read_field(name)
    }

    /// Reads a page of a list. With filters, an answer can have no entries though there are more, because a request looks
    /// at a bounded number: the search then goes on, for a bounded time and number of requests. `page_of` returns the
    /// number of entries and the next cursor of an answer.
    pub async fn read_page<T: DeserializeOwned>(
        &self,
        call: &Call,
        page_of: impl for<'p> Fn(&'p T) -> (usize, Option<&'p str>),
    ) -> Result<T, Failure> {
        let mut found: T = self.read(call).await?;
        let first_at = self.now();
        for _ in 1..EMPTY_PAGES_MAX {
            let (0, Some(cursor)) = page_of(&found) else { break };
            if self.now().duration_since(first_at) >= EMPTY_PAGES_DURATION_MAX {
                break;
            }
            let mut next = call.clone();
            next.query.retain(|(name, _)| name != "cursor");
            let next = next.query("cursor", cursor);
            found = self.read(&next).await?;
        }
        Ok(found)
    }

    /// Reads a page of a list, as [`Self::read_page`].
    pub async fn read_list<T: DeserializeOwned>(&self, call: &Call) -> Result<List<T>, Failure> {
        self.read_page(call, |list: &List<T>| (list.entries.len(), list.next_cursor.as_deref())).await
    }

    /// The failure of a form, when its page is shown again.
    pub fn failure_of(&self, form: &str) -> Option<&Failure> {
        self.refused.as_ref().filter(|refused| refused.name == form).map(|refused| &refused.failure)
    }

    /// Notes that the page shows the failure of a form, so that the frame does not show it again.
    pub fn mark_shown(&self, form: &str) {
        if let Some(refused) = self.refused.as_ref().filter(|refused| refused.name == form) {
            refused.is_shown.store(true, Ordering::Relaxed);
        }
    }

    /// The failure of a form that the rendered page does not show: of a button, or of a form that is gone.
    pub fn stray_failure(&self) -> Option<&Failure> {
        let refused = self.refused.as_ref().filter(|refused| !refused.is_shown.load(Ordering::Relaxed))?;
        Some(&refused.failure).filter(|failure| !failure.message.is_empty())
    }

    /// True if a form was sent to look at its effect only.
    pub fn is_preview(&self) -> bool {
        self.refused.as_ref().is_some_and(|refused| refused.failure.status == 200)
    }

    /// The CSRF token of the session; empty without one.
    pub fn csrf(&self) -> &str {
        self.viewer.map_or("", |viewer| &viewer.csrf)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Map, Value, json};

    use super::*;

    /// An answer with two of the names that [`List`] takes for its entries could not be read.
    #[test]
    fn no_list_of_the_api_has_two_names_of_entries() {
        let table: Value = serde_json::from_str(include_str!("../../../sdk/operations.json")).unwrap();
        let operations = table["operations"].as_array().unwrap().iter();
        let mut lists = 0;
        for operation in operations.filter(|operation| operation["pages"].is_string()) {
            let schema = &operation["response"]["schema"];
            let named = schema["$ref"].as_str().and_then(|path| path.rsplit('/').next());
            let fields = named.map_or(schema, |name| &table["schemas"][name])["properties"].as_object().unwrap().keys();
            let empty = |name: &String| (name.clone(), if name == "next_cursor" { Value::Null } else { json!([]) });
            let answer: Map<String, Value> = fields.map(empty).collect();
            let read = serde_json::from_value::<List<Value>>(answer.into());
            let is_ambiguous = read.is_err_and(|error| error.to_string().contains("duplicate field"));
            assert!(!is_ambiguous, "{}: name the field of its entries with `read_field`", operation["id"]);
            lists += 1;
        }
        assert!(lists > 0);
        let ambiguous = json!({"events": [], "runs": [], "next_cursor": null});
        assert!(serde_json::from_value::<List<Value>>(ambiguous).unwrap_err().to_string().contains("duplicate field"));
    }
}
