//! Posting lists: the emails under one term, newest first, as far as they were read.
//!
//! A row may hold several emails ([`posting_block`]), so emails that were read wait in a heap. The newest one is valid as soon as
//! no unread row can hold a newer email. The number of rows per read depends on how many of the last ones were used.
//! Large reads are split into ranges that are scanned concurrently, because most of them wait for the disk.

use std::collections::BinaryHeap;
use std::ops::Range;

use model::email_index::{IndexField, IndexTerm};
use model::id::AccountId;

use super::posting_block::{self, SPAN};
use super::term_prefix;
use crate::engine::{Key, Result, ScanOrder, Store};
use crate::key::prefix_end;

/// Cost of a read apart from its rows: one seek in the tree.
const SCAN_COST: usize = 30;
/// Rows per read: the first read, a read after most rows were skipped, and the maximum.
const ROWS_FIRST: usize = 32;
const ROWS_AFTER_LEAP: usize = 4;
const ROWS_MAX: usize = 256;
/// Minimum number of rows for which a concurrent range pays off.
const ROWS_A_PIECE: usize = 32;
/// Number of emails whose cost equals that of a row.
const EMAILS_A_ROW: usize = 32;

/// The emails under one term, or all emails of an account.
pub(super) struct PostingList {
    prefix: Key,
    /// Maximum age difference between the emails of one row.
    span: u128,
    read: BinaryHeap<u128>,
    /// No unread row has an email newer than this; `None` when all rows were read.
    floor: Option<u128>,
    /// Rows from this key on were read.
    unread_end: Key,
    /// Number of rows that the last read requested (`requested`) and returned (`received`).
    requested: usize,
    received: usize,
    /// How many of the last rows were used.
    used: usize,
    /// Average distance between the newest emails of adjacent rows.
    pace: Option<u128>,
    /// The position for which the last read was made.
    read_for: Option<u128>,
    /// True if most of the last rows were skipped.
    is_leaping: bool,
    /// True if a read after a skip was not reported by `take_leap` yet.
    has_leapt: bool,
}

impl PostingList {
    pub(super) fn for_term(account: AccountId, term: &IndexTerm) -> Self {
        // A status has one row per email.
        let span = if term.field == IndexField::Status { 0 } else { SPAN };
        Self::new(term_prefix(account, term).build(), span)
    }

    pub(super) fn new(prefix: Key, span: u128) -> Self {
        let (read, unread_end) = (BinaryHeap::new(), prefix_end(&prefix));
        Self {
            prefix,
            span,
            read,
            floor: Some(u128::MAX),
            unread_end,
            requested: 0,
            received: 0,
            used: 0,
            pace: None,
            read_for: None,
            is_leaping: false,
            has_leapt: false,
        }
    }

    /// Drops the emails that are newer than a position and returns their number.
    pub(super) fn skip_newer_than(&mut self, newest: u128) -> usize {
        let before = self.read.len();
        while self.read.peek().is_some_and(|position| *position > newest) {
            self.read.pop();
        }
        before - self.read.len()
    }

    /// Returns whether an unread row may have an email newer than those read.
    pub(super) fn is_behind(&self) -> bool {
        self.floor.is_some_and(|floor| self.read.peek().is_none_or(|position| *position < floor))
    }

    /// The newest email that was read and not dropped, unless it is older than `oldest`.
    pub(super) fn head(&self, oldest: u128) -> Option<u128> {
        self.read.peek().copied().filter(|position| *position >= oldest)
    }

    /// Counts one more use of the head.
    pub(super) fn count_use(&mut self) {
        self.used += usize::from(!self.read.is_empty());
    }

    /// Returns whether most of the last rows were skipped.
    pub(super) fn is_leaping(&self) -> bool {
        self.is_leaping
    }

    /// Returns whether a read followed a skip since the last call.
    pub(super) fn take_leap(&mut self) -> bool {
        std::mem::take(&mut self.has_leapt)
    }

