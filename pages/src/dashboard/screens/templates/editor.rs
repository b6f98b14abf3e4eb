//! The editor of a draft: subject, bodies, variables and sample data, beside the preview.
//!
//! A preview renders what is entered and saves nothing. The frame of the HTML body is filled by posting the form into
//! it: unsaved content has no address.

use serde_json::Map;

use super::preview::{
    self, PreviewFrame, PreviewPanel, RenderedPreview, parse_sample, preview_views, render_entered, render_version,
};
use super::{TemplateDetail, call, path, read_template, status_badges, template_page};
use crate::dashboard::form::{FieldView, FormErrors, plain, read_fields};
use crate::dashboard::prelude::*;

/// The form's name.
pub const FORM: &str = "content";
/// Most variables of a template.
const VARIABLES_MAX: usize = 100;
const TYPES: [&str; 5] = ["string", "number", "boolean", "object", "list"];

/// The language of the HTML body's source.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SourceFormat {
    Html,
    Mjml,
}

impl SourceFormat {
    fn of_template(template: &TemplateDetail) -> Self {
        if template.mjml.is_some() { Self::Mjml } else { Self::Html }
    }

    /// The format of the form that was sent.
    fn of_form(form: &Fields) -> Self {
        if form.find("mjml").is_some() { Self::Mjml } else { Self::Html }
    }
}

fn content_fields(format: SourceFormat) -> Vec<Field> {
    const TAGS: &str = "Variables: {{name}}, {{{raw}}}, {{#if trial}}…{{/if}}, {{#each items}}…{{/each}}";
    let source = match format {
        SourceFormat::Html => Field::new("html", "HTML", Control::Code { rows: 18 }).help(TAGS),
        SourceFormat::Mjml => Field::new("mjml", "MJML", Control::Code { rows: 24 })
            .required()
            .help(format!("{TAGS}, also between sections and columns. It is compiled to HTML when you save.")),
    };
    vec![
        Field::text("subject", "Subject").empty(Empty::Null).placeholder("Welcome, {{name}}"),
        Field::text("preheader", "Preview text")
            .empty(Empty::Null)
            .help("Email programs show it after the subject, before the email is opened."),
        source.empty(Empty::Null),
        Field::new("text", "Plain text", Control::Code { rows: 8 })
            .empty(Empty::Null)
            .help("Leave empty to generate it from the HTML body."),
    ]
}

fn sample_field() -> Field {
    preview::sample_field("sample", &Value::Null).ignored().help("The values of the variables in this preview.")
}

fn variable_fields(n: usize) -> [Field; 4] {
    let name = |part: &str| format!("variables[{n}].{part}");
    let types = TYPES.map(|word| (word.to_owned(), word.to_owned()));
    [
        Field::new(name("key"), "Name", Control::Text),
        Field::new(name("type"), "Type", Control::Select(types.into())),
        Field::new(name("fallback_value"), "Fallback", Control::Text),
        Field::new(name("required"), "Required", Control::Checkbox),
    ]
}

