//! `load fill`: domains with keys of their own, written into a store that no server has open.
//!
//! A hundred thousand RSA keys would take hours to make: all domains have the same two, each sealed for its own row, so
//! that the rows are what they are in any store. A domain is verified, and looked at again within the hour.

use std::error::Error;
use std::path::PathBuf;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use clap::Args;
use dns::dkim_key::{DkimKey, KeyAlgorithm};
use dns::seal::Vault;
use jiff::Timestamp;
use mail::domain::{DeliverySettings, DomainState, SealedDkimKeys, SealedSecret, SendingDomain};
use mail::id::{AccountId, DomainId};
use mail::setup::{DomainSetup, next_check};
use store::engine::{Batch, RedbOptions, Store};

use crate::sender;

/// Domains written by one commit.
const AT_ONCE: u32 = 500;

/// What to write, and where.
#[derive(Args)]
pub(crate) struct Plan {
    /// The data directory of a server that is stopped: with its store and its key file.
    #[arg(long)]
    data_dir: PathBuf,
    /// Whose domains they are: an account's id.
    #[arg(long)]
    account: AccountId,
    /// How many.
    #[arg(long)]
    domains: u32,
    /// The RSA key of all of them (PEM).
    #[arg(long)]
    key: PathBuf,
}

/// The keys that all domains have.
struct Keys {
    rsa: DkimKey,
    ed25519: DkimKey,
    vault: Vault,
}

/// Writes them all.
pub(crate) fn run(plan: &Plan) -> Result<(), Box<dyn Error>> {
    let keys = Keys {
        rsa: sender::key(&plan.key)?,
        ed25519: DkimKey::generate(KeyAlgorithm::Ed25519)?,
        vault: Vault::load_or_create(&plan.data_dir.join("secret.key"), store::engine::private::create_file)?,
    };
    tokio::runtime::Builder::new_multi_thread().enable_all().build()?.block_on(async {
        let store = Store::open(&RedbOptions::new(plan.data_dir.join("store")))?;
        for first in (0..plan.domains).step_by(AT_ONCE as usize) {
            let before = store::domain::count(&store, plan.account).await?;
            let mut batch = Batch::progress();
            for number in first..plan.domains.min(first + AT_ONCE) {
                let domain = domain(plan.account, number, &keys)?;
                let mut setup = DomainSetup::new(domain.created_at);
                setup.due = next_check(&domain, &setup, domain.created_at, u64::from(number));
                store::setup::create(&mut batch, store::setup::setup_key(&domain), &setup);
                // Each counts what is written before it: the last one's word stands.
                let mut count = before.clone();
                count.number += number - first;
                store::domain::create(&mut batch, &domain, &count);
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
    // As queue/src/sender.rs binds a key to its row.
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
