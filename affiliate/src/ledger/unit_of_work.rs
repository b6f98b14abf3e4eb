//! Unit of work of the ledger. Each row is read once and tracked; changes are made in memory. At the end all of them
//! become one batch ([`super::commit_batch`]), which commits only if none of the rows that were read has changed.
//!
//! The rules that decide about the rows are functions in the files beside this one.

mod payout_rows;
mod processor_rows;
mod referral_rows;
mod tracked_rows;

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use model::affiliate::campaign::Campaign;
use model::affiliate::commission::{Commission, CommissionState};
use model::affiliate::partner::Partner;
use model::affiliate::partner_email::{PartnerEmail, PartnerEmailKind};
use model::affiliate::program::{AffiliateProgram, PaymentProcessor};
use model::affiliate::referral::Referral;
use model::affiliate::visit::PartnerVisit;
use model::event::EventKind;
use model::id::{AccountId, CampaignId, CommissionId, EventId, PartnerId, PayoutId, ReferralId, VisitId};
use store::affiliate::{campaign, commission, partner, partner_email, partner_link, program, visit};
use store::engine::{Batch, ReadError};

pub(crate) use self::payout_rows::{ADJUSTMENTS_MAX, PayoutRows};
pub(crate) use self::processor_rows::{PaymentSource, ProcessorRows};
pub(crate) use self::referral_rows::{ReferralRows, is_paying};
use self::tracked_rows::{RowSource, TrackedRow, TrackedRows};
use crate::api_objects::{PartnerObject, ReferralObject};
use crate::context::Context;
use crate::error::{LedgerError, LedgerResult as Result};
use crate::events::{EventBuilder, commission_event, payout_event, referral_event};

/// An event to emit with the commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PendingEvent {
    Referral(EventKind, ReferralId),
    Line(EventKind, CommissionId),
    Payout(EventKind, PayoutId),
    /// The partner became payable, or is no longer payable.
    Partner(PartnerId),
}

pub(crate) struct UnitOfWork {
    pub(crate) context: Context,
    pub(crate) program: AffiliateProgram,
    pub(crate) now: Timestamp,
    pub(crate) processor: ProcessorRows,
    pub(crate) referrals: ReferralRows,
    pub(crate) lines: LineRows,
    pub(crate) payouts: PayoutRows,
    partners: TrackedRows<PartnerId, Partner>,
    visits: TrackedRows<VisitId, PartnerVisit>,
    campaigns: BTreeMap<CampaignId, Campaign>,
    pending_events: Vec<PendingEvent>,
    /// Emails to enqueue for partners.
    pub(crate) partner_emails: Vec<(PartnerId, PartnerEmailKind)>,
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

/// Tracked commission lines, with those found by invoice and by referral.
#[derive(Default)]
pub(crate) struct LineRows {
    rows: TrackedRows<CommissionId, Commission>,
    by_invoice: BTreeMap<String, Vec<CommissionId>>,
    bounties: BTreeMap<ReferralId, Option<CommissionId>>,
}

impl LineRows {
    /// Returns the lines that left a payout in this unit of work, each as it was read and with that payout.
    pub(crate) fn left_payouts(&self) -> Vec<(PayoutId, Commission)> {
        let left = |TrackedRow { before, now }: &TrackedRow<Commission>| {
            let before = before.as_ref()?;
            let payout = before.status.payout()?;
            (now.status.payout() != Some(payout)).then(|| (payout, before.clone()))
        };
        self.rows.rows().filter_map(left).collect()
    }
}

impl UnitOfWork {
    /// Starts a unit of work for an account's program, in any status.
    pub(crate) async fn open(context: &Context, account: AccountId) -> Result<Self> {
        let program = program::get(&context.store, account).await?.ok_or(LedgerError::NotSetUp)?;
        Ok(Self::for_program(context, program))
    }

    /// Starts a unit of work for a program that was just read.
    pub(crate) fn for_program(context: &Context, program: AffiliateProgram) -> Self {
        let source = RowSource { store: context.store.clone(), account: program.account };
        Self {
            context: context.clone(),
            program,
            now: context.now(),
            processor: ProcessorRows::new(source.clone()),
            referrals: ReferralRows::new(source.clone()),
            lines: LineRows::default(),
            payouts: PayoutRows::new(source),
            partners: TrackedRows::default(),
            visits: TrackedRows::default(),
            campaigns: BTreeMap::new(),
            pending_events: Vec::new(),
            partner_emails: Vec::new(),
            touched: TouchedObjects::default(),
        }
    }

