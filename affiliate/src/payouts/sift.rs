//! The draft follows the methods that the program allows: payouts by one that is allowed no more leave it, as they do when
//! their partner cannot be paid any more.
//!
//! ```text
//! settings ─►[ program + mark on the draft ] ─► some payouts leave ─► … ─► the mark is gone
//! ```

use mail::affiliate::payout::{PayoutRun, Phase, RunStatus, Sifted, SkipReason};
use mail::affiliate::program::Program;
use mail::id::{AccountId, PayoutRunId};
use store::affiliate::payout_work::{self, Work};
use store::affiliate::{payout, payout_run};
use store::engine::Batch;

use super::draft::later;
use super::{LINES_AT_ONCE, Step};
use crate::ledger::{self, Book, Fault, Ledger};

/// Payouts that one commit looks at.
const PAYOUTS_AT_ONCE: usize = 400;
/// Commits that whoever changes the settings waits for; the rest is gone on with.
const STEPS_MAX: usize = 10;
/// Commits tried, when something is changed meanwhile.
const TRIES_MAX: usize = 100;

impl Ledger {
    /// Puts a mark on the draft into the commit that changes a program, where that takes a method away. Which run it is.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn mark_draft(
        &self,
        batch: &mut Batch,
        (before, after): (&Program, &Program),
    ) -> Result<Option<PayoutRunId>, Fault> {
        let allowed = &after.settings.allowed_methods;
        if before.settings.allowed_methods.iter().all(|method| allowed.contains(method)) {
            return Ok(None);
        }
        let account = after.account;
        let open = payout_run::open(self.store(), account).await?;
        payout_run::expect_open(batch, account, open.as_ref().map(|open| open.id));
        let is_draft = |run: &PayoutRun| run.status == RunStatus::Draft && run.phase != Some(Phase::Voiding);
        let Some(run) = open.filter(is_draft) else { return Ok(None) };
        payout_run::update(batch, &run, &PayoutRun { sifted: Some(Sifted::default()), ..run.clone() });
        payout_work::put(batch, account, Work::Run(run.id), later(self.now()));
        Ok(Some(run.id))
    }

    /// Takes payouts by methods that are allowed no more out of a draft: to the end, where that is not far.
    pub async fn sift(&self, of: (AccountId, PayoutRunId)) {
        for _ in 0..STEPS_MAX {
            match self.sift_some(of).await {
                Ok(Step::More) => {}
                Ok(Step::Done) => return,
                Err(fault) => {
                    store::warn_unless_away!(self.store(), account = %of.0, run = %of.1, %fault, "a draft does not follow the settings yet");
                    return;
                }
            }
        }
    }

    /// Takes some out.
    pub(super) async fn sift_some(&self, of: (AccountId, PayoutRunId)) -> Result<Step, Fault> {
        for _ in 0..TRIES_MAX {
            let mut book = Book::open(self, of.0).await?;
            book.no_drafting().await?;
            let run = book.run(of.1).await?.filter(|run| run.is_to_be_sifted());
            let Some(sifted) = run.and_then(|run| run.sifted) else { return Ok(Step::Done) };
            let next = self.sift_page(&mut book, (of, sifted)).await?;
            let now = book.now;
            let Some(run) = book.run(of.1).await? else { return Ok(Step::Done) };
            run.sifted = next;
            let due = match (next, run.is_compared()) {
                (Some(_), _) => Some(later(now)),
                (None, false) => Some(now),
                (None, true) => None,
            };
            book.note_work(Work::Run(of.1), due);
            if self.commit(book.close(Batch::progress()).await?).await? {
                return Ok(if next.is_some() { Step::More } else { Step::Done });
            }
        }
        Err(Fault::Contended)
    }

    /// How far it is then; nothing at the end.
    async fn sift_page(
        &self,
        book: &mut Book<'_>,
        ((account, run), sifted): ((AccountId, PayoutRunId), Sifted),
    ) -> Result<Option<Sifted>, Fault> {
        let found = payout::of_run(self.store(), (account, run), sifted.after, PAYOUTS_AT_ONCE).await?;
        let (mut room, mut after) = (LINES_AT_ONCE, sifted.after);
        for one in &found {
            if room == 0 {
                return Ok(Some(Sifted { after }));
            }
            let allowed = book.program.settings.allowed_methods.clone();
            // It may go another way since it was found.
            if !allowed.contains(&one.method)
                && let Some(now) = book.payout(one.id).await?
                && !allowed.contains(&now.method)
            {
                book.leave_draft(one.id, SkipReason::NotReady).await?;
                let lines = usize::try_from(one.lines).unwrap_or(usize::MAX);
                room = room.saturating_sub(lines.clamp(1, ledger::LINES_AT_ONCE));
            }
            after = Some(one.id);
        }
        let is_last = found.len() < PAYOUTS_AT_ONCE;
        Ok((!is_last).then_some(Sifted { after }))
    }
}
