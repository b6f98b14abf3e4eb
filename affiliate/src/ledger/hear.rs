//! Events come in: verified, looked for among those that came before, completed, and heard in one commit with all that
//! follows.
//!
//! What the processor was asked for ([`Ledger::take_asked`]) goes the same way in the shape of an event. It is none: nobody
//! sends it again, so nothing is kept of it, unless it cannot be worked with; then it stands among the events that failed.

use std::future::{Future, ready};

use aws_lc_rs::digest;
use futures_util::future::BoxFuture;
use jiff::Timestamp;
use mail::affiliate::program::{AffiliateProgram, ProcessorMode};
use mail::id::AccountId;
use queue::courier::http::ResponsePermit;
use store::affiliate::processor_event::{self, EventStatus, ProcessorEvent, StoredProcessorEvent};
use store::affiliate::program;
use store::engine::Batch;

use super::facts::NoEffect;
use super::{Ledger, LedgerError, TRIES_MAX, UnitOfWork};
use crate::offload::{INLINE_BYTES_MAX, offload};
use crate::processor::signature::{self, SignatureError};
use crate::processor::{JsonReadError, MetadataKeys, ProcessorJson, WebhookEvent, WebhookFact, synthesize_event};

/// What reading an event takes, besides its body, for each byte of the body: a copy of its object, and what is made of it.
const MEMORY_FACTOR: usize = 3;
/// Commits that one event takes at most: what is left then is done when it is sent again.
const PARTS_MAX: usize = 1_000;

/// What became of a body that came in.
#[derive(Debug)]
pub enum IngestOutcome {
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
    Failed(LedgerError),
}

/// Who asks the processor for what an event leaves out.
pub trait Enricher: Sync {
    /// Asks, where something is left out of what an event tells.
    fn enrich(
        &self,
        of: (&Ledger, &AffiliateProgram),
        said: (WebhookFact, &MetadataKeys),
    ) -> impl Future<Output = Result<EnrichedFact, LedgerError>> + Send;

    /// The memory to read a large event of an account in; none where nobody counts it.
    fn permit(
        &self,
        _account: AccountId,
        _bytes: usize,
    ) -> impl Future<Output = Result<Option<ResponsePermit>, LedgerError>> + Send {
        ready(Ok(None))
    }
}

/// What an event tells, with all that the processor says to it.
#[derive(Debug)]
pub struct EnrichedFact {
    /// What is heard before it, in its commit.
    pub before: Vec<WebhookFact>,
    /// What the event tells.
    pub fact: WebhookFact,
}

impl EnrichedFact {
    /// An event that leaves nothing out.
    #[must_use]
    pub fn from_fact(fact: WebhookFact) -> Self {
        Self { before: Vec::new(), fact }
    }
}

/// Nobody is asked.
pub struct NoEnricher;

impl Enricher for NoEnricher {
    async fn enrich(
        &self,
        _: (&Ledger, &AffiliateProgram),
        (fact, _): (WebhookFact, &MetadataKeys),
    ) -> Result<EnrichedFact, LedgerError> {
        Ok(EnrichedFact::from_fact(fact))
    }
}

/// An event that is looked at: by its id, with what came.
struct IncomingEvent<'a> {
    id: String,
    kind: String,
    /// Nothing of what is too large to be kept.
    body: Option<&'a [u8]>,
    /// Whether it is what the processor was asked for, in the shape of an event.
    is_asked: bool,
}

impl Ledger {
    /// Takes a body that says it is the processor's; `secrets` are those of the program.
    pub async fn receive<S: AsRef<str>>(
        &self,
        (program, secrets): (&AffiliateProgram, &[S]),
        (header, body): (&str, &[u8]),
        completes: &impl Enricher,
    ) -> IngestOutcome {
        match signature::verify(header, body, secrets, self.now()) {
            Ok(_) => self.ingest_body(program.account, (body, false), completes).await,
            Err(error) => IngestOutcome::BadSignature(error),
        }
    }

