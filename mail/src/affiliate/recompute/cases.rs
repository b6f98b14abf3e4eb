//! The arithmetic as a table: one line a case, with numbers that were computed by hand.

use super::super::campaign::{CommissionDuration, CommissionRate};
use super::super::commission::ReversalReason;
use super::super::program::AfterPayout;
use super::super::sale::{DisputeState, SaleLine};
use super::world::{ADA, Scenario, at, partner, payout, percent, points, product, sold, tier};
use super::{ReferralBar, RecruiterInput, AccrualStatus, LineChange};

/// What a case does to the plain world, and the ledger that comes of it.
type CalculationCase = (&'static str, fn(&mut Scenario), &'static str);

fn check(cases: &[CalculationCase]) {
    for (name, change, ledger) in cases {
        let mut world = Scenario::new();
        change(&mut world);
        if world.ask().is_ok() {
            world.run();
        }
        assert_eq!(world.ledger(), *ledger, "{name}");
    }
}

#[test]
fn base_is_what_was_paid_less_tax() {
    check(&[
        ("plain", |_| {}, "1: 980 usd of 4900, pending"),
        ("tax on top: 58.31 with 19 %", |w| { w.paid(5_831, "usd").sale.tax = 931; }, "1: 980 usd of 4900, pending"),
        ("tax as said by the total without it", |w| { w.paid(5_831, "usd").sale.total_excluding_tax = Some(4_900); }, "1: 980 usd of 4900, pending"),
        ("what the total without tax says goes first", |w| { let s = &mut w.paid(5_831, "usd").sale; s.total_excluding_tax = Some(4_900); s.tax = 1; }, "1: 980 usd of 4900, pending"),
        // 4900 × 3831 / 5831 = 3219.34
        ("20.00 paid by credit", |w| { let s = &mut w.paid(5_831, "usd").sale; s.tax = 931; s.amount_paid = 3_831; }, "1: 644 usd of 3219, pending"),
        // 99 × 50 / 100 = 49.5
        ("a half goes up", |w| { let s = &mut w.paid(100, "usd").sale; s.tax = 1; s.amount_paid = 50; }, "1: 10 usd of 50, pending"),
        ("all by credit", |w| { w.sale.amount_paid = 0; }, "NoSale"),
        ("a free invoice", |w| { w.paid(0, "usd"); }, "NoSale"),
        ("a credit", |w| { w.paid(-500, "usd"); }, "NoSale"),
        ("nothing but tax", |w| { w.sale.tax = 4_900; }, "NoSale"),
        ("paid before the customer was ours", |w| { w.counts_from = at("2026-03-01T00:00:01Z"); }, "NoSale"),
        ("paid at that very time", |w| { w.counts_from = at("2026-03-01T00:00:00Z"); }, "1: 980 usd of 4900, pending"),
    ]);
}

#[test]
fn lines_are_grouped_and_scaled() {
    check(&[
        // 20 % of 1000 + 50 % of 500 = 200 + 250
        ("two rates", |w| { w.sold(&[("a", 1_000), ("b", 500)]).terms.products = vec![product("prod_b", percent(50))]; }, "1: 450 usd of 1500, pending"),
        // nets 800 and 500, B = 1300 × 650 / 1300 = 650: 400 and 250 → 80 + 125
        ("discount on one, half by credit", |w| { w.sold(&[("a", 1_000), ("b", 500)]).terms.products = vec![product("prod_b", percent(50))]; w.sale.lines[0].discount = 200; w.sale.total = 1_300; w.sale.amount_paid = 650; }, "1: 205 usd of 650, pending"),
        // nets 1190 − 190 = 1000 and 595 − 95 = 500, B = 1785 − 285 = 1500
        ("inclusive tax", |w| { w.sold(&[("a", 1_190), ("b", 595)]).terms.products = vec![product("prod_b", percent(50))]; w.sale.lines[0].inclusive_tax = 190; w.sale.lines[1].inclusive_tax = 95; w.sale.tax = 285; }, "1: 450 usd of 1500, pending"),
        ("credit before tax", |w| { w.sold(&[("a", 1_000), ("b", 500)]).terms.products = vec![product("prod_b", percent(50))]; w.sale.lines[1].pretax_credit = 500; w.sale.total = 1_000; w.sale.amount_paid = 1_000; }, "1: 200 usd of 1000, pending"),
        // group a: 1000 − 400 = 600; B = 600 + 500
        ("a proration within its group", |w| { w.sold(&[("a", 1_000), ("a", -400), ("b", 500)]).terms.products = vec![product("prod_b", percent(50))]; }, "1: 370 usd of 1100, pending"),
        // group b: −300 → 0; B = 700 is all of group a's
        ("a group below zero", |w| { w.sold(&[("a", 1_000), ("b", -300)]).terms.products = vec![product("prod_b", percent(50))]; }, "1: 140 usd of 700, pending"),
        // 100 by 1:1:1 is 34, 33, 33, and the first line is b's: 34 + 0 + 6.6
        ("the odd cent is the first line's", |w| { w.sold(&[("b", 50), ("c", 50), ("a", 50)]).sale.total = 100; w.sale.amount_paid = 100; w.terms.products = vec![product("prod_c", None), product("prod_b", percent(100))]; }, "1: 41 usd of 100, pending"),
        ("no lines known", |w| { w.sale.lines.clear(); w.terms.products = vec![product("prod_a", percent(50))]; }, "1: 980 usd of 4900, pending"),
        ("lines that come to nothing", |w| { w.sale.lines = vec![SaleLine { discount: 4_900, ..sold("a", 4_900) }]; w.terms.products = vec![product("prod_a", percent(50))]; }, "1: 980 usd of 4900, pending"),
    ]);
}

