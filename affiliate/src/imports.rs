//! Importing partners from a list: planned whole, then taken in one by one.
//!
//! ```text
//! CSV ─► rows (mail::affiliate::partner_list) ─► [plan]: who joins with which token, who is skipped and why
//!                                                  └─ unless it is a dry run ─► each a commit with its events and letter
//! ```
//!
//! A list that was cut off in the middle is sent again: who is in already is skipped then.

use std::collections::{BTreeMap, BTreeSet};

use futures_util::stream::{self, StreamExt as _};
use mail::address::Address;
use mail::affiliate::partner::{Partner, PartnerSource, Token};
use mail::affiliate::partner_list::{List, Listed, Row};
use mail::id::{AccountId, PartnerId};
use serde::Serialize;
use store::affiliate::{partner, partner_link};

use crate::letters::MailWarning;
use crate::links::VARIANTS_MAX;
use crate::office::{Office, nothing_beside};
use crate::partners::{PARENTS_MAX, PartnerDraft};
use crate::refusal::{Obstacle, Refusal};

/// Partners who are taken in at the same time: their commits share a write to the disk.
const AT_ONCE: usize = 32;

/// How a list is imported.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Manner {
    /// It is only said what would become of it.
    pub dry_run: bool,
    /// Partners are written to.
    pub send_invites: bool,
}

/// A partner of the list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Imported {
    /// Its row, from 1.
    pub row: usize,
    /// Its address.
    pub email: String,
    /// The token of its link.
    pub token: String,
    /// Its id; none in a dry run.
    pub id: Option<PartnerId>,
}

/// A row that is left out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SkippedRow {
    /// The row, from 1.
    pub row: usize,
    /// The address as it stands there.
    pub email: String,
    /// Why: `invalid_email`, `duplicate_in_file`, `already_partner` or `invalid_` and the name of a column.
    pub reason: String,
}

/// What an import came to.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Import {
    /// Whether nothing was written.
    pub dry_run: bool,
    /// How many partners joined, or would.
    pub imported: usize,
    /// Who they are.
    pub partners: Vec<Imported>,
    /// Which rows are left out.
    pub skipped: Vec<SkippedRow>,
    /// Columns that are none of ours and were passed over, by their names.
    pub ignored_columns: Vec<String>,
    /// What was not done of what was asked for.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}

/// A partner who is to join.
struct Joining {
    row: usize,
    listed: Listed,
    token: Token,
    /// Recruiters above it.
    above: usize,
}

/// A partner who has joined.
struct TakenIn {
    id: PartnerId,
    token: String,
    warning: Option<MailWarning>,
}

/// What the owner, and the operator by a line of the log, is told of partners of a list who are not written to.
fn warnings(account: AccountId, unmailed: &[MailWarning]) -> Option<String> {
    let (first, count) = (unmailed.first()?, unmailed.len());
    tracing::warn!(account.id = %account, count, cause = %first, "partners of a list are not mailed");
    Some(format!("{count} of the partners are not written to as asked; of the first: {first}"))
}

/// What is to be done with a list.
#[derive(Default)]
struct Plan {
    joining: Vec<Joining>,
    skipped: Vec<SkippedRow>,
}

impl Plan {
    fn skip(&mut self, row: usize, email: impl Into<String>, reason: impl Into<String>) {
        self.skipped.push(SkippedRow { row, email: email.into(), reason: reason.into() });
    }
}

/// Addresses are the same whatever their case.
fn key_of(email: &Address) -> String {
    email.to_string().to_lowercase()
}

impl Office {
    /// Imports a list of partners, or says what would become of it.
    ///
    /// # Errors
    /// The program is not set up; the store cannot be read or written.
    pub async fn import_partners(
        &self,
        account: AccountId,
        List { rows, ignored_columns }: List,
        manner: Manner,
    ) -> Result<Import, Refusal> {
        let Plan { joining, mut skipped } = self.plan(account, rows).await?;
        let (mut partners, mut unmailed) = (Vec::with_capacity(joining.len()), Vec::new());
        if manner.dry_run {
            partners.extend(joining.iter().map(|one| imported(one, None)));
        } else {
            let mut ids: BTreeMap<String, PartnerId> = BTreeMap::new();
            for generation in generations(joining) {
                let taking: Vec<_> =
                    generation.iter().map(|one| self.take_in(account, one, &ids, manner)).collect();
                let taken: Vec<_> = stream::iter(taking).buffered(AT_ONCE).collect().await;
                for (one, taken) in generation.iter().zip(taken) {
                    match taken {
                        Ok(TakenIn { id, token, warning }) => {
                            unmailed.extend(warning);
                            ids.insert(key_of(&one.listed.email), id);
                            partners.push(Imported { token, ..imported(one, Some(id)) });
                        }
                        // Somebody added it meanwhile.
                        Err(Refusal::Obstacle(Obstacle::EmailTaken)) => skipped.push(SkippedRow {
                            row: one.row,
                            email: one.listed.email.to_string(),
                            reason: "already_partner".to_owned(),
                        }),
                        Err(refusal) => return Err(refusal),
                    }
                }
            }
        }
        partners.sort_by_key(|partner| partner.row);
        skipped.sort_by_key(|skipped| skipped.row);
        let warnings = warnings(account, &unmailed).into_iter().collect();
        let (dry_run, imported) = (manner.dry_run, partners.len());
        Ok(Import { dry_run, imported, partners, skipped, ignored_columns, warnings })
    }

