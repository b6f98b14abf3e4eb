//! Delivery attempts: one row each under email and recipient.

use std::net::IpAddr;

use jiff::Timestamp;
use message::outcome::AttemptPhase;
use message::reply::SmtpReply;
use model::attempt::{Attempt, AttemptTls};
use model::id::{AccountId, EmailId};
use model::task::TaskId;
use serde::{Deserialize, Serialize};

use crate::codec::{self, stored};
use crate::engine::{Batch, Key, ReadError, ScanOrder, Store};
use crate::key::{Space, key};

#[derive(Serialize, Deserialize)]
#[serde(remote = "Attempt")]
struct AttemptRow {
    recipient: u16,
    number: u32,
    created_at: Timestamp,
    duration_ms: u64,
    phase: AttemptPhase,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    mx_host: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    ip: Option<IpAddr>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    source: Option<IpAddr>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    tls: Option<AttemptTls>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    reply: Option<SmtpReply>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    error: Option<String>,
    transcript: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    next_attempt_at: Option<Timestamp>,
}
stored!(Attempt as AttemptRow);

fn key_of(account: AccountId, task: TaskId, number: u32) -> Key {
    key(Space::Attempt).account(account).id(task.email.to_bytes()).u16(task.recipient).u32(number).build()
}

pub fn put(batch: &mut Batch, account: AccountId, email: EmailId, attempt: &Attempt) {
    let task = TaskId { email, recipient: attempt.recipient };
    batch.put(key_of(account, task, attempt.number), codec::encode(attempt));
}

/// Reads an attempt of a recipient by its number.
///
/// # Errors
/// The store cannot be read.
pub async fn get(store: &Store, account: AccountId, task: TaskId, number: u32) -> Result<Option<Attempt>, ReadError> {
    let row = store.get(&key_of(account, task, number)).await?;
    row.map(|row| codec::decode(&row)).transpose()
}

/// Lists an email's attempts by recipient and number, at most `limit`.
///
/// # Errors
/// The store cannot be read.
pub async fn list(store: &Store, account: AccountId, email: EmailId, limit: usize) -> Result<Vec<Attempt>, ReadError> {
    let range = key(Space::Attempt).account(account).id(email.to_bytes()).range();
    let rows = store.scan(range, ScanOrder::Ascending, limit).await?;
    rows.iter().map(|(_, row)| codec::decode(row)).collect()
}