#[test]
fn rates_have_an_order() {
    let all = |w: &mut Scenario| {
        w.commission_override = Some(points(500));
        w.terms.products = vec![product("prod_a", percent(10)), product("price_a", percent(40))];
        w.terms.tiers = vec![tier(1, percent(25)), tier(21, percent(30))];
        w.paying_customers = 21;
    };
    check(&[
        ("the flag goes before all", |w| { w.is_excluded = true; w.commission_override = Some(points(500)); }, "Excluded"),
        ("the partner's own rate before products and tiers: 5 %", all, "1: 245 usd of 4900, pending"),
        ("even before a product that earns nothing", |w| { w.commission_override = Some(points(500)); w.terms.products = vec![product("prod_a", None)]; }, "1: 245 usd of 4900, pending"),
        ("the price before the product: 40 %", |w| { w.terms.products = vec![product("prod_a", percent(10)), product("price_a", percent(40))]; }, "1: 1960 usd of 4900, pending"),
        ("the product before a tier: 10 %", |w| { w.terms.products = vec![product("prod_a", percent(10))]; w.terms.tiers = vec![tier(1, percent(25))]; }, "1: 490 usd of 4900, pending"),
        ("a rate of another price does not hold", |w| { w.terms.products = vec![product("price_b", percent(10))]; }, "1: 980 usd of 4900, pending"),
        ("a product that earns nothing", |w| { w.terms.products = vec![product("prod_a", None)]; }, "ComesToNothing"),
        ("beside one that does", |w| { w.sold(&[("a", 1_000), ("b", 500)]).terms.products = vec![product("prod_b", None)]; }, "1: 200 usd of 1500, pending"),
        ("a tier that is not reached", |w| { w.terms.tiers = vec![tier(21, percent(30))]; w.paying_customers = 20; }, "1: 980 usd of 4900, pending"),
        ("the 21st customer counts: 30 %", |w| { w.terms.tiers = vec![tier(21, percent(30))]; w.paying_customers = 21; }, "1: 1470 usd of 4900, pending"),
        ("the highest that is reached", |w| { w.terms.tiers = vec![tier(1, percent(25)), tier(21, percent(30)), tier(51, percent(40))]; w.paying_customers = 50; }, "1: 1470 usd of 4900, pending"),
        ("a tier of a fixed amount", |w| { w.terms.tiers = vec![tier(1, CommissionRate::Flat(700))]; }, "1: 700 usd of 4900, pending"),
    ]);
}

#[test]
fn rounding_is_once_and_half_up() {
    check(&[
        ("12.5 % of 0.20 is 2.5 cents", |w| { w.paid(20, "usd").terms.base = CommissionRate::Percent(points(1_250)); }, "1: 3 usd of 20, pending"),
        ("12.5 % of 0.19 is 2.375", |w| { w.paid(19, "usd").terms.base = CommissionRate::Percent(points(1_250)); }, "1: 2 usd of 19, pending"),
        // each part would be 2.5 → 3; together they are 5
        ("once for the invoice", |w| { w.sold(&[("a", 20), ("b", 20)]).terms.base = CommissionRate::Percent(points(1_250)); w.terms.products = vec![product("prod_b", CommissionRate::Percent(points(1_250)))]; }, "1: 5 usd of 40, pending"),
        ("a fixed amount once for the invoice", |w| { w.sold(&[("a", 1_000), ("b", 500)]).terms.base = CommissionRate::Flat(300); }, "1: 300 usd of 1500, pending"),
        ("and once for each product that has one", |w| { w.sold(&[("a", 1_000), ("b", 500), ("b", 500), ("c", 1)]).terms.base = CommissionRate::Flat(300); w.terms.products = vec![product("prod_b", CommissionRate::Flat(70)), product("prod_c", CommissionRate::Flat(5))]; }, "1: 375 usd of 2001, pending"),
        ("not for one that was given back", |w| { w.sold(&[("a", 1_000), ("b", -500)]).terms.products = vec![product("prod_b", CommissionRate::Flat(70))]; }, "1: 100 usd of 500, pending"),
        ("a share and a fixed amount", |w| { w.sold(&[("a", 1_000), ("b", 500)]).terms.products = vec![product("prod_b", CommissionRate::Flat(70))]; }, "1: 270 usd of 1500, pending"),
        ("a fixed amount may be more than the sale", |w| { w.paid(100, "usd").terms.base = CommissionRate::Flat(300); }, "1: 300 usd of 100, pending"),
        ("0 % is no line", |w| { w.terms.base = percent(0); }, "ComesToNothing"),
        ("less than half a cent is no line", |w| { w.paid(2, "usd"); }, "ComesToNothing"),
        ("all of it", |w| { w.terms.base = percent(100); }, "1: 4900 usd of 4900, pending"),
    ]);
}

