//! Domain claims: transfer of a domain from another account to whoever controls its DNS.
//!
//! ```text
//! claim ─► record found ─► never verified by the other? ─yes─► completed (verified, while the plan is full)
//!                                    └─no─► blocked: 72 hours, their record removed, nothing scheduled ─► completed
//! ```
//!
//! The claimant requests checks. Claims whose record was found are also checked once an hour, so that they complete
//! without the claimant's return. A claim that does not complete in time expires. The new account gets a new domain
//! with a new id and new keys.

use std::sync::Arc;
use std::time::Duration;

use events::outbox::OutboxDispatcher;
use events::owner_alert_queue::OwnerAlertQueue;
use events::subsystems::EventSubsystems;
use futures_util::future::BoxFuture;
use jiff::Timestamp;
use message::address::DomainName;
use model::domain::SendingDomain;
use model::domain_claim::{ClaimBlocker, ClaimStatus, DomainClaim};
use model::domain_setup::{RecordFinding, RecordStatus};
use model::email::EmailStatus;
use model::email_index::EmailFilter;
use model::id::{AccountId, ClaimId, EventId};
use model::owner_alert::{AlertSubject, OwnerAlert};
use store::engine::Batch;
use store::task::PARTITIONS;
use thiserror::Error;

use super::inspection::{DomainInspector, InspectionPriority};
use super::rows::DomainRows;
use super::{COMMIT_TRIES_MAX, DomainError, NewDomain};

/// Interval of checking proven claims.
const CHECK_INTERVAL: Duration = Duration::from_secs(3_600);
/// Claims read at once.
const PAGE_CLAIMS: usize = 100;

/// Why a claim was not created or checked.
#[derive(Debug, Error)]
pub enum ClaimError {
    #[error("claim not found")]
    Unknown,
    #[error("the claim is already {0:?}")]
    Ended(ClaimStatus),
    /// No account has the domain: it can be added directly.
    #[error("{0} belongs to no account: add it as a domain")]
    Free(DomainName),
    #[error(transparent)]
    Domain(#[from] DomainError),
}

impl From<store::engine::ReadError> for ClaimError {
    fn from(error: store::engine::ReadError) -> Self {
        Self::Domain(error.into())
    }
}

/// A claim after a check.
#[derive(Debug)]
pub struct ClaimResult {
    pub claim: DomainClaim,
    /// Result for its record, if it was checked.
    pub finding: Option<RecordFinding>,
}

/// Claims of domains that other accounts have.
pub struct DomainClaims {
    rows: Arc<DomainRows>,
    inspector: Arc<DomainInspector>,
    outbox: Arc<OutboxDispatcher>,
    owner_alerts: OwnerAlertQueue,
}

impl DomainClaims {
    pub(super) fn new(rows: Arc<DomainRows>, inspector: Arc<DomainInspector>, events: &EventSubsystems) -> Self {
        Self { rows, inspector, outbox: Arc::clone(&events.outbox), owner_alerts: events.owner_alerts.clone() }
    }

    /// Claims a domain of another account. Returns the open claim if there is one.
    ///
    /// # Errors
    /// Returns a [`ClaimError`] if the domain cannot be claimed or the store fails.
    pub async fn claim(&self, account: AccountId, name: DomainName) -> Result<DomainClaim, ClaimError> {
        for _ in 0..COMMIT_TRIES_MAX {
            if let Some(open) = self.check_can_claim(account, &name).await? {
                return Ok(open);
            }
            let now = self.rows.services.clock.now();
            let mut batch = Batch::progress();
            if let Some(open) = store::domain_claim::find_open(self.rows.store(), account, &name).await? {
                // It has expired.
                store::domain_claim::update(&mut batch, &open, &open.with_status(ClaimStatus::Expired));
                self.rows.commit_unless_changed(batch).await?;
                continue;
            }
            let claim = DomainClaim {
                id: ClaimId::new(now, self.rows.services.entropy.unique_bits()),
                account,
                name: name.clone(),
                status: ClaimStatus::Pending,
                block: None,
                proven_at: None,
                created_at: now,
            };
            store::domain_claim::create(&mut batch, &claim);
            if self.rows.commit_unless_changed(batch).await? {
                return Ok(claim);
            }
        }
        Err(DomainError::Conflict.into())
    }

