//! Recent events: a cache of events and emails committed by this process, so that the dispatcher reads and decodes
//! almost nothing from the store.
//!
//! ```text
//! commit ─► [ young ] ─► [ old ] ─► evicted          dispatcher ◄─ take
//! ```
//!
//! Only the outbox decides what is dispatched, and that it is dispatched once. Entries not found here (evicted, or
//! written by another process) are read from the store. An email's row never changes, so a cached email equals the
//! stored one.

use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::Arc;

use model::email::Email;
use model::event::Event;
use model::id::{EmailId, EventId};

/// Events or emails of one generation; there are two generations.
const GENERATION_MAX: usize = 4_096;
/// Emails with more bytes of header text than this are not cached, …
const TEXT_BYTES_MAX: usize = 1_024;
/// … nor those with more addresses.
const ADDRESSES_MAX: usize = 8;

#[derive(Debug, Default)]
struct EventGeneration {
    events: HashMap<EventId, Event>,
    emails: HashMap<EmailId, Arc<Email>>,
}

/// Cache of recently committed events and emails.
#[derive(Debug, Default)]
pub struct RecentEvents {
    generations: Mutex<[EventGeneration; 2]>,
}

impl RecentEvents {
    /// Caches a committed event, and its email if that is new.
    pub fn insert(&self, event: Event, email: Option<Email>) {
        let email = email.filter(is_small).map(Arc::new);
        let mut generations = self.generations.lock();
        let [young, old] = &mut *generations;
        if young.events.len().max(young.emails.len()) >= GENERATION_MAX {
            *old = std::mem::take(young);
        }
        young.events.insert(event.id, event);
        young.emails.extend(email.map(|email| (email.id, email)));
    }

    /// Removes and returns an event.
    pub fn take(&self, id: EventId) -> Option<Event> {
        self.generations.lock().iter_mut().find_map(|generation| generation.events.remove(&id))
    }

    /// Returns an email, which stays cached for further events.
    pub fn email(&self, id: EmailId) -> Option<Arc<Email>> {
        self.generations.lock().iter().find_map(|generation| generation.emails.get(&id).cloned())
    }
}

fn is_small(email: &Email) -> bool {
    let header = &email.header;
    let addresses = [&header.to, &header.cc, &header.bcc, &header.reply_to].map(Vec::len);
    addresses.iter().sum::<usize>() + email.tags.len() <= ADDRESSES_MAX
        && header.subject.len() + header.message_id.len() <= TEXT_BYTES_MAX
}

#[cfg(test)]
mod tests {
    use super::*;
    use jiff::Timestamp;
    use model::event::EventKind;
    use model::id::AccountId;

    #[test]
    fn old_events_are_evicted_and_taken_ones_removed() {
        let (recent, now) = (RecentEvents::default(), Timestamp::UNIX_EPOCH);
        let id = |number: usize| EventId::new(now, number as u128);
        for number in 0..3 * GENERATION_MAX {
            let kind = EventKind::Delivered;
            let (account, email) = (AccountId::new(now, 1), EmailId::new(now, 1));
            let detail = serde_json::Value::Null;
            let event = Event {
                id: id(number),
                account,
                subject: email.into(),
                kind,
                recipient: None,
                created_at: now,
                detail,
            };
            recent.insert(event, None);
        }
        assert!(recent.take(id(GENERATION_MAX - 1)).is_none());
        assert!(recent.take(id(GENERATION_MAX)).is_some());
        assert!(recent.take(id(GENERATION_MAX)).is_none());
        assert!(recent.take(id(3 * GENERATION_MAX - 1)).is_some());
    }
}
