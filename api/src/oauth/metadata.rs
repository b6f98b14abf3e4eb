//! Metadata of the authorization server (RFC 8414) and of the protected resources (RFC 9728).

use model::oauth::OAuthResource;
use model::oauth::scope::OAuthScope;

use super::error::OAuthResponse;
use super::grant_type::{AUTHORIZATION_CODE, DEVICE_CODE, REFRESH_TOKEN};
use super::{AUTHORIZE_PAGE, DEVICE_PATH, MCP_PATH, REGISTER_PATH, REVOKE_PATH, TOKEN_PATH};
use crate::prelude::*;

/// Metadata of the authorization server (RFC 8414 2)
#[derive(Debug, Serialize, ToSchema)]
pub struct ServerMetadata {
    /// The issuer, which is also `iss` in responses to authorization requests (RFC 9207)
    issuer: String,
    /// The page that asks the user
    authorization_endpoint: String,
    token_endpoint: String,
    revocation_endpoint: String,
    registration_endpoint: String,
    /// RFC 8628 4
    device_authorization_endpoint: String,
    scopes_supported: Vec<&'static str>,
    response_types_supported: Vec<&'static str>,
    response_modes_supported: Vec<&'static str>,
    grant_types_supported: Vec<&'static str>,
    /// `none`: clients have no secret
    token_endpoint_auth_methods_supported: Vec<&'static str>,
    revocation_endpoint_auth_methods_supported: Vec<&'static str>,
    /// S256 only
    code_challenge_methods_supported: Vec<&'static str>,
    authorization_response_iss_parameter_supported: bool,
    /// A client may use the URL of its metadata document as its id
    client_id_metadata_document_supported: bool,
    /// Tokens of this server are for these resources (RFC 9728 4)
    protected_resources: Vec<String>,
    service_documentation: String,
}

/// Metadata of a protected resource (RFC 9728 2)
#[derive(Debug, Serialize, ToSchema)]
pub struct ResourceMetadata {
    /// The value of `resource` in authorization and token requests
    resource: String,
    authorization_servers: Vec<String>,
    scopes_supported: Vec<&'static str>,
    /// `header`: `Authorization: Bearer` only
    bearer_methods_supported: Vec<&'static str>,
    resource_name: &'static str,
    resource_documentation: String,
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
    let base = &state.options.base_url;
    let at = |path: &str| format!("{base}{path}");
    Ok(OAuthResponse::success(ServerMetadata {
        issuer: base.clone(),
        authorization_endpoint: at(AUTHORIZE_PAGE),
        token_endpoint: at(TOKEN_PATH),
        revocation_endpoint: at(REVOKE_PATH),
        registration_endpoint: at(REGISTER_PATH),
        device_authorization_endpoint: at(DEVICE_PATH),
        scopes_supported: scopes(),
        response_types_supported: vec!["code"],
        response_modes_supported: vec!["query"],
        grant_types_supported: vec![AUTHORIZATION_CODE, REFRESH_TOKEN, DEVICE_CODE],
        token_endpoint_auth_methods_supported: vec!["none"],
        revocation_endpoint_auth_methods_supported: vec!["none"],
        code_challenge_methods_supported: vec!["S256"],
        authorization_response_iss_parameter_supported: true,
        client_id_metadata_document_supported: true,
        protected_resources: [OAuthResource::Api, OAuthResource::Mcp].map(|one| resource_uri(base, one)).to_vec(),
        service_documentation: at("/docs"),
    }))
}

fn resource(state: &AppState, resource: OAuthResource, resource_name: &'static str) -> OAuthResponse<ResourceMetadata> {
    let base = &state.options.base_url;
    OAuthResponse::success(ResourceMetadata {
        resource: resource_uri(base, resource),
        authorization_servers: vec![base.clone()],
        scopes_supported: scopes(),
        bearer_methods_supported: vec!["header"],
        resource_name,
        resource_documentation: format!("{base}/docs"),
    })
}

/// `GET /.well-known/oauth-protected-resource`.
pub async fn api_resource(state: State, _: NoInput) -> Result<OAuthResponse<ResourceMetadata>> {
    Ok(resource(&state, OAuthResource::Api, "postrider API"))
}

/// `GET /.well-known/oauth-protected-resource/mcp`.
pub async fn mcp_resource(state: State, _: NoInput) -> Result<OAuthResponse<ResourceMetadata>> {
    Ok(resource(&state, OAuthResource::Mcp, "postrider MCP server"))
}
