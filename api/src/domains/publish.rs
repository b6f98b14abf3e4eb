//! Publishing a domain's records at a DNS provider, and the credentials that an account saves for that.

use std::sync::Arc;

use provider::{Action, ApplyError, Credentials, Outcome, Provider, Step, fields};
use queue::domains::{By, PublishError};
use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use store::access::Tenant;

use super::request::{OfDomain, Which};
use super::view::{DomainView, RecordView};
use super::{find, problem};
use crate::call::{Call, Input, Nothing, SMALL_BYTES_MAX, Takes};
use crate::done::Done;
use crate::emails::view::Moment;
use crate::fields::{self, Names, Notes};
use crate::problem::{Code, FieldErrors, Problem};
use crate::room::Room;
use crate::schema::{self, Describe, Schemas};

const PROVIDER: &str = "provider";

fn providers() -> Vec<&'static str> {
    Provider::ALL.iter().map(|provider| provider.as_str()).collect()
}

fn provider(text: &str) -> Result<Provider, String> {
    text.parse().map_err(|_| format!("must be one of {}", providers().join(", ")))
}

/// The fields that each provider's credentials have, for people.
fn about_credentials() -> String {
    let of = |provider: &Provider| {
        let names = fields(*provider).iter().map(|field| {
            let optional = if field.required { "" } else { "?" };
            format!("`{}{optional}`", field.name)
        });
        format!("{}: {}", provider.as_str(), names.collect::<Vec<_>>().join(", "))
    };
    let all: Vec<String> = Provider::ALL.iter().map(of).collect();
    format!("An object. {}", all.join("; "))
}

fn credentials(value: &RawValue, provider: Provider, errors: &mut FieldErrors) -> Option<Credentials> {
    let value: Value = serde_json::from_str(value.get()).unwrap_or_default();
    match Credentials::read(provider, &value) {
        Ok(credentials) => Some(credentials),
        Err(wrong) => {
            for error in wrong {
                let at = if error.field.is_empty() { String::new() } else { format!(".{}", error.field) };
                errors.add(&format!("credentials{at}"), error.message);
            }
            None
        }
    }
}

fn credentials_schema() -> Value {
    json!({
        "type": "object",
        "description": about_credentials(),
        "additionalProperties": {"type": "string"},
        "examples": [{"server": "192.0.2.53", "key_name": "postrider", "secret": "c2VjcmV0IG9mIGF0IGxlYXN0IDMyIGJ5dGVzLCBhcyBpcyBtZWV0"}],
    })
}

/// What `POST /domains/{id_or_name}/dns/apply` takes.
#[derive(Debug)]
pub struct Apply {
    which: Which,
    by: By,
    dry_run: bool,
    merge_spf: bool,
}

impl Input for Apply {
    const BODY_BYTES_MAX: Option<usize> = Some(SMALL_BYTES_MAX);

    fn describe(schemas: &mut Schemas) -> Takes {
        let body = schemas.named("ApplyDns", |_| {
            let mut word = schema::words(&providers(), "Where the zone is kept");
            word["examples"] = json!(["rfc2136"]);
            let yes = |description: &str, default: bool| {
                json!({"type": "boolean", "default": default, "description": description})
            };
            schema::object_with(
                "How to publish the records",
                &[PROVIDER],
                [
                    (PROVIDER, word),
                    ("credentials", credentials_schema()),
                    ("use_saved", yes("Use the credentials that are saved for the provider", false)),
                    ("dry_run", yes("Only say what would be done", false)),
                    ("merge_spf", yes("Put our include into the SPF record that is there", true)),
                ],
            )
        });
        let parameters = vec![Which::parameter()];
        Takes { parameters, body: Some(body), body_bytes_max: Self::BODY_BYTES_MAX }
    }

