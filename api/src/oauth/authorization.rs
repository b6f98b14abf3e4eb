//! The authorization request (RFC 6749 4.1.1 with PKCE): its check, and the user's decision.
//!
//! The request stays in the query of the page's URL, and is checked again with the decision. A request with an unknown
//! client or redirect URI is a problem, which is shown to the person. Other errors come with the client's own redirect
//! URI, to which the person may go back: nobody is led there without a decision, because anybody can register a client.

use message::percent;
use model::expiring_secret::{ExpiringSecret, SecretKind};
use model::oauth::redirect_uri::RedirectUri;
use model::oauth::scope::{OAuthScope, ScopeSet};
use model::oauth::{Audience, AuthorizationCode, CODE_TTL, pkce};

use super::client;
use super::decision::{
    ClientView, Decision, ScopeView, approved_scopes, client_problem, decided_policy, failure_problem, grantor,
    kept_policy, scope_views,
};
use super::error::{OAuthError, OAuthErrorCode};
use super::form::OAuthParameters;
use super::resolved_client::ResolvedClient;
use crate::credentials::policy::{policy_schema, policy_view};
use crate::prelude::*;

/// A longer `state` is refused.
const STATE_BYTES_MAX: usize = 2 << 10;

/// A valid request.
struct AuthorizationRequest {
    client: ResolvedClient,
    redirect_uri: String,
    state: Option<String>,
    scopes: ScopeSet,
    audience: Audience,
    challenge: String,
}

/// A request of a known client, with an error.
struct RefusedAuthorization {
    client: ResolvedClient,
    redirect_uri: String,
    state: Option<String>,
    error: OAuthError,
}

/// The query of an authorization request.
pub struct AuthorizationQuery(OAuthParameters);

const PARAMETERS: [(&str, &str); 9] = [
    ("response_type", "`code`"),
    ("client_id", "`client_…`, or the URL of the client's metadata document"),
    ("redirect_uri", "One of the client's; only the port of a loopback address may differ"),
    ("scope", "`read`, `send`, `manage`, separated by spaces; `read` if absent"),
    ("state", "Returned to the client"),
    ("code_challenge", "The SHA-256 of the code verifier in base64url (RFC 7636)"),
    ("code_challenge_method", "`S256`"),
    ("resource", "The URI of the API or of the MCP server (RFC 8707); both if absent"),
    ("response_mode", "`query`"),
];

fn query_parameters() -> Vec<Value> {
    let parameter = |(name, about): (&str, &str)| schema::query_parameter(name, about, json!({"type": "string"}));
    PARAMETERS.into_iter().map(parameter).collect()
}

impl FromRequest for AuthorizationQuery {
    fn parameters() -> Vec<Value> {
        query_parameters()
    }

    fn read(call: &Request) -> Result<Self> {
        OAuthParameters::parse(&call.query).map(Self)
    }
}

/// A decision about the request in the query.
pub struct AuthorizationDecision {
    request: OAuthParameters,
    decision: Decision,
}

impl FromRequest for AuthorizationDecision {
    const BODY_BYTES_MAX: Option<usize> = Some(SMALL_BYTES_MAX);
    const BODY: Option<BodySchema> = Some(Decision::schema);

    fn parameters() -> Vec<Value> {
        query_parameters()
    }

    fn read(call: &Request) -> Result<Self> {
        let request = OAuthParameters::parse(&call.query)?;
        Ok(Self { request, decision: read_body(call)? })
    }
}

/// The browser's destination after the decision
#[derive(Debug, Serialize, ToSchema)]
struct RedirectView {
    /// The redirect URI of the request
    uri: String,
    /// The host, or the scheme of an app
    destination: String,
    /// Whether the app runs on the user's own machine
    is_local: bool,
}

/// An error that the client gets if the user goes back to it
#[derive(Debug, Serialize, ToSchema)]
struct AuthorizationErrorView {
    /// The code (RFC 6749 4.1.2.1, RFC 8707 2)
    code: &'static str,
    /// A sentence for the client's developer
    description: String,
    /// The redirect URI with the error
    return_to: String,
}

/// An authorization request
#[derive(Debug, Serialize, ToSchema)]
#[schema(name = "AuthorizationRequest")]
pub struct AuthorizationView {
    client: ClientView,
    redirect: RedirectView,
    /// The requested scopes; empty if the request has an error
    scopes: Vec<ScopeView>,
    /// `api`, `mcp`: the parts of the service that accept the tokens
    resources: Vec<&'static str>,
    /// The rules that a new grant keeps unless the decision has others: those of the user's latest grant for the
    /// client, or for one of the same name; null without a rule
    #[schema(with = policy_schema)]
    policy: Value,
    /// Null for a valid request
    error: Option<AuthorizationErrorView>,
}

