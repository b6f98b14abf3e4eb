//! Partners: creation, changes, status transitions, deletion and payout destination.

use std::sync::Arc;

use dns::secrets::Vault;
use events::owner_alert_queue::OwnerAlertQueue;
use message::address::Address;
use model::affiliate::money::BasisPoints;
use model::affiliate::partner::{
    Partner, PartnerAction, PartnerLink, PartnerLinkToken, PartnerStatus, PayoutDestination,
};
use model::affiliate::partner_email::PartnerEmailKind;
use model::affiliate::partner_fields::PartnerDraft;
use model::affiliate::payout::SkipReason;
use model::affiliate::program::{AffiliateProgram, PayoutMethod};
use model::event::EventKind;
use model::id::{AccountId, PartnerId, PartnerLinkId};
use model::quota::Noun as Quota;
use queue::intake::storage_quota::{StorageQuotaTracker, StorageReservation};
use store::affiliate::listing::{ListPage, ListPageRequest};
use store::affiliate::payout_job::PayoutJob;
use store::affiliate::{partner, partner_link, payout, portal_link, portal_session};
use store::engine::{Batch, Key};
use store::retry_on_conflict;
use tokio::sync::OnceCell;

use crate::context::{Context, ExtendCommit};
use crate::error::{AffiliateError, ConflictReason, ForbiddenReason, Result};
use crate::if_match::IfMatch;
use crate::ledger::commit_batch::build_batch;
use crate::ledger::settlement::{redirect_payouts, remove_from_drafts};
use crate::ledger::unit_of_work::UnitOfWork;
use crate::partner_emails::sender::{SenderRouting, log_warning, queue_email};
use crate::partners::links::{choose_free_token, free_token_for_rename};
use crate::partners::lookup::PartnerView;
use crate::payouts::deleted_partner::{clean_up_deleted_partner, retire_links, reverse_partner_lines};
use crate::secrets;
use crate::stripe::client::StripeProcessor;

/// Maximum length of a chain of recruiters.
pub(crate) const PARENTS_MAX: usize = 64;

/// Returns the email that the initial status calls for.
fn draft_email_kind(draft: &PartnerDraft) -> Option<PartnerEmailKind> {
    let kind = match draft.status {
        PartnerStatus::Active => PartnerEmailKind::Welcome,
        PartnerStatus::Invited => PartnerEmailKind::Invited,
        PartnerStatus::Pending => PartnerEmailKind::Received,
        PartnerStatus::Suspended | PartnerStatus::Rejected => return None,
    };
    draft.send_invite.then_some(kind)
}

/// A status transition of a partner.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PartnerStatusChange {
    pub action: PartnerAction,
    /// The version that the caller has seen.
    pub seen: Option<IfMatch>,
    /// The owner's reason; included in the event.
    pub reason: Option<String>,
    pub send_email: bool,
}

impl PartnerStatusChange {
    /// Returns the email that the transition calls for.
    fn email_kind(&self) -> Option<PartnerEmailKind> {
        let kind = match self.action {
            PartnerAction::Approve => PartnerEmailKind::Approved,
            PartnerAction::Reject => PartnerEmailKind::Rejected { reason: self.reason.clone() },
            PartnerAction::Suspend | PartnerAction::Reactivate | PartnerAction::Accept => return None,
        };
        self.send_email.then_some(kind)
    }
}

/// Filter of a list of partners.
#[derive(Debug, Clone, Default)]
pub struct PartnerQuery {
    /// Any status if empty.
    pub statuses: Vec<PartnerStatus>,
    /// Campaign by id or name.
    pub campaign: Option<String>,
    pub email: Option<Address>,
}