    /// Takes an object as it was when the processor was asked, as if an event of this kind told of it.
    pub async fn ingest_fetched_object(
        &self,
        program: &AffiliateProgram,
        (kind, object): (&str, &ProcessorJson),
        (at, completes): (Timestamp, &impl Enricher),
    ) -> IngestOutcome {
        // Who fails more than once is in the list of those who did only once.
        let id = format!("asked_{}", object.id().unwrap_or_default());
        if let Err(why) = object.check_size() {
            return self.record_unreadable(program.account, (id, kind), why.into()).await;
        }
        let event = synthesize_event(object.text(), (&id, kind), (at, program.settings.mode));
        self.ingest_body(program.account, (event.as_bytes(), true), completes).await
    }

    /// Takes an event that the processor was asked for.
    pub async fn ingest_fetched_event(
        &self,
        program: &AffiliateProgram,
        event: &ProcessorJson,
        completes: &impl Enricher,
    ) -> IngestOutcome {
        if let Err(why) = event.check_size() {
            let id = event.id().unwrap_or_default().into_owned();
            return self.record_unreadable(program.account, (id, "unreadable"), why.into()).await;
        }
        self.ingest_body(program.account, (event.text().as_bytes(), true), completes).await
    }

    /// Notes that an object that was asked for cannot be worked with, by an id for the list of events that failed.
    pub(crate) async fn record_unreadable(
        &self,
        account: AccountId,
        (id, kind): (String, &str),
        fault: LedgerError,
    ) -> IngestOutcome {
        let arrival = IncomingEvent { id, kind: kind.to_owned(), body: None, is_asked: true };
        self.fail(account, &arrival, fault).await
    }

