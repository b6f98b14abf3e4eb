//! Comparing with the processor: what became of a charge by now, before its line is its partner's and before it is paid. A
//! refund or a dispute whose event was lost is heard of so (completions-affiliate.md 2.2, "Reconcile job").
//!
//! ```text
//! line ─► its invoice ─► charges, payments ─► GET each ─► refunded, disputed? ─► an event's body ─► [Ledger::take]
//! ```
//!
//! What the processor says once and for all, also that it knows of no such charge, is an answer. Where there is none, a
//! line waits some time for it, and is its partner's in the end: the run that pays it asks once more
//! (`affiliate/src/payouts/compare.rs`).

use std::collections::{BTreeMap, BTreeSet};
use std::future::Future;
use std::ops::RangeInclusive;

use futures_util::future::join_all;
use jiff::{SignedDuration, Timestamp};
use mail::affiliate::commission::{Commission, Comparison};
use mail::affiliate::program::Mode;
use mail::id::{AccountId, CommissionId};
use queue::courier::http::Answer as HttpAnswer;
use serde_json::Value;
use store::affiliate::{commission, program};
use store::engine::Batch;

use crate::backfill::escaped;
use crate::ledger::{Answer, Book, Fault, Ledger, PaidBy};
use crate::office::Office;
use crate::processor::{Page, event_about};

/// Invoices that are asked about side by side.
const AT_ONCE: usize = 16;
/// Lines that are looked at at once.
const LINES_AT_ONCE: usize = 200;
/// How often more is looked for before other work has its turn.
const ROUNDS_MAX: usize = 25;
/// How long it takes until is asked again, where there was no answer.
const AGAIN: SignedDuration = SignedDuration::from_mins(10);
/// For how long a line that would be its partner's waits for an answer.
const PATIENCE: SignedDuration = SignedDuration::from_hours(24);
/// Disputes of one charge.
const DISPUTES_MAX: usize = 100;

/// What came of asking about an invoice.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Compared {
    /// What the processor says is in the ledger.
    Heard,
    /// It did not answer, or not to the point: why.
    Unanswered(String),
}

/// Who asks what became of an invoice's money.
pub trait Compares: Sync {
    /// Asks, and has the ledger hear the answer.
    fn compare(
        &self,
        account: AccountId,
        invoice: &str,
    ) -> impl Future<Output = Result<Compared, Fault>> + Send;
}

/// Who is asked: the processor of a program.
struct Asked<'a> {
    office: &'a Office,
    ledger: Ledger,
    account: AccountId,
    mode: Mode,
    api_base: String,
    key: String,
}

impl Compares for Office {
    async fn compare(&self, account: AccountId, invoice: &str) -> Result<Compared, Fault> {
        let program = program::get(self.store(), account).await?.ok_or(Fault::NotSetUp)?;
        let mode = program.settings.mode;
        let asked = program.processor.as_ref().and_then(|processor| {
            let key = self.open(&program.id.to_bytes(), processor.restricted_key.as_ref()?)?;
            let (api_base, ledger) = (processor.api_base.clone(), self.ledger());
            Some(Asked { office: self, ledger, account, mode, api_base, key })
        });
        // Without a key there is nobody to ask any more.
        let Some(asked) = asked else { return Ok(Compared::Heard) };
        let ledger = self.ledger();
        let paid_by = Book::of(&ledger, program).paid_by(invoice).await?;
        for one in paid_by {
            if let Compared::Unanswered(why) = asked.about(&one).await? {
                return Ok(Compared::Unanswered(why));
            }
        }
        Ok(Compared::Heard)
    }
}

/// What the processor answered.
enum Said {
    /// This, at this time by its clock.
    Value(Value, Timestamp),
    /// Once and for all nothing: there is no such thing, or the key may not see it.
    Nothing,
}

impl Asked<'_> {
    async fn about(&self, paid_by: &PaidBy) -> Result<Compared, Fault> {
        let path = match paid_by {
            PaidBy::Charge(id) => format!("/v1/charges/{}", escaped(id)),
            PaidBy::Payment(id) => format!("/v1/charges?limit=100&payment_intent={}", escaped(id)),
        };
        let (answer, at) = match self.ask(&path).await {
            Ok(Said::Value(answer, at)) => (answer, at),
            Ok(Said::Nothing) => return Ok(Compared::Heard),
            Err(why) => return Ok(Compared::Unanswered(why)),
        };
        let charges = match paid_by {
            PaidBy::Charge(_) => vec![answer],
            PaidBy::Payment(_) => Page::from_value(answer).map(|page| page.objects).unwrap_or_default(),
        };
        for charge in &charges {
            if charge["amount_refunded"].as_i64().unwrap_or(0) > 0 {
                self.tell("charge.refunded", charge, at).await?;
            }
            if charge["disputed"].as_bool().unwrap_or(false)
                && let Some(id) = charge["id"].as_str()
                && let Compared::Unanswered(why) = self.about_disputes(id).await?
            {
                return Ok(Compared::Unanswered(why));
            }
        }
        Ok(Compared::Heard)
    }

    async fn about_disputes(&self, charge: &str) -> Result<Compared, Fault> {
        let path = format!("/v1/disputes?limit={DISPUTES_MAX}&charge={}", escaped(charge));
        let (answer, at) = match self.ask(&path).await {
            Ok(Said::Value(answer, at)) => (answer, at),
            Ok(Said::Nothing) => return Ok(Compared::Heard),
            Err(why) => return Ok(Compared::Unanswered(why)),
        };
        let disputes = Page::from_value(answer).map(|page| page.objects).unwrap_or_default();
        for dispute in &disputes {
            self.tell(dispute_kind(dispute), dispute, at).await?;
        }
        Ok(Compared::Heard)
    }

    async fn ask(&self, path: &str) -> Result<Said, String> {
        let asked_at = self.office.now();
        match self.office.get((&self.api_base, &self.key), path).await {
            Ok(HttpAnswer { status: 200, body, at, .. }) => match serde_json::from_slice(&body) {
                Ok(value) => Ok(Said::Value(value, at.unwrap_or(asked_at))),
                Err(_) => Err("the processor answered with something that is no JSON".to_owned()),
            },
            Ok(HttpAnswer { status: status @ (400..=407 | 409..=428 | 430..=499), .. }) => {
                tracing::info!(account = %self.account, path, status, "the processor does not tell of a charge");
                Ok(Said::Nothing)
            }
            Ok(HttpAnswer { status, .. }) => Err(format!("the processor answered with status {status}")),
            Err(error) => Err(format!("the processor cannot be asked: {error}")),
        }
    }

    /// Tells the ledger of an object as if it came with an event. One that cannot be worked with is kept among the events
    /// that failed, and goes on from there.
    async fn tell(&self, kind: &str, object: &Value, at: Timestamp) -> Result<(), Fault> {
        let Some(id) = object["id"].as_str() else { return Ok(()) };
        let id = format!("compared_{id}_{}", at.as_second());
        let event = event_about(object, (&id, kind), (at, self.mode));
        match self.ledger.take(self.account, event.to_string().as_bytes()).await {
            Answer::Failed(fault @ (Fault::Read(_) | Fault::Commit(_) | Fault::Contended)) => Err(fault),
            _ => Ok(()),
        }
    }
}

