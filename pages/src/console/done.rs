//! The sentence of what a form did.

/// The sentence of a code in the query field `done`; `None` for unknown codes, which anybody can write into a link.
pub fn done_text(code: &str) -> Option<&'static str> {
    Some(match code {
        "assigned" => "The account now sends from that pool.",
        "changed" => "The change was saved.",
        "dropped" => "The email was removed from the queue.",
        "failed" => "Delivery of the email was given up: its recipients have failed.",
        "held" => "The email is held: it will not be attempted until you release it.",
        "paced" => "The limits apply now.",
        "production_off" => "The account may send only to its own addresses.",
        "production_on" => "The account may send to any recipient.",
        "released" => "The email is released: it will be attempted when it is due.",
        "rerouted" => "The email will take the new route.",
        "resumed" => "Delivery continues.",
        "retried" => "The email is being attempted now.",
        "routed" => "The route applies to the next attempts.",
        "signed_out" => "You are signed out.",
        "suspended" => "Delivery is suspended: mail is accepted and stays in the queue.",
        "account_suspended" => "The account is suspended: its mail is refused, and queued mail is held.",
        "account_resumed" => "The account is active again, and its queued mail is delivered.",
        "warm_up" => "The warm-up was changed.",
        _ => return None,
    })
}
