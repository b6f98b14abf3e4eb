//! Partners: who joins, what changes about them, and how they are moved from one standing to another.

use std::borrow::Cow;

use jiff::{SignedDuration, Timestamp};
use mail::address::Address;
use mail::affiliate::money::BasisPoints;
use mail::affiliate::partner::{
    Partner, PartnerAction, PartnerLink, PartnerLinkToken, PartnerSource, PartnerStatus, PayoutDestination,
};
use mail::affiliate::partner_letter::PartnerEmailKind;
use mail::affiliate::payout::SkipReason;
use mail::affiliate::program::{AffiliateProgram, PayoutMethod};
use mail::event::EventKind;
use mail::id::{AccountId, PartnerId, PartnerLinkId};
use mail::quota::Noun as Quota;
use queue::quota::StorageReservation;
use store::affiliate::listing::{ListPage, ListPageRequest};
use store::affiliate::payout_work::PayoutJob;
use store::affiliate::{partner, partner_link, payout, portal_link};
use store::engine::Batch;

use crate::ledger::{Ledger, UnitOfWork};
use crate::letters::{MailWarning, log_warning};
use crate::object::PartnerObject;
use crate::office::{AffiliateService, CommitResult, ExtendCommit, IfMatch, TRIES_MAX};
use crate::refusal::{AffiliateError, AffiliateNoun, ConflictReason, ForbiddenReason};
use crate::tell::EventBuilder;

/// Recruiters above a recruiter that are followed to see that none is its own.
pub(crate) const PARENTS_MAX: usize = 64;
/// For how many days nobody may take a token of a partner who was deleted (completions-affiliate.md 2.6).
pub const TOKEN_QUARANTINE_DAYS: i64 = 90;

/// A partner who is to join.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PartnerDraft {
    /// The address.
    pub email: Address,
    /// The given name.
    pub first_name: Option<String>,
    /// The family name.
    pub last_name: Option<String>,
    /// The company.
    pub company: Option<String>,
    /// The website.
    pub website: Option<String>,
    /// Two letters.
    pub country: Option<String>,
    /// The campaign, by id or name; the default one otherwise.
    pub campaign: Option<String>,
    /// The token of the primary link, exactly.
    pub token: Option<PartnerLinkToken>,
    /// Where the partner stands at first: active, pending or invited.
    pub status: PartnerStatus,
    /// The destination of PayPal payouts.
    pub paypal_email: Option<Address>,
    /// Tags.
    pub tags: Vec<String>,
    /// The owner's notes.
    pub notes: Option<String>,
    /// By which way it comes.
    pub source: PartnerSource,
    /// Who recruited it.
    pub parent: Option<PartnerId>,
    /// Whether it is written to.
    pub send_invite: bool,
    /// It has accepted the program's terms itself.
    pub terms_accepted: bool,
}

impl PartnerDraft {
    /// What the partner is written, by how it begins.
    fn email_kind(&self) -> Option<PartnerEmailKind> {
        let tells = match self.status {
            PartnerStatus::Active => PartnerEmailKind::Welcome,
            PartnerStatus::Invited => PartnerEmailKind::Invited,
            PartnerStatus::Pending => PartnerEmailKind::Received,
            PartnerStatus::Suspended | PartnerStatus::Rejected => return None,
        };
        self.send_invite.then_some(tells)
    }
}

/// A partner with its program and its links: the primary one alone, or all.
#[derive(Debug, Clone)]
pub struct PartnerView {
    /// The partner.
    pub partner: Partner,
    /// Links of it.
    pub links: Vec<PartnerLink>,
    /// Its program.
    pub program: AffiliateProgram,
    /// What the owner is to know of how the partner is told what was just done.
    pub warning: Option<MailWarning>,
    /// Its recruiter was deleted: it has none any more.
    pub is_recruiter_gone: bool,
}

impl PartnerView {
    /// A partner of whom nothing is to be told.
    #[must_use]
    pub fn of(partner: Partner, links: Vec<PartnerLink>, program: AffiliateProgram) -> Self {
        Self { partner, links, program, warning: None, is_recruiter_gone: false }
    }

    /// The object that is told of it.
    #[must_use]
    pub fn object(&self) -> PartnerObject {
        let mut partner = Cow::Borrowed(&self.partner);
        if self.is_recruiter_gone {
            partner.to_mut().parent = None;
        }
        PartnerObject::of(&partner, &self.links, &self.program)
    }
}

