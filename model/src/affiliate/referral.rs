//! Referral: a person whom a partner referred, and the status that follows from their purchases.

use jiff::Timestamp;
use message::address::Address;
use message::words;
use serde::{Deserialize, Serialize};

use super::money::Currency;
use super::payout::LineCursor;
use crate::id::{AccountId, PartnerId, PartnerLinkId, ReferralId, VisitId};

words! {
    ReferralStatus {
        /// Recorded, without a payment.
        Lead = "lead",
        /// On trial: has a subscription that is not paid yet.
        Trialing = "trialing",
        /// A paying customer.
        Active = "active",
        /// The last subscription ended.
        Cancelled = "cancelled",
        /// Everything paid was refunded.
        Refunded = "refunded",
        /// Rejected by the owner, or expired before the first payment.
        Rejected = "rejected",
    }
}

words! {
    /// How a referral was recorded.
    ReferralSource {
        Api = "api",
        /// The browser script at a sign-up.
        Signup = "signup",
        /// A checkout at the payment processor.
        Checkout = "checkout",
        /// Metadata of the customer at the payment processor.
        Metadata = "metadata",
    }
}

words! {
    /// The reason why a referral never earns commissions.
    ReferralBlock {
        SelfReferral = "self_referral",
        /// The person paid before the referral.
        ExistingCustomer = "existing_customer",
    }
}

words! {
    /// The reason of a rejection.
    RejectReason {
        /// The owner rejected it.
        Owner = "owner",
        /// It expired and another partner referred the same person.
        Expired = "expired",
    }
}

words! {
    /// A sign of fraud, for which a referral is held for review.
    FraudFlag {
        /// The person's address has the domain of the partner's company.
        CompanyDomain = "company_domain",
        /// The partner was seen at the same IP address within the last day.
        SameIp = "same_ip",
        /// The person's address is at a disposable email provider.
        DisposableDomain = "disposable_domain",
        /// The visit came from a paid advertisement.
        PaidClick = "paid_click",
        /// The visit came from a banned referrer.
        BannedReferrer = "banned_referrer",
        /// The partner has too many new referrals in an hour, or too many bounties in a day.
        Velocity = "velocity",
        /// Another partner has the same payout destination.
        PayoutDestination = "payout_destination",
    }
}

words! {
    /// State of a review.
    ReviewStatus {
        /// Not decided. The referral's commissions are frozen meanwhile.
        Open = "open",
        /// The owner allowed the referral.
        Allowed = "allowed",
        /// The owner rejected the referral.
        Rejected = "rejected",
    }
}

/// A review of a flagged referral by the owner.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReferralReview {
    /// The reasons for the review.
    pub flags: Vec<FraudFlag>,
    pub status: ReviewStatus,
    pub created_at: Timestamp,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub decided_at: Option<Timestamp>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReferralRejection {
    pub reason: RejectReason,
    /// The status before the rejection, which is restored if the owner allows the referral.
    pub was: ReferralStatus,
}

/// The customer's activity at the payment processor. The referral's status is derived from it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReferralActivity {
    /// Number of invoices that count.
    pub invoices: u32,
    /// Number of those invoices whose payment was returned in full.
    pub gone: u32,
    /// The id of the first invoice that wrote a commission.
    pub first_earning: Option<String>,
    /// When the latest of those invoices was paid.
    pub last_paid_at: Option<Timestamp>,
    /// Start of the first subscription with a trial.
    #[serde(default)]
    pub tried_at: Option<Timestamp>,
    /// When a subscription last ended while no other was active. A later subscription does not undo it; a later payment
    /// does.
    pub left_at: Option<Timestamp>,
    /// Cursor of a recomputation of all the referral's commissions, newest first, for a guest without a customer at the
    /// processor. `None` if none is in progress.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub going_through: Option<LineCursor>,
}

impl ReferralActivity {
    /// Derives the status of a referral that is not rejected. The result does not depend
    /// on the order in which facts arrived.
    pub fn status(&self) -> ReferralStatus {
        let has_left = |since: Timestamp| self.left_at.is_some_and(|left| left >= since);
        match (self.invoices, self.tried_at) {
            (0, None) => ReferralStatus::Lead,
            (0, Some(trial_at)) if has_left(trial_at) => ReferralStatus::Cancelled,
            (0, Some(_)) => ReferralStatus::Trialing,
            (invoices, _) if self.gone >= invoices => ReferralStatus::Refunded,
            _ if self.last_paid_at.is_some_and(has_left) => ReferralStatus::Cancelled,
            _ => ReferralStatus::Active,
        }
    }
}

/// Maximum number of processor customers that a referral can have.
pub const CUSTOMERS_MAX: usize = 100;

