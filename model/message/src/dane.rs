//! DANE for SMTP (RFC 7672): usable TLSA records, and matching of a certificate.
//!
//! Only DANE-TA(2) and DANE-EE(3) are usable (RFC 7672 3.1.3). This module compares a record with a certificate or key.
//! The TLS client verifies the chain to a trust anchor.

use sha2::{Digest as _, Sha256, Sha512};

use crate::hexadecimal;

/// TLSA certificate usage (RFC 6698 2.1.1, RFC 7218 2.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TlsaUsage {
    /// DANE-TA(2): a trust anchor that the host's certificate must chain to.
    TrustAnchor = 2,
    /// DANE-EE(3): the host's own certificate or key.
    EndEntity = 3,
}

/// TLSA selector (RFC 6698 2.1.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TlsaSelector {
    /// Cert(0): the full certificate.
    Certificate = 0,
    /// SPKI(1): the SubjectPublicKeyInfo.
    PublicKey = 1,
}

/// TLSA matching type (RFC 6698 2.1.3).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TlsaMatchingType {
    /// Full(0): the exact bytes.
    Full = 0,
    /// SHA2-256(1).
    Sha256 = 1,
    /// SHA2-512(2).
    Sha512 = 2,
}

/// A usable TLSA record.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Tlsa {
    pub usage: TlsaUsage,
    pub selector: TlsaSelector,
    pub matching: TlsaMatchingType,
    /// Certificate association data: the bytes to compare with.
    pub data: Vec<u8>,
}

impl Tlsa {
    /// Creates a record from its numbers; `None` if it is unusable (RFC 7672 2.2, 3.1.3): another usage, an unknown
    /// selector or matching type, or data of a wrong length.
    pub fn from_fields(usage: u8, selector: u8, matching: u8, data: Vec<u8>) -> Option<Self> {
        let usage = match usage {
            2 => TlsaUsage::TrustAnchor,
            3 => TlsaUsage::EndEntity,
            _ => return None,
        };
        let selector = match selector {
            0 => TlsaSelector::Certificate,
            1 => TlsaSelector::PublicKey,
            _ => return None,
        };
        let (matching, length) = match matching {
            0 => (TlsaMatchingType::Full, None),
            1 => (TlsaMatchingType::Sha256, Some(32)),
            2 => (TlsaMatchingType::Sha512, Some(64)),
            _ => return None,
        };
        let fits = length.map_or(!data.is_empty(), |length| data.len() == length);
        fits.then_some(Self { usage, selector, matching, data })
    }

    /// True if the record matches a certificate, given as DER bytes and its SubjectPublicKeyInfo.
    pub fn matches(&self, certificate: &[u8], public_key: &[u8]) -> bool {
        let part = match self.selector {
            TlsaSelector::Certificate => certificate,
            TlsaSelector::PublicKey => public_key,
        };
        match self.matching {
            TlsaMatchingType::Full => self.data == part,
            TlsaMatchingType::Sha256 => self.data[..] == Sha256::digest(part)[..],
            TlsaMatchingType::Sha512 => self.data[..] == Sha512::digest(part)[..],
        }
    }

    /// The data of a `3 1 1` record for a public key in hex, as a host publishes it (RFC 7672 3.1.1).
    pub fn public_key_digest(public_key: &[u8]) -> String {
        hexadecimal::encode(Sha256::digest(public_key))
    }
}

impl std::fmt::Display for Tlsa {
    /// The presentation format in a zone file.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (usage, selector, matching) = (self.usage as u8, self.selector as u8, self.matching as u8);
        write!(f, "{usage} {selector} {matching} {}", hexadecimal::encode(&self.data))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_match_their_certificate_or_key() {
        let (certificate, key) = (b"certificate", b"key");
        for (selector, part) in [(0, &certificate[..]), (1, &key[..])] {
            for (matching, data) in
                [(0, part.to_vec()), (1, Sha256::digest(part).to_vec()), (2, Sha512::digest(part).to_vec())]
            {
                let record = Tlsa::from_fields(3, selector, matching, data).unwrap();
                assert!(record.matches(certificate, key), "{selector} {matching}");
                assert!(!record.matches(b"other", b"another"), "{selector} {matching}");
            }
        }
    }

    #[test]
    fn unusable_records_are_refused() {
        let digest = || vec![0; 32];
        assert!(Tlsa::from_fields(2, 1, 1, digest()).is_some());
        for (usage, selector, matching, data) in [
            (0, 1, 1, digest()),
            (1, 1, 1, digest()),
            (4, 1, 1, digest()),
            (3, 2, 1, digest()),
            (3, 1, 3, digest()),
            (3, 1, 1, vec![0; 31]),
            (3, 1, 2, digest()),
            (3, 1, 0, Vec::new()),
        ] {
            assert_eq!(Tlsa::from_fields(usage, selector, matching, data), None, "{usage} {selector} {matching}");
        }
    }

    #[test]
    fn the_digest_of_a_key_is_hex() {
        assert_eq!(Tlsa::public_key_digest(b"").len(), 64);
    }
}
