//! The answer of `status`: the health of this server.

use crate::dashboard::prelude::*;

#[answer]
pub(super) struct ServerStatus {
    /// One sentence each.
    pub(super) problems: Vec<String>,
    pub(super) hostname: String,
    pub(super) version: String,
    pub(super) nodes: u64,
    pub(super) members: Option<Vec<ClusterNode>>,
    /// Partitions of this node.
    pub(super) partitions: u64,
    pub(super) store: StoreHealth,
    pub(super) listeners: Vec<ListenerState>,
    pub(super) queue: Option<QueueState>,
    pub(super) dns: DnsState,
    pub(super) disk: Option<DiskSpace>,
    pub(super) certificate: Option<CertificateState>,
    pub(super) last_hour: LastHour,
}

#[answer]
pub(super) struct ClusterNode {
    pub(super) name: String,
    pub(super) started_at: String,
    pub(super) partitions: u64,
}

#[answer]
pub(super) struct StoreHealth {
    pub(super) state: String,
    pub(super) reason: Option<String>,
    pub(super) commits: u64,
    pub(super) log_bytes: u64,
    pub(super) live_bodies: u64,
    pub(super) live_body_bytes: u64,
    pub(super) index_bytes: u64,
    pub(super) pending_rows: u64,
    pub(super) last_checkpoint_us: u64,
}

#[answer]
pub(super) struct ListenerState {
    pub(super) name: String,
    pub(super) address: String,
    pub(super) open: bool,
}

#[answer]
pub(super) struct QueueState {
    pub(super) recipients: u64,
    pub(super) has_more: bool,
    pub(super) held: u64,
    pub(super) due: u64,
    /// More may be due or held than were counted.
    pub(super) has_more_due: bool,
    pub(super) oldest: Option<String>,
    pub(super) hold: Option<QueueHold>,
    pub(super) paused: bool,
}

/// The hold of the whole queue after a restore.
#[answer]
pub(super) struct QueueHold {
    pub(super) recipients: u64,
    /// The queue is longer than what was counted.
    pub(super) has_more: bool,
    pub(super) since: Option<String>,
}

#[answer]
pub(super) struct DnsState {
    pub(super) answers: bool,
    pub(super) took_ms: u64,
    pub(super) error: Option<String>,
}

#[answer]
pub(super) struct DiskSpace {
    pub(super) free_bytes: u64,
    pub(super) bytes: u64,
}

#[answer]
pub(super) struct CertificateState {
    pub(super) source: String,
    pub(super) expires_at: Option<String>,
}

#[answer]
pub(super) struct LastHour {
    pub(super) accepted: u64,
    pub(super) delivered: u64,
    pub(super) deferred: u64,
    pub(super) bounced: u64,
    pub(super) failed: u64,
    pub(super) received: u64,
}

impl ServerStatus {
    pub(super) fn call() -> Call {
        Call::new("status")
    }

    pub(super) async fn read(context: &Context<'_>) -> Result<Self, Failure> {
        context.read(&Self::call()).await
    }
}