/// A partner to be moved to another standing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PartnerStatusChange {
    /// What is done with it.
    pub action: PartnerAction,
    /// Which version of it the caller has seen.
    pub seen: Option<IfMatch>,
    /// Why, in the owner's words: told with the event.
    pub reason: Option<String>,
    /// Whether it is written to.
    pub send_email: bool,
}

impl PartnerStatusChange {
    /// What the partner is written.
    fn letter(&self) -> Option<PartnerEmailKind> {
        let tells = match self.action {
            PartnerAction::Approve => PartnerEmailKind::Approved,
            PartnerAction::Reject => PartnerEmailKind::Rejected { reason: self.reason.clone() },
            PartnerAction::Suspend | PartnerAction::Reactivate | PartnerAction::Accept => return None,
        };
        self.send_email.then_some(tells)
    }
}

/// Partners of a page, each with its primary link.
#[derive(Debug)]
pub struct PartnerPage {
    /// The partners, newest first.
    pub partners: Vec<PartnerView>,
    /// After which id the next page begins, if there may be one.
    pub next: Option<[u8; 16]>,
}

/// Which partners are listed.
#[derive(Debug, Clone, Default)]
pub struct PartnerQuery {
    /// Those that stand in one of these; in any when empty.
    pub statuses: Vec<PartnerStatus>,
    /// Those of this campaign, by its id or its name.
    pub campaign: Option<String>,
    /// The one with this address.
    pub email: Option<Address>,
}

/// What changes about a partner. `None` leaves it as it is; `Some(None)` takes it away.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PartnerChange {
    /// The given name.
    pub first_name: Option<Option<String>>,
    /// The family name.
    pub last_name: Option<Option<String>>,
    /// The company.
    pub company: Option<Option<String>>,
    /// The website.
    pub website: Option<Option<String>>,
    /// Two letters.
    pub country: Option<Option<String>>,
    /// The owner's notes.
    pub notes: Option<Option<String>>,
    /// Tags.
    pub tags: Option<Vec<String>>,
    /// The campaign, by id or name.
    pub campaign: Option<String>,
    /// The recruiter.
    pub parent: Option<Option<PartnerId>>,
    /// Where its own events are posted to.
    pub postback_url: Option<Option<String>>,
    /// Whether it wants no mail.
    pub email_opt_out: Option<bool>,
    /// A rate of its own.
    pub commission_override: Option<Option<BasisPoints>>,
    /// The new token of the primary link.
    pub token: Option<PartnerLinkToken>,
}

impl AffiliateService {
    /// A partner.
    ///
    /// # Errors
    /// There is none; the store cannot be read.
    pub async fn get_partner(&self, account: AccountId, id: PartnerId) -> Result<Partner, AffiliateError> {
        partner::get(self.store(), account, id).await?.ok_or(AffiliateError::NotFound(AffiliateNoun::Partner))
    }

    /// A partner with all its links.
    ///
    /// # Errors
    /// There is none; the store cannot be read.
    pub async fn get_partner_view(&self, account: AccountId, id: PartnerId) -> Result<PartnerView, AffiliateError> {
        let program = self.require_set_up(account).await?;
        let partner = self.get_partner(account, id).await?;
        let links = self.list_links(account, id).await?;
        let is_recruiter_gone = self.is_recruiter_gone(&partner).await?;
        Ok(PartnerView { is_recruiter_gone, ..PartnerView::of(partner, links, program) })
    }

    /// Whether a partner was recruited by one who is deleted.
    async fn is_recruiter_gone(&self, partner: &Partner) -> Result<bool, AffiliateError> {
        Ok(match partner.parent {
            Some(parent) => partner::get(self.store(), partner.account, parent).await?.is_none(),
            None => false,
        })
    }

    /// Takes a partner in.
    ///
    /// # Errors
    /// [`Refusal`].
    pub async fn create_partner(
        &self,
        account: AccountId,
        draft: &PartnerDraft,
        beside: ExtendCommit<'_, PartnerView>,
    ) -> Result<PartnerView, AffiliateError> {
        let shown = self.create_partner_unlogged(account, draft, beside).await?;
        log_warning(&shown.partner, shown.warning);
        Ok(shown)
    }

