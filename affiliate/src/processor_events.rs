//! Processor events for the owner: a list with their results, and the number of failed ones.

use mail::id::AccountId;
use store::affiliate::processor_event::{self, EventStatus, ProcessorEvent, ProcessorEventCursor};

use crate::api_objects::ProcessorEventSummary;
use crate::error::AffiliateError;
use crate::service::AffiliateService;

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

impl AffiliateService {
    /// Lists the processor's events with one of these statuses; all events if `statuses` is empty.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn list_processor_events(
        &self,
        account: AccountId,
        statuses: &[EventStatus],
        after: Option<&ProcessorEventCursor>,
        limit: usize,
    ) -> Result<ProcessorEventPage, AffiliateError> {
        let statuses = if statuses.is_empty() { EventStatus::ALL } else { statuses };
        let mut events = Vec::new();
        for status in statuses {
            let found = processor_event::list(self.store(), account, *status, after, limit + 1).await?;
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
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn processor_event_summary(&self, account: AccountId) -> Result<ProcessorEventSummary, AffiliateError> {
        let mut after = None;
        let last = loop {
            let page = self.list_processor_events(account, &[], after.as_ref(), LOOKED_AT).await?;
            let delivered = page.events.into_iter().find(|event| !event.is_asked);
            match (delivered, page.next) {
                (None, Some(next)) => after = Some(next),
                (delivered, _) => break delivered,
            }
        };
        let failed = processor_event::count(self.store(), account, EventStatus::Failed, FAILED_MAX).await?;
        Ok(ProcessorEventSummary { last_event_at: last.map(|event| event.received_at), failed_events: failed })
    }
}