/// The next page of the browser
#[derive(Serialize, ToSchema)]
#[schema(name = "AuthorizationResult")]
pub struct AuthorizationResult {
    /// The client's redirect URI with the response
    redirect_to: String,
}

/// `GET /auth/authorization-request`.
///
/// # Errors
/// 400 when the client or its redirect URI is unknown; the store cannot be read.
pub async fn get(
    state: State,
    user: SignedInUser,
    AuthorizationQuery(parameters): AuthorizationQuery,
) -> Result<AuthorizationView> {
    Ok(match check(&state, &parameters).await? {
        Ok(request) => AuthorizationView {
            client: ClientView::from_client(&request.client),
            redirect: redirect_view(&request.redirect_uri),
            scopes: scope_views(request.scopes, &user),
            resources: resource_words(request.audience),
            policy: policy_view(&kept_policy(&state, &user, &request.client.reference).await?),
            error: None,
        },
        Err(refused) => AuthorizationView {
            client: ClientView::from_client(&refused.client),
            redirect: redirect_view(&refused.redirect_uri),
            scopes: Vec::new(),
            resources: Vec::new(),
            policy: Value::Null,
            error: Some(AuthorizationErrorView {
                code: refused.error.code.word(),
                description: refused.error.description.clone(),
                return_to: error_redirect(&state, &refused.redirect_uri, refused.state.as_deref(), &refused.error),
            }),
        },
    })
}

/// `POST /auth/authorization-request`.
///
/// # Errors
/// As [`get`]; 400 for an invalid request and scopes that were not requested; 403 when the user's role does not allow a
/// scope or looser rules, or the user must prove their identity again.
pub async fn decide(state: State, user: SignedInUser, request: AuthorizationDecision) -> Result<AuthorizationResult> {
    let AuthorizationDecision { request: parameters, decision } = request;
    let request = check(&state, &parameters).await?.map_err(|refused| client_problem(refused.error.description))?;
    if !decision.approve {
        let error = OAuthError::new(OAuthErrorCode::AccessDenied, "The user denied the request");
        let redirect_to = error_redirect(&state, &request.redirect_uri, request.state.as_deref(), &error);
        return Ok(AuthorizationResult { redirect_to });
    }
    let scopes = approved_scopes(&decision, request.scopes, &user)?;
    let policy = decided_policy(&state, decision, &user, &request.client.reference).await?;
    let expires_at = state.services.clock.now().checked_add(CODE_TTL).map_err(Problem::internal)?;
    let secret = ExpiringSecret::new(SecretKind::AuthorizationCode, expires_at, state.services.entropy.secret());
    let code = AuthorizationCode {
        grantor: grantor(&user),
        client: request.client.reference,
        redirect_uri: request.redirect_uri.clone(),
        scopes,
        audience: request.audience,
        challenge: request.challenge,
        policy: Some(policy),
        grant: None,
    };
    let mut batch = Batch::progress();
    store::oauth::code::create(&mut batch, &secret, &code);
    state.services.store.commit(batch).await.map_err(Problem::outage)?;
    let code = secret.text();
    let redirect_to = response_uri(&state, &request.redirect_uri, request.state.as_deref(), &[("code", &code)]);
    Ok(AuthorizationResult { redirect_to })
}

/// Checks a request. The inner error is one that may reach the client.
async fn check(
    state: &AppState,
    parameters: &OAuthParameters,
) -> Result<Result<AuthorizationRequest, RefusedAuthorization>> {
    let shown = |error: OAuthError| client_problem(error.description.replace('`', ""));
    let client_id = parameters.require("client_id").map_err(shown)?;
    let client = client::resolve(state, client_id).await.map_err(failure_problem)?;
    let redirect_uri = parameters.require("redirect_uri").map_err(shown)?.to_owned();
    if !client.has_redirect_uri(&redirect_uri) {
        return Err(client_problem("The redirect URI is not one of the app's: go back and start again"));
    }
    let client_state = parameters.find("state").ok().flatten().map(str::to_owned);
    let client_state = client_state.filter(|text| text.len() <= STATE_BYTES_MAX);
    Ok(match check_parameters(parameters, &state.options.base_url) {
        Ok((scopes, audience, challenge)) => {
            Ok(AuthorizationRequest { client, redirect_uri, state: client_state, scopes, audience, challenge })
        }
        Err(error) => Err(RefusedAuthorization { client, redirect_uri, state: client_state, error }),
    })
}