#[test]
fn caps_and_steps() {
    check(&[
        ("a cap", |w| { w.terms.max_commission = Some(900); }, "1: 900 usd of 4900, pending"),
        ("a cap that is not reached", |w| { w.terms.max_commission = Some(980); }, "1: 980 usd of 4900, pending"),
        ("a cap of nothing", |w| { w.terms.max_commission = Some(0); }, "ComesToNothing"),
        ("a cap for each of the two", |w| { w.recruited(2_000).terms.max_commission = Some(900); }, "1: 900 usd of 4900, pending | 2: 900 usd of 4900, pending"),
        ("yen have no decimals: 20 % of 333 is 66.6", |w| { w.paid(333, "jpy"); }, "1: 67 jpy of 333, pending"),
        // 20 % of 3.872 is 0.7744, to the nearest 0.010
        ("dinars go in tens", |w| { w.paid(3_872, "kwd"); }, "1: 770 kwd of 3872, pending"),
        ("halves up there too", |w| { w.paid(3_875, "kwd"); }, "1: 780 kwd of 3875, pending"),
        ("krónur go in hundreds: 20 % of 12.50", |w| { w.paid(1_250, "isk"); }, "1: 300 isk of 1250, pending"),
        ("half of one is none", |w| { w.paid(245, "isk"); }, "ComesToNothing"),
        ("the cap goes before the step, and holds after it", |w| { w.paid(3_875, "kwd"); w.currency = w.sale.currency; w.terms.max_commission = Some(776); }, "1: 770 kwd of 3875, pending"),
    ]);
}

#[test]
fn nothing_is_exchanged() {
    check(&[
        ("a share is in the invoice's currency", |w| { w.paid(4_900, "eur"); }, "1: 980 eur of 4900, pending"),
        ("a fixed amount in the program's", |w| { w.paid(4_900, "eur").terms.base = CommissionRate::Flat(700); }, "1: 700 usd of 4900, pending"),
        ("a cap of another currency does not hold", |w| { w.paid(4_900, "eur").terms.max_commission = Some(900); }, "1: 980 eur of 4900, pending"),
        ("but holds for the fixed amount", |w| { w.paid(4_900, "eur").terms.base = CommissionRate::Flat(700); w.terms.max_commission = Some(600); }, "1: 600 usd of 4900, pending"),
        ("a line has one currency: a fixed amount beside shares has one of its own", |w| { w.paid(0, "eur").sold(&[("a", 1_000), ("b", 500)]).terms.products = vec![product("prod_b", CommissionRate::Flat(70))]; }, "1: 200 eur of 1000, pending | 1: 70 usd of 500, pending"),
        ("which a refund of a part leaves as it is", |w| { w.paid(0, "eur").sold(&[("a", 1_000), ("b", 500)]).terms.products = vec![product("prod_b", CommissionRate::Flat(70))]; w.then().returned.refunded = 750; }, "1: 100 eur of 500, pending | 1: 70 usd of 250, pending"),
        ("and a refund of all takes back", |w| { w.paid(0, "eur").sold(&[("a", 1_000), ("b", 500)]).terms.products = vec![product("prod_b", CommissionRate::Flat(70))]; w.then().returned.refunded = 1_500; }, "1: 200 eur of 1000, reversed refund | 1: 70 usd of 500, reversed refund"),
        ("the recruiter's is of the whole sale", |w| { w.paid(0, "eur").sold(&[("a", 1_000), ("b", 500)]).recruited(1_000).terms.products = vec![product("prod_b", CommissionRate::Flat(70))]; }, "1: 200 eur of 1000, pending | 2: 150 eur of 1500, pending | 1: 70 usd of 500, pending"),
        ("or that of the fixed amount, when there is no share", |w| { w.paid(0, "eur").sold(&[("a", 1_000), ("b", 500)]).terms.products = vec![product("prod_b", CommissionRate::Flat(70)), product("prod_a", None)]; }, "1: 70 usd of 1500, pending"),
        ("the recruiter's is a share", |w| { w.paid(4_900, "eur").recruited(1_000).terms.base = CommissionRate::Flat(700); }, "1: 700 usd of 4900, pending | 2: 490 eur of 4900, pending"),
    ]);
}

