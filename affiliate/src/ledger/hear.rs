//! Events come in: verified, looked for among those that came before, and heard in one commit with all that follows.

use aws_lc_rs::digest;
use jiff::Timestamp;
use mail::affiliate::program::{Mode, Program};
use mail::id::AccountId;
use store::affiliate::processor_event::{self, EventStatus, ProcessorEvent, Seen};
use store::affiliate::program;
use store::engine::Batch;

use super::facts::Nothing;
use super::{Book, Fault, Ledger, TRIES_MAX};
use crate::processor::signature::{self, SignatureError};
use crate::processor::{Event, MetadataKeys};

/// Commits that one event takes at most: what is left then is done when it is sent again.
const PARTS_MAX: usize = 1_000;

/// What became of a body that came in.
#[derive(Debug)]
pub enum Answer {
    /// All that follows from it is written.
    Done,
    /// It came before.
    Duplicate,
    /// It is none of the program's, for this reason.
    Ignored(String),
    /// There is no such program, or no processor is connected to it.
    Unknown,
    /// It is not the processor's.
    BadSignature(SignatureError),
    /// Nothing of it is written but that it failed: it is to be sent again.
    Failed(Fault),
}

/// An event that is looked at: by its id, with what came.
struct Arrival<'a> {
    id: String,
    kind: String,
    body: &'a [u8],
}

impl Ledger {
    /// Takes a body that says it is the processor's; `secrets` are those of the program.
    pub async fn receive<S: AsRef<str>>(
        &self,
        program: &Program,
        secrets: &[S],
        (header, body): (&str, &[u8]),
    ) -> Answer {
        match signature::verify(header, body, secrets, self.now()) {
            Ok(_) => self.take(program.account, body).await,
            Err(error) => Answer::BadSignature(error),
        }
    }

