//! Partners and the program: I8, I11, and the stored counts and balances of each partner (I4).

use std::collections::{BTreeMap, HashSet};

use model::affiliate::balance::{Balance, BalancePart};
use model::affiliate::money::Currency;
use model::affiliate::partner::Partner;
use model::id::PartnerId;
use store::affiliate::referral_counts::ReferralCountsByLink;
use store::affiliate::{campaign, commission, customer_counts, partner, partner_link, referral};

use super::auditor::{Auditor, next_page};
use super::events::check_partner_events;
use super::report::Invariant;
use crate::error::LedgerResult as Result;
use crate::ledger::unit_of_work::is_paying;

pub(super) async fn partners(audit: &mut Auditor<'_>) -> Result<()> {
    let (store, account) = (&audit.context.store, audit.account());
    let has_default = match audit.program.default_campaign {
        None => audit.program.status == model::affiliate::program::ProgramStatus::Setup,
        Some(id) => campaign::get(store, account, id).await?.is_some(),
    };
    let program = audit.program.id;
    audit.check(has_default, Invariant::I8, program, || "has no default campaign".to_owned());
    let (mut page, mut acyclic) = (None, HashSet::new());
    while let Some(wanted) = next_page(page.as_ref()) {
        let next = partner::list(store, account, &partner::PartnerFilter::default(), wanted).await?;
        for partner in &next.rows {
            if audit.is_over() {
                return Ok(());
            }
            audit.checked.partners += 1;
            check_links(audit, partner).await?;
            check_recruiters(audit, partner, &mut acyclic).await?;
            check_referral_counts(audit, partner).await?;
            check_balance(audit, partner).await?;
            check_partner_events(audit, partner).await?;
        }
        page = Some(next);
        // An audit whose thread is to end is dropped here.
        tokio::task::yield_now().await;
    }
    Ok(())
}

async fn check_links(audit: &mut Auditor<'_>, partner: &Partner) -> Result<()> {
    let (store, account) = (&audit.context.store, audit.account());
    let links = partner_link::list(store, account, partner.id).await?;
    let primary = links.iter().filter(|link| link.id == partner.primary_link).count();
    audit.check(primary == 1, Invariant::I8, partner.id, || "has no primary link".to_owned());
    for link in links {
        let found = partner_link::find_by_token(store, account, &link.token).await?;
        let is_same_link = found.is_some_and(|found| found.id == link.id);
        audit.check(is_same_link, Invariant::I8, link.id, || {
            format!("has the token {}, which belongs to another link", link.token.as_str())
        });
    }
    Ok(())
}

/// Follows the chain of recruiters above a partner until its end, or until a recruiter in `acyclic`: one whose
/// chain has an end. A cycle is reported for each of its members, not for the partners below it.
async fn check_recruiters(audit: &mut Auditor<'_>, partner: &Partner, acyclic: &mut HashSet<PartnerId>) -> Result<()> {
    let (mut above, mut chain) = (partner.parent, HashSet::new());
    while let Some(id) = above.filter(|id| !acyclic.contains(id)) {
        if id == partner.id {
            audit.check(false, Invariant::I11, partner.id, || "recruits itself".to_owned());
            return Ok(());
        }
        if !chain.insert(id) {
            return Ok(());
        }
        let found = partner::get(&audit.context.store, audit.account(), id).await?;
        above = found.and_then(|found| found.parent);
    }
    acyclic.extend(chain);
    Ok(())
}

async fn check_balance(audit: &mut Auditor<'_>, partner: &Partner) -> Result<()> {
    let (store, account) = (&audit.context.store, audit.account());
    let filter = commission::CommissionFilter { partner: Some(partner.id), ..commission::CommissionFilter::default() };
    let (mut summed, mut page) = (BTreeMap::<Currency, Balance>::new(), None);
    while let Some(wanted) = next_page(page.as_ref()) {
        let next = commission::list(store, account, &filter, wanted).await?;
        for line in &next.rows {
            if let Some(part) = BalancePart::of_commission(line) {
                let sum = summed.entry(line.currency).or_default().part(part);
                // Wrapping addition, as in the stored balances, so that both overflow in the same way.
                *sum = sum.wrapping_add(line.amount);
            }
        }
        page = Some(next);
        if audit.is_over() {
            return Ok(());
        }
    }
    let stored = audit.context.balances((account, partner.id)).await?;
    audit.check(stored == summed, Invariant::I4, partner.id, || {
        format!("has {summed:?} by its lines, but stores the balances {stored:?}")
    });
    Ok(())
}

async fn check_referral_counts(audit: &mut Auditor<'_>, partner: &Partner) -> Result<()> {
    let (store, account) = (&audit.context.store, audit.account());
    let filter = referral::ReferralFilter { partner: Some(partner.id), ..referral::ReferralFilter::default() };
    let (mut paying, mut by_link, mut page) = (0_usize, ReferralCountsByLink::default(), None);
    while let Some(wanted) = next_page(page.as_ref()) {
        let next = referral::list(store, account, &filter, wanted).await?;
        paying += next.rows.iter().filter(|referral| is_paying(referral)).count();
        next.rows.iter().for_each(|referral| by_link.add_referral(referral));
        page = Some(next);
        if audit.is_over() {
            return Ok(());
        }
    }
    let stored = customer_counts::get(store, account, partner.id).await?.paying;
    let matches = usize::try_from(stored) == Ok(paying);
    audit.check(matches, Invariant::I4, partner.id, || {
        format!("has {paying} paying customers, but stores the count {stored}")
    });
    let links = partner_link::list(store, account, partner.id).await?;
    by_link.fold_other_links(&links.iter().map(|link| link.id).collect());
    let stored = audit.context.referral_counts((account, partner.id)).await?;
    audit.check(stored == by_link, Invariant::I4, partner.id, || {
        format!("has {by_link:?} by its referrals, but stores the counts {stored:?}")
    });
    Ok(())
}
