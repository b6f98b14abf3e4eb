//! Runs audits for requests: away from the threads that serve other requests, one at a time for each account.
//!
//! A request that waits uses no result of an audit that began before it, except one that has just begun. A request that
//! does not wait is answered with the last result, which is kept for a short time. If the ledger's newest rows have
//! changed since ([`LedgerState`]), another audit begins. A change of older rows alone begins none until then.

use parking_lot::Mutex as SyncMutex;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use futures_util::future::{Either, select};
use jiff::{SignedDuration, Timestamp};
use model::id::{AccountId, CommissionId, PartnerId, PayoutRunId, ReferralId};
use store::affiliate::listing::ListPageRequest;
use store::affiliate::{commission, partner, payout_run, program, referral};
use store::engine::ReadError;
use tokio::runtime::Handle;
use tokio::sync::{Mutex, OwnedMutexGuard, Semaphore, oneshot};

use super::audit_within;
use super::report::AuditReport;
use crate::context::Context;
use crate::error::{AffiliateError, LedgerResult as Result};
use crate::offload::join;

/// Audits that run at a time, of all accounts.
const AUDITS_MAX: usize = 2;
/// Accounts whose results are kept.
const ACCOUNTS_MAX: usize = 64;
/// The longest time that an audit takes.
const TIME_MAX: SignedDuration = SignedDuration::from_secs(60);
/// The greatest time before a request at which the audit began whose result it may use, if the request waits.
const JUST_BEGUN: SignedDuration = SignedDuration::from_secs(2);
/// How long a report is kept after its audit, for requests that do not wait: such pages are read again and again.
const REPORT_KEPT: SignedDuration = SignedDuration::from_mins(10);
/// How long an error is kept after its audit, for requests that do not wait.
const ERROR_KEPT: SignedDuration = SignedDuration::from_secs(30);

/// Whether a request waits for an audit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AuditWait {
    /// The result of an audit that began after the request, or up to 2 seconds before it.
    ForResult,
    /// The last result at once, also if the ledger has changed: then another audit begins.
    No,
}

/// The newest rows of a ledger, as far as a change of it is likely to change them.
#[derive(Debug, Clone, PartialEq, Eq)]
struct LedgerState {
    program: Option<u64>,
    commission: Option<(CommissionId, u64)>,
    referral: Option<(ReferralId, Timestamp)>,
    partner: Option<(PartnerId, Timestamp)>,
    payout_run: Option<(PayoutRunId, u64)>,
}

impl LedgerState {
    async fn read(context: &Context, account: AccountId) -> Result<Self, ReadError> {
        let (store, newest) = (&context.store, || ListPageRequest { before: None, limit: 1, from: None });
        let commissions = commission::list(store, account, &commission::CommissionFilter::default(), newest()).await?;
        let referrals = referral::list(store, account, &referral::ReferralFilter::default(), newest()).await?;
        let partners = partner::list(store, account, &partner::PartnerFilter::default(), newest()).await?;
        let runs = payout_run::list_all(store, account, newest()).await?;
        Ok(Self {
            program: program::get(store, account).await?.map(|program| program.rev),
            commission: commissions.rows.first().map(|line| (line.id, line.rev)),
            referral: referrals.rows.first().map(|referral| (referral.id, referral.updated_at)),
            partner: partners.rows.first().map(|partner| (partner.id, partner.updated_at)),
            payout_run: runs.rows.first().map(|run| (run.id, run.rev)),
        })
    }
}

/// A request that waits for an audit.
#[derive(Debug, Clone, Copy)]
struct AuditRequest {
    at: Timestamp,
    /// The number of the newest audit that had begun.
    begun: u64,
}

/// The result of an audit, with the ledger's state before it.
struct FinishedAudit {
    outcome: Result<AuditReport>,
    state: LedgerState,
    /// Audits are numbered in the order in which they begin.
    number: u64,
    began_at: Timestamp,
    ended_at: Timestamp,
}

impl FinishedAudit {
    /// Whether a request that waits may use the result. `state` was read after the request.
    fn answers(&self, request: AuditRequest, state: &LedgerState) -> bool {
        let has_just_begun = request.at.duration_since(self.began_at).abs() <= JUST_BEGUN;
        self.number > request.begun || (has_just_begun && self.state == *state)
    }

    /// Whether requests that do not wait may use the result.
    fn is_kept(&self, now: Timestamp) -> bool {
        let longest = if self.outcome.is_ok() { REPORT_KEPT } else { ERROR_KEPT };
        now.duration_since(self.ended_at).abs() <= longest
    }
}

#[derive(Default)]
struct AccountAudits {
    /// Locked while an audit runs.
    running: Arc<Mutex<()>>,
    last: SyncMutex<Option<Arc<FinishedAudit>>>,
}

impl AccountAudits {
    fn last(&self) -> Option<Arc<FinishedAudit>> {
        self.last.lock().clone()
    }
}

/// Runs audits and keeps their results. Clones share them.
#[derive(Clone)]
pub struct AuditRunner {
    accounts: Arc<SyncMutex<HashMap<AccountId, Arc<AccountAudits>>>>,
    permits: Arc<Semaphore>,
    begun: Arc<AtomicU64>,
}

impl Default for AuditRunner {
    fn default() -> Self {
        Self { accounts: Arc::default(), permits: Arc::new(Semaphore::new(AUDITS_MAX)), begun: Arc::default() }
    }
}

