//! Property tests of the commission arithmetic and of the recomputation.

#![allow(clippy::arithmetic_side_effects, reason = "a test that is wrong may panic")]

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;

use super::super::arithmetic::{base, rate, split};
use super::super::campaign::{CommissionDuration, CommissionRate, CommissionTerms, ProductRate};
use super::super::commission::Commission;
use super::super::program::AfterPayout;
use super::super::refunds::Refunds;
use super::super::sale::{DisputeState, Sale, SaleLine, SaleReturns};
use super::LineChange;
use super::scenario::{Scenario, at, currency, points, product, tier};

/// A fact about one invoice that the ledger can receive.
#[derive(Debug, Clone, Copy)]
enum ProcessorFact {
    Sale,
    Charge,
    Refunded(i64, i64),
    Disputed(i64, DisputeState),
}

/// A test ledger that receives facts in any order and uses the newest of each kind.
struct FactLedger {
    world: Scenario,
    is_sold: bool,
    refunds: Refunds,
    dispute: Option<(i64, DisputeState)>,
}

impl FactLedger {
    fn new(world: &Scenario) -> Self {
        Self { world: world.clone(), is_sold: false, refunds: Refunds::default(), dispute: None }
    }

    fn record(&mut self, fact: ProcessorFact) {
        match fact {
            ProcessorFact::Sale => self.is_sold = true,
            ProcessorFact::Charge => self.world.charge = Some("ch_1".to_owned()),
            ProcessorFact::Refunded(second, refunded) => {
                let at = Timestamp::from_second(second).unwrap();
                self.refunds.record(at, refunded, self.world.sale.amount_paid);
            }
            ProcessorFact::Disputed(second, dispute) => {
                if self.dispute.is_none_or(|(newest, _)| newest < second) {
                    self.dispute = Some((second, dispute));
                }
            }
        }
        self.world.returned = SaleReturns {
            refunded: self.refunds.refunded(),
            refunded_in_part: self.refunds.in_part(),
            disputes: by_id(self.dispute.map(|(_, dispute)| dispute)),
            ..SaleReturns::default()
        };
        if self.is_sold {
            self.world.run();
        }
    }

    /// The ledger without the timestamps and revisions of its lines.
    fn ledger(mut self) -> (String, Vec<Commission>) {
        let text = self.world.ledger();
        for line in &mut self.world.lines {
            (line.created_at, line.updated_at, line.rev) = (Timestamp::UNIX_EPOCH, Timestamp::UNIX_EPOCH, 0);
        }
        (text, self.world.lines)
    }
}

/// The facts of one invoice in their natural order, and the same facts shuffled with some repeated.
fn facts() -> impl Strategy<Value = (Vec<ProcessorFact>, Vec<ProcessorFact>)> {
    let chains: [&[DisputeState]; 5] = [
        &[],
        &[DisputeState::Inquiry, DisputeState::InquiryClosed],
        &[DisputeState::Inquiry, DisputeState::Open, DisputeState::Lost],
        &[DisputeState::Open, DisputeState::Won],
        &[DisputeState::Inquiry],
    ];
    let refunds = vec((1_i64..50, select(vec![0, 1, 100, 2_450, 4_898, 4_899, 4_900])), 0..5);
    (refunds, select(chains.to_vec()), vec(any::<prop::sample::Index>(), 0..6)).prop_flat_map(
        |(refunds, disputes, again)| {
            let mut facts = vec![ProcessorFact::Sale, ProcessorFact::Charge];
            facts.extend(refunds.into_iter().map(|(second, amount)| ProcessorFact::Refunded(second, amount)));
            facts.extend((1..).zip(disputes).map(|(second, dispute)| ProcessorFact::Disputed(second, *dispute)));
            let mut received = facts.clone();
            received.extend(again.iter().map(|index| facts[index.index(facts.len())]));
            (Just(facts), Just(received).prop_shuffle())
        },
    )
}

/// An ordinary amount, or an extreme one.
fn amount() -> impl Strategy<Value = i64> {
    prop_oneof![0_i64..100_000, any::<i64>(), select(vec![i64::MIN, i64::MIN + 1, -1, 0, 1, i64::MAX - 1, i64::MAX])]
}

fn rate() -> impl Strategy<Value = CommissionRate> {
    prop_oneof![
        (0_u16..=10_000).prop_map(|share| CommissionRate::Percent(points(share))),
        amount().prop_map(CommissionRate::Flat)
    ]
}

fn sale_line() -> impl Strategy<Value = SaleLine> {
    (amount(), amount(), amount(), amount(), select(vec!["a", "b", "c"])).prop_map(
        |(amount, discount, inclusive_tax, pretax_credit, name)| SaleLine {
            amount,
            discount,
            inclusive_tax,
            pretax_credit,
            price: Some(format!("price_{name}")),
            product: Some(format!("prod_{name}")),
        },
    )
}

