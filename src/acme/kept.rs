//! What is kept in the store: the account at the authority, certificates with their keys, proofs for other
//! nodes, and who renews at the moment.
//!
//! ```text
//! setting `acme account DIRECTORY`     ─►  sealed credentials
//! setting `acme certificate NAMES`     ─►  sealed chain and key
//! setting `acme proofs DIRECTORY`      ─►  the proofs of the order under way
//! setting `acme lease DIRECTORY`       ─►  node and time
//! ```
//!
//! Nodes with the same names share a certificate; all nodes answer each other's challenges, and one of them
//! orders at a time: names that several have are then never proved by two at once. Account and keys are sealed
//! with the installation's key: a copy of the store alone gives nothing away.

use std::fmt::Write as _;

use aws_lc_rs::digest::{SHA256, digest};
use dns::seal::Vault;
use instant_acme::AccountCredentials;
use jiff::Timestamp;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use store::engine::{CommitError, Store, Value};
use store::setting;

use super::AcmeError;
use super::challenge::ChallengeResponses;
use crate::certificate::Certificate;

/// A certificate as it is kept.
#[derive(Serialize, Deserialize)]
struct StoredCertificate {
    chain: String,
    key: String,
}

/// Who orders, and until when others leave it to them.
#[derive(Serialize, Deserialize)]
struct OrderLease {
    node: String,
    until: Timestamp,
}

/// What is kept, for one set of names at one authority.
pub(super) struct CertificateStore {
    store: Store,
    vault: std::sync::Arc<Vault>,
    account: String,
    certificate: String,
    proofs: String,
    lease: String,
}

impl CertificateStore {
    pub(super) fn new(world: &crate::world::Services, directory: &str, names: &[String]) -> Self {
        let mut names = names.to_vec();
        names.sort();
        // Names may be many: the key of a setting is short.
        let mut short = String::with_capacity(32);
        for byte in digest(&SHA256, names.join(" ").as_bytes()).as_ref().iter().take(16) {
            let _ = write!(short, "{byte:02x}");
        }
        Self {
            store: world.store.clone(),
            vault: std::sync::Arc::clone(&world.vault),
            account: format!("acme account {directory}"),
            certificate: format!("acme certificate {short}"),
            proofs: format!("acme proofs {directory}"),
            lease: format!("acme lease {directory}"),
        }
    }

    /// Whether there are other nodes to think of.
    pub(super) fn is_shared(&self) -> bool {
        self.store.is_shared()
    }

    async fn read_sealed<T: DeserializeOwned>(&self, name: &str) -> Result<Option<T>, AcmeError> {
        let Some(sealed) = setting::get(&self.store, name).await? else { return Ok(None) };
        let plain = self.vault.open(name.as_bytes(), &sealed).map_err(AcmeError::from_store)?;
        serde_json::from_slice(&plain).map(Some).map_err(AcmeError::from_store)
    }

    async fn write_sealed<T: Serialize + Sync>(&self, name: &str, value: &T) -> Result<(), AcmeError> {
        let plain = serde_json::to_vec(value).map_err(AcmeError::from_store)?;
        let sealed = self.vault.seal(name.as_bytes(), &plain).map_err(AcmeError::from_store)?;
        Ok(setting::put(&self.store, name, Value::from(sealed)).await?)
    }

    pub(super) async fn read_account(&self) -> Result<Option<AccountCredentials>, AcmeError> {
        self.read_sealed(&self.account).await
    }

    pub(super) async fn store_account(&self, credentials: &AccountCredentials) -> Result<(), AcmeError> {
        self.write_sealed(&self.account, credentials).await
    }

    /// The authority does not know it any more.
    pub(super) async fn delete_account(&self) -> Result<(), AcmeError> {
        Ok(setting::remove(&self.store, &self.account).await?)
    }

    pub(super) async fn read_certificate(&self) -> Result<Option<Certificate>, AcmeError> {
        let pair: Option<StoredCertificate> = self.read_sealed(&self.certificate).await?;
        Ok(pair.map(|StoredCertificate { chain, key }| Certificate { chain: chain.into(), key: key.into() }))
    }

    pub(super) async fn store_certificate(&self, chain: String, key: String) -> Result<Certificate, AcmeError> {
        self.write_sealed(&self.certificate, &StoredCertificate { chain: chain.clone(), key: key.clone() }).await?;
        Ok(Certificate { chain: chain.into(), key: key.into() })
    }

    /// Leaves proofs for other nodes to show, instead of those that are there.
    pub(super) async fn store_responses(&self, proofs: &ChallengeResponses) -> Result<(), AcmeError> {
        if proofs.is_empty() {
            return Ok(setting::remove(&self.store, &self.proofs).await?);
        }
        let row = serde_json::to_vec(proofs).map_err(AcmeError::from_store)?;
        Ok(setting::put(&self.store, &self.proofs, Value::from(row)).await?)
    }

    /// What another node is to prove, or this one.
    pub(super) async fn read_responses(&self) -> Result<ChallengeResponses, AcmeError> {
        match setting::get(&self.store, &self.proofs).await? {
            Some(row) => serde_json::from_slice(&row).map_err(AcmeError::from_store),
            None => Ok(ChallengeResponses::new()),
        }
    }

    /// Whether `node` orders until then. False: another node does at the moment.
    pub(super) async fn acquire_lease(&self, node: &str, now: Timestamp, until: Timestamp) -> Result<bool, AcmeError> {
        let before = setting::get(&self.store, &self.lease).await?;
        let held = before.as_ref().and_then(|row| serde_json::from_slice::<OrderLease>(row).ok());
        if held.is_some_and(|lease| lease.node != node && lease.until > now) {
            return Ok(false);
        }
        let lease = OrderLease { node: node.to_owned(), until };
        let after = serde_json::to_vec(&lease).map_err(AcmeError::from_store)?;
        match setting::change(&self.store, &self.lease, before, Some(Value::from(after))).await {
            Ok(()) => Ok(true),
            Err(CommitError::Conflict { .. }) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// Another node may order.
    pub(super) async fn release_lease(&self, node: &str) -> Result<(), AcmeError> {
        let before = setting::get(&self.store, &self.lease).await?;
        let held = before.as_ref().and_then(|row| serde_json::from_slice::<OrderLease>(row).ok());
        if held.is_some_and(|lease| lease.node == node) {
            setting::change(&self.store, &self.lease, before, None).await?;
        }
        Ok(())
    }
}
