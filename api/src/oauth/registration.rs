//! `POST /oauth/register`: dynamic client registration (RFC 7591). Anybody may register, so nothing about such a client
//! is trusted, registrations are limited by network, and a client without a grant is deleted after 24 hours.

use std::net::IpAddr;

use model::oauth::redirect_uri::RedirectUri;
use model::oauth::{OAuthClient, REDIRECT_URIS_MAX, UNUSED_CLIENT_TTL, client_name};
use serde::Deserialize;

use super::error::{OAuthError, OAuthErrorCode, OAuthFailure, OAuthResponse};
use super::grant_type::{AUTHORIZATION_CODE, DEVICE_CODE, REFRESH_TOKEN};
use crate::prelude::*;

/// Largest registration.
const BODY_BYTES_MAX: usize = 16 << 10;

/// The metadata that the server reads; other fields are ignored (RFC 7591 2).
#[derive(Debug, Deserialize)]
struct ClientMetadata {
    #[serde(default)]
    redirect_uris: Vec<String>,
    #[serde(default)]
    client_name: Option<String>,
    #[serde(default)]
    grant_types: Option<Vec<String>>,
    #[serde(default)]
    response_types: Option<Vec<String>>,
}

/// A registration: `None` if the body is no client metadata.
#[derive(Debug)]
pub struct RegisterClient {
    metadata: Option<ClientMetadata>,
    client_ip: Option<IpAddr>,
}

impl FromRequest for RegisterClient {
    const BODY_BYTES_MAX: Option<usize> = Some(BODY_BYTES_MAX);
    const MEDIA: Media = Media::Signed;
    const BODY: Option<BodySchema> = Some(|_| {
        let uris = schema::list(
            schema::string("`https://…`, a loopback address, or a scheme of a program"),
            "1 to 10 redirect URIs",
        );
        let fields = [
            ("redirect_uris", uris),
            ("client_name", schema::string("The name that users see, marked as not verified")),
            ("grant_types", schema::list(schema::string("As in the server's metadata"), "The grant types to use")),
        ];
        schema::object("Client metadata (RFC 7591 2); other fields are ignored", fields)
    });

    fn read(call: &Request) -> Result<Self> {
        // The derived reader also takes an array of the fields.
        let is_object = call.body.trim_ascii_start().starts_with(b"{");
        let metadata = is_object.then(|| serde_json::from_slice(&call.body).ok()).flatten();
        Ok(Self { metadata, client_ip: call.client_ip })
    }
}

object_view! {
    /// A registered client (RFC 7591 3.2.1)
    #[schema(status = CREATED)]
    pub struct RegisteredClient, fn from_client(client: OAuthClient) {
        client_id: OAuthClientId = client.id,
        /// Seconds since 1970
        client_id_issued_at: i64 = client.created_at.as_second(),
        client_name: String = client.name,
        redirect_uris: Vec<String> = client.redirect_uris,
        grant_types: Vec<&'static str> = [AUTHORIZATION_CODE, REFRESH_TOKEN]
            .into_iter()
            .chain(client.uses_device_codes.then_some(DEVICE_CODE))
            .collect(),
        response_types: Vec<&'static str> = vec!["code"],
        /// `none`, whatever the client asked for
        token_endpoint_auth_method: &'static str = "none",
        scope: &'static str = "read send manage",
    }
}

/// `POST /oauth/register`.
///
/// # Errors
/// 429 after too many registrations from a network; the store cannot be written.
pub async fn register(state: State, request: RegisterClient) -> Result<OAuthResponse<RegisteredClient>> {
    OAuthResponse::from_result(register_client(&state, request).await)
}

async fn register_client(state: &AppState, request: RegisterClient) -> Result<RegisteredClient, OAuthFailure> {
    let now = state.services.clock.now();
    state.sign_in.limiter.count_oauth_request(request.client_ip, "register", now)?;
    let invalid = |text: String| OAuthError::new(OAuthErrorCode::InvalidClientMetadata, text);
    let metadata = request.metadata.ok_or_else(|| invalid("The body is not client metadata in JSON".to_owned()))?;
    let uses_device_codes = check_types(&metadata)?;
    check_redirect_uris(&metadata.redirect_uris, uses_device_codes)?;
    let name = metadata.client_name.as_deref().and_then(client_name).unwrap_or_else(|| "Unnamed app".to_owned());
    let client = OAuthClient {
        id: OAuthClientId::new(now, state.services.entropy.unique_bits()),
        name,
        redirect_uris: metadata.redirect_uris,
        uses_device_codes,
        created_at: now,
        expires_at: now.checked_add(UNUSED_CLIENT_TTL).map_err(Problem::internal)?,
    };
    let mut batch = Batch::intake();
    store::oauth::client::create(&mut batch, &client);
    state.services.store.commit(batch).await?;
    Ok(RegisteredClient::from_client(client))
}

/// Checks grant and response types. Returns whether the client uses device codes.
fn check_types(metadata: &ClientMetadata) -> Result<bool, OAuthError> {
    let invalid = |text: &str| Err(OAuthError::new(OAuthErrorCode::InvalidClientMetadata, text));
    let is_known =
        |grant_type: &String| [AUTHORIZATION_CODE, REFRESH_TOKEN, DEVICE_CODE].contains(&grant_type.as_str());
    let grant_types = metadata.grant_types.as_deref().unwrap_or_default();
    if metadata.grant_types.is_some() && !grant_types.iter().any(is_known) {
        return invalid("`grant_types` has none that this server supports");
    }
    if metadata.response_types.as_ref().is_some_and(|types| !types.is_empty() && !types.iter().any(|one| one == "code"))
    {
        return invalid("`response_types` must have `code`");
    }
    Ok(grant_types.iter().any(|grant_type| grant_type == DEVICE_CODE))
}

fn check_redirect_uris(uris: &[String], uses_device_codes: bool) -> Result<(), OAuthError> {
    let invalid = |text: String| Err(OAuthError::new(OAuthErrorCode::InvalidRedirectUri, text));
    if (uris.is_empty() && !uses_device_codes) || uris.len() > REDIRECT_URIS_MAX {
        return invalid(format!("`redirect_uris` must have 1 to {REDIRECT_URIS_MAX} entries"));
    }
    match uris.iter().find_map(|uri| RedirectUri::parse(uri).err()) {
        Some(why) => invalid(format!("a redirect URI {why}")),
        None => Ok(()),
    }
}
