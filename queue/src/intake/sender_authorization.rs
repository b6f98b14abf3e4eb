//! Sender authorization: from which addresses an account may send, and the DKIM signer for its mail.
//!
//! Mail is signed by a verified domain of the account. Results are cached for a second, so that a stream of messages
//! costs no reads. A change at this node invalidates the cache at once. A change of the account at any node takes
//! effect as soon as the caller has the new account row, which every HTTP request reads. An SMTP session that began
//! before a change at another node sees it within the second.

use parking_lot::Mutex;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use dns::dkim_key::{DkimKey, KeyAlgorithm};
use dns::secrets::Vault;
use dns::sign::Signer;
use dns::signer_cache::{SignerCache, SignerKey};
use jiff::Timestamp;
use message::address::{Address, DomainName};
use model::account::{AccessLevel, Account};
use model::domain::{DeliverySettings, DomainState, SealedSecret, SendingDomain, TlsMode};
use model::id::{AccountId, DomainId, EmailId};
use quick_cache::unsync::Cache;
use store::access::Tenant;
use store::engine::{ReadError, Store};

use crate::intake::dkim_signing::DkimSigning;
use crate::intake::submit_error::SubmitError;
use crate::sealed_body;

/// TTL of the cache.
const CACHE_TTL: Duration = Duration::from_secs(1);
/// Cached entries; beyond this number the cache is cleared.
const CACHED_IDENTITIES_MAX: usize = 10_000;

/// A verified domain from which an account may send.
#[derive(Debug)]
pub(crate) struct SendingIdentity {
    id: DomainId,
    pub(crate) name: DomainName,
    /// DKIM signer; `None` where signing is switched off.
    pub(crate) signer: Option<Arc<Signer>>,
    /// Tracking and TLS settings of the domain.
    pub(crate) delivery: DeliverySettings,
    /// The account as stored now; a session may hold an older copy.
    account: Account,
}

impl SendingIdentity {
    pub(crate) fn account(&self) -> &Account {
        &self.account
    }

    /// True if mail of the domain must not be sent without TLS.
    pub(crate) fn enforces_tls(&self) -> bool {
        self.delivery.tls_mode == TlsMode::Enforced
    }
}

/// Account, domain, and whether the address is one that all accounts share. A result for the shared address does not
/// apply to other addresses of its domain.
type IdentityCacheKey = (AccountId, DomainName, bool);

/// Expiry and cached identity.
type IdentityCacheEntry = (Timestamp, Arc<SendingIdentity>);

/// Expiry and cached signer for a domain that an account's mail was accepted from.
type SignerCacheEntry = (Timestamp, Option<Arc<Signer>>);

/// The cache, with a counter of invalidations.
struct IdentityCache {
    identities: Cache<IdentityCacheKey, IdentityCacheEntry>,
    signers: Cache<(AccountId, DomainName), SignerCacheEntry>,
    invalidations: u64,
}

impl Default for IdentityCache {
    fn default() -> Self {
        let (identities, signers) = (Cache::new(CACHED_IDENTITIES_MAX), Cache::new(CACHED_IDENTITIES_MAX));
        Self { identities, signers, invalidations: 0 }
    }
}

/// Resolves and caches sending identities.
pub struct SenderAuthorization {
    store: Store,
    vault: Arc<Vault>,
    signers: SignerCache,
    signing: DkimSigning,
    /// The shared sandbox sender, if one is configured.
    sandbox: Option<Address>,
    cache: Mutex<IdentityCache>,
}

impl SenderAuthorization {
    pub fn new(store: Store, vault: Arc<Vault>, signing: DkimSigning, sandbox: Option<Address>) -> Self {
        let signers = SignerCache::new(dns::signer_cache::SIGNERS_MAX);
        Self { store, vault, signers, signing, sandbox, cache: Mutex::default() }
    }

    /// Seals the body of an email with a secret link.
    pub(crate) fn seal_body(&self, account: AccountId, id: EmailId, chunks: &[Bytes]) -> Result<Bytes, SubmitError> {
        sealed_body::seal(&self.vault, account, id, chunks).map_err(|error| {
            tracing::error!(%error, email.id = %id, "cannot seal a message; check the key file");
            SubmitError::Unavailable
        })
    }

