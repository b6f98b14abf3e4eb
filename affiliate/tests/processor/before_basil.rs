//! JSON shapes before API version 2025-03-31.

use affiliate::processor::{Payment, SubscriptionStatus};
use model::affiliate::sale::{DisputeState, SaleLine};

use super::{read_fact, referral, second, visit};

#[test]
fn a_checkout_names_its_referrer() {
    let checkout = read_fact!(CheckoutCompleted in "before_basil/checkout_completed");
    assert_eq!(checkout.marks.hints, [visit(), referral()]);
    assert!(!checkout.marks.excluded && checkout.is_paid);
    assert_eq!(checkout.customer.as_deref(), Some("cus_Lin"));
    assert_eq!(checkout.email.as_deref(), Some("lin@example.org"));
    assert_eq!(checkout.invoice.as_deref(), Some("in_Lin1"));
    assert_eq!(checkout.subscription.as_deref(), Some("sub_Lin"));
    assert_eq!(checkout.as_of.at, second(1_767_261_600));
    assert_eq!(checkout.sale(), None, "its invoice is the sale");
}

#[test]
fn a_customer_without_anything() {
    let customer = read_fact!(Customer in "before_basil/customer_created");
    assert_eq!((customer.email, customer.marks.hints), (None, vec![]));
}

#[test]
fn a_subscription_in_its_trial() {
    let subscription = read_fact!(Subscription in "before_basil/subscription_created");
    assert_eq!(subscription.status, SubscriptionStatus::Trialing);
    assert_eq!(subscription.customer.as_deref(), Some("cus_Lin"));
    assert!(!subscription.marks.excluded, "only false excludes");
}

#[test]
fn a_paid_invoice() {
    let invoice = read_fact!(InvoicePaid in "before_basil/invoice_paid");
    assert!(invoice.is_paid && invoice.has_all_lines);
    assert_eq!(invoice.subscription.as_deref(), Some("sub_Lin"));
    assert_eq!(invoice.email.as_deref(), Some("lin@example.org"));
    assert_eq!(invoice.marks.hints, [visit(), referral()], "the subscription's before its own");
    assert_eq!(invoice.description.as_deref(), Some("3 × Team"));
    let payment = Payment { charge: Some("ch_Lin1".to_owned()), payment_intent: Some("pi_Lin1".to_owned()) };
    assert_eq!(invoice.payments, [payment]);
    let sale = invoice.sale;
    assert_eq!((sale.invoice.as_str(), sale.currency.as_str()), ("in_Lin1", "eur"));
    assert_eq!((sale.total, sale.total_excluding_tax, sale.tax), (13_560, Some(11_300), 2_260));
    assert_eq!(sale.amount_paid, 10_000);
    assert_eq!(sale.paid_at, second(1_767_261_595));
    assert_eq!(sale.lines, lines(0));
}

/// The lines of the invoice in both shapes; only the newer one has credit before tax.
pub(crate) fn lines(pretax_credit: i64) -> [SaleLine; 3] {
    let line = |amount, price: &str, product: &str| SaleLine {
        amount,
        price: Some(price.to_owned()),
        product: Some(product.to_owned()),
        ..SaleLine::default()
    };
    [
        SaleLine { discount: 1_000, pretax_credit, ..line(12_000, "price_Team", "prod_Team") },
        SaleLine { inclusive_tax: 200, ..line(1_200, "price_Setup", "prod_Setup") },
        SaleLine { discount: -200, ..line(-900, "plan_solo", "prod_Solo") },
    ]
}

#[test]
fn a_refunded_charge_holds_its_refunds() {
    let charge = read_fact!(Charge in "before_basil/charge_refunded");
    assert_eq!((charge.amount, charge.amount_refunded), (10_000, 2_500));
    assert_eq!(charge.invoice.as_deref(), Some("in_Lin1"));
    assert_eq!(charge.payment_intent.as_deref(), Some("pi_Lin1"));
    assert!(!charge.is_disputed && !charge.marks.excluded);
    let [refund] = &charge.refunds[..] else { panic!("{charge:?}") };
    assert_eq!((refund.id.as_str(), refund.amount, refund.is_live), ("re_1", 2_500, true));
}

#[test]
fn a_refund_that_fails() {
    let refund = read_fact!(Refund in "before_basil/charge_refund_updated");
    assert!(!refund.is_live);
    assert_eq!((refund.amount, refund.created_at), (2_500, Some(second(1_767_300_000))));
    assert_eq!(refund.charge.as_deref(), Some("ch_Lin1"));
}

#[test]
fn a_credit_note_returns_its_amount_without_the_refund() {
    let note = read_fact!(CreditNote in "before_basil/credit_note_created");
    assert_eq!((note.invoice.as_str(), note.given_back), ("in_Lin1", 1_000));
}

#[test]
fn an_inquiry_is_not_yet_a_dispute() {
    let dispute = read_fact!(Dispute in "before_basil/dispute_created");
    assert_eq!(dispute.status, DisputeState::Inquiry);
    assert_eq!(dispute.charge.as_deref(), Some("ch_Lin1"));
    assert_eq!(dispute.payment_intent.as_deref(), Some("pi_Lin1"));
}
