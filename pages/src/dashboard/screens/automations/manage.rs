//! Activate, pause, archive, cancel runs, duplicate, delete.

use super::{AutomationDetail, automation_page, call, path, read_automation};
use crate::dashboard::kit::confirm::{delete_confirmed, deletion_card};
use crate::dashboard::prelude::*;

/// Carries out the action that the form names.
pub async fn act(context: &Context<'_>) -> Result<Outcome, Failure> {
    let action = context.form().get("form");
    let change = call("update_automation", context.id()).json(json!({"action": action}));
    context.perform(&change).await.map_err(|mut failure| {
        // Only the activation of an automation without steps is refused with this field.
        if failure.fields.remove("steps").is_some() {
            failure.message = "Add at least one step".into();
        }
        failure
    })?;
    let notice = match action {
        "activate" => "activated",
        "pause" => "paused",
        "archive" => "archived",
        _ => "cancelled",
    };
    Ok(Outcome::done(&context.request.path, notice))
}

fn duplicate_form() -> Form<'static> {
    let name = Field::text("name", "Name of the copy").help("The copy is a draft with the same trigger and steps.");
    Form::new("duplicate", "Duplicate", vec![name]).secondary()
}

/// The actions on the automation as a whole.
pub async fn show(context: &Context<'_>) -> Result<View, Failure> {
    let automation = &read_automation(context, &call("get_automation", context.id())).await?;
    let counts = automation.counts;
    let has_runs = counts.running + counts.waiting > 0;
    let on_their_way = counted(counts.running + counts.waiting, "run");
    let duplicate = duplicate_form();
    let archive = Form::new("archive", "Archive", Vec::new()).secondary();
    let cancel = Form::new("cancel_runs", "Cancel all runs", Vec::new()).danger();
    let delete = format!("{}/delete", path(&automation.id));
    let may_change = context.allows("update_automation");
    let body = maud! {
        div.columns {
            @if context.allows("duplicate_automation") {
                section.card { h2 { "Duplicate" } (duplicate.within(context)) }
            }
            @if may_change && has_runs {
                section.card {
                    h2 { "Cancel its runs" }
                    p.help { "In progress: " (on_their_way) ". They end at once; new events still start runs." }
                    (cancel.within(context))
                }
            }
            @if may_change && automation.status != "archived" {
                section.card {
                    h2 { "Archive" }
                    p.help { "Events no longer start runs, and runs in progress are cancelled. You can activate it \
                        again." }
                    (archive.within(context))
                }
            }
            @if context.allows("delete_automation") {
                section.card {
                    h2 { "Delete" }
                    p.help { "Deletes the automation with its versions and runs." }
                    p { a.button href=(delete) { "Delete…" } }
                }
            }
        }
    };
    let archived = call("update_automation", &automation.id).json(json!({"action": "archive"}));
    Ok(automation_page(context, automation, "Manage", body).same_as(archived).into())
}

/// Copies the automation into a new draft.
pub async fn duplicate(context: &Context<'_>) -> Result<Outcome, Failure> {
    let body = duplicate_form().read(context.form())?;
    let call = call("duplicate_automation", context.id()).json(body);
    let copy: AutomationDetail = context.read_field("automation", &call).await?;
    Ok(Outcome::done(path(&copy.id), "created"))
}

/// The question before an automation is deleted.
pub async fn show_delete(context: &Context<'_>) -> Result<View, Failure> {
    let automation = &read_automation(context, &call("get_automation", context.id())).await?;
    let counts = automation.counts;
    let on_their_way = grouped(counts.running + counts.waiting);
    let effect = maud! {
        "“" (automation.name) "” is deleted with its versions and runs. Runs in progress that end: " (on_their_way)
        ". Sent emails stay in the list."
    };
    let body = deletion_card(context, "Delete the automation", &automation.name, effect);
    Ok(automation_page(context, automation, "Delete", body).same_as(call("delete_automation", &automation.id)).into())
}

/// Deletes an automation.
pub async fn delete(context: &Context<'_>) -> Result<Outcome, Failure> {
    let automation = read_automation(context, &call("get_automation", context.id())).await?;
    let deletion = call("delete_automation", &automation.id);
    delete_confirmed(context, &automation.name, &deletion, "/dashboard/automations").await
}
