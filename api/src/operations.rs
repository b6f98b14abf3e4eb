//! The operation table: the single list of everything the API offers.
//!
//! The router, the OpenAPI document and the scope tests are derived from it. New operations are added only here.

use std::fmt;

use http::Method;
use mail::credential::{ApiKey, ApiKeyScope, SmtpCredential};
use mail::idempotency::IdempotencyScope as Keyed;
use mail::quota::Noun;
use mail::user::UserRole;

use crate::handler::{
    ApiKeyHandler, CookiePolicy, ExtraResponse, FromRequest, IntoResponse, Media, Owner, OwnerHandler, PublicHandler,
    RequestSpec, UserHandler, api_key_handler, owner_handler, public_handler, user_handler,
};
use crate::problem::ErrorCode;
use crate::schema::Schemas;
use crate::state::AppState;
use crate::{
    account, affiliate, auth, automations, billing, credentials, domains, emails, events, health, idempotent_operation,
    logs, mta_sts, openapi, opt_outs, portal, received_emails, suppressions, templates, tracking, unsubscribe, users,
    visits, webhook_events, webhooks,
};
use store::access::{SignedInUser, Tenant};

/// Allowed callers of an operation, with its handler.
pub enum OperationHandler {
    /// No authentication.
    Public(PublicHandler),
    /// An API key with this scope.
    ApiKey(ApiKeyScope, ApiKeyHandler),
    /// An API key with this scope or, with the path prefix `/api`, a signed-in user.
    ApiKeyOrSession(ApiKeyScope, ApiKeyHandler),
    /// A signed-in user with this role or a higher one.
    Session(UserRole, UserHandler),
    /// A signed-in owner, or the operator on the owner's behalf ([`crate::operator`]).
    Owner(OwnerHandler),
}

impl fmt::Debug for OperationHandler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Public(_) => f.write_str("Public"),
            Self::ApiKey(scope, _) => write!(f, "ApiKey({scope:?})"),
            Self::ApiKeyOrSession(scope, _) => write!(f, "ApiKeyOrSession({scope:?})"),
            Self::Session(role, _) => write!(f, "Session({role:?})"),
            Self::Owner(_) => f.write_str("Owner"),
        }
    }
}

/// The response of an operation, for the OpenAPI document.
#[derive(Debug)]
pub struct ResponseSpec {
    /// Status on success.
    pub status: http::StatusCode,
    pub media_type: &'static str,
    pub schema: fn(&mut Schemas) -> serde_json::Value,
    /// Further responses.
    pub extra_responses: &'static [ExtraResponse],
    /// The cookies that it may set.
    pub cookies: CookiePolicy,
}

/// An operation of the API.
#[derive(Debug)]
pub struct Operation {
    pub method: Method,
    /// `{id}` is a path parameter.
    pub path: &'static str,
    /// The `operationId`; also the name in metrics and logs.
    pub id: &'static str,
    /// The OpenAPI tag.
    pub noun: &'static str,
    /// One line for the OpenAPI document.
    pub summary: &'static str,
    /// Maximum body size; `None` if the operation takes no body.
    pub body_bytes_max: Option<usize>,
    /// Accepted media types of the body.
    pub media: Media,
    /// Describes parameters and body.
    pub request_spec: fn(&mut Schemas) -> RequestSpec,
    pub response_spec: ResponseSpec,
    /// Error codes besides those that follow from the operation's properties (see `openapi/responses.rs`).
    pub errors: &'static [ErrorCode],
    /// The operation concerns a single domain's data. Keys restricted to a domain may call it and see only that
    /// domain's data. They may not call other operations.
    pub domain_scoped: bool,
    /// Objects it stores that count against the plan's storage quotas.
    pub storage_cost: StorageCost,
    /// Scope of its idempotency keys, if it accepts keys and has a storage cost: a completed request is replayed even
    /// if the quota is exhausted.
    pub idempotency_scope: Option<Keyed>,
    pub handler: OperationHandler,
}

/// Upper bound of what a request stores: a number of rows or, for byte quotas, the bytes besides the request body.
pub type StorageCost = &'static [(Noun, u64)];

impl Operation {
    /// The scope that an API key needs; `None` if the operation accepts no API keys.
    #[must_use]
    pub fn scope(&self) -> Option<ApiKeyScope> {
        match self.handler {
            OperationHandler::Public(_) | OperationHandler::Session(..) | OperationHandler::Owner(_) => None,
            OperationHandler::ApiKey(scope, _) | OperationHandler::ApiKeyOrSession(scope, _) => Some(scope),
        }
    }

    /// Returns whether it starts or ends a session. Such requests from other sites are rejected.
    #[must_use]
    pub fn changes_session(&self) -> bool {
        self.response_spec.cookies == CookiePolicy::Session && self.method != Method::GET
    }

