//! Tallies of opens and clicks: a row for what a token can name, beside the email it is about.
//!
//! The recipient's own row is written by whoever owns its task, and by nobody else; so what is known of
//! opens lies in a row of its own. It is read, changed and checked: of two who write it at once one begins
//! anew. The commit also checks that the email is there, so that nothing is left behind one that was
//! forgotten meanwhile.

use jiff::Timestamp;
use mail::email::Email;
use mail::id::{AccountId, EmailId};
use mail::recipient::Recipient;
use mail::tracking::TrackingTarget;
use mail::tracking::tally::{HitCount, RecentHit, TrackingCounters};
use serde::{Deserialize, Serialize};

use crate::email;
use crate::engine::{Batch, Key, ReadError, Store, Value};
use crate::key::{Space, key};
use crate::row::{self, stored};

#[derive(Serialize, Deserialize)]
#[serde(remote = "TrackingCounters")]
struct TrackingTallyRow {
    #[serde(default, skip_serializing_if = "HitCount::is_zero")]
    opened: HitCount,
    #[serde(default, skip_serializing_if = "HitCount::is_zero")]
    clicked: HitCount,
    #[serde(default, skip_serializing_if = "HitCount::is_zero")]
    machine_opened: HitCount,
    #[serde(default, skip_serializing_if = "HitCount::is_zero")]
    machine_clicked: HitCount,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    recent: Vec<RecentHit>,
}
stored!(TrackingCounters as TrackingTallyRow);

/// In place of a recipient, where the token names none.
const NO_RECIPIENT: u16 = u16::MAX;
/// Recipients of an email that are asked when it was delivered, where the token names none.
const ASKED_MAX: usize = 20;

fn key_of(of: TrackingTarget) -> Key {
    let recipient = of.recipient.unwrap_or(NO_RECIPIENT);
    key(Space::Tracking).account(of.account).id(of.email.to_bytes()).u16(recipient).build()
}

/// What a token names, as it stands.
#[derive(Debug, Clone)]
pub struct TrackingRecord {
    /// The email.
    pub email: Email,
    /// The recipient, where the token names one.
    pub recipient: Option<Recipient>,
    /// When it was delivered, the first time; or last tried, where nothing more is known.
    pub delivered_at: Option<Timestamp>,
    /// Its opens and clicks.
    pub tally: TrackingCounters,
    email_row: Value,
    row: Option<Value>,
}

/// Looks at what a token names; none when the email is not kept any more.
///
/// # Errors
/// The store cannot be read.
pub async fn load(store: &Store, of: TrackingTarget) -> Result<Option<TrackingRecord>, ReadError> {
    let keys = [email::key_of(of.account, of.email), key_of(of)];
    let mut rows = store.get_many(&keys).await?.into_iter();
    let (Some(email_row), row) = (rows.next().flatten(), rows.next().flatten()) else { return Ok(None) };
    let tally = row.as_deref().map(row::decode).transpose()?.unwrap_or_default();
    let recipients = match of.recipient {
        Some(index) => email::find_recipient(store, of.account, of.email, index).await?.into_iter().collect(),
        None => email::list_first_recipients(store, of.account, of.email, ASKED_MAX).await?,
    };
    let delivered_at = recipients.iter().filter_map(|r| r.delivered_at).min();
    // Tried and not delivered: it may have arrived without our being told.
    let tried_at = || recipients.iter().filter(|r| r.attempts > 0).map(|r| r.last_event.1).min();
    Ok(Some(TrackingRecord {
        email: row::decode(&email_row)?,
        delivered_at: delivered_at.or_else(tried_at),
        recipient: recipients.into_iter().next().filter(|_| of.recipient.is_some()),
        tally,
        email_row,
        row,
    }))
}

/// Keeps a tally; the commit conflicts when it is no more as it was found, or its email is gone.
pub fn save(batch: &mut Batch, of: TrackingTarget, found: &TrackingRecord, tally: &TrackingCounters) {
    batch.check(email::key_of(of.account, of.email), Some(found.email_row.clone()));
    batch.check(key_of(of), found.row.clone());
    batch.put(key_of(of), row::encode(tally));
}

/// The tallies of some emails of an account, given by their numbers of recipients: in their order, empty
/// where nothing was opened.
///
/// # Errors
/// The store cannot be read.
pub async fn list_tallies(
    store: &Store,
    account: AccountId,
    emails: impl Iterator<Item = (EmailId, usize)>,
) -> Result<Vec<TrackingCounters>, ReadError> {
    let keys: Vec<Key> =
        emails.map(|(email, recipients)| key_of(TrackingTarget::new(account, email, recipients))).collect();
    let rows = store.get_many(&keys).await?;
    rows.iter().map(|row| Ok(row.as_deref().map(row::decode).transpose()?.unwrap_or_default())).collect()
}

/// Forgets the tallies of an email, in the commit that forgets the email; it conflicts when something is
/// opened that very moment, so that no event stays behind either.
///
/// # Errors
/// The store cannot be read.
pub(crate) async fn purge(
    store: &Store,
    batch: &mut Batch,
    account: AccountId,
    email: EmailId,
) -> Result<(), ReadError> {
    let keys = [Some(0), None].map(|recipient| key_of(TrackingTarget { account, email, recipient }));
    for (row_key, row) in keys.iter().zip(store.get_many(&keys).await?) {
        if row.is_some() {
            batch.delete(row_key.clone());
        }
        batch.check(row_key.clone(), row);
    }
    Ok(())
}
