//! The affiliate program: operations of owner, partners and payment processor, and the ledger they change.
//!
//! ```text
//! owner, API ──► [service]: [onboarding], [campaigns], [partners], [links], [referrals] ─┐
//! processor ──signed bytes──► [processor] ──facts──► [ledger] ───────────────────────────┴─► one commit: rows + events
//! browser ──click, sign-up──► [visits] ──► [ledger]          [audit]: checks the invariants of the ledger
//! partner ──► portal pages of the API ──► [portal] ──► the same functions of [service]
//! queued partner email ──► [partner_emails] ──► mail to the partner, once
//! ```
//!
//! [payouts] pays what is earned, and [postbacks] posts events to partners' own addresses. [`stripe_client`] is the
//! client of the processor's API: [backfill] reads history with it, `enrichment` fetches what an event leaves out, and
//! [reconciliation] fetches the current state of charges. Domain types and arithmetic are in `mail::affiliate`, rows in
//! the crate `store`. [`api_objects`] defines the JSON that the API returns.

pub mod api_objects;
mod api_timestamp;
pub mod audit;
pub mod backfill;
pub mod campaigns;
pub mod context;
mod enrichment;
pub mod error;
mod events;
mod fair_executor;
pub mod if_match;
pub mod imports;
pub mod ledger;
pub mod link_url;
pub mod links;
mod offload;
pub mod onboarding;
pub mod partner_emails;
pub mod partner_lookup;
pub mod partners;
pub mod payouts;
pub mod portal;
pub mod postbacks;
pub mod processor;
pub mod processor_events;
pub mod programs;
pub mod reconciler;
pub mod reconciliation;
pub mod referrals;
mod secrets;
pub mod service;
pub mod stripe_client;
mod stripe_reconciler;
pub mod visits;
