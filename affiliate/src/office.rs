//! The office: where everything is done with an account's program, and how it is committed.
//!
//! What is done is read, decided and committed against what was read; who was beaten to it reads again. Each change
//! is one commit with the events that tell of it.

use std::sync::Arc;

use jiff::Timestamp;
use mail::affiliate::program::AffiliateProgram;
use mail::domain::SealedSecret;
use mail::id::{AccountId, ProgramId};
use mail::quota::Noun as Quota;
use queue::accept::Intake;
use store::affiliate::processor_event::ProcessorEvent;
use store::engine::{Batch, CommitError, Key, Store};

use crate::ledger::{IngestOutcome, Ledger};
use crate::processor::signature;
use crate::refusal::{AffiliateError, ConflictReason};

/// Commits tried, when something is changed meanwhile. Of those who are in each other's way one is through each time: a
/// partner's links and leads are counted, and who adds one waits for at most as many as there may be.
pub(crate) const TRIES_MAX: usize = 64;

/// Where everything is done.
#[derive(Clone)]
pub struct AffiliateService {
    pub(crate) hall: Intake,
}

/// What became of a commit.
pub(crate) enum CommitResult {
    /// It is done.
    Committed,
    /// Somebody else changed what stands under this key.
    Conflict(Key),
}

/// What a caller adds to the commit of what it asked for: that it was done, under its idempotency key.
pub type ExtendCommit<'a, T> = &'a (dyn Fn(&mut Batch, &T) + Send + Sync);

/// About how many bytes the row of an event takes that was worked with.
const EVENT_ROW_BYTES: u64 = 300;

/// Nothing is added.
pub fn no_extension<T>(_: &mut Batch, _: &T) {}

impl AffiliateService {
    /// The office of a hall.
    #[must_use]
    pub fn new(hall: Intake) -> Self {
        Self { hall }
    }

    /// The store.
    #[must_use]
    pub fn store(&self) -> &Store {
        self.hall.store()
    }

    /// The ledger.
    #[must_use]
    pub fn ledger(&self) -> Ledger {
        let hall = self.hall.clone();
        let parts = (hall.clock().clone(), hall.entropy().clone());
        Ledger::new(hall.store().clone(), parts, Arc::new(move || hall.notify_outbox()))
    }

