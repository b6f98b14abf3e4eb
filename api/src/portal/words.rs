//! Words and figures as partners read them.

use jiff::Timestamp;
use jiff::tz::TimeZone;
use mail::address::Address;
use mail::affiliate::commission::{Commission, Reason, Status};
use mail::affiliate::money::Currency;
use mail::affiliate::referral::{Blocked, Referral, ReferralStatus};

use super::html::{Html, html};

/// An amount: `1,234.50 USD`.
pub(super) fn money(amount: i64, currency: Currency) -> String {
    let written = currency.written(amount);
    let (whole, rest) = match written.split_once('.') {
        Some((whole, rest)) => (whole, format!(".{rest}")),
        None => (written.as_str(), String::new()),
    };
    let (sign, digits) = whole.strip_prefix('-').map_or(("", whole), |digits| ("−", digits));
    let mut grouped = String::new();
    for (n, digit) in digits.chars().enumerate() {
        if n > 0 && (digits.len() - n) % 3 == 0 {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    format!("{sign}{grouped}{rest} {}", currency.as_str().to_uppercase())
}

/// A day: `22 Nov 2026`, by UTC.
pub(super) fn day(at: Timestamp) -> Html {
    let date = TimeZone::UTC.to_datetime(at).strftime("%-d %b %Y").to_string();
    html! { "<time datetime=\"" (mail::moment::write(at)) "\">" (date) "</time>" }
}

/// A day and its time, by UTC.
pub(super) fn moment(at: Timestamp) -> Html {
    let text = TimeZone::UTC.to_datetime(at).strftime("%-d %b %Y, %H:%M UTC").to_string();
    html! { "<time datetime=\"" (mail::moment::write(at)) "\">" (text) "</time>" }
}

/// With a capital at its beginning, and a full stop.
pub(super) fn sentence(text: &str) -> String {
    let mut rest = text.chars();
    let first = rest.next().map(|first| first.to_uppercase().chain(rest).collect::<String>());
    let text = first.unwrap_or_default();
    if text.ends_with(['.', '!', '?']) { text } else { text + "." }
}

/// A field as its form calls it.
pub(super) fn field(name: &str) -> &'static str {
    match name {
        "email" => "The email address",
        "token" => "The link's name",
        "destination_url" => "The page that it leads to",
        "label" => "Your note",
        "method" => "The way of payment",
        "destination" => "Where payouts go",
        "postback_url" => "The address",
        "first_name" => "The first name",
        "last_name" => "The last name",
        "company" => "The company",
        "website" => "The website",
        "country" => "The country",
        "campaign_id" => "The plan",
        _ => "What was given",
    }
}

/// Somebody's address, as far as it is shared: `g•••@e•••.com`.
pub(super) fn masked(email: &Address) -> String {
    let text = email.to_string();
    let (local, domain) = text.rsplit_once('@').unwrap_or((&text, ""));
    let (host, end) = domain.rsplit_once('.').map_or((domain, ""), |(host, end)| (host, end));
    let first = |part: &str| part.chars().next().map(String::from).unwrap_or_default();
    let end = if end.is_empty() { String::new() } else { format!(".{end}") };
    format!("{}•••@{}•••{end}", first(local), first(host))
}

/// A small mark with a colour.
pub(super) fn tag(kind: &'static str, text: &str) -> Html {
    html! { "<span class=\"tag " (kind) "\">" (text) "</span>" }
}

/// How far a referral is.
pub(super) fn standing(referral: &Referral) -> Html {
    match (referral.blocked, referral.status) {
        (Some(Blocked::SelfReferral), _) => tag("bad", "own purchase, not counted"),
        (Some(Blocked::ExistingCustomer), _) => tag("bad", "customer already, not counted"),
        (None, ReferralStatus::Lead) => tag("", "signed up"),
        (None, ReferralStatus::Trialing) => tag("warn", "on trial"),
        (None, ReferralStatus::Active) => tag("good", "customer"),
        (None, ReferralStatus::Cancelled) => tag("", "customer once"),
        (None, ReferralStatus::Refunded) => tag("bad", "money returned"),
        (None, ReferralStatus::Rejected) => tag("bad", "not counted"),
    }
}

/// What became of a line of the ledger.
pub(super) fn state(line: &Commission) -> Html {
    match line.status {
        Status::Pending { frozen } if frozen.is_frozen() => tag("warn", "being looked at"),
        Status::Pending { .. } => {
            html! { [tag("warn", "pending")] "<small>yours on " [day(line.earns_at)] "</small>" }
        }
        Status::Earned { earned_at, frozen } => {
            let mark =
                if frozen.is_frozen() { tag("warn", "being looked at") } else { tag("good", "earned") };
            html! { [mark] "<small>since " [day(earned_at)] "</small>" }
        }
        Status::InPayout { .. } => tag("good", "in a payout"),
        Status::Paid { paid_at, .. } => {
            html! { [tag("good", "paid")] "<small>on " [day(paid_at)] "</small>" }
        }
        Status::Reversed { reversed_at, reason, .. } => {
            html! { [tag("bad", "taken back")] "<small>" (why(reason)) ", " [day(reversed_at)] "</small>" }
        }
    }
}

fn why(reason: Reason) -> &'static str {
    match reason {
        Reason::Refund => "the customer got the money back",
        Reason::Dispute => "the customer's bank took the money back",
        Reason::Fraud => "the purchase was not an honest one",
        Reason::Manual => "by the program",
        Reason::PartnerDeleted => "the partner left",
        Reason::Blocked => "the customer does not count",
        Reason::Expired => "the lead's time ran out",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn money_is_written_with_its_decimals() {
        let written = |code: &str, amount| money(amount, code.parse().unwrap());
        assert_eq!(written("usd", 123_456_789), "1,234,567.89 USD");
        assert_eq!(written("jpy", 1_000), "1,000 JPY");
        assert_eq!(written("kwd", -770), "−0.770 KWD");
        assert_eq!(written("eur", 99_999), "999.99 EUR");
    }

    #[test]
    fn addresses_are_masked() {
        for (email, seen) in [
            ("grace@example.com", "g•••@e•••.com"),
            ("g@sub.example.co.uk", "g•••@s•••.uk"),
            ("a@localhost", "a•••@l•••"),
        ] {
            assert_eq!(masked(&email.parse().unwrap()), seen);
        }
    }
}
