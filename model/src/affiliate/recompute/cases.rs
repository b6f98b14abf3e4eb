//! Table tests of the commission arithmetic: one case per line, with numbers computed by hand.

use super::super::campaign::{CommissionDuration, CommissionRate};
use super::super::commission::ReversalReason;
use super::super::program::AfterPayout;
use super::super::sale::{DisputeState, SaleLine};
use super::scenario::{ADA, Scenario, at, partner, payout, percent, points, product, sold, tier};
use super::{ReferralBar, RecruiterInput, AccrualStatus, LineChange};

/// Name of the case, its change to the default scenario, and the expected ledger.
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
fn the_base_is_the_amount_paid_less_tax() {
    check(&[
        ("plain", |_| {}, "1: 980 usd of 4900, pending"),
        ("tax on top: 58.31 with 19 %", |w| { w.paid(5_831, "usd").sale.tax = 931; }, "1: 980 usd of 4900, pending"),
        ("tax from total_excluding_tax", |w| { w.paid(5_831, "usd").sale.total_excluding_tax = Some(4_900); }, "1: 980 usd of 4900, pending"),
        ("total_excluding_tax takes precedence over tax", |w| { let s = &mut w.paid(5_831, "usd").sale; s.total_excluding_tax = Some(4_900); s.tax = 1; }, "1: 980 usd of 4900, pending"),
        // 4900 × 3831 / 5831 = 3219.34
        ("20.00 paid by credit", |w| { let s = &mut w.paid(5_831, "usd").sale; s.tax = 931; s.amount_paid = 3_831; }, "1: 644 usd of 3219, pending"),
        // 99 × 50 / 100 = 49.5
        ("a half is rounded up", |w| { let s = &mut w.paid(100, "usd").sale; s.tax = 1; s.amount_paid = 50; }, "1: 10 usd of 50, pending"),
        ("all by credit", |w| { w.sale.amount_paid = 0; }, "NoSale"),
        ("a free invoice", |w| { w.paid(0, "usd"); }, "NoSale"),
        ("a credit note", |w| { w.paid(-500, "usd"); }, "NoSale"),
        ("nothing but tax", |w| { w.sale.tax = 4_900; }, "NoSale"),
        ("paid before the referral counts", |w| { w.counts_from = at("2026-03-01T00:00:01Z"); }, "NoSale"),
        ("paid at the exact start", |w| { w.counts_from = at("2026-03-01T00:00:00Z"); }, "1: 980 usd of 4900, pending"),
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
        // group b: −300 → 0; all of B = 700 belongs to group a
        ("a group below zero", |w| { w.sold(&[("a", 1_000), ("b", -300)]).terms.products = vec![product("prod_b", percent(50))]; }, "1: 140 usd of 700, pending"),
        // 100 by 1:1:1 is 34, 33, 33, and the first line is b's: 34 + 0 + 6.6
        ("the remainder cent is assigned to the first line", |w| { w.sold(&[("b", 50), ("c", 50), ("a", 50)]).sale.total = 100; w.sale.amount_paid = 100; w.terms.products = vec![product("prod_c", None), product("prod_b", percent(100))]; }, "1: 41 usd of 100, pending"),
        ("no lines known", |w| { w.sale.lines.clear(); w.terms.products = vec![product("prod_a", percent(50))]; }, "1: 980 usd of 4900, pending"),
        ("lines with a net of zero", |w| { w.sale.lines = vec![SaleLine { discount: 4_900, ..sold("a", 4_900) }]; w.terms.products = vec![product("prod_a", percent(50))]; }, "1: 980 usd of 4900, pending"),
    ]);
}