/// Changes to a partner's fields. `None` leaves a field unchanged, `Some(None)` removes its value.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PartnerChange {
    pub first_name: Option<Option<String>>,
    pub last_name: Option<Option<String>>,
    pub company: Option<Option<String>>,
    pub website: Option<Option<String>>,
    /// ISO 3166-1 alpha-2.
    pub country: Option<Option<String>>,
    pub notes: Option<Option<String>>,
    pub tags: Option<Vec<String>>,
    /// Campaign by id or name.
    pub campaign: Option<String>,
    /// The recruiter.
    pub parent: Option<Option<PartnerId>>,
    /// Address that the partner's own events are posted to.
    pub postback_url: Option<Option<String>>,
    pub email_opt_out: Option<bool>,
    /// A rate that replaces the campaign's.
    pub commission_override: Option<Option<BasisPoints>>,
    /// New token of the primary link.
    pub token: Option<PartnerLinkToken>,
}

/// The partners of a program.
#[derive(Clone)]
pub struct Partners {
    pub(crate) context: Context,
    pub(crate) vault: Arc<Vault>,
    pub(crate) storage_quotas: Arc<StorageQuotaTracker>,
    pub senders: SenderRouting,
    pub(crate) processor: StripeProcessor,
    pub(crate) owner_alerts: OwnerAlertQueue,
}

impl Partners {
    /// Creates a partner with its primary link.
    ///
    /// # Errors
    /// `EmailTaken`, `TokenTaken`, field errors or a quota; the store failed.
    pub async fn create_partner(
        &self,
        account: AccountId,
        draft: &PartnerDraft,
        extend_commit: ExtendCommit<'_, PartnerView>,
    ) -> Result<PartnerView> {
        let view = self.create_partner_unlogged(account, draft, extend_commit).await?;
        log_warning(&view.partner, view.warning);
        Ok(view)
    }

    /// As `create_partner`, without logging a mail warning; an import logs one line for all partners.
    pub(crate) async fn create_partner_unlogged(
        &self,
        account: AccountId,
        draft: &PartnerDraft,
        extend_commit: ExtendCommit<'_, PartnerView>,
    ) -> Result<PartnerView> {
        let reservations = self.reserve_quota(account).await?;
        let view = retry_on_conflict::<_, AffiliateError, _>(|| async {
            let program = self.context.require_set_up(account).await?;
            let campaign = self.context.find_campaign_for_partners(&program, draft.campaign.as_deref()).await?;
            if partner::find_by_email(&self.context.store, account, &draft.email).await?.is_some() {
                return Err(ConflictReason::EmailTaken.into());
            }
            let generate = || self.default_token(draft);
            let (token, free) = choose_free_token(&self.context, account, draft.token.as_ref(), generate).await?;
            let now = self.context.now();
            let (id, link) =
                (PartnerId::new(now, self.context.random()), PartnerLinkId::new(now, self.context.random()));
            let link = PartnerLink {
                id: link,
                account,
                partner: id,
                token,
                destination_url: None,
                label: None,
                created_at: now,
            };
            let partner = self.new_partner(draft, id, account, campaign.id, link.id)?;
            let mut batch = Batch::intake();
            partner::create(&mut batch, &partner);
            partner_link::create(&mut batch, &link, free);
            let mut view = PartnerView::of(partner, vec![link], program);
            view.record_event(&mut batch, EventKind::AffiliateCreated, &self.context);
            if view.partner.status == PartnerStatus::Active {
                view.record_event(&mut batch, EventKind::AffiliateApproved, &self.context);
            }
            if let Some(kind) = draft_email_kind(draft) {
                view.warning =
                    self.senders.queue_email_if_mailable(&mut batch, &view.program, &view.partner, kind).await?;
            }
            extend_commit(&mut batch, &view);
            let refusal = |key: &Key| partner::is_email_conflict(key).then_some(ConflictReason::EmailTaken);
            Ok(self.context.commit_unless(batch, refusal).await?.then_some(view))
        })
        .await?;
        reservations.into_iter().for_each(StorageReservation::confirm);
        Ok(view)
    }

    /// Reserves storage quota for a partner and a link.
    async fn reserve_quota(&self, account: AccountId) -> Result<Vec<StorageReservation>> {
        let Some(account) = store::account::get(&self.context.store, account).await? else { return Ok(Vec::new()) };
        let mut reservations = Vec::with_capacity(2);
        for quota in [Quota::Affiliates, Quota::AffiliateLinks] {
            let reserved = self.storage_quotas.reserve(&account, quota, 1).await;
            reservations.push(reserved?);
        }
        Ok(reservations)
    }

