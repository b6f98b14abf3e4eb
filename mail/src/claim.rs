//! Claims: how a domain comes from one account to another, on the word of whoever rules its DNS
//! (completions-email.md 2.4).
//!
//! ```text
//! pending ─► the record is found ─► 72 hours, in which the other is told ─► completed
//!    │ 7 days               │ 30 days
//!    └──────► expired ◄─────┘              (cancelled by the claimant at any time before)
//! ```
//!
//! An account that never had the domain verified is asked nothing: the record is enough.

use std::time::Duration;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::address::DomainName;
use crate::id::{AccountId, ClaimId};

/// How long the other account has to object.
pub const GRACE_PERIOD: Duration = Duration::from_secs(72 * 3_600);
/// How long a claim whose record is not found stays open.
pub const UNPROVEN_TTL: Duration = Duration::from_secs(7 * 24 * 3_600);
/// How long one whose record was found stays open, from then on: long enough for the other's scheduled mail.
pub const PROVEN_TTL: Duration = Duration::from_secs(30 * 24 * 3_600);

/// How far a claim is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ClaimStatus {
    /// Its record was not found yet.
    Pending,
    /// Its record was found; something else stands in the way: [`Block`].
    Blocked,
    /// Its record was found and nothing of the other's stands in the way; the claimant's plan includes no more domains.
    Verified,
    /// The domain is the claimant's.
    Completed,
    /// Its record was not found in time, or it did not come to its end in time.
    Expired,
    /// The claimant gave it up, or got the domain in another way.
    Cancelled,
}

/// What a claim whose record was found waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ClaimBlocker {
    /// The other account has time to object.
    GracePeriod,
    /// The other account's own record stands there still: both rule the DNS.
    RecentOwnerActivity,
    /// The other account has scheduled emails from the domain.
    PendingScheduledEmails,
}

/// A claim.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DomainClaim {
    /// Its id.
    pub id: ClaimId,
    /// Who claims.
    pub account: AccountId,
    /// What.
    pub name: DomainName,
    /// How far it is.
    pub status: ClaimStatus,
    /// What it waits for.
    pub block: Option<ClaimBlocker>,
    /// When its record was found first.
    pub proven_at: Option<Timestamp>,
    /// When it was made.
    pub created_at: Timestamp,
}

impl DomainClaim {
    /// Until when its record must be found; once it was, until when it must be completed.
    #[must_use]
    pub fn expires_at(&self) -> Timestamp {
        let (from, time) = match self.proven_at {
            None => (self.created_at, UNPROVEN_TTL),
            Some(proven) => (proven, PROVEN_TTL),
        };
        from.checked_add(time).unwrap_or(Timestamp::MAX)
    }

    /// Until when the other may object, once the record was found.
    #[must_use]
    pub fn grace_ends_at(&self) -> Option<Timestamp> {
        self.proven_at.map(|proven| proven.checked_add(GRACE_PERIOD).unwrap_or(Timestamp::MAX))
    }

    /// Whether it can still come to something.
    #[must_use]
    pub fn is_open(&self) -> bool {
        matches!(self.status, ClaimStatus::Pending | ClaimStatus::Blocked | ClaimStatus::Verified)
    }

    /// The claim, ended in this way.
    #[must_use]
    pub fn with_status(&self, status: ClaimStatus) -> Self {
        Self { status, block: None, ..self.clone() }
    }

    /// How far it is now: what was not proven, or not completed, in time has expired.
    #[must_use]
    pub fn status_at(&self, now: Timestamp) -> ClaimStatus {
        let is_late = self.is_open() && self.expires_at() <= now;
        if is_late { ClaimStatus::Expired } else { self.status }
    }
}
