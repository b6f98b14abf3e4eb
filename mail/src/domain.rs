//! A sending domain: a name that an account may send from, and the keys that sign for it.

use std::fmt;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::address::{Address, DomainName};
use crate::address_pattern::AddressPattern;
use crate::id::{AccountId, DomainId};

/// Whether the domain's records were found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DomainState {
    /// Not yet, or no more.
    Unverified,
    /// Mail may be sent from it.
    Verified,
}

/// A private key, sealed for storage (AES-256-GCM under the installation's key); base 64.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct SealedSecret(pub String);

impl fmt::Debug for SealedSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SealedKey(hidden)")
    }
}

/// The DKIM keys of a domain (RFC 6376; Ed25519: RFC 8463).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SealedDkimKeys {
    /// The RSA key's selector; the Ed25519 key's is the same with an `e` at its end.
    pub selector: String,
    /// Value of the TXT record at `{selector}._domainkey.{domain}`.
    pub rsa_record: String,
    /// The RSA key.
    pub rsa: SealedSecret,
    /// Value of the TXT record at `{selector}e._domainkey.{domain}`.
    pub ed25519_record: String,
    /// The Ed25519 key.
    pub ed25519: SealedSecret,
    /// The Ed25519 record was seen in DNS: mail is signed with that key too.
    pub ed25519_published: bool,
    /// How long the RSA key is.
    pub rsa_bits: u16,
}

impl SealedDkimKeys {
    /// The selector of the Ed25519 key.
    #[must_use]
    pub fn ed25519_selector(&self) -> String {
        ed25519_selector(&self.selector)
    }
}

/// The selector of the Ed25519 key beside the RSA key of this one.
#[must_use]
pub fn ed25519_selector(selector: &str) -> String {
    format!("{selector}e")
}

/// The records of keys that signed until others took their place: mail that they signed is still on its way, and
/// is checked against them when it arrives.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RetiredDkimRecords {
    /// The RSA key's selector.
    pub selector: String,
    /// Value of the TXT record at `{selector}._domainkey.{domain}`.
    pub rsa_record: String,
    /// Value of the TXT record at `{selector}e._domainkey.{domain}`, if that key signed too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ed25519_record: Option<String>,
    /// The records are to stand until then.
    pub until: Timestamp,
}

/// What is asked of TLS on the way of a domain's mail.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TlsMode {
    /// TLS where it is offered, else in the clear.
    #[default]
    Opportunistic,
    /// Never in the clear: what cannot go over TLS waits, and fails when its time is up.
    Enforced,
}

/// How a domain's mail is treated on its way (email-api.md, "Sending domain": delivery settings).
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct DeliverySettings {
    /// HTML gets a pixel.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub open_tracking: bool,
    /// Links in HTML lead through us.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub click_tracking: bool,
    /// What is asked of TLS.
    #[serde(default)]
    pub tls_mode: TlsMode,
    /// The customer's host for tracking links, whose CNAME leads to us; none for our own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tracking_host: Option<DomainName>,
    /// The tracking host whose record was seen: links lead nowhere before that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tracking_seen: Option<DomainName>,
}

impl DeliverySettings {
    /// The customer's host that links begin with: the tracking host, once its record was seen.
    #[must_use]
    pub fn tracking_link_host(&self) -> Option<&DomainName> {
        self.tracking_host.as_ref().filter(|host| self.tracking_seen.as_ref() == Some(host))
    }

    /// Whether nothing was set: the row need not say so.
    #[must_use]
    pub fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

/// A sending domain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SendingDomain {
    /// Its id.
    pub id: DomainId,
    /// Whose it is.
    pub account: AccountId,
    /// Its name.
    pub name: DomainName,
    /// Whether mail may be sent from it.
    pub state: DomainState,
    /// The keys that sign for it.
    pub dkim: SealedDkimKeys,
    /// Keys that sign in place of those as soon as their record is seen.
    pub next_dkim: Option<SealedDkimKeys>,
    /// The keys that signed before.
    pub former_dkim: Option<RetiredDkimRecords>,
    /// How its mail is treated.
    pub delivery: DeliverySettings,
    /// Mail to the domain is taken in.
    pub inbound_enabled: bool,
    /// For these addresses only; none means for every one (a catch-all).
    pub inbound_addresses: Vec<AddressPattern>,
    /// When it was added.
    pub created_at: Timestamp,
    /// When its records were first found.
    pub verified_at: Option<Timestamp>,
    /// When it was last changed: its settings, its keys or its state.
    pub updated_at: Timestamp,
}

/// Patterns of addresses that a domain may take mail in for.
pub const INBOUND_ADDRESSES_MAX: usize = 100;
/// The mailbox that every domain with mail has (RFC 5321 4.5.1).
const POSTMASTER: &str = "postmaster";

impl SendingDomain {
    /// Whether mail for addresses of it is taken in.
    #[must_use]
    pub fn accepts_inbound(&self) -> bool {
        self.inbound_enabled && self.state == DomainState::Verified
    }

    /// Whether this is one of the addresses that it takes mail in for.
    #[must_use]
    pub fn accepts_address(&self, address: &Address) -> bool {
        self.inbound_addresses.is_empty()
            || self.inbound_addresses.iter().any(|pattern| pattern.matches(address))
            || address.unquoted_local_part().eq_ignore_ascii_case(POSTMASTER)
    }
}
