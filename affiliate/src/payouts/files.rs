//! A run's payouts as files, for the ways by which people pay: one for each method, currency and part.
//!
//! Parts are cut by the payouts of the run as it was approved, so that a file that is asked for again has the same
//! payouts; those that failed meanwhile are left out, since their money goes with the next run.

use std::collections::{BTreeMap, BTreeSet};

use mail::affiliate::money::Currency;
use mail::affiliate::payout::{Payout, PayoutFileFormat, PayoutFileRow, PayoutRun, PayoutState};
use mail::affiliate::program::PayoutMethod;
use mail::id::{AccountId, PartnerId, PayoutRunId};
use store::affiliate::{partner, payout};

use crate::ledger::Ledger;
use crate::refusal::{AffiliateError, ConflictReason};

/// Payouts that are read at once.
const ROWS_AT_ONCE: usize = 500;
/// The largest number of a part.
pub(super) const PART_MAX: usize = 100_000;

/// Which files.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct FileSelection {
    /// Of this method; of all that people pay by.
    pub method: Option<PayoutMethod>,
    /// Of this currency; of all.
    pub currency: Option<Currency>,
    /// In this form; in the method's own.
    pub format: Option<PayoutFileFormat>,
}

/// A file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PayoutFile {
    /// What it may be called.
    pub name: String,
    /// By which way its payouts are paid.
    pub method: PayoutMethod,
    /// In which currency.
    pub currency: Currency,
    /// In which form it is written.
    pub format: PayoutFileFormat,
    /// Payouts in it.
    pub rows: usize,
    /// The file.
    pub content: String,
}

type FileKind = (PayoutMethod, Currency);

impl FileSelection {
    fn matches(&self, payout: &Payout) -> bool {
        // What the processor pays is none of a file's, unless it is asked for.
        self.method.map_or(payout.method.is_manual(), |method| method == payout.method)
            && self.currency.is_none_or(|currency| currency == payout.currency)
            && payout.state != PayoutState::Dropped
    }

    fn format_of(&self, method: PayoutMethod) -> Result<PayoutFileFormat, AffiliateError> {
        let format = self.format.unwrap_or(PayoutFileFormat::for_method(method));
        if format.accepts_method(method) {
            return Ok(format);
        }
        Err(AffiliateError::field("format", format!("payouts by {method} do not go into a file for {format}")))
    }
}

impl Ledger {
    /// The kinds of files of a run.
    async fn file_kinds(&self, run: &PayoutRun, which: &FileSelection) -> Result<BTreeSet<FileKind>, AffiliateError> {
        let (mut kinds, mut after) = (BTreeSet::new(), None);
        loop {
            let found = payout::list_by_run(self.store(), (run.account, run.id), after, ROWS_AT_ONCE).await?;
            let taken = found.iter().filter(|payout| which.matches(payout));
            kinds.extend(taken.map(|payout| (payout.method, payout.currency)));
            after = found.last().map(|last| last.id);
            if found.len() < ROWS_AT_ONCE {
                return Ok(kinds);
            }
        }
    }

    async fn run_to_pay(&self, account: AccountId, id: PayoutRunId) -> Result<PayoutRun, AffiliateError> {
        let run = self.get_run(account, id).await?;
        if run.is_approved() { Ok(run) } else { Err(ConflictReason::RunNotApproved.into()) }
    }

    /// One file of a run. Where the run has one kind only, that need not be said.
    ///
    /// # Errors
    /// The run is not approved; several kinds fit; the part is none; [`Refusal`].
    pub async fn get_file(
        &self,
        (account, id): (AccountId, PayoutRunId),
        (which, part): (&FileSelection, usize),
    ) -> Result<PayoutFile, AffiliateError> {
        let run = self.run_to_pay(account, id).await?;
        let kind = match (which.method, which.currency) {
            (Some(method), Some(currency)) => (method, currency),
            _ => {
                let kinds = self.file_kinds(&run, which).await?;
                let field = if which.method.is_none() { "method" } else { "currency" };
                match (kinds.len(), kinds.first()) {
                    (1, Some(kind)) => *kind,
                    (0, _) => {
                        return Err(AffiliateError::field(field, "the run has no payouts of this kind"));
                    }
                    _ => {
                        let kinds: Vec<_> =
                            kinds.iter().map(|(method, currency)| format!("{method} {currency}")).collect();
                        let why = format!("say which: the run has {}", kinds.join(", "));
                        return Err(AffiliateError::field(field, why));
                    }
                }
            }
        };
        let file = self.write(&run, kind, (which.format_of(kind.0)?, part)).await?;
        file.ok_or_else(|| AffiliateError::field("part", "there are not as many parts"))
    }

    /// All files of a run.
    ///
    /// # Errors
    /// The run is not approved; [`Refusal`].
    pub async fn list_files(
        &self,
        (account, id): (AccountId, PayoutRunId),
        which: &FileSelection,
    ) -> Result<Vec<PayoutFile>, AffiliateError> {
        let run = self.run_to_pay(account, id).await?;
        let mut files = Vec::new();
        for kind in self.file_kinds(&run, which).await? {
            let format = which.format_of(kind.0)?;
            for part in 1..=PART_MAX {
                let Some(file) = self.write(&run, kind, (format, part)).await? else { break };
                files.push(file);
            }
        }
        Ok(files)
    }

    /// A part; nothing when there are not as many. There is always a first one.
    async fn write(
        &self,
        run: &PayoutRun,
        (method, currency): FileKind,
        (format, part): (PayoutFileFormat, usize),
    ) -> Result<Option<PayoutFile>, AffiliateError> {
        let which = FileSelection { method: Some(method), currency: Some(currency), format: None };
        let (first, most) = (part.saturating_sub(1).saturating_mul(format.rows_max()), format.rows_max());
        let (mut at, mut rows, mut content, mut after) = (0_usize, 0_usize, String::new(), None);
        format.write_header(&mut content);
        let end = first.saturating_add(most);
        loop {
            let found = payout::list_by_run(self.store(), (run.account, run.id), after, ROWS_AT_ONCE).await?;
            after = found.last().map(|last| last.id);
            let is_last = found.len() < ROWS_AT_ONCE;
            let mut taken: Vec<Payout> = Vec::new();
            for payout in found.into_iter().filter(|payout| which.matches(payout)) {
                // What is settled is not paid again by who fetches the file again.
                let is_settled = matches!(payout.state, PayoutState::Failed | PayoutState::Paid);
                if (first..end).contains(&at) && !is_settled {
                    taken.push(payout);
                }
                at = at.saturating_add(1);
            }
            rows = rows.saturating_add(taken.len());
            self.write_rows(&mut content, format, &taken).await?;
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

    async fn write_rows(
        &self,
        content: &mut String,
        format: PayoutFileFormat,
        taken: &[Payout],
    ) -> Result<(), AffiliateError> {
        let Some(account) = taken.first().map(|payout| payout.account) else { return Ok(()) };
        let ids: Vec<PartnerId> = taken.iter().map(|payout| payout.partner).collect();
        let partners = partner::get_each(self.store(), account, &ids).await?;
        let known: BTreeMap<_, _> = partners.into_iter().flatten().map(|one| (one.id, one)).collect();
        for payout in taken {
            let partner = known.get(&payout.partner);
            let name = partner.map(mail::affiliate::partner::Partner::name).unwrap_or_default();
            let email = partner.map(|partner| partner.email.to_string()).unwrap_or_default();
            format.write_row(content, PayoutFileRow { payout, name: &name, email: &email });
        }
        Ok(())
    }
}