    /// Checks that an account may claim a domain. Returns its open claim, if there is one.
    ///
    /// # Errors
    /// Returns a [`ClaimError`] if the domain belongs to no account or to this one.
    pub async fn check_can_claim(
        &self,
        account: AccountId,
        name: &DomainName,
    ) -> Result<Option<DomainClaim>, ClaimError> {
        match store::domain::find_by_name(self.rows.store(), name).await? {
            None => return Err(ClaimError::Free(name.clone())),
            Some(owner) if owner.account == account => return Err(DomainError::Exists(name.clone()).into()),
            Some(_) => {}
        }
        let now = self.rows.services.clock.now();
        let open = store::domain_claim::find_open(self.rows.store(), account, name).await?;
        Ok(open.filter(|open| open.status_at(now) != ClaimStatus::Expired))
    }

    /// Checks a claim's record and completes the claim if nothing blocks it and the account has fewer than `limit`
    /// domains.
    ///
    /// # Errors
    /// Returns a [`ClaimError`] if the claim is unknown, the limit is reached, or the store or DNS fails.
    pub fn verify_claim(
        &self,
        account: AccountId,
        id: ClaimId,
        limit: Option<u32>,
    ) -> BoxFuture<'_, Result<ClaimResult, ClaimError>> {
        Box::pin(async move {
            for _ in 0..COMMIT_TRIES_MAX {
                let claim =
                    store::domain_claim::get(self.rows.store(), account, id).await?.ok_or(ClaimError::Unknown)?;
                let now = self.rows.services.clock.now();
                if !claim.is_open() || claim.status_at(now) == ClaimStatus::Expired {
                    return Ok(ClaimResult { claim, finding: None });
                }
                let finding = self.find_ownership(account, account, &claim.name).await?;
                let is_proven = finding.as_ref().is_some_and(|finding| finding.status == RecordStatus::Verified);
                if !is_proven {
                    // A DNS outage does not revoke the proof, but the record must exist when the claim completes.
                    return Ok(ClaimResult { claim, finding });
                }
                let owner = store::domain::find_by_name(self.rows.store(), &claim.name).await?;
                let mut after = claim.clone();
                after.proven_at = claim.proven_at.or(Some(now));
                let status = match owner {
                    Some(owner) if owner.account == account => {
                        after = after.with_status(ClaimStatus::Cancelled);
                        self.save_claim(&claim, &after).await?
                    }
                    Some(owner) => match self.claim_block(&after, &owner, now).await? {
                        Some(block) => {
                            (after.status, after.block) = (ClaimStatus::Blocked, Some(block));
                            self.save_blocked_claim(&claim, &after, owner.account).await?
                        }
                        None => self.complete_claim(&claim, &mut after, Some(owner), limit).await?,
                    },
                    None => self.complete_claim(&claim, &mut after, None, limit).await?,
                };
                if status {
                    return Ok(ClaimResult { claim: after, finding });
                }
            }
            Err(DomainError::Conflict.into())
        })
    }

    /// Transfers the domain. If the plan's limit is reached, stores that nothing else blocks the claim.
    async fn complete_claim(
        &self,
        before: &DomainClaim,
        after: &mut DomainClaim,
        owner: Option<SendingDomain>,
        limit: Option<u32>,
    ) -> Result<bool, DomainError> {
        match self.transfer_domain(before, after, owner, limit).await {
            Err(full @ DomainError::Limit { .. }) => {
                (after.status, after.block) = (ClaimStatus::Verified, None);
                if self.save_claim(before, after).await? { Err(full) } else { Ok(false) }
            }
            result => result,
        }
    }