    /// The same, without a line in the log about mail: of a list one line is enough.
    pub(crate) async fn create_partner_unlogged(
        &self,
        account: AccountId,
        draft: &PartnerDraft,
        beside: ExtendCommit<'_, PartnerView>,
    ) -> Result<PartnerView, AffiliateError> {
        let room = self.reserve_quota(account).await?;
        for _ in 0..TRIES_MAX {
            let program = self.require_set_up(account).await?;
            let campaign = self.find_campaign_for_partners(&program, draft.campaign.as_deref()).await?;
            if partner::find_by_email(self.store(), account, &draft.email).await?.is_some() {
                return Err(ConflictReason::EmailTaken.into());
            }
            let made_up = || self.default_token(draft);
            let (token, free) = self.choose_free_token(account, draft.token.as_ref(), made_up).await?;
            let now = self.now();
            let (id, link) = (PartnerId::new(now, self.random()), PartnerLinkId::new(now, self.random()));
            let link = PartnerLink {
                id: link,
                account,
                partner: id,
                token,
                destination_url: None,
                label: None,
                created_at: now,
            };
            let partner = self.new_partner(draft, (id, account), (campaign.id, link.id))?;
            let mut batch = Batch::intake();
            partner::create(&mut batch, &partner);
            partner_link::create(&mut batch, &link, free);
            let mut shown = PartnerView::of(partner, vec![link], program);
            self.record_partner_event(&mut batch, EventKind::AffiliateCreated, &shown);
            if shown.partner.status == PartnerStatus::Active {
                self.record_partner_event(&mut batch, EventKind::AffiliateApproved, &shown);
            }
            if let Some(tells) = draft.email_kind() {
                let about = (&shown.program, &shown.partner);
                shown.warning = self.queue_email_if_mailable(&mut batch, about, tells).await?;
            }
            beside(&mut batch, &shown);
            match self.commit(batch).await? {
                CommitResult::Committed => {
                    room.into_iter().for_each(StorageReservation::confirm);
                    return Ok(shown);
                }
                CommitResult::Conflict(key) if partner::is_email_conflict(&key) => {
                    return Err(ConflictReason::EmailTaken.into());
                }
                CommitResult::Conflict(_) => {}
            }
        }
        Err(ConflictReason::Changed.into())
    }

    /// Room for one more partner, with its link.
    async fn reserve_quota(&self, account: AccountId) -> Result<Vec<StorageReservation>, AffiliateError> {
        let Some(account) = store::account::get(self.store(), account).await? else { return Ok(Vec::new()) };
        let mut room = Vec::with_capacity(2);
        for noun in [Quota::Affiliates, Quota::AffiliateLinks] {
            let reserved = self.hall.storage_quotas().reserve(&account, noun, 1).await;
            room.push(reserved?);
        }
        Ok(room)
    }

