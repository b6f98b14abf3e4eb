//! `load fill`: writes verified sending domains with DKIM keys into the store of a stopped server.
//!
//! Generating a hundred thousand RSA keys would take hours, so all domains share one RSA and one Ed25519 key. Each key
//! is sealed again for its own row, so the rows have the same form as in production. Each domain is verified, and its
//! next DNS check is spread over the coming hour.

use std::error::Error;
use std::path::PathBuf;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use clap::Args;
use dns::dkim_key::{DkimKey, KeyAlgorithm};
use dns::secrets::Vault;
use jiff::Timestamp;
use model::domain::{DeliverySettings, DomainState, SealedDkimKeys, SealedSecret, SendingDomain};
use model::domain_setup::{DomainSetup, next_check};
use model::id::{AccountId, DomainId};
use store::engine::{Batch, RedbOptions, Store};

use crate::sender;

/// Domains per commit.
const AT_ONCE: u32 = 500;

/// Arguments of `load fill`.
#[derive(Args)]
pub(crate) struct Plan {
    /// Data directory of a stopped server, with its store and `secret.key`.
    #[arg(long)]
    data_dir: PathBuf,
    /// Account id that owns the domains.
    #[arg(long)]
    account: AccountId,
    /// Number of domains.
    #[arg(long)]
    domains: u32,
    /// RSA key that all domains share (PEM).
    #[arg(long)]
    key: PathBuf,
}

/// The keys that all domains share, and the vault that seals them.
struct Keys {
    rsa: DkimKey,
    ed25519: DkimKey,
    vault: Vault,
}

/// Writes all domains.
pub(crate) fn run(plan: &Plan) -> Result<(), Box<dyn Error>> {
    let keys = Keys {
        rsa: sender::key(&plan.key)?,
        ed25519: DkimKey::generate(KeyAlgorithm::Ed25519)?,
        vault: Vault::load_or_create(&plan.data_dir.join("secret.key"), store::engine::private_files::create_file)?,
    };
    tokio::runtime::Builder::new_multi_thread().enable_all().build()?.block_on(async {
        let store = Store::open(&RedbOptions::new(plan.data_dir.join("store")))?;
        for first in (0..plan.domains).step_by(AT_ONCE as usize) {
            let old_count = store::domain::count(&store, plan.account).await?;
            let mut batch = Batch::progress();
            for number in first..plan.domains.min(first + AT_ONCE) {
                let domain = domain(plan.account, number, &keys)?;
                let mut setup = DomainSetup::new(domain.created_at);
                setup.due = next_check(&domain, &setup, domain.created_at, u64::from(number));
                store::domain_setup::create(&mut batch, store::domain_setup::setup_key(&domain), &setup);
                // The count row must hold the sum of all domains of this batch; the last `create` writes the final sum.
                let mut new_count = old_count.clone();
                new_count.number += number - first;
                store::domain::create(&mut batch, &domain, &new_count);
            }
            store.commit(batch).await?;
        }
        store.flush().await?;
        store.close().await;
        Ok(())
    })
}

fn domain(account: AccountId, number: u32, keys: &Keys) -> Result<SendingDomain, Box<dyn Error>> {
    let now = now();
    let id = DomainId::new(now, u128::from(number));
    // Same associated data as in production: domain id and key kind (queue/src/intake/sender_authorization.rs).
    let seal = |key: &DkimKey, kind: u8| -> Result<SealedSecret, Box<dyn Error>> {
        let row = [id.to_bytes().as_slice(), &[kind]].concat();
        Ok(SealedSecret(STANDARD.encode(keys.vault.seal(&row, key.pkcs8())?)))
    };
    Ok(SendingDomain {
        id,
        account,
        name: format!("s{number}.stored.bench.test").parse()?,
        state: DomainState::Verified,
        dkim: SealedDkimKeys {
            selector: format!("s{number}"),
            rsa_record: keys.rsa.txt_record(),
            rsa: seal(&keys.rsa, 1)?,
            ed25519_record: keys.ed25519.txt_record(),
            ed25519: seal(&keys.ed25519, 2)?,
            ed25519_published: true,
            rsa_bits: keys.rsa.bits(),
        },
        next_dkim: None,
        former_dkim: None,
        delivery: DeliverySettings::default(),
        inbound_enabled: false,
        inbound_addresses: Vec::new(),
        created_at: now,
        verified_at: Some(now),
        updated_at: now,
    })
}

#[expect(clippy::disallowed_methods, reason = "a domain has the time at which it was added")]
fn now() -> Timestamp {
    Timestamp::now()
}
