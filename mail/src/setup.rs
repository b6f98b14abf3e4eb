//! A domain's setup: the DNS records that it needs, and what was found of each.
//!
//! ```text
//! Domain + Facts ─► records ─► Record ─► a look at the DNS ─► Finding ─► Setup
//! ```
//!
//! What the records of a domain are is decided in one place, so that the page that lists them, the zone file, the
//! check and the provider that publishes them speak of the same.

mod assess;
mod zone;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::address::DomainName;
use crate::domain::{DomainState, SealedDkimKeys, SendingDomain, ed25519_selector};
use crate::id::AccountId;

pub use assess::{DomainObservation, assess, next_check};
pub use zone::zone_file;

/// How long a record may be kept: short enough to mend a mistake within the hour.
const TTL_S: u32 = 3_600;
/// The preference of our MX record.
const PRIORITY: u16 = 10;
/// The label of the return path.
pub const RETURN_PATH_LABEL: &str = "rp";

/// What a record is for (completions-email.md 2.4).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RecordPurpose {
    /// That the domain is the account's: TXT at the ownership label.
    Ownership,
    /// A public key that signatures are checked with (RFC 6376 3.6.1).
    Dkim,
    /// Where bounces go: CNAME at `rp`.
    ReturnPath,
    /// Who may send (RFC 7208): TXT at the domain.
    Spf,
    /// What is done with mail that fails (RFC 7489).
    Dmarc,
    /// Where the domain's mail goes: MX.
    Inbound,
    /// Where tracking links lead: CNAME at the tracking host.
    Tracking,
}

/// The type of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum RecordType {
    /// Text.
    Txt,
    /// An alias.
    Cname,
    /// A mail host.
    Mx,
}

/// A record to publish.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DomainRecord {
    /// What it is for.
    pub purpose: RecordPurpose,
    /// Its type.
    #[serde(rename = "type")]
    pub record_type: RecordType,
    /// Its full name, in ASCII, lower case, without the dot at the end.
    pub name: String,
    /// Its value as one writes it at a provider: a TXT value unquoted and unsplit, a host without the dot at the end.
    pub value: String,
    /// How long it may be kept, in seconds.
    pub ttl_s: u32,
    /// The preference of an MX record.
    pub priority: Option<u16>,
    /// Whether the domain is verified only with it.
    pub required: bool,
}

/// What became of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RecordStatus {
    /// Not looked for yet, or no answer could be had.
    Pending,
    /// It is there, as it should be.
    Verified,
    /// Nothing is there.
    Missing,
    /// Something of its kind is there, and it is not right.
    Mismatch,
    /// Something is there that keeps it from being published beside it.
    Conflict,
}

/// What a look at the DNS said of one record.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecordFinding {
    /// What became of it.
    pub status: RecordStatus,
    /// What stands there, as the DNS has it: TXT strings joined, at most some, each cut short.
    pub found: Vec<String>,
    /// What is wrong and what to do about it: one plain sentence or two. `None` when all is well; a record that
    /// is verified has one when it works and something about it is unwise.
    pub error: Option<String>,
    /// What to publish in place of the record's own value, where that depends on what is there: the SPF record
    /// that holds both.
    pub merged: Option<String>,
    /// When it was looked at.
    pub checked_at: Timestamp,
}

/// What of the installation stands in its customers' records.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServiceHosts {
    /// What `rp.{domain}` is an alias of.
    pub return_path_host: DomainName,
    /// What the SPF record of a domain includes.
    pub spf_include_host: DomainName,
    /// The label of the ownership record.
    pub ownership_label: String,
    /// Takes in mail.
    pub mail_host: DomainName,
    /// What a tracking host is an alias of; the mail host, when the API has no name.
    pub pages_host: Option<DomainName>,
}

impl ServiceHosts {
    /// Whether a name is one of the service's own hosts: what customers' records lead to is no customer's.
    #[must_use]
    pub fn is_service_host(&self, name: &DomainName) -> bool {
        [Some(&self.return_path_host), Some(&self.spf_include_host), Some(&self.mail_host), self.pages_host.as_ref()]
            .contains(&Some(name))
    }