#[test]
fn rates_have_a_precedence() {
    let all = |w: &mut Scenario| {
        w.commission_override = Some(points(500));
        w.terms.products = vec![product("prod_a", percent(10)), product("price_a", percent(40))];
        w.terms.tiers = vec![tier(1, percent(25)), tier(21, percent(30))];
        w.paying_customers = 21;
    };
    check(&[
        ("the exclusion flag takes precedence", |w| { w.is_excluded = true; w.commission_override = Some(points(500)); }, "Excluded"),
        ("the partner's own rate before products and tiers: 5 %", all, "1: 245 usd of 4900, pending"),
        ("even before a product that earns nothing", |w| { w.commission_override = Some(points(500)); w.terms.products = vec![product("prod_a", None)]; }, "1: 245 usd of 4900, pending"),
        ("the price before the product: 40 %", |w| { w.terms.products = vec![product("prod_a", percent(10)), product("price_a", percent(40))]; }, "1: 1960 usd of 4900, pending"),
        ("the product before a tier: 10 %", |w| { w.terms.products = vec![product("prod_a", percent(10))]; w.terms.tiers = vec![tier(1, percent(25))]; }, "1: 490 usd of 4900, pending"),
        ("a rate of another price does not apply", |w| { w.terms.products = vec![product("price_b", percent(10))]; }, "1: 980 usd of 4900, pending"),
        ("a product that earns nothing", |w| { w.terms.products = vec![product("prod_a", None)]; }, "ComesToNothing"),
        ("an excluded product beside one that earns", |w| { w.sold(&[("a", 1_000), ("b", 500)]).terms.products = vec![product("prod_b", None)]; }, "1: 200 usd of 1500, pending"),
        ("a tier that is not reached", |w| { w.terms.tiers = vec![tier(21, percent(30))]; w.paying_customers = 20; }, "1: 980 usd of 4900, pending"),
        ("the 21st customer counts: 30 %", |w| { w.terms.tiers = vec![tier(21, percent(30))]; w.paying_customers = 21; }, "1: 1470 usd of 4900, pending"),
        ("the highest tier that is reached", |w| { w.terms.tiers = vec![tier(1, percent(25)), tier(21, percent(30)), tier(51, percent(40))]; w.paying_customers = 50; }, "1: 1470 usd of 4900, pending"),
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
        ("a fixed amount once per product rate", |w| { w.sold(&[("a", 1_000), ("b", 500), ("b", 500), ("c", 1)]).terms.base = CommissionRate::Flat(300); w.terms.products = vec![product("prod_b", CommissionRate::Flat(70)), product("prod_c", CommissionRate::Flat(5))]; }, "1: 375 usd of 2001, pending"),
        ("no fixed amount for a credited product", |w| { w.sold(&[("a", 1_000), ("b", -500)]).terms.products = vec![product("prod_b", CommissionRate::Flat(70))]; }, "1: 100 usd of 500, pending"),
        ("a share and a fixed amount", |w| { w.sold(&[("a", 1_000), ("b", 500)]).terms.products = vec![product("prod_b", CommissionRate::Flat(70))]; }, "1: 270 usd of 1500, pending"),
        ("a fixed amount may be more than the sale", |w| { w.paid(100, "usd").terms.base = CommissionRate::Flat(300); }, "1: 300 usd of 100, pending"),
        ("0 % writes no line", |w| { w.terms.base = percent(0); }, "ComesToNothing"),
        ("less than half a cent writes no line", |w| { w.paid(2, "usd"); }, "ComesToNothing"),
        ("100 %", |w| { w.terms.base = percent(100); }, "1: 4900 usd of 4900, pending"),
    ]);
}

#[test]
fn amounts_are_capped_and_rounded_to_steps() {
    check(&[
        ("a cap", |w| { w.terms.max_commission = Some(900); }, "1: 900 usd of 4900, pending"),
        ("a cap that is not reached", |w| { w.terms.max_commission = Some(980); }, "1: 980 usd of 4900, pending"),
        ("a cap of zero", |w| { w.terms.max_commission = Some(0); }, "ComesToNothing"),
        ("the cap applies to each of the two", |w| { w.recruited(2_000).terms.max_commission = Some(900); }, "1: 900 usd of 4900, pending | 2: 900 usd of 4900, pending"),
        ("yen have no decimals: 20 % of 333 is 66.6", |w| { w.paid(333, "jpy"); }, "1: 67 jpy of 333, pending"),
        // 20 % of 3.872 is 0.7744, to the nearest 0.010
        ("dinars are paid in steps of ten", |w| { w.paid(3_872, "kwd"); }, "1: 770 kwd of 3872, pending"),
        ("halves are rounded up there too", |w| { w.paid(3_875, "kwd"); }, "1: 780 kwd of 3875, pending"),
        ("krónur are paid in steps of 100: 20 % of 12.50", |w| { w.paid(1_250, "isk"); }, "1: 300 isk of 1250, pending"),
        ("less than half a króna rounds to zero", |w| { w.paid(245, "isk"); }, "ComesToNothing"),
        ("the cap limits the rounded amount too", |w| { w.paid(3_875, "kwd"); w.currency = w.sale.currency; w.terms.max_commission = Some(776); }, "1: 770 kwd of 3875, pending"),
    ]);
}

#[test]
fn currencies_are_not_converted() {
    check(&[
        ("a percent share is in the invoice's currency", |w| { w.paid(4_900, "eur"); }, "1: 980 eur of 4900, pending"),
        ("a fixed amount is in the program's currency", |w| { w.paid(4_900, "eur").terms.base = CommissionRate::Flat(700); }, "1: 700 usd of 4900, pending"),
        ("a cap in another currency does not apply", |w| { w.paid(4_900, "eur").terms.max_commission = Some(900); }, "1: 980 eur of 4900, pending"),
        ("but applies to the fixed amount", |w| { w.paid(4_900, "eur").terms.base = CommissionRate::Flat(700); w.terms.max_commission = Some(600); }, "1: 600 usd of 4900, pending"),
        ("a line has one currency: a fixed amount beside shares is a line of its own", |w| { w.paid(0, "eur").sold(&[("a", 1_000), ("b", 500)]).terms.products = vec![product("prod_b", CommissionRate::Flat(70))]; }, "1: 200 eur of 1000, pending | 1: 70 usd of 500, pending"),
        ("a partial refund does not change the fixed amount", |w| { w.paid(0, "eur").sold(&[("a", 1_000), ("b", 500)]).terms.products = vec![product("prod_b", CommissionRate::Flat(70))]; w.then().returned.refunded = 750; }, "1: 100 eur of 500, pending | 1: 70 usd of 250, pending"),
        ("a full refund reverses the fixed amount", |w| { w.paid(0, "eur").sold(&[("a", 1_000), ("b", 500)]).terms.products = vec![product("prod_b", CommissionRate::Flat(70))]; w.then().returned.refunded = 1_500; }, "1: 200 eur of 1000, reversed refund | 1: 70 usd of 500, reversed refund"),
        ("the recruiter's share is computed from the whole sale", |w| { w.paid(0, "eur").sold(&[("a", 1_000), ("b", 500)]).recruited(1_000).terms.products = vec![product("prod_b", CommissionRate::Flat(70))]; }, "1: 200 eur of 1000, pending | 2: 150 eur of 1500, pending | 1: 70 usd of 500, pending"),
        ("one line in the fixed amount's currency if there is no share", |w| { w.paid(0, "eur").sold(&[("a", 1_000), ("b", 500)]).terms.products = vec![product("prod_b", CommissionRate::Flat(70)), product("prod_a", None)]; }, "1: 70 usd of 1500, pending"),
        // 4 % of 10.00 is 0.40 krónur, which rounds to zero; 10 % of 20.00 is 2.00
        ("a share that rounds to zero leaves the fixed amount and the recruiter's share", |w| { w.paid(0, "isk").sold(&[("a", 1_000), ("b", 1_000)]).recruited(1_000).terms.products = vec![product("prod_b", CommissionRate::Flat(500))]; w.terms.base = percent(4); }, "1: 500 usd of 1000, pending | 2: 200 isk of 2000, pending"),
        ("a share of less than half a step of a dinar", |w| { w.paid(0, "kwd").sold(&[("a", 100), ("b", 5_000)]).terms.products = vec![product("prod_b", CommissionRate::Flat(500))]; w.terms.base = percent(4); }, "1: 500 usd of 5000, pending"),
        ("the recruiter's line is a percent share", |w| { w.paid(4_900, "eur").recruited(1_000).terms.base = CommissionRate::Flat(700); }, "1: 700 usd of 4900, pending | 2: 490 eur of 4900, pending"),
    ]);
}

