//! API keys and SMTP credentials: create, list, get, update, delete, rotate.
//!
//! Both nouns implement [`CredentialKind`] and share all operations. The differences (names, prefixes, fields) are in
//! `api_key` and `smtp`. A secret is shown only in the response that creates it.
//!
//! The operation table denies these operations to a key that is restricted to a domain: it could create an unrestricted
//! key.

mod api_key;
pub mod kind;
pub(crate) mod policy;
pub mod request;
mod smtp;

use std::marker::PhantomData;

use httpd::paging::after_id;
use httpd::response::{IntoResponse, Response};
use model::credential::{ApiKey, CredentialPolicy, CredentialSecret, LastUse, SecretHash, SmtpCredential};
use model::quota::Noun;
use serde_json::Map;
use store::credential::{Credential, CredentialSummary};

use self::kind::{CreateCredential, CredentialKind, not_found};
use self::policy::{policy_schema, policy_view};
use self::request::{CredentialPath, RotateCredential, UpdateCredential};
use crate::access;
use crate::auth::login_links::{self, AccessGrant};
use crate::operation::{Operation, OperationTag};
use crate::prelude::*;

/// Maximum number of credentials of one kind per account.
const CREDENTIALS_MAX: usize = 1_000;
/// Retries of a change after a concurrent change.
const TRIES_MAX: usize = 3;

/// The operations on API keys and SMTP credentials.
pub(crate) fn operations() -> Vec<Operation> {
    let mut all = api_key_operations();
    all.extend(smtp_credential_operations());
    all
}

fn api_key_operations() -> Vec<Operation> {
    let tag = OperationTag::new("api_keys");
    vec![
        tag.post("/api-keys", "Create an API key; its secret is shown once")
            .errors(&[ErrorCode::NOT_FOUND])
            .storage_cost(&[(Noun::ApiKeys, 1)])
            .risk(Risk::Secret)
            .full_key_or_session(("create_api_key", "apiKeys.create"), create::<ApiKey>),
        tag.get("/api-keys", "List API keys, newest first")
            .full_key_or_session(("list_api_keys", "apiKeys.list"), list::<ApiKey>),
        tag.get("/api-keys/{id}", "Get an API key").full_key_or_session(("get_api_key", "apiKeys.get"), get::<ApiKey>),
        tag.patch("/api-keys/{id}", "Rename, enable or disable an API key, or set its allowed addresses")
            .errors(&[ErrorCode::REAUTHENTICATION_REQUIRED])
            .full_key_or_session(("update_api_key", "apiKeys.update"), update::<ApiKey>),
        tag.delete("/api-keys/{id}", "Delete an API key")
            .full_key_or_session(("delete_api_key", "apiKeys.delete"), delete::<ApiKey>),
        tag.post(
            "/api-keys/{id}/rotate",
            "Rotate an API key's secret; the previous one stays valid for a grace period",
        )
        .risk(Risk::Secret)
        .full_key_or_session(("rotate_api_key", "apiKeys.rotate"), rotate::<ApiKey>),
    ]
}

fn smtp_credential_operations() -> Vec<Operation> {
    let tag = OperationTag::new("smtp_credentials");
    vec![
        tag.post("/smtp-credentials", "Create an SMTP credential; its password is shown once")
            .errors(&[ErrorCode::NOT_FOUND])
            .storage_cost(&[(Noun::SmtpCredentials, 1)])
            .risk(Risk::Secret)
            .full_key_or_session(("create_smtp_credential", "smtpCredentials.create"), create::<SmtpCredential>),
        tag.get("/smtp-credentials", "List SMTP credentials, newest first")
            .full_key_or_session(("list_smtp_credentials", "smtpCredentials.list"), list::<SmtpCredential>),
        tag.get("/smtp-credentials/{id}", "Get an SMTP credential")
            .full_key_or_session(("get_smtp_credential", "smtpCredentials.get"), get::<SmtpCredential>),
        tag.patch(
            "/smtp-credentials/{id}",
            "Rename, enable or disable an SMTP credential, or set its allowed addresses",
        )
        .errors(&[ErrorCode::REAUTHENTICATION_REQUIRED])
        .full_key_or_session(("update_smtp_credential", "smtpCredentials.update"), update::<SmtpCredential>),
        tag.delete("/smtp-credentials/{id}", "Delete an SMTP credential")
            .full_key_or_session(("delete_smtp_credential", "smtpCredentials.delete"), delete::<SmtpCredential>),
        tag.post(
            "/smtp-credentials/{id}/rotate",
            "Rotate an SMTP credential's password; the previous one stays valid for a grace period",
        )
        .risk(Risk::Secret)
        .full_key_or_session(("rotate_smtp_credential", "smtpCredentials.rotate"), rotate::<SmtpCredential>),
    ]
}

