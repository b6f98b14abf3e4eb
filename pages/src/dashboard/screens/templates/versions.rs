//! Versions of a template: publish, list, show, compare, publish an earlier one again.

use super::preview::{PreviewFrame, PreviewPanel, preview_views, render_version};
use super::{TemplateDetail, call, path, read_template, template_page};
use crate::dashboard::kit::diff::LineDiff;
use crate::dashboard::prelude::*;

/// The word for the draft among versions.
const DRAFT: &str = "draft";

#[answer]
struct TemplateVersionItem {
    number: u32,
    note: Option<String>,
    published_at: String,
    published_by: String,
}

#[derive(Debug, Deserialize)]
struct TemplateVersionDetail {
    #[serde(flatten)]
    item: TemplateVersionItem,
    #[serde(flatten)]
    content: TemplateDetail,
}

fn version_call(id: &str, number: impl ToString) -> Call {
    call("get_template_version", id).parameter("number", number.to_string())
}

async fn read_version(context: &Context<'_>, id: &str, number: &str) -> Result<TemplateVersionDetail, Failure> {
    context.read_field("version", &version_call(id, number)).await
}

/// The draft and the latest versions, for a control.
pub async fn version_choices(
    context: &Context<'_>,
    template: &TemplateDetail,
) -> Result<Vec<(String, String)>, Failure> {
    let latest = call("list_template_versions", &template.id).query("limit", "100");
    let found: List<TemplateVersionItem> = context.read_list("versions", &latest).await?;
    let label = |number: u32| match template.published_version == Some(number) {
        true => format!("Version {number} (published)"),
        false => format!("Version {number}"),
    };
    let versions = found.entries.iter().map(|version| (version.number.to_string(), label(version.number)));
    Ok(std::iter::once((DRAFT.to_owned(), "Draft".to_owned())).chain(versions).collect())
}