#[test]
fn recruiters_share_the_same_sale() {
    check(&[
        ("5 % of the sale, not of the commission", |w| { w.recruited(500); }, "1: 980 usd of 4900, pending | 2: 245 usd of 4900, pending"),
        ("halves up: 5 % of 0.50", |w| { w.paid(50, "usd").recruited(500); }, "1: 10 usd of 50, pending | 2: 3 usd of 50, pending"),
        ("of what is commissionable alone", |w| { w.sold(&[("a", 1_000), ("b", 500)]).recruited(500).terms.products = vec![product("prod_b", None)]; }, "1: 200 usd of 1500, pending | 2: 50 usd of 1500, pending"),
        ("of all rates together", |w| { w.sold(&[("a", 1_000), ("b", 500), ("c", 9)]).recruited(500).terms.products = vec![product("prod_b", percent(50)), product("prod_c", CommissionRate::Flat(1))]; }, "1: 451 usd of 1509, pending | 2: 75 usd of 1509, pending"),
        ("not without a line of the seller's", |w| { w.recruited(500).terms.base = percent(0); }, "ComesToNothing"),
        ("not for who is not active", |w| { w.recruited(500).recruiter.as_mut().unwrap().is_active = false; }, "1: 980 usd of 4900, pending"),
        ("not for the customer", |w| { w.recruited(500).recruiter.as_mut().unwrap().is_customer = true; }, "1: 980 usd of 4900, pending"),
        ("not for oneself", |w| { w.recruited(500).recruiter.as_mut().unwrap().partner = partner(ADA); }, "1: 980 usd of 4900, pending"),
        ("not at 0 %", |w| { w.recruited(0); }, "1: 980 usd of 4900, pending"),
        ("not afterwards", |w| { w.then().recruited(500); }, "1: 980 usd of 4900, pending"),
        ("a refund takes both", |w| { w.recruited(500).then().refunded(4_900); }, "1: 980 usd of 4900, reversed refund | 2: 245 usd of 4900, reversed refund"),
        ("half a refund half of both", |w| { w.recruited(500).then().refunded(2_450); }, "1: 490 usd of 2450, pending | 2: 123 usd of 2450, pending"),
        ("a dispute takes both", |w| { w.recruited(500).then().disputed(DisputeState::Open); }, "1: 980 usd of 4900, reversed dispute | 2: 245 usd of 4900, reversed dispute"),
        ("fraud of the one is fraud of the other", |w| { w.recruited(500).then().lines[0].reverse(ReversalReason::Fraud, at("2026-03-02T00:00:00Z")).unwrap(); }, "1: 980 usd of 4900, reversed fraud | 2: 245 usd of 4900, reversed fraud"),
        ("by hand is not", |w| { w.recruited(500).then().lines[0].reverse(ReversalReason::Manual, at("2026-03-02T00:00:00Z")).unwrap(); }, "1: 980 usd of 4900, reversed manual | 2: 245 usd of 4900, pending"),
        // 1 % of 0.50 rounds to 0.01, of 0.49 to nothing; 50 % of it would be 25
        ("what takes the seller's line by rounding takes the other's", |w| { w.paid(50, "usd").recruited(5_000).terms.base = percent(1); w.then().refunded(1); }, "1: 1 usd of 50, reversed refund | 2: 25 usd of 49, reversed refund"),
    ]);
}

#[test]
fn durations() {
    check(&[
        ("once: the first", |w| { w.terms.duration = CommissionDuration::Once; }, "1: 980 usd of 4900, pending"),
        ("once: not another", |w| { w.terms.duration = CommissionDuration::Once; w.first_earning = Some("in_0".to_owned()); }, "OnlyOnce"),
        ("once: whatever became of the first", |w| { w.terms.duration = CommissionDuration::Once; w.then().first_earning = Some("in_1".to_owned()); w.refunded(4_900); }, "1: 980 usd of 4900, reversed refund"),
        ("recurring: others before it do not matter", |w| { w.first_earning = Some("in_0".to_owned()); }, "1: 980 usd of 4900, pending"),
        ("the twelfth month", |w| { w.terms.duration = CommissionDuration::Recurring(Some(12)); w.converted_at = Some(at("2025-04-01T00:00:00Z")); }, "1: 980 usd of 4900, pending"),
        ("twelve hours before the thirteenth", |w| { w.terms.duration = CommissionDuration::Recurring(Some(12)); w.converted_at = Some(at("2025-03-01T12:00:00Z")); }, "TooLate"),
        ("and a second earlier", |w| { w.terms.duration = CommissionDuration::Recurring(Some(12)); w.converted_at = Some(at("2025-03-01T12:00:01Z")); }, "1: 980 usd of 4900, pending"),
        ("the first itself", |w| { w.terms.duration = CommissionDuration::Recurring(Some(1)); }, "1: 980 usd of 4900, pending"),
        ("the window does not close on what is written", |w| { w.then().terms.duration = CommissionDuration::Recurring(Some(1)); w.converted_at = Some(at("2020-01-01T00:00:00Z")); }, "1: 980 usd of 4900, pending"),
    ]);
}

