//! Credentials of programs: API keys and SMTP credentials.
//!
//! A secret has a prefix that secret scanners recognise, 32 random base62 characters (190 bits) and a checksum of six
//! characters. The checksum distinguishes a mistyped secret from a revoked one without a lookup.
//!
//! Only the SHA-256 of the part after the prefix is stored. The random part cannot be guessed, so a slow password hash
//! is not needed. `stx_…` and `rnl_…` with the same random part are the same key.

use std::fmt;
use std::net::IpAddr;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jiff::Timestamp;
use message::words;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use sha2::{Digest, Sha256};

use crate::cidr::IpNetwork;
use crate::client_policy::ClientPolicy;
use crate::id::{AccountId, ApiKeyId, DomainId, GrantId, SmtpCredentialId};
use crate::redacted;

pub const API_KEY_PREFIX: &str = "rnl_";
/// Former prefix of API keys, which is still accepted.
pub const API_KEY_PREFIX_LEGACY: &str = "stx_";
pub const SMTP_PASSWORD_PREFIX: &str = "stxsmtp_";

const RANDOM_CHARS: usize = 32;
const CHECK_CHARS: usize = 6;
const BASE62: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

/// A secret in plain text, shown once to the user who created it. Its Debug form hides it.
#[derive(Clone, PartialEq, Eq)]
pub struct CredentialSecret(String);

impl CredentialSecret {
    /// Creates a secret from 32 random bytes.
    pub fn new(prefix: &'static str, random: [u8; RANDOM_CHARS]) -> Self {
        let mut text = String::from(prefix);
        // 256 is not a multiple of 62: the first eight characters are slightly more likely. This costs less than 0.01
        // bit per character.
        text.extend(random.iter().map(|b| char::from(BASE62[usize::from(*b) % 62])));
        let check = checksum(&text.as_bytes()[prefix.len()..]);
        text.push_str(&check);
        Self(text)
    }

    /// The secret in plain text.
    pub fn expose(&self) -> &str {
        &self.0
    }

    /// A hint that can be displayed: the prefix and the last four characters.
    pub fn hint(&self) -> String {
        let prefix = self.0.split_inclusive('_').next().unwrap_or_default();
        format!("{prefix}...{}", &self.0[self.0.len().saturating_sub(4)..])
    }
}

redacted!(CredentialSecret, "Secret(hidden)");

fn checksum(random: &[u8]) -> String {
    let digest = Sha256::digest(random);
    let mut number = u64::from_be_bytes([0, 0, digest[0], digest[1], digest[2], digest[3], digest[4], digest[5]]);
    let mut text = String::with_capacity(CHECK_CHARS);
    for _ in 0..CHECK_CHARS {
        text.push(char::from(BASE62[usize::try_from(number % 62).unwrap_or(0)]));
        number /= 62;
    }
    text
}

/// The stored form of a secret: SHA-256 of the part after the prefix.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct SecretHash([u8; 32]);

impl SecretHash {
    /// Hashes an API key (`rnl_…` or `stx_…`); `None` if the text has another format.
    pub fn from_api_key(secret: &str) -> Option<Self> {
        let rest = secret.strip_prefix(API_KEY_PREFIX).or_else(|| secret.strip_prefix(API_KEY_PREFIX_LEGACY))?;
        Self::from_secret(rest)
    }

    /// Hashes an SMTP password; `None` if the text has another format.
    pub fn from_smtp_password(secret: &str) -> Option<Self> {
        Self::from_secret(secret.strip_prefix(SMTP_PASSWORD_PREFIX)?)
    }

    fn from_secret(rest: &str) -> Option<Self> {
        let plausible = (16..=128).contains(&rest.len()) && rest.bytes().all(|b| b.is_ascii_alphanumeric());
        plausible.then(|| Self(Sha256::digest(rest.as_bytes()).into()))
    }

    /// Hashes another secret that consists of random bytes.
    pub fn from_bytes(secret: &[u8]) -> Self {
        Self(Sha256::digest(secret).into())
    }

    /// The bytes for a storage key.
    pub fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

impl Serialize for SecretHash {
    fn serialize<S: Serializer>(&self, out: S) -> Result<S::Ok, S::Error> {
        out.serialize_str(&URL_SAFE_NO_PAD.encode(self.0))
    }
}

impl<'de> Deserialize<'de> for SecretHash {
    fn deserialize<D: Deserializer<'de>>(input: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<'de, str>::deserialize(input)?;
        let bytes = URL_SAFE_NO_PAD.decode(text.as_bytes()).map_err(D::Error::custom)?;
        bytes.try_into().map(Self).map_err(|_| D::Error::custom("not 32 bytes"))
    }
}

