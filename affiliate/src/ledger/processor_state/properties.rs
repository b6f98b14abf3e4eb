//! Property tests: the order and repetition of facts do not change the rows.

use jiff::Timestamp;
use model::affiliate::sale::{DisputeState, Sale};
use proptest::prelude::*;

use super::{ChargeState, CustomerState, InvoiceState};
use crate::processor::{
    Charge, ChargeDispute, CreditNote, Customer, Invoice, Payment, ReferralMetadata, Refund, StateVersion,
    Subscription, SubscriptionStatus,
};

/// A fact about one customer, its one invoice, or its one charge.
#[derive(Debug, Clone)]
enum TestFact {
    Charge(Charge),
    Refund(Refund),
    Dispute(ChargeDispute),
    Note(CreditNote),
    Invoice(Box<Invoice>),
    Customer(Customer),
    Subscription(Subscription),
}

fn second(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

fn as_of() -> impl Strategy<Value = StateVersion> {
    let kinds = ["charge.updated", "refund.created", "charge.dispute.closed"];
    (0..6_i64, prop::sample::select(kinds.to_vec())).prop_map(|(at, kind)| StateVersion::event(kind, second(at)))
}

fn sale(amount_paid: i64) -> Sale {
    Sale {
        invoice: "in_1".to_owned(),
        currency: "usd".parse().unwrap(),
        total: amount_paid,
        total_excluding_tax: None,
        tax: 0,
        amount_paid,
        paid_at: second(1),
        lines: Vec::new(),
    }
}

fn charge_facts() -> impl Strategy<Value = TestFact> {
    let charge = (as_of(), 0..=10_i64).prop_map(|(as_of, tenths)| {
        TestFact::Charge(Charge {
            id: "ch_1".to_owned(),
            payment_intent: (tenths > 5).then(|| "pi_1".to_owned()),
            invoice: None,
            customer: None,
            amount: 1_000,
            amount_refunded: tenths * 100,
            currency: "usd".parse().unwrap(),
            is_disputed: false,
            marks: ReferralMetadata { excluded: tenths == 7, ..ReferralMetadata::default() },
            refunds: Vec::new(),
            dispute: None,
            as_of,
        })
    });
    let refund = (as_of(), 0..3_usize, any::<bool>()).prop_map(|(as_of, number, is_live)| {
        TestFact::Refund(Refund {
            id: format!("re_{number}"),
            charge: Some("ch_1".to_owned()),
            payment_intent: None,
            amount: 400,
            currency: None,
            is_live,
            created_at: Some(second(0)),
            as_of,
        })
    });
    let statuses =
        [DisputeState::Inquiry, DisputeState::InquiryClosed, DisputeState::Open, DisputeState::Won, DisputeState::Lost];
    let dispute = (as_of(), prop::sample::select(statuses.to_vec()), 0..2_usize);
    let dispute = dispute.prop_map(|(as_of, status, number)| {
        let id = format!("dp_{number}");
        TestFact::Dispute(ChargeDispute { id, charge: None, payment_intent: None, status, as_of })
    });
    prop_oneof![charge, refund, dispute]
}

fn other_facts() -> impl Strategy<Value = TestFact> {
    let note = (as_of(), 0..3_usize, 0..3_i64).prop_map(|(as_of, number, hundreds)| {
        let (id, invoice) = (format!("cn_{number}"), "in_1".to_owned());
        let currency = "usd".parse().unwrap();
        TestFact::Note(CreditNote { id, invoice, currency, given_back: hundreds * 100, as_of })
    });
    let invoice = (as_of(), any::<bool>(), 1..3_i64).prop_map(|(as_of, is_paid, paid)| {
        TestFact::Invoice(Box::new(Invoice {
            sale: sale(paid * 1_000),
            is_paid,
            customer: Some("cus_1".to_owned()),
            email: None,
            subscription: None,
            marks: ReferralMetadata::default(),
            payments: vec![Payment { charge: Some(format!("ch_{paid}")), payment_intent: None }],
            charges: Vec::new(),
            description: None,
            has_all_lines: true,
            as_of,
        }))
    });
    let customer = (as_of(), 0..3_usize, any::<bool>()).prop_map(|(as_of, number, excluded)| {
        let email = (number > 0).then(|| format!("{number}@example.com"));
        let marks = ReferralMetadata { excluded, ..ReferralMetadata::default() };
        TestFact::Customer(Customer { id: "cus_1".to_owned(), email, marks, created_at: None, as_of })
    });
    let statuses = [SubscriptionStatus::Trialing, SubscriptionStatus::Live, SubscriptionStatus::Over];
    let subscription = (as_of(), prop::sample::select(statuses.to_vec()), 0..2_usize, 0..6_i64, any::<bool>());
    let subscription = subscription.prop_map(|(as_of, status, number, over, excluded)| {
        let (id, customer) = (format!("sub_{number}"), Some("cus_1".to_owned()));
        let begun_at = (number > 0).then(|| second(2));
        let over_at = (status == SubscriptionStatus::Over).then(|| second(over));
        let marks = ReferralMetadata { excluded, ..ReferralMetadata::default() };
        TestFact::Subscription(Subscription { id, customer, status, begun_at, over_at, marks, as_of })
    });
    prop_oneof![note, invoice, customer, subscription]
}

type TestRows = (ChargeState, InvoiceState, CustomerState);

fn apply_all<'a>(facts: impl IntoIterator<Item = &'a TestFact>) -> TestRows {
    let (mut charge, mut invoice, mut customer) = TestRows::default();
    for fact in facts {
        match fact {
            TestFact::Charge(fact) => charge.apply(fact).unwrap(),
            TestFact::Refund(fact) => charge.apply_refund(fact).unwrap(),
            TestFact::Dispute(fact) => charge.apply_dispute(fact).unwrap(),
            TestFact::Note(fact) => invoice.apply_credit_note(fact).unwrap(),
            TestFact::Invoice(fact) => {
                invoice.apply(fact).unwrap();
                customer.apply_payment(fact.sale.paid_at);
            }
            TestFact::Customer(fact) => {
                customer.apply(fact);
                assert!(!customer.apply(fact), "a repetition changes nothing");
            }
            TestFact::Subscription(fact) => {
                customer.apply_subscription(fact);
                assert!(!customer.apply_subscription(fact), "a repetition changes nothing");
            }
        }
    }
    (charge, invoice, customer)
}

