//! Publishes a domain's records at a DNS provider, and manages the DNS credentials that an account saves for this.

use accounts::domains::{CredentialSource, PublishError};
use provider::{AppliedChange, ApplyError, ChangeAction, Provider, ProviderCredentials, RecordChangeOutcome};

use super::error::domain_error_problem;
use super::lookup::find;
use super::request::DomainKey;
use super::view::{DomainView, RecordView};
use crate::prelude::*;

const PROVIDER: &str = "provider";

fn providers() -> Vec<&'static str> {
    Provider::ALL.iter().map(|provider| provider.as_str()).collect()
}

fn parse_provider(value: &RawValue) -> Result<Provider, String> {
    fields::parse_text(value)?.parse().map_err(|_| format!("must be one of {}", providers().join(", ")))
}

/// Describes the credential fields of each provider; optional ones are marked `?`.
fn about_credentials() -> String {
    let describe = |provider: &Provider| {
        let names = provider.credential_fields().iter().map(|field| {
            let optional = if field.required { "" } else { "?" };
            format!("`{}{optional}`", field.name)
        });
        format!("{}: {}", provider.as_str(), names.collect::<Vec<_>>().join(", "))
    };
    let all: Vec<String> = Provider::ALL.iter().map(describe).collect();
    format!("An object. {}", all.join("; "))
}

/// The JSON grammar was checked already; an unpaired surrogate counts as null.
fn parse_json(value: &RawValue) -> Result<Value, String> {
    Ok(serde_json::from_str(value.get()).unwrap_or_default())
}

fn parse_credentials(value: &Value, provider: Provider, errors: &mut FieldErrors) -> Option<ProviderCredentials> {
    match ProviderCredentials::parse(provider, value) {
        Ok(credentials) => Some(credentials),
        Err(field_errors) => {
            for error in field_errors {
                let at = if error.field.is_empty() { String::new() } else { format!(".{}", error.field) };
                errors.add(&format!("credentials{at}"), error.message);
            }
            None
        }
    }
}

fn credentials_schema(_: &mut Schemas) -> Value {
    json!({
        "type": "object",
        "description": about_credentials(),
        "additionalProperties": {"type": "string"},
        "examples": [{"server": "192.0.2.53", "key_name": "postrider", "secret": "c2VjcmV0IG9mIGF0IGxlYXN0IDMyIGJ5dGVzLCBhcyBpcyBtZWV0"}],
    })
}

/// Path and body of `POST /domains/{id_or_name}/dns/apply`.
#[derive(Debug)]
pub struct ApplyDnsChanges {
    domain_key: DomainKey,
    by: CredentialSource,
    dry_run: bool,
    merge_spf: bool,
}

impl FromRequest for ApplyDnsChanges {
    const BODY_BYTES_MAX: Option<usize> = Some(SMALL_BYTES_MAX);
    const BODY: Option<BodySchema> = Some(Publication::schema);

    fn parameters() -> Vec<Value> {
        DomainKey::parameters()
    }

    fn read(call: &Request) -> Result<Self> {
        let domain_key = DomainKey::read(call)?;
        let mut source = None;
        let Publication { dry_run, merge_spf, .. } = read_checked_body(call, |publication: &Publication, _, notes| {
            source = publication.credential_source(&mut notes.errors);
        })?;
        let by = source.ok_or_else(|| Problem::internal("no credentials and no error"))?;
        Ok(Self { domain_key, by, dry_run, merge_spf })
    }
}

/// How to publish the records
#[derive(Debug, RequestObject)]
#[schema(name = "ApplyDns")]
struct Publication {
    /// The DNS provider of the zone
    #[field(
        required, parse = parse_provider,
        schema = json!({"type": "string", "enum": providers()}),
        examples = ["rfc2136"],
    )]
    provider: Option<Provider>,
    #[field(foreign = ["token", "api_token"], parse = parse_json, schema = credentials_schema)]
    credentials: Option<Value>,
    /// Whether to use the saved credentials for the provider
    #[field(absent = false, default = false)]
    use_saved: bool,
    /// Preview the changes without publishing them
    #[field(absent = false, default = false)]
    dry_run: bool,
    /// Whether to add the service's include to an existing SPF record
    #[field(absent = true, default = true)]
    merge_spf: bool,
}

impl Publication {
    fn credential_source(&self, errors: &mut FieldErrors) -> Option<CredentialSource> {
        match (&self.credentials, self.provider) {
            (Some(_), _) if self.use_saved => {
                errors.add("credentials", "cannot be combined with `use_saved`");
                None
            }
            (None, _) if !self.use_saved => {
                errors.add("credentials", "are required unless `use_saved` is true");
                None
            }
            (_, None) => None,
            (None, Some(provider)) => Some(CredentialSource::Saved(provider)),
            (Some(value), Some(provider)) => parse_credentials(value, provider, errors).map(CredentialSource::OneTime),
        }
    }
}

