//! Billing: an account with a payment method on file at the operator's payment processor may send to any recipient.
//!
//! ```text
//! processor event ─► payer, merged from all events ─► paying account ─►[ payer + payers of the account + account ]
//! ```

use std::sync::Arc;

use message::address::Address;
use model::billing::{BillingUpdate, Payer};
use model::id::AccountId;
use queue::intake::sender_authorization::SenderAuthorization;
use store::billing::{Payers, StoredBillingRecord};
use store::engine::{Batch, CommitError, ReadError, Store};
use thiserror::Error;

/// Commits tried when another event changes the same customer or account concurrently.
const TRIES_MAX: usize = 20;
/// Upper bound of the customers that pay for one account.
const PAYERS_MAX: usize = 1_000;

/// Why a billing event was not applied; the processor must send it again.
#[derive(Debug, Error)]
pub enum BillingError {
    /// Concurrent changes of the same rows did not end.
    #[error("concurrent billing events for one customer; send the event again")]
    Changed,
    #[error(transparent)]
    Read(#[from] ReadError),
    #[error(transparent)]
    Commit(#[from] CommitError),
}

/// Applies events of the operator's payment processor to its customers.
#[derive(Clone)]
pub struct BillingService {
    store: Store,
    senders: Arc<SenderAuthorization>,
}

impl BillingService {
    /// Creates the service. It invalidates cached sender authorizations of changed accounts.
    #[must_use]
    pub fn new(store: Store, senders: Arc<SenderAuthorization>) -> Self {
        Self { store, senders }
    }

    /// Applies an update of a customer. Returns the account that the customer pays for, if it is known.
    pub async fn apply_customer_state(
        &self,
        customer: &str,
        update: &BillingUpdate,
    ) -> Result<Option<AccountId>, BillingError> {
        for _ in 0..TRIES_MAX {
            let found = store::billing::get_payer(&self.store, customer).await?;
            let mut payer = found.noun.clone();
            payer.apply(update.clone());
            payer.account = self.paying_account(&payer).await?;
            let mut batch = Batch::progress();
            found.change(&mut batch, &payer);
            let mut changed = Vec::new();
            // The account that it paid for before, and the one that it pays for now.
            for account in [found.noun.account.filter(|before| payer.account != Some(*before)), payer.account] {
                let Some(account) = account else { continue };
                let pays = payer.account == Some(account) && payer.has_method();
                self.record_payer(&mut batch, account, customer, pays).await?;
                changed.push(account);
            }
            match self.store.commit(batch).await {
                Ok(()) => {
                    changed.iter().for_each(|account| self.senders.invalidate(*account, None));
                    return Ok(payer.account);
                }
                Err(CommitError::Conflict { .. }) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Err(BillingError::Changed)
    }

    /// The account that a customer pays for: the referenced one, else the one whose owner has the customer's address.
    async fn paying_account(&self, payer: &Payer) -> Result<Option<AccountId>, ReadError> {
        for reference in payer.referenced_accounts() {
            if store::account::get(&self.store, reference).await?.is_some() {
                return Ok(Some(reference));
            }
        }
        let email = payer.customer.as_ref().and_then(|customer| customer.email.as_ref());
        // Addresses only: references to account ids are handled above.
        let Some(email) = email.and_then(|email| email.parse::<Address>().ok()) else { return Ok(None) };
        let found = store::account::find(&self.store, &email.to_string()).await?;
        Ok(found.map(|account| account.id))
    }

    /// Records whether a customer pays for an account, and updates the account.
    async fn record_payer(
        &self,
        batch: &mut Batch,
        account: AccountId,
        customer: &str,
        pays: bool,
    ) -> Result<(), ReadError> {
        let found: StoredBillingRecord<Payers> = store::billing::get_payers(&self.store, account).await?;
        let mut payers = found.noun.clone();
        if !pays {
            payers.customers.remove(customer);
        } else if payers.customers.len() < PAYERS_MAX {
            payers.customers.insert(customer.to_owned());
        }
        if payers == found.noun {
            return Ok(());
        }
        found.change(batch, &payers);
        let Some(before) = store::account::get(&self.store, account).await? else { return Ok(()) };
        let mut after = before.clone();
        after.payment_method = !payers.customers.is_empty();
        if after != before {
            tracing::info!(account.id = %account, payment_method = after.payment_method, "payment method changed");
            store::account::update(batch, &before, &after);
        }
        Ok(())
    }
}
