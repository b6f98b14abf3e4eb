//! Search: intersects posting lists, newest first, then reads the candidates and checks the filter.
//!
//! ```text
//! filter ─► [ term ∪ term ] ∩ [ term ] ∩ …  ──skip──►  candidates ─► rows ─► `matches`? ─► page
//! ```
//!
//! Each list skips to the oldest position that any of them has reached, so a rare term advances the common ones.
//! Skipping in a common list can cost more than the candidates it saves. Such a list is set aside for a while, and the
//! filter decides on the emails themselves.
//!
//! The cost of a request is bounded by [`BUDGET`]. A page that exceeds it ends early, with a cursor. A page without a
//! cursor is always the last.

use std::sync::Arc;

use futures_util::future::try_join_all;
use model::email::Email;
use model::email_index::{EmailFilter, IndexTerm};
use model::id::{AccountId, EmailId};

use super::posting_block::{MILLISECOND, id_number};
use super::posting_list::PostingList;
use crate::email::{self, EmailWithRecipients};
use crate::engine::{Result, Store};
use crate::key::{Space, key};

/// Maximum cost of one page.
const BUDGET: usize = 6_000;
/// Cost of checking an email apart from its recipients.
const EMAIL_COST: usize = 8;
/// Maximum number of candidates read at once.
const TOGETHER: usize = 64;
/// A skip that saves fewer candidates than this is useless: checking them costs less ([`EMAIL_COST`]).
const SAVED_MIN: usize = 4;
/// Number of consecutive useless skips after which a list is set aside.
const USELESS_LEAPS_MAX: usize = 4;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SearchPage {
    /// Newest first.
    pub emails: Vec<EmailWithRecipients>,
    /// Cursor of the next page, which starts before this email; `None` at the end of the list.
    pub next: Option<EmailId>,
}

/// Lists an account's emails that match a filter, newest first, before `before`, at most `limit`.
pub async fn search(
    store: &Store,
    account: AccountId,
    filter: &EmailFilter,
    before: Option<EmailId>,
    limit: usize,
) -> Result<SearchPage> {
    let end = match (before.map(id_number), filter.before.map(first_not_before)) {
        (Some(one), Some(other)) => Some(one.min(other)),
        (one, other) => one.or(other),
    };
    let oldest = filter.after.map_or(0, first_after);
    let mut search = Search {
        store,
        account,
        lists: filter.required_terms().into_iter().map(|terms| PostingUnion::for_terms(account, &terms)).collect(),
        oldest,
        newest: end.map_or(Some(u128::MAX), |end| end.checked_sub(1)),
        left: BUDGET,
    };
    if search.lists.is_empty() {
        let range = key(Space::Email).account(account);
        search.lists.push(PostingUnion { postings: vec![PostingList::new(range.build(), 0)], useless_leaps: 0 });
    }
    search.page(filter, limit).await
}

fn id_of(number: u128) -> EmailId {
    EmailId::from_bytes(number.to_be_bytes())
}

/// The smallest id number that was created in a later millisecond.
fn first_after(at: jiff::Timestamp) -> u128 {
    id_number(EmailId::new(at, 0)).saturating_add(MILLISECOND)
}

/// The smallest id number that was not created before a time.
fn first_not_before(at: jiff::Timestamp) -> u128 {
    let whole = at.as_nanosecond() % 1_000_000 == 0;
    id_number(EmailId::new(at, 0)).saturating_add(if whole { 0 } else { MILLISECOND })
}

struct Search<'a> {
    store: &'a Store,
    account: AccountId,
    lists: Vec<PostingUnion>,
    oldest: u128,
    /// The newest id that was not checked; `None` when all were.
    newest: Option<u128>,
    left: usize,
}

