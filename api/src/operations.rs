//! The operation table: everything that the door offers, once.
//!
//! The router, the OpenAPI document and the scope tests are derived from it; so will be the command
//! line, the documentation and the MCP tools. An operation is added here and nowhere else.

use std::fmt;

use http::Method;
use mail::credential::{ApiKey, Scope, SmtpCredential};
use mail::idempotency::Operation as Keyed;
use mail::quota::Noun;
use mail::user::Role;

use crate::call::{
    Also, Cookies, Input, KeyedAction, Media, Owner, OwnerAction, PublicAction, Reply, SignedInAction, Takes,
    keyed, owner, public, signed_in,
};
use crate::problem::Code;
use crate::room::Room;
use crate::schema::Schemas;
use crate::{
    account, affiliate, auth, automations, billing, credentials, domains, emails, events, health, logs,
    mta_sts, openapi, opt_outs, own, portal, received_emails, suppressions, templates, tracking, unsubscribe,
    users, visits, webhook_events, webhooks,
};
use store::access::{SignedIn, Tenant};

/// Who may call an operation, and what it does.
pub enum Action {
    /// Anybody.
    Public(PublicAction),
    /// Whoever has a key of this scope.
    Keyed(Scope, KeyedAction),
    /// Whoever has a key of this scope; and, with `/api` before the path, whoever has signed in.
    Either(Scope, KeyedAction),
    /// A user who has signed in, of this role or a higher one.
    SignedIn(Role, SignedInAction),
    /// An owner who has signed in; or the operator, in the owner's stead ([`crate::operator`]).
    Owner(OwnerAction),
}

impl fmt::Debug for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Public(_) => f.write_str("Public"),
            Self::Keyed(scope, _) => write!(f, "Keyed({scope:?})"),
            Self::Either(scope, _) => write!(f, "Either({scope:?})"),
            Self::SignedIn(role, _) => write!(f, "SignedIn({role:?})"),
            Self::Owner(_) => f.write_str("Owner"),
        }
    }
}

/// What an operation gives, for the document.
#[derive(Debug)]
pub struct Gives {
    /// The status when it was done.
    pub status: http::StatusCode,
    /// What the bytes are.
    pub media_type: &'static str,
    /// The schema.
    pub schema: fn(&mut Schemas) -> serde_json::Value,
    /// What else it may be.
    pub also: &'static [Also],
    /// The cookies that it may set.
    pub cookies: Cookies,
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
    /// It is about what is one domain's: a key that is bound to a domain may call it, and reaches what is that
    /// domain's. What is the account's as a whole, such a key does not reach.
    pub of_a_domain: bool,
    /// What it stores that the plan bounds.
    pub stores: Stores,
    /// By what its idempotency keys are found, where it takes such keys and stores something that the plan bounds: what was
    /// done with a key is answered as it was, however full the account is.
    pub keys: Option<Keyed>,
    /// Who may call it, and what it does.
    pub action: Action,
}

/// What a call stores, at most: so many rows; or, where the noun is bytes, so many beside those of the request's body.
pub type Stores = &'static [(Noun, u64)];

impl Operation {
    /// The scope that a key needs; none where no key is needed.
    #[must_use]
    pub fn scope(&self) -> Option<Scope> {
        match self.action {
            Action::Public(_) | Action::SignedIn(..) | Action::Owner(_) => None,
            Action::Keyed(scope, _) | Action::Either(scope, _) => Some(scope),
        }
    }

    /// Whether it begins or ends somebody's session: pages of other sites may not have a browser call it.
    #[must_use]
    pub fn changes_session(&self) -> bool {
        self.gives.cookies == Cookies::Session && self.method != Method::GET
    }

