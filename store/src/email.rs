//! Emails: one row for the accepted message, one row for each recipient, and a body.
//!
//! The email's row never changes. While a recipient has a task, only the task's owner writes the recipient's row. It
//! does so in commits that settle an attempt and check the task, so the row needs no check of its own. When the
//! recipient is final, bounces and complaints change the row, with a check ([`get_stored_recipient`],
//! [`update_recipient`]).

use std::collections::HashMap;
use std::sync::Arc;

use bytes::Bytes;
use jiff::Timestamp;
use model::email::Email;
use model::id::{AccountId, EmailId};
use model::recipient::Recipient;
use model::schedule::Schedule;

use crate::codec::{self, stored};
use crate::engine::{Batch, Body, Key, Result, ScanOrder, Store, Value};
use crate::key::{Space, key};
use crate::rows::{self, RowPages};
use crate::{email_index, schedule, tracking};

/// Maximum number of recipients of an email (RFC 5321 4.5.3.1.8 requires at least 100).
pub const RECIPIENTS_MAX: usize = 1_000;

stored!(Email);

stored!(Recipient);

/// An email and its recipients, in order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EmailWithRecipients {
    pub email: Email,
    pub recipients: Vec<Recipient>,
    /// The schedule, if the email was scheduled.
    pub schedule: Option<Schedule>,
}

pub(crate) fn key_of(account: AccountId, id: EmailId) -> Key {
    key(Space::Email).account(account).id(id.to_bytes()).build()
}

fn recipient_key(account: AccountId, email: EmailId, index: u16) -> Key {
    key(Space::Recipient).account(account).id(email.to_bytes()).u16(index).build()
}

pub fn body_key(account: AccountId, id: EmailId) -> Key {
    key(Space::Body).account(account).id(id.to_bytes()).build()
}

/// Writes a new email with its recipients and body.
pub fn create(batch: &mut Batch, email: &Email, recipients: &[Recipient], body: Body) {
    batch.put(key_of(email.account, email.id), codec::encode(email));
    for recipient in recipients {
        put_recipient(batch, email.account, email.id, recipient);
    }
    batch.put_body(body_key(email.account, email.id), body);
}

/// Writes a recipient's state, unchecked.
pub fn put_recipient(batch: &mut Batch, account: AccountId, email: EmailId, recipient: &Recipient) {
    batch.put(recipient_key(account, email, recipient.index), codec::encode(recipient));
}

/// Reads an email without its recipients.
pub async fn get_without_recipients(store: &Store, account: AccountId, id: EmailId) -> Result<Option<Email>> {
    rows::get(store, &key_of(account, id)).await
}

/// Reads an email of an account with its recipients and schedule.
pub async fn get(store: &Store, account: AccountId, id: EmailId) -> Result<Option<EmailWithRecipients>> {
    let Some(email) = get_without_recipients(store, account, id).await? else { return Ok(None) };
    let recipients = list_first_recipients(store, account, id, RECIPIENTS_MAX).await?;
    let schedule = match email.scheduled {
        true => schedule::get(store, (account, id)).await?.map(|found| found.schedule),
        false => None,
    };
    Ok(Some(EmailWithRecipients { email, recipients, schedule }))
}

/// Lists an account's emails before `before`, newest first, at most `limit`.
pub async fn list(
    store: &Store,
    account: AccountId,
    before: Option<EmailId>,
    limit: usize,
) -> Result<Vec<EmailWithRecipients>> {
    let range = key(Space::Email).account(account).range_before(before.map(EmailId::to_bytes));
    let emails: Vec<Email> = rows::scan(store, range, ScanOrder::Descending, limit).await?;
    let (Some(newest), Some(oldest)) = (emails.first(), emails.last()) else { return Ok(Vec::new()) };
    let mut recipients = list_recipients_between(store, account, oldest.id, newest.id).await?;
    let mut schedules = load_schedules(store, account, &emails).await?;
    Ok(emails
        .into_iter()
        .map(|email| {
            let recipients = recipients.remove(&email.id).unwrap_or_default();
            let schedule = schedules.remove(&email.id);
            EmailWithRecipients { email, recipients, schedule }
        })
        .collect())
}

/// An email with the row it was read from.
#[derive(Debug, Clone)]
pub struct StoredEmail {
    pub email: Arc<Email>,
    pub recipients: Vec<Recipient>,
    row: Value,
}

impl StoredEmail {
    /// Makes the commit conflict if the email was deleted since it was read.
    pub(crate) fn check(&self, batch: &mut Batch) {
        batch.check(key_of(self.email.account, self.email.id), Some(self.row.clone()));
    }
}

