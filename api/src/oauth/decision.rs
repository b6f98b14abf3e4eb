//! The decision of a user about a request: approve with some of the scopes, or deny.

use httpd::request_object::RequestValue;
use model::client_policy::ClientPolicy;
use model::oauth::scope::{OAuthScope, ScopeSet};
use model::oauth::{ClientReference, Grantor};
use model::user::UserRole;

use super::error::OAuthFailure;
use super::resolved_client::{ClientIdentity, ResolvedClient};
use crate::access;
use crate::credentials::policy::{policy_request_schema, read_policy};
use crate::prelude::*;

/// The user's decision
#[derive(Debug, RequestObject)]
#[schema(body_bytes_max = SMALL_BYTES_MAX)]
pub struct Decision {
    /// False denies the request
    pub(super) approve: bool,
    /// The scopes to allow, at most the requested ones; all of them if absent
    #[field(reader = Scopes)]
    pub(super) scopes: Option<ScopeSet>,
    /// The rules for the client below its scopes; null for none. If absent, those that the request shows are kept
    #[field(read = read_policy, schema = policy_request_schema, nullable)]
    pub(super) policy: Option<ClientPolicy>,
}

/// A list of scopes.
pub(super) struct Scopes;

impl RequestValue for Scopes {
    type Value = ScopeSet;

    fn schema(_: &mut Schemas) -> Value {
        let words = OAuthScope::ALL.map(OAuthScope::word);
        json!({"type": "array", "items": {"type": "string", "enum": words}, "maxItems": words.len()})
    }

    fn parse(value: &RawValue) -> Result<ScopeSet, String> {
        let entries = fields::parse_list(value, OAuthScope::ALL.len())?;
        entries.into_iter().map(|entry| fields::parse_text(entry)?.parse::<OAuthScope>()).collect()
    }
}

/// The client of a request
#[derive(Debug, Serialize, ToSchema)]
#[schema(name = "OAuthClient")]
pub(super) struct ClientView {
    /// The client's id
    id: String,
    /// The name that the client gave itself; it is not verified
    name: String,
    /// The host that published the client's metadata document; null for other clients
    host: Option<String>,
    /// `built_in`, `registered` (by anyone) or `document` (published by `host`)
    identity: &'static str,
}

impl ClientView {
    pub(super) fn from_client(client: &ResolvedClient) -> Self {
        let (host, identity) = match &client.identity {
            ClientIdentity::BuiltIn => (None, "built_in"),
            ClientIdentity::Registered => (None, "registered"),
            ClientIdentity::Document(host) => (Some(host.clone()), "document"),
        };
        Self { id: client.reference.id.clone(), name: client.reference.name.clone(), host, identity }
    }
}

/// A requested scope
#[derive(Debug, Serialize, ToSchema)]
#[schema(name = "RequestedScope")]
pub(super) struct ScopeView {
    /// `read`, `send` or `manage`
    scope: &'static str,
    /// Whether the user's role allows granting it
    permitted: bool,
}

/// The requested scopes, for a user.
pub(super) fn scope_views(requested: ScopeSet, user: &SignedInUser) -> Vec<ScopeView> {
    let permitted = requested.permitted_for(user.user().role);
    requested.iter().map(|scope| ScopeView { scope: scope.word(), permitted: permitted.contains(scope) }).collect()
}

/// The scopes that a user allows.
///
/// # Errors
/// 400 if none is left, or one was not requested; 403 if the user's role does not allow one, or the user must prove
/// their identity again.
pub(super) fn approved_scopes(decision: &Decision, requested: ScopeSet, user: &SignedInUser) -> Result<ScopeSet> {
    let role = user.user().role;
    let scopes = decision.scopes.unwrap_or_else(|| requested.permitted_for(role));
    if scopes.is_empty() {
        return Err(Problem::field("scopes", "Choose at least one"));
    }
    if !scopes.is_subset_of(requested) {
        return Err(Problem::field("scopes", "The app did not request one of these"));
    }
    if scopes.permitted_for(role) != scopes {
        let text = format!("Your role `{}` does not allow you to grant these permissions", role.word());
        return Err(Problem::new(ErrorCode::FORBIDDEN, text));
    }
    // As for API keys: a grant outlives the session.
    if scopes.contains(OAuthScope::Send) || scopes.contains(OAuthScope::Manage) {
        access::require_recent_authentication(user.tenant())?;
    }
    Ok(scopes)
}

/// The policy that a grant keeps: that of the user's latest one for the client.
pub(super) async fn kept_policy(
    state: &AppState,
    user: &SignedInUser,
    client: &ClientReference,
) -> Result<ClientPolicy> {
    Ok(store::oauth::grant::latest_policy(&state.services.store, grantor(user), client).await?)
}

/// The policy of the new grant: that of the decision, or the kept one.
///
/// # Errors
/// 403 if it permits more than the kept one, and the user may not change grants or must prove their identity again.
pub(super) async fn decided_policy(
    state: &AppState,
    decision: Decision,
    user: &SignedInUser,
    client: &ClientReference,
) -> Result<ClientPolicy> {
    let kept = kept_policy(state, user, client).await?;
    let Some(policy) = decision.policy else { return Ok(kept) };
    if policy.loosens(&kept) {
        if user.user().role < UserRole::Developer {
            let text = "Your role does not allow you to loosen the rules for this app";
            return Err(Problem::new(ErrorCode::FORBIDDEN, text));
        }
        access::require_recent_authentication(user.tenant())?;
    }
    Ok(policy)
}

pub(super) fn grantor(user: &SignedInUser) -> Grantor {
    Grantor { account: user.user().account, user: user.user().id, role: user.user().role }
}

/// A problem for the person, who cannot repair the client's request.
pub(super) fn client_problem(text: impl Into<String>) -> Problem {
    Problem::new(ErrorCode::VALIDATION_ERROR, text)
}

/// The same for a failure of an OAuth endpoint.
pub(super) fn failure_problem(failure: OAuthFailure) -> Problem {
    match failure {
        OAuthFailure::Refused(error) => client_problem(error.description),
        OAuthFailure::Problem(problem) => problem,
    }
}