/// The change of one record
#[derive(Debug, Serialize, ToSchema)]
#[schema(name = "DnsChange")]
struct DnsChangeView {
    /// The action
    #[schema(as = String, enum = ["create", "update", "skip", "conflict"])]
    action: ChangeAction,
    /// The result
    #[schema(as = String, enum = ["unchanged", "done", "failed", "unclear", "not_done"])]
    outcome: RecordChangeOutcome,
    record: RecordView,
    /// The value that is replaced
    replaces: Option<String>,
    /// The reason; for a conflict, how to resolve it
    reason: Option<String>,
}

impl DnsChangeView {
    fn from_step(AppliedChange { change, outcome }: AppliedChange) -> Self {
        let record = RecordView::from_record(change.record, None, None);
        Self { action: change.action, outcome, record, replaces: change.replaces, reason: change.reason }
    }
}

/// The published records
#[derive(Debug, Serialize, ToSchema)]
#[schema(name = "AppliedDns")]
pub struct ApplyDnsResponse {
    domain: DomainView,
    /// The change of each record
    changes: Vec<DnsChangeView>,
    /// Whether all records are now published at the provider
    applied: bool,
}

/// `POST /domains/{id_or_name}/dns/apply`.
///
/// # Errors
/// The domain does not exist; existing records conflict (409, and nothing is changed); the provider returns an error
/// (422); the store cannot be used.
pub async fn apply_dns_changes(state: State, tenant: Tenant, input: ApplyDnsChanges) -> Result<ApplyDnsResponse> {
    let domain = find(&state, &tenant, &input.domain_key).await?;
    let domains = &state.accounts.domains;
    let published = domains.publisher.publish(domain.account, domain.id, input.by, input.merge_spf, input.dry_run);
    let published = published.await.map_err(|error| publish_error_problem(error, &state, &tenant))?;
    let report = published.report;
    let (conflict, failure, applied) = (report.has_conflict(), report.failure.clone(), report.applied);
    let changes: Vec<DnsChangeView> = report.changes.into_iter().map(DnsChangeView::from_step).collect();
    if let Some(failure) = failure {
        return Err(Problem::new(ErrorCode::UPSTREAM_ERROR, failure.to_string()).with_details(json!({
            "provider": failure.provider, "fault": failure.fault, "changes": changes,
        })));
    }
    if conflict && !input.dry_run {
        let text = "Existing records conflict and nothing was changed; `details.changes` lists them";
        return Err(Problem::new(ErrorCode::CONFLICT, text).with_details(json!({"changes": changes})));
    }
    Ok(ApplyDnsResponse { domain: DomainView::from_domain(&published.known, domains), changes, applied })
}

/// The page to redirect the customer to
#[derive(Debug, Serialize, ToSchema)]
#[schema(name = "ConnectDns")]
pub struct DomainConnectResponse {
    /// The page at the DNS provider where the domain's owner signs in and approves the records
    #[schema(
        examples = ["https://dns.example/v2/domainTemplates/providers/example.net/services/email/apply?domain=example.com"],
    )]
    url: String,
}

/// `POST /domains/{id_or_name}/dns/connect`.
///
/// # Errors
/// The domain does not exist; the provider does not support Domain Connect (422); the store cannot be read.
pub async fn create_domain_connect_url(
    state: State,
    tenant: Tenant,
    domain_key: DomainKey,
) -> Result<DomainConnectResponse> {
    let domain = find(&state, &tenant, &domain_key).await?;
    let result = state.accounts.domains.publisher.domain_connect_url(domain.account, domain.id).await;
    let url = result.map_err(|error| publish_error_problem(error, &state, &tenant))?;
    Ok(DomainConnectResponse { url })
}

fn publish_error_problem(error: PublishError, state: &AppState, tenant: &Tenant) -> Problem {
    match error {
        PublishError::NothingSaved(_) => Problem::field("use_saved", error.to_string()),
        PublishError::Busy => Problem::busy(),
        PublishError::Apply(ApplyError::Upstream(failure)) => {
            Problem::new(ErrorCode::UPSTREAM_ERROR, failure.to_string())
                .with_details(json!({"provider": failure.provider, "fault": failure.fault, "changes": []}))
        }
        PublishError::Apply(error @ ApplyError::Server(_)) => Problem::field("credentials.server", error.to_string()),
        PublishError::Connect(error) => {
            let text = format!("{error}; publish the records manually or with POST /domains/{{id}}/dns/apply");
            Problem::new(ErrorCode::UPSTREAM_ERROR, text).with_details(json!({"reason": error.as_str()}))
        }
        PublishError::Domain(error) => domain_error_problem(error, state, tenant),
    }
}

