//! Sending domain: a domain that an account sends from, with its DKIM keys and settings.

use jiff::Timestamp;
use message::address::{Address, DomainName};
use message::address_pattern::AddressPattern;
use message::words;
use serde::{Deserialize, Serialize};

use crate::id::{AccountId, DomainId};
use crate::redacted;

words! {
    /// Verification state of a domain.
    DomainState {
        /// The required DNS records were not found yet, or are missing again.
        Unverified = "unverified",
        /// Email can be sent from the domain.
        Verified = "verified",
    }
}

/// A secret encrypted for storage (AES-256-GCM with the installation's key), in base64.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct SealedSecret(pub String);

redacted!(SealedSecret, "SealedKey(hidden)");

fn usual_bits() -> u16 {
    2_048
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
fn is_usual(bits: &u16) -> bool {
    *bits == usual_bits()
}

/// A domain's DKIM keys (RFC 6376; Ed25519: RFC 8463), encrypted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SealedDkimKeys {
    /// Selector of the RSA key. The Ed25519 key's selector has an `e` appended.
    pub selector: String,
    /// Value of the TXT record at `{selector}._domainkey.{domain}`.
    pub rsa_record: String,
    pub rsa: SealedSecret,
    /// Value of the TXT record at `{selector}e._domainkey.{domain}`.
    pub ed25519_record: String,
    pub ed25519: SealedSecret,
    /// True once the Ed25519 record was found in DNS. Email is then signed with both keys.
    pub ed25519_published: bool,
    /// Length of the RSA key in bits.
    #[serde(default = "usual_bits", skip_serializing_if = "is_usual")]
    pub rsa_bits: u16,
}

impl SealedDkimKeys {
    pub fn ed25519_selector(&self) -> String {
        ed25519_selector(&self.selector)
    }
}

/// The Ed25519 key's selector for an RSA key's selector.
pub fn ed25519_selector(selector: &str) -> String {
    format!("{selector}e")
}

/// The DNS records of replaced keys. They stay published because email signed with these keys is still being verified.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RetiredDkimRecords {
    /// Selector of the RSA key.
    pub selector: String,
    /// Value of the TXT record at `{selector}._domainkey.{domain}`.
    pub rsa_record: String,
    /// Value of the TXT record at `{selector}e._domainkey.{domain}`, if the Ed25519 key was used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ed25519_record: Option<String>,
    /// The records must be published until this time.
    pub until: Timestamp,
}

words! {
    /// The TLS requirement for a domain's outgoing email.
    #[derive(Default)]
    TlsMode {
        /// TLS if the host offers it, plain text otherwise.
        #[default]
        Opportunistic = "opportunistic",
        /// Never plain text. Email that cannot be sent over TLS is deferred, and fails when its lifetime ends.
        Enforced = "enforced",
    }
}

/// Tracking and TLS settings of a domain.
#[message::row::omit_empty]
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct DeliverySettings {
    /// True if a tracking pixel is added to HTML.
    pub open_tracking: bool,
    /// True if links in HTML are rewritten.
    pub click_tracking: bool,
    #[serde(default)]
    pub tls_mode: TlsMode,
    /// The customer's host name for tracking links, a CNAME of the service's host. `None` uses the service's own host.
    pub tracking_host: Option<DomainName>,
    /// The tracking host whose DNS record was verified. Links use a tracking host only after that.
    pub tracking_seen: Option<DomainName>,
}

impl DeliverySettings {
    /// The customer's host for tracking links, if its DNS record was verified.
    pub fn tracking_link_host(&self) -> Option<&DomainName> {
        self.tracking_host.as_ref().filter(|host| self.tracking_seen.as_ref() == Some(host))
    }
}

/// A domain that an account sends from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SendingDomain {
    pub id: DomainId,
    pub account: AccountId,
    pub name: DomainName,
    pub state: DomainState,
    /// The keys that sign email.
    pub dkim: SealedDkimKeys,
    /// New keys that replace `dkim` once their DNS records are found.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_dkim: Option<SealedDkimKeys>,
    /// Records of the replaced keys.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub former_dkim: Option<RetiredDkimRecords>,
    /// True if email to the domain is received.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub inbound_enabled: bool,
    /// The addresses that receive email; empty for all (catch-all).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub inbound_addresses: Vec<AddressPattern>,
    #[serde(default, skip_serializing_if = "message::row::is_default")]
    pub delivery: DeliverySettings,
    pub created_at: Timestamp,
    /// When its DNS records were first found.
    pub verified_at: Option<Timestamp>,
    /// When its settings, keys or state last changed.
    #[serde(default, skip_serializing_if = "message::row::is_default")]
    pub updated_at: Timestamp,
}

/// Maximum number of inbound address patterns of a domain.
pub const INBOUND_ADDRESSES_MAX: usize = 100;
/// The mailbox that every receiving domain must have (RFC 5321 4.5.1).
const POSTMASTER: &str = "postmaster";

impl SendingDomain {
    /// True if the domain receives email: inbound is enabled and the domain is verified.
    pub fn accepts_inbound(&self) -> bool {
        self.inbound_enabled && self.state == DomainState::Verified
    }

    /// True if the domain receives email for this address.
    pub fn accepts_address(&self, address: &Address) -> bool {
        self.inbound_addresses.is_empty()
            || self.inbound_addresses.iter().any(|pattern| pattern.matches(address))
            || address.unquoted_local_part().eq_ignore_ascii_case(POSTMASTER)
    }
}
