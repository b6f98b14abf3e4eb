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

use crate::operation::{Operation, SessionSubject, operation};
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
    let tag = "oauth";
    let limited = &[ErrorCode::RATE_LIMIT_EXCEEDED];
    vec![
        operation(Method::GET, "/.well-known/oauth-authorization-server", "get_authorization_server_metadata")
            .about(tag, "Get the metadata of the authorization server (RFC 8414)")
            .public(metadata::authorization_server),
        operation(Method::GET, "/.well-known/oauth-protected-resource", "get_protected_resource_metadata")
            .about(tag, "Get the metadata of the API as a protected resource (RFC 9728)")
            .public(metadata::api_resource),
        operation(Method::GET, "/.well-known/oauth-protected-resource/mcp", "get_mcp_resource_metadata")
            .about(tag, "Get the metadata of the MCP server as a protected resource (RFC 9728)")
            .public(metadata::mcp_resource),
        operation(Method::POST, REGISTER_PATH, "register_oauth_client")
            .about(tag, "Register a client (RFC 7591); it is deleted after 24 hours without a grant")
            .errors(limited)
            .public(registration::register),
        operation(Method::POST, TOKEN_PATH, "create_oauth_token")
            .about(tag, "Exchange a code, device code or refresh token for tokens; errors as in RFC 6749 5.2")
            .public(token::exchange),
        operation(Method::POST, REVOKE_PATH, "revoke_oauth_token")
            .about(tag, "Revoke a token (RFC 7009); a refresh token ends its grant")
            .public(revocation::revoke),
        operation(Method::POST, DEVICE_PATH, "create_device_authorization")
            .about(tag, "Begin the authorization of a device without a browser (RFC 8628)")
            .errors(limited)
            .public(device::begin),
    ]
}

fn session_operations() -> Vec<Operation> {
    use SessionSubject::Own;
    let tag = "oauth";
    vec![
        operation(Method::GET, "/auth/authorization-request", "get_authorization_request")
            .about(tag, "Check an authorization request; its parameters are those of RFC 6749 4.1.1")
            .session(Own, authorization::get),
        operation(Method::POST, "/auth/authorization-request", "decide_authorization_request")
            .about(tag, "Approve or deny an authorization request, in the query as for the check")
            .errors(&[ErrorCode::REAUTHENTICATION_REQUIRED])
            .session(Own, authorization::decide),
        operation(Method::GET, "/auth/device-requests/{code}", "get_device_request")
            .about(tag, "Get the request of a device by its user code")
            .errors(&[ErrorCode::NOT_FOUND, ErrorCode::RATE_LIMIT_EXCEEDED])
            .session(Own, device::get),
        operation(Method::POST, "/auth/device-requests/{code}", "decide_device_request")
            .about(tag, "Approve or deny the request of a device")
            .errors(&[ErrorCode::NOT_FOUND, ErrorCode::REAUTHENTICATION_REQUIRED, ErrorCode::RATE_LIMIT_EXCEEDED])
            .session(Own, device::decide),
        operation(Method::DELETE, "/auth/grants/{id}", "revoke_own_grant")
            .about(tag, "Revoke a grant that the user gave")
            .session(Own, grants::revoke_own),
    ]
}

fn grant_operations() -> Vec<Operation> {
    let (full, tag) = (ApiKeyScope::Full, "grants");
    vec![
        operation(Method::GET, "/grants", "list_grants")
            .about(tag, "List what users have allowed apps to do, newest first")
            .sdk("grants.list")
            .api_key_or_session(full, grants::list),
        operation(Method::PATCH, "/grants/{id}", "update_grant")
            .about(tag, "Set the policy of a grant")
            .errors(&[ErrorCode::REAUTHENTICATION_REQUIRED])
            .session(SessionSubject::Account, grants::update),
        operation(Method::GET, "/grants/{id}", "get_grant")
            .about(tag, "Get a grant")
            .sdk("grants.get")
            .api_key_or_session(full, grants::get),
        operation(Method::DELETE, "/grants/{id}", "revoke_grant")
            .about(tag, "Revoke a grant: its app loses access at once")
            .risk(Risk::Delete)
            .sdk("grants.revoke")
            .api_key_or_session(full, grants::revoke),
    ]
}
