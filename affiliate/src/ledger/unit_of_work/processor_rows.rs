//! The processor's objects in a unit of work: customers, invoices, charges, payments and connected accounts.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};

use model::id::AccountId;
use serde::Serialize;
use serde::de::DeserializeOwned;
use store::affiliate::processor_state::{self, ProcessorObjectKind, StoredProcessorObject};
use store::engine::{Batch, ReadError};

use super::tracked_rows::RowSource;
use crate::context::Context;
use crate::ledger::processor_state::{ChargeState, ConnectedAccountState, CustomerState, InvoiceState, PaymentState};

/// Known source of an invoice's payment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum PaymentSource {
    /// A charge, by id.
    Charge(String),
    /// A payment intent, by id; its charge is unknown.
    Payment(String),
}

/// Rows of the processor's objects, by the processor's id.
pub(crate) struct ProcessorRows {
    source: RowSource,
    customers: RowSet<CustomerState>,
    invoices: RowSet<InvoiceState>,
    charges: RowSet<ChargeState>,
    payments: RowSet<PaymentState>,
    accounts: RowSet<ConnectedAccountState>,
    /// (customer, invoice) pairs to add to the index of invoices by customer.
    invoice_index_additions: BTreeSet<(String, String)>,
}

impl ProcessorRows {
    /// Rows that are only read.
    pub(crate) fn of_account(context: &Context, account: AccountId) -> Self {
        Self::new(RowSource { store: context.store.clone(), account })
    }

    pub(super) fn new(source: RowSource) -> Self {
        Self {
            source,
            customers: RowSet::new(ProcessorObjectKind::Customer),
            invoices: RowSet::new(ProcessorObjectKind::Invoice),
            charges: RowSet::new(ProcessorObjectKind::Charge),
            payments: RowSet::new(ProcessorObjectKind::Payment),
            accounts: RowSet::new(ProcessorObjectKind::Account),
            invoice_index_additions: BTreeSet::new(),
        }
    }

    pub(crate) async fn customer(&mut self, id: &str) -> Result<&mut CustomerState, ReadError> {
        self.customers.load(&self.source, id).await
    }

    pub(crate) async fn invoice(&mut self, id: &str) -> Result<&mut InvoiceState, ReadError> {
        self.invoices.load(&self.source, id).await
    }

    pub(crate) async fn charge(&mut self, id: &str) -> Result<&mut ChargeState, ReadError> {
        self.charges.load(&self.source, id).await
    }

    pub(crate) async fn payment(&mut self, id: &str) -> Result<&mut PaymentState, ReadError> {
        self.payments.load(&self.source, id).await
    }

    pub(crate) async fn connected_account(&mut self, id: &str) -> Result<&mut ConnectedAccountState, ReadError> {
        self.accounts.load(&self.source, id).await
    }

    /// Adds an invoice to the index of its customer's invoices. An index scan cannot be checked at commit, so the
    /// customer's row is changed as well: a concurrent scan then conflicts.
    pub(crate) async fn index_invoice(&mut self, customer: &str, invoice: &str) -> Result<(), ReadError> {
        if self.invoice(invoice).await?.set_index_customer(customer) {
            let row = self.customer(customer).await?;
            row.listings = row.listings.saturating_add(1);
            self.invoice_index_additions.insert((customer.to_owned(), invoice.to_owned()));
        }
        Ok(())
    }

    /// Returns customers whose invoices are still being recomputed, each with its cursor.
    pub(crate) fn customers_in_progress(&self) -> Vec<(String, String)> {
        let rows = self.customers.rows.iter();
        rows.filter_map(|(id, (_, row))| Some((id.clone(), row.going_through.clone()?))).collect()
    }

    /// Returns the charges that paid an invoice, with their ids.
    pub(crate) async fn charges_of(&mut self, invoice: &str) -> Result<Vec<(String, ChargeState)>, ReadError> {
        let row = self.invoice(invoice).await?;
        let (mut ids, payments) = (row.charges.clone(), row.payments.clone());
        for payment in payments {
            ids.extend(self.payment(&payment).await?.charges.iter().cloned());
        }
        let mut charges = Vec::new();
        for id in ids {
            let charge = self.charge(&id).await?.clone();
            charges.push((id, charge));
        }
        Ok(charges)
    }

