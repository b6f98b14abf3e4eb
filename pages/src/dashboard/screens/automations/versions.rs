//! Versions of an automation: the list, the difference of two, and an earlier one as the next version.

use super::definition_text::definition_text;
use super::{automation_page, call, path, read_automation};
use crate::dashboard::kit::diff::LineDiff;
use crate::dashboard::prelude::*;

#[answer]
struct AutomationVersionItem {
    version: u32,
    trigger: Value,
    steps: Vec<Value>,
    created_at: String,
}

impl AutomationVersionItem {
    fn text(&self) -> String {
        definition_text(&json!({"trigger": self.trigger, "steps": self.steps}))
    }
}

/// The list, and the difference of two versions of it.
pub async fn show(context: &Context<'_>) -> Result<View, Failure> {
    let automation = &read_automation(context, &call("get_automation", context.id())).await?;
    let list = call("list_automation_versions", &automation.id)
        .query("limit", "100")
        .query("cursor", context.query().get("cursor"));
    let found = &context.read_list::<AutomationVersionItem>("versions", &list).await?;
    let choice = |item: &AutomationVersionItem| {
        let current = if item.version == automation.version { " (current)" } else { "" };
        (item.version.to_string(), format!("Version {}{current}", item.version))
    };
    let choices: Vec<_> = found.entries.iter().map(choice).collect();
    let filters = [Filter::select("from", "From", choices.clone()), Filter::select("to", "To", choices)];
    let chosen = |name: &str, default: usize| {
        let number = context.query().get(name).parse::<u32>();
        let by_number = number.ok().and_then(|number| found.entries.iter().find(|item| item.version == number));
        by_number.or_else(|| found.entries.get(default))
    };
    let (from, to) = (chosen("from", 1), chosen("to", 0));
    // The controls show what the address says, so the address says what is compared.
    if context.query().get("from").is_empty()
        && let (Some(from), Some(to)) = (from, to)
    {
        let query = context.query().with("from", &from.version.to_string()).with("to", &to.version.to_string());
        return Ok(View::SeeOther(format!("{}?{}", context.request.path, query.to_query())));
    }
    let base = path(&automation.id);
    let table = Table::new("Versions", &["Version", "Steps", "Saved", "Compare"]).numbers(&["Steps"]).rows(
        &found.entries,
        |item| {
            let compare = format!("{base}/versions?from={}&to={}", item.version, automation.version);
            let is_current = item.version == automation.version;
            Row::new()
                .cell(maud! { "Version " (item.version) @if is_current { " " (Badge::new("Current", Tone::Good)) } })
                .cell(item.steps.len())
                .cell(time_or_dash(Some(&item.created_at)))
                .cell(maud! {
                    @if is_current {
                        span.dash { "–" }
                    } @else {
                        a href=(compare) { "Compare with current" span.hidden { ", version " (item.version) } }
                    }
                })
        },
    );
    let may_restore = context.allows("update_automation");
    let restored = from.filter(|item| may_restore && item.version != automation.version);
    let form = restored.map(|item| restore_form(item.version));
    let body = maud! {
        p.help { "Once an automation has been active, each save creates a version. Runs stay on the version they \
            started with." }
        (table)
        (Pager { context, next_cursor: found.next_cursor.as_deref() })
        @if found.entries.len() > 1 {
            section {
                h2 { "Compare" }
                (FilterBar { context, filters: &filters })
                @if let (Some(from), Some(to)) = (from, to) {
                    div data-fragment="list" {
                        p.soft { "From version " (from.version) " to version " (to.version) "." }
                        (LineDiff { caption: "Differences between two \
                            versions", before: &from.text(), after: &to.text() })
                    }
                }
            }
        }
        @if let Some((form, item)) = form.as_ref().zip(restored) {
            section.card {
                h2 { "Use version " (item.version) " again" }
                p.help { "Its trigger and steps become the next version." }
                (form.within(context))
            }
        }
    };
    Ok(automation_page(context, automation, "Versions", body).same_as(list).into())
}

fn restore_form(version: u32) -> Form<'static> {
    Form::new("restore", "Use this version again", vec![Field::hidden("version", version.to_string())])
}

/// Makes an earlier version the next one.
pub async fn restore(context: &Context<'_>) -> Result<Outcome, Failure> {
    let number: u32 = context.form().get("version").parse().map_err(|_| Failure::not_found())?;
    let list = call("list_automation_versions", context.id()).query("limit", "100");
    let found: List<AutomationVersionItem> = context.read_list("versions", &list).await?;
    let item = found.entries.iter().find(|item| item.version == number).ok_or_else(Failure::not_found)?;
    let body = json!({"trigger": item.trigger, "steps": item.steps});
    context.act(&call("update_automation", context.id()).json(body), path(context.id()), "changed").await
}
