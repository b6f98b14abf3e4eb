//! Signals between a decision and the execution of the approved request in this process.

use tokio::sync::Notify;

/// The signals. A lost one costs time only: the rows tell what is to be done.
#[derive(Debug, Default)]
pub(crate) struct ApprovalSignals {
    /// A request was approved.
    pub(crate) approved: Notify,
    /// An execution ended.
    pub(crate) ended: Notify,
}
