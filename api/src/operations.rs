//! The operation table: everything that the door offers, once.
//!
//! The router, the OpenAPI document and the scope tests are derived from it; so will be the command
//! line, the documentation and the MCP tools. An operation is added here and nowhere else.

use std::fmt;

use http::Method;
use mail::credential::Scope;

use crate::call::{Input, KeyedAction, Media, PublicAction, Reply, Takes, keyed, public};
use crate::problem::Code;
use crate::room::Room;
use crate::schema::Schemas;
use crate::{emails, health, openapi, opt_outs, suppressions, templates, tracking, unsubscribe};
use store::access::Tenant;

/// Who may call an operation, and what it does.
pub enum Action {
    /// Anybody.
    Public(PublicAction),
    /// Whoever has a key of this scope.
    Keyed(Scope, KeyedAction),
}

impl fmt::Debug for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Public(_) => f.write_str("Public"),
            Self::Keyed(scope, _) => write!(f, "Keyed({scope:?})"),
        }
    }
}

/// What an operation gives, for the document.
#[derive(Debug)]
pub struct Gives {
    /// What the bytes are.
    pub media_type: &'static str,
    /// The schema.
    pub schema: fn(&mut Schemas) -> serde_json::Value,
}

/// One thing that can be asked of the door.
#[derive(Debug)]
pub struct Operation {
    /// The method.
    pub method: Method,
    /// The path; `{id}` is a parameter.
    pub path: &'static str,
    /// What programs call it.
    pub id: &'static str,
    /// The noun it belongs to.
    pub noun: &'static str,
    /// What it does, in a line.
    pub summary: &'static str,
    /// The largest body; none where there is none.
    pub body_bytes_max: Option<usize>,
    /// What the body may be.
    pub media: Media,
    /// What it takes.
    pub takes: fn(&mut Schemas) -> Takes,
    /// What it gives.
    pub gives: Gives,
    /// The errors of its own, beside those that follow from what it is (the document).
    pub fails: &'static [Code],
    /// Who may call it, and what it does.
    pub action: Action,
}

impl Operation {
    /// The scope that a key needs; none where no key is needed.
    #[must_use]
    pub fn scope(&self) -> Option<Scope> {
        match self.action {
            Action::Public(_) => None,
            Action::Keyed(scope, _) => Some(scope),
        }
    }
}

/// An operation before it has a handler.
#[derive(Debug, Clone)]
pub struct Entry {
    method: Method,
    path: &'static str,
    id: &'static str,
    noun: &'static str,
    summary: &'static str,
    fails: &'static [Code],
}

/// Begins an operation: `POST /emails`, `send_email`, of the noun `emails`.
#[must_use]
pub fn operation(method: Method, path: &'static str, id: &'static str) -> Entry {
    Entry { method, path, id, noun: "service", summary: "", fails: &[] }
}

impl Entry {
    /// The noun it belongs to, and what it does, in a line.
    #[must_use]
    pub fn about(mut self, noun: &'static str, summary: &'static str) -> Self {
        (self.noun, self.summary) = (noun, summary);
        self
    }

    /// The errors that are its own: what every operation of its kind can answer needs not be named.
    #[must_use]
    pub fn fails(mut self, codes: &'static [Code]) -> Self {
        self.fails = codes;
        self
    }

    /// Anybody may call it.
    #[must_use]
    pub fn public<I: Input, O: Reply, F, Run>(self, handler: F) -> Operation
    where
        F: Fn(std::sync::Arc<Room>, I) -> Run + Send + Sync + Copy + 'static,
        Run: Future<Output = Result<O, crate::problem::Problem>> + Send + 'static,
    {
        self.end::<I, O>(Action::Public(public(handler)))
    }

    /// Whoever has a key of this scope may call it.
    #[must_use]
    pub fn keyed<I: Input, O: Reply, F, Run>(self, scope: Scope, handler: F) -> Operation
    where
        F: Fn(std::sync::Arc<Room>, Tenant, I) -> Run + Send + Sync + Copy + 'static,
        Run: Future<Output = Result<O, crate::problem::Problem>> + Send + 'static,
    {
        self.end::<I, O>(Action::Keyed(scope, keyed(handler)))
    }

    fn end<I: Input, O: Reply>(self, action: Action) -> Operation {
        Operation {
            method: self.method,
            path: self.path,
            id: self.id,
            noun: self.noun,
            summary: self.summary,
            body_bytes_max: I::BODY_BYTES_MAX,
            media: I::MEDIA,
            takes: I::describe,
            fails: self.fails,
            gives: Gives { media_type: O::MEDIA_TYPE, schema: O::describe },
            action,
        }
    }
}

/// The table.
#[must_use]
pub fn table() -> Vec<Operation> {
    use Scope::{Full, Sending};
    let get = |path, id| operation(Method::GET, path, id);
    let post = |path, id| operation(Method::POST, path, id);
    let mut table = vec![
        get("/healthz", "check_health").about("service", "Is the service healthy?").public(health::check),
        get("/openapi.json", "get_openapi").about("service", "This document").public(openapi::get),
        post("/emails", "send_email")
            .about("emails", "Send an email")
            .fails(Code::SENDING)
            .keyed(Sending, emails::send),
        post("/emails/batch", "send_batch")
            .about("emails", "Send up to 100 emails in one request")
            .fails(Code::SENDING)
            .keyed(Sending, emails::send_batch),
        get("/emails", "list_emails")
            .about("emails", "List emails, newest first")
            .keyed(Sending, emails::list),
        get("/emails/{id}", "get_email").about("emails", "Get an email").keyed(Sending, emails::get),
        operation(Method::PATCH, "/emails/{id}", "amend_email")
            .about("emails", "Send a scheduled email at another time, or cancel it")
            .fails(&[Code::CONFLICT])
            .keyed(Sending, emails::amend::amend),
        post("/emails/{id}/cancel", "cancel_email")
            .about("emails", "Cancel a scheduled email")
            .fails(&[Code::CONFLICT])
            .keyed(Sending, emails::amend::cancel),
        post("/emails/{id}/resend", "resend_email")
            .about("emails", "Send a stored email again, without its attachments")
            .fails(Code::SENDING)
            .keyed(Sending, emails::resend::resend),
        get("/emails/{id}/events", "list_email_events")
            .about("emails", "List what happened to an email, newest first")
            .keyed(Sending, emails::events),
        get("/emails/{id}/attempts", "list_email_attempts")
            .about("emails", "List the delivery attempts of an email, newest first")
            .keyed(Sending, emails::attempts),
        get("/emails/{id}/raw", "get_email_raw")
            .about("emails", "Get the message as it was sent")
            .keyed(Full, emails::raw),
    ];
    table.extend(suppressions::operations());
    table.extend(opt_outs::operations());
    table.extend(unsubscribe::operations());
    table.extend(templates::operations());
    table.extend(tracking::operations());
    table
}