#[test]
fn refunds_within_reach() {
    check(&[
        // B' = 4900 × (5831 − 1000) / 5831 = 4059.66; 20 % of 4060
        ("a part, with tax in what was paid", |w| { let s = &mut w.paid(5_831, "usd").sale; s.tax = 931; w.then().refunded(1_000); }, "1: 812 usd of 4060, pending"),
        ("all", |w| { w.then().refunded(4_900); }, "1: 980 usd of 4900, reversed refund"),
        ("more than all", |w| { w.then().refunded(9_999); }, "1: 980 usd of 4900, reversed refund"),
        ("a part, then all: the amount stays as it was last", |w| { w.then().refunded(2_450).then().refunded(4_900); }, "1: 490 usd of 2450, reversed refund"),
        ("the same when it is heard of before the sale", |w| { w.refunded(2_450).refunded(4_900); }, "1: 490 usd of 2450, reversed refund"),
        ("20 % of what is left is less than half a cent", |w| { w.then().refunded(4_898); }, "1: 980 usd of 4900, reversed refund"),
        ("the refund failed", |w| { w.then().refunded(4_900).then().refunded(0); }, "1: 980 usd of 4900, pending"),
        ("a part of it did", |w| { w.then().refunded(4_900).then().refunded(2_450); }, "1: 490 usd of 2450, pending"),
        ("a refund of a part failed", |w| { w.then().refunded(2_450).then().refunded(0); }, "1: 980 usd of 4900, pending"),
        ("a fixed amount stays", |w| { w.terms.base = CommissionRate::Flat(700); w.then().refunded(4_899); }, "1: 700 usd of 1, pending"),
        ("until all is given back", |w| { w.terms.base = CommissionRate::Flat(700); w.then().refunded(4_899).then().refunded(4_900); }, "1: 700 usd of 1, reversed refund"),
        ("the line's own rate: new ones are for new lines", |w| { w.then().refunded(2_450).terms.base = percent(50); w.commission_override = Some(points(9_000)); }, "1: 490 usd of 2450, pending"),
        // 1000 and 500, half of it: 500 at 20 % and 250 at 50 %
        ("every group is less by it", |w| { w.sold(&[("a", 1_000), ("b", 500)]).terms.products = vec![product("prod_b", percent(50))]; w.then().refunded(750).terms.products.clear(); }, "1: 225 usd of 750, pending"),
        ("under the cap as before: 20 % of 24.50 is under it", |w| { w.terms.max_commission = Some(900); w.then().refunded(2_450); }, "1: 490 usd of 2450, pending"),
        ("by hand stays by hand", |w| { w.then().each(|line, now| line.reverse(ReversalReason::Manual, now).map(drop)).refunded(4_900).then().refunded(0); }, "1: 980 usd of 4900, reversed manual"),
        ("a rejected referral's is not opened again", |w| { w.then().refunded(4_900).then().refunded(0).barred = Some(ReferralBar::Rejected); }, "1: 980 usd of 4900, reversed refund"),
        ("nor that of a partner who is gone", |w| { w.then().refunded(4_900).then().refunded(0).is_orphan = true; }, "1: 980 usd of 4900, reversed refund"),
        ("an earned line", |w| { w.then().earn().refunded(2_450); }, "1: 490 usd of 2450, earned"),
        ("a line in a draft leaves it", |w| { w.then().draft().refunded(2_450); }, "1: 490 usd of 2450, earned"),
        ("all of it too", |w| { w.then().draft().refunded(4_900); }, "1: 980 usd of 4900, reversed refund"),
        ("who reinstates waives the refund", |w| { w.then().refunded(2_450).then().refunded(4_900).then().reinstate(); }, "1: 490 usd of 2450, pending"),
    ]);
}

