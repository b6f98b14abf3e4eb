//! Runs of automations, step by step.

use std::sync::Arc;

use mail::automation::run::RunStatus;
use mail::id::RunId;
use serde_json::json;
use store::access::Tenant;
use store::run::RunFilter;

use super::view::{AutomationRunList, AutomationRunResponse, AutomationRunView};
use super::{AutomationPath, find};
use crate::call::{FromRequest, Request, RequestSpec};
use crate::page::{self, KIND_RUN, PageParameters};
use crate::problem::Problem;
use crate::room::AppState;
use crate::schema::{self, Schemas};

/// The longest that is looked for.
const PERSON_BYTES_MAX: usize = 1_024;

/// What `GET /automations/{id}/runs` takes.
#[derive(Debug)]
pub struct ListAutomationRuns {
    page: PageParameters,
    filter: RunFilter,
}

impl FromRequest for (AutomationPath, ListAutomationRuns) {
    fn describe(_: &mut Schemas) -> RequestSpec {
        let text = |name: &str, text: &str| schema::query_parameter(name, text, json!({"type": "string"}));
        let mut parameters = vec![AutomationPath::parameter()];
        parameters.extend(PageParameters::parameters());
        let words = format!("Only these: {}; several with commas", RunStatus::WORDS.join(", "));
        parameters.push(text("status", &words));
        parameters.push(text("email", "Only those of this person, by address"));
        parameters.push(text("user_id", "Only those of this person, by the product's own id"));
        RequestSpec { parameters, ..RequestSpec::default() }
    }

    fn read(call: &Request) -> Result<Self, Problem> {
        let parameters = page::parse_query(&call.query)?;
        let person = |name: &str| match page::single_value(&parameters, name)? {
            Some(text) if text.len() > PERSON_BYTES_MAX => {
                Err(Problem::field(name, format!("is longer than {PERSON_BYTES_MAX} bytes")))
            }
            text => Ok(text.map(str::to_owned)),
        };
        let statuses = page::parse_words(&call.query, "status", RunStatus::WORDS, RunStatus::from_word)?;
        let filter = RunFilter { statuses, user_id: person("user_id")?, email: person("email")? };
        Ok((
            AutomationPath::from_request(call),
            ListAutomationRuns { page: PageParameters::from_query(&call.query)?, filter },
        ))
    }
}

/// `GET /automations/{id}/runs`.
///
/// # Errors
/// No such automation; the cursor is none of this list's.
pub async fn list(
    room: Arc<AppState>,
    tenant: Tenant,
    (of, ListAutomationRuns { page, filter }): (AutomationPath, ListAutomationRuns),
) -> Result<AutomationRunList, Problem> {
    let automation = find(&room, &tenant, of).await?.automation;
    let before = page.before_id(KIND_RUN)?.map(RunId::from_bytes);
    let about = (automation.account, automation.id);
    let (runs, next) = store::run::list(room.intake.store(), about, &filter, (before, page.limit)).await?;
    let next_cursor = next.map(|id| page::after_id(KIND_RUN, id.to_bytes()));
    Ok(AutomationRunList {
        runs: runs.iter().map(AutomationRunView::from_run).collect(),
        has_more: next.is_some(),
        next_cursor,
    })
}

/// A run, named in the path.
#[derive(Debug, Clone, Copy)]
pub struct AutomationRunPath(Option<RunId>);

impl FromRequest for (AutomationPath, AutomationRunPath) {
    fn describe(_: &mut Schemas) -> RequestSpec {
        let run = schema::path_parameter("run", "The run's id (`run_…`)");
        RequestSpec { parameters: vec![AutomationPath::parameter(), run], ..RequestSpec::default() }
    }

    fn read(call: &Request) -> Result<Self, Problem> {
        Ok((AutomationPath::from_request(call), AutomationRunPath(call.path_parameter("run").parse().ok())))
    }
}

fn run_not_found() -> Problem {
    Problem::not_found("run")
}

/// `GET /automations/{id}/runs/{run}`.
///
/// # Errors
/// No such automation or run.
pub async fn get(
    room: Arc<AppState>,
    tenant: Tenant,
    (of, AutomationRunPath(run)): (AutomationPath, AutomationRunPath),
) -> Result<AutomationRunResponse, Problem> {
    let automation = find(&room, &tenant, of).await?.automation;
    let about = (automation.account, automation.id, run.ok_or_else(run_not_found)?);
    let found = store::run::get(room.intake.store(), about).await?.ok_or_else(run_not_found)?;
    Ok(AutomationRunResponse { run: AutomationRunView::from_run(&found.run) })
}

/// `POST /automations/{id}/runs/{run}/cancel`. A run that is over stays as it is.
///
/// # Errors
/// No such automation or run; the store cannot be written.
pub async fn cancel(
    room: Arc<AppState>,
    tenant: Tenant,
    (of, AutomationRunPath(run)): (AutomationPath, AutomationRunPath),
) -> Result<AutomationRunResponse, Problem> {
    let automation = find(&room, &tenant, of).await?.automation;
    let about = (automation.account, automation.id, run.ok_or_else(run_not_found)?);
    let run = room.intake.cancel_run(about).await?.ok_or_else(run_not_found)?;
    Ok(AutomationRunResponse { run: AutomationRunView::from_run(&run) })
}
