//! JSON shapes since API version 2025-03-31 (Basil).

use affiliate::processor::{Payment, SubscriptionStatus, invoice_line, refunded};
use model::affiliate::sale::DisputeState;
use serde_json::Value;

use super::before_basil::lines;
use super::{WebhookEvent, fixture, read_fact, referral, second, visit};

#[test]
fn a_later_paid_checkout_without_an_invoice_is_a_sale() {
    let checkout = read_fact!(CheckoutCompleted in "since_basil/checkout_paid_later");
    assert_eq!(checkout.marks.hints, [referral()], "the merchant keeps its own id in the reference");
    assert_eq!((checkout.customer.as_deref(), checkout.email.as_deref()), (None, Some("ono@example.org")));
    let sale = checkout.sale().unwrap();
    assert_eq!((sale.invoice.as_str(), sale.currency.as_str()), ("pi_Ono", "jpy"));
    assert_eq!((sale.total, sale.tax, sale.amount_paid), (5_500, 500, 5_500));
    assert_eq!(sale.paid_at, second(1_767_350_000));
    let mut unpaid = checkout.clone();
    unpaid.is_paid = false;
    assert_eq!(unpaid.sale(), None);
}

#[test]
fn a_customer_with_a_hint_and_a_flag() {
    let customer = read_fact!(Customer in "since_basil/customer_updated");
    assert_eq!(customer.email.as_deref(), Some("lin@example.org"));
    assert_eq!(customer.marks.hints, [referral()]);
    assert!(customer.marks.excluded);
}

#[test]
fn a_subscription_ends_whatever_its_status_says() {
    let updated = read_fact!(Subscription in "since_basil/subscription_updated");
    assert_eq!((updated.status, updated.customer.as_deref()), (SubscriptionStatus::Live, Some("cus_Lin")));
    let deleted = read_fact!(Subscription in "since_basil/subscription_deleted");
    assert_eq!(deleted.status, SubscriptionStatus::Over);
    assert!(deleted.marks.excluded && deleted.as_of > updated.as_of);
}

#[test]
fn a_paid_invoice() {
    let invoice = read_fact!(InvoicePaid in "since_basil/invoice_paid");
    assert!(invoice.is_paid && !invoice.has_all_lines);
    assert_eq!(invoice.subscription.as_deref(), Some("sub_Lin"));
    assert_eq!(invoice.marks.hints, [visit(), referral()]);
    assert_eq!(
        invoice.payments,
        [Payment { charge: None, payment_intent: Some("pi_Lin1".to_owned()) }],
        "a canceled attempt is not a payment"
    );
    let sale = invoice.sale;
    assert_eq!((sale.total, sale.total_excluding_tax, sale.tax), (13_560, Some(11_300), 2_260));
    assert_eq!((sale.amount_paid, sale.paid_at), (10_000, second(1_767_261_595)));
    assert_eq!(sale.lines, [], "incomplete lines are dropped");
    let body: Value = serde_json::from_slice(&fixture("since_basil/invoice_paid")).unwrap();
    let all = body["data"]["object"]["lines"]["data"].as_array().unwrap().iter().enumerate();
    let whole: Vec<_> = all.map(|(nth, line)| invoice_line(&line.to_string(), nth).unwrap()).collect();
    assert_eq!(whole, lines(300), "discounts are also listed as credits, and count once");
}

#[test]
fn a_payment_of_an_invoice() {
    let paid = read_fact!(InvoicePayment in "since_basil/invoice_payment_paid");
    assert_eq!(paid.invoice, "in_Lin1");
    assert_eq!(paid.payment, Payment { charge: None, payment_intent: Some("pi_Lin1".to_owned()) });
}

#[test]
fn a_charge_and_its_refunds_come_to_what_was_refunded() {
    let charge = read_fact!(Charge in "since_basil/charge_refunded");
    assert!(charge.is_disputed && charge.marks.excluded && charge.refunds.is_empty());
    let created = read_fact!(Refund in "since_basil/refund_created");
    let updated = read_fact!(Refund in "since_basil/refund_updated");
    assert!(created.is_live && updated.is_live && updated.figure() > created.figure());
    assert_eq!(updated.payment_intent.as_deref(), Some("pi_Lin1"));
    let failed = read_fact!(Refund in "since_basil/refund_failed");
    assert_eq!(refunded(Some(charge.figure()), &[updated.figure()]), 2_500);
    assert_eq!(refunded(Some(charge.figure()), &[failed.figure()]), 0);
    assert_eq!(refunded(None, &[created.figure()]), 2_500);
}

#[test]
fn a_credit_note_returns_an_amount_besides_refunds_until_it_is_voided() {
    let created = read_fact!(CreditNote in "since_basil/credit_note_created");
    assert_eq!(created.given_back, 3_000);
    let voided = read_fact!(CreditNote in "since_basil/credit_note_voided");
    assert_eq!(voided.given_back, 0);
    assert!(voided.as_of > created.as_of);
}

#[test]
fn a_dispute_changes_its_status() {
    assert_eq!(read_fact!(Dispute in "since_basil/dispute_updated").status, DisputeState::Open);
    assert_eq!(read_fact!(Dispute in "since_basil/dispute_closed").status, DisputeState::Won);
}

#[test]
fn a_reversed_transfer() {
    let transfer = read_fact!(TransferReversed in "since_basil/transfer_reversed");
    assert_eq!((transfer.id.as_str(), transfer.amount_reversed, transfer.is_whole), ("tr_1", 4_200, true));
}

#[test]
fn a_partners_account() {
    let event = WebhookEvent::read(&fixture("since_basil/account_updated")).unwrap();
    assert_eq!((event.account.as_deref(), event.livemode), (Some("acct_Partner1"), Some(true)));
    let account = read_fact!(AccountUpdated in "since_basil/account_updated");
    assert_eq!((account.id.as_str(), account.takes_transfers), ("acct_Partner1", true));
}
