//! The events that an endpoint can get, in groups.

use crate::dashboard::form::ChoiceGroup;
use crate::dashboard::kit::filter::Filter;
use crate::reference::operation::ApiTable;

/// The titles of the groups, in the order of the pages.
const GROUPS: [&str; 6] =
    ["Delivery", "Recipients", "Received mail", "Automations", "Domains, suppressions, webhooks", "Affiliate program"];
/// The group of events that this version does not know.
const OTHERS: &str = "Others";

fn group_of(event: &str) -> &'static str {
    match event {
        "email.received" => "Received mail",
        "email.opened" | "email.clicked" | "email.complained" | "contact.unsubscribed" => "Recipients",
        _ => match event.split('.').next().unwrap_or_default() {
            "email" => "Delivery",
            "automation" => "Automations",
            "domain" | "suppression" | "webhook" => "Domains, suppressions, webhooks",
            "affiliate" | "referral" | "commission" | "payout" => "Affiliate program",
            _ => OTHERS,
        },
    }
}

/// The choices of a form; events of an endpoint that are not known here stay choices.
pub(super) fn groups(subscribed: &[String]) -> Vec<ChoiceGroup> {
    let mut groups: Vec<_> = GROUPS.into_iter().map(|title| ChoiceGroup { title, choices: Vec::new() }).collect();
    groups.push(ChoiceGroup { title: OTHERS, choices: Vec::new() });
    let events = &ApiTable::load().webhook_events;
    let known =
        events.iter().map(|event| (event.kind.clone(), format!("{}: {}", event.kind, note(&event.description))));
    let unknown = subscribed.iter().filter(|name| events.iter().all(|event| event.kind != **name));
    let unknown = unknown.map(|name| (name.clone(), name.clone()));
    for (name, label) in known.chain(unknown) {
        let title = group_of(&name);
        if let Some(group) = groups.iter_mut().find(|group| group.title == title) {
            group.choices.push((name, label));
        }
    }
    groups.retain(|group| !group.choices.is_empty());
    groups
}

/// A sentence as a note behind a name.
fn note(sentence: &str) -> String {
    let sentence = sentence.trim_end_matches('.');
    let mut chars = sentence.chars();
    match chars.next() {
        // Names of technologies keep their capitals.
        Some(first) if !sentence.starts_with("DNS") => first.to_lowercase().collect::<String>() + chars.as_str(),
        _ => sentence.to_owned(),
    }
}

/// Name and label of each event, for a select.
pub(super) fn names() -> Vec<(String, String)> {
    ApiTable::load().webhook_events.iter().map(|event| (event.kind.clone(), event.kind.clone())).collect()
}

/// A filter by event.
pub(super) fn filter(name: &'static str) -> Filter {
    Filter::select_or_all(name, "Event", "All", names())
}

/// The events that a subscription to all leaves out.
pub(super) fn named_events() -> String {
    let explicit = ApiTable::load().webhook_events.iter().filter(|event| event.explicit);
    explicit.map(|event| event.kind.as_str()).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_event_is_in_one_group() {
        let all: Vec<_> = groups(&[]).into_iter().flat_map(|group| group.choices).map(|(name, _)| name).collect();
        assert_eq!(all.len(), ApiTable::load().webhook_events.len());
        assert!(groups(&[]).iter().all(|group| group.title != OTHERS));
        let last = groups(&["moon.landed".to_owned()]).pop().unwrap();
        assert_eq!((last.title, last.choices.len()), (OTHERS, 1));
    }
}