#[test]
fn recruiters_share_the_same_sale() {
    check(&[
        ("5 % of the sale, not of the commission", |w| { w.recruited(500); }, "1: 980 usd of 4900, pending | 2: 245 usd of 4900, pending"),
        ("halves up: 5 % of 0.50", |w| { w.paid(50, "usd").recruited(500); }, "1: 10 usd of 50, pending | 2: 3 usd of 50, pending"),
        ("of the commissionable part only", |w| { w.sold(&[("a", 1_000), ("b", 500)]).recruited(500).terms.products = vec![product("prod_b", None)]; }, "1: 200 usd of 1500, pending | 2: 50 usd of 1500, pending"),
        ("of the lines of all rates", |w| { w.sold(&[("a", 1_000), ("b", 500), ("c", 9)]).recruited(500).terms.products = vec![product("prod_b", percent(50)), product("prod_c", CommissionRate::Flat(1))]; }, "1: 451 usd of 1509, pending | 2: 75 usd of 1509, pending"),
        ("no share without a line of the seller", |w| { w.recruited(500).terms.base = percent(0); }, "ComesToNothing"),
        ("no share for an inactive recruiter", |w| { w.recruited(500).recruiter.as_mut().unwrap().is_active = false; }, "1: 980 usd of 4900, pending"),
        ("no share if the recruiter is the customer", |w| { w.recruited(500).recruiter.as_mut().unwrap().is_customer = true; }, "1: 980 usd of 4900, pending"),
        ("no share if the recruiter is the seller", |w| { w.recruited(500).recruiter.as_mut().unwrap().partner = partner(ADA); }, "1: 980 usd of 4900, pending"),
        ("no share at 0 %", |w| { w.recruited(0); }, "1: 980 usd of 4900, pending"),
        ("no share if recruited after the first write", |w| { w.then().recruited(500); }, "1: 980 usd of 4900, pending"),
        ("a full refund reverses both", |w| { w.recruited(500).then().refunded(4_900); }, "1: 980 usd of 4900, reversed refund | 2: 245 usd of 4900, reversed refund"),
        ("a refund of half halves both", |w| { w.recruited(500).then().refunded(2_450); }, "1: 490 usd of 2450, pending | 2: 123 usd of 2450, pending"),
        ("a dispute reverses both", |w| { w.recruited(500).then().disputed(DisputeState::Open); }, "1: 980 usd of 4900, reversed dispute | 2: 245 usd of 4900, reversed dispute"),
        ("a reversal for fraud reverses both", |w| { w.recruited(500).then().lines[0].reverse(ReversalReason::Fraud, at("2026-03-02T00:00:00Z")).unwrap(); }, "1: 980 usd of 4900, reversed fraud | 2: 245 usd of 4900, reversed fraud"),
        ("a manual reversal reverses one", |w| { w.recruited(500).then().lines[0].reverse(ReversalReason::Manual, at("2026-03-02T00:00:00Z")).unwrap(); }, "1: 980 usd of 4900, reversed manual | 2: 245 usd of 4900, pending"),
        // 1 % of 0.50 rounds to 0.01, and of 0.49 to zero; 50 % of 0.49 would be 0.25
        ("a seller's line that rounds to zero reverses the recruiter's", |w| { w.paid(50, "usd").recruited(5_000).terms.base = percent(1); w.then().refunded(1); }, "1: 1 usd of 50, reversed refund | 2: 25 usd of 49, reversed refund"),
    ]);
}