fn sale() -> impl Strategy<Value = Sale> {
    let figures = (amount(), option::of(amount()), amount(), amount());
    let paid_at = prop_oneof![Just(at("2026-03-01T00:00:00Z")), Just(Timestamp::MIN), Just(Timestamp::MAX)];
    (figures, vec(sale_line(), 0..6), select(vec!["usd", "eur", "kwd", "isk", "jpy"]), paid_at).prop_map(
        |((total, total_excluding_tax, tax, amount_paid), lines, code, paid_at)| Sale {
            invoice: "in_1".to_owned(),
            currency: currency(code),
            total,
            total_excluding_tax,
            tax,
            amount_paid,
            paid_at,
            lines,
        },
    )
}

fn products() -> impl Strategy<Value = Vec<ProductRate>> {
    let entry = (select(vec!["prod_a", "price_a", "prod_b", "price_c"]), option::of(rate()));
    vec(entry.prop_map(|(id, rate)| product(id, rate)), 0..4)
}

fn terms() -> impl Strategy<Value = CommissionTerms> {
    let tiers = vec((0_u32..60, rate()).prop_map(|(from, rate)| tier(from, rate)), 0..3);
    let duration =
        prop_oneof![Just(CommissionDuration::Once), option::of(any::<u16>()).prop_map(CommissionDuration::Recurring),];
    (rate(), tiers, products(), duration, option::of(amount()), 0_u16..=10_000, any::<u16>()).prop_map(
        |(base, tiers, products, duration, max_commission, second_tier, hold_days)| CommissionTerms {
            base,
            unused: 0,
            tiers,
            products,
            duration,
            max_commission,
            second_tier: points(second_tier),
            lead_bounty: 0,
            cookie_days: 60,
            hold_days,
        },
    )
}

fn by_id(dispute: Option<DisputeState>) -> BTreeMap<String, DisputeState> {
    dispute.map(|dispute| ("dp_1".to_owned(), dispute)).into_iter().collect()
}

fn returned() -> impl Strategy<Value = SaleReturns> {
    let disputes = vec![
        DisputeState::Inquiry,
        DisputeState::InquiryClosed,
        DisputeState::Open,
        DisputeState::Won,
        DisputeState::Lost,
    ];
    (amount(), amount(), option::of(select(disputes))).prop_map(|(refunded, refunded_in_part, dispute)| SaleReturns {
        refunded,
        refunded_in_part,
        disputes: by_id(dispute),
        ..SaleReturns::default()
    })
}

