//! Partner import from CSV: the whole list is planned first, then each partner is created in a commit of its own.
//!
//! ```text
//! CSV ─► rows (model::affiliate::partner_list) ─► [plan_import]: who joins with which token, which rows are skipped
//!                                                  └─ unless a dry run ─► one commit each, with events and email
//! ```
//!
//! An import that was interrupted can be repeated: existing partners are skipped.

use std::collections::{BTreeMap, BTreeSet};

use futures_util::stream::{self, StreamExt as _};
use message::address::Address;
use model::affiliate::partner::{Partner, PartnerLinkToken};
use model::affiliate::partner_fields::PartnerDraft;
use model::affiliate::partner_import::{ImportedPartner, PartnerImport, PartnerImportRow};
use model::id::{AccountId, PartnerId};
use schema::ToSchema;
use serde::Serialize;
use store::affiliate::{partner, partner_link};

use crate::context::no_extension;
use crate::error::{AffiliateError, ConflictReason, MailWarning, Result};
use crate::partners::links::VARIANTS_MAX;

use crate::partners::changes::{PARENTS_MAX, Partners};

/// Partners that are created concurrently: their commits share a disk write.
const AT_ONCE: usize = 32;

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ImportOptions {
    /// Preview only; nothing is written.
    pub dry_run: bool,
    /// Send each partner its welcome or invitation email.
    pub send_invites: bool,
}

/// An imported partner
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct ImportedPartnerResult {
    /// The row number, from 1; the header line is not counted
    pub row: usize,
    /// The email address
    pub email: String,
    /// The token of the partner's link
    pub token: String,
    /// The partner's id (`aff_…`); null in a dry run
    pub id: Option<PartnerId>,
}

/// A skipped row
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct SkippedImportRow {
    /// The row number, from 1; the header line is not counted
    pub row: usize,
    /// The address as given in the file
    pub email: String,
    /// `invalid_email`, `duplicate_in_file`, `already_partner`, or `invalid_` and a column
    pub reason: String,
}

/// The result of an import of partners
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, ToSchema)]
#[schema(name = "AffiliateImport")]
pub struct PartnerImportResult {
    /// Whether this was a preview that changed nothing
    pub dry_run: bool,
    /// Number of partners imported, or to be imported in a dry run
    pub imported: usize,
    /// The imported partners
    pub partners: Vec<ImportedPartnerResult>,
    /// Skipped rows
    pub skipped: Vec<SkippedImportRow>,
    /// Columns that were ignored
    #[schema(items = {"type": "string", "description": "The column name as given in the file"})]
    pub ignored_columns: Vec<String>,
    /// E.g. that partners were not mailed
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(skip)]
    pub warnings: Vec<String>,
}

/// A row that passed validation.
struct PlannedPartner {
    row: usize,
    listed: ImportedPartner,
    token: PartnerLinkToken,
    /// Length of the chain of recruiters above it.
    recruiters_above: usize,
}

struct CreatedPartner {
    id: PartnerId,
    token: String,
    warning: Option<MailWarning>,
}

/// Builds the warning for partners that could not be mailed, and logs it for the operator.
fn mail_warning(account: AccountId, unmailed: &[MailWarning]) -> Option<String> {
    let (first, count) = (unmailed.first()?, unmailed.len());
    tracing::warn!(account.id = %account, count, cause = %first, "imported partners were not emailed");
    Some(match count {
        1 => format!("1 partner was not emailed: {first}"),
        _ => format!("{count} partners were not emailed; the first: {first}"),
    })
}

/// Validated rows and skipped rows of a list.
#[derive(Default)]
struct ImportPlan {
    planned: Vec<PlannedPartner>,
    skipped: Vec<SkippedImportRow>,
}

impl ImportPlan {
    fn skip(&mut self, row: usize, email: impl Into<String>, reason: impl Into<String>) {
        self.skipped.push(SkippedImportRow { row, email: email.into(), reason: reason.into() });
    }
}

/// Emails are compared case-insensitively.
fn email_key(email: &Address) -> String {
    email.to_string().to_lowercase()
}

