//! Referral counts of partners by link: sums ([`super::sums`]) that each referral updates in the commit that writes it.

use std::collections::{BTreeMap, BTreeSet};

use model::affiliate::referral::{Referral, ReferralCounts};
use model::id::PartnerLinkId;
use serde::{Deserialize, Serialize};

use super::partner_link;
use super::sums::{self, FoldedSums, PartnerKey};
use crate::engine::{Batch, Result, Store};
use crate::key::Space;

/// A partner's referral counts.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReferralCountsByLink {
    /// Counts of each existing link.
    pub links: BTreeMap<PartnerLinkId, ReferralCounts>,
    /// Counts of referrals without a link, or whose link was deleted.
    pub elsewhere: ReferralCounts,
}

/// The changes of leads and customers that one referral causes, by link or without one.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ReferralCountChange(Vec<(Option<PartnerLinkId>, i64, i64)>);

impl ReferralCountsByLink {
    pub fn add_referral(&mut self, referral: &Referral) {
        self.counts_mut(referral.link).add(&ReferralCounts::for_referral(referral));
    }

    /// The total of all links and of referrals without a link.
    pub fn total(&self) -> ReferralCounts {
        let mut all = self.elsewhere;
        self.links.values().for_each(|counts| all.add(counts));
        all
    }

    /// Moves the counts of links that are not in `links` to `elsewhere`.
    pub fn fold_other_links(&mut self, links: &BTreeSet<PartnerLinkId>) {
        let removed = self.links.extract_if(.., |link, _| !links.contains(link));
        removed.for_each(|(_, counts)| self.elsewhere.add(&counts));
    }

    fn counts_mut(&mut self, link: Option<PartnerLinkId>) -> &mut ReferralCounts {
        match link {
            Some(link) => self.links.entry(link).or_default(),
            None => &mut self.elsewhere,
        }
    }
}

impl FoldedSums for ReferralCountsByLink {
    const SPACE: Space = Space::PartnerReferralCounts;
    type Change = ReferralCountChange;

    fn add(&mut self, ReferralCountChange(change): ReferralCountChange) {
        for (link, leads, customers) in change {
            let sum = self.counts_mut(link);
            sum.leads = sum.leads.wrapping_add_signed(leads);
            sum.customers = sum.customers.wrapping_add_signed(customers);
        }
    }

    /// Deleted links are never restored, so their counts can be merged.
    async fn compact(&mut self, store: &Store, (account, partner): PartnerKey) -> Result<()> {
        let links = partner_link::list(store, account, partner).await?;
        self.fold_other_links(&links.iter().map(|link| link.id).collect());
        Ok(())
    }
}

/// Records the count change of a referral. `before` is `None` for a new referral.
pub(super) fn record_change(batch: &mut Batch, before: Option<&Referral>, after: &Referral) {
    let signed = |number: u64| i64::try_from(number).unwrap_or(i64::MAX);
    let signed_counts = |referral: &Referral| {
        let ReferralCounts { leads, customers } = ReferralCounts::for_referral(referral);
        (referral.link, signed(leads), signed(customers))
    };
    let (counts_before, counts_after) = (before.map(signed_counts), signed_counts(after));
    if counts_before == Some(counts_after) {
        return;
    }
    let subtracted = counts_before.map(|(link, leads, customers)| (link, -leads, -customers));
    let change = ReferralCountChange(subtracted.into_iter().chain([counts_after]).collect());
    let partner_key = (after.account, after.partner);
    sums::record_change::<ReferralCountsByLink>(batch, partner_key, after.id.to_bytes(), after.rev, change);
}
