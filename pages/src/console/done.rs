//! The sentence of what a form did.

/// The sentence of a code in the query field `done`; `None` for unknown codes, which anybody can write into a link.
pub fn done_text(code: &str) -> Option<&'static str> {
    Some(match code {
        "assigned" => "The account sends from that pool now.",
        "changed" => "The change was saved.",
        "dropped" => "The email was removed from the queue.",
        "failed" => "Delivery of the email has ended: its recipients are failed.",
        "held" => "The email is held: it is not attempted until it is released.",
        "paced" => "The limits apply now.",
        "production_off" => "The account may send to its own addresses only.",
        "production_on" => "The account may send to any recipient.",
        "released" => "The email is released: it is attempted when it is due.",
        "rerouted" => "The email takes the other route.",
        "resumed" => "Delivery continues.",
        "retried" => "The email is attempted now.",
        "routed" => "The route applies to the next attempts.",
        "signed_out" => "You are signed out.",
        "suspended" => "Delivery is suspended: mail is accepted and stays in the queue.",
        "account_suspended" => "The account is suspended: its mail is refused, and queued mail is held.",
        "account_resumed" => "The account is active again, and its queued mail is delivered.",
        "warm_up" => "The warm-up was changed.",
        _ => return None,
    })
}
