//! Texts and number formats of the portal: money, dates, field labels, statuses.

use html::badge::{Badge, Tone};
use html::fragment::Fragment;
use hypertext::prelude::*;
use jiff::Timestamp;
use jiff::tz::TimeZone;
use message::address::Address;
use model::affiliate::commission::{Commission, CommissionState, ReversalReason};
use model::affiliate::money::Currency;
use model::affiliate::payout::Payout;
use model::affiliate::referral::{Referral, ReferralBlock, ReferralStatus};

/// An amount: `1,234.50 USD`.
pub(super) fn format_money(amount: i64, currency: Currency) -> String {
    let written = currency.format_amount(amount);
    let (integer, rest) = match written.split_once('.') {
        Some((integer, rest)) => (integer, format!(".{rest}")),
        None => (written.as_str(), String::new()),
    };
    let (sign, digits) = integer.strip_prefix('-').map_or(("", integer), |digits| ("−", digits));
    let mut grouped = String::new();
    for (n, digit) in digits.chars().enumerate() {
        if n > 0 && (digits.len() - n) % 3 == 0 {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    format!("{sign}{grouped}{rest} {}", format_currency(currency))
}

/// A currency: `USD`.
pub(super) fn format_currency(currency: Currency) -> String {
    currency.as_str().to_uppercase()
}

/// A number with its noun: `1 click`, `2 clicks`.
pub(super) fn format_count(number: u64, noun: &str) -> String {
    format!("{number} {noun}{}", if number == 1 { "" } else { "s" })
}

/// A date in UTC: `22 Nov 2026`.
pub(super) fn format_day(at: Timestamp) -> impl Renderable {
    let date = TimeZone::UTC.to_datetime(at).strftime("%-d %b %Y").to_string();
    maud! { time datetime=(model::timestamp::to_rfc3339(at)) { (date) } }
}

/// A date and time in UTC.
pub(super) fn format_time(at: Timestamp) -> impl Renderable {
    let text = TimeZone::UTC.to_datetime(at).strftime("%-d %b %Y, %H:%M UTC").to_string();
    maud! { time datetime=(model::timestamp::to_rfc3339(at)) { (text) } }
}

/// A cell without a value.
pub(super) fn dash() -> impl Renderable {
    maud! { span.dash { "–" } }
}

/// A text that may be missing or empty.
pub(super) fn text_or_dash(text: Option<&str>) -> impl Renderable + use<'_> {
    let text = text.filter(|text| !text.is_empty());
    maud! {
        @match text {
            Some(text) => { (text) }
            None => { (dash()) }
        }
    }
}

/// Capitalises the first letter and adds a full stop.
pub(super) fn to_sentence(text: &str) -> String {
    let mut rest = text.chars();
    let first = rest.next().map(|first| first.to_uppercase().chain(rest).collect::<String>());
    let text = first.unwrap_or_default();
    if text.ends_with(['.', '!', '?']) { text } else { text + "." }
}

/// The label of a form field, as the subject of an error message.
pub(super) fn field_label(name: &str) -> &'static str {
    match name {
        "email" => "The email address",
        "token" => "The link's name",
        "destination_url" => "The destination page",
        "label" => "Your note",
        "method" => "The payout method",
        "destination" => "The payout account",
        "postback_url" => "The postback URL",
        "first_name" => "The first name",
        "last_name" => "The last name",
        "company" => "The company",
        "website" => "The website",
        "country" => "The country",
        "campaign_id" => "The plan",
        _ => "A field",
    }
}

/// A masked address: `g•••@e•••.com`.
pub(super) fn mask_email(email: &Address) -> String {
    let text = email.to_string();
    let (local, domain) = text.rsplit_once('@').unwrap_or((&text, ""));
    let (host, end) = domain.rsplit_once('.').map_or((domain, ""), |(host, end)| (host, end));
    let first = |part: &str| part.chars().next().map(String::from).unwrap_or_default();
    let end = if end.is_empty() { String::new() } else { format!(".{end}") };
    format!("{}•••@{}•••{end}", first(local), first(host))
}

pub(super) fn referral_status(referral: &Referral) -> Badge {
    let (label, tone) = match (referral.blocked, referral.status) {
        (Some(ReferralBlock::SelfReferral), _) => ("own purchase, not counted", Tone::Bad),
        (Some(ReferralBlock::ExistingCustomer), _) => ("existing customer, not counted", Tone::Bad),
        (None, ReferralStatus::Lead) => ("signed up", Tone::Neutral),
        (None, ReferralStatus::Trialing) => ("on trial", Tone::Warning),
        (None, ReferralStatus::Active) => ("customer", Tone::Good),
        (None, ReferralStatus::Cancelled) => ("former customer", Tone::Neutral),
        (None, ReferralStatus::Refunded) => ("refunded", Tone::Bad),
        (None, ReferralStatus::Rejected) => ("not counted", Tone::Bad),
    };
    Badge::new(label, tone)
}

/// The status of a commission. `drafts` are the partner's payouts that the owner has not approved.
pub(super) fn commission_status(line: &Commission, drafts: &[Payout]) -> Fragment {
    let under_review = || Badge::new("under review", Tone::Warning);
    match line.status {
        CommissionState::Pending { frozen } if frozen.is_frozen() => Fragment::new(under_review()),
        CommissionState::Pending { .. } => dated(Badge::new("pending", Tone::Active), "earned on ", line.earns_at),
        CommissionState::Earned { earned_at, frozen } => {
            let badge = if frozen.is_frozen() { under_review() } else { Badge::new("earned", Tone::Good) };
            dated(badge, "since ", earned_at)
        }
        CommissionState::InPayout { earned_at, payout } if drafts.iter().any(|draft| draft.id == payout) => {
            dated(Badge::new("earned", Tone::Good), "since ", earned_at)
        }
        CommissionState::InPayout { .. } => Fragment::new(Badge::new("being paid", Tone::Good)),
        CommissionState::Paid { paid_at, .. } => dated(Badge::new("paid", Tone::Good), "on ", paid_at),
        CommissionState::Reversed { reversed_at, reason, .. } => {
            let reason = format!("{}, ", reason_text(reason));
            dated(Badge::new("reversed", Tone::Bad), &reason, reversed_at)
        }
    }
}

/// A badge with a date below it.
fn dated(badge: Badge, text: &str, at: Timestamp) -> Fragment {
    Fragment::new(maud! { (badge) p.small.soft { (text) (format_day(at)) } })
}

fn reason_text(reason: ReversalReason) -> &'static str {
    match reason {
        ReversalReason::Refund => "refunded to the customer",
        ReversalReason::Dispute => "disputed by the customer",
        ReversalReason::Fraud => "fraud",
        ReversalReason::Manual => "reversed by the program",
        ReversalReason::PartnerDeleted => "partner deleted",
        ReversalReason::Blocked => "customer not counted",
        ReversalReason::Expired => "lead expired",
        ReversalReason::Excluded => "sale excluded by the program",
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
    fn one_has_no_plural() {
        let written = [0, 1, 2].map(|number| format_count(number, "referral"));
        assert_eq!(written, ["0 referrals", "1 referral", "2 referrals"]);
    }

    #[test]
    fn addresses_are_masked() {
        for (email, masked) in [
            ("grace@example.com", "g•••@e•••.com"),
            ("g@sub.example.co.uk", "g•••@s•••.uk"),
            ("a@localhost", "a•••@l•••"),
        ] {
            assert_eq!(mask_email(&email.parse().unwrap()), masked);
        }
    }
}