    /// Whether whoever has signed in may call it.
    #[must_use]
    pub fn takes_sessions(&self) -> bool {
        matches!(self.action, Action::Either(..) | Action::SignedIn(..) | Action::Owner(_))
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
    of_a_domain: bool,
    stores: Stores,
    keys: Option<Keyed>,
}

/// Begins an operation: `POST /emails`, `send_email`, of the noun `emails`.
#[must_use]
pub fn operation(method: Method, path: &'static str, id: &'static str) -> Entry {
    let (noun, summary) = ("service", "");
    Entry { method, path, id, noun, summary, fails: &[], of_a_domain: false, stores: &[], keys: None }
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

    /// It is about what is one domain's, and its handler reaches no more than that for a key that is bound to
    /// a domain. What does not say so is closed to such keys.
    #[must_use]
    pub fn of_a_domain(mut self) -> Self {
        self.of_a_domain = true;
        self
    }

    /// It stores something that the plan bounds: it is refused when the account keeps as much as the plan includes.
    #[must_use]
    pub fn stores(mut self, stores: Stores) -> Self {
        self.stores = stores;
        self
    }

    /// The same; and its idempotency keys are found by this.
    #[must_use]
    pub fn stores_once(mut self, keys: Keyed, stores: Stores) -> Self {
        (self.keys, self.stores) = (Some(keys), stores);
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

    /// Whoever has a key of this scope may call it, and whoever has signed in.
    #[must_use]
    pub fn either<I: Input, O: Reply, F, Run>(self, scope: Scope, handler: F) -> Operation
    where
        F: Fn(std::sync::Arc<Room>, Tenant, I) -> Run + Send + Sync + Copy + 'static,
        Run: Future<Output = Result<O, crate::problem::Problem>> + Send + 'static,
    {
        self.end::<I, O>(Action::Either(scope, keyed(handler)))
    }

    /// A user who has signed in may call it, of this role or a higher one.
    #[must_use]
    pub fn signed_in<I: Input, O: Reply, F, Run>(self, role: Role, handler: F) -> Operation
    where
        F: Fn(std::sync::Arc<Room>, SignedIn, I) -> Run + Send + Sync + Copy + 'static,
        Run: Future<Output = Result<O, crate::problem::Problem>> + Send + 'static,
    {
        self.end::<I, O>(Action::SignedIn(role, signed_in(handler)))
    }

    /// An owner who has signed in may call it; or the operator, in the owner's stead. What is posted is done once with an
    /// idempotency key.
    #[must_use]
    pub fn owner<I: Input, O: Reply, F, Run>(self, handler: F) -> Operation
    where
        F: Fn(std::sync::Arc<Room>, Owner, I) -> Run + Send + Sync + Copy + 'static,
        Run: Future<Output = Result<O, crate::problem::Problem>> + Send + 'static,
    {
        if self.method != Method::POST {
            return self.end::<I, O>(Action::Owner(owner(handler)));
        }
        let action = Action::Owner(own::once(self.id, owner(handler)));
        Operation { takes: own::describe::<I>, ..self.end::<I, O>(action) }
    }

    /// The same; the handler itself keeps its answer under the key, in the commit of what it does.
    #[must_use]
    pub fn owner_keeps<I: Input, O: Reply, F, Run>(self, handler: F) -> Operation
    where
        F: Fn(std::sync::Arc<Room>, Owner, I) -> Run + Send + Sync + Copy + 'static,
        Run: Future<Output = Result<O, crate::problem::Problem>> + Send + 'static,
    {
        self.end::<I, O>(Action::Owner(owner(handler)))
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
            of_a_domain: self.of_a_domain,
            stores: self.stores,
            keys: self.keys,
            gives: Gives {
                status: O::STATUS,
                media_type: O::MEDIA_TYPE,
                schema: O::describe,
                also: O::ALSO,
                cookies: O::COOKIES,
            },
            action,
        }
    }
}

/// The table.
#[must_use]
pub fn table() -> Vec<Operation> {
    let mut table: Vec<Operation> =
        [service(), mail(), account_operations(), api_keys(), smtp_credentials(), people()]
            .into_iter()
            .flatten()
            .collect();
    table.extend(domains::operations());
    table.extend(suppressions::operations());
    table.extend(opt_outs::operations());
    table.extend(unsubscribe::operations());
    table.extend(templates::operations());
    table.extend(mta_sts::operations());
    table.extend(tracking::operations());
    table.extend(events::operations());
    table.extend(visits::operations());
    table.extend(webhooks::operations());
    table.extend(webhook_events::operations());
    table.extend(received_emails::operations());
    table.extend(automations::operations());
    table.extend(affiliate::operations());
    table.extend(billing::operations());
    table.extend(portal::operations());
    table
}

fn get(path: &'static str, id: &'static str) -> Entry {
    operation(Method::GET, path, id)
}

fn post(path: &'static str, id: &'static str) -> Entry {
    operation(Method::POST, path, id)
}

fn patch(path: &'static str, id: &'static str) -> Entry {
    operation(Method::PATCH, path, id)
}

fn delete(path: &'static str, id: &'static str) -> Entry {
    operation(Method::DELETE, path, id)
}

fn service() -> Vec<Operation> {
    vec![
        get("/healthz", "check_health").about("service", "Is the service healthy?").public(health::check),
        get("/openapi.json", "get_openapi").about("service", "This document").public(openapi::get),
    ]
}

fn mail() -> Vec<Operation> {
    use Scope::{Full, Sending};
    vec![
        post("/emails", "send_email")
            .about("emails", "Send an email")
            .fails(Code::SENDING)
            .of_a_domain()
            .keyed(Sending, emails::send),
        post("/emails/batch", "send_batch")
            .about("emails", "Send up to 100 emails in one request")
            .fails(Code::SENDING)
            .of_a_domain()
            .keyed(Sending, emails::send_batch),
        get("/emails", "list_emails")
            .about("emails", "List emails, newest first; with filters, those that all of them hold for")
            .of_a_domain()
            .either(Sending, emails::list::list),
        get("/emails/metrics", "get_email_metrics")
            .about(
                "emails",
                "Count what happened to emails, by the hour or day and by what they have in common",
            )
            .either(Full, emails::metrics::get),
        get("/emails/{id}", "get_email")
            .about("emails", "Get an email")
            .of_a_domain()
            .either(Sending, emails::get),
        patch("/emails/{id}", "amend_email")
            .about("emails", "Send a scheduled email at another time, or cancel it")
            .of_a_domain()
            .either(Sending, emails::amend::amend),
        post("/emails/{id}/cancel", "cancel_email")
            .about("emails", "Cancel a scheduled email")
            .of_a_domain()
            .either(Sending, emails::amend::cancel),
        post("/emails/{id}/resend", "resend_email")
            .about("emails", "Send a stored email again, without its attachments")
            .fails(Code::SENDING)
            .of_a_domain()
            .either(Sending, emails::resend::resend),
        post("/emails/test", "test_event")
            .about("emails", "Get what a webhook would be sent, to try a receiver with")
            .fails(&[Code::NOT_FOUND])
            .of_a_domain()
            .either(Full, emails::rehearse::rehearse),
        get("/emails/{id}/events", "list_email_events")
            .about("emails", "List what happened to an email, newest first")
            .of_a_domain()
            .either(Sending, emails::events),
        get("/emails/{id}/attempts", "list_email_attempts")
            .about("emails", "List the delivery attempts of an email, newest first")
            .of_a_domain()
            .either(Sending, emails::attempts),
        get("/emails/{id}/raw", "get_email_raw")
            .about("emails", "Get the message as it was sent")
            .of_a_domain()
            .either(Full, emails::raw),
    ]
}

fn account_operations() -> Vec<Operation> {
    let full = Scope::Full;
    vec![
        get("/account", "get_account")
            .about("account", "Get the account, its limits and its usage")
            .either(full, account::get),
        get("/logs", "list_logs")
            .about("logs", "List API requests of the last 30 days, newest first")
            .either(full, logs::list),
        get("/logs/{id}", "get_log").about("logs", "Get an API request").either(full, logs::get),
    ]
}

fn api_keys() -> Vec<Operation> {
    let (full, noun) = (Scope::Full, "api_keys");
    vec![
        post("/api-keys", "create_api_key")
            .about(noun, "Create an API key; its secret is shown once")
            .stores(&[(Noun::ApiKeys, 1)])
            .either(full, credentials::create::<ApiKey>),
        get("/api-keys", "list_api_keys")
            .about(noun, "List API keys, newest first")
            .either(full, credentials::list::<ApiKey>),
        get("/api-keys/{id}", "get_api_key")
            .about(noun, "Get an API key")
            .either(full, credentials::get::<ApiKey>),
        patch("/api-keys/{id}", "update_api_key")
            .about(noun, "Rename an API key, switch it off or on, or say from where it may be used")
            .either(full, credentials::change::<ApiKey>),
        delete("/api-keys/{id}", "delete_api_key")
            .about(noun, "Delete an API key")
            .either(full, credentials::delete::<ApiKey>),
        post("/api-keys/{id}/rotate", "rotate_api_key")
            .about(noun, "Give an API key a new secret; the old one stays valid for a while")
            .either(full, credentials::rotate::<ApiKey>),
    ]
}

fn smtp_credentials() -> Vec<Operation> {
    let (full, noun) = (Scope::Full, "smtp_credentials");
    vec![
        post("/smtp-credentials", "create_smtp_credential")
            .about(noun, "Create an SMTP credential; its password is shown once")
            .stores(&[(Noun::SmtpCredentials, 1)])
            .either(full, credentials::create::<SmtpCredential>),
        get("/smtp-credentials", "list_smtp_credentials")
            .about(noun, "List SMTP credentials, newest first")
            .either(full, credentials::list::<SmtpCredential>),
        get("/smtp-credentials/{id}", "get_smtp_credential")
            .about(noun, "Get an SMTP credential")
            .either(full, credentials::get::<SmtpCredential>),
        patch("/smtp-credentials/{id}", "update_smtp_credential")
            .about(noun, "Rename an SMTP credential, switch it off or on, or say from where it may be used")
            .either(full, credentials::change::<SmtpCredential>),
        delete("/smtp-credentials/{id}", "delete_smtp_credential")
            .about(noun, "Delete an SMTP credential")
            .either(full, credentials::delete::<SmtpCredential>),
        post("/smtp-credentials/{id}/rotate", "rotate_smtp_credential")
            .about(noun, "Give an SMTP credential a new password; the old one stays valid for a while")
            .either(full, credentials::rotate::<SmtpCredential>),
    ]
}

fn people() -> Vec<Operation> {
    use Role::{Member, Owner};
    vec![
        post("/auth/sign-in", "sign_in")
            .about("auth", "Sign in with a password")
            .fails(&[Code::UNAUTHORIZED, Code::RATE_LIMIT_EXCEEDED])
            .public(auth::sign_in::sign_in),
        post("/auth/link", "ask_for_sign_in_link")
            .about("auth", "Have a sign-in link mailed")
            .fails(&[Code::RATE_LIMIT_EXCEEDED])
            .public(auth::link::ask_for_link),
        get("/auth/link/{token}", "show_sign_in_link")
            .about("auth", "The page that a mailed link leads to; it changes nothing")
            .public(auth::link::show_link),
        post("/auth/link/{token}", "use_sign_in_link")
            .about("auth", "Sign in with a mailed link, once; accept an invitation")
            .fails(&[Code::UNAUTHORIZED, Code::CONFLICT, Code::RATE_LIMIT_EXCEEDED])
            .public(auth::link::use_link),
        get("/auth/session", "get_session")
            .about("auth", "Who has signed in")
            .signed_in(Member, auth::session::session),
        get("/auth/sessions", "list_sessions")
            .about("auth", "List the user's sessions, newest first")
            .signed_in(Member, auth::session::list),
        delete("/auth/sessions", "end_other_sessions")
            .about("auth", "End all other sessions of the user")
            .signed_in(Member, auth::session::end_others),
        delete("/auth/sessions/{id}", "end_session")
            .about("auth", "End one of the user's sessions")
            .signed_in(Member, auth::session::end),
        post("/auth/sign-out", "sign_out")
            .about("auth", "End the session")
            .signed_in(Member, auth::session::sign_out),
        post("/auth/password", "set_password")
            .about("auth", "Change the user's own password; other sessions end")
            .signed_in(Member, auth::password::set_password),
        get("/users", "list_users").about("users", "List users, newest first").signed_in(Member, users::list),
        post("/users", "invite_user")
            .about("users", "Invite somebody to the account, or again who has not accepted yet")
            .fails(&[Code::CONFLICT, Code::PLAN_FULL])
            .signed_in(Owner, users::invite),
        patch("/users/{id}", "update_user")
            .about("users", "Change what a user may do")
            .signed_in(Owner, users::change),
        delete("/users/{id}", "remove_user")
            .about("users", "Remove a user; their sessions end")
            .signed_in(Owner, users::remove),
    ]
}
