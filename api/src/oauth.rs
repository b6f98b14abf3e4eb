//! The OAuth 2.1 authorization server: programs that act for a user within the scopes that the user allowed.
//!
//! ```text
//! client ─► metadata (RFC 8414, RFC 9728) ─► registration (RFC 7591), or the URL of a metadata document
//! browser ─► /dashboard/authorize ─► get_authorization_request ─► consent ─► decide_authorization_request ─► code
//! device  ─► POST /oauth/device ─► user code ─► /dashboard/device ─► decide_device_request
//! client ─► POST /oauth/token: code or device code ─► OAuthGrant with its tokens; refresh token ─► new tokens
//! client ─► POST /oauth/revoke, user ─► DELETE /grants/{id}: the grant and all its tokens end
//! ```
//!
//! Clients are public: they have no secret, and prove possession of a code by PKCE with S256 (RFC 7636). Every error of a
//! wrong client or redirect URI is shown to the person; nothing is sent to an address that is not the client's. An
//! access token is a credential like an API key ([`crate::access`]); its scopes and the user's role bound it together.

pub mod authorization;
pub(crate) mod caches;
pub mod client;
pub mod client_document;
pub mod cross_origin;
pub mod decision;
pub mod device;
pub mod device_polls;
pub mod error;
pub mod form;
mod grant_type;
pub mod grants;
mod issue;
pub mod metadata;
pub mod registration;
pub mod resolved_client;
pub mod revocation;
pub mod token;
pub mod token_response;

use crate::operation::{Operation, OperationTag};
use crate::prelude::*;

/// Path of the page that asks for consent, and of the page that takes user codes: pages of the dashboard.
pub const AUTHORIZE_PAGE: &str = "/dashboard/authorize";
pub const DEVICE_PAGE: &str = "/dashboard/device";
/// Paths of the public endpoints.
pub const TOKEN_PATH: &str = "/oauth/token";
pub const REVOKE_PATH: &str = "/oauth/revoke";
pub const REGISTER_PATH: &str = "/oauth/register";
pub const DEVICE_PATH: &str = "/oauth/device";
/// Path of the resource for MCP clients.
pub const MCP_PATH: &str = "/mcp";

pub fn operations() -> Vec<Operation> {
    let mut all = public_operations();
    all.extend(session_operations());
    all.extend(grant_operations());
    all
}

fn public_operations() -> Vec<Operation> {
    let tag = OperationTag::new("oauth");
    let limited = &[ErrorCode::RATE_LIMIT_EXCEEDED];
    vec![
        tag.get("/.well-known/oauth-authorization-server", "Get the metadata of the authorization server (RFC 8414)")
            .public("get_authorization_server_metadata", metadata::authorization_server),
        tag.get(
            "/.well-known/oauth-protected-resource",
            "Get the metadata of the API as a protected resource (RFC 9728)",
        )
        .public("get_protected_resource_metadata", metadata::api_resource),
        tag.get(
            "/.well-known/oauth-protected-resource/mcp",
            "Get the metadata of the MCP server as a protected resource (RFC 9728)",
        )
        .public("get_mcp_resource_metadata", metadata::mcp_resource),
        tag.post(REGISTER_PATH, "Register a client (RFC 7591); it is deleted after 24 hours without a grant")
            .errors(limited)
            .public("register_oauth_client", registration::register),
        tag.post(TOKEN_PATH, "Exchange a code, device code or refresh token for tokens; errors as in RFC 6749 5.2")
            .public("create_oauth_token", token::exchange),
        tag.post(REVOKE_PATH, "Revoke a token (RFC 7009); a refresh token ends its grant")
            .public("revoke_oauth_token", revocation::revoke),
        tag.post(DEVICE_PATH, "Begin the authorization of a device without a browser (RFC 8628)")
            .errors(limited)
            .public("create_device_authorization", device::begin),
    ]
}

fn session_operations() -> Vec<Operation> {
    let tag = OperationTag::new("oauth");
    vec![
        tag.get(
            "/auth/authorization-request",
            "Check an authorization request; its parameters are those of RFC 6749 4.1.1",
        )
        .own_session("get_authorization_request", authorization::get),
        tag.post(
            "/auth/authorization-request",
            "Approve or deny an authorization request, in the query as for the check",
        )
        .errors(&[ErrorCode::REAUTHENTICATION_REQUIRED])
        .own_session("decide_authorization_request", authorization::decide),
        tag.get("/auth/device-requests/{code}", "Get the request of a device by its user code")
            .errors(&[ErrorCode::NOT_FOUND, ErrorCode::RATE_LIMIT_EXCEEDED])
            .own_session("get_device_request", device::get),
        tag.post("/auth/device-requests/{code}", "Approve or deny the request of a device")
            .errors(&[ErrorCode::NOT_FOUND, ErrorCode::REAUTHENTICATION_REQUIRED, ErrorCode::RATE_LIMIT_EXCEEDED])
            .own_session("decide_device_request", device::decide),
        tag.delete("/auth/grants/{id}", "Revoke a grant that the user gave")
            .own_session("revoke_own_grant", grants::revoke_own),
    ]
}

fn grant_operations() -> Vec<Operation> {
    let tag = OperationTag::new("grants");
    vec![
        tag.get("/grants", "List what users have allowed apps to do, newest first")
            .full_key_or_session(("list_grants", "grants.list"), grants::list),
        tag.patch("/grants/{id}", "Set the policy of a grant")
            .errors(&[ErrorCode::REAUTHENTICATION_REQUIRED])
            .account_session("update_grant", grants::update),
        tag.get("/grants/{id}", "Get a grant").full_key_or_session(("get_grant", "grants.get"), grants::get),
        tag.delete("/grants/{id}", "Revoke a grant: its app loses access at once")
            .risk(Risk::Delete)
            .full_key_or_session(("revoke_grant", "grants.revoke"), grants::revoke),
    ]
}