    /// Returns the sending identity of an author's address, if the tenant may send from it.
    pub(crate) async fn authorize(
        &self,
        tenant: &Tenant,
        author: &Address,
        now: Timestamp,
    ) -> Result<Arc<SendingIdentity>, SubmitError> {
        let sender = self.authorize_domain(tenant, author, now).await?;
        match tenant.bound_to() {
            Some(domain) if domain != sender.id => {
                Err(SubmitError::DomainNotAllowed { domain: author.domain().clone() })
            }
            _ => Ok(sender),
        }
    }

    /// Returns the sending identity of an author's address, if the account may send from it.
    async fn authorize_domain(
        &self,
        tenant: &Tenant,
        author: &Address,
        now: Timestamp,
    ) -> Result<Arc<SendingIdentity>, SubmitError> {
        let id = (tenant.account().id, author.domain().clone(), self.is_shared(tenant, author));
        let invalidations = {
            let found = self.cache.lock();
            // An entry for an older state of the account is not valid.
            let fits =
                |(until, sender): &&IdentityCacheEntry| is_fresh(*until, now) && sender.account == *tenant.account();
            if let Some((_, sender)) = found.identities.get(&id).filter(fits) {
                return Ok(Arc::clone(sender));
            }
            found.invalidations
        };
        let account =
            store::account::get(&self.store, tenant.account().id).await?.ok_or(SubmitError::AccountSuspended)?;
        if account.suspended {
            return Err(SubmitError::AccountSuspended);
        }
        let domain = self.find_domain(tenant, author).await?;
        let signer = match self.signing {
            DkimSigning::Off => None,
            DkimSigning::Messages | DkimSigning::MessagesAndTransactions => Some(self.load_signer(&domain).await?),
        };
        let sender = Arc::new(SendingIdentity {
            id: domain.id,
            name: domain.name.clone(),
            signer,
            delivery: domain.delivery,
            account,
        });
        let mut found = self.cache.lock();
        // Do not cache data that was read before an invalidation.
        if found.invalidations == invalidations {
            found.identities.insert(id, (expires_at(now), Arc::clone(&sender)));
        }
        Ok(sender)
    }

    /// Rejects Sender and Resent fields with a domain at or below another account's domain, because mail clients
    /// display them as the sender. Domains that no account has are allowed.
    ///
    /// # Errors
    /// [`SubmitError::DomainNotVerified`] with the name.
    pub(crate) async fn check_sender_domains(
        &self,
        tenant: &Tenant,
        domains: &BTreeSet<DomainName>,
    ) -> Result<(), SubmitError> {
        if domains.is_empty() {
            return Ok(());
        }
        let found = store::domain::find_at_or_above(&self.store, domains).await?;
        for named in domains {
            // The nearest domain decides: a name below another account's domain may belong to this account.
            let nearest = std::iter::successors(Some(named.clone()), DomainName::parent)
                .find_map(|name| found.iter().find(|domain| domain.name == name && is_owned(domain, tenant)));
            if nearest.is_some_and(|domain| domain.account != tenant.account().id) {
                return Err(SubmitError::DomainNotVerified { domain: named.clone() });
            }
        }
        Ok(())
    }

    /// Returns the current signer of a domain that mail of this account was accepted from; `None` if the account may
    /// not send from it any more.
    pub(crate) async fn current_signer(
        &self,
        account: AccountId,
        name: &DomainName,
        now: Timestamp,
    ) -> Result<Option<Arc<Signer>>, SubmitError> {
        let id = (account, name.clone());
        let invalidations = {
            let found = self.cache.lock();
            if let Some((_, signer)) = found.signers.get(&id).filter(|(until, _)| is_fresh(*until, now)) {
                return Ok(signer.clone());
            }
            found.invalidations
        };
        let is_sandbox = self.sandbox.as_ref().is_some_and(|sandbox| sandbox.domain() == name);
        let signer = match store::domain::find_by_name(&self.store, name).await? {
            Some(domain) if (domain.account == account || is_sandbox) && domain.state == DomainState::Verified => {
                Some(self.load_signer(&domain).await?)
            }
            _ => None,
        };
        let mut found = self.cache.lock();
        if found.invalidations == invalidations {
            found.signers.insert(id, (expires_at(now), signer.clone()));
        }
        Ok(signer)
    }