#[test]
fn commissions_end_with_their_duration() {
    check(&[
        ("once: the first", |w| { w.terms.duration = CommissionDuration::Once; }, "1: 980 usd of 4900, pending"),
        ("once: no other invoice", |w| { w.terms.duration = CommissionDuration::Once; w.first_earning = Some("in_0".to_owned()); }, "OnlyOnce"),
        ("once: a later recomputation of the first", |w| { w.terms.duration = CommissionDuration::Once; w.then().first_earning = Some("in_1".to_owned()); w.refunded(4_900); }, "1: 980 usd of 4900, reversed refund"),
        ("recurring: others before it do not matter", |w| { w.first_earning = Some("in_0".to_owned()); }, "1: 980 usd of 4900, pending"),
        ("the twelfth month", |w| { w.terms.duration = CommissionDuration::Recurring(Some(12)); w.converted_at = Some(at("2025-04-01T00:00:00Z")); }, "1: 980 usd of 4900, pending"),
        ("twelve hours before the thirteenth", |w| { w.terms.duration = CommissionDuration::Recurring(Some(12)); w.converted_at = Some(at("2025-03-01T12:00:00Z")); }, "TooLate"),
        ("a second before the end of the twelfth month", |w| { w.terms.duration = CommissionDuration::Recurring(Some(12)); w.converted_at = Some(at("2025-03-01T12:00:01Z")); }, "1: 980 usd of 4900, pending"),
        ("the first itself", |w| { w.terms.duration = CommissionDuration::Recurring(Some(1)); }, "1: 980 usd of 4900, pending"),
        ("a written line is not affected by the duration", |w| { w.then().terms.duration = CommissionDuration::Recurring(Some(1)); w.converted_at = Some(at("2020-01-01T00:00:00Z")); }, "1: 980 usd of 4900, pending"),
    ]);
}

#[test]
fn refunds_of_changeable_lines() {
    check(&[
        // B' = 4900 × (5831 − 1000) / 5831 = 4059.66; 20 % of 4060
        ("a partial refund, with tax in the amount paid", |w| { let s = &mut w.paid(5_831, "usd").sale; s.tax = 931; w.then().refunded(1_000); }, "1: 812 usd of 4060, pending"),
        ("a full refund", |w| { w.then().refunded(4_900); }, "1: 980 usd of 4900, reversed refund"),
        ("a refund of more than was paid", |w| { w.then().refunded(9_999); }, "1: 980 usd of 4900, reversed refund"),
        ("a partial, then a full refund: the last amount is retained", |w| { w.then().refunded(2_450).then().refunded(4_900); }, "1: 490 usd of 2450, reversed refund"),
        ("refunded in full before the sale is known", |w| { w.refunded(2_450).refunded(4_900); }, "1: 490 usd of 2450, reversed refund"),
        ("20 % of the remaining base is less than half a cent", |w| { w.then().refunded(4_898); }, "1: 980 usd of 4900, reversed refund"),
        ("the refund failed", |w| { w.then().refunded(4_900).then().refunded(0); }, "1: 980 usd of 4900, pending"),
        ("a part of the refund failed", |w| { w.then().refunded(4_900).then().refunded(2_450); }, "1: 490 usd of 2450, pending"),
        ("a partial refund failed", |w| { w.then().refunded(2_450).then().refunded(0); }, "1: 980 usd of 4900, pending"),
        ("a partial refund does not change a fixed amount", |w| { w.terms.base = CommissionRate::Flat(700); w.then().refunded(4_899); }, "1: 700 usd of 1, pending"),
        ("a full refund reverses a fixed amount", |w| { w.terms.base = CommissionRate::Flat(700); w.then().refunded(4_899).then().refunded(4_900); }, "1: 700 usd of 1, reversed refund"),
        ("a refund uses the line's stored rate", |w| { w.then().refunded(2_450).terms.base = percent(50); w.commission_override = Some(points(9_000)); }, "1: 490 usd of 2450, pending"),
        // 1000 and 500, half of it: 500 at 20 % and 250 at 50 %
        ("a refund reduces every rate group", |w| { w.sold(&[("a", 1_000), ("b", 500)]).terms.products = vec![product("prod_b", percent(50))]; w.then().refunded(750).terms.products.clear(); }, "1: 225 usd of 750, pending"),
        ("the stored cap applies to the remaining base", |w| { w.terms.max_commission = Some(900); w.then().refunded(2_450); }, "1: 490 usd of 2450, pending"),
        ("a manual reversal keeps its reason", |w| { w.then().each(|line, now| line.reverse(ReversalReason::Manual, now).map(drop)).refunded(4_900).then().refunded(0); }, "1: 980 usd of 4900, reversed manual"),
        ("a rejected referral's line is not reopened", |w| { w.then().refunded(4_900).then().refunded(0).bar = Some(ReferralBar::Rejected); }, "1: 980 usd of 4900, reversed refund"),
        ("a deleted partner's line is not reopened", |w| { w.then().refunded(4_900).then().refunded(0).is_orphan = true; }, "1: 980 usd of 4900, reversed refund"),
        ("an earned line", |w| { w.then().earn().refunded(2_450); }, "1: 490 usd of 2450, earned"),
        ("a line leaves a draft payout", |w| { w.then().draft().refunded(2_450); }, "1: 490 usd of 2450, earned"),
        ("a full refund of a line in a draft payout", |w| { w.then().draft().refunded(4_900); }, "1: 980 usd of 4900, reversed refund"),
        ("reinstating waives the refund", |w| { w.then().refunded(2_450).then().refunded(4_900).then().reinstate(); }, "1: 490 usd of 2450, pending"),
    ]);
}