    /// Tries an event again that failed. One that did not stays as it is. `None`: there is no such event.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn replay(&self, account: AccountId, id: &str) -> Result<Option<ProcessorEvent>, Fault> {
        let Some(event) = processor_event::get(&self.store, account, id).await?.event else {
            return Ok(None);
        };
        if event.status == EventStatus::Failed
            && let Some(body) = &event.body
        {
            self.take(account, body.as_bytes()).await;
        }
        Ok(processor_event::get(&self.store, account, id).await?.event)
    }

    /// Takes a body that is the processor's.
    pub async fn take(&self, account: AccountId, body: &[u8]) -> Answer {
        let (arrival, read) = match Event::read(body) {
            Ok(event) => (Arrival { id: event.id.clone(), kind: event.kind.clone(), body }, Ok(event)),
            // It has no id that could be read: the same bytes have the same name.
            Err(error) => (Arrival { id: name_of(body), kind: "unreadable".to_owned(), body }, Err(error)),
        };
        let answer = match read {
            Ok(event) => self.work(account, (&event, &arrival)).await,
            Err(error) => Err(error.into()),
        };
        match answer {
            Ok(answer) => answer,
            Err(fault) => {
                if let Err(error) = self.note_failure(account, (&arrival, &fault)).await {
                    tracing::warn!(event = arrival.id, %error, "it cannot be noted that an event failed");
                }
                Answer::Failed(fault)
            }
        }
    }

    async fn work(
        &self,
        account: AccountId,
        (event, arrival): (&Event, &Arrival<'_>),
    ) -> Result<Answer, Fault> {
        let (mut tries, mut parts) = (0, 0);
        while tries < TRIES_MAX && parts < PARTS_MAX {
            let program = program::get(&self.store, account).await?.ok_or(Fault::NotSetUp)?;
            let seen = processor_event::get(&self.store, account, &event.id).await?;
            if seen.event.as_ref().is_some_and(|event| event.status != EventStatus::Failed) {
                return Ok(Answer::Duplicate);
            }
            let Followed { mut batch, ignored, is_whole } = match foreign(event, &program) {
                Some(why) => Followed { batch: Batch::progress(), ignored: Some(why), is_whole: true },
                None => self.follow(program, event).await?,
            };
            if is_whole {
                let status = if ignored.is_some() { EventStatus::Ignored } else { EventStatus::Done };
                let became = arrival.became(&seen, status, self.now());
                let became = ProcessorEvent { error: ignored.map(str::to_owned), ..became };
                processor_event::put(&mut batch, account, &seen, &became);
            }
            match self.commit(batch).await? {
                // A part of it is done, which nobody is beaten to twice.
                true if !is_whole => (tries, parts) = (0, parts + 1),
                true => {
                    return Ok(ignored.map_or(Answer::Done, |why| Answer::Ignored(why.to_owned())));
                }
                false => tries += 1,
            }
        }
        Err(Fault::Contended)
    }

    /// All that follows from an event, by what is known at the moment.
    async fn follow(&self, program: Program, event: &Event) -> Result<Followed, Fault> {
        let settings = &program.settings;
        let keys =
            MetadataKeys { referral: settings.metadata_key.clone(), exclude: settings.exclude_key.clone() };
        let fact = event.fact(&keys)?;
        let mut book = Book::of(self, program);
        if let Err(Nothing(why)) = book.hear(&fact).await? {
            return Ok(Followed { batch: Batch::progress(), ignored: Some(why), is_whole: true });
        }
        let is_whole = book.settle().await?;
        Ok(Followed { batch: book.close(Batch::progress()).await?, ignored: None, is_whole })
    }

    /// Notes that an event failed, and nothing else of it.
    async fn note_failure(
        &self,
        account: AccountId,
        (arrival, fault): (&Arrival<'_>, &Fault),
    ) -> Result<(), Fault> {
        for _ in 0..TRIES_MAX {
            let seen = processor_event::get(&self.store, account, &arrival.id).await?;
            if seen.event.as_ref().is_some_and(|event| event.status != EventStatus::Failed) {
                return Ok(());
            }
            let failed = ProcessorEvent {
                error: Some(fault.to_string()),
                body: std::str::from_utf8(arrival.body).ok().map(str::to_owned),
                ..arrival.became(&seen, EventStatus::Failed, self.now())
            };
            let mut batch = Batch::progress();
            processor_event::put(&mut batch, account, &seen, &failed);
            if self.commit(batch).await? {
                return Ok(());
            }
        }
        Err(Fault::Contended)
    }
}

/// What follows from an event.
struct Followed {
    batch: Batch,
    /// Why nothing does.
    ignored: Option<&'static str>,
    /// Whether it is all.
    is_whole: bool,
}

impl Arrival<'_> {
    fn became(&self, seen: &Seen, status: EventStatus, now: Timestamp) -> ProcessorEvent {
        let before = seen.event.as_ref();
        ProcessorEvent {
            id: self.id.clone(),
            kind: self.kind.clone(),
            status,
            error: None,
            attempts: before.map_or(0, |event| event.attempts).saturating_add(1),
            received_at: before.map_or(now, |event| event.received_at),
            body: None,
        }
    }
}

/// Why an event is none of the program's: it is of the other mode, or of another account. What is told of partners'
/// own accounts is of those.
fn foreign(event: &Event, program: &Program) -> Option<&'static str> {
    let is_live = program.settings.mode == Mode::Live;
    if event.livemode.is_some_and(|livemode| livemode != is_live) {
        return Some("it is of the processor's other mode");
    }
    let own = program.processor.as_ref().and_then(|processor| processor.account_id.as_ref());
    let is_anothers = matches!((own, &event.account), (Some(own), Some(its)) if own != its);
    (is_anothers && event.kind != "account.updated").then_some("it is of another account of the processor")
}

/// A name for bytes that do not tell theirs.
fn name_of(body: &[u8]) -> String {
    let digest = digest::digest(&digest::SHA256, body);
    let digits = digest.as_ref().iter().take(16).flat_map(|byte| [byte >> 4, byte & 15]);
    let hex: String = digits.filter_map(|digit| char::from_digit(digit.into(), 16)).collect();
    format!("body_{hex}")
}
