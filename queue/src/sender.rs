//! Who may send from which address, and with what it is signed.
//!
//! A verified domain of the account signs its mail. What was found is kept for a second: so a stream of
//! messages costs no reads. A change that is made at this node is seen at once, and so is a change of the
//! account, wherever it was made, by whoever comes with the account as it is (every HTTP request does); an
//! SMTP session that is older than a change made at another node sees it within that second.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use dns::dkim_key::{DkimKey, KeyAlgorithm};
use dns::seal::Vault;
use dns::sign::Signer;
use dns::signers::{SignerCache, SignerKey};
use jiff::Timestamp;
use mail::account::{AccessLevel, Account};
use mail::address::{Address, DomainName};
use mail::domain::{DeliverySettings, DomainState, SealedSecret, SendingDomain, TlsMode};
use mail::id::{AccountId, DomainId};
use store::access::Tenant;
use store::engine::{ReadError, Store};

use crate::accept::DkimSigning;
use crate::refusal::SubmitError;

/// How long what was found is taken as found.
const CACHE_TTL: Duration = Duration::from_secs(1);
/// Domains kept; beyond it all are looked up anew.
const CACHED_IDENTITIES_MAX: usize = 10_000;

/// A domain of an account that may be sent from.
#[derive(Debug)]
pub(crate) struct SendingIdentity {
    /// The domain's id.
    id: DomainId,
    /// The domain.
    pub(crate) name: DomainName,
    /// What signs for it; none where signing is switched off.
    pub(crate) signer: Option<Arc<Signer>>,
    /// How its mail is treated.
    pub(crate) delivery: DeliverySettings,
    /// The account as it is now: a session may be older than a change of it.
    account: Account,
}

impl SendingIdentity {
    /// The account.
    pub(crate) fn account(&self) -> &Account {
        &self.account
    }

    /// Whether its mail never goes in the clear.
    pub(crate) fn enforces_tls(&self) -> bool {
        self.delivery.tls_mode == TlsMode::Enforced
    }
}

/// Who asked for which domain, and whether by an address that all accounts share: what is right for that address is not
/// right for its neighbours.
type IdentityCacheKey = (AccountId, DomainName, bool);

/// Until when it is taken as found, and what was found.
type IdentityCacheEntry = (Timestamp, Arc<SendingIdentity>);

/// Until when it is taken as found, and what signs for a domain that an account's mail was accepted from.
type SignerCacheEntry = (Timestamp, Option<Arc<Signer>>);

/// What was found, and how often something of it was forgotten.
#[derive(Default)]
struct IdentityCache {
    identities: HashMap<IdentityCacheKey, IdentityCacheEntry>,
    signers: HashMap<(AccountId, DomainName), SignerCacheEntry>,
    invalidations: u64,
}

/// Finds senders.
pub(crate) struct SenderAuthorization {
    store: Store,
    vault: Arc<Vault>,
    signers: SignerCache,
    signing: DkimSigning,
    /// The shared sandbox sender, if the operator has one.
    sandbox: Option<Address>,
    cache: Mutex<IdentityCache>,
}

impl SenderAuthorization {
    pub(crate) fn new(store: Store, vault: Arc<Vault>, signing: DkimSigning, sandbox: Option<Address>) -> Self {
        let signers = SignerCache::new(dns::signers::SIGNERS_MAX);
        Self { store, vault, signers, signing, sandbox, cache: Mutex::default() }
    }

    /// The sender behind an author's address, when whoever sends may send from it.
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