    pub(crate) fn account(&self) -> AccountId {
        self.program.account
    }

    /// Returns the visit for reading and changing; `None` if it does not exist.
    pub(crate) async fn visit(&mut self, id: VisitId) -> Result<Option<&mut PartnerVisit>, ReadError> {
        self.visits.load(id, visit::get(&self.context.store, self.program.account, id)).await
    }

    /// Returns a partner; `None` if it was deleted.
    pub(crate) async fn partner(&mut self, id: PartnerId) -> Result<Option<Partner>, ReadError> {
        Ok(self.partner_mut(id).await?.map(|found| found.clone()))
    }

    /// Returns a partner for changing; `None` if it was deleted.
    pub(crate) async fn partner_mut(&mut self, id: PartnerId) -> Result<Option<&mut Partner>, ReadError> {
        self.partners.load(id, partner::get(&self.context.store, self.program.account, id)).await
    }

    /// Returns a campaign. Campaigns are never deleted.
    pub(crate) async fn campaign(&mut self, id: CampaignId) -> Result<Campaign> {
        if let Some(campaign) = self.campaigns.get(&id) {
            return Ok(campaign.clone());
        }
        let found = campaign::get(&self.context.store, self.account(), id).await?.ok_or(LedgerError::NotSetUp)?;
        self.campaigns.insert(id, found.clone());
        Ok(found)
    }

    /// Adds a new referral; `lapsed` is the lapsed referral it replaces, before and after the change.
    pub(crate) fn add_referral(&mut self, new: Referral, lapsed: Option<(Referral, Referral)>) {
        self.touched.referrals.insert(new.id);
        self.emit(PendingEvent::Referral(EventKind::ReferralCreated, new.id));
        self.referrals.add(new, lapsed);
    }

    /// Returns the lines of an invoice, including the changes of this unit of work.
    pub(crate) async fn lines_of(&mut self, invoice: &str) -> Result<Vec<Commission>, ReadError> {
        if !self.lines.by_invoice.contains_key(invoice) {
            let found = commission::list_by_invoice(&self.context.store, self.account(), invoice).await?;
            self.lines.by_invoice.insert(invoice.to_owned(), found.iter().map(|line| line.id).collect());
            for line in found {
                self.track_line(line).await?;
            }
        }
        let ids = self.lines.by_invoice.get(invoice).into_iter().flatten();
        Ok(ids.filter_map(|id| self.lines.rows.get(id).cloned()).collect())
    }

    /// Returns the bounty of a referral, including the changes of this unit of work.
    pub(crate) async fn bounty_of(&mut self, referral: ReferralId) -> Result<Option<Commission>, ReadError> {
        if !self.lines.bounties.contains_key(&referral) {
            let found = commission::find_bounty(&self.context.store, self.account(), referral).await?;
            self.lines.bounties.insert(referral, found.as_ref().map(|line| line.id));
            if let Some(line) = found {
                self.track_line(line).await?;
            }
        }
        let id = self.lines.bounties.get(&referral).copied().flatten();
        Ok(id.and_then(|id| self.lines.rows.get(&id).cloned()))
    }

    /// Returns a line, including the changes of this unit of work.
    pub(crate) async fn line(&mut self, id: CommissionId) -> Result<Option<Commission>, ReadError> {
        if !self.lines.rows.contains(&id)
            && let Some(found) = commission::get(&self.context.store, self.account(), id).await?
        {
            self.track_line(found).await?;
        }
        Ok(self.lines.rows.get(&id).cloned())
    }

    /// Tracks a line that was read. If its payout was deleted or failed and the line is not released, the line is
    /// released here.
    async fn track_line(&mut self, line: Commission) -> Result<(), ReadError> {
        if self.lines.rows.contains(&line.id) {
            return Ok(());
        }
        let mut now = line.clone();
        if let CommissionState::InPayout { payout, .. } = line.status
            && self.payouts.has_released_lines(payout).await?
        {
            // Cannot fail: the line is in this payout.
            let _ = now.leave_payout(payout, self.now);
        }
        self.lines.rows.insert(line.id, Some(line), now);
        Ok(())
    }

    /// True if lines, adjustments or referrals would change. How refunds after a payout are divided is left out: rows
    /// of release 0.1.0 do not have it before the next event of their invoice.
    pub(crate) fn has_changes(&self) -> bool {
        let is_changed = |TrackedRow { before, now }: &TrackedRow<Commission>| {
            before.as_ref().is_none_or(|before| !before.is_equal_without_refund_split(now))
        };
        self.lines.rows.rows().any(is_changed)
            || !self.payouts.new_adjustments.is_empty()
            || self.referrals.has_changes()
    }

