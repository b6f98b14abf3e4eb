//! Runs: emails under one term that share a row, all born within [`SPAN`] of the newest.
//!
//! ```text
//! term · newest             one email
//! term · newest · oldest    several; the row holds those in between, newest first, 16 bytes each
//! ```
//!
//! Rows lie in the order of their newest emails and may overlap: an older email than a row's newest can lie
//! in any row whose newest was born up to [`SPAN`] later, and in no other. A run is written once, by telling,
//! and made smaller by forgetting alone.

use mail::id::EmailId;

use crate::engine::{Batch, Key, ReadError, ScanOrder, Store, Value};
use crate::key::{KeyBuilder, prefix_end, successor};
use crate::row;

/// A millisecond, in the upper 48 bits of an id.
pub(super) const MILLISECOND: u128 = 1 << 80;
/// How much older than the newest an email of a run may be. Longer, and more rows must be read to find the
/// emails of a moment; shorter, and fewer emails share a row.
pub(super) const SPAN: u128 = 1_024 * MILLISECOND;
/// Emails in a run, at most: 2 KiB.
const EMAILS_MAX: usize = 128;
/// Rows read at once.
const PAGE_ROWS: usize = 64;
/// Bytes of an id.
const ID_BYTES: usize = 16;

pub(super) fn id_number(id: EmailId) -> u128 {
    u128::from_be_bytes(id.to_bytes())
}

/// The row of some emails, newest first; none of none.
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

/// The emails of a row, newest first. `list` is how its key begins.
pub(super) fn decode_block(list: &[u8], row_key: &[u8], row: &[u8]) -> Result<Vec<u128>, ReadError> {
    let tail = row_key.get(list.len()..).unwrap_or_default();
    // A lone email's row holds whatever it holds: emails themselves are listed so, too.
    let between = if tail.len() > ID_BYTES { row } else { &[] };
    let (newest, oldest) = tail.split_at_checked(ID_BYTES).ok_or_else(|| row::damaged("a term without an email"))?;
    let ids = [newest, between, oldest];
    if ids.iter().any(|part| part.len() % ID_BYTES != 0) {
        return Err(row::damaged("a run of emails with half an email"));
    }
    Ok(ids.iter().flat_map(|part| part.as_chunks::<ID_BYTES>().0).map(|id| u128::from_be_bytes(*id)).collect())
}

/// Writes emails that are new under a term.
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

/// Takes emails away under a term; the commit conflicts when their rows are changed meanwhile.
pub(super) async fn remove(
    store: &Store,
    batch: &mut Batch,
    list: &KeyBuilder,
    emails: Vec<EmailId>,
) -> Result<(), ReadError> {
    let mut gone: Vec<u128> = emails.into_iter().map(id_number).collect();
    gone.sort_unstable();
    let (Some(oldest), Some(newest)) = (gone.first(), gone.last()) else { return Ok(()) };
    let prefix = list.clone().build();
    let mut start = list.clone().id(oldest.to_be_bytes()).build();
    let end = prefix_end(&list.clone().id(newest.saturating_add(SPAN).to_be_bytes()).build());
    loop {
        let rows = store.scan(start.clone()..end.clone(), ScanOrder::Ascending, PAGE_ROWS).await?;
        for (row_key, row) in &rows {
            let all = decode_block(&prefix, row_key, row)?;
            let kept: Vec<u128> = all.iter().copied().filter(|email| gone.binary_search(email).is_err()).collect();
            if kept.len() < all.len() {
                batch.check(row_key.clone(), Some(row.clone()));
                batch.delete(row_key.clone());
                // It may be the same key: what a batch does to one is done in order.
                if let Some((kept_key, kept)) = encode_block(list, &kept) {
                    batch.put(kept_key, kept);
                }
            }
        }
        match rows.last() {
            Some((last, _)) if rows.len() == PAGE_ROWS => start = successor(last),
            _ => return Ok(()),
        }
    }
}