    async fn plan(&self, account: AccountId, rows: Vec<Row>) -> Result<Plan, Refusal> {
        let program = self.set_up(account).await?;
        let (mut plan, mut emails, mut tokens) = (Plan::default(), BTreeSet::new(), BTreeSet::new());
        let mut campaigns: BTreeMap<String, bool> = BTreeMap::new();
        for Row { number, email, partner } in rows {
            let listed = match partner {
                Ok(listed) => listed,
                Err(column) => {
                    plan.skip(number, email, format!("invalid_{column}"));
                    continue;
                }
            };
            if !emails.insert(key_of(&listed.email)) {
                plan.skip(number, email, "duplicate_in_file");
                continue;
            }
            if partner::with_email(self.store(), account, &listed.email).await?.is_some() {
                plan.skip(number, email, "already_partner");
                continue;
            }
            if let Some(named) = &listed.campaign {
                let is_there = match campaigns.get(named) {
                    Some(known) => *known,
                    None => match self.campaign_for_partners(&program, Some(named)).await {
                        Ok(_) => true,
                        Err(Refusal::Fields(_)) => false,
                        Err(refusal) => return Err(refusal),
                    },
                };
                campaigns.insert(named.clone(), is_there);
                if !is_there {
                    plan.skip(number, email, "invalid_campaign");
                    continue;
                }
            }
            let token = self.token_for(account, &listed, &mut tokens).await?;
            plan.joining.push(Joining { row: number, listed, token, above: 0 });
        }
        self.find_recruiters(account, &mut plan).await?;
        Ok(plan)
    }

    /// A token that neither the program nor the list has.
    async fn token_for(
        &self,
        account: AccountId,
        listed: &Listed,
        tokens: &mut BTreeSet<String>,
    ) -> Result<Token, Refusal> {
        let first = listed.token.clone().unwrap_or_else(|| self.token_of(&draft(listed, None, false)));
        let now = self.now();
        for number in 1..=VARIANTS_MAX {
            let token = if number == 1 { first.clone() } else { first.variant(number) };
            if !tokens.contains(&token.as_str().to_lowercase())
                && partner_link::free(self.store(), account, &token, now).await?.is_some()
            {
                tokens.insert(token.as_str().to_lowercase());
                return Ok(token);
            }
        }
        // Hundreds of the same name: a random end finds a free one.
        Ok(first.variant(u32::try_from(self.random() % 1_000_000_000).unwrap_or(u32::MAX)))
    }

    /// Leaves out who names a recruiter who is neither a partner nor in the list, or is its own by whatever way, or has
    /// more recruiters above it than there may be.
    async fn find_recruiters(&self, account: AccountId, plan: &mut Plan) -> Result<(), Refusal> {
        let joining = std::mem::take(&mut plan.joining);
        let keys: Vec<(String, Option<String>)> = joining
            .iter()
            .map(|one| (key_of(&one.listed.email), one.listed.parent_email.as_ref().map(key_of)))
            .collect();
        let named: BTreeMap<&str, Option<&str>> =
            keys.iter().map(|(email, parent)| (email.as_str(), parent.as_deref())).collect();
        let mut known = BTreeMap::new();
        for parent in joining.iter().filter_map(|one| one.listed.parent_email.as_ref()) {
            let key = key_of(parent);
            if !named.contains_key(key.as_str()) && !known.contains_key(&key) {
                let found = partner::with_email(self.store(), account, parent).await?;
                let above = match found {
                    Some(found) => Some(self.recruiters_above(&found).await?),
                    None => None,
                };
                known.insert(key, above);
            }
        }
        let mut above = Above { named, known, found: BTreeMap::new() };
        for (one, (email, _)) in joining.into_iter().zip(&keys) {
            match above.of(email) {
                Some(above) => plan.joining.push(Joining { above, ..one }),
                None => plan.skip(one.row, one.listed.email.to_string(), "invalid_parent_email"),
            }
        }
        Ok(())
    }

    /// How many recruiters are above a partner; more than there may be where they do not end.
    async fn recruiters_above(&self, partner: &Partner) -> Result<usize, Refusal> {
        let mut next = partner.parent;
        for above in 0..=PARENTS_MAX {
            let Some(parent) = next else { return Ok(above) };
            next = partner::get(self.store(), partner.account, parent).await?.and_then(|found| found.parent);
        }
        Ok(PARENTS_MAX + 1)
    }