    /// Takes the body of a webhook, with the value of [`crate::processor::signature::HEADER`].
    ///
    /// # Errors
    /// The store cannot be read.
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
        // Strangers learn nothing of the account, and have nothing counted.
        if let Err(error) = signature::verify(header, body, &secrets, self.now()) {
            return Ok(IngestOutcome::BadSignature(error));
        }
        let room = match store::account::get(self.store(), program.account).await? {
            Some(account) => {
                let quotas = self.hall.storage_quotas();
                Some(quotas.reserve(&account, Quota::AffiliateEventBytes, EVENT_ROW_BYTES).await?)
            }
            None => None,
        };
        let answer = self.ledger().receive((&program, &secrets), (header, body), self).await;
        match (&answer, room) {
            (IngestOutcome::Done | IngestOutcome::Ignored(_), Some(room)) => room.confirm(),
            (IngestOutcome::Failed(_), Some(room)) => {
                room.confirm();
                // The body of an event that failed is kept, for another try.
                self.hall.storage_quotas().record(program.account, Quota::AffiliateEventBytes, body.len() as u64);
            }
            (IngestOutcome::Duplicate | IngestOutcome::Unknown | IngestOutcome::BadSignature(_), _) | (_, None) => {}
        }
        Ok(answer)
    }

    /// Tries an event of the processor's again that failed; `None`: there is no such event.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn replay_event(&self, account: AccountId, id: &str) -> Result<Option<ProcessorEvent>, AffiliateError> {
        Ok(self.ledger().replay((account, id), self).await?)
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.hall.clock().now()
    }

    pub(crate) fn random(&self) -> u128 {
        self.hall.entropy().unique_bits()
    }

    pub(crate) fn seal(&self, row: &[u8], text: &str) -> Result<SealedSecret, AffiliateError> {
        use base64::Engine as _;
        let blob = self.hall.vault().seal(row, text.as_bytes()).map_err(|_| AffiliateError::Seal)?;
        Ok(SealedSecret(base64::engine::general_purpose::STANDARD.encode(blob)))
    }

    /// What was sealed; none when it cannot be opened.
    pub(crate) fn open(&self, row: &[u8], sealed: &SealedSecret) -> Option<String> {
        use base64::Engine as _;
        let blob = base64::engine::general_purpose::STANDARD.decode(&sealed.0).ok()?;
        String::from_utf8(self.hall.vault().open(row, &blob).ok()?).ok()
    }

    pub(crate) async fn commit(&self, batch: Batch) -> Result<CommitResult, AffiliateError> {
        match self.store().commit(batch).await {
            Ok(()) => {
                self.hall.notify_outbox();
                // Whether there is one costs no more to look than to know.
                self.hall.notify_partner_email();
                Ok(CommitResult::Committed)
            }
            // The same was done elsewhere under the same key: whoever asks finds the answer there.
            Err(CommitError::Conflict { key }) if store::idempotency::caused_conflict(&key) => {
                Err(ConflictReason::Changed.into())
            }
            Err(CommitError::Conflict { key }) => Ok(CommitResult::Conflict(key)),
            Err(error) => Err(error.into()),
        }
    }

    /// An account's program, in whatever state.
    ///
    /// # Errors
    /// There is none; the store cannot be read.
    pub async fn get_program(&self, account: AccountId) -> Result<AffiliateProgram, AffiliateError> {
        let found = store::affiliate::program::get(self.store(), account).await?;
        found.ok_or(AffiliateError::NotSetUp)
    }

    /// The program as the API knows it: one that is set up.
    ///
    /// # Errors
    /// There is none, or steps are missing; the store cannot be read.
    pub async fn require_set_up(&self, account: AccountId) -> Result<AffiliateProgram, AffiliateError> {
        let program = self.get_program(account).await?;
        if program.missing_steps().is_empty() { Ok(program) } else { Err(AffiliateError::NotSetUp) }
    }
}

/// Which version of a row a caller has seen, by `If-Match`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum IfMatch {
    /// Its number.
    Rev(u64),
    /// When it was changed last.
    At(Timestamp),
    /// One of several versions.
    OneOf(Vec<Self>),
}

impl IfMatch {
    /// Reads the header field's value: numbers or times, in quotation marks or without (RFC 9110 13.1.1).
    #[must_use]
    pub fn read(text: &str) -> Option<Self> {
        let mut seen = text.split(',').map(Self::read_one).collect::<Option<Vec<_>>>()?;
        if seen.len() == 1 { seen.pop() } else { Some(Self::OneOf(seen)) }
    }

    fn read_one(text: &str) -> Option<Self> {
        let text = text.trim().trim_start_matches("W/").trim_matches('"');
        text.parse().map(Self::Rev).ok().or_else(|| text.parse().map(Self::At).ok())
    }

    /// Whether the row is still as it was seen.
    ///
    /// # Errors
    /// It is not.
    pub fn check(seen: Option<&Self>, rev: u64, updated_at: Timestamp) -> Result<(), ConflictReason> {
        if seen.is_none_or(|seen| seen.matches(rev, updated_at)) { Ok(()) } else { Err(ConflictReason::Changed) }
    }

    fn matches(&self, rev: u64, updated_at: Timestamp) -> bool {
        match self {
            Self::Rev(number) => *number == rev,
            // What is shown of a time ends with the millisecond.
            Self::At(time) => time.as_millisecond() == updated_at.as_millisecond(),
            Self::OneOf(several) => several.iter().any(|seen| seen.matches(rev, updated_at)),
        }
    }
}