    fn read(call: &Call) -> Result<Self, Problem> {
        const NAMES: Names = Names {
            known: &[
                (PROVIDER, PROVIDER),
                ("credentials", "credentials"),
                ("use_saved", "use_saved"),
                ("dry_run", "dry_run"),
                ("merge_spf", "merge_spf"),
            ],
            foreign: &[("token", "credentials"), ("api_token", "credentials")],
        };
        let which = Which::of(call)?;
        let mut notes = Notes::default();
        let given = call.given(&NAMES, &mut notes)?;
        let word = given.value(PROVIDER).map(|value| fields::text(value).and_then(|text| provider(&text)));
        let word = word.unwrap_or_else(|| Err("is required".to_owned()));
        let provider = word.map_err(|text| notes.errors.add(PROVIDER, text)).ok();
        let mut boolean = |name, default| match given.value(name).map(fields::boolean) {
            None => default,
            Some(Ok(said)) => said,
            Some(Err(text)) => {
                notes.errors.add(name, text);
                default
            }
        };
        let (use_saved, dry_run) = (boolean("use_saved", false), boolean("dry_run", false));
        let merge_spf = boolean("merge_spf", true);
        let by = match (given.value("credentials"), provider) {
            (Some(_), _) if use_saved => {
                notes.errors.add("credentials", "are given beside `use_saved`; give one of them");
                None
            }
            (None, _) if !use_saved => {
                notes.errors.add("credentials", "are required, or `use_saved`");
                None
            }
            (_, None) => None,
            (None, Some(provider)) => Some(By::Saved(provider)),
            (Some(value), Some(provider)) => credentials(value, provider, &mut notes.errors).map(By::Once),
        };
        match by {
            Some(by) if notes.errors.is_empty() => Ok(Self { which, by, dry_run, merge_spf }),
            _ => Err(notes.errors.into()),
        }
    }
}

/// What is done about one record.
#[derive(Debug, Serialize)]
struct ChangeView {
    action: Action,
    outcome: Outcome,
    record: RecordView,
    replaces: Option<String>,
    reason: Option<String>,
}

impl ChangeView {
    fn of(Step { change, outcome }: Step) -> Self {
        let record = RecordView::of(change.record, None, None);
        Self { action: change.action, outcome, record, replaces: change.replaces, reason: change.reason }
    }

    fn schema(schemas: &mut Schemas) -> Value {
        let record = RecordView::schema(schemas);
        schemas.named("DnsChange", |_| {
            let actions = &["create", "update", "skip", "conflict"];
            let outcomes = &["unchanged", "done", "failed", "unclear", "not_done"];
            schema::object(
                "What is done about one record",
                [
                    ("action", schema::words(actions, "What is to be done")),
                    ("outcome", schema::words(outcomes, "What became of it")),
                    ("record", record),
                    ("replaces", schema::nullable_string("The value that it takes the place of")),
                    ("reason", schema::nullable_string("Why; in a conflict, what to do about it")),
                ],
            )
        })
    }
}

/// What was published.
#[derive(Debug, Serialize)]
pub struct Applied {
    domain: DomainView,
    changes: Vec<ChangeView>,
    applied: bool,
}

impl Describe for Applied {
    fn schema(schemas: &mut Schemas) -> Value {
        let (domain, change) = (DomainView::schema(schemas), ChangeView::schema(schemas));
        schemas.named("AppliedDns", |_| {
            let changes = schema::list(change, "What is done about each record");
            let applied = schema::boolean("Whether all records stand at the provider now");
            schema::object(
                "What was published",
                [("domain", domain), ("changes", changes), ("applied", applied)],
            )
        })
    }
}

