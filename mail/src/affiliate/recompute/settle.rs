//! A line that stands, brought to where the newest facts want it.
//!
//! First it is said what the facts want ([`Wanted`]), by the line's own snapshot; then the line moves there by its own
//! transitions, and each that it takes is a [`Step`].

use jiff::Timestamp;

use super::super::arithmetic::ArithmeticError;
use super::super::commission::{Commission, Frozen, Level, Origin, Reason, Refused, Sold, Status};
use super::super::program::AfterPayout;
use super::super::sale::{Dispute, Returned};
use super::{Adjustment, Barred, Booked, Customer, Known, Step, Written, sellers_line};

/// What became of a line.
#[derive(Debug, Default)]
pub(super) struct Settled {
    /// It, if it changed.
    pub(super) written: Option<Written>,
    /// The correction of what was paid for it.
    pub(super) adjustment: Option<Adjustment>,
}

/// How a line is to stand.
struct Wanted {
    /// Taken back, for this.
    reversed: Option<Reason>,
    /// What it comes to, or came to last, and so its sale; `None` when that is none of the facts' business.
    amounts: Option<Amounts>,
    /// Kept from earning.
    frozen: Frozen,
}

/// What a line comes to, and what is left of its sale.
#[derive(Clone, Copy)]
struct Amounts {
    commission: i64,
    sale: i64,
}

