//! `GET …/partners/{id}/ledger`: a partner's commissions with their formulas, and what the partner had earned after each.
//!
//! ```text
//! stored balance of the partner ─► after the newest line ─► minus its amount ─► after the line before ─► …
//! ```
//!
//! The cursor has the sums after the last line of a page, so that each page reads its own lines only.

use std::collections::BTreeMap;

use ::affiliate::api_objects::CommissionObject;
use ::affiliate::error::AffiliateError;
use httpd::paging::KIND_LEDGER;
use model::affiliate::balance::BalancePart;
use model::affiliate::commission::Commission;
use model::affiliate::money::Currency;
use store::affiliate::commission::CommissionFilter;
use store::affiliate::listing::ListPageRequest;

use super::path::PartnerPath;
use super::request::{ReadRequest, ResolvedRequest};
use super::view::ListResponse;
use crate::prelude::*;

/// Bytes of a currency and its sum in a cursor.
const SUM_BYTES: usize = 3 + 8;
/// Bytes of an id in a cursor.
const ID_BYTES: usize = 16;

/// A line of a partner's ledger
#[derive(Debug, Serialize, ToSchema)]
#[schema(name = "AffiliateLedgerLine")]
pub struct LedgerLine {
    commission: CommissionObject,
    /// The calculation in one line: `20 % of 49.00 usd = 9.80 usd (campaign rate)`
    formula: String,
    /// Earned in this currency after the line, in minor units: all lines up to it that are not reversed, paid or not
    balance_after_cents: i64,
}

/// The earnings of a partner by currency, in minor units.
#[derive(Debug, Default, PartialEq, Eq)]
struct EarnedSums(BTreeMap<Currency, i64>);

impl EarnedSums {
    /// The sum after a line. The line is taken away then, for the line before it.
    fn take(&mut self, line: &Commission) -> i64 {
        let sum = self.0.entry(line.currency).or_default();
        let after = *sum;
        if BalancePart::of_commission(line).is_some() {
            *sum = sum.saturating_sub(line.amount);
        }
        after
    }

    fn to_cursor(&self, last: [u8; ID_BYTES]) -> String {
        let mut bytes = last.to_vec();
        for (currency, sum) in &self.0 {
            bytes.extend_from_slice(currency.as_str().as_bytes());
            bytes.extend_from_slice(&sum.to_be_bytes());
        }
        paging::after_bytes(KIND_LEDGER, &bytes)
    }

    fn from_cursor(bytes: &[u8]) -> Option<([u8; ID_BYTES], Self)> {
        let (last, sums) = bytes.split_first_chunk::<ID_BYTES>()?;
        let mut parsed = BTreeMap::new();
        for sum in sums.chunks(SUM_BYTES) {
            let (currency, amount) = sum.split_at_checked(3)?;
            let currency = std::str::from_utf8(currency).ok()?.parse().ok()?;
            parsed.insert(currency, i64::from_be_bytes(amount.try_into().ok()?));
        }
        Some((*last, Self(parsed)))
    }
}

/// `GET …/partners/{id}/ledger`.
pub async fn list(
    state: State,
    owner: Owner,
    request: ReadRequest<(PartnerPath, PageParameters)>,
) -> Result<ListResponse<LedgerLine>> {
    let ResolvedRequest { program, input, .. } = request.require_program(&state, owner.tenant()).await?;
    let (partner, page) = input;
    let (account, partner) = (program.account, partner.id()?);
    state.affiliate.context.get_partner_view(account, partner).await.or_problem(&state)?;
    let (before, mut sums) = match page.bytes_after(KIND_LEDGER)? {
        Some(bytes) => {
            let (last, sums) = EarnedSums::from_cursor(&bytes).ok_or_else(paging::invalid_cursor)?;
            (Some(last), sums)
        }
        None => {
            let balances = state.affiliate.ledger.balances((account, partner)).await;
            let balances = balances.map_err(AffiliateError::from).or_problem(&state)?;
            let earned = balances.into_iter().map(|(currency, balance)| {
                let parts = [balance.pending, balance.earned, balance.in_payout, balance.paid];
                (currency, parts.into_iter().fold(0, i64::saturating_add))
            });
            (None, EarnedSums(earned.collect()))
        }
    };
    let filter = CommissionFilter { partner: Some(partner), ..CommissionFilter::default() };
    let wanted = ListPageRequest { before, limit: page.limit, from: None };
    let found = store::affiliate::commission::list(state.affiliate.ledger.store(), account, &filter, wanted).await?;
    let lines = found.rows.iter().map(|line| LedgerLine {
        commission: CommissionObject::from(line),
        formula: line.formula(),
        balance_after_cents: sums.take(line),
    });
    let lines = lines.collect();
    Ok(ListResponse::new(lines, found.next.map(|last| sums.to_cursor(last))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_are_kept_in_the_cursor() {
        let sums = EarnedSums([("usd".parse().unwrap(), 1_500), ("eur".parse().unwrap(), -3)].into());
        let mut bytes = [7; ID_BYTES].to_vec();
        bytes.extend_from_slice(b"eur");
        bytes.extend_from_slice(&(-3_i64).to_be_bytes());
        bytes.extend_from_slice(b"usd");
        bytes.extend_from_slice(&1_500_i64.to_be_bytes());
        assert_eq!(sums.to_cursor([7; ID_BYTES]), paging::after_bytes(KIND_LEDGER, &bytes));
        assert_eq!(EarnedSums::from_cursor(&bytes), Some(([7; ID_BYTES], sums)));
        for wrong in [&bytes[..10], &bytes[..20]] {
            assert_eq!(EarnedSums::from_cursor(wrong), None);
        }
    }
}
