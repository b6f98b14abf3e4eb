//! Updates a stored line to the newest facts.
//!
//! `target_state` derives the required state from the facts and the line's own snapshot. The line then moves there by
//! its own transitions, and each transition is recorded as a [`LineChange`].

use jiff::Timestamp;

use super::super::arithmetic::ArithmeticError;
use super::super::commission::{
    Commission, CommissionError, CommissionLevel, CommissionOrigin, CommissionState, FreezeReasons, RefundSplit,
    ReversalReason, SoldInvoice,
};
use super::super::sale::{DisputeState, SaleReturns};
use super::{
    AdjustmentDue, CustomerInput, LedgerLine, LineChange, LineUpdate, RecomputeFacts, ReferralBar, sellers_line,
};

#[derive(Debug, Default)]
pub(super) struct LineResult {
    /// The line, if it changed.
    pub(super) written: Option<LineUpdate>,
    /// The adjustment to write, if the line can no longer be changed.
    pub(super) adjustment: Option<AdjustmentDue>,
}

/// The state that a line must have.
struct TargetState {
    /// The reason if it must be reversed.
    reversed: Option<ReversalReason>,
    /// The line's and the sale's amounts, for a reversed line the last ones; `None` leaves them unchanged.
    amounts: Option<LineAmounts>,
    frozen: FreezeReasons,
}

/// The commission of a line and the remaining base of its sale, in minor units.
#[derive(Clone, Copy)]
struct LineAmounts {
    commission: i64,
    sale: i64,
}

