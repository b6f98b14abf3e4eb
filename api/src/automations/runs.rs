//! Runs of automations, step by step.

use std::sync::Arc;

use mail::automation::run::RunStatus;
use mail::id::RunId;
use serde_json::json;
use store::access::Tenant;
use store::run::Filter;

use super::view::{OneRun, RunList, RunView};
use super::{OfAutomation, find};
use crate::call::{Call, Input, Takes};
use crate::page::{self, KIND_RUN, Page};
use crate::problem::Problem;
use crate::room::Room;
use crate::schema::{self, Schemas};

/// The longest that is looked for.
const PERSON_BYTES_MAX: usize = 1_024;

/// What `GET /automations/{id}/runs` takes.
#[derive(Debug)]
pub struct ListRuns {
    page: Page,
    filter: Filter,
}

impl Input for (OfAutomation, ListRuns) {
    fn describe(_: &mut Schemas) -> Takes {
        let text = |name: &str, text: &str| schema::query_parameter(name, text, json!({"type": "string"}));
        let mut parameters = vec![OfAutomation::parameter()];
        parameters.extend(Page::parameters());
        let words = format!("Only these: {}; several with commas", RunStatus::WORDS.join(", "));
        parameters.push(text("status", &words));
        parameters.push(text("email", "Only those of this person, by address"));
        parameters.push(text("user_id", "Only those of this person, by the product's own id"));
        Takes { parameters, ..Takes::default() }
    }

    fn read(call: &Call) -> Result<Self, Problem> {
        let parameters = page::parameters(&call.query)?;
        let person = |name: &str| match page::one(&parameters, name)? {
            Some(text) if text.len() > PERSON_BYTES_MAX => {
                Err(Problem::field(name, format!("is longer than {PERSON_BYTES_MAX} bytes")))
            }
            text => Ok(text.map(str::to_owned)),
        };
        let statuses = page::words(&call.query, "status", RunStatus::WORDS, RunStatus::of_word)?;
        let filter = Filter { statuses, user_id: person("user_id")?, email: person("email")? };
        Ok((OfAutomation::of(call), ListRuns { page: Page::read(&call.query)?, filter }))
    }
}

/// `GET /automations/{id}/runs`.
///
/// # Errors
/// No such automation; the cursor is none of this list's.
pub async fn list(
    room: Arc<Room>,
    tenant: Tenant,
    (of, ListRuns { page, filter }): (OfAutomation, ListRuns),
) -> Result<RunList, Problem> {
    let automation = find(&room, &tenant, of).await?.automation;
    let before = page.before_id(KIND_RUN)?.map(RunId::from_bytes);
    let about = (automation.account, automation.id);
    let (runs, next) = store::run::list(room.hall.store(), about, &filter, (before, page.limit)).await?;
    let next_cursor = next.map(|id| page::after_id(KIND_RUN, id.to_bytes()));
    Ok(RunList { runs: runs.iter().map(RunView::of).collect(), has_more: next.is_some(), next_cursor })
}

/// A run, named in the path.
#[derive(Debug, Clone, Copy)]
pub struct OfRun(Option<RunId>);

impl Input for (OfAutomation, OfRun) {
    fn describe(_: &mut Schemas) -> Takes {
        let run = schema::path_parameter("run", "The run's id (`run_…`)");
        Takes { parameters: vec![OfAutomation::parameter(), run], ..Takes::default() }
    }

    fn read(call: &Call) -> Result<Self, Problem> {
        Ok((OfAutomation::of(call), OfRun(call.path_parameter("run").parse().ok())))
    }
}

fn no_such_run() -> Problem {
    Problem::not_found("run")
}

/// `GET /automations/{id}/runs/{run}`.
///
/// # Errors
/// No such automation or run.
pub async fn get(
    room: Arc<Room>,
    tenant: Tenant,
    (of, OfRun(run)): (OfAutomation, OfRun),
) -> Result<OneRun, Problem> {
    let automation = find(&room, &tenant, of).await?.automation;
    let about = (automation.account, automation.id, run.ok_or_else(no_such_run)?);
    let found = store::run::get(room.hall.store(), about).await?.ok_or_else(no_such_run)?;
    Ok(OneRun { run: RunView::of(&found.run) })
}

/// `POST /automations/{id}/runs/{run}/cancel`. A run that is over stays as it is.
///
/// # Errors
/// No such automation or run; the store cannot be written.
pub async fn cancel(
    room: Arc<Room>,
    tenant: Tenant,
    (of, OfRun(run)): (OfAutomation, OfRun),
) -> Result<OneRun, Problem> {
    let automation = find(&room, &tenant, of).await?.automation;
    let about = (automation.account, automation.id, run.ok_or_else(no_such_run)?);
    let run = room.hall.cancel_run(about).await?.ok_or_else(no_such_run)?;
    Ok(OneRun { run: RunView::of(&run) })
}
