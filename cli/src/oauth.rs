//! `AuthorizationServer`: the OAuth endpoints of a postrider server, for signing in (RFC 8414, 6749, 7636, 8628, 7009).

use std::time::Duration;

use bytes::Bytes;
use http::header::{ACCEPT, CONTENT_TYPE, HOST, USER_AGENT};
use http::{HeaderValue, Method, Request};
use http_body_util::Full;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::base_url::BaseUrl;
use crate::connection::{Connection, read_body};
use crate::error::CliError;
use mcp::arguments::encode;

/// The id of this program, which every server knows.
pub(crate) const CLIENT_ID: &str = "postrider-cli";
const ANSWER_BYTES_MAX: usize = 64 << 10;
const TIMEOUT: Duration = Duration::from_secs(30);

/// An error of an OAuth endpoint (RFC 6749 5.2).
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct OAuthRefusal {
    pub(crate) code: String,
    pub(crate) description: String,
}

impl From<OAuthRefusal> for CliError {
    fn from(refusal: OAuthRefusal) -> Self {
        Self::Failed(format!("the server refused the sign-in: {} ({})", refusal.description, refusal.code))
    }
}

/// A response, or the refusal of the server.
type OAuthAnswer<T> = Result<T, OAuthRefusal>;

/// Metadata of the server.
#[derive(Debug, Deserialize)]
pub(crate) struct Metadata {
    pub(crate) issuer: String,
    pub(crate) authorization_endpoint: String,
}

/// A response of the token endpoint.
#[derive(Deserialize)]
pub(crate) struct TokenReply {
    pub(crate) access_token: String,
    pub(crate) refresh_token: String,
    pub(crate) expires_in: u64,
    #[serde(default)]
    pub(crate) scope: String,
}

/// A response of the device authorization endpoint.
#[derive(Deserialize)]
pub(crate) struct DeviceReply {
    pub(crate) device_code: String,
    pub(crate) user_code: String,
    pub(crate) verification_uri: String,
    pub(crate) verification_uri_complete: Option<String>,
    pub(crate) expires_in: u64,
    pub(crate) interval: Option<u64>,
}

/// The OAuth endpoints of a server.
#[derive(Debug, Clone)]
pub(crate) struct AuthorizationServer {
    base_url: BaseUrl,
}

impl AuthorizationServer {
    pub(crate) const fn new(base_url: BaseUrl) -> Self {
        Self { base_url }
    }

    /// Reads the metadata. The issuer must be the base URL (RFC 8414 3.3): else another server could make this program
    /// send it a code of a server that the user trusts.
    ///
    /// # Errors
    /// The server has no metadata, or names itself otherwise.
    pub(crate) async fn metadata(&self) -> Result<Metadata, CliError> {
        let request = self.request(Method::GET, "/.well-known/oauth-authorization-server", Bytes::new())?;
        let metadata: Metadata = self.send(request).await??;
        if metadata.issuer != self.base_url.to_string() {
            return Err(CliError::usage(format!(
                "the server names itself {}, not {}: use that as --base-url, or sign in with --key",
                metadata.issuer, self.base_url
            )));
        }
        Ok(metadata)
    }

    /// Exchanges a code for tokens.
    ///
    /// # Errors
    /// The server does not answer.
    pub(crate) async fn exchange_code(
        &self,
        code: &str,
        verifier: &str,
        redirect_uri: &str,
    ) -> Result<OAuthAnswer<TokenReply>, CliError> {
        let fields = [
            ("grant_type", "authorization_code"),
            ("code", code),
            ("code_verifier", verifier),
            ("redirect_uri", redirect_uri),
        ];
        self.post("/oauth/token", &fields).await
    }

    /// Exchanges a refresh token for new tokens.
    ///
    /// # Errors
    /// The server does not answer.
    pub(crate) async fn refresh(&self, token: &str) -> Result<OAuthAnswer<TokenReply>, CliError> {
        self.post("/oauth/token", &[("grant_type", "refresh_token"), ("refresh_token", token)]).await
    }

    /// Begins the authorization of this device.
    ///
    /// # Errors
    /// The server does not answer.
    pub(crate) async fn begin_device(&self, scope: &str, resource: &str) -> Result<OAuthAnswer<DeviceReply>, CliError> {
        self.post("/oauth/device", &[("scope", scope), ("resource", resource)]).await
    }

