//! Processor state: per object, what all ingested facts add up to. The rows belong to the ledger.
//!
//! A row does not depend on the order or repetition of facts. State is an LWW register ([`LwwRegister`]): the newest
//! version wins. Things that stay true once true are sets or earliest and latest times. Values computed by the ledger
//! are stored in the same row, in a section of their own.
//!
//! Rows are bounded. If an object has more entries than fit, ingestion fails with [`TooManyEntries`] instead of
//! computing wrong amounts.

mod bounded;
mod charge;
mod connected_account;
mod creation_flag;
mod customer;
#[cfg(test)]
mod golden_rows;
mod invoice;
mod lww_register;
mod money_moment;
mod payment;
#[cfg(test)]
mod properties;

pub(crate) use self::bounded::TooManyEntries;
pub(crate) use self::charge::ChargeState;
pub(crate) use self::connected_account::ConnectedAccountState;
pub(crate) use self::customer::CustomerState;
pub(crate) use self::invoice::{CountedRevenue, InvoiceState, PaidInvoice};
pub(crate) use self::payment::PaymentState;
