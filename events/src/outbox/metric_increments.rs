//! Metric increments of events.

use model::event::Event;
use model::metric::{Hour, counter_for_event, delivery_time_of_event, dimension_values};
use model::recipient::Recipient;
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
        let delivery_time = delivery_time_of_event(event, subjects.queued_at(stored));
        let is_event_recipient = |r: &&Recipient| event.recipient.as_ref() == Some(&r.address);
        let recipient = stored.recipients.iter().find(is_event_recipient);
        let values = dimension_values(&stored.email, recipient).into_iter().map(|(name, value)| (Some(name), value));
        for (dimension, value) in values.chain([(None, String::new())]) {
            let hour = additions.entry((event.account, dimension, Hour::containing(event.created_at))).or_default();
            let counts = hour.entry(value).or_default();
            counts.add(counter, count);
            delivery_time.into_iter().for_each(|bucket| counts.add_delivery_time(bucket));
        }
    }
    additions
}
