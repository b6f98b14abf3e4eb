//! `ApiClient`: calls of the API with a deadline, retries and an idempotency key.
//!
//! ```text
//! call ─► attempt ─► answer ─► 2xx ─────────────────────────► ApiResponse
//!            ▲                 └► an error of the API ─► retry? ─► CliError
//!            └── backoff: full jitter up to min(8 s, 0.5 s × 2^n), or retry-after ──┘
//! ```

use std::hash::{BuildHasher as _, RandomState};
use std::sync::OnceLock;
use std::time::Duration;

use bytes::Bytes;
use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HOST, LOCATION, USER_AGENT};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Response, StatusCode};
use http_body_util::Full;
use hyper::body::Incoming;
use jiff::SignedDuration;
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use tokio::time::Instant;

use crate::api_key::ApiKey;
use crate::base_url::BaseUrl;
use crate::clock;
use crate::connection::{Connection, read_body};
use crate::cursor_trail::CursorTrail;
use crate::error::{ApiError, CliError, ConnectionFailure};
use crate::retry_after;
use crate::sign_in::SignIn;
use mcp::arguments::encode;

/// Attempts of a call.
const ATTEMPTS_MAX: u32 = 3;
const BACKOFF_BASE: Duration = Duration::from_millis(500);
const BACKOFF_MAX: Duration = Duration::from_secs(8);
/// An error body is read up to here.
const ERROR_BYTES_MAX: usize = 1 << 20;
const ANSWER_BYTES_MAX: usize = 256 << 20;
/// Entries of a list that is read whole.
const LIST_ENTRIES_MAX: usize = 10_000;
/// Characters of a foreign answer in an error.
const EXCERPT_CHARS: usize = 200;

const SERVICE_VERSION: HeaderName = HeaderName::from_static("service-version");
const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");

/// A request of the API.
#[derive(Debug, Clone)]
pub struct Call {
    pub method: Method,
    /// Path and query.
    pub target: String,
    pub body: Option<Bytes>,
    pub idempotency_key: Option<String>,
    pub if_match: Option<String>,
    /// True if it may be repeated when its answer was lost.
    pub retry: bool,
    /// Headers of this call alone.
    pub headers: HeaderMap,
}

impl Call {
    /// A GET request.
    pub fn get(target: impl Into<String>) -> Self {
        Self {
            method: Method::GET,
            target: target.into(),
            body: None,
            idempotency_key: None,
            if_match: None,
            retry: true,
            headers: HeaderMap::new(),
        }
    }

    /// A request with a JSON body.
    pub fn with_json(method: Method, target: impl Into<String>, body: &Value) -> Self {
        let retry = method != Method::POST;
        Self { method, body: Some(body.to_string().into()), retry, ..Self::get(target) }
    }
}

/// A success answer.
#[derive(Debug, Clone)]
pub struct ApiResponse {
    pub headers: HeaderMap,
    pub body: Bytes,
    key: ApiKey,
}

impl ApiResponse {
    /// The body as a JSON object.
    ///
    /// # Errors
    /// It is none: the answer is not the API's.
    pub fn json(&self) -> Result<Value, CliError> {
        match serde_json::from_slice::<Map<String, Value>>(&self.body) {
            Ok(object) => Ok(Value::Object(object)),
            Err(_) => Err(self.unexpected()),
        }
    }

    /// The body as it was written: its numbers keep all their digits. [`Self::json`] bounds its depth.
    ///
    /// # Errors
    /// It is no JSON: the answer is not the API's.
    pub fn raw_json(&self) -> Result<Box<RawValue>, CliError> {
        serde_json::from_slice(&self.body).map_err(|_| self.unexpected())
    }

    fn unexpected(&self) -> CliError {
        unexpected(StatusCode::OK, &self.headers, &self.body, &self.key)
    }
}

/// The credential of a client.
#[derive(Debug)]
pub enum Credential {
    Key(ApiKey),
    /// Tokens, which are refreshed when they expire.
    SignIn(Box<SignIn>),
}

impl Credential {
    /// The value for `Authorization: Bearer`.
    async fn bearer(&self) -> Result<ApiKey, CliError> {
        match self {
            Self::Key(key) => Ok(key.clone()),
            Self::SignIn(sign_in) => sign_in.access_token().await,
        }
    }

