//! Emails of a batch of events, each read once.

use std::collections::HashMap;

use jiff::Timestamp;
use model::email_index::WORDS_MAX;
use model::event::{Event, EventKind};
use model::id::{AccountId, EmailId};
use model::schedule::ScheduleState;
use queue::recent_events::RecentEvents;
use store::email::StoredEmail;
use store::email_index::IndexChange;
use store::engine::{Batch, ReadError, Store};
use store::outbox::OutboxEntry;

/// Approximate limit of index rows written per commit; the remaining events wait for the next commit.
const ROWS_MAX: usize = 10_000;
/// Index rows of an email besides its recipients, tags and words: author, domain, template, category, status.
const ROWS_OF_EMAIL: usize = 8;
/// Emails read at once.
const READ_BATCH_EMAILS: usize = 64;

/// Estimates the index rows of an email.
fn index_rows(found: &StoredEmail) -> usize {
    // A word and its separator take at least two bytes.
    let word_count = found.email.header.subject.len().div_ceil(2).min(WORDS_MAX);
    ROWS_OF_EMAIL + found.recipients.len() + found.email.tags.len() + word_count
}

/// Emails of a batch of events, by account and id, and the index changes that the events cause.
#[derive(Debug, Default)]
pub(super) struct EventSubjects {
    emails: HashMap<(AccountId, EmailId), Option<StoredEmail>>,
    changes: HashMap<(AccountId, EmailId), IndexChange>,
    /// When delivered emails that were scheduled entered the queue.
    released_at: HashMap<(AccountId, EmailId), Timestamp>,
}

impl EventSubjects {
    /// Reads the emails of the first events. Returns the number of events covered.
    pub(super) async fn load(
        store: &Store,
        recent_events: &RecentEvents,
        entries: &[OutboxEntry],
    ) -> Result<(Self, usize), ReadError> {
        let mut subjects = Self::default();
        let mut wanted = Vec::new();
        for event in entries.iter().filter_map(|entry| entry.event.as_ref()) {
            let Some(email) = event.email() else { continue };
            let key = (event.account, email);
            let change_count = subjects.changes.len();
            subjects.changes.entry(key).or_default().add_event(event);
            if subjects.changes.len() > change_count {
                wanted.push(key);
            }
        }
        let mut rows = 0;
        'reading: for chunk in wanted.chunks(READ_BATCH_EMAILS) {
            let cached_email = |id| recent_events.email(id);
            for (email_key, found) in chunk.iter().zip(store::email::get_each(store, chunk, &cached_email).await?) {
                if rows > ROWS_MAX {
                    break 'reading;
                }
                rows += found.as_ref().map_or(0, index_rows);
                subjects.emails.insert(*email_key, found);
            }
            // Cached rows are read without waiting: yield to intake.
            tokio::task::yield_now().await;
        }
        let is_loaded = |entry: &&OutboxEntry| {
            let email = entry.event.as_ref().and_then(|event| Some((event.account, event.email()?)));
            email.is_none_or(|email_key| subjects.emails.contains_key(&email_key))
        };
        let count = entries.iter().take_while(is_loaded).count();
        subjects.load_releases(store, entries).await?;
        Ok((subjects, count))
    }

    /// Reads when the delivered emails that were scheduled entered the queue. Other emails need no further read.
    async fn load_releases(&mut self, store: &Store, entries: &[OutboxEntry]) -> Result<(), ReadError> {
        let mut scheduled: HashMap<AccountId, Vec<EmailId>> = HashMap::new();
        let events = entries.iter().filter_map(|entry| entry.event.as_ref());
        for event in events.filter(|event| event.kind == EventKind::Delivered) {
            if let Some(found) = self.email_of(event).filter(|found| found.email.scheduled) {
                scheduled.entry(event.account).or_default().push(found.email.id);
            }
        }
        for (account, emails) in scheduled {
            let schedules = store::schedule::get_many(store, account, &emails).await?;
            let released = emails.into_iter().zip(schedules).filter_map(|(id, schedule)| match schedule?.state {
                ScheduleState::Released(at) => Some(((account, id), at)),
                _ => None,
            });
            self.released_at.extend(released);
        }
        Ok(())
    }

    /// Returns when an email entered the queue: when it was accepted, or released if it was scheduled.
    pub(super) fn queued_at(&self, found: &StoredEmail) -> Timestamp {
        let released = self.released_at.get(&(found.email.account, found.email.id));
        released.copied().unwrap_or(found.email.created_at)
    }

    /// Returns the email of an event; `None` if the event has none or it was purged.
    pub(super) fn email_of(&self, event: &Event) -> Option<&StoredEmail> {
        self.emails.get(&(event.account, event.email()?))?.as_ref()
    }

    /// Updates the email index. Later events of the same emails then find nothing left to change.
    pub(super) async fn update_email_index(&self, store: &Store, batch: &mut Batch) -> Result<(), ReadError> {
        let found = self
            .emails
            .iter()
            .filter_map(|(key, found)| Some((found.as_ref()?, self.changes.get(key).copied().unwrap_or_default())));
        store::email_index::update(store, batch, &found.collect::<Vec<_>>()).await
    }
}
