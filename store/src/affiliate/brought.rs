//! Whom partners have brought, by link: sums ([`super::sums`]) that each referral changes in the commit that writes it.

use std::collections::{BTreeMap, BTreeSet};

use mail::affiliate::referral::{Referral, ReferralCounts};
use mail::id::PartnerLinkId;
use serde::{Deserialize, Serialize};

use super::partner_link;
use super::sums::{self, FoldedSums, PartnerKey};
use crate::engine::{Batch, ReadError, Store};
use crate::key::Space;

/// Whom a partner has brought.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReferralCountsByLink {
    /// By the links that it has.
    pub links: BTreeMap<PartnerLinkId, ReferralCounts>,
    /// By none, or by links that it has no more.
    pub elsewhere: ReferralCounts,
}

/// What a referral does to the sums: to those of these links, or of none, it adds so much.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ReferralCountChange(Vec<(Option<PartnerLinkId>, i64, i64)>);

impl ReferralCountsByLink {
    /// Counts a referral.
    pub fn add_referral(&mut self, referral: &Referral) {
        self.counts_mut(referral.link).add(&ReferralCounts::for_referral(referral));
    }

    /// All of them.
    #[must_use]
    pub fn total(&self) -> ReferralCounts {
        let mut all = self.elsewhere;
        self.links.values().for_each(|brought| all.add(brought));
        all
    }

    /// What was brought by other links than these was brought elsewhere.
    pub fn fold_other_links(&mut self, links: &BTreeSet<PartnerLinkId>) {
        let gone = self.links.extract_if(.., |link, _| !links.contains(link));
        gone.for_each(|(_, brought)| self.elsewhere.add(&brought));
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

    /// A link that is deleted does not come back.
    async fn compact(&mut self, store: &Store, (account, partner): PartnerKey) -> Result<(), ReadError> {
        let links = partner_link::list(store, account, partner).await?;
        self.fold_other_links(&links.iter().map(|link| link.id).collect());
        Ok(())
    }
}

/// A referral is other than it was; nothing before it was written.
pub(super) fn record_change(batch: &mut Batch, before: Option<&Referral>, after: &Referral) {
    let signed = |number: u64| i64::try_from(number).unwrap_or(i64::MAX);
    let of = |referral: &Referral| {
        let ReferralCounts { leads, customers } = ReferralCounts::for_referral(referral);
        (referral.link, signed(leads), signed(customers))
    };
    let (was, is) = (before.map(of), of(after));
    if was == Some(is) {
        return;
    }
    let less = was.map(|(link, leads, customers)| (link, -leads, -customers));
    let change = ReferralCountChange(less.into_iter().chain([is]).collect());
    let whose = (after.account, after.partner);
    sums::record_change::<ReferralCountsByLink>(batch, whose, (after.id.to_bytes(), after.rev), change);
}
