//! Postings: the emails under one term, newest first, as far as they were read.
//!
//! A row may hold several emails ([`run`]), so what was read is a heap: its newest email is the next one as soon
//! as no row that was not read can hold a newer one. How many rows are read at once depends on how many of the
//! last ones were of use; many are read in several pieces, side by side, for most of them wait for the disk.

use std::collections::BinaryHeap;
use std::ops::Range;

use mail::catalog::{IndexField, IndexTerm};
use mail::id::AccountId;

use super::run::{self, SPAN};
use super::term_prefix;
use crate::engine::{Key, ReadError, ScanOrder, Store};
use crate::key::prefix_end;

/// What a read costs, beside its rows: a seek in the tree.
const SCAN_COST: usize = 30;
/// Rows read at once: at first, when most of the last were leapt over, and at most.
const ROWS_FIRST: usize = 32;
const ROWS_AFTER_LEAP: usize = 4;
const ROWS_MAX: usize = 256;
/// Rows for which a piece of its own is worth its while.
const ROWS_A_PIECE: usize = 32;
/// Emails read with a row for what a row alone costs.
const EMAILS_A_ROW: usize = 32;

/// The emails under one term, or all of an account.
pub(super) struct PostingList {
    prefix: Key,
    /// How much newer than an email the first one of its row may be.
    span: u128,
    read: BinaryHeap<u128>,
    /// No row that was not read has a newer email than this; none when all were read.
    floor: Option<u128>,
    /// Rows from here on were read.
    unread: Key,
    /// How many rows were asked for last, and how many came.
    asked: usize,
    got: usize,
    /// How often one of those was of use.
    used: usize,
    /// How far apart their newest emails lay.
    pace: Option<u128>,
    /// The place that it was read for last.
    read_for: Option<u128>,
    /// Whether most of what was read is leapt over.
    is_leaping: bool,
    /// Whether it was read after a leap, and nobody asked yet.
    has_leapt: bool,
}

impl PostingList {
    pub(super) fn for_term(account: AccountId, term: &IndexTerm) -> Self {
        // A status has a row for each email.
        let span = if term.field == IndexField::Status { 0 } else { SPAN };
        Self::new(term_prefix(account, term).build(), span)
    }

    pub(super) fn new(prefix: Key, span: u128) -> Self {
        let (read, unread) = (BinaryHeap::new(), prefix_end(&prefix));
        Self {
            prefix,
            span,
            read,
            floor: Some(u128::MAX),
            unread,
            asked: 0,
            got: 0,
            used: 0,
            pace: None,
            read_for: None,
            is_leaping: false,
            has_leapt: false,
        }
    }

    /// Leaves what is newer than a place behind, and says how many those were.
    pub(super) fn skip_newer_than(&mut self, newest: u128) -> usize {
        let before = self.read.len();
        while self.read.peek().is_some_and(|place| *place > newest) {
            self.read.pop();
        }
        before - self.read.len()
    }

    /// Whether a row that was not read may have a newer email than those read.
    pub(super) fn is_behind(&self) -> bool {
        self.floor.is_some_and(|floor| self.read.peek().is_none_or(|place| *place < floor))
    }

    /// The newest of those read and not left behind, unless it is older than `oldest`.
    pub(super) fn head(&self, oldest: u128) -> Option<u128> {
        self.read.peek().copied().filter(|place| *place >= oldest)
    }

    /// Its head was looked at once more.
    pub(super) fn count_use(&mut self) {
        self.used += usize::from(!self.read.is_empty());
    }

    /// Whether most of what was read is leapt over.
    pub(super) fn is_leaping(&self) -> bool {
        self.is_leaping
    }

    /// Whether it was read after a leap since this was asked last.
    pub(super) fn take_leap(&mut self) -> bool {
        std::mem::take(&mut self.has_leapt)
    }

    /// Reads on, from `newest` if that lies beyond what was read; says what it cost.
    pub(super) async fn read(&mut self, store: &Store, (oldest, newest): (u128, u128)) -> Result<usize, ReadError> {
        let again = self.read_for.replace(newest) == Some(newest);
        (self.asked, self.is_leaping) = match self.asked {
            0 => (ROWS_FIRST, false),
            // Not enough: its rows lie closer together than emails may within one.
            rows if again => ((rows * 2).min(ROWS_MAX), self.is_leaping),
            // Most of them leapt over: the next leap will go beyond any number of rows.
            _ if self.used * 4 <= self.got => (ROWS_AFTER_LEAP, true),
            rows => ((rows * 2).min(ROWS_MAX), false),
        };
        self.has_leapt |= self.is_leaping;
        self.used = 0;
        let pieces = self.pieces((oldest, newest.saturating_add(self.span)), store.parallel_scans());
        // A piece may be fuller than the last ones were: it is cut off then, and what lies beyond it is left.
        let limit = match pieces.len() {
            0 | 1 => self.asked,
            _ => 2 * ROWS_A_PIECE,
        };
        let ranges: Vec<Range<Key>> = pieces.iter().map(|(_, range)| range.clone()).collect();
        let scanned = store.scan_each(&ranges, ScanOrder::Descending, limit).await?;
        let rows_read: usize = scanned.iter().map(Vec::len).sum();
        let (mut emails_read, mut first) = (0, None);
        self.got = 0;
        self.floor = None;
        for ((oldest_of, range), rows) in pieces.iter().zip(&scanned) {
            let mut last = None;
            for (row_key, row) in rows {
                let emails = run::decode_block(&self.prefix, row_key, row)?;
                last = emails.first().copied();
                first = first.or(last);
                emails_read += emails.len();
                self.read.extend(emails);
            }
            self.got += rows.len();
            let cut_at = rows.last().filter(|_| rows.len() == limit);
            (self.unread, self.floor) = match cut_at {
                Some((row_key, _)) => (row_key.clone(), last),
                None => (range.start.clone(), oldest_of.checked_sub(1).filter(|_| *oldest_of > oldest)),
            };
            if cut_at.is_some() {
                break;
            }
        }
        self.pace = first.zip(self.floor).map(|(first, floor)| first.saturating_sub(floor) / self.got as u128);
        self.skip_newer_than(newest);
        Ok(SCAN_COST * pieces.len() + rows_read + emails_read / EMAILS_A_ROW)
    }

    /// Where the rows lie that are read next, newest first: each piece with its oldest place.
    fn pieces(&self, (oldest, newest): (u128, u128), at_once: usize) -> Vec<(u128, Range<Key>)> {
        let mut end = prefix_end(&self.key_of(newest)).min(self.unread.clone());
        let count = (self.asked / ROWS_A_PIECE).min(at_once);
        let pace = self.pace.filter(|_| count > 1);
        let width = pace.map(|pace| pace.saturating_mul(ROWS_A_PIECE as u128).max(1));
        let (mut from, mut pieces) = (newest.min(self.position_of(&self.unread)), Vec::new());
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

    fn key_of(&self, place: u128) -> Key {
        let mut bytes = self.prefix.to_vec();
        bytes.extend_from_slice(&place.to_be_bytes());
        Key::from(bytes)
    }

    /// The place of a row; of what is no row of this list, the newest of all.
    fn position_of(&self, row_key: &[u8]) -> u128 {
        let place = row_key.strip_prefix(self.prefix.as_ref()).and_then(|tail| tail.first_chunk());
        place.map_or(u128::MAX, |place| u128::from_be_bytes(*place))
    }
}
