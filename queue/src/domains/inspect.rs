//! Inspecting a domain's records within bounds: who owns a zone names its servers, so that whoever asks for inspections
//! decides who is asked. (docs/DOMAINS.md, "How much is asked")
//!
//! ```text
//! what, for whom ─► one at a time of the same ─► found in the last ten seconds? ─► within the account's questions? ─► ask
//! ```

use std::collections::HashMap;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use dns::limiter::Rate;
use jiff::Timestamp;
use mail::address::Name;
use mail::id::AccountId;
use mail::setup::{Finding, Record};

use super::{DomainError, Domains};

/// For so long what was found is found again, without a question.
const FRESH: Duration = Duration::from_secs(10);
/// Questions that an account may have asked, over all nodes.
const RATE: Rate = Rate { per_second: 20, burst: 200 };
/// How many an inspection usually takes.
const USUAL: u32 = 20;
/// How long somebody who asks waits for the account's questions.
const PATIENCE: Duration = Duration::from_millis(500);
/// How long a look that comes by itself does.
const PATIENCE_BY_ITSELF: Duration = Duration::from_secs(5);
/// What was found that is kept in memory.
const RECENT_MAX: usize = 10_000;
/// Of each domain: what its owner wants to stand there, and of a claim both accounts' records.
const EACH_RECENT_MAX: usize = 4;
/// What finding a provider's page, or reading a zone to change it, is counted as.
pub(super) const QUESTIONS_OF_PROVIDER: u32 = 20;

/// Who has an inspection made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wish {
    /// Somebody who waits.
    Asked,
    /// It is due.
    Due,
}

impl Wish {
    fn patience(self) -> Duration {
        match self {
            Self::Asked => PATIENCE,
            Self::Due => PATIENCE_BY_ITSELF,
        }
    }
}

/// What was found, and when.
#[derive(Debug, Clone)]
pub(super) struct Found {
    pub(super) at: Timestamp,
    pub(super) findings: Vec<(Record, Finding)>,
}

impl Found {
    fn is_of(&self, records: &[Record]) -> bool {
        self.findings.iter().map(|(record, _)| record).eq(records)
    }
}

/// What inspections have found lately, by who had them made and of which domain.
#[derive(Debug, Default)]
pub(super) struct Recent(Mutex<HashMap<(AccountId, Name), Vec<Found>>>);

impl Recent {
    fn get(&self, of: &(AccountId, Name), records: &[Record], now: Timestamp) -> Option<Found> {
        let recent = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        recent.get(of)?.iter().find(|found| is_fresh(found.at, now) && found.is_of(records)).cloned()
    }

    fn put(&self, of: (AccountId, Name), records: &[Record], found: Found) {
        let mut recent = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if recent.len() >= RECENT_MAX {
            recent.retain(|_, all| all.iter().any(|other| is_fresh(other.at, found.at)));
            if recent.len() >= RECENT_MAX {
                recent.clear();
            }
        }
        let all = recent.entry(of).or_default();
        all.retain(|other| is_fresh(other.at, found.at) && !other.is_of(records));
        if all.len() >= EACH_RECENT_MAX {
            all.remove(0);
        }
        all.push(found);
    }
}

/// Whether what was found then is the answer still. Not from a future that a clock set back has made of it.
pub(super) fn is_fresh(at: Timestamp, now: Timestamp) -> bool {
    Duration::try_from(now.duration_since(at)).is_ok_and(|age| age < FRESH)
}

/// Counts what an inspection asks for the account that has it made, also when it is given up midway. So much as it
/// usually asks is taken before.
struct Count<'a> {
    domains: &'a Domains,
    account: AccountId,
    asked: AtomicU32,
}

impl Drop for Count<'_> {
    fn drop(&mut self) {
        let (asked, rate) = (self.asked.load(Ordering::Relaxed), self.domains.rate());
        if let Some(more) = asked.checked_sub(USUAL) {
            self.domains.questions.spend(self.account, more, rate, self.domains.nanoseconds());
        } else {
            self.domains.questions.give_back(&self.account, USUAL - asked, rate);
        }
    }
}

impl Domains {
    /// Looks for records of a domain, as questions of an account. Of the same records there is one look at a time, and
    /// what was found lately is found again.
    pub(super) async fn inspect(
        &self,
        (account, name): (AccountId, &Name),
        records: Vec<Record>,
        wish: Wish,
    ) -> Result<Found, DomainError> {
        let of = (account, name.clone());
        let _same = self.inspected.take(of.clone()).await;
        if let Some(found) = self.recent.get(&of, &records, self.worker.clock.now()) {
            return Ok(found);
        }
        let _turn = self.looks.take(account).await;
        self.ask(account, USUAL, wish).await?;
        let at = self.worker.clock.now();
        let count = Count { domains: self, account, asked: AtomicU32::new(0) };
        let found = self.parts.inspector.inspect_counting((name, &records), at, &count.asked).await;
        drop(count);
        let found = Found { at, findings: records.iter().cloned().zip(found).collect() };
        self.recent.put(of, &records, found.clone());
        Ok(found)
    }

    /// An account has so many questions asked, as soon as it may.
    ///
    /// # Errors
    /// [`DomainError::TooManyQuestions`]: that is not soon.
    pub(super) async fn ask(
        &self,
        account: AccountId,
        questions: u32,
        wish: Wish,
    ) -> Result<(), DomainError> {
        let begun = self.worker.clock.now();
        loop {
            let Err(wait) = self.questions.take(&account, questions, (self.rate(), self.nanoseconds()))
            else {
                return Ok(());
            };
            let waited =
                Duration::try_from(self.worker.clock.now().duration_since(begun)).unwrap_or_default();
            if waited + wait > wish.patience() || self.worker.stop.is_cancelled() {
                return Err(DomainError::TooManyQuestions { retry_after: wait });
            }
            tokio::select! {
                () = self.worker.clock.sleep_until(self.worker.later(wait)) => {}
                () = self.worker.stop.cancelled() => {}
            }
        }
    }

    /// The same, without waiting: whether it may.
    #[must_use]
    pub fn ask_now(&self, account: AccountId, questions: usize) -> bool {
        let questions = u32::try_from(questions).unwrap_or(u32::MAX);
        self.questions.take(&account, questions, (self.rate(), self.nanoseconds())).is_ok()
    }

    /// What this node gives of the rate, so that all together keep to it.
    fn rate(&self) -> Rate {
        let nodes = self.worker.leases.nodes().max(1);
        Rate { per_second: RATE.per_second.div_ceil(nodes), burst: RATE.burst.div_ceil(nodes) }
    }

    fn nanoseconds(&self) -> u64 {
        u64::try_from(self.worker.clock.now().as_nanosecond()).unwrap_or_default()
    }
}
