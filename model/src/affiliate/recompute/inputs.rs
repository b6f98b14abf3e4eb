//! Conversions of the stored types (program, referral, partner, campaign) into the facts for a recomputation.

use message::address::Address;

use super::super::arithmetic::person::is_same_person;
use super::super::arithmetic::rate::RateOffer;
use super::super::campaign::Campaign;
use super::super::partner::{Partner, PartnerStatus};
use super::super::program::{AffiliateProgram, PayoutMethod};
use super::super::referral::{Referral, RejectReason};
use super::{AccrualStatus, CustomerInput, ProgramRules, RecruiterInput, ReferralBar, SellerInput};

impl ProgramRules {
    pub fn from_program(program: &AffiliateProgram) -> Self {
        Self {
            account: program.account,
            currency: program.settings.currency,
            suspended_accrue: program.settings.suspended_accrue,
            after_payout: program.settings.payout_after_refund,
        }
    }
}

impl ReferralBar {
    /// The bar of a referral, if it has one.
    pub fn from_referral(referral: &Referral) -> Option<Self> {
        let rejected = referral.rejection.map(|rejection| match rejection.reason {
            RejectReason::Owner => Self::Rejected,
            RejectReason::Expired => Self::Lapsed,
        });
        rejected.or(referral.blocked.map(|_| Self::Blocked))
    }
}

impl<'a> CustomerInput<'a> {
    /// The facts of a referral; `first_earning` is the first of its invoices that wrote a line.
    pub fn from_referral(referral: &Referral, first_earning: Option<&'a str>) -> Self {
        Self {
            referral: referral.id,
            counts_from: referral.claimed_at,
            converted_at: referral.converted_at,
            bar: ReferralBar::from_referral(referral),
            is_under_review: referral.is_frozen(),
            first_earning,
        }
    }
}

impl From<PartnerStatus> for AccrualStatus {
    fn from(status: PartnerStatus) -> Self {
        match status {
            PartnerStatus::Active => Self::Active,
            PartnerStatus::Suspended => Self::Suspended,
            PartnerStatus::Invited | PartnerStatus::Pending | PartnerStatus::Rejected => Self::Outside,
        }
    }
}

impl<'a> SellerInput<'a> {
    /// The facts of a partner with its campaign. [`SellerInput::offer`] documents which customers count.
    pub fn from_partner(partner: &Partner, campaign: &'a Campaign, paying_customers: u32) -> Self {
        Self {
            partner: partner.id,
            accrual: partner.status.into(),
            campaign: campaign.id,
            campaign_rev: campaign.rev,
            offer: RateOffer {
                terms: &campaign.terms,
                commission_override: partner.commission_override,
                paying_customers,
            },
        }
    }
}

impl RecruiterInput {
    /// The facts of the seller's recruiter. `customer` is the email address of the customer, if it is known.
    pub fn from_parent(parent: &Partner, customer: Option<&Address>) -> Self {
        let paid_at = parent.payout.as_ref().filter(|payout| {
            // Only these methods have an email address as destination.
            matches!(payout.method, PayoutMethod::Paypal | PayoutMethod::Wise)
        });
        let is_customer = customer.map(Address::to_string).is_some_and(|customer| {
            is_same_person(&customer, &parent.email.to_string())
                || paid_at.is_some_and(|payout| is_same_person(&customer, &payout.destination))
        });
        Self { partner: parent.id, is_active: parent.status == PartnerStatus::Active, is_customer }
    }
}

#[cfg(test)]
mod tests {
    use super::super::scenario::{Scenario, at, partner};
    use super::*;
    use crate::affiliate::campaign::Visibility;
    use crate::affiliate::partner::{PartnerSource, PayoutDestination};
    use crate::affiliate::referral::{
        FraudFlag, ReferralActivity, ReferralBlock, ReferralRejection, ReferralReview, ReferralSource, ReferralStatus,
        ReviewStatus,
    };
    use crate::domain::SealedSecret;
    use crate::id::{AccountId, CampaignId, PartnerLinkId};
    use jiff::Timestamp;

    const THEN: Timestamp = Timestamp::UNIX_EPOCH;