    /// The records that a domain needs, the required ones first.
    #[must_use]
    pub fn required_records(&self, domain: &SendingDomain) -> Vec<DomainRecord> {
        let name = domain.name.as_str();
        let required = |purpose, record_type, name, value| DomainRecord {
            purpose,
            record_type,
            name,
            value,
            ttl_s: TTL_S,
            priority: None,
            required: true,
        };
        let optional = |record: DomainRecord| DomainRecord { required: false, ..record };
        let key = |selector: &str, value: &str| {
            required(RecordPurpose::Dkim, RecordType::Txt, format!("{selector}._domainkey.{name}"), value.to_owned())
        };
        let keys = |dkim: &SealedDkimKeys| {
            [key(&dkim.selector, &dkim.rsa_record), optional(key(&dkim.ed25519_selector(), &dkim.ed25519_record))]
        };
        let return_path = format!("{RETURN_PATH_LABEL}.{name}");
        let spf = format!("v=spf1 include:{} ~all", self.spf_include_host);
        let dmarc = format!("v=DMARC1; p=none; rua=mailto:dmarc@{}", self.return_path_host);
        let mut records = vec![self.ownership_record(domain.account, &domain.name)];
        records.extend(keys(&domain.dkim));
        records.push(required(
            RecordPurpose::ReturnPath,
            RecordType::Cname,
            return_path,
            self.return_path_host.to_string(),
        ));
        records.push(required(RecordPurpose::Spf, RecordType::Txt, name.to_owned(), spf));
        records.push(optional(required(RecordPurpose::Dmarc, RecordType::Txt, format!("_dmarc.{name}"), dmarc)));
        if let Some(next) = &domain.next_dkim {
            records.extend(keys(next).map(optional));
        }
        if let Some(former) = &domain.former_dkim {
            records.push(optional(key(&former.selector, &former.rsa_record)));
            let second = ed25519_selector(&former.selector);
            records.extend(former.ed25519_record.iter().map(|record| optional(key(&second, record))));
        }
        // Mail that came before we know the domain would be refused.
        if domain.inbound_enabled && domain.state == DomainState::Verified {
            let mail_host = self.mail_host.to_string();
            let record = required(RecordPurpose::Inbound, RecordType::Mx, name.to_owned(), mail_host);
            records.push(DomainRecord { priority: Some(PRIORITY), ..optional(record) });
        }
        if let Some(host) = &domain.delivery.tracking_host {
            // Where the API is reached by an address alone, the machine has a name still.
            let (host, pages) = (host.to_string(), self.pages_host.as_ref().unwrap_or(&self.mail_host));
            records.push(optional(required(RecordPurpose::Tracking, RecordType::Cname, host, pages.to_string())));
        }
        records
    }

    /// The record that shows that a domain is an account's. Nobody else can publish it there; so it need not be
    /// a secret, only one of the account's own.
    #[must_use]
    pub fn ownership_record(&self, account: AccountId, name: &DomainName) -> DomainRecord {
        let digest = Sha256::digest(format!("ownership {account} {name}"));
        let token: String = digest.iter().take(16).map(|byte| format!("{byte:02x}")).collect();
        DomainRecord {
            purpose: RecordPurpose::Ownership,
            record_type: RecordType::Txt,
            name: format!("{}.{name}", self.ownership_label),
            value: format!("postrider-verification={token}"),
            ttl_s: TTL_S,
            priority: None,
            required: true,
        }
    }
}

/// What was found of one record.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CheckedRecord {
    /// Which record: its name.
    pub name: String,
    /// And what it is for: the domain's own name has several.
    pub purpose: RecordPurpose,
    /// What was found.
    pub finding: RecordFinding,
}

/// How far a domain's records are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DomainSetup {
    /// What was found of each, when it was last looked.
    pub checked: Vec<CheckedRecord>,
    /// When that was.
    pub last_checked_at: Option<Timestamp>,
    /// Since when a required record of a verified domain is gone.
    pub degraded_since: Option<Timestamp>,
    /// Since when it is looked for the records of a domain that is not verified.
    pub since: Timestamp,
    /// When it is looked next by itself; none when it is looked no more.
    pub due: Option<Timestamp>,
    /// The operator has taken the domain as verified: what the DNS says takes nothing away.
    pub vouched: bool,
    /// Our own keys could be opened and sign, when it was last looked.
    pub keys_open: bool,
}

impl DomainSetup {
    /// Of a domain that was never looked at.
    #[must_use]
    pub fn new(now: Timestamp) -> Self {
        Self {
            checked: Vec::new(),
            last_checked_at: None,
            degraded_since: None,
            since: now,
            due: None,
            vouched: false,
            keys_open: true,
        }
    }

    /// What was found of a record.
    #[must_use]
    pub fn finding(&self, record: &DomainRecord) -> Option<&RecordFinding> {
        let same = |checked: &&CheckedRecord| checked.purpose == record.purpose && checked.name == record.name;
        self.checked.iter().find(same).map(|checked| &checked.finding)
    }
}
