//! A domain's setup: the DNS records that it needs, and what was found of each.
//!
//! [`Record`] is what is to be published; [`Finding`] is what a look at the DNS said of it. What the records of a
//! domain are is decided in one place, so that the page that lists them, the zone file, the check and the
//! provider that publishes them speak of the same.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// What a record is for (completions-email.md 2.4).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Purpose {
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
pub struct Record {
    /// What it is for.
    pub purpose: Purpose,
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
pub struct Finding {
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
