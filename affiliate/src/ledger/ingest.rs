//! Event ingestion: verify, deduplicate, enrich, and apply an event with all its effects in one commit.
//!
//! Objects fetched from the processor ([`FactIngest::ingest_fetched_object`]) take the same path, wrapped as synthetic
//! events. The processor never resends these, so no row of them is stored, unless they fail: then they are listed among
//! the failed events.

use aws_lc_rs::digest;
use futures_util::future::BoxFuture;
use jiff::Timestamp;
use message::hexadecimal;
use model::affiliate::program::{AffiliateProgram, ProcessorMode};
use model::id::AccountId;
use store::affiliate::processor_event::{self, EventStatus, ProcessorEvent, StoredProcessorEvent};
use store::affiliate::program;
use store::engine::Batch;
use store::retry_on_conflict;

use super::apply_facts::{NoEffect, apply};
use super::commit_batch::build_batch;
use super::recompute::recompute_all;
use super::unit_of_work::UnitOfWork;
use crate::context::Context;
use crate::error::{LedgerError, LedgerResult as Result};
use crate::offload::{INLINE_BYTES_MAX, offload};
use crate::processor::signature::SignatureError;
use crate::processor::{JsonReadError, MetadataKeys, ProcessorJson, WebhookEvent, WebhookFact, synthesize_event};
use crate::stripe::enrichment::{EnrichedFact, Enrichment};

/// Memory needed to read an event besides its body, per byte of the body: a copy of its object, and the parsed facts.
const MEMORY_FACTOR: usize = 3;
/// Maximum commits of one event; a redelivery or replay continues from there.
const PARTS_MAX: usize = 1_000;

/// Result of ingesting a webhook body.
#[derive(Debug)]
pub enum IngestOutcome {
    /// All effects are committed.
    Done,
    /// The event was processed before.
    Duplicate,
    /// The event does not concern the program; the text is the reason.
    Ignored(String),
    /// The program does not exist, or has no processor connected.
    Unknown,
    /// The signature is missing or invalid.
    BadSignature(SignatureError),
    /// Only the failure is recorded; the processor must send the event again.
    Failed(LedgerError),
}

/// An event being ingested.
struct IncomingEvent<'a> {
    id: String,
    kind: String,
    /// `None` if it is too large to be stored.
    body: Option<&'a [u8]>,
    /// True for an object fetched from the processor and wrapped as an event.
    is_asked: bool,
}

/// Ingests what the processor reports.
#[derive(Clone)]
pub struct FactIngest {
    pub(crate) context: Context,
    /// Fetches what an event leaves out; `None` if nothing is fetched.
    enrichment: Option<Enrichment>,
}

impl FactIngest {
    pub fn new(context: &Context, enrichment: Option<Enrichment>) -> Self {
        Self { context: context.clone(), enrichment }
    }

    /// Ingests an object fetched at time `at`, as if an event of type `kind` had delivered it.
    pub async fn ingest_fetched_object(
        &self,
        program: &AffiliateProgram,
        kind: &str,
        object: &ProcessorJson,
        at: Timestamp,
    ) -> IngestOutcome {
        // The id depends on the object only, so repeated failures share one row.
        let id = format!("asked_{}", object.id().unwrap_or_default());
        if let Err(error) = object.check_size() {
            return self.record_unreadable(program.account, id, kind, error.into()).await;
        }
        let event = synthesize_event(object.text(), &id, kind, at, program.settings.mode);
        self.ingest_body(program.account, event.as_bytes(), true).await
    }

    /// Ingests an event fetched from the processor's event list.
    pub async fn ingest_fetched_event(&self, program: &AffiliateProgram, event: &ProcessorJson) -> IngestOutcome {
        if let Err(error) = event.check_size() {
            let id = event.id().unwrap_or_default().into_owned();
            return self.record_unreadable(program.account, id, "unreadable", error.into()).await;
        }
        self.ingest_body(program.account, event.text().as_bytes(), true).await
    }

    /// Records a fetched object as failed, under an id for the list of failed events.
    pub(crate) async fn record_unreadable(
        &self,
        account: AccountId,
        id: String,
        kind: &str,
        fault: LedgerError,
    ) -> IngestOutcome {
        let arrival = IncomingEvent { id, kind: kind.to_owned(), body: None, is_asked: true };
        self.fail(account, &arrival, fault).await
    }

    /// Ingests a failed event again. An event with another status is returned unchanged. `None` if there is no such
    /// event.
    pub async fn replay(&self, account: AccountId, id: &str) -> Result<Option<ProcessorEvent>> {
        let Some(event) = processor_event::get(&self.context.store, account, id).await?.event else {
            return Ok(None);
        };
        if event.status == EventStatus::Failed
            && let Some(body) = &event.body
        {
            self.ingest_body(account, body.as_bytes(), event.is_asked).await;
        }
        let after = processor_event::get(&self.context.store, account, id).await?.event;
        // The row of a fetched object is deleted once it is applied.
        let booked = ProcessorEvent { status: EventStatus::Done, error: None, body: None, ..event };
        Ok(after.or(Some(booked)))
    }

