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
use dns::signers::{SignerId, Signers};
use jiff::Timestamp;
use mail::account::{AccessLevel, Account};
use mail::address::{Address, Name};
use mail::domain::{DeliverySettings, Domain, DomainState, SealedKey, TlsMode};
use mail::id::{AccountId, DomainId};
use store::access::Tenant;
use store::engine::{ReadError, Store};

use crate::accept::Signing;
use crate::refusal::Refusal;

/// How long what was found is taken as found.
const HOLDS: Duration = Duration::from_secs(1);
/// Domains kept; beyond it all are looked up anew.
const KEPT_MAX: usize = 10_000;

/// A domain of an account that may be sent from.
#[derive(Debug)]
pub(crate) struct Sender {
    /// The domain's id.
    id: DomainId,
    /// The domain.
    pub(crate) name: Name,
    /// What signs for it; none where signing is switched off.
    pub(crate) signer: Option<Arc<Signer>>,
    /// How its mail is treated.
    pub(crate) delivery: DeliverySettings,
    /// The account as it is now: a session may be older than a change of it.
    account: Account,
}

impl Sender {
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
type Asked = (AccountId, Name, bool);

/// Until when it is taken as found, and what was found.
type Kept = (Timestamp, Arc<Sender>);

/// Until when it is taken as found, and what signs for a domain that an account's mail was accepted from.
type KeptSigner = (Timestamp, Option<Arc<Signer>>);

/// What was found, and how often something of it was forgotten.
#[derive(Default)]
struct Found {
    kept: HashMap<Asked, Kept>,
    signers: HashMap<(AccountId, Name), KeptSigner>,
    forgotten: u64,
}

/// Finds senders.
pub(crate) struct Senders {
    store: Store,
    vault: Arc<Vault>,
    signers: Signers,
    signing: Signing,
    /// The shared sandbox sender, if the operator has one.
    sandbox: Option<Address>,
    found: Mutex<Found>,
}

impl Senders {
    pub(crate) fn new(store: Store, vault: Arc<Vault>, signing: Signing, sandbox: Option<Address>) -> Self {
        let signers = Signers::new(dns::signers::SIGNERS_MAX);
        Self { store, vault, signers, signing, sandbox, found: Mutex::default() }
    }

    /// The sender behind an author's address, when whoever sends may send from it.
    pub(crate) async fn find(
        &self,
        tenant: &Tenant,
        author: &Address,
        now: Timestamp,
    ) -> Result<Arc<Sender>, Refusal> {
        let sender = self.of_account(tenant, author, now).await?;
        match tenant.bound_to() {
            Some(domain) if domain != sender.id => {
                Err(Refusal::NotThisDomain { domain: author.domain().clone() })
            }
            _ => Ok(sender),
        }
    }