/// The secret hashes of a credential. After a rotation the former secret is accepted for a limited time.
#[message::row::omit_none]
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct CredentialSecrets {
    /// The current secret. `None` in rows of the first version: then any secret that leads to the row is accepted.
    pub current: Option<SecretHash>,
    /// The secret before the last rotation.
    pub former: Option<SecretHash>,
    /// End of the time in which the former secret is accepted.
    pub former_until: Option<Timestamp>,
}

impl CredentialSecrets {
    /// The secrets of a credential that was never rotated.
    pub fn single(hash: SecretHash) -> Self {
        Self { current: Some(hash), ..Self::default() }
    }

    /// The secrets after a rotation. The former secret is accepted until `former_until`.
    pub fn rotate(&self, to: SecretHash, former_until: Timestamp) -> Self {
        Self { current: Some(to), former: self.current, former_until: Some(former_until) }
    }

    /// True if this secret, whose lookup found the credential, is still accepted.
    pub fn accepts(&self, presented: &SecretHash, now: Timestamp) -> bool {
        match &self.current {
            None => true,
            Some(current) if current == presented => true,
            Some(_) => {
                self.former.is_none_or(|former| former == *presented)
                    && self.former_until.is_some_and(|until| now < until)
            }
        }
    }

    /// The current and the former secret.
    pub fn all(&self) -> impl Iterator<Item = &SecretHash> {
        self.current.iter().chain(&self.former)
    }
}

/// Conditions under which a credential is accepted.
#[message::row::omit_empty]
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct CredentialPolicy {
    /// If set, the credential can send from this domain only.
    pub domain: Option<DomainId>,
    /// Networks from which the credential is accepted; any if empty.
    pub allowed: Vec<IpNetwork>,
    pub expires_at: Option<Timestamp>,
    pub secrets: CredentialSecrets,
    /// The rules for the client below its scope.
    #[serde(default, rename = "policy", skip_serializing_if = "ClientPolicy::is_empty")]
    pub client: ClientPolicy,
}

/// The reason why an existing credential is rejected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CredentialRejection {
    /// The secret or the credential has expired.
    Expired,
    /// The client's address is in none of the allowed networks.
    AddressNotAllowed,
}

impl CredentialPolicy {
    /// True if these conditions, in place of `before`, permit something that `before` does not: another address, or
    /// another use. It is true, too, if that cannot be told.
    pub fn loosens(&self, before: &Self) -> bool {
        let was_allowed = |network: &IpNetwork| before.allowed.iter().any(|former| former.covers(network));
        let addresses =
            !before.allowed.is_empty() && (self.allowed.is_empty() || !self.allowed.iter().all(was_allowed));
        addresses || self.client.loosens(&before.client)
    }

    /// Checks a secret that a client presents from an address.
    pub fn authorize(
        &self,
        presented: &SecretHash,
        from: Option<IpAddr>,
        now: Timestamp,
    ) -> Result<(), CredentialRejection> {
        if !self.secrets.accepts(presented, now) || self.expires_at.is_some_and(|end| end <= now) {
            return Err(CredentialRejection::Expired);
        }
        // An unknown address is in no network.
        let covers_client = |network: &IpNetwork| from.is_some_and(|address| network.contains(address));
        if self.allowed.is_empty() || self.allowed.iter().any(covers_client) {
            return Ok(());
        }
        Err(CredentialRejection::AddressNotAllowed)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct LastUse {
    pub at: Timestamp,
    /// The client's address, if known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<IpAddr>,
}

words! {
    /// The permissions of an API key.
    ApiKeyScope {
        /// All operations.
        Full = "full",
        /// Send email, and read the email that was sent with the same key.
        Sending = "sending",
    }
}

/// The id of the credential that a request was authenticated with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(untagged)]
pub enum CredentialId {
    ApiKey(ApiKeyId),
    Smtp(SmtpCredentialId),
    Grant(GrantId),
}

impl CredentialId {
    pub fn to_bytes(self) -> [u8; 16] {
        match self {
            Self::ApiKey(id) => id.to_bytes(),
            Self::Smtp(id) => id.to_bytes(),
            Self::Grant(id) => id.to_bytes(),
        }
    }
}

impl fmt::Display for CredentialId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ApiKey(id) => id.fmt(f),
            Self::Smtp(id) => id.fmt(f),
            Self::Grant(id) => id.fmt(f),
        }
    }
}

