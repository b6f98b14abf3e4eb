//! Unit of work of the ledger. Each row is read once and tracked; changes are made in memory. At the end all of them
//! become one batch, which commits only if none of the rows that were read has changed.

mod payout_rows;
mod row_set;
mod write;

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use mail::address::Address;
use mail::affiliate::campaign::Campaign;
use mail::affiliate::commission::{Commission, CommissionState};
use mail::affiliate::partner::Partner;
use mail::affiliate::partner_email::PartnerEmailKind;
use mail::affiliate::payout::LineCursor;
use mail::affiliate::program::{AffiliateProgram, PaymentProcessor};
use mail::affiliate::referral::{Referral, ReferralStatus};
use mail::affiliate::visit::PartnerVisit;
use mail::event::EventKind;
use mail::id::{AccountId, CampaignId, CommissionId, PartnerId, PayoutId, ReferralId, VisitId};
use store::affiliate::customer_counts::{self, PayingCustomerCount};
use store::affiliate::limit_guard::LimitGuard;
use store::affiliate::processor_state::ProcessorObjectKind;
use store::affiliate::{campaign, commission, partner, program, referral, visit};

use self::payout_rows::PayoutRows;
pub(crate) use self::payout_rows::{ADJUSTMENTS_MAX, LINES_AT_ONCE, PayoutOutcome};
use self::row_set::RowSet;
pub(crate) use self::write::payout_event;
use super::processor_state::{ChargeState, ConnectedAccountState, CustomerState, InvoiceState, PaymentState};
use super::{Ledger, LedgerError};

/// A row as it was read, and with its changes.
struct TrackedRow<T> {
    /// `None` for a new row.
    before: Option<T>,
    now: T,
}

/// An event to emit with the commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PendingEvent {
    Referral(EventKind, ReferralId),
    Line(EventKind, CommissionId),
    Payout(EventKind, PayoutId),
    /// The partner became payable, or is no longer payable.
    Partner(PartnerId),
}

pub(crate) struct UnitOfWork<'l> {
    pub(crate) ledger: &'l Ledger,
    pub(crate) program: AffiliateProgram,
    pub(crate) now: Timestamp,
    customers: RowSet<CustomerState>,
    invoices: RowSet<InvoiceState>,
    charges: RowSet<ChargeState>,
    payments: RowSet<PaymentState>,
    accounts: RowSet<ConnectedAccountState>,
    referrals: BTreeMap<ReferralId, TrackedRow<Referral>>,
    /// New referral to the lapsed referral that it replaces.
    lapsed_referrals: BTreeMap<ReferralId, ReferralId>,
    /// New referrals whose bounty is not computed yet.
    pub(super) awaiting_bounty: Vec<ReferralId>,
    /// The guard of each partner's latest lead as it was read, and the new latest lead.
    latest_leads: BTreeMap<PartnerId, (LimitGuard, ReferralId)>,
    visits: BTreeMap<VisitId, TrackedRow<PartnerVisit>>,
    lines: BTreeMap<CommissionId, TrackedRow<Commission>>,
    lines_by_invoice: BTreeMap<String, Vec<CommissionId>>,
    bounties_of: BTreeMap<ReferralId, Option<CommissionId>>,
    partners: BTreeMap<PartnerId, Option<TrackedRow<Partner>>>,
    campaigns: BTreeMap<CampaignId, Campaign>,
    customer_counts: BTreeMap<PartnerId, PayingCustomerCount>,
    /// (customer, invoice) pairs to add to the index of invoices by customer.
    invoice_index_additions: BTreeSet<(String, String)>,
    pending_events: Vec<PendingEvent>,
    /// Emails to enqueue for partners.
    partner_emails: Vec<(PartnerId, PartnerEmailKind)>,
    payout_rows: PayoutRows,
    /// Objects that must be recomputed before the batch is built.
    pub(crate) touched: TouchedObjects,
}

/// Objects that facts have changed.
#[derive(Debug, Default)]
pub(crate) struct TouchedObjects {
    pub(crate) customers: BTreeSet<String>,
    pub(crate) invoices: BTreeSet<String>,
    pub(crate) referrals: BTreeSet<ReferralId>,
}

impl TouchedObjects {
    pub(crate) fn is_empty(&self) -> bool {
        self.customers.is_empty() && self.invoices.is_empty() && self.referrals.is_empty()
    }
}

impl<'l> UnitOfWork<'l> {
    /// Starts a unit of work for an account's program, in any status.
    pub(crate) async fn open(ledger: &'l Ledger, account: AccountId) -> Result<Self, LedgerError> {
        let program = program::get(&ledger.store, account).await?.ok_or(LedgerError::NotSetUp)?;
        Ok(Self::for_program(ledger, program))
    }

