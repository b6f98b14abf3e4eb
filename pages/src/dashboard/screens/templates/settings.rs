//! Settings of a template: names, category, author; copy, archive, delete.

use super::list::CATEGORIES;
use super::{TemplateDetail, call, path, read_template, template_page};
use crate::dashboard::kit::confirm::{delete_confirmed, deletion_card};
use crate::dashboard::prelude::*;

fn settings_form(template: &TemplateDetail) -> Form<'static> {
    let categories = choices(&CATEGORIES);
    let unsubscribe = Field::new("unsubscribe_enabled", "Add an unsubscribe link", Control::Checkbox)
        .value(template.unsubscribe_enabled.to_string())
        .help("Product emails and newsletters always have one.");
    let fields = vec![
        Field::text("name", "Name").required().value(template.name.clone()),
        Field::text("alias", "Alias")
            .empty(Empty::Null)
            .value(template.alias.clone().unwrap_or_default())
            .help("The name in API calls. After a change, calls with the old alias fail."),
        Field::text("from", "From")
            .empty(Empty::Null)
            .value(template.from.clone().unwrap_or_default())
            .placeholder("Acme <hi@example.com>")
            .help("Used if a request sets no sender."),
        Field::new("reply_to", "Reply to", Control::Lines { rows: 2 })
            .empty(Empty::Null)
            .value(template.reply_to.join("\n"))
            .help("One address per line."),
        Field::new("category", "Category", Control::Radio(categories)).value(template.category.clone()),
        unsubscribe,
    ];
    Form::new("settings", "Save the settings", fields)
}

fn duplicate_form() -> Form<'static> {
    let fields = vec![
        Field::text("name", "Name of the copy").help("Leave empty for the name with “(copy)”."),
        Field::text("alias", "Alias of the copy"),
    ];
    Form::new("duplicate", "Duplicate", fields).secondary()
}

fn status_form(template: &TemplateDetail) -> Form<'static> {
    // Leaving the archive needs a status; the API restores the one before.
    if template.status != "archived" {
        return Form::new("status", "Archive", vec![Field::hidden("status", "archived")]).secondary();
    }
    let restored = if template.published_version.is_some() { "published" } else { "draft" };
    Form::new("status", "Restore", vec![Field::hidden("status", restored)]).secondary()
}

/// The settings.
pub async fn show(context: &Context<'_>) -> Result<View, Failure> {
    let template = &read_template(context, &call("get_template", context.id())).await?;
    let (mut settings, duplicate, status) = (settings_form(template), duplicate_form(), status_form(template));
    settings.fields.push(seen_version::field(&template.draft_version.to_string()));
    let delete = format!("{}/delete", path(&template.id));
    let may_change = context.allows("update_template");
    let body = maud! {
        div.columns.wide-first {
            div.card {
                h2 { "Settings of the draft" }
                p.help { "The category, sender and unsubscribe link take effect when you publish; the name and alias \
                    at once." }
                @if may_change { (settings.within(context)) }
            }
            div.stack {
                @if context.allows("duplicate_template") {
                    section.card { h2 { "Duplicate" } (duplicate.within(context)) }
                }
                @if may_change {
                    section.card {
                        h2 { "Archive" }
                        p.help { "New emails cannot use an archived template. Its versions are kept." }
                        (status.within(context))
                    }
                }
                @if context.allows("delete_template") {
                    section.card {
                        h2 { "Delete" }
                        p.help { "Deletes the draft and all versions." }
                        p { a.button href=(delete) { "Delete…" } }
                    }
                }
            }
        }
    };
    let change =
        call("update_template", &template.id).json(json!({"name": template.name, "category": template.category}));
    Ok(template_page(context, template, "Settings", body).same_as(change).into())
}

/// Saves the settings.
pub async fn save(context: &Context<'_>) -> Result<Outcome, Failure> {
    let mut body = settings_form(&TemplateDetail::default()).read(context.form())?;
    if let Ok(version) = context.form().get(seen_version::FIELD).parse::<u32>() {
        body["if_version"] = json!(version);
    }
    context.act(&call("update_template", context.id()).json(body), &context.request.path, "changed").await
}

/// Copies the draft into a new template.
pub async fn duplicate(context: &Context<'_>) -> Result<Outcome, Failure> {
    let body = duplicate_form().read(context.form())?;
    let call = call("duplicate_template", context.id()).json(body);
    let copy: TemplateDetail = context.read_field("template", &call).await?;
    Ok(Outcome::done(path(&copy.id), "created"))
}

/// Archives, or takes out of the archive.
pub async fn set_status(context: &Context<'_>) -> Result<Outcome, Failure> {
    let status = context.form().get("status");
    let call = call("update_template", context.id()).json(json!({"status": status}));
    context.act(&call, &context.request.path, if status == "archived" { "archived" } else { "changed" }).await
}

/// The question before a template is deleted.
pub async fn show_delete(context: &Context<'_>) -> Result<View, Failure> {
    let template = &read_template(context, &call("get_template", context.id())).await?;
    let effect = maud! {
        "The draft and all versions of “" (template.name) "” are deleted. Requests that use it are refused, and "
        "automation steps that send it fail. Sent emails stay in the list."
    };
    let body = deletion_card(context, "Delete the template", &template.name, effect);
    Ok(template_page(context, template, "Delete", body).same_as(call("delete_template", &template.id)).into())
}

/// Deletes a template.
pub async fn delete(context: &Context<'_>) -> Result<Outcome, Failure> {
    let template = &read_template(context, &call("get_template", context.id())).await?;
    let deletion = call("delete_template", &template.id);
    delete_confirmed(context, &template.name, &deletion, "/dashboard/templates").await
}
