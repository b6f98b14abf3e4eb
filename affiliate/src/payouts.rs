//! Payouts: drafted in runs, approved by the owner, and paid by hand or by transfers of the processor.
//!
//! ```text
//! [draft] ──batches──► run in draft ──[approval]: approve──► [outcome]: paid, failed     (by hand)
//!                          └─ cancel ─► lines released     └► [transfers] ──► paid, failed (the processor)
//! [jobs]: the node that owns a partition continues unfinished jobs
//! ```
//!
//! # Runs of any size, commits of bounded size
//!
//! A run of 100,000 partners exceeds one commit. Between two commits, and after a crash, others see this:
//!
//! - **Drafting** is partner by partner, some hundred lines per commit. Each commit moves lines into payouts and adds
//!   them to the payouts' amounts and the run's totals, so sums always hold. Payouts are visible at once (status
//!   `draft`, with their event); the run itself only when it is complete. Its row stores a cursor: after a crash
//!   drafting continues from there, and no partner is drafted twice. A run without payouts is deleted with everything
//!   noted for it.
//! - **Reconciling**: once complete, and if the program has an API key, the run's charges are reconciled with the
//!   processor, 100 lines at a time. The cursor is in the run's row, and the run cannot be approved before the end.
//! - **Filtering methods**: when a payout method is no longer allowed, the same commit marks the draft. Payouts by that
//!   method are removed, some hundred lines per commit. The cursor is in the run's row, and the run cannot be approved
//!   before the end.
//! - **Approving** changes one row: whether an open payout is a draft or in progress depends on its run only. So all
//!   payouts of a run change at once.
//! - **Cancelling** also changes one row: from then on no reader sees its open payouts. Their lines are
//!   released afterwards, some hundred per commit; a line not reached yet is released by the first operation that reads
//!   it (a refund, a manual reversal). Until all are released, no other run is drafted: a request for one releases
//!   lines first.
//! - **Paid, failed, dropped**: a payout changes in one commit with its run and its event, and up to 100 of its lines
//!   change with it. The rest follows in further commits, with the cursor in the payout's row. Until then such a line
//!   is still `earned`, with the payout's id. Lines of failed payouts that are not released yet miss the next run and
//!   are in the one after it.
//! - **Completing**: the commit that settles the last open payout completes the run.
//!
//! At most one run is open per account. Its row ([`store::affiliate::payout_run::find_open`]) is checked when a run
//! starts.

pub(crate) mod deleted_partner;
mod draft;
pub mod files;
pub mod filter_methods;
pub mod jobs;
pub(crate) mod reconcile;
mod release_lines;
pub mod results;
pub mod runs;
pub mod settle;
mod step;
pub mod transfers;
pub mod view;
