//! The partner portal: sign-in and the operations on its pages. The pages themselves are in `api/src/portal.rs`.
//!
//! ```text
//! [login]: links and sessions              [application]: the public form, the invitation
//! [statistics]: sums that the pages show   [payout_destination]: set by the partner, confirmed by mail
//! [receipts]: paid payouts                 [settings]: a new postback secret
//! [host]: a host of the program's own
//! ```
//!
//! Operations use the same functions as the API and commit together with their event. Only an active partner may change
//! anything; an invited one may accept, and all others may only read.

pub mod application;
pub mod host;
pub mod login;
pub mod payout_destination;
pub mod receipts;
pub mod statistics;
