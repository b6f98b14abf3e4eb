//! Minimal processor events.

use serde_json::{Value, json};

/// An event about an object; `created` is the processor's time in seconds.
pub(crate) fn event(id: &str, kind: &str, created: i64, object: Value) -> Value {
    json!({"id": id, "type": kind, "created": created, "livemode": true, "data": {"object": object}})
}

/// A paid invoice with its own payment: `in_1` is paid by `pi_in_1` with charge `ch_in_1`.
pub(crate) fn invoice(id: &str, customer: &str, amount: i64, paid_at: i64) -> Value {
    json!({
        "id": id, "object": "invoice", "customer": customer, "currency": "usd", "status": "paid",
        "total": amount, "total_excluding_tax": amount, "amount_paid": amount,
        "status_transitions": {"paid_at": paid_at},
        "payments": {"data": [
            {"status": "paid", "payment": {"type": "payment_intent", "payment_intent": format!("pi_{id}")}},
        ]},
    })
}

/// The charge of an invoice, with a refunded total.
pub(crate) fn charge(invoice: &str, amount: i64, refunded: i64) -> Value {
    json!({
        "id": format!("ch_{invoice}"), "object": "charge", "payment_intent": format!("pi_{invoice}"),
        "amount": amount, "amount_refunded": refunded, "currency": "usd",
    })
}

/// A refund of an invoice's charge.
pub(crate) fn refund(id: &str, invoice: &str, amount: i64, status: &str, created: i64) -> Value {
    json!({
        "id": id, "object": "refund", "charge": format!("ch_{invoice}"),
        "payment_intent": format!("pi_{invoice}"), "amount": amount, "currency": "usd", "status": status,
        "created": created,
    })
}

/// A dispute of an invoice's charge.
pub(crate) fn dispute(invoice: &str, status: &str) -> Value {
    json!({
        "id": format!("dp_{invoice}"), "object": "dispute", "charge": format!("ch_{invoice}"),
        "payment_intent": format!("pi_{invoice}"), "status": status,
    })
}

pub(crate) fn subscription(id: &str, customer: &str, status: &str) -> Value {
    json!({"id": id, "object": "subscription", "customer": customer, "status": status})
}

/// A completed checkout session that names a referral.
pub(crate) fn checkout(id: &str, customer: Option<&str>, reference: &str) -> Value {
    json!({
        "id": id, "object": "checkout.session", "customer": customer, "client_reference_id": reference,
        "payment_status": "paid", "amount_total": 5_000, "currency": "usd",
        "payment_intent": format!("pi_{id}"), "customer_details": {"email": format!("{id}@example.org")},
    })
}