/// The kind of event that tells of a dispute as it stands.
pub(crate) fn dispute_kind(dispute: &Value) -> &'static str {
    match dispute["status"].as_str() {
        Some("won" | "lost" | "warning_closed") => "charge.dispute.closed",
        _ => "charge.dispute.created",
    }
}

/// Asks about invoices side by side; those about which there was no answer, with why.
pub(crate) async fn compare_all(
    asker: &impl Compares,
    account: AccountId,
    invoices: &BTreeSet<String>,
) -> Result<BTreeMap<String, String>, Fault> {
    let invoices: Vec<&String> = invoices.iter().collect();
    let (mut unanswered, mut silent) = (BTreeMap::new(), None::<String>);
    for some in invoices.chunks(AT_ONCE) {
        if let Some(why) = &silent {
            // Nobody answered: these are not asked at all.
            unanswered.extend(some.iter().map(|invoice| ((*invoice).clone(), why.clone())));
            continue;
        }
        let answers = join_all(some.iter().map(|invoice| asker.compare(account, invoice))).await;
        let mut any = false;
        for (invoice, answer) in some.iter().zip(answers) {
            match answer? {
                Compared::Heard => any = true,
                Compared::Unanswered(why) => {
                    unanswered.insert((*invoice).clone(), why);
                }
            }
        }
        silent = unanswered.values().next().filter(|_| !any).cloned();
    }
    Ok(unanswered)
}

impl Ledger {
    /// Asks about the lines in these partitions that wait for it.
    ///
    /// # Errors
    /// The store cannot be read or written.
    pub async fn compare_due(
        &self,
        partitions: RangeInclusive<u16>,
        now: Timestamp,
        asker: &impl Compares,
    ) -> Result<(), Fault> {
        for _ in 0..ROUNDS_MAX {
            let due = commission::due(self.store(), partitions.clone(), now, LINES_AT_ONCE).await?;
            let mut of_accounts: BTreeMap<AccountId, Vec<CommissionId>> = BTreeMap::new();
            due.iter().for_each(|(account, line)| of_accounts.entry(*account).or_default().push(*line));
            let mut any = false;
            for (account, ids) in of_accounts {
                let mut lines = commission::get_each(self.store(), account, &ids).await?;
                lines.retain(|line| matches!(line.comparison, Comparison::Due(at) if at <= now));
                any |= !lines.is_empty();
                self.compare_lines(account, &lines, asker).await?;
            }
            if !any {
                return Ok(());
            }
        }
        Ok(())
    }

    async fn compare_lines(
        &self,
        account: AccountId,
        lines: &[Commission],
        asker: &impl Compares,
    ) -> Result<(), Fault> {
        let invoice = |line: &Commission| line.sold().map(|sold| sold.invoice.clone());
        let invoices: BTreeSet<String> = lines.iter().filter_map(invoice).collect();
        let unanswered = compare_all(asker, account, &invoices).await?;
        if let Some(why) = unanswered.values().next() {
            tracing::warn!(%account, invoices = unanswered.len(), why, "charges are not compared");
        }
        let now = self.now();
        for line in lines {
            let Some(before) = commission::get(self.store(), account, line.id).await? else { continue };
            let has_answer = invoice(line).is_none_or(|invoice| !unanswered.contains_key(&invoice));
            let waited = before.earns_at.checked_add(PATIENCE).is_ok_and(|end| end <= now);
            let comparison = match (has_answer, waited) {
                (true, _) => Comparison::Done(now),
                (false, true) => Comparison::Needless,
                (false, false) => Comparison::Due(now.checked_add(AGAIN).unwrap_or(Timestamp::MAX)),
            };
            let after = Commission { comparison, ..before.clone() };
            let mut batch = Batch::progress();
            commission::update(&mut batch, &before, &after);
            // Who was beaten to it finds it again.
            self.commit(batch).await?;
        }
        Ok(())
    }
}