    /// Ingests a body whose signature was verified, without enrichment.
    pub fn ingest<'a>(&'a self, account: AccountId, body: &'a [u8]) -> BoxFuture<'a, IngestOutcome> {
        Box::pin(async move { self.ingest_body(account, body, false).await })
    }

    async fn ingest_body(&self, account: AccountId, body: &[u8], is_asked: bool) -> IngestOutcome {
        // The memory is reserved until the event is applied.
        let permit = match (&self.enrichment, body.len()) {
            (Some(enrichment), large) if large > INLINE_BYTES_MAX => {
                enrichment.reserve_memory(account, large.saturating_mul(MEMORY_FACTOR)).await.map(Some)
            }
            _ => Ok(None),
        };
        let _permit = match permit {
            Ok(permit) => permit,
            // Nothing is recorded: the processor sends the event again.
            Err(fault) => return IngestOutcome::Failed(fault),
        };
        let arrival = |id, kind| IncomingEvent { id, kind, body: Some(body), is_asked };
        let (arrival, read) = match read(body).await {
            Ok(event) => (arrival(event.id.clone(), event.kind.clone()), Ok(event)),
            // The id cannot be read; a hash of the body identifies the event, so redeliveries share one row.
            Err(error) => (arrival(hash_name(body), "unreadable".to_owned()), Err(error)),
        };
        let answer = match read {
            // Boxed, because the future of a unit of work is large and would be copied into every caller's future.
            Ok(event) => Box::pin(self.enrich_and_apply(account, event, &arrival)).await,
            Err(error) => Err(error.into()),
        };
        match answer {
            Ok(answer) => answer,
            Err(fault) => self.fail(account, &arrival, fault).await,
        }
    }

    async fn fail(&self, account: AccountId, arrival: &IncomingEvent<'_>, fault: LedgerError) -> IngestOutcome {
        if let Err(error) = self.record_failure(account, arrival, &fault).await {
            tracing::warn!(event = arrival.id, %error, "cannot record that a processor event failed");
        }
        IngestOutcome::Failed(fault)
    }

    /// Enriches the event before any row is read for the commit, so that no request is sent in between.
    async fn enrich_and_apply(
        &self,
        account: AccountId,
        event: WebhookEvent,
        arrival: &IncomingEvent<'_>,
    ) -> Result<IngestOutcome> {
        let program = program::get(&self.context.store, account).await?.ok_or(LedgerError::NotSetUp)?;
        let stored = processor_event::get(&self.context.store, account, &event.id).await?;
        if arrival.is_already_processed(&stored) {
            return Ok(IngestOutcome::Duplicate);
        }
        if foreign_reason(&event, &program).is_some() {
            return self.apply_event(account, &event, None, arrival).await;
        }
        let keys = metadata_keys(&program);
        let (event, fact) = read_fact(event, keys.clone()).await?;
        let completed = match &self.enrichment {
            Some(enrichment) => enrichment.enrich(&program, fact, &keys).await?,
            None => EnrichedFact::from_fact(fact),
        };
        self.apply_event(account, &event, Some(&completed), arrival).await
    }

    async fn apply_event(
        &self,
        account: AccountId,
        event: &WebhookEvent,
        completed: Option<&EnrichedFact>,
        arrival: &IncomingEvent<'_>,
    ) -> Result<IngestOutcome> {
        for _ in 0..PARTS_MAX {
            let outcome = retry_on_conflict(|| self.apply_part(account, event, completed, arrival)).await?;
            // A part is committed, so its progress cannot conflict again.
            if let Some(outcome) = outcome {
                return Ok(outcome);
            }
        }
        Err(LedgerError::RetriesExhausted)
    }

    /// Applies as much of an event as one commit takes. Returns `Some(None)` if more is left, `None` after a conflict.
    async fn apply_part(
        &self,
        account: AccountId,
        event: &WebhookEvent,
        completed: Option<&EnrichedFact>,
        arrival: &IncomingEvent<'_>,
    ) -> Result<Option<Option<IngestOutcome>>> {
        let program = program::get(&self.context.store, account).await?.ok_or(LedgerError::NotSetUp)?;
        let stored = processor_event::get(&self.context.store, account, &event.id).await?;
        if arrival.is_already_processed(&stored) {
            return Ok(Some(Some(IngestOutcome::Duplicate)));
        }
        let IngestStep { mut batch, ignored, is_whole } = match (foreign_reason(event, &program), completed) {
            (Some(reason), _) => IngestStep { batch: Batch::progress(), ignored: Some(reason), is_whole: true },
            (None, Some(completed)) => self.apply_facts(program, completed).await?,
            // The program's mode or account changed since the event was enriched.
            (None, None) => return Err(LedgerError::RetriesExhausted),
        };
        if is_whole && arrival.is_transient(&stored) {
            processor_event::delete(&mut batch, account, &stored);
        } else if is_whole {
            let status = if ignored.is_some() { EventStatus::Ignored } else { EventStatus::Done };
            let processed = arrival.to_row(&stored, status, self.context.now());
            let processed = ProcessorEvent { error: ignored.map(str::to_owned), ..processed };
            processor_event::put(&mut batch, account, &stored, &processed);
        }
        let outcome = ignored.map_or(IngestOutcome::Done, |reason| IngestOutcome::Ignored(reason.to_owned()));
        Ok(self.context.commit(batch).await?.then_some(is_whole.then_some(outcome)))
    }

