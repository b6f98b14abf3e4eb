//! DKIM keys of a domain: generate, import and rotate.

use dns::dkim_key::{DkimKey, DkimKeyError, DkimKeys, KeyAlgorithm};
use model::domain::{DomainState, SealedDkimKeys, SealedSecret, SendingDomain};
use model::domain_setup::next_check;
use model::id::{AccountId, DomainId};
use queue::intake::sender_authorization;
use thiserror::Error;

use super::rows::DomainRows;
use super::{COMMIT_TRIES_MAX, DomainError, DomainWithSetup, SendingDomains};

/// Accepted RSA key sizes. RFC 8301 3.2 requires at least 2,048 bits of a signer. The record of a key above 4,096 bits
/// does not fit into a UDP response, and signing takes eight times as long.
const RSA_BITS: std::ops::RangeInclusive<u16> = 2_048..=4_096;

/// Why a key is not accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum KeyImportError {
    /// Not a private key in PEM, or too short for verifiers (RFC 8301 3.2).
    #[error("must be an RSA private key of 2,048 to 4,096 bits in PEM (PKCS#8 or PKCS#1), without a passphrase")]
    Form,
    /// The key size is not accepted.
    #[error("has {0} bits; the maximum is 4,096, because a longer key does not fit into a DNS response")]
    Bits(u16),
}

/// An RSA key that signed for the domain elsewhere.
#[derive(Debug)]
pub struct ImportedKey {
    key: DkimKey,
    bits: u16,
}

impl ImportedKey {
    /// Parses a key in PEM.
    ///
    /// # Errors
    /// Returns a [`KeyImportError`] if it is not a private RSA key of an accepted size.
    pub fn from_pem(pem: &str) -> Result<Self, KeyImportError> {
        let key = DkimKey::rsa_from_pem(pem).map_err(|_: DkimKeyError| KeyImportError::Form)?;
        let bits = key.bits();
        if RSA_BITS.contains(&bits) { Ok(Self { key, bits }) } else { Err(KeyImportError::Bits(bits)) }
    }
}

impl DomainRows {
    /// Generates a domain's keys, or uses the given RSA key, and seals them.
    pub(super) async fn make_keys(
        &self,
        id: DomainId,
        selector: Option<String>,
        rsa: Option<ImportedKey>,
    ) -> Result<SealedDkimKeys, DomainError> {
        let failed = |error: &dyn std::fmt::Display| DomainError::Keys(error.to_string());
        // RSA takes 50 ms and more: not on an async thread.
        let generate = move || match rsa {
            Some(ImportedKey { key, bits }) => {
                DkimKey::generate(KeyAlgorithm::Ed25519).map(|ed25519| (DkimKeys { rsa: key, ed25519 }, bits))
            }
            None => DkimKeys::generate().map(|keys| {
                let bits = keys.rsa.bits();
                (keys, bits)
            }),
        };
        let generated = tokio::task::spawn_blocking(generate).await.map_err(|error| failed(&error))?;
        let (keys, rsa_bits) = generated.map_err(|error| failed(&error))?;
        let seal = |key| sender_authorization::seal_key(&self.vault, id, key).map_err(|error| failed(&error));
        Ok(SealedDkimKeys {
            selector: selector.unwrap_or_else(|| own_selector(self.services.entropy.u64())),
            rsa_record: keys.rsa.txt_record(),
            rsa: seal(&keys.rsa)?,
            ed25519_record: keys.ed25519.txt_record(),
            ed25519: seal(&keys.ed25519)?,
            ed25519_published: false,
            rsa_bits,
        })
    }

    /// Returns whether the keys of a domain can be unsealed and match the published records.
    pub(super) fn can_unseal_keys(&self, domain: &SendingDomain) -> bool {
        let opens = |algorithm, sealed: &SealedSecret, record: &str| {
            let opened = sender_authorization::unseal_key(&self.vault, domain.id, algorithm, sealed);
            opened.is_ok_and(|key| key.txt_record() == record)
        };
        opens(KeyAlgorithm::Rsa, &domain.dkim.rsa, &domain.dkim.rsa_record)
            && opens(KeyAlgorithm::Ed25519, &domain.dkim.ed25519, &domain.dkim.ed25519_record)
    }
}

impl SendingDomains {
    /// Generates new keys. They sign as soon as their record is found, or at once if the domain has never been
    /// verified. A repeated request returns the pending keys.
    ///
    /// # Errors
    /// Returns a [`DomainError`] if the domain is unknown or the commit fails.
    pub async fn rotate_keys(&self, account: AccountId, id: DomainId) -> Result<DomainWithSetup, DomainError> {
        let mut new_keys = None;
        for _ in 0..COMMIT_TRIES_MAX {
            let before = store::domain::get(self.rows.store(), account, id).await?.ok_or(DomainError::Unknown)?;
            let (mut after, found) = self.rows.load_setup(before.clone()).await?;
            if before.next_dkim.is_some() {
                return Ok(after);
            }
            let dkim = match new_keys.take() {
                Some(dkim) => dkim,
                None => self.rows.make_keys(id, None, None).await?,
            };
            new_keys = Some(dkim.clone());
            let now = self.rows.services.clock.now();
            if self.rows.auto_verify {
                after.domain.dkim = SealedDkimKeys { ed25519_published: true, ..dkim };
            } else if before.state == DomainState::Unverified && before.verified_at.is_none() {
                after.domain.dkim = dkim;
            } else {
                after.domain.next_dkim = Some(dkim);
            }
            after.domain.updated_at = now;
            if !self.rows.auto_verify {
                after.setup.since = now;
                after.setup.due = next_check(&after.domain, &after.setup, now, self.rows.services.entropy.u64());
            }
            if self.rows.save_domain(&before, found.as_ref(), &after).await? {
                return Ok(after);
            }
        }
        Err(DomainError::Conflict)
    }

    /// Drops pending keys that do not sign yet. Without pending keys, nothing changes.
    ///
    /// # Errors
    /// Returns a [`DomainError`] if the domain is unknown or the commit fails.
    pub async fn drop_rotation(&self, account: AccountId, id: DomainId) -> Result<DomainWithSetup, DomainError> {
        for _ in 0..COMMIT_TRIES_MAX {
            let before = store::domain::get(self.rows.store(), account, id).await?.ok_or(DomainError::Unknown)?;
            let (mut after, found) = self.rows.load_setup(before.clone()).await?;
            if after.domain.next_dkim.take().is_none() {
                return Ok(after);
            }
            after.domain.updated_at = self.rows.services.clock.now();
            if self.rows.save_domain(&before, found.as_ref(), &after).await? {
                return Ok(after);
            }
        }
        Err(DomainError::Conflict)
    }
}

/// A generated selector for each key pair, so that keys of a transferred or rotated domain never share a name.
fn own_selector(chance: u64) -> String {
    format!("pr{:06x}", chance & 0xff_ffff)
}