    /// Starts a unit of work for a program that was just read.
    pub(crate) fn for_program(ledger: &'l Ledger, program: AffiliateProgram) -> Self {
        Self {
            ledger,
            program,
            now: ledger.now(),
            customers: RowSet::new(ProcessorObjectKind::Customer),
            invoices: RowSet::new(ProcessorObjectKind::Invoice),
            charges: RowSet::new(ProcessorObjectKind::Charge),
            payments: RowSet::new(ProcessorObjectKind::Payment),
            accounts: RowSet::new(ProcessorObjectKind::Account),
            referrals: BTreeMap::new(),
            lapsed_referrals: BTreeMap::new(),
            awaiting_bounty: Vec::new(),
            latest_leads: BTreeMap::new(),
            visits: BTreeMap::new(),
            lines: BTreeMap::new(),
            lines_by_invoice: BTreeMap::new(),
            bounties_of: BTreeMap::new(),
            partners: BTreeMap::new(),
            campaigns: BTreeMap::new(),
            customer_counts: BTreeMap::new(),
            invoice_index_additions: BTreeSet::new(),
            pending_events: Vec::new(),
            partner_emails: Vec::new(),
            payout_rows: PayoutRows::default(),
            touched: TouchedObjects::default(),
        }
    }

    pub(crate) fn account(&self) -> AccountId {
        self.program.account
    }

    pub(crate) async fn customer(&mut self, id: &str) -> Result<&mut CustomerState, LedgerError> {
        Ok(self.customers.load(&self.ledger.store, self.program.account, id).await?)
    }

    pub(crate) async fn invoice(&mut self, id: &str) -> Result<&mut InvoiceState, LedgerError> {
        Ok(self.invoices.load(&self.ledger.store, self.program.account, id).await?)
    }

    pub(crate) async fn charge(&mut self, id: &str) -> Result<&mut ChargeState, LedgerError> {
        Ok(self.charges.load(&self.ledger.store, self.program.account, id).await?)
    }

    pub(crate) async fn payment(&mut self, id: &str) -> Result<&mut PaymentState, LedgerError> {
        Ok(self.payments.load(&self.ledger.store, self.program.account, id).await?)
    }

    pub(crate) async fn connected_account(&mut self, id: &str) -> Result<&mut ConnectedAccountState, LedgerError> {
        Ok(self.accounts.load(&self.ledger.store, self.program.account, id).await?)
    }

    /// Adds an invoice to the index of its customer's invoices. An index scan cannot be checked at commit, so the
    /// customer's row is changed as well: a concurrent scan then conflicts.
    pub(crate) async fn index_invoice(&mut self, customer: &str, invoice: &str) -> Result<(), LedgerError> {
        if !self.invoice(invoice).await?.set_index_customer(customer) {
            return Ok(());
        }
        let row = self.customer(customer).await?;
        row.listings = row.listings.saturating_add(1);
        self.invoice_index_additions.insert((customer.to_owned(), invoice.to_owned()));
        Ok(())
    }

    /// Returns customers whose invoices are still being recomputed, each with its cursor.
    pub(crate) fn customers_in_progress(&self) -> Vec<(String, String)> {
        let progress = |(id, row): (&String, &CustomerState)| Some((id.clone(), row.going_through.clone()?));
        self.customers.rows().filter_map(progress).collect()
    }

    /// Returns referrals of guest checkouts whose lines are still being recomputed, each with its cursor.
    pub(crate) fn guests_in_progress(&self) -> Vec<(ReferralId, LineCursor)> {
        let progress = |held: &TrackedRow<Referral>| Some((held.now.id, held.now.dealings.going_through?));
        self.referrals.values().filter_map(progress).collect()
    }

    /// Returns the referral for reading and changing; `None` if it does not exist.
    pub(crate) async fn referral(&mut self, id: ReferralId) -> Result<Option<&mut Referral>, LedgerError> {
        if !self.referrals.contains_key(&id)
            && let Some(found) = referral::get(&self.ledger.store, self.account(), id).await?
        {
            self.referrals.insert(id, TrackedRow { before: Some(found.clone()), now: found });
        }
        Ok(self.referrals.get_mut(&id).map(|held| &mut held.now))
    }

    /// Returns the visit for reading and changing; `None` if it does not exist.
    pub(crate) async fn visit(&mut self, id: VisitId) -> Result<Option<&mut PartnerVisit>, LedgerError> {
        if !self.visits.contains_key(&id)
            && let Some(found) = visit::get(&self.ledger.store, self.account(), id).await?
        {
            self.visits.insert(id, TrackedRow { before: Some(found.clone()), now: found });
        }
        Ok(self.visits.get_mut(&id).map(|held| &mut held.now))
    }

