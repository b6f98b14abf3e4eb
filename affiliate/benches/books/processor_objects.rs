//! Minimal processor events.

use serde_json::{Value, json};

/// An event about an object; `created` is the processor's time in seconds.
pub(crate) fn event(id: &str, kind: &str, created: i64, object: &Value) -> Value {
    json!({"id": id, "type": kind, "created": created, "livemode": true, "data": {"object": object}})
}

pub(crate) fn subscription(stem: &str, status: &str) -> Value {
    json!({
        "id": format!("sub_{stem}"), "object": "subscription", "customer": format!("cus_{stem}"), "status": status,
    })
}

/// A monthly invoice of a customer's subscription, with its own payment.
pub(crate) fn invoice(id: &str, stem: &str, currency: &str, paid_at: i64) -> Value {
    let payment = json!({"type": "payment_intent", "payment_intent": format!("pi_{id}")});
    let line = json!({
        "id": format!("il_{id}"), "amount": 4_900, "pricing": {"price_details": {"price": "price_1", "product": "prod_1"}},
    });
    json!({
        "id": id, "object": "invoice", "customer": format!("cus_{stem}"), "currency": currency, "status": "paid",
        "total": 4_900, "total_excluding_tax": 4_900, "amount_paid": 4_900,
        "status_transitions": {"paid_at": paid_at},
        "parent": {"subscription_details": {"subscription": format!("sub_{stem}")}},
        "lines": {"data": [line], "has_more": false},
        "payments": {"data": [{"status": "paid", "payment": payment}]},
    })
}

/// The fully refunded charge of an invoice.
pub(crate) fn refunded(invoice: &str, currency: &str) -> Value {
    json!({
        "id": format!("ch_{invoice}"), "object": "charge", "payment_intent": format!("pi_{invoice}"),
        "amount": 4_900, "amount_refunded": 4_900, "currency": currency,
    })
}