    /// Computes the effects of an event from the current rows.
    async fn apply_facts(&self, program: AffiliateProgram, completed: &EnrichedFact) -> Result<IngestStep> {
        let mut work = UnitOfWork::for_program(&self.context, program);
        for fact in &completed.before {
            // These facts complete the event; whether they have an effect of their own does not matter.
            let _ = apply(&mut work, fact).await?;
        }
        if let Err(NoEffect(reason)) = apply(&mut work, &completed.fact).await? {
            return Ok(IngestStep { batch: Batch::progress(), ignored: Some(reason), is_whole: true });
        }
        let is_whole = Box::pin(recompute_all(&mut work)).await?;
        Ok(IngestStep { batch: build_batch(work, Batch::progress()).await?, ignored: None, is_whole })
    }

    /// Records that an event failed, with its body, and nothing else.
    async fn record_failure(&self, account: AccountId, arrival: &IncomingEvent<'_>, fault: &LedgerError) -> Result<()> {
        retry_on_conflict(|| async {
            let stored = processor_event::get(&self.context.store, account, &arrival.id).await?;
            if arrival.is_already_processed(&stored) {
                return Ok(Some(()));
            }
            let failed = ProcessorEvent {
                error: Some(fault.to_string()),
                body: arrival.body.and_then(|body| std::str::from_utf8(body).ok()).map(str::to_owned),
                ..arrival.to_row(&stored, EventStatus::Failed, self.context.now())
            };
            let mut batch = Batch::progress();
            processor_event::put(&mut batch, account, &stored, &failed);
            Ok(self.context.commit(batch).await?.then_some(()))
        })
        .await
    }
}

/// One commit of an event.
struct IngestStep {
    batch: Batch,
    /// The reason, if the event has no effect.
    ignored: Option<&'static str>,
    /// True if nothing is left for further commits.
    is_whole: bool,
}

impl IncomingEvent<'_> {
    /// True if the event was processed completely before.
    fn is_already_processed(&self, stored: &StoredProcessorEvent) -> bool {
        stored.event.as_ref().is_some_and(|event| event.status != EventStatus::Failed)
    }

    /// True if no row is stored after success: a fetched object that no webhook has delivered.
    fn is_transient(&self, stored: &StoredProcessorEvent) -> bool {
        self.is_asked && stored.event.as_ref().is_none_or(|event| event.is_asked)
    }

    fn to_row(&self, stored: &StoredProcessorEvent, status: EventStatus, now: Timestamp) -> ProcessorEvent {
        let before = stored.event.as_ref();
        ProcessorEvent {
            id: self.id.clone(),
            kind: self.kind.clone(),
            status,
            error: None,
            attempts: before.map_or(0, |event| event.attempts).saturating_add(1),
            received_at: before.map_or(now, |event| event.received_at),
            body: None,
            is_asked: self.is_transient(stored),
        }
    }
}

/// Parses an event; a large one on a blocking thread.
async fn read(body: &[u8]) -> Result<WebhookEvent, JsonReadError> {
    if body.len() <= INLINE_BYTES_MAX {
        return WebhookEvent::read(body);
    }
    let body = body.to_vec();
    offload(body.len(), move || WebhookEvent::read(&body)).await
}

/// Parses the event's fact and drops the object's JSON from the event.
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

/// Returns why an event does not belong to the program: other mode, or another account. `account.updated` names a
/// partner's connected account and is accepted.
fn foreign_reason(event: &WebhookEvent, program: &AffiliateProgram) -> Option<&'static str> {
    let is_live = program.settings.mode == ProcessorMode::Live;
    // An event without `livemode` counts as test mode.
    if event.livemode.unwrap_or(false) != is_live {
        return Some("the event belongs to the processor's other mode");
    }
    let own_account = program.processor.as_ref().and_then(|processor| processor.account_id.as_ref());
    // Events of the endpoint's own account do not name it. So if the own account is unknown, any named account is
    // another one.
    let is_foreign = event.account.as_ref().is_some_and(|account| own_account != Some(account));
    (is_foreign && event.kind != "account.updated").then_some("the event belongs to another account of the processor")
}

/// Returns an id for a body whose own id cannot be read.
fn hash_name(body: &[u8]) -> String {
    let digest = digest::digest(&digest::SHA256, body);
    format!("body_{}", hexadecimal::encode(digest.as_ref().get(..16).unwrap_or_default()))
}
