//! A partner's payouts, as the portal shows them: a list, and each one's receipt.

use std::collections::BTreeMap;

use mail::affiliate::commission::Commission;
use mail::affiliate::money::Currency;
use mail::affiliate::partner::Partner;
use mail::affiliate::payout::PayoutStatus;
use mail::id::PayoutId;
use store::affiliate::listing::ListPageRequest;
use store::affiliate::{adjustment, commission, payout};
use store::engine::ReadError;

use crate::letters::PayoutEmailDetails;
use crate::office::AffiliateService;
use crate::payouts::show::{PayoutPage, PayoutQuery, PayoutView};
use crate::refusal::AffiliateError;

/// Lines that a receipt shows.
pub const LINES_MAX: usize = 500;
/// Corrections in one currency that are summed; a partner has a handful.
const ADJUSTMENTS_MAX: usize = 500;

/// A payout, and what it is made of.
#[derive(Debug, Clone)]
pub struct Receipt {
    /// The payout.
    pub shown: PayoutView,
    /// The first of its lines, with what each came to in it.
    pub lines: Vec<(Commission, i64)>,
}

impl AffiliateService {
    /// A page of a partner's payouts, newest first. Drafts are the program's own affair, and left out.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn list_partner_payouts(
        &self,
        partner: &Partner,
        wanted: ListPageRequest,
    ) -> Result<PayoutPage, AffiliateError> {
        let statuses = vec![PayoutStatus::Processing, PayoutStatus::Paid, PayoutStatus::Failed];
        let wish = PayoutQuery { statuses, partner: Some(partner.id), run: None };
        Ok(self.ledger().list_payouts(partner.account, &wish, wanted).await?)
    }

    /// A payout of a partner, and the first lines of it; none when it is not the partner's.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn get_receipt(&self, partner: &Partner, id: PayoutId) -> Result<Option<Receipt>, AffiliateError> {
        let shown = match self.ledger().get_payout(partner.account, id).await {
            Ok(shown) => shown,
            Err(AffiliateError::NotFound(_)) => return Ok(None),
            Err(refusal) => return Err(refusal),
        };
        if shown.payout.partner != partner.id || shown.status == PayoutStatus::Draft {
            return Ok(None);
        }
        let items = payout::list_items(self.store(), (partner.account, id), None, LINES_MAX).await?;
        let mut lines = Vec::with_capacity(items.len());
        for (line, amount) in items {
            let found = commission::get(self.store(), partner.account, line).await?;
            lines.extend(found.map(|line| (line, amount)));
        }
        Ok(Some(Receipt { shown, lines }))
    }

    /// What is to be taken off, or added to, a partner's next payouts: refunds that came after a payout.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn pending_corrections(
        &self,
        partner: &Partner,
        currencies: impl Iterator<Item = Currency>,
    ) -> Result<BTreeMap<Currency, i64>, AffiliateError> {
        let mut owed = BTreeMap::new();
        for currency in currencies {
            let of = (partner.id, currency);
            let found = adjustment::list_unassigned(self.store(), partner.account, (of, of), ADJUSTMENTS_MAX).await?;
            let sum = found.iter().fold(0_i64, |sum, one| sum.saturating_add(one.amount));
            if sum != 0 {
                owed.insert(currency, sum);
            }
        }
        Ok(owed)
    }

    /// What a letter tells of a payout.
    pub(crate) async fn payout_email_details(
        &self,
        partner: &Partner,
        id: PayoutId,
    ) -> Result<Option<PayoutEmailDetails>, ReadError> {
        let found = payout::get(self.store(), partner.account, id).await?;
        Ok(found.map(|payout| PayoutEmailDetails {
            amount: payout.amount,
            currency: payout.currency,
            method: payout.method,
            note: payout.failure_reason.or(payout.reference).or(payout.transfer),
            destination: payout.destination,
        }))
    }
}
