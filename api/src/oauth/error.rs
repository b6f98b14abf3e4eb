//! Errors of the OAuth endpoints: `{"error": …, "error_description": …}` (RFC 6749 5.2), and the responses that carry
//! them. Faults of the service are problems of the API.

use http::HeaderName;
use http::header::{ACCESS_CONTROL_ALLOW_ORIGIN, HeaderValue, PRAGMA};
use httpd::response::{ExtraResponse, IntoResponse, Response};
use store::engine::ReadError;

use crate::prelude::*;

/// An error code, of the RFC named beside it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OAuthErrorCode {
    /// RFC 6749 5.2, as the following ones.
    InvalidRequest,
    InvalidClient,
    InvalidGrant,
    UnauthorizedClient,
    UnsupportedGrantType,
    UnsupportedResponseType,
    InvalidScope,
    AccessDenied,
    /// RFC 8707 2.
    InvalidTarget,
    /// RFC 8628 3.5, as the following ones.
    AuthorizationPending,
    SlowDown,
    ExpiredToken,
    /// RFC 7591 3.2.2, as the following one.
    InvalidRedirectUri,
    InvalidClientMetadata,
}

impl OAuthErrorCode {
    pub fn word(self) -> &'static str {
        match self {
            Self::InvalidRequest => "invalid_request",
            Self::InvalidClient => "invalid_client",
            Self::InvalidGrant => "invalid_grant",
            Self::UnauthorizedClient => "unauthorized_client",
            Self::UnsupportedGrantType => "unsupported_grant_type",
            Self::UnsupportedResponseType => "unsupported_response_type",
            Self::InvalidScope => "invalid_scope",
            Self::AccessDenied => "access_denied",
            Self::InvalidTarget => "invalid_target",
            Self::AuthorizationPending => "authorization_pending",
            Self::SlowDown => "slow_down",
            Self::ExpiredToken => "expired_token",
            Self::InvalidRedirectUri => "invalid_redirect_uri",
            Self::InvalidClientMetadata => "invalid_client_metadata",
        }
    }
}

/// An error with a sentence for the client's developer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OAuthError {
    pub code: OAuthErrorCode,
    pub description: String,
}

impl OAuthError {
    pub fn new(code: OAuthErrorCode, description: impl Into<String>) -> Self {
        Self { code, description: description.into() }
    }

    /// `invalid_request`.
    pub fn request(description: impl Into<String>) -> Self {
        Self::new(OAuthErrorCode::InvalidRequest, description)
    }
}

/// Why an OAuth endpoint has no success response.
#[derive(Debug)]
pub enum OAuthFailure {
    Refused(OAuthError),
    Problem(Problem),
}

impl From<OAuthError> for OAuthFailure {
    fn from(error: OAuthError) -> Self {
        Self::Refused(error)
    }
}

impl From<Problem> for OAuthFailure {
    fn from(problem: Problem) -> Self {
        Self::Problem(problem)
    }
}

impl From<ReadError> for OAuthFailure {
    fn from(error: ReadError) -> Self {
        Self::Problem(error.into())
    }
}

impl From<CommitError> for OAuthFailure {
    fn from(error: CommitError) -> Self {
        Self::Problem(Problem::outage(error))
    }
}

/// The response of an OAuth endpoint. Pages of every origin may read it: it depends on no cookie.
#[derive(Debug)]
pub struct OAuthResponse<T>(Result<T, OAuthError>);

impl<T> OAuthResponse<T> {
    /// Separates refusals, which the client gets in the form of OAuth, from problems.
    pub fn from_result(result: Result<T, OAuthFailure>) -> Result<Self> {
        match result {
            Ok(content) => Ok(Self(Ok(content))),
            Err(OAuthFailure::Refused(error)) => Ok(Self(Err(error))),
            Err(OAuthFailure::Problem(problem)) => Err(problem),
        }
    }

    /// A success response.
    pub fn success(content: T) -> Self {
        Self(Ok(content))
    }
}

const CROSS_ORIGIN: [(HeaderName, HeaderValue); 2] = [
    (ACCESS_CONTROL_ALLOW_ORIGIN, HeaderValue::from_static("*")),
    // RFC 6749 5.1; `Cache-Control: no-store` is the default of all responses.
    (PRAGMA, HeaderValue::from_static("no-cache")),
];

impl<T: Serialize + ToSchema + Send + 'static> IntoResponse for OAuthResponse<T> {
    const STATUS: StatusCode = T::SUCCESS_STATUS;
    const EXTRA_RESPONSES: &'static [ExtraResponse] = &[ExtraResponse {
        status: StatusCode::BAD_REQUEST.as_u16(),
        media_type: Some(Self::MEDIA_TYPE),
        description: "The client's request is refused (RFC 6749 5.2)",
    }];

    fn describe(schemas: &mut Schemas) -> Value {
        T::schema(schemas)
    }

    fn into_response(self) -> Result<Response> {
        let (status, body) = match self.0 {
            Ok(content) => (Self::STATUS, serde_json::to_vec(&content)),
            Err(error) => {
                let body = json!({"error": error.code.word(), "error_description": error.description});
                (StatusCode::BAD_REQUEST, serde_json::to_vec(&body))
            }
        };
        let body = body.map_err(Problem::internal)?.into();
        Ok(Response::new(status, Self::MEDIA_TYPE, CROSS_ORIGIN.to_vec(), body))
    }
}
