//! What events add to the metrics.

use mail::event::Event;
use mail::metric::{Hour, counted, values};
use mail::recipient::Recipient;
use store::metric::Additions;

use super::subjects::Subjects;

/// By account, dimension, hour and value.
pub(super) fn additions<'a>(events: impl Iterator<Item = &'a Event>, subjects: &Subjects) -> Additions {
    let mut additions = Additions::new();
    for event in events {
        let (Some((counter, count)), Some(about)) = (counted(event), subjects.of(event)) else { continue };
        let is_meant = |r: &&Recipient| event.recipient.as_ref() == Some(&r.address);
        let recipient = about.recipients.iter().find(is_meant);
        let values = values(&about.email, recipient).into_iter().map(|(of, value)| (Some(of), value));
        for (dimension, value) in values.chain([(None, String::new())]) {
            let hour = additions.entry((event.account, dimension, Hour::of(event.created_at))).or_default();
            hour.entry(value).or_default().add(counter, count);
        }
    }
    additions
}
