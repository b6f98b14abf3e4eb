//! Requests for API keys and SMTP credentials.

use std::marker::PhantomData;

use httpd::request_object::{RequestValue, bounded_text_schema, read_optional_body};
use httpd::request_value::{Integer, Time};
use model::cidr::IpNetwork;
use model::client_policy::ClientPolicy;
use model::credential::CredentialPolicy;

use super::kind::{CreateCredential, CredentialKind};
use super::policy::{policy_request_schema, read_policy};
use crate::prelude::*;

const NAME_BYTES_MAX: usize = 200;
/// Maximum number of allowed networks per credential.
const NETWORKS_MAX: usize = 50;
/// Longest text of a network: an IPv6 address with an IPv4 suffix, a prefix length and some spaces.
const NETWORK_BYTES_MAX: usize = 64;
/// Maximum grace period of a rotation: two weeks.
const GRACE_HOURS_MAX: i64 = 14 * 24;
const GRACE_HOURS_DEFAULT: u64 = 24;

const SCOPE: &str = "scope";

#[derive(Debug)]
pub struct CredentialPath<K> {
    pub id: [u8; 16],
    kind: PhantomData<fn() -> K>,
}

/// Path and body of an update; `None` leaves a field unchanged.
#[derive(Debug)]
pub struct UpdateCredential<K> {
    pub id: [u8; 16],
    pub name: Option<String>,
    /// Networks from which the credential may be used; empty allows all.
    pub allowed: Option<Vec<IpNetwork>>,
    pub enabled: Option<bool>,
    /// The new policy, without its former rules.
    pub policy: Option<ClientPolicy>,
    kind: PhantomData<fn() -> K>,
}

/// Path and body of a rotation.
#[derive(Debug)]
pub struct RotateCredential<K> {
    pub id: [u8; 16],
    /// Grace period in which the previous secret stays valid.
    pub grace: Duration,
    kind: PhantomData<fn() -> K>,
}

/// A new API key
#[derive(Debug, RequestObject)]
struct ApiKeyFields {
    #[field(flatten)]
    credential: CredentialFields,
    /// The scope
    #[field(read = read_scope, schema = json!({"type": "string", "enum": ["full", "sending"]}))]
    scope: ApiKeyScope,
}

/// A new SMTP credential
#[derive(Debug, RequestObject)]
struct CredentialFields {
    /// The name
    #[field(parse = parse_name, schema = name_schema)]
    name: String,
    /// The only domain (`dom_…`) that the credential may send from; null allows all
    #[field(parse = parse_domain_id, schema = schema::id(DomainId::PREFIX, ""), nullable)]
    domain_id: Option<DomainId>,
    /// Addresses and networks that may use the credential; empty allows all
    #[field(reader = Networks, absent = Vec::new())]
    allowed_ips: Vec<IpNetwork>,
    /// When the credential expires
    #[field(reader = Time, nullable)]
    expires_at: Option<Timestamp>,
    /// The rules for the client below its scope
    #[field(read = read_policy, schema = policy_request_schema, absent = ClientPolicy::default(), nullable)]
    policy: ClientPolicy,
}

/// The fields to change
#[derive(Debug, RequestObject)]
struct CredentialChange {
    /// The name
    #[field(parse = parse_name, schema = name_schema)]
    name: Option<String>,
    /// Addresses and networks that may use the credential; empty allows all
    #[field(reader = Networks, null = Vec::new())]
    allowed_ips: Option<Vec<IpNetwork>>,
    /// Whether the credential is enabled
    enabled: Option<bool>,
    /// The rules for the client below its scope; null removes all rules
    #[field(read = read_policy, schema = policy_request_schema, nullable)]
    policy: Option<ClientPolicy>,
}

/// Options of the rotation
#[derive(Debug, RequestObject)]
struct Rotation {
    /// For how many hours the previous secret stays valid
    #[field(reader = Integer<u64, 0, GRACE_HOURS_MAX>, absent = GRACE_HOURS_DEFAULT, default = GRACE_HOURS_DEFAULT)]
    grace_hours: u64,
}

fn parse_name(value: &RawValue) -> Result<String, String> {
    let name = fields::parse_header_line(value, NAME_BYTES_MAX)?.trim().to_owned();
    if name.is_empty() { Err("must not be empty".to_owned()) } else { Ok(name) }
}

fn name_schema(_: &mut Schemas) -> Value {
    bounded_text_schema(1, NAME_BYTES_MAX)
}

/// IP addresses and networks.
struct Networks;

impl RequestValue for Networks {
    type Value = Vec<IpNetwork>;

    fn schema(_: &mut Schemas) -> Value {
        json!({"type": "array", "items": bounded_text_schema(1, NETWORK_BYTES_MAX), "maxItems": NETWORKS_MAX})
    }