    fn new_partner(
        &self,
        draft: &PartnerDraft,
        id: PartnerId,
        account: AccountId,
        campaign: model::id::CampaignId,
        primary_link: PartnerLinkId,
    ) -> Result<Partner> {
        let now = self.context.now();
        let secret = model::webhook::format_secret(&self.context.entropy.secret());
        let payout = draft.paypal_email.as_ref().map(|email| PayoutDestination {
            method: PayoutMethod::Paypal,
            destination: email.to_string(),
            is_able: true,
        });
        Ok(Partner {
            id,
            account,
            email: draft.email.clone(),
            first_name: draft.first_name.clone(),
            last_name: draft.last_name.clone(),
            company: draft.company.clone(),
            website: draft.website.clone(),
            country: draft.country.clone(),
            status: draft.status,
            source: draft.origin.source,
            campaign,
            parent: draft.parent,
            tags: draft.tags.clone(),
            payout,
            payouts_failed: 0,
            notes: draft.notes.clone(),
            postback_url: None,
            postback_secret: secrets::seal(&self.vault, &id.to_bytes(), &secret)?,
            email_opt_out: false,
            commission_override: None,
            primary_link,
            was_paid: false,
            approved_at: (draft.status == PartnerStatus::Active).then_some(now),
            terms_accepted_at: draft.origin.terms_accepted.then_some(now),
            rev: 1,
            created_at: now,
            updated_at: now,
        })
    }

    /// Generates a token: from the name, else from the email's local part, else at random.
    pub(crate) fn default_token(&self, draft: &PartnerDraft) -> PartnerLinkToken {
        let name: Vec<&str> = [&draft.first_name, &draft.last_name].into_iter().flatten().map(String::as_str).collect();
        PartnerLinkToken::from_text(&name.join(" "))
            .or_else(|| PartnerLinkToken::from_text(draft.email.local_part()))
            .or_else(|| PartnerLinkToken::from_text(&format!("partner-{:x}", self.context.entropy.u64() & 0xff_ffff)))
            .unwrap_or_else(|| unreachable!("a word and six digits are a token"))
    }

    /// Changes a partner's fields, and its primary token.
    ///
    /// # Errors
    /// `Changed` if `if_match` is stale; `TokenTaken`; field errors; `NotFound`; the store failed.
    pub async fn change_partner(
        &self,
        account: AccountId,
        id: PartnerId,
        if_match: Option<&IfMatch>,
        change: &PartnerChange,
    ) -> Result<PartnerView> {
        retry_on_conflict(|| async {
            let PartnerView { partner: before, mut links, program, .. } =
                self.context.get_partner_view(account, id).await?;
            IfMatch::check(if_match, before.rev, before.updated_at)?;
            let mut after = before.clone();
            let recruiters = self.apply_change(&program, change, &mut after).await?;
            let is_recruiter_gone = self.context.is_recruiter_gone(&after).await?;
            let primary = links.iter_mut().find(|link| link.id == before.primary_link);
            let renamed = match (&change.token, primary) {
                (Some(token), Some(link)) if link.token != *token => Some((token, link)),
                _ => None,
            };
            if after == before && renamed.is_none() {
                return Ok(Some(PartnerView { is_recruiter_gone, ..PartnerView::of(before, links, program) }));
            }
            (after.rev, after.updated_at) = (before.rev.saturating_add(1), self.context.now());
            let mut batch = Batch::progress();
            partner::update(&mut batch, &before, &after);
            recruiters.iter().for_each(|above| partner::check_unchanged(&mut batch, above));
            if let Some((token, link)) = renamed {
                let old = link.clone();
                link.token = token.clone();
                let free = free_token_for_rename(&self.context, &old, token).await?;
                partner_link::rename(&mut batch, &old, link, free);
            }
            let view = PartnerView { is_recruiter_gone, ..PartnerView::of(after, links, program) };
            view.record_event(&mut batch, EventKind::AffiliateUpdated, &self.context);
            let refusal = |key: &Key| partner_link::is_token_conflict(key).then_some(ConflictReason::TokenTaken);
            Ok(self.context.commit_unless(batch, refusal).await?.then_some(view))
        })
        .await
    }

