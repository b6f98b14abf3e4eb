//! Partners and the program: I8, I11, and how many paying customers, whom by which link and how much of what each has (I4).

use std::collections::BTreeMap;

use mail::affiliate::balance::{Balance, BalancePart};
use mail::affiliate::money::Currency;
use mail::affiliate::partner::Partner;
use store::affiliate::brought::ReferralCountsByLink;
use store::affiliate::{campaign, commission, partner, partner_link, referral, tally};

use super::{Auditor, Invariant, next_page};
use crate::ledger::{LedgerError, is_paying};

/// Recruiters above a partner.
const PARENTS_MAX: usize = 1_000;

impl Auditor<'_> {
    pub(super) async fn partners(&mut self) -> Result<(), LedgerError> {
        let (store, account) = (self.ledger.store(), self.account());
        let has_default = match self.program.default_campaign {
            None => self.program.status == mail::affiliate::program::ProgramStatus::Setup,
            Some(id) => campaign::get(store, account, id).await?.is_some(),
        };
        let program = self.program.id;
        self.check(has_default, Invariant::I8, program, || "has no default campaign".to_owned());
        let mut page = None;
        while let Some(wanted) = next_page(page.as_ref()) {
            let next = partner::list(store, account, &partner::PartnerFilter::default(), wanted).await?;
            self.checked.partners += next.rows.len();
            for one in &next.rows {
                self.check_links(one).await?;
                self.check_recruiters(one).await?;
                self.check_referral_counts(one).await?;
                self.check_balance(one).await?;
                self.check_partner_events(one).await?;
            }
            page = Some(next);
        }
        Ok(())
    }

    async fn check_links(&mut self, partner: &Partner) -> Result<(), LedgerError> {
        let (store, account) = (self.ledger.store(), self.account());
        let links = partner_link::list(store, account, partner.id).await?;
        let primary = links.iter().filter(|link| link.id == partner.primary_link).count();
        self.check(primary == 1, Invariant::I8, partner.id, || "has no primary link".to_owned());
        for link in links {
            let found = partner_link::find_by_token(store, account, &link.token).await?;
            let is_its = found.is_some_and(|found| found.id == link.id);
            self.check(is_its, Invariant::I8, link.id, || {
                format!("has a token, {}, that leads elsewhere", link.token.as_str())
            });
        }
        Ok(())
    }

    async fn check_recruiters(&mut self, partner: &Partner) -> Result<(), LedgerError> {
        let mut above = partner.parent;
        for _ in 0..PARENTS_MAX {
            let Some(id) = above else { return Ok(()) };
            if id == partner.id {
                break;
            }
            let found = partner::get(self.ledger.store(), self.account(), id).await?;
            above = found.and_then(|found| found.parent);
        }
        self.check(above.is_none(), Invariant::I11, partner.id, || "recruits itself".to_owned());
        Ok(())
    }

    async fn check_balance(&mut self, partner: &Partner) -> Result<(), LedgerError> {
        let (store, account) = (self.ledger.store(), self.account());
        let filter =
            commission::CommissionFilter { partner: Some(partner.id), ..commission::CommissionFilter::default() };
        let (mut summed, mut page) = (BTreeMap::<Currency, Balance>::new(), None);
        while let Some(wanted) = next_page(page.as_ref()) {
            let next = commission::list(store, account, &filter, wanted).await?;
            for line in &next.rows {
                if let Some(part) = BalancePart::of_commission(line) {
                    let sum = summed.entry(line.currency).or_default().part(part);
                    // As the balances are kept: the two are the same, whatever the lines come to.
                    *sum = sum.wrapping_add(line.amount);
                }
            }
            page = Some(next);
        }
        let kept = self.ledger.balances((account, partner.id)).await?;
        self.check(kept == summed, Invariant::I4, partner.id, || {
            format!("has {summed:?} by its lines, and {kept:?} by its balances")
        });
        Ok(())
    }

    async fn check_referral_counts(&mut self, partner: &Partner) -> Result<(), LedgerError> {
        let (store, account) = (self.ledger.store(), self.account());
        let filter = referral::ReferralFilter { partner: Some(partner.id), ..referral::ReferralFilter::default() };
        let (mut paying, mut brought, mut page) = (0_usize, ReferralCountsByLink::default(), None);
        while let Some(wanted) = next_page(page.as_ref()) {
            let next = referral::list(store, account, &filter, wanted).await?;
            paying += next.rows.iter().filter(|one| is_paying(one)).count();
            next.rows.iter().for_each(|one| brought.add_referral(one));
            page = Some(next);
        }
        let kept = tally::get(store, account, partner.id).await?.paying;
        let is_same = usize::try_from(kept) == Ok(paying);
        self.check(is_same, Invariant::I4, partner.id, || {
            format!("has {paying} paying customers, and {kept} by its number")
        });
        let links = partner_link::list(store, account, partner.id).await?;
        brought.fold_other_links(&links.iter().map(|link| link.id).collect());
        let kept = self.ledger.referral_counts((account, partner.id)).await?;
        self.check(kept == brought, Invariant::I4, partner.id, || {
            format!("has brought {brought:?} by its referrals, and {kept:?} by its sums")
        });
        Ok(())
    }
}
