//! A referral: a person whom a partner brought, and what came of it.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::money::Currency;
use super::payout::LineCursor;
use super::word::words;
use crate::address::Address;
use crate::id::{AccountId, PartnerId, PartnerLinkId, ReferralId, VisitId};

words! {
    /// Where a referral stands.
    ReferralStatus {
        /// Known, has not paid.
        Lead = "lead",
        /// Tries it out: a subscription that is not paid for yet.
        Trialing = "trialing",
        /// Pays.
        Active = "active",
        /// Its last subscription ended.
        Cancelled = "cancelled",
        /// All that it paid was given back.
        Refunded = "refunded",
        /// Refused, or its time ran out before it paid.
        Rejected = "rejected",
    }
}

words! {
    /// By which way a referral came.
    ReferralSource {
        /// The API.
        Api = "api",
        /// The browser script, at a sign-up.
        Signup = "signup",
        /// A checkout at the processor.
        Checkout = "checkout",
        /// Metadata of the processor's customer.
        Metadata = "metadata",
    }
}

words! {
    /// Why a referral never earns.
    ReferralBlock {
        /// The partner referred itself.
        SelfReferral = "self_referral",
        /// It paid before it was referred.
        ExistingCustomer = "existing_customer",
    }
}

words! {
    /// Why a referral was rejected.
    RejectReason {
        /// The owner said so.
        Owner = "owner",
        /// Its time ran out and another partner brought the same person.
        Expired = "expired",
    }
}

words! {
    /// What makes a referral worth a look.
    FraudFlag {
        /// The partner's company has the same domain.
        CompanyDomain = "company_domain",
        /// The partner was seen at the same address a day before or less.
        SameIp = "same_ip",
        /// The person's mail address is made to be thrown away.
        DisposableDomain = "disposable_domain",
        /// The visit was paid for as an advertisement.
        PaidClick = "paid_click",
        /// The visit came from a page that the owner does not want.
        BannedReferrer = "banned_referrer",
        /// The partner brings very many at once.
        Velocity = "velocity",
        /// Another partner is paid to the same destination.
        PayoutDestination = "payout_destination",
    }
}

words! {
    /// What the owner said of a flagged referral.
    ReviewStatus {
        /// Nothing yet; nothing of it earns or is paid meanwhile.
        Open = "open",
        /// It is fine.
        Allowed = "allowed",
        /// It was rejected.
        Rejected = "rejected",
    }
}

/// What the owner has to look at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReferralReview {
    /// What stands out.
    pub flags: Vec<FraudFlag>,
    /// What the owner said.
    pub status: ReviewStatus,
    /// Since when.
    pub created_at: Timestamp,
    /// When the owner said it.
    pub decided_at: Option<Timestamp>,
}

/// A rejection, and where the referral stood before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReferralRejection {
    /// Why.
    pub reason: RejectReason,
    /// Where it stood: allowing brings it back there.
    pub was: ReferralStatus,
}

/// What became of a referral at the processor: all that its standing follows from.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReferralActivity {
    /// Invoices that count.
    pub invoices: u32,
    /// Those of them whose money all went back.
    pub gone: u32,
    /// The first of them that wrote a commission.
    pub first_earning: Option<String>,
    /// When the last of them was paid.
    pub last_paid_at: Option<Timestamp>,
    /// When the first subscription began that was on trial.
    #[serde(default)]
    pub tried_at: Option<Timestamp>,
    /// When a subscription ended last while no other one went on. One that is begun later brings nobody back.
    pub left_at: Option<Timestamp>,
    /// Of guests, who are nobody's customer: all of its commissions are to be looked at anew, newest first; how far that
    /// is. It ends with the fact that began it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub going_through: Option<LineCursor>,
}

impl ReferralActivity {
    /// Where they bring a referral that nobody rejected (completions-affiliate.md 3): in whatever order they were heard
    /// of, it is the same.
    #[must_use]
    pub fn status(&self) -> ReferralStatus {
        let has_left = |since: Timestamp| self.left_at.is_some_and(|left| left >= since);
        match (self.invoices, self.tried_at) {
            (0, None) => ReferralStatus::Lead,
            (0, Some(tried)) if has_left(tried) => ReferralStatus::Cancelled,
            (0, Some(_)) => ReferralStatus::Trialing,
            (invoices, _) if self.gone >= invoices => ReferralStatus::Refunded,
            _ if self.last_paid_at.is_some_and(has_left) => ReferralStatus::Cancelled,
            _ => ReferralStatus::Active,
        }
    }
}

/// Customers of the processor's that one referral has at most.
pub const CUSTOMERS_MAX: usize = 100;