/// `POST /domains/{id_or_name}/dns/apply`.
///
/// # Errors
/// No such domain; records that are there are in the way (409, and nothing is changed); the provider refuses
/// (422); the store cannot be used.
pub async fn apply(room: Arc<Room>, tenant: Tenant, input: Apply) -> Result<Applied, Problem> {
    let domain = find(&room, &tenant, &input.which).await?;
    let domains = room.hall.domains();
    let published = domains.publish((domain.account, domain.id), input.by, (input.merge_spf, input.dry_run));
    let published = published.await.map_err(|error| not_published(error, &room, &tenant))?;
    let report = published.report;
    let (conflict, failure, applied) = (report.has_conflict(), report.failure.clone(), report.applied);
    let changes: Vec<ChangeView> = report.steps.into_iter().map(ChangeView::of).collect();
    if let Some(failure) = failure {
        return Err(Problem::new(Code::UPSTREAM_ERROR, failure.to_string()).details(json!({
            "provider": failure.provider, "fault": failure.fault.as_str(), "changes": changes,
        })));
    }
    if conflict && !input.dry_run {
        let text =
            "Records that are there are in the way, and nothing was changed: `details.changes` says which";
        return Err(Problem::new(Code::CONFLICT, text).details(json!({"changes": changes})));
    }
    Ok(Applied { domain: DomainView::of(&published.known, domains), changes, applied })
}

/// Where the customer is to go.
#[derive(Debug, Serialize)]
pub struct Connect {
    url: String,
}

impl Describe for Connect {
    fn schema(schemas: &mut Schemas) -> Value {
        schemas.named("ConnectDns", |_| {
            let mut url = schema::string(
                "The page at the domain's DNS provider where its owner, signed in there, agrees to the records",
            );
            url["examples"] = json!(["https://dns.example/v2/domainTemplates/providers/example.net/services/email/apply?domain=example.com"]);
            schema::object("Where the customer is to go", [("url", url)])
        })
    }
}

/// `POST /domains/{id_or_name}/dns/connect`.
///
/// # Errors
/// No such domain; the provider does not offer it (422); the store cannot be read.
pub async fn connect(room: Arc<Room>, tenant: Tenant, OfDomain(which): OfDomain) -> Result<Connect, Problem> {
    let domain = find(&room, &tenant, &which).await?;
    let asked = room.hall.domains().connect((domain.account, domain.id)).await;
    let url = asked.map_err(|error| not_published(error, &room, &tenant))?;
    Ok(Connect { url })
}

fn not_published(error: PublishError, room: &Room, tenant: &Tenant) -> Problem {
    match error {
        PublishError::NothingSaved(_) => Problem::field("use_saved", error.to_string()),
        PublishError::Busy => Problem::busy(),
        PublishError::Apply(ApplyError::Upstream(failure)) => {
            Problem::new(Code::UPSTREAM_ERROR, failure.to_string()).details(
                json!({"provider": failure.provider, "fault": failure.fault.as_str(), "changes": []}),
            )
        }
        PublishError::Apply(error @ ApplyError::Server(_)) => {
            Problem::field("credentials.server", error.to_string())
        }
        PublishError::Connect(error) => {
            let text =
                format!("{error}: publish the records by hand, or with POST /domains/{{id}}/dns/apply");
            Problem::new(Code::UPSTREAM_ERROR, text).details(json!({"reason": error.as_str()}))
        }
        PublishError::Domain(error) => problem(error, room, tenant),
    }
}

/// A provider, named in the path.
fn provider_parameter() -> Value {
    let mut parameter = schema::path_parameter(PROVIDER, "The provider");
    parameter["schema"] = json!({"type": "string", "enum": providers()});
    parameter
}

fn of_path(call: &Call) -> Result<Provider, Problem> {
    call.path_parameter(PROVIDER).parse().map_err(|_| Problem::not_found("DNS provider"))
}

/// What `PUT /dns-credentials/{provider}` takes.
#[derive(Debug)]
pub struct Save(Credentials);

impl Input for Save {
    const BODY_BYTES_MAX: Option<usize> = Some(SMALL_BYTES_MAX);

    fn describe(schemas: &mut Schemas) -> Takes {
        let body = schemas.named("SaveDnsCredentials", |_| {
            schema::object("Credentials for a DNS provider", [("credentials", credentials_schema())])
        });
        let parameters = vec![provider_parameter()];
        Takes { parameters, body: Some(body), body_bytes_max: Self::BODY_BYTES_MAX }
    }

