//! The ledger: computes commissions and paying referrals from the payment processor's facts.
//!
//! ```text
//! signed bytes ─► [ingest] ─► fact ─► [apply_facts]: processor state ──┐
//!                                     [attribution]: whose customer    ├─ [unit_of_work] ─► one commit: rows + events
//!                                     [recompute]: commission lines    ┘                    (conflict: from scratch)
//! clock ─► [hold_release]      owner, API ─► [manual_actions]      new leads ─► [leads]
//! ```
//!
//! A fact is the state of an object, not a change. It is merged into the stored processor state (module
//! `processor_state`), where the newest version wins; then everything that depends on it is recomputed. So the order
//! and repetition of facts do not change the ledger.
//!
//! # Limits
//!
//! Results that span invoices or referrals depend on arrival order, and are frozen when a line is written:
//! - which invoice is the first (`once`), in which month a customer converted, and how many customers the partner had;
//! - which partner's claim is first;
//! - a flag on a customer or subscription that excludes its sales.
//!
//! A referral's currency is that of the first invoice ingested, and its email the first that becomes known. If an
//! invoice has no email, the lead is matched by the newest email of its customer at that time.

mod apply_facts;
mod attribution;
pub mod balances;
pub(crate) mod commit_batch;
mod fraud_review;
pub mod hold_release;
pub mod ingest;
mod leads;
pub mod manual_actions;
pub(crate) mod processor_state;
pub(crate) mod prospect;
pub(crate) mod recompute;
pub(crate) mod referral_commit;
pub(crate) mod settlement;
pub(crate) mod unit_of_work;