    /// Invalidates cached results of an account, and of a domain if one is given.
    pub fn invalidate(&self, account: AccountId, domain: Option<&DomainName>) {
        let mut found = self.cache.lock();
        found.invalidations += 1;
        found.identities.retain(|(owner, name, _), _| *owner != account && Some(name) != domain);
        found.signers.retain(|(owner, name), _| *owner != account && Some(name) != domain);
    }

    /// The shared sandbox sender, if one is configured.
    pub fn sandbox(&self) -> Option<&Address> {
        self.sandbox.as_ref()
    }

    /// The domain of the sandbox sender, if the operator configured one.
    pub fn service_domain(&self) -> Option<&DomainName> {
        self.sandbox.as_ref().map(Address::domain)
    }

    /// The address that system emails are sent from: the first of the two local parts, at the sandbox sender's domain,
    /// that differs from the sandbox sender.
    pub fn service_address(&self, local_parts: [&str; 2]) -> Option<Address> {
        sibling_address(self.sandbox.as_ref()?, local_parts)
    }

    fn is_sandbox(&self, author: &Address) -> bool {
        self.sandbox.as_ref().is_some_and(|sandbox| is_same_mailbox(sandbox, author))
    }

    /// True if any account may send from an address: the sandbox sender, and for system mail the other addresses of its
    /// domain.
    fn is_shared(&self, tenant: &Tenant, author: &Address) -> bool {
        let is_same_domain = |sandbox: &Address| sandbox.domain() == author.domain();
        self.is_sandbox(author) || tenant.is_system_mail() && self.sandbox.as_ref().is_some_and(is_same_domain)
    }

    async fn find_domain(&self, tenant: &Tenant, author: &Address) -> Result<SendingDomain, SubmitError> {
        let shared = self.is_shared(tenant, author);
        match store::domain::find_by_name(&self.store, author.domain()).await? {
            Some(domain)
                if (domain.account == tenant.account().id || shared) && domain.state == DomainState::Verified =>
            {
                Ok(domain)
            }
            // For the operator's own account the sandbox domain is like any other.
            Some(domain) if domain.account == tenant.account().id => {
                Err(SubmitError::DomainNotVerified { domain: domain.name })
            }
            _ if shared => Err(SubmitError::SandboxNotConfigured { domain: author.domain().clone() }),
            _ => Err(SubmitError::DomainNotVerified { domain: author.domain().clone() }),
        }
    }

    /// Returns the sandbox sender's domain if it is not verified, so that no account can send from it.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn unverified_sandbox_domain(&self) -> Result<Option<&DomainName>, ReadError> {
        let Some(name) = self.sandbox.as_ref().map(Address::domain) else { return Ok(None) };
        let domain = store::domain::find_by_name(&self.store, name).await?;
        let works = domain.is_some_and(|domain| domain.state == DomainState::Verified);
        Ok(Some(name).filter(|_| !works))
    }

    async fn load_signer(&self, domain: &SendingDomain) -> Result<Arc<Signer>, SubmitError> {
        let id = SignerKey {
            domain: domain.id,
            selector: domain.dkim.selector.clone(),
            ed25519: domain.dkim.ed25519_published,
        };
        self.signers
            .get_or_load(id, async || {
                let rsa = unseal_key(&self.vault, domain.id, KeyAlgorithm::Rsa, &domain.dkim.rsa)?;
                let ed25519 = unseal_key(&self.vault, domain.id, KeyAlgorithm::Ed25519, &domain.dkim.ed25519)?;
                let ed25519_selector = domain.dkim.ed25519_selector();
                let ed25519 = domain.dkim.ed25519_published.then_some((ed25519_selector.as_str(), &ed25519));
                Signer::new(&domain.name, Some((&domain.dkim.selector, &rsa)), ed25519)
                    .map_err(|error| signing_error(domain, &error))
            })
            .await
    }

    /// Checks that the account may send to these addresses from this author.
    /// System mail may be sent to everybody.
    pub(crate) fn check_reachable<'a>(
        &self,
        tenant: &Tenant,
        sender: &SendingIdentity,
        author: &Address,
        mut recipients: impl Iterator<Item = &'a Address>,
    ) -> Result<(), SubmitError> {
        let account = &sender.account;
        let level = account.access_level(!self.is_sandbox(author));
        if level == AccessLevel::Production
            || tenant.is_system_mail()
            || recipients.all(|r| is_same_mailbox(r, &account.email))
        {
            return Ok(());
        }
        Err(match level {
            AccessLevel::Sandbox => SubmitError::SandboxRestricted { allowed: account.email.clone() },
            _ => SubmitError::ProductionRequired,
        })
    }
}

