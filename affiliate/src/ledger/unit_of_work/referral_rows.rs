//! Referrals in a unit of work, with the counts and guards of their partners that depend on them.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use message::address::Address;
use model::affiliate::payout::LineCursor;
use model::affiliate::recompute::ReferralBar;
use model::affiliate::referral::{Referral, ReferralStatus};
use model::id::{PartnerId, ReferralId};
use store::affiliate::customer_counts::{self, PayingCustomerCount};
use store::affiliate::limit_guard::LimitGuard;
use store::affiliate::referral;
use store::engine::{Batch, ReadError};

use super::tracked_rows::{RowSource, TrackedRow, TrackedRows};

/// Tracked referrals.
pub(crate) struct ReferralRows {
    source: RowSource,
    rows: TrackedRows<ReferralId, Referral>,
    /// New referral to the lapsed referral that it replaces.
    lapsed: BTreeMap<ReferralId, ReferralId>,
    /// New referrals whose bounty is not computed yet.
    pub(crate) awaiting_bounty: Vec<ReferralId>,
    /// The guard of each partner's latest lead as it was read, and the new latest lead.
    latest_leads: BTreeMap<PartnerId, (LimitGuard, ReferralId)>,
    customer_counts: BTreeMap<PartnerId, PayingCustomerCount>,
}

impl ReferralRows {
    pub(super) fn new(source: RowSource) -> Self {
        Self {
            source,
            rows: TrackedRows::default(),
            lapsed: BTreeMap::new(),
            awaiting_bounty: Vec::new(),
            latest_leads: BTreeMap::new(),
            customer_counts: BTreeMap::new(),
        }
    }

    /// Returns the referral for reading and changing; `None` if it does not exist.
    pub(crate) async fn load(&mut self, id: ReferralId) -> Result<Option<&mut Referral>, ReadError> {
        self.rows.load(id, referral::get(&self.source.store, self.source.account, id)).await
    }

    /// Returns a copy of the referral; `None` if it does not exist.
    pub(crate) async fn get(&mut self, id: ReferralId) -> Result<Option<Referral>, ReadError> {
        Ok(self.load(id).await?.map(|found| found.clone()))
    }

    /// Returns the referral with its changes, if it was loaded or added.
    pub(super) fn loaded(&self, id: ReferralId) -> Option<&Referral> {
        self.rows.get(&id)
    }

    /// Returns referrals of guest checkouts whose lines are still being recomputed, each with its cursor.
    pub(crate) fn guests_in_progress(&self) -> Vec<(ReferralId, LineCursor)> {
        self.rows.rows().filter_map(|row| Some((row.now.id, row.now.dealings.going_through?))).collect()
    }

    /// Returns the referral that claims an email, including the changes of this unit of work.
    pub(crate) async fn claim_holder(&mut self, email: &Address) -> Result<Option<Referral>, ReadError> {
        let text = email.to_string().to_lowercase();
        let is_holder = |tracked: &&TrackedRow<Referral>| {
            tracked.before.as_ref().is_none_or(|before| before.email.is_none())
                && tracked.now.email.as_ref().is_some_and(|email| email.to_string().to_lowercase() == text)
        };
        if let Some(tracked) = self.rows.rows().find(is_holder) {
            return Ok(Some(tracked.now.clone()));
        }
        let claim = referral::ReferralClaim::Email(email.clone());
        match referral::find_claim_holder(&self.source.store, self.source.account, &claim).await? {
            Some(holder) => self.get(holder.id).await,
            None => Ok(None),
        }
    }

    /// Adds a new referral; `lapsed` is the lapsed referral it replaces, before and after the change.
    pub(super) fn add(&mut self, new: Referral, lapsed: Option<(Referral, Referral)>) {
        if let Some((before, now)) = lapsed {
            self.lapsed.insert(new.id, before.id);
            self.rows.insert(before.id, Some(before), now);
        }
        self.rows.insert(new.id, None, new);
    }

    /// New referrals of this unit of work.
    pub(crate) fn new_ones(&self) -> impl Iterator<Item = &Referral> {
        self.rows.rows().filter(|row| row.before.is_none()).map(|row| &row.now)
    }

    /// Counts the new referrals of a partner in this unit of work.
    pub(crate) fn count_new_of(&self, partner: PartnerId) -> usize {
        self.new_ones().filter(|new| new.partner == partner).count()
    }