/// Reads several emails of any accounts, in the order of `wanted`; missing ones are `None`. `known` supplies emails
/// from a cache, which are not decoded again; their recipients are read in any case.
pub async fn get_each(
    store: &Store,
    wanted: &[(AccountId, EmailId)],
    known: &(dyn Fn(EmailId) -> Option<Arc<Email>> + Send + Sync),
) -> Result<Vec<Option<StoredEmail>>> {
    // Most emails have one recipient: read two rows, and scan for more only if the second exists.
    let keys: Vec<Key> = wanted
        .iter()
        .flat_map(|(account, id)| {
            [key_of(*account, *id), recipient_key(*account, *id, 0), recipient_key(*account, *id, 1)]
        })
        .collect();
    let mut rows = store.get_many(&keys).await?.into_iter();
    let mut found = Vec::with_capacity(wanted.len());
    for (account, id) in wanted {
        let (row, first, second) = (rows.next().flatten(), rows.next().flatten(), rows.next().flatten());
        let Some(row) = row else {
            found.push(None);
            continue;
        };
        let recipients = match second {
            Some(_) => list_first_recipients(store, *account, *id, RECIPIENTS_MAX).await?,
            None => first.iter().map(|row| codec::decode(row)).collect::<Result<_, _>>()?,
        };
        let email = match known(*id).filter(|email| email.account == *account) {
            Some(email) => email,
            None => Arc::new(codec::decode(&row)?),
        };
        found.push(Some(StoredEmail { email, recipients, row }));
    }
    Ok(found)
}

pub(crate) async fn load_schedules(
    store: &Store,
    account: AccountId,
    emails: &[Email],
) -> Result<HashMap<EmailId, Schedule>> {
    let scheduled: Vec<EmailId> = emails.iter().filter(|email| email.scheduled).map(|email| email.id).collect();
    if scheduled.is_empty() {
        return Ok(HashMap::new());
    }
    let schedules = schedule::get_many(store, account, &scheduled).await?;
    Ok(scheduled.into_iter().zip(schedules).filter_map(|(id, schedule)| Some((id, schedule?))).collect())
}

/// Reads the recipients of an account's emails from `oldest` to `newest`, inclusive.
async fn list_recipients_between(
    store: &Store,
    account: AccountId,
    oldest: EmailId,
    newest: EmailId,
) -> Result<HashMap<EmailId, Vec<Recipient>>> {
    /// One scan suffices for a page of 100 emails with one recipient each; large mailings need more.
    const PAGE_ROWS: usize = 1_000;
    let end = key(Space::Recipient).account(account).id(newest.to_bytes()).range().end;
    let mut pages = RowPages::new(store, recipient_key(account, oldest, 0)..end, PAGE_ROWS);
    let mut found: HashMap<EmailId, Vec<Recipient>> = HashMap::new();
    while let Some(page) = pages.next_page().await? {
        for (row_key, row) in &page {
            let mut reader = crate::key::KeyReader::new(Space::Recipient, row_key)?;
            reader.account()?;
            let email = EmailId::from_bytes(reader.id()?);
            found.entry(email).or_default().push(codec::decode(row)?);
        }
    }
    Ok(found)
}

pub(crate) async fn find_recipient(
    store: &Store,
    account: AccountId,
    email: EmailId,
    index: u16,
) -> Result<Option<Recipient>> {
    rows::get(store, &recipient_key(account, email, index)).await
}

/// A recipient with the row it was read from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredRecipient {
    pub recipient: Recipient,
    row: Value,
}

/// Reads a recipient; `None` if its email was deleted.
pub async fn get_stored_recipient(
    store: &Store,
    account: AccountId,
    task: model::task::TaskId,
) -> Result<Option<StoredRecipient>> {
    let row = store.get(&recipient_key(account, task.email, task.recipient)).await?;
    row.map(|row| Ok(StoredRecipient { recipient: codec::decode(&row)?, row })).transpose()
}

/// Updates a recipient that has no task. The commit conflicts if the row has changed or was deleted since it was read.
pub fn update_recipient(
    batch: &mut Batch,
    account: AccountId,
    email: EmailId,
    before: &StoredRecipient,
    after: &Recipient,
) {
    batch.check(recipient_key(account, email, before.recipient.index), Some(before.row.clone()));
    put_recipient(batch, account, email, after);
}

pub fn is_recipient_conflict(conflict: &Key) -> bool {
    Space::Recipient.holds(conflict)
}

