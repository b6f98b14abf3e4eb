//! Domain setup: the DNS records that a domain needs, and the check result of each.
//!
//! ```text
//! SendingDomain + ServiceHosts ─► required_records ─► DomainRecord ─► DNS check ─► RecordFinding ─► DomainSetup
//! ```
//!
//! One function determines the records of a domain, so that the page, the zone file, the check and the DNS provider
//! integration agree.

mod assess;
mod zone_file;

use jiff::Timestamp;
use message::address::DomainName;
use message::{hexadecimal, words};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::domain::{DomainState, SealedDkimKeys, SendingDomain, ed25519_selector};
use crate::id::AccountId;

pub use assess::{DomainObservation, assess, next_check};
pub use zone_file::zone_file;

/// TTL of the records in seconds: a mistake can be corrected within the hour.
const TTL_S: u32 = 3_600;
/// Preference of the MX record.
const PRIORITY: u16 = 10;
/// Label of the return path host.
pub const RETURN_PATH_LABEL: &str = "rp";

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RecordPurpose {
    /// Proof of ownership: TXT at the ownership label.
    Ownership,
    /// Public key for DKIM signatures (RFC 6376 3.6.1).
    Dkim,
    /// Destination of bounces: CNAME at `rp`.
    ReturnPath,
    /// Authorized senders (RFC 7208): TXT at the domain.
    Spf,
    /// Policy for mail that fails authentication (RFC 7489).
    Dmarc,
    /// Destination of the domain's mail: MX.
    Inbound,
    /// Destination of tracking links: CNAME at the tracking host.
    Tracking,
}

words! {
    RecordType {
        Txt = "TXT",
        Cname = "CNAME",
        Mx = "MX",
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DomainRecord {
    pub purpose: RecordPurpose,
    #[serde(rename = "type")]
    pub record_type: RecordType,
    /// Full name in ASCII, lower case, without the trailing dot.
    pub name: String,
    /// Value as entered at a DNS provider: TXT unquoted and unsplit, host names without the trailing dot.
    pub value: String,
    /// TTL in seconds.
    pub ttl_s: u32,
    /// Preference of an MX record.
    pub priority: Option<u16>,
    /// The domain cannot be verified without this record.
    pub required: bool,
}

/// Check result of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RecordStatus {
    /// Not checked yet, or the name servers did not respond.
    Pending,
    /// Published correctly.
    Verified,
    Missing,
    /// A record of this kind exists with a wrong value.
    Mismatch,
    /// An existing record prevents publication beside it.
    Conflict,
}

/// Result of checking one record.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecordFinding {
    pub status: RecordStatus,
    /// Values found in the DNS: TXT strings joined; the number and the length are bounded.
    pub found: Vec<String>,
    /// The problem and its fix, in one or two sentences. A verified record has one too if it works but is unwise.
    /// `None` if all is well.
    pub error: Option<String>,
    /// Value to publish instead of the record's own, if it depends on an existing record: the merged SPF record.
    pub merged: Option<String>,
    pub checked_at: Timestamp,
}

/// Host names of the installation that appear in customers' records.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServiceHosts {
    /// Target of the CNAME `rp.{domain}`.
    pub return_path_host: DomainName,
    /// Host that a domain's SPF record includes.
    pub spf_include_host: DomainName,
    /// Label of the ownership record.
    pub ownership_label: String,
    /// Host that receives mail.
    pub mail_host: DomainName,
    /// Target of a tracking host's CNAME; the mail host is used if the API has no host name.
    pub pages_host: Option<DomainName>,
}

impl ServiceHosts {
    /// Returns whether a name is a host of the service. Customers cannot claim such names.
    pub fn is_service_host(&self, name: &DomainName) -> bool {
        [Some(&self.return_path_host), Some(&self.spf_include_host), Some(&self.mail_host), self.pages_host.as_ref()]
            .contains(&Some(name))
    }

    /// The records of a domain: those required for verification, and optional ones.
    pub fn required_records(&self, domain: &SendingDomain) -> Vec<DomainRecord> {
        let name = domain.name.as_str();
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
        // An MX record published earlier would attract mail that is rejected.
        if domain.inbound_enabled && domain.state == DomainState::Verified {
            let mail_host = self.mail_host.to_string();
            let record = required(RecordPurpose::Inbound, RecordType::Mx, name.to_owned(), mail_host);
            records.push(DomainRecord { priority: Some(PRIORITY), ..optional(record) });
        }
        if let Some(host) = &domain.delivery.tracking_host {
            // If the API is reachable by IP address only, the mail host still has a name.
            let (host, pages) = (host.to_string(), self.pages_host.as_ref().unwrap_or(&self.mail_host));
            records.push(optional(required(RecordPurpose::Tracking, RecordType::Cname, host, pages.to_string())));
        }
        records
    }

    /// The record that proves that a domain belongs to an account. Only the domain's DNS owner can publish it, so the
    /// value need not be secret; it only has to be specific to the account.
    pub fn ownership_record(&self, account: AccountId, name: &DomainName) -> DomainRecord {
        let digest = Sha256::digest(format!("ownership {account} {name}"));
        let token = hexadecimal::encode(&digest[..16]);
        let (name, value) = (format!("{}.{name}", self.ownership_label), format!("postrider-verification={token}"));
        required(RecordPurpose::Ownership, RecordType::Txt, name, value)
    }
}

/// A record that is required for verification.
fn required(purpose: RecordPurpose, record_type: RecordType, name: String, value: String) -> DomainRecord {
    DomainRecord { purpose, record_type, name, value, ttl_s: TTL_S, priority: None, required: true }
}

/// The check result of one record.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CheckedRecord {
    pub name: String,
    /// Purpose, because several records share the domain's own name.
    pub purpose: RecordPurpose,
    pub finding: RecordFinding,
}

/// The verification state of a domain.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DomainSetup {
    /// Result of the last check of each record.
    pub checked: Vec<CheckedRecord>,
    /// Time of the last check.
    pub last_checked_at: Option<Timestamp>,
    /// Time since which a required record of a verified domain is missing.
    pub degraded_since: Option<Timestamp>,
    /// Time since which the records of an unverified domain are checked.
    pub since: Timestamp,
    /// Time of the next automatic check; `None` if there is none.
    pub due: Option<Timestamp>,
    /// The operator declared the domain verified; check results cannot revoke this.
    #[serde(default, rename = "vouched", skip_serializing_if = "std::ops::Not::not")]
    pub operator_verified: bool,
    /// The domain's DKIM keys could be decrypted and used at the last check.
    pub keys_open: bool,
}

impl DomainSetup {
    /// Creates the state of a domain that was never checked.
    pub fn new(now: Timestamp) -> Self {
        Self {
            checked: Vec::new(),
            last_checked_at: None,
            degraded_since: None,
            since: now,
            due: None,
            operator_verified: false,
            keys_open: true,
        }
    }

    /// The check result of a record.
    pub fn finding(&self, record: &DomainRecord) -> Option<&RecordFinding> {
        let same = |checked: &&CheckedRecord| checked.purpose == record.purpose && checked.name == record.name;
        self.checked.iter().find(same).map(|checked| &checked.finding)
    }
}
