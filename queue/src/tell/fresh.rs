//! What was committed a moment ago, until it is told: of what this process wrote itself, telling reads back
//! and decodes next to nothing.
//!
//! ```text
//! commit ─► [ young ] ─► [ old ] ─► forgotten          tell ◄─ take
//! ```
//!
//! Only a shortcut: what is told, and that it is told once, the outbox alone decides. What is not found here
//! (too much of it, or written by another process) is read from the store. An email's row never changes, so
//! what is kept of it is what lies there.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use mail::email::Email;
use mail::event::Event;
use mail::id::{EmailId, EventId};

/// Events or emails of one generation; there are two.
const GENERATION_MAX: usize = 4_096;
/// An email with more text than this in its header's fields is not kept, …
const TEXT_BYTES_MAX: usize = 1_024;
/// … nor one with more addresses there.
const ADDRESSES_MAX: usize = 8;

#[derive(Debug, Default)]
struct EventGeneration {
    events: HashMap<EventId, Event>,
    emails: HashMap<EmailId, Arc<Email>>,
}

/// What was committed a moment ago.
#[derive(Debug, Default)]
pub(crate) struct RecentEvents {
    generations: Mutex<[EventGeneration; 2]>,
}

impl RecentEvents {
    fn lock(&self) -> MutexGuard<'_, [EventGeneration; 2]> {
        self.generations.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Keeps an event that was committed, and the email that it is about, when that is new.
    pub(crate) fn insert(&self, event: Event, email: Option<Email>) {
        let email = email.filter(is_small).map(Arc::new);
        let mut generations = self.lock();
        let [young, old] = &mut *generations;
        if young.events.len().max(young.emails.len()) >= GENERATION_MAX {
            *old = std::mem::take(young);
        }
        young.events.insert(event.id, event);
        young.emails.extend(email.map(|email| (email.id, email)));
    }

    /// Gives an event away.
    pub(crate) fn take(&self, id: EventId) -> Option<Event> {
        self.lock().iter_mut().find_map(|generation| generation.events.remove(&id))
    }

    /// An email, which stays: more will happen to it.
    pub(crate) fn email(&self, id: EmailId) -> Option<Arc<Email>> {
        self.lock().iter().find_map(|generation| generation.emails.get(&id).cloned())
    }
}

fn is_small(email: &Email) -> bool {
    let facts = &email.facts;
    let addresses = [&facts.to, &facts.cc, &facts.bcc, &facts.reply_to].map(Vec::len);
    addresses.iter().sum::<usize>() + email.tags.len() <= ADDRESSES_MAX
        && facts.subject.len() + facts.message_id.len() <= TEXT_BYTES_MAX
}

#[cfg(test)]
mod tests {
    use super::*;
    use jiff::Timestamp;
    use mail::event::EventKind;
    use mail::id::AccountId;

    #[test]
    fn what_is_old_is_forgotten_and_what_is_taken_is_gone() {
        let (fresh, now) = (RecentEvents::default(), Timestamp::UNIX_EPOCH);
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
            fresh.insert(event, None);
        }
        assert!(fresh.take(id(GENERATION_MAX - 1)).is_none());
        assert!(fresh.take(id(GENERATION_MAX)).is_some());
        assert!(fresh.take(id(GENERATION_MAX)).is_none());
        assert!(fresh.take(id(3 * GENERATION_MAX - 1)).is_some());
    }
}