    /// True if this is the sale of a checkout session without an invoice, and a paid invoice of its payment is known. The
    /// session's sale has the id of the payment intent.
    pub(crate) async fn is_replaced_by_invoice(&mut self, sale: &str) -> Result<bool, ReadError> {
        if !self.invoice(sale).await?.payments.contains(sale) {
            return Ok(false);
        }
        for invoice in self.payment(sale).await?.invoices.clone() {
            if invoice != sale && self.invoice(&invoice).await?.paid().is_some() {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Returns the states of the checkout sessions without an invoice whose payments paid this invoice. They are stored
    /// with the id of the payment intent, as if they were invoices.
    pub(crate) async fn sessions_of(&mut self, invoice: &str) -> Result<Vec<InvoiceState>, ReadError> {
        let mut sessions = Vec::new();
        for payment in self.invoice(invoice).await?.payments.clone() {
            if payment != invoice {
                sessions.push(self.invoice(&payment).await?.clone());
            }
        }
        Ok(sessions)
    }

    /// Returns the known sources of an invoice's payment: charges, and payment intents without a known charge.
    pub(crate) async fn payment_sources(&mut self, invoice: &str) -> Result<Vec<PaymentSource>, ReadError> {
        let row = self.invoice(invoice).await?;
        let (mut charges, payments) = (row.charges.clone(), row.payments.clone());
        let mut paid_by = Vec::new();
        for payment in payments {
            let payment_charges = self.payment(&payment).await?.charges.clone();
            if payment_charges.is_empty() {
                paid_by.push(PaymentSource::Payment(payment));
            }
            charges.extend(payment_charges);
        }
        paid_by.extend(charges.into_iter().map(PaymentSource::Charge));
        Ok(paid_by)
    }

    /// Returns a payment intent whose invoice is unknown; `None` if the charge or one of its payments has an invoice.
    pub(crate) async fn find_unlinked_payment(
        &mut self,
        charge: Option<String>,
        payment: Option<String>,
    ) -> Result<Option<String>, ReadError> {
        let mut payments: BTreeSet<String> = payment.into_iter().collect();
        if let Some(charge) = charge {
            let charge_state = self.charge(&charge).await?;
            if !charge_state.invoices.is_empty() {
                return Ok(None);
            }
            payments.extend(charge_state.payments.iter().cloned());
        }
        for payment in &payments {
            // A checkout session's sale has the id of its payment, and tells nothing about the invoice.
            if self.payment(payment).await?.invoices.iter().any(|invoice| invoice != payment) {
                return Ok(None);
            }
        }
        Ok(payments.pop_first())
    }

    /// Writes changed rows, and makes the commit depend on every loaded row being unchanged.
    pub(super) fn write(&self, batch: &mut Batch) {
        let account = self.source.account;
        self.customers.write(batch, account);
        self.invoices.write(batch, account);
        self.charges.write(batch, account);
        self.payments.write(batch, account);
        self.accounts.write(batch, account);
        for (customer, invoice) in &self.invoice_index_additions {
            processor_state::link_invoice_to_customer(batch, account, customer, invoice);
        }
    }
}

/// Rows of one kind, each as it was read and with its changes.
struct RowSet<T> {
    kind: ProcessorObjectKind,
    rows: BTreeMap<String, (StoredProcessorObject<T>, T)>,
}

impl<T: Serialize + DeserializeOwned + Default + Clone + PartialEq> RowSet<T> {
    fn new(kind: ProcessorObjectKind) -> Self {
        Self { kind, rows: BTreeMap::new() }
    }

    /// Returns an object's state for reading and changing; reads it on first use.
    async fn load(&mut self, source: &RowSource, id: &str) -> Result<&mut T, ReadError> {
        match self.rows.entry(id.to_owned()) {
            Entry::Occupied(row) => Ok(&mut row.into_mut().1),
            Entry::Vacant(vacant) => {
                let read: StoredProcessorObject<T> =
                    processor_state::get(&source.store, source.account, self.kind, id).await?;
                let now = read.value.clone().unwrap_or_default();
                Ok(&mut vacant.insert((read, now)).1)
            }
        }
    }

    fn write(&self, batch: &mut Batch, account: AccountId) {
        for (id, (read, now)) in &self.rows {
            read.check_unchanged(batch, account, self.kind, id);
            let is_unchanged = read.value.as_ref().map_or_else(|| *now == T::default(), |before| before == now);
            if !is_unchanged {
                StoredProcessorObject::put(batch, account, self.kind, id, now);
            }
        }
    }
}
