//! One person: events, emails, opt-outs and suppressions on one line of time.

use std::collections::BTreeSet;

use super::LIST;
use crate::dashboard::kit::timeline::Timeline;
use crate::dashboard::page::render;
use crate::dashboard::prelude::*;
use crate::dashboard::screens::emails::EmailItem;
use crate::dashboard::screens::events::{EventItem, PersonKey, event_path};
use crate::dashboard::screens::suppressions::Suppression;

/// Addresses of one person that are looked up.
const ADDRESSES_MAX: usize = 3;
/// Entries of each kind.
const LIMIT: &str = "100";

#[answer]
struct OptOut {
    email: String,
    category: String,
    source: String,
    created_at: String,
}

/// All that is known of a person.
#[derive(Default)]
struct History {
    events: Vec<EventItem>,
    addresses: BTreeSet<String>,
    user_ids: BTreeSet<String>,
    emails: Vec<EmailItem>,
    opt_outs: Vec<OptOut>,
    suppressions: Vec<Suppression>,
}

/// An answer about an address. An address that is no address has got nothing.
fn if_known<T>(answer: Result<T, Failure>) -> Result<Option<T>, Failure> {
    match answer {
        Err(failure) if failure.status == 400 => Ok(None),
        answer => if_found(answer),
    }
}

impl History {
    async fn read(context: &Context<'_>, person: &PersonKey) -> Result<Self, Failure> {
        let mut history = Self::default();
        for (name, value) in [("user_id", &person.user_id), ("email", &person.email)] {
            let Some(value) = value else { continue };
            let call = Call::new("list_events").query(name, value).query("limit", LIMIT);
            let list: List<EventItem> = context.read_list("events", &call).await?;
            for event in list.entries {
                if history.events.iter().all(|other| other.id != event.id) {
                    history.events.push(event);
                }
            }
        }
        history.addresses.extend(person.email.clone());
        history.user_ids.extend(person.user_id.clone());
        history.addresses.extend(history.events.iter().filter_map(|event| event.person.email.clone()));
        history.user_ids.extend(history.events.iter().filter_map(|event| event.person.user_id.clone()));
        for address in history.addresses.clone().iter().take(ADDRESSES_MAX) {
            history.read_address(context, address).await?;
        }
        Ok(history)
    }

    async fn read_address(&mut self, context: &Context<'_>, address: &str) -> Result<(), Failure> {
        let of_address = |operation, name| Call::new(operation).query(name, address).query("limit", LIMIT);
        let emails: Result<Vec<EmailItem>, _> = context.read_allowed("emails", &of_address("list_emails", "to")).await;
        self.emails.extend(if_known(emails)?.into_iter().flatten());
        let opt_outs = of_address("list_category_opt_outs", "email");
        let opt_outs: Result<Vec<OptOut>, _> = context.read_allowed("category_opt_outs", &opt_outs).await;
        self.opt_outs.extend(if_known(opt_outs)?.into_iter().flatten());
        if context.allows("get_suppression") {
            self.suppressions.extend(if_known(Suppression::read(context, address).await)?);
        }
        Ok(())
    }

    fn is_empty(&self) -> bool {
        self.events.is_empty() && self.emails.is_empty() && self.opt_outs.is_empty() && self.suppressions.is_empty()
    }

