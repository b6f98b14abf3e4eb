//! One conversion with the emails that the person got in the 30 days before.

use jiff::{SignedDuration, Timestamp};

use super::LIST;
use super::object::Conversion;
use crate::dashboard::kit::chart::Unit;
use crate::dashboard::prelude::*;
use crate::dashboard::screens::emails::EmailItem;
use crate::dashboard::screens::events::{EventItem, event_path};

/// The days before a conversion whose emails are shown.
const DAYS: i64 = 30;

/// The time of the event, as far as it can be read.
fn time(event: &EventItem) -> Option<Timestamp> {
    event.created_at.parse().ok()
}

fn emails_call(event: &EventItem) -> Option<Call> {
    let (at, email) = (time(event)?, event.person.email.as_ref()?);
    let after = at.checked_sub(SignedDuration::from_hours(24 * DAYS)).unwrap_or(at);
    let call = Call::new("list_emails").query("to", email).query("created_after", after.to_string());
    Some(call.query("created_before", at.to_string()).query("limit", "50"))
}

/// The conversion of an event; it can be found only among the latest.
async fn conversion(context: &Context<'_>, id: &str) -> Result<Option<Conversion>, Failure> {
    if !context.allows("list_conversions") {
        return Ok(None);
    }
    let list: List<Conversion> =
        context.read_list("conversions", &Call::new("list_conversions").query("limit", "100")).await?;
    Ok(list.entries.into_iter().find(|one| one.event_id == id))
}

pub(super) async fn show(context: &Context<'_>) -> Result<View, Failure> {
    let call = Call::new("get_event").id(context.id());
    let event: &EventItem = &context.read_field("event", &call).await?;
    let conversion = conversion(context, &event.id).await?;
    let emails_call = emails_call(event).filter(|_| context.allows("list_emails"));
    let emails = match &emails_call {
        Some(call) => match context.read_field::<Vec<EmailItem>>("emails", call).await {
            Ok(emails) => emails,
            Err(failure) if failure.status == 400 => Vec::new(),
            Err(failure) => return Err(failure),
        },
        None => Vec::new(),
    };
    let mut facts = Facts::new()
        .row("Person", &event.person)
        .row("When", time_or_dash(Some(&event.created_at)))
        .row("Event", maud! { a href=(event_path(&event.id)) { (event.name) } });
    if let Some(one) = &conversion {
        let money = Some(one.money()).filter(|money| !money.is_empty());
        facts = facts
            .row("Source of the first visit", one.source.clone().unwrap_or_else(|| "not measured".to_owned()))
            .optional("Self-reported source", one.came_from.as_ref())
            .optional("Sign-up method", one.signup_method.as_ref())
            .optional("Google Ads click", one.gclid.as_ref())
            .optional("Value", money);
    }
    let table = emails_table(event, &emails);
    let body = maud! {
        div.card { (facts) }
        section {
            h2 { "Emails in the previous 30 days" }
            @if event.person.email.is_none() {
                p.soft { "The event has no email address, so the person's emails are unknown." }
            } @else if table.is_empty() {
                p.soft { "The person got no emails from you during this time: something else led to the conversion." }
            } @else {
                p.soft { "Newest first. Emails that were opened or clicked may have led to the conversion." }
                (table)
            }
        }
    };
    let title = conversion.as_ref().map_or("Conversion", Conversion::title);
    let title = format!("{title}: {}", event.person.label());
    let page = Page::new(title, body).below(LIST, "Conversions").same_as(call);
    Ok(emails_call.into_iter().fold(page, Page::same_as).into())
}

fn emails_table(event: &EventItem, emails: &[EmailItem]) -> Table {
    Table::new("Emails before the conversion", &["Email", "Sent", "Before", "Last event"]).rows(emails, |email| {
        let sent: Option<Timestamp> = email.created_at.parse().ok();
        let before =
            time(event).zip(sent).map(|(at, sent)| Unit::Seconds.exact(at.duration_since(sent).as_secs_f64().max(0.0)));
        let subject = if email.subject.is_empty() { "(no subject)" } else { &email.subject };
        let last = email.last_event.strip_prefix("email.").unwrap_or(&email.last_event);
        Row::new()
            .link(format!("/dashboard/emails/{}", encode(&email.id)), subject)
            .cell(time_or_dash(Some(&email.created_at)))
            .cell(before.unwrap_or_default())
            .cell(Badge::of(last))
    })
}