/// A referral.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Referral {
    /// Its id.
    pub id: ReferralId,
    /// Whose program it is in.
    pub account: AccountId,
    /// Who brought the person.
    pub partner: PartnerId,
    /// Where it stands.
    pub status: ReferralStatus,
    /// By which way it came.
    pub source: ReferralSource,
    /// Who it is, in lower case; a checkout may know no address.
    pub email: Option<Address>,
    /// The processor's id of the customer who was linked first, once one is.
    pub customer: Option<String>,
    /// Further customers of the processor's that are the same person, in the order in which they were linked: a payment
    /// link makes a new one for each checkout.
    pub later_customers: Vec<String>,
    /// The partner's own tag for the visit.
    pub sub_id: Option<String>,
    /// By which of the partner's links, if that is known.
    pub link: Option<PartnerLinkId>,
    /// By which visit, if there was one.
    pub visit: Option<VisitId>,
    /// Why it never earns.
    pub blocked: Option<ReferralBlock>,
    /// Why it was rejected, while it is.
    pub rejection: Option<ReferralRejection>,
    /// What the owner has to look at.
    pub review: Option<ReferralReview>,
    /// What became of it at the processor.
    pub dealings: ReferralActivity,
    /// Commissionable money that came in less what went back, in `currency`.
    pub revenue_cents: i64,
    /// The currency of the first payment.
    pub currency: Option<Currency>,
    /// From when on payments count.
    pub claimed_at: Timestamp,
    /// When it paid first, by the processor's clock.
    pub converted_at: Option<Timestamp>,
    /// Until when it must be linked to a customer.
    pub expires_at: Timestamp,
    /// Grows with each change.
    pub rev: u64,
    /// When it was made.
    pub created_at: Timestamp,
    /// When it was changed last.
    pub updated_at: Timestamp,
}

/// Of people who were brought, how many paid.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReferralCounts {
    /// People who were brought, whatever became of them.
    pub leads: u64,
    /// Those of them who paid once.
    pub customers: u64,
}

impl ReferralCounts {
    /// What a referral counts as.
    #[must_use]
    pub fn for_referral(referral: &Referral) -> Self {
        Self { leads: 1, customers: u64::from(referral.converted_at.is_some()) }
    }

    /// Adds others.
    pub fn add(&mut self, others: &Self) {
        self.leads = self.leads.wrapping_add(others.leads);
        self.customers = self.customers.wrapping_add(others.customers);
    }
}

impl Referral {
    /// All of the processor's customers that are this person, the first linked first.
    pub fn customers(&self) -> impl Iterator<Item = &String> {
        self.customer.iter().chain(&self.later_customers)
    }

    /// Adds a customer of the processor's. Whether the person has it now: no more than [`CUSTOMERS_MAX`] are kept.
    pub fn add_customer(&mut self, customer: &str) -> bool {
        if self.customers().any(|has| has == customer) {
            return true;
        }
        match self.customers().count() {
            0 => self.customer = Some(customer.to_owned()),
            1..CUSTOMERS_MAX => self.later_customers.push(customer.to_owned()),
            _ => return false,
        }
        true
    }

    /// Whether nothing may earn or be paid of it at the moment.
    #[must_use]
    pub fn is_frozen(&self) -> bool {
        self.review.as_ref().is_some_and(|review| review.status == ReviewStatus::Open)
    }

    /// Whether this stood out of it.
    #[must_use]
    pub fn is_flagged(&self, flag: FraudFlag) -> bool {
        self.review.as_ref().is_some_and(|review| review.flags.contains(&flag))
    }

    /// Whether its sales earn at all.
    #[must_use]
    pub fn may_earn(&self) -> bool {
        self.blocked.is_none() && self.status != ReferralStatus::Rejected
    }

    /// Whether its time ran out before it was linked to a customer: it earns nothing, and another may claim the person.
    #[must_use]
    pub fn has_lapsed(&self, now: Timestamp) -> bool {
        self.status == ReferralStatus::Lead && self.customer.is_none() && now >= self.expires_at
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_standing_follows_from_what_became_of_it() {
        use ReferralStatus::{Active, Cancelled, Lead, Refunded, Trialing};
        let at = |second| Some(Timestamp::from_second(second).unwrap());
        let new = ReferralActivity::default();
        let trial = ReferralActivity { tried_at: at(1), ..new.clone() };
        let tried_late = ReferralActivity { left_at: at(0), ..trial.clone() };
        let gave_up = ReferralActivity { left_at: at(5), ..trial.clone() };
        let pays = ReferralActivity { invoices: 2, last_paid_at: at(10), ..gave_up.clone() };
        let left = ReferralActivity { left_at: at(20), ..pays.clone() };
        let came_back = ReferralActivity { invoices: 3, last_paid_at: at(30), ..left.clone() };
        let all_back = ReferralActivity { gone: 2, ..left.clone() };
        let never_subscribed = ReferralActivity { invoices: 1, last_paid_at: at(1), ..new.clone() };
        for (dealings, status) in [
            (new, Lead),
            (trial, Trialing),
            (tried_late, Trialing),
            (gave_up, Cancelled),
            (pays, Active),
            (left, Cancelled),
            (came_back, Active),
            (all_back, Refunded),
            (never_subscribed, Active),
        ] {
            assert_eq!(dealings.status(), status, "{dealings:?}");
        }
    }
}