    /// A part of the key, or the profile of the sign-in.
    pub fn hint(&self) -> String {
        match self {
            Self::Key(key) => key.hint(),
            Self::SignIn(sign_in) => format!("sign-in of the profile {}", sign_in.profile()),
        }
    }
}

/// A client of one server with one credential.
#[derive(Debug)]
pub struct ApiClient {
    base_url: BaseUrl,
    credential: Credential,
    timeout: Duration,
    service_version: HeaderValue,
    connection: tokio::sync::Mutex<Option<Connection>>,
    /// How much the server's clock is ahead, from the first answer.
    server_ahead: OnceLock<SignedDuration>,
}

impl ApiClient {
    pub fn new(base_url: BaseUrl, credential: Credential, timeout: Duration, service_version: &str) -> Self {
        Self {
            base_url,
            credential,
            timeout,
            service_version: HeaderValue::from_str(service_version).unwrap_or(HeaderValue::from_static("")),
            connection: tokio::sync::Mutex::new(None),
            server_ahead: OnceLock::new(),
        }
    }

    pub const fn base_url(&self) -> &BaseUrl {
        &self.base_url
    }

    pub const fn credential(&self) -> &Credential {
        &self.credential
    }

    pub const fn timeout(&self) -> Duration {
        self.timeout
    }

    /// How much the server's clock is ahead of this machine's: nothing before the first answer.
    pub fn server_ahead(&self) -> SignedDuration {
        self.clock_difference().unwrap_or_default()
    }

    /// How much the server's clock is ahead, if an answer told its time.
    pub fn clock_difference(&self) -> Option<SignedDuration> {
        self.server_ahead.get().copied()
    }

    /// Makes a call and reads its answer. The client's timeout covers all attempts.
    ///
    /// # Errors
    /// The API's error, or why no answer of the API came.
    pub async fn call(&self, call: &Call) -> Result<ApiResponse, CliError> {
        let deadline = Instant::now() + self.timeout;
        let (mut attempt, mut unconfirmed) = (1, None);
        loop {
            let error = match tokio::time::timeout_at(deadline, self.attempt(call)).await {
                Ok(Ok(answer)) => return Ok(answer),
                Ok(Err(error)) => error,
                Err(_) => {
                    let seconds = self.timeout.as_secs_f64();
                    let message = format!("{} did not answer within {seconds} s (--timeout)", self.base_url);
                    return Err(CliError::Timeout(message));
                }
            };
            let wait = backoff(&error, attempt);
            // `retry-after` may be any number, so it is not added to the time.
            let is_late = wait >= deadline.saturating_duration_since(Instant::now());
            if attempt == ATTEMPTS_MAX || !may_retry(&error, call.retry) || is_late {
                // Only a refusal of the API says that no attempt was carried out: it knows the idempotency key.
                return Err(match unconfirmed {
                    Some(earlier) if !error.is_unconfirmed() && !error.is_refusal() => earlier,
                    _ => error,
                });
            }
            if call.idempotency_key.is_some() && error.is_unconfirmed() {
                unconfirmed = Some(error);
            }
            tokio::time::sleep(wait).await;
            attempt += 1;
        }
    }

    async fn attempt(&self, call: &Call) -> Result<ApiResponse, CliError> {
        let key = self.credential.bearer().await?;
        let request = self.request(call, &key)?;
        let mut kept = self.connection.lock().await;
        let mut connection = match kept.take() {
            Some(connection) => connection,
            None => Connection::open(&self.base_url).await?,
        };
        // The server may have closed it after its last answer; nothing was sent yet.
        if !connection.is_ready().await {
            connection = Connection::open(&self.base_url).await?;
        }
        let response = connection.send(request).await?;
        let (status, headers) = (response.status(), response.headers().clone());
        if let Some(ahead) = clock::server_ahead(&headers)? {
            self.server_ahead.get_or_init(|| ahead);
        }
        let bytes_max = if status.is_success() { ANSWER_BYTES_MAX } else { ERROR_BYTES_MAX };
        let body = read_body(response, bytes_max).await?;
        // A connection whose answer was cut off is not used again.
        if body.is_whole {
            *kept = Some(connection);
        }
        if status == StatusCode::ACCEPTED
            && let Some(held) = ApiError::approval_required(status.as_u16(), key.hidden_in(&body.content).as_bytes())
        {
            return Err(CliError::Api(Box::new(held)));
        }
        if status.is_success() && body.is_whole {
            return Ok(ApiResponse { headers, body: body.content, key });
        }
        Err(error_of(status, &headers, &body.content, &key))
    }

