//! The operation table: everything that the door offers, once.
//!
//! The router, the OpenAPI document and the scope tests are derived from it; so will be the command
//! line, the documentation and the MCP tools. An operation is added here and nowhere else.

use std::fmt;

use http::Method;
use mail::credential::{ApiKey, ApiKeyScope, SmtpCredential};
use mail::idempotency::IdempotencyScope as Keyed;
use mail::quota::Noun;
use mail::user::UserRole;

use crate::call::{
    ApiKeyHandler, CookiePolicy, ExtraResponse, FromRequest, IntoResponse, Media, Owner, OwnerHandler, PublicHandler,
    RequestSpec, UserHandler, api_key_handler, owner_handler, public_handler, user_handler,
};
use crate::problem::ErrorCode;
use crate::room::AppState;
use crate::schema::Schemas;
use crate::{
    account, affiliate, auth, automations, billing, credentials, domains, emails, events, health, logs, mta_sts,
    openapi, opt_outs, own, portal, received_emails, suppressions, templates, tracking, unsubscribe, users, visits,
    webhook_events, webhooks,
};
use store::access::{SignedInUser, Tenant};

/// Who may call an operation, and what it does.
pub enum OperationHandler {
    /// Anybody.
    Public(PublicHandler),
    /// Whoever has a key of this scope.
    ApiKey(ApiKeyScope, ApiKeyHandler),
    /// Whoever has a key of this scope; and, with `/api` before the path, whoever has signed in.
    ApiKeyOrSession(ApiKeyScope, ApiKeyHandler),
    /// A user who has signed in, of this role or a higher one.
    Session(UserRole, UserHandler),
    /// An owner who has signed in; or the operator, in the owner's stead ([`crate::operator`]).
    Owner(OwnerHandler),
}

impl fmt::Debug for OperationHandler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Public(_) => f.write_str("Public"),
            Self::ApiKey(scope, _) => write!(f, "Keyed({scope:?})"),
            Self::ApiKeyOrSession(scope, _) => write!(f, "Either({scope:?})"),
            Self::Session(role, _) => write!(f, "SignedIn({role:?})"),
            Self::Owner(_) => f.write_str("Owner"),
        }
    }
}

/// What an operation gives, for the document.
#[derive(Debug)]
pub struct ResponseSpec {
    /// The status when it was done.
    pub status: http::StatusCode,
    /// What the bytes are.
    pub media_type: &'static str,
    /// The schema.
    pub schema: fn(&mut Schemas) -> serde_json::Value,
    /// What else it may be.
    pub extra_responses: &'static [ExtraResponse],
    /// The cookies that it may set.
    pub cookies: CookiePolicy,
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
    pub request_spec: fn(&mut Schemas) -> RequestSpec,
    /// What it gives.
    pub response_spec: ResponseSpec,
    /// The errors of its own, beside those that follow from what it is (the document).
    pub errors: &'static [ErrorCode],
    /// It is about what is one domain's: a key that is bound to a domain may call it, and reaches what is that
    /// domain's. What is the account's as a whole, such a key does not reach.
    pub domain_scoped: bool,
    /// What it stores that the plan bounds.
    pub storage_cost: StorageCost,
    /// By what its idempotency keys are found, where it takes such keys and stores something that the plan bounds: what was
    /// done with a key is answered as it was, however full the account is.
    pub idempotency_scope: Option<Keyed>,
    /// Who may call it, and what it does.
    pub handler: OperationHandler,
}

/// What a call stores, at most: so many rows; or, where the noun is bytes, so many beside those of the request's body.
pub type StorageCost = &'static [(Noun, u64)];

impl Operation {
    /// The scope that a key needs; none where no key is needed.
    #[must_use]
    pub fn scope(&self) -> Option<ApiKeyScope> {
        match self.handler {
            OperationHandler::Public(_) | OperationHandler::Session(..) | OperationHandler::Owner(_) => None,
            OperationHandler::ApiKey(scope, _) | OperationHandler::ApiKeyOrSession(scope, _) => Some(scope),
        }
    }

