//! Whom partners have brought, by link: sums ([`super::sums`]) that each referral changes in the commit that writes it.

use std::collections::{BTreeMap, BTreeSet};

use mail::affiliate::referral::{Brought, Referral};
use mail::id::PartnerLinkId;
use serde::{Deserialize, Serialize};

use super::partner_link;
use super::sums::{self, Sums, Whose};
use crate::engine::{Batch, ReadError, Store};
use crate::key::Space;

/// Whom a partner has brought.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ByLink {
    /// By the links that it has.
    pub links: BTreeMap<PartnerLinkId, Brought>,
    /// By none, or by links that it has no more.
    pub elsewhere: Brought,
}

/// What a referral does to the sums: to those of these links, or of none, it adds so much.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Change(Vec<(Option<PartnerLinkId>, i64, i64)>);

impl ByLink {
    /// Counts a referral.
    pub fn count(&mut self, referral: &Referral) {
        self.of(referral.link).add(&Brought::of(referral));
    }

    /// All of them.
    #[must_use]
    pub fn all(&self) -> Brought {
        let mut all = self.elsewhere;
        self.links.values().for_each(|brought| all.add(brought));
        all
    }

    /// What was brought by other links than these was brought elsewhere.
    pub fn keep(&mut self, links: &BTreeSet<PartnerLinkId>) {
        let gone = self.links.extract_if(.., |link, _| !links.contains(link));
        gone.for_each(|(_, brought)| self.elsewhere.add(&brought));
    }

    fn of(&mut self, link: Option<PartnerLinkId>) -> &mut Brought {
        match link {
            Some(link) => self.links.entry(link).or_default(),
            None => &mut self.elsewhere,
        }
    }
}

impl Sums for ByLink {
    const SPACE: Space = Space::PartnerBrought;
    type Change = Change;

    fn add(&mut self, Change(change): Change) {
        for (link, leads, customers) in change {
            let sum = self.of(link);
            sum.leads = sum.leads.wrapping_add_signed(leads);
            sum.customers = sum.customers.wrapping_add_signed(customers);
        }
    }

    /// A link that is deleted does not come back.
    async fn tidy(&mut self, store: &Store, (account, partner): Whose) -> Result<(), ReadError> {
        let links = partner_link::all(store, account, partner).await?;
        self.keep(&links.iter().map(|link| link.id).collect());
        Ok(())
    }
}

/// A referral is other than it was; nothing before it was written.
pub(super) fn note(batch: &mut Batch, before: Option<&Referral>, after: &Referral) {
    let signed = |number: u64| i64::try_from(number).unwrap_or(i64::MAX);
    let of = |referral: &Referral| {
        let Brought { leads, customers } = Brought::of(referral);
        (referral.link, signed(leads), signed(customers))
    };
    let (was, is) = (before.map(of), of(after));
    if was == Some(is) {
        return;
    }
    let less = was.map(|(link, leads, customers)| (link, -leads, -customers));
    let change = Change(less.into_iter().chain([is]).collect());
    let whose = (after.account, after.partner);
    sums::note::<ByLink>(batch, whose, (after.id.to_bytes(), after.rev), change);
}
