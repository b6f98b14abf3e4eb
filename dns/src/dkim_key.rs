//! DKIM keys: generation, storage as PKCS#8, and the TXT record that publishes the public key.
//!
//! A domain has two keys. RSA-2048 is for all verifiers (RFC 8301 3.2: at least 1024, should be 2048). Ed25519 (RFC
//! 8463) is published under the RSA key's selector with an `e` appended. The private bytes are not part of the `Debug`
//! output; at rest they are encrypted by [`crate::secrets`].

use std::fmt;

use aws_lc_rs::encoding::{AsDer, Pkcs8V1Der, PublicKeyX509Der};
use aws_lc_rs::rsa::KeySize;
use aws_lc_rs::signature::{Ed25519KeyPair, KeyPair as _, RsaKeyPair};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use message::address::{AddressError, DomainName};
use rustls_pki_types::PrivateKeyDer;
use rustls_pki_types::pem::PemObject as _;
use thiserror::Error;

/// An error of a key or selector.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum DkimKeyError {
    /// The bytes are not a PKCS#8 key of the algorithm, so the stored row is damaged.
    #[error("invalid DKIM private key")]
    Malformed,
    /// Key generation failed; it can be retried.
    #[error("cannot generate a DKIM key")]
    Generate,
    /// The selector is not a valid DNS name.
    #[error("the DKIM selector is not a valid DNS name")]
    Selector,
    #[error("no DKIM key to sign with")]
    NoKey,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum KeyAlgorithm {
    /// RSA-2048 with SHA-256.
    Rsa,
    /// Ed25519 with SHA-256 (RFC 8463).
    Ed25519,
}

/// A private key with its public key.
#[derive(Clone, PartialEq, Eq)]
pub struct DkimKey {
    algorithm: KeyAlgorithm,
    pkcs8: Vec<u8>,
    public: String,
}

impl fmt::Debug for DkimKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DkimKey").field("algorithm", &self.algorithm).finish_non_exhaustive()
    }
}

impl Drop for DkimKey {
    fn drop(&mut self) {
        self.pkcs8.fill(0);
        // Prevents the compiler from optimizing the writes above away.
        std::hint::black_box(&self.pkcs8);
    }
}

impl DkimKey {
    /// Generates a key. RSA takes about 50 ms of CPU, sometimes several times as much, so run it off the event loop.
    pub fn generate(algorithm: KeyAlgorithm) -> Result<Self, DkimKeyError> {
        let pkcs8 = match algorithm {
            KeyAlgorithm::Rsa => {
                let pair = RsaKeyPair::generate(KeySize::Rsa2048).map_err(|_| DkimKeyError::Generate)?;
                let der: Pkcs8V1Der<'_> = pair.as_der().map_err(|_| DkimKeyError::Generate)?;
                der.as_ref().to_vec()
            }
            KeyAlgorithm::Ed25519 => {
                let pair = Ed25519KeyPair::generate().map_err(|_| DkimKeyError::Generate)?;
                pair.to_pkcs8().map_err(|_| DkimKeyError::Generate)?.as_ref().to_vec()
            }
        };
        Self::from_pkcs8(algorithm, pkcs8)
    }

    /// Parses a stored key.
    pub fn from_pkcs8(algorithm: KeyAlgorithm, pkcs8: Vec<u8>) -> Result<Self, DkimKeyError> {
        let public = match algorithm {
            KeyAlgorithm::Rsa => {
                let pair = RsaKeyPair::from_pkcs8(&pkcs8).map_err(|_| DkimKeyError::Malformed)?;
                let der: PublicKeyX509Der<'_> = pair.public_key().as_der().map_err(|_| DkimKeyError::Malformed)?;
                BASE64.encode(der.as_ref())
            }
            KeyAlgorithm::Ed25519 => {
                let pair = Ed25519KeyPair::from_pkcs8(&pkcs8).map_err(|_| DkimKeyError::Malformed)?;
                BASE64.encode(pair.public_key().as_ref())
            }
        };
        Ok(Self { algorithm, pkcs8, public })
    }

