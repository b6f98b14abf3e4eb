//! Claims: a domain that another account has goes to whoever rules its DNS (completions-email.md 2.4).
//!
//! ```text
//! claim ─► record found ─► never verified by the other? ─yes─► completed (verified, while the plan is full)
//!                                    └─no─► blocked: 72 hours, their record gone, nothing scheduled ─► completed
//! ```
//!
//! The claimant asks; and once an hour it is looked by itself at those whose record was found, so that a claim is
//! completed without anybody's coming back. What does not come to that within its time expires. The domain is a new one for its new account: new id, new keys.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use jiff::Timestamp;
use mail::address::Name;
use mail::catalog::Filter;
use mail::claim::{Block, Claim, ClaimStatus};
use mail::domain::{Domain, DomainState};
use mail::email::EmailStatus;
use mail::id::{AccountId, ClaimId, DomainId, EventId};
use mail::owner_notice::{About, OwnerNotice};
use mail::setup::{Finding, RecordStatus};
use store::engine::Batch;
use store::task::PARTITIONS;
use thiserror::Error;

use super::inspect::Wish;
use super::{DomainError, Domains, NewDomain, TRIES_MAX};

/// How often it is looked at proven claims.
const LOOK_EVERY: Duration = Duration::from_secs(3_600);
/// Claims read at once.
const PAGE: usize = 100;

/// Why a claim could not be made or looked at.
#[derive(Debug, Error)]
pub enum ClaimError {
    /// There is no such claim.
    #[error("no such claim")]
    Unknown,
    /// It has come to its end already.
    #[error("the claim is {0:?} already")]
    Ended(ClaimStatus),
    /// Nobody has the domain: it can be added.
    #[error("nobody has {0}: add it")]
    Free(Name),
    /// The rest.
    #[error(transparent)]
    Domain(#[from] DomainError),
}

impl From<store::engine::ReadError> for ClaimError {
    fn from(error: store::engine::ReadError) -> Self {
        Self::Domain(error.into())
    }
}

/// A claim after a look.
#[derive(Debug)]
pub struct Claimed {
    /// The claim.
    pub claim: Claim,
    /// What was found of its record, if it was looked.
    pub finding: Option<Finding>,
}

impl Domains {
    /// Claims a domain that another account has. Who has an open claim gets that one.
    ///
    /// # Errors
    /// [`ClaimError`].
    pub async fn claim(&self, account: AccountId, name: Name) -> Result<Claim, ClaimError> {
        for _ in 0..TRIES_MAX {
            if let Some(open) = self.may_claim(account, &name).await? {
                return Ok(open);
            }
            let now = self.worker.clock.now();
            let mut batch = Batch::progress();
            if let Some(open) = store::claim::open(self.store(), account, &name).await? {
                // It has expired since.
                store::claim::update(&mut batch, &open, &open.ended(ClaimStatus::Expired));
                self.write(batch).await?;
                continue;
            }
            let claim = Claim {
                id: ClaimId::new(now, self.worker.entropy.id()),
                account,
                name: name.clone(),
                status: ClaimStatus::Pending,
                block: None,
                proven_at: None,
                created_at: now,
            };
            store::claim::create(&mut batch, &claim);
            if self.write(batch).await? {
                return Ok(claim);
            }
        }
        Err(DomainError::Changed.into())
    }

    /// Whether an account may claim a domain; gives the open claim that it has to it.
    ///
    /// # Errors
    /// [`ClaimError`]: nobody has the domain, or the account itself.
    pub async fn may_claim(&self, account: AccountId, name: &Name) -> Result<Option<Claim>, ClaimError> {
        match store::domain::by_name(self.store(), name).await? {
            None => return Err(ClaimError::Free(name.clone())),
            Some(holder) if holder.account == account => return Err(DomainError::Exists(name.clone()).into()),
            Some(_) => {}
        }
        let now = self.worker.clock.now();
        let open = store::claim::open(self.store(), account, name).await?;
        Ok(open.filter(|open| open.status_at(now) != ClaimStatus::Expired))
    }