    /// Applies a change. Returns the recruiters above, which must be unchanged at commit.
    async fn apply_change(
        &self,
        program: &AffiliateProgram,
        change: &PartnerChange,
        partner: &mut Partner,
    ) -> Result<Vec<Partner>> {
        fn set<T: Clone>(field: &mut T, change: Option<&T>) {
            if let Some(new) = change {
                field.clone_from(new);
            }
        }
        set(&mut partner.first_name, change.first_name.as_ref());
        set(&mut partner.last_name, change.last_name.as_ref());
        set(&mut partner.company, change.company.as_ref());
        set(&mut partner.website, change.website.as_ref());
        set(&mut partner.country, change.country.as_ref());
        set(&mut partner.notes, change.notes.as_ref());
        set(&mut partner.tags, change.tags.as_ref());
        set(&mut partner.email_opt_out, change.email_opt_out.as_ref());
        set(&mut partner.commission_override, change.commission_override.as_ref());
        if let Some(url) = &change.postback_url {
            if let Some(url) = url {
                self.processor
                    .webhooks
                    .check_webhook_url(url)
                    .map_err(|reason| AffiliateError::field("postback_url", reason))?;
            }
            partner.postback_url.clone_from(url);
        }
        if let Some(named) = &change.campaign
            && *named != partner.campaign.to_string()
        {
            partner.campaign = self.context.find_campaign_for_partners(program, Some(named)).await?.id;
        }
        let Some(parent) = change.parent.filter(|parent| *parent != partner.parent) else {
            return Ok(Vec::new());
        };
        partner.parent = parent;
        match parent {
            Some(parent) => self.recruiter_chain(partner, parent).await,
            None => Ok(Vec::new()),
        }
    }

    /// Returns all recruiters above a partner with the new recruiter `parent`. Refuses cycles (I11). The commit checks
    /// that the chain is unchanged, so a concurrent change cannot create a cycle.
    async fn recruiter_chain(&self, partner: &Partner, parent: PartnerId) -> Result<Vec<Partner>> {
        let invalid = |reason: &str| AffiliateError::field("parent_affiliate_id", reason);
        let (mut above, mut found) = (parent, Vec::new());
        for _ in 0..PARENTS_MAX {
            if above == partner.id {
                return Err(invalid("would make the partner its own recruiter"));
            }
            let Some(next) = partner::get(&self.context.store, partner.account, above).await? else {
                return if found.is_empty() { Err(invalid("is not a partner of this program")) } else { Ok(found) };
            };
            let parent = next.parent;
            found.push(next);
            let Some(parent) = parent else { return Ok(found) };
            above = parent;
        }
        Err(invalid(&format!("has more than {PARENTS_MAX} recruiters above it")))
    }

