//! Billing: an account with a payment method on file at the operator's payment processor may send to anybody.
//!
//! ```text
//! the processor tells ─► the payer, as all of it adds up ─► whose account? ─►[ payer + who pays for it + account ]
//! ```

use std::sync::Arc;

use mail::address::Address;
use mail::billing::{BillingUpdate, Payer};
use mail::id::AccountId;
use store::billing::{Payers, StoredBillingRecord};
use store::engine::{Batch, CommitError, ReadError, Store};
use thiserror::Error;

use crate::accept::Intake;
use crate::sender::SenderAuthorization;

/// Commits tried, when something else is told of the same customer or account meanwhile.
const TRIES_MAX: usize = 20;
/// Customers that pay for one account. Nobody has so many.
const PAYERS_MAX: usize = 1_000;

/// Why what was told could not be taken in: it is to be told again.
#[derive(Debug, Error)]
pub enum BillingError {
    /// Others changed the same without end.
    #[error("something else was told of the same customer at the same time; tell it again")]
    Changed,
    /// The store cannot be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// The store cannot be written.
    #[error(transparent)]
    Commit(#[from] CommitError),
}

/// Takes in what the operator's payment processor tells of its customers.
#[derive(Clone)]
pub struct BillingService {
    store: Store,
    senders: Arc<SenderAuthorization>,
}

impl Intake {
    /// Who pays; the hall goes by what was changed at once.
    #[must_use]
    pub fn billing(&self) -> BillingService {
        BillingService { store: self.store().clone(), senders: Arc::clone(&self.sender_authorization) }
    }
}

impl BillingService {
    /// Takes in what was told of a customer. Gives the account that it pays for, if it is known by now.
    ///
    /// # Errors
    /// [`BillingError`].
    pub async fn apply_customer_state(
        &self,
        customer: &str,
        told: &BillingUpdate,
    ) -> Result<Option<AccountId>, BillingError> {
        for _ in 0..TRIES_MAX {
            let found = store::billing::get_payer(&self.store, customer).await?;
            let mut payer = found.noun.clone();
            payer.apply(told.clone());
            payer.account = self.paying_account(&payer).await?;
            let mut batch = Batch::progress();
            found.change(&mut batch, &payer);
            let mut changed = Vec::new();
            // Of whom it paid for before, and of whom it pays for now.
            for account in [found.noun.account.filter(|before| payer.account != Some(*before)), payer.account] {
                let Some(account) = account else { continue };
                let pays = payer.account == Some(account) && payer.has_method();
                self.record_payer(&mut batch, account, (customer, pays)).await?;
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

    /// The account that a customer pays for: the one that was named, else the one whose owner has the same address.
    async fn paying_account(&self, payer: &Payer) -> Result<Option<AccountId>, ReadError> {
        for reference in payer.referenced_accounts() {
            if store::account::get(&self.store, reference).await?.is_some() {
                return Ok(Some(reference));
            }
        }
        let email = payer.customer.as_ref().and_then(|customer| customer.email.as_ref());
        // Nothing but an address: an id is looked for above.
        let Some(email) = email.and_then(|email| email.parse::<Address>().ok()) else { return Ok(None) };
        let found = store::account::find(&self.store, &email.to_string()).await?;
        Ok(found.map(|account| account.id))
    }

    /// Writes down whether a customer pays for an account, and what follows for the account.
    async fn record_payer(
        &self,
        batch: &mut Batch,
        account: AccountId,
        (customer, pays): (&str, bool),
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
            tracing::info!(account.id = %account, payment_method = after.payment_method, "the processor told");
            store::account::update(batch, &before, &after);
        }
        Ok(())
    }
}
