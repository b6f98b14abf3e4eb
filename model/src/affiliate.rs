//! Affiliate program: the shared types and the commission arithmetic.
//!
//! ```text
//! processor ─► [sale] ─┐
//! [campaign] ──────────┼─► [recompute] ─► [commission] lines ─► [payout]s of a run
//! [partner] ─ [referral]┘       │
//!                          [arithmetic], [window]
//! ```
//!
//! Amounts are whole minor units ([`money`]) and rates are basis points. No floating point is used.

pub mod arithmetic;
pub mod backfill;
pub mod balance;
pub mod campaign;
pub mod commission;
pub mod fraud_checks;
pub mod money;
pub mod partner;
pub mod partner_email;
pub mod partner_fields;
pub mod partner_import;
pub mod payout;
pub mod periods;
pub mod portal;
pub mod postback;
pub mod program;
pub mod recompute;
pub mod referral;
pub mod refunds;
pub mod sale;
pub mod visit;
pub mod web_origin;
