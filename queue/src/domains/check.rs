//! Looking at a domain's records: when somebody asks, and by itself.
//!
//! Each node looks at the domains of its own partitions, the longest due first, some at a time, with accounts in
//! turn ([`Line`]): what has waited through an outage comes one after the other, and is spread over the hour again by
//! when it comes next.

use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::future::BoxFuture;
use futures_util::stream::FuturesUnordered;
use jiff::Timestamp;
use mail::domain::{DomainState, SendingDomain};
use mail::id::{AccountId, DomainId};
use mail::setup::{DomainObservation, assess, next_check};
use store::setup::DomainSetupKey;

use super::inspect::{InspectionPriority, is_fresh};
use super::line::CheckQueue;
use super::{COMMIT_TRIES_MAX, DomainError, DomainWithSetup, SendingDomains};

/// How often is read what is due: the first look is a minute after a domain was added.
const POLL_INTERVAL: Duration = Duration::from_secs(15);
/// How soon it is read again where there was more of it, and all that was read is done.
const BACKLOG_POLL_INTERVAL: Duration = Duration::from_millis(200);
/// Domains of one partition that are read at once.
const PAGE_DOMAINS: usize = 1_000;
/// A look that takes so long waited for name servers that do not answer.
const SLOW_CHECK: Duration = Duration::from_secs(1);

