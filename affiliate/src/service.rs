//! The affiliate service: all operations on an account's affiliate program, and how they commit.
//!
//! An operation reads rows, decides, and commits on the condition that the rows are unchanged; after a conflict it
//! retries. Each change is one commit together with its events.

use std::sync::Arc;

use jiff::Timestamp;
use mail::affiliate::program::AffiliateProgram;
use mail::domain::SealedSecret;
use mail::id::{AccountId, ProgramId};
use mail::quota::Noun as Quota;
use queue::intake::Intake;
use store::affiliate::processor_event::ProcessorEvent;
use store::engine::{Batch, CommitError, Key, Store};

use crate::error::{AffiliateError, ConflictReason};
use crate::ledger::{IngestOutcome, Ledger};
use crate::processor::signature;

/// Attempts to commit after conflicts. Of concurrent commits one always succeeds. A partner's links and leads are
/// limited, so this many attempts are enough.
pub(crate) const TRIES_MAX: usize = 64;

/// Entry point to all operations of the affiliate program.
#[derive(Clone)]
pub struct AffiliateService {
    pub(crate) intake: Intake,
}

/// Result of a commit.
pub(crate) enum CommitResult {
    Committed,
    /// Another commit changed the row with this key.
    Conflict(Key),
}

/// Rows that a caller adds to an operation's commit, e.g. its idempotency record.
pub type ExtendCommit<'a, T> = &'a (dyn Fn(&mut Batch, &T) + Send + Sync);

/// Approximate size of the row of a processed event, for the storage quota.
const EVENT_ROW_BYTES: u64 = 300;

/// An [`ExtendCommit`] that adds nothing.
pub fn no_extension<T>(_: &mut Batch, _: &T) {}

impl AffiliateService {
    /// Creates the service on top of the mail intake, which has store, clock and HTTP client.
    #[must_use]
    pub fn new(intake: Intake) -> Self {
        Self { intake }
    }

    #[must_use]
    pub fn store(&self) -> &Store {
        self.intake.store()
    }

    /// Returns the ledger, which wakes the outbox dispatcher after each commit.
    #[must_use]
    pub fn ledger(&self) -> Ledger {
        let intake = self.intake.clone();
        Ledger::new(
            intake.store().clone(),
            intake.clock().clone(),
            intake.entropy().clone(),
            Arc::new(move || intake.notify_outbox()),
        )
    }

    /// Verifies and ingests a webhook body; `header` is the value of [`crate::processor::signature::HEADER`].
    ///
    /// # Errors
    /// The store cannot be read; a webhook secret cannot be unsealed; the storage quota is used up.
    pub async fn receive_webhook(
        &self,
        program: ProgramId,
        header: &str,
        body: &[u8],
    ) -> Result<IngestOutcome, AffiliateError> {
        let found = store::affiliate::program::find_by_id_or_key(self.store(), &program.to_string()).await?;
        let Some(program) = found else { return Ok(IngestOutcome::Unknown) };
        let Some(processor) = &program.processor else { return Ok(IngestOutcome::Unknown) };
        let id = program.id.to_bytes();
        let open = |secret: &SealedSecret| self.open(&id, secret).ok_or(AffiliateError::Seal);
        let secrets: Vec<String> = processor.webhook_secrets.iter().map(open).collect::<Result<_, _>>()?;
        // An unsigned request must not consume the account's quota, nor reveal whether it has any.
        if let Err(error) = signature::verify(header, body, &secrets, self.now()) {
            return Ok(IngestOutcome::BadSignature(error));
        }
        let reservation = match store::account::get(self.store(), program.account).await? {
            Some(account) => {
                let quotas = self.intake.storage_quotas();
                Some(quotas.reserve(&account, Quota::AffiliateEventBytes, EVENT_ROW_BYTES).await?)
            }
            None => None,
        };
        let answer = self.ledger().receive(&program, &secrets, header, body, self).await;
        match (&answer, reservation) {
            (IngestOutcome::Done | IngestOutcome::Ignored(_), Some(reservation)) => reservation.confirm(),
            (IngestOutcome::Failed(_), Some(reservation)) => {
                reservation.confirm();
                // The body of a failed event is stored for a replay.
                self.intake.storage_quotas().record(program.account, Quota::AffiliateEventBytes, body.len() as u64);
            }
            (IngestOutcome::Duplicate | IngestOutcome::Unknown | IngestOutcome::BadSignature(_), _) | (_, None) => {}
        }
        Ok(answer)
    }