impl AuditRunner {
    /// Audits an account's ledger. A request that does not wait and finds no result gets [`AuditReport::running`].
    ///
    /// # Errors
    /// The account has no program; the store cannot be read. A request that does not wait gets the error of the last
    /// audit for 30 seconds.
    pub async fn audit(
        &self,
        context: Context,
        account: AccountId,
        wait: AuditWait,
    ) -> Result<AuditReport, AffiliateError> {
        let outcome = match wait {
            AuditWait::ForResult => self.wait_for_result(context, account).await,
            AuditWait::No => self.last_result(context, account).await,
        };
        outcome.map_err(Into::into)
    }

    async fn wait_for_result(&self, context: Context, account: AccountId) -> Result<AuditReport> {
        let request = AuditRequest { at: context.now(), begun: self.begun.load(Ordering::SeqCst) };
        let audits = self.audits_of(account);
        let lock = Arc::clone(&audits.running).lock_owned().await;
        let state = LedgerState::read(&context, account).await?;
        if let Some(last) = audits.last().filter(|last| last.answers(request, &state)) {
            return last.outcome.clone();
        }
        // A request that is given up does not end the audit, so the account stays locked until it has ended.
        join(tokio::spawn(self.clone().run(context, account, state, audits, lock))).await
    }

    async fn last_result(&self, context: Context, account: AccountId) -> Result<AuditReport> {
        let audits = self.audits_of(account);
        let lock = Arc::clone(&audits.running).try_lock_owned();
        let last = audits.last().filter(|last| last.is_kept(context.now()));
        if let Ok(lock) = lock {
            let state = LedgerState::read(&context, account).await?;
            if last.as_ref().is_none_or(|last| last.state != state) {
                tokio::spawn(self.clone().run(context, account, state, audits, lock));
            }
        }
        last.map_or_else(|| Ok(AuditReport::running()), |last| last.outcome.clone())
    }

    async fn run(
        self,
        context: Context,
        account: AccountId,
        state: LedgerState,
        audits: Arc<AccountAudits>,
        _lock: OwnedMutexGuard<()>,
    ) -> Result<AuditReport> {
        // The semaphore is never closed.
        let _permit = self.permits.acquire().await;
        let number = self.begun.fetch_add(1, Ordering::SeqCst).saturating_add(1);
        let (began_at, runtime) = (context.now(), Handle::current());
        // When the runtime ends, this task is dropped, and with it the audit, so that its thread does not delay the end.
        let (running, is_dropped) = oneshot::channel::<()>();
        let audited = context.clone();
        let work = move || {
            let audit = audit_within(&audited, account, Some(TIME_MAX));
            match runtime.block_on(select(audit, is_dropped)) {
                Either::Left((report, _)) => Some(report),
                Either::Right(_) => None,
            }
        };
        let Some(outcome) = join(tokio::task::spawn_blocking(work)).await else { return Ok(AuditReport::running()) };
        drop(running);
        if let Err(error) = &outcome {
            tracing::warn!(%account, %error, "cannot audit the affiliate ledger");
        }
        let finished = Arc::new(FinishedAudit { outcome, state, number, began_at, ended_at: context.now() });
        *audits.last.lock() = Some(Arc::clone(&finished));
        finished.outcome.clone()
    }

    /// The audits of an account. Results of accounts that nobody waits for make room for others.
    fn audits_of(&self, account: AccountId) -> Arc<AccountAudits> {
        let mut accounts = self.accounts.lock();
        if accounts.len() >= ACCOUNTS_MAX && !accounts.contains_key(&account) {
            let unused = accounts.iter().find(|(_, audits)| Arc::strong_count(audits) == 1);
            let unused = unused.map(|(account, _)| *account);
            unused.map(|unused| accounts.remove(&unused));
        }
        Arc::clone(accounts.entry(account).or_default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::LedgerError;

    fn second(second: i64) -> Timestamp {
        Timestamp::UNIX_EPOCH + SignedDuration::from_secs(second)
    }

    fn state(program: u64) -> LedgerState {
        LedgerState { program: Some(program), commission: None, referral: None, partner: None, payout_run: None }
    }

    /// The second audit, from second 0 to second 50, of a ledger in state 1.
    fn finished(outcome: Result<AuditReport>) -> FinishedAudit {
        FinishedAudit { outcome, state: state(1), number: 2, began_at: second(0), ended_at: second(50) }
    }

    #[test]
    fn results_are_kept_for_a_time_after_the_end_of_the_audit() {
        let report = finished(Ok(AuditReport::running()));
        assert!(report.is_kept(second(650)) && !report.is_kept(second(651)));
        let error = finished(Err(LedgerError::NotSetUp));
        assert!(error.is_kept(second(80)) && !error.is_kept(second(81)));
        assert!(matches!(error.outcome, Err(LedgerError::NotSetUp)));
    }

    #[test]
    fn requests_that_wait_use_no_audit_that_began_before_them() {
        let last = finished(Ok(AuditReport::running()));
        let answers =
            |at: i64, begun: u64, program: u64| last.answers(AuditRequest { at: second(at), begun }, &state(program));
        assert!(answers(20, 1, 1) && answers(20, 1, 2), "it waited for the audit before");
        assert!(answers(2, 2, 1), "the audit had just begun");
        assert!(!answers(2, 2, 2), "the ledger has changed");
        assert!(!answers(3, 2, 1) && !answers(60, 2, 1), "the audit had begun before");
    }
}