/// Brings a line of an invoice to where the facts want it. `lines` are all of the invoice's.
pub(super) fn settle(
    known: &Known<'_>,
    lines: &[Booked<'_>],
    booked: &Booked<'_>,
) -> Result<Settled, ArithmeticError> {
    let Some(sold) = booked.line.sold() else { return Ok(Settled::default()) };
    let mut walk = Walk::of(booked.line, known.now);
    walk.learn_charge(known.invoice.charge);
    let too_much = if booked.is_out_of_reach() {
        match known.rules.after_payout {
            AfterPayout::Absorb => return Ok(Settled { written: walk.written(), adjustment: None }),
            AfterPayout::Offset => too_much(known.invoice.returned, lines, booked, sold)?,
        }
    } else {
        walk.go_to(&wanted(known, lines, booked, sold)?);
        0
    };
    // All adjustments of the line together come to what it is too much.
    let amount = too_much.checked_neg().and_then(|owed| owed.checked_sub(booked.adjusted));
    let amount = amount.ok_or(ArithmeticError::TooLarge)?;
    let Commission { id: line, partner, currency, .. } = *booked.line;
    let adjustment = (amount != 0).then_some(Adjustment { line, partner, amount, currency });
    Ok(Settled { written: walk.written(), adjustment })
}

/// Brings a bounty to where its referral wants it; `None` when it is there. A line in an approved payout stays.
#[must_use]
pub fn settle_bounty(booked: &Booked<'_>, customer: &Customer<'_>, now: Timestamp) -> Option<Written> {
    let Booked { line, is_orphan, .. } = *booked;
    if booked.is_out_of_reach() || line.sold().is_some() {
        return None;
    }
    let frozen = Frozen { review: customer.is_under_review, inquiry: false };
    let reversed = line.status.reversed().map(|(_, reason)| reason);
    let orphaned = is_orphan.then_some(Reason::PartnerDeleted);
    let reversed = reversed.or(customer.barred.map(Barred::reason)).or(orphaned);
    let mut walk = Walk::of(line, now);
    walk.go_to(&Wanted { reversed, amounts: None, frozen });
    walk.written()
}

/// How the facts want a line that is within reach.
fn wanted(
    known: &Known<'_>,
    lines: &[Booked<'_>],
    booked: &Booked<'_>,
    sold: &Sold,
) -> Result<Wanted, ArithmeticError> {
    let (line, returned) = (booked.line, known.invoice.returned);
    let reversed = line.status.reversed().map(|(_, reason)| reason);
    let inquiry = returned.is_asked_about();
    let frozen = Frozen { inquiry, review: known.customer.is_under_review };
    if let Some(reason) = reversed.filter(|reason| !reason.is_of_the_sale()) {
        // By somebody's hand: what the processor says is of no matter any more.
        return Ok(Wanted { reversed: Some(reason), amounts: None, frozen });
    }
    let came_back = came_back(returned, lines, line)?;
    let amounts = Some(amounts(line, sold, returned)?);
    let barred = known.customer.barred.map(Barred::reason);
    let orphaned = booked.is_orphan.then_some(Reason::PartnerDeleted);
    let by_hand = fraud(lines, line).or(barred).or(orphaned);
    let reversed = match (came_back, reversed) {
        (Some(Reason::Dispute), _) | (_, Some(Reason::Dispute)) => Some(Reason::Dispute),
        (Some(reason), _) => Some(reason),
        // The refund failed; but what may not earn is not opened again.
        (None, Some(reason)) if by_hand.is_some() => Some(reason),
        (None, _) => by_hand,
    };
    Ok(Wanted { reversed, amounts, frozen })
}

/// Why a line's sale came back, if it did: what was waived for the line does not count. Of both reasons, it is the
/// dispute, whichever came first.
fn came_back(
    returned: &Returned,
    lines: &[Booked<'_>],
    line: &Commission,
) -> Result<Option<Reason>, ArithmeticError> {
    if disputes(line, returned).next().is_some() {
        return Ok(Some(Reason::Dispute));
    }
    let is_refunded = is_refunded(line, returned)? || follows(lines, line, returned)?;
    Ok((is_refunded && !line.waives_refund(returned)).then_some(Reason::Refund))
}

/// The disputes that take a line back.
fn disputes<'a>(line: &'a Commission, returned: &'a Returned) -> impl Iterator<Item = Dispute> + 'a {
    let counts = returned.disputes_that_take_back().filter(|(id, _)| !line.waives_dispute(id));
    counts.map(|(_, dispute)| dispute)
}

/// Whether a line comes to nothing by what was given back.
fn is_refunded(line: &Commission, returned: &Returned) -> Result<bool, ArithmeticError> {
    let Some(sold) = line.sold() else { return Ok(false) };
    Ok(after(line, sold, returned.refunded)?.is_none())
}

/// Whether it is the recruiter's, and the seller's own line comes to nothing by what was given back.
fn follows(lines: &[Booked<'_>], line: &Commission, returned: &Returned) -> Result<bool, ArithmeticError> {
    let Some(sellers) = sellers_line(lines).filter(|_| line.level() == Level::Two) else { return Ok(false) };
    Ok(!sellers.line.waives_refund(returned) && is_refunded(sellers.line, returned)?)
}

/// Fraud, for the recruiter's line when the seller's was taken back for it.
fn fraud(lines: &[Booked<'_>], line: &Commission) -> Option<Reason> {
    let sellers = sellers_line(lines).filter(|_| line.level() == Level::Two)?;
    let (_, reason) = sellers.line.status.reversed()?;
    (reason == Reason::Fraud && !line.waives(reason)).then_some(reason)
}

/// What a line comes to after refunds; when that is nothing, what it came to last.
fn amounts(line: &Commission, sold: &Sold, returned: &Returned) -> Result<Amounts, ArithmeticError> {
    let last = [returned.refunded, returned.refunded_in_part, 0];
    for refunded in last {
        if let Some(amounts) = after(line, sold, refunded)? {
            return Ok(amounts);
        }
    }
    Ok(Amounts { commission: line.amount, sale: sold.amount })
}

/// What a line comes to when so much was given back; `None` when that is nothing.
fn after(line: &Commission, sold: &Sold, refunded: i64) -> Result<Option<Amounts>, ArithmeticError> {
    let sale = sold.calculation.remaining(refunded)?;
    if refunded >= sold.calculation.paid {
        return Ok(None);
    }
    let commission = sold.calculation.payable(sale, line.currency)?.amount;
    Ok((commission > 0).then_some(Amounts { commission, sale }))
}

/// What a line is too much that nothing takes out of its payout. Never less than nothing: what failed to come back is
/// not paid twice.
fn too_much(
    returned: &Returned,
    lines: &[Booked<'_>],
    booked: &Booked<'_>,
    sold: &Sold,
) -> Result<i64, ArithmeticError> {
    let line = booked.line;
    let is_lost = match came_back(returned, lines, line)? {
        // Money that was won back is there again: the line was never taken back, and there is nobody to reinstate it.
        Some(Reason::Dispute) => {
            disputes(line, returned).any(Dispute::holds_the_money) || is_refunded(line, returned)?
        }
        reason => reason.is_some(),
    };
    if is_lost {
        return Ok(line.amount);
    }
    let due = amounts(line, sold, returned)?.commission;
    Ok(line.amount.checked_sub(due).ok_or(ArithmeticError::TooLarge)?.max(0))
}

/// A line on its way.
struct Walk<'a> {
    line: std::borrow::Cow<'a, Commission>,
    steps: Vec<Step>,
    now: Timestamp,
}

impl<'a> Walk<'a> {
    fn of(line: &'a Commission, now: Timestamp) -> Self {
        Self { line: std::borrow::Cow::Borrowed(line), steps: Vec::new(), now }
    }

    fn written(self) -> Option<Written> {
        let Self { line, steps, .. } = self;
        (!steps.is_empty()).then(|| Written { line: line.into_owned(), steps })
    }

    /// The id of the charge, as it is known by now.
    fn learn_charge(&mut self, charge: Option<&str>) {
        let Some(charge) = charge else { return };
        if self.line.sold().is_none_or(|sold| sold.charge.as_deref() == Some(charge)) {
            return;
        }
        let line = self.line.to_mut();
        if let Origin::Sale(sold) = &mut line.origin {
            sold.charge = Some(charge.to_owned());
            line.touch(self.now);
            self.steps.push(Step::Charge);
        }
    }

    fn go_to(&mut self, wanted: &Wanted) {
        if let Some(amounts) = wanted.amounts {
            self.amounts(amounts);
        }
        match (wanted.reversed, self.line.status) {
            (Some(reason), Status::Reversed { reversed_at, reason: its, earned_at }) => {
                if its != reason {
                    let line = self.line.to_mut();
                    line.status = Status::Reversed { reversed_at, reason, earned_at };
                    line.touch(self.now);
                    self.steps.push(Step::ReasonChanged(reason));
                }
            }
            (Some(reason), _) => {
                self.leave_payout();
                let now = self.now;
                self.moved(|line| line.reverse(reason, now), Step::Reversed(reason));
            }
            (None, status) => {
                if status.reversed().is_some() {
                    let now = self.now;
                    self.moved(|line| line.reopen(now).map(|()| true), Step::Reopened);
                }
                self.freeze(wanted.frozen);
            }
        }
    }

    fn amounts(&mut self, Amounts { commission, sale }: Amounts) {
        if self.line.amount == commission && self.line.sale_amount() == sale {
            return;
        }
        self.leave_payout();
        let line = self.line.to_mut();
        let from = std::mem::replace(&mut line.amount, commission);
        if let Origin::Sale(sold) = &mut line.origin {
            sold.amount = sale;
        }
        line.touch(self.now);
        self.steps.push(Step::Amount { from, to: commission });
    }

    fn freeze(&mut self, frozen: Frozen) {
        if self.line.status.frozen() == frozen {
            return;
        }
        if frozen.is_frozen() {
            self.leave_payout();
        }
        let now = self.now;
        let step = if frozen.is_frozen() { Step::Frozen } else { Step::Thawed };
        self.moved(|line| line.freeze(frozen, now), step);
    }

    /// Out of a draft; who is in none stays.
    fn leave_payout(&mut self) {
        if let Status::InPayout { payout, .. } = self.line.status {
            let now = self.now;
            self.moved(|line| line.leave_payout(payout, now).map(|()| true), Step::LeftPayout(payout));
        }
    }

    /// Notes a move that changed the line. One that is refused changes nothing, and is none.
    fn moved(&mut self, move_it: impl FnOnce(&mut Commission) -> Result<bool, Refused>, step: Step) {
        if move_it(self.line.to_mut()) == Ok(true) {
            self.steps.push(step);
        }
    }
}