#[test]
fn disputes() {
    check(&[
        ("an inquiry freezes", |w| { w.then().disputed(DisputeState::Inquiry); }, "1: 980 usd of 4900, pending frozen"),
        ("and lets go", |w| { w.then().disputed(DisputeState::Inquiry).then().disputed(DisputeState::InquiryClosed); }, "1: 980 usd of 4900, pending"),
        ("an earned line too", |w| { w.then().earn().disputed(DisputeState::Inquiry); }, "1: 980 usd of 4900, earned frozen"),
        ("a line in a draft leaves it", |w| { w.then().draft().disputed(DisputeState::Inquiry); }, "1: 980 usd of 4900, earned frozen"),
        ("a dispute takes back", |w| { w.then().disputed(DisputeState::Open); }, "1: 980 usd of 4900, reversed dispute"),
        ("won or not", |w| { w.then().disputed(DisputeState::Open).then().disputed(DisputeState::Won); }, "1: 980 usd of 4900, reversed dispute"),
        ("seen at its end alone", |w| { w.then().disputed(DisputeState::Won); }, "1: 980 usd of 4900, reversed dispute"),
        ("heard of before the sale", |w| { w.disputed(DisputeState::Lost); }, "1: 980 usd of 4900, reversed dispute"),
        ("after an inquiry", |w| { w.then().disputed(DisputeState::Inquiry).then().disputed(DisputeState::Open); }, "1: 980 usd of 4900, reversed dispute"),
        ("goes before a refund", |w| { w.then().refunded(4_900).then().disputed(DisputeState::Open); }, "1: 980 usd of 4900, reversed dispute"),
        ("whichever came first", |w| { w.then().disputed(DisputeState::Open).then().refunded(4_900); }, "1: 980 usd of 4900, reversed dispute"),
        ("no refund that fails opens it", |w| { w.then().refunded(4_900).disputed(DisputeState::Open).then().refunded(0); }, "1: 980 usd of 4900, reversed dispute"),
        ("another dispute takes it back again", |w| { w.then().disputed(DisputeState::Lost).then().reinstate().then().returned.disputes.insert("dp_2".to_owned(), DisputeState::Open); }, "1: 980 usd of 4900, reversed dispute"),
        ("the owner does, and it stays", |w| { w.then().disputed(DisputeState::Open).then().reinstate().disputed(DisputeState::Won); }, "1: 980 usd of 4900, pending"),
        ("a refund takes that back", |w| { w.then().disputed(DisputeState::Won).then().reinstate().refunded(4_900); }, "1: 980 usd of 4900, reversed refund"),
    ]);
}

#[test]
fn out_of_reach() {
    let offset = |w: &mut Scenario| w.after_payout = AfterPayout::Offset;
    check(&[
        ("absorb: approved", |w| { w.then().approve().refunded(4_900); }, "1: 980 usd of 4900, in payout"),
        ("absorb: paid", |w| { w.then().pay().disputed(DisputeState::Lost); }, "1: 980 usd of 4900, paid"),
        ("absorb: no inquiry stops it", |w| { w.then().approve().disputed(DisputeState::Inquiry); }, "1: 980 usd of 4900, in payout"),
        ("offset: all", |w| { w.after_payout = AfterPayout::Offset; w.then().pay().refunded(4_900); }, "1: 980 usd of 4900, paid -980"),
        ("offset: a part", |w| { w.after_payout = AfterPayout::Offset; w.then().pay().refunded(2_450); }, "1: 980 usd of 4900, paid -490"),
        ("offset: more and more", |w| { w.after_payout = AfterPayout::Offset; w.then().pay().refunded(2_450).then().refunded(4_900); }, "1: 980 usd of 4900, paid -980"),
        ("offset: a refund failed", |w| { w.after_payout = AfterPayout::Offset; w.then().pay().refunded(4_900).then().refunded(2_450); }, "1: 980 usd of 4900, paid -490"),
        ("offset: a dispute", |w| { w.after_payout = AfterPayout::Offset; w.then().pay().disputed(DisputeState::Open); }, "1: 980 usd of 4900, paid -980"),
        ("offset: that was won", |w| { w.after_payout = AfterPayout::Offset; w.then().pay().disputed(DisputeState::Open).then().disputed(DisputeState::Won); }, "1: 980 usd of 4900, paid"),
        ("offset: never owed by us", |w| { w.after_payout = AfterPayout::Offset; w.then().refunded(2_450).then().pay().refunded(0); }, "1: 490 usd of 2450, paid"),
        ("offset: the payout failed, and the line takes it", |w| { w.after_payout = AfterPayout::Offset; w.then().approve().refunded(2_450).then().each(|line, now| line.leave_payout(payout(), now)).is_locked = false; }, "1: 490 usd of 2450, earned"),
        ("offset: both lines", |w| { w.after_payout = AfterPayout::Offset; w.recruited(500).then().pay().refunded(4_900); }, "1: 980 usd of 4900, paid -980 | 2: 245 usd of 4900, paid -245"),
        ("offset is nothing to fraud", |w| { w.after_payout = AfterPayout::Offset; w.then().pay().barred = Some(ReferralBar::Rejected); }, "1: 980 usd of 4900, paid"),
        ("offset, and nothing came back", |w| { w.after_payout = AfterPayout::Offset; w.then().pay(); }, "1: 980 usd of 4900, paid"),
    ]);
    let mut world = Scenario::new();
    offset(&mut world);
    world.then().pay().refunded(4_900);
    let adjustments = world.ask().unwrap().adjustments;
    assert!(matches!(adjustments.as_slice(), [only] if only.amount == -980 && only.partner == partner(ADA)));
}