impl SendingDomains {
    /// Looks at a domain's records now, and settles what that means. What was found in the last ten seconds, by whichever
    /// node, is the answer without a look; and so is what was found last, when the account has had too many questions
    /// asked.
    ///
    /// # Errors
    /// [`DomainError`]. That a record is not there is none.
    pub fn verify(&self, account: AccountId, id: DomainId) -> BoxFuture<'_, Result<DomainWithSetup, DomainError>> {
        Box::pin(async move {
            let domain = store::domain::get(self.store(), account, id).await?.ok_or(DomainError::Unknown)?;
            if self.parts.auto_verify {
                return self.force_verify(&domain.name).await;
            }
            let (known, _) = self.load_setup(domain).await?;
            if self.is_recently_checked(&known) {
                return Ok(known);
            }
            match self.check_and_save(&known.domain, InspectionPriority::Interactive).await {
                Err(DomainError::TooManyDnsQueries { .. }) if known.setup.last_checked_at.is_some() => Ok(known),
                // Others have looked at the same time, and settled what they saw.
                Err(DomainError::Conflict) => self.get(account, id).await,
                settled => settled,
            }
        })
    }

    /// Takes a domain as verified, with both its keys, on the operator's word.
    ///
    /// # Errors
    /// [`DomainError`].
    pub fn force_verify<'a>(
        &'a self,
        name: &'a mail::address::DomainName,
    ) -> BoxFuture<'a, Result<DomainWithSetup, DomainError>> {
        Box::pin(async move {
            for _ in 0..COMMIT_TRIES_MAX {
                let before = store::domain::find_by_name(self.store(), name).await?.ok_or(DomainError::Unknown)?;
                let (mut after, found) = self.load_setup(before.clone()).await?;
                let (domain, now) = (&mut after.domain, self.worker.clock.now());
                domain.state = DomainState::Verified;
                domain.verified_at = domain.verified_at.or(Some(now));
                domain.dkim.ed25519_published = true;
                domain.delivery.tracking_seen.clone_from(&domain.delivery.tracking_host);
                domain.updated_at = now;
                (after.setup.vouched, after.setup.degraded_since, after.setup.due) = (true, None, None);
                if self.save_domain(&before, found.as_ref(), &after).await? {
                    return Ok(after);
                }
            }
            Err(DomainError::Conflict)
        })
    }

    /// Whether all records of a domain, as they are wanted now, were looked for a moment ago.
    fn is_recently_checked(&self, known: &DomainWithSetup) -> bool {
        let now = self.worker.clock.now();
        known.setup.last_checked_at.is_some_and(|at| is_fresh(at, now))
            && self
                .parts
                .facts
                .required_records(&known.domain)
                .iter()
                .all(|record| known.setup.finding(record).is_some())
    }

    /// Looks at a domain's records, and books what was seen. The MX record of a domain that receives is wanted from when
    /// it is verified on: the look that verifies it is followed by one that sees that record too.
    async fn check_and_save(
        &self,
        domain: &SendingDomain,
        wish: InspectionPriority,
    ) -> Result<DomainWithSetup, DomainError> {
        let (about, asked) = ((domain.account, domain.id), wish == InspectionPriority::Interactive);
        let seen = self.query_records(domain, wish).await?;
        let known = self.save_check(about, seen, asked).await?;
        let is_new = domain.state != DomainState::Verified && known.domain.state == DomainState::Verified;
        if !is_new || self.is_recently_checked(&known) {
            return Ok(known);
        }
        let seen = match self.query_records(&known.domain, wish).await {
            Err(DomainError::TooManyDnsQueries { .. }) => return Ok(known),
            seen => seen?,
        };
        match self.save_check(about, seen, asked).await {
            Err(DomainError::Conflict) => Ok(known),
            settled => settled,
        }
    }

    async fn query_records(
        &self,
        domain: &SendingDomain,
        wish: InspectionPriority,
    ) -> Result<DomainObservation, DomainError> {
        let records = self.parts.facts.required_records(domain);
        let found = self.inspect((domain.account, &domain.name), records, wish).await?;
        // Opening an RSA key takes half a millisecond: what signs mail every day need not be proved every hour.
        let keys_open = domain.state == DomainState::Verified || self.can_unseal_keys(domain);
        Ok(DomainObservation { findings: found.findings, keys_open, at: found.at })
    }

    /// Books what was seen. Keys that were turned meanwhile, and settings that were changed, stay as they are.
    async fn save_check(
        &self,
        about: DomainSetupKey,
        seen: DomainObservation,
        asked: bool,
    ) -> Result<DomainWithSetup, DomainError> {
        for _ in 0..COMMIT_TRIES_MAX {
            let before = store::domain::get(self.store(), about.0, about.1).await?.ok_or(DomainError::Unknown)?;
            let (known, found) = self.load_setup(before.clone()).await?;
            if known.setup.last_checked_at == Some(seen.at) && self.is_recently_checked(&known) {
                // Others have waited for the same look, and settled it.
                return Ok(known);
            }
            let looked_for = seen.findings.iter().map(|(record, _)| record);
            if !looked_for.eq(&self.parts.facts.required_records(&before)) {
                // Other keys, or another setting, meanwhile: what was seen says nothing of them.
                return Err(DomainError::Conflict);
            }
            let (domain, mut setup) = assess(&known.domain, &known.setup, &seen);
            if asked && domain.state == DomainState::Unverified {
                // Somebody is at work on it: soon again.
                setup.since = seen.at;
            }
            setup.due = next_check(&domain, &setup, seen.at, self.worker.entropy.u64());
            let after = DomainWithSetup { domain, setup };
            if self.save_domain(&before, found.as_ref(), &after).await? {
                log_changes(&before, &known, &after);
                return Ok(after);
            }
        }
        Err(DomainError::Conflict)
    }

    /// Keeps looking at what is due, until the worker stops. What is under way then is left, and is due still.
    pub(crate) async fn run_domain_checks(self: Arc<Self>) {
        if self.parts.auto_verify {
            return;
        }
        let (mut line, mut looks) = (CheckQueue::default(), FuturesUnordered::new());
        let (mut reads_at, mut more) = (self.worker.clock.now(), false);
        loop {
            let now = self.worker.clock.now();
            if reads_at <= now {
                more = self.load_due(&mut line, now).await.unwrap_or_else(|error| {
                    store::warn_unless_away!(self.worker.store, %error, "which domains are to be looked at cannot be read now");
                    false
                });
                reads_at = self.worker.after(POLL_INTERVAL);
            }
            while let Some(about) = line.dequeue() {
                looks.push(self.recheck(about));
            }
            tokio::select! {
                Some((about, looked)) = looks.next() => {
                    line.finish(about, matches!(looked, Ok(true)));
                    if let Err(error) = looked {
                        store::warn_unless_away!(self.worker.store, %error, "the records of domains cannot be looked at now");
                        // They are due still, and read again.
                        line.clear();
                    }
                    if more && line.is_empty() {
                        (reads_at, more) = (reads_at.min(self.worker.after(BACKLOG_POLL_INTERVAL)), false);
                    }
                }
                () = self.worker.clock.sleep_until(reads_at) => {}
                () = self.worker.stop.cancelled() => return,
            }
        }
    }

    /// Puts in line what is due in our partitions; whether there is more of it.
    async fn load_due(&self, line: &mut CheckQueue, now: Timestamp) -> Result<bool, DomainError> {
        let mut more = false;
        for partition in self.worker.leases.active() {
            let (due, _) = store::setup::list_due(self.store(), partition, now, PAGE_DOMAINS).await?;
            more |= due.len() == PAGE_DOMAINS;
            for about in due {
                more |= !line.enqueue(about);
            }
        }
        Ok(more)
    }

    /// Looks at a domain that was due, and settles what that means; whether it took long.
    async fn recheck(&self, about: DomainSetupKey) -> (DomainSetupKey, Result<bool, DomainError>) {
        let begun = self.worker.clock.now();
        let looked = match self.check_if_due(about, begun).await {
            Ok(()) | Err(DomainError::Unknown | DomainError::Conflict) => {
                let took = self.worker.clock.now().duration_since(begun);
                Ok(Duration::try_from(took).is_ok_and(|took| took >= SLOW_CHECK))
            }
            // It is due still; the account's other domains go slowly, too.
            Err(DomainError::TooManyDnsQueries { .. }) => Ok(true),
            Err(error) => Err(error),
        };
        (about, looked)
    }

    async fn check_if_due(&self, about: DomainSetupKey, now: Timestamp) -> Result<(), DomainError> {
        let Some(domain) = store::domain::get(self.store(), about.0, about.1).await? else { return Ok(()) };
        if self.load_setup(domain.clone()).await?.0.setup.due.is_none_or(|due| due > now) {
            return Ok(());
        }
        self.check_and_save(&domain, InspectionPriority::Background).await.map(drop)
    }
}

/// The operator's log tells what changed.
fn log_changes(before: &SendingDomain, was: &DomainWithSetup, after: &DomainWithSetup) {
    let name = &after.domain.name;
    match (before.state, after.domain.state) {
        (DomainState::Unverified, DomainState::Verified) => {
            tracing::info!(domain.name = %name, "a domain is verified")
        }
        (DomainState::Verified, DomainState::Unverified) => {
            tracing::warn!(domain.name = %name, "a domain's records were gone for too long: it is verified no more");
        }
        _ if was.setup.degraded_since.is_none() && after.setup.degraded_since.is_some() => {
            tracing::warn!(domain.name = %name, "a record of a verified domain is gone");
        }
        _ => {}
    }
}
