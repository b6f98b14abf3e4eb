//! The people of the latest events. The API has no list of people, so a page has those of a page of events.

use super::LIST;
use crate::dashboard::prelude::*;
use crate::dashboard::screens::events::{EventItem, PersonKey, event_path};

const EVENTS: &str = "100";

/// A person with the events of the page.
struct Person<'a> {
    key: PersonKey,
    count: u64,
    last: &'a EventItem,
}

/// Groups events, newest first, by person: those with the same id, or without an id the same address.
fn group(events: &[EventItem]) -> Vec<Person<'_>> {
    let mut people: Vec<Person<'_>> = Vec::new();
    for event in events.iter().filter(|event| !event.person.is_unknown()) {
        let key = &event.person;
        let found = people.iter_mut().find(|person| match (&person.key.user_id, &key.user_id) {
            (Some(a), Some(b)) => a == b,
            _ => person.key.email.is_some() && person.key.email == key.email,
        });
        match found {
            Some(person) => {
                person.count += 1;
                person.key.user_id = person.key.user_id.take().or_else(|| key.user_id.clone());
                person.key.email = person.key.email.take().or_else(|| key.email.clone());
            }
            None => people.push(Person { key: key.clone(), count: 1, last: event }),
        }
    }
    people
}

pub(super) async fn show(context: &Context<'_>) -> Result<View, Failure> {
    let filters =
        [Filter::text("email", "Email address", "grace@example.net"), Filter::text("user_id", "User id", "u_42")];
    let query = context.query();
    let call = Call::new("list_events").filters(query, &["email", "user_id", "cursor"]).query("limit", EVENTS);
    let found = &context.read_list::<EventItem>("events", &call).await?;
    let bar = FilterBar { context, filters: &filters };
    let people = group(&found.entries);
    let table = Table::of("People", &people)
        .column("Person", |person| &person.key)
        .column("User id", |person| or_dash(person.key.user_id.as_ref().map(|id| maud! { code { (id) } })))
        .number("Events here", |person| grouped(person.count))
        .column("Last event", |person| link(event_path(&person.last.id), &person.last.name))
        .column("Seen", |person| time_or_dash(Some(&person.last.created_at)));
    let asked = PersonKey::read(query);
    let body = maud! {
        (bar)
        div.flow data-fragment="list" {
            @if table.is_empty() {
                (found.empty_page(context, empty(context, &bar)))
                // The person may have got emails without ever sending an event.
                @if !asked.is_unknown() { p { a href=(asked.path()) { "Look for emails and opt-outs of " (asked.label()) } } }
            } @else {
                (table)
                p.soft.small { "People in the latest " @match found.entries.len() { 1 => { "event" } count => { (grouped(count as u64)) " events" } } "." }
                (Pager { context, next_cursor: found.next_cursor.as_deref() })
            }
        }
    };
    let page =
        Page::new("People", body).lead("Everyone who has done something in your product, and what they got from you.");
    Ok(page.same_as(call).live().into())
}

fn empty<'a>(context: &Context<'_>, bar: &FilterBar<'_>) -> EmptyState<'a> {
    if bar.is_active() {
        return EmptyState {
            title: "There are no events for this address or id",
            text: "Addresses and ids must be complete.",
            action: Some((LIST, "Show all people")),
        };
    }
    EmptyState {
        title: "No people yet",
        text: "Send events with user_id or email, and everyone appears here with what they did and received.",
        action: context.allows("send_event").then_some(("/dashboard/events/new", "Send a test event")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_grouped_by_person() {
        let event = |user_id: Option<&str>, email: Option<&str>| -> EventItem {
            serde_json::from_value(serde_json::json!({
                "id": "ae_1", "name": "x", "user_id": user_id, "email": email, "created_at": "2026-11-26T10:00:00Z",
            }))
            .unwrap()
        };
        let events = [
            event(None, Some("a@b.example")),
            event(Some("u1"), Some("a@b.example")),
            event(Some("u1"), None),
            event(Some("u2"), Some("a@b.example")),
            event(None, None),
        ];
        let people = group(&events);
        assert_eq!(people.iter().map(|person| person.count).collect::<Vec<_>>(), [3, 1]);
        assert_eq!(people[0].key, PersonKey { user_id: Some("u1".into()), email: Some("a@b.example".into()) });
    }
}
