//! Metric increments of events.

use mail::event::Event;
use mail::metric::{Hour, counter_for_event, dimension_values};
use mail::recipient::Recipient;
use store::metric::MetricIncrements;

use super::event_subjects::EventSubjects;

/// Returns the increments by account, dimension, hour and value.
pub(super) fn metric_increments<'a>(
    events: impl Iterator<Item = &'a Event>,
    subjects: &EventSubjects,
) -> MetricIncrements {
    let mut additions = MetricIncrements::new();
    for event in events {
        let (Some((counter, count)), Some(stored)) = (counter_for_event(event), subjects.email_of(event)) else {
            continue;
        };
        let is_event_recipient = |r: &&Recipient| event.recipient.as_ref() == Some(&r.address);
        let recipient = stored.recipients.iter().find(is_event_recipient);
        let values = dimension_values(&stored.email, recipient).into_iter().map(|(name, value)| (Some(name), value));
        for (dimension, value) in values.chain([(None, String::new())]) {
            let hour = additions.entry((event.account, dimension, Hour::containing(event.created_at))).or_default();
            hour.entry(value).or_default().add(counter, count);
        }
    }
    additions
}