/// True if the domain is verified, or belongs to the tenant's account.
fn is_owned(domain: &SendingDomain, tenant: &Tenant) -> bool {
    domain.state == DomainState::Verified || domain.account == tenant.account().id
}

fn expires_at(now: Timestamp) -> Timestamp {
    now.checked_add(CACHE_TTL).unwrap_or(now)
}

/// An expiry too far in the future means that the clock was set back: not fresh.
fn is_fresh(until: Timestamp, now: Timestamp) -> bool {
    until > now && until <= expires_at(now)
}

/// Compares mailboxes ignoring the case of the local part.
fn is_same_mailbox(a: &Address, b: &Address) -> bool {
    a.domain() == b.domain() && a.local_part().eq_ignore_ascii_case(b.local_part())
}

/// Associated data of a sealed key: it opens only for its own domain and algorithm.
fn key_seal_context(domain: DomainId, algorithm: KeyAlgorithm) -> Vec<u8> {
    let mut id = domain.to_bytes().to_vec();
    id.push(match algorithm {
        KeyAlgorithm::Rsa => 1,
        KeyAlgorithm::Ed25519 => 2,
    });
    id
}

/// Returns an address in the sandbox sender's domain, with the first of two local parts that differs from the sender's.
pub fn sibling_address(sandbox: &Address, local_parts: [&str; 2]) -> Option<Address> {
    let local = local_parts.into_iter().find(|local| !sandbox.local_part().eq_ignore_ascii_case(local))?;
    Address::new(local, sandbox.domain().clone()).ok()
}

/// Seals a DKIM key for its domain's row.
pub fn seal_key(vault: &Vault, domain: DomainId, key: &DkimKey) -> Result<SealedSecret, dns::secrets::SealError> {
    let blob = vault.seal(&key_seal_context(domain, key.algorithm()), key.pkcs8())?;
    Ok(SealedSecret(STANDARD.encode(blob)))
}

pub fn unseal_key(
    vault: &Vault,
    domain: DomainId,
    algorithm: KeyAlgorithm,
    sealed: &SealedSecret,
) -> Result<DkimKey, SubmitError> {
    let unseal_error = |error: &dyn std::fmt::Display| {
        tracing::error!(%error, domain.id = %domain, "cannot open a DKIM key; check the key file");
        SubmitError::SigningFailed
    };
    let blob = STANDARD.decode(&sealed.0).map_err(|error| unseal_error(&error))?;
    let pkcs8 = vault.open(&key_seal_context(domain, algorithm), &blob).map_err(|error| unseal_error(&error))?;
    DkimKey::from_pkcs8(algorithm, pkcs8).map_err(|error| unseal_error(&error))
}

fn signing_error(domain: &SendingDomain, error: &dyn std::fmt::Display) -> SubmitError {
    tracing::error!(%error, domain.id = %domain.id, "cannot sign with the domain's DKIM keys");
    SubmitError::SigningFailed
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn system_mail_is_not_sent_from_the_sandbox_sender_itself() {
        let from =
            |sandbox: &str| sibling_address(&sandbox.parse().unwrap(), ["no-reply", "sign-in"]).unwrap().to_string();
        assert_eq!(from("onboarding@example.net"), "no-reply@example.net");
        assert_eq!(from("No-Reply@example.net"), "sign-in@example.net");
    }
}
