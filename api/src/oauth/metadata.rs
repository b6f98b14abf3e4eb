//! Metadata of the authorization server (RFC 8414) and of the protected resources (RFC 9728).

use model::oauth::OAuthResource;
use model::oauth::scope::OAuthScope;

use super::error::OAuthResponse;
use super::grant_type::{AUTHORIZATION_CODE, DEVICE_CODE, REFRESH_TOKEN};
use super::{AUTHORIZE_PAGE, DEVICE_PATH, MCP_PATH, REGISTER_PATH, REVOKE_PATH, TOKEN_PATH};
use crate::prelude::*;

object_view! {
    /// Metadata of the authorization server (RFC 8414 2)
    pub struct ServerMetadata, fn new(base: &str; let at = |path: &str| format!("{base}{path}")) {
        /// The issuer, which is also `iss` in responses to authorization requests (RFC 9207)
        issuer: String = base.to_owned(),
        /// The page that asks the user
        authorization_endpoint: String = at(AUTHORIZE_PAGE),
        token_endpoint: String = at(TOKEN_PATH),
        revocation_endpoint: String = at(REVOKE_PATH),
        registration_endpoint: String = at(REGISTER_PATH),
        /// RFC 8628 4
        device_authorization_endpoint: String = at(DEVICE_PATH),
        scopes_supported: Vec<&'static str> = scopes(),
        response_types_supported: Vec<&'static str> = vec!["code"],
        response_modes_supported: Vec<&'static str> = vec!["query"],
        grant_types_supported: Vec<&'static str> = vec![AUTHORIZATION_CODE, REFRESH_TOKEN, DEVICE_CODE],
        /// `none`: clients have no secret
        token_endpoint_auth_methods_supported: Vec<&'static str> = vec!["none"],
        revocation_endpoint_auth_methods_supported: Vec<&'static str> = vec!["none"],
        /// S256 only
        code_challenge_methods_supported: Vec<&'static str> = vec!["S256"],
        authorization_response_iss_parameter_supported: bool = true,
        /// A client may use the URL of its metadata document as its id
        client_id_metadata_document_supported: bool = true,
        /// Tokens of this server are for these resources (RFC 9728 4)
        protected_resources: Vec<String> =
            [OAuthResource::Api, OAuthResource::Mcp].map(|resource| resource_uri(base, resource)).to_vec(),
        service_documentation: String = at("/docs"),
    }
}

object_view! {
    /// Metadata of a protected resource (RFC 9728 2)
    pub struct ResourceMetadata, fn new(base: &str, resource: OAuthResource, name: &'static str) {
        /// The value of `resource` in authorization and token requests
        resource: String = resource_uri(base, resource),
        authorization_servers: Vec<String> = vec![base.to_owned()],
        scopes_supported: Vec<&'static str> = scopes(),
        /// `header`: `Authorization: Bearer` only
        bearer_methods_supported: Vec<&'static str> = vec!["header"],
        resource_name: &'static str = name,
        resource_documentation: String = format!("{base}/docs"),
    }
}

fn scopes() -> Vec<&'static str> {
    OAuthScope::ALL.map(OAuthScope::word).to_vec()
}

pub(super) fn resource_uri(base_url: &str, resource: OAuthResource) -> String {
    match resource {
        OAuthResource::Api => base_url.to_owned(),
        OAuthResource::Mcp => format!("{base_url}{MCP_PATH}"),
    }
}

/// The URL of a resource's metadata, for `WWW-Authenticate` (RFC 9728 5.1).
pub fn resource_metadata_url(base_url: &str, resource: OAuthResource) -> String {
    let suffix = match resource {
        OAuthResource::Api => "",
        OAuthResource::Mcp => MCP_PATH,
    };
    format!("{base_url}/.well-known/oauth-protected-resource{suffix}")
}

/// `GET /.well-known/oauth-authorization-server`.
pub async fn authorization_server(state: State, _: NoInput) -> Result<OAuthResponse<ServerMetadata>> {
    Ok(OAuthResponse::success(ServerMetadata::new(&state.options.base_url)))
}

fn resource(state: &AppState, resource: OAuthResource, name: &'static str) -> OAuthResponse<ResourceMetadata> {
    OAuthResponse::success(ResourceMetadata::new(&state.options.base_url, resource, name))
}

/// `GET /.well-known/oauth-protected-resource`.
pub async fn api_resource(state: State, _: NoInput) -> Result<OAuthResponse<ResourceMetadata>> {
    Ok(resource(&state, OAuthResource::Api, "postrider API"))
}

/// `GET /.well-known/oauth-protected-resource/mcp`.
pub async fn mcp_resource(state: State, _: NoInput) -> Result<OAuthResponse<ResourceMetadata>> {
    Ok(resource(&state, OAuthResource::Mcp, "postrider MCP server"))
}