/// The settings of a content as lines.
fn settings_text(content: &TemplateDetail) -> String {
    let mut lines = vec![
        format!("Subject: {}", content.subject.as_deref().unwrap_or_default()),
        format!("Preview text: {}", content.preheader.as_deref().unwrap_or_default()),
        format!("From: {}", content.from.as_deref().unwrap_or_default()),
        format!("Reply to: {}", content.reply_to.join(", ")),
        format!("Category: {}", content.category),
        format!("Unsubscribe link: {}", if content.unsubscribe_enabled { "yes" } else { "no" }),
        format!("Source of the HTML body: {}", if content.mjml.is_some() { "MJML" } else { "HTML" }),
    ];
    for variable in &content.variables {
        let required = if variable.required { ", required" } else { "" };
        let fallback = match &variable.fallback_value {
            Value::Null => String::new(),
            value => format!(", fallback {value}"),
        };
        lines.push(format!("Variable {}: {}{required}{fallback}", variable.key, variable.r#type));
    }
    lines.join("\n") + "\n"
}

/// The differences of two contents, part by part.
fn content_diff(before: &TemplateDetail, after: &TemplateDetail) -> impl Renderable {
    let body = |body: &Option<String>| body.clone().unwrap_or_default();
    // The sources that people wrote are compared, not the HTML that was compiled from them.
    let source = match (&before.mjml, &after.mjml) {
        (Some(before), Some(after)) => ("MJML", before.clone(), after.clone()),
        _ => ("HTML", body(&before.html), body(&after.html)),
    };
    let parts = [
        ("Subject and settings", settings_text(before), settings_text(after)),
        source,
        ("Plain text", body(&before.text), body(&after.text)),
    ];
    let is_equal = parts.iter().all(|(_, before, after)| before == after);
    maud! {
        @if is_equal { p.soft { "There are no differences." } }
        @for (title, before, after) in &parts {
            @if before != after {
                section { h2 { (title) } (LineDiff { caption: title, before, after }) }
            }
        }
    }
}

fn note_field(help: &'static str) -> Field {
    Field::text("note", "Note").placeholder("New offer in the first paragraph").help(help)
}

fn publish_form() -> Form<'static> {
    Form::new("publish", "Publish the draft", vec![note_field("For your team: why this version exists.")])
}

/// The changes that publishing makes, and its form.
pub async fn show_publish(context: &Context<'_>) -> Result<View, Failure> {
    let template = &read_template(context, &call("get_template", context.id())).await?;
    let published = match template.published_version {
        Some(number) => Some(read_version(context, &template.id, &number.to_string()).await?),
        None => None,
    };
    let is_changed = template.has_unpublished_changes || published.is_none();
    let form = publish_form();
    let body = maud! {
        @match &published {
            None => { p { "This is the first version: emails can use the template once it is published." } }
            Some(version) => {
                p {
                    @if is_changed {
                        "From now on, emails use the draft instead of version " (version.item.number)
                        ". Emails that have already been accepted do not change."
                    } @else {
                        "The draft is identical to version " (version.item.number) ", which is published."
                    }
                }
            }
        }
        @if is_changed { div.card { (form.within(context)) } }
        @if let Some(version) = published.as_ref().filter(|_| is_changed) {
            (content_diff(&version.content, template))
        }
    };
    let same = call("publish_template", &template.id).json(json!({"note": "Why"}));
    Ok(template_page(context, template, "Publish", body).same_as(same).into())
}

/// Publishes the draft.
pub async fn publish(context: &Context<'_>) -> Result<Outcome, Failure> {
    let body = publish_form().read(context.form())?;
    context.act(&call("publish_template", context.id()).json(body), path(context.id()), "published").await
}

/// The list of versions.
pub async fn show_list(context: &Context<'_>) -> Result<View, Failure> {
    let template = &read_template(context, &call("get_template", context.id())).await?;
    let list = call("list_template_versions", &template.id).query("cursor", context.query().get("cursor"));
    let found: &List<TemplateVersionItem> = &context.read_list("versions", &list).await?;
    let table = Table::of("Versions", &found.entries)
        .column("Version", |version| {
            maud! {
                a href=(format!("{}/versions/{}", path(&template.id), version.number)) { "Version " (version.number) }
                @if template.published_version == Some(version.number) { " " (Badge::new("Published", Tone::Good)) }
            }
        })
        .column("Note", |version| version.note.as_deref().unwrap_or("–"))
        .column("Published", |version| time_or_dash(Some(&version.published_at)))
        .column("By", |version| &version.published_by)
        .column("Compare", |version| {
            let compare = format!("{}/diff?from={}&to=draft", path(&template.id), version.number);
            maud! { a href=(compare) { "Compare with draft" span.hidden { ", version " (version.number) } } }
        });
    let publish = format!("{}/publish", path(&template.id));
    let empty = EmptyState {
        title: "No version yet",
        text: "Publish the draft: each time, its content is kept as a version that you can compare and publish again.",
        action: context.allows("publish_template").then_some((publish.as_str(), "Publish the draft")),
    };
    let body = found.view(context, &table, empty);
    Ok(template_page(context, template, "Versions", body).same_as(list).into())
}

fn roll_back_form() -> Form<'static> {
    Form::new(
        "roll-back",
        "Publish this version again",
        vec![note_field("For your team: why you are publishing it again.")],
    )
}