    /// Looks for a claim's record, and completes it when nothing stands in the way; of `limit` domains at most.
    ///
    /// # Errors
    /// [`ClaimError`].
    pub fn verify_claim(
        &self,
        account: AccountId,
        id: ClaimId,
        limit: Option<u32>,
    ) -> BoxFuture<'_, Result<Claimed, ClaimError>> {
        Box::pin(async move {
            for _ in 0..TRIES_MAX {
                let claim = store::claim::get(self.store(), account, id).await?.ok_or(ClaimError::Unknown)?;
                let now = self.worker.clock.now();
                if !claim.is_open() || claim.status_at(now) == ClaimStatus::Expired {
                    return Ok(Claimed { claim, finding: None });
                }
                let finding = self.find_ownership(account, account, &claim.name).await?;
                let is_proven =
                    finding.as_ref().is_some_and(|finding| finding.status == RecordStatus::Verified);
                if !is_proven {
                    // Once proven, an outage of the DNS takes nothing back; but the record must stand at the end.
                    return Ok(Claimed { claim, finding });
                }
                let holder = store::domain::by_name(self.store(), &claim.name).await?;
                let mut after = claim.clone();
                after.proven_at = claim.proven_at.or(Some(now));
                let settled = match holder {
                    Some(holder) if holder.account == account => {
                        after = after.ended(ClaimStatus::Cancelled);
                        self.book(&claim, &after).await?
                    }
                    Some(holder) => match self.block(&after, &holder, now).await? {
                        Some(block) => {
                            (after.status, after.block) = (ClaimStatus::Blocked, Some(block));
                            self.book_and_tell(&claim, &after, holder.account).await?
                        }
                        None => self.complete((&claim, &mut after), Some(holder), limit).await?,
                    },
                    None => self.complete((&claim, &mut after), None, limit).await?,
                };
                if settled {
                    return Ok(Claimed { claim: after, finding });
                }
            }
            Err(DomainError::Changed.into())
        })
    }

    /// Takes the domain over; where the plan includes no more, that nothing else is missing is booked.
    async fn complete(
        &self,
        (before, after): (&Claim, &mut Claim),
        holder: Option<Domain>,
        limit: Option<u32>,
    ) -> Result<bool, DomainError> {
        match self.take_over((before, after), holder, limit).await {
            Err(full @ DomainError::Limit { .. }) => {
                (after.status, after.block) = (ClaimStatus::Verified, None);
                if self.book(before, after).await? { Err(full) } else { Ok(false) }
            }
            settled => settled,
        }
    }

    /// Ends a claim that has not come to its end; one that was cancelled before stays so.
    ///
    /// # Errors
    /// [`ClaimError`].
    pub async fn cancel_claim(&self, account: AccountId, id: ClaimId) -> Result<Claim, ClaimError> {
        for _ in 0..TRIES_MAX {
            let claim = store::claim::get(self.store(), account, id).await?.ok_or(ClaimError::Unknown)?;
            match claim.status_at(self.worker.clock.now()) {
                ClaimStatus::Cancelled => return Ok(claim),
                ended @ (ClaimStatus::Completed | ClaimStatus::Expired) => {
                    return Err(ClaimError::Ended(ended));
                }
                ClaimStatus::Pending | ClaimStatus::Blocked | ClaimStatus::Verified => {}
            }
            let cancelled = claim.ended(ClaimStatus::Cancelled);
            if self.book(&claim, &cancelled).await? {
                return Ok(cancelled);
            }
        }
        Err(DomainError::Changed.into())
    }

    /// What is found of the ownership record of an account, as questions of `asking`.
    async fn find_ownership(
        &self,
        asking: AccountId,
        account: AccountId,
        name: &Name,
    ) -> Result<Option<Finding>, DomainError> {
        let record = self.parts.facts.ownership(account, name);
        let found = self.inspect((asking, name), vec![record], Wish::Asked).await?;
        Ok(found.findings.into_iter().next().map(|(_, finding)| finding))
    }

    async fn book(&self, before: &Claim, after: &Claim) -> Result<bool, DomainError> {
        if before == after {
            return Ok(true);
        }
        let mut batch = Batch::progress();
        store::claim::update(&mut batch, before, after);
        self.write(batch).await
    }

    /// Books that a claim is blocked; the other account is told of it in the same commit, when the record was found
    /// for the first time.
    async fn book_and_tell(
        &self,
        before: &Claim,
        after: &Claim,
        other: AccountId,
    ) -> Result<bool, DomainError> {
        let (None, Some(grace_ends_at)) = (before.proven_at, after.grace_ends_at()) else {
            return self.book(before, after).await;
        };
        let now = self.worker.clock.now();
        let id = EventId::new(now, self.worker.entropy.id());
        let about = About::Claim { claimed: after.name.clone(), grace_ends_at };
        let notice = OwnerNotice { id, account: other, about, since: now };
        let [.., last] = after.id.to_bytes();
        let partition = self.worker.leases.any().unwrap_or(u16::from(last) % PARTITIONS);
        let mut batch = Batch::progress();
        store::claim::update(&mut batch, before, after);
        store::owner_notice::put(&mut batch, partition, &notice);
        let booked = self.write(batch).await?;
        if booked {
            self.worker.owner_notices.note(partition, now);
        }
        Ok(booked)
    }

    /// What stands in the way of a claim that is proven.
    async fn block(
        &self,
        claim: &Claim,
        holder: &Domain,
        now: Timestamp,
    ) -> Result<Option<Block>, DomainError> {
        if holder.verified_at.is_some() {
            if claim.grace_ends_at().is_none_or(|ends| now < ends) {
                return Ok(Some(Block::GracePeriod));
            }
            // Whoever claims pays for the questions.
            let theirs = self.find_ownership(claim.account, holder.account, &claim.name).await?;
            if theirs.is_some_and(|finding| finding.status == RecordStatus::Verified) {
                return Ok(Some(Block::RecentOwnerActivity));
            }
        }
        let scheduled = self.has_scheduled(holder).await?;
        Ok(scheduled.then_some(Block::PendingScheduledEmails))
    }

