//! What events are about: their emails, read once however many of the events there are.

use std::collections::HashMap;

use mail::catalog::WORDS_MAX;
use mail::event::Event;
use mail::id::{AccountId, EmailId};
use store::catalog::IndexChange;
use store::email::StoredEmail;
use store::engine::{Batch, ReadError, Store};
use store::outbox::OutboxEntry;

use super::fresh::RecentEvents;

/// Rows that may follow from the emails of one commit; when there are more, the rest waits for the next.
const ROWS_MAX: usize = 10_000;
/// Rows that follow from an email, beside those of its recipients, tags and words: author, domain, template,
/// category, status.
const ROWS_OF_EMAIL: usize = 8;
/// Emails read at once.
const READ_BATCH_EMAILS: usize = 64;

/// How many rows follow from an email, about.
fn index_rows(found: &StoredEmail) -> usize {
    // A word and what stands before the next: two bytes at least.
    let words = found.email.facts.subject.len().div_ceil(2).min(WORDS_MAX);
    ROWS_OF_EMAIL + found.recipients.len() + found.email.tags.len() + words
}

/// The emails of some events, by account and id, with what the events mean for the catalog.
#[derive(Debug, Default)]
pub(super) struct EventSubjects {
    emails: HashMap<(AccountId, EmailId), Option<StoredEmail>>,
    changes: HashMap<(AccountId, EmailId), IndexChange>,
}

impl EventSubjects {
    /// Reads the emails of the first events; says how many these are.
    pub(super) async fn load(
        (store, fresh): (&Store, &RecentEvents),
        untold: &[OutboxEntry],
    ) -> Result<(Self, usize), ReadError> {
        let mut subjects = Self::default();
        let mut wanted = Vec::new();
        for event in untold.iter().filter_map(|one| one.event.as_ref()) {
            let Some(email) = event.email() else { continue };
            let of = (event.account, email);
            let known = subjects.changes.len();
            subjects.changes.entry(of).or_default().add_event(event);
            if subjects.changes.len() > known {
                wanted.push(of);
            }
        }
        let mut rows = 0;
        'reading: for some in wanted.chunks(READ_BATCH_EMAILS) {
            let known = |id| fresh.email(id);
            for (of, found) in some.iter().zip(store::email::get_each(store, some, &known).await?) {
                if rows > ROWS_MAX {
                    break 'reading;
                }
                rows += found.as_ref().map_or(0, index_rows);
                subjects.emails.insert(*of, found);
            }
            // Rows in memory are read without waiting: who hands in mail has its turn.
            tokio::task::yield_now().await;
        }
        let is_read = |one: &&OutboxEntry| {
            let email = one.event.as_ref().and_then(|event| Some((event.account, event.email()?)));
            email.is_none_or(|of| subjects.emails.contains_key(&of))
        };
        let count = untold.iter().take_while(is_read).count();
        Ok((subjects, count))
    }

    /// The email of an event; none when it is about something else, or is not kept any more.
    pub(super) fn email_of(&self, event: &Event) -> Option<&StoredEmail> {
        self.emails.get(&(event.account, event.email()?))?.as_ref()
    }

    /// Brings the catalog up to date. Events of these emails that are told later find nothing left to do.
    pub(super) async fn update_email_index(&self, store: &Store, batch: &mut Batch) -> Result<(), ReadError> {
        let found = self
            .emails
            .iter()
            .filter_map(|(of, found)| Some((found.as_ref()?, self.changes.get(of).copied().unwrap_or_default())));
        store::catalog::update(store, batch, &found.collect::<Vec<_>>()).await
    }
}