    /// Asks for the tokens of a device code.
    ///
    /// # Errors
    /// The server does not answer.
    pub(crate) async fn poll_device(&self, device_code: &str) -> Result<OAuthAnswer<TokenReply>, CliError> {
        let grant_type = "urn:ietf:params:oauth:grant-type:device_code";
        self.post("/oauth/token", &[("grant_type", grant_type), ("device_code", device_code)]).await
    }

    /// Revokes a token; a refresh token ends its grant.
    ///
    /// # Errors
    /// The server does not answer.
    pub(crate) async fn revoke(&self, token: &str) -> Result<OAuthAnswer<Value>, CliError> {
        self.post("/oauth/revoke", &[("token", token)]).await
    }

    async fn post<T: DeserializeOwned>(&self, path: &str, fields: &[(&str, &str)]) -> Result<OAuthAnswer<T>, CliError> {
        let fields = fields.iter().chain(&[("client_id", CLIENT_ID)]);
        let form: Vec<String> = fields.map(|(name, value)| format!("{name}={}", encode(value))).collect();
        let mut request = self.request(Method::POST, path, form.join("&").into())?;
        let media_type = HeaderValue::from_static("application/x-www-form-urlencoded");
        request.headers_mut().insert(CONTENT_TYPE, media_type);
        self.send(request).await
    }

    fn request(&self, method: Method, path: &str, body: Bytes) -> Result<Request<Full<Bytes>>, CliError> {
        let invalid = || CliError::usage("the base URL contains invalid characters");
        let mut request = Request::new(Full::new(body));
        *request.method_mut() = method;
        *request.uri_mut() = self.base_url.target(path).parse().map_err(|_| invalid())?;
        let headers = request.headers_mut();
        headers.insert(HOST, HeaderValue::from_str(&self.base_url.authority()).map_err(|_| invalid())?);
        headers.insert(USER_AGENT, HeaderValue::from_static(concat!("postrider-cli/", env!("CARGO_PKG_VERSION"))));
        headers.insert(ACCEPT, HeaderValue::from_static("application/json"));
        Ok(request)
    }

    async fn send<T: DeserializeOwned>(&self, request: Request<Full<Bytes>>) -> Result<OAuthAnswer<T>, CliError> {
        let sending = async {
            let mut connection = Connection::open(&self.base_url).await?;
            let response = connection.send(request).await?;
            let status = response.status();
            Ok::<_, CliError>((status, read_body(response, ANSWER_BYTES_MAX).await?.content))
        };
        let late = || CliError::Timeout(format!("{} did not answer", self.base_url));
        let (status, body) = tokio::time::timeout(TIMEOUT, sending).await.map_err(|_| late())??;
        if status.is_success()
            && let Ok(content) = serde_json::from_slice(&body)
        {
            return Ok(Ok(content));
        }
        match read_refusal(&body) {
            Some(refusal) if !status.is_success() => Ok(Err(refusal)),
            _ => {
                let message = format!(
                    "unexpected HTTP {} response to the sign-in; is {} a postrider server with this feature?",
                    status.as_u16(),
                    self.base_url
                );
                Err(CliError::unexpected_response(status.as_u16(), message))
            }
        }
    }
}

/// An error in the form of OAuth, or of the API.
fn read_refusal(body: &[u8]) -> Option<OAuthRefusal> {
    let parsed: Value = serde_json::from_slice(body).ok()?;
    let text = |value: &Value| value.as_str().map(str::to_owned);
    if let Some(code) = text(&parsed["error"]) {
        let description = text(&parsed["error_description"]).unwrap_or_default();
        return Some(OAuthRefusal { code, description });
    }
    let error = &parsed["error"];
    Some(OAuthRefusal { code: text(&error["code"])?, description: text(&error["message"])? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusals_of_both_forms_are_read() {
        let oauth = read_refusal(br#"{"error":"slow_down","error_description":"d"}"#).unwrap();
        assert_eq!((oauth.code.as_str(), oauth.description.as_str()), ("slow_down", "d"));
        let api = read_refusal(br#"{"error":{"code":"rate_limit_exceeded","message":"m"}}"#).unwrap();
        assert_eq!((api.code.as_str(), api.description.as_str()), ("rate_limit_exceeded", "m"));
        assert_eq!(read_refusal(b"<html>"), None);
    }
}
