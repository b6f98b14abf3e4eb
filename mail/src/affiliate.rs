//! The affiliate program's nouns, and its arithmetic: what a sale is worth to whom.
//!
//! ```text
//! processor ─► [sale] ─┐
//! [campaign] ──────────┼─► [recompute] ─► [commission] lines ─► [payout]s of a run
//! [partner] ─ [referral]┘       │
//!                          [arithmetic], [window]
//! ```
//!
//! Money is whole minor units ([`money`]), rates are basis points, and there is no floating point anywhere.

pub mod arithmetic;
pub mod backfill;
pub mod balance;
pub mod campaign;
pub mod commission;
pub mod money;
pub mod origin;
pub mod particulars;
pub mod partner;
pub mod partner_letter;
pub mod partner_list;
pub mod payout;
pub mod portal;
pub mod postback;
pub mod program;
pub mod recompute;
pub mod referral;
pub mod refunds;
pub mod sale;
pub mod suspicion;
pub mod visit;
pub mod window;
pub mod word;
