//! `Operation`: method, path, callers, limits and handler of one operation of the API, and its builders.
//!
//! The table of all operations is [`crate::operations`]; each folder of handlers builds its own rows.

use std::fmt;

use httpd::response::{CookiePolicy, ExtraResponse, IntoResponse};
use model::draft::Draft;
use model::idempotency::IdempotencyScope;
use model::quota::Noun;

use crate::handler::{
    CallerHandler, Handler, PublicHandler, RequestCheck, SendResolver, caller_handler, check_request, public_handler,
    send_resolver,
};
use crate::idempotent_operation;
use crate::prelude::*;
use crate::sdk::{SdkAction, SdkMethod};

/// Allowed callers of an operation, with its handler.
pub enum OperationHandler {
    /// No authentication.
    Public(PublicHandler),
    ApiKey(ApiKeyScope, CallerHandler<Tenant>),
    /// An API key with this scope or, with the path prefix `/api`, a signed-in user.
    ApiKeyOrSession(ApiKeyScope, CallerHandler<Tenant>),
    /// A signed-in user.
    Session(SessionSubject, CallerHandler<SignedInUser>),
    /// A signed-in user whose role permits it, or the operator on the owner's behalf ([`crate::operator`]).
    Owner(CallerHandler<Owner>),
}

/// The subject of an operation of a signed-in user.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SessionSubject {
    /// The caller's own sign-in: every role may call it.
    Own,
    /// The account: the role table decides ([`crate::access::role_table`]).
    Account,
}

impl fmt::Debug for OperationHandler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Public(_) => f.write_str("Public"),
            Self::ApiKey(scope, _) => write!(f, "Keyed({scope:?})"),
            Self::ApiKeyOrSession(scope, _) => write!(f, "Either({scope:?})"),
            Self::Session(subject, _) => write!(f, "Session({subject:?})"),
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
pub struct Operation {
    pub method: Method,
    /// `{id}` is a path parameter.
    pub path: &'static str,
    /// The `operationId`; also the name in metrics and logs.
    pub id: &'static str,
    /// The OpenAPI tag.
    pub tag: &'static str,
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
    pub idempotency_scope: Option<IdempotencyScope>,
    /// The most serious effect of a call; decides which roles may call it in a session.
    pub risk: Risk,
    /// It causes email later that no policy of a client sees: by automations, partner emails or webhooks.
    pub mails_later: bool,
    /// It changes what partners are paid. A client with a policy may call it only with an approval.
    pub moves_money: bool,
    /// Parses a request without handling it, before it waits for an approval.
    pub check_request: fn(Request) -> RequestCheck,
    /// Builds the emails that a request would send, for a person who approves them. Every operation that sends email
    /// has it.
    pub resolve_sends: Option<SendResolver>,
    /// Name in SDKs, CLI and MCP tools; `None` if the operation accepts no API keys.
    pub sdk: Option<SdkMethod>,
    pub handler: OperationHandler,
}

/// Upper bound of what a request stores: a number of rows or, for byte quotas, the bytes besides the request body.
pub type StorageCost = &'static [(Noun, u64)];

impl fmt::Debug for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Operation").field("id", &self.id).field("handler", &self.handler).finish_non_exhaustive()
    }
}

impl Operation {
    /// Sets the function that builds the emails of a request. It takes the input of the handler, and changes nothing.
    pub fn resolved_by<I: FromRequest>(mut self, resolve: impl Handler<Tenant, I, Vec<Draft>>) -> Self {
        self.resolve_sends = Some(send_resolver(resolve));
        self
    }

    /// The scope that an API key needs; `None` if the operation accepts no API keys.
    pub fn scope(&self) -> Option<ApiKeyScope> {
        match self.handler {
            OperationHandler::Public(_) | OperationHandler::Session(..) | OperationHandler::Owner(_) => None,
            OperationHandler::ApiKey(scope, _) | OperationHandler::ApiKeyOrSession(scope, _) => Some(scope),
        }
    }

    /// Returns whether it starts or ends a session. Such requests from other sites are rejected.
    pub fn changes_session(&self) -> bool {
        self.response_spec.cookies == CookiePolicy::Session && self.method != Method::GET
    }

