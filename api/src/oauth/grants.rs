//! Grants of the account's users: list, get, revoke.

use httpd::paging::{KIND_GRANT, after_id};
use model::client_policy::ClientPolicy;
use model::credential::LastUse;
use model::oauth::OAuthGrant;
use model::oauth::scope::OAuthScope;

use super::authorization::resource_words;
use super::token::end_grant;
use crate::access;
use crate::credentials::policy::{policy_request_schema, policy_schema, policy_view, read_policy};
use crate::prelude::*;

object_view! {
    /// A user's grant to an app
    #[schema(name = "Grant")]
    pub struct GrantView, fn new(grant: &OAuthGrant, used: Option<LastUse>) {
        /// `grant_…`
        id: GrantId = grant.id,
        /// The client's id: `client_…`, or the URL of its metadata document
        client_id: String = grant.client.id.clone(),
        /// The name that the client gave itself; it is not verified
        client_name: String = grant.client.name.clone(),
        /// The user who gave the grant; it ends if the user is removed or gets a lower role
        user_id: UserId = grant.grantor.user,
        /// `read`, `send`, `manage`
        scopes: Vec<&'static str> = grant.scopes.iter().map(OAuthScope::word).collect(),
        /// The rules for the client below its scopes; null without a rule
        #[schema(with = policy_schema)]
        policy: Value = policy_view(&grant.policy),
        /// `api`, `mcp`: the parts of the service that accept its tokens
        resources: Vec<&'static str> = resource_words(grant.audience),
        /// When it was last used, to about a minute
        last_used_at: Option<JsonTimestamp> = used.map(|used| JsonTimestamp(used.at)),
        /// The IP address of the last use
        last_used_ip: Option<String> = used.and_then(|used| used.from).map(|address| address.to_string()),
        /// When it ends, unless its client refreshes it
        expires_at: JsonTimestamp = JsonTimestamp(grant.expires_at),
        /// When it was given
        created_at: JsonTimestamp = JsonTimestamp(grant.created_at),
    }
}

object_response! { "A grant", pub GrantResponse { grant: GrantView } }

list_response! { pub GrantList { grants: GrantView } }

id_path! { pub GrantPath(GrantId), "The grant's id (`grant_…`)", "grant" }

/// `GET /grants`.
pub async fn list(state: State, tenant: Tenant, page: PageParameters) -> Result<GrantList> {
    let (account, now) = (tenant.account().id, state.services.clock.now());
    let before = page.before_id(KIND_GRANT)?.map(GrantId::from_bytes);
    let mut found = store::oauth::grant::list(&state.services.store, account, before, page.limit + 1).await?;
    let next_cursor = page.cut(&mut found, |grant| after_id(KIND_GRANT, grant.id.to_bytes()));
    found.retain(|grant| now < grant.expires_at);
    let ids: Vec<_> = found.iter().map(|grant| grant.id.to_bytes()).collect();
    let used = state.accounts.credentials.last_used(account, &ids).await?;
    let grants = found.iter().zip(used).map(|(grant, used)| GrantView::new(grant, used)).collect();
    Ok(GrantList::new(grants, next_cursor))
}

async fn find(state: &AppState, tenant: &Tenant, id: GrantId) -> Result<OAuthGrant> {
    let found = store::oauth::grant::get(&state.services.store, tenant.account().id, id).await?;
    let now = state.services.clock.now();
    found.filter(|grant| now < grant.expires_at).ok_or_else(|| Problem::not_found("grant"))
}

/// `GET /grants/{id}`.
pub async fn get(state: State, tenant: Tenant, GrantPath(id): GrantPath) -> Result<GrantResponse> {
    let grant = find(&state, &tenant, id).await?;
    let used = state.accounts.credentials.last_used(tenant.account().id, &[id.to_bytes()]).await?;
    Ok(GrantResponse { grant: GrantView::new(&grant, used.into_iter().next().flatten()) })
}

async fn end(state: &AppState, grant: &OAuthGrant) -> Result<OkResponse> {
    end_grant(state, grant.grantor.account, grant.id).await.map_err(Problem::outage)?;
    Ok(OkResponse::OK)
}

/// `DELETE /grants/{id}`.
pub async fn revoke(state: State, tenant: Tenant, GrantPath(id): GrantPath) -> Result<OkResponse> {
    end(&state, &find(&state, &tenant, id).await?).await
}

/// The fields to change
#[derive(Debug, RequestObject)]
#[schema(body_bytes_max = SMALL_BYTES_MAX)]
pub struct GrantChange {
    /// The rules for the client below its scopes; null removes all rules
    #[field(read = read_policy, schema = policy_request_schema, nullable)]
    policy: Option<ClientPolicy>,
}

/// `PATCH /grants/{id}`: sets the policy of a grant.
///
/// # Errors
/// The grant does not exist or was changed at the same time; the store cannot be read or written.
pub async fn update(
    state: State,
    user: SignedInUser,
    (GrantPath(id), request): (GrantPath, GrantChange),
) -> Result<GrantResponse> {
    let before = find(&state, user.tenant(), id).await?;
    let mut after = before.clone();
    if let Some(policy) = request.policy {
        access::require_recent_authentication(user.tenant())?;
        after.policy = policy;
        let mut batch = Batch::progress();
        store::oauth::grant::update(&mut batch, &before, &after);
        if !state.commit(batch).await? {
            return Err(Problem::new(ErrorCode::CONFLICT, "The grant was changed at the same time; retry"));
        }
    }
    let used = state.accounts.credentials.last_used(user.tenant().account().id, &[after.id.to_bytes()]).await?;
    Ok(GrantResponse { grant: GrantView::new(&after, used.into_iter().next().flatten()) })
}

/// `DELETE /auth/grants/{id}`: users of every role may revoke what they gave themselves.
///
/// # Errors
/// The user gave no such grant; the store cannot be read or written.
pub async fn revoke_own(state: State, user: SignedInUser, GrantPath(id): GrantPath) -> Result<OkResponse> {
    let grant = find(&state, user.tenant(), id).await?;
    if grant.grantor.user != user.user().id {
        return Err(Problem::not_found("grant"));
    }
    end(&state, &grant).await
}
