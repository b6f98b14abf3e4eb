//! What the processor's facts add up to, object by object: rows of the ledger's own.
//!
//! Each row is the sum of the facts that were heard of its object, and does not depend on the order in which they came,
//! nor on how often: of what is state the newest account stands ([`Newest`]), of what once was true all of it does (sets,
//! the earliest and the latest time). What the ledger made of them stands beside it, under a heading of its own.
//!
//! Rows are bounded. An object of which more is told than fits is a [`TooMany`]: the event fails, rather than that the
//! books go wrong silently.

mod account;
mod charge;
mod customer;
#[cfg(test)]
mod golden_rows;
mod invoice;
mod moment;
mod newest;
mod payment;
#[cfg(test)]
mod properties;

use std::collections::{BTreeMap, BTreeSet};

use thiserror::Error;

pub(crate) use self::account::ConnectedAccountState;
pub(crate) use self::charge::ChargeState;
pub(crate) use self::customer::CustomerState;
pub(crate) use self::invoice::{CountedRevenue, InvoiceState, PaidInvoice};
pub(crate) use self::newest::LwwRegister;
pub(crate) use self::payment::PaymentState;

/// Things of one kind that are kept of one object: refunds of a charge, notes of an invoice.
pub(crate) const THINGS_MAX: usize = 500;

/// More is told of an object than is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("more than {THINGS_MAX} {0}")]
pub struct TooManyEntries(pub &'static str);

/// The place of a thing in a map that is bounded.
fn bounded_entry<'a, T: Default>(
    map: &'a mut BTreeMap<String, T>,
    id: &str,
    what: &'static str,
) -> Result<&'a mut T, TooManyEntries> {
    if map.len() >= THINGS_MAX && !map.contains_key(id) {
        return Err(TooManyEntries(what));
    }
    Ok(map.entry(id.to_owned()).or_default())
}

/// Adds to a set that is bounded.
fn bounded_insert(set: &mut BTreeSet<String>, id: &str, what: &'static str) -> Result<(), TooManyEntries> {
    if set.len() >= THINGS_MAX && !set.contains(id) {
        return Err(TooManyEntries(what));
    }
    set.insert(id.to_owned());
    Ok(())
}