    /// Moves a partner to another status.
    ///
    /// # Errors
    /// The transition is not allowed from the current status; `Changed` if `seen` is stale; `NotFound`; the store
    /// failed.
    pub async fn change_partner_status(
        &self,
        account: AccountId,
        id: PartnerId,
        status_change: &PartnerStatusChange,
        extend_commit: ExtendCommit<'_, PartnerView>,
    ) -> Result<PartnerView> {
        retry_on_conflict(|| async {
            let PartnerView { partner: before, links, program, is_recruiter_gone, .. } =
                self.context.get_partner_view(account, id).await?;
            IfMatch::check(status_change.seen.as_ref(), before.rev, before.updated_at)?;
            let status = before.status.transition(status_change.action)?;
            let now = self.context.now();
            let first = status == PartnerStatus::Active && before.approved_at.is_none();
            let after = Partner {
                status,
                approved_at: if first { Some(now) } else { before.approved_at },
                terms_accepted_at: match status_change.action {
                    PartnerAction::Accept => Some(now),
                    _ => before.terms_accepted_at,
                },
                rev: before.rev.saturating_add(1),
                updated_at: now,
                ..before.clone()
            };
            let mut work = UnitOfWork::for_program(&self.context, program.clone());
            if status_change.action == PartnerAction::Suspend {
                // A suspended partner is not paid.
                remove_from_drafts(&mut work, id, SkipReason::NotActive).await?;
            }
            let mut batch = build_batch(work, Batch::progress()).await?;
            partner::update(&mut batch, &before, &after);
            let mut view = PartnerView { is_recruiter_gone, ..PartnerView::of(after, links, program) };
            let kind = match status_change.action {
                PartnerAction::Approve | PartnerAction::Accept => EventKind::AffiliateApproved,
                PartnerAction::Reject | PartnerAction::Suspend | PartnerAction::Reactivate => {
                    EventKind::AffiliateUpdated
                }
            };
            let mut builder = view.event();
            if let Some(reason) = &status_change.reason {
                builder = builder.with("reason", reason);
            }
            builder.record_now(&mut batch, kind, view.partner.id, &self.context);
            if let Some(email_kind) = status_change.email_kind() {
                view.warning =
                    self.senders.queue_email_if_mailable(&mut batch, &view.program, &view.partner, email_kind).await?;
            }
            extend_commit(&mut batch, &view);
            if self.context.commit_request(batch).await? {
                log_warning(&view.partner, view.warning);
                return Ok(Some(view));
            }
            Ok(None)
        })
        .await
    }

    /// Lists partners, newest first.
    pub async fn list_partners(
        &self,
        program: &AffiliateProgram,
        query: &PartnerQuery,
        wanted: ListPageRequest,
    ) -> Result<ListPage<PartnerView>> {
        let (store, account) = (&self.context.store, program.account);
        let campaign = match &query.campaign {
            None => None,
            Some(named) => match self.context.find_campaign(account, named).await? {
                Some(found) => Some(found.id),
                None => return Ok(ListPage { rows: Vec::new(), next: None }),
            },
        };
        let filter = partner::PartnerFilter { statuses: query.statuses.clone(), campaign };
        let page = match &query.email {
            None => partner::list(store, account, &filter, wanted).await?,
            Some(email) => {
                let found = partner::find_by_email(store, account, email).await?;
                // An email matches at most one partner, which is on the first page.
                let found = found.filter(|partner| wanted.before.is_none() && filter.passes(partner));
                ListPage { rows: found.into_iter().collect(), next: None }
            }
        };
        let keys: Vec<_> = page.rows.iter().map(|partner| (partner.id, partner.primary_link)).collect();
        let links = partner_link::get_each(store, account, &keys).await?;
        let mut rows = Vec::with_capacity(page.rows.len());
        for (partner, link) in page.rows.into_iter().zip(links) {
            let is_recruiter_gone = self.context.is_recruiter_gone(&partner).await?;
            let view = PartnerView::of(partner, link.into_iter().collect(), program.clone());
            rows.push(PartnerView { is_recruiter_gone, ..view });
        }
        Ok(ListPage { rows, next: page.next })
    }

    /// Deletes a partner. Its email is free at once, its tokens after [`TOKEN_QUARANTINE_DAYS`], and its open
    /// commissions are reversed with the reason `partner_deleted`. Commissions beyond one commit, and those written
    /// concurrently, are reversed afterwards ([`clean_up_deleted_partner`]).
    ///
    /// # Errors
    /// `PaidPartner` if it was ever paid; `InPayout` if it has an open payout; `Changed` if `if_match` is stale;
    /// `NotFound`; the store failed.
    pub async fn delete_partner(&self, account: AccountId, id: PartnerId, if_match: Option<&IfMatch>) -> Result<()> {
        retry_on_conflict(|| async {
            let PartnerView { partner, links, program, .. } = self.context.get_partner_view(account, id).await?;
            IfMatch::check(if_match, partner.rev, partner.updated_at)?;
            if partner.was_paid {
                return Err(ForbiddenReason::PaidPartner.into());
            }
            let mut work = UnitOfWork::for_program(&self.context, program);
            work.payouts.require_no_drafting().await?;
            if !payout::list_open_by_partner(&self.context.store, account, id, None, 1).await?.is_empty() {
                return Err(ConflictReason::InPayout.into());
            }
            reverse_partner_lines(&mut work, id).await?;
            work.payouts.schedule_job(PayoutJob::Partner(id), Some(self.context.now()));
            let mut batch = build_batch(work, Batch::progress()).await?;
            partner::delete(&mut batch, &partner);
            retire_links(&mut batch, &links, self.context.now());
            if self.context.commit(batch).await? {
                revoke_portal_access(&self.context, account, id).await?;
                return Ok(Some(clean_up_deleted_partner(&self.context, account, id).await?));
            }
            Ok(None)
        })
        .await
    }

