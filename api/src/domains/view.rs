//! JSON objects and schemas of sending domains.

use accounts::domains::{DomainWithSetup, SendingDomains};
use httpd::response::{IntoResponse, Response};
use message::address::DomainName;
use message::address_pattern::AddressPattern;
use model::domain::{DomainState, TlsMode};
use model::domain_setup::{DomainRecord, RecordFinding, RecordPurpose, RecordStatus, RecordType};

use crate::prelude::*;

const PURPOSES: &[&str] = &["ownership", "dkim", "return_path", "spf", "dmarc", "inbound", "tracking"];
const STATUSES: &[&str] = &["pending", "verified", "missing", "mismatch", "conflict"];
/// Shown as a record's error if the service does not check DNS records.
const NOT_CHECKED_TEXT: &str = "Not checked: this service verifies domains automatically (`auto_verify_domains`)";

/// A DNS record with the result of its last check
#[derive(Debug, Serialize, ToSchema)]
#[schema(name = "DomainRecord")]
pub(super) struct RecordView {
    /// The purpose of the record
    #[schema(as = String, enum = PURPOSES)]
    purpose: RecordPurpose,
    /// The record type
    #[serde(rename = "type")]
    #[schema(as = String, enum = ["TXT", "CNAME", "MX"])]
    record_type: RecordType,
    /// The fully qualified name
    #[schema(examples = ["_service.example.com"])]
    name: String,
    /// The value to publish; for SPF, merged with the existing record
    #[schema(examples = ["postrider-verification=4c0d3a1f2b5e69788796a5b4c3d2e1f0"])]
    value: String,
    /// The TTL in seconds
    #[schema(examples = [3600])]
    ttl: u32,
    /// The preference of an MX record
    #[schema(examples = [10])]
    priority: Option<u16>,
    /// Whether the record is required for verification
    required: bool,
    /// The result
    #[schema(as = String, enum = STATUSES)]
    status: RecordStatus,
    /// Values found in the DNS
    #[schema(items = {"type": "string", "description": "A value"})]
    found: Vec<String>,
    /// The problem and how to fix it
    error: Option<String>,
    /// When the record was last checked
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
}

/// The DKIM keys of the domain
#[derive(Debug, Serialize, ToSchema)]
struct DomainDkimView {
    /// Selector of the RSA key; the Ed25519 key's selector appends an `e`
    #[schema(examples = ["pr0a1b2c"])]
    selector: String,
    /// Size of the RSA key in bits
    #[schema(examples = [2048])]
    key_bits: u16,
    /// Selector of new keys; they sign as soon as their record is found
    pending_selector: Option<String>,
    /// Selector of the previous keys; keep their record until `former_until`
    former_selector: Option<String>,
    /// When the previous keys' record can be removed
    former_until: Option<JsonTimestamp>,
}

object_view! {
    /// A sending domain
    #[schema(name = "Domain")]
    pub struct DomainView, pub(super) fn from_domain(
        entry: &DomainWithSetup, domains: &SendingDomains;
        let DomainWithSetup { domain, setup } = entry;
        let default_text = domains.auto_verifies().then_some(NOT_CHECKED_TEXT);
        let records = domains.facts().required_records(domain).into_iter();
        let former_key = domain.former_dkim.as_ref()
    ) {
        /// `dom_…`
        id: DomainId = domain.id,
        /// The name
        #[schema(examples = ["example.com"])]
        name: DomainName = domain.name.clone(),
        /// Whether email can be sent from the domain
        #[schema(as = String, enum = ["unverified", "verified"])]
        status: DomainState = domain.state,
        /// Whether mail to the domain is received
        inbound_enabled: bool = domain.inbound_enabled,
        /// Addresses that receive mail; empty means all (catch-all)
        #[schema(items = {"type": "string", "description": "An address, `support+*@example.com` or `*@example.com`"})]
        inbound_addresses: Vec<AddressPattern> = domain.inbound_addresses.clone(),
        /// Whether opens are tracked by a pixel in the HTML
        open_tracking: bool = domain.delivery.open_tracking,
        /// Whether links in the HTML are rewritten to track clicks
        click_tracking: bool = domain.delivery.click_tracking,
        /// `opportunistic`: TLS if the remote host offers it; `enforced`: never without TLS
        #[schema(as = String, enum = ["opportunistic", "enforced"])]
        tls_mode: TlsMode = domain.delivery.tls_mode,
        /// Your own host for tracking links; null uses the service's host
        tracking_host: Option<DomainName> = domain.delivery.tracking_host.clone(),
        dkim: DomainDkimView = DomainDkimView {
            selector: domain.dkim.selector.clone(),
            key_bits: domain.dkim.rsa_bits,
            pending_selector: domain.next_dkim.as_ref().map(|next| next.selector.clone()),
            former_selector: former_key.map(|former_key| former_key.selector.clone()),
            former_until: former_key.map(|former_key| JsonTimestamp(former_key.until)),
        },
        /// Whether the service can sign for the domain
        dkim_ready: bool = setup.keys_open,
        /// The records to publish, the required ones first
        records: Vec<RecordView> = records
            .map(|record| {
                let finding = setup.finding(&record);
                RecordView::from_record(record, finding, default_text)
            })
            .collect(),
        /// Since when a required record is missing; after 72 hours the domain becomes unverified
        degraded_since: Option<JsonTimestamp> = setup.degraded_since.map(JsonTimestamp),
        /// When the domain was first verified
        verified_at: Option<JsonTimestamp> = domain.verified_at.map(JsonTimestamp),
        /// When the DNS was last checked
        last_checked_at: Option<JsonTimestamp> = setup.last_checked_at.map(JsonTimestamp),
        /// When the domain was added
        created_at: JsonTimestamp = JsonTimestamp(domain.created_at),
        /// When it was last changed
        updated_at: JsonTimestamp = JsonTimestamp(domain.updated_at.max(domain.created_at)),
    }
}

object_response! { "A domain", pub DomainResponse { domain: DomainView } as "OneDomain" }

/// A domain after a verification
#[derive(Debug, Serialize, ToSchema)]
#[schema(name = "VerifiedDomain")]
pub struct VerifyDomainResponse {
    domain: DomainView,
    /// Whether email can be sent from the domain; `records` shows what is missing
    verified: bool,
}

impl VerifyDomainResponse {
    pub(super) fn from_domain(domain: &DomainWithSetup, domains: &SendingDomains) -> Self {
        let verified = domain.domain.state == DomainState::Verified;
        Self { domain: DomainView::from_domain(domain, domains), verified }
    }
}

list_response! { pub DomainList { domains: DomainView } as "DomainList" }

impl DomainList {
    pub(super) fn from_domains(
        entry: impl Iterator<Item = DomainWithSetup>,
        domains: &SendingDomains,
        next: Option<String>,
    ) -> Self {
        let views = entry.map(|entry| DomainView::from_domain(&entry, domains)).collect();
        Self::new(views, next)
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

    fn into_response(self) -> Result<Response> {
        Ok(Self::with_body(self.0))
    }
}