    /// Returns the referral that claims an email, including the changes of this unit of work.
    pub(super) async fn claim_holder(&mut self, email: &Address) -> Result<Option<Referral>, LedgerError> {
        let text = email.to_string().to_lowercase();
        let is_holder = |tracked: &&TrackedRow<Referral>| {
            tracked.before.as_ref().is_none_or(|before| before.email.is_none())
                && tracked.now.email.as_ref().is_some_and(|email| email.to_string().to_lowercase() == text)
        };
        if let Some(tracked) = self.referrals.values().find(is_holder) {
            return Ok(Some(tracked.now.clone()));
        }
        let claim = referral::ReferralClaim::Email(email.clone());
        let Some(holder) = referral::find_claim_holder(&self.ledger.store, self.account(), &claim).await? else {
            return Ok(None);
        };
        // With the changes of this unit of work.
        Ok(self.referral(holder.id).await?.map(|found| found.clone()))
    }

    /// Adds a new referral; `lapsed_referral` is the lapsed referral it replaces, before and after the change.
    pub(crate) fn add_referral(&mut self, new: Referral, lapsed_referral: Option<(Referral, Referral)>) {
        if let Some((before, now)) = lapsed_referral {
            self.lapsed_referrals.insert(new.id, before.id);
            self.referrals.insert(before.id, TrackedRow { before: Some(before), now });
        }
        self.touched.referrals.insert(new.id);
        self.pending_events.push(PendingEvent::Referral(EventKind::ReferralCreated, new.id));
        self.referrals.insert(new.id, TrackedRow { before: None, now: new });
    }

    /// Counts the new referrals of a partner in this unit of work.
    pub(super) fn new_referrals_of(&self, partner: PartnerId) -> usize {
        let is_new = |held: &&TrackedRow<Referral>| held.before.is_none() && held.now.partner == partner;
        self.referrals.values().filter(is_new).count()
    }

    /// Records the partner's latest lead. The limits that were checked hold only while `before` is unchanged at commit.
    pub(super) fn record_latest_lead(&mut self, before: LimitGuard, new: &Referral) {
        self.latest_leads.entry(new.partner).or_insert((before, new.id)).1 = new.id;
    }

    /// Returns referrals whose eligibility to earn has changed since they were read, without new ones.
    pub(crate) fn referrals_with_changed_eligibility(&self) -> Vec<ReferralId> {
        let is_barred = |referral: &Referral| {
            (mail::affiliate::recompute::ReferralBar::from_referral(referral).is_some(), referral.is_frozen())
        };
        let turned = |held: &TrackedRow<Referral>| {
            held.before.as_ref().is_some_and(|before| is_barred(before) != is_barred(&held.now))
        };
        self.referrals.iter().filter(|(_, held)| turned(held)).map(|(id, _)| *id).collect()
    }

    /// Returns a partner; `None` if it was deleted.
    pub(crate) async fn partner(&mut self, id: PartnerId) -> Result<Option<Partner>, LedgerError> {
        if let Some(partner) = self.partners.get(&id) {
            return Ok(partner.as_ref().map(|held| held.now.clone()));
        }
        let found = partner::get(&self.ledger.store, self.account(), id).await?;
        let held = found.clone().map(|found| TrackedRow { before: Some(found.clone()), now: found });
        self.partners.insert(id, held);
        Ok(found)
    }

    /// Returns a partner for changing; `None` if it was deleted.
    pub(crate) async fn partner_mut(&mut self, id: PartnerId) -> Result<Option<&mut Partner>, LedgerError> {
        self.partner(id).await?;
        Ok(self.partners.get_mut(&id).and_then(Option::as_mut).map(|held| &mut held.now))
    }

    /// Returns a campaign. Campaigns are never deleted.
    pub(crate) async fn campaign(&mut self, id: CampaignId) -> Result<Campaign, LedgerError> {
        if let Some(campaign) = self.campaigns.get(&id) {
            return Ok(campaign.clone());
        }
        let found = campaign::get(&self.ledger.store, self.account(), id).await?.ok_or(LedgerError::NotSetUp)?;
        self.campaigns.insert(id, found.clone());
        Ok(found)
    }

    /// Returns the lines of an invoice, including the changes of this unit of work.
    pub(crate) async fn lines_of(&mut self, invoice: &str) -> Result<Vec<Commission>, LedgerError> {
        if !self.lines_by_invoice.contains_key(invoice) {
            let found = commission::list_by_invoice(&self.ledger.store, self.account(), invoice).await?;
            self.lines_by_invoice.insert(invoice.to_owned(), found.iter().map(|line| line.id).collect());
            for line in found {
                self.track_line(line).await?;
            }
        }
        let ids = self.lines_by_invoice.get(invoice).into_iter().flatten();
        Ok(ids.filter_map(|id| self.lines.get(id)).map(|held| held.now.clone()).collect())
    }