    /// Everything that happened, newest first.
    fn timeline(&self) -> Timeline {
        let mut steps: Vec<(&str, Tone, String, String)> = Vec::new();
        for event in &self.events {
            let details = render(maud! {
                p {
                    a href=(event_path(&event.id)) { "Event" }
                    @if !event.short_data().is_empty() { " " code { (event.short_data()) } }
                }
            });
            steps.push((&event.created_at, Tone::Active, event.name.clone(), details));
        }
        for email in &self.emails {
            let subject = if email.subject.is_empty() { "(no subject)" } else { &email.subject };
            let details = render(maud! {
                p {
                    a href={ "/dashboard/emails/" (encode(&email.id)) } { "Email" } " " (Badge::of(&email.status))
                    @if let Some(last) = email.last_event.strip_prefix("email.").filter(|last| *last != email.status) {
                        " last: " (sentence_case(last).to_lowercase())
                    }
                }
            });
            steps.push((&email.created_at, Tone::of(&email.status), subject.to_owned(), details));
        }
        for opt_out in &self.opt_outs {
            let details = render(maud! { p { (opt_out.email) ", by " (opt_out.source) } });
            steps.push((&opt_out.created_at, Tone::Warning, format!("Opted out of {}", opt_out.category), details));
        }
        for suppression in &self.suppressions {
            let details = render(maud! { p { (suppression.email) " gets no mail, because of " (suppression.source) } });
            let title = format!("Suppressed: {}", sentence_case(&suppression.reason).to_lowercase());
            steps.push((&suppression.created_at, Tone::Bad, title, details));
        }
        // All times of the API have the same form, so they sort as texts.
        steps.sort_by(|a, b| b.0.cmp(a.0));
        let mut timeline = Timeline::new("What the person did and received, newest first");
        for (time, tone, title, details) in steps {
            timeline.push(tone, title, Some(time), crate::dashboard::context::raw(&details));
        }
        timeline
    }

    fn facts(&self) -> Facts {
        let texts = |texts: &BTreeSet<String>| texts.iter().cloned().collect::<Vec<_>>().join(", ");
        let or_dash = |text: String| if text.is_empty() { "–".to_owned() } else { text };
        let count = |count: usize| if count >= 100 { format!("{count} or more") } else { count.to_string() };
        let first = self.events.iter().map(|event| event.created_at.as_str()).min();
        let last = self.events.iter().map(|event| event.created_at.as_str()).max();
        let opted_out: BTreeSet<_> = self.opt_outs.iter().map(|opt_out| opt_out.category.clone()).collect();
        Facts::new()
            .row("Email address", or_dash(texts(&self.addresses)))
            .row("User id", or_dash(texts(&self.user_ids)))
            .row("First event here", time_or_dash(first))
            .row("Last event", time_or_dash(last))
            .row("Events", count(self.events.len()))
            .row("Emails", count(self.emails.len()))
            .row("Opted out of", if opted_out.is_empty() { "nothing".to_owned() } else { texts(&opted_out) })
            .row(
                "Gets mail",
                maud! {
                    @match self.suppressions.first() {
                        None => { "yes" }
                        Some(one) => { (Badge::new(format!("no: \
                            {}", sentence_case(&one.reason).to_lowercase()), Tone::Bad)) }
                    }
                },
            )
    }
}

pub(super) async fn show(context: &Context<'_>) -> Result<View, Failure> {
    let person = &PersonKey::read(context.query());
    if person.is_unknown() {
        return Ok(View::SeeOther(LIST.to_owned()));
    }
    let history = &History::read(context, person).await?;
    let empty = EmptyState {
        title: "Nothing is known about this person",
        text: "There are no events with this user id or address, and no emails to the address.",
        action: Some((LIST, "All people")),
    };
    let body = maud! {
        @if history.is_empty() {
            (empty)
        } @else {
            div.card { (history.facts()) }
            section {
                h2 { "What happened" }
                div.card { (history.timeline()) }
            }
        }
    };
    let actions = maud! {
        @if context.allows("send_event") {
            a.button href={ "/dashboard/events/new?" (person.fields().to_query()) } { "Send a test event" }
        }
    };
    let events = match (&person.user_id, &person.email) {
        (Some(id), _) => Call::new("list_events").query("user_id", id),
        (None, email) => Call::new("list_events").query("email", email.clone().unwrap_or_default()),
    };
    let page = Page::new(person.label(), body).below(LIST, "People").actions(actions).same_as(events);
    let emails = history.addresses.iter().take(1).map(|address| Call::new("list_emails").query("to", address));
    Ok(emails.fold(page, Page::same_as).live().into())
}
