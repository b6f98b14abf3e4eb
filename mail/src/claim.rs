//! Claims: how a domain comes from one account to another, on the word of whoever rules its DNS
//! (completions-email.md 2.4).
//!
//! ```text
//! pending ─► the record is found ─► 72 hours, in which the other is told ─► completed
//! ```
//!
//! An account that never had the domain verified is asked nothing: the record is enough.

use std::time::Duration;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::address::Name;
use crate::id::{AccountId, ClaimId};

/// How long the other account has to object.
pub const GRACE: Duration = Duration::from_secs(72 * 3_600);
/// How long a claim whose record is not found stays open.
pub const OPEN_FOR: Duration = Duration::from_secs(7 * 24 * 3_600);

/// How far a claim is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ClaimStatus {
    /// Its record was not found yet.
    Pending,
    /// Its record was found; something else stands in the way: [`Block`].
    Blocked,
    /// The domain is the claimant's.
    Completed,
    /// Its record was not found in time.
    Expired,
    /// The domain was given up, or went to somebody else, meanwhile.
    Cancelled,
}

/// What a claim whose record was found waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Block {
    /// The other account has time to object.
    GracePeriod,
    /// The other account's own record stands there still: both rule the DNS.
    RecentOwnerActivity,
    /// The other account has scheduled emails from the domain.
    PendingScheduledEmails,
}

/// A claim.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claim {
    /// Its id.
    pub id: ClaimId,
    /// Who claims.
    pub account: AccountId,
    /// What.
    pub name: Name,
    /// How far it is.
    pub status: ClaimStatus,
    /// What it waits for.
    pub block: Option<Block>,
    /// When its record was found first.
    pub proven_at: Option<Timestamp>,
    /// When it was made.
    pub created_at: Timestamp,
}

impl Claim {
    /// Until when its record must be found.
    #[must_use]
    pub fn expires_at(&self) -> Timestamp {
        self.created_at.checked_add(OPEN_FOR).unwrap_or(Timestamp::MAX)
    }

    /// Until when the other may object, once the record was found.
    #[must_use]
    pub fn grace_ends_at(&self) -> Option<Timestamp> {
        self.proven_at.map(|proven| proven.checked_add(GRACE).unwrap_or(Timestamp::MAX))
    }

    /// Whether it can still come to something.
    #[must_use]
    pub fn is_open(&self) -> bool {
        matches!(self.status, ClaimStatus::Pending | ClaimStatus::Blocked)
    }

    /// How far it is now: what was not proven in time has expired.
    #[must_use]
    pub fn status_at(&self, now: Timestamp) -> ClaimStatus {
        let is_late = self.status == ClaimStatus::Pending && self.expires_at() <= now;
        if is_late { ClaimStatus::Expired } else { self.status }
    }
}