    /// Returns whether a signed-in user may call it.
    pub fn accepts_sessions(&self) -> bool {
        matches!(
            self.handler,
            OperationHandler::ApiKeyOrSession(..) | OperationHandler::Session(..) | OperationHandler::Owner(_)
        )
    }
}

/// Starts operations with the same OpenAPI tag.
#[derive(Debug, Clone, Copy)]
pub struct OperationTag {
    name: &'static str,
    errors: &'static [ErrorCode],
    domain_scoped: bool,
}

impl OperationTag {
    pub const fn new(name: &'static str) -> Self {
        Self { name, errors: &[], domain_scoped: false }
    }

    /// Sets the errors of the operations that do not set their own with [`OperationBuilder::errors`].
    #[must_use]
    pub const fn errors(self, errors: &'static [ErrorCode]) -> Self {
        Self { errors, ..self }
    }

    /// Makes every operation domain-scoped, as [`OperationBuilder::domain_scoped`] does.
    #[must_use]
    pub const fn domain_scoped(self) -> Self {
        Self { domain_scoped: true, ..self }
    }

    pub fn get(self, path: &'static str, summary: &'static str) -> OperationBuilder {
        self.operation(Method::GET, path, summary)
    }

    pub fn post(self, path: &'static str, summary: &'static str) -> OperationBuilder {
        self.operation(Method::POST, path, summary)
    }

    pub fn put(self, path: &'static str, summary: &'static str) -> OperationBuilder {
        self.operation(Method::PUT, path, summary)
    }

    pub fn patch(self, path: &'static str, summary: &'static str) -> OperationBuilder {
        self.operation(Method::PATCH, path, summary)
    }

    pub fn delete(self, path: &'static str, summary: &'static str) -> OperationBuilder {
        self.operation(Method::DELETE, path, summary)
    }

    pub fn operation(self, method: Method, path: &'static str, summary: &'static str) -> OperationBuilder {
        let risk = match method {
            Method::GET => Risk::Read,
            Method::DELETE => Risk::Delete,
            _ => Risk::Write,
        };
        OperationBuilder {
            method,
            path,
            tag: self.name,
            summary,
            errors: self.errors,
            domain_scoped: self.domain_scoped,
            storage_cost: &[],
            idempotency_scope: None,
            sdk_actions: &[],
            risk,
            mails_later: false,
            moves_money: false,
        }
    }
}

/// The `operationId`, for example `send_email`, and the name in SDKs, CLI and MCP tools: resources and method in
/// camelCase, for example `emails.send`.
pub type OperationNames = (&'static str, &'static str);

/// An operation without callers, names and handler; the last call of the builder sets them.
#[derive(Debug, Clone)]
pub struct OperationBuilder {
    method: Method,
    path: &'static str,
    tag: &'static str,
    summary: &'static str,
    errors: &'static [ErrorCode],
    domain_scoped: bool,
    storage_cost: StorageCost,
    idempotency_scope: Option<IdempotencyScope>,
    sdk_actions: &'static [SdkAction],
    risk: Risk,
    mails_later: bool,
    moves_money: bool,
}

impl OperationBuilder {
    /// Sets the error codes that do not follow from the operation's properties.
    #[must_use]
    pub fn errors(mut self, codes: &'static [ErrorCode]) -> Self {
        self.errors = codes;
        self
    }

    /// Sets further SDK methods that call the operation with one field fixed.
    #[must_use]
    pub fn sdk_actions(mut self, actions: &'static [SdkAction]) -> Self {
        self.sdk_actions = actions;
        self
    }

    /// Sets the risk where the HTTP method does not tell it: by default GET reads, DELETE deletes and others write.
    #[must_use]
    pub fn risk(mut self, risk: Risk) -> Self {
        self.risk = risk;
        self
    }

    /// Marks an operation that causes email or transfers to others later. Clients whose policy limits their email may not
    /// call it.
    #[must_use]
    pub fn mails_later(mut self) -> Self {
        self.mails_later = true;
        self
    }

