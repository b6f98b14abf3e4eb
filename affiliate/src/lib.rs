//! The affiliate program: operations of owner, partners and payment processor, and the ledger they change.
//!
//! ```text
//! owner, API ──► [program], [partners], [referrals] ──────────────────────────────────────┐
//! processor ──signed bytes──► [stripe] ─► [processor] ──facts──► [ledger] ────────────────┴─► one commit: rows + events
//! browser ──click, sign-up──► [visits] ──► [ledger]          [audit]: checks the invariants of the ledger
//! partner ──► portal pages of the API ──► [portal] ──► the same functions as the owner's
//! queued partner email ──► [partner_emails] ──► mail to the partner, once
//! ```
//!
//! [payouts] pays what is earned; [reconciliation] fetches the current state of charges before. Every subsystem is a
//! struct with a [`context::Context`] (store, clock, randomness) and those that it uses; [service] lists them, builds
//! them and runs their loops. Domain types and arithmetic are in `model::affiliate`, rows in the crate `store`.
//! [`api_objects`] defines the JSON that the API returns.

pub mod api_objects;
mod api_timestamp;
pub mod audit;
pub mod context;
pub mod error;
mod events;
mod fair_executor;
pub mod if_match;
pub mod ledger;
mod offload;
pub mod partner_emails;
pub mod partners;
pub mod payouts;
pub mod portal;
pub mod processor;
pub mod program;
pub mod reconciliation;
pub mod referrals;
mod secrets;
pub mod service;
pub mod stripe;
pub mod visits;
