//! JSON objects and schemas of sending domains.

use bytes::Bytes;
use mail::address::DomainName;
use mail::address_pattern::AddressPattern;
use mail::domain::{DomainState, TlsMode};
use mail::domain_setup::{DomainRecord, RecordFinding, RecordPurpose, RecordStatus, RecordType};
use mail::id::DomainId;
use queue::domains::{DomainWithSetup, SendingDomains};
use serde::Serialize;
use serde_json::{Value, json};

use crate::json_timestamp::JsonTimestamp;
use crate::problem::Problem;
use crate::response::IntoResponse;
use crate::schema::{self, Schemas, ToSchema};

const PURPOSES: &[&str] = &["ownership", "dkim", "return_path", "spf", "dmarc", "inbound", "tracking"];
const STATUSES: &[&str] = &["pending", "verified", "missing", "mismatch", "conflict"];
/// Shown as a record's error if the service does not check DNS records.
const NOT_CHECKED_TEXT: &str = "Not checked: this service verifies domains automatically (`auto_verify_domains`)";

/// A DNS record with the result of its last check.
#[derive(Debug, Serialize)]
pub(super) struct RecordView {
    purpose: RecordPurpose,
    #[serde(rename = "type")]
    record_type: RecordType,
    name: String,
    value: String,
    ttl: u32,
    priority: Option<u16>,
    required: bool,
    status: RecordStatus,
    found: Vec<String>,
    error: Option<String>,
    checked_at: Option<JsonTimestamp>,
}

impl RecordView {
    /// The value is what to publish; where a name can have only one record, it includes the existing record's content.
    pub(super) fn from_record(
        record: DomainRecord,
        finding: Option<&RecordFinding>,
        default_text: Option<&str>,
    ) -> Self {
        let finding = finding.cloned();
        let merged = finding.as_ref().and_then(|finding| finding.merged.clone());
        Self {
            purpose: record.purpose,
            record_type: record.record_type,
            name: record.name,
            value: merged.unwrap_or(record.value),
            ttl: record.ttl_s,
            priority: record.priority,
            required: record.required,
            status: finding.as_ref().map_or(RecordStatus::Pending, |finding| finding.status),
            checked_at: finding.as_ref().map(|finding| JsonTimestamp(finding.checked_at)),
            found: finding.as_ref().map(|finding| finding.found.clone()).unwrap_or_default(),
            error: finding.map_or_else(|| default_text.map(str::to_owned), |finding| finding.error),
        }
    }

    pub(super) fn schema(schemas: &mut Schemas) -> Value {
        schemas.component("DomainRecord", |_| {
            let number = |description: &str, example: u32| {
                json!({"type": ["integer", "null"], "minimum": 0, "description": description, "examples": [example]})
            };
            let mut name = schema::string("The fully qualified name");
            name["examples"] = json!(["_service.example.com"]);
            let mut value = schema::string("The value to publish; for SPF, merged with the existing record");
            value["examples"] = json!(["postrider-verification=4c0d3a1f2b5e69788796a5b4c3d2e1f0"]);
            let ttl =
                json!({"type": "integer", "minimum": 0, "description": "The TTL in seconds", "examples": [3_600]});
            let found = schema::list(schema::string("A value"), "Values found in the DNS");
            schema::object(
                "A DNS record with the result of its last check",
                [
                    ("purpose", schema::string_enum(PURPOSES, "The purpose of the record")),
                    ("type", schema::string_enum(&["TXT", "CNAME", "MX"], "The record type")),
                    ("name", name),
                    ("value", value),
                    ("ttl", ttl),
                    ("priority", number("The preference of an MX record", 10)),
                    ("required", schema::boolean("Whether the record is required for verification")),
                    ("status", schema::string_enum(STATUSES, "The result")),
                    ("found", found),
                    ("error", schema::nullable_string("What is wrong and how to fix it")),
                    ("checked_at", schema::nullable_time("When the record was last checked")),
                ],
            )
        })
    }
}

/// The DKIM keys of a domain.
#[derive(Debug, Serialize)]
struct DomainDkimView {
    selector: String,
    key_bits: u16,
    pending_selector: Option<String>,
    former_selector: Option<String>,
    former_until: Option<JsonTimestamp>,
}

