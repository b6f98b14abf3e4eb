//! The device authorization grant (RFC 8628): a device shows a user code, which the user enters on a page of the
//! dashboard.

use std::net::IpAddr;

use model::client_policy::ClientPolicy;
use model::expiring_secret::{ExpiringSecret, SecretKind};
use model::oauth::{Audience, DEVICE_CODE_TTL, DeviceAuthorization, DeviceDecision, user_code};

use super::DEVICE_PAGE;
use super::authorization::{requested_scopes, resource_words};
use super::client;
use super::decision::{
    ClientView, Decision, ScopeView, approved_scopes, decided_policy, failure_problem, grantor, kept_policy,
    scope_views,
};
use super::device_polls::POLL_INTERVAL;
use super::error::{OAuthError, OAuthErrorCode, OAuthFailure, OAuthResponse};
use super::form::{OAuthFields, OAuthForm};
use super::resolved_client::ResolvedClient;
use crate::credentials::policy::{policy_schema, policy_view};
use crate::prelude::*;

/// Attempts to find a user code that is not in use.
const TRIES_MAX: usize = 3;
const CODE: &str = "code";

/// The fields of the device authorization request.
#[derive(Debug)]
pub struct DeviceFields;

impl OAuthFields for DeviceFields {
    const ABOUT: &'static str = "The device authorization request (RFC 8628 3.1), as a form";
    const REQUIRED: &'static [&'static str] = &["client_id"];
    const FIELDS: &'static [(&'static str, &'static str)] = &[
        ("client_id", "The client's id"),
        ("scope", "`read`, `send`, `manage`, separated by spaces; `read` if absent"),
        ("resource", "The URI of the API or of the MCP server (RFC 8707); both if absent"),
    ];
}

/// A device authorization (RFC 8628 3.2)
#[derive(Serialize, ToSchema)]
#[schema(name = "DeviceAuthorization")]
pub struct DeviceResponse {
    /// For the token endpoint
    device_code: String,
    /// For the user: letters with a hyphen
    user_code: String,
    /// The page where the user enters the code
    verification_uri: String,
    /// The page with the code in its URL
    verification_uri_complete: String,
    /// Seconds until both codes expire
    expires_in: u64,
    /// Minimum number of seconds between token requests
    interval: u64,
}

/// `POST /oauth/device`.
///
/// # Errors
/// 429 after too many requests from a network; the store cannot be written.
pub async fn begin(state: State, form: OAuthForm<DeviceFields>) -> Result<OAuthResponse<DeviceResponse>> {
    OAuthResponse::from_result(begin_form(&state, &form).await)
}

async fn begin_form(state: &AppState, form: &OAuthForm<DeviceFields>) -> Result<DeviceResponse, OAuthFailure> {
    let now = state.services.clock.now();
    state.sign_in.limiter.count_oauth_request(form.client_ip, "device", now)?;
    let client = client::resolve(state, form.parameters.require("client_id")?).await?;
    if !client.uses_device_codes {
        let text = "The client did not register the grant type of RFC 8628";
        return Err(OAuthError::new(OAuthErrorCode::UnauthorizedClient, text).into());
    }
    let scopes = requested_scopes(&form.parameters)?;
    let base_url = &state.options.base_url;
    let audience = form.parameters.audience(base_url)?.unwrap_or(Audience::Both);
    let expires_at = now.checked_add(DEVICE_CODE_TTL).map_err(Problem::internal)?;
    let secret = ExpiringSecret::new(SecretKind::DeviceCode, expires_at, state.services.entropy.secret());
    for _ in 0..TRIES_MAX {
        let user_code = user_code::make(state.services.entropy.secret());
        let shown = user_code::display(&user_code);
        let device = DeviceAuthorization {
            client: client.reference.clone(),
            scopes,
            audience,
            user_code,
            expires_at: secret.expires_at,
            decision: DeviceDecision::Pending,
            policy: None,
        };
        let mut batch = Batch::intake();
        store::oauth::device::create(&mut batch, &secret, &device);
        if state.commit(batch).await? {
            let verification_uri = format!("{base_url}{DEVICE_PAGE}");
            return Ok(DeviceResponse {
                device_code: secret.text(),
                verification_uri_complete: format!("{verification_uri}?code={shown}"),
                user_code: shown,
                verification_uri,
                expires_in: DEVICE_CODE_TTL.as_secs(),
                interval: POLL_INTERVAL.as_secs(),
            });
        }
    }
    Err(OAuthFailure::Problem(Problem::busy()))
}

