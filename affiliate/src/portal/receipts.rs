//! A partner's payouts in the portal: a list, and a receipt for each.

use std::collections::BTreeMap;

use model::affiliate::commission::Commission;
use model::affiliate::money::Currency;
use model::affiliate::partner::Partner;
use model::affiliate::payout::{Payout, PayoutRun, PayoutRunStatus, PayoutStatus};
use model::id::PayoutId;
use store::affiliate::listing::{ListPage, ListPageRequest};
use store::affiliate::{adjustment, commission, payout, payout_run};
use store::engine::ReadError;

use crate::context::Context;
use crate::error::{AffiliateError, Result};
use crate::partner_emails::email_texts::PayoutEmailDetails;
use crate::payouts::settle::PayoutQuery;
use crate::payouts::view::PayoutView;

pub const LINES_MAX: usize = 500;
/// Maximum adjustments that are summed per currency.
const ADJUSTMENTS_MAX: usize = 500;
/// Maximum payouts of a partner in a draft: there is one per currency.
const DRAFTS_MAX: usize = 200;

/// A payout with its lines.
#[derive(Debug, Clone)]
pub struct Receipt {
    pub shown: PayoutView,
    /// Its first lines, each with its amount in this payout.
    pub lines: Vec<(Commission, i64)>,
}

impl Context {
    /// Lists a partner's payouts, newest first, without drafts.
    pub async fn list_partner_payouts(
        &self,
        partner: &Partner,
        wanted: ListPageRequest,
    ) -> Result<ListPage<PayoutView>> {
        let statuses = vec![PayoutStatus::Processing, PayoutStatus::Paid, PayoutStatus::Failed];
        let query = PayoutQuery { statuses, partner: Some(partner.id), run: None };
        Ok(self.list_payouts(partner.account, &query, wanted).await?)
    }

    /// Returns a partner's payouts in the run that waits for the owner's approval, or was cancelled and still releases
    /// its lines; one per currency. To the partner, their commissions are earned, but not being paid.
    pub async fn draft_payouts(&self, partner: &Partner) -> Result<Vec<Payout>> {
        let open = payout_run::find_open(&self.store, partner.account).await?;
        let is_unapproved = |run: &PayoutRun| matches!(run.status, PayoutRunStatus::Draft | PayoutRunStatus::Cancelled);
        let Some(draft) = open.filter(is_unapproved) else { return Ok(Vec::new()) };
        // The open run is newer than all payouts of other runs.
        let started = Some(PayoutId::new(draft.created_at, 0));
        Ok(payout::list_open_by_partner(&self.store, partner.account, partner.id, started, DRAFTS_MAX).await?)
    }

    /// Returns a payout with its first lines; `None` if it is not the partner's, or a draft.
    pub async fn get_receipt(&self, partner: &Partner, id: PayoutId) -> Result<Option<Receipt>> {
        let view = match self.get_payout(partner.account, id).await {
            Ok(view) => view,
            Err(AffiliateError::NotFound(_)) => return Ok(None),
            Err(refusal) => return Err(refusal),
        };
        if view.payout.partner != partner.id || view.status == PayoutStatus::Draft {
            return Ok(None);
        }
        let items = payout::list_items(&self.store, partner.account, id, None, LINES_MAX).await?;
        let mut lines = Vec::with_capacity(items.len());
        for (line, amount) in items {
            let found = commission::get(&self.store, partner.account, line).await?;
            lines.extend(found.map(|line| (line, amount)));
        }
        Ok(Some(Receipt { shown: view, lines }))
    }

    /// Returns the adjustments that the partner's next payouts net, including drafts, by currency: refunds after a
    /// payout, and failed refunds.
    pub async fn pending_corrections(
        &self,
        partner: &Partner,
        currencies: impl Iterator<Item = Currency>,
    ) -> Result<BTreeMap<Currency, i64>> {
        let mut corrections = BTreeMap::new();
        let drafts = self.draft_payouts(partner).await?;
        for currency in currencies {
            let key = (partner.id, currency);
            let found = adjustment::list_unassigned(&self.store, partner.account, key, key, ADJUSTMENTS_MAX).await?;
            let drafted = drafts.iter().filter(|draft| draft.currency == currency).map(|draft| draft.adjusted);
            let amounts = found.iter().map(|adjustment| adjustment.amount).chain(drafted);
            let sum = amounts.fold(0_i64, i64::saturating_add);
            if sum != 0 {
                corrections.insert(currency, sum);
            }
        }
        Ok(corrections)
    }
}

/// Returns what an email reports of a payout.
pub(crate) async fn payout_email_details(
    context: &Context,
    partner: &Partner,
    id: PayoutId,
) -> Result<Option<PayoutEmailDetails>, ReadError> {
    let found = payout::get(&context.store, partner.account, id).await?;
    Ok(found.map(|payout| PayoutEmailDetails {
        amount: payout.amount,
        currency: payout.currency,
        method: payout.method,
        note: payout.failure_reason.or(payout.reference).or(payout.transfer),
        destination: payout.destination,
    }))
}
