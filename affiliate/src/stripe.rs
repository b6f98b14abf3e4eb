//! Stripe, the payment processor: its API, the events it sends, and what is read from its history.
//!
//! ```text
//! signed bytes ─► [events] ─► the ledger, after [enrichment]        history ─► [backfill] ─► the ledger
//! charges ─► [reconciler]     payouts ─► [transfers]                all requests: [client]
//! ```

pub mod backfill;
pub mod client;
pub(crate) mod enrichment;
pub mod events;
mod reconciler;
mod transfers;
