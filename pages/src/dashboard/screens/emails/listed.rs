//! The filters of the list, and the call that they make. The export uses them too.

use jiff::{SignedDuration, Timestamp, civil::Date, tz::TimeZone};

use crate::dashboard::prelude::*;

/// The statuses of emails.
const STATUSES: &[&str] = &["scheduled", "queued", "sent", "delivered", "bounced", "failed", "cancelled"];
pub(super) const CATEGORIES: &[&str] = &["transactional", "product", "newsletter"];

/// A filter by one of the account's domains.
pub(in crate::dashboard::screens) async fn domain_filter(
    context: &Context<'_>,
    label: &'static str,
) -> Result<Filter, Failure> {
    let mut choices = vec![(String::new(), "All".to_owned())];
    choices.extend(context.domain_choices().await?);
    // A link can name a domain that is not among the first hundred.
    let asked = context.query().get("domain_id");
    if !choices.iter().any(|(id, _)| id == asked) {
        choices.push((asked.to_owned(), asked.to_owned()));
    }
    Ok(Filter::select("domain_id", label, choices))
}

/// The filters of the list, in the order of their use.
pub(super) async fn filters(context: &Context<'_>) -> Result<[Filter; 10], Failure> {
    Ok([
        Filter::text("q", "Words in the subject", "invoice"),
        Filter::text("to", "Recipient", "grace@example.net"),
        Filter::words("status", "Status", STATUSES),
        Filter::words("category", "Category", CATEGORIES),
        Filter::date("after", "From date"),
        Filter::date("before", "To date"),
        Filter::text("from", "Sender", "hi@example.com"),
        Filter::text("tag", "Tag", "order:1043"),
        Filter::text("template", "Template", "welcome"),
        domain_filter(context, "Sending domain").await?,
    ])
}

/// The call of the list with the filters of a query; without a cursor and a limit.
pub(super) fn call(query: &Fields) -> Call {
    let mut call =
        Call::new("list_emails").filters(query, &["q", "to", "status", "category", "from", "template", "domain_id"]);
    for tag in query.all("tag") {
        call = call.query("tag", tag.trim());
    }
    call = call.query("created_after", day_start(query.get("after"), 0));
    call.query("created_before", day_start(query.get("before"), 1))
}

/// The start of a day in UTC, some days later; other texts are passed on, so that the API refuses them.
pub(in crate::dashboard::screens) fn day_start(text: &str, days_later: i64) -> String {
    let start = text.trim().parse::<Date>().ok().and_then(|day| day.to_zoned(TimeZone::UTC).ok());
    let start = start.and_then(|start| start.timestamp().checked_add(SignedDuration::from_hours(24 * days_later)).ok());
    start.map_or_else(|| text.trim().to_owned(), |start: Timestamp| start.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_query_becomes_the_call() {
        let call = call(&Fields::parse(
            b"q=+a+b&to=&status=bounced&tag=a%3A1&tag=b%3A2&after=2026-01-31&before=2026-01-31&x=1",
        ));
        let expected = [
            ("q", "a b"),
            ("status", "bounced"),
            ("tag", "a:1"),
            ("tag", "b:2"),
            ("created_after", "2026-01-31T00:00:00Z"),
            ("created_before", "2026-02-01T00:00:00Z"),
        ];
        let expected = expected.map(|(name, value)| (name.to_owned(), value.to_owned()));
        assert_eq!(call.query, expected);
        assert_eq!(day_start("soon", 1), "soon");
    }
}