    /// The sender behind an author's address, when the account may send from it.
    async fn of_account(
        &self,
        tenant: &Tenant,
        author: &Address,
        now: Timestamp,
    ) -> Result<Arc<Sender>, Refusal> {
        let id = (tenant.account().id, author.domain().clone(), self.is_shared(tenant, author));
        let forgotten = {
            let found = self.lock();
            // Not of the account as it was.
            let fits = |(until, sender): &&Kept| holds(*until, now) && sender.account == *tenant.account();
            if let Some((_, sender)) = found.kept.get(&id).filter(fits) {
                return Ok(Arc::clone(sender));
            }
            found.forgotten
        };
        let account =
            store::account::get(&self.store, tenant.account().id).await?.ok_or(Refusal::Suspended)?;
        if account.suspended {
            return Err(Refusal::Suspended);
        }
        let domain = self.domain(tenant, author).await?;
        let signer = match self.signing {
            Signing::Off => None,
            Signing::Messages | Signing::Transactions => Some(self.signer(&domain).await?),
        };
        let sender = Arc::new(Sender {
            id: domain.id,
            name: domain.name.clone(),
            signer,
            delivery: domain.delivery,
            account,
        });
        let mut found = self.lock();
        // What was read before a change, and comes to be kept after it, is not.
        if found.forgotten == forgotten {
            if found.kept.len() >= KEPT_MAX {
                found.kept.clear();
            }
            found.kept.insert(id, (held_until(now), Arc::clone(&sender)));
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
        domains: &BTreeSet<Name>,
    ) -> Result<(), Refusal> {
        if domains.is_empty() {
            return Ok(());
        }
        let here = store::domain::at_or_above(&self.store, domains).await?;
        for named in domains {
            // The nearest domain decides: a name below another account's may be this account's own.
            let nearest = std::iter::successors(Some(named.clone()), Name::parent)
                .find_map(|name| here.iter().find(|domain| domain.name == name && is_owned(domain, tenant)));
            if nearest.is_some_and(|domain| domain.account != tenant.account().id) {
                return Err(Refusal::DomainNotVerified { domain: named.clone() });
            }
        }
        Ok(())
    }

    /// What signs now for a domain that mail of this account was accepted from; none where the account may not send
    /// from it any more.
    pub(crate) async fn signer_of(
        &self,
        account: AccountId,
        name: &Name,
        now: Timestamp,
    ) -> Result<Option<Arc<Signer>>, Refusal> {
        let id = (account, name.clone());
        let forgotten = {
            let found = self.lock();
            if let Some((_, signer)) = found.signers.get(&id).filter(|(until, _)| holds(*until, now)) {
                return Ok(signer.clone());
            }
            found.forgotten
        };
        let is_sandbox = self.sandbox.as_ref().is_some_and(|sandbox| sandbox.domain() == name);
        let signer = match store::domain::by_name(&self.store, name).await? {
            Some(domain)
                if (domain.account == account || is_sandbox) && domain.state == DomainState::Verified =>
            {
                Some(self.signer(&domain).await?)
            }
            _ => None,
        };
        let mut found = self.lock();
        if found.forgotten == forgotten {
            if found.signers.len() >= KEPT_MAX {
                found.signers.clear();
            }
            found.signers.insert(id, (held_until(now), signer.clone()));
        }
        Ok(signer)
    }

    fn lock(&self) -> MutexGuard<'_, Found> {
        self.found.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The account was changed, or a domain of this name: what was found of it is found anew.
    pub(crate) fn forget(&self, account: AccountId, domain: Option<&Name>) {
        let mut found = self.lock();
        found.forgotten += 1;
        found.kept.retain(|(of, name, _), _| *of != account && Some(name) != domain);
        found.signers.retain(|(of, name), _| *of != account && Some(name) != domain);
    }

    /// The shared sandbox sender, if the operator has one.
    pub(crate) fn sandbox(&self) -> Option<&Address> {
        self.sandbox.as_ref()
    }

    fn is_sandbox(&self, author: &Address) -> bool {
        self.sandbox.as_ref().is_some_and(|sandbox| is_same(sandbox, author))
    }

    /// Whether mail of any account may come from an address: the sandbox sender, and what the service itself writes from
    /// beside it.
    fn is_shared(&self, tenant: &Tenant, author: &Address) -> bool {
        let is_beside = |sandbox: &Address| sandbox.domain() == author.domain();
        self.is_sandbox(author) || tenant.is_for_service() && self.sandbox.as_ref().is_some_and(is_beside)
    }

    async fn domain(&self, tenant: &Tenant, author: &Address) -> Result<Domain, Refusal> {
        let shared = self.is_shared(tenant, author);
        match store::domain::by_name(&self.store, author.domain()).await? {
            Some(domain)
                if (domain.account == tenant.account().id || shared)
                    && domain.state == DomainState::Verified =>
            {
                Ok(domain)
            }
            // Of the operator's own account it is a domain like others.
            Some(domain) if domain.account == tenant.account().id => {
                Err(Refusal::DomainNotVerified { domain: domain.name })
            }
            _ if shared => Err(Refusal::SandboxNotSetUp { domain: author.domain().clone() }),
            _ => Err(Refusal::DomainNotVerified { domain: author.domain().clone() }),
        }
    }

    /// The domain of the sandbox sender, when it is not verified: then no account can send from it.
    pub(crate) async fn sandbox_fault(&self) -> Result<Option<&Name>, ReadError> {
        let Some(name) = self.sandbox.as_ref().map(Address::domain) else { return Ok(None) };
        let domain = store::domain::by_name(&self.store, name).await?;
        let works = domain.is_some_and(|domain| domain.state == DomainState::Verified);
        Ok(Some(name).filter(|_| !works))
    }

    async fn signer(&self, domain: &Domain) -> Result<Arc<Signer>, Refusal> {
        let id = SignerId {
            domain: domain.id,
            selector: domain.dkim.selector.clone(),
            ed25519: domain.dkim.ed25519_published,
        };
        self.signers
            .get_or_load(id, async || {
                let rsa = unseal(&self.vault, domain.id, KeyAlgorithm::Rsa, &domain.dkim.rsa)?;
                let ed25519 = unseal(&self.vault, domain.id, KeyAlgorithm::Ed25519, &domain.dkim.ed25519)?;
                let ed25519_selector = domain.dkim.ed25519_selector();
                let ed25519 = domain.dkim.ed25519_published.then_some((ed25519_selector.as_str(), &ed25519));
                Signer::new(&domain.name, Some((&domain.dkim.selector, &rsa)), ed25519)
                    .map_err(|error| unusable(domain, &error))
            })
            .await
    }

    /// Whether the account may write to these addresses from this author (email-api.md, "Account send access"). The
    /// service's own words go to whoever asked for them.
    pub(crate) fn may_reach<'a>(
        &self,
        (tenant, sender): (&Tenant, &Sender),
        author: &Address,
        mut recipients: impl Iterator<Item = &'a Address>,
    ) -> Result<(), Refusal> {
        let account = &sender.account;
        let level = account.access_level(!self.is_sandbox(author));
        if level == AccessLevel::Production
            || tenant.is_for_service()
            || recipients.all(|r| is_same(r, &account.email))
        {
            return Ok(());
        }
        Err(match level {
            AccessLevel::Sandbox => Refusal::SandboxRestricted { allowed: account.email.clone() },
            _ => Refusal::ProductionRequired,
        })
    }
}

/// Whether somebody has proved to own a domain, or it is the account's own.
fn is_owned(domain: &Domain, tenant: &Tenant) -> bool {
    domain.state == DomainState::Verified || domain.account == tenant.account().id
}

fn held_until(now: Timestamp) -> Timestamp {
    now.checked_add(HOLDS).unwrap_or(now)
}

/// Not from a future that a clock set back has made of it.
fn holds(until: Timestamp, now: Timestamp) -> bool {
    until > now && until <= held_until(now)
}

/// Mailboxes are compared without regard to case: nobody has two that differ only there.
fn is_same(a: &Address, b: &Address) -> bool {
    a.domain() == b.domain() && a.local().eq_ignore_ascii_case(b.local())
}

/// What a sealed key is bound to: it opens in its own row only.
fn row_id(domain: DomainId, algorithm: KeyAlgorithm) -> Vec<u8> {
    let mut id = domain.to_bytes().to_vec();
    id.push(match algorithm {
        KeyAlgorithm::Rsa => 1,
        KeyAlgorithm::Ed25519 => 2,
    });
    id
}

/// Seals a DKIM key for its domain's row.
pub(crate) fn seal(
    vault: &Vault,
    domain: DomainId,
    key: &DkimKey,
) -> Result<SealedKey, dns::seal::SealError> {
    let blob = vault.seal(&row_id(domain, key.algorithm()), key.pkcs8())?;
    Ok(SealedKey(STANDARD.encode(blob)))
}

pub(crate) fn unseal(
    vault: &Vault,
    domain: DomainId,
    algorithm: KeyAlgorithm,
    sealed: &SealedKey,
) -> Result<DkimKey, Refusal> {
    let lost = |error: &dyn std::fmt::Display| {
        tracing::error!(%error, domain.id = %domain, "a DKIM key cannot be opened; is the key file the right one?");
        Refusal::Unsigned
    };
    let blob = STANDARD.decode(&sealed.0).map_err(|error| lost(&error))?;
    let pkcs8 = vault.open(&row_id(domain, algorithm), &blob).map_err(|error| lost(&error))?;
    DkimKey::from_pkcs8(algorithm, pkcs8).map_err(|error| lost(&error))
}

fn unusable(domain: &Domain, error: &dyn std::fmt::Display) -> Refusal {
    tracing::error!(%error, domain.id = %domain.id, "a domain's keys cannot sign");
    Refusal::Unsigned
}
