//! Events and responses of localstripe 1.15, recorded, shortened, and with invented ids.
//!
//! localstripe uses the shape of 2017 plus `parent`. It reports payments by `invoice.payment_succeeded` only, and
//! refunds not at all. It expands `charge` in invoices, whose own `invoice` is null, and has plans but no prices.

use affiliate::processor::{
    Charge, Invoice, MetadataKeys, Payment, ReadContext, ResponsePage, StateVersion, StripeObject as _,
    SubscriptionStatus, WebhookEvent, WebhookFact,
};

use super::{fixture, read_fact, second, visit};

#[test]
fn a_customer_and_a_subscription() {
    let customer = read_fact!(Customer in "localstripe/customer_created");
    assert_eq!(customer.email.as_deref(), Some("kim@example.net"));
    assert_eq!(customer.marks.hints, [visit()]);
    let created = read_fact!(Subscription in "localstripe/subscription_created");
    assert!(created.status == SubscriptionStatus::Live && created.marks.excluded);
    let deleted = read_fact!(Subscription in "localstripe/subscription_deleted");
    assert_eq!(deleted.status, SubscriptionStatus::Over);
}

#[test]
fn a_payment() {
    let invoice = read_fact!(InvoicePaid in "localstripe/invoice_payment_succeeded");
    assert!(invoice.is_paid && invoice.has_all_lines);
    assert_eq!(invoice.customer.as_deref(), Some("cus_LsKim"));
    assert_eq!(invoice.subscription.as_deref(), Some("sub_LsKim"));
    let payment = Payment { charge: Some("ch_LsKim".to_owned()), payment_intent: Some("pi_LsKim".to_owned()) };
    assert_eq!(invoice.payments, [payment]);
    let [charge] = &invoice.charges[..] else { panic!("{invoice:?}") };
    assert_eq!((charge.id.as_str(), charge.invoice.as_deref(), charge.amount), ("ch_LsKim", None, 3_600));
    assert_eq!((invoice.sale.total, invoice.sale.total_excluding_tax, invoice.sale.tax), (3_600, None, 0));
    let lines: Vec<_> = invoice.sale.lines.iter().map(|line| (line.amount, line.product.as_deref())).collect();
    assert_eq!(lines, [(3_000, Some("prod_LsSolo")), (600, None)]);
    assert_eq!(invoice.sale.lines[0].price.as_deref(), Some("solo-month"));
}

#[test]
fn lists_are_parsed_like_events() {
    let keys = &MetadataKeys::default();
    let reading = &ReadContext { keys, as_of: StateVersion::fetched(second(1_767_270_000)) };
    let page = ResponsePage::read(&fixture("localstripe/invoices").into()).unwrap();
    assert_eq!(page.next().as_deref(), Some("in_LsOpen"));
    let invoices: Vec<_> = page.objects.iter().map(|object| Invoice::read(object.text(), reading).unwrap()).collect();
    let [taxed, open] = &invoices[..] else { panic!("{invoices:?}") };
    assert_eq!((taxed.sale.tax, taxed.sale.amount_paid, taxed.is_paid), (720, 4_320, true));
    assert!(!open.is_paid && open.charges.is_empty());
    assert_eq!(
        open.sale.paid_at,
        second(1_767_261_002),
        "a fetched invoice without a payment time uses its creation time"
    );

    let page = ResponsePage::read(&fixture("localstripe/charges").into()).unwrap();
    assert_eq!(page.next(), None);
    let charge = Charge::read(page.objects[0].text(), reading).unwrap();
    assert_eq!((charge.amount_refunded, charge.refunds.len()), (600, 1));

    let page = ResponsePage::read(&fixture("localstripe/events").into()).unwrap();
    let facts = page
        .objects
        .iter()
        .map(|object| WebhookEvent::read(object.text().as_bytes()).unwrap().read_fact(keys).unwrap());
    let [WebhookFact::Customer(_), WebhookFact::Other(plan), WebhookFact::Other(_)] = &facts.collect::<Vec<_>>()[..]
    else {
        panic!("other facts")
    };
    assert_eq!(plan, "plan.created");
}
