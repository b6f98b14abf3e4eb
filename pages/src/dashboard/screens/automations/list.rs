//! The list of automations, and the form for a new one.

use super::{AutomationDetail, path};
use crate::dashboard::prelude::*;

/// The list.
pub async fn show(context: &Context<'_>) -> Result<View, Failure> {
    let filters = [Filter::words("status", "Status", &["draft", "active", "paused", "archived"])];
    let query = context.query();
    let call = Call::new("list_automations").filters(query, &["status", "cursor"]);
    let found = &context.read_list::<AutomationDetail>("automations", &call).await?;
    let bar = FilterBar { context, filters: &filters };
    let table = Table::of("Automations", &found.entries)
        .column("Name", |automation| link(path(&automation.id), &automation.name))
        .column("Trigger", |automation| maud! { code { (automation.event()) } })
        .column("Status", |automation| Badge::of(&automation.status))
        .number("Steps", |automation| automation.steps.len())
        .number("Running", |automation| grouped(automation.counts.running))
        .number("Waiting", |automation| grouped(automation.counts.waiting))
        .number("Completed", |automation| grouped(automation.counts.completed))
        .number("Failed", |automation| grouped(automation.counts.failed));
    let may_create = context.allows("create_automation");
    let is_filtered = bar.is_active();
    let empty = if is_filtered {
        EmptyState { title: "No matching automations", text: "No automations have this status.", action: None }
    } else {
        EmptyState {
            title: "No automations yet",
            text: "An automation starts when your product sends an event, such as a sign-up, and sends emails in \
                steps: at once, after some days, or when something has not happened.",
            action: may_create.then_some(("/dashboard/automations/new", "Create the first one")),
        }
    };
    let body = maud! {
        @if is_filtered || !table.is_empty() { (bar) }
        (found.fragment(context, &table, empty.clone()))
    };
    let page = Page::new("Automations", body).lead("Steps that follow an event, person by person.");
    let page = if may_create {
        page.actions(maud! { a.button.primary href="/dashboard/automations/new" { "New automation" } })
    } else {
        page
    };
    Ok(page.same_as(call).live().into())
}

fn create_form() -> Form<'static> {
    let fields = vec![
        Field::text("name", "Name").required().placeholder("Trial"),
        Field::text("trigger.event", "Event that starts a run")
            .required()
            .placeholder("user.created")
            .help("The name of an event that your product sends, or of a service event such as email.opened."),
    ];
    Form::new("create", "Create and add steps", fields)
}

/// The form for a new automation.
pub async fn show_new(context: &Context<'_>) -> Result<View, Failure> {
    let form = create_form();
    let example = json!({"name": "Trial", "trigger": {"event": "user.created"}, "steps": []});
    let body = maud! {
        div.card {
            p.help { "It starts as a draft: nothing is sent until you activate it." }
            (form.within(context))
        }
    };
    Ok(Page::new("New automation", body)
        .below("/dashboard/automations", "Automations")
        .same_as(Call::new("create_automation").json(example))
        .into())
}

/// Creates an automation.
pub async fn create(context: &Context<'_>) -> Result<Outcome, Failure> {
    let mut body = create_form().read(context.form())?;
    body["steps"] = json!([]);
    let call = Call::new("create_automation").json(body);
    let created: AutomationDetail = context.read_field("automation", &call).await?;
    Ok(Outcome::done(path(&created.id), "created"))
}
