//! Delivery attempts: one row each under email and recipient.

use model::attempt::Attempt;
use model::id::{AccountId, EmailId};
use model::task::TaskId;

use crate::codec::{self, stored};
use crate::engine::{Batch, Key, Result, ScanOrder, Store};
use crate::key::{Space, key};
use crate::rows;

stored!(Attempt);

fn key_of(account: AccountId, task: TaskId, number: u32) -> Key {
    key(Space::Attempt).account(account).id(task.email.to_bytes()).u16(task.recipient).u32(number).build()
}

pub fn put(batch: &mut Batch, account: AccountId, email: EmailId, attempt: &Attempt) {
    let task = TaskId { email, recipient: attempt.recipient };
    batch.put(key_of(account, task, attempt.number), codec::encode(attempt));
}

/// Reads an attempt of a recipient by its number.
pub async fn get(store: &Store, account: AccountId, task: TaskId, number: u32) -> Result<Option<Attempt>> {
    rows::get(store, &key_of(account, task, number)).await
}

/// Lists an email's attempts by recipient and number, at most `limit`.
pub async fn list(store: &Store, account: AccountId, email: EmailId, limit: usize) -> Result<Vec<Attempt>> {
    let range = key(Space::Attempt).account(account).id(email.to_bytes()).range();
    rows::scan(store, range, ScanOrder::Ascending, limit).await
}
