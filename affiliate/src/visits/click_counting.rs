//! Click counting: adds clicks to the counters in batches after they were committed, each exactly once.

use std::ops::{Range, RangeInclusive};

use futures_util::future::BoxFuture;
use jiff::{SignedDuration, Timestamp};
use mail::affiliate::partner::PartnerLink;
use mail::id::{AccountId, PartnerId, PartnerLinkId};
use mail::metric::Hour;
use store::affiliate::click;
use store::affiliate::click_count::{self, DailyLinkClicks};
use store::engine::Batch;
use store::task::PARTITIONS;

use crate::error::AffiliateError;
use crate::ledger::{Ledger, LedgerError};
use crate::service::{AffiliateService, TRIES_MAX};

/// Poll interval.
const POLL_INTERVAL: SignedDuration = SignedDuration::from_secs(2);
/// Maximum clicks that one commit counts.
const BATCH_CLICKS_MAX: usize = 500;

impl Ledger {
    /// Counts the pending clicks of these partitions and returns their number. Conflicts are retried, so concurrent
    /// runs do not count twice.
    ///
    /// # Errors
    /// `Contended` after too many conflicts; the store failed.
    pub async fn count_clicks(&self, partitions: RangeInclusive<u16>) -> Result<usize, LedgerError> {
        let (mut counted, mut tries) = (0, 0);
        while tries < TRIES_MAX {
            let found = click::list_pending(self.store(), partitions.clone(), BATCH_CLICKS_MAX).await?;
            if found.is_empty() {
                return Ok(counted);
            }
            let mut batch = Batch::progress();
            click_count::add_clicks(self.store(), &mut batch, found.iter().map(|row| &row.click)).await?;
            found.iter().for_each(|row| row.remove(&mut batch));
            if self.commit(batch).await? {
                (counted, tries) = (counted + found.len(), 0);
            } else {
                tries += 1;
            }
        }
        Err(LedgerError::Contended)
    }
}

impl AffiliateService {
    /// Counts the clicks of this node's partitions until dropped.
    pub fn run_click_counting(&self) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            loop {
                for partitions in self.intake.partition_ranges() {
                    if let Err(fault) = self.ledger().count_clicks(partitions).await {
                        store::warn_unless_away!(self.store(), %fault, "cannot count clicks");
                    }
                }
                let next = self.now().checked_add(POLL_INTERVAL).unwrap_or(Timestamp::MAX);
                self.intake.clock().sleep_until(next).await;
            }
        })
    }

    /// Returns the total clicks of each link, including pending ones.
    ///
    /// # Errors
    /// As [`Ledger::count_clicks`].
    pub async fn count_clicks_of_links(
        &self,
        partner: PartnerId,
        links: &[PartnerLink],
    ) -> Result<Vec<u64>, AffiliateError> {
        let Some(first) = links.first() else { return Ok(Vec::new()) };
        self.ledger().count_clicks(0..=PARTITIONS - 1).await?;
        let ids: Vec<PartnerLinkId> = links.iter().map(|link| link.id).collect();
        Ok(click_count::link_totals(self.store(), first.account, partner, &ids).await?)
    }

    /// Returns a partner's clicks per day, link and tag, including pending ones; oldest first.
    ///
    /// # Errors
    /// As [`Ledger::count_clicks`].
    pub async fn list_clicks_by_day(
        &self,
        account: AccountId,
        partner: PartnerId,
        days: Range<Hour>,
    ) -> Result<Vec<DailyLinkClicks>, AffiliateError> {
        self.ledger().count_clicks(0..=PARTITIONS - 1).await?;
        Ok(click_count::daily_clicks(self.store(), account, partner, days).await?)
    }
}
