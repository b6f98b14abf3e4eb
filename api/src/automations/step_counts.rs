//! `GET /automations/{id}/step-counts`: how many runs wait at each step, passed it, or ended there.
//!
//! The counts are of the newest runs, and of the newest waiting runs, so that the read is bounded.

use std::num::NonZeroU32;

use model::automation::run::{AutomationRun, RunStatus, StepStatus};
use store::automation_run::RunFilter;

use super::path::{AutomationPath, find};
use crate::prelude::*;

/// Runs that are counted, and waiting runs that are counted.
const RUNS_MAX: usize = 1_000;

/// Query of `GET /automations/{id}/step-counts`.
#[derive(Debug)]
pub struct StepCountsQuery {
    version: Option<u32>,
}

impl RequestQuery for StepCountsQuery {
    fn read_query(query: &mut Query) -> Result<Self> {
        let version: Option<NonZeroU32> = query.value_with(
            "version",
            "The version whose steps are counted; the current one if omitted",
            "a version's number",
            || json!({"type": "integer", "minimum": 1}),
        )?;
        Ok(StepCountsQuery { version: version.map(NonZeroU32::get) })
    }
}

/// The runs at one step
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, ToSchema)]
struct StepCount {
    /// The position, from 0
    index: usize,
    /// Runs that wait at the step or execute it
    waiting: u64,
    /// Runs that completed the step and continued, or ended after the last one
    passed: u64,
    /// Runs that failed at the step
    failed: u64,
    /// Runs that completed at the step although others follow: a condition was false, or a wait ended the run
    ended: u64,
    /// Runs that were cancelled at the step
    cancelled: u64,
}

/// The runs of a version by step
#[derive(Debug, Serialize, ToSchema)]
#[schema(name = "AutomationStepCounts")]
pub struct StepCountsView {
    /// The version
    version: u32,
    /// The steps, in order
    steps: Vec<StepCount>,
    /// Runs of the version that were counted: those among the newest 1,000 runs of the automation
    runs: usize,
    /// Whether there are older runs
    has_more: bool,
    /// Whether there are more waiting runs than the 1,000 that were counted
    has_more_waiting: bool,
}

object_response! { "A response with the counts", pub StepCountsResponse { step_counts: StepCountsView } }

/// Adds a run to the counts of its steps. Waiting runs are counted from a list of their own.
fn add_run(steps: &mut Vec<StepCount>, run: &AutomationRun) {
    for index in steps.len()..run.steps.len() {
        steps.push(StepCount { index, ..StepCount::default() });
    }
    let ends_early = run.status == RunStatus::Completed && run.index + 1 < run.steps.len();
    for (count, step) in steps.iter_mut().zip(&run.steps) {
        let is_end = ends_early && count.index == run.index;
        count.passed += u64::from(step.status == StepStatus::Completed && !is_end);
        count.failed += u64::from(step.status == StepStatus::Failed);
        count.ended += u64::from(is_end);
    }
    let Some(count) = steps.get_mut(run.index) else { return };
    match run.status {
        RunStatus::Cancelled => count.cancelled += 1,
        RunStatus::Queued | RunStatus::Running => count.waiting += 1,
        RunStatus::Waiting | RunStatus::Completed | RunStatus::Failed => {}
    }
}

/// `GET /automations/{id}/step-counts`.
pub async fn get(
    state: State,
    tenant: Tenant,
    (path, query): (AutomationPath, StepCountsQuery),
) -> Result<StepCountsResponse> {
    let automation = find(&state, &tenant, path).await?.automation;
    let (store, account, id) = (&state.services.store, automation.account, automation.id);
    let version = query.version.unwrap_or(automation.version);
    let found = store::automation::get_version(store, account, id, version).await?;
    let definition = found.ok_or_else(|| Problem::not_found("version"))?.definition;
    let blank = |index| StepCount { index, ..StepCount::default() };
    let mut steps: Vec<StepCount> = (0..definition.steps.len()).map(blank).collect();
    let newest = store::automation_run::list_newest(store, account, id, RUNS_MAX).await?;
    let of_version = || newest.iter().filter(|run| run.version == version);
    of_version().for_each(|run| add_run(&mut steps, run));
    let filter = RunFilter { statuses: vec![RunStatus::Waiting], ..RunFilter::default() };
    let (waiting, next) = store::automation_run::list(store, account, id, &filter, None, RUNS_MAX).await?;
    for run in waiting.iter().filter(|run| run.version == version) {
        if let Some(count) = steps.get_mut(run.index) {
            count.waiting += 1;
        }
    }
    let (runs, has_more) = (of_version().count(), newest.len() == RUNS_MAX);
    let step_counts = StepCountsView { version, steps, runs, has_more, has_more_waiting: next.is_some() };
    Ok(StepCountsResponse { step_counts })
}