    /// Marks an operation that changes what partners are paid. Clients with a policy may call it only with an approval of
    /// a person who may release such changes.
    #[must_use]
    pub fn moves_money(mut self) -> Self {
        self.moves_money = true;
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

    #[must_use]
    pub fn idempotent_storage_cost(mut self, keys: IdempotencyScope, stores: StorageCost) -> Self {
        (self.idempotency_scope, self.storage_cost) = (Some(keys), stores);
        self
    }

    /// Allows calls without authentication.
    pub fn public<I: FromRequest, O: IntoResponse, F, Run>(self, id: &'static str, handler: F) -> Operation
    where
        F: Fn(State, I) -> Run + Send + Sync + Copy + 'static,
        Run: Future<Output = Result<O>> + Send + 'static,
    {
        self.build::<I, O>(id, OperationHandler::Public(public_handler(handler)))
    }

    /// Allows API keys with the scope `sending` or `full`.
    pub fn sending_key<I: FromRequest, O: IntoResponse>(
        self,
        names: OperationNames,
        handler: impl Handler<Tenant, I, O>,
    ) -> Operation {
        self.build_for_keys::<I, O>(names, OperationHandler::ApiKey(ApiKeyScope::Sending, caller_handler(handler)))
    }

    /// Allows API keys with the scope `sending` or `full`, and signed-in users.
    pub fn sending_key_or_session<I: FromRequest, O: IntoResponse>(
        self,
        names: OperationNames,
        handler: impl Handler<Tenant, I, O>,
    ) -> Operation {
        let action = OperationHandler::ApiKeyOrSession(ApiKeyScope::Sending, caller_handler(handler));
        self.build_for_keys::<I, O>(names, action)
    }

    /// Allows API keys with the scope `full`, and signed-in users.
    pub fn full_key_or_session<I: FromRequest, O: IntoResponse>(
        self,
        names: OperationNames,
        handler: impl Handler<Tenant, I, O>,
    ) -> Operation {
        let action = OperationHandler::ApiKeyOrSession(ApiKeyScope::Full, caller_handler(handler));
        self.build_for_keys::<I, O>(names, action)
    }

    /// Allows signed-in users; it concerns the caller's own sign-in.
    pub fn own_session<I: FromRequest, O: IntoResponse>(
        self,
        id: &'static str,
        handler: impl Handler<SignedInUser, I, O>,
    ) -> Operation {
        self.build::<I, O>(id, OperationHandler::Session(SessionSubject::Own, caller_handler(handler)))
    }

    /// Allows signed-in users whose role permits it; it concerns the account.
    pub fn account_session<I: FromRequest, O: IntoResponse>(
        self,
        id: &'static str,
        handler: impl Handler<SignedInUser, I, O>,
    ) -> Operation {
        self.build::<I, O>(id, OperationHandler::Session(SessionSubject::Account, caller_handler(handler)))
    }

    /// Allows signed-in users whose role permits it, and the operator. A POST operation accepts an idempotency key
    /// ([`crate::idempotent_operation`]).
    pub fn owner<I: FromRequest, O: IntoResponse>(
        self,
        id: &'static str,
        handler: impl Handler<Owner, I, O>,
    ) -> Operation {
        if self.method != Method::POST {
            return self.build::<I, O>(id, OperationHandler::Owner(caller_handler(handler)));
        }
        let action = OperationHandler::Owner(idempotent_operation::make_idempotent(id, caller_handler(handler)));
        Operation { request_spec: idempotent_operation::describe::<I>, ..self.build::<I, O>(id, action) }
    }

    /// Like [`owner`](Self::owner), but the handler itself stores its response under the key, in the commit of the
    /// change.
    pub fn owner_idempotent<I: FromRequest, O: IntoResponse>(
        self,
        id: &'static str,
        handler: impl Handler<Owner, I, O>,
    ) -> Operation {
        self.build::<I, O>(id, OperationHandler::Owner(caller_handler(handler)))
    }

    fn build_for_keys<I: FromRequest, O: IntoResponse>(
        self,
        (id, name): OperationNames,
        action: OperationHandler,
    ) -> Operation {
        let sdk = Some(SdkMethod { name, risk: self.risk, actions: self.sdk_actions });
        Operation { sdk, ..self.build::<I, O>(id, action) }
    }

    fn build<I: FromRequest, O: IntoResponse>(self, id: &'static str, action: OperationHandler) -> Operation {
        Operation {
            method: self.method,
            path: self.path,
            id,
            tag: self.tag,
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
            risk: self.risk,
            mails_later: self.mails_later,
            moves_money: self.moves_money || matches!(self.risk, Risk::Money | Risk::Payout),
            check_request: check_request::<I>,
            resolve_sends: None,
            sdk: None,
            handler: action,
        }
    }
}