/// Path parameter of a provider.
fn provider_parameter() -> Value {
    let mut parameter = schema::path_parameter(PROVIDER, "The provider");
    parameter["schema"] = json!({"type": "string", "enum": providers()});
    parameter
}

fn provider_from_path(call: &Request) -> Result<Provider> {
    call.path_parameter(PROVIDER).parse().map_err(|_| Problem::not_found("DNS provider"))
}

/// Path and body of `PUT /dns-credentials/{provider}`.
#[derive(Debug)]
pub struct SaveDnsCredentials(ProviderCredentials);

impl FromRequest for SaveDnsCredentials {
    const BODY_BYTES_MAX: Option<usize> = Some(SMALL_BYTES_MAX);
    const BODY: Option<BodySchema> = Some(DnsCredentialFields::schema);

    fn parameters() -> Vec<Value> {
        vec![provider_parameter()]
    }

    fn read(call: &Request) -> Result<Self> {
        let provider = provider_from_path(call)?;
        let DnsCredentialFields { credentials } = read_body(call)?;
        let mut errors = FieldErrors::default();
        let parsed = parse_credentials(&credentials, provider, &mut errors);
        parsed.filter(|_| errors.is_empty()).map(Self).ok_or_else(|| errors.into())
    }
}

/// Credentials for a DNS provider
#[derive(Debug, RequestObject)]
#[schema(name = "SaveDnsCredentials")]
struct DnsCredentialFields {
    #[field(parse = parse_json, schema = credentials_schema)]
    credentials: Value,
}

/// Saved credentials; secrets are never returned
#[derive(Debug, Serialize, ToSchema)]
#[schema(name = "SavedDnsCredentials")]
pub struct DnsCredentialsView {
    /// The provider
    #[schema(enum = providers())]
    provider: String,
    /// When they were saved
    saved_at: JsonTimestamp,
}

object_response! { "The saved credentials", pub DnsCredentialsResponse { dns_credentials: DnsCredentialsView } as "OneSavedDnsCredentials" }

/// `PUT /dns-credentials/{provider}`.
///
/// # Errors
/// The credentials are invalid; the store cannot be written.
pub async fn save_credentials(
    state: State,
    tenant: Tenant,
    SaveDnsCredentials(credentials): SaveDnsCredentials,
) -> Result<DnsCredentialsResponse> {
    let stored = state.accounts.domains.publisher.save_credentials(tenant.account().id, &credentials).await;
    let saved_at = stored.map_err(|error| domain_error_problem(error, &state, &tenant))?;
    let provider = credentials.provider().as_str().to_owned();
    Ok(DnsCredentialsResponse { dns_credentials: DnsCredentialsView { provider, saved_at: JsonTimestamp(saved_at) } })
}

list_response! { pub DnsCredentialsList { dns_credentials: DnsCredentialsView } as "SavedDnsCredentialsList" }

/// `GET /dns-credentials`.
pub async fn list_credentials(state: State, tenant: Tenant, _: NoInput) -> Result<DnsCredentialsList> {
    let stored = store::dns_credential::list(&state.services.store, tenant.account().id).await?;
    let view = |(provider, saved_at)| DnsCredentialsView { provider, saved_at: JsonTimestamp(saved_at) };
    Ok(DnsCredentialsList::new(stored.into_iter().map(view).collect(), None))
}

#[derive(Debug)]
pub struct DnsProviderPath(Provider);

impl FromRequest for DnsProviderPath {
    fn parameters() -> Vec<Value> {
        vec![provider_parameter()]
    }

    fn read(call: &Request) -> Result<Self> {
        provider_from_path(call).map(Self)
    }
}

/// `DELETE /dns-credentials/{provider}`.
///
/// # Errors
/// No credentials are saved; the store cannot be used.
pub async fn delete_credentials(
    state: State,
    tenant: Tenant,
    DnsProviderPath(provider): DnsProviderPath,
) -> Result<OkResponse> {
    match state.accounts.domains.publisher.delete_credentials(tenant.account().id, provider).await {
        Ok(()) => Ok(OkResponse::OK),
        Err(PublishError::NothingSaved(_)) => Err(Problem::not_found("saved credentials")),
        Err(error) => Err(publish_error_problem(error, &state, &tenant)),
    }
}