/// Updates one line of an invoice. `lines` are all lines of the invoice.
pub(super) fn update_line(
    known: &RecomputeFacts<'_>,
    lines: &[LedgerLine<'_>],
    ledger_line: &LedgerLine<'_>,
) -> Result<LineResult, ArithmeticError> {
    let Some(sold) = ledger_line.line.sold_invoice() else { return Ok(LineResult::default()) };
    let mut transitions = LineTransitions::new(ledger_line.line, known.now);
    transitions.set_charge(known.invoice.charge);
    let owed = if ledger_line.is_out_of_reach() {
        let (split, owed) = owed_after_payout(known, lines, ledger_line, sold)?;
        transitions.set_refund_split(split);
        owed
    } else {
        transitions.move_to(&target_state(known, lines, ledger_line, sold)?);
        0
    };
    // The adjustments of a line must add up to the negative of what the partner owes.
    let amount = owed.checked_neg().and_then(|total| total.checked_sub(ledger_line.adjusted));
    let amount = amount.ok_or(ArithmeticError::TooLarge)?;
    let Commission { id: line, partner, currency, .. } = *ledger_line.line;
    let adjustment = (amount != 0).then_some(AdjustmentDue { line, partner, amount, currency });
    Ok(LineResult { written: transitions.into_update(), adjustment })
}

/// Updates a bounty to the state of its referral; `None` if nothing changes. A line in an approved payout is not
/// changed.
pub fn update_bounty(ledger_line: &LedgerLine<'_>, customer: &CustomerInput<'_>, now: Timestamp) -> Option<LineUpdate> {
    let LedgerLine { line, is_orphan, .. } = *ledger_line;
    if ledger_line.is_out_of_reach() || line.sold_invoice().is_some() {
        return None;
    }
    let frozen = FreezeReasons { review: customer.is_under_review, inquiry: false };
    let reversed = line.status.reversed().map(|(_, reason)| reason);
    let orphaned = is_orphan.then_some(ReversalReason::PartnerDeleted);
    let reversed = reversed.or(customer.bar.map(ReferralBar::reason)).or(orphaned);
    let mut transitions = LineTransitions::new(line, now);
    transitions.move_to(&TargetState { reversed, amounts: None, frozen });
    transitions.into_update()
}

/// Derives the required state of a line that can be changed.
fn target_state(
    known: &RecomputeFacts<'_>,
    lines: &[LedgerLine<'_>],
    ledger_line: &LedgerLine<'_>,
    sold: &SoldInvoice,
) -> Result<TargetState, ArithmeticError> {
    let (line, returned) = (ledger_line.line, known.invoice.returned);
    let reversed = line.status.reversed().map(|(_, reason)| reason);
    let inquiry = returned.has_inquiry();
    let frozen = FreezeReasons { inquiry, review: known.customer.is_under_review };
    if let Some(reason) = reversed.filter(|reason| !reason.follows_from_sale()) {
        // Reversed by the owner: the processor's data no longer matters.
        return Ok(TargetState { reversed: Some(reason), amounts: None, frozen });
    }
    let sale_reason = reversal_reason(returned, lines, line)?.or(exclusion(known, line));
    let amounts = Some(amounts_after_refunds(line, sold, returned)?);
    let manual_reason = manual_reason(known, lines, ledger_line);
    let reversed = match (sale_reason, reversed) {
        (Some(ReversalReason::Dispute), _) | (_, Some(ReversalReason::Dispute)) => Some(ReversalReason::Dispute),
        (Some(reason), _) => Some(reason),
        // The refund failed or the exclusion ended, but a line that must not earn is not reopened.
        (None, Some(reason)) if manual_reason.is_some() => Some(reason),
        (None, _) => manual_reason,
    };
    Ok(TargetState { reversed, amounts, frozen })
}

/// The reversal reason of an excluded sale, unless the owner waived it for the line.
fn exclusion(known: &RecomputeFacts<'_>, line: &Commission) -> Option<ReversalReason> {
    let reason = ReversalReason::Excluded;
    (known.invoice.is_excluded && !line.waives(reason)).then_some(reason)
}

/// The reason why a line must not earn, apart from refunds, disputes and the exclusion flag.
fn manual_reason(
    known: &RecomputeFacts<'_>,
    lines: &[LedgerLine<'_>],
    ledger_line: &LedgerLine<'_>,
) -> Option<ReversalReason> {
    let bar_reason = known.customer.bar.map(ReferralBar::reason);
    let orphaned = ledger_line.is_orphan.then_some(ReversalReason::PartnerDeleted);
    seller_fraud(lines, ledger_line.line).or(bar_reason).or(orphaned)
}

/// The reversal reason that follows from refunds and disputes, without those that were waived for the line. A dispute
/// takes precedence over a refund, in any order of arrival.
fn reversal_reason(
    returned: &SaleReturns,
    lines: &[LedgerLine<'_>],
    line: &Commission,
) -> Result<Option<ReversalReason>, ArithmeticError> {
    if reversing_disputes(line, returned).next().is_some() {
        return Ok(Some(ReversalReason::Dispute));
    }
    let is_refunded = is_refunded(line, returned)? || follows_seller_refund(lines, line, returned)?;
    Ok((is_refunded && !line.waives_refund(returned)).then_some(ReversalReason::Refund))
}

fn reversing_disputes<'a>(line: &'a Commission, returned: &'a SaleReturns) -> impl Iterator<Item = DisputeState> + 'a {
    let counts = returned.reversing_disputes().filter(|(id, _)| !line.waives_dispute(id));
    counts.map(|(_, dispute)| dispute)
}

/// True if refunds reduce the line to zero.
fn is_refunded(line: &Commission, returned: &SaleReturns) -> Result<bool, ArithmeticError> {
    let Some(sold) = line.sold_invoice() else { return Ok(false) };
    Ok(amounts_after(line, sold, returned.refunded)?.is_none())
}

/// True if this is the recruiter's line and refunds reduce the seller's line to zero.
fn follows_seller_refund(
    lines: &[LedgerLine<'_>],
    line: &Commission,
    returned: &SaleReturns,
) -> Result<bool, ArithmeticError> {
    let Some(sellers) = sellers_line(lines).filter(|_| line.level() == CommissionLevel::Two) else {
        return Ok(false);
    };
    Ok(!sellers.line.waives_refund(returned) && is_refunded(sellers.line, returned)?)
}

/// Returns fraud for the recruiter's line if the seller's line was reversed for fraud.
fn seller_fraud(lines: &[LedgerLine<'_>], line: &Commission) -> Option<ReversalReason> {
    let sellers = sellers_line(lines).filter(|_| line.level() == CommissionLevel::Two)?;
    let (_, reason) = sellers.line.status.reversed()?;
    (reason == ReversalReason::Fraud && !line.waives(reason)).then_some(reason)
}

/// The amounts after refunds; if they are zero, the last amounts above zero.
fn amounts_after_refunds(
    line: &Commission,
    sold: &SoldInvoice,
    returned: &SaleReturns,
) -> Result<LineAmounts, ArithmeticError> {
    let last = [returned.refunded, returned.refunded_in_part, 0];
    for refunded in last {
        if let Some(amounts) = amounts_after(line, sold, refunded)? {
            return Ok(amounts);
        }
    }
    Ok(LineAmounts { commission: line.amount, sale: sold.amount })
}

/// The amounts after refunding `refunded` minor units; `None` if the commission is zero.
fn amounts_after(line: &Commission, sold: &SoldInvoice, refunded: i64) -> Result<Option<LineAmounts>, ArithmeticError> {
    let sale = sold.calculation.remaining(refunded)?;
    if refunded >= sold.calculation.paid {
        return Ok(None);
    }
    let commission = sold.calculation.payable(sale, line.currency)?.amount;
    Ok((commission > 0).then_some(LineAmounts { commission, sale }))
}

/// Divides refunds after the payout between the program and the partner. Returns the split, and the amount that the
/// partner owes for the line. It is negative if the line was paid too little, whatever the setting: a refund that
/// reduced the line before the payout failed. A line that must not earn is not raised further.
fn owed_after_payout(
    known: &RecomputeFacts<'_>,
    lines: &[LedgerLine<'_>],
    ledger_line: &LedgerLine<'_>,
    sold: &SoldInvoice,
) -> Result<(RefundSplit, i64), ArithmeticError> {
    let overpaid = overpaid_amount(known.invoice.returned, lines, ledger_line, sold)?;
    let owed = ledger_line.adjusted.saturating_neg();
    let (split, deducted) = sold.refund_split.divide(overpaid.max(0), owed.max(0), known.rules.after_payout);
    if overpaid >= 0 {
        return Ok((split, deducted));
    }
    let is_barred = manual_reason(known, lines, ledger_line).or(exclusion(known, ledger_line.line)).is_some();
    Ok((split, if is_barred { overpaid.max(owed.min(0)) } else { overpaid }))
}

/// The amount that was paid too much for a line that can no longer be changed; negative if it was paid too little. What
/// was paid and the missing amount together are the commission after refunds, never more.
fn overpaid_amount(
    returned: &SaleReturns,
    lines: &[LedgerLine<'_>],
    ledger_line: &LedgerLine<'_>,
    sold: &SoldInvoice,
) -> Result<i64, ArithmeticError> {
    let line = ledger_line.line;
    let is_reversed = match reversal_reason(returned, lines, line)? {
        // A won dispute returned the money. The paid line was never reversed, so it cannot be reinstated.
        Some(ReversalReason::Dispute) => {
            reversing_disputes(line, returned).any(DisputeState::holds_funds) || is_refunded(line, returned)?
        }
        reason => reason.is_some(),
    };
    if is_reversed {
        return Ok(line.amount);
    }
    let due = amounts_after_refunds(line, sold, returned)?.commission;
    line.amount.checked_sub(due).ok_or(ArithmeticError::TooLarge)
}

/// Applies transitions to a line and records them.
struct LineTransitions<'a> {
    line: std::borrow::Cow<'a, Commission>,
    steps: Vec<LineChange>,
    now: Timestamp,
}

impl<'a> LineTransitions<'a> {
    fn new(line: &'a Commission, now: Timestamp) -> Self {
        Self { line: std::borrow::Cow::Borrowed(line), steps: Vec::new(), now }
    }

    fn into_update(self) -> Option<LineUpdate> {
        let Self { line, steps, .. } = self;
        (!steps.is_empty()).then(|| LineUpdate { line: line.into_owned(), changes: steps })
    }

    /// Stores the charge's id once it is known.
    fn set_charge(&mut self, charge: Option<&str>) {
        let Some(charge) = charge else { return };
        if self.line.sold_invoice().is_none_or(|sold| sold.charge.as_deref() == Some(charge)) {
            return;
        }
        let line = self.line.to_mut();
        if let CommissionOrigin::Sale(sold) = &mut line.origin {
            sold.charge = Some(charge.to_owned());
            line.touch(self.now);
            self.steps.push(LineChange::Charge);
        }
    }

    /// Stores how refunds after the payout are divided.
    fn set_refund_split(&mut self, split: RefundSplit) {
        if self.line.sold_invoice().is_none_or(|sold| sold.refund_split == split) {
            return;
        }
        let line = self.line.to_mut();
        if let CommissionOrigin::Sale(sold) = &mut line.origin {
            sold.refund_split = split;
            line.touch(self.now);
            self.steps.push(LineChange::RefundSplit);
        }
    }

    fn move_to(&mut self, wanted: &TargetState) {
        if let Some(amounts) = wanted.amounts {
            self.amounts(amounts);
        }
        match (wanted.reversed, self.line.status) {
            (Some(reason), CommissionState::Reversed { reversed_at, reason: current, earned_at }) => {
                if current != reason {
                    let line = self.line.to_mut();
                    line.status = CommissionState::Reversed { reversed_at, reason, earned_at };
                    line.touch(self.now);
                    self.steps.push(LineChange::ReasonChanged(reason));
                }
            }
            (Some(reason), _) => {
                self.leave_payout();
                let now = self.now;
                self.record_transition(|line| line.reverse(reason, now), LineChange::Reversed(reason));
            }
            (None, status) => {
                if status.reversed().is_some() {
                    let now = self.now;
                    self.record_transition(|line| line.reopen(now).map(|()| true), LineChange::Reopened);
                }
                self.freeze(wanted.frozen);
            }
        }
    }

    fn amounts(&mut self, LineAmounts { commission, sale }: LineAmounts) {
        if self.line.amount == commission && self.line.sale_amount() == sale {
            return;
        }
        self.leave_payout();
        let line = self.line.to_mut();
        let from = std::mem::replace(&mut line.amount, commission);
        if let CommissionOrigin::Sale(sold) = &mut line.origin {
            sold.amount = sale;
        }
        line.touch(self.now);
        self.steps.push(LineChange::Amount { from, to: commission });
    }

    fn freeze(&mut self, frozen: FreezeReasons) {
        if self.line.status.frozen() == frozen {
            return;
        }
        if frozen.is_frozen() {
            self.leave_payout();
        }
        let now = self.now;
        let step = if frozen.is_frozen() { LineChange::Frozen } else { LineChange::Thawed };
        self.record_transition(|line| line.freeze(frozen, now), step);
    }

    /// Removes the line from its draft payout, if it is in one.
    fn leave_payout(&mut self) {
        if let CommissionState::InPayout { payout, .. } = self.line.status {
            let now = self.now;
            self.record_transition(
                |line| line.leave_payout(payout, now).map(|()| true),
                LineChange::LeftPayout(payout),
            );
        }
    }

    /// Applies a transition, and records it if it changed the line. A refused transition changes nothing.
    fn record_transition(
        &mut self,
        transition: impl FnOnce(&mut Commission) -> Result<bool, CommissionError>,
        step: LineChange,
    ) {
        if transition(self.line.to_mut()) == Ok(true) {
            self.steps.push(step);
        }
    }
}