    /// The sender behind an author's address, when the account may send from it.
    async fn authorize_domain(
        &self,
        tenant: &Tenant,
        author: &Address,
        now: Timestamp,
    ) -> Result<Arc<SendingIdentity>, SubmitError> {
        let id = (tenant.account().id, author.domain().clone(), self.is_shared(tenant, author));
        let forgotten = {
            let found = self.lock();
            // Not of the account as it was.
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
        let mut found = self.lock();
        // What was read before a change, and comes to be kept after it, is not.
        if found.invalidations == forgotten {
            if found.identities.len() >= CACHED_IDENTITIES_MAX {
                found.identities.clear();
            }
            found.identities.insert(id, (expires_at(now), Arc::clone(&sender)));
        }
        Ok(sender)
    }

    /// Refuses Sender and Resent fields that name a domain of another account, or a name below one: mail programs show
    /// them as who sent the message. Domains that nobody has here say nothing about a customer.
    ///
    /// # Errors
    /// [`Refusal::DomainNotVerified`] with the name.
    pub(crate) async fn check_sender_domains(
        &self,
        tenant: &Tenant,
        domains: &BTreeSet<DomainName>,
    ) -> Result<(), SubmitError> {
        if domains.is_empty() {
            return Ok(());
        }
        let here = store::domain::find_at_or_above(&self.store, domains).await?;
        for named in domains {
            // The nearest domain decides: a name below another account's may be this account's own.
            let nearest = std::iter::successors(Some(named.clone()), DomainName::parent)
                .find_map(|name| here.iter().find(|domain| domain.name == name && is_owned(domain, tenant)));
            if nearest.is_some_and(|domain| domain.account != tenant.account().id) {
                return Err(SubmitError::DomainNotVerified { domain: named.clone() });
            }
        }
        Ok(())
    }

    /// What signs now for a domain that mail of this account was accepted from; none where the account may not send
    /// from it any more.
    pub(crate) async fn current_signer(
        &self,
        account: AccountId,
        name: &DomainName,
        now: Timestamp,
    ) -> Result<Option<Arc<Signer>>, SubmitError> {
        let id = (account, name.clone());
        let forgotten = {
            let found = self.lock();
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
        let mut found = self.lock();
        if found.invalidations == forgotten {
            if found.signers.len() >= CACHED_IDENTITIES_MAX {
                found.signers.clear();
            }
            found.signers.insert(id, (expires_at(now), signer.clone()));
        }
        Ok(signer)
    }

    fn lock(&self) -> MutexGuard<'_, IdentityCache> {
        self.cache.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The account was changed, or a domain of this name: what was found of it is found anew.
    pub(crate) fn invalidate(&self, account: AccountId, domain: Option<&DomainName>) {
        let mut found = self.lock();
        found.invalidations += 1;
        found.identities.retain(|(of, name, _), _| *of != account && Some(name) != domain);
        found.signers.retain(|(of, name), _| *of != account && Some(name) != domain);
    }

    /// The shared sandbox sender, if the operator has one.
    pub(crate) fn sandbox(&self) -> Option<&Address> {
        self.sandbox.as_ref()
    }

    fn is_sandbox(&self, author: &Address) -> bool {
        self.sandbox.as_ref().is_some_and(|sandbox| is_same_mailbox(sandbox, author))
    }

    /// Whether mail of any account may come from an address: the sandbox sender, and what the service itself writes from
    /// beside it.
    fn is_shared(&self, tenant: &Tenant, author: &Address) -> bool {
        let is_beside = |sandbox: &Address| sandbox.domain() == author.domain();
        self.is_sandbox(author) || tenant.is_system_mail() && self.sandbox.as_ref().is_some_and(is_beside)
    }

    async fn find_domain(&self, tenant: &Tenant, author: &Address) -> Result<SendingDomain, SubmitError> {
        let shared = self.is_shared(tenant, author);
        match store::domain::find_by_name(&self.store, author.domain()).await? {
            Some(domain)
                if (domain.account == tenant.account().id || shared) && domain.state == DomainState::Verified =>
            {
                Ok(domain)
            }
            // Of the operator's own account it is a domain like others.
            Some(domain) if domain.account == tenant.account().id => {
                Err(SubmitError::DomainNotVerified { domain: domain.name })
            }
            _ if shared => Err(SubmitError::SandboxNotConfigured { domain: author.domain().clone() }),
            _ => Err(SubmitError::DomainNotVerified { domain: author.domain().clone() }),
        }
    }

    /// The domain of the sandbox sender, when it is not verified: then no account can send from it.
    pub(crate) async fn unverified_sandbox_domain(&self) -> Result<Option<&DomainName>, ReadError> {
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

    /// Whether the account may write to these addresses from this author (email-api.md, "Account send access"). The
    /// service's own words go to whoever asked for them.
    pub(crate) fn check_reachable<'a>(
        &self,
        (tenant, sender): (&Tenant, &SendingIdentity),
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

/// Whether somebody has proved to own a domain, or it is the account's own.
fn is_owned(domain: &SendingDomain, tenant: &Tenant) -> bool {
    domain.state == DomainState::Verified || domain.account == tenant.account().id
}

fn expires_at(now: Timestamp) -> Timestamp {
    now.checked_add(CACHE_TTL).unwrap_or(now)
}

/// Not from a future that a clock set back has made of it.
fn is_fresh(until: Timestamp, now: Timestamp) -> bool {
    until > now && until <= expires_at(now)
}

/// Mailboxes are compared without regard to case: nobody has two that differ only there.
fn is_same_mailbox(a: &Address, b: &Address) -> bool {
    a.domain() == b.domain() && a.local_part().eq_ignore_ascii_case(b.local_part())
}

/// What a sealed key is bound to: it opens in its own row only.
fn key_seal_context(domain: DomainId, algorithm: KeyAlgorithm) -> Vec<u8> {
    let mut id = domain.to_bytes().to_vec();
    id.push(match algorithm {
        KeyAlgorithm::Rsa => 1,
        KeyAlgorithm::Ed25519 => 2,
    });
    id
}

/// Seals a DKIM key for its domain's row.
pub(crate) fn seal_key(vault: &Vault, domain: DomainId, key: &DkimKey) -> Result<SealedSecret, dns::seal::SealError> {
    let blob = vault.seal(&key_seal_context(domain, key.algorithm()), key.pkcs8())?;
    Ok(SealedSecret(STANDARD.encode(blob)))
}

pub(crate) fn unseal_key(
    vault: &Vault,
    domain: DomainId,
    algorithm: KeyAlgorithm,
    sealed: &SealedSecret,
) -> Result<DkimKey, SubmitError> {
    let lost = |error: &dyn std::fmt::Display| {
        tracing::error!(%error, domain.id = %domain, "a DKIM key cannot be opened; is the key file the right one?");
        SubmitError::SigningFailed
    };
    let blob = STANDARD.decode(&sealed.0).map_err(|error| lost(&error))?;
    let pkcs8 = vault.open(&key_seal_context(domain, algorithm), &blob).map_err(|error| lost(&error))?;
    DkimKey::from_pkcs8(algorithm, pkcs8).map_err(|error| lost(&error))
}

fn signing_error(domain: &SendingDomain, error: &dyn std::fmt::Display) -> SubmitError {
    tracing::error!(%error, domain.id = %domain.id, "a domain's keys cannot sign");
    SubmitError::SigningFailed
}