    /// Reads more rows, from `newest` on if that is beyond what was read. Returns the cost.
    pub(super) async fn read(&mut self, store: &Store, oldest: u128, newest: u128) -> Result<usize> {
        let again = self.read_for.replace(newest) == Some(newest);
        (self.requested, self.is_leaping) = match self.requested {
            0 => (ROWS_FIRST, false),
            // The last read did not suffice: rows are closer together than the span of one row.
            rows if again => ((rows * 2).min(ROWS_MAX), self.is_leaping),
            // Most rows were skipped, so the next position will probably be beyond any number of rows.
            _ if self.used * 4 <= self.received => (ROWS_AFTER_LEAP, true),
            rows => ((rows * 2).min(ROWS_MAX), false),
        };
        self.has_leapt |= self.is_leaping;
        self.used = 0;
        let pieces = self.pieces(oldest, newest.saturating_add(self.span), store.parallel_scans());
        // A range may be denser than expected. It is cut at the limit then, and the ranges after it are dropped.
        let limit = match pieces.len() {
            0 | 1 => self.requested,
            _ => 2 * ROWS_A_PIECE,
        };
        let ranges: Vec<Range<Key>> = pieces.iter().map(|(_, range)| range.clone()).collect();
        let scanned = store.scan_each(&ranges, ScanOrder::Descending, limit).await?;
        let rows_read: usize = scanned.iter().map(Vec::len).sum();
        let (mut emails_read, mut first) = (0, None);
        self.received = 0;
        self.floor = None;
        for ((oldest_of, range), rows) in pieces.iter().zip(&scanned) {
            let mut last = None;
            for (row_key, row) in rows {
                let emails = posting_block::decode_block(&self.prefix, row_key, row)?;
                last = emails.first().copied();
                first = first.or(last);
                emails_read += emails.len();
                self.read.extend(emails);
            }
            self.received += rows.len();
            let cut_at = rows.last().filter(|_| rows.len() == limit);
            (self.unread_end, self.floor) = match cut_at {
                Some((row_key, _)) => (row_key.clone(), last),
                None => (range.start.clone(), oldest_of.checked_sub(1).filter(|_| *oldest_of > oldest)),
            };
            if cut_at.is_some() {
                break;
            }
        }
        self.pace = first.zip(self.floor).map(|(first, floor)| first.saturating_sub(floor) / self.received as u128);
        self.skip_newer_than(newest);
        Ok(SCAN_COST * pieces.len() + rows_read + emails_read / EMAILS_A_ROW)
    }

    /// The key ranges of the next read, newest first, each with its oldest position.
    fn pieces(&self, oldest: u128, newest: u128, at_once: usize) -> Vec<(u128, Range<Key>)> {
        let mut end = prefix_end(&self.key_of(newest)).min(self.unread_end.clone());
        let count = (self.requested / ROWS_A_PIECE).min(at_once);
        let pace = self.pace.filter(|_| count > 1);
        let width = pace.map(|pace| pace.saturating_mul(ROWS_A_PIECE as u128).max(1));
        let (mut from, mut pieces) = (newest.min(self.position_of(&self.unread_end)), Vec::new());
        loop {
            from = from.saturating_sub(width.unwrap_or(u128::MAX)).max(oldest);
            let start = self.key_of(from);
            if start < end {
                pieces.push((from, start.clone()..end));
                end = start;
            }
            if pieces.len() >= count || from == oldest {
                return pieces;
            }
        }
    }

    fn key_of(&self, position: u128) -> Key {
        let mut bytes = self.prefix.to_vec();
        bytes.extend_from_slice(&position.to_be_bytes());
        Key::from(bytes)
    }

    /// The position of a row; the maximum for a key that is not in this list.
    fn position_of(&self, row_key: &[u8]) -> u128 {
        let position = row_key.strip_prefix(self.prefix.as_ref()).and_then(|tail| tail.first_chunk());
        position.map_or(u128::MAX, |position| u128::from_be_bytes(*position))
    }
}