/// Lists the first recipients of an email, at most `limit`.
pub(crate) async fn list_first_recipients(
    store: &Store,
    account: AccountId,
    email: EmailId,
    limit: usize,
) -> Result<Vec<Recipient>> {
    let range = key(Space::Recipient).account(account).id(email.to_bytes()).range();
    rows::scan(store, range, ScanOrder::Ascending, limit).await
}

/// Finds the first recipient of an email from an index on whose next attempt is due by a time.
pub async fn next_recipient_due_by(
    store: &Store,
    account: AccountId,
    email: EmailId,
    from: u16,
    by: Timestamp,
) -> Result<Option<u16>> {
    /// Rows per read; most emails have fewer recipients.
    const LOOK: usize = 64;
    let end = key(Space::Recipient).account(account).id(email.to_bytes()).range().end;
    let mut pages = RowPages::new(store, recipient_key(account, email, from)..end, LOOK);
    while let Some(page) = pages.next_page().await? {
        for (_, row) in &page {
            let recipient: Recipient = codec::decode(row)?;
            let open = !recipient.state.is_terminal();
            if open && recipient.next_attempt_at.is_some_and(|at| at <= by) {
                return Ok(Some(recipient.index));
            }
        }
    }
    Ok(None)
}

/// Reads the message of an email as submitted for delivery, without the trace fields that are added per transfer.
pub async fn get_body(store: &Store, account: AccountId, id: EmailId) -> Result<Option<Bytes>> {
    store.body(&body_key(account, id)).await
}

/// Finds an email by its id in any account, for the operator. Probes all accounts.
pub async fn find_in_any_account(store: &Store, id: EmailId) -> Result<Option<EmailWithRecipients>> {
    /// Accounts probed per read.
    const PAGE_ACCOUNTS: usize = 500;
    let mut after = None;
    loop {
        let accounts = crate::account::list_ids(store, after, PAGE_ACCOUNTS).await?;
        let keys: Vec<Key> = accounts.iter().map(|account| key_of(*account, id)).collect();
        let rows = store.get_many(&keys).await?;
        if let Some((account, _)) = accounts.iter().zip(rows).find(|(_, row)| row.is_some()) {
            return get(store, *account, id).await;
        }
        match accounts.last() {
            Some(last) if accounts.len() == PAGE_ACCOUNTS => after = Some(*last),
            _ => return Ok(None),
        }
    }
}

/// Lists an account's emails after `from` that were accepted before `before`, oldest first, at most `limit`.
pub async fn list_accepted_before(
    store: &Store,
    account: AccountId,
    from: Option<EmailId>,
    before: EmailId,
    limit: usize,
) -> Result<Vec<EmailId>> {
    let start = match from {
        Some(from) => crate::key::successor(&key_of(account, from)),
        None => key(Space::Email).account(account).range().start,
    };
    let rows = store.scan(start..key_of(account, before), ScanOrder::Ascending, limit).await?;
    rows.iter().map(|(_, row)| codec::decode::<Email>(row).map(|email| email.id)).collect()
}

/// Deletes emails of an account: rows, recipients, attempts, events, index entries and bodies. The caller must have
/// checked that all recipients are final. A bounce or complaint recorded concurrently makes the commit conflict.
pub async fn purge(store: &Store, batch: &mut Batch, account: AccountId, ids: &[EmailId]) -> Result<()> {
    /// Maximum number of rows of one kind per email: 1,000 recipients with about 20 attempts each, and a margin.
    const ROWS_MAX: usize = 50_000;
    let wanted: Vec<_> = ids.iter().map(|id| (account, *id)).collect();
    let loaded: Vec<StoredEmail> = get_each(store, &wanted, &|_| None).await?.into_iter().flatten().collect();
    email_index::remove_emails(store, batch, &loaded).await?;
    for id in ids {
        for space in [Space::Recipient, Space::Attempt, Space::Event] {
            let range = key(space).account(account).id(id.to_bytes()).range();
            for (row_key, row) in store.scan(range, ScanOrder::Ascending, ROWS_MAX).await? {
                // Without the check, a bounce recorded concurrently would leave its event behind.
                if space == Space::Recipient {
                    batch.check(row_key.clone(), Some(row));
                }
                batch.delete(row_key);
            }
        }
        schedule::delete(batch, (account, *id));
        tracking::purge(store, batch, account, *id).await?;
        batch.delete(key_of(account, *id));
        batch.delete_body(body_key(account, *id));
    }
    Ok(())
}
