//! What is shown of domains.

use bytes::Bytes;
use mail::address::DomainName;
use mail::address_pattern::AddressPattern;
use mail::domain::{DomainState, TlsMode};
use mail::id::DomainId;
use mail::setup::{DomainRecord, RecordFinding, RecordPurpose, RecordStatus, RecordType};
use queue::domains::{DomainWithSetup, SendingDomains};
use serde::Serialize;
use serde_json::{Value, json};

use crate::call::IntoResponse;
use crate::emails::view::JsonTimestamp;
use crate::problem::Problem;
use crate::schema::{self, Schemas, ToSchema};

const PURPOSES: &[&str] = &["ownership", "dkim", "return_path", "spf", "dmarc", "inbound", "tracking"];
const STATUSES: &[&str] = &["pending", "verified", "missing", "mismatch", "conflict"];
/// Why nobody looked.
const NOT_CHECKED_TEXT: &str = "Not looked for: here domains verify themselves (`auto_verify_domains`)";

/// A record and what was found of it.
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
    /// The value is what to publish: with what is there already, where one record must hold both.
    pub(super) fn from_record(record: DomainRecord, finding: Option<&RecordFinding>, unseen: Option<&str>) -> Self {
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
            error: finding.map_or_else(|| unseen.map(str::to_owned), |finding| finding.error),
        }
    }

    pub(super) fn schema(schemas: &mut Schemas) -> Value {
        schemas.component("DomainRecord", |_| {
            let number = |description: &str, example: u32| {
                json!({"type": ["integer", "null"], "minimum": 0, "description": description, "examples": [example]})
            };
            let mut name = schema::string("Its full name");
            name["examples"] = json!(["_service.example.com"]);
            let mut value = schema::string("What to publish; for SPF, together with what is there already");
            value["examples"] = json!(["postrider-verification=4c0d3a1f2b5e69788796a5b4c3d2e1f0"]);
            let found = schema::list(schema::string("A value"), "What stands there");
            schema::object(
                "A DNS record, and what was found of it",
                [
                    ("purpose", schema::string_enum(PURPOSES, "What it is for")),
                    ("type", schema::string_enum(&["TXT", "CNAME", "MX"], "Its type")),
                    ("name", name),
                    ("value", value),
                    ("ttl", json!({"type": "integer", "minimum": 0, "description": "Seconds", "examples": [3_600]})),
                    ("priority", number("The preference of an MX record", 10)),
                    ("required", schema::boolean("The domain is verified only with it")),
                    ("status", schema::string_enum(STATUSES, "What became of it")),
                    ("found", found),
                    ("error", schema::nullable_string("What is wrong, and what to do")),
                    ("checked_at", schema::nullable_time("When it was looked at")),
                ],
            )
        })
    }
}

/// The keys of a domain.
#[derive(Debug, Serialize)]
struct DomainDkimView {
    selector: String,
    key_bits: u16,
    pending_selector: Option<String>,
    former_selector: Option<String>,
    former_until: Option<JsonTimestamp>,
}