/// The JSON object of a credential.
fn credential_view<K: CredentialKind>(credential: &K, state: &AppState, used: Option<LastUse>) -> Value {
    let CredentialSummary { id, name, hint, enabled, created_at } = credential.summary();
    let first = [("id", json!(id)), ("name", json!(name))];
    let state_fields = [("hint", json!(hint)), ("enabled", json!(enabled))];
    let last = [("created_at", json!(JsonTimestamp(created_at)))];
    let all = first
        .into_iter()
        .chain(credential.specific_fields(state))
        .chain(state_fields)
        .chain(common_fields(credential.terms(), used));
    Value::Object(all.chain(last).map(|(name, value)| (name.to_owned(), value)).collect())
}

/// The schema of that object.
fn credential_schema<K: CredentialKind>(schemas: &mut Schemas) -> Value {
    let id = format!("`{}…`", K::ID_PREFIX);
    let first = [("id", schema::string(&id)), ("name", schema::string("The name"))];
    let hint = format!("The displayable part of the {}", K::SECRET_FIELD);
    let state_fields =
        [("hint", schema::string(&hint)), ("enabled", schema::boolean("Whether the credential is enabled"))];
    let last = [("created_at", schema::time("When it was created"))];
    let all = first
        .into_iter()
        .chain(K::specific_fields_schema())
        .chain(state_fields)
        .chain(common_fields_schema(schemas))
        .chain(last);
    schema::object(K::ABOUT, all)
}