    /// Cancels an open claim. Cancelling twice succeeds.
    ///
    /// # Errors
    /// Returns a [`ClaimError`] if the claim is unknown or has ended.
    pub async fn cancel_claim(&self, account: AccountId, id: ClaimId) -> Result<DomainClaim, ClaimError> {
        for _ in 0..COMMIT_TRIES_MAX {
            let claim = store::domain_claim::get(self.rows.store(), account, id).await?.ok_or(ClaimError::Unknown)?;
            match claim.status_at(self.rows.services.clock.now()) {
                ClaimStatus::Cancelled => return Ok(claim),
                final_status @ (ClaimStatus::Completed | ClaimStatus::Expired) => {
                    return Err(ClaimError::Ended(final_status));
                }
                ClaimStatus::Pending | ClaimStatus::Blocked | ClaimStatus::Verified => {}
            }
            let cancelled = claim.with_status(ClaimStatus::Cancelled);
            if self.save_claim(&claim, &cancelled).await? {
                return Ok(cancelled);
            }
        }
        Err(DomainError::Conflict.into())
    }

    /// Checks the ownership record of `account`; the DNS queries are charged to `claimant`.
    async fn find_ownership(
        &self,
        claimant: AccountId,
        account: AccountId,
        name: &DomainName,
    ) -> Result<Option<RecordFinding>, DomainError> {
        let record = self.rows.facts.ownership_record(account, name);
        let found = self.inspector.inspect(claimant, name, vec![record], InspectionPriority::Interactive).await?;
        Ok(found.findings.into_iter().next().map(|(_, finding)| finding))
    }

    async fn save_claim(&self, before: &DomainClaim, after: &DomainClaim) -> Result<bool, DomainError> {
        if before == after {
            return Ok(true);
        }
        let mut batch = Batch::progress();
        store::domain_claim::update(&mut batch, before, after);
        self.rows.commit_unless_changed(batch).await
    }

    /// Stores that a claim is blocked. When the record was found for the first time, the same commit alerts the other
    /// account's owner.
    async fn save_blocked_claim(
        &self,
        before: &DomainClaim,
        after: &DomainClaim,
        other: AccountId,
    ) -> Result<bool, DomainError> {
        let (None, Some(grace_ends_at)) = (before.proven_at, after.grace_ends_at()) else {
            return self.save_claim(before, after).await;
        };
        let now = self.rows.services.clock.now();
        let id = EventId::new(now, self.rows.services.entropy.unique_bits());
        let subject = AlertSubject::Claim { claimed: after.name.clone(), grace_ends_at };
        let notice = OwnerAlert { id, account: other, about: subject, since: now };
        let [.., last] = after.id.to_bytes();
        let partition = self.rows.services.leases.any().unwrap_or(u16::from(last) % PARTITIONS);
        let mut batch = Batch::progress();
        store::domain_claim::update(&mut batch, before, after);
        store::owner_alert::enqueue(&mut batch, partition, &notice);
        let booked = self.rows.commit_unless_changed(batch).await?;
        if booked {
            self.owner_alerts.timers.schedule(partition, now);
        }
        Ok(booked)
    }

    /// Returns the blocker of a proven claim, if any.
    async fn claim_block(
        &self,
        claim: &DomainClaim,
        owner: &SendingDomain,
        now: Timestamp,
    ) -> Result<Option<ClaimBlocker>, DomainError> {
        if owner.verified_at.is_some() {
            if claim.grace_ends_at().is_none_or(|ends_at| now < ends_at) {
                return Ok(Some(ClaimBlocker::GracePeriod));
            }
            // The queries are charged to the claimant.
            let owner_claim = self.find_ownership(claim.account, owner.account, &claim.name).await?;
            if owner_claim.is_some_and(|finding| finding.status == RecordStatus::Verified) {
                return Ok(Some(ClaimBlocker::RecentOwnerActivity));
            }
        }
        let scheduled = self.has_scheduled(owner).await?;
        Ok(scheduled.then_some(ClaimBlocker::PendingScheduledEmails))
    }

