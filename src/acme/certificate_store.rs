//! ACME rows in the store: the account at the authority, certificates with their keys, challenge responses for other
//! nodes, and the order lease.
//!
//! ```text
//! setting `acme account DIRECTORY`     ─►  sealed credentials
//! setting `acme certificate NAMES`     ─►  sealed chain and key
//! setting `acme proofs DIRECTORY`      ─►  challenge responses of the current order
//! setting `acme lease DIRECTORY`       ─►  node and time
//! ```
//!
//! Nodes with the same names share a certificate. All nodes serve each other's challenge responses, and one node
//! orders at a time, so that two nodes never validate the same name concurrently. Account and keys are sealed with the
//! installation's key: a copy of the store alone reveals neither.

use aws_lc_rs::digest::{SHA256, digest};
use dns::secrets::Vault;
use instant_acme::AccountCredentials;
use jiff::Timestamp;
use message::hexadecimal;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use store::engine::{CommitError, Store, Value};
use store::setting;

use super::AcmeError;
use super::challenge::ChallengeResponses;
use crate::certificate::Certificate;

/// Certificate and private key as stored, PEM.
#[derive(Serialize, Deserialize)]
struct StoredCertificate {
    chain: String,
    key: String,
}

/// Names the node that orders, and the time until which other nodes do not.
#[derive(Serialize, Deserialize)]
struct OrderLease {
    node: String,
    until: Timestamp,
}

/// ACME rows in the store, of one set of names at one authority.
pub(super) struct CertificateStore {
    store: Store,
    vault: std::sync::Arc<Vault>,
    account: String,
    certificate: String,
    proofs: String,
    lease: String,
}

impl CertificateStore {
    pub(super) fn new(server: &crate::services::Server, directory: &str, names: &[String]) -> Self {
        let mut names = names.to_vec();
        names.sort();
        // There may be many names, and a setting's key is short.
        let short = hexadecimal::encode(&digest(&SHA256, names.join(" ").as_bytes()).as_ref()[..16]);
        Self {
            store: server.store.clone(),
            vault: std::sync::Arc::clone(&server.accounts.vault),
            account: format!("acme account {directory}"),
            certificate: format!("acme certificate {short}"),
            proofs: format!("acme proofs {directory}"),
            lease: format!("acme lease {directory}"),
        }
    }

    /// Returns whether other nodes share the store.
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

    /// Deletes the ACME account, when the authority no longer has it.
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

    /// Replaces the challenge responses that other nodes serve.
    pub(super) async fn store_responses(&self, proofs: &ChallengeResponses) -> Result<(), AcmeError> {
        if proofs.is_empty() {
            return Ok(setting::remove(&self.store, &self.proofs).await?);
        }
        let row = serde_json::to_vec(proofs).map_err(AcmeError::from_store)?;
        Ok(setting::put(&self.store, &self.proofs, Value::from(row)).await?)
    }

    /// Reads the challenge responses of whichever node orders.
    pub(super) async fn read_responses(&self) -> Result<ChallengeResponses, AcmeError> {
        match setting::get(&self.store, &self.proofs).await? {
            Some(row) => serde_json::from_slice(&row).map_err(AcmeError::from_store),
            None => Ok(ChallengeResponses::new()),
        }
    }

    /// Acquires or extends the order lease for `node`. Returns false while another node holds it.
    pub(super) async fn acquire_lease(&self, node: &str, now: Timestamp, until: Timestamp) -> Result<bool, AcmeError> {
        let stored_row = setting::get(&self.store, &self.lease).await?;
        let stored_lease = stored_row.as_ref().and_then(|row| serde_json::from_slice::<OrderLease>(row).ok());
        if stored_lease.is_some_and(|lease| lease.node != node && lease.until > now) {
            return Ok(false);
        }
        let lease = OrderLease { node: node.to_owned(), until };
        let lease_row = serde_json::to_vec(&lease).map_err(AcmeError::from_store)?;
        match setting::change(&self.store, &self.lease, stored_row, Some(Value::from(lease_row))).await {
            Ok(()) => Ok(true),
            Err(CommitError::Conflict { .. }) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// Releases the order lease if `node` holds it.
    pub(super) async fn release_lease(&self, node: &str) -> Result<(), AcmeError> {
        let stored_row = setting::get(&self.store, &self.lease).await?;
        let stored_lease = stored_row.as_ref().and_then(|row| serde_json::from_slice::<OrderLease>(row).ok());
        if stored_lease.is_some_and(|lease| lease.node == node) {
            setting::change(&self.store, &self.lease, stored_row, None).await?;
        }
        Ok(())
    }
}
