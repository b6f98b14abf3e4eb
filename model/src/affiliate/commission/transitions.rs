//! Table test: every transition of a commission from every state.

use jiff::Timestamp;

use super::super::sale::{DisputeState, SaleReturns};
use super::{
    Commission, CommissionError, CommissionOrigin, CommissionState, FreezeReasons, ReconciliationState, ReversalReason,
    TermsSnapshot, Waiver,
};
use crate::id::{AccountId, CampaignId, CommissionId, PartnerId, PayoutId, ReferralId};

const BORN: Timestamp = Timestamp::UNIX_EPOCH;

fn second(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

fn payout(number: u128) -> PayoutId {
    PayoutId::new(BORN, number)
}

/// A line with `earns_at` at second 100.
fn line(status: CommissionState) -> Commission {
    Commission {
        id: CommissionId::new(BORN, 1),
        account: AccountId::new(BORN, 1),
        partner: PartnerId::new(BORN, 1),
        referral: ReferralId::new(BORN, 1),
        origin: CommissionOrigin::Bounty,
        amount: 500,
        currency: "usd".parse().unwrap(),
        status,
        earns_at: second(100),
        comparison: ReconciliationState::Needless,
        snapshot: TermsSnapshot { campaign: CampaignId::new(BORN, 1), campaign_rev: 1, hold_days: 30 },
        waived: Vec::new(),
        note: None,
        created_at: BORN,
        updated_at: BORN,
        rev: 1,
    }
}

/// One status per state, and two for those that can be frozen or have different reversal reasons.
fn states() -> [(&'static str, CommissionState); 8] {
    let (earned_at, ice) = (second(100), FreezeReasons { inquiry: true, review: false });
    let reversed = |reason| CommissionState::Reversed { reversed_at: second(150), reason, earned_at: Some(earned_at) };
    [
        ("pending", CommissionState::Pending { frozen: FreezeReasons::default() }),
        ("pending, frozen", CommissionState::Pending { frozen: ice }),
        ("earned", CommissionState::Earned { earned_at, frozen: FreezeReasons::default() }),
        ("earned, frozen", CommissionState::Earned { earned_at, frozen: ice }),
        ("in payout", CommissionState::InPayout { earned_at, payout: payout(1) }),
        ("paid", CommissionState::Paid { earned_at, payout: payout(1), paid_at: second(150) }),
        ("refunded", reversed(ReversalReason::Refund)),
        ("reversed", reversed(ReversalReason::Manual)),
    ]
}

type Transition = fn(&mut Commission) -> Result<bool, CommissionError>;

/// Applies a transition in each state. Expects the resulting status word, `-` for no change, or the error text.
fn check(name: &str, make: Transition, wanted: [&str; 8]) {
    for ((state, status), wanted) in states().into_iter().zip(wanted) {
        let before = line(status);
        let mut line = before.clone();
        let result = match make(&mut line) {
            Ok(_) if line == before => "-".to_owned(),
            Ok(_) => {
                assert_eq!((line.rev, line.updated_at), (2, second(200)), "{name} from {state}");
                format!("{}{}", line.status.word(), if line.status.frozen().is_frozen() { ", frozen" } else { "" })
            }
            Err(refused) => {
                assert_eq!(line, before, "{name} from {state} is refused, and changes nothing");
                refused.to_string().replace("the commission is ", "").replace(&payout(1).to_string(), "1")
            }
        };
        assert_eq!(result, wanted, "{name} from {state}");
    }
}

#[test]
fn every_state_permits_the_expected_transitions() {
    let (no, paid, taken) = ("not reversed", "already paid", "already in payout 1");
    let frozen = "frozen during a review or a bank inquiry";
    let (waits, none) = ("not pending", "not earned");
    let away = "not in this payout";
    check("earn", |l| l.earn(second(200)).map(|()| true), ["earned", frozen, waits, waits, waits, waits, waits, waits]);
    check(
        "reverse",
        |l| l.reverse(ReversalReason::Manual, second(200)),
        ["reversed", "reversed", "reversed", "reversed", taken, paid, "-", "-"],
    );
    check("reopen", |l| l.reopen(second(200)).map(|()| true), [no, no, no, no, no, no, "pending", no]);
    check(
        "reinstate",
        |l| l.reinstate(&SaleReturns::default(), second(200)).map(|()| true),
        [no, no, no, no, no, no, "pending", "pending"],
    );
    check(
        "freeze",
        |l| l.freeze(FreezeReasons { inquiry: true, review: false }, second(200)),
        ["pending, frozen", "-", "earned, frozen", "-", taken, "-", "-", "-"],
    );
    check(
        "thaw",
        |l| l.freeze(FreezeReasons::default(), second(200)),
        ["-", "pending", "-", "earned", "-", "-", "-", "-"],
    );
    check(
        "enter its payout",
        |l| l.enter_payout(payout(1), second(200)).map(|()| true),
        [none, none, "earned", frozen, "-", paid, none, none],
    );
    check(
        "enter another payout",
        |l| l.enter_payout(payout(2), second(200)).map(|()| true),
        [none, none, "earned", frozen, taken, paid, none, none],
    );
    check(
        "leave its payout",
        |l| l.leave_payout(payout(1), second(200)).map(|()| true),
        [away, away, away, away, "earned", "earned", away, away],
    );
    check(
        "leave another payout",
        |l| l.leave_payout(payout(2), second(200)).map(|()| true),
        [away, away, away, away, away, away, away, away],
    );
    check("pay", |l| l.pay(payout(1), second(200)).map(|()| true), [away, away, away, away, "paid", "-", away, away]);
}

#[test]
fn a_line_is_not_earned_before_its_hold_ends() {
    let mut line = line(CommissionState::Pending { frozen: FreezeReasons::default() });
    assert!(!line.is_due(second(99)) && line.is_due(second(100)));
    assert_eq!(line.earn(second(99)), Err(CommissionError::NotYet { earns_at: second(100) }));
    line.reverse(ReversalReason::Manual, second(50)).unwrap();
    let returned = SaleReturns::default();
    line.reinstate(&returned, second(60)).unwrap();
    let waived = [Waiver::Reason(ReversalReason::Manual)];
    assert_eq!((line.earns_at, line.waived.as_slice()), (second(100), waived.as_slice()));
    line.reverse(ReversalReason::Manual, second(70)).unwrap();
    line.reinstate(&returned, second(500)).unwrap();
    assert_eq!((line.earns_at, line.waived.len()), (second(500), 1));
    assert_eq!(line.status.earned_at(), None);
}

#[test]
fn a_waiver_covers_only_known_causes() {
    let mut line = line(states()[6].1);
    let disputes = [("dp_1".to_owned(), DisputeState::Won), ("dp_2".to_owned(), DisputeState::Inquiry)];
    let returned = SaleReturns {
        refunded: 500,
        refunded_in_part: 200,
        in_part_at: Some(second(20)),
        told_at: Some(second(30)),
        disputes: disputes.into_iter().collect(),
    };
    line.reinstate(&returned, second(200)).unwrap();
    assert!(!line.waives_dispute("dp_1"), "the line was reversed for a refund, so no dispute is waived");
    for (refunded, in_part_at, is_waived) in
        [(500, Some(20), true), (500, None, true), (400, Some(30), true), (501, None, false), (500, Some(31), false)]
    {
        let returned = SaleReturns { refunded, in_part_at: in_part_at.map(second), ..returned.clone() };
        assert_eq!(line.waives_refund(&returned), is_waived, "{refunded} {in_part_at:?}");
    }
    line.reverse(ReversalReason::Dispute, second(210)).unwrap();
    line.reinstate(&returned, second(220)).unwrap();
    assert_eq!(["dp_1", "dp_2", "dp_3"].map(|id| line.waives_dispute(id)), [true, false, false]);
    assert!(line.waives_refund(&returned) && !line.waives(ReversalReason::Fraud));
    let text = serde_json::to_string(&line).unwrap();
    assert_eq!(serde_json::from_str::<Commission>(&text).unwrap(), line);
}

#[test]
fn paid_lines_and_lines_in_payouts_are_forbidden_errors() {
    assert!(CommissionError::Paid.is_forbidden() && CommissionError::InPayout(payout(1)).is_forbidden());
    assert!(!CommissionError::NotPending.is_forbidden() && !CommissionError::Frozen.is_forbidden());
}

#[test]
fn lines_round_trip() {
    for (state, status) in states() {
        let line = line(status);
        let text = serde_json::to_string(&line).unwrap();
        assert_eq!(serde_json::from_str::<Commission>(&text).unwrap(), line, "{state}");
    }
}