    /// Whether it begins or ends somebody's session: pages of other sites may not have a browser call it.
    #[must_use]
    pub fn changes_session(&self) -> bool {
        self.response_spec.cookies == CookiePolicy::Session && self.method != Method::GET
    }

    /// Whether whoever has signed in may call it.
    #[must_use]
    pub fn accepts_sessions(&self) -> bool {
        matches!(
            self.handler,
            OperationHandler::ApiKeyOrSession(..) | OperationHandler::Session(..) | OperationHandler::Owner(_)
        )
    }
}

/// An operation before it has a handler.
#[derive(Debug, Clone)]
pub struct OperationBuilder {
    method: Method,
    path: &'static str,
    id: &'static str,
    noun: &'static str,
    summary: &'static str,
    errors: &'static [ErrorCode],
    domain_scoped: bool,
    storage_cost: StorageCost,
    idempotency_scope: Option<Keyed>,
}

/// Begins an operation: `POST /emails`, `send_email`, of the noun `emails`.
#[must_use]
pub fn operation(method: Method, path: &'static str, id: &'static str) -> OperationBuilder {
    let (noun, summary) = ("service", "");
    OperationBuilder {
        method,
        path,
        id,
        noun,
        summary,
        errors: &[],
        domain_scoped: false,
        storage_cost: &[],
        idempotency_scope: None,
    }
}

impl OperationBuilder {
    /// The noun it belongs to, and what it does, in a line.
    #[must_use]
    pub fn about(mut self, noun: &'static str, summary: &'static str) -> Self {
        (self.noun, self.summary) = (noun, summary);
        self
    }

    /// The errors that are its own: what every operation of its kind can answer needs not be named.
    #[must_use]
    pub fn errors(mut self, codes: &'static [ErrorCode]) -> Self {
        self.errors = codes;
        self
    }

    /// It is about what is one domain's, and its handler reaches no more than that for a key that is bound to
    /// a domain. What does not say so is closed to such keys.
    #[must_use]
    pub fn domain_scoped(mut self) -> Self {
        self.domain_scoped = true;
        self
    }

    /// It stores something that the plan bounds: it is refused when the account keeps as much as the plan includes.
    #[must_use]
    pub fn storage_cost(mut self, stores: StorageCost) -> Self {
        self.storage_cost = stores;
        self
    }

    /// The same; and its idempotency keys are found by this.
    #[must_use]
    pub fn idempotent_storage_cost(mut self, keys: Keyed, stores: StorageCost) -> Self {
        (self.idempotency_scope, self.storage_cost) = (Some(keys), stores);
        self
    }

    /// Anybody may call it.
    #[must_use]
    pub fn public<I: FromRequest, O: IntoResponse, F, Run>(self, handler: F) -> Operation
    where
        F: Fn(std::sync::Arc<AppState>, I) -> Run + Send + Sync + Copy + 'static,
        Run: Future<Output = Result<O, crate::problem::Problem>> + Send + 'static,
    {
        self.build::<I, O>(OperationHandler::Public(public_handler(handler)))
    }

    /// Whoever has a key of this scope may call it.
    #[must_use]
    pub fn api_key<I: FromRequest, O: IntoResponse, F, Run>(self, scope: ApiKeyScope, handler: F) -> Operation
    where
        F: Fn(std::sync::Arc<AppState>, Tenant, I) -> Run + Send + Sync + Copy + 'static,
        Run: Future<Output = Result<O, crate::problem::Problem>> + Send + 'static,
    {
        self.build::<I, O>(OperationHandler::ApiKey(scope, api_key_handler(handler)))
    }

    /// Whoever has a key of this scope may call it, and whoever has signed in.
    #[must_use]
    pub fn api_key_or_session<I: FromRequest, O: IntoResponse, F, Run>(
        self,
        scope: ApiKeyScope,
        handler: F,
    ) -> Operation
    where
        F: Fn(std::sync::Arc<AppState>, Tenant, I) -> Run + Send + Sync + Copy + 'static,
        Run: Future<Output = Result<O, crate::problem::Problem>> + Send + 'static,
    {
        self.build::<I, O>(OperationHandler::ApiKeyOrSession(scope, api_key_handler(handler)))
    }