proptest! {
    #[test]
    fn the_order_of_facts_does_not_matter(
        facts in prop::collection::vec(prop_oneof![charge_facts(), other_facts()], 0..14),
        order in prop::collection::vec(any::<prop::sample::Index>(), 0..30),
    ) {
        let plain = apply_all(&facts);
        // Some facts first, in any order and repeatedly; then all, in reverse.
        let subset = order.iter().filter_map(|index| facts.get(index.index(facts.len().max(1))));
        let shuffled = apply_all(subset.chain(facts.iter().rev()));
        prop_assert_eq!(&plain, &shuffled);
        let returned = |rows: &TestRows| rows.1.money_returned(&sale(1_000), &[&rows.0]);
        prop_assert_eq!(returned(&plain), returned(&shuffled));
        // A row decodes to what was encoded.
        let text = serde_json::to_string(&plain).unwrap();
        prop_assert_eq!(&serde_json::from_str::<TestRows>(&text).unwrap(), &plain);
    }
}

#[test]
fn a_partial_refund_before_a_full_one() {
    let sale = sale(1_000);
    let charge_event = |kind: &str, at, refunded| {
        let as_of = StateVersion::event(kind, second(at));
        let currency = "usd".parse().unwrap();
        Charge {
            id: "ch_1".to_owned(),
            payment_intent: None,
            invoice: None,
            customer: None,
            amount: 1_000,
            amount_refunded: refunded,
            currency,
            is_disputed: false,
            marks: ReferralMetadata::default(),
            refunds: Vec::new(),
            dispute: None,
            as_of,
        }
    };
    let mut charge = ChargeState::default();
    for (at, refunded) in [(30, 200), (10, 300), (40, 1_000), (20, 1_000)] {
        charge.apply(&charge_event("charge.refunded", at, refunded)).unwrap();
    }
    let returned = InvoiceState::default().money_returned(&sale, &[&charge]);
    assert_eq!((returned.refunded, returned.refunded_in_part), (1_000, 200));
    // A refund in another currency is converted in proportion.
    let yen = Sale { currency: "jpy".parse().unwrap(), amount_paid: 150, ..sale };
    let returned = InvoiceState::default().money_returned(&yen, &[&charge]);
    assert_eq!((returned.refunded, returned.refunded_in_part), (150, 30));
}

#[test]
fn a_partial_refund_before_a_full_one_in_the_same_second() {
    let sale = sale(1_000);
    let as_of = StateVersion::event("charge.refunded", second(10));
    let figure = |amount_refunded| Charge {
        id: "ch_1".to_owned(),
        payment_intent: None,
        invoice: None,
        customer: None,
        amount: 1_000,
        amount_refunded,
        currency: "usd".parse().unwrap(),
        is_disputed: false,
        marks: ReferralMetadata::default(),
        refunds: Vec::new(),
        dispute: None,
        as_of,
    };
    let refund = |id: &str, amount| Refund {
        id: id.to_owned(),
        charge: Some("ch_1".to_owned()),
        payment_intent: None,
        amount,
        currency: None,
        is_live: true,
        created_at: Some(second(10)),
        as_of,
    };
    let partial_refund = |charge: &ChargeState| {
        let returned = InvoiceState::default().money_returned(&sale, &[charge]);
        assert_eq!((returned.refunded, returned.told_at), (1_000, Some(second(10))));
        returned.refunded_in_part
    };
    // The charge's own total takes precedence over the order of refund ids.
    let mut charge = ChargeState::default();
    charge.apply(&figure(1_000)).unwrap();
    charge.apply(&figure(300)).unwrap();
    assert_eq!(partial_refund(&charge), 300);
    charge.apply_refund(&refund("re_b", 300)).unwrap();
    charge.apply_refund(&refund("re_a", 700)).unwrap();
    assert_eq!(partial_refund(&charge), 300);
    // Without a total from the charge, refunds are ordered by id.
    let mut charge = ChargeState::default();
    charge.apply_refund(&refund("re_2", 700)).unwrap();
    charge.apply_refund(&refund("re_1", 300)).unwrap();
    assert_eq!(partial_refund(&charge), 300);
}