#[derive(Debug, Serialize)]
pub(super) struct DomainView {
    id: DomainId,
    name: DomainName,
    status: DomainState,
    inbound_enabled: bool,
    inbound_addresses: Vec<AddressPattern>,
    open_tracking: bool,
    click_tracking: bool,
    tls_mode: TlsMode,
    tracking_host: Option<DomainName>,
    dkim: DomainDkimView,
    dkim_ready: bool,
    records: Vec<RecordView>,
    degraded_since: Option<JsonTimestamp>,
    verified_at: Option<JsonTimestamp>,
    last_checked_at: Option<JsonTimestamp>,
    created_at: JsonTimestamp,
    updated_at: JsonTimestamp,
}

impl DomainView {
    pub(super) fn from_domain(entry: &DomainWithSetup, domains: &SendingDomains) -> Self {
        let DomainWithSetup { domain, setup } = entry;
        let default_text = domains.auto_verifies().then_some(NOT_CHECKED_TEXT);
        let records = domains.facts().required_records(domain).into_iter();
        let former_key = domain.former_dkim.as_ref();
        Self {
            id: domain.id,
            name: domain.name.clone(),
            status: domain.state,
            inbound_enabled: domain.inbound_enabled,
            inbound_addresses: domain.inbound_addresses.clone(),
            open_tracking: domain.delivery.open_tracking,
            click_tracking: domain.delivery.click_tracking,
            tls_mode: domain.delivery.tls_mode,
            tracking_host: domain.delivery.tracking_host.clone(),
            dkim: DomainDkimView {
                selector: domain.dkim.selector.clone(),
                key_bits: domain.dkim.rsa_bits,
                pending_selector: domain.next_dkim.as_ref().map(|next| next.selector.clone()),
                former_selector: former_key.map(|former_key| former_key.selector.clone()),
                former_until: former_key.map(|former_key| JsonTimestamp(former_key.until)),
            },
            dkim_ready: setup.keys_open,
            records: records
                .map(|record| {
                    let finding = setup.finding(&record);
                    RecordView::from_record(record, finding, default_text)
                })
                .collect(),
            degraded_since: setup.degraded_since.map(JsonTimestamp),
            verified_at: domain.verified_at.map(JsonTimestamp),
            last_checked_at: setup.last_checked_at.map(JsonTimestamp),
            created_at: JsonTimestamp(domain.created_at),
            updated_at: JsonTimestamp(domain.updated_at.max(domain.created_at)),
        }
    }

    fn dkim_schema() -> Value {
        let mut selector = schema::string("Selector of the RSA key; the Ed25519 key's selector appends an `e`");
        selector["examples"] = json!(["pr0a1b2c"]);
        let bits =
            json!({"type": "integer", "minimum": 0, "description": "Size of the RSA key in bits", "examples": [2_048]});
        schema::object(
            "The DKIM keys of the domain",
            [
                ("selector", selector),
                ("key_bits", bits),
                (
                    "pending_selector",
                    schema::nullable_string("Selector of new keys; they sign as soon as their record is found"),
                ),
                (
                    "former_selector",
                    schema::nullable_string("Selector of the previous keys; keep their record until `former_until`"),
                ),
                ("former_until", schema::nullable_time("When the previous keys' record can be removed")),
            ],
        )
    }

