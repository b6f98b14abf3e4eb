//! Creating referrals by API: a person and the partner who referred them, given by id or token.
//!
//! ```text
//! person ─► claimed already? the existing referral ─► self-referral? blocked ─► lead
//! ```
//!
//! The first claim on a person wins until it lapses. A customer id given for a person with a referral is linked to that
//! referral, whichever partner is named.

use jiff::Timestamp;
use message::address::Address;
use model::affiliate::partner::{Partner, PartnerLinkToken, PartnerStatus};
use model::affiliate::program::ProgramStatus;
use model::affiliate::referral::{Referral, ReferralSource};
use model::id::{AccountId, PartnerId, PartnerLinkId, ReferralId};
use store::affiliate::listing::{ListPage, ListPageRequest};
use store::affiliate::referral::{self, ReferralClaim};
use store::affiliate::{partner, program};
use store::retry_on_conflict;

use crate::context::{Context, ExtendCommit};
use crate::error::{AffiliateError, AffiliateNoun, ConflictReason, Result};
use crate::ledger::prospect::{Prospect, lowercase_address};
use crate::ledger::referral_commit::{ReferralCommit, create_lead, follow_up};
use crate::partners::lookup::find_active_partner;

/// Identifies a partner in a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PartnerSelector {
    Id(PartnerId),
    Token(PartnerLinkToken),
    /// A text that cannot be an id or a token.
    Nobody,
}

/// Fields of a referral to create.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReferralDraft {
    pub partner: PartnerSelector,
    pub email: Address,
    /// The processor's customer id, if known.
    pub customer: Option<String>,
    pub sub_id: Option<String>,
}

/// Result of creating a referral.
#[derive(Debug, Clone)]
pub struct ReferralResult {
    /// The new referral, or the existing one.
    pub referral: Referral,
    /// True if the referral is new.
    pub created: bool,
}

impl Context {
    /// Fetches a referral.
    pub async fn get_referral(&self, account: AccountId, id: ReferralId) -> Result<Referral> {
        referral::get(&self.store, account, id).await?.ok_or(AffiliateError::NotFound(AffiliateNoun::Referral))
    }

    /// Lists referrals, newest first.
    pub async fn list_referrals(
        &self,
        account: AccountId,
        filter: &referral::ReferralFilter,
        wanted: ListPageRequest,
    ) -> Result<ListPage<Referral>> {
        Ok(referral::list(&self.store, account, filter, wanted).await?)
    }

    /// Creates a referral, or returns the existing one of the same person.
    ///
    /// # Errors
    /// `NotLive`; `NotSetUp`; `NotFound` if there is no active partner with this id or token; the store failed.
    pub async fn refer(
        &self,
        account: AccountId,
        draft: &ReferralDraft,
        extend_commit: ExtendCommit<'_, ReferralResult>,
    ) -> Result<ReferralResult> {
        let mut created_id = None;
        loop {
            let (referred, is_whole) = retry_on_conflict(|| async {
                let program = program::get(&self.store, account).await?.ok_or(AffiliateError::NotSetUp)?;
                if !program.missing_steps().is_empty() {
                    return Err(AffiliateError::NotSetUp);
                }
                if program.status != ProgramStatus::Live {
                    return Err(ConflictReason::NotLive.into());
                }
                let (partner, link) = self.select_partner(account, &draft.partner).await?;
                let now = self.now();
                let (existing, lapsed_referral) = self.find_claims(account, draft, now).await?;
                let created = existing.as_ref().is_none_or(|existing| created_id == Some(existing.id));
                let ReferralCommit { mut batch, referral, is_whole } = match existing {
                    Some(referral) => follow_up(self, program, referral, draft.customer.as_deref()).await?,
                    None => {
                        let prospect = Prospect {
                            customer: draft.customer.clone(),
                            sub_id: draft.sub_id.clone(),
                            link,
                            ..Prospect::new(ReferralSource::Api, Some(lowercase_address(&draft.email)))
                        };
                        create_lead(self, program, &partner, prospect, lapsed_referral).await?
                    }
                };
                let referred = ReferralResult { referral, created };
                // The caller's idempotency record is committed with the last part, so that a retry after an interruption
                // continues.
                if is_whole {
                    extend_commit(&mut batch, &referred);
                }
                Ok(self.commit(batch).await?.then_some((referred, is_whole)))
            })
            .await?;
            if is_whole {
                return Ok(referred);
            }
            created_id = referred.created.then_some(referred.referral.id);
        }
    }

    /// Returns the active partner, and its link if a token was given.
    async fn select_partner(
        &self,
        account: AccountId,
        selector: &PartnerSelector,
    ) -> Result<(Partner, Option<PartnerLinkId>)> {
        let found = match selector {
            PartnerSelector::Id(id) => {
                let found = partner::get(&self.store, account, *id).await?;
                found.filter(|partner| partner.status == PartnerStatus::Active).map(|partner| (partner, None))
            }
            PartnerSelector::Token(token) => {
                let found = find_active_partner(self, account, token).await?;
                found.map(|(link, partner)| (partner, Some(link.id)))
            }
            PartnerSelector::Nobody => None,
        };
        found.ok_or(AffiliateError::NotFound(AffiliateNoun::Partner))
    }

    /// Returns the referral that claims the person, and the lapsed one that did.
    async fn find_claims(
        &self,
        account: AccountId,
        draft: &ReferralDraft,
        now: Timestamp,
    ) -> Result<(Option<Referral>, Option<Referral>)> {
        if let Some(customer) = &draft.customer {
            let claim = ReferralClaim::Customer(customer.clone());
            if let Some(held) = referral::find_claim_holder(&self.store, account, &claim).await? {
                return Ok((Some(held), None));
            }
        }
        let claim = ReferralClaim::Email(draft.email.clone());
        let held = referral::find_claim_holder(&self.store, account, &claim).await?;
        Ok(match held {
            Some(held) if held.has_lapsed(now) => (None, Some(held)),
            held => (held, None),
        })
    }
}
