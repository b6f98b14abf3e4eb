//! Prospect: a person who may become a lead, and the tests by which the fraud checks compare people.

use std::net::IpAddr;

use message::address::Address;
use model::affiliate::arithmetic::person::is_same_person;
use model::affiliate::partner::Partner;
use model::affiliate::referral::ReferralSource;
use model::affiliate::visit::PartnerVisit;
use model::id::PartnerLinkId;

/// A person whom a partner referred and who has no referral yet.
#[derive(Debug, Clone)]
pub(crate) struct Prospect {
    pub(crate) source: ReferralSource,
    /// Lowercase.
    pub(crate) email: Option<Address>,
    /// The processor's customer id.
    pub(crate) customer: Option<String>,
    /// The partner's own tag (`sub_id` of its link).
    pub(crate) sub_id: Option<String>,
    pub(crate) link: Option<PartnerLinkId>,
    /// The visit; its tag, link and attribution window apply.
    pub(crate) visit: Option<PartnerVisit>,
    /// IP address of the sign-up.
    pub(crate) from: Option<IpAddr>,
}

impl Prospect {
    /// Creates a prospect without further details.
    pub(crate) fn new(source: ReferralSource, email: Option<Address>) -> Self {
        Self { source, email, customer: None, sub_id: None, link: None, visit: None, from: None }
    }

    /// Creates a prospect from a visit, with its tag and link.
    pub(crate) fn from_visit(source: ReferralSource, email: Option<Address>, visit: PartnerVisit) -> Self {
        let (sub_id, link) = (visit.sub_id.clone(), Some(visit.link));
        Self { sub_id, link, visit: Some(visit), ..Self::new(source, email) }
    }
}

/// True if a person is the partner itself: same mailbox as the partner's email or payout
/// destination, after normalization.
pub(crate) fn is_self_referral(partner: &Partner, buyer_email: &str) -> bool {
    let paid_to = partner.payout.as_ref().map(|payout| payout.destination.as_str());
    is_same_person(&partner.email.to_string(), buyer_email)
        || paid_to.is_some_and(|paid_to| is_same_person(paid_to, buyer_email))
}

pub(crate) fn lowercase_address(address: &Address) -> Address {
    address.to_string().to_lowercase().parse().unwrap_or_else(|_| address.clone())
}
