//! Path of an automation, and the automation that it names.

use crate::prelude::*;
use store::automation::StoredAutomation;

/// Path of an automation. A malformed id is answered 404, like an unknown one.
#[derive(Debug, Clone, Copy)]
pub struct AutomationPath(pub(super) Option<AutomationId>);

impl AutomationPath {
    pub(super) fn id(self) -> Result<AutomationId> {
        self.0.ok_or_else(automation_not_found)
    }
}

impl FromRequest for AutomationPath {
    fn parameters() -> Vec<Value> {
        vec![schema::path_parameter("id", "The automation's id (`aut_…`)")]
    }

    fn read(call: &Request) -> Result<Self> {
        Ok(Self(call.path_parameter("id").parse().ok()))
    }
}

pub(crate) fn automation_not_found() -> Problem {
    Problem::not_found("automation")
}

pub(crate) async fn find(state: &AppState, tenant: &Tenant, path: AutomationPath) -> Result<StoredAutomation> {
    let found = store::automation::get(&state.services.store, tenant.account().id, path.id()?).await?;
    found.ok_or_else(automation_not_found)
}
