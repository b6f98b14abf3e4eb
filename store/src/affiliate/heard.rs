//! What the payment processor told: a row for each of its objects, by the processor's id, and by customer.
//!
//! What is in a row is between the row and who wrote it; here it is kept, read back, and guarded against two who change
//! it at once.

use mail::id::AccountId;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::engine::{Batch, Key, ReadError, ScanOrder, Store, Value};
use crate::key::{KeyReader, Space, key};
use crate::row::{self, SerdeRow};

/// Which kind of the processor's objects.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum ProcessorObjectKind {
    /// A customer.
    Customer = 1,
    /// An invoice.
    Invoice = 2,
    /// A charge.
    Charge = 3,
    /// A payment: what stands between an invoice and its charges.
    Payment = 4,
    /// A partner's own account at the processor.
    Account = 5,
}

/// A row as it was read; nothing when there was none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredProcessorObject<T> {
    /// What it says.
    pub value: Option<T>,
    seen: Option<Value>,
}

fn key_of(account: AccountId, kind: ProcessorObjectKind, id: &str) -> Key {
    key(Space::ProcessorState).account(account).u8(kind as u8).text(id).build()
}

/// What is known of an object.
///
/// # Errors
/// The store cannot be read.
pub async fn get<T: Serialize + DeserializeOwned>(
    store: &Store,
    account: AccountId,
    kind: ProcessorObjectKind,
    id: &str,
) -> Result<StoredProcessorObject<T>, ReadError> {
    let seen = store.get(&key_of(account, kind, id)).await?;
    let value = seen.as_deref().map(row::decode::<SerdeRow<T>>).transpose()?.map(|plain| plain.0);
    Ok(StoredProcessorObject { value, seen })
}

impl<T: Serialize + DeserializeOwned + Clone> StoredProcessorObject<T> {
    /// What is committed holds only while it is as it was read.
    pub fn check_unchanged(&self, batch: &mut Batch, account: AccountId, (kind, id): (ProcessorObjectKind, &str)) {
        batch.check(key_of(account, kind, id), self.seen.clone());
    }

    /// Writes what is known from now on.
    pub fn put(batch: &mut Batch, account: AccountId, (kind, id): (ProcessorObjectKind, &str), value: &T) {
        batch.put(key_of(account, kind, id), row::encode(&SerdeRow(value.clone())));
    }
}

fn invoice_key(account: AccountId, customer: &str, invoice: &str) -> Key {
    key(Space::ProcessorStateByCustomer).account(account).text(customer).text(invoice).build()
}

/// An invoice is a customer's.
pub fn link_invoice_to_customer(batch: &mut Batch, account: AccountId, customer: &str, invoice: &str) {
    batch.put(invoice_key(account, customer, invoice), Vec::new());
}

/// A customer's invoices, by their ids, after one of them, at most `limit`.
///
/// # Errors
/// The store cannot be read.
pub async fn list_customer_invoices(
    store: &Store,
    account: AccountId,
    (customer, after): (&str, Option<&str>),
    limit: usize,
) -> Result<Vec<String>, ReadError> {
    let mut range = key(Space::ProcessorStateByCustomer).account(account).text(customer).range();
    if let Some(after) = after {
        range.start = crate::key::prefix_end(&invoice_key(account, customer, after));
    }
    let rows = store.scan(range, ScanOrder::Ascending, limit).await?;
    let invoice = |(row_key, _): (Key, Value)| {
        let mut reader = KeyReader::new(Space::ProcessorStateByCustomer, &row_key).map_err(row::damaged)?;
        reader.id().and_then(|_| reader.text()).map_err(row::damaged)?;
        reader.text().map_err(row::damaged)
    };
    rows.into_iter().map(invoice).collect()
}