#[test]
fn disputes_change_lines() {
    check(&[
        ("an inquiry freezes the line", |w| { w.then().disputed(DisputeState::Inquiry); }, "1: 980 usd of 4900, pending frozen"),
        ("a closed inquiry thaws the line", |w| { w.then().disputed(DisputeState::Inquiry).then().disputed(DisputeState::InquiryClosed); }, "1: 980 usd of 4900, pending"),
        ("an inquiry freezes an earned line", |w| { w.then().earn().disputed(DisputeState::Inquiry); }, "1: 980 usd of 4900, earned frozen"),
        ("an inquiry removes the line from a draft payout", |w| { w.then().draft().disputed(DisputeState::Inquiry); }, "1: 980 usd of 4900, earned frozen"),
        ("a dispute reverses the line", |w| { w.then().disputed(DisputeState::Open); }, "1: 980 usd of 4900, reversed dispute"),
        ("a won dispute still reverses the line", |w| { w.then().disputed(DisputeState::Open).then().disputed(DisputeState::Won); }, "1: 980 usd of 4900, reversed dispute"),
        ("only the end of the dispute is known", |w| { w.then().disputed(DisputeState::Won); }, "1: 980 usd of 4900, reversed dispute"),
        ("a dispute known before the sale", |w| { w.disputed(DisputeState::Lost); }, "1: 980 usd of 4900, reversed dispute"),
        ("a dispute after an inquiry", |w| { w.then().disputed(DisputeState::Inquiry).then().disputed(DisputeState::Open); }, "1: 980 usd of 4900, reversed dispute"),
        ("a dispute replaces the reason refund", |w| { w.then().refunded(4_900).then().disputed(DisputeState::Open); }, "1: 980 usd of 4900, reversed dispute"),
        ("a refund does not replace the reason dispute", |w| { w.then().disputed(DisputeState::Open).then().refunded(4_900); }, "1: 980 usd of 4900, reversed dispute"),
        ("a failed refund does not reopen a disputed line", |w| { w.then().refunded(4_900).disputed(DisputeState::Open).then().refunded(0); }, "1: 980 usd of 4900, reversed dispute"),
        ("another dispute reverses a reinstated line again", |w| { w.then().disputed(DisputeState::Lost).then().reinstate().then().returned.disputes.insert("dp_2".to_owned(), DisputeState::Open); }, "1: 980 usd of 4900, reversed dispute"),
        ("a reinstated line ignores the waived dispute", |w| { w.then().disputed(DisputeState::Open).then().reinstate().disputed(DisputeState::Won); }, "1: 980 usd of 4900, pending"),
        ("a refund reverses a line whose dispute was waived", |w| { w.then().disputed(DisputeState::Won).then().reinstate().refunded(4_900); }, "1: 980 usd of 4900, reversed refund"),
    ]);
}

