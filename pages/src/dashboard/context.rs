//! The context of a request, for the functions of the page table.

use std::sync::atomic::{AtomicBool, Ordering};

pub use html::fragment::raw;
use jiff::{SignedDuration, Timestamp};
use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::backend::{Backend, Call, Failure, Reply};
use super::request::{Fields, PageRequest};
use super::table::Outcome;
use super::viewer::Viewer;

/// Most answers of a list that are read for one page, as long as they have no entries.
const EMPTY_PAGES_MAX: usize = 5;
/// No further answer is asked for when this time has passed since the first one.
const EMPTY_PAGES_DURATION_MAX: SignedDuration = SignedDuration::from_millis(20);
/// Entries of each page that [`Context::read_pages`] reads.
pub const PAGE_ENTRIES: usize = 100;

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

/// A page of a list of the API.
#[derive(Debug, Clone)]
pub struct List<T> {
    pub entries: Vec<T>,
    pub next_cursor: Option<String>,
    /// Where a search stopped that has found fewer entries than asked for.
    pub searched_until: Option<String>,
    /// The API refused a filter, so nothing was read.
    pub refused: Option<Failure>,
}

impl<T> Default for List<T> {
    fn default() -> Self {
        Self { entries: Vec::new(), next_cursor: None, searched_until: None, refused: None }
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

    /// Returns whether the user may approve or reject held requests of an operation.
    pub fn may_decide(&self, operation: &str) -> bool {
        self.allows("approve_request") && self.backend.may_decide(operation)
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

    /// Reads a page of a list; `name` is the field with its entries. With filters, an answer can have no entries though
    /// there are more, because a request looks at a bounded number: the search then goes on, for a bounded time and number
    /// of requests.
    pub async fn read_list<T: DeserializeOwned>(&self, name: &str, call: &Call) -> Result<List<T>, Failure> {
        let mut found: List<T> = self.perform(call).await?.read_list(name)?;
        let first_at = self.now();
        for _ in 1..EMPTY_PAGES_MAX {
            let (true, Some(cursor)) = (found.entries.is_empty(), &found.next_cursor) else { break };
            if self.now().duration_since(first_at) >= EMPTY_PAGES_DURATION_MAX {
                break;
            }
            let mut next = call.clone();
            next.query.retain(|(name, _)| name != "cursor");
            let next = next.query("cursor", cursor);
            found = self.perform(&next).await?.read_list(name)?;
        }
        Ok(found)
    }

    /// Reads a list, as [`Self::read_list`]. A refused filter is no failure: the page keeps its filters, so that the
    /// person can correct them.
    pub async fn read_filtered<T: DeserializeOwned>(&self, name: &str, call: &Call) -> Result<List<T>, Failure> {
        match self.read_list(name, call).await {
            Err(failure) if failure.status == 400 => Ok(List { refused: Some(failure), ..List::default() }),
            answer => answer,
        }
    }

    /// Reads the first pages of a list, each of [`PAGE_ENTRIES`] entries, and whether there are more.
    pub async fn read_pages<T: DeserializeOwned>(
        &self,
        name: &str,
        call: &Call,
        pages_max: usize,
    ) -> Result<(Vec<T>, bool), Failure> {
        let (mut entries, mut cursor) = (Vec::new(), String::new());
        for _ in 0..pages_max {
            let call = call.clone().query("limit", PAGE_ENTRIES.to_string()).query("cursor", cursor);
            let page: List<T> = self.read_list(name, &call).await?;
            entries.extend(page.entries);
            match page.next_cursor {
                Some(next) => cursor = next,
                None => return Ok((entries, false)),
            }
        }
        Ok((entries, true))
    }

    /// Reads a list, as [`Self::read_list`]; it is empty if the role does not allow it.
    pub async fn read_list_allowed<T: DeserializeOwned>(&self, name: &str, call: &Call) -> Result<List<T>, Failure> {
        if self.allows(call.operation) { self.read_list(name, call).await } else { Ok(List::default()) }
    }

    /// Reads the entries of a list, if the role allows it.
    pub async fn read_allowed<T: DeserializeOwned>(&self, name: &str, call: &Call) -> Result<Vec<T>, Failure> {
        if self.allows(call.operation) { self.read_field(name, call).await } else { Ok(Vec::new()) }
    }

    /// Reads the ids of a list's entries, each with its name or address; none if the role may not list them.
    pub async fn read_names(&self, list: &str, call: &Call) -> Result<Vec<(String, String)>, Failure> {
        #[derive(Deserialize)]
        struct NamedEntry {
            id: String,
            #[serde(alias = "email")]
            name: String,
        }
        let found: Vec<NamedEntry> = self.read_allowed(list, call).await?;
        Ok(found.into_iter().map(|entry| (entry.id, entry.name)).collect())
    }

    /// The ids and names of the account's domains, the newest 100.
    pub async fn domain_choices(&self) -> Result<Vec<(String, String)>, Failure> {
        self.read_names("domains", &Call::new("list_domains").query("limit", "100")).await
    }

    /// Carries out an operation, and goes to a page that says what was done.
    pub async fn act(&self, call: &Call, path: impl AsRef<str>, notice: &str) -> Result<Outcome, Failure> {
        self.perform(call).await?;
        Ok(Outcome::done(path, notice))
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
