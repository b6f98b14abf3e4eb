//! Domain claim: moves a verified domain to another account that proves control of its DNS.
//!
//! ```text
//! pending ─► record found ─► 72 hours grace period with notice to the other account ─► completed
//!    │ 7 days               │ 30 days
//!    └──────► expired ◄─────┘              (the claimant can cancel at any time before)
//! ```
//!
//! If the other account never verified the domain, the record is sufficient: there is no grace period.

use std::time::Duration;

use jiff::Timestamp;
use message::address::DomainName;
use serde::{Deserialize, Serialize};

use crate::id::{AccountId, ClaimId};

/// Grace period in which the other account can object.
pub const GRACE_PERIOD: Duration = Duration::from_secs(72 * 3_600);
/// Lifetime of a claim whose record is not found.
pub const UNPROVEN_TTL: Duration = Duration::from_secs(7 * 24 * 3_600);
/// Lifetime of a claim after its record was found. It is long enough for the other account's scheduled emails.
pub const PROVEN_TTL: Duration = Duration::from_secs(30 * 24 * 3_600);

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ClaimStatus {
    /// The record was not found yet.
    Pending,
    /// The record was found, but a [`ClaimBlocker`] remains.
    Blocked,
    /// The record was found and no blocker remains, but the claimant's plan allows no more domains.
    Verified,
    /// The domain belongs to the claimant.
    Completed,
    /// The record was not found in time, or the claim was not completed in time.
    Expired,
    /// Cancelled by the claimant, or obsolete because the claimant got the domain in another way.
    Cancelled,
}

/// The reason why a proven claim is not completed yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ClaimBlocker {
    /// The grace period has not ended.
    GracePeriod,
    /// The other account's verification record is still published: both control the DNS.
    RecentOwnerActivity,
    /// The other account has scheduled emails from the domain.
    PendingScheduledEmails,
}

/// A claim of an account to a domain.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DomainClaim {
    pub id: ClaimId,
    /// The claimant.
    pub account: AccountId,
    pub name: DomainName,
    pub status: ClaimStatus,
    pub block: Option<ClaimBlocker>,
    /// When the record was first found.
    pub proven_at: Option<Timestamp>,
    pub created_at: Timestamp,
}

impl DomainClaim {
    /// When the claim expires: 7 days after its creation, or 30 days after its record was found.
    pub fn expires_at(&self) -> Timestamp {
        let (from, time) = match self.proven_at {
            None => (self.created_at, UNPROVEN_TTL),
            Some(proven) => (proven, PROVEN_TTL),
        };
        from.checked_add(time).unwrap_or(Timestamp::MAX)
    }

    /// End of the grace period; `None` before the record was found.
    pub fn grace_ends_at(&self) -> Option<Timestamp> {
        self.proven_at.map(|proven| proven.checked_add(GRACE_PERIOD).unwrap_or(Timestamp::MAX))
    }

    /// True if the claim can still be completed.
    pub fn is_open(&self) -> bool {
        matches!(self.status, ClaimStatus::Pending | ClaimStatus::Blocked | ClaimStatus::Verified)
    }

    /// A copy with another status and without blocker.
    pub fn with_status(&self, status: ClaimStatus) -> Self {
        Self { status, block: None, ..self.clone() }
    }

    /// The status at a time: an open claim past its lifetime is expired.
    pub fn status_at(&self, now: Timestamp) -> ClaimStatus {
        let is_late = self.is_open() && self.expires_at() <= now;
        if is_late { ClaimStatus::Expired } else { self.status }
    }
}