    /// Tries an event again that failed. One that did not stays as it is. `None`: there is no such event.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn replay(
        &self,
        (account, id): (AccountId, &str),
        completes: &impl Enricher,
    ) -> Result<Option<ProcessorEvent>, LedgerError> {
        let Some(event) = processor_event::get(&self.store, account, id).await?.event else {
            return Ok(None);
        };
        if event.status == EventStatus::Failed
            && let Some(body) = &event.body
        {
            self.ingest_body(account, (body.as_bytes(), event.is_asked), completes).await;
        }
        let after = processor_event::get(&self.store, account, id).await?.event;
        // What the processor was asked for is forgotten once it is booked.
        let booked = ProcessorEvent { status: EventStatus::Done, error: None, body: None, ..event };
        Ok(after.or(Some(booked)))
    }

    /// Takes a body that is the processor's, as it is.
    pub fn ingest<'a>(&'a self, account: AccountId, body: &'a [u8]) -> BoxFuture<'a, IngestOutcome> {
        Box::pin(async move { self.ingest_body(account, (body, false), &NoEnricher).await })
    }

    async fn ingest_body(
        &self,
        account: AccountId,
        (body, is_asked): (&[u8], bool),
        completes: &impl Enricher,
    ) -> IngestOutcome {
        // What reading it takes is held until it is worked with.
        let permit = match body.len() {
            0..=INLINE_BYTES_MAX => Ok(None),
            large => completes.permit(account, large.saturating_mul(MEMORY_FACTOR)).await,
        };
        let _permit = match permit {
            Ok(permit) => permit,
            // Nothing is noted: it is to be sent again.
            Err(fault) => return IngestOutcome::Failed(fault),
        };
        let arrival = |id, kind| IncomingEvent { id, kind, body: Some(body), is_asked };
        let (arrival, read) = match read(body).await {
            Ok(event) => (arrival(event.id.clone(), event.kind.clone()), Ok(event)),
            // It has no id that could be read: the same bytes have the same name.
            Err(error) => (arrival(hash_name(body), "unreadable".to_owned()), Err(error)),
        };
        let answer = match read {
            // Boxed, as below: a book and all that it asks for is large, and would be copied through every layer above.
            Ok(event) => Box::pin(self.enrich_and_apply(account, (event, &arrival), completes)).await,
            Err(error) => Err(error.into()),
        };
        match answer {
            Ok(answer) => answer,
            Err(fault) => self.fail(account, &arrival, fault).await,
        }
    }

    async fn fail(&self, account: AccountId, arrival: &IncomingEvent<'_>, fault: LedgerError) -> IngestOutcome {
        if let Err(error) = self.record_failure(account, (arrival, &fault)).await {
            tracing::warn!(event = arrival.id, %error, "it cannot be noted that an event failed");
        }
        IngestOutcome::Failed(fault)
    }

    /// What it leaves out is asked for while nothing is held.
    async fn enrich_and_apply(
        &self,
        account: AccountId,
        (event, arrival): (WebhookEvent, &IncomingEvent<'_>),
        completes: &impl Enricher,
    ) -> Result<IngestOutcome, LedgerError> {
        let program = program::get(&self.store, account).await?.ok_or(LedgerError::NotSetUp)?;
        let seen = processor_event::get(&self.store, account, &event.id).await?;
        if arrival.is_already_processed(&seen) {
            return Ok(IngestOutcome::Duplicate);
        }
        if foreign_reason(&event, &program).is_some() {
            return self.apply_event(account, (&event, None), arrival).await;
        }
        let keys = metadata_keys(&program);
        let (event, fact) = read_fact(event, keys.clone()).await?;
        let completed = completes.enrich((self, &program), (fact, &keys)).await?;
        self.apply_event(account, (&event, Some(&completed)), arrival).await
    }

    async fn apply_event(
        &self,
        account: AccountId,
        (event, completed): (&WebhookEvent, Option<&EnrichedFact>),
        arrival: &IncomingEvent<'_>,
    ) -> Result<IngestOutcome, LedgerError> {
        let (mut tries, mut parts) = (0, 0);
        while tries < TRIES_MAX && parts < PARTS_MAX {
            let program = program::get(&self.store, account).await?.ok_or(LedgerError::NotSetUp)?;
            let seen = processor_event::get(&self.store, account, &event.id).await?;
            if arrival.is_already_processed(&seen) {
                return Ok(IngestOutcome::Duplicate);
            }
            let IngestStep { mut batch, ignored, is_whole } = match (foreign_reason(event, &program), completed) {
                (Some(why), _) => IngestStep { batch: Batch::progress(), ignored: Some(why), is_whole: true },
                (None, Some(completed)) => self.apply_facts(program, completed).await?,
                // The program took another mode or account meanwhile.
                (None, None) => return Err(LedgerError::Contended),
            };
            if is_whole && arrival.is_transient(&seen) {
                processor_event::delete(&mut batch, account, &seen);
            } else if is_whole {
                let status = if ignored.is_some() { EventStatus::Ignored } else { EventStatus::Done };
                let became = arrival.to_row(&seen, status, self.now());
                let became = ProcessorEvent { error: ignored.map(str::to_owned), ..became };
                processor_event::put(&mut batch, account, &seen, &became);
            }
            match self.commit(batch).await? {
                // A part of it is done, which nobody is beaten to twice.
                true if !is_whole => (tries, parts) = (0, parts + 1),
                true => {
                    return Ok(ignored.map_or(IngestOutcome::Done, |why| IngestOutcome::Ignored(why.to_owned())));
                }
                false => tries += 1,
            }
        }
        Err(LedgerError::Contended)
    }

    /// All that follows from an event, by what is known at the moment.
    async fn apply_facts(
        &self,
        program: AffiliateProgram,
        completed: &EnrichedFact,
    ) -> Result<IngestStep, LedgerError> {
        let mut book = UnitOfWork::for_program(self, program);
        for fact in &completed.before {
            // What it adds is known either way.
            let _ = book.apply(fact).await?;
        }
        if let Err(NoEffect(why)) = book.apply(&completed.fact).await? {
            return Ok(IngestStep { batch: Batch::progress(), ignored: Some(why), is_whole: true });
        }
        let is_whole = Box::pin(book.recompute_all()).await?;
        Ok(IngestStep { batch: book.build_batch(Batch::progress()).await?, ignored: None, is_whole })
    }

    /// Notes that an event failed, and nothing else of it.
    async fn record_failure(
        &self,
        account: AccountId,
        (arrival, fault): (&IncomingEvent<'_>, &LedgerError),
    ) -> Result<(), LedgerError> {
        for _ in 0..TRIES_MAX {
            let seen = processor_event::get(&self.store, account, &arrival.id).await?;
            if arrival.is_already_processed(&seen) {
                return Ok(());
            }
            let failed = ProcessorEvent {
                error: Some(fault.to_string()),
                body: arrival.body.and_then(|body| std::str::from_utf8(body).ok()).map(str::to_owned),
                ..arrival.to_row(&seen, EventStatus::Failed, self.now())
            };
            let mut batch = Batch::progress();
            processor_event::put(&mut batch, account, &seen, &failed);
            if self.commit(batch).await? {
                return Ok(());
            }
        }
        Err(LedgerError::Contended)
    }
}

/// What follows from an event.
struct IngestStep {
    batch: Batch,
    /// Why nothing does.
    ignored: Option<&'static str>,
    /// Whether it is all.
    is_whole: bool,
}

impl IncomingEvent<'_> {
    /// Whether all that follows from it was written before.
    fn is_already_processed(&self, seen: &StoredProcessorEvent) -> bool {
        seen.event.as_ref().is_some_and(|event| event.status != EventStatus::Failed)
    }

    /// Whether nothing is kept of it once all that follows from it is written.
    fn is_transient(&self, seen: &StoredProcessorEvent) -> bool {
        self.is_asked && seen.event.as_ref().is_none_or(|event| event.is_asked)
    }

    fn to_row(&self, seen: &StoredProcessorEvent, status: EventStatus, now: Timestamp) -> ProcessorEvent {
        let before = seen.event.as_ref();
        ProcessorEvent {
            id: self.id.clone(),
            kind: self.kind.clone(),
            status,
            error: None,
            attempts: before.map_or(0, |event| event.attempts).saturating_add(1),
            received_at: before.map_or(now, |event| event.received_at),
            body: None,
            is_asked: self.is_transient(seen),
        }
    }
}