impl Partners {
    /// Imports a list of partners, or previews the import in a dry run.
    ///
    /// # Errors
    /// The program is not set up; the store cannot be read or written.
    pub async fn import_partners(
        &self,
        account: AccountId,
        PartnerImport { rows, ignored_columns }: PartnerImport,
        options: ImportOptions,
    ) -> Result<PartnerImportResult> {
        let ImportPlan { planned, mut skipped } = self.plan_import(account, rows).await?;
        let (mut partners, mut unmailed) = (Vec::with_capacity(planned.len()), Vec::new());
        if options.dry_run {
            partners.extend(planned.iter().map(|planned_partner| imported_partner(planned_partner, None)));
        } else {
            let mut ids: BTreeMap<String, PartnerId> = BTreeMap::new();
            for generation in generations(planned) {
                let imports: Vec<_> = generation
                    .iter()
                    .map(|planned_partner| self.import_one(account, planned_partner, &ids, options))
                    .collect();
                let results: Vec<_> = stream::iter(imports).buffered(AT_ONCE).collect().await;
                for (planned_partner, result) in generation.iter().zip(results) {
                    match result {
                        Ok(CreatedPartner { id, token, warning }) => {
                            unmailed.extend(warning);
                            ids.insert(email_key(&planned_partner.listed.draft.email), id);
                            partners
                                .push(ImportedPartnerResult { token, ..imported_partner(planned_partner, Some(id)) });
                        }
                        // Another request created the partner since the plan was made.
                        Err(AffiliateError::Conflict(ConflictReason::EmailTaken)) => skipped.push(SkippedImportRow {
                            row: planned_partner.row,
                            email: planned_partner.listed.draft.email.to_string(),
                            reason: "already_partner".to_owned(),
                        }),
                        Err(refusal) => return Err(refusal),
                    }
                }
            }
        }
        partners.sort_by_key(|partner| partner.row);
        skipped.sort_by_key(|skipped| skipped.row);
        let warnings = mail_warning(account, &unmailed).into_iter().collect();
        let (dry_run, imported) = (options.dry_run, partners.len());
        Ok(PartnerImportResult { dry_run, imported, partners, skipped, ignored_columns, warnings })
    }

    async fn plan_import(&self, account: AccountId, rows: Vec<PartnerImportRow>) -> Result<ImportPlan> {
        let program = self.context.require_set_up(account).await?;
        let (mut plan, mut emails, mut tokens) = (ImportPlan::default(), BTreeSet::new(), BTreeSet::new());
        let mut campaigns: BTreeMap<String, bool> = BTreeMap::new();
        for PartnerImportRow { number, email, partner } in rows {
            let listed = match partner {
                Ok(listed) => listed,
                Err(column) => {
                    plan.skip(number, email, format!("invalid_{column}"));
                    continue;
                }
            };
            if !emails.insert(email_key(&listed.draft.email)) {
                plan.skip(number, email, "duplicate_in_file");
                continue;
            }
            if partner::find_by_email(&self.context.store, account, &listed.draft.email).await?.is_some() {
                plan.skip(number, email, "already_partner");
                continue;
            }
            if let Some(named) = &listed.draft.campaign {
                let is_known = match campaigns.get(named) {
                    Some(exists) => *exists,
                    None => match self.context.find_campaign_for_partners(&program, Some(named)).await {
                        Ok(_) => true,
                        Err(AffiliateError::Fields(_)) => false,
                        Err(refusal) => return Err(refusal),
                    },
                };
                campaigns.insert(named.clone(), is_known);
                if !is_known {
                    plan.skip(number, email, "invalid_campaign");
                    continue;
                }
            }
            let token = self.choose_token(account, &listed, &mut tokens).await?;
            plan.planned.push(PlannedPartner { row: number, listed, token, recruiters_above: 0 });
        }
        self.resolve_recruiters(account, &mut plan).await?;
        Ok(plan)
    }

    /// Chooses a token that is unused in the program and in the list.
    async fn choose_token(
        &self,
        account: AccountId,
        listed: &ImportedPartner,
        tokens: &mut BTreeSet<String>,
    ) -> Result<PartnerLinkToken> {
        let first = listed.draft.token.clone().unwrap_or_else(|| self.default_token(&listed.draft));
        let now = self.context.now();
        for number in 1..=VARIANTS_MAX {
            let token = if number == 1 { first.clone() } else { first.variant(number) };
            if !tokens.contains(&token.as_str().to_lowercase())
                && partner_link::find_free_token(&self.context.store, account, &token, now).await?.is_some()
            {
                tokens.insert(token.as_str().to_lowercase());
                return Ok(token);
            }
        }
        // All numbered variants are taken: use a random suffix.
        Ok(first.variant(u32::try_from(self.context.random() % 1_000_000_000).unwrap_or(u32::MAX)))
    }

    /// Skips rows whose recruiter is neither a partner nor in the list, whose recruiters form a cycle, or whose chain
    /// of recruiters is longer than [`PARENTS_MAX`].
    async fn resolve_recruiters(&self, account: AccountId, plan: &mut ImportPlan) -> Result<()> {
        let planned = std::mem::take(&mut plan.planned);
        let keys: Vec<(String, Option<String>)> = planned
            .iter()
            .map(|partner| {
                (email_key(&partner.listed.draft.email), partner.listed.parent_email.as_ref().map(email_key))
            })
            .collect();
        let listed: BTreeSet<&str> = keys.iter().map(|(email, _)| email.as_str()).collect();
        let (mut depths, mut known) = (BTreeMap::new(), BTreeSet::new());
        for parent in planned.iter().filter_map(|partner| partner.listed.parent_email.as_ref()) {
            let key = email_key(parent);
            if !listed.contains(key.as_str())
                && known.insert(key.clone())
                && let Some(found) = partner::find_by_email(&self.context.store, account, parent).await?
            {
                depths.insert(key, self.count_recruiters_above(&found).await?);
            }
        }
        let depths = recruiter_depths(&keys, depths);
        for (partner, depth) in planned.into_iter().zip(depths) {
            match depth {
                Some(recruiters_above) => plan.planned.push(PlannedPartner { recruiters_above, ..partner }),
                None => plan.skip(partner.row, partner.listed.draft.email.to_string(), "invalid_parent_email"),
            }
        }
        Ok(())
    }

