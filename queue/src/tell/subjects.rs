//! What events are about: their emails, read once however many of the events there are.

use std::collections::HashMap;

use mail::catalog::WORDS_MAX;
use mail::event::Event;
use mail::id::{AccountId, EmailId};
use store::catalog::Change;
use store::email::Loaded;
use store::engine::{Batch, ReadError, Store};
use store::outbox::Untold;

use super::fresh::Fresh;

/// Rows that may follow from the emails of one commit; when there are more, the rest waits for the next.
const ROWS_MAX: usize = 10_000;
/// Rows that follow from an email, beside those of its recipients, tags and words: author, domain, template,
/// category, status.
const ROWS_OF_EMAIL: usize = 8;
/// Emails read at once.
const TOGETHER: usize = 64;

/// How many rows follow from an email, about.
fn rows_of(found: &Loaded) -> usize {
    // A word and what stands before the next: two bytes at least.
    let words = found.email.facts.subject.len().div_ceil(2).min(WORDS_MAX);
    ROWS_OF_EMAIL + found.recipients.len() + found.email.tags.len() + words
}

/// The emails of some events, by account and id, with what the events mean for the catalog.
#[derive(Debug, Default)]
pub(super) struct Subjects {
    emails: HashMap<(AccountId, EmailId), Option<Loaded>>,
    changes: HashMap<(AccountId, EmailId), Change>,
}

impl Subjects {
    /// Reads the emails of the first events; says how many these are.
    pub(super) async fn read(
        (store, fresh): (&Store, &Fresh),
        untold: &[Untold],
    ) -> Result<(Self, usize), ReadError> {
        let mut subjects = Self::default();
        let mut wanted = Vec::new();
        for event in untold.iter().filter_map(|one| one.event.as_ref()) {
            let Some(email) = event.email() else { continue };
            let of = (event.account, email);
            let known = subjects.changes.len();
            subjects.changes.entry(of).or_default().note(event);
            if subjects.changes.len() > known {
                wanted.push(of);
            }
        }
        let mut rows = 0;
        'reading: for some in wanted.chunks(TOGETHER) {
            let known = |id| fresh.email(id);
            for (of, found) in some.iter().zip(store::email::get_each(store, some, &known).await?) {
                if rows > ROWS_MAX {
                    break 'reading;
                }
                rows += found.as_ref().map_or(0, rows_of);
                subjects.emails.insert(*of, found);
            }
            // Rows in memory are read without waiting: who hands in mail has its turn.
            tokio::task::yield_now().await;
        }
        let is_read = |one: &&Untold| {
            let email = one.event.as_ref().and_then(|event| Some((event.account, event.email()?)));
            email.is_none_or(|of| subjects.emails.contains_key(&of))
        };
        let count = untold.iter().take_while(is_read).count();
        Ok((subjects, count))
    }

    /// The email of an event; none when it is about something else, or is not kept any more.
    pub(super) fn of(&self, event: &Event) -> Option<&Loaded> {
        self.emails.get(&(event.account, event.email()?))?.as_ref()
    }

    /// Brings the catalog up to date. Events of these emails that are told later find nothing left to do.
    pub(super) async fn list(&self, store: &Store, batch: &mut Batch) -> Result<(), ReadError> {
        let found = self.emails.iter().filter_map(|(of, found)| {
            Some((found.as_ref()?, self.changes.get(of).copied().unwrap_or_default()))
        });
        store::catalog::update(store, batch, &found.collect::<Vec<_>>()).await
    }
}
