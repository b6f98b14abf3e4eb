//! A filtered list: postings are intersected newest first, candidates are read and looked at.
//!
//! ```text
//! filter ─► [ term ∪ term ] ∩ [ term ] ∩ …  ──leap──►  candidates ─► rows ─► `holds`? ─► page
//! ```
//!
//! A row of a list may hold several emails ([`super::run`]), so what was read of a list is a heap: its newest
//! email is next as soon as no row that was not read can hold a newer one. Each list leaps to the oldest place that any of them is at; so a rare term carries the common ones along.
//! What a request may read is counted beforehand ([`BUDGET`]): a page that costs more ends early, and says
//! where to go on. It never says that nothing is left while something may be.

use std::collections::BinaryHeap;
use std::sync::Arc;

use mail::catalog::{About, Filter, Term};
use mail::email::Email;
use mail::id::{AccountId, EmailId};

use super::list_of;
use super::run::{self, MILLISECOND, SPAN, number};
use crate::email::{self, EmailWithRecipients};
use crate::engine::{Key, Order, ReadError, Store};
use crate::key::{Space, end_of, key};

/// What one page may cost.
const BUDGET: usize = 6_000;
/// What a scan costs, beside its rows: a seek in the tree.
const SCAN_COST: usize = 30;
/// What an email that is looked at costs, beside its recipients.
const EMAIL_COST: usize = 8;
/// Candidates that are looked at together.
const TOGETHER: usize = 32;
/// Rows of a term read at once: at first, when most of the last were leapt over, and at most.
const ROWS_FIRST: usize = 32;
const ROWS_AFTER_LEAP: usize = 4;
const ROWS_MAX: usize = 256;
/// Emails read with a row for what a row alone costs.
const EMAILS_A_ROW: usize = 32;

/// A page of a filtered list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// The emails, newest first.
    pub emails: Vec<EmailWithRecipients>,
    /// Where to go on (before this email); none at the end of the list.
    pub next: Option<EmailId>,
}

/// An account's emails that a filter holds for, newest first, at most `limit`, those before `before`.
///
/// # Errors
/// The store cannot be read.
pub async fn search(
    store: &Store,
    account: AccountId,
    filter: &Filter,
    before: Option<EmailId>,
    limit: usize,
) -> Result<Found, ReadError> {
    let end = match (before.map(number), filter.before.map(first_not_before)) {
        (Some(one), Some(other)) => Some(one.min(other)),
        (one, other) => one.or(other),
    };
    let oldest = filter.after.map_or(0, first_after);
    let mut search = Search {
        store,
        account,
        lists: filter
            .lists()
            .into_iter()
            .map(|terms| terms.iter().map(|term| Posting::of(account, term)).collect())
            .collect(),
        oldest,
        newest: end.map_or(Some(u128::MAX), |end| end.checked_sub(1)),
        left: BUDGET,
    };
    if search.lists.is_empty() {
        let range = key(Space::Email).account(account);
        search.lists.push(vec![Posting::new(range.build(), 0)]);
    }
    search.page(filter, limit).await
}

fn id_of(number: u128) -> EmailId {
    EmailId::from_bytes(number.to_be_bytes())
}

/// The least number of an id that is born in a later millisecond.
fn first_after(at: jiff::Timestamp) -> u128 {
    number(EmailId::new(at, 0)).saturating_add(MILLISECOND)
}

/// The least number of an id that is not born before a time.
fn first_not_before(at: jiff::Timestamp) -> u128 {
    let whole = at.as_nanosecond() % 1_000_000 == 0;
    number(EmailId::new(at, 0)).saturating_add(if whole { 0 } else { MILLISECOND })
}

struct Search<'a> {
    store: &'a Store,
    account: AccountId,
    lists: Vec<Vec<Posting>>,
    oldest: u128,
    /// The newest id that was not looked at; none when all were.
    newest: Option<u128>,
    left: usize,
}