    fn read(call: &Call) -> Result<Self, Problem> {
        const NAMES: Names = Names { known: &[("credentials", "credentials")], foreign: &[] };
        let provider = of_path(call)?;
        let mut notes = Notes::default();
        let given = call.given(&NAMES, &mut notes)?;
        let read = match given.value("credentials") {
            Some(value) => credentials(value, provider, &mut notes.errors),
            None => {
                notes.errors.add("credentials", "is required");
                None
            }
        };
        read.filter(|_| notes.errors.is_empty()).map(Self).ok_or_else(|| notes.errors.into())
    }
}

/// That an account has saved credentials for a provider: never the credentials themselves.
#[derive(Debug, Serialize)]
struct SavedView {
    provider: String,
    saved_at: Moment,
}

impl SavedView {
    fn schema(schemas: &mut Schemas) -> Value {
        schemas.named("SavedDnsCredentials", |_| {
            schema::object(
                "Credentials that are saved; they are never shown",
                [
                    (PROVIDER, schema::words(&providers(), "The provider")),
                    ("saved_at", schema::time("When they were saved")),
                ],
            )
        })
    }
}

/// What was saved.
#[derive(Debug, Serialize)]
pub struct OneSaved {
    dns_credentials: SavedView,
}

impl Describe for OneSaved {
    fn schema(schemas: &mut Schemas) -> Value {
        let saved = SavedView::schema(schemas);
        schemas.named("OneSavedDnsCredentials", |_| {
            schema::object("What was saved", [("dns_credentials", saved)])
        })
    }
}

/// `PUT /dns-credentials/{provider}`.
///
/// # Errors
/// What is wrong with them; the store cannot be written.
pub async fn save(room: Arc<Room>, tenant: Tenant, Save(credentials): Save) -> Result<OneSaved, Problem> {
    let saved = room.hall.domains().save(tenant.account().id, &credentials).await;
    let saved_at = saved.map_err(|error| problem(error, &room, &tenant))?;
    let provider = credentials.provider().as_str().to_owned();
    Ok(OneSaved { dns_credentials: SavedView { provider, saved_at: Moment(saved_at) } })
}

/// The providers that credentials are saved for: there are some dozens at most.
#[derive(Debug, Serialize)]
pub struct SavedList {
    dns_credentials: Vec<SavedView>,
    has_more: bool,
    next_cursor: Option<String>,
}

impl Describe for SavedList {
    fn schema(schemas: &mut Schemas) -> Value {
        let saved = SavedView::schema(schemas);
        schemas.named("SavedDnsCredentialsList", |_| schema::page("dns_credentials", saved))
    }
}

/// `GET /dns-credentials`.
///
/// # Errors
/// The store cannot be read.
pub async fn list(room: Arc<Room>, tenant: Tenant, _: Nothing) -> Result<SavedList, Problem> {
    let saved = store::dns_credential::list(room.hall.store(), tenant.account().id).await?;
    let view = |(provider, saved_at)| SavedView { provider, saved_at: Moment(saved_at) };
    Ok(SavedList {
        dns_credentials: saved.into_iter().map(view).collect(),
        has_more: false,
        next_cursor: None,
    })
}

/// A provider and nothing else.
#[derive(Debug)]
pub struct OfProvider(Provider);

impl Input for OfProvider {
    fn describe(_: &mut Schemas) -> Takes {
        Takes { parameters: vec![provider_parameter()], ..Takes::default() }
    }

    fn read(call: &Call) -> Result<Self, Problem> {
        of_path(call).map(Self)
    }
}

/// `DELETE /dns-credentials/{provider}`.
///
/// # Errors
/// None are saved; the store cannot be used.
pub async fn forget(
    room: Arc<Room>,
    tenant: Tenant,
    OfProvider(provider): OfProvider,
) -> Result<Done, Problem> {
    match room.hall.domains().forget(tenant.account().id, provider).await {
        Ok(()) => Ok(Done::OK),
        Err(PublishError::NothingSaved(_)) => Err(Problem::not_found("saved credentials")),
        Err(error) => Err(not_published(error, &room, &tenant)),
    }
}
