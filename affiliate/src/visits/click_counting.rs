//! Click counting: adds clicks to the counters in batches after they were committed, each exactly once.

use std::ops::{Range, RangeInclusive};

use futures_util::future::BoxFuture;
use jiff::{SignedDuration, Timestamp};
use model::affiliate::partner::PartnerLink;
use model::id::{AccountId, PartnerId, PartnerLinkId};
use model::metric::Hour;
use store::affiliate::click;
use store::affiliate::click_count::{self, DailyLinkClicks};
use store::engine::Batch;
use store::retry_on_conflict;
use store::task::PARTITIONS;

use crate::context::Context;
use crate::error::{LedgerError, Result};

const POLL_INTERVAL: SignedDuration = SignedDuration::from_secs(2);
/// Maximum clicks that one commit counts.
const BATCH_CLICKS_MAX: usize = 500;

impl Context {
    /// Counts the pending clicks of these partitions and returns their number. Conflicts are retried, so concurrent
    /// runs do not count twice.
    ///
    /// # Errors
    /// `RetriesExhausted` after too many conflicts; the store failed.
    pub async fn count_clicks(&self, partitions: RangeInclusive<u16>) -> Result<usize, LedgerError> {
        let mut counted = 0;
        loop {
            let found = retry_on_conflict::<_, LedgerError, _>(|| async {
                let found = click::list_pending(&self.store, partitions.clone(), BATCH_CLICKS_MAX).await?;
                let mut batch = Batch::progress();
                click_count::add_clicks(&self.store, &mut batch, found.iter().map(|row| &row.click)).await?;
                found.iter().for_each(|row| row.remove(&mut batch));
                let is_committed = found.is_empty() || self.commit(batch).await?;
                Ok(is_committed.then_some(found.len()))
            })
            .await?;
            if found == 0 {
                return Ok(counted);
            }
            counted += found;
        }
    }

    /// Counts the clicks of this node's partitions until dropped.
    pub(crate) fn run_click_counter(&self) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            loop {
                for partitions in self.leases.owned_ranges() {
                    if let Err(fault) = self.count_clicks(partitions).await {
                        store::warn_unless_away!(self.store, %fault, "cannot count clicks");
                    }
                }
                let next = self.now().checked_add(POLL_INTERVAL).unwrap_or(Timestamp::MAX);
                self.clock.sleep_until(next).await;
            }
        })
    }

    /// Returns the total clicks of each link, including pending ones.
    pub async fn count_clicks_of_links(&self, partner: PartnerId, links: &[PartnerLink]) -> Result<Vec<u64>> {
        let Some(first) = links.first() else { return Ok(Vec::new()) };
        self.count_clicks(0..=PARTITIONS - 1).await?;
        let ids: Vec<PartnerLinkId> = links.iter().map(|link| link.id).collect();
        Ok(click_count::link_totals(&self.store, first.account, partner, &ids).await?)
    }

    /// Returns a partner's clicks per day, link and tag, including pending ones; oldest first.
    pub async fn list_clicks_by_day(
        &self,
        account: AccountId,
        partner: PartnerId,
        days: Range<Hour>,
    ) -> Result<Vec<DailyLinkClicks>> {
        self.count_clicks(0..=PARTITIONS - 1).await?;
        Ok(click_count::daily_clicks(&self.store, account, partner, days).await?)
    }
}