    /// Parses an RSA key in PEM: PKCS#8, or PKCS#1 as older versions of `openssl genrsa` write it.
    pub fn rsa_from_pem(pem: &str) -> Result<Self, DkimKeyError> {
        let malformed = |_| DkimKeyError::Malformed;
        let pkcs8 = match PrivateKeyDer::from_pem_slice(pem.as_bytes()).map_err(|_| DkimKeyError::Malformed)? {
            PrivateKeyDer::Pkcs8(der) => der.secret_pkcs8_der().to_vec(),
            PrivateKeyDer::Pkcs1(der) => {
                let pair = RsaKeyPair::from_der(der.secret_pkcs1_der()).map_err(|_| DkimKeyError::Malformed)?;
                let der: Pkcs8V1Der<'_> = pair.as_der().map_err(malformed)?;
                der.as_ref().to_vec()
            }
            _ => return Err(DkimKeyError::Malformed),
        };
        Self::from_pkcs8(KeyAlgorithm::Rsa, pkcs8)
    }

    /// The size of the key in bits; 256 for Ed25519.
    pub fn bits(&self) -> u16 {
        match self.algorithm {
            KeyAlgorithm::Ed25519 => 256,
            KeyAlgorithm::Rsa => {
                let modulus = RsaKeyPair::from_pkcs8(&self.pkcs8).map(|pair| pair.public_modulus_len() * 8);
                modulus.ok().and_then(|bits| u16::try_from(bits).ok()).unwrap_or_default()
            }
        }
    }

    pub fn algorithm(&self) -> KeyAlgorithm {
        self.algorithm
    }

    /// The private key, for encryption and signing only.
    pub fn pkcs8(&self) -> &[u8] {
        &self.pkcs8
    }

    pub fn public_key_base64(&self) -> &str {
        &self.public
    }

    /// The value of the TXT record that publishes the key (RFC 6376 3.6.1, RFC 8463 4). RSA's exceeds the 255 bytes of
    /// one DNS string and must be published as two strings.
    pub fn txt_record(&self) -> String {
        let k = match self.algorithm {
            KeyAlgorithm::Rsa => "rsa",
            KeyAlgorithm::Ed25519 => "ed25519",
        };
        format!("v=DKIM1; k={k}; p={}", self.public)
    }
}

/// The two keys of a domain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DkimKeys {
    /// Accepted by all verifiers.
    pub rsa: DkimKey,
    /// Published in addition, for verifiers that support it.
    pub ed25519: DkimKey,
}

impl DkimKeys {
    /// Generates both keys; see [`DkimKey::generate`] for the cost.
    pub fn generate() -> Result<Self, DkimKeyError> {
        Ok(Self { rsa: DkimKey::generate(KeyAlgorithm::Rsa)?, ed25519: DkimKey::generate(KeyAlgorithm::Ed25519)? })
    }
}

/// The name at which a key is published: `SELECTOR._domainkey.DOMAIN` (RFC 6376 3.6.2.1).
pub fn record_name(selector: &str, domain: &DomainName) -> Result<DomainName, DkimKeyError> {
    // Not converted from other scripts: `s=` must be the same as the label in the DNS.
    if !selector.is_ascii() {
        return Err(DkimKeyError::Selector);
    }
    domain.child(&format!("{selector}._domainkey")).map_err(|_: AddressError| DkimKeyError::Selector)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_published_and_hidden() {
        let keys = DkimKeys::generate().unwrap();
        let rsa = keys.rsa.txt_record();
        assert!(rsa.starts_with("v=DKIM1; k=rsa; p=MIIBIjANBgkqhkiG9w0BAQEFAAOCAQ8A"), "{rsa}");
        let ed = keys.ed25519.txt_record();
        assert_eq!(ed.len(), "v=DKIM1; k=ed25519; p=".len() + 44, "{ed}");
        let debug = format!("{keys:?}");
        assert!(!debug.contains("pkcs8") && debug.len() < 200, "{debug}");
        let again = DkimKey::from_pkcs8(KeyAlgorithm::Rsa, keys.rsa.pkcs8().to_vec()).unwrap();
        assert_eq!(again, keys.rsa);
        assert_eq!(DkimKey::from_pkcs8(KeyAlgorithm::Ed25519, keys.rsa.pkcs8().to_vec()), Err(DkimKeyError::Malformed));
    }

    #[test]
    fn record_names_contain_the_selector() {
        let domain: DomainName = "example.com".parse().unwrap();
        assert_eq!(record_name("sel1", &domain).unwrap().as_str(), "sel1._domainkey.example.com");
        for bad in ["a b", "", "s;", "s.", "\u{fc}", "s\r\n"] {
            assert_eq!(record_name(bad, &domain), Err(DkimKeyError::Selector), "{bad:?}");
        }
    }
}