    /// Records the partner's latest lead. The limits that were checked hold only while `before` is unchanged at commit.
    pub(crate) fn record_latest_lead(&mut self, before: LimitGuard, new: &Referral) {
        self.latest_leads.entry(new.partner).or_insert((before, new.id)).1 = new.id;
    }

    /// Returns referrals whose eligibility to earn has changed since they were read, without new ones.
    pub(crate) fn with_changed_eligibility(&self) -> Vec<ReferralId> {
        let is_barred = |referral: &Referral| (ReferralBar::from_referral(referral).is_some(), referral.is_frozen());
        let turned = |row: &&TrackedRow<Referral>| {
            row.before.as_ref().is_some_and(|before| is_barred(before) != is_barred(&row.now))
        };
        self.rows.rows().filter(turned).map(|row| row.now.id).collect()
    }

    pub(super) fn has_changes(&self) -> bool {
        self.rows.rows().any(TrackedRow::is_changed)
    }

    /// Returns the partner's number of paying customers, counting this referral as one.
    pub(crate) async fn paying_customers_with(
        &mut self,
        referral: ReferralId,
        partner: PartnerId,
    ) -> Result<u32, ReadError> {
        let stored = self.customer_count(partner).await?.paying;
        let other = i64::from(stored) + self.customer_count_change(partner, Some(referral));
        Ok(u32::try_from(other.saturating_add(1)).unwrap_or(1))
    }

    /// Returns the change of a partner's number of paying customers; `excluded` counts one referral as not paying.
    fn customer_count_change(&self, partner: PartnerId, excluded: Option<ReferralId>) -> i64 {
        let change = |row: &TrackedRow<Referral>| {
            let now = excluded != Some(row.now.id) && is_paying(&row.now);
            i64::from(now) - i64::from(row.before.as_ref().is_some_and(is_paying))
        };
        self.rows.rows().filter(|row| row.now.partner == partner).map(change).sum()
    }

    async fn customer_count(&mut self, partner: PartnerId) -> Result<&PayingCustomerCount, ReadError> {
        Ok(match self.customer_counts.entry(partner) {
            Entry::Occupied(count) => count.into_mut(),
            Entry::Vacant(vacant) => {
                vacant.insert(customer_counts::get(&self.source.store, self.source.account, partner).await?)
            }
        })
    }

    /// Writes changed rows, and makes the commit depend on every loaded row being unchanged.
    pub(super) async fn write(&mut self, batch: &mut Batch, now: Timestamp) -> Result<(), ReadError> {
        self.write_customer_counts(batch).await?;
        for row in self.rows.rows_mut() {
            match &row.before {
                Some(before) if *before != row.now => {
                    row.now.rev = before.rev.saturating_add(1);
                    row.now.updated_at = now;
                }
                _ => {}
            }
        }
        for new in self.new_ones() {
            referral::create(batch, new, self.lapsed.get(&new.id).copied());
        }
        for row in self.rows.rows() {
            let Some(before) = &row.before else { continue };
            if *before == row.now {
                referral::check_unchanged(batch, before);
            } else if self.lapsed.values().any(|lapsed| *lapsed == before.id) {
                referral::reject_lapsed(batch, before, &row.now);
            } else {
                referral::update(batch, before, &row.now);
            }
        }
        self.latest_leads.values().for_each(|(before, lead)| before.put(batch, lead));
        Ok(())
    }

    async fn write_customer_counts(&mut self, batch: &mut Batch) -> Result<(), ReadError> {
        let account = self.source.account;
        let partners: BTreeSet<PartnerId> = self.rows.rows().map(|row| row.now.partner).collect();
        for partner in partners {
            let change = self.customer_count_change(partner, None);
            if change != 0 {
                self.customer_count(partner).await?;
            }
            let Some(before) = self.customer_counts.get(&partner) else { continue };
            if change == 0 {
                customer_counts::check_unchanged(batch, account, partner, before);
                continue;
            }
            let paying = u32::try_from(i64::from(before.paying) + change).unwrap_or(0);
            customer_counts::put(batch, account, partner, before, paying);
        }
        Ok(())
    }
}

/// True if a referral counts as a paying customer: it has converted and is neither blocked, rejected nor refunded. A
/// cancelled subscription does not change this.
pub(crate) fn is_paying(referral: &Referral) -> bool {
    referral.converted_at.is_some()
        && referral.may_earn()
        && !matches!(referral.status, ReferralStatus::Refunded | ReferralStatus::Rejected)
}