    /// A user who has signed in may call it, of this role or a higher one.
    #[must_use]
    pub fn session<I: FromRequest, O: IntoResponse, F, Run>(self, role: UserRole, handler: F) -> Operation
    where
        F: Fn(std::sync::Arc<AppState>, SignedInUser, I) -> Run + Send + Sync + Copy + 'static,
        Run: Future<Output = Result<O, crate::problem::Problem>> + Send + 'static,
    {
        self.build::<I, O>(OperationHandler::Session(role, user_handler(handler)))
    }

    /// An owner who has signed in may call it; or the operator, in the owner's stead. What is posted is done once with an
    /// idempotency key.
    #[must_use]
    pub fn owner<I: FromRequest, O: IntoResponse, F, Run>(self, handler: F) -> Operation
    where
        F: Fn(std::sync::Arc<AppState>, Owner, I) -> Run + Send + Sync + Copy + 'static,
        Run: Future<Output = Result<O, crate::problem::Problem>> + Send + 'static,
    {
        if self.method != Method::POST {
            return self.build::<I, O>(OperationHandler::Owner(owner_handler(handler)));
        }
        let action = OperationHandler::Owner(own::make_idempotent(self.id, owner_handler(handler)));
        Operation { request_spec: own::describe::<I>, ..self.build::<I, O>(action) }
    }

    /// The same; the handler itself keeps its answer under the key, in the commit of what it does.
    #[must_use]
    pub fn owner_idempotent<I: FromRequest, O: IntoResponse, F, Run>(self, handler: F) -> Operation
    where
        F: Fn(std::sync::Arc<AppState>, Owner, I) -> Run + Send + Sync + Copy + 'static,
        Run: Future<Output = Result<O, crate::problem::Problem>> + Send + 'static,
    {
        self.build::<I, O>(OperationHandler::Owner(owner_handler(handler)))
    }

    fn build<I: FromRequest, O: IntoResponse>(self, action: OperationHandler) -> Operation {
        Operation {
            method: self.method,
            path: self.path,
            id: self.id,
            noun: self.noun,
            summary: self.summary,
            body_bytes_max: I::BODY_BYTES_MAX,
            media: I::MEDIA,
            request_spec: I::describe,
            errors: self.errors,
            domain_scoped: self.domain_scoped,
            storage_cost: self.storage_cost,
            idempotency_scope: self.idempotency_scope,
            response_spec: ResponseSpec {
                status: O::STATUS,
                media_type: O::MEDIA_TYPE,
                schema: O::describe,
                extra_responses: O::EXTRA_RESPONSES,
                cookies: O::COOKIES,
            },
            handler: action,
        }
    }
}

