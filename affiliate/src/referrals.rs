//! Referrals that are told of: a person, by a partner's id or token.
//!
//! ```text
//! person ─► claimed already? the standing referral ─► itself? blocked ─► lead
//! ```
//!
//! The first who claims a person keeps it, as long as the claim has not lapsed. A customer that is named with a person who
//! stands already is linked to that referral, whichever partner is named.

use jiff::Timestamp;
use mail::address::Address;
use mail::affiliate::partner::{Partner, PartnerLinkToken, PartnerStatus};
use mail::affiliate::program::ProgramStatus;
use mail::affiliate::referral::{Referral, ReferralSource};
use mail::id::{AccountId, PartnerId, PartnerLinkId, ReferralId};
use store::affiliate::listing::{ListPage, ListPageRequest};
use store::affiliate::referral::{self, ReferralClaim};
use store::affiliate::{partner, partner_link, program};

use crate::ledger::{Ledger, Prospect, ReferralCommit};
use crate::office::{AffiliateService, ExtendCommit, TRIES_MAX};
use crate::refusal::{AffiliateError, AffiliateNoun, ConflictReason};

/// By what a partner is named.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PartnerSelector {
    /// By its id.
    Id(PartnerId),
    /// By the token of one of its links.
    Token(PartnerLinkToken),
    /// By what can be nobody's id or token.
    Nobody,
}

/// A referral that is told of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReferralDraft {
    /// Who brought the person.
    pub partner: PartnerSelector,
    /// The person.
    pub email: Address,
    /// The processor's customer, if that is known.
    pub customer: Option<String>,
    /// The partner's own tag.
    pub sub_id: Option<String>,
}

/// A referral, and whether it is a new one.
#[derive(Debug, Clone)]
pub struct ReferralResult {
    /// The referral: the one that stood, where there was one.
    pub referral: Referral,
    /// Whether it was made now.
    pub created: bool,
}

impl AffiliateService {
    /// A referral.
    ///
    /// # Errors
    /// There is none; the store cannot be read.
    pub async fn get_referral(&self, account: AccountId, id: ReferralId) -> Result<Referral, AffiliateError> {
        referral::get(self.store(), account, id).await?.ok_or(AffiliateError::NotFound(AffiliateNoun::Referral))
    }

    /// A page of referrals.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn list_referrals(
        &self,
        account: AccountId,
        filter: &referral::ReferralFilter,
        wanted: ListPageRequest,
    ) -> Result<ListPage<Referral>, AffiliateError> {
        Ok(referral::list(self.store(), account, filter, wanted).await?)
    }

    /// [`Ledger::refer`].
    ///
    /// # Errors
    /// As there.
    pub async fn record_referral(
        &self,
        account: AccountId,
        draft: &ReferralDraft,
        beside: ExtendCommit<'_, ReferralResult>,
    ) -> Result<ReferralResult, AffiliateError> {
        self.ledger().refer(account, draft, beside).await
    }
}

impl Ledger {
    /// Records a person whom a partner brought.
    ///
    /// # Errors
    /// The program is not live; there is no active partner of that id or token; [`Refusal`].
    pub async fn refer(
        &self,
        account: AccountId,
        draft: &ReferralDraft,
        beside: ExtendCommit<'_, ReferralResult>,
    ) -> Result<ReferralResult, AffiliateError> {
        let (mut tries, mut made) = (0, None);
        while tries < TRIES_MAX {
            let program = program::get(self.store(), account).await?.ok_or(AffiliateError::NotSetUp)?;
            if !program.missing_steps().is_empty() {
                return Err(AffiliateError::NotSetUp);
            }
            if program.status != ProgramStatus::Live {
                return Err(ConflictReason::NotLive.into());
            }
            let (by, link) = self.find_active_partner(account, &draft.partner).await?;
            let now = self.now();
            let (standing, lapsed) = self.find_claims(account, draft, now).await?;
            let created = standing.as_ref().is_none_or(|standing| made == Some(standing.id));
            let ReferralCommit { mut batch, referral, is_whole } = match standing {
                Some(referral) => self.follow_up(program, (referral, draft.customer.as_deref())).await?,
                None => {
                    let prospect = Prospect {
                        customer: draft.customer.clone(),
                        sub_id: draft.sub_id.clone(),
                        link,
                        ..Prospect::new(ReferralSource::Api, Some(lowercase_address(&draft.email)))
                    };
                    self.create_lead(program, &by, (prospect, lapsed)).await?
                }
            };
            let referred = ReferralResult { referral, created };
            // That it is done is said with the last part, so that whoever is cut off asks again, and it is gone on with.
            if is_whole {
                beside(&mut batch, &referred);
            }
            match self.commit(batch).await? {
                true if is_whole => return Ok(referred),
                true => (tries, made) = (0, created.then_some(referred.referral.id)),
                false => tries += 1,
            }
        }
        Err(ConflictReason::Changed.into())
    }

    /// The active partner, and the link where it was named by one.
    async fn find_active_partner(
        &self,
        account: AccountId,
        by: &PartnerSelector,
    ) -> Result<(Partner, Option<PartnerLinkId>), AffiliateError> {
        let (id, link) = match by {
            PartnerSelector::Id(id) => (Some(*id), None),
            PartnerSelector::Token(token) => {
                let link = partner_link::find_by_token(self.store(), account, token).await?;
                link.map_or((None, None), |link| (Some(link.partner), Some(link.id)))
            }
            PartnerSelector::Nobody => (None, None),
        };
        let found = match id {
            Some(id) => partner::get(self.store(), account, id).await?,
            None => None,
        };
        let active = found.filter(|partner| partner.status == PartnerStatus::Active);
        Ok((active.ok_or(AffiliateError::NotFound(AffiliateNoun::Partner))?, link))
    }

    /// The referral that holds the person, and the one that held it and has lapsed.
    async fn find_claims(
        &self,
        account: AccountId,
        draft: &ReferralDraft,
        now: Timestamp,
    ) -> Result<(Option<Referral>, Option<Referral>), AffiliateError> {
        if let Some(customer) = &draft.customer {
            let claim = ReferralClaim::Customer(customer.clone());
            if let Some(held) = referral::find_claim_holder(self.store(), account, &claim).await? {
                return Ok((Some(held), None));
            }
        }
        let claim = ReferralClaim::Email(draft.email.clone());
        let held = referral::find_claim_holder(self.store(), account, &claim).await?;
        Ok(match held {
            Some(held) if held.has_lapsed(now) => (None, Some(held)),
            held => (held, None),
        })
    }
}

pub(crate) fn lowercase_address(address: &Address) -> Address {
    address.to_string().to_lowercase().parse().unwrap_or_else(|_| address.clone())
}