    /// Returns whether emails from a domain are scheduled.
    pub async fn has_scheduled(&self, domain: &SendingDomain) -> Result<bool, DomainError> {
        // Emails accepted a moment ago are not indexed yet.
        if let Err(error) = self.outbox.dispatch_outbox().await {
            tracing::warn!(%error, "the list of scheduled emails may be stale");
        }
        let filter = EmailFilter {
            statuses: vec![EmailStatus::Scheduled],
            domains: vec![domain.name.clone()],
            ..EmailFilter::default()
        };
        let mut before = None;
        loop {
            let found =
                store::email_index::search::search(self.rows.store(), domain.account, &filter, before, 1).await?;
            if !found.emails.is_empty() {
                return Ok(true);
            }
            // A search may end early after reading many rows.
            before = found.next;
            if before.is_none() {
                return Ok(false);
            }
        }
    }

    /// Gives the domain to the claimant, unverified and with new keys, and completes the claim in one commit.
    async fn transfer_domain(
        &self,
        before: &DomainClaim,
        after: &mut DomainClaim,
        owner: Option<SendingDomain>,
        limit: Option<u32>,
    ) -> Result<bool, DomainError> {
        let limit_check = self.rows.check_domain_limit(before.account, limit).await?;
        let domain = self.rows.new_domain(before.account, NewDomain::with_name(before.name.clone())).await?;
        let setup = self.rows.initial_setup(domain);
        (after.status, after.block) = (ClaimStatus::Completed, None);
        let mut batch = Batch::progress();
        match owner {
            None => store::domain::create(&mut batch, &setup.domain, &limit_check),
            Some(owner) => {
                let count = store::domain::count(self.rows.store(), owner.account).await?;
                let (held, found) = self.rows.load_setup(owner).await?;
                store::domain::replace(&mut batch, &held.domain, &count, &setup.domain, &limit_check);
                if let Some(found) = found {
                    store::domain_setup::delete(&mut batch, store::domain_setup::setup_key(&held.domain), &found);
                }
            }
        }
        store::domain_setup::create(&mut batch, store::domain_setup::setup_key(&setup.domain), &setup.setup);
        store::domain_claim::update(&mut batch, before, after);
        self.rows.commit_domain(batch, &setup.domain).await
    }

    /// Checks proven claims until shutdown. `limit` returns the domain limit of an account.
    pub(crate) async fn run_checks<L, Limited>(&self, limit: L)
    where
        L: Fn(AccountId) -> Limited,
        Limited: Future<Output = Option<u32>>,
    {
        while !self.rows.services.stop.is_cancelled() {
            // One node is enough: the one that holds partition 0.
            if self.rows.services.leases.is_active(0)
                && let Err(error) = self.check_proven_claims(&limit).await
            {
                store::warn_unless_away!(self.rows.services.store, %error, "cannot check domain claims; retrying");
            }
            let next = self.rows.services.clock.after(CHECK_INTERVAL);
            tokio::select! {
                () = self.rows.services.clock.sleep_until(next) => {}
                () = self.rows.services.stop.cancelled() => {}
            }
        }
    }

    async fn check_proven_claims<L, Limited>(&self, limit: &L) -> Result<(), ClaimError>
    where
        L: Fn(AccountId) -> Limited,
        Limited: Future<Output = Option<u32>>,
    {
        let mut after = None;
        loop {
            let (claims, next) = store::domain_claim::list_open(self.rows.store(), after, PAGE_CLAIMS).await?;
            for claim in claims {
                let now = self.rows.services.clock.now();
                if claim.status_at(now) == ClaimStatus::Expired {
                    self.save_claim(&claim, &claim.with_status(ClaimStatus::Expired)).await?;
                } else if matches!(claim.status, ClaimStatus::Blocked | ClaimStatus::Verified) {
                    let limit = limit(claim.account).await;
                    match self.verify_claim(claim.account, claim.id, limit).await {
                        // The limit is reported when the claimant checks.
                        Ok(_)
                        | Err(ClaimError::Domain(
                            DomainError::Limit { .. } | DomainError::Conflict | DomainError::TooManyDnsQueries { .. },
                        )) => {}
                        Err(error) => return Err(error),
                    }
                }
            }
            after = next;
            if after.is_none() || self.rows.services.stop.is_cancelled() {
                return Ok(());
            }
        }
    }
}