#[test]
fn refunds_after_the_payout() {
    let offset = |w: &mut Scenario| w.after_payout = AfterPayout::Offset;
    check(&[
        ("absorb: in an approved payout", |w| { w.then().approve().refunded(4_900); }, "1: 980 usd of 4900, in payout"),
        ("absorb: paid", |w| { w.then().pay().disputed(DisputeState::Lost); }, "1: 980 usd of 4900, paid"),
        ("absorb: an inquiry has no effect", |w| { w.then().approve().disputed(DisputeState::Inquiry); }, "1: 980 usd of 4900, in payout"),
        ("offset: a full refund", |w| { w.after_payout = AfterPayout::Offset; w.then().pay().refunded(4_900); }, "1: 980 usd of 4900, paid -980"),
        ("offset: a partial refund", |w| { w.after_payout = AfterPayout::Offset; w.then().pay().refunded(2_450); }, "1: 980 usd of 4900, paid -490"),
        ("offset: a partial, then a full refund", |w| { w.after_payout = AfterPayout::Offset; w.then().pay().refunded(2_450).then().refunded(4_900); }, "1: 980 usd of 4900, paid -980"),
        ("offset: a part of the refund failed", |w| { w.after_payout = AfterPayout::Offset; w.then().pay().refunded(4_900).then().refunded(2_450); }, "1: 980 usd of 4900, paid -490"),
        ("offset: a dispute", |w| { w.after_payout = AfterPayout::Offset; w.then().pay().disputed(DisputeState::Open); }, "1: 980 usd of 4900, paid -980"),
        ("offset: a won dispute", |w| { w.after_payout = AfterPayout::Offset; w.then().pay().disputed(DisputeState::Open).then().disputed(DisputeState::Won); }, "1: 980 usd of 4900, paid"),
        ("offset: after a failed payout the line itself changes", |w| { w.after_payout = AfterPayout::Offset; w.then().approve().refunded(2_450).then().each(|line, now| line.leave_payout(payout(), now)).is_locked = false; }, "1: 490 usd of 2450, earned"),
        ("offset: both lines", |w| { w.after_payout = AfterPayout::Offset; w.recruited(500).then().pay().refunded(4_900); }, "1: 980 usd of 4900, paid -980 | 2: 245 usd of 4900, paid -245"),
        ("offset: a rejected referral causes no adjustment", |w| { w.after_payout = AfterPayout::Offset; w.then().pay().bar = Some(ReferralBar::Rejected); }, "1: 980 usd of 4900, paid"),
        ("absorb after offset: a deduction stays, and a further refund is absorbed", |w| { w.after_payout = AfterPayout::Offset; w.then().pay().refunded(2_450).then().refunded(4_900).after_payout = AfterPayout::Absorb; }, "1: 980 usd of 4900, paid -490"),
        ("absorb after offset: a failed refund undoes its deduction", |w| { w.after_payout = AfterPayout::Offset; w.then().pay().refunded(4_900).then().refunded(0).after_payout = AfterPayout::Absorb; }, "1: 980 usd of 4900, paid"),
        ("absorb after offset: a part of the refund failed", |w| { w.after_payout = AfterPayout::Offset; w.then().pay().refunded(4_900).then().refunded(2_450).after_payout = AfterPayout::Absorb; }, "1: 980 usd of 4900, paid -490"),
        ("offset after absorb: an absorbed refund stays absorbed", |w| { w.then().pay().refunded(4_900).then().after_payout = AfterPayout::Offset; }, "1: 980 usd of 4900, paid"),
        ("offset after absorb: a further refund is deducted", |w| { w.then().pay().refunded(2_450).then().refunded(4_900).after_payout = AfterPayout::Offset; }, "1: 980 usd of 4900, paid -490"),
        ("offset after absorb: the further refund failed", |w| { w.then().pay().refunded(2_450).then().refunded(4_900).after_payout = AfterPayout::Offset; w.then().refunded(2_450); }, "1: 980 usd of 4900, paid"),
        ("offset after absorb: a refund that failed before", |w| { w.then().pay().refunded(4_900).then().refunded(0).then().refunded(4_900).after_payout = AfterPayout::Offset; }, "1: 980 usd of 4900, paid -980"),
        ("offset after absorb: after a failed payout the line itself changes", |w| { w.then().approve().refunded(2_450).then().after_payout = AfterPayout::Offset; w.then().each(|line, now| line.leave_payout(payout(), now)).is_locked = false; w.then().each(|line, now| line.enter_payout(payout(), now)).each(|line, now| line.pay(payout(), now)).refunded(4_900); }, "1: 490 usd of 2450, paid -490"),
        ("absorb after offset: a refund that replaces a failed one is deducted", |w| { w.after_payout = AfterPayout::Offset; w.then().pay().refunded(4_900).then().refunded(0).after_payout = AfterPayout::Absorb; w.then().refunded(4_900); }, "1: 980 usd of 4900, paid -980"),
        ("offset: no refund", |w| { w.after_payout = AfterPayout::Offset; w.then().pay(); }, "1: 980 usd of 4900, paid"),
    ]);
    let mut world = Scenario::new();
    offset(&mut world);
    world.then().pay().refunded(4_900);
    let adjustments = world.ask().unwrap().adjustments;
    assert!(matches!(adjustments.as_slice(), [only] if only.amount == -980 && only.partner == partner(ADA)));
}

#[test]
fn refunds_from_before_the_payout_fail() {
    check(&[
        ("offset", |w| { w.after_payout = AfterPayout::Offset; w.then().refunded(2_450).then().pay().refunded(0); }, "1: 490 usd of 2450, paid +490"),
        ("absorb", |w| { w.then().refunded(2_450).then().pay().refunded(0); }, "1: 490 usd of 2450, paid +490"),
        // 3675 × 20 % = 735
        ("in part", |w| { w.then().refunded(2_450).then().pay().refunded(1_225); }, "1: 490 usd of 2450, paid +245"),
        ("in an approved payout", |w| { w.then().refunded(2_450).then().approve().refunded(0); }, "1: 490 usd of 2450, in payout +490"),
        ("the payout failed then: the line itself changes", |w| { w.then().refunded(2_450).then().approve().refunded(0).then().each(|line, now| line.leave_payout(payout(), now)).is_locked = false; }, "1: 980 usd of 4900, earned"),
        ("both lines", |w| { w.recruited(500).then().refunded(2_450).then().pay().refunded(0); }, "1: 490 usd of 2450, paid +490 | 2: 123 usd of 2450, paid +122"),
        ("another refund replaced it", |w| { w.then().refunded(2_450).then().pay().refunded(0).then().refunded(2_450); }, "1: 490 usd of 2450, paid"),
        ("offset: a full refund followed", |w| { w.after_payout = AfterPayout::Offset; w.then().refunded(2_450).then().pay().refunded(0).then().refunded(4_900); }, "1: 490 usd of 2450, paid -490"),
        ("absorb: a full refund followed", |w| { w.then().refunded(2_450).then().pay().refunded(0).then().refunded(4_900); }, "1: 490 usd of 2450, paid"),
        ("absorb: a full refund and the first one failed", |w| { w.then().refunded(2_450).then().pay().refunded(4_900).then().refunded(0); }, "1: 490 usd of 2450, paid +490"),
        ("the referral was rejected before", |w| { w.then().refunded(2_450).then().pay().bar = Some(ReferralBar::Rejected); w.then().refunded(0); }, "1: 490 usd of 2450, paid"),
        ("the referral was rejected afterwards", |w| { w.then().refunded(2_450).then().pay().refunded(0).then().bar = Some(ReferralBar::Rejected); }, "1: 490 usd of 2450, paid +490"),
    ]);
}