    /// Reads all entries of a list that has pages.
    ///
    /// # Errors
    /// As `call`; or the list has more than [`LIST_ENTRIES_MAX`] entries.
    pub async fn list(&self, path: &str, field: &str) -> Result<Vec<Value>, CliError> {
        let (mut entries, mut cursor, mut trail) = (Vec::new(), String::new(), CursorTrail::default());
        loop {
            let page = self.call(&Call::get(format!("{path}?limit=100{cursor}"))).await?.json()?;
            entries.extend(page[field].as_array().cloned().unwrap_or_default());
            let next = page["next_cursor"].as_str().filter(|_| page["has_more"] == true);
            let Some(next) = next else { return Ok(entries) };
            trail.add(next)?;
            if entries.len() > LIST_ENTRIES_MAX {
                return Err(CliError::Failed(format!("{path} has more than {LIST_ENTRIES_MAX} entries")));
            }
            cursor = format!("&cursor={}", encode(next));
        }
    }

    /// Opens a response that has no end, for example server-sent events.
    ///
    /// # Errors
    /// As `call`, without retries.
    pub async fn open_stream(&self, call: &Call) -> Result<Response<Incoming>, CliError> {
        let key = self.credential.bearer().await?;
        let request = self.request(call, &key)?;
        let opening = async {
            let mut connection = Connection::open(&self.base_url).await?;
            let response = connection.send(request).await?;
            if response.status().is_success() {
                return Ok(response);
            }
            let (status, headers) = (response.status(), response.headers().clone());
            let body = read_body(response, ERROR_BYTES_MAX).await?.content;
            Err(error_of(status, &headers, &body, &key))
        };
        let late = || CliError::Timeout(format!("{} did not answer", self.base_url));
        tokio::time::timeout(self.timeout, opening).await.map_err(|_| late())?
    }

    fn request(&self, call: &Call, key: &ApiKey) -> Result<Request<Full<Bytes>>, CliError> {
        let invalid = |name: &str| CliError::usage(format!("{name} must be printable ASCII on one line"));
        let mut request = Request::new(Full::new(call.body.clone().unwrap_or_default()));
        *request.method_mut() = call.method.clone();
        *request.uri_mut() = self.base_url.target(&call.target).parse().map_err(|_| invalid("the path"))?;
        let headers = request.headers_mut();
        headers.extend(call.headers.clone());
        headers.insert(HOST, HeaderValue::from_str(&self.base_url.authority()).map_err(|_| invalid("the host"))?);
        headers.insert(AUTHORIZATION, key.header().ok_or_else(|| invalid("the API key"))?);
        headers.insert(USER_AGENT, HeaderValue::from_static(concat!("postrider-cli/", env!("CARGO_PKG_VERSION"))));
        headers.insert(SERVICE_VERSION, self.service_version.clone());
        headers.entry(ACCEPT).or_insert(HeaderValue::from_static("application/json"));
        if call.body.is_some() {
            headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        }
        for (name, value) in [(IDEMPOTENCY_KEY, &call.idempotency_key), (http::header::IF_MATCH, &call.if_match)] {
            if let Some(value) = value {
                headers.insert(name.clone(), HeaderValue::from_str(value).map_err(|_| invalid(name.as_str()))?);
            }
        }
        Ok(request)
    }
}

/// The error of an answer that is no success, without the key.
fn error_of(status: StatusCode, headers: &HeaderMap, body: &[u8], key: &ApiKey) -> CliError {
    let parsed: Option<Map<String, Value>> = serde_json::from_str(&key.hidden_in(body)).ok();
    let error = parsed.as_ref().and_then(|body| body.get("error")).and_then(Value::as_object);
    let text = |name: &str| error.and_then(|error| error.get(name)).and_then(Value::as_str).map(str::to_owned);
    match (error, text("code"), text("message")) {
        (Some(fields), Some(code), Some(message)) => CliError::Api(Box::new(ApiError {
            status: status.as_u16(),
            code,
            message,
            fields: fields.clone(),
            retry_after: retry_after::seconds(headers),
        })),
        _ => unexpected(status, headers, body, key),
    }
}

