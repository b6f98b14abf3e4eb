//! Every move of a commission from every state, as a table.

use jiff::Timestamp;

use super::super::sale::{Dispute, Returned};
use super::{Commission, Comparison, Frozen, Origin, Reason, Refused, Snapshot, Status, Waiver};
use crate::id::{AccountId, CampaignId, CommissionId, PartnerId, PayoutId, ReferralId};

const BORN: Timestamp = Timestamp::UNIX_EPOCH;

fn second(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

fn payout(number: u128) -> PayoutId {
    PayoutId::new(BORN, number)
}

/// A line that earns from second 100 on.
fn line(status: Status) -> Commission {
    Commission {
        id: CommissionId::new(BORN, 1),
        account: AccountId::new(BORN, 1),
        partner: PartnerId::new(BORN, 1),
        referral: ReferralId::new(BORN, 1),
        origin: Origin::Bounty,
        amount: 500,
        currency: "usd".parse().unwrap(),
        status,
        earns_at: second(100),
        comparison: Comparison::Needless,
        snapshot: Snapshot { campaign: CampaignId::new(BORN, 1), campaign_rev: 1, hold_days: 30 },
        waived: Vec::new(),
        note: None,
        created_at: BORN,
        updated_at: BORN,
        rev: 1,
    }
}

/// One of each state.
fn states() -> [(&'static str, Status); 8] {
    let (earned_at, ice) = (second(100), Frozen { inquiry: true, review: false });
    let reversed = |reason| Status::Reversed { reversed_at: second(150), reason, earned_at: Some(earned_at) };
    [
        ("pending", Status::Pending { frozen: Frozen::default() }),
        ("pending, frozen", Status::Pending { frozen: ice }),
        ("earned", Status::Earned { earned_at, frozen: Frozen::default() }),
        ("earned, frozen", Status::Earned { earned_at, frozen: ice }),
        ("in payout", Status::InPayout { earned_at, payout: payout(1) }),
        ("paid", Status::Paid { earned_at, payout: payout(1), paid_at: second(150) }),
        ("refunded", reversed(Reason::Refund)),
        ("reversed", reversed(Reason::Manual)),
    ]
}

type Move = fn(&mut Commission) -> Result<bool, Refused>;

/// From each state in turn: the word that follows, `-` when nothing changes, or why it is refused.
fn check(name: &str, make: Move, wanted: [&str; 8]) {
    for ((state, status), wanted) in states().into_iter().zip(wanted) {
        let before = line(status);
        let mut line = before.clone();
        let said = match make(&mut line) {
            Ok(_) if line == before => "-".to_owned(),
            Ok(_) => {
                assert_eq!((line.rev, line.updated_at), (2, second(200)), "{name} from {state}");
                format!(
                    "{}{}",
                    line.status.word(),
                    if line.status.frozen().is_frozen() { ", frozen" } else { "" }
                )
            }
            Err(refused) => {
                assert_eq!(line, before, "{name} from {state} is refused, and changes nothing");
                refused.to_string().replace("the commission is ", "").replace(&payout(1).to_string(), "1")
            }
        };
        assert_eq!(said, wanted, "{name} from {state}");
    }
}

#[test]
fn every_move_from_every_state() {
    let (no, paid, taken) = ("not reversed", "paid already", "in payout 1 already");
    let frozen = "frozen while somebody looks at it";
    let (waits, none) = ("not pending", "not earned");
    let away = "not in that payout";
    check(
        "earn",
        |l| l.earn(second(200)).map(|()| true),
        ["earned", frozen, waits, waits, waits, waits, waits, waits],
    );
    check(
        "reverse",
        |l| l.reverse(Reason::Manual, second(200)),
        ["reversed", "reversed", "reversed", "reversed", taken, paid, "-", "-"],
    );
    check("reopen", |l| l.reopen(second(200)).map(|()| true), [no, no, no, no, no, no, "pending", no]);
    check(
        "reinstate",
        |l| l.reinstate(&Returned::default(), second(200)).map(|()| true),
        [no, no, no, no, no, no, "pending", "pending"],
    );
    check(
        "freeze",
        |l| l.freeze(Frozen { inquiry: true, review: false }, second(200)),
        ["pending, frozen", "-", "earned, frozen", "-", taken, "-", "-", "-"],
    );
    check(
        "thaw",
        |l| l.freeze(Frozen::default(), second(200)),
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
    check(
        "pay",
        |l| l.pay(payout(1), second(200)).map(|()| true),
        [away, away, away, away, "paid", "-", away, away],
    );
}

#[test]
fn a_line_waits_for_its_time() {
    let mut line = line(Status::Pending { frozen: Frozen::default() });
    assert!(!line.is_due(second(99)) && line.is_due(second(100)));
    assert_eq!(line.earn(second(99)), Err(Refused::NotYet { earns_at: second(100) }));
    line.reverse(Reason::Manual, second(50)).unwrap();
    let returned = Returned::default();
    line.reinstate(&returned, second(60)).unwrap();
    let waived = [Waiver::Reason(Reason::Manual)];
    assert_eq!((line.earns_at, line.waived.as_slice()), (second(100), waived.as_slice()));
    line.reverse(Reason::Manual, second(70)).unwrap();
    line.reinstate(&returned, second(500)).unwrap();
    assert_eq!((line.earns_at, line.waived.len()), (second(500), 1));
    assert_eq!(line.status.earned_at(), None);
}

#[test]
fn what_is_waived_is_what_was_known() {
    let mut line = line(states()[6].1);
    let disputes = [("dp_1".to_owned(), Dispute::Won), ("dp_2".to_owned(), Dispute::Inquiry)];
    let returned = Returned {
        refunded: 500,
        refunded_in_part: 200,
        in_part_at: Some(second(20)),
        told_at: Some(second(30)),
        disputes: disputes.into_iter().collect(),
    };
    line.reinstate(&returned, second(200)).unwrap();
    assert!(!line.waives_dispute("dp_1"), "it was not reversed for that");
    for (refunded, in_part_at, is_waived) in [
        (500, Some(20), true),
        (500, None, true),
        (400, Some(30), true),
        (501, None, false),
        (500, Some(31), false),
    ] {
        let returned = Returned { refunded, in_part_at: in_part_at.map(second), ..returned.clone() };
        assert_eq!(line.waives_refund(&returned), is_waived, "{refunded} {in_part_at:?}");
    }
    line.reverse(Reason::Dispute, second(210)).unwrap();
    line.reinstate(&returned, second(220)).unwrap();
    assert_eq!(["dp_1", "dp_2", "dp_3"].map(|id| line.waives_dispute(id)), [true, false, false]);
    assert!(line.waives_refund(&returned) && !line.waives(Reason::Fraud));
    let text = serde_json::to_string(&line).unwrap();
    assert_eq!(serde_json::from_str::<Commission>(&text).unwrap(), line);
}

#[test]
fn what_the_api_forbids() {
    assert!(Refused::Paid.is_forbidden() && Refused::InPayout(payout(1)).is_forbidden());
    assert!(!Refused::NotPending.is_forbidden() && !Refused::Frozen.is_forbidden());
}

#[test]
fn a_line_reads_back() {
    for (state, status) in states() {
        let line = line(status);
        let text = serde_json::to_string(&line).unwrap();
        assert_eq!(serde_json::from_str::<Commission>(&text).unwrap(), line, "{state}");
    }
}