/// A person whom a partner referred.
#[message::row::omit_empty]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Referral {
    pub id: ReferralId,
    pub account: AccountId,
    /// The partner who referred the person.
    pub partner: PartnerId,
    pub status: ReferralStatus,
    pub source: ReferralSource,
    /// The person's address in lower case; `None` if a checkout has no address.
    pub email: Option<Address>,
    /// The id of the first customer at the processor that was linked.
    pub customer: Option<String>,
    /// Further customers at the processor that are the same person, in order of linking. A Stripe payment link, for
    /// example, creates a new customer for each checkout.
    pub later_customers: Vec<String>,
    /// The partner's own tag of the visit.
    pub sub_id: Option<String>,
    /// The partner's link, if it is known.
    pub link: Option<PartnerLinkId>,
    /// The visit, if there was one.
    pub visit: Option<VisitId>,
    /// Set if the referral never earns commissions.
    pub blocked: Option<ReferralBlock>,
    /// Set while the referral is rejected.
    pub rejection: Option<ReferralRejection>,
    pub review: Option<ReferralReview>,
    /// The activity at the payment processor.
    #[serde(default)]
    pub dealings: ReferralActivity,
    /// Commissionable payments in `currency` less refunds, in minor units.
    #[serde(default)]
    pub revenue_cents: i64,
    /// The currency of the payment that arrived first.
    pub currency: Option<Currency>,
    /// Payments before this time do not count.
    pub claimed_at: Timestamp,
    /// Time of the first payment by the processor's clock.
    pub converted_at: Option<Timestamp>,
    /// The referral expires at this time if it is not linked to a customer.
    pub expires_at: Timestamp,
    /// Revision, incremented by every change.
    pub rev: u64,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
}

/// Numbers of referred people and of customers among them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReferralCounts {
    /// Number of referred people in any status.
    pub leads: u64,
    /// Number of those who paid at least once.
    pub customers: u64,
}

impl ReferralCounts {
    /// The counts of a single referral.
    pub fn for_referral(referral: &Referral) -> Self {
        Self { leads: 1, customers: u64::from(referral.converted_at.is_some()) }
    }

    pub fn add(&mut self, others: &Self) {
        self.leads = self.leads.wrapping_add(others.leads);
        self.customers = self.customers.wrapping_add(others.customers);
    }
}

impl Referral {
    /// All linked customers at the payment processor, in order of linking.
    pub fn customers(&self) -> impl Iterator<Item = &String> {
        self.customer.iter().chain(&self.later_customers)
    }

    /// Links a customer of the payment processor. Returns false if [`CUSTOMERS_MAX`] others are linked already.
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

    /// True if an open review freezes the referral's commissions.
    pub fn is_frozen(&self) -> bool {
        self.review.as_ref().is_some_and(|review| review.status == ReviewStatus::Open)
    }

    /// True if a review has this flag, in any state.
    pub fn is_flagged(&self, flag: FraudFlag) -> bool {
        self.review.as_ref().is_some_and(|review| review.flags.contains(&flag))
    }

    /// True if sales to this person can earn commissions: the referral is neither blocked nor rejected.
    pub fn may_earn(&self) -> bool {
        self.blocked.is_none() && self.status != ReferralStatus::Rejected
    }

    /// True if the referral expired before it was linked to a customer. It earns nothing, and another partner can refer
    /// the person.
    pub fn has_lapsed(&self, now: Timestamp) -> bool {
        self.status == ReferralStatus::Lead && self.customer.is_none() && now >= self.expires_at
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_status_is_derived_from_the_activity() {
        use ReferralStatus::{Active, Cancelled, Lead, Refunded, Trialing};
        let at = |second| Some(Timestamp::from_second(second).unwrap());
        let new = ReferralActivity::default();
        let trial = ReferralActivity { tried_at: at(1), ..new.clone() };
        let tried_late = ReferralActivity { left_at: at(0), ..trial.clone() };
        let cancelled = ReferralActivity { left_at: at(5), ..trial.clone() };
        let paying = ReferralActivity { invoices: 2, last_paid_at: at(10), ..cancelled.clone() };
        let left = ReferralActivity { left_at: at(20), ..paying.clone() };
        let returned = ReferralActivity { invoices: 3, last_paid_at: at(30), ..left.clone() };
        let all_returned = ReferralActivity { gone: 2, ..left.clone() };
        let never_subscribed = ReferralActivity { invoices: 1, last_paid_at: at(1), ..new.clone() };
        for (activity, status) in [
            (new, Lead),
            (trial, Trialing),
            (tried_late, Trialing),
            (cancelled, Cancelled),
            (paying, Active),
            (left, Cancelled),
            (returned, Active),
            (all_returned, Refunded),
            (never_subscribed, Active),
        ] {
            assert_eq!(activity.status(), status, "{activity:?}");
        }
    }
}
