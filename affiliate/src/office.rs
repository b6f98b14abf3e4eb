//! The office: where everything is done with an account's program, and how it is committed.
//!
//! What is done is read, decided and committed against what was read; who was beaten to it reads again. Each change
//! is one commit with the events that tell of it.

use std::sync::Arc;

use jiff::Timestamp;
use mail::affiliate::program::Program;
use mail::domain::SealedKey;
use mail::id::{AccountId, ProgramId};
use mail::quota::Noun as Quota;
use queue::accept::Hall;
use store::affiliate::processor_event::ProcessorEvent;
use store::engine::{Batch, CommitError, Key, Store};

use crate::ledger::{Answer, Ledger};
use crate::processor::signature;
use crate::refusal::{Obstacle, Refusal};

/// Commits tried, when something is changed meanwhile. Of those who are in each other's way one is through each time: a
/// partner's links and leads are counted, and who adds one waits for at most as many as there may be.
pub(crate) const TRIES_MAX: usize = 64;

/// Where everything is done.
#[derive(Clone)]
pub struct Office {
    pub(crate) hall: Hall,
}

/// What became of a commit.
pub(crate) enum Committed {
    /// It is done.
    Done,
    /// Somebody else changed what stands under this key.
    Beaten(Key),
}

/// What a caller adds to the commit of what it asked for: that it was done, under its idempotency key.
pub type Beside<'a, T> = &'a (dyn Fn(&mut Batch, &T) + Send + Sync);

/// About how many bytes the row of an event takes that was worked with.
const EVENT_ROW_BYTES: u64 = 300;

/// Nothing is added.
pub fn nothing_beside<T>(_: &mut Batch, _: &T) {}

impl Office {
    /// The office of a hall.
    #[must_use]
    pub fn new(hall: Hall) -> Self {
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
        Ledger::new(hall.store().clone(), parts, Arc::new(move || hall.something_to_tell()))
    }

    /// Takes the body of a webhook, with the value of [`crate::processor::signature::HEADER`].
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn hear(&self, program: ProgramId, header: &str, body: &[u8]) -> Result<Answer, Refusal> {
        let found = store::affiliate::program::named(self.store(), &program.to_string()).await?;
        let Some(program) = found else { return Ok(Answer::Unknown) };
        let Some(processor) = &program.processor else { return Ok(Answer::Unknown) };
        let id = program.id.to_bytes();
        let open = |secret: &SealedKey| self.open(&id, secret).ok_or(Refusal::Seal);
        let secrets: Vec<String> = processor.webhook_secrets.iter().map(open).collect::<Result<_, _>>()?;
        // Strangers learn nothing of the account, and have nothing counted.
        if let Err(error) = signature::verify(header, body, &secrets, self.now()) {
            return Ok(Answer::BadSignature(error));
        }
        let room = match store::account::get(self.store(), program.account).await? {
            Some(account) => {
                let quotas = self.hall.quotas();
                Some(quotas.reserve(&account, Quota::AffiliateEventBytes, EVENT_ROW_BYTES).await?)
            }
            None => None,
        };
        let answer = self.ledger().receive((&program, &secrets), (header, body), self).await;
        match (&answer, room) {
            (Answer::Done | Answer::Ignored(_), Some(room)) => room.keep(),
            (Answer::Failed(_), Some(room)) => {
                room.keep();
                // The body of an event that failed is kept, for another try.
                self.hall.quotas().record(program.account, Quota::AffiliateEventBytes, body.len() as u64);
            }
            (Answer::Duplicate | Answer::Unknown | Answer::BadSignature(_), _) | (_, None) => {}
        }
        Ok(answer)
    }

    /// Tries an event of the processor's again that failed; `None`: there is no such event.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn replay(&self, account: AccountId, id: &str) -> Result<Option<ProcessorEvent>, Refusal> {
        Ok(self.ledger().replay((account, id), self).await?)
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.hall.clock().now()
    }

    pub(crate) fn random(&self) -> u128 {
        self.hall.entropy().id()
    }

    pub(crate) fn seal(&self, row: &[u8], text: &str) -> Result<SealedKey, Refusal> {
        use base64::Engine as _;
        let blob = self.hall.vault().seal(row, text.as_bytes()).map_err(|_| Refusal::Seal)?;
        Ok(SealedKey(base64::engine::general_purpose::STANDARD.encode(blob)))
    }

    /// What was sealed; none when it cannot be opened.
    pub(crate) fn open(&self, row: &[u8], sealed: &SealedKey) -> Option<String> {
        use base64::Engine as _;
        let blob = base64::engine::general_purpose::STANDARD.decode(&sealed.0).ok()?;
        String::from_utf8(self.hall.vault().open(row, &blob).ok()?).ok()
    }

    pub(crate) async fn commit(&self, batch: Batch) -> Result<Committed, Refusal> {
        match self.store().commit(batch).await {
            Ok(()) => {
                self.hall.something_to_tell();
                // Whether there is one costs no more to look than to know.
                self.hall.letter_to_write();
                Ok(Committed::Done)
            }
            // The same was done elsewhere under the same key: whoever asks finds the answer there.
            Err(CommitError::Conflict { key }) if store::idempotency::is_about_one(&key) => {
                Err(Obstacle::Changed.into())
            }
            Err(CommitError::Conflict { key }) => Ok(Committed::Beaten(key)),
            Err(error) => Err(error.into()),
        }
    }

    /// An account's program, in whatever state.
    ///
    /// # Errors
    /// There is none; the store cannot be read.
    pub async fn program(&self, account: AccountId) -> Result<Program, Refusal> {
        let found = store::affiliate::program::get(self.store(), account).await?;
        found.ok_or(Refusal::NotSetUp)
    }

    /// The program as the API knows it: one that is set up.
    ///
    /// # Errors
    /// There is none, or steps are missing; the store cannot be read.
    pub async fn set_up(&self, account: AccountId) -> Result<Program, Refusal> {
        let program = self.program(account).await?;
        if program.missing().is_empty() { Ok(program) } else { Err(Refusal::NotSetUp) }
    }
}

/// Which version of a row a caller has seen, by `If-Match`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Seen {
    /// Its number.
    Rev(u64),
    /// When it was changed last.
    At(Timestamp),
    /// One of several versions.
    OneOf(Vec<Self>),
}

impl Seen {
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
    pub fn check(seen: Option<&Self>, rev: u64, updated_at: Timestamp) -> Result<(), Obstacle> {
        if seen.is_none_or(|seen| seen.is(rev, updated_at)) { Ok(()) } else { Err(Obstacle::Changed) }
    }

    fn is(&self, rev: u64, updated_at: Timestamp) -> bool {
        match self {
            Self::Rev(number) => *number == rev,
            // What is shown of a time ends with the millisecond.
            Self::At(time) => time.as_millisecond() == updated_at.as_millisecond(),
            Self::OneOf(several) => several.iter().any(|seen| seen.is(rev, updated_at)),
        }
    }
}