proptest! {
    #[test]
    fn the_order_of_facts_does_not_matter((facts, received) in facts(), flat in any::<bool>()) {
        let mut world = Scenario::new();
        world.recruited(100);
        world.sale.lines.push(SaleLine { amount: 100, ..SaleLine::default() });
        if flat {
            world.terms.base = CommissionRate::Flat(700);
        }
        let (mut ordered, mut shuffled) = (FactLedger::new(&world), FactLedger::new(&world));
        facts.iter().for_each(|fact| ordered.record(*fact));
        received.iter().for_each(|fact| shuffled.record(*fact));
        let ((text, mut lines), (other_text, mut others)) = (ordered.ledger(), shuffled.ledger());
        prop_assert_eq!(text, other_text);
        // The ledger's own timestamps may differ; `FactLedger::ledger` resets them.
        lines.sort_by_key(|line| line.id);
        others.sort_by_key(|line| line.id);
        prop_assert_eq!(lines, others);
    }

    /// The facts after a payout arrive under one setting and then under another. A refund may precede the payout.
    #[test]
    fn the_order_of_facts_after_the_payout_does_not_matter(
        (facts, received) in facts(), (then, then_received) in facts(), absorbs in [any::<bool>(), any::<bool>()],
        refunded in select(vec![0_i64, 100, 2_450]),
    ) {
        let mut world = Scenario::new();
        world.recruited(100).refunded(refunded).then().pay();
        let (mut ordered, mut shuffled) = (FactLedger::new(&world), FactLedger::new(&world));
        for (absorbs, facts, received) in [(absorbs[0], &facts, &received), (absorbs[1], &then, &then_received)] {
            let setting = if absorbs { AfterPayout::Absorb } else { AfterPayout::Offset };
            for (ledger, facts) in [(&mut ordered, facts), (&mut shuffled, received)] {
                ledger.is_sold = true;
                let before = ledger.world.adjusted;
                ledger.world.after_payout = setting;
                ledger.world.run();
                prop_assert_eq!(ledger.world.adjusted, before, "a change of the setting moves no money");
                facts.iter().for_each(|fact| ledger.record(*fact));
            }
        }
        prop_assert_eq!(ordered.ledger(), shuffled.ledger());
    }

    #[test]
    fn parts_add_up_to_the_total(total in 0..=i64::MAX, weights in vec(0_i64..=i64::MAX, 1..9)) {
        let weights: Vec<i128> = weights.into_iter().map(i128::from).collect();
        let sum: i128 = weights.iter().sum();
        prop_assume!(sum > 0);
        let parts = split::split_by_weights(total, &weights).unwrap();
        prop_assert_eq!(parts.iter().map(|part| i128::from(*part)).sum::<i128>(), i128::from(total));
        for (part, weight) in parts.iter().zip(&weights) {
            // Each part is the exact share rounded down or up.
            let down = i128::from(total) * weight / sum;
            prop_assert!((down..=down + 1).contains(&i128::from(*part)), "{} of {}", part, down);
        }
    }

    #[test]
    fn groups_add_up_to_the_base(sale in sale(), terms in terms(), n in 0_u32..60) {
        let offer = rate::RateOffer { terms: &terms, commission_override: None, paying_customers: n };
        if let Ok(Some(base)) = base::commissionable_base(&sale) && let Ok(groups) = rate::rate_groups(&sale, base, &offer) {
            prop_assert_eq!(groups.iter().map(|group| i128::from(group.base)).sum::<i128>(), i128::from(base));
            prop_assert!(groups.iter().all(|group| group.base >= 0));
        }
    }

    #[test]
    fn a_share_exceeds_the_base_by_less_than_a_step(
        sale in sale(), products in products(), share in 0_u16..=10_000, second in 0_u16..=10_000,
    ) {
        let mut world = Scenario::new();
        world.recruited(second).sale = sale;
        world.terms.base = CommissionRate::Percent(points(share));
        world.terms.products = products.into_iter().filter(|rate| !matches!(rate.rate, Some(CommissionRate::Flat(_)))).collect();
        if let Ok(outcome) = world.ask() {
            for written in outcome.updates {
                let (line, base) = (&written.line, outcome.worth.unwrap().base);
                prop_assert!(line.amount > 0);
                prop_assert!(i128::from(line.amount) < i128::from(base) + i128::from(line.currency.payout_step()));
                prop_assert_eq!(line.amount % line.currency.payout_step(), 0);
            }
        }
    }

    #[test]
    fn no_input_panics(
        sale in sale(), terms in terms(), returned in [returned(), returned()], own in option::of(0_u16..=10_000),
        status_index in 0..4_usize,
    ) {
        let mut world = Scenario::new();
        let second_tier = terms.second_tier.get();
        world.terms = terms;
        world.recruited(second_tier).sale = sale;
        world.after_payout = AfterPayout::Offset;
        world.commission_override = own.map(points);
        let [first, then] = returned;
        world.returned = first;
        if world.ask().is_ok() {
            world.run();
        }
        if status_index > 0 {
            for line in &mut world.lines {
                let now = line.earns_at.checked_add(SignedDuration::ZERO).unwrap();
                // A transition that is not possible leaves the line unchanged.
                let _ = line.earn(now);
                if status_index > 1 {
                    let _ = line.enter_payout(super::scenario::payout(), now);
                }
                if status_index > 2 {
                    let _ = line.pay(super::scenario::payout(), now);
                }
            }
            world.is_locked = status_index > 1;
        }
        world.returned = then;
        if world.ask().is_ok() {
            world.run();
        }
        for (line, adjusted) in world.lines.iter().zip(world.adjusted) {
            prop_assert!(line.amount > 0);
            let calculation = &line.sold_invoice().unwrap().calculation;
            let unrefunded = calculation.payable(calculation.base, line.currency).unwrap().amount;
            let paid = i128::from(line.amount) + i128::from(adjusted);
            prop_assert!((0..=i128::from(unrefunded)).contains(&paid), "{} for {}", adjusted, line.amount);
            prop_assert!(!line.formula().is_empty());
        }
        prop_assert!(world.lines.len() <= 2);
    }

    #[test]
    fn every_change_is_recorded(facts in vec(returned(), 1..6)) {
        let mut world = Scenario::new();
        world.recruited(500).then();
        for returned in facts {
            world.returned = returned;
            let before = world.lines.clone();
            if world.ask().is_ok() {
                let steps = world.run();
                let is_changed = before != world.lines;
                prop_assert_eq!(is_changed, !steps.is_empty());
                prop_assert!(!steps.contains(&LineChange::Created));
            }
        }
    }
}