#[test]
fn the_state_of_referral_and_partner_decides() {
    check(&[
        ("blocked", |w| { w.bar = Some(ReferralBar::Blocked); }, "Barred(Blocked)"),
        ("blocked after its line was written", |w| { w.then().bar = Some(ReferralBar::Blocked); }, "1: 980 usd of 4900, reversed blocked"),
        ("rejected", |w| { w.then().bar = Some(ReferralBar::Rejected); }, "1: 980 usd of 4900, reversed fraud"),
        ("rejected while in a draft payout", |w| { w.then().draft().bar = Some(ReferralBar::Rejected); }, "1: 980 usd of 4900, reversed fraud"),
        ("allowed again: its lines stay reversed", |w| { w.then().bar = Some(ReferralBar::Rejected); w.then().bar = None; }, "1: 980 usd of 4900, reversed fraud"),
        ("expired", |w| { w.then().bar = Some(ReferralBar::Lapsed); }, "1: 980 usd of 4900, reversed expired"),
        ("under review", |w| { w.is_under_review = true; }, "1: 980 usd of 4900, pending frozen"),
        ("the review ended", |w| { w.is_under_review = true; w.then().is_under_review = false; }, "1: 980 usd of 4900, pending"),
        ("a suspended partner's customers earn", |w| { w.accrual = AccrualStatus::Suspended; }, "1: 980 usd of 4900, pending"),
        ("a suspended partner's customers do not earn", |w| { w.accrual = AccrualStatus::Suspended; w.suspended_accrue = false; }, "Partner(Suspended)"),
        ("the decision is permanent after reactivation", |w| { w.accrual = AccrualStatus::Suspended; w.suspended_accrue = false; w.then().accrual = AccrualStatus::Active; }, "Partner(Suspended)"),
        ("new product rates apply to new sales only", |w| { w.terms.products = vec![product("prod_a", None)]; w.then().terms.products.clear(); w.refunded(100); }, "ComesToNothing"),
        ("a new duration applies to new sales only", |w| { w.terms.duration = CommissionDuration::Once; w.first_earning = Some("in_0".to_owned()); w.then().terms.duration = CommissionDuration::Recurring(None); }, "OnlyOnce"),
        ("a referral that is allowed again earns", |w| { w.bar = Some(ReferralBar::Rejected); w.then().bar = None; }, "1: 980 usd of 4900, pending"),
        ("an invoice that is paid later earns", |w| { let paid = std::mem::take(&mut w.sale.amount_paid); w.then().sale.amount_paid = paid; }, "1: 980 usd of 4900, pending"),
        ("a partner who is not approved", |w| { w.accrual = AccrualStatus::Outside; }, "Partner(Outside)"),
        ("a written line does not depend on the partner's status", |w| { w.then().accrual = AccrualStatus::Outside; }, "1: 980 usd of 4900, pending"),
        ("a deleted partner", |w| { w.then().is_orphan = true; }, "1: 980 usd of 4900, reversed partner_deleted"),
        ("excluded afterwards", |w| { w.then().is_excluded = true; }, "1: 980 usd of 4900, reversed excluded"),
        ("excluded afterwards, with a recruiter", |w| { w.recruited(500).then().is_excluded = true; }, "1: 980 usd of 4900, reversed excluded | 2: 245 usd of 4900, reversed excluded"),
        ("excluded while in a draft payout", |w| { w.then().draft().is_excluded = true; }, "1: 980 usd of 4900, reversed excluded"),
        ("excluded in an approved payout", |w| { w.after_payout = AfterPayout::Offset; w.then().approve().is_excluded = true; }, "1: 980 usd of 4900, in payout"),
        ("excluded after it was paid", |w| { w.after_payout = AfterPayout::Offset; w.then().pay().is_excluded = true; }, "1: 980 usd of 4900, paid"),
        ("excluded after it was paid: a refund from before fails", |w| { w.then().refunded(2_450).then().pay().is_excluded = true; w.refunded(0); }, "1: 490 usd of 2450, paid"),
        ("excluded and refunded", |w| { w.then().is_excluded = true; w.then().refunded(4_900); }, "1: 980 usd of 4900, reversed refund"),
        ("excluded, and the refund failed", |w| { w.then().refunded(4_900).then().is_excluded = true; w.then().refunded(0); }, "1: 980 usd of 4900, reversed excluded"),
        ("no longer excluded", |w| { w.then().is_excluded = true; w.then().is_excluded = false; }, "1: 980 usd of 4900, pending"),
        ("no longer excluded, but rejected", |w| { w.then().is_excluded = true; w.then().is_excluded = false; w.bar = Some(ReferralBar::Rejected); }, "1: 980 usd of 4900, reversed excluded"),
        ("reinstating waives the exclusion", |w| { w.then().is_excluded = true; w.then().reinstate(); }, "1: 980 usd of 4900, pending"),
        ("a manual reversal of an excluded sale keeps its reason", |w| { w.then().each(|line, now| line.reverse(ReversalReason::Manual, now).map(drop)).is_excluded = true; }, "1: 980 usd of 4900, reversed manual"),
        ("no hold", |w| { w.terms.hold_days = 0; }, "1: 980 usd of 4900, earned"),
        ("no hold, under review", |w| { w.terms.hold_days = 0; w.is_under_review = true; }, "1: 980 usd of 4900, pending frozen"),
        ("no hold, refunded before", |w| { w.terms.hold_days = 0; w.refunded(4_900); }, "1: 980 usd of 4900, reversed refund"),
    ]);
}