/// A domain.
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
    pub(super) fn from_domain(known: &DomainWithSetup, domains: &SendingDomains) -> Self {
        let DomainWithSetup { domain, setup } = known;
        let unseen = domains.auto_verifies().then_some(NOT_CHECKED_TEXT);
        let records = domains.facts().required_records(domain).into_iter();
        let former = domain.former_dkim.as_ref();
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
                former_selector: former.map(|former| former.selector.clone()),
                former_until: former.map(|former| JsonTimestamp(former.until)),
            },
            dkim_ready: setup.keys_open,
            records: records
                .map(|record| {
                    let finding = setup.finding(&record);
                    RecordView::from_record(record, finding, unseen)
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
        let mut selector = schema::string("The RSA key's; the Ed25519 key's has an `e` behind it");
        selector["examples"] = json!(["pr0a1b2c"]);
        let bits = json!({"type": "integer", "minimum": 0, "description": "Of the RSA key", "examples": [2_048]});
        schema::object(
            "The keys that sign for it",
            [
                ("selector", selector),
                ("key_bits", bits),
                ("pending_selector", schema::nullable_string("Of keys that sign as soon as their record is seen")),
                ("former_selector", schema::nullable_string("Of the keys before: leave their record until then")),
                ("former_until", schema::nullable_time("When the former record may go")),
            ],
        )
    }

    pub(super) fn schema(schemas: &mut Schemas) -> Value {
        let record = RecordView::schema(schemas);
        schemas.component("Domain", |_| {
            let mut name = schema::string("Its name");
            name["examples"] = json!(["example.com"]);
            schema::object(
                "A domain that mail is sent from",
                [
                    ("id", schema::string("`dom_…`")),
                    ("name", name),
                    ("status", schema::string_enum(&["unverified", "verified"], "Whether mail may be sent from it")),
                    ("inbound_enabled", schema::boolean("Mail to it is taken in")),
                    (
                        "inbound_addresses",
                        schema::list(
                            schema::string("An address, `support+*@example.com` or `*@example.com`"),
                            "The addresses that mail is taken in for; none means every one (a catch-all)",
                        ),
                    ),
                    ("open_tracking", schema::boolean("HTML gets a pixel")),
                    ("click_tracking", schema::boolean("Links in HTML lead through us")),
                    (
                        "tls_mode",
                        schema::string_enum(
                            &["opportunistic", "enforced"],
                            "TLS where it is offered, or never in the clear",
                        ),
                    ),
                    ("tracking_host", schema::nullable_string("The customer's host for tracking links")),
                    ("dkim", Self::dkim_schema()),
                    ("dkim_ready", schema::boolean("Our keys can sign for it")),
                    ("records", schema::list(record, "The records to publish, the required ones first")),
                    (
                        "degraded_since",
                        schema::nullable_time(
                            "Since when a required record is gone; after 72 hours it is verified no more",
                        ),
                    ),
                    ("verified_at", schema::nullable_time("When it was verified first")),
                    ("last_checked_at", schema::nullable_time("When the DNS was last asked")),
                    ("created_at", schema::time("When it was added")),
                    ("updated_at", schema::time("When it was last changed")),
                ],
            )
        })
    }
}

/// A domain by itself.
#[derive(Debug, Serialize)]
pub struct DomainResponse {
    domain: DomainView,
}

impl DomainResponse {
    pub(super) fn from_domain(known: &DomainWithSetup, domains: &SendingDomains) -> Self {
        Self { domain: DomainView::from_domain(known, domains) }
    }
}

impl ToSchema for DomainResponse {
    fn schema(schemas: &mut Schemas) -> Value {
        let domain = DomainView::schema(schemas);
        schemas.component("OneDomain", |_| schema::object("A domain", [("domain", domain)]))
    }
}

/// A domain after a look.
#[derive(Debug, Serialize)]
pub struct VerifyDomainResponse {
    domain: DomainView,
    verified: bool,
}

impl VerifyDomainResponse {
    pub(super) fn from_domain(known: &DomainWithSetup, domains: &SendingDomains) -> Self {
        let verified = known.domain.state == DomainState::Verified;
        Self { domain: DomainView::from_domain(known, domains), verified }
    }
}

impl ToSchema for VerifyDomainResponse {
    fn schema(schemas: &mut Schemas) -> Value {
        let domain = DomainView::schema(schemas);
        schemas.component("VerifiedDomain", |_| {
            let verified = schema::boolean("Whether mail may be sent from it; `records` say what is missing");
            schema::object("A domain after a look", [("domain", domain), ("verified", verified)])
        })
    }
}

/// A page of domains.
#[derive(Debug, Serialize)]
pub struct DomainList {
    domains: Vec<DomainView>,
    has_more: bool,
    next_cursor: Option<String>,
}

impl DomainList {
    pub(super) fn from_domains(
        known: impl Iterator<Item = DomainWithSetup>,
        domains: &SendingDomains,
        next: Option<String>,
    ) -> Self {
        let views = known.map(|known| DomainView::from_domain(&known, domains)).collect();
        Self { domains: views, has_more: next.is_some(), next_cursor: next }
    }
}

impl ToSchema for DomainList {
    fn schema(schemas: &mut Schemas) -> Value {
        let domain = DomainView::schema(schemas);
        schemas.component("DomainList", |_| schema::list_page("domains", domain))
    }
}

/// The records of a domain as a zone file has them.
#[derive(Debug)]
pub struct ZoneFile(pub(super) String);

impl IntoResponse for ZoneFile {
    const MEDIA_TYPE: &'static str = "text/plain; charset=utf-8";

    fn describe(_: &mut Schemas) -> Value {
        json!({
            "type": "string", "description": "A line for each record (RFC 1035 5)",
            "examples": ["rp.example.com. 3600 IN CNAME rp.mx1.example.net.\n"],
        })
    }

    fn into_body(self) -> Result<Bytes, Problem> {
        Ok(self.0.into())
    }
}
