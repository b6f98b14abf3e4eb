//! Email index: a row for each term by which an email can be found, ordered by time.
//!
//! ```text
//! EmailTerm · account · field · text · newest [· oldest]  ─►  the emails in between, newest first
//! EmailListed · account · email                           ─►  its status term, and as of when
//! ```
//!
//! Emails that are indexed in one commit and have a term in common share a row, called a block ([`posting_block`]). A mailing
//! thus writes a few rows per term instead of one per email. A status has one row per email, because it changes.
//!
//! Rows are written when events are dispatched, not when they occur, so accepting and settling do not touch the index.
//! [`search`] reads it. Index rows are hints: the email's own rows are authoritative.

mod posting_block;
mod posting_list;
pub mod search;

use std::collections::BTreeMap;

use jiff::Timestamp;
use model::email_index::{IndexField, IndexTerm, index_terms, status_term};
use model::event::{Event, EventKind};
use model::id::{AccountId, EmailId};

use crate::email::StoredEmail;
use crate::engine::{Batch, Key, Result, Store, Value};
use crate::key::{KeyBuilder, KeyReader, Space, key};
use crate::rows;

/// Prefix of all rows of a term.
fn term_prefix(account: AccountId, term: &IndexTerm) -> KeyBuilder {
    key(Space::EmailTerm).account(account).u8(term.field as u8).text(&term.text)
}

fn key_of(account: AccountId, term: &IndexTerm, email: EmailId) -> Key {
    term_prefix(account, term).id(email.to_bytes()).build()
}

fn status_key(account: AccountId, email: EmailId) -> Key {
    key(Space::EmailListed).account(account).id(email.to_bytes()).build()
}

/// Returns whether an event may change the index terms of its email.
fn affects_index(kind: EventKind) -> bool {
    use EventKind as E;
    matches!(kind, E::Sent | E::Scheduled | E::Suppressed | E::Delivered | E::Bounced | E::Failed | E::Cancelled)
}

/// Returns whether the event is the first of its email, which adds the permanent terms.
fn is_first(event: &Event) -> bool {
    match event.kind {
        EventKind::Scheduled | EventKind::Suppressed => true,
        EventKind::Sent => event.detail.get("scheduled_at").is_none(),
        _ => false,
    }
}

/// The index changes that several events of one email require.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct IndexChange {
    first: bool,
    status: bool,
}

impl IndexChange {
    /// Adds one more event.
    pub fn add_event(&mut self, event: &Event) {
        self.first |= is_first(event);
        self.status |= affects_index(event.kind);
    }
}

/// Updates the index for emails as they were read. The commit conflicts if one was deleted or reindexed concurrently.
pub async fn update(store: &Store, batch: &mut Batch, changed: &[(&StoredEmail, IndexChange)]) -> Result<()> {
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
            batch.check(row_key.clone(), row);
            match &listed {
                Some(listed) => batch.put(row_key, listed.write()),
                None => batch.delete(row_key),
            };
            let entry_of = |status: &IndexedStatus| key_of(account, &status.term, id);
            rows::move_entry(batch, before.as_ref().map(entry_of), listed.as_ref().map(entry_of));
        } else if !change.first {
            continue;
        }
        found.check(batch);
    }
    for ((account, term), emails) in lists {
        posting_block::put(batch, &term_prefix(account, &term), emails);
    }
    Ok(())
}

/// Removes emails from the index, in the commit that deletes them. The commit conflicts if one is reindexed
/// concurrently.
pub(crate) async fn remove_emails(store: &Store, batch: &mut Batch, removed: &[StoredEmail]) -> Result<()> {
    let mut lists: BTreeMap<(AccountId, IndexTerm), Vec<EmailId>> = BTreeMap::new();
    for found in removed {
        let (account, id) = (found.email.account, found.email.id);
        for term in index_terms(&found.email, &found.recipients) {
            lists.entry((account, term)).or_default().push(id);
        }
    }
    for ((account, term), emails) in lists {
        posting_block::remove(store, batch, &term_prefix(account, &term), emails).await?;
    }
    let keys: Vec<Key> = removed.iter().map(|found| status_key(found.email.account, found.email.id)).collect();
    let rows = store.get_many(&keys).await?;
    for ((found, row_key), row) in removed.iter().zip(keys).zip(rows) {
        if let Some(listed) = row.as_deref().map(IndexedStatus::read).transpose()? {
            batch.delete(key_of(found.email.account, &listed.term, found.email.id));
            batch.delete(row_key.clone());
        }
        batch.check(row_key, row);
    }
    Ok(())
}

/// The status term under which an email is indexed, and the time of its latest event. The time makes two nodes conflict
/// that dispatch events of two recipients concurrently, even if the term does not change for one of them.
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

    fn read(row: &[u8]) -> Result<Self> {
        let mut reader = KeyReader::new(Space::EmailListed, row)?;
        let at = reader.time()?;
        let text = reader.text()?;
        Ok(Self { term: IndexTerm { field: IndexField::Status, text }, at })
    }
}