    /// Creates or updates a line, and emits its events in this order.
    pub(crate) fn put_line(&mut self, mut line: Commission, event_kinds: impl IntoIterator<Item = EventKind>) {
        let id = line.id;
        self.pending_events.extend(event_kinds.into_iter().map(|kind| PendingEvent::Line(kind, id)));
        if let Some(tracked) = self.lines.rows.get_mut(&id) {
            *tracked = line;
            return;
        }
        if self.program.processor.as_ref().is_some_and(PaymentProcessor::has_api_access) {
            line.require_reconciliation(self.now);
        }
        match line.sold_invoice() {
            Some(sale) => self.lines.by_invoice.entry(sale.invoice.clone()).or_default().push(id),
            None => {
                self.lines.bounties.insert(line.referral, Some(id));
            }
        }
        self.lines.rows.insert(id, None, line);
    }

    pub(crate) fn emit(&mut self, event: PendingEvent) {
        self.pending_events.push(event);
    }

    /// Writes changed rows, events and emails into a batch, which depends on every loaded row being unchanged.
    pub(super) async fn write(mut self, batch: &mut Batch) -> Result<()> {
        program::check_unchanged(batch, &self.program);
        self.processor.write(batch);
        // A deleted partner needs no check: its id is never used again.
        self.write_partners(batch);
        self.campaigns.values().for_each(|campaign| campaign::check_unchanged(batch, campaign));
        self.referrals.write(batch, self.now).await?;
        for TrackedRow { before, now } in self.visits.rows() {
            match before {
                Some(before) if before != now => visit::update(batch, before, now),
                _ => visit::check_unchanged(batch, now),
            }
        }
        for TrackedRow { before, now } in self.lines.rows.rows() {
            match before {
                None => commission::create(batch, now),
                Some(before) if before == now => commission::check_unchanged(batch, now),
                Some(before) => commission::update(batch, before, now),
            }
        }
        self.payouts.write(batch);
        if !self.context.suppresses_events {
            self.write_events(batch).await?;
            self.write_partner_emails(batch);
        }
        Ok(())
    }

    fn write_partner_emails(&self, batch: &mut Batch) {
        for (partner, kind) in &self.partner_emails {
            let id = EventId::new(self.now, self.context.random());
            let (account, partner, kind) = (self.account(), *partner, kind.clone());
            partner_email::enqueue(batch, &PartnerEmail { id, account, partner, tells: kind, since: self.now });
        }
    }

    fn write_partners(&mut self, batch: &mut Batch) {
        for row in self.partners.rows_mut() {
            let Some(before) = &row.before else { continue };
            if *before == row.now {
                partner::check_unchanged(batch, before);
            } else {
                row.now.rev = before.rev.saturating_add(1);
                row.now.updated_at = self.now;
                partner::update(batch, before, &row.now);
            }
        }
    }

    async fn write_events(&self, batch: &mut Batch) -> Result<()> {
        let (first, program) = (self.context.random(), &self.program);
        for (number, event) in (0_u128..).zip(&self.pending_events) {
            let id = EventId::new(self.now, first + number);
            match *event {
                PendingEvent::Referral(kind, referral) => {
                    let Some(now) = self.referrals.loaded(referral) else { continue };
                    let builder = referral_event(program, now).with("referral", &ReferralObject::from(now));
                    builder.record(batch, kind, referral, id, self.now);
                }
                PendingEvent::Line(kind, line) => {
                    let Some(now) = self.lines.rows.get(&line) else { continue };
                    let mut builder = commission_event(program, now);
                    if let (EventKind::CommissionReversed, Some(note)) = (kind, &now.note) {
                        builder = builder.with("note", note);
                    }
                    builder.record(batch, kind, line, id, self.now);
                }
                PendingEvent::Payout(kind, payout) => {
                    let Some(now) = self.payouts.loaded(payout) else { continue };
                    payout_event(program, now).record(batch, kind, payout, id, self.now);
                }
                PendingEvent::Partner(partner) => {
                    let Some(now) = self.partners.get(&partner) else { continue };
                    let links = partner_link::list(&self.context.store, self.account(), partner).await?;
                    EventBuilder::for_partner(program, partner)
                        .with("affiliate", &PartnerObject::of(now, &links, program))
                        .record(batch, EventKind::AffiliateUpdated, partner, id, self.now);
                }
            }
        }
        Ok(())
    }
}
