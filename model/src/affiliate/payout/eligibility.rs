//! Payout eligibility: whether a run pays a partner in one currency, and the reasons if not
//! (docs/PAYOUTS.md).

use super::super::arithmetic::ArithmeticError;
use super::super::commission::{Commission, CommissionState};
use super::super::partner::{Partner, PartnerStatus};
use super::super::program::ProgramSettings;
use super::SkipReason;
use jiff::Timestamp;

/// Maximum amount of a payout and of a run, so that sums of several cannot overflow.
pub const SUM_MAX: i64 = i64::MAX / 4;

/// Sums of a partner's commissions in one currency, by eligibility for a run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PayoutCandidate {
    /// Sum of lines that can be paid.
    pub earned: i64,
    /// Sum of lines frozen by a review of the referral.
    pub under_review: i64,
    /// Sum of lines frozen by a bank's inquiry.
    pub disputed: i64,
    /// Sum of open adjustments: negative if the partner owes money, positive if it gets more than its lines.
    pub owed: i64,
    /// Sum of lines that were earned after the cutoff.
    pub later: i64,
}

/// The decision for a partner and a currency.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PayoutDecision {
    /// The amount to pay.
    pub pays: Option<i64>,
    /// Amounts that are not paid, with the reasons.
    pub skipped: Vec<(SkipReason, i64)>,
}

impl PayoutCandidate {
    /// Adds a line to the sum that its state belongs to. Returns whether a payout can include the line. A line that
    /// would raise a sum above [`SUM_MAX`] is left for the next run.
    pub fn add_line(&mut self, line: &Commission, cutoff: Timestamp) -> bool {
        let CommissionState::Earned { earned_at, frozen } = line.status else { return false };
        if earned_at > cutoff {
            self.later = self.later.saturating_add(line.amount).min(SUM_MAX);
            return false;
        }
        let sum = match (frozen.inquiry, frozen.review) {
            (true, _) => &mut self.disputed,
            (false, true) => &mut self.under_review,
            (false, false) => &mut self.earned,
        };
        let Some(total) = sum.checked_add(line.amount).filter(|total| *total <= SUM_MAX) else { return false };
        *sum = total;
        !frozen.is_frozen()
    }