fn check_parameters(parameters: &OAuthParameters, base_url: &str) -> Result<(ScopeSet, Audience, String), OAuthError> {
    if parameters.find("state")?.is_some_and(|state| state.len() > STATE_BYTES_MAX) {
        return Err(OAuthError::request(format!("`state` is longer than {STATE_BYTES_MAX} bytes")));
    }
    if parameters.require("response_type")? != "code" {
        let text = "`response_type` must be `code`";
        return Err(OAuthError::new(OAuthErrorCode::UnsupportedResponseType, text));
    }
    if parameters.find("response_mode")?.is_some_and(|mode| mode != "query") {
        return Err(OAuthError::request("`response_mode` must be `query`"));
    }
    if ["request", "request_uri"].iter().any(|name| !matches!(parameters.find(name), Ok(None))) {
        return Err(OAuthError::request("request objects are not supported"));
    }
    let challenge = parameters.require("code_challenge")?;
    if parameters.find("code_challenge_method")? != Some("S256") {
        return Err(OAuthError::request("`code_challenge_method` must be `S256`"));
    }
    if !pkce::is_challenge(challenge) {
        return Err(OAuthError::request("`code_challenge` is not a SHA-256 in base64url"));
    }
    let scopes = requested_scopes(parameters)?;
    let audience = parameters.audience(base_url)?.unwrap_or(Audience::Both);
    Ok((scopes, audience, challenge.to_owned()))
}

/// The requested scopes: `read` without a parameter.
pub(super) fn requested_scopes(parameters: &OAuthParameters) -> Result<ScopeSet, OAuthError> {
    let Some(text) = parameters.find("scope")? else { return Ok([OAuthScope::Read].into_iter().collect()) };
    let scopes = ScopeSet::parse_known(text);
    if scopes.is_empty() {
        return Err(OAuthError::new(OAuthErrorCode::InvalidScope, "`scope` has none of `read`, `send`, `manage`"));
    }
    Ok(scopes)
}

fn redirect_view(uri: &str) -> RedirectView {
    let parsed = RedirectUri::parse(uri);
    RedirectView {
        uri: uri.to_owned(),
        destination: parsed.map_or("", RedirectUri::destination).to_owned(),
        is_local: !matches!(parsed, Ok(RedirectUri::Web(_))),
    }
}

pub(super) fn resource_words(audience: Audience) -> Vec<&'static str> {
    match audience {
        Audience::Api => vec!["api"],
        Audience::Mcp => vec!["mcp"],
        Audience::Both => vec!["api", "mcp"],
    }
}

fn error_redirect(state: &AppState, redirect_uri: &str, client_state: Option<&str>, error: &OAuthError) -> String {
    // Characters that RFC 6749 4.1.2.1 does not allow in a description.
    let description = error.description.replace(['`', '"', '\\'], "'");
    let fields = [("error", error.code.word()), ("error_description", description.as_str())];
    response_uri(state, redirect_uri, client_state, &fields)
}

/// The redirect URI with the response: its own query is kept, and `iss` names this server (RFC 9207).
fn response_uri(state: &AppState, redirect_uri: &str, client_state: Option<&str>, fields: &[(&str, &str)]) -> String {
    let fields = fields.iter().copied().chain(client_state.map(|text| ("state", text)));
    let fields = fields.chain([("iss", state.options.base_url.as_str())]);
    let mut uri = redirect_uri.to_owned();
    for (name, value) in fields {
        uri.push(if uri.contains('?') { '&' } else { '?' });
        uri.push_str(name);
        uri.push('=');
        uri.push_str(&percent::encode(value));
    }
    uri
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_needs_pkce_with_s256() {
        let check = |query: &str| check_parameters(&OAuthParameters::parse(query).unwrap(), "https://api.example");
        let challenge = pkce::challenge_of(&"v".repeat(43));
        let valid = format!("response_type=code&code_challenge={challenge}&code_challenge_method=S256");
        assert_eq!(
            check(&valid),
            Ok((
                "read".parse().map(|one: OAuthScope| [one].into_iter().collect()).unwrap(),
                Audience::Both,
                challenge.clone()
            ))
        );
        let code = |query: &str| check(query).unwrap_err().code;
        use OAuthErrorCode::{InvalidRequest, InvalidScope, InvalidTarget, UnsupportedResponseType};
        for (query, expected) in [
            ("response_type=code".to_owned(), InvalidRequest),
            (format!("response_type=code&code_challenge={challenge}"), InvalidRequest),
            (format!("response_type=code&code_challenge={challenge}&code_challenge_method=plain"), InvalidRequest),
            ("response_type=code&code_challenge=short&code_challenge_method=S256".to_owned(), InvalidRequest),
            (valid.replace("=code&", "=token&"), UnsupportedResponseType),
            (format!("{valid}&scope=root"), InvalidScope),
            (format!("{valid}&resource=https://other.example"), InvalidTarget),
            (format!("{valid}&response_mode=fragment"), InvalidRequest),
            (format!("{valid}&request_uri=https://a.example"), InvalidRequest),
            (format!("{valid}&scope=read&scope=send"), InvalidRequest),
        ] {
            assert_eq!(code(&query), expected, "{query}");
        }
    }
}