    fn parse(value: &RawValue) -> Result<Self::Value, String> {
        let entries = fields::parse_list(value, NETWORKS_MAX)?;
        let networks = entries.into_iter().map(|entry| {
            let text = fields::parse_text(entry)?;
            let shown = fields::printable_name(&text);
            if text.len() > NETWORK_BYTES_MAX {
                return Err(format!("`{shown}`: is longer than {NETWORK_BYTES_MAX} bytes"));
            }
            text.trim().parse().map_err(|error| format!("`{shown}`: {error}"))
        });
        networks.collect()
    }
}

fn parse_domain_id(value: &RawValue) -> Result<DomainId, String> {
    fields::parse_text(value)?.parse().map_err(|_| "is not the id of a domain (`dom_…`)".to_owned())
}

fn read_scope(fields: &ObjectFields<'_>, notes: &mut FieldDiagnostics) -> Option<ApiKeyScope> {
    let Some(value) = fields.value(SCOPE) else {
        notes.errors.add(SCOPE, "is required; must be `full` or `sending`");
        return None;
    };
    let parsed = fields::parse_text(value)
        .and_then(|text| ApiKeyScope::from_word(&text).ok_or_else(|| "must be `full` or `sending`".to_owned()));
    parsed.map_err(|text| notes.errors.add(SCOPE, text)).ok()
}

/// An SMTP client cannot wait for an approval.
fn check_policy<K: CredentialKind>(policy: &ClientPolicy) -> Result<()> {
    match K::HAS_SCOPE || policy.approve.is_empty() {
        true => Ok(()),
        false => {
            Err(Problem::field("policy.approve", "is not possible for SMTP credentials: SMTP has no reply for it"))
        }
    }
}

fn parse_id<K: CredentialKind>(call: &Request) -> Result<[u8; 16]> {
    K::id_of(call.path_parameter("id")).ok_or_else(super::kind::not_found::<K>)
}

fn id_parameter<K: CredentialKind>() -> Value {
    schema::path_parameter("id", &format!("The {}'s id (`{}…`)", K::NOUN, K::ID_PREFIX))
}

impl<K: CredentialKind> FromRequest for CreateCredential<K> {
    const BODY_BYTES_MAX: Option<usize> = Some(SMALL_BYTES_MAX);
    const BODY: Option<BodySchema> =
        Some(|schemas| if K::HAS_SCOPE { ApiKeyFields::schema(schemas) } else { CredentialFields::schema(schemas) });

    fn read(call: &Request) -> Result<Self> {
        let ApiKeyFields { credential, scope } = match K::HAS_SCOPE {
            true => read_body(call)?,
            false => ApiKeyFields { credential: read_body(call)?, scope: ApiKeyScope::Sending },
        };
        let CredentialFields { name, domain_id, allowed_ips, expires_at, policy } = credential;
        check_policy::<K>(&policy)?;
        let terms = CredentialPolicy {
            domain: domain_id,
            allowed: allowed_ips,
            expires_at,
            client: policy,
            ..CredentialPolicy::default()
        };
        Ok(Self { name, scope, terms, kind: PhantomData })
    }
}

impl<K: CredentialKind> FromRequest for CredentialPath<K> {
    fn parameters() -> Vec<Value> {
        vec![id_parameter::<K>()]
    }

    fn read(call: &Request) -> Result<Self> {
        Ok(Self { id: parse_id::<K>(call)?, kind: PhantomData })
    }
}

impl<K: CredentialKind> FromRequest for UpdateCredential<K> {
    const BODY_BYTES_MAX: Option<usize> = Some(SMALL_BYTES_MAX);
    const BODY: Option<BodySchema> = Some(CredentialChange::schema);

    fn parameters() -> Vec<Value> {
        vec![id_parameter::<K>()]
    }

    fn read(call: &Request) -> Result<Self> {
        let id = parse_id::<K>(call)?;
        let CredentialChange { name, allowed_ips, enabled, policy } = read_body(call)?;
        policy.as_ref().map_or(Ok(()), check_policy::<K>)?;
        Ok(Self { id, name, allowed: allowed_ips, enabled, policy, kind: PhantomData })
    }
}

impl<K: CredentialKind> FromRequest for RotateCredential<K> {
    const BODY_BYTES_MAX: Option<usize> = Some(SMALL_BYTES_MAX);
    const MEDIA: Media = Media::OptionalJson;
    const BODY: Option<BodySchema> = Some(Rotation::schema);

    fn parameters() -> Vec<Value> {
        vec![id_parameter::<K>()]
    }

    fn read(call: &Request) -> Result<Self> {
        let id = parse_id::<K>(call)?;
        let Rotation { grace_hours } = read_optional_body(call)?;
        Ok(Self { id, grace: Duration::from_secs(grace_hours * 3600), kind: PhantomData })
    }
}