fn common_fields(policy: &CredentialPolicy, used: Option<LastUse>) -> [(&'static str, Value); 6] {
    let allowed: Vec<String> = policy.allowed.iter().map(model::cidr::IpNetwork::display_short).collect();
    let time_value = |time: Option<Timestamp>| json!(time.map(JsonTimestamp));
    [
        ("domain_id", json!(policy.domain)),
        ("allowed_ips", json!(allowed)),
        ("last_used_at", time_value(used.map(|used| used.at))),
        ("last_used_ip", json!(used.and_then(|used| used.from))),
        ("expires_at", time_value(policy.expires_at)),
        ("policy", policy_view(&policy.client)),
    ]
}

fn common_fields_schema(schemas: &mut Schemas) -> [(&'static str, Value); 6] {
    [
        ("domain_id", schema::nullable_string("The only domain that the credential may send from; null allows all")),
        (
            "allowed_ips",
            schema::list(
                schema::string("`192.0.2.1`, `192.0.2.0/24`"),
                "Addresses and networks that may use the credential; empty allows all",
            ),
        ),
        ("last_used_at", schema::nullable_time("When it was last used, to about a minute")),
        ("last_used_ip", schema::nullable_string("The IP address of the last use")),
        ("expires_at", schema::nullable_time("When the credential expires")),
        ("policy", policy_schema(schemas)),
    ]
}

/// `{"api_key": {…}}`; with a new secret `{"api_key": {…}, "secret": "…"}`.
pub struct CredentialResponse<K, const IS_NEW: bool>(Value, Option<CredentialSecret>, PhantomData<fn() -> K>);

/// A response that always contains a new secret.
pub type NewCredentialResponse<K> = CredentialResponse<K, true>;

/// `{"api_keys": […], "has_more": …, "next_cursor": …}`.
pub struct CredentialListResponse<K> {
    views: Vec<Value>,
    next_cursor: Option<String>,
    kind: PhantomData<fn() -> K>,
}

fn component_schema<K: CredentialKind>(schemas: &mut Schemas) -> Value {
    schemas.component(K::COMPONENT, credential_schema::<K>)
}

impl<K: CredentialKind, const IS_NEW: bool> IntoResponse for CredentialResponse<K, IS_NEW> {
    fn describe(schemas: &mut Schemas) -> Value {
        let credential = component_schema::<K>(schemas);
        let secret = IS_NEW.then(|| (K::SECRET_FIELD, schema::string("The secret; shown only in this response")));
        schema::object(K::NOUN, [(K::OBJECT_FIELD, credential)].into_iter().chain(secret))
    }

    fn into_response(self) -> Result<Response> {
        let mut fields = Map::new();
        fields.insert(K::OBJECT_FIELD.to_owned(), self.0);
        if let Some(secret) = self.1 {
            fields.insert(K::SECRET_FIELD.to_owned(), Value::from(secret.expose()));
        }
        serde_json::to_vec(&fields).map(Self::with_body).map_err(Problem::internal)
    }
}

impl<K: CredentialKind> IntoResponse for CredentialListResponse<K> {
    fn describe(schemas: &mut Schemas) -> Value {
        let credential = component_schema::<K>(schemas);
        schema::list_page(K::LIST_FIELD, credential)
    }

    fn into_response(self) -> Result<Response> {
        let has_more = self.next_cursor.is_some();
        let page = json!({K::LIST_FIELD: self.views, "has_more": has_more, "next_cursor": self.next_cursor});
        serde_json::to_vec(&page).map(Self::with_body).map_err(Problem::internal)
    }
}

/// Generates a secret and its hash.
fn generate_secret<K: CredentialKind>(state: &AppState) -> Result<(CredentialSecret, SecretHash)> {
    let secret = CredentialSecret::new(K::PREFIX, state.services.entropy.secret());
    let hash = K::hash_secret(secret.expose()).ok_or_else(|| Problem::internal("generated secret cannot be hashed"))?;
    Ok((secret, hash))
}

/// `POST /api-keys`, `POST /smtp-credentials`.
///
/// # Errors
/// The domain does not belong to the account, the expiry is in the past, or the limit of credentials is reached.
pub async fn create<K: CredentialKind>(
    state: State,
    tenant: Tenant,
    request: CreateCredential<K>,
) -> Result<NewCredentialResponse<K>> {
    let (store, account) = (&state.services.store, tenant.account().id);
    if let Some(domain) = request.terms.domain
        && store::domain::get(store, account, domain).await?.is_none()
    {
        return Err(Problem::not_found("domain"));
    }
    let now = state.services.clock.now();
    if request.terms.expires_at.is_some_and(|end| end <= now) {
        return Err(Problem::field("expires_at", "is not in the future"));
    }
    if store::credential::list::<K>(store, account, None, CREDENTIALS_MAX).await?.len() >= CREDENTIALS_MAX {
        let text =
            format!("The limit of {CREDENTIALS_MAX} credentials of each kind has been reached; delete some first");
        return Err(Problem::new(ErrorCode::CONFLICT, text));
    }
    let (secret, hash) = generate_secret::<K>(&state)?;
    let made = K::new(&state, &tenant, request, secret.hint());
    let mut batch = Batch::progress();
    store::credential::create(&mut batch, made.clone(), &hash);
    store.commit(batch).await.map_err(Problem::outage)?;
    login_links::notify_access_granted(&state, tenant.account(), AccessGrant::Credential(K::NOUN, made.summary().id));
    Ok(CredentialResponse(credential_view(&made, &state, None), Some(secret), PhantomData))
}

/// `GET /api-keys`, `GET /smtp-credentials`.
pub async fn list<K: CredentialKind>(
    state: State,
    tenant: Tenant,
    page: PageParameters,
) -> Result<CredentialListResponse<K>> {
    let (store, account) = (&state.services.store, tenant.account().id);
    let before = page.before_id(K::CURSOR)?;
    let mut found = store::credential::list::<K>(store, account, before, page.limit + 1).await?;
    let next_cursor = page.cut(&mut found, |last| after_id(K::CURSOR, last.id_bytes()));
    let ids: Vec<_> = found.iter().map(Credential::id_bytes).collect();
    let used = state.accounts.credentials.last_used(account, &ids).await?;
    let views = found.iter().zip(used).map(|(credential, used)| credential_view(credential, &state, used)).collect();
    Ok(CredentialListResponse { views, next_cursor, kind: PhantomData })
}

async fn find<K: CredentialKind>(state: &AppState, tenant: &Tenant, id: [u8; 16]) -> Result<K> {
    let found = store::credential::get::<K>(&state.services.store, tenant.account().id, id).await?;
    found.ok_or_else(not_found::<K>)
}

async fn credential_response<K: CredentialKind, const IS_NEW: bool>(
    state: &AppState,
    credential: &K,
    secret: Option<CredentialSecret>,
) -> Result<CredentialResponse<K, IS_NEW>> {
    let used = state.accounts.credentials.last_used(credential.account(), &[credential.id_bytes()]).await?;
    Ok(CredentialResponse(credential_view(credential, state, used.into_iter().next().flatten()), secret, PhantomData))
}

/// `GET /api-keys/{id}`, `GET /smtp-credentials/{id}`.
pub async fn get<K: CredentialKind>(
    state: State,
    tenant: Tenant,
    request: CredentialPath<K>,
) -> Result<CredentialResponse<K, false>> {
    let found = find::<K>(&state, &tenant, request.id).await?;
    credential_response(&state, &found, None).await
}

/// Applies a change, with retries after concurrent changes.
async fn update_with_retry<K: CredentialKind>(
    state: &AppState,
    tenant: &Tenant,
    id: [u8; 16],
    change: impl Fn(&mut K) -> Result<()>,
) -> Result<K> {
    for _ in 0..TRIES_MAX {
        let before = find::<K>(state, tenant, id).await?;
        let mut after = before.clone();
        change(&mut after)?;
        let mut batch = Batch::progress();
        store::credential::update(&mut batch, &before, &after);
        if state.commit(batch).await? {
            return Ok(after);
        }
    }
    Err(Problem::new(ErrorCode::CONFLICT, "The credential was changed at the same time; retry"))
}

/// `PATCH /api-keys/{id}`, `PATCH /smtp-credentials/{id}`.
///
/// # Errors
/// The credential does not exist; it permits more than before, and the user did not prove their identity lately;
/// the store cannot be read or written.
pub async fn update<K: CredentialKind>(
    state: State,
    tenant: Tenant,
    request: UpdateCredential<K>,
) -> Result<CredentialResponse<K, false>> {
    let after = update_with_retry::<K>(&state, &tenant, request.id, |credential| {
        let parts = credential.fields_mut();
        let (terms, was_enabled) = (parts.terms.clone(), *parts.enabled);
        set_given(parts.name, &request.name);
        set_given(&mut parts.terms.allowed, &request.allowed);
        *parts.enabled = request.enabled.unwrap_or(*parts.enabled);
        set_given(&mut parts.terms.client, &request.policy);
        // A change that permits more gives access, as a new credential does.
        if parts.terms.loosens(&terms) || (*parts.enabled && !was_enabled) {
            access::require_recent_authentication(&tenant)?;
        }
        Ok(())
    });
    credential_response(&state, &after.await?, None).await
}

/// `POST /api-keys/{id}/rotate`, `POST /smtp-credentials/{id}/rotate`: the previous secret stays valid for the grace
/// period.
pub async fn rotate<K: CredentialKind>(
    state: State,
    tenant: Tenant,
    request: RotateCredential<K>,
) -> Result<NewCredentialResponse<K>> {
    let (secret, hash) = generate_secret::<K>(&state)?;
    let grace_ends = state.services.clock.now().checked_add(request.grace).unwrap_or(Timestamp::MAX);
    let after = update_with_retry::<K>(&state, &tenant, request.id, |credential| {
        let parts = credential.fields_mut();
        parts.terms.secrets = parts.terms.secrets.rotate(hash, grace_ends);
        *parts.hint = secret.hint();
        Ok(())
    });
    let after = after.await?;
    login_links::notify_access_granted(&state, tenant.account(), AccessGrant::Secret(K::NOUN, after.summary().id));
    credential_response(&state, &after, Some(secret)).await
}

/// `DELETE /api-keys/{id}`, `DELETE /smtp-credentials/{id}`.
pub async fn delete<K: CredentialKind>(state: State, tenant: Tenant, request: CredentialPath<K>) -> Result<OkResponse> {
    let found = find::<K>(&state, &tenant, request.id).await?;
    let mut batch = Batch::progress();
    store::credential::delete(&mut batch, &found);
    if !state.commit(batch).await? {
        let text = "The credential was changed at the same time; retry";
        return Err(Problem::new(ErrorCode::CONFLICT, text));
    }
    state.accounts.credentials.forget_last_used(found.id_bytes());
    Ok(OkResponse::OK)
}
