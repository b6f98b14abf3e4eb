//! Words and figures as partners read them.

use jiff::Timestamp;
use jiff::tz::TimeZone;
use mail::address::Address;
use mail::affiliate::commission::{Commission, CommissionState, ReversalReason};
use mail::affiliate::money::Currency;
use mail::affiliate::referral::{Referral, ReferralBlock, ReferralStatus};

use super::html::{Html, html};

/// An amount: `1,234.50 USD`.
pub(super) fn format_money(amount: i64, currency: Currency) -> String {
    let written = currency.format_amount(amount);
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
pub(super) fn format_day(at: Timestamp) -> Html {
    let date = TimeZone::UTC.to_datetime(at).strftime("%-d %b %Y").to_string();
    html! { "<time datetime=\"" (mail::moment::to_rfc3339(at)) "\">" (date) "</time>" }
}

/// A day and its time, by UTC.
pub(super) fn format_time(at: Timestamp) -> Html {
    let text = TimeZone::UTC.to_datetime(at).strftime("%-d %b %Y, %H:%M UTC").to_string();
    html! { "<time datetime=\"" (mail::moment::to_rfc3339(at)) "\">" (text) "</time>" }
}

/// With a capital at its beginning, and a full stop.
pub(super) fn to_sentence(text: &str) -> String {
    let mut rest = text.chars();
    let first = rest.next().map(|first| first.to_uppercase().chain(rest).collect::<String>());
    let text = first.unwrap_or_default();
    if text.ends_with(['.', '!', '?']) { text } else { text + "." }
}

/// A field as its form calls it.
pub(super) fn field_label(name: &str) -> &'static str {
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
pub(super) fn mask_email(email: &Address) -> String {
    let text = email.to_string();
    let (local, domain) = text.rsplit_once('@').unwrap_or((&text, ""));
    let (host, end) = domain.rsplit_once('.').map_or((domain, ""), |(host, end)| (host, end));
    let first = |part: &str| part.chars().next().map(String::from).unwrap_or_default();
    let end = if end.is_empty() { String::new() } else { format!(".{end}") };
    format!("{}•••@{}•••{end}", first(local), first(host))
}

/// A small mark with a colour.
pub(super) fn badge(kind: &'static str, text: &str) -> Html {
    html! { "<span class=\"tag " (kind) "\">" (text) "</span>" }
}

/// How far a referral is.
pub(super) fn referral_status(referral: &Referral) -> Html {
    match (referral.blocked, referral.status) {
        (Some(ReferralBlock::SelfReferral), _) => badge("bad", "own purchase, not counted"),
        (Some(ReferralBlock::ExistingCustomer), _) => badge("bad", "customer already, not counted"),
        (None, ReferralStatus::Lead) => badge("", "signed up"),
        (None, ReferralStatus::Trialing) => badge("warn", "on trial"),
        (None, ReferralStatus::Active) => badge("good", "customer"),
        (None, ReferralStatus::Cancelled) => badge("", "customer once"),
        (None, ReferralStatus::Refunded) => badge("bad", "money returned"),
        (None, ReferralStatus::Rejected) => badge("bad", "not counted"),
    }
}

/// What became of a line of the ledger.
pub(super) fn commission_status(line: &Commission) -> Html {
    match line.status {
        CommissionState::Pending { frozen } if frozen.is_frozen() => badge("warn", "being looked at"),
        CommissionState::Pending { .. } => {
            html! { [badge("warn", "pending")] "<small>yours on " [format_day(line.earns_at)] "</small>" }
        }
        CommissionState::Earned { earned_at, frozen } => {
            let mark = if frozen.is_frozen() { badge("warn", "being looked at") } else { badge("good", "earned") };
            html! { [mark] "<small>since " [format_day(earned_at)] "</small>" }
        }
        CommissionState::InPayout { .. } => badge("good", "in a payout"),
        CommissionState::Paid { paid_at, .. } => {
            html! { [badge("good", "paid")] "<small>on " [format_day(paid_at)] "</small>" }
        }
        CommissionState::Reversed { reversed_at, reason, .. } => {
            html! { [badge("bad", "taken back")] "<small>" (reason_text(reason)) ", " [format_day(reversed_at)] "</small>" }
        }
    }
}

fn reason_text(reason: ReversalReason) -> &'static str {
    match reason {
        ReversalReason::Refund => "the customer got the money back",
        ReversalReason::Dispute => "the customer's bank took the money back",
        ReversalReason::Fraud => "the purchase was not an honest one",
        ReversalReason::Manual => "by the program",
        ReversalReason::PartnerDeleted => "the partner left",
        ReversalReason::Blocked => "the customer does not count",
        ReversalReason::Expired => "the lead's time ran out",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn money_is_written_with_its_decimals() {
        let written = |code: &str, amount| format_money(amount, code.parse().unwrap());
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
            assert_eq!(mask_email(&email.parse().unwrap()), seen);
        }
    }
}