impl Search<'_> {
    async fn page(mut self, filter: &EmailFilter, limit: usize) -> Result<SearchPage> {
        let mut emails: Vec<EmailWithRecipients> = Vec::new();
        let mut looked_at = 0_usize;
        // One email more than requested shows whether there is another page.
        while emails.len() <= limit && self.newest.is_some() {
            let missing = limit + 1 - emails.len();
            // For each missing email, as many candidates as one match has needed so far.
            let each = if looked_at == 0 { 1 } else { looked_at.div_ceil(emails.len().max(1)) };
            let candidates = self.candidates(missing.saturating_mul(each).min(TOGETHER)).await?;
            looked_at += candidates.len();
            emails.extend(self.filter_candidates(filter, &candidates).await?);
            if self.left == 0 {
                break;
            }
        }
        let has_more = emails.len() > limit;
        emails.truncate(limit);
        let next = match (has_more, self.newest) {
            (true, _) => emails.last().map(|last| last.email.id),
            (false, Some(newest)) => newest.checked_add(1).map(id_of),
            (false, None) => None,
        };
        self.with_schedules(&mut emails).await?;
        Ok(SearchPage { emails, next })
    }

    /// Returns the next candidates while budget is left; at least one step is made.
    async fn candidates(&mut self, count: usize) -> Result<Vec<EmailId>> {
        // Give lists that were set aside another chance.
        self.lists.iter_mut().for_each(|list| list.useless_leaps = list.useless_leaps.min(USELESS_LEAPS_MAX - 1));
        let mut found = Vec::with_capacity(count);
        while found.len() < count {
            let Some(newest) = self.newest else { break };
            self.read_up_to(newest).await?;
            let heads = self.lists.iter().filter(|list| !list.is_set_aside()).map(|list| list.head(self.oldest));
            let (oldest_head, newest_head) =
                heads.fold((Some(u128::MAX), Some(0)), |(oldest_head, newest_head), head| {
                    (oldest_head.min(head), head.and_then(|head| Some(newest_head?.max(head))))
                });
            // If one list is exhausted, so is the search.
            let (Some(oldest_head), Some(newest_head)) = (oldest_head, newest_head) else {
                self.newest = None;
                break;
            };
            self.newest = Some(oldest_head);
            if oldest_head == newest_head {
                found.push(id_of(oldest_head));
                self.newest = oldest_head.checked_sub(1).filter(|newest| *newest >= self.oldest);
            }
            self.left = self.left.saturating_sub(if oldest_head == newest_head { EMAIL_COST } else { 1 });
            if self.left == 0 {
                break;
            }
        }
        Ok(found)
    }

    /// Reads the lists that are not set aside until the newest email of each up to a position is known.
    async fn read_up_to(&mut self, newest: u128) -> Result<()> {
        let passed = self.lists.iter_mut().map(|list| (list.skip_newer_than(newest), list.leads()));
        let saved = passed.filter_map(|(passed, leads)| leads.then_some(passed)).max();
        self.lists.iter_mut().for_each(|list| list.count_useless_leap(saved));
        let (store, oldest) = (self.store, self.oldest);
        loop {
            let lists = self.lists.iter_mut().filter(|list| !list.is_set_aside());
            let unread_lists = lists.flat_map(|list| &mut list.postings).filter(|posting| posting.is_behind());
            let reads: Vec<_> = unread_lists.map(|posting| posting.read(store, oldest, newest)).collect();
            if reads.is_empty() {
                break;
            }
            let cost: usize = try_join_all(reads).await?.into_iter().sum();
            self.left = self.left.saturating_sub(cost);
        }
        let lists = self.lists.iter_mut().filter(|list| !list.is_set_aside());
        lists.flat_map(|list| &mut list.postings).for_each(PostingList::count_use);
        Ok(())
    }

    async fn filter_candidates(
        &mut self,
        filter: &EmailFilter,
        candidates: &[EmailId],
    ) -> Result<Vec<EmailWithRecipients>> {
        let wanted: Vec<_> = candidates.iter().map(|id| (self.account, *id)).collect();
        let loaded = email::get_each(self.store, &wanted, &|_| None).await?;
        let mut emails = Vec::new();
        for found in loaded.into_iter().flatten() {
            self.left = self.left.saturating_sub(found.recipients.len());
            if filter.matches(&found.email, &found.recipients) {
                let (email, recipients) = (Arc::unwrap_or_clone(found.email), found.recipients);
                emails.push(EmailWithRecipients { email, recipients, schedule: None });
            }
        }
        Ok(emails)
    }

    async fn with_schedules(&self, emails: &mut [EmailWithRecipients]) -> Result<()> {
        let bare: Vec<Email> = emails.iter().map(|found| found.email.clone()).collect();
        let mut schedules = email::load_schedules(self.store, self.account, &bare).await?;
        for found in emails {
            found.schedule = schedules.remove(&found.email.id);
        }
        Ok(())
    }
}

/// Emails that have any of several terms.
struct PostingUnion {
    postings: Vec<PostingList>,
    /// Number of consecutive useless skips.
    useless_leaps: usize,
}

impl PostingUnion {
    fn for_terms(account: AccountId, terms: &[IndexTerm]) -> Self {
        Self { postings: terms.iter().map(|term| PostingList::for_term(account, term)).collect(), useless_leaps: 0 }
    }

    /// The newest email read that is not older than `oldest`; `None` at the end.
    fn head(&self, oldest: u128) -> Option<u128> {
        self.postings.iter().filter_map(|posting| posting.head(oldest)).max()
    }

    /// Drops the emails that are newer than a position and returns their number.
    fn skip_newer_than(&mut self, newest: u128) -> usize {
        self.postings.iter_mut().map(|posting| posting.skip_newer_than(newest)).sum()
    }

    /// Returns whether the list is read sequentially, so that the others skip to its positions.
    fn leads(&self) -> bool {
        !self.is_set_aside() && self.postings.iter().all(|posting| !posting.is_leaping())
    }

    fn is_set_aside(&self) -> bool {
        self.useless_leaps >= USELESS_LEAPS_MAX
    }

    /// Rates the last skip by how many emails of a sequentially read list it saved. A sequential list has made no skip,
    /// and without one no skip is rated, so at least one list always remains.
    fn count_useless_leap(&mut self, saved: Option<usize>) {
        let leaps = self.postings.iter_mut().map(PostingList::take_leap);
        if leaps.fold(false, |any, one| any | one) {
            let is_useless = saved.is_some_and(|saved| saved < SAVED_MIN);
            self.useless_leaps = if is_useless { self.useless_leaps + 1 } else { 0 };
        }
    }
}