    /// Decides what to pay and what to skip. Frozen and later amounts are reported beside the paid amount.
    pub fn decide(
        &self,
        partner: &Partner,
        settings: &ProgramSettings,
        minimum: i64,
    ) -> Result<PayoutDecision, ArithmeticError> {
        let withheld = self.under_review.checked_add(self.disputed).ok_or(ArithmeticError::TooLarge)?;
        let all = self.earned.checked_add(withheld).ok_or(ArithmeticError::TooLarge)?;
        let net = self.earned.checked_add(self.owed).ok_or(ArithmeticError::TooLarge)?;
        let obstacle = if partner.status == PartnerStatus::Active {
            (!partner.is_payout_ready(&settings.allowed_methods)).then_some(SkipReason::NotReady)
        } else {
            Some(SkipReason::NotActive)
        };
        let mut decision = PayoutDecision::default();
        if let Some(reason) = obstacle {
            let all = all.checked_add(self.later).and_then(|all| all.checked_add(self.owed.max(0)));
            let all = all.ok_or(ArithmeticError::TooLarge)?;
            decision.skipped.extend((all > 0).then_some((reason, all)));
            return Ok(decision);
        }
        let withheld = [
            (SkipReason::UnderReview, self.under_review),
            (SkipReason::Disputed, self.disputed),
            (SkipReason::AfterCutoff, self.later),
        ];
        decision.skipped.extend(withheld.into_iter().filter(|(_, amount)| *amount > 0));
        if self.earned > 0 || self.owed > 0 {
            // If the partner owes more than it earned, nothing is paid: both sums wait for the next run.
            if net > 0 && net >= minimum {
                decision.pays = Some(net);
            } else {
                decision.skipped.push((SkipReason::BelowMinimum, net.max(0)));
            }
        }
        Ok(decision)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::affiliate::partner::{PartnerSource, PayoutDestination};
    use crate::affiliate::program::{PayoutMethod, ProcessorMode};
    use crate::domain::SealedSecret;
    use crate::id::{AccountId, CampaignId, PartnerId, PartnerLinkId};

    fn partner(status: PartnerStatus, payout: Option<PayoutDestination>) -> Partner {
        let now = Timestamp::UNIX_EPOCH;
        Partner {
            id: PartnerId::new(now, 1),
            account: AccountId::new(now, 1),
            email: "ada@example.org".parse().unwrap(),
            first_name: None,
            last_name: None,
            company: None,
            website: None,
            country: None,
            status,
            source: PartnerSource::Api,
            campaign: CampaignId::new(now, 1),
            parent: None,
            tags: Vec::new(),
            payout,
            payouts_failed: 0,
            notes: None,
            postback_url: None,
            postback_secret: SealedSecret(String::new()),
            email_opt_out: false,
            commission_override: None,
            primary_link: PartnerLinkId::new(now, 1),
            was_paid: false,
            approved_at: None,
            terms_accepted_at: None,
            rev: 1,
            created_at: now,
            updated_at: now,
        }
    }

    fn paid_by(method: PayoutMethod, is_able: bool) -> Option<PayoutDestination> {
        Some(PayoutDestination { method, destination: "ada@example.org".to_owned(), is_able })
    }

    #[test]
    #[rustfmt::skip]
    fn partners_are_eligible_by_their_state() {
        use PartnerStatus::{Active, Invited, Pending, Rejected, Suspended};
        use SkipReason::{AfterCutoff, BelowMinimum, Disputed, NotActive, NotReady, UnderReview};
        let able = || paid_by(PayoutMethod::Paypal, true);
        let group = |earned, under_review, disputed, owed| PayoutCandidate { earned, under_review, disputed, owed, later: 0 };
        let later = |earned| PayoutCandidate { earned, later: 70, ..PayoutCandidate::default() };
        // Partner status, destination, sums, minimum payout: amount to pay, skipped amounts.
        let cases = [
            (Active, able(), group(1_000, 0, 0, 0), 0, Some(1_000), vec![]),
            (Active, able(), group(1_000, 0, 0, 0), 1_000, Some(1_000), vec![]),
            (Active, able(), group(999, 0, 0, 0), 1_000, None, vec![(BelowMinimum, 999)]),
            (Active, able(), group(1_000, 200, 300, 0), 0, Some(1_000), vec![(UnderReview, 200), (Disputed, 300)]),
            (Active, able(), group(0, 200, 0, 0), 0, None, vec![(UnderReview, 200)]),
            (Active, able(), group(0, 0, 300, 0), 0, None, vec![(Disputed, 300)]),
            (Active, able(), group(0, 0, 0, 0), 0, None, vec![]),
            (Active, able(), group(0, 0, 0, -50), 0, None, vec![]),
            (Active, able(), group(1_000, 0, 0, -400), 0, Some(600), vec![]),
            (Active, able(), group(1_000, 0, 0, -400), 700, None, vec![(BelowMinimum, 600)]),
            (Active, able(), group(1_000, 0, 0, -1_000), 0, None, vec![(BelowMinimum, 0)]),
            (Active, able(), group(1_000, 0, 0, -1_500), 0, None, vec![(BelowMinimum, 0)]),
            (Active, able(), group(1_000, 0, 0, 250), 0, Some(1_250), vec![]),
            (Active, able(), group(0, 0, 0, 250), 0, Some(250), vec![]),
            (Active, able(), group(0, 200, 0, 250), 300, None, vec![(UnderReview, 200), (BelowMinimum, 250)]),
            (Active, None, group(0, 0, 0, 250), 0, None, vec![(NotReady, 250)]),
            (Active, None, group(1_000, 0, 0, -250), 0, None, vec![(NotReady, 1_000)]),
            (Active, None, group(1_000, 5, 0, 0), 0, None, vec![(NotReady, 1_005)]),
            (Active, paid_by(PayoutMethod::Stripe, false), group(1_000, 0, 0, 0), 0, None, vec![(NotReady, 1_000)]),
            (Active, paid_by(PayoutMethod::Wise, true), group(1_000, 0, 0, 0), 0, None, vec![(NotReady, 1_000)]),
            (Suspended, able(), group(1_000, 5, 6, 0), 0, None, vec![(NotActive, 1_011)]),
            (Pending, able(), group(1, 0, 0, 0), 0, None, vec![(NotActive, 1)]),
            (Invited, able(), group(1, 0, 0, 0), 0, None, vec![(NotActive, 1)]),
            (Rejected, None, group(1, 0, 0, 0), 9, None, vec![(NotActive, 1)]),
            (Active, able(), later(0), 0, None, vec![(AfterCutoff, 70)]),
            (Active, able(), later(5), 0, Some(5), vec![(AfterCutoff, 70)]),
            (Active, None, later(5), 0, None, vec![(NotReady, 75)]),
        ];
        let mut settings = ProgramSettings::new("https://shop.example".to_owned(), "usd".parse().unwrap(), ProcessorMode::Live);
        settings.allowed_methods.retain(|method| *method != PayoutMethod::Wise);
        for (status, payout, group, minimum, pays, skipped) in cases {
            let decision = group.decide(&partner(status, payout), &settings, minimum);
            assert_eq!(decision, Ok(PayoutDecision { pays, skipped }), "{status} {group:?} {minimum}");
        }
        let much = group(i64::MAX, 1, 0, 0);
        assert_eq!(much.decide(&partner(Active, able()), &settings, 0), Err(ArithmeticError::TooLarge));
    }
}