    fn new_partner(
        &self,
        draft: &PartnerDraft,
        (id, account): (PartnerId, AccountId),
        (campaign, primary_link): (mail::id::CampaignId, PartnerLinkId),
    ) -> Result<Partner, AffiliateError> {
        let now = self.now();
        let secret = mail::webhook::format_secret(&self.hall.entropy().secret());
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
            source: draft.source,
            campaign,
            parent: draft.parent,
            tags: draft.tags.clone(),
            payout,
            payouts_failed: 0,
            notes: draft.notes.clone(),
            postback_url: None,
            postback_secret: self.seal(&id.to_bytes(), &secret)?,
            email_opt_out: false,
            commission_override: None,
            primary_link,
            was_paid: false,
            approved_at: (draft.status == PartnerStatus::Active).then_some(now),
            terms_accepted_at: draft.terms_accepted.then_some(now),
            rev: 1,
            created_at: now,
            updated_at: now,
        })
    }

    /// A token for who names none: the name, else what stands before the address's `@`.
    pub(crate) fn default_token(&self, draft: &PartnerDraft) -> PartnerLinkToken {
        let name: Vec<&str> = [&draft.first_name, &draft.last_name].into_iter().flatten().map(String::as_str).collect();
        PartnerLinkToken::from_text(&name.join(" "))
            .or_else(|| PartnerLinkToken::from_text(draft.email.local_part()))
            .or_else(|| PartnerLinkToken::from_text(&format!("partner-{:x}", self.hall.entropy().u64() & 0xff_ffff)))
            .unwrap_or_else(|| unreachable!("a word and six digits are a token"))
    }

    pub(crate) fn record_partner_event(&self, batch: &mut Batch, kind: EventKind, shown: &PartnerView) {
        let telling = EventBuilder::for_partner(&shown.program, shown.partner.id).with("affiliate", &shown.object());
        self.record_event(batch, kind, shown.partner.id, telling);
    }

    /// Changes what is known of a partner.
    ///
    /// # Errors
    /// [`Refusal`].
    pub async fn change_partner(
        &self,
        (account, id): (AccountId, PartnerId),
        seen: Option<&IfMatch>,
        change: &PartnerChange,
    ) -> Result<PartnerView, AffiliateError> {
        for _ in 0..TRIES_MAX {
            let PartnerView { partner: before, mut links, program, .. } = self.get_partner_view(account, id).await?;
            IfMatch::check(seen, before.rev, before.updated_at)?;
            let mut after = before.clone();
            let recruiters = self.apply_change(&program, change, &mut after).await?;
            let is_recruiter_gone = self.is_recruiter_gone(&after).await?;
            let primary = links.iter_mut().find(|link| link.id == before.primary_link);
            let renamed = match (&change.token, primary) {
                (Some(token), Some(link)) if link.token != *token => Some((token, link)),
                _ => None,
            };
            if after == before && renamed.is_none() {
                return Ok(PartnerView { is_recruiter_gone, ..PartnerView::of(before, links, program) });
            }
            (after.rev, after.updated_at) = (before.rev.saturating_add(1), self.now());
            let mut batch = Batch::progress();
            partner::update(&mut batch, &before, &after);
            recruiters.iter().for_each(|above| partner::check_unchanged(&mut batch, above));
            if let Some((token, link)) = renamed {
                let old = link.clone();
                link.token = token.clone();
                // Its own token in other letters is no other token.
                let same = old.token.as_str().eq_ignore_ascii_case(token.as_str());
                let free = if same {
                    None
                } else {
                    Some(self.choose_free_token(account, Some(token), || token.clone()).await?.1)
                };
                partner_link::rename(&mut batch, &old, link, free);
            }
            let shown = PartnerView { is_recruiter_gone, ..PartnerView::of(after, links, program) };
            self.record_partner_event(&mut batch, EventKind::AffiliateUpdated, &shown);
            match self.commit(batch).await? {
                CommitResult::Committed => return Ok(shown),
                CommitResult::Conflict(key) if partner_link::is_token_conflict(&key) => {
                    return Err(ConflictReason::TokenTaken.into());
                }
                CommitResult::Conflict(_) => {}
            }
        }
        Err(ConflictReason::Changed.into())
    }

    /// Applies a change to what was read. What is committed holds only while the recruiters above are as they are.
    async fn apply_change(
        &self,
        program: &AffiliateProgram,
        change: &PartnerChange,
        partner: &mut Partner,
    ) -> Result<Vec<Partner>, AffiliateError> {
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
                self.hall.check_webhook_url(url).map_err(|why| AffiliateError::field("postback_url", why))?;
            }
            partner.postback_url.clone_from(url);
        }
        if let Some(named) = &change.campaign
            && *named != partner.campaign.to_string()
        {
            partner.campaign = self.find_campaign_for_partners(program, Some(named)).await?.id;
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

    /// All who are above a partner if this one is its recruiter. Nobody is recruited by itself, by whatever way round
    /// (I11): whoever changes one of them meanwhile has the chain looked at anew.
    async fn recruiter_chain(&self, partner: &Partner, parent: PartnerId) -> Result<Vec<Partner>, AffiliateError> {
        let wrong = |why: &str| AffiliateError::field("parent_affiliate_id", why);
        let (mut above, mut found) = (parent, Vec::new());
        for _ in 0..PARENTS_MAX {
            if above == partner.id {
                return Err(wrong("would make the partner its own recruiter"));
            }
            let Some(next) = partner::get(self.store(), partner.account, above).await? else {
                return if found.is_empty() { Err(wrong("is no partner of this program")) } else { Ok(found) };
            };
            let parent = next.parent;
            found.push(next);
            let Some(parent) = parent else { return Ok(found) };
            above = parent;
        }
        Err(wrong(&format!("has more than {PARENTS_MAX} recruiters above it")))
    }

    /// Moves a partner to another standing.
    ///
    /// # Errors
    /// It does not fit where the partner stands; [`Refusal`].
    pub async fn change_partner_status(
        &self,
        (account, id): (AccountId, PartnerId),
        asked: &PartnerStatusChange,
        beside: ExtendCommit<'_, PartnerView>,
    ) -> Result<PartnerView, AffiliateError> {
        for _ in 0..TRIES_MAX {
            let PartnerView { partner: before, links, program, is_recruiter_gone, .. } =
                self.get_partner_view(account, id).await?;
            IfMatch::check(asked.seen.as_ref(), before.rev, before.updated_at)?;
            let status = before.status.transition(asked.action)?;
            let now = self.now();
            let first = status == PartnerStatus::Active && before.approved_at.is_none();
            let after = Partner {
                status,
                approved_at: if first { Some(now) } else { before.approved_at },
                terms_accepted_at: match asked.action {
                    PartnerAction::Accept => Some(now),
                    _ => before.terms_accepted_at,
                },
                rev: before.rev.saturating_add(1),
                updated_at: now,
                ..before.clone()
            };
            let ledger = self.ledger();
            let mut book = UnitOfWork::for_program(&ledger, program.clone());
            if asked.action == PartnerAction::Suspend {
                // Who is suspended is not paid.
                book.remove_from_drafts(id, SkipReason::NotActive).await?;
            }
            let mut batch = book.build_batch(Batch::progress()).await?;
            partner::update(&mut batch, &before, &after);
            let mut shown = PartnerView { is_recruiter_gone, ..PartnerView::of(after, links, program) };
            let kind = match asked.action {
                PartnerAction::Approve | PartnerAction::Accept => EventKind::AffiliateApproved,
                PartnerAction::Reject | PartnerAction::Suspend | PartnerAction::Reactivate => {
                    EventKind::AffiliateUpdated
                }
            };
            let mut telling =
                EventBuilder::for_partner(&shown.program, shown.partner.id).with("affiliate", &shown.object());
            if let Some(reason) = &asked.reason {
                telling = telling.with("reason", reason);
            }
            self.record_event(&mut batch, kind, shown.partner.id, telling);
            if let Some(tells) = asked.letter() {
                let about = (&shown.program, &shown.partner);
                shown.warning = self.queue_email_if_mailable(&mut batch, about, tells).await?;
            }
            beside(&mut batch, &shown);
            if matches!(self.commit(batch).await?, CommitResult::Committed) {
                log_warning(&shown.partner, shown.warning);
                return Ok(shown);
            }
        }
        Err(ConflictReason::Changed.into())
    }

    /// A page of partners.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn list_partners(
        &self,
        program: &AffiliateProgram,
        wish: &PartnerQuery,
        wanted: ListPageRequest,
    ) -> Result<PartnerPage, AffiliateError> {
        let (store, account) = (self.store(), program.account);
        let campaign = match &wish.campaign {
            None => None,
            Some(named) => match self.find_campaign(account, named).await? {
                Some(found) => Some(found.id),
                None => return Ok(PartnerPage { partners: Vec::new(), next: None }),
            },
        };
        let filter = partner::PartnerFilter { statuses: wish.statuses.clone(), campaign };
        let page = match &wish.email {
            None => partner::list(store, account, &filter, wanted).await?,
            Some(email) => {
                let found = partner::find_by_email(store, account, email).await?;
                // One at most: it is on the first page.
                let found = found.filter(|partner| wanted.before.is_none() && filter.passes(partner));
                ListPage { rows: found.into_iter().collect(), next: None }
            }
        };
        let which: Vec<_> = page.rows.iter().map(|partner| (partner.id, partner.primary_link)).collect();
        let links = partner_link::get_each(store, account, &which).await?;
        let mut partners = Vec::with_capacity(page.rows.len());
        for (partner, link) in page.rows.into_iter().zip(links) {
            let is_recruiter_gone = self.is_recruiter_gone(&partner).await?;
            let shown = PartnerView::of(partner, link.into_iter().collect(), program.clone());
            partners.push(PartnerView { is_recruiter_gone, ..shown });
        }
        Ok(PartnerPage { partners, next: page.next })
    }

    /// Deletes a partner: its address is free at once, its tokens rest for a while ([`TOKENS_REST_DAYS`]), and what
    /// it was not paid is taken back: its open commissions are reversed with the reason `partner_deleted`. What is more
    /// than one commit holds, and what was written for it in that very moment, follows ([`Ledger::clear_after`]).
    ///
    /// # Errors
    /// It was paid once; it is in a payout that is under way; [`Refusal`].
    pub async fn delete_partner(
        &self,
        (account, id): (AccountId, PartnerId),
        seen: Option<&IfMatch>,
    ) -> Result<(), AffiliateError> {
        for _ in 0..TRIES_MAX {
            let PartnerView { partner, links, program, .. } = self.get_partner_view(account, id).await?;
            IfMatch::check(seen, partner.rev, partner.updated_at)?;
            if partner.was_paid {
                return Err(ForbiddenReason::PaidPartner.into());
            }
            let ledger = self.ledger();
            let mut book = UnitOfWork::for_program(&ledger, program);
            book.require_no_drafting().await?;
            if !payout::list_open_by_partner(self.store(), (account, id), None, 1).await?.is_empty() {
                return Err(ConflictReason::InPayout.into());
            }
            Ledger::reverse_partner_lines(&mut book, id).await?;
            book.schedule_job(PayoutJob::Partner(id), Some(self.now()));
            let mut batch = book.build_batch(Batch::progress()).await?;
            partner::delete(&mut batch, &partner);
            retire_links(&mut batch, &links, self.now());
            if matches!(self.commit(batch).await?, CommitResult::Committed) {
                self.revoke_portal_access((account, id)).await?;
                return Ok(ledger.clean_up_deleted_partner(account, id).await?);
            }
        }
        Err(ConflictReason::Changed.into())
    }

    /// Sets where a partner's money goes; it is told, and so is the destination before. Payouts that are drafted and not
    /// approved go there; where it cannot be paid any more, they are dropped.
    ///
    /// # Errors
    /// [`Refusal`].
    pub async fn set_payout_destination(
        &self,
        (account, id): (AccountId, PartnerId),
        (payout, seen): (&PayoutDestination, Option<&IfMatch>),
        beside: ExtendCommit<'_, PartnerView>,
    ) -> Result<PartnerView, AffiliateError> {
        let mut payout = payout.clone();
        for tried in 0..TRIES_MAX {
            let PartnerView { partner: before, links, program, .. } = self.get_partner_view(account, id).await?;
            IfMatch::check(seen, before.rev, before.updated_at)?;
            if tried == 0 && !payout.method.is_manual() {
                payout.is_able = self.takes_transfers(&program, &payout.destination).await;
            }
            let payout = &payout;
            let was = before.payout.as_ref();
            let goes = |payout: &PayoutDestination| (payout.method, payout.destination.clone());
            let is_same = was.map(goes) == Some(goes(payout));
            if was == Some(payout) && before.payouts_failed == 0 {
                let (shown, mut batch) = (PartnerView::of(before, links, program), Batch::progress());
                beside(&mut batch, &shown);
                match self.commit(batch).await? {
                    CommitResult::Committed => return Ok(shown),
                    CommitResult::Conflict(_) => return Err(ConflictReason::PortalLinkExpired.into()),
                }
            }
            let after = Partner {
                payout: Some(payout.clone()),
                // Failures were the other destination's.
                payouts_failed: 0,
                rev: before.rev.saturating_add(1),
                updated_at: self.now(),
                ..before.clone()
            };
            let ledger = self.ledger();
            let mut book = UnitOfWork::for_program(&ledger, program.clone());
            book.redirect_payouts(&after).await?;
            let mut batch = book.build_batch(Batch::progress()).await?;
            partner::update(&mut batch, &before, &after);
            let shown = PartnerView::of(after, links, program);
            self.record_partner_event(&mut batch, EventKind::AffiliateUpdated, &shown);
            if !is_same {
                let tells = PartnerEmailKind::PayoutChanged { before: was.map(goes) };
                self.queue_email(&mut batch, &shown.partner, tells);
            }
            beside(&mut batch, &shown);
            match self.commit(batch).await? {
                CommitResult::Committed => return Ok(shown),
                CommitResult::Conflict(key) if portal_link::caused_conflict(&key) => {
                    return Err(ConflictReason::PortalLinkExpired.into());
                }
                CommitResult::Conflict(_) => {}
            }
        }
        Err(ConflictReason::Changed.into())
    }

    /// What a partner's postbacks are signed with; none when it cannot be opened.
    #[must_use]
    pub fn postback_secret(&self, partner: &Partner) -> Option<String> {
        self.open(&partner.id.to_bytes(), &partner.postback_secret)
    }
}

/// Forgets links of a partner who is deleted; their tokens rest.
pub(crate) fn retire_links(batch: &mut Batch, links: &[PartnerLink], now: Timestamp) {
    let rest = SignedDuration::from_hours(24 * TOKEN_QUARANTINE_DAYS);
    let until = now.checked_add(rest).unwrap_or(Timestamp::MAX);
    for link in links {
        partner_link::delete(batch, link, Some(until));
    }
}
