//! Checks of a domain's DNS records, on request and periodically.
//!
//! Each node checks the domains of its own partitions, the longest due first, a bounded number concurrently and
//! round-robin by account ([`CheckQueue`]). After an outage the backlog is processed, and the next checks are spread
//! over the hour again.

use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::future::BoxFuture;
use futures_util::stream::FuturesUnordered;
use jiff::Timestamp;
use model::domain::{DomainState, SendingDomain};
use model::domain_setup::{DomainObservation, assess, next_check};
use model::id::{AccountId, DomainId};
use store::domain_setup::DomainSetupKey;

use super::check_queue::CheckQueue;
use super::inspection::{InspectionPriority, is_fresh};
use super::{COMMIT_TRIES_MAX, DomainError, DomainWithSetup, SendingDomains};

/// Interval of reading due domains; the first check is due a minute after a domain was added.
const POLL_INTERVAL: Duration = Duration::from_secs(15);
/// Interval while a backlog remains in the store and all loaded domains are done.
const BACKLOG_POLL_INTERVAL: Duration = Duration::from_millis(200);
/// Domains of one partition read at once.
const PAGE_DOMAINS: usize = 1_000;
/// A check that takes longer counts as slow: it waited for unresponsive name servers.
const SLOW_CHECK: Duration = Duration::from_secs(1);