    /// Ingests a failed event again; `None` if there is no such event.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn replay_event(&self, account: AccountId, id: &str) -> Result<Option<ProcessorEvent>, AffiliateError> {
        Ok(self.ledger().replay(account, id, self).await?)
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.intake.clock().now()
    }

    pub(crate) fn random(&self) -> u128 {
        self.intake.entropy().unique_bits()
    }

    pub(crate) fn seal(&self, row: &[u8], text: &str) -> Result<SealedSecret, AffiliateError> {
        use base64::Engine as _;
        let blob = self.intake.vault().seal(row, text.as_bytes()).map_err(|_| AffiliateError::Seal)?;
        Ok(SealedSecret(base64::engine::general_purpose::STANDARD.encode(blob)))
    }

    /// Unseals a secret; `None` if it cannot be opened.
    pub(crate) fn open(&self, row: &[u8], sealed: &SealedSecret) -> Option<String> {
        use base64::Engine as _;
        let blob = base64::engine::general_purpose::STANDARD.decode(&sealed.0).ok()?;
        String::from_utf8(self.intake.vault().open(row, &blob).ok()?).ok()
    }

    pub(crate) async fn commit(&self, batch: Batch) -> Result<CommitResult, AffiliateError> {
        match self.store().commit(batch).await {
            Ok(()) => {
                self.intake.notify_outbox();
                // Sent after every commit: that costs no more than checking whether an email was queued.
                self.intake.notify_partner_email();
                Ok(CommitResult::Committed)
            }
            // A concurrent request with the same idempotency key committed first; a retry finds its response.
            Err(CommitError::Conflict { key }) if store::idempotency::caused_conflict(&key) => {
                Err(ConflictReason::Changed.into())
            }
            Err(CommitError::Conflict { key }) => Ok(CommitResult::Conflict(key)),
            Err(error) => Err(error.into()),
        }
    }

    /// Returns an account's program, in any status.
    ///
    /// # Errors
    /// `NotSetUp` without a program; the store cannot be read.
    pub async fn get_program(&self, account: AccountId) -> Result<AffiliateProgram, AffiliateError> {
        let found = store::affiliate::program::get(self.store(), account).await?;
        found.ok_or(AffiliateError::NotSetUp)
    }

    /// Returns the program if its setup is complete.
    ///
    /// # Errors
    /// `NotSetUp` without a program or with missing steps; the store cannot be read.
    pub async fn require_set_up(&self, account: AccountId) -> Result<AffiliateProgram, AffiliateError> {
        let program = self.get_program(account).await?;
        if program.missing_steps().is_empty() { Ok(program) } else { Err(AffiliateError::NotSetUp) }
    }
}

/// Version of a row that the caller has seen, from `If-Match`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum IfMatch {
    /// Version number (`rev`).
    Rev(u64),
    /// Time of the last change (`updated_at`).
    At(Timestamp),
    /// Any of several versions.
    OneOf(Vec<Self>),
}

impl IfMatch {
    /// Parses the header's value: a list of numbers or times, with or without quotation marks (RFC 9110 13.1.1).
    #[must_use]
    pub fn read(text: &str) -> Option<Self> {
        let mut versions = text.split(',').map(Self::read_one).collect::<Option<Vec<_>>>()?;
        if versions.len() == 1 { versions.pop() } else { Some(Self::OneOf(versions)) }
    }

    fn read_one(text: &str) -> Option<Self> {
        let text = text.trim().trim_start_matches("W/").trim_matches('"');
        text.parse().map(Self::Rev).ok().or_else(|| text.parse().map(Self::At).ok())
    }

    /// Checks that a row still has the version that was seen.
    ///
    /// # Errors
    /// `Changed` if it does not.
    pub fn check(if_match: Option<&Self>, rev: u64, updated_at: Timestamp) -> Result<(), ConflictReason> {
        Self::check_version(if_match, rev, Some(updated_at))
    }

    /// Checks that a row without `updated_at` still has the version that was seen. A time matches no version of it.
    ///
    /// # Errors
    /// `Changed` if it does not.
    pub fn check_rev(if_match: Option<&Self>, rev: u64) -> Result<(), ConflictReason> {
        Self::check_version(if_match, rev, None)
    }

    fn check_version(if_match: Option<&Self>, rev: u64, updated_at: Option<Timestamp>) -> Result<(), ConflictReason> {
        if if_match.is_none_or(|if_match| if_match.matches(rev, updated_at)) {
            Ok(())
        } else {
            Err(ConflictReason::Changed)
        }
    }

    fn matches(&self, rev: u64, updated_at: Option<Timestamp>) -> bool {
        match self {
            Self::Rev(number) => *number == rev,
            // The API shows times in milliseconds.
            Self::At(time) => updated_at.is_some_and(|at| time.as_millisecond() == at.as_millisecond()),
            Self::OneOf(versions) => versions.iter().any(|version| version.matches(rev, updated_at)),
        }
    }
}