impl Search<'_> {
    async fn page(mut self, filter: &Filter, limit: usize) -> Result<Found, ReadError> {
        let mut emails: Vec<EmailWithRecipients> = Vec::new();
        // One more than asked tells whether there is more.
        while emails.len() <= limit && self.newest.is_some() {
            let together = (limit + 1 - emails.len()).min(TOGETHER);
            let candidates = self.candidates(together).await?;
            emails.extend(self.holding(filter, &candidates).await?);
            if self.left == 0 {
                break;
            }
        }
        let more = emails.len() > limit;
        emails.truncate(limit);
        let next = match (more, self.newest) {
            (true, _) => emails.last().map(|last| last.email.id),
            (false, Some(newest)) => newest.checked_add(1).map(id_of),
            (false, None) => None,
        };
        self.with_schedules(&mut emails).await?;
        Ok(Found { emails, next })
    }

    /// The next candidates, as long as there is something left to spend: one step is always taken.
    async fn candidates(&mut self, count: usize) -> Result<Vec<EmailId>, ReadError> {
        let mut found = Vec::with_capacity(count);
        while found.len() < count {
            let Some(newest) = self.newest else { break };
            let (mut least, mut greatest) = (u128::MAX, 0);
            for list in &mut self.lists {
                let mut head = None;
                for posting in list {
                    let place = posting.seek(self.store, (self.oldest, newest), &mut self.left).await?;
                    head = head.max(place);
                }
                let Some(head) = head else {
                    self.newest = None;
                    return Ok(found);
                };
                (least, greatest) = (least.min(head), greatest.max(head));
            }
            self.newest = Some(least);
            if least == greatest {
                found.push(id_of(least));
                self.newest = least.checked_sub(1).filter(|newest| *newest >= self.oldest);
            }
            self.left = self.left.saturating_sub(if least == greatest { EMAIL_COST } else { 1 });
            if self.left == 0 {
                break;
            }
        }
        Ok(found)
    }

    async fn holding(
        &mut self,
        filter: &Filter,
        candidates: &[EmailId],
    ) -> Result<Vec<EmailWithRecipients>, ReadError> {
        let wanted: Vec<_> = candidates.iter().map(|id| (self.account, *id)).collect();
        let loaded = email::get_each(self.store, &wanted, &|_| None).await?;
        let mut emails = Vec::new();
        for found in loaded.into_iter().flatten() {
            self.left = self.left.saturating_sub(found.recipients.len());
            if filter.holds(&found.email, &found.recipients) {
                let (email, recipients) = (Arc::unwrap_or_clone(found.email), found.recipients);
                emails.push(EmailWithRecipients { email, recipients, schedule: None });
            }
        }
        Ok(emails)
    }

    async fn with_schedules(&self, emails: &mut [EmailWithRecipients]) -> Result<(), ReadError> {
        let bare: Vec<Email> = emails.iter().map(|found| found.email.clone()).collect();
        let mut schedules = email::schedules_of(self.store, self.account, &bare).await?;
        for found in emails {
            found.schedule = schedules.remove(&found.email.id);
        }
        Ok(())
    }
}

/// The emails under one term (or all of an account), newest first, as far as they were read.
struct Posting {
    prefix: Key,
    /// How much newer than an email the first one of its row may be.
    span: u128,
    read: BinaryHeap<u128>,
    /// No row that was not read has a newer email than this; none when all were read.
    floor: Option<u128>,
    /// Rows from here on were read.
    unread: Key,
    /// How many rows the next scan asks for.
    rows: usize,
    /// How often one of those read last was of use.
    used: usize,
}

impl Posting {
    fn of(account: AccountId, term: &Term) -> Self {
        // A status has a row for each email.
        let span = if term.about == About::Status { 0 } else { SPAN };
        Self::new(list_of(account, term).build(), span)
    }

    fn new(prefix: Key, span: u128) -> Self {
        let (read, unread) = (BinaryHeap::new(), end_of(&prefix));
        Self { prefix, span, read, floor: Some(u128::MAX), unread, rows: 0, used: 0 }
    }

    /// The newest that is not newer than `newest`, and not older than `oldest`.
    async fn seek(
        &mut self,
        store: &Store,
        (oldest, newest): (u128, u128),
        left: &mut usize,
    ) -> Result<Option<u128>, ReadError> {
        loop {
            while self.read.peek().is_some_and(|place| *place > newest) {
                self.read.pop();
            }
            let place = self.read.peek().copied();
            // Beyond the oldest nothing is wanted of any row.
            let Some(floor) = self.floor else { return Ok(place.filter(|place| *place >= oldest)) };
            if place.is_some_and(|place| place >= floor) {
                self.used += 1;
                return Ok(place.filter(|place| *place >= oldest));
            }
            self.scan(store, (oldest, newest), left).await?;
        }
    }

    /// Reads on, from `newest` if that lies beyond what was read.
    async fn scan(
        &mut self,
        store: &Store,
        (oldest, newest): (u128, u128),
        left: &mut usize,
    ) -> Result<(), ReadError> {
        self.rows = match self.rows {
            0 => ROWS_FIRST,
            // Most of them leapt over: the next leap will go beyond any number of rows.
            rows if self.used * 4 < rows => ROWS_AFTER_LEAP,
            rows => (rows * 2).min(ROWS_MAX),
        };
        self.used = 0;
        let start = self.key_of(oldest);
        let end = end_of(&self.key_of(newest.saturating_add(self.span))).min(self.unread.clone());
        let rows = match start < end {
            true => store.scan(start..end, Order::Descending, self.rows).await?,
            false => Vec::new(),
        };
        self.floor = None;
        let mut count = 0;
        for (row_key, row) in &rows {
            let emails = run::emails_of(&self.prefix, row_key, row)?;
            self.floor = emails.first().copied();
            count += emails.len();
            self.read.extend(emails);
        }
        *left = left.saturating_sub(SCAN_COST + rows.len() + count / EMAILS_A_ROW);
        match rows.last() {
            Some((last, _)) if rows.len() == self.rows => self.unread = last.clone(),
            _ => self.floor = None,
        }
        Ok(())
    }

    fn key_of(&self, place: u128) -> Key {
        let mut bytes = self.prefix.to_vec();
        bytes.extend_from_slice(&place.to_be_bytes());
        Key::from(bytes)
    }
}
