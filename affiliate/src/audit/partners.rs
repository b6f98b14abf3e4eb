//! Partners and the program: I8, I11, and how many paying customers, whom by which link and how much of what each has (I4).

use std::collections::BTreeMap;

use mail::affiliate::balance::{Balance, Part};
use mail::affiliate::money::Currency;
use mail::affiliate::partner::Partner;
use store::affiliate::brought::ByLink;
use store::affiliate::{campaign, commission, partner, partner_link, referral, tally};

use super::{Auditor, Invariant, wanted};
use crate::ledger::{Fault, pays};

/// Recruiters above a partner.
const PARENTS_MAX: usize = 1_000;

impl Auditor<'_> {
    pub(super) async fn partners(&mut self) -> Result<(), Fault> {
        let (store, account) = (self.ledger.store(), self.account());
        let has_default = match self.program.default_campaign {
            None => self.program.status == mail::affiliate::program::ProgramStatus::Setup,
            Some(id) => campaign::get(store, account, id).await?.is_some(),
        };
        let program = self.program.id;
        self.expect(has_default, Invariant::I8, program, || "has no default campaign".to_owned());
        let mut page = None;
        while let Some(wanted) = wanted(page.as_ref()) {
            let next = partner::list(store, account, &partner::Filter::default(), wanted).await?;
            self.checked.partners += next.rows.len();
            for one in &next.rows {
                self.links(one).await?;
                self.recruiters(one).await?;
                self.tally(one).await?;
                self.balance(one).await?;
                self.told_of_partner(one).await?;
            }
            page = Some(next);
        }
        Ok(())
    }

    async fn links(&mut self, partner: &Partner) -> Result<(), Fault> {
        let (store, account) = (self.ledger.store(), self.account());
        let links = partner_link::all(store, account, partner.id).await?;
        let primary = links.iter().filter(|link| link.id == partner.primary_link).count();
        self.expect(primary == 1, Invariant::I8, partner.id, || "has no primary link".to_owned());
        for link in links {
            let found = partner_link::with_token(store, account, &link.token).await?;
            let is_its = found.is_some_and(|found| found.id == link.id);
            self.expect(is_its, Invariant::I8, link.id, || {
                format!("has a token, {}, that leads elsewhere", link.token.as_str())
            });
        }
        Ok(())
    }

    async fn recruiters(&mut self, partner: &Partner) -> Result<(), Fault> {
        let mut above = partner.parent;
        for _ in 0..PARENTS_MAX {
            let Some(id) = above else { return Ok(()) };
            if id == partner.id {
                break;
            }
            let found = partner::get(self.ledger.store(), self.account(), id).await?;
            above = found.and_then(|found| found.parent);
        }
        self.expect(above.is_none(), Invariant::I11, partner.id, || "recruits itself".to_owned());
        Ok(())
    }

    async fn balance(&mut self, partner: &Partner) -> Result<(), Fault> {
        let (store, account) = (self.ledger.store(), self.account());
        let filter = commission::Filter { partner: Some(partner.id), ..commission::Filter::default() };
        let (mut summed, mut page) = (BTreeMap::<Currency, Balance>::new(), None);
        while let Some(wanted) = wanted(page.as_ref()) {
            let next = commission::list(store, account, &filter, wanted).await?;
            for line in &next.rows {
                if let Some(part) = Part::of(line) {
                    let sum = summed.entry(line.currency).or_default().part(part);
                    // As the balances are kept: the two are the same, whatever the lines come to.
                    *sum = sum.wrapping_add(line.amount);
                }
            }
            page = Some(next);
        }
        let kept = self.ledger.balances((account, partner.id)).await?;
        self.expect(kept == summed, Invariant::I4, partner.id, || {
            format!("has {summed:?} by its lines, and {kept:?} by its balances")
        });
        Ok(())
    }

    async fn tally(&mut self, partner: &Partner) -> Result<(), Fault> {
        let (store, account) = (self.ledger.store(), self.account());
        let filter = referral::Filter { partner: Some(partner.id), ..referral::Filter::default() };
        let (mut paying, mut brought, mut page) = (0_usize, ByLink::default(), None);
        while let Some(wanted) = wanted(page.as_ref()) {
            let next = referral::list(store, account, &filter, wanted).await?;
            paying += next.rows.iter().filter(|one| pays(one)).count();
            next.rows.iter().for_each(|one| brought.count(one));
            page = Some(next);
        }
        let kept = tally::get(store, account, partner.id).await?.paying;
        let is_same = usize::try_from(kept) == Ok(paying);
        self.expect(is_same, Invariant::I4, partner.id, || {
            format!("has {paying} paying customers, and {kept} by its number")
        });
        let links = partner_link::all(store, account, partner.id).await?;
        brought.keep(&links.iter().map(|link| link.id).collect());
        let kept = self.ledger.brought((account, partner.id)).await?;
        self.expect(kept == brought, Invariant::I4, partner.id, || {
            format!("has brought {brought:?} by its referrals, and {kept:?} by its sums")
        });
        Ok(())
    }
}
