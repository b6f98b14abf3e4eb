//! The catalog of emails: a row for each term that an email is found by, in the order of time.
//!
//! ```text
//! EmailTerm · account · about · text · newest [· oldest]  ─►  the emails in between, newest first
//! EmailListed · account · email                           ─►  the term of its status, and as of when
//! ```
//!
//! Emails that are told of together and have a term in common share a row, a run ([`run`]): a mailing has
//! some rows for each of its terms, not one for each email. A status has a row for each email, for it ends.
//!
//! Rows are written when events are told, not when they happen: accepting and settling know nothing of them.
//! [`search`] reads them. They are hints: what an email is, its own rows say.

mod posting;
mod run;
pub mod search;

use std::collections::BTreeMap;

use jiff::Timestamp;
use mail::catalog::{IndexField, IndexTerm, index_terms, status_term};
use mail::event::{Event, EventKind};
use mail::id::{AccountId, EmailId};

use crate::email::StoredEmail;
use crate::engine::{Batch, Key, ReadError, Store, Value};
use crate::key::{KeyBuilder, KeyReader, Space, key};
use crate::row;

/// All the emails under a term.
fn term_prefix(account: AccountId, term: &IndexTerm) -> KeyBuilder {
    key(Space::EmailTerm).account(account).u8(term.field as u8).text(&term.text)
}

fn key_of(account: AccountId, term: &IndexTerm, email: EmailId) -> Key {
    term_prefix(account, term).id(email.to_bytes()).build()
}

fn status_key(account: AccountId, email: EmailId) -> Key {
    key(Space::EmailListed).account(account).id(email.to_bytes()).build()
}

/// Whether an event may change what an email is found by.
fn affects_index(kind: EventKind) -> bool {
    use EventKind as E;
    matches!(kind, E::Sent | E::Scheduled | E::Suppressed | E::Delivered | E::Bounced | E::Failed | E::Cancelled)
}

/// Whether an event is the first of its email: it brings the terms that stay.
fn is_first(event: &Event) -> bool {
    match event.kind {
        EventKind::Scheduled | EventKind::Suppressed => true,
        EventKind::Sent => event.detail.get("scheduled_at").is_none(),
        _ => false,
    }
}

/// What some events of one email mean for the catalog.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct IndexChange {
    first: bool,
    status: bool,
}

impl IndexChange {
    /// Takes note of one more event.
    pub fn add_event(&mut self, event: &Event) {
        self.first |= is_first(event);
        self.status |= affects_index(event.kind);
    }
}

/// Brings the catalog up to date with emails as they were read; the commit conflicts when one was forgotten
/// or listed anew meanwhile.
///
/// # Errors
/// The store cannot be read.
pub async fn update(
    store: &Store,
    batch: &mut Batch,
    changed: &[(&StoredEmail, IndexChange)],
) -> Result<(), ReadError> {
    let changed: Vec<_> = changed.iter().filter(|(_, change)| change.first || change.status).collect();
    let keys: Vec<Key> = changed.iter().map(|(found, _)| status_key(found.email.account, found.email.id)).collect();
    let rows = store.get_many(&keys).await?;
    let mut lists: BTreeMap<(AccountId, IndexTerm), Vec<EmailId>> = BTreeMap::new();
    for (((found, change), row_key), row) in changed.into_iter().zip(keys).zip(rows) {
        let (account, id) = (found.email.account, found.email.id);
        if change.first {
            for term in index_terms(&found.email, &found.recipients) {
                lists.entry((account, term)).or_default().push(id);
            }
        }
        let listed = IndexedStatus::from_email(found);
        let before = row.as_deref().map(IndexedStatus::read).transpose()?;
        if before != listed {
            let (was, is) = (before.map(|l| l.term), listed.as_ref().map(|l| l.term.clone()));
            batch.check(row_key.clone(), row);
            match &listed {
                Some(listed) => batch.put(row_key, listed.write()),
                None => batch.delete(row_key),
            };
            if was != is {
                if let Some(term) = was {
                    batch.delete(key_of(account, &term, id));
                }
                if let Some(term) = is {
                    batch.put(key_of(account, &term, id), Value::new());
                }
            }
        } else if !change.first {
            continue;
        }
        found.check(batch);
    }
    for ((account, term), emails) in lists {
        run::put(batch, &term_prefix(account, &term), emails);
    }
    Ok(())
}

/// Takes emails out of the catalog, in the commit that forgets them; it conflicts when one is listed anew
/// that very moment.
pub(crate) async fn remove_emails(store: &Store, batch: &mut Batch, gone: &[StoredEmail]) -> Result<(), ReadError> {
    let mut lists: BTreeMap<(AccountId, IndexTerm), Vec<EmailId>> = BTreeMap::new();
    for found in gone {
        let (account, id) = (found.email.account, found.email.id);
        for term in index_terms(&found.email, &found.recipients) {
            lists.entry((account, term)).or_default().push(id);
        }
    }
    for ((account, term), emails) in lists {
        run::remove(store, batch, &term_prefix(account, &term), emails).await?;
    }
    let keys: Vec<Key> = gone.iter().map(|found| status_key(found.email.account, found.email.id)).collect();
    let rows = store.get_many(&keys).await?;
    for ((found, row_key), row) in gone.iter().zip(keys).zip(rows) {
        if let Some(listed) = row.as_deref().map(IndexedStatus::read).transpose()? {
            batch.delete(key_of(found.email.account, &listed.term, found.email.id));
            batch.delete(row_key.clone());
        }
        batch.check(row_key, row);
    }
    Ok(())
}

/// Under which term of its status an email is listed, and as of when: two nodes that tell of two recipients
/// at the same time meet as a conflict, even if to one of them nothing seems to change.
#[derive(Debug, Clone, PartialEq, Eq)]
struct IndexedStatus {
    term: IndexTerm,
    at: Timestamp,
}

impl IndexedStatus {
    fn from_email(found: &StoredEmail) -> Option<Self> {
        let at = found.recipients.iter().map(|recipient| recipient.last_event.1).max();
        let term = status_term(&found.recipients)?;
        Some(Self { term, at: at.unwrap_or(found.email.created_at) })
    }

    fn write(&self) -> Value {
        key(Space::EmailListed).time(self.at).text(&self.term.text).build()
    }

    fn read(row: &[u8]) -> Result<Self, ReadError> {
        let mut reader = KeyReader::new(Space::EmailListed, row).map_err(row::damaged)?;
        let at = reader.time().map_err(row::damaged)?;
        let text = reader.text().map_err(row::damaged)?;
        Ok(Self { term: IndexTerm { field: IndexField::Status, text }, at })
    }
}
