//! Payout files of a run, for paying outside the processor: one per method, currency and part.
//!
//! Parts are cut by the payouts of the run as approved, so a repeated request yields the same part. Failed payouts are
//! left out, because the next run pays them; so are paid ones.

use std::collections::{BTreeMap, BTreeSet};

use model::affiliate::money::Currency;
use model::affiliate::payout::{Payout, PayoutFileFormat, PayoutFileRow, PayoutRun, PayoutState};
use model::affiliate::program::PayoutMethod;
use model::id::{AccountId, PartnerId, PayoutRunId};
use store::affiliate::{partner, payout};

use crate::context::Context;
use crate::error::{AffiliateError, ConflictReason, Result};

/// Page size.
const ROWS_AT_ONCE: usize = 500;
pub(super) const PART_MAX: usize = 100_000;

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct FileSelection {
    /// All methods paid by hand if `None`.
    pub method: Option<PayoutMethod>,
    /// All currencies if `None`.
    pub currency: Option<Currency>,
    /// The method's own format if `None`.
    pub format: Option<PayoutFileFormat>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PayoutFile {
    /// Suggested file name.
    pub name: String,
    pub method: PayoutMethod,
    pub currency: Currency,
    pub format: PayoutFileFormat,
    pub rows: usize,
    pub content: String,
}

type FileKind = (PayoutMethod, Currency);

impl FileSelection {
    fn matches(&self, payout: &Payout) -> bool {
        // Payouts by the processor's transfers are in a file only if their method is requested.
        self.method.map_or(payout.method.is_manual(), |method| method == payout.method)
            && self.currency.is_none_or(|currency| currency == payout.currency)
            && payout.state != PayoutState::Dropped
    }

    fn format_of(&self, method: PayoutMethod) -> Result<PayoutFileFormat> {
        let format = self.format.unwrap_or(PayoutFileFormat::for_method(method));
        if format.accepts_method(method) {
            return Ok(format);
        }
        Err(AffiliateError::field("format", format!("format {format} does not support payouts by {method}")))
    }
}

impl Context {
    /// Returns the combinations of method and currency in a run.
    async fn file_kinds(&self, run: &PayoutRun, selection: &FileSelection) -> Result<BTreeSet<FileKind>> {
        let (mut kinds, mut after) = (BTreeSet::new(), None);
        loop {
            let found = payout::list_by_run(&self.store, run.account, run.id, after, ROWS_AT_ONCE).await?;
            let selected = found.iter().filter(|payout| selection.matches(payout));
            kinds.extend(selected.map(|payout| (payout.method, payout.currency)));
            after = found.last().map(|last| last.id);
            if found.len() < ROWS_AT_ONCE {
                return Ok(kinds);
            }
        }
    }

    async fn run_to_pay(&self, account: AccountId, id: PayoutRunId) -> Result<PayoutRun> {
        let run = self.get_run(account, id).await?;
        if run.is_approved() { Ok(run) } else { Err(ConflictReason::RunNotApproved.into()) }
    }

    /// Returns one file of a run. Method and currency are optional if the run has one combination only.
    ///
    /// # Errors
    /// `RunNotApproved`; a field error if several or no combinations match, or the part does not exist; `NotFound`; the
    /// store failed.
    pub async fn get_payout_file(
        &self,
        account: AccountId,
        id: PayoutRunId,
        selection: &FileSelection,
        part: usize,
    ) -> Result<PayoutFile> {
        let run = self.run_to_pay(account, id).await?;
        let kind = match (selection.method, selection.currency) {
            (Some(method), Some(currency)) => (method, currency),
            _ => {
                let kinds = self.file_kinds(&run, selection).await?;
                let field = if selection.method.is_none() { "method" } else { "currency" };
                match (kinds.len(), kinds.first()) {
                    (1, Some(kind)) => *kind,
                    (0, _) => {
                        return Err(AffiliateError::field(field, "the run has no such payouts"));
                    }
                    _ => {
                        let kinds: Vec<_> =
                            kinds.iter().map(|(method, currency)| format!("{method} {currency}")).collect();
                        let reason = format!("is required: the run has {}", kinds.join(", "));
                        return Err(AffiliateError::field(field, reason));
                    }
                }
            }
        };
        let file = self.write_payout_file(&run, kind, selection.format_of(kind.0)?, part).await?;
        file.ok_or_else(|| AffiliateError::field("part", "the run has fewer parts"))
    }

    /// Returns all files of a run.
    ///
    /// # Errors
    /// `RunNotApproved`; `NotFound`; the store failed.
    pub async fn list_payout_files(
        &self,
        account: AccountId,
        id: PayoutRunId,
        selection: &FileSelection,
    ) -> Result<Vec<PayoutFile>> {
        let run = self.run_to_pay(account, id).await?;
        let mut files = Vec::new();
        for kind in self.file_kinds(&run, selection).await? {
            let format = selection.format_of(kind.0)?;
            for part in 1..=PART_MAX {
                let Some(file) = self.write_payout_file(&run, kind, format, part).await? else { break };
                files.push(file);
            }
        }
        Ok(files)
    }

    /// Renders a part; `None` if there are fewer parts. Part 1 always exists.
    async fn write_payout_file(
        &self,
        run: &PayoutRun,
        (method, currency): FileKind,
        format: PayoutFileFormat,
        part: usize,
    ) -> Result<Option<PayoutFile>> {
        let selection = FileSelection { method: Some(method), currency: Some(currency), format: None };
        let (first, limit) = (part.saturating_sub(1).saturating_mul(format.rows_max()), format.rows_max());
        let (mut at, mut rows, mut content, mut after) = (0_usize, 0_usize, String::new(), None);
        format.write_header(&mut content);
        let end = first.saturating_add(limit);
        loop {
            let found = payout::list_by_run(&self.store, run.account, run.id, after, ROWS_AT_ONCE).await?;
            after = found.last().map(|last| last.id);
            let is_last = found.len() < ROWS_AT_ONCE;
            let mut payouts: Vec<Payout> = Vec::new();
            for payout in found.into_iter().filter(|payout| selection.matches(payout)) {
                // A settled payout must not be paid again from a later copy of the file.
                let is_settled = matches!(payout.state, PayoutState::Failed | PayoutState::Paid);
                if (first..end).contains(&at) && !is_settled {
                    payouts.push(payout);
                }
                at = at.saturating_add(1);
            }
            rows = rows.saturating_add(payouts.len());
            self.write_payout_rows(&mut content, format, &payouts).await?;
            if is_last || at >= end {
                break;
            }
        }
        if part > 1 && at <= first {
            return Ok(None);
        }
        let name = format!("{}-{method}-{currency}-{part}.csv", run.id);
        Ok(Some(PayoutFile { name, method, currency, format, rows, content }))
    }

    async fn write_payout_rows(
        &self,
        content: &mut String,
        format: PayoutFileFormat,
        payouts: &[Payout],
    ) -> Result<()> {
        let Some(account) = payouts.first().map(|payout| payout.account) else { return Ok(()) };
        let ids: Vec<PartnerId> = payouts.iter().map(|payout| payout.partner).collect();
        let partners = partner::get_each(&self.store, account, &ids).await?;
        let partners_by_id: BTreeMap<_, _> =
            partners.into_iter().flatten().map(|partner| (partner.id, partner)).collect();
        for payout in payouts {
            let partner = partners_by_id.get(&payout.partner);
            let name = partner.map(model::affiliate::partner::Partner::name).unwrap_or_default();
            let email = partner.map(|partner| partner.email.to_string()).unwrap_or_default();
            format.write_row(content, PayoutFileRow { payout, name: &name, email: &email });
        }
        Ok(())
    }
}
