//! DANE for SMTP (RFC 7672): TLSA records, which of them count, and whether a certificate is meant.
//!
//! Only DANE-TA(2) and DANE-EE(3) count (RFC 7672 3.1.3). What a trust anchor signed is for who has a TLS library at
//! hand to say; here a record and a certificate are compared.

use sha2::{Digest as _, Sha256, Sha512};

/// What a record names (RFC 6698 2.1.1, RFC 7218 2.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TlsaUsage {
    /// 2: an authority, by which the host's certificate must be signed.
    TrustAnchor,
    /// 3: the host's own certificate or key.
    EndEntity,
}

/// Which part of a certificate it names (RFC 6698 2.1.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TlsaSelector {
    /// 0: all of it.
    Certificate,
    /// 1: the public key with its kind (SubjectPublicKeyInfo).
    PublicKey,
}

/// How it names it (RFC 6698 2.1.3).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TlsaMatchingType {
    /// 0: as it is.
    Full,
    /// 1.
    Sha256,
    /// 2.
    Sha512,
}

/// A TLSA record that can be used.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Tlsa {
    /// What it names.
    pub usage: TlsaUsage,
    /// Which part.
    pub selector: TlsaSelector,
    /// How.
    pub matching: TlsaMatchingType,
    /// What is compared.
    pub data: Vec<u8>,
}

impl Tlsa {
    /// A record by its numbers; none when it is unusable (RFC 7672 2.2, 3.1.3): another usage, an unknown selector or
    /// digest, data that cannot be a digest.
    #[must_use]
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

    /// Whether a certificate is the one that is named: by its bytes in DER and its SubjectPublicKeyInfo.
    #[must_use]
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

    /// The data of a record `3 1 1` for a key, in hex: what a host publishes of its own (RFC 7672 3.1.1).
    #[must_use]
    pub fn public_key_digest(public_key: &[u8]) -> String {
        Sha256::digest(public_key).iter().map(|byte| format!("{byte:02x}")).collect()
    }
}

impl std::fmt::Display for Tlsa {
    /// As a zone has it.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let usage = match self.usage {
            TlsaUsage::TrustAnchor => 2,
            TlsaUsage::EndEntity => 3,
        };
        let selector = match self.selector {
            TlsaSelector::Certificate => 0,
            TlsaSelector::PublicKey => 1,
        };
        let matching = match self.matching {
            TlsaMatchingType::Full => 0,
            TlsaMatchingType::Sha256 => 1,
            TlsaMatchingType::Sha512 => 2,
        };
        write!(f, "{usage} {selector} {matching} ")?;
        self.data.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_are_compared_with_what_they_name() {
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
    fn what_cannot_be_used_is_left_out() {
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
    fn a_hosts_own_record_is_written() {
        assert_eq!(Tlsa::public_key_digest(b"").len(), 64);
    }
}
