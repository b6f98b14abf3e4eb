//! `POST /automations/{id}/dry-run`: a run of stored or unsaved steps with an event that is not stored.
//!
//! `POST /events` with `dry_run` runs the stored steps for dashboard sessions; this runs steps before they are saved.

use events::automations::DryRun;
use model::automation::context::EventFacts;
use model::automation::run::RunMode;
use model::automation::{Automation, AutomationDefinition};
use model::trigger_event::TriggerEvent;
use serde_json::Map;

use super::current_version;
use super::path::{AutomationPath, find};
use super::request::{AutomationEdit, REQUEST_BYTES_MAX, read_steps, read_trigger};
use super::view::{AutomationRunResponse, AutomationRunView, steps_schema, trigger_schema};
use crate::events::send::{data_schema, email_schema, parse_data, parse_email, parse_user_id, user_id_schema};
use crate::prelude::*;

/// Longest body: a definition and an event's data.
const BODY_BYTES_MAX: usize = REQUEST_BYTES_MAX + (128 << 10);

/// A definition to run without storing it
#[derive(Debug, RequestObject)]
pub(super) struct UnsavedDefinition {
    /// The trigger; the stored one if omitted
    #[field(read = read_trigger, schema = trigger_schema)]
    trigger: Option<Value>,
    /// The steps; the stored ones if omitted
    #[field(read = read_steps, schema = steps_schema)]
    steps: Option<Value>,
}

impl UnsavedDefinition {
    /// The automation, and its definition with these changes.
    pub(super) async fn load(
        self,
        state: &AppState,
        tenant: &Tenant,
        path: AutomationPath,
    ) -> Result<(Automation, AutomationDefinition)> {
        let automation = find(state, tenant, path).await?.automation;
        let stored = current_version(state, &automation).await?.definition;
        let definition = match (self.trigger, self.steps) {
            (None, None) => stored,
            (trigger, steps) => AutomationEdit::unsaved(trigger, steps).apply(&stored)?,
        };
        Ok((automation, definition))
    }
}

/// The steps to run, and the event to run them with. Delays are skipped, and waits count as timed out
#[derive(Debug, RequestObject)]
#[schema(name = "DryRunAutomation", examples = [{"email": "grace@example.net", "data": {"plan": "trial"}}], body_bytes_max = BODY_BYTES_MAX, optional_body)]
pub struct DryRunAutomation {
    #[field(flatten)]
    definition: UnsavedDefinition,
    /// The person's user id in your product
    #[field(aliases = ["userId"], parse = parse_user_id, schema = user_id_schema)]
    user_id: Option<String>,
    /// The person's email address
    #[field(parse = parse_email, schema = email_schema)]
    email: Option<String>,
    #[field(parse = parse_data, schema = data_schema, absent = Value::Object(Map::new()))]
    data: Value,
}

/// `POST /automations/{id}/dry-run`.
pub async fn dry_run(
    state: State,
    tenant: Tenant,
    (path, request): (AutomationPath, DryRunAutomation),
) -> Result<AutomationRunResponse> {
    let DryRunAutomation { definition, user_id, email, data } = request;
    let (automation, definition) = definition.load(&state, &tenant, path).await?;
    let incoming = EventFacts { name: definition.trigger.event.clone(), user_id, email, data };
    let event = state.accounts.product_events.with_id_and_time(&tenant, incoming);
    let (signal, mode) = (TriggerEvent::from(&event), RunMode::DryRun);
    let dry_run = DryRun { tenant: &tenant, mode, now: state.services.clock.now() };
    let run = state.accounts.automations.dry_run_definition(&dry_run, &automation, &definition, &signal).await;
    Ok(AutomationRunResponse { run: AutomationRunView::from_run_in_mode(&run, mode) })
}
