//! Operations with fixed answers, for tests of screens.

use parking_lot::Mutex;

use bytes::Bytes;
use futures_util::future::{BoxFuture, FutureExt as _};
use jiff::Timestamp;
use serde_json::Value;

use super::answer::{PageAnswer, PageContent};
use super::backend::{Backend, Call, Failure, Reply};
use super::request::{Fields, PageRequest, UploadedFile};
use super::router;
use super::viewer::Viewer;

const CSRF: &str = "csrf-of-the-test";
/// The time of the tests.
const NOW: &str = "2026-11-26T12:00:00Z";

/// The version of every object.
pub(crate) const ETAG: &str = "\"7\"";

/// Text as hostile as a stranger can write it.
pub(crate) const HOSTILE: &str = "<script>alert(1)</script>\"'&\u{202e}x\u{1}";

/// Operations with fixed answers. Other operations answer 404.
#[derive(Debug, Default)]
pub(crate) struct FakeBackend {
    answers: Vec<(&'static str, Result<Value, Failure>)>,
    /// Answers to calls with a cursor: operation, cursor, answer.
    pages: Vec<(&'static str, &'static str, Value)>,
    forbidden: Vec<&'static str>,
    /// Operations whose held requests the user's role may not decide.
    undecidable: Vec<&'static str>,
    calls: Mutex<Vec<Call>>,
}

impl FakeBackend {
    pub(crate) fn new() -> Self {
        Self::default()
    }

    pub(crate) fn answer(mut self, operation: &'static str, body: Value) -> Self {
        self.answers.push((operation, Ok(body)));
        self
    }

    /// Sets the answer of a list after a cursor.
    pub(crate) fn answer_after(mut self, operation: &'static str, cursor: &'static str, body: Value) -> Self {
        self.pages.push((operation, cursor, body));
        self
    }

    /// Lets an operation refuse.
    pub(crate) fn refuse(mut self, operation: &'static str, failure: Failure) -> Self {
        self.answers.push((operation, Err(failure)));
        self
    }

    /// The user's role does not allow an operation.
    pub(crate) fn forbid(mut self, operation: &'static str) -> Self {
        self.forbidden.push(operation);
        self
    }

    /// The user's role may not decide held requests of an operation.
    pub(crate) fn forbid_decision(mut self, operation: &'static str) -> Self {
        self.undecidable.push(operation);
        self
    }

    /// The calls of an operation until now.
    pub(crate) fn calls(&self, operation: &str) -> Vec<Call> {
        let calls = self.calls.lock();
        calls.iter().filter(|call| call.operation == operation).cloned().collect()
    }

    /// Shows a page; `target` is below `/dashboard`.
    pub(crate) fn get(&self, target: &str) -> PageAnswer {
        self.send(target, PageRequest::default())
    }

    /// Sends a form.
    pub(crate) fn post(&self, target: &str, form: &str, fields: &[(&str, &str)]) -> PageAnswer {
        self.post_files(target, form, fields, Vec::new())
    }

    /// Sends a form with files.
    pub(crate) fn post_files(
        &self,
        target: &str,
        form: &str,
        fields: &[(&str, &str)],
        files: Vec<UploadedFile>,
    ) -> PageAnswer {
        let own = [("csrf", CSRF), ("form", form)];
        let pairs = own.iter().chain(fields).map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        let form = Fields::from_pairs(pairs.collect());
        self.send(target, PageRequest { is_post: true, form, files, ..PageRequest::default() })
    }

    fn send(&self, target: &str, request: PageRequest) -> PageAnswer {
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        let (path, query) = (format!("/dashboard{path}"), Fields::parse(query.as_bytes()));
        let request = PageRequest { path, query, ..request };
        let answer = router::answer(self, Some(&viewer()), &request).now_or_never();
        answer.expect("the fake's answers are ready at once")
    }
}

fn viewer() -> Viewer {
    Viewer {
        user_id: "usr_1".into(),
        email: "ada@example.com".into(),
        role: "owner".into(),
        account_id: "acct_1".into(),
        csrf: CSRF.into(),
        session_id: "ses_1".into(),
        has_password: true,
        signed_in_at: NOW.parse().expect("a time"),
    }
}

impl Backend for FakeBackend {
    fn perform<'a>(&'a self, call: &'a Call) -> BoxFuture<'a, Result<Reply, Failure>> {
        self.calls.lock().push(call.clone());
        let answer = self.answers.iter().rev().find(|(operation, _)| *operation == call.operation);
        let is_page = |(operation, cursor, _): &&(&str, &str, Value)| {
            *operation == call.operation && call.query.iter().any(|(name, value)| name == "cursor" && value == cursor)
        };
        let page = self.pages.iter().find(is_page).map(|(.., body)| Ok(body.clone()));
        let answer = match page.or_else(|| answer.map(|(_, answer)| answer.clone())) {
            Some(Ok(Value::String(text))) => Ok(Bytes::from(text)),
            Some(Ok(body)) => Ok(Bytes::from(body.to_string())),
            Some(Err(failure)) => Err(failure),
            None => Err(Failure::not_found()),
        };
        let reply = answer.map(|body| Reply { status: 200, body, etag: Some(ETAG.into()), ..Reply::default() });
        Box::pin(async move { reply })
    }

    fn allows(&self, operation: &str) -> bool {
        !self.forbidden.contains(&operation)
    }

    fn may_decide(&self, operation: &str) -> bool {
        !self.undecidable.contains(&operation)
    }

    fn now(&self) -> Timestamp {
        NOW.parse().expect("a time")
    }

    fn base_url(&self) -> &str {
        "https://api.example.com"
    }
}

pub(crate) fn html(answer: PageAnswer) -> String {
    match answer.content {
        PageContent::Html(html) => html,
        other => panic!("no page: {other:?}"),
    }
}

/// The path that an answer leads to.
pub(crate) fn location(answer: PageAnswer) -> String {
    match answer.content {
        PageContent::SeeOther(path) => path,
        other => panic!("leads nowhere: {other:?}"),
    }
}

/// Asserts that [`HOSTILE`] cannot act in a page, and is shown.
pub(crate) fn assert_harmless(html: &str) {
    assert!(!html.contains("<script>alert"), "a script of a stranger: {html}");
    assert!(!html.contains('\u{202e}') && !html.contains('\u{1}'), "a deceptive character");
    assert!(html.contains("&lt;script&gt;alert(1)"), "the text is shown: {html}");
}
