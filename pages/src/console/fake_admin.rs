//! Admin requests with fixed answers, for tests of screens.

use parking_lot::Mutex;

use bytes::Bytes;
use futures_util::future::{BoxFuture, FutureExt as _};
use jiff::Timestamp;
use serde_json::Value;

use super::router::{self, ConsoleAnswer};
use crate::dashboard::answer::PageContent;
use crate::dashboard::backend::{Backend, Call, CallBody, Failure, Reply};
use crate::dashboard::request::{Fields, PageRequest};
use crate::dashboard::viewer::Viewer;

const CSRF: &str = "csrf-of-the-test";
const NOW: &str = "2026-11-26T12:00:00Z";

/// Text as hostile as a stranger can write it.
pub(crate) const HOSTILE: &str = "<script>alert(1)</script>\"'&\u{202e}x\u{1}";

/// Requests with fixed answers. Others answer 404.
#[derive(Debug, Default)]
pub(crate) struct FakeAdmin {
    answers: Vec<(&'static str, Result<Value, Failure>)>,
    calls: Mutex<Vec<Call>>,
}

impl FakeAdmin {
    pub(crate) fn answer(mut self, operation: &'static str, body: Value) -> Self {
        self.answers.push((operation, Ok(body)));
        self
    }

    pub(crate) fn refuse(mut self, operation: &'static str, failure: Failure) -> Self {
        self.answers.push((operation, Err(failure)));
        self
    }

    /// The bodies of an operation's calls until now.
    pub(crate) fn bodies(&self, operation: &str) -> Vec<Value> {
        let calls = self.calls.lock();
        let body = |call: &Call| match &call.body {
            CallBody::Json(body) => body.clone(),
            _ => Value::Null,
        };
        calls.iter().filter(|call| call.operation == operation).map(body).collect()
    }

    /// Shows a page; `target` is below `/console`.
    pub(crate) fn get(&self, target: &str) -> ConsoleAnswer {
        self.send(target, PageRequest::default(), true)
    }

    /// Sends a form.
    pub(crate) fn post(&self, target: &str, form: &str, fields: &[(&str, &str)]) -> ConsoleAnswer {
        let own = [("csrf", CSRF), ("form", form)];
        let pairs = own.iter().chain(fields).map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        let form = Fields::from_pairs(pairs.collect());
        self.send(target, PageRequest { is_post: true, form, ..PageRequest::default() }, true)
    }

    pub(crate) fn send(&self, target: &str, request: PageRequest, is_signed_in: bool) -> ConsoleAnswer {
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        let (path, query) = (format!("/console{path}"), Fields::parse(query.as_bytes()));
        let request = PageRequest { path, query, ..request };
        let viewer = viewer();
        let answer = router::answer(self, is_signed_in.then_some(&viewer), &request).now_or_never();
        answer.expect("the fake's answers are ready at once")
    }
}

fn viewer() -> Viewer {
    Viewer {
        user_id: String::new(),
        email: String::new(),
        role: "operator".into(),
        account_id: String::new(),
        csrf: CSRF.into(),
        session_id: String::new(),
        has_password: false,
        signed_in_at: NOW.parse().expect("a time"),
    }
}

impl Backend for FakeAdmin {
    fn perform<'a>(&'a self, call: &'a Call) -> BoxFuture<'a, Result<Reply, Failure>> {
        self.calls.lock().push(call.clone());
        let found = self.answers.iter().rev().find(|(operation, _)| *operation == call.operation);
        let reply = match found.map(|(_, answer)| answer.clone()) {
            Some(Ok(body)) => Ok(Reply { status: 200, body: Bytes::from(body.to_string()), ..Reply::default() }),
            Some(Err(failure)) => Err(failure),
            None => Err(Failure::not_found()),
        };
        Box::pin(async move { reply })
    }

    fn allows(&self, _: &str) -> bool {
        true
    }

    fn now(&self) -> Timestamp {
        NOW.parse().expect("a time")
    }

    fn base_url(&self) -> &str {
        ""
    }
}

pub(crate) fn html(answer: ConsoleAnswer) -> String {
    match answer.answer.content {
        PageContent::Html(html) => html,
        other => panic!("no page: {other:?}"),
    }
}

/// The path that an answer leads to.
pub(crate) fn location(answer: ConsoleAnswer) -> String {
    match answer.answer.content {
        PageContent::SeeOther(path) => path,
        other => panic!("leads nowhere: {other:?}"),
    }
}

/// Asserts that [`HOSTILE`] cannot act in a page, and is shown.
pub(crate) fn assert_harmless(html: &str) {
    assert!(!html.contains("<script>alert"), "a script of a stranger: {html}");
    assert!(!html.contains('\u{202e}') && !html.contains('\u{1}'), "a deceptive character");
    assert!(
        html.contains("&lt;script&gt;alert(1)") || html.contains("&lt;script>alert(1)"),
        "the text is shown: {html}"
    );
}
