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

use hypertext::{Buffer, prelude::*};
use serde::Deserialize;
use serde_json::Value;

use super::encode;
use super::templates::current_tab;
use crate::dashboard::backend::{Call, Failure};
use crate::dashboard::context::Context;
use crate::dashboard::page::Page;
use crate::dashboard::table::{FormRow, PageAccess, PageRow};

const SIGNED_IN: PageAccess = PageAccess::SignedIn;
const CHANGE: &str = "update_automation";

/// The pages of automations.
pub const PAGES: &[PageRow] = &[
    PageRow {
        path: "/automations",
        access: SIGNED_IN,
        reads: &["list_automations"],
        show: |context| Box::pin(list::show(context)),
        forms: &[],
    },
    PageRow {
        path: "/automations/new",
        access: SIGNED_IN,
        reads: &["create_automation"],
        show: |context| Box::pin(async move { Ok(list::show_new(context)) }),
        forms: &[FormRow {
            name: "create",
            operation: "create_automation",
            submit: |context| Box::pin(list::create(context)),
        }],
    },
    PageRow {
        path: "/automations/{id}",
        access: SIGNED_IN,
        reads: &["get_automation"],
        show: |context| Box::pin(editor::show(context)),
        forms: &[
            FormRow { name: editor::FORM, operation: CHANGE, submit: |context| Box::pin(editor::save(context)) },
            FormRow { name: "activate", operation: CHANGE, submit: |context| Box::pin(manage::act(context)) },
            FormRow { name: "pause", operation: CHANGE, submit: |context| Box::pin(manage::act(context)) },
        ],
    },
    PageRow {
        path: "/automations/{id}/test",
        access: SIGNED_IN,
        reads: &["get_automation", "send_event"],
        show: |context| Box::pin(test_run::show(context)),
        forms: &[
            FormRow { name: "test", operation: "send_event", submit: |context| Box::pin(test_run::run(context)) },
            FormRow {
                name: editor::FORM,
                operation: "dry_run_automation",
                submit: |context| Box::pin(test_run::run_entered(context)),
            },
        ],
    },
    PageRow {
        path: "/automations/{id}/mail",
        access: SIGNED_IN,
        reads: &["get_automation", "send_event"],
        show: |context| Box::pin(test_run::show_mail(context)),
        forms: &[],
    },
    PageRow {
        path: "/automations/{id}/replay",
        access: SIGNED_IN,
        reads: &["get_automation", "replay_automation"],
        show: |context| Box::pin(replay::show(context)),
        forms: &[
            FormRow {
                name: "saved",
                operation: "replay_automation",
                submit: |context| Box::pin(replay::replay_saved(context)),
            },
            FormRow {
                name: editor::FORM,
                operation: "replay_automation",
                submit: |context| Box::pin(replay::replay_entered(context)),
            },
        ],
    },
    PageRow {
        path: "/automations/{id}/runs",
        access: SIGNED_IN,
        reads: &["get_automation", "list_automation_runs"],
        show: |context| Box::pin(runs::show(context)),
        forms: &[],
    },
    PageRow {
        path: "/automations/{id}/runs/export",
        access: SIGNED_IN,
        reads: &["list_automation_runs"],
        show: |context| Box::pin(runs::export(context)),
        forms: &[],
    },
    PageRow {
        path: "/automations/{id}/runs/{run}",
        access: SIGNED_IN,
        reads: &["get_automation", "get_automation_run"],
        show: |context| Box::pin(runs::show_run(context)),
        forms: &[FormRow {
            name: "cancel",
            operation: "cancel_automation_run",
            submit: |context| Box::pin(runs::cancel(context)),
        }],
    },
    PageRow {
        path: "/automations/{id}/versions",
        access: SIGNED_IN,
        reads: &["get_automation", "list_automation_versions"],
        show: |context| Box::pin(versions::show(context)),
        forms: &[FormRow {
            name: "restore",
            operation: CHANGE,
            submit: |context| Box::pin(versions::restore(context)),
        }],
    },
    PageRow {
        path: "/automations/{id}/manage",
        access: SIGNED_IN,
        reads: &["get_automation"],
        show: |context| Box::pin(manage::show(context)),
        forms: &[
            FormRow {
                name: "duplicate",
                operation: "duplicate_automation",
                submit: |context| Box::pin(manage::duplicate(context)),
            },
            FormRow { name: "archive", operation: CHANGE, submit: |context| Box::pin(manage::act(context)) },
            FormRow { name: "cancel_runs", operation: CHANGE, submit: |context| Box::pin(manage::act(context)) },
        ],
    },
    PageRow {
        path: "/automations/{id}/delete",
        access: SIGNED_IN,
        reads: &["get_automation"],
        show: |context| Box::pin(manage::show_delete(context)),
        forms: &[FormRow {
            name: "delete",
            operation: "delete_automation",
            submit: |context| Box::pin(manage::delete(context)),
        }],
    },
];

/// An automation.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
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

#[derive(Debug, Deserialize)]
struct OneAutomation {
    automation: AutomationDetail,
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
    Ok(context.read::<OneAutomation>(call).await?.automation)
}

fn path(id: &str) -> String {
    format!("/dashboard/automations/{}", encode(id))
}

/// The tabs of an automation, as links.
struct AutomationTabs<'t> {
    context: &'t Context<'t>,
    id: &'t str,
}

impl Renderable for AutomationTabs<'_> {
    fn render_to(&self, buffer: &mut Buffer) {
        let base = path(self.id);
        let shown = [
            ("", "Steps", "get_automation"),
            ("/test", "Test", "send_event"),
            ("/replay", "Replay", "replay_automation"),
            ("/runs", "Runs", "list_automation_runs"),
            ("/versions", "Versions", "list_automation_versions"),
            ("/manage", "Manage", "update_automation"),
        ];
        let current = self.context.request.path.as_str();
        maud! {
            nav.tabs aria-label="Automation" {
                @for (suffix, title, operation) in shown {
                    @if self.context.allows(operation) {
                        @let target = format!("{base}{suffix}");
                        a href=(target) aria-current=[current_tab(&target, &base, current)] { (title) }
                    }
                }
            }
        }
        .render_to(buffer);
    }
}

/// A page of an automation with its tabs.
fn automation_page(context: &Context<'_>, automation: &AutomationDetail, title: &str, body: impl Renderable) -> Page {
    let id = automation.id.as_str();
    let page = Page::new(title, maud! { (AutomationTabs { context, id }) (body) });
    page.below("/dashboard/automations", "Automations").below(path(id), automation.name.clone())
}