pub async fn show_version(context: &Context<'_>) -> Result<View, Failure> {
    let template = &read_template(context, &call("get_template", context.id())).await?;
    let version = read_version(context, &template.id, context.parameter("number")).await?;
    let (number, content) = (&version.item.number.to_string(), &version.content);
    let mut sample = json!({});
    let mut rendered = None;
    if context.allows("preview_template") {
        let first = render_version(context, &template.id, number, &sample).await?;
        sample = first.suggested_variables;
        rendered = Some(render_version(context, &template.id, number, &sample).await?);
    }
    let facts = Facts::new()
        .row("Published", time_or_dash(Some(&version.item.published_at)))
        .row("By", &version.item.published_by)
        .row("Note", version.item.note.as_deref().unwrap_or("–"))
        .row("Category", sentence_case(&content.category))
        .row("From", content.from.as_deref().unwrap_or("–"))
        .row("Preview text", content.preheader.as_deref().unwrap_or("–"));
    let form = roll_back_form();
    let is_published = template.published_version == Some(version.item.number);
    let may_roll_back = context.allows("roll_back_template") && !is_published;
    let body = maud! {
        div.card { (facts) }
        @if let Some(rendered) = &rendered {
            section.mail-preview aria-labelledby="preview-title" {
                h2 #preview-title { "Preview with sample data" }
                (preview_views(""))
                (PreviewPanel {
                    id: &template.id, frame: PreviewFrame::Stored { version: number, revision: 0 }, sample: &sample,
                    rendered, remote: false, is_compiled: content.mjml.is_some(),
                }.view())
            }
        }
        @if may_roll_back {
            section.card {
                h2 { "Publish this version again" }
                p.help { "Its content is published as a new version and becomes the draft." }
                (form.within(context))
            }
        }
        section {
            h2 { "Source" }
            @if let Some(mjml) = &content.mjml {
                details { summary { "MJML" } pre.wrap tabindex="0" { (mjml) } }
            }
            details { summary { @if content.mjml.is_some() { "Compiled HTML" } @else { "HTML" } } pre.wrap tabindex="0" { (content.html.as_deref().unwrap_or_default()) } }
            details { summary { "Plain text" } pre.wrap tabindex="0" { (content.text.as_deref().unwrap_or_default()) } }
        }
    };
    let title = format!("Version {number}");
    let compare = format!("{}/diff?from={number}&to=draft", path(&template.id));
    Ok(template_page(context, template, &title, body)
        .below(format!("{}/versions", path(&template.id)), "Versions")
        .actions(maud! {
            @if is_published { (Badge::new("Published", Tone::Good)) }
            a.button href=(compare) { "Compare with the draft" }
        })
        .same_as(version_call(&template.id, number))
        .into())
}

/// Publishes a copy of an earlier version.
pub async fn roll_back(context: &Context<'_>) -> Result<Outcome, Failure> {
    let mut body = roll_back_form().read(context.form())?;
    body["version"] = context.parameter("number").parse::<u32>().map_err(|_| Failure::not_found())?.into();
    let call = call("roll_back_template", context.id()).json(body);
    context.act(&call, format!("{}/versions", path(context.id())), "rolled_back").await
}

/// The content of the draft or of a version.
async fn content_of(
    context: &Context<'_>,
    template: &TemplateDetail,
    version: &str,
) -> Result<TemplateDetail, Failure> {
    if version == DRAFT {
        return Ok(template.clone());
    }
    Ok(read_version(context, &template.id, version).await?.content)
}

/// The differences of two versions.
pub async fn show_diff(context: &Context<'_>) -> Result<View, Failure> {
    let template = &read_template(context, &call("get_template", context.id())).await?;
    let choices = version_choices(context, template).await?;
    let published = template.published_version.map_or_else(|| DRAFT.to_owned(), |number| number.to_string());
    let chosen = |name: &str, default: &str| match context.query().get(name) {
        "" => default.to_owned(),
        chosen => chosen.to_owned(),
    };
    let (from, to) = (chosen("from", &published), chosen("to", DRAFT));
    let filters = [Filter::select("from", "From", choices.clone()), Filter::select("to", "To", choices)];
    let (before, after) = (content_of(context, template, &from).await?, content_of(context, template, &to).await?);
    // The bar shows what the address says; without a choice it shows the first one, so the choice is made explicit.
    if context.query().get("from").is_empty() {
        return Ok(View::SeeOther(format!("{}/diff?from={from}&to={to}", path(&template.id))));
    }
    let body = maud! {
        (FilterBar { context, filters: &filters })
        div data-fragment="list" { (content_diff(&before, &after)) }
    };
    let same = if from == DRAFT { call("get_template", &template.id) } else { version_call(&template.id, &from) };
    Ok(template_page(context, template, "Compare", body).same_as(same).into())
}
