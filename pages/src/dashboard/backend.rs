//! The operations of the API, as pages call them.

use std::collections::BTreeMap;

use bytes::Bytes;
use futures_util::future::BoxFuture;
use jiff::Timestamp;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use serde_json::value::RawValue;

use super::context::List;
use super::request::Fields;

/// Calls operations as the signed-in user; without one, public operations.
pub trait Backend: Send + Sync {
    /// Calls an operation.
    fn perform<'a>(&'a self, call: &'a Call) -> BoxFuture<'a, Result<Reply, Failure>>;

    /// Returns whether the user's role allows an operation.
    fn allows(&self, operation: &str) -> bool;

    /// Returns whether the user's role may approve or reject held requests of an operation. One that moves money needs a
    /// higher role, which a backend without roles does not check.
    fn may_decide(&self, _operation: &str) -> bool {
        self.allows("approve_request")
    }

    /// The time of the server.
    fn now(&self) -> Timestamp;

    /// The public base URL of the API, without a trailing slash.
    fn base_url(&self) -> &str;
}

/// A call of an operation: what a page reads, or what a form sends. The "same as" lines show it in other languages.
#[must_use]
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Call {
    /// The operation's id: `list_emails`.
    pub operation: &'static str,
    /// Path parameters, not encoded.
    pub path: Vec<(&'static str, String)>,
    /// Query parameters, not encoded.
    pub query: Vec<(String, String)>,
    pub body: CallBody,
    /// `Idempotency-Key`, where the operation takes one.
    pub idempotency_key: Option<String>,
    /// `If-Match`: the `ETag` of the object as the form showed it.
    pub if_match: Option<String>,
}

#[derive(Debug, Clone, Default, PartialEq)]
pub enum CallBody {
    #[default]
    None,
    Json(Value),
    /// A file with its media type, for imports.
    File(&'static str, Bytes),
}

impl Call {
    pub fn new(operation: &'static str) -> Self {
        Self { operation, ..Self::default() }
    }

    /// Sets the path parameter `id`.
    pub fn id(self, id: impl Into<String>) -> Self {
        self.parameter("id", id)
    }

    pub fn parameter(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.path.push((name, value.into()));
        self
    }

    /// Adds a query parameter, unless its value is empty.
    pub fn query(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        let value = value.into();
        if !value.is_empty() {
            self.query.push((name.into(), value));
        }
        self
    }

    /// Adds the fields of a page's query that have the names of the operation's parameters.
    pub fn filters(self, fields: &Fields, names: &[&str]) -> Self {
        names.iter().fold(self, |call, name| call.query(*name, fields.get(name).trim()))
    }

    /// Refuses the change (412) if the object has another `ETag` by now. An empty one means that the form had none.
    pub fn if_match(mut self, etag: &str) -> Self {
        self.if_match = (!etag.is_empty()).then(|| etag.to_owned());
        self
    }

    pub fn json(mut self, body: Value) -> Self {
        self.body = CallBody::Json(body);
        self
    }
}

/// The answer of an operation.
#[derive(Debug, Default)]
pub struct Reply {
    pub status: u16,
    pub media_type: String,
    pub body: Bytes,
    /// `Set-Cookie` of operations that begin or end a session.
    pub cookies: Vec<String>,
    /// `ETag`: the version of the object, where the operation returns one.
    pub etag: Option<String>,
}

impl Reply {
    /// Reads the JSON body.
    ///
    /// # Errors
    /// The body has another form.
    pub fn read<T: DeserializeOwned>(&self) -> Result<T, Failure> {
        serde_json::from_slice(&self.body).map_err(|error| Failure::internal(error.to_string()))
    }

    /// Reads one field of the JSON body.
    ///
    /// # Errors
    /// There is no such field, or it has another form.
    pub fn read_field<T: DeserializeOwned>(&self, name: &str) -> Result<T, Failure> {
        let fields: BTreeMap<String, &RawValue> =
            serde_json::from_slice(&self.body).map_err(|error| Failure::internal(error.to_string()))?;
        let field = fields.get(name).ok_or_else(|| Failure::internal(format!("the answer has no `{name}`")))?;
        serde_json::from_str(field.get()).map_err(|error| Failure::internal(error.to_string()))
    }

    /// Reads a page of a list; `name` is the field with its entries. The event stream has a cursor at its end too, from
    /// which a client can poll: it leads to no further page.
    ///
    /// # Errors
    /// There is no such field, or it has another form.
    pub fn read_list<T: DeserializeOwned>(&self, name: &str) -> Result<List<T>, Failure> {
        #[derive(Deserialize)]
        struct ListEnd {
            next_cursor: Option<String>,
            has_more: Option<bool>,
            searched_until: Option<String>,
        }
        let end: ListEnd = self.read()?;
        let next_cursor = end.next_cursor.filter(|_| end.has_more != Some(false));
        let entries = self.read_field(name)?;
        Ok(List { entries, next_cursor, searched_until: end.searched_until, refused: None })
    }
}

/// The answer of an operation on one object; `None` if there is no such object.
///
/// # Errors
/// The operation refused or failed for another reason.
pub fn if_found<T>(answer: Result<T, Failure>) -> Result<Option<T>, Failure> {
    match answer {
        Ok(found) => Ok(Some(found)),
        Err(failure) if failure.status == 404 => Ok(None),
        Err(failure) => Err(failure),
    }
}

/// An operation refused the call, or failed.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Failure {
    pub status: u16,
    /// The error code of the API.
    pub code: String,
    pub message: String,
    /// Errors by field: the name as in the request, for example `html` or `steps[0].wait`.
    pub fields: BTreeMap<String, String>,
    /// Boxed, because most results have none.
    pub details: Box<Value>,
    pub upgrade_url: Option<Box<str>>,
    pub request_id: Option<Box<str>>,
}

impl Failure {
    /// A failure without errors of fields. `code` is an error code of the API.
    pub fn new(status: u16, code: &str, message: impl Into<String>) -> Self {
        Self { status, code: code.to_owned(), message: message.into(), ..Self::default() }
    }

    /// A failure of this program. `cause` is for the log of the server and is not shown.
    pub fn internal(cause: String) -> Self {
        let message = "The page could not be rendered; see the server's log";
        Self { details: Box::new(Value::String(cause)), ..Self::new(500, "internal_error", message) }
    }

    /// A form that was sent to look at its effect: the page is shown again with what was entered, without an error.
    pub fn preview() -> Self {
        Self::new(200, "preview", "")
    }

    pub fn not_found() -> Self {
        Self::new(404, "not_found", "There is no such page")
    }

    /// A field of a form is wrong.
    pub fn field(name: &str, message: impl Into<String>) -> Self {
        let message = message.into();
        let fields = [(name.to_owned(), message.clone())].into();
        Self { fields, ..Self::new(400, "validation_error", message) }
    }
}
