//! Example objects of affiliate webhook events.

use serde_json::{Value, json};

const PROGRAM: &str = "prog_00000000000000000000000000";
const PARTNER: &str = "aff_00000000000000000000000000";
const REFERRAL: &str = "ref_00000000000000000000000000";
const PAYOUT: &str = "pay_00000000000000000000000000";
const AT: &str = "2026-01-01T10:00:00.812Z";

/// Adds the fields that all events of the affiliate program have.
pub(super) fn in_program(mut data: Value) -> Value {
    (data["program_id"], data["affiliate_id"]) = (json!(PROGRAM), json!(PARTNER));
    data
}

/// Adds the payout.
pub(super) fn payout(mut data: Value) -> Value {
    data["payout_id"] = json!(PAYOUT);
    data
}

pub(super) fn partner() -> Value {
    json!({
        "object": "affiliate", "id": PARTNER, "email": "ada@example.org", "first_name": "Ada",
        "last_name": "Lovelace", "company": null, "website": null, "country": "GB", "status": "active",
        "source": "api", "campaign_id": "cmp_00000000000000000000000000", "parent_affiliate_id": null, "tags": [],
        "payout_method": "paypal", "payout_ready": true, "approved_at": AT,
        "links": [{
            "object": "affiliate_link", "id": "afl_00000000000000000000000000", "affiliate_id": PARTNER,
            "token": "ada", "url": "https://shop.example/?via=ada", "destination_url": null, "label": null,
            "is_primary": true, "created_at": AT,
        }],
        "created_at": AT, "updated_at": AT,
    })
}

pub(super) fn referral(status: &str) -> Value {
    let paid = status == "active";
    json!({
        "object": "affiliate_referral", "id": REFERRAL, "affiliate_id": PARTNER, "status": status, "source": "api",
        "email": "grace@example.net", "processor_customer_id": "cus_1", "sub_id": null, "blocked_reason": null,
        "revenue_cents": if paid { 5000 } else { 0 }, "currency": paid.then_some("usd"),
        "converted_at": paid.then_some(AT), "expires_at": "2026-03-02T10:00:00.812Z", "created_at": AT,
        "updated_at": AT,
    })
}

pub(super) fn commission(status: &str) -> Value {
    let after = |words: &[&str]| words.contains(&status).then_some(AT);
    json!({
        "object": "affiliate_commission", "id": "com_00000000000000000000000000", "affiliate_id": PARTNER,
        "referral_id": REFERRAL, "tier": 1, "status": status, "amount_cents": 1000, "sale_amount_cents": 5000,
        "currency": "usd", "description": "20% of 50.00", "processor_invoice_id": "in_1",
        "processor_charge_id": "ch_1", "earns_at": AT, "earned_at": after(&["earned", "paid"]),
        "paid_at": after(&["paid"]), "reversed_at": after(&["reversed"]),
        "reverse_reason": (status == "reversed").then_some("refund"),
        "payout_id": (status == "paid").then_some(PAYOUT), "created_at": AT, "updated_at": AT,
    })
}