    async fn take_in(
        &self,
        account: AccountId,
        one: &Joining,
        ids: &BTreeMap<String, PartnerId>,
        manner: Manner,
    ) -> Result<TakenIn, Refusal> {
        let parent = match &one.listed.parent_email {
            None => None,
            Some(email) => match ids.get(&key_of(email)) {
                Some(id) => Some(*id),
                None => partner::with_email(self.store(), account, email).await?.map(|partner| partner.id),
            },
        };
        let mut draft = draft(&one.listed, parent, manner.send_invites);
        draft.token = Some(one.token.clone());
        for number in 2..=VARIANTS_MAX {
            match self.take_in_partner(account, &draft, &nothing_beside).await {
                Ok(shown) => {
                    let token = shown.links.first().map(|link| link.token.as_str().to_owned());
                    return Ok(TakenIn {
                        id: shown.partner.id,
                        token: token.unwrap_or_default(),
                        warning: shown.warning,
                    });
                }
                // Somebody took it since it was planned.
                Err(Refusal::Obstacle(Obstacle::TokenTaken)) => {
                    draft.token = Some(one.token.variant(number));
                }
                Err(refusal) => return Err(refusal),
            }
        }
        Err(Obstacle::Changed.into())
    }
}

/// How many recruiters are above each partner of a list; nothing where they do not end, or are too many. Each is looked at
/// once, whatever recruits whom.
struct Above<'a> {
    /// Who recruited whom, by the list.
    named: BTreeMap<&'a str, Option<&'a str>>,
    /// How many are above those who are partners already; nothing where there is no such partner.
    known: BTreeMap<String, Option<usize>>,
    found: BTreeMap<&'a str, Option<usize>>,
}

impl<'a> Above<'a> {
    fn of(&mut self, email: &'a str) -> Option<usize> {
        // Down from whom something is known of, or from nobody; a ring ends with who is on the way already.
        let (mut way, mut at) = (Vec::new(), email);
        let mut above = loop {
            if let Some(found) = self.found.get(at) {
                break *found;
            }
            match self.named.get(at) {
                None => break self.known.get(at).copied().flatten(),
                Some(recruiter) => {
                    // Found again on the way, it is its own recruiter.
                    self.found.insert(at, None);
                    way.push(at);
                    let Some(recruiter) = recruiter else {
                        self.found.insert(at, Some(0));
                        way.pop();
                        break Some(0);
                    };
                    at = recruiter;
                }
            }
        };
        for one in way.into_iter().rev() {
            above = above.map(|above| above + 1).filter(|above| *above <= PARENTS_MAX);
            self.found.insert(one, above);
        }
        above
    }
}

/// Recruiters before those whom they recruited.
fn generations(joining: Vec<Joining>) -> Vec<Vec<Joining>> {
    let mut generations: BTreeMap<usize, Vec<Joining>> = BTreeMap::new();
    for one in joining {
        generations.entry(one.above).or_default().push(one);
    }
    generations.into_values().collect()
}

fn imported(one: &Joining, id: Option<PartnerId>) -> Imported {
    Imported { row: one.row, email: one.listed.email.to_string(), token: one.token.as_str().to_owned(), id }
}

fn draft(listed: &Listed, parent: Option<PartnerId>, send_invite: bool) -> PartnerDraft {
    PartnerDraft {
        email: listed.email.clone(),
        first_name: listed.first_name.clone(),
        last_name: listed.last_name.clone(),
        company: listed.company.clone(),
        website: listed.website.clone(),
        country: listed.country.clone(),
        campaign: listed.campaign.clone(),
        token: listed.token.clone(),
        status: listed.status,
        paypal_email: listed.paypal_email.clone(),
        tags: listed.tags.clone(),
        notes: listed.notes.clone(),
        source: PartnerSource::Import,
        parent,
        send_invite,
        terms_accepted: false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recruiters_are_counted_once_each() {
        let names: Vec<String> = (0..100_000).map(|number| format!("p{number}@x.example")).collect();
        let mut named: BTreeMap<&str, Option<&str>> = BTreeMap::new();
        // A chain that is longer than there may be, from its end on: whoever goes up it anew each time does not end.
        for pair in names.windows(2) {
            named.insert(&pair[1], Some(&pair[0]));
        }
        named.insert(&names[0], None);
        named.extend([("ring", Some("a")), ("a", Some("b")), ("b", Some("a")), ("own", Some("own"))]);
        named.extend([("lost", Some("nobody")), ("of-old", Some("old")), ("of-low", Some("low"))]);
        let known = [("old", Some(3)), ("low", Some(PARENTS_MAX)), ("nobody", None)];
        let known = known.map(|(name, above)| (name.to_owned(), above)).into();
        let mut above = Above { named, known, found: BTreeMap::new() };
        for number in (0..names.len()).rev() {
            assert_eq!(above.of(&names[number]), Some(number).filter(|above| *above <= PARENTS_MAX));
        }
        for (name, expected) in [
            ("ring", None),
            ("a", None),
            ("own", None),
            ("lost", None),
            ("of-old", Some(4)),
            ("of-low", None),
        ] {
            assert_eq!(above.of(name), expected, "{name}");
        }
    }
}
