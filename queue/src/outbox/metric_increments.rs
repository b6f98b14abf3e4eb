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
        let (Some((counter, count)), Some(about)) = (counter_for_event(event), subjects.email_of(event)) else {
            continue;
        };
        let is_meant = |r: &&Recipient| event.recipient.as_ref() == Some(&r.address);
        let recipient = about.recipients.iter().find(is_meant);
        let values = dimension_values(&about.email, recipient).into_iter().map(|(of, value)| (Some(of), value));
        for (dimension, value) in values.chain([(None, String::new())]) {
            let hour = additions.entry((event.account, dimension, Hour::containing(event.created_at))).or_default();
            hour.entry(value).or_default().add(counter, count);
        }
    }
    additions
}