impl SendingDomains {
    /// Checks a domain's records now and stores the result. A result of the last ten seconds, from any node, is
    /// returned without a check. So is the last result if the account's DNS query limit is reached.
    ///
    /// # Errors
    /// Returns a [`DomainError`]. A missing record is not an error.
    pub fn verify(&self, account: AccountId, id: DomainId) -> BoxFuture<'_, Result<DomainWithSetup, DomainError>> {
        Box::pin(async move {
            let domain = store::domain::get(self.rows.store(), account, id).await?.ok_or(DomainError::Unknown)?;
            if self.rows.auto_verify {
                return self.force_verify(&domain.name).await;
            }
            let (domain_setup, _) = self.rows.load_setup(domain).await?;
            if self.is_recently_checked(&domain_setup) {
                return Ok(domain_setup);
            }
            match self.check_and_save(&domain_setup.domain, InspectionPriority::Interactive).await {
                Err(DomainError::TooManyDnsQueries { .. }) if domain_setup.setup.last_checked_at.is_some() => {
                    Ok(domain_setup)
                }
                // A concurrent check stored its result.
                Err(DomainError::Conflict) => self.get(account, id).await,
                result => result,
            }
        })
    }

    /// Marks a domain and both its keys as verified, on the operator's command.
    ///
    /// # Errors
    /// Returns a [`DomainError`] if the domain is unknown or the commit fails.
    pub fn force_verify<'a>(
        &'a self,
        name: &'a message::address::DomainName,
    ) -> BoxFuture<'a, Result<DomainWithSetup, DomainError>> {
        Box::pin(async move {
            for _ in 0..COMMIT_TRIES_MAX {
                let before = store::domain::find_by_name(self.rows.store(), name).await?.ok_or(DomainError::Unknown)?;
                let (mut after, found) = self.rows.load_setup(before.clone()).await?;
                let (domain, now) = (&mut after.domain, self.rows.services.clock.now());
                domain.state = DomainState::Verified;
                domain.verified_at = domain.verified_at.or(Some(now));
                domain.dkim.ed25519_published = true;
                domain.delivery.tracking_seen.clone_from(&domain.delivery.tracking_host);
                domain.updated_at = now;
                (after.setup.operator_verified, after.setup.degraded_since, after.setup.due) = (true, None, None);
                if self.rows.save_domain(&before, found.as_ref(), &after).await? {
                    return Ok(after);
                }
            }
            Err(DomainError::Conflict)
        })
    }

    /// Returns whether all currently required records were checked a moment ago.
    fn is_recently_checked(&self, domain: &DomainWithSetup) -> bool {
        let now = self.rows.services.clock.now();
        domain.setup.last_checked_at.is_some_and(|at| is_fresh(at, now))
            && self
                .rows
                .facts
                .required_records(&domain.domain)
                .iter()
                .all(|record| domain.setup.finding(record).is_some())
    }

    /// Checks a domain's records and stores the result. The MX record of a receiving domain is required once the domain
    /// is verified: after the check that verifies it, a second check includes that record.
    async fn check_and_save(
        &self,
        domain: &SendingDomain,
        priority: InspectionPriority,
    ) -> Result<DomainWithSetup, DomainError> {
        let (key, is_interactive) = ((domain.account, domain.id), priority == InspectionPriority::Interactive);
        let observation = self.query_records(domain, priority).await?;
        let checked = self.save_check(key, observation, is_interactive).await?;
        let is_new = domain.state != DomainState::Verified && checked.domain.state == DomainState::Verified;
        if !is_new || self.is_recently_checked(&checked) {
            return Ok(checked);
        }
        let observation = match self.query_records(&checked.domain, priority).await {
            Err(DomainError::TooManyDnsQueries { .. }) => return Ok(checked),
            observation => observation?,
        };
        match self.save_check(key, observation, is_interactive).await {
            Err(DomainError::Conflict) => Ok(checked),
            result => result,
        }
    }

    async fn query_records(
        &self,
        domain: &SendingDomain,
        priority: InspectionPriority,
    ) -> Result<DomainObservation, DomainError> {
        let records = self.rows.facts.required_records(domain);
        let found = self.inspector.inspect(domain.account, &domain.name, records, priority).await?;
        // Opening an RSA key takes half a millisecond; a verified domain's keys sign mail every day and need no test.
        let keys_open = domain.state == DomainState::Verified || self.rows.can_unseal_keys(domain);
        Ok(DomainObservation { findings: found.findings, keys_open, at: found.at })
    }

    /// Stores the result of a check. Keys and settings that changed meanwhile are preserved.
    async fn save_check(
        &self,
        key: DomainSetupKey,
        observation: DomainObservation,
        is_interactive: bool,
    ) -> Result<DomainWithSetup, DomainError> {
        for _ in 0..COMMIT_TRIES_MAX {
            let before = store::domain::get(self.rows.store(), key.0, key.1).await?.ok_or(DomainError::Unknown)?;
            let (stored, found) = self.rows.load_setup(before.clone()).await?;
            if stored.setup.last_checked_at == Some(observation.at) && self.is_recently_checked(&stored) {
                // Another caller waited for the same check and stored it.
                return Ok(stored);
            }
            let checked_records = observation.findings.iter().map(|(record, _)| record);
            if !checked_records.eq(&self.rows.facts.required_records(&before)) {
                // Keys or settings changed meanwhile: the result does not apply to them.
                return Err(DomainError::Conflict);
            }
            let (domain, mut setup) = assess(&stored.domain, &stored.setup, &observation);
            if is_interactive && domain.state == DomainState::Unverified {
                // The owner is working on the records: check again soon.
                setup.since = observation.at;
            }
            setup.due = next_check(&domain, &setup, observation.at, self.rows.services.entropy.u64());
            let after = DomainWithSetup { domain, setup };
            if self.rows.save_domain(&before, found.as_ref(), &after).await? {
                log_changes(&before, &stored, &after);
                return Ok(after);
            }
        }
        Err(DomainError::Conflict)
    }

    /// Checks due domains until shutdown. An unfinished check stays due.
    pub(crate) async fn run_domain_checks(self: Arc<Self>) {
        if self.rows.auto_verify {
            return;
        }
        let (mut queue, mut checks) = (CheckQueue::default(), FuturesUnordered::new());
        let (mut reads_at, mut has_more) = (self.rows.services.clock.now(), false);
        loop {
            let now = self.rows.services.clock.now();
            if reads_at <= now {
                has_more = self.load_due(&mut queue, now).await.unwrap_or_else(|error| {
                    store::warn_unless_away!(self.rows.services.store, %error, "cannot read the domains due for a check; retrying");
                    false
                });
                reads_at = self.rows.services.clock.after(POLL_INTERVAL);
            }
            while let Some(key) = queue.dequeue() {
                checks.push(self.recheck(key));
            }
            tokio::select! {
                Some((key, result)) = checks.next() => {
                    queue.finish(key, matches!(result, Ok(true)));
                    if let Err(error) = result {
                        store::warn_unless_away!(self.rows.services.store, %error, "cannot check domain records; retrying");
                        // They are still due and will be read again.
                        queue.clear();
                    }
                    if has_more && queue.is_empty() {
                        (reads_at, has_more) = (reads_at.min(self.rows.services.clock.after(BACKLOG_POLL_INTERVAL)), false);
                    }
                }
                // Earlier if the clock was set back.
                () = self.rows.services.clock.sleep_until(reads_at) => {
                    reads_at = reads_at.min(self.rows.services.clock.now());
                }
                () = self.rows.services.stop.cancelled() => return,
            }
        }
    }

    /// Enqueues the due domains of this node's partitions. Returns whether more are due.
    async fn load_due(&self, queue: &mut CheckQueue, now: Timestamp) -> Result<bool, DomainError> {
        let mut has_more = false;
        for partition in self.rows.services.leases.active() {
            let (due, _) = store::domain_setup::list_due(self.rows.store(), partition, now, PAGE_DOMAINS).await?;
            has_more |= due.len() == PAGE_DOMAINS;
            for key in due {
                has_more |= !queue.enqueue(key);
            }
        }
        Ok(has_more)
    }

    /// Checks a due domain and stores the result. Returns whether the check was slow.
    async fn recheck(&self, key: DomainSetupKey) -> (DomainSetupKey, Result<bool, DomainError>) {
        let started_at = self.rows.services.clock.now();
        let result = match self.check_if_due(key, started_at).await {
            Ok(()) | Err(DomainError::Unknown | DomainError::Conflict) => {
                let elapsed = self.rows.services.clock.now().duration_since(started_at);
                Ok(Duration::try_from(elapsed).is_ok_and(|elapsed| elapsed >= SLOW_CHECK))
            }
            // It is still due. Count it as slow, so that the account's other domains are throttled too.
            Err(DomainError::TooManyDnsQueries { .. }) => Ok(true),
            Err(error) => Err(error),
        };
        (key, result)
    }

    async fn check_if_due(&self, key: DomainSetupKey, now: Timestamp) -> Result<(), DomainError> {
        let Some(domain) = store::domain::get(self.rows.store(), key.0, key.1).await? else { return Ok(()) };
        if self.rows.load_setup(domain.clone()).await?.0.setup.due.is_none_or(|due| due > now) {
            return Ok(());
        }
        self.check_and_save(&domain, InspectionPriority::Background).await.map(drop)
    }
}

/// Logs changes of a domain's state.
fn log_changes(before: &SendingDomain, before_setup: &DomainWithSetup, after: &DomainWithSetup) {
    let name = &after.domain.name;
    match (before.state, after.domain.state) {
        (DomainState::Unverified, DomainState::Verified) => {
            tracing::info!(domain.name = %name, "domain verified")
        }
        (DomainState::Verified, DomainState::Unverified) => {
            tracing::warn!(domain.name = %name, "domain no longer verified: its records were missing for too long");
        }
        _ if before_setup.setup.degraded_since.is_none() && after.setup.degraded_since.is_some() => {
            tracing::warn!(domain.name = %name, "a record of a verified domain is missing");
        }
        _ => {}
    }
}