    pub(super) fn schema(schemas: &mut Schemas) -> Value {
        let record = RecordView::schema(schemas);
        schemas.component("Domain", |_| {
            let mut name = schema::string("The name");
            name["examples"] = json!(["example.com"]);
            schema::object(
                "A sending domain",
                [
                    ("id", schema::string("`dom_…`")),
                    ("name", name),
                    (
                        "status",
                        schema::string_enum(&["unverified", "verified"], "Whether email can be sent from the domain"),
                    ),
                    ("inbound_enabled", schema::boolean("Whether mail to the domain is received")),
                    (
                        "inbound_addresses",
                        schema::list(
                            schema::string("An address, `support+*@example.com` or `*@example.com`"),
                            "Addresses that receive mail; empty means all (catch-all)",
                        ),
                    ),
                    ("open_tracking", schema::boolean("Whether opens are tracked by a pixel in the HTML")),
                    ("click_tracking", schema::boolean("Whether links in the HTML are rewritten to track clicks")),
                    (
                        "tls_mode",
                        schema::string_enum(
                            &["opportunistic", "enforced"],
                            "`opportunistic`: TLS if the remote host offers it; `enforced`: never without TLS",
                        ),
                    ),
                    (
                        "tracking_host",
                        schema::nullable_string("Your own host for tracking links; null uses the service's host"),
                    ),
                    ("dkim", Self::dkim_schema()),
                    ("dkim_ready", schema::boolean("Whether the service can sign for the domain")),
                    ("records", schema::list(record, "The records to publish, the required ones first")),
                    (
                        "degraded_since",
                        schema::nullable_time(
                            "Since when a required record is missing; after 72 hours the domain becomes unverified",
                        ),
                    ),
                    ("verified_at", schema::nullable_time("When the domain was first verified")),
                    ("last_checked_at", schema::nullable_time("When the DNS was last checked")),
                    ("created_at", schema::time("When the domain was added")),
                    ("updated_at", schema::time("When it was last changed")),
                ],
            )
        })
    }
}

#[derive(Debug, Serialize)]
pub struct DomainResponse {
    domain: DomainView,
}

impl DomainResponse {
    pub(super) fn from_domain(domain: &DomainWithSetup, domains: &SendingDomains) -> Self {
        Self { domain: DomainView::from_domain(domain, domains) }
    }
}

impl ToSchema for DomainResponse {
    fn schema(schemas: &mut Schemas) -> Value {
        let domain = DomainView::schema(schemas);
        schemas.component("OneDomain", |_| schema::object("A domain", [("domain", domain)]))
    }
}

/// A domain after a verification.
#[derive(Debug, Serialize)]
pub struct VerifyDomainResponse {
    domain: DomainView,
    verified: bool,
}

impl VerifyDomainResponse {
    pub(super) fn from_domain(domain: &DomainWithSetup, domains: &SendingDomains) -> Self {
        let verified = domain.domain.state == DomainState::Verified;
        Self { domain: DomainView::from_domain(domain, domains), verified }
    }
}

impl ToSchema for VerifyDomainResponse {
    fn schema(schemas: &mut Schemas) -> Value {
        let domain = DomainView::schema(schemas);
        schemas.component("VerifiedDomain", |_| {
            let verified =
                schema::boolean("Whether email can be sent from the domain; `records` shows what is missing");
            schema::object("A domain after a verification", [("domain", domain), ("verified", verified)])
        })
    }
}

#[derive(Debug, Serialize)]
pub struct DomainList {
    domains: Vec<DomainView>,
    has_more: bool,
    next_cursor: Option<String>,
}

impl DomainList {
    pub(super) fn from_domains(
        entry: impl Iterator<Item = DomainWithSetup>,
        domains: &SendingDomains,
        next: Option<String>,
    ) -> Self {
        let views = entry.map(|entry| DomainView::from_domain(&entry, domains)).collect();
        Self { domains: views, has_more: next.is_some(), next_cursor: next }
    }
}

impl ToSchema for DomainList {
    fn schema(schemas: &mut Schemas) -> Value {
        let domain = DomainView::schema(schemas);
        schemas.component("DomainList", |_| schema::list_page("domains", domain))
    }
}

/// The records of a domain as a zone file.
#[derive(Debug)]
pub struct ZoneFile(pub(super) String);

impl IntoResponse for ZoneFile {
    const MEDIA_TYPE: &'static str = "text/plain; charset=utf-8";

    fn describe(_: &mut Schemas) -> Value {
        json!({
            "type": "string", "description": "One line per record (RFC 1035 5)",
            "examples": ["rp.example.com. 3600 IN CNAME rp.mx1.example.net.\n"],
        })
    }

    fn into_body(self) -> Result<Bytes, Problem> {
        Ok(self.0.into())
    }
}
