//! The affiliate program at work: what its owner, its partners and the payment processor do, and what follows.
//!
//! ```text
//! owner, program's server ──► [office]: [set_up], [campaigns], [partners], [links], [referrals] ─┐
//! processor ──signed bytes──► [processor] ──facts──► [ledger] ───────────────────────────────────┴─► one commit: rows + events
//! browser ──click, sign-up──► [visits] ──► [ledger]          [audit]: whether the books are as they must be
//! partner ──► pages of the API ──► [portal] ──► the office's own functions
//! a commit's letter ──► [letters] ──► mail to the partner, once
//! ```
//!
//! What is earned is paid by [payouts]; partners' own addresses are told by [postbacks]. [`asking`] is how the processor is
//! asked in turn: by [backfill] for the past, by [`completing`] for what an event leaves out, by [comparing] for what became
//! of charges. The nouns and the arithmetic are `mail::affiliate`; the rows are the store's.
//! [`object`] is what everybody outside is shown of them.

pub mod asking;
pub mod audit;
pub mod backfill;
pub mod campaigns;
pub mod comparing;
mod completing;
pub mod imports;
mod lanes;
pub mod ledger;
pub mod letters;
pub mod links;
pub mod object;
pub mod office;
mod offload;
pub mod partners;
pub mod payouts;
pub mod portal;
pub mod postbacks;
pub mod processor;
pub mod processor_events;
pub mod referrals;
pub mod refusal;
pub mod set_up;
mod tell;
pub mod visits;