#[test]
fn referrals_and_partners() {
    check(&[
        ("blocked", |w| { w.barred = Some(ReferralBar::Blocked); }, "Barred(Blocked)"),
        ("blocked when it has a line", |w| { w.then().barred = Some(ReferralBar::Blocked); }, "1: 980 usd of 4900, reversed blocked"),
        ("rejected", |w| { w.then().barred = Some(ReferralBar::Rejected); }, "1: 980 usd of 4900, reversed fraud"),
        ("rejected with a draft", |w| { w.then().draft().barred = Some(ReferralBar::Rejected); }, "1: 980 usd of 4900, reversed fraud"),
        ("allowed again: its lines stay reversed", |w| { w.then().barred = Some(ReferralBar::Rejected); w.then().barred = None; }, "1: 980 usd of 4900, reversed fraud"),
        ("lapsed", |w| { w.then().barred = Some(ReferralBar::Lapsed); }, "1: 980 usd of 4900, reversed expired"),
        ("under review", |w| { w.is_under_review = true; }, "1: 980 usd of 4900, pending frozen"),
        ("and allowed", |w| { w.is_under_review = true; w.then().is_under_review = false; }, "1: 980 usd of 4900, pending"),
        ("a suspended partner's customers earn", |w| { w.standing = AccrualStatus::Suspended; }, "1: 980 usd of 4900, pending"),
        ("or not", |w| { w.standing = AccrualStatus::Suspended; w.suspended_accrue = false; }, "Partner(Suspended)"),
        ("nor later when it is back", |w| { w.standing = AccrualStatus::Suspended; w.suspended_accrue = false; w.then().standing = AccrualStatus::Active; }, "Partner(Suspended)"),
        ("new terms are for new sales", |w| { w.terms.products = vec![product("prod_a", None)]; w.then().terms.products.clear(); w.refunded(100); }, "ComesToNothing"),
        ("longer ones, too", |w| { w.terms.duration = CommissionDuration::Once; w.first_earning = Some("in_0".to_owned()); w.then().terms.duration = CommissionDuration::Recurring(None); }, "OnlyOnce"),
        ("what the owner allows again earns", |w| { w.barred = Some(ReferralBar::Rejected); w.then().barred = None; }, "1: 980 usd of 4900, pending"),
        ("what is paid later is a sale then", |w| { let paid = std::mem::take(&mut w.sale.amount_paid); w.then().sale.amount_paid = paid; }, "1: 980 usd of 4900, pending"),
        ("no partner", |w| { w.standing = AccrualStatus::Outside; }, "Partner(Outside)"),
        ("what is written stays", |w| { w.then().standing = AccrualStatus::Outside; }, "1: 980 usd of 4900, pending"),
        ("deleted", |w| { w.then().is_orphan = true; }, "1: 980 usd of 4900, reversed partner_deleted"),
        ("excluded afterwards", |w| { w.then().is_excluded = true; }, "1: 980 usd of 4900, pending"),
        ("no hold", |w| { w.terms.hold_days = 0; }, "1: 980 usd of 4900, earned"),
        ("no hold, under review", |w| { w.terms.hold_days = 0; w.is_under_review = true; }, "1: 980 usd of 4900, pending frozen"),
        ("no hold, given back already", |w| { w.terms.hold_days = 0; w.refunded(4_900); }, "1: 980 usd of 4900, reversed refund"),
    ]);
}

#[test]
fn nonsense_is_an_error() {
    check(&[
        ("a negative refund", |w| { w.returned.refunded = -1; }, "what was refunded is negative"),
        ("a negative fixed amount", |w| { w.terms.base = CommissionRate::Flat(-1); }, "a flat commission is negative"),
        ("a negative cap", |w| { w.terms.max_commission = Some(-1); }, "the most that a sale earns is negative"),
        ("more tax than can be", |w| { w.sale.tax = i64::MIN; w.sale.total = i64::MAX; w.sale.amount_paid = i64::MAX; }, "an amount is larger than can be counted"),
        ("fixed amounts beyond counting", |w| { w.sold(&[("a", 1), ("b", 1)]).terms.base = CommissionRate::Flat(i64::MAX); w.terms.products = vec![product("prod_b", CommissionRate::Flat(1))]; }, "an amount is larger than can be counted"),
        ("a hold beyond the calendar", |w| { w.sale.paid_at = jiff::Timestamp::MAX; }, "a time is beyond the calendar"),
    ]);
    let mut largest = Scenario::new();
    largest.paid(i64::MAX, "usd").terms.base = percent(100);
    assert_eq!(largest.then().ledger(), "1: 9223372036854775807 usd of 9223372036854775807, pending");
}

