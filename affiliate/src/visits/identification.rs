//! Statements of a page about a visitor: a sign-up, or the person's email.
//!
//! The response does not reveal whether the visit, the person or the program exists.

use std::net::IpAddr;

use message::address::Address;
use model::affiliate::program::{AffiliateProgram, ProgramStatus};
use model::affiliate::referral::ReferralSource;
use model::affiliate::visit::{PartnerVisit, REFERRALS_MAX, attributed_visit};
use model::id::{AccountId, VisitId};
use store::affiliate::referral::{self, ReferralClaim};
use store::affiliate::visit::{self, VisitorIdentity};
use store::affiliate::{partner, program};
use store::engine::Batch;
use store::retry_on_conflict;

use crate::context::Context;
use crate::error::{AffiliateError, ConflictReason, Result};
use crate::ledger::prospect::{Prospect, lowercase_address};
use crate::ledger::referral_commit::{ReferralCommit, create_lead, follow_up, set_buyer_address};

impl Context {
    /// Creates a lead for a visitor who signed up, once per email. Returns true if the lead is new.
    ///
    /// # Errors
    /// `Changed` after too many conflicts; the ledger or the store failed.
    pub async fn sign_up_visitor(
        &self,
        account: AccountId,
        id: VisitId,
        email: &Address,
        from: Option<IpAddr>,
    ) -> Result<bool> {
        let email = lowercase_address(email);
        retry_on_conflict(|| async {
            let Some((program, visit)) = self.find_live_visit(account, id).await? else { return Ok(Some(false)) };
            let Some(partner) = partner::get(&self.store, account, visit.partner).await? else {
                return Ok(Some(false));
            };
            let held = referral::find_claim_holder(&self.store, account, &ReferralClaim::Email(email.clone())).await?;
            let lapsed_referral = match held {
                Some(held) if held.has_lapsed(self.now()) => Some(held),
                Some(_) => return Ok(Some(false)),
                None => None,
            };
            if lapsed_referral.is_none()
                && let Some(part) = set_buyer_address(self, program.clone(), &visit, &email).await?
            {
                if self.commit_to_completion(account, part).await? {
                    return Ok(Some(false));
                }
                return Ok(None);
            }
            if visit.referrals.len() >= REFERRALS_MAX {
                return Ok(Some(false));
            }
            let prospect = Prospect::from_visit(ReferralSource::Signup, Some(email.clone()), visit);
            let part = create_lead(self, program, &partner, Prospect { from, ..prospect }, lapsed_referral).await?;
            Ok(self.commit_to_completion(account, part).await?.then_some(true))
        })
        .await
    }

    /// Commits the first part of a referral, then the rest. Returns false after a conflict on the first part; then
    /// nothing is committed. Later parts that conflict too often are logged and left out: the referral exists.
    async fn commit_to_completion(&self, account: AccountId, first: ReferralCommit) -> Result<bool> {
        if !self.commit(first.batch).await? {
            return Ok(false);
        }
        let mut is_whole = first.is_whole;
        while !is_whole {
            let part = retry_on_conflict::<_, AffiliateError, _>(|| async {
                let program = program::get(&self.store, account).await?.ok_or(AffiliateError::NotSetUp)?;
                let found = referral::get(&self.store, account, first.referral.id).await?;
                let Some(found) = found else { return Ok(Some(true)) };
                let part = follow_up(self, program, found, None).await?;
                Ok(self.commit(part.batch).await?.then_some(part.is_whole))
            })
            .await;
            is_whole = match part {
                Err(AffiliateError::Conflict(ConflictReason::Changed)) => {
                    let (referral, partner) = (first.referral.id, first.referral.partner);
                    tracing::warn!(account.id = %account, affiliate.id = %partner, referral.id = %referral, "cannot commit the rest of a new referral: concurrent changes");
                    return Ok(true);
                }
                part => part?,
            };
        }
        Ok(true)
    }

    /// Links an email to a visit: later purchases with that email are attributed to the visit, even without other
    /// hints.
    ///
    /// # Errors
    /// `Changed` after too many conflicts; the store failed.
    pub async fn identify_visitor(&self, account: AccountId, id: VisitId, email: &Address) -> Result<()> {
        let email = lowercase_address(email);
        let person = VisitorIdentity::Person(email.clone());
        retry_on_conflict(|| async {
            let Some((program, visit)) = self.find_live_visit(account, id).await? else { return Ok(Some(())) };
            let before = visit::find_current(&self.store, account, &person).await?;
            let held = before.visit.as_ref().filter(|held| !held.has_lapsed(self.now()));
            let model = program.settings.attribution;
            let is_same_visitor =
                held.is_none_or(|held| attributed_visit(model, held, &visit).id == visit.id && held.id != visit.id);
            if !is_same_visitor || visit.people.len() >= REFERRALS_MAX {
                return Ok(Some(()));
            }
            let mut after = visit.clone();
            if !after.people.contains(&email) {
                after.people.push(email.clone());
            }
            let mut batch = Batch::intake();
            visit::update(&mut batch, &visit, &after);
            visit::set_current(&mut batch, account, &person, &before, id);
            Ok(self.commit(batch).await?.then_some(()))
        })
        .await
    }

    /// Returns a visit that has not lapsed, of a live program.
    async fn find_live_visit(
        &self,
        account: AccountId,
        id: VisitId,
    ) -> Result<Option<(AffiliateProgram, PartnerVisit)>> {
        let program = program::get(&self.store, account).await?;
        let Some(program) = program.filter(|program| program.status == ProgramStatus::Live) else {
            return Ok(None);
        };
        let found = visit::get(&self.store, account, id).await?;
        Ok(found.filter(|visit| !visit.has_lapsed(self.now())).map(|visit| (program, visit)))
    }
}
