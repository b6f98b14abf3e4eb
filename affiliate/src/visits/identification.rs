//! Statements of a page about a visitor: a sign-up, or the person's email.
//!
//! The response does not reveal whether the visit, the person or the program exists.

use std::net::IpAddr;

use mail::address::Address;
use mail::affiliate::program::{AffiliateProgram, ProgramStatus};
use mail::affiliate::referral::ReferralSource;
use mail::affiliate::visit::{PartnerVisit, REFERRALS_MAX, attributed_visit};
use mail::id::{AccountId, VisitId};
use store::affiliate::referral::{self, ReferralClaim};
use store::affiliate::visit::{self, VisitorIdentity};
use store::affiliate::{partner, program};
use store::engine::Batch;

use crate::error::{AffiliateError, ConflictReason};
use crate::ledger::{Ledger, Prospect, ReferralCommit};
use crate::referrals::lowercase_address;
use crate::service::TRIES_MAX;

impl Ledger {
    /// Creates a lead for a visitor who signed up, once per email. Returns true if the lead is new.
    ///
    /// # Errors
    /// `Changed` after too many conflicts; the ledger or the store failed.
    pub async fn sign_up(
        &self,
        account: AccountId,
        id: VisitId,
        email: &Address,
        from: Option<IpAddr>,
    ) -> Result<bool, AffiliateError> {
        let email = lowercase_address(email);
        for _ in 0..TRIES_MAX {
            let Some((program, visit)) = self.find_live_visit(account, id).await? else { return Ok(false) };
            let Some(partner) = partner::get(self.store(), account, visit.partner).await? else {
                return Ok(false);
            };
            let held = referral::find_claim_holder(self.store(), account, &ReferralClaim::Email(email.clone())).await?;
            let lapsed_referral = match held {
                Some(held) if held.has_lapsed(self.now()) => Some(held),
                Some(_) => return Ok(false),
                None => None,
            };
            if lapsed_referral.is_none()
                && let Some(part) = self.set_buyer_address(program.clone(), &visit, &email).await?
            {
                if self.commit_to_completion(account, part).await? {
                    return Ok(false);
                }
                continue;
            }
            if visit.referrals.len() >= REFERRALS_MAX {
                return Ok(false);
            }
            let prospect = Prospect::from_visit(ReferralSource::Signup, Some(email.clone()), visit);
            let part = self.create_lead(program, &partner, Prospect { from, ..prospect }, lapsed_referral).await?;
            if self.commit_to_completion(account, part).await? {
                return Ok(true);
            }
        }
        Err(ConflictReason::Changed.into())
    }

    /// Commits the first part of a referral, then the rest. Returns false after a conflict on the first part; then
    /// nothing is committed.
    async fn commit_to_completion(&self, account: AccountId, first: ReferralCommit) -> Result<bool, AffiliateError> {
        if !self.commit(first.batch).await? {
            return Ok(false);
        }
        let (mut tries, mut is_whole) = (0, first.is_whole);
        while !is_whole && tries < TRIES_MAX {
            let program = program::get(self.store(), account).await?.ok_or(AffiliateError::NotSetUp)?;
            let Some(found) = referral::get(self.store(), account, first.referral.id).await? else { break };
            let part = self.follow_up(program, found, None).await?;
            if self.commit(part.batch).await? {
                (tries, is_whole) = (0, part.is_whole);
            } else {
                tries += 1;
            }
        }
        Ok(true)
    }

    /// Links an email to a visit: later purchases with that email are attributed to the visit, even without other
    /// hints.
    ///
    /// # Errors
    /// `Changed` after too many conflicts; the store failed.
    pub async fn identify(&self, account: AccountId, id: VisitId, email: &Address) -> Result<(), AffiliateError> {
        let email = lowercase_address(email);
        let person = VisitorIdentity::Person(email.clone());
        for _ in 0..TRIES_MAX {
            let Some((program, visit)) = self.find_live_visit(account, id).await? else { return Ok(()) };
            let before = visit::find_current(self.store(), account, &person).await?;
            let held = before.visit.as_ref().filter(|held| !held.has_lapsed(self.now()));
            let model = program.settings.attribution;
            let is_same_visitor =
                held.is_none_or(|held| attributed_visit(model, held, &visit).id == visit.id && held.id != visit.id);
            if !is_same_visitor || visit.people.len() >= REFERRALS_MAX {
                return Ok(());
            }
            let mut after = visit.clone();
            if !after.people.contains(&email) {
                after.people.push(email.clone());
            }
            let mut batch = Batch::intake();
            visit::update(&mut batch, &visit, &after);
            visit::set_current(&mut batch, account, &person, &before, id);
            if self.commit(batch).await? {
                return Ok(());
            }
        }
        Err(ConflictReason::Changed.into())
    }

    /// Returns a visit that has not lapsed, of a live program.
    async fn find_live_visit(
        &self,
        account: AccountId,
        id: VisitId,
    ) -> Result<Option<(AffiliateProgram, PartnerVisit)>, AffiliateError> {
        let program = program::get(self.store(), account).await?;
        let Some(program) = program.filter(|program| program.status == ProgramStatus::Live) else {
            return Ok(None);
        };
        let found = visit::get(self.store(), account, id).await?;
        Ok(found.filter(|visit| !visit.has_lapsed(self.now())).map(|visit| (program, visit)))
    }
}
