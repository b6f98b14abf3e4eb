//! Comparing with the processor: what became of a charge by now, before its line is its partner's and before it is paid. A
//! refund or a dispute whose event was lost is heard of so (completions-affiliate.md 2.2, "Reconcile job").
//!
//! ```text
//! line ─► its invoice ─► charges, payments ─► GET each ─► refunded, disputed? ─► [Ledger::take_asked]
//! ```
//!
//! What the processor says once and for all, also that it knows of no such charge, is an answer; that the key may not see
//! it is none. Where there is none, a line waits some time for it, and is its partner's in the end: the run that pays it
//! asks once more (`affiliate/src/payouts/compare.rs`).

use std::collections::{BTreeMap, BTreeSet};
use std::future::Future;
use std::ops::RangeInclusive;

use futures_util::future::join_all;
use jiff::{SignedDuration, Timestamp};
use mail::affiliate::commission::{Commission, Comparison};
use mail::affiliate::program::Program;
use mail::id::{AccountId, CommissionId};
use serde_json::Value;
use store::affiliate::{commission, program};
use store::engine::Batch;

use crate::asking::{Asker, NoAnswer, Said, escaped};
use crate::completing::By;
use crate::ledger::{Answer, Book, Fault, Ledger, Nobody, PaidBy};
use crate::office::Office;

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

/// Who is asked, and who hears of it.
struct Asked {
    asker: Asker,
    ledger: Ledger,
    program: Program,
}

impl Compares for Office {
    async fn compare(&self, account: AccountId, invoice: &str) -> Result<Compared, Fault> {
        let program = program::get(self.store(), account).await?.ok_or(Fault::NotSetUp)?;
        // Without a key there is nobody to ask any more.
        let Some(asker) = self.asker(&program) else { return Ok(Compared::Heard) };
        Asked { asker, ledger: self.ledger(), program }.about_invoice(invoice).await
    }
}

impl Asked {
    async fn about_invoice(&self, invoice: &str) -> Result<Compared, Fault> {
        let mut paid_by = self.paid_by(invoice).await?;
        if paid_by.is_empty() {
            // The shape since 2025 does not name them in the invoice.
            match self.asker.payments(By::Invoice(invoice)).await {
                Ok((payments, at)) => {
                    for payment in &payments {
                        self.tell("invoice_payment.paid", payment, at).await?;
                    }
                }
                Err(why) => return Ok(Compared::Unanswered(format!("the processor {why}"))),
            }
            paid_by = self.paid_by(invoice).await?;
        }
        for one in paid_by {
            if let Compared::Unanswered(why) = self.about(&one).await? {
                return Ok(Compared::Unanswered(why));
            }
        }
        Ok(Compared::Heard)
    }

    async fn paid_by(&self, invoice: &str) -> Result<Vec<PaidBy>, Fault> {
        Book::of(&self.ledger, self.program.clone()).paid_by(invoice).await
    }

    async fn about(&self, paid_by: &PaidBy) -> Result<Compared, Fault> {
        let answer = match paid_by {
            PaidBy::Charge(id) => self.charge(id).await,
            PaidBy::Payment(id) => self.listed(&format!("/v1/charges?payment_intent={}", escaped(id))).await,
        };
        let (charges, at) = match answer {
            Ok(answer) => answer,
            Err(why) => return Ok(Compared::Unanswered(format!("the processor {why}"))),
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
        let (disputes, at) = match self.listed(&format!("/v1/disputes?charge={}", escaped(charge))).await {
            Ok(answer) => answer,
            Err(why) => return Ok(Compared::Unanswered(format!("the processor {why}"))),
        };
        for dispute in &disputes {
            self.tell(dispute_kind(dispute), dispute, at).await?;
        }
        Ok(Compared::Heard)
    }

    async fn charge(&self, id: &str) -> Result<(Vec<Value>, Timestamp), NoAnswer> {
        Ok(match self.asker.ask(&format!("/v1/charges/{}", escaped(id))).await? {
            Said::Value(charge, at) => (vec![charge], at),
            Said::Nothing(_) => (Vec::new(), self.ledger.now()),
        })
    }

    async fn listed(&self, path: &str) -> Result<(Vec<Value>, Timestamp), NoAnswer> {
        let told = self.asker.list(path, 1).await?;
        Ok(told.map_or_else(|_| (Vec::new(), self.ledger.now()), |told| (told.objects, told.at)))
    }

    /// One that cannot be worked with is kept among the events that failed, and goes on from there.
    async fn tell(&self, kind: &str, object: &Value, at: Timestamp) -> Result<(), Fault> {
        match self.ledger.take_asked(&self.program, (kind, object), (at, &Nobody)).await {
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
