//! Blocks: emails under one term that share a row, all created within [`SPAN`] of the newest.
//!
//! ```text
//! term · newest           one email
//! term · newest · oldest  several; the value holds those in between, newest first, 16 bytes each
//! ```
//!
//! Rows are ordered by their newest email and may overlap: an email can be only in rows whose newest was created at
//! most [`SPAN`] later. A block is written once, when events are dispatched, and only shrinks when emails are deleted.

use model::id::EmailId;

use crate::codec;
use crate::engine::{Batch, Key, Result, Store, Value};
use crate::key::{KeyBuilder, prefix_end};
use crate::rows::RowPages;

/// A millisecond, in the upper 48 bits of an id.
pub(super) const MILLISECOND: u128 = 1 << 80;
/// Maximum age of an email relative to the newest of its block. With a longer span, more rows must be read to find the
/// emails of a moment; with a shorter one, fewer emails share a row.
pub(super) const SPAN: u128 = 1_024 * MILLISECOND;
/// Maximum number of emails in a block: 2 KiB.
const EMAILS_MAX: usize = 128;
/// Rows per read.
const PAGE_ROWS: usize = 64;
const ID_BYTES: usize = 16;

pub(super) fn id_number(id: EmailId) -> u128 {
    u128::from_be_bytes(id.to_bytes())
}

/// Encodes emails, sorted newest first, as one row; `None` if there are none.
fn encode_block(list: &KeyBuilder, emails: &[u128]) -> Option<(Key, Value)> {
    let (newest, rest) = emails.split_first()?;
    let row_key = list.clone().id(newest.to_be_bytes());
    Some(match rest.split_last() {
        None => (row_key.build(), Value::new()),
        Some((oldest, between)) => {
            let between: Vec<u8> = between.iter().flat_map(|email| email.to_be_bytes()).collect();
            (row_key.id(oldest.to_be_bytes()).build(), Value::from(between))
        }
    })
}

/// Decodes the emails of a row, newest first. `list` is the prefix of its key.
pub(super) fn decode_block(list: &[u8], row_key: &[u8], row: &[u8]) -> Result<Vec<u128>> {
    let tail = row_key.get(list.len()..).unwrap_or_default();
    // The value of a row with one email is ignored: the list of all emails has the email itself there.
    let between = if tail.len() > ID_BYTES { row } else { &[] };
    let (newest, oldest) =
        tail.split_at_checked(ID_BYTES).ok_or_else(|| codec::damaged("an index term without an email id"))?;
    let ids = [newest, between, oldest];
    if ids.iter().any(|part| part.len() % ID_BYTES != 0) {
        return Err(codec::damaged("a block of email ids with a truncated id"));
    }
    Ok(ids.iter().flat_map(|part| part.as_chunks::<ID_BYTES>().0).map(|id| u128::from_be_bytes(*id)).collect())
}

/// Writes blocks for emails that are new under a term.
pub(super) fn put(batch: &mut Batch, list: &KeyBuilder, emails: Vec<EmailId>) {
    let mut emails: Vec<u128> = emails.into_iter().map(id_number).collect();
    emails.sort_unstable_by(|one, other| other.cmp(one));
    emails.dedup();
    let mut rest = emails.as_slice();
    while let Some(newest) = rest.first() {
        let near = rest.iter().take(EMAILS_MAX).take_while(|email| newest - **email <= SPAN).count();
        let (run, older) = rest.split_at(near);
        if let Some((row_key, row)) = encode_block(list, run) {
            batch.put(row_key, row);
        }
        rest = older;
    }
}

/// Removes emails under a term. The commit conflicts if their rows change concurrently.
pub(super) async fn remove(store: &Store, batch: &mut Batch, list: &KeyBuilder, emails: Vec<EmailId>) -> Result<()> {
    let mut removed: Vec<u128> = emails.into_iter().map(id_number).collect();
    removed.sort_unstable();
    let (Some(oldest), Some(newest)) = (removed.first(), removed.last()) else { return Ok(()) };
    let prefix = list.clone().build();
    let start = list.clone().id(oldest.to_be_bytes()).build();
    let end = prefix_end(&list.clone().id(newest.saturating_add(SPAN).to_be_bytes()).build());
    let mut pages = RowPages::new(store, start..end, PAGE_ROWS);
    while let Some(page) = pages.next_page().await? {
        for (row_key, row) in &page {
            let all = decode_block(&prefix, row_key, row)?;
            let remaining: Vec<u128> =
                all.iter().copied().filter(|email| removed.binary_search(email).is_err()).collect();
            if remaining.len() < all.len() {
                batch.remove(row_key.clone(), row.clone());
                // The key may be the same; a batch applies operations on one key in order.
                if let Some((new_key, remaining)) = encode_block(list, &remaining) {
                    batch.put(new_key, remaining);
                }
            }
        }
    }
    Ok(())
}