/// The table.
#[must_use]
pub fn operation_table() -> Vec<Operation> {
    let mut table: Vec<Operation> = [
        service_operations(),
        email_operations(),
        account_operations(),
        api_key_operations(),
        smtp_credential_operations(),
        user_operations(),
    ]
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

fn get(path: &'static str, id: &'static str) -> OperationBuilder {
    operation(Method::GET, path, id)
}

fn post(path: &'static str, id: &'static str) -> OperationBuilder {
    operation(Method::POST, path, id)
}

fn patch(path: &'static str, id: &'static str) -> OperationBuilder {
    operation(Method::PATCH, path, id)
}

fn delete(path: &'static str, id: &'static str) -> OperationBuilder {
    operation(Method::DELETE, path, id)
}

fn service_operations() -> Vec<Operation> {
    vec![
        get("/healthz", "check_health").about("service", "Is the service healthy?").public(health::check),
        get("/openapi.json", "get_openapi").about("service", "This document").public(openapi::get),
    ]
}

fn email_operations() -> Vec<Operation> {
    use ApiKeyScope::{Full, Sending};
    vec![
        post("/emails", "send_email")
            .about("emails", "Send an email")
            .errors(ErrorCode::SENDING)
            .domain_scoped()
            .api_key(Sending, emails::send),
        post("/emails/batch", "send_batch")
            .about("emails", "Send up to 100 emails in one request")
            .errors(ErrorCode::SENDING)
            .domain_scoped()
            .api_key(Sending, emails::send_batch),
        get("/emails", "list_emails")
            .about("emails", "List emails, newest first; with filters, those that all of them hold for")
            .domain_scoped()
            .api_key_or_session(Sending, emails::list::list),
        get("/emails/metrics", "get_email_metrics")
            .about("emails", "Count what happened to emails, by the hour or day and by what they have in common")
            .api_key_or_session(Full, emails::metrics::get),
        get("/emails/{id}", "get_email")
            .about("emails", "Get an email")
            .domain_scoped()
            .api_key_or_session(Sending, emails::get),
        patch("/emails/{id}", "amend_email")
            .about("emails", "Send a scheduled email at another time, or cancel it")
            .domain_scoped()
            .api_key_or_session(Sending, emails::amend::reschedule),
        post("/emails/{id}/cancel", "cancel_email")
            .about("emails", "Cancel a scheduled email")
            .domain_scoped()
            .api_key_or_session(Sending, emails::amend::cancel),
        post("/emails/{id}/resend", "resend_email")
            .about("emails", "Send a stored email again, without its attachments")
            .errors(ErrorCode::SENDING)
            .domain_scoped()
            .api_key_or_session(Sending, emails::resend::resend),
        post("/emails/test", "test_event")
            .about("emails", "Get what a webhook would be sent, to try a receiver with")
            .errors(&[ErrorCode::NOT_FOUND])
            .domain_scoped()
            .api_key_or_session(Full, emails::rehearse::send_test_event),
        get("/emails/{id}/events", "list_email_events")
            .about("emails", "List what happened to an email, newest first")
            .domain_scoped()
            .api_key_or_session(Sending, emails::events),
        get("/emails/{id}/attempts", "list_email_attempts")
            .about("emails", "List the delivery attempts of an email, newest first")
            .domain_scoped()
            .api_key_or_session(Sending, emails::attempts),
        get("/emails/{id}/raw", "get_email_raw")
            .about("emails", "Get the message as it was sent")
            .domain_scoped()
            .api_key_or_session(Full, emails::raw),
    ]
}

fn account_operations() -> Vec<Operation> {
    let full = ApiKeyScope::Full;
    vec![
        get("/account", "get_account")
            .about("account", "Get the account, its limits and its usage")
            .api_key_or_session(full, account::get),
        get("/logs", "list_logs")
            .about("logs", "List API requests of the last 30 days, newest first")
            .api_key_or_session(full, logs::list),
        get("/logs/{id}", "get_log").about("logs", "Get an API request").api_key_or_session(full, logs::get),
    ]
}

fn api_key_operations() -> Vec<Operation> {
    let (full, noun) = (ApiKeyScope::Full, "api_keys");
    vec![
        post("/api-keys", "create_api_key")
            .about(noun, "Create an API key; its secret is shown once")
            .storage_cost(&[(Noun::ApiKeys, 1)])
            .api_key_or_session(full, credentials::create::<ApiKey>),
        get("/api-keys", "list_api_keys")
            .about(noun, "List API keys, newest first")
            .api_key_or_session(full, credentials::list::<ApiKey>),
        get("/api-keys/{id}", "get_api_key")
            .about(noun, "Get an API key")
            .api_key_or_session(full, credentials::get::<ApiKey>),
        patch("/api-keys/{id}", "update_api_key")
            .about(noun, "Rename an API key, switch it off or on, or say from where it may be used")
            .api_key_or_session(full, credentials::update::<ApiKey>),
        delete("/api-keys/{id}", "delete_api_key")
            .about(noun, "Delete an API key")
            .api_key_or_session(full, credentials::delete::<ApiKey>),
        post("/api-keys/{id}/rotate", "rotate_api_key")
            .about(noun, "Give an API key a new secret; the old one stays valid for a while")
            .api_key_or_session(full, credentials::rotate::<ApiKey>),
    ]
}

fn smtp_credential_operations() -> Vec<Operation> {
    let (full, noun) = (ApiKeyScope::Full, "smtp_credentials");
    vec![
        post("/smtp-credentials", "create_smtp_credential")
            .about(noun, "Create an SMTP credential; its password is shown once")
            .storage_cost(&[(Noun::SmtpCredentials, 1)])
            .api_key_or_session(full, credentials::create::<SmtpCredential>),
        get("/smtp-credentials", "list_smtp_credentials")
            .about(noun, "List SMTP credentials, newest first")
            .api_key_or_session(full, credentials::list::<SmtpCredential>),
        get("/smtp-credentials/{id}", "get_smtp_credential")
            .about(noun, "Get an SMTP credential")
            .api_key_or_session(full, credentials::get::<SmtpCredential>),
        patch("/smtp-credentials/{id}", "update_smtp_credential")
            .about(noun, "Rename an SMTP credential, switch it off or on, or say from where it may be used")
            .api_key_or_session(full, credentials::update::<SmtpCredential>),
        delete("/smtp-credentials/{id}", "delete_smtp_credential")
            .about(noun, "Delete an SMTP credential")
            .api_key_or_session(full, credentials::delete::<SmtpCredential>),
        post("/smtp-credentials/{id}/rotate", "rotate_smtp_credential")
            .about(noun, "Give an SMTP credential a new password; the old one stays valid for a while")
            .api_key_or_session(full, credentials::rotate::<SmtpCredential>),
    ]
}

fn user_operations() -> Vec<Operation> {
    use UserRole::{Member, Owner};
    vec![
        post("/auth/sign-in", "sign_in")
            .about("auth", "Sign in with a password")
            .errors(&[ErrorCode::UNAUTHORIZED, ErrorCode::RATE_LIMIT_EXCEEDED])
            .public(auth::sign_in::sign_in),
        post("/auth/link", "ask_for_sign_in_link")
            .about("auth", "Have a sign-in link mailed")
            .errors(&[ErrorCode::RATE_LIMIT_EXCEEDED])
            .public(auth::link::request_link),
        get("/auth/link/{token}", "show_sign_in_link")
            .about("auth", "The page that a mailed link leads to; it changes nothing")
            .public(auth::link::show_link),
        post("/auth/link/{token}", "use_sign_in_link")
            .about("auth", "Sign in with a mailed link, once; accept an invitation")
            .errors(&[ErrorCode::UNAUTHORIZED, ErrorCode::CONFLICT, ErrorCode::RATE_LIMIT_EXCEEDED])
            .public(auth::link::use_link),
        get("/auth/session", "get_session").about("auth", "Who has signed in").session(Member, auth::session::get),
        get("/auth/sessions", "list_sessions")
            .about("auth", "List the user's sessions, newest first")
            .session(Member, auth::session::list),
        delete("/auth/sessions", "end_other_sessions")
            .about("auth", "End all other sessions of the user")
            .session(Member, auth::session::end_others),
        delete("/auth/sessions/{id}", "end_session")
            .about("auth", "End one of the user's sessions")
            .session(Member, auth::session::end),
        post("/auth/sign-out", "sign_out").about("auth", "End the session").session(Member, auth::session::sign_out),
        post("/auth/password", "set_password")
            .about("auth", "Change the user's own password; other sessions end")
            .session(Member, auth::password::set_password),
        get("/users", "list_users").about("users", "List users, newest first").session(Member, users::list),
        post("/users", "invite_user")
            .about("users", "Invite somebody to the account, or again who has not accepted yet")
            .errors(&[ErrorCode::CONFLICT, ErrorCode::PLAN_FULL])
            .session(Owner, users::invite),
        patch("/users/{id}", "update_user")
            .about("users", "Change what a user may do")
            .session(Owner, users::update_role),
        delete("/users/{id}", "remove_user")
            .about("users", "Remove a user; their sessions end")
            .session(Owner, users::remove),
    ]
}
