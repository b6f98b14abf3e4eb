//! Bounty: the commission of a lead, which needs no invoice.

use jiff::Timestamp;

use super::super::arithmetic::ArithmeticError;
use super::super::arithmetic::amount;
use super::super::campaign::CommissionTerms;
use super::super::commission::{
    Commission, CommissionOrigin, CommissionState, FreezeReasons, ReconciliationState, TermsSnapshot,
};
use super::super::periods;
use super::{LineChange, LineUpdate, ProgramRules, ReferralBar};
use crate::id::{CampaignId, CommissionId, PartnerId, ReferralId};

/// Facts about a new lead.
#[derive(Debug, Clone, Copy)]
pub struct LeadInput<'a> {
    pub referral: ReferralId,
    /// When the lead was recorded; the hold starts at this time.
    pub created_at: Timestamp,
    pub bar: Option<ReferralBar>,
    /// True if the bounty is held for review: the referral is under review, or the partner reached its daily number of
    /// bounties.
    pub is_under_review: bool,
    pub partner: PartnerId,
    pub campaign: CampaignId,
    pub campaign_rev: u64,
    pub terms: &'a CommissionTerms,
    /// The id for the line.
    pub id: CommissionId,
    /// Timestamp for the line.
    pub now: Timestamp,
}

/// Computes the bounty of a new lead; `None` if the campaign has no bounty or the referral is barred. The cap does not
/// apply, and the recruiter gets no share. The caller ensures that a referral has at most one bounty.
///
/// # Errors
/// [`ArithmeticError::Negative`] for a negative bounty; an error if the end of the hold is out of range.
pub fn bounty_line(rules: &ProgramRules, lead: &LeadInput<'_>) -> Result<Option<LineUpdate>, ArithmeticError> {
    let terms = lead.terms;
    if terms.lead_bounty < 0 {
        return Err(ArithmeticError::Negative("a bounty"));
    }
    let amount = amount::payable(terms.lead_bounty, None, rules.currency)?.amount;
    if amount == 0 || lead.bar.is_some() {
        return Ok(None);
    }
    let mut line = Commission {
        id: lead.id,
        account: rules.account,
        partner: lead.partner,
        referral: lead.referral,
        origin: CommissionOrigin::Bounty,
        amount,
        currency: rules.currency,
        status: CommissionState::Pending { frozen: FreezeReasons { review: lead.is_under_review, inquiry: false } },
        earns_at: periods::earns_at(lead.created_at, terms.hold_days)?,
        comparison: ReconciliationState::Needless,
        snapshot: TermsSnapshot {
            campaign: lead.campaign,
            campaign_rev: lead.campaign_rev,
            hold_days: terms.hold_days,
        },
        waived: Vec::new(),
        note: None,
        created_at: lead.now,
        updated_at: lead.now,
        rev: 1,
    };
    let mut steps = vec![LineChange::Created];
    if lead.is_under_review {
        steps.push(LineChange::Frozen);
    }
    if line.earn(lead.now).is_ok() {
        steps.push(LineChange::Earned);
    }
    Ok(Some(LineUpdate { line, changes: steps }))
}

#[cfg(test)]
mod tests {
    use super::super::scenario::{Scenario, at, partner, payout};
    use super::super::{LedgerLine, update_bounty};
    use super::*;
    use crate::affiliate::commission::ReversalReason;
    use crate::affiliate::program::AfterPayout;
    use crate::id::AccountId;

    fn write(world: &Scenario) -> Result<Option<LineUpdate>, ArithmeticError> {
        let rules = ProgramRules {
            account: AccountId::new(Timestamp::UNIX_EPOCH, 1),
            currency: world.currency,
            suspended_accrue: true,
            after_payout: AfterPayout::Absorb,
        };
        let lead = LeadInput {
            referral: world.customer().referral,
            created_at: at("2026-03-01T00:00:00Z"),
            bar: world.bar,
            is_under_review: world.is_under_review,
            partner: partner(1),
            campaign: CampaignId::new(Timestamp::UNIX_EPOCH, 1),
            campaign_rev: 1,
            terms: &world.terms,
            id: CommissionId::new(Timestamp::UNIX_EPOCH, 1),
            now: world.now,
        };
        bounty_line(&rules, &lead)
    }

    fn scenario(change: fn(&mut Scenario)) -> Scenario {
        let mut world = Scenario::new();
        world.terms.lead_bounty = 500;
        change(&mut world);
        world
    }

    #[test]
    fn a_lead_earns_a_bounty() {
        // The cap does not apply.
        let line = write(&scenario(|w| w.terms.max_commission = Some(10))).unwrap().unwrap().line;
        assert_eq!((line.amount, line.sale_amount(), line.status.word()), (500, 0, "pending"));
        assert_eq!((line.level().number(), line.sold_invoice()), (1, None));
        assert_eq!(line.earns_at, at("2026-03-31T00:00:00Z"));
        assert_eq!(line.formula(), "5.00 usd for a lead");
        let steps = |change| write(&scenario(change)).unwrap().map(|written| written.changes);
        assert_eq!(steps(|w| w.terms.hold_days = 0), Some(vec![LineChange::Created, LineChange::Earned]));
        assert_eq!(steps(|w| w.is_under_review = true), Some(vec![LineChange::Created, LineChange::Frozen]));
        assert_eq!(steps(|w| w.bar = Some(ReferralBar::Blocked)), None);
        assert_eq!(steps(|w| w.terms.lead_bounty = 0), None);
        assert!(write(&scenario(|w| w.terms.lead_bounty = -1)).is_err());
    }

    #[test]
    fn a_bounty_follows_its_referral() {
        let mut world = scenario(|_| {});
        let mut line = write(&world).unwrap().unwrap().line;
        let now = at("2026-04-15T00:00:00Z");
        let settle = |world: &Scenario, line: &mut Commission, is_locked: bool| {
            let ledger_line = LedgerLine { is_locked, ..LedgerLine::new(line) };
            let written = update_bounty(&ledger_line, &world.customer(), now)?;
            *line = written.line;
            assert_eq!(
                update_bounty(&LedgerLine::new(line), &world.customer(), now),
                None,
                "a second call changes nothing"
            );
            Some(written.changes)
        };
        assert_eq!(settle(&world, &mut line, false), None);
        world.is_under_review = true;
        assert_eq!(settle(&world, &mut line, false), Some(vec![LineChange::Frozen]));
        world.is_under_review = false;
        assert_eq!(settle(&world, &mut line, false), Some(vec![LineChange::Thawed]));
        line.earn(now).unwrap();
        line.enter_payout(payout(), now).unwrap();
        world.bar = Some(ReferralBar::Rejected);
        assert_eq!(settle(&world, &mut line, true), None, "a line in an approved payout is not changed");
        let steps = settle(&world, &mut line, false);
        assert_eq!(steps, Some(vec![LineChange::LeftPayout(payout()), LineChange::Reversed(ReversalReason::Fraud)]));
        world.bar = None;
        assert_eq!(settle(&world, &mut line, false), None, "allowing the referral again does not reopen its lines");
    }
}