fn code_parameter() -> Value {
    schema::path_parameter(CODE, "The user code, with or without its hyphen")
}

#[derive(Debug)]
pub struct UserCodePath {
    code: Option<String>,
    client_ip: Option<IpAddr>,
}

impl UserCodePath {
    fn from_call(call: &Request) -> Self {
        let code = call.path_text(CODE).and_then(|text| user_code::parse(&text));
        Self { code, client_ip: call.client_ip }
    }
}

impl FromRequest for UserCodePath {
    fn parameters() -> Vec<Value> {
        vec![code_parameter()]
    }

    fn read(call: &Request) -> Result<Self> {
        Ok(Self::from_call(call))
    }
}

object_view! {
    /// The request of a device
    #[schema(name = "DeviceRequest")]
    pub struct DeviceRequestView, fn new(
        device: &DeviceAuthorization, client: &ResolvedClient, user: &SignedInUser, policy: &ClientPolicy
    ) {
        /// The code as the device shows it
        user_code: String = user_code::display(&device.user_code),
        client: ClientView = ClientView::from_client(client),
        /// The requested scopes
        scopes: Vec<ScopeView> = scope_views(device.scopes, user),
        /// `api`, `mcp`: the parts of the service that accept the tokens
        resources: Vec<&'static str> = resource_words(device.audience),
        /// The rules that a new grant keeps unless the decision has others: those of the user's latest grant for the
        /// client, or for one of the same name; null without a rule
        #[schema(with = policy_schema)]
        policy: Value = policy_view(policy),
        /// When the code expires
        expires_at: JsonTimestamp = JsonTimestamp(device.expires_at),
    }
}

/// Finds a pending request. Wrong codes are limited by network and user.
async fn find_pending(
    state: &AppState,
    user: &SignedInUser,
    path: &UserCodePath,
) -> Result<(DeviceAuthorization, ResolvedClient)> {
    let now = state.services.clock.now();
    let attempt = state.sign_in.limiter.try_code(path.client_ip, &format!("device {}", user.user().email), now)?;
    let found = match &path.code {
        Some(code) => store::oauth::device::find_by_user_code(&state.services.store, code).await?,
        None => None,
    };
    let unknown = || Problem::new(ErrorCode::NOT_FOUND, "The code is wrong or has expired; check it on the device");
    let found = found.filter(|device| now < device.expires_at && device.decision == DeviceDecision::Pending);
    let device = found.ok_or_else(unknown)?;
    attempt.discard();
    let client = client::resolve(state, &device.client.id).await.map_err(failure_problem)?;
    Ok((device, client))
}

/// `GET /auth/device-requests/{code}`.
///
/// # Errors
/// 404 for a wrong, expired or decided code; 429 after too many of them.
pub async fn get(state: State, user: SignedInUser, path: UserCodePath) -> Result<DeviceRequestView> {
    let (device, client) = find_pending(&state, &user, &path).await?;
    let policy = kept_policy(&state, &user, &client.reference).await?;
    Ok(DeviceRequestView::new(&device, &client, &user, &policy))
}

/// `POST /auth/device-requests/{code}`.
///
/// # Errors
/// As [`get`]; 400 for scopes that were not requested; 403 when the user's role does not allow a scope or looser
/// rules, or the user must prove their identity again; 409 when the request was decided at the same time.
pub async fn decide(
    state: State,
    user: SignedInUser,
    (path, decision): (UserCodePath, Decision),
) -> Result<OkResponse> {
    let (device, client) = find_pending(&state, &user, &path).await?;
    let (decided, policy) = match decision.approve {
        true => {
            let scopes = approved_scopes(&decision, device.scopes, &user)?;
            let policy = decided_policy(&state, decision, &user, &client.reference).await?;
            (DeviceDecision::Approved(grantor(&user), scopes), Some(policy))
        }
        false => (DeviceDecision::Denied, None),
    };
    let mut batch = Batch::progress();
    store::oauth::device::decide(&state.services.store, &mut batch, &device, decided, policy).await?;
    match state.commit(batch).await? {
        true => Ok(OkResponse::OK),
        false => Err(Problem::new(ErrorCode::CONFLICT, "The request was decided at the same time")),
    }
}
