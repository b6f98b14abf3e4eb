//! Processor state: per object, what all ingested facts add up to. The rows belong to the ledger.
//!
//! A row does not depend on the order or repetition of facts. State is an LWW register ([`LwwRegister`]): the newest
//! version wins. Things that stay true once true are sets or earliest and latest times. Values computed by the ledger
//! are stored in the same row, in a section of their own.
//!
//! Rows are bounded. If an object has more entries than fit, ingestion fails with [`TooManyEntries`] instead of
//! computing wrong amounts.

mod charge;
mod connected_account;
mod customer;
#[cfg(test)]
mod golden_rows;
mod invoice;
mod lww_register;
mod money_moment;
mod payment;
#[cfg(test)]
mod properties;

use std::collections::{BTreeMap, BTreeSet};

use thiserror::Error;

pub(crate) use self::charge::ChargeState;
pub(crate) use self::connected_account::ConnectedAccountState;
pub(crate) use self::customer::CustomerState;
pub(crate) use self::invoice::{CountedRevenue, InvoiceState, PaidInvoice};
pub(crate) use self::lww_register::LwwRegister;
pub(crate) use self::payment::PaymentState;

/// Maximum entries of one kind per object, e.g. refunds of a charge.
pub(crate) const THINGS_MAX: usize = 500;

/// An object has more entries of a kind than are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("more than {THINGS_MAX} {0}")]
pub struct TooManyEntries(pub &'static str);

/// Returns the entry of a bounded map, creating it if needed.
fn bounded_entry<'a, T: Default>(
    map: &'a mut BTreeMap<String, T>,
    id: &str,
    description: &'static str,
) -> Result<&'a mut T, TooManyEntries> {
    if map.len() >= THINGS_MAX && !map.contains_key(id) {
        return Err(TooManyEntries(description));
    }
    Ok(map.entry(id.to_owned()).or_default())
}

/// Inserts into a bounded set.
fn bounded_insert(set: &mut BTreeSet<String>, id: &str, description: &'static str) -> Result<(), TooManyEntries> {
    if set.len() >= THINGS_MAX && !set.contains(id) {
        return Err(TooManyEntries(description));
    }
    set.insert(id.to_owned());
    Ok(())
}