    /// Returns whether a signed-in user may call it.
    #[must_use]
    pub fn accepts_sessions(&self) -> bool {
        matches!(
            self.handler,
            OperationHandler::ApiKeyOrSession(..) | OperationHandler::Session(..) | OperationHandler::Owner(_)
        )
    }
}

/// Builds an operation.
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

/// Starts an operation, for example `POST /emails` with the id `send_email`.
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
    /// Sets the OpenAPI tag and the summary.
    #[must_use]
    pub fn about(mut self, noun: &'static str, summary: &'static str) -> Self {
        (self.noun, self.summary) = (noun, summary);
        self
    }

    /// Sets the error codes that do not follow from the operation's properties.
    #[must_use]
    pub fn errors(mut self, codes: &'static [ErrorCode]) -> Self {
        self.errors = codes;
        self
    }

    /// Lets keys restricted to a domain call the operation; its handler must then show only that domain's data. Without
    /// this, such keys get 403.
    #[must_use]
    pub fn domain_scoped(mut self) -> Self {
        self.domain_scoped = true;
        self
    }

    /// Sets the storage cost: the request is rejected when the quota is exhausted.
    #[must_use]
    pub fn storage_cost(mut self, stores: StorageCost) -> Self {
        self.storage_cost = stores;
        self
    }

    /// Sets the storage cost and the scope of the idempotency keys.
    #[must_use]
    pub fn idempotent_storage_cost(mut self, keys: Keyed, stores: StorageCost) -> Self {
        (self.idempotency_scope, self.storage_cost) = (Some(keys), stores);
        self
    }

    /// Allows calls without authentication.
    #[must_use]
    pub fn public<I: FromRequest, O: IntoResponse, F, Run>(self, handler: F) -> Operation
    where
        F: Fn(std::sync::Arc<AppState>, I) -> Run + Send + Sync + Copy + 'static,
        Run: Future<Output = Result<O, crate::problem::Problem>> + Send + 'static,
    {
        self.build::<I, O>(OperationHandler::Public(public_handler(handler)))
    }

    /// Allows API keys with this scope.
    #[must_use]
    pub fn api_key<I: FromRequest, O: IntoResponse, F, Run>(self, scope: ApiKeyScope, handler: F) -> Operation
    where
        F: Fn(std::sync::Arc<AppState>, Tenant, I) -> Run + Send + Sync + Copy + 'static,
        Run: Future<Output = Result<O, crate::problem::Problem>> + Send + 'static,
    {
        self.build::<I, O>(OperationHandler::ApiKey(scope, api_key_handler(handler)))
    }

    /// Allows API keys with this scope, and signed-in users.
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

    /// Allows signed-in users with this role or a higher one.
    #[must_use]
    pub fn session<I: FromRequest, O: IntoResponse, F, Run>(self, role: UserRole, handler: F) -> Operation
    where
        F: Fn(std::sync::Arc<AppState>, SignedInUser, I) -> Run + Send + Sync + Copy + 'static,
        Run: Future<Output = Result<O, crate::problem::Problem>> + Send + 'static,
    {
        self.build::<I, O>(OperationHandler::Session(role, user_handler(handler)))
    }

    /// Allows signed-in owners and the operator. A POST operation accepts an idempotency key (`own.rs`).
    #[must_use]
    pub fn owner<I: FromRequest, O: IntoResponse, F, Run>(self, handler: F) -> Operation
    where
        F: Fn(std::sync::Arc<AppState>, Owner, I) -> Run + Send + Sync + Copy + 'static,
        Run: Future<Output = Result<O, crate::problem::Problem>> + Send + 'static,
    {
        if self.method != Method::POST {
            return self.build::<I, O>(OperationHandler::Owner(owner_handler(handler)));
        }
        let action = OperationHandler::Owner(idempotent_operation::make_idempotent(self.id, owner_handler(handler)));
        Operation { request_spec: idempotent_operation::describe::<I>, ..self.build::<I, O>(action) }
    }

    /// Like [`owner`](Self::owner), but the handler itself stores its response under the key, in the commit of the
    /// change.
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