#[test]
fn steps_say_what_happened() {
    let mut world = Scenario::new();
    assert_eq!(world.run(), [LineChange::Created]);
    world.charge = Some("ch_1".to_owned());
    assert_eq!(world.run(), [LineChange::Charge]);
    let [half, rest] = [LineChange::Amount { from: 980, to: 490 }, LineChange::Amount { from: 490, to: 980 }];
    assert_eq!(world.draft().refunded(2_450).run(), [LineChange::LeftPayout(payout()), half]);
    assert_eq!(world.refunded(4_900).run(), [LineChange::Reversed(ReversalReason::Refund)]);
    assert_eq!(world.refunded(0).run(), [rest, LineChange::Reopened]);
    assert_eq!(world.lines[0].earns_at, at("2026-04-15T00:00:00Z"), "not before it was opened again");
    assert_eq!(world.disputed(DisputeState::Inquiry).run(), [LineChange::Frozen]);
    assert_eq!(world.disputed(DisputeState::InquiryClosed).run(), [LineChange::Thawed]);
    assert_eq!(world.refunded(4_900).run(), [LineChange::Reversed(ReversalReason::Refund)]);
    assert_eq!(world.disputed(DisputeState::Open).run(), [LineChange::ReasonChanged(ReversalReason::Dispute)]);

    let mut early = Scenario::new();
    early.terms.hold_days = 0;
    assert_eq!(early.run(), [LineChange::Created, LineChange::Earned]);
    let mut late = Scenario::new();
    assert_eq!(late.refunded(4_900).run(), [LineChange::Created, LineChange::Reversed(ReversalReason::Refund)]);
}

#[test]
fn a_line_says_why() {
    let why = |change: fn(&mut Scenario)| {
        let mut world = Scenario::new();
        change(&mut world);
        world.then();
        world.lines.iter().map(|line| line.formula()).collect::<Vec<_>>().join(" | ")
    };
    assert_eq!(why(|_| {}), "20 % of 49.00 usd = 9.80 usd (the campaign's rate)");
    assert_eq!(
        why(|w| { w.terms.tiers = vec![tier(21, percent(20))]; w.paying_customers = 30; }),
        "20 % of 49.00 usd = 9.80 usd (tier from 21 customers)"
    );
    assert_eq!(
        why(|w| { w.recruited(550).commission_override = Some(points(3_000)); w.then().refunded(2_450); }),
        "30 % of 24.50 usd = 7.35 usd (the partner's own rate); of 49.00 usd the rest was given back | \
         5.5 % of 24.50 usd = 1.35 usd (the recruiter's share); of 49.00 usd the rest was given back"
    );
    assert_eq!(
        why(|w| {
            w.sold(&[("a", 1_000), ("b", 500), ("c", 900)]).terms.max_commission = Some(200);
            w.terms.products = vec![product("price_b", CommissionRate::Flat(70)), product("prod_c", None)];
        }),
        "20 % of 10.00 usd (the campaign's rate) + 0.70 usd for a sale of 5.00 usd (rate of price price_b) + \
         nothing of 9.00 usd (rate of product prod_c) = 2.00 usd; a sale earns at most 2.00 usd"
    );
    assert_eq!(
        why(|w| { w.paid(4_900, "jpy").terms.max_commission = Some(200); }),
        "20 % of 4900 jpy = 980 jpy (the campaign's rate); the cap of 2.00 usd does not hold in jpy"
    );
}

#[test]
fn what_a_sale_is_worth_to_its_referral() {
    let worth = |change: fn(&mut Scenario)| {
        let mut world = Scenario::new();
        change(&mut world);
        world.ask().unwrap().worth.map(|worth| (worth.base, worth.remaining, worth.is_gone))
    };
    assert_eq!(worth(|_| {}), Some((4_900, 4_900, false)));
    assert_eq!(worth(|w| w.is_excluded = true), Some((4_900, 4_900, false)), "it converts all the same");
    assert_eq!(worth(|w| w.barred = Some(ReferralBar::Blocked)), Some((4_900, 4_900, false)));
    assert_eq!(worth(|w| { w.refunded(900); }), Some((4_900, 4_000, false)));
    assert_eq!(worth(|w| { w.refunded(4_900); }), Some((4_900, 0, true)));
    assert_eq!(worth(|w| { w.disputed(DisputeState::Open); }), Some((4_900, 4_900, true)));
    assert_eq!(worth(|w| { w.disputed(DisputeState::Won); }), Some((4_900, 4_900, false)));
    assert_eq!(worth(|w| w.sale.amount_paid = 0), None);
    assert_eq!(worth(|w| w.recruiter = None::<RecruiterInput>), Some((4_900, 4_900, false)));
}