#[test]
fn invalid_input_is_an_error() {
    check(&[
        ("a negative refund", |w| { w.returned.refunded = -1; }, "the refunded amount is negative"),
        ("a negative fixed amount", |w| { w.terms.base = CommissionRate::Flat(-1); }, "a flat commission is negative"),
        ("a negative cap", |w| { w.terms.max_commission = Some(-1); }, "the commission cap is negative"),
        ("tax overflows", |w| { w.sale.tax = i64::MIN; w.sale.total = i64::MAX; w.sale.amount_paid = i64::MAX; }, "an amount is too large"),
        ("fixed amounts overflow", |w| { w.sold(&[("a", 1), ("b", 1)]).terms.base = CommissionRate::Flat(i64::MAX); w.terms.products = vec![product("prod_b", CommissionRate::Flat(1))]; }, "an amount is too large"),
        ("a hold out of range", |w| { w.sale.paid_at = jiff::Timestamp::MAX; }, "a time is out of range"),
    ]);
    let mut largest = Scenario::new();
    largest.paid(i64::MAX, "usd").terms.base = percent(100);
    assert_eq!(largest.then().ledger(), "1: 9223372036854775807 usd of 9223372036854775807, pending");
}

#[test]
fn changes_are_recorded() {
    let mut world = Scenario::new();
    assert_eq!(world.run(), [LineChange::Created]);
    world.charge = Some("ch_1".to_owned());
    assert_eq!(world.run(), [LineChange::Charge]);
    let [half, rest] = [LineChange::Amount { from: 980, to: 490 }, LineChange::Amount { from: 490, to: 980 }];
    assert_eq!(world.draft().refunded(2_450).run(), [LineChange::LeftPayout(payout()), half]);
    assert_eq!(world.refunded(4_900).run(), [LineChange::Reversed(ReversalReason::Refund)]);
    assert_eq!(world.refunded(0).run(), [rest, LineChange::Reopened]);
    assert_eq!(world.lines[0].earns_at, at("2026-04-15T00:00:00Z"), "at least the time of reopening");
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
fn the_formula_explains_the_amount() {
    let why = |change: fn(&mut Scenario)| {
        let mut world = Scenario::new();
        change(&mut world);
        world.then();
        world.lines.iter().map(|line| line.formula()).collect::<Vec<_>>().join(" | ")
    };
    assert_eq!(why(|_| {}), "20 % of 49.00 usd = 9.80 usd (the campaign's rate)");
    let mut world = Scenario::new();
    world.then();
    let on_a_page = world.lines[0].formula_with(|amount, _| format!("${amount}"), |currency| currency.to_string());
    assert_eq!(on_a_page, "20 % of $4900 = $980 (the campaign's rate)");
    assert_eq!(
        why(|w| { w.terms.tiers = vec![tier(21, percent(20))]; w.paying_customers = 30; }),
        "20 % of 49.00 usd = 9.80 usd (tier from 21 customers)"
    );
    assert_eq!(
        why(|w| { w.recruited(550).commission_override = Some(points(3_000)); w.then().refunded(2_450); }),
        "30 % of 24.50 usd = 7.35 usd (the partner's own rate); the base was 49.00 usd before refunds | \
         5.5 % of 24.50 usd = 1.35 usd (the recruiter's share); the base was 49.00 usd before refunds"
    );
    assert_eq!(
        why(|w| {
            w.sold(&[("a", 1_000), ("b", 500), ("c", 900)]).terms.max_commission = Some(200);
            w.terms.products = vec![product("price_b", CommissionRate::Flat(70)), product("prod_c", None)];
        }),
        "20 % of 10.00 usd (the campaign's rate) + 0.70 usd for a sale of 5.00 usd (rate of price price_b) + \
         no commission on 9.00 usd (rate of product prod_c) = 2.00 usd; capped at 2.00 usd per sale"
    );
    assert_eq!(
        why(|w| { w.paid(4_900, "jpy").terms.max_commission = Some(200); }),
        "20 % of 4900 jpy = 980 jpy (the campaign's rate); the cap of 2.00 usd does not apply in jpy"
    );
}

#[test]
fn the_worth_of_a_sale_is_computed() {
    let worth = |change: fn(&mut Scenario)| {
        let mut world = Scenario::new();
        change(&mut world);
        world.ask().unwrap().worth.map(|worth| (worth.base, worth.remaining, worth.is_gone))
    };
    assert_eq!(worth(|_| {}), Some((4_900, 4_900, false)));
    assert_eq!(worth(|w| w.is_excluded = true), Some((4_900, 4_900, false)), "an excluded sale still converts the referral");
    assert_eq!(worth(|w| w.bar = Some(ReferralBar::Blocked)), Some((4_900, 4_900, false)));
    assert_eq!(worth(|w| { w.refunded(900); }), Some((4_900, 4_000, false)));
    assert_eq!(worth(|w| { w.refunded(4_900); }), Some((4_900, 0, true)));
    assert_eq!(worth(|w| { w.disputed(DisputeState::Open); }), Some((4_900, 4_900, true)));
    assert_eq!(worth(|w| { w.disputed(DisputeState::Won); }), Some((4_900, 4_900, false)));
    assert_eq!(worth(|w| w.sale.amount_paid = 0), None);
    assert_eq!(worth(|w| w.recruiter = None::<RecruiterInput>), Some((4_900, 4_900, false)));
}