    /// Sets a partner's payout destination. The partner and the former destination are notified by email. Payouts in
    /// the draft move to the new destination, or are dropped if it is not usable.
    ///
    /// # Errors
    /// `PortalLinkExpired` if the confirmation link was used; `Changed` if `if_match` is stale; `NotFound`; the store
    /// failed.
    pub async fn set_payout_destination(
        &self,
        account: AccountId,
        id: PartnerId,
        payout: &PayoutDestination,
        if_match: Option<&IfMatch>,
        extend_commit: ExtendCommit<'_, PartnerView>,
    ) -> Result<PartnerView> {
        let link_used = |key: &Key| portal_link::caused_conflict(key).then_some(ConflictReason::PortalLinkExpired);
        // Queried once, whatever the number of conflicts.
        let is_able = OnceCell::new();
        retry_on_conflict(|| async {
            let PartnerView { partner: before, links, program, .. } =
                self.context.get_partner_view(account, id).await?;
            IfMatch::check(if_match, before.rev, before.updated_at)?;
            let mut payout = payout.clone();
            if !payout.method.is_manual() {
                let query = || self.processor.takes_transfers(&program, &payout.destination);
                payout.is_able = *is_able.get_or_init(query).await;
            }
            let payout = &payout;
            let previous = before.payout.as_ref();
            let destination_of = |payout: &PayoutDestination| (payout.method, payout.destination.clone());
            let is_unchanged = previous.map(destination_of) == Some(destination_of(payout));
            if previous == Some(payout) && before.payouts_failed == 0 {
                let (view, mut batch) = (PartnerView::of(before, links, program), Batch::progress());
                extend_commit(&mut batch, &view);
                return Ok(self.context.commit_unless(batch, link_used).await?.then_some(view));
            }
            let after = Partner {
                payout: Some(payout.clone()),
                // The failures belong to the former destination.
                payouts_failed: 0,
                rev: before.rev.saturating_add(1),
                updated_at: self.context.now(),
                ..before.clone()
            };
            let mut work = UnitOfWork::for_program(&self.context, program.clone());
            redirect_payouts(&mut work, &after).await?;
            let mut batch = build_batch(work, Batch::progress()).await?;
            partner::update(&mut batch, &before, &after);
            let view = PartnerView::of(after, links, program);
            view.record_event(&mut batch, EventKind::AffiliateUpdated, &self.context);
            if !is_unchanged {
                let kind = PartnerEmailKind::PayoutChanged { before: previous.map(destination_of) };
                queue_email(&self.context, &mut batch, &view.partner, kind);
            }
            extend_commit(&mut batch, &view);
            Ok(self.context.commit_unless(batch, link_used).await?.then_some(view))
        })
        .await
    }

    /// Returns the signing secret of a partner's postbacks; `None` if it cannot be unsealed.
    pub fn postback_secret(&self, partner: &Partner) -> Option<String> {
        secrets::open(&self.vault, &partner.id.to_bytes(), &partner.postback_secret)
    }
}

/// Deletes the links and sessions of a deleted partner.
async fn revoke_portal_access(context: &Context, account: AccountId, partner: PartnerId) -> Result<()> {
    let mut batch = Batch::progress();
    portal_link::purge_by_partner(&context.store, &mut batch, account, partner).await?;
    portal_session::delete_by_partner(&context.store, &mut batch, account, partner).await?;
    context.commit(batch).await?;
    Ok(())
}