    fn ada() -> Partner {
        Partner {
            id: partner(1),
            account: AccountId::new(THEN, 1),
            email: "ada@example.com".parse().unwrap(),
            first_name: None,
            last_name: None,
            company: None,
            website: None,
            country: None,
            status: PartnerStatus::Active,
            source: PartnerSource::Api,
            campaign: CampaignId::new(THEN, 1),
            parent: None,
            tags: Vec::new(),
            payout: None,
            payouts_failed: 0,
            notes: None,
            postback_url: None,
            postback_secret: SealedSecret(String::new()),
            email_opt_out: false,
            commission_override: None,
            primary_link: PartnerLinkId::new(THEN, 1),
            was_paid: false,
            approved_at: None,
            terms_accepted_at: None,
            rev: 1,
            created_at: THEN,
            updated_at: THEN,
        }
    }

    #[test]
    fn a_recruiter_who_is_the_customer_is_recognised() {
        let is_customer = |parent: &Partner, customer: &str| {
            let customer = (!customer.is_empty()).then(|| customer.parse().unwrap());
            RecruiterInput::from_parent(parent, customer.as_ref()).is_customer
        };
        let mut parent = ada();
        assert!(RecruiterInput::from_parent(&parent, None).is_active);
        assert!(is_customer(&parent, "ada+shop@example.com") && !is_customer(&parent, "bob@example.com"));
        assert!(!is_customer(&parent, ""));
        let destination = "a.d.a@gmail.com".to_owned();
        let mut payout = PayoutDestination { method: PayoutMethod::Paypal, destination, is_able: true };
        parent.payout = Some(payout.clone());
        assert!(is_customer(&parent, "ada@googlemail.com"));
        payout.method = PayoutMethod::Other;
        parent.payout = Some(payout);
        assert!(!is_customer(&parent, "ada@googlemail.com"));
        parent.status = PartnerStatus::Suspended;
        assert!(!RecruiterInput::from_parent(&parent, None).is_active);
    }

    #[test]
    fn seller_facts_come_from_partner_and_campaign() {
        let campaign = Campaign {
            id: CampaignId::new(THEN, 5),
            account: AccountId::new(THEN, 1),
            name: "Plan".to_owned(),
            visibility: Visibility::Public,
            auto_approve: false,
            terms: Scenario::new().terms,
            archived_at: None,
            rev: 9,
            created_at: THEN,
            updated_at: THEN,
        };
        let seller = SellerInput::from_partner(&ada(), &campaign, 3);
        assert_eq!((seller.campaign, seller.campaign_rev, seller.accrual), (campaign.id, 9, AccrualStatus::Active));
        assert_eq!((seller.offer.paying_customers, seller.offer.commission_override), (3, None));
    }

    #[test]
    fn customer_facts_come_from_the_referral() {
        let mut referral = Referral {
            id: Scenario::new().customer().referral,
            account: AccountId::new(THEN, 1),
            partner: partner(1),
            status: ReferralStatus::Active,
            source: ReferralSource::Api,
            email: None,
            customer: None,
            later_customers: Vec::new(),
            sub_id: None,
            link: None,
            visit: None,
            blocked: None,
            rejection: None,
            review: None,
            dealings: ReferralActivity::default(),
            revenue_cents: 0,
            currency: None,
            claimed_at: at("2026-01-01T00:00:00Z"),
            converted_at: None,
            expires_at: THEN,
            rev: 1,
            created_at: THEN,
            updated_at: THEN,
        };
        let customer = CustomerInput::from_referral(&referral, Some("in_0"));
        assert_eq!((customer.bar, customer.is_under_review), (None, false));
        assert_eq!((customer.counts_from, customer.first_earning), (referral.claimed_at, Some("in_0")));
        referral.blocked = Some(ReferralBlock::SelfReferral);
        assert_eq!(ReferralBar::from_referral(&referral), Some(ReferralBar::Blocked));
        let rejection = |reason| Some(ReferralRejection { reason, was: ReferralStatus::Lead });
        referral.rejection = rejection(RejectReason::Owner);
        assert_eq!(ReferralBar::from_referral(&referral), Some(ReferralBar::Rejected));
        referral.rejection = rejection(RejectReason::Expired);
        assert_eq!(ReferralBar::from_referral(&referral), Some(ReferralBar::Lapsed));
        let (flags, status) = (vec![FraudFlag::SameIp], ReviewStatus::Open);
        referral.review = Some(ReferralReview { flags, status, created_at: THEN, decided_at: None });
        assert!(CustomerInput::from_referral(&referral, None).is_under_review);
    }
}
