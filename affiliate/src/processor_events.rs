//! What the processor's events came to, for the owner: a list of them, and how many failed.

use mail::id::AccountId;
use store::affiliate::processor_event::{self, EventStatus, ProcessorEvent, ProcessorEventCursor};

use crate::object::ProcessorEventSummary;
use crate::office::AffiliateService;
use crate::refusal::AffiliateError;

/// Failed events are counted up to here.
const FAILED_MAX: usize = 10_000;

/// Events that are looked at at once for the last that came.
const LOOKED_AT: usize = 20;

/// A page of events.
#[derive(Debug)]
pub struct ProcessorEventPage {
    /// The events, newest first.
    pub events: Vec<ProcessorEvent>,
    /// Where the next page goes on.
    pub next: Option<ProcessorEventCursor>,
}

impl AffiliateService {
    /// A page of the processor's events that stand in one of these ways, in any when there is none.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn list_processor_events(
        &self,
        account: AccountId,
        statuses: &[EventStatus],
        (after, limit): (Option<&ProcessorEventCursor>, usize),
    ) -> Result<ProcessorEventPage, AffiliateError> {
        let statuses = if statuses.is_empty() { EventStatus::ALL } else { statuses };
        let mut events = Vec::new();
        for status in statuses {
            let found = processor_event::list(self.store(), account, (*status, after), limit + 1).await?;
            events.extend(found);
        }
        let place = |event: &ProcessorEvent| (event.received_at, event.id.clone());
        events.sort_by_cached_key(|event| std::cmp::Reverse(place(event)));
        // One that changes its status meanwhile is found twice, or not; never twice on one page.
        events.dedup_by(|one, other| one.id == other.id);
        let has_more = events.len() > limit;
        events.truncate(limit);
        let next = events.last().filter(|_| has_more).map(place);
        Ok(ProcessorEventPage { events, next })
    }

    /// What was heard of the processor so far.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn processor_event_summary(&self, account: AccountId) -> Result<ProcessorEventSummary, AffiliateError> {
        let mut after = None;
        let last = loop {
            let page = self.list_processor_events(account, &[], (after.as_ref(), LOOKED_AT)).await?;
            let came = page.events.into_iter().find(|event| !event.is_asked);
            match (came, page.next) {
                (None, Some(next)) => after = Some(next),
                (came, _) => break came,
            }
        };
        let failed = processor_event::count(self.store(), account, EventStatus::Failed, FAILED_MAX).await?;
        Ok(ProcessorEventSummary { last_event_at: last.map(|event| event.received_at), failed_events: failed })
    }
}
