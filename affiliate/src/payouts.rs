//! Payouts: drafted in runs, approved by the owner, paid by hand or by the processor's transfers.
//!
//! ```text
//! [draft] ──batches──► run in draft ──[decide]: approve──► [settle]: paid, failed     (by hand)
//!                          └─ cancel ─► taken apart     └► [transfers] ──► paid, failed (the processor)
//! [work]: the node that owns a partition goes on with whatever stopped half-way
//! ```
//!
//! # Runs of any size, commits of bounded size
//!
//! A run of a hundred thousand partners is far more than one commit should hold. What an outsider may see between two
//! commits, and what a crash there leaves behind:
//!
//! - **Drafting** goes partner by partner, some hundreds in a commit. Each commit moves lines into payouts, and adds
//!   them to the payouts' amounts and to the run's totals: sums hold after every one of them. Payouts are there as soon
//!   as they are drafted (status `draft`, with their event); the run itself is shown to nobody before it is whole. How
//!   far it is stands in its row, so that after a crash it is gone on with, from there, and no partner is taken twice.
//!   Where nobody is to be paid, the run and all that was noted with it is forgotten.
//! - **Comparing**: once it is whole, and where the processor can be asked, what became of its charges is asked a hundred
//!   lines at a time; how far that is stands in the run's row, and until its end the run is not approved.
//! - **Sifting**: when a method of payment is allowed no more, the commit that says so marks the draft; payouts by it
//!   leave, some hundreds of lines in a commit, how far that is stands in the run's row, and until its end the run is not
//!   approved.
//! - **Approving** is the change of one row: whether an open payout is a draft or under way stands in its run alone.
//!   Before it everybody sees a draft, after it everybody sees payouts under way, and there is no between.
//! - **Cancelling** is one row as well: from then on the run's open payouts are gone for everybody. Their lines are
//!   freed afterwards, some hundreds in a commit; one that was not reached yet is freed by whoever meets it first (a
//!   refund, a reversal by hand). Until all are free no other run is drafted: who asks for one helps first.
//! - **Paid, failed, dropped** is said of a payout in one commit with its run and its event; its lines follow in the same
//!   commit, up to a hundred. The rest of a larger one follows in further commits, and how far they are stands in the
//!   payout's row: meanwhile a line still says `earned`, with the payout's id. Lines of failed payouts that were not
//!   reached yet are not in the next run, but in the one after it, at the latest.
//! - **A run is completed** by the commit that settles its last open payout.
//!
//! One run at a time is open: a row says which ([`store::affiliate::payout_run::open`]), and is checked where one begins.

mod compare;
mod decide;
mod draft;
mod files;
mod lookup;
pub mod results;
mod settle;
pub mod show;
mod sift;
mod sweep;
pub mod transfers;
mod work;

pub use self::draft::DraftResult;
pub use self::files::{FileSelection, PayoutFile};
pub use self::show::{PayoutPage, PayoutQuery, PayoutView};
pub use self::work::JobCounts;

use jiff::SignedDuration;

/// Lines that one commit drafts, or frees.
const LINES_AT_ONCE: usize = 400;
/// For so long nobody else goes on with what is being driven.
const DRIVER_LEASE: SignedDuration = SignedDuration::from_secs(60);

/// What a step came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum StepOutcome {
    /// There is more to do.
    More,
    /// It is done.
    Done,
}