/// An API key without its secret.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ApiKey {
    pub id: ApiKeyId,
    pub account: AccountId,
    pub name: String,
    pub scope: ApiKeyScope,
    /// The displayable hint of the secret.
    pub hint: String,
    /// False if the key is disabled.
    pub enabled: bool,
    #[serde(default, skip_serializing_if = "message::row::is_default")]
    pub terms: CredentialPolicy,
    pub created_at: Timestamp,
}

/// An SMTP credential without its password.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SmtpCredential {
    pub id: SmtpCredentialId,
    pub account: AccountId,
    pub name: String,
    /// The displayable hint of the password.
    pub hint: String,
    /// False if the credential is disabled.
    pub enabled: bool,
    #[serde(default, skip_serializing_if = "message::row::is_default")]
    pub terms: CredentialPolicy,
    pub created_at: Timestamp,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_has_its_format_and_is_hidden_in_debug() {
        let secret = CredentialSecret::new(API_KEY_PREFIX, [7; 32]);
        assert_eq!(secret.expose().len(), 4 + 32 + 6);
        assert_eq!(format!("{secret:?}"), "Secret(hidden)");
        assert!(secret.hint().starts_with("rnl_..."), "{}", secret.hint());
    }

    #[test]
    fn policies_accept_and_reject() {
        let at = |second| Timestamp::from_second(second).unwrap();
        let [old, new, other] = [[1; 32], [2; 32], [3; 32]].map(|bytes| SecretHash::from_bytes(&bytes));
        let mut terms = CredentialPolicy { secrets: CredentialSecrets::single(old), ..CredentialPolicy::default() };
        assert_eq!(terms.authorize(&old, None, at(0)), Ok(()));
        assert_eq!(terms.authorize(&other, None, at(0)), Err(CredentialRejection::Expired));
        terms.secrets = terms.secrets.rotate(new, at(10));
        for (presented, second, in_) in [(new, 99, true), (old, 9, true), (old, 10, false), (other, 9, false)] {
            assert_eq!(terms.authorize(&presented, None, at(second)).is_ok(), in_, "{second}");
        }
        terms.expires_at = Some(at(50));
        assert!(terms.authorize(&new, None, at(49)).is_ok() && terms.authorize(&new, None, at(50)).is_err());
        terms.allowed = vec!["192.0.2.0/24".parse().unwrap()];
        let from = |text: &str| Some(text.parse().unwrap());
        assert_eq!(terms.authorize(&new, from("::ffff:192.0.2.9"), at(0)), Ok(()));
        assert_eq!(terms.authorize(&new, from("192.0.3.9"), at(0)), Err(CredentialRejection::AddressNotAllowed));
        assert_eq!(terms.authorize(&new, None, at(0)), Err(CredentialRejection::AddressNotAllowed));
        // A row of the first version has no hash: any secret that leads to it is accepted until the first rotation.
        let first = CredentialSecrets::default();
        assert!(first.accepts(&old, at(0)));
        let rotated = first.rotate(new, at(10));
        assert!(rotated.accepts(&old, at(9)) && !rotated.accepts(&old, at(10)));
    }

    #[test]
    fn a_credential_id_is_serialized_as_text() {
        let key = CredentialId::ApiKey(ApiKeyId::from_bytes([1; 16]));
        let smtp = CredentialId::Smtp(SmtpCredentialId::from_bytes([1; 16]));
        let grant = CredentialId::Grant(GrantId::from_bytes([1; 16]));
        for (id, prefix) in [(key, "key_"), (smtp, "smtp_"), (grant, "grant_")] {
            let text = serde_json::to_value(id).unwrap();
            assert!(text.as_str().unwrap().starts_with(prefix) && text == id.to_string());
            assert_eq!(serde_json::from_value::<CredentialId>(text).unwrap(), id);
        }
    }

    #[test]
    fn old_and_new_prefixes_mean_the_same_key() {
        let rest = "ABCDEFGHIJKLMNOPQRSTUVWXYZ012345";
        assert_eq!(SecretHash::from_api_key(&format!("rnl_{rest}")), SecretHash::from_api_key(&format!("stx_{rest}")));
        assert_ne!(SecretHash::from_api_key(&format!("rnl_{rest}")), None);
        assert_eq!(SecretHash::from_api_key(&format!("stxsmtp_{rest}")), None);
        assert_eq!(SecretHash::from_smtp_password("stxsmtp_short"), None);
    }
}
