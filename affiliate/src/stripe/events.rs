//! Events that the processor sends: received by webhook, replayed, and listed for the owner with their results.

use std::sync::Arc;

use dns::secrets::Vault;
use model::domain::SealedSecret;
use model::id::{AccountId, ProgramId};
use model::quota::Noun as Quota;
use queue::intake::storage_quota::StorageQuotaTracker;
use store::affiliate::processor_event::{self, EventStatus, ProcessorEvent, ProcessorEventCursor};
use store::affiliate::program;

use crate::api_objects::ProcessorEventSummary;
use crate::context::Context;
use crate::error::{AffiliateError, Result};
use crate::ledger::ingest::{FactIngest, IngestOutcome};
use crate::processor::signature;
use crate::secrets;

/// Upper bound of the count of failed events.
const FAILED_MAX: usize = 10_000;

/// Page size of the search for the last received event.
const LOOKED_AT: usize = 20;

#[derive(Debug)]
pub struct ProcessorEventPage {
    /// Newest first.
    pub events: Vec<ProcessorEvent>,
    /// Cursor of the next page, if there is one.
    pub next: Option<ProcessorEventCursor>,
}

/// Approximate size of the row of a processed event, for the storage quota.
const EVENT_ROW_BYTES: u64 = 300;

/// The events that the processor sends.
#[derive(Clone)]
pub struct ProcessorEvents {
    pub(crate) context: Context,
    pub(crate) vault: Arc<Vault>,
    pub(crate) storage_quotas: Arc<StorageQuotaTracker>,
    pub(crate) ingest: FactIngest,
}

impl ProcessorEvents {
    /// Verifies and ingests a webhook body; `header` is the value of [`crate::processor::signature::HEADER`].
    ///
    /// # Errors
    /// The store cannot be read; a webhook secret cannot be unsealed; the storage quota is used up.
    pub async fn receive_webhook(&self, program: ProgramId, header: &str, body: &[u8]) -> Result<IngestOutcome> {
        let found = program::find_by_id_or_key(&self.context.store, &program.to_string()).await?;
        let Some(program) = found else { return Ok(IngestOutcome::Unknown) };
        let Some(processor) = &program.processor else { return Ok(IngestOutcome::Unknown) };
        let id = program.id.to_bytes();
        let open = |secret: &SealedSecret| secrets::open(&self.vault, &id, secret).ok_or(AffiliateError::Seal);
        let secrets: Vec<String> = processor.webhook_secrets.iter().map(open).collect::<Result<_, _>>()?;
        // An unsigned request must not consume the account's quota, nor reveal whether it has any.
        if let Err(error) = signature::verify(header, body, &secrets, self.context.now()) {
            return Ok(IngestOutcome::BadSignature(error));
        }
        let reservation = match store::account::get(&self.context.store, program.account).await? {
            Some(account) => {
                let quotas = &self.storage_quotas;
                Some(quotas.reserve(&account, Quota::AffiliateEventBytes, EVENT_ROW_BYTES).await?)
            }
            None => None,
        };
        let answer = self.ingest.ingest(program.account, body).await;
        match (&answer, reservation) {
            (IngestOutcome::Done | IngestOutcome::Ignored(_), Some(reservation)) => reservation.confirm(),
            (IngestOutcome::Failed(_), Some(reservation)) => {
                reservation.confirm();
                // The body of a failed event is stored for a replay.
                self.storage_quotas.record(program.account, Quota::AffiliateEventBytes, body.len() as u64);
            }
            (IngestOutcome::Duplicate | IngestOutcome::Unknown | IngestOutcome::BadSignature(_), _) | (_, None) => {}
        }
        Ok(answer)
    }

    /// Ingests a failed event again; `None` if there is no such event.
    pub async fn replay_event(&self, account: AccountId, id: &str) -> Result<Option<ProcessorEvent>> {
        Ok(self.ingest.replay(account, id).await?)
    }

    /// Lists the processor's events with one of these statuses; all events if `statuses` is empty.
    pub async fn list_processor_events(
        &self,
        account: AccountId,
        statuses: &[EventStatus],
        after: Option<&ProcessorEventCursor>,
        limit: usize,
    ) -> Result<ProcessorEventPage> {
        let statuses = if statuses.is_empty() { &EventStatus::ALL[..] } else { statuses };
        let mut events = Vec::new();
        for status in statuses {
            let found = processor_event::list(&self.context.store, account, *status, after, limit + 1).await?;
            events.extend(found);
        }
        let position = |event: &ProcessorEvent| (event.received_at, event.id.clone());
        events.sort_by_cached_key(|event| std::cmp::Reverse(position(event)));
        // An event whose status changes between the queries may be found twice or missed; duplicates are removed from
        // the page.
        events.dedup_by(|left, right| left.id == right.id);
        let has_more = events.len() > limit;
        events.truncate(limit);
        let next = events.last().filter(|_| has_more).map(position);
        Ok(ProcessorEventPage { events, next })
    }

    /// Returns the time of the last received event and the number of failed ones.
    pub async fn processor_event_summary(&self, account: AccountId) -> Result<ProcessorEventSummary> {
        let mut after = None;
        let last = loop {
            let page = self.list_processor_events(account, &[], after.as_ref(), LOOKED_AT).await?;
            let delivered = page.events.into_iter().find(|event| !event.is_asked);
            match (delivered, page.next) {
                (None, Some(next)) => after = Some(next),
                (delivered, _) => break delivered,
            }
        };
        let failed = processor_event::count(&self.context.store, account, EventStatus::Failed, FAILED_MAX).await?;
        Ok(ProcessorEventSummary { last_event_at: last.map(|event| event.received_at), failed_events: failed })
    }
}
