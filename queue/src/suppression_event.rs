//! The event `suppression.created`, recorded in the commit that stores the suppression.

use model::event::EventKind;
use model::id::EventId;
use model::suppression::Suppression;
use net::clock::Clock;
use net::entropy::Entropy;
use store::engine::Batch;
use store::suppression::StoredSuppression;

/// Records `suppression.created` if the suppression is newly active.
pub fn record_created(
    batch: &mut Batch,
    clock: &Clock,
    entropy: &Entropy,
    before: Option<&StoredSuppression>,
    after: &Suppression,
) {
    let now = clock.now();
    if after.is_newly_active(before.map(|found| &found.suppression), now) {
        let id = EventId::new(now, entropy.unique_bits());
        store::event::record_in_any_partition(batch, &after.event(EventKind::SuppressionCreated, id, now));
    }
}
