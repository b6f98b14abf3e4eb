//! Automations: the list of steps is the page; tests, replay on past events, runs, versions.
//!
//! ```text
//! /automations ─► /automations/{id} (steps) ─┬─► /test ─► /mail (a rendered email in a frame)
//!                                            ├─► /replay (past events against the steps as entered)
//!                                            ├─► /runs ─► /runs/{run}
//!                                            ├─► /versions
//!                                            └─► /manage ─► /delete
//! ```

pub mod definition_text;
pub mod editor;
pub mod list;
pub mod manage;
pub mod replay;
pub mod runs;
pub mod step_card;
pub mod step_form;
pub mod test_run;
#[cfg(test)]
mod tests;
pub mod versions;
pub mod working_copy;

use super::templates::current_tab;
use crate::dashboard::prelude::*;

const CHANGE: &str = "update_automation";

/// The pages of automations.
pub const PAGES: &[PageRow] = page_rows! {
    "/automations" => list::show, reads ["list_automations"];
    "/automations/new" => list::show_new, reads ["create_automation"], forms {
        "create" => list::create, calls "create_automation";
    };
    "/automations/{id}" => editor::show, reads ["get_automation"], forms {
        editor::FORM => editor::save, calls CHANGE;
        "activate" => manage::act, calls CHANGE;
        "pause" => manage::act, calls CHANGE;
    };
    "/automations/{id}/test" => test_run::show, reads ["get_automation", "send_event"], forms {
        "test" => test_run::run, calls "send_event";
        editor::FORM => test_run::run_entered, calls "dry_run_automation";
    };
    "/automations/{id}/mail" => test_run::show_mail, reads ["get_automation", "send_event"];
    "/automations/{id}/replay" => replay::show, reads ["get_automation", "replay_automation"], forms {
        "saved" => replay::replay_saved, calls "replay_automation";
        editor::FORM => replay::replay_entered, calls "replay_automation";
    };
    "/automations/{id}/runs" => runs::show, reads ["get_automation", "list_automation_runs"];
    "/automations/{id}/runs/export" => runs::export, reads ["list_automation_runs"];
    "/automations/{id}/runs/{run}" => runs::show_run, reads ["get_automation", "get_automation_run"], forms {
        "cancel" => runs::cancel, calls "cancel_automation_run";
    };
    "/automations/{id}/versions" => versions::show, reads ["get_automation", "list_automation_versions"], forms {
        "restore" => versions::restore, calls CHANGE;
    };
    "/automations/{id}/manage" => manage::show, reads ["get_automation"], forms {
        "duplicate" => manage::duplicate, calls "duplicate_automation";
        "archive" => manage::act, calls CHANGE;
        "cancel_runs" => manage::act, calls CHANGE;
    };
    "/automations/{id}/delete" => manage::show_delete, reads ["get_automation"], forms {
        "delete" => manage::delete, calls "delete_automation";
    };
};

#[answer]
pub struct AutomationDetail {
    pub id: String,
    pub name: String,
    pub status: String,
    pub version: u32,
    pub trigger: Value,
    pub steps: Vec<Value>,
    pub counts: AutomationRunCounts,
    pub updated_at: Option<String>,
    pub activated_at: Option<String>,
}

/// The number of runs by status.
#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(default)]
pub struct AutomationRunCounts {
    pub running: u64,
    pub waiting: u64,
    pub completed: u64,
    pub failed: u64,
    pub cancelled: u64,
}

impl AutomationDetail {
    /// The event that starts runs.
    fn event(&self) -> &str {
        self.trigger["event"].as_str().unwrap_or_default()
    }
}

fn call(operation: &'static str, id: &str) -> Call {
    Call::new(operation).id(id)
}

async fn read_automation(context: &Context<'_>, call: &Call) -> Result<AutomationDetail, Failure> {
    context.read_field("automation", call).await
}

fn path(id: &str) -> String {
    format!("/dashboard/automations/{}", encode(id))
}

/// The tabs of an automation, as links.
fn automation_tabs(context: &Context<'_>, id: &str) -> impl Renderable {
    let base = path(id);
    let shown = [
        ("", "Steps", "get_automation"),
        ("/test", "Test", "send_event"),
        ("/replay", "Replay", "replay_automation"),
        ("/runs", "Runs", "list_automation_runs"),
        ("/versions", "Versions", "list_automation_versions"),
        ("/manage", "Manage", "update_automation"),
    ];
    let current = context.request.path.as_str();
    maud! {
        nav.tabs aria-label="Automation" {
            @for (suffix, title, operation) in shown {
                @if context.allows(operation) {
                    @let target = format!("{base}{suffix}");
                    a href=(target) aria-current=[current_tab(&target, &base, current)] { (title) }
                }
            }
        }
    }
}

/// A page of an automation with its tabs.
fn automation_page(context: &Context<'_>, automation: &AutomationDetail, title: &str, body: impl Renderable) -> Page {
    let id = automation.id.as_str();
    let page = Page::new(title, maud! { (automation_tabs(context, id)) (body) });
    page.below("/dashboard/automations", "Automations").below(path(id), automation.name.clone())
}