/// Builds the table.
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
        get("/healthz", "check_health").about("service", "Check whether the service is healthy").public(health::check),
        get("/openapi.json", "get_openapi").about("service", "Get this OpenAPI document").public(openapi::get),
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
            .about("emails", "List emails, newest first; all given filters must match")
            .domain_scoped()
            .api_key_or_session(Sending, emails::list::list),
        get("/emails/metrics", "get_email_metrics")
            .about("emails", "Get email metrics by hour or day, optionally by dimension")
            .api_key_or_session(Full, emails::metrics::get),
        get("/emails/{id}", "get_email")
            .about("emails", "Get an email")
            .domain_scoped()
            .api_key_or_session(Sending, emails::get),
        patch("/emails/{id}", "amend_email")
            .about("emails", "Reschedule or cancel a scheduled email")
            .domain_scoped()
            .api_key_or_session(Sending, emails::reschedule::reschedule),
        post("/emails/{id}/cancel", "cancel_email")
            .about("emails", "Cancel a scheduled email")
            .domain_scoped()
            .api_key_or_session(Sending, emails::reschedule::cancel),
        post("/emails/{id}/resend", "resend_email")
            .about("emails", "Resend a stored email without its attachments")
            .errors(ErrorCode::SENDING)
            .domain_scoped()
            .api_key_or_session(Sending, emails::resend::resend),
        post("/emails/test", "test_event")
            .about("emails", "Send a test event to webhooks")
            .errors(&[ErrorCode::NOT_FOUND])
            .domain_scoped()
            .api_key_or_session(Full, emails::test_event::send_test_event),
        get("/emails/{id}/events", "list_email_events")
            .about("emails", "List the events of an email, newest first")
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
            .about(noun, "Rename, enable or disable an API key, or set its allowed addresses")
            .api_key_or_session(full, credentials::update::<ApiKey>),
        delete("/api-keys/{id}", "delete_api_key")
            .about(noun, "Delete an API key")
            .api_key_or_session(full, credentials::delete::<ApiKey>),
        post("/api-keys/{id}/rotate", "rotate_api_key")
            .about(noun, "Rotate an API key's secret; the previous one stays valid for a grace period")
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
            .about(noun, "Rename, enable or disable an SMTP credential, or set its allowed addresses")
            .api_key_or_session(full, credentials::update::<SmtpCredential>),
        delete("/smtp-credentials/{id}", "delete_smtp_credential")
            .about(noun, "Delete an SMTP credential")
            .api_key_or_session(full, credentials::delete::<SmtpCredential>),
        post("/smtp-credentials/{id}/rotate", "rotate_smtp_credential")
            .about(noun, "Rotate an SMTP credential's password; the previous one stays valid for a grace period")
            .api_key_or_session(full, credentials::rotate::<SmtpCredential>),
    ]
}

fn user_operations() -> Vec<Operation> {
    use UserRole::{Member, Owner};
    vec![
        post("/auth/sign-in", "sign_in")
            .about("auth", "Sign in with a password")
            .errors(&[ErrorCode::UNAUTHORIZED, ErrorCode::RATE_LIMIT_EXCEEDED])
            .public(auth::password_sign_in::sign_in),
        post("/auth/link", "ask_for_sign_in_link")
            .about("auth", "Request a sign-in link by email")
            .errors(&[ErrorCode::RATE_LIMIT_EXCEEDED])
            .public(auth::link_sign_in::request_link),
        get("/auth/link/{token}", "show_sign_in_link")
            .about("auth", "Show the page of a mailed link; changes nothing")
            .public(auth::link_sign_in::show_link),
        post("/auth/link/{token}", "use_sign_in_link")
            .about("auth", "Sign in with a mailed link (works once); accepts an invitation")
            .errors(&[ErrorCode::UNAUTHORIZED, ErrorCode::CONFLICT, ErrorCode::RATE_LIMIT_EXCEEDED])
            .public(auth::link_sign_in::use_link),
        get("/auth/session", "get_session")
            .about("auth", "Get the current session")
            .session(Member, auth::session::get),
        get("/auth/sessions", "list_sessions")
            .about("auth", "List the user's sessions, newest first")
            .session(Member, auth::session::list),
        delete("/auth/sessions", "end_other_sessions")
            .about("auth", "End all other sessions of the user")
            .session(Member, auth::session::end_others),
        delete("/auth/sessions/{id}", "end_session")
            .about("auth", "End one of the user's sessions")
            .session(Member, auth::session::end),
        post("/auth/sign-out", "sign_out")
            .about("auth", "Sign out: end the current session")
            .session(Member, auth::session::sign_out),
        post("/auth/password", "set_password")
            .about("auth", "Set the user's password; ends the user's other sessions")
            .session(Member, auth::own_password::set_password),
        get("/users", "list_users").about("users", "List users, newest first").session(Member, users::list),
        post("/users", "invite_user")
            .about("users", "Invite a user to the account, or resend an open invitation")
            .errors(&[ErrorCode::CONFLICT, ErrorCode::PLAN_FULL])
            .session(Owner, users::invite),
        patch("/users/{id}", "update_user").about("users", "Change a user's role").session(Owner, users::update_role),
        delete("/users/{id}", "remove_user")
            .about("users", "Remove a user and end the user's sessions")
            .session(Owner, users::remove),
    ]
}