    /// Counts the recruiters above a partner, up to `PARENTS_MAX + 1`.
    async fn count_recruiters_above(&self, partner: &Partner) -> Result<usize> {
        let mut next = partner.parent;
        for above in 0..=PARENTS_MAX {
            let Some(parent) = next else { return Ok(above) };
            next = partner::get(&self.context.store, partner.account, parent).await?.and_then(|found| found.parent);
        }
        Ok(PARENTS_MAX + 1)
    }

    async fn import_one(
        &self,
        account: AccountId,
        planned_partner: &PlannedPartner,
        ids: &BTreeMap<String, PartnerId>,
        options: ImportOptions,
    ) -> Result<CreatedPartner> {
        let parent = match &planned_partner.listed.parent_email {
            None => None,
            Some(email) => match ids.get(&email_key(email)) {
                Some(id) => Some(*id),
                None => partner::find_by_email(&self.context.store, account, email).await?.map(|partner| partner.id),
            },
        };
        let token = Some(planned_partner.token.clone());
        let draft = planned_partner.listed.draft.clone();
        let mut draft = PartnerDraft { parent, token, send_invite: options.send_invites, ..draft };
        for number in 2..=VARIANTS_MAX {
            match self.create_partner_unlogged(account, &draft, &no_extension).await {
                Ok(view) => {
                    let token = view.links.first().map(|link| link.token.as_str().to_owned());
                    return Ok(CreatedPartner {
                        id: view.partner.id,
                        token: token.unwrap_or_default(),
                        warning: view.warning,
                    });
                }
                // Another request took the token since the plan was made.
                Err(AffiliateError::Conflict(ConflictReason::TokenTaken)) => {
                    draft.token = Some(planned_partner.token.variant(number));
                }
                Err(refusal) => return Err(refusal),
            }
        }
        Err(ConflictReason::Changed.into())
    }
}

/// Returns the length of the chain of recruiters above each row, given by email and recruiter; `None` for a cycle, a
/// missing recruiter or a chain that is too long. `depths` has the lengths of recruiters who are partners already. Each
/// round resolves the rows whose recruiter is resolved, so there are at most [`PARENTS_MAX`] + 2 rounds.
fn recruiter_depths(rows: &[(String, Option<String>)], mut depths: BTreeMap<String, usize>) -> Vec<Option<usize>> {
    let mut open: Vec<&(String, Option<String>)> = rows.iter().collect();
    loop {
        let depth = |recruiter: &Option<String>| match recruiter {
            None => Some(0),
            Some(recruiter) => depths.get(recruiter).map(|above| above + 1).filter(|above| *above <= PARENTS_MAX),
        };
        let resolved: Vec<_> =
            open.iter().filter_map(|(email, recruiter)| Some((email.clone(), depth(recruiter)?))).collect();
        if resolved.is_empty() {
            return rows.iter().map(|(email, _)| depths.get(email).copied()).collect();
        }
        depths.extend(resolved);
        open.retain(|(email, _)| !depths.contains_key(email));
    }
}

/// Groups rows by depth, so that recruiters are created before the partners they recruited.
fn generations(planned: Vec<PlannedPartner>) -> Vec<Vec<PlannedPartner>> {
    let mut generations: BTreeMap<usize, Vec<PlannedPartner>> = BTreeMap::new();
    for partner in planned {
        generations.entry(partner.recruiters_above).or_default().push(partner);
    }
    generations.into_values().collect()
}

fn imported_partner(partner: &PlannedPartner, id: Option<PartnerId>) -> ImportedPartnerResult {
    ImportedPartnerResult {
        row: partner.row,
        email: partner.listed.draft.email.to_string(),
        token: partner.token.as_str().to_owned(),
        id,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chains_of_recruiters_are_measured() {
        let names: Vec<String> = (0..10_000).map(|number| format!("p{number}@x.example")).collect();
        let row = |email: &str, recruiter: &str| (email.to_owned(), Some(recruiter.to_owned()));
        // A chain longer than allowed, from its lower end.
        let mut rows: Vec<_> = names.windows(2).rev().map(|pair| row(&pair[1], &pair[0])).collect();
        rows.push((names[0].clone(), None));
        let pairs = [("ring", "a"), ("a", "b"), ("b", "a"), ("own", "own"), ("lost", "nobody"), ("of-old", "old")];
        rows.extend(pairs.map(|(email, recruiter)| row(email, recruiter)));
        rows.push(row("of-low", "low"));
        let depths = recruiter_depths(&rows, [("old".to_owned(), 3), ("low".to_owned(), PARENTS_MAX)].into());
        for (number, depth) in (0..names.len()).rev().zip(&depths) {
            assert_eq!(*depth, Some(number).filter(|above| *above <= PARENTS_MAX));
        }
        assert_eq!(depths[names.len()..], [None, None, None, None, None, Some(4), None]);
    }
}
