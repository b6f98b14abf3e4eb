//! Path of an automation, and the automation that it names.

use crate::prelude::*;
use store::automation::StoredAutomation;

deferred_id_path! { pub AutomationPath("id": AutomationId), "The automation's id (`aut_…`)", "automation" }

pub(crate) fn automation_not_found() -> Problem {
    Problem::not_found("automation")
}

pub(crate) async fn find(state: &AppState, tenant: &Tenant, path: AutomationPath) -> Result<StoredAutomation> {
    let found = store::automation::get(&state.services.store, tenant.account().id, path.id()?).await?;
    found.ok_or_else(automation_not_found)
}
