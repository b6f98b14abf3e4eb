//! Retention of runs: a finished run and its events are deleted when they are older than the account's retention time.

use events::automations::RUN_EVENTS_MAX;
use jiff::Timestamp;
use model::automation::run::AutomationRun;
use model::automation::{AUTOMATIONS_MAX, person_key};
use model::event::EventKind;
use model::id::{AccountId, RunId};
use queue::services::Services;
use store::engine::{Batch, CommitError, ReadError, StoreError};

/// Runs deleted in one commit.
const BATCH_RUNS: usize = 100;

/// Deletes runs of an account that ended before `oldest_kept`.
pub(super) async fn purge_runs(
    services: &Services,
    account: AccountId,
    oldest_kept: Timestamp,
) -> Result<(), StoreError> {
    let before = RunId::new(oldest_kept, 0);
    let automations = store::automation::list(&services.store, account, None, AUTOMATIONS_MAX, |_| true).await?;
    for automation in automations.0 {
        let mut after = None;
        loop {
            let found =
                store::automation_run::list_oldest(&services.store, account, automation.id, after, BATCH_RUNS).await?;
            after = found.last().map(|found| found.run.id);
            let is_last = found.len() < BATCH_RUNS || after >= Some(before);
            let mut batch = Batch::progress();
            let over = found.iter().filter(|found| found.run.completed_at.is_some_and(|at| at < oldest_kept));
            for found in over {
                purge_answer(services, &mut batch, &found.run).await?;
                store::automation_run::delete(&mut batch, found);
                store::event::delete_by_subject(
                    &services.store,
                    &mut batch,
                    account,
                    found.run.id.into(),
                    RUN_EVENTS_MAX,
                )
                .await?;
            }
            if !batch.is_empty() {
                match services.store.commit(batch).await {
                    // A conflict is harmless: the next pass is in an hour.
                    Ok(()) | Err(CommitError::Conflict { .. }) => {}
                    Err(error) => return Err(error.into()),
                }
            }
            if is_last || services.stop.is_cancelled() {
                break;
            }
        }
    }
    Ok(())
}

/// Deletes the run's row of the last automatic reply to its author, if no later run replaced it.
async fn purge_answer(services: &Services, batch: &mut Batch, run: &AutomationRun) -> Result<(), ReadError> {
    let author = run.email.as_deref().filter(|_| run.event_name == EventKind::Received.name());
    if let Some(author) = author.map(person_key::email_key) {
        let last_answer =
            store::automation_run::run_indexes::find_last_answer(&services.store, run.account, run.automation, author)
                .await?;
        store::automation_run::run_indexes::delete_last_answer(batch, run, author, &last_answer);
    }
    Ok(())
}
