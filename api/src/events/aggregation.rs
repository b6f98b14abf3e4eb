//! Waits until recent product events are counted.

use crate::prelude::*;

/// Maximum wait for recent events to be counted.
const COUNT_WAIT_MAX: Duration = Duration::from_millis(200);

/// Aggregates pending events and waits briefly for the result, so that a client sees the event that it just sent.
pub(crate) async fn wait_until_counted(state: &State) {
    let events = Arc::clone(&state.accounts.product_events);
    // Runs in its own task, because an interrupted aggregation would have to start again.
    let counting = state.background.tasks.spawn(async move { events.aggregator.aggregate_all().await });
    if let Ok(Ok(Err(error))) = tokio::time::timeout(COUNT_WAIT_MAX, counting).await {
        tracing::warn!(%error, "cannot aggregate product events: counts may lag");
    }
}