    /// Returns the bounty of a referral, including the changes of this unit of work.
    pub(crate) async fn bounty_of(&mut self, referral: ReferralId) -> Result<Option<Commission>, LedgerError> {
        if !self.bounties_of.contains_key(&referral) {
            let found = commission::find_bounty(&self.ledger.store, self.account(), referral).await?;
            self.bounties_of.insert(referral, found.as_ref().map(|line| line.id));
            if let Some(line) = found {
                self.track_line(line).await?;
            }
        }
        let id = self.bounties_of.get(&referral).copied().flatten();
        Ok(id.and_then(|id| self.lines.get(&id)).map(|held| held.now.clone()))
    }

    /// Returns a line, including the changes of this unit of work.
    pub(crate) async fn line(&mut self, id: CommissionId) -> Result<Option<Commission>, LedgerError> {
        if !self.lines.contains_key(&id)
            && let Some(found) = commission::get(&self.ledger.store, self.account(), id).await?
        {
            self.track_line(found).await?;
        }
        Ok(self.lines.get(&id).map(|held| held.now.clone()))
    }

    /// Tracks a line that was read. If its payout was deleted or failed and the line is not released, the line is
    /// released here.
    async fn track_line(&mut self, line: Commission) -> Result<(), LedgerError> {
        if self.lines.contains_key(&line.id) {
            return Ok(());
        }
        let mut now = line.clone();
        if let CommissionState::InPayout { payout, .. } = line.status
            && self.has_released_lines(payout).await?
        {
            // Cannot fail: the line is in this payout.
            let _ = now.leave_payout(payout, self.now);
        }
        self.lines.insert(line.id, TrackedRow { before: Some(line), now });
        Ok(())
    }

    /// True if lines, adjustments or referrals would change.
    pub(crate) fn has_changes(&self) -> bool {
        self.lines.values().any(|held| held.before.as_ref() != Some(&held.now))
            || self.payout_rows.has_new_adjustments()
            || self.referrals.values().any(|held| held.before.as_ref() != Some(&held.now))
    }

    /// Creates or updates a line, and emits its events in this order.
    pub(crate) fn put_line(&mut self, mut line: Commission, event_kinds: impl IntoIterator<Item = EventKind>) {
        let id = line.id;
        self.pending_events.extend(event_kinds.into_iter().map(|kind| PendingEvent::Line(kind, id)));
        if let Some(held) = self.lines.get_mut(&id) {
            held.now = line;
            return;
        }
        if self.program.processor.as_ref().is_some_and(PaymentProcessor::has_api_access) {
            line.require_reconciliation(self.now);
        }
        match line.sold_invoice() {
            Some(sale) => self.lines_by_invoice.entry(sale.invoice.clone()).or_default().push(id),
            None => {
                self.bounties_of.insert(line.referral, Some(id));
            }
        }
        self.lines.insert(id, TrackedRow { before: None, now: line });
    }

    pub(crate) fn emit(&mut self, event: PendingEvent) {
        self.pending_events.push(event);
    }

    /// Returns the partner's number of paying customers, counting this referral as one.
    pub(crate) async fn paying_customers_with(
        &mut self,
        referral: ReferralId,
        partner: PartnerId,
    ) -> Result<u32, LedgerError> {
        self.load_customer_count(partner).await?;
        let stored_count = self.customer_counts.get(&partner).map_or(0, |tally| tally.paying);
        let other = i64::from(stored_count) + self.customer_count_change(partner, Some(referral));
        Ok(u32::try_from(other.saturating_add(1)).unwrap_or(1))
    }

    /// Returns the change of a partner's number of paying customers; `excluded` counts one referral as not paying.
    fn customer_count_change(&self, partner: PartnerId, excluded: Option<ReferralId>) -> i64 {
        let referrals = self.referrals.values().filter(|held| held.now.partner == partner);
        let change = |held: &TrackedRow<Referral>| {
            let now = excluded != Some(held.now.id) && is_paying(&held.now);
            i64::from(now) - i64::from(held.before.as_ref().is_some_and(is_paying))
        };
        referrals.map(change).sum()
    }

    async fn load_customer_count(&mut self, partner: PartnerId) -> Result<(), LedgerError> {
        if !self.customer_counts.contains_key(&partner) {
            let tally = customer_counts::get(&self.ledger.store, self.account(), partner).await?;
            self.customer_counts.insert(partner, tally);
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
