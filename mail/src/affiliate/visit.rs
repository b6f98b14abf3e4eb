//! A visit: somebody who came by a partner's link, and from when until when that binds.
//!
//! ```text
//! click ─► whose is the visitor? ([`stands`]) ─► the visit that stood, or a new one ─► sign-up, checkout ─► referral
//! ```

use std::net::IpAddr;

use jiff::{SignedDuration, Timestamp};

use super::program::Attribution;
use super::referral::FraudFlag;
use crate::address::Address;
use crate::id::{AccountId, PartnerId, PartnerLinkId, ReferralId, VisitId};

/// Referrals that one visit leads to: people who share a browser.
pub const REFERRALS_MAX: usize = 20;
/// Numbers of a visitor that are kept: domains that a visit was handed over to.
pub const VISITORS_MAX: usize = 8;
/// The longest tag of a partner, in characters; what is longer is cut.
pub const SUB_ID_CHARS_MAX: usize = 100;
/// Who comes by the same link again within this time has loaded the page anew.
pub const RELOAD_WINDOW: SignedDuration = SignedDuration::from_mins(30);
/// For so long after its end a visit is kept: what was bought in time may be told late.
pub const RETENTION_AFTER_EXPIRY: SignedDuration = SignedDuration::from_hours(30 * 24);
/// For how long clicks are counted by the day.
pub const COUNTS_RETENTION: SignedDuration = SignedDuration::from_hours(2 * 366 * 24);

/// A visit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PartnerVisit {
    /// Its id: what `stx.referral` holds.
    pub id: VisitId,
    /// Whose program it is of.
    pub account: AccountId,
    /// By whose link.
    pub partner: PartnerId,
    /// By which link.
    pub link: PartnerLinkId,
    /// The visitor's numbers (the cookie `stx_vid`), one on each domain; none where no script ran. [`VISITORS_MAX`] at
    /// most.
    pub visitors: Vec<String>,
    /// The partner's own tag.
    pub sub_id: Option<String>,
    /// From where: an address, or a network of IPv6.
    pub from: Option<IpAddr>,
    /// What stood out when it came.
    pub flags: Vec<FraudFlag>,
    /// Who it is, as far as pages have said so; [`REFERRALS_MAX`] at most.
    pub people: Vec<Address>,
    /// Whom it became; [`REFERRALS_MAX`] at most.
    pub referrals: Vec<ReferralId>,
    /// When the link was followed.
    pub clicked_at: Timestamp,
    /// Until when it binds.
    pub expires_at: Timestamp,
}

impl PartnerVisit {
    /// Whether it binds nobody any more.
    #[must_use]
    pub fn has_lapsed(&self, now: Timestamp) -> bool {
        now >= self.expires_at
    }

    /// Until when it is kept.
    #[must_use]
    pub fn retained_until(&self) -> Timestamp {
        self.expires_at.checked_add(RETENTION_AFTER_EXPIRY).unwrap_or(Timestamp::MAX)
    }

    /// Whether following this link now is the same page loaded anew.
    #[must_use]
    pub fn is_reload(&self, link: PartnerLinkId, now: Timestamp) -> bool {
        self.link == link && now.duration_since(self.clicked_at) < RELOAD_WINDOW
    }
}

/// Which of two visits of one visitor stands: by the program's model the one that was first or last. In whatever order
/// they are heard of, it is the same one.
#[must_use]
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
    fn which_visit_stands_does_not_depend_on_the_order() {
        for (one, other) in [(visit(10, 1), visit(20, 2)), (visit(10, 1), visit(10, 2))] {
            for (a, b) in [(&one, &other), (&other, &one)] {
                assert_eq!(attributed_visit(Attribution::FirstClick, a, b), &one);
                assert_eq!(attributed_visit(Attribution::LastClick, a, b), &other);
            }
        }
    }

    #[test]
    fn a_page_that_is_loaded_anew_is_no_other_visit() {
        let one = visit(10, 1);
        let at = |second| Timestamp::from_second(second).unwrap();
        assert!(one.is_reload(one.link, at(11)) && one.is_reload(one.link, at(10 + 1_799)));
        assert!(!one.is_reload(one.link, at(10 + 1_800)));
        assert!(!one.is_reload(visit(0, 9).link, at(11)));
        assert!(!one.has_lapsed(at(10 + 86_399)) && one.has_lapsed(at(10 + 86_400)));
    }
}
