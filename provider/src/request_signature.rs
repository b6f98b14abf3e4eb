//! Signed requests of Domain Connect. The signature proves to the provider that the operator created the URL, so that
//! no other party can make a customer publish other records. Providers that require it have `syncPubKeyDomain` in the
//! template.
//!
//! ```text
//! query ─► RSA, SHA-256, with the operator's key ─► query & sig=… & key=LABEL
//! LABEL.syncPubKeyDomain TXT "p=1,a=RS256,d=…", "p=2,a=RS256,d=…"       the public key, in parts
//! ```
//!
//! Standard: draft-ietf-dconn-domainconnect, Digital Signature of Requests.

use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::signature::{RSA_PKCS1_SHA256, RsaKeyPair};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use message::address::DomainName;
use message::percent;
use thiserror::Error;

use dns::dkim_key::DkimKey;

/// Minimum size of the key in bits; shorter keys are insecure.
const BITS_MIN: u16 = 2_048;
/// Characters of the public key in one TXT record. With the other tags they fit into the 255 bytes of one string, which
/// some providers treat as the limit of a record.
const PART_CHARS: usize = 200;

/// The reason why a request key cannot be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum RequestKeyError {
    #[error(
        "not an RSA private key in PEM; create one with: openssl genpkey -algorithm RSA -pkeyopt rsa_keygen_bits:2048"
    )]
    Malformed,
    #[error("the key has {0} bits, but {min} are required", min = BITS_MIN)]
    Short(u16),
    /// The name has a single label, so it has no parent domain.
    #[error("the name must be below a domain, such as \"_dck1.example.net\"")]
    Name,
}

/// The key that signs requests, and the name at which its public key is published.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestKey {
    key: DkimKey,
    label: String,
    domain: DomainName,
}

impl RequestKey {
    /// Parses a private key in PEM; `name` is where the public key is published.
    ///
    /// # Errors
    /// The key or the name is invalid ([`RequestKeyError`]).
    pub fn new(pem: &str, name: &DomainName) -> Result<Self, RequestKeyError> {
        let key = DkimKey::rsa_from_pem(pem).map_err(|_| RequestKeyError::Malformed)?;
        if key.bits() < BITS_MIN {
            return Err(RequestKeyError::Short(key.bits()));
        }
        let (label, parent) = name.as_str().split_once('.').ok_or(RequestKeyError::Name)?;
        let domain = parent.parse().map_err(|_| RequestKeyError::Name)?;
        Ok(Self { key, label: label.to_owned(), domain })
    }

    /// The value of `syncPubKeyDomain` in the template.
    pub fn domain(&self) -> &DomainName {
        &self.domain
    }

    /// The TXT records that publish the public key, in parts.
    pub fn texts(&self) -> Vec<String> {
        let public = self.key.public_key_base64().as_bytes().chunks(PART_CHARS).map(String::from_utf8_lossy);
        public.zip(1..).map(|(part, number)| format!("p={number},a=RS256,d={part}")).collect()
    }

    /// Returns whether these texts, in any order, publish the key.
    pub fn is_published_by(&self, texts: &[String]) -> bool {
        let mut parts: Vec<(u32, &str)> = texts.iter().filter_map(|text| parse_part(text)).collect();
        parts.sort_by_key(|(number, _)| *number);
        parts.iter().map(|(_, data)| *data).collect::<String>() == self.key.public_key_base64()
    }

    /// Returns the query with its signature, or unchanged if signing fails.
    pub(super) fn sign(&self, query: &str) -> String {
        let Some(signature) = self.signature(query.as_bytes()) else { return query.to_owned() };
        format!("{query}&sig={}&key={}", percent::encode(&BASE64.encode(signature)), percent::encode(&self.label))
    }

    fn signature(&self, query: &[u8]) -> Option<Vec<u8>> {
        let pair = RsaKeyPair::from_pkcs8(self.key.pkcs8()).ok()?;
        let mut signature = vec![0; pair.public_modulus_len()];
        pair.sign(&RSA_PKCS1_SHA256, &SystemRandom::new(), query, &mut signature).ok()?;
        Some(signature)
    }
}

/// Parses the number and data of a part of a public key.
fn parse_part(text: &str) -> Option<(u32, &str)> {
    let field = |name: &str| {
        let mut fields = text.split(',').filter_map(|field| field.trim().split_once('='));
        fields.find(|(key, _)| *key == name).map(|(_, value)| value)
    };
    Some((field("p")?.parse().ok()?, field("d")?))
}

#[cfg(test)]
mod tests {
    use aws_lc_rs::signature::{RSA_PKCS1_2048_8192_SHA256, UnparsedPublicKey};
    use rustls_pki_types::pem::PemObject as _;

    use super::*;

    const KEY: &str = include_str!("../../dns/tests/keys/rsa2048.pkcs8.pem");

    #[test]
    fn signatures_verify_with_the_published_key() {
        let name: DomainName = "_dck1.connect.example.net".parse().unwrap();
        let key = RequestKey::new(KEY, &name).unwrap();
        assert_eq!(key.domain().as_str(), "connect.example.net");
        let texts = key.texts();
        assert!(texts.len() == 2 && texts.iter().all(|text| text.len() <= 255), "{texts:?}");
        assert!(texts[1].starts_with("p=2,a=RS256,d="), "{texts:?}");

        let query = "domain=acme.test&groupId=sending&spf=include%3Aspf.example.net";
        let signed = key.sign(query);
        let (all, label) = signed.split_once("&key=").unwrap();
        let (signed, signature) = all.split_once("&sig=").unwrap();
        assert_eq!((signed, label), (query, "_dck1"));
        // Verified like a provider does: the parts in order, an X.509 public key, the signature decoded.
        let data: String = texts.iter().map(|text| text.split_once("d=").unwrap().1).collect();
        let pem = format!("-----BEGIN PUBLIC KEY-----\n{data}\n-----END PUBLIC KEY-----\n");
        let public = rustls_pki_types::SubjectPublicKeyInfoDer::from_pem_slice(pem.as_bytes()).unwrap();
        let signature = BASE64.decode(percent::decode(signature).unwrap()).unwrap();
        let public = UnparsedPublicKey::new(&RSA_PKCS1_2048_8192_SHA256, public.as_ref());
        assert!(public.verify(query.as_bytes(), &signature).is_ok());
    }

    #[test]
    fn published_records_are_compared_in_any_order() {
        let key = RequestKey::new(KEY, &"_dck1.example.net".parse().unwrap()).unwrap();
        let mut texts = key.texts();
        texts.reverse();
        texts.push("v=spf1 -all".to_owned());
        assert!(key.is_published_by(&texts));
        assert!(!key.is_published_by(&texts[1..]) && !key.is_published_by(&[]));
    }

    #[test]
    fn unusable_keys_are_refused() {
        const SHORT: &str = include_str!("../../dns/tests/keys/rsa1024.pem");
        let name = |text: &str| text.parse::<DomainName>().unwrap();
        assert_eq!(RequestKey::new("no key", &name("a.example.net")), Err(RequestKeyError::Malformed));
        assert!(RequestKey::new(SHORT, &name("a.example.net")).is_err());
        assert_eq!(RequestKey::new(KEY, &name("localhost")), Err(RequestKeyError::Name));
    }
}