/// The fields as the template has them.
fn fields_of(template: &TemplateDetail, sample: &Value) -> Fields {
    let mut pairs = vec![("sample".to_owned(), serde_json::to_string_pretty(sample).unwrap_or_default())];
    let format = SourceFormat::of_template(template);
    let source = if format == SourceFormat::Mjml { &template.mjml } else { &template.html };
    let contents = [&template.subject, &template.preheader, source, &template.text];
    for (field, value) in content_fields(format).iter().zip(contents) {
        pairs.push((field.name.to_string(), value.clone().unwrap_or_default()));
    }
    for (n, variable) in template.variables.iter().enumerate() {
        let fallback = match &variable.fallback_value {
            Value::Null => String::new(),
            Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        let [key, kind, fallback_value, required] = variable_fields(n);
        pairs.push((key.name.into(), variable.key.clone()));
        pairs.push((kind.name.into(), variable.r#type.clone()));
        pairs.push((fallback_value.name.into(), fallback));
        if variable.required {
            pairs.push((required.name.into(), "true".into()));
        }
    }
    Fields::from_pairs(pairs)
}

/// The positions of the variables that have a name.
fn named_rows(fields: &Fields) -> Vec<usize> {
    (0..VARIABLES_MAX).filter(|n| !fields.get(&format!("variables[{n}].key")).trim().is_empty()).collect()
}

/// The fields with the variables numbered without gaps: a row without a name is removed.
fn without_gaps(fields: &Fields) -> Fields {
    let rows = named_rows(fields);
    let mut pairs: Vec<_> = fields.iter().filter(|(name, _)| !name.starts_with("variables[")).map(owned).collect();
    for (n, row) in rows.iter().enumerate() {
        let (from, to) = (format!("variables[{row}]."), format!("variables[{n}]."));
        let renamed = fields
            .iter()
            .filter_map(|(name, value)| name.strip_prefix(&from).map(|part| (format!("{to}{part}"), value.to_owned())));
        pairs.extend(renamed);
    }
    Fields::from_pairs(pairs)
}

fn owned((name, value): (&str, &str)) -> (String, String) {
    (name.to_owned(), value.to_owned())
}

/// Reads the fallback value of a variable; `None` without one.
fn read_fallback(kind: &str, entered: &str) -> Result<Option<Value>, String> {
    match kind {
        _ if entered.trim().is_empty() => Ok(None),
        "string" => Ok(Some(Value::from(entered))),
        _ => serde_json::from_str(entered.trim()).map(Some).map_err(|_| {
            let example = match kind {
                "number" => "42",
                "boolean" => "true",
                "list" => "[\"one\", \"two\"]",
                _ => "{\"key\": \"value\"}",
            };
            format!("Enter a {kind} in JSON: {example}")
        }),
    }
}

/// The entered content in place of the draft's content, and the sample data.
pub(super) fn read_entered(form: &Fields) -> Result<(Value, Value), Failure> {
    let mut changes = read_body(&without_gaps(form))?;
    if let Some(members) = changes.as_object_mut() {
        members.remove("if_version");
    }
    Ok((changes, parse_sample("sample", form.get("sample"))?))
}

/// Reads the body of the change.
fn read_body(fields: &Fields) -> Result<Value, Failure> {
    let format = SourceFormat::of_form(fields);
    let mut body = read_fields(&content_fields(format), fields)?;
    if format == SourceFormat::Mjml && body["mjml"].is_null() {
        // Null would keep the HTML and make it the source.
        return Err(Failure::field("mjml", "Enter the MJML source, from <mjml> to </mjml>"));
    }
    let (mut variables, mut errors) = (Vec::new(), Map::new());
    for n in 0..named_rows(fields).len() {
        let [key, kind, fallback, required] = variable_fields(n).map(|field| field.name);
        let kind = fields.get(&kind);
        let mut variable = json!({
            "key": fields.get(&key).trim(), "type": kind, "required": fields.find(&required).is_some(),
        });
        match read_fallback(kind, fields.get(&fallback)) {
            Ok(None) => {}
            Ok(Some(value)) => variable["fallback_value"] = value,
            Err(text) => {
                errors.insert(fallback.into(), Value::from(text));
            }
        }
        variables.push(variable);
    }
    if let Some((name, text)) = errors.iter().next() {
        return Err(Failure::field(name, text.as_str().unwrap_or_default()));
    }
    body["variables"] = Value::from(variables);
    if let Ok(version) = fields.get("if_version").parse::<u32>() {
        body["if_version"] = Value::from(version);
    }
    Ok(body)
}

/// Saves the draft.
pub async fn save(context: &Context<'_>) -> Result<Outcome, Failure> {
    store(context).await?;
    Ok(Outcome::done(path(context.id()), "changed"))
}

async fn store(context: &Context<'_>) -> Result<TemplateDetail, Failure> {
    let body = read_body(&without_gaps(context.form()))?;
    read_template(context, &call("update_template", context.id()).json(body)).await
}

/// The values and the state of the editor.
struct EditorState {
    template: TemplateDetail,
    fields: Fields,
    failure: Option<Failure>,
    sample: Value,
    /// `None` if it cannot be rendered: the failure says why.
    rendered: Option<RenderedPreview>,
    /// The rendered content is entered and not saved.
    is_entered: bool,
    /// The version of the draft that the person saw first.
    seen_version: u32,
}

async fn load(context: &Context<'_>) -> Result<EditorState, Failure> {
    let mut failure = context.failure_of(FORM).filter(|failure| !failure.message.is_empty()).cloned();
    let is_save = context.is_preview() && context.form().get("preview") == "save";
    let stored = match is_save {
        true => store(context).await.map_err(|error| failure = Some(error)).ok(),
        false => None,
    };
    let is_entered = context.failure_of(FORM).is_some() && stored.is_none();
    let template = match stored {
        Some(template) => template,
        None => read_template(context, &call("get_template", context.id())).await?,
    };
    let seen = context.form().get("if_version").parse().ok().filter(|_| is_entered && !is_save && context.is_preview());
    let seen_version = seen.unwrap_or(template.draft_version);
    if !is_entered {
        let (sample, rendered) = stored_preview(context, is_save.then(|| context.form()), &mut failure).await;
        let fields = if is_save { without_gaps(context.form()) } else { fields_of(&template, &sample) };
        return Ok(EditorState { template, fields, failure, sample, rendered, is_entered, seen_version });
    }
    let (mut sample, mut rendered) = (json!({}), None);
    match read_entered(context.form()) {
        Ok((changes, entered)) => {
            if context.allows("preview_template") {
                let result = render_entered(context, context.id(), &changes, &entered).await;
                rendered = result.map_err(|error| failure.get_or_insert(error).clone()).ok();
            }
            sample = entered;
        }
        Err(error) => drop(failure.get_or_insert(error)),
    }
    let fields = without_gaps(context.form());
    Ok(EditorState { template, fields, failure, sample, rendered, is_entered, seen_version })
}

/// The sample data, and the stored draft rendered with them: those of the form, or the suggested ones.
async fn stored_preview(
    context: &Context<'_>,
    form: Option<&Fields>,
    failure: &mut Option<Failure>,
) -> (Value, Option<RenderedPreview>) {
    // Without a role that renders, the page shows the source alone.
    let may_render = context.allows("preview_template");
    let sample = match form {
        Some(form) => parse_sample("sample", form.get("sample")).unwrap_or_else(|error| {
            failure.get_or_insert(error);
            json!({})
        }),
        None if may_render => {
            let suggested = render_version(context, context.id(), "draft", &json!({})).await;
            suggested.map_or_else(|_| json!({}), |rendered| rendered.suggested_variables)
        }
        None => json!({}),
    };
    if !may_render {
        return (sample, None);
    }
    let rendered = render_version(context, context.id(), "draft", &sample).await;
    let rendered = rendered.map_err(|error| failure.get_or_insert(error).clone()).ok();
    (sample, rendered)
}

/// The editor.
pub async fn show(context: &Context<'_>) -> Result<View, Failure> {
    let state = load(context).await?;
    let template = &state.template;
    let editor = Editor { context, state: &state, may_edit: context.allows("update_template") };
    let mut page = template_page(context, template, &template.name, editor.view());
    page.trail.pop();
    let may_publish = context.allows("publish_template") && template.has_unpublished_changes;
    let publish = format!("{}/publish", path(&template.id));
    let page = page.actions(maud! {
        (status_badges(template))
        @if may_publish { a.button.primary href=(publish) { "Publish…" } }
    });
    let sample = json!({"subject": template.subject.clone().unwrap_or_default()});
    Ok(page
        .same_as(call("update_template", &template.id).json(sample))
        .same_as(preview::preview_call(&template.id, "draft", &state.sample))
        .into())
}

struct Editor<'e> {
    context: &'e Context<'e>,
    state: &'e EditorState,
    may_edit: bool,
}

impl Editor<'_> {
    fn field<'f>(&'f self, field: &'f Field) -> FieldView<'f> {
        FieldView { form: FORM, field, entered: Some(&self.state.fields), failure: self.state.failure.as_ref() }
    }

    fn view(&self) -> impl Renderable {
        let (context, state) = (self.context, self.state);
        let format = SourceFormat::of_form(&state.fields);
        let contents = content_fields(format);
        let sample = sample_field();
        let mut shown = contents.clone();
        shown.push(sample.clone());
        shown.push(Field::text("variables", "Variables"));
        let id = state.template.id.as_str();
        let frame = match state.is_entered {
            true => PreviewFrame::Entered,
            false => PreviewFrame::Stored { version: "draft", revision: state.template.draft_version },
        };
        let remote = state.fields.get("remote") == "true";
        maud! {
            form.editor method="post" action=(context.request.path) data-preview="preview" data-once="" {
                input type="hidden" name="csrf" value=(context.csrf());
                input type="hidden" name="form" value=(FORM);
                input type="hidden" name="if_version" value=(state.seen_version);
                @if let Some(failure) = &state.failure { (context.mark_shown(FORM)) (FormErrors { failure, fields: &shown }) }
                div.editor-source {
                    div.card.editor-fields {
                        @for field in &contents {
                            (self.field(field))
                            @if field.name == "mjml" {
                                p { a href={ (path(id)) "/compiled" } { "View compiled HTML" } }
                            }
                        }
                    }
                    (variables_card(self))
                    div.card { (self.field(&sample)) }
                    @if self.may_edit {
                        div.buttons.save-bar {
                            button.button.primary type="submit" { "Save the draft" }
                            button.button type="submit" name="preview" value="save" { "Save and preview" }
                            button.button type="submit" name="preview" value="look" { "Preview without saving" }
                            span.help { "Emails use the published version until you publish the draft." }
                        }
                    }
                }
                section.mail-preview aria-labelledby="preview-title" {
                    h2 #preview-title { "Preview" }
                    (preview_views(state.fields.get("view")))
                    div data-fragment="preview" {
                        @if let Some(failure) = state.failure.as_ref().filter(|_| context.is_preview()) {
                            div.notice.bad {
                                @if failure.fields.is_empty() { p { (failure.message) } }
                                @for (name, text) in &failure.fields { p { code { (name) } ": " (plain(text)) } }
                            }
                        }
                        @if let Some(rendered) = &state.rendered {
                            (PreviewPanel {
                                id, frame, sample: &state.sample, rendered, remote,
                                is_compiled: format == SourceFormat::Mjml,
                            }.view())
                        } @else {
                            p.empty { "Nothing to show yet." }
                        }
                    }
                    div.choice {
                        input id="remote" type="checkbox" name="remote" value="true" checked[remote];
                        label for="remote" { "Load remote images" }
                    }
                }
            }
        }
    }
}

/// The declared variables, and a row for another one.
fn variables_card(editor: &Editor<'_>) -> impl Renderable {
    let rows = named_rows(&editor.state.fields).len();
    let rows = if editor.may_edit { (rows + 1).min(VARIABLES_MAX) } else { rows };
    maud! {
        section.card aria-labelledby="variables-title" {
            h2 #variables-title { "Variables" }
            p.help {
                "An email without a required variable is refused. Variables that are not listed are required. "
                "Clear a name to remove the variable."
            }
            div.variables {
                @for n in 0..rows {
                    div.row { @for field in &variable_fields(n) { (editor.field(field)) } }
                }
            }
            @if editor.may_edit {
                button.button type="submit" name="preview" value="variable" { "Add another" }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_without_a_name_are_removed() {
        let entered = Fields::parse(
            b"subject=S&variables%5B0%5D.key=&variables%5B2%5D.key=n&variables%5B2%5D.type=number&variables%5B2%5D.fallback_value=7&if_version=3",
        );
        let body = read_body(&without_gaps(&entered)).unwrap();
        assert_eq!(body["variables"], json!([{"key": "n", "type": "number", "required": false, "fallback_value": 7}]));
        assert_eq!((&body["if_version"], &body["html"]), (&json!(3), &Value::Null));
    }

    #[test]
    fn wrong_fallback_values_are_named() {
        let entered =
            Fields::parse(b"variables%5B0%5D.key=n&variables%5B0%5D.type=list&variables%5B0%5D.fallback_value=x");
        let failure = read_body(&entered).unwrap_err();
        assert!(failure.fields["variables[0].fallback_value"].contains("[\"one\", \"two\"]"));
    }
}
