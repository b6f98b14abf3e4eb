//! Runs of automations: list, show with steps, cancel.

use httpd::paging::KIND_RUN;
use store::automation_run::RunFilter;

use super::path::{AutomationPath, find};
use super::view::{AutomationRunList, AutomationRunResponse, AutomationRunView};
use crate::prelude::*;

/// Maximum length of a person filter.
const PERSON_BYTES_MAX: usize = 1_024;

/// Query of `GET /automations/{id}/runs`.
#[derive(Debug)]
pub struct ListAutomationRuns {
    page: PageParameters,
    filter: RunFilter,
}

impl RequestQuery for ListAutomationRuns {
    fn read_query(query: &mut Query) -> Result<Self> {
        let page = query.page()?;
        let about = |words: &str| format!("Only these values: {words}; several separated by commas");
        let statuses = query.words_in_text("status", about)?;
        let mut person = |name: &str, description: &str| match query.text(name, description)? {
            Some(text) if text.len() > PERSON_BYTES_MAX => {
                Err(Problem::field(name, format!("is longer than {PERSON_BYTES_MAX} bytes")))
            }
            text => Ok(text),
        };
        let email = person("email", "Filter by the person's email address")?;
        let user_id = person("user_id", "Filter by the person's `user_id` in the product")?;
        Ok(ListAutomationRuns { page, filter: RunFilter { statuses, user_id, email } })
    }
}

/// `GET /automations/{id}/runs`.
pub async fn list(
    state: State,
    tenant: Tenant,
    (path, ListAutomationRuns { page, filter }): (AutomationPath, ListAutomationRuns),
) -> Result<AutomationRunList> {
    let automation = find(&state, &tenant, path).await?.automation;
    let before = page.before_id(KIND_RUN)?.map(RunId::from_bytes);
    let (store, account, id) = (&state.services.store, automation.account, automation.id);
    let (runs, next) = store::automation_run::list(store, account, id, &filter, before, page.limit).await?;
    let next_cursor = next.map(|id| paging::after_id(KIND_RUN, id.to_bytes()));
    Ok(AutomationRunList::new(runs.iter().map(AutomationRunView::from_run).collect(), next_cursor))
}

deferred_id_path! { pub AutomationRunPath("run": RunId), "The run's id (`run_…`)", "run" }

fn run_not_found() -> Problem {
    Problem::not_found("run")
}

/// `GET /automations/{id}/runs/{run}`.
pub async fn get(
    state: State,
    tenant: Tenant,
    (path, run): (AutomationPath, AutomationRunPath),
) -> Result<AutomationRunResponse> {
    let automation = find(&state, &tenant, path).await?.automation;
    let run_key = (automation.account, automation.id, run.id()?);
    let found = store::automation_run::get(&state.services.store, run_key).await?.ok_or_else(run_not_found)?;
    Ok(AutomationRunResponse { run: AutomationRunView::from_run(&found.run) })
}

/// `POST /automations/{id}/runs/{run}/cancel`. A run that has ended is not changed.
pub async fn cancel(
    state: State,
    tenant: Tenant,
    (path, run): (AutomationPath, AutomationRunPath),
) -> Result<AutomationRunResponse> {
    let automation = find(&state, &tenant, path).await?.automation;
    let run_key = (automation.account, automation.id, run.id()?);
    let run = state.accounts.automations.cancel_run(run_key).await?.ok_or_else(run_not_found)?;
    Ok(AutomationRunResponse { run: AutomationRunView::from_run(&run) })
}
