//! Visit: a click on a partner's link, and the time for which the visitor is attributed to the partner.
//!
//! ```text
//! click ─► attribution ([`attributed_visit`]) ─► existing or new visit ─► sign-up, checkout ─► referral
//! ```

use std::net::IpAddr;

use jiff::{SignedDuration, Timestamp};
use message::address::Address;
use serde::{Deserialize, Serialize};

use super::program::Attribution;
use super::referral::FraudFlag;
use crate::id::{AccountId, PartnerId, PartnerLinkId, ReferralId, VisitId};

/// Maximum number of referrals of one visit (people who share a browser).
pub const REFERRALS_MAX: usize = 20;
/// Maximum number of visitor ids of one visit: one for each domain that the visit was passed to.
pub const VISITORS_MAX: usize = 8;
/// Longest partner tag in characters; longer tags are truncated.
pub const SUB_ID_CHARS_MAX: usize = 100;
/// A repeated click on the same link within this time is a page reload.
pub const RELOAD_WINDOW: SignedDuration = SignedDuration::from_mins(30);
/// How long an expired visit is stored, because a purchase made in time can be reported late.
pub const RETENTION_AFTER_EXPIRY: SignedDuration = SignedDuration::from_hours(30 * 24);
/// How long daily click counts are stored.
pub const COUNTS_RETENTION: SignedDuration = SignedDuration::from_hours(2 * 366 * 24);

/// A click on a partner's link.
#[message::row::omit_empty]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PartnerVisit {
    /// The value of `stx.referral`.
    pub id: VisitId,
    pub account: AccountId,
    pub partner: PartnerId,
    pub link: PartnerLinkId,
    /// Visitor ids (cookie `stx_vid`), one per domain; empty if no script ran. At most [`VISITORS_MAX`].
    pub visitors: Vec<String>,
    /// The partner's own tag.
    pub sub_id: Option<String>,
    /// The visitor's IP address; for IPv6 its network prefix.
    pub from: Option<IpAddr>,
    /// Fraud flags of the click.
    pub flags: Vec<FraudFlag>,
    /// Email addresses that pages reported for the visitor. At most [`REFERRALS_MAX`].
    pub people: Vec<Address>,
    /// Referrals that resulted from the visit. At most [`REFERRALS_MAX`].
    pub referrals: Vec<ReferralId>,
    pub clicked_at: Timestamp,
    /// End of the attribution.
    pub expires_at: Timestamp,
}

impl PartnerVisit {
    /// True if the attribution has ended.
    pub fn has_lapsed(&self, now: Timestamp) -> bool {
        now >= self.expires_at
    }

    /// The time until which the visit is stored.
    pub fn retained_until(&self) -> Timestamp {
        self.expires_at.checked_add(RETENTION_AFTER_EXPIRY).unwrap_or(Timestamp::MAX)
    }

    /// True if a click on this link now is a reload of the page.
    pub fn is_reload(&self, link: PartnerLinkId, now: Timestamp) -> bool {
        self.link == link && now.duration_since(self.clicked_at) < RELOAD_WINDOW
    }
}

/// Returns the visit of two that the visitor is attributed to: the first or the last by click time, as the program's
/// model requires. The order of the arguments does not matter.
pub fn attributed_visit<'a>(model: Attribution, one: &'a PartnerVisit, other: &'a PartnerVisit) -> &'a PartnerVisit {
    let (first, last) =
        if (one.clicked_at, one.id) <= (other.clicked_at, other.id) { (one, other) } else { (other, one) };
    match model {
        Attribution::FirstClick => first,
        Attribution::LastClick => last,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn visit(second: i64, number: u128) -> PartnerVisit {
        let at = Timestamp::from_second(second).unwrap();
        PartnerVisit {
            id: VisitId::new(at, number),
            account: AccountId::new(at, 1),
            partner: PartnerId::new(at, number),
            link: PartnerLinkId::new(Timestamp::UNIX_EPOCH, number),
            visitors: Vec::new(),
            sub_id: None,
            from: None,
            flags: Vec::new(),
            people: Vec::new(),
            referrals: Vec::new(),
            clicked_at: at,
            expires_at: at.checked_add(SignedDuration::from_hours(24)).unwrap(),
        }
    }

    #[test]
    fn attribution_does_not_depend_on_the_order() {
        for (one, other) in [(visit(10, 1), visit(20, 2)), (visit(10, 1), visit(10, 2))] {
            for (a, b) in [(&one, &other), (&other, &one)] {
                assert_eq!(attributed_visit(Attribution::FirstClick, a, b), &one);
                assert_eq!(attributed_visit(Attribution::LastClick, a, b), &other);
            }
        }
    }

    #[test]
    fn reloads_are_recognised() {
        let first = visit(10, 1);
        let at = |second| Timestamp::from_second(second).unwrap();
        assert!(first.is_reload(first.link, at(11)) && first.is_reload(first.link, at(10 + 1_799)));
        assert!(!first.is_reload(first.link, at(10 + 1_800)));
        assert!(!first.is_reload(visit(0, 9).link, at(11)));
        assert!(!first.has_lapsed(at(10 + 86_399)) && first.has_lapsed(at(10 + 86_400)));
    }
}