/// The error of an answer that is not the API's, without the key.
fn unexpected(status: StatusCode, headers: &HeaderMap, body: &[u8], key: &ApiKey) -> CliError {
    let text = key.hidden_in(body.get(..ERROR_BYTES_MAX).unwrap_or(body));
    let excerpt: String = text.chars().filter(|c| !c.is_control()).take(EXCERPT_CHARS).collect();
    let location = headers.get(LOCATION).map(|value| key.hidden_in(value.as_bytes()));
    let advice = match (status.as_u16(), location) {
        (300..400, Some(location)) => {
            format!("the server redirects to {location}; set the base URL to the final address")
        }
        (413, _) => "a proxy in front of the server limits the size of requests".to_owned(),
        _ if body.is_empty() => "the response is empty; a proxy in front of the server may have cut it off".to_owned(),
        _ => "is the base URL that of the API, or did a proxy answer?".to_owned(),
    };
    let shown = if excerpt.is_empty() { String::new() } else { format!(": {excerpt}") };
    let message = format!("the HTTP {} response is not from the API; {advice}{shown}", status.as_u16());
    let (status, retry_after) = (status.as_u16(), retry_after::seconds(headers));
    CliError::UnexpectedResponse { status, message, retry_after }
}

fn may_retry(error: &CliError, is_repeatable: bool) -> bool {
    match error {
        CliError::Api(error) => {
            if is_repeatable {
                error.is_temporary()
            } else {
                error.did_nothing()
            }
        }
        CliError::Connection(reason, _) => match reason {
            ConnectionFailure::Refused | ConnectionFailure::Other => true,
            ConnectionFailure::Reset => is_repeatable,
            ConnectionFailure::Dns | ConnectionFailure::Tls => false,
        },
        CliError::UnexpectedResponse { status, .. } => is_repeatable && matches!(status, 408 | 429 | 500 | 502 | 503),
        CliError::Usage(_)
        | CliError::Timeout(_)
        | CliError::Unconfirmed { .. }
        | CliError::Io(_)
        | CliError::Failed(_)
        | CliError::Differences(_) => false,
    }
}

fn backoff(error: &CliError, attempt: u32) -> Duration {
    if let Some(seconds) = error.retry_after() {
        return Duration::from_secs(seconds);
    }
    let longest = BACKOFF_MAX.min(BACKOFF_BASE * 2_u32.saturating_pow(attempt - 1));
    // The hasher's random keys suffice for jitter.
    let share = RandomState::new().hash_one(attempt) >> 32;
    longest.mul_f64(share as f64 / f64::from(u32::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn foreign_answers_are_told_from_errors_of_the_api() {
        let (headers, key) = (HeaderMap::new(), ApiKey::parse("rnl_0123456789abcdef").unwrap());
        let body = br#"{"error":{"message":"No","code":"plan_limit","upgrade_url":"u"}}"#;
        let CliError::Api(error) = error_of(StatusCode::TOO_MANY_REQUESTS, &headers, body, &key) else { panic!() };
        assert_eq!((error.code.as_str(), error.is_temporary()), ("plan_limit", false));
        let page = error_of(StatusCode::PAYLOAD_TOO_LARGE, &headers, b"<html>\x1b[31mtoo large", &key);
        assert!(page.to_string().contains("proxy") && !page.to_string().contains('\x1b'));
        let redirect = [(LOCATION, "https://b.example/".parse().unwrap())].into_iter().collect();
        assert!(error_of(StatusCode::FOUND, &redirect, b"", &key).to_string().contains("https://b.example/"));
    }

    #[test]
    fn a_post_without_key_is_repeated_only_if_nothing_was_done() {
        let api = |status, code: &str| {
            let error = ApiError {
                status,
                code: code.to_owned(),
                message: String::new(),
                fields: Map::new(),
                retry_after: None,
            };
            CliError::Api(Box::new(error))
        };
        for (error, repeatable, otherwise) in [
            (api(503, "service_unavailable"), true, true),
            (api(429, "rate_limit_exceeded"), true, true),
            (api(500, "internal_error"), true, false),
            (api(502, "mail_server_error"), true, true),
            (api(504, "send_unconfirmed"), false, false),
            (api(429, "plan_limit"), false, false),
            (api(422, "validation_error"), false, false),
            (CliError::unexpected_response(429, ""), true, false),
            (CliError::Connection(ConnectionFailure::Reset, String::new()), true, false),
            (CliError::Connection(ConnectionFailure::Refused, String::new()), true, true),
        ] {
            assert_eq!((may_retry(&error, true), may_retry(&error, false)), (repeatable, otherwise), "{error:?}");
        }
    }
}