    /// Whether emails from a domain are scheduled.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn has_scheduled(&self, domain: &Domain) -> Result<bool, DomainError> {
        // What was accepted a moment ago is in no list yet.
        if let Err(error) = self.worker.tell().await {
            tracing::warn!(%error, "the list of scheduled emails may be behind");
        }
        let filter = Filter {
            statuses: vec![EmailStatus::Scheduled],
            domains: vec![domain.name.clone()],
            ..Filter::default()
        };
        let mut before = None;
        loop {
            let found =
                store::catalog::search::search(self.store(), domain.account, &filter, before, 1).await?;
            if !found.emails.is_empty() {
                return Ok(true);
            }
            // A search ends early when it has read much.
            before = found.next;
            if before.is_none() {
                return Ok(false);
            }
        }
    }

    /// The domain is the claimant's, with new keys, and still to be verified; and the claim is completed: one
    /// commit.
    async fn take_over(
        &self,
        (before, after): (&Claim, &mut Claim),
        holder: Option<Domain>,
        limit: Option<u32>,
    ) -> Result<bool, DomainError> {
        let room = self.room_for_one(before.account, limit).await?;
        let now = self.worker.clock.now();
        let id = DomainId::new(now, self.worker.entropy.id());
        let new = NewDomain::named(before.name.clone());
        let domain = Domain {
            id,
            account: before.account,
            name: new.name,
            state: DomainState::Unverified,
            dkim: self.make_keys(id, None, None).await?,
            next_dkim: None,
            former_dkim: None,
            delivery: new.delivery,
            inbound_enabled: false,
            inbound_addresses: Vec::new(),
            created_at: now,
            verified_at: None,
            updated_at: now,
        };
        let known = self.begin(domain);
        (after.status, after.block) = (ClaimStatus::Completed, None);
        let mut batch = Batch::progress();
        match holder {
            None => store::domain::create(&mut batch, &known.domain, &room),
            Some(holder) => {
                let count = store::domain::count(self.store(), holder.account).await?;
                let (held, found) = self.know(holder).await?;
                store::domain::replace(&mut batch, (&held.domain, &count), (&known.domain, &room));
                if let Some(found) = found {
                    store::setup::delete(&mut batch, store::setup::about(&held.domain), &found);
                }
            }
        }
        store::setup::create(&mut batch, store::setup::about(&known.domain), &known.setup);
        store::claim::update(&mut batch, before, after);
        self.commit(batch, &known.domain).await
    }

    /// Keeps looking at claims that are proven, until the worker stops. `limit` says how many domains an account
    /// may have.
    pub(crate) async fn keep_claims<L, Limited>(self: Arc<Self>, limit: L)
    where
        L: Fn(AccountId) -> Limited,
        Limited: Future<Output = Option<u32>>,
    {
        while !self.worker.stop.is_cancelled() {
            // Of several nodes one is enough.
            if self.worker.leases.is_active(0)
                && let Err(error) = self.look_at_claims(&limit).await
            {
                store::warn_unless_away!(self.worker.store, %error, "claims to domains cannot be looked at now");
            }
            let next = self.worker.later(LOOK_EVERY);
            tokio::select! {
                () = self.worker.clock.sleep_until(next) => {}
                () = self.worker.stop.cancelled() => {}
            }
        }
    }

    async fn look_at_claims<L, Limited>(&self, limit: &L) -> Result<(), ClaimError>
    where
        L: Fn(AccountId) -> Limited,
        Limited: Future<Output = Option<u32>>,
    {
        let mut after = None;
        loop {
            let (claims, next) = store::claim::page_of_open(self.store(), after, PAGE).await?;
            for claim in claims {
                let now = self.worker.clock.now();
                if claim.status_at(now) == ClaimStatus::Expired {
                    self.book(&claim, &claim.ended(ClaimStatus::Expired)).await?;
                } else if matches!(claim.status, ClaimStatus::Blocked | ClaimStatus::Verified) {
                    let limit = limit(claim.account).await;
                    match self.verify_claim(claim.account, claim.id, limit).await {
                        // The plan is full: the claimant is told when they ask.
                        Ok(_)
                        | Err(ClaimError::Domain(
                            DomainError::Limit { .. }
                            | DomainError::Changed
                            | DomainError::TooManyQuestions { .. },
                        )) => {}
                        Err(error) => return Err(error),
                    }
                }
            }
            after = next;
            if after.is_none() || self.worker.stop.is_cancelled() {
                return Ok(());
            }
        }
    }
}
