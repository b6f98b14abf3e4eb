//! Tracking counters of opens and clicks: one row for each tracking target (an email, or one of its recipients).
//!
//! Only the owner of a recipient's task writes the recipient's row, so opens and clicks have rows of their own. They
//! are read, changed and checked: of two concurrent writers one conflicts and retries. The commit also checks that the
//! email exists, so that no counters remain of a deleted email.

use jiff::Timestamp;
use model::email::Email;
use model::id::{AccountId, EmailId};
use model::recipient::Recipient;
use model::tracking::TrackingTarget;
use model::tracking::counters::TrackingCounters;

use crate::codec::{self, stored};
use crate::email;
use crate::engine::{Batch, Key, Result, Store, Value};
use crate::key::{Space, key};

stored!(TrackingCounters);

/// Stands for the recipient in keys of targets without one.
const NO_RECIPIENT: u16 = u16::MAX;
/// Maximum number of recipients read to find the delivery time of a target without a recipient.
const ASKED_MAX: usize = 20;

fn key_of(target: TrackingTarget) -> Key {
    let recipient = target.recipient.unwrap_or(NO_RECIPIENT);
    key(Space::Tracking).account(target.account).id(target.email.to_bytes()).u16(recipient).build()
}

/// Tracking state of a target.
#[derive(Debug, Clone)]
pub struct TrackingRecord {
    pub email: Email,
    /// The recipient, if the target names one.
    pub recipient: Option<Recipient>,
    /// Time of the first delivery; if there was none, of the last event of a recipient with attempts.
    pub delivered_at: Option<Timestamp>,
    /// Opens and clicks.
    pub tally: TrackingCounters,
    email_row: Value,
    row: Option<Value>,
}

/// Reads the tracking state of a target; `None` if the email was deleted.
pub async fn load(store: &Store, target: TrackingTarget) -> Result<Option<TrackingRecord>> {
    let keys = [email::key_of(target.account, target.email), key_of(target)];
    let mut rows = store.get_many(&keys).await?.into_iter();
    let (Some(email_row), row) = (rows.next().flatten(), rows.next().flatten()) else { return Ok(None) };
    let tally = row.as_deref().map(codec::decode).transpose()?.unwrap_or_default();
    let recipients = match target.recipient {
        Some(index) => email::find_recipient(store, target.account, target.email, index).await?.into_iter().collect(),
        None => email::list_first_recipients(store, target.account, target.email, ASKED_MAX).await?,
    };
    let delivered_at = recipients.iter().filter_map(|r| r.delivered_at).min();
    // Attempted but not delivered: it may have arrived without a confirmation.
    let tried_at = || recipients.iter().filter(|r| r.attempts > 0).map(|r| r.last_event.1).min();
    Ok(Some(TrackingRecord {
        email: codec::decode(&email_row)?,
        delivered_at: delivered_at.or_else(tried_at),
        recipient: recipients.into_iter().next().filter(|_| target.recipient.is_some()),
        tally,
        email_row,
        row,
    }))
}

/// Writes the counters. The commit conflicts if they have changed since they were read, or if the email was deleted.
pub fn save(batch: &mut Batch, target: TrackingTarget, found: &TrackingRecord, tally: &TrackingCounters) {
    batch.check(email::key_of(target.account, target.email), Some(found.email_row.clone()));
    batch.replace(key_of(target), found.row.clone(), codec::encode(tally));
}

/// Reads the counters of several emails of an account, given with their numbers of recipients, in order; empty if there
/// was no open or click.
pub async fn list_tallies(
    store: &Store,
    account: AccountId,
    emails: impl Iterator<Item = (EmailId, usize)>,
) -> Result<Vec<TrackingCounters>> {
    let keys: Vec<Key> =
        emails.map(|(email, recipients)| key_of(TrackingTarget::new(account, email, recipients))).collect();
    let rows = store.get_many(&keys).await?;
    rows.iter().map(|row| Ok(row.as_deref().map(codec::decode).transpose()?.unwrap_or_default())).collect()
}

/// Deletes the counters of an email, in the commit that deletes the email. The commit conflicts with a concurrent open
/// or click, so that its event does not remain.
pub(crate) async fn purge(store: &Store, batch: &mut Batch, account: AccountId, email: EmailId) -> Result<()> {
    let keys = [Some(0), None].map(|recipient| key_of(TrackingTarget { account, email, recipient }));
    for (row_key, row) in keys.iter().zip(store.get_many(&keys).await?) {
        if row.is_some() {
            batch.delete(row_key.clone());
        }
        batch.check(row_key.clone(), row);
    }
    Ok(())
}