/// Reads an event, and a large one off the runtime.
async fn read(body: &[u8]) -> Result<WebhookEvent, JsonReadError> {
    if body.len() <= INLINE_BYTES_MAX {
        return WebhookEvent::read(body);
    }
    let body = body.to_vec();
    offload(body.len(), move || WebhookEvent::read(&body)).await
}

/// What an event tells; what is left of it then is its envelope.
async fn read_fact(event: WebhookEvent, keys: MetadataKeys) -> Result<(WebhookEvent, WebhookFact), JsonReadError> {
    offload(event.object_bytes(), move || {
        let fact = event.read_fact(&keys)?;
        Ok((event.without_object(), fact))
    })
    .await
}

fn metadata_keys(program: &AffiliateProgram) -> MetadataKeys {
    let settings = &program.settings;
    MetadataKeys { referral: settings.metadata_key.clone(), exclude: settings.exclude_key.clone() }
}

/// Why an event is none of the program's: it is of the other mode, or of another account. What is told of partners'
/// own accounts is of those.
fn foreign_reason(event: &WebhookEvent, program: &AffiliateProgram) -> Option<&'static str> {
    let is_live = program.settings.mode == ProcessorMode::Live;
    // What does not say that its money is real is not taken for it.
    if event.livemode.unwrap_or(false) != is_live {
        return Some("it is of the processor's other mode");
    }
    let own = program.processor.as_ref().and_then(|processor| processor.account_id.as_ref());
    // The endpoint's own account is not named in its events: where it is not known, whoever is named is another one.
    let is_anothers = event.account.as_ref().is_some_and(|its| own != Some(its));
    (is_anothers && event.kind != "account.updated").then_some("it is of another account of the processor")
}

/// A name for bytes that do not tell theirs.
fn hash_name(body: &[u8]) -> String {
    let digest = digest::digest(&digest::SHA256, body);
    let digits = digest.as_ref().iter().take(16).flat_map(|byte| [byte >> 4, byte & 15]);
    let hex: String = digits.filter_map(|digit| char::from_digit(digit.into(), 16)).collect();
    format!("body_{hex}")
}
