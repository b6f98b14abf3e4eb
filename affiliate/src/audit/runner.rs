//! Runs audits for requests: away from the threads that serve other requests, one at a time for each account.
//!
//! A result is kept for a short time and returned while the ledger's newest rows are the same ([`LedgerState`]). A change
//! of older rows alone is seen when the result is too old.

use std::collections::HashMap;
use std::sync::{Arc, Mutex as SyncMutex, PoisonError};

use futures_util::future::{Either, select};
use jiff::{SignedDuration, Timestamp};
use mail::id::{AccountId, CommissionId, PartnerId, PayoutRunId, ReferralId};
use store::affiliate::listing::ListPageRequest;
use store::affiliate::{commission, partner, payout_run, program, referral};
use store::engine::ReadError;
use tokio::runtime::Handle;
use tokio::sync::{Mutex, OwnedMutexGuard, Semaphore, oneshot};

use super::{AuditReport, audit_within};
use crate::error::AffiliateError;
use crate::ledger::{Ledger, LedgerError};
use crate::offload::join;

/// Audits that run at a time, of all accounts.
const AUDITS_MAX: usize = 2;
/// Accounts whose results are kept.
const ACCOUNTS_MAX: usize = 64;
/// The longest time that an audit takes.
const TIME_MAX: SignedDuration = SignedDuration::from_secs(60);
/// The greatest age of a result for a request that waits for a new one.
const FRESH: SignedDuration = SignedDuration::from_secs(30);
/// The greatest age of a result for a request that does not wait: such pages are read again and again.
const USABLE: SignedDuration = SignedDuration::from_mins(10);

/// The wish of a request that finds no current result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AuditWait {
    /// The result of a new audit.
    ForResult,
    /// An answer at once; the audit goes on.
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
    async fn read(ledger: &Ledger, account: AccountId) -> Result<Self, ReadError> {
        let (store, newest) = (ledger.store(), || ListPageRequest { before: None, limit: 1, from: None });
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

/// The result of an audit, with the ledger's state before it.
struct FinishedAudit {
    report: AuditReport,
    state: LedgerState,
    at: Timestamp,
}

/// The last audit of an account; locked while one is running.
type AccountAudit = Arc<Mutex<Option<FinishedAudit>>>;

/// Runs audits and keeps their results. Clones share them.
#[derive(Clone)]
pub struct AuditRunner {
    accounts: Arc<SyncMutex<HashMap<AccountId, AccountAudit>>>,
    permits: Arc<Semaphore>,
}

impl Default for AuditRunner {
    fn default() -> Self {
        Self { accounts: Arc::default(), permits: Arc::new(Semaphore::new(AUDITS_MAX)) }
    }
}

impl AuditRunner {
    /// Audits an account's ledger, or returns a current result. Without waiting, the report of an audit that has not
    /// ended is [`AuditReport::running`].
    ///
    /// # Errors
    /// The account has no program; the store cannot be read.
    pub async fn audit(
        &self,
        ledger: Ledger,
        account: AccountId,
        wait: AuditWait,
    ) -> Result<AuditReport, AffiliateError> {
        let slot = self.slot(account);
        let last = match wait {
            AuditWait::ForResult => slot.lock_owned().await,
            AuditWait::No => match slot.try_lock_owned() {
                Ok(last) => last,
                Err(_) => return Ok(AuditReport::running()),
            },
        };
        let state = LedgerState::read(&ledger, account).await?;
        let age_max = if wait == AuditWait::No { USABLE } else { FRESH };
        let is_current =
            |last: &&FinishedAudit| last.state == state && ledger.now().duration_since(last.at).abs() <= age_max;
        if let Some(last) = last.as_ref().filter(is_current) {
            return Ok(last.report.clone());
        }
        // A request that is given up does not end the audit, so the account stays locked until it has ended.
        let running = tokio::spawn(self.clone().run(ledger, account, state, last));
        match wait {
            AuditWait::ForResult => join(running).await.map_err(Into::into),
            AuditWait::No => Ok(AuditReport::running()),
        }
    }

    async fn run(
        self,
        ledger: Ledger,
        account: AccountId,
        state: LedgerState,
        mut last: OwnedMutexGuard<Option<FinishedAudit>>,
    ) -> Result<AuditReport, LedgerError> {
        // The semaphore is never closed.
        let _permit = self.permits.acquire().await;
        let (at, runtime) = (ledger.now(), Handle::current());
        // When the runtime ends, this task is dropped, and with it the audit, so that its thread does not delay the end.
        let (running, is_dropped) = oneshot::channel::<()>();
        let work = move || {
            let audit = audit_within(&ledger, account, Some(TIME_MAX));
            match runtime.block_on(select(audit, is_dropped)) {
                Either::Left((report, _)) => Some(report),
                Either::Right(_) => None,
            }
        };
        let Some(outcome) = join(tokio::task::spawn_blocking(work)).await else { return Ok(AuditReport::running()) };
        drop(running);
        *last = match &outcome {
            Ok(report) => Some(FinishedAudit { report: report.clone(), state, at }),
            Err(error) => {
                tracing::warn!(%account, %error, "cannot audit the affiliate ledger");
                None
            }
        };
        outcome
    }

    /// The last audit of an account. Results of accounts that nobody waits for make room for others.
    fn slot(&self, account: AccountId) -> AccountAudit {
        let mut accounts = self.accounts.lock().unwrap_or_else(PoisonError::into_inner);
        if accounts.len() >= ACCOUNTS_MAX && !accounts.contains_key(&account) {
            let unused = accounts.iter().find(|(_, slot)| Arc::strong_count(slot) == 1).map(|(account, _)| *account);
            unused.map(|unused| accounts.remove(&unused));
        }
        Arc::clone(accounts.entry(account).or_default())
    }
}
