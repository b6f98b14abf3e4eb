//! The preview of a template: the rendered bodies, variables that are missing or unused, and the size.

use super::{call, editor, path};
use crate::dashboard::kit::mail_frame::framed_html;
use crate::dashboard::prelude::*;

/// Gmail clips a message whose HTML body is longer.
const GMAIL_BYTES_MAX: usize = 102 << 10;
/// The longest sample data in the address of a frame.
const SAMPLE_BYTES_MAX: usize = 6_000;
/// How a preview is looked at, with the labels.
const VIEWS: [(&str, &str); 4] =
    [("desktop", "Desktop"), ("mobile", "Mobile"), ("dark", "Dark"), ("text", "Plain text")];

/// A rendered template.
#[answer]
pub struct RenderedPreview {
    pub subject: Option<String>,
    pub html: Option<String>,
    pub text: Option<String>,
    pub missing_variables: Vec<String>,
    pub unused_variables: Vec<String>,
    pub suggested_variables: Value,
    pub warnings: Vec<String>,
    pub size_bytes: u64,
}

/// The call that renders a version; `draft` is the draft.
pub fn preview_call(id: &str, version: &str, sample: &Value) -> Call {
    let version = version.parse::<u32>().map_or_else(|_| json!("draft"), Value::from);
    call("preview_template", id).json(json!({"version": version, "variables": sample}))
}

/// Renders a version with sample data.
pub async fn render_version(
    context: &Context<'_>,
    id: &str,
    version: &str,
    sample: &Value,
) -> Result<RenderedPreview, Failure> {
    context.read(&preview_call(id, version, sample)).await
}

/// Renders content that is not saved in place of the draft's. Errors of its fields have the fields' own names.
pub async fn render_entered(
    context: &Context<'_>,
    id: &str,
    changes: &Value,
    sample: &Value,
) -> Result<RenderedPreview, Failure> {
    let body = json!({"changes": changes, "variables": sample});
    context.read(&call("preview_template", id).json(body)).await.map_err(|mut failure| {
        let own = |name: &str| name.strip_prefix("changes.").unwrap_or(name).to_owned();
        failure.fields = failure.fields.into_iter().map(|(name, text)| (own(&name), text)).collect();
        failure.message = failure.message.replace("`changes.", "`");
        failure
    })
}

/// Reads sample data.
///
/// # Errors
/// They are no JSON object; the failure is of this field.
pub fn parse_sample(field: &str, text: &str) -> Result<Value, Failure> {
    match serde_json::from_str::<Value>(text.trim()) {
        _ if text.trim().is_empty() => Ok(json!({})),
        Ok(sample) if sample.is_object() => Ok(sample),
        Ok(_) => Err(Failure::field(field, "Enter an object: {\"name\": \"Grace\"}")),
        Err(error) => Err(Failure::field(field, format!("This is not valid JSON: {error}"))),
    }
}

/// The field for sample data.
pub fn sample_field(name: &'static str, sample: &Value) -> Field {
    let value = serde_json::to_string_pretty(sample).unwrap_or_default();
    Field::new(name, "Sample data", crate::dashboard::form::Control::Json { rows: 6 }).value(value)
}

/// The HTML body, for the frame: of what the editor's form posts into it, or of a version.
pub async fn show_frame(context: &Context<'_>) -> Result<View, Failure> {
    if context.is_preview() {
        let (changes, sample) = editor::read_entered(context.form())?;
        let rendered = render_entered(context, context.id(), &changes, &sample).await?;
        let remote = context.form().get("remote") == "true";
        return Ok(View::Foreign { html: framed_html(&rendered.html.unwrap_or_default()), remote });
    }
    let query = context.query();
    let sample = parse_sample("sample", query.get("sample"))?;
    let rendered = render_version(context, context.id(), query.get("version"), &sample).await?;
    let html = framed_html(&rendered.html.unwrap_or_default());
    Ok(View::Foreign { html, remote: query.get("remote") == "1" })
}

/// The choice of how a preview is looked at. Style rules show what is chosen, so it needs neither script nor request.
pub fn preview_views(chosen: &str) -> impl Renderable {
    let is_known = VIEWS.iter().any(|(word, _)| *word == chosen);
    let chosen = if is_known { chosen } else { "desktop" };
    maud! {
        fieldset.views {
            legend.hidden { "Show the preview as" }
            @for (word, label) in VIEWS {
                input id={ "view-" (word) } type="radio" name="view" value=(word) checked[word == chosen];
                label for={ "view-" (word) } { (label) }
            }
        }
    }
}

/// The source of the frame with the HTML body.
#[derive(Debug, Clone, Copy)]
pub enum PreviewFrame<'p> {
    /// A stored version has an address.
    Stored {
        /// `draft`, or a number.
        version: &'p str,
        /// Changes with the content, so that a browser loads the frame again.
        revision: u32,
    },
    /// The editor's form is posted into the frame.
    Entered,
}

/// A rendered version.
pub struct PreviewPanel<'p> {
    pub id: &'p str,
    pub frame: PreviewFrame<'p>,
    pub sample: &'p Value,
    pub rendered: &'p RenderedPreview,
    /// Pictures of other hosts are loaded.
    pub remote: bool,
    /// The HTML body is compiled from MJML.
    pub is_compiled: bool,
}

impl PreviewPanel<'_> {
    /// The frame of an HTML body.
    fn html_frame(&self) -> impl Renderable {
        let base = path(self.id);
        let (sample, remote) = (self.sample.to_string(), if self.remote { "&remote=1" } else { "" });
        let frame = self.frame;
        let fits = sample.len() <= SAMPLE_BYTES_MAX;
        maud! {
            @match frame {
                PreviewFrame::Entered => {
                    iframe.mail sandbox="" title="The email as HTML" name="entered-mail" {}
                    button.button type="submit" name="preview" value="frame" data-press="" formnovalidate
                        formaction={ (base) "/frame" } formtarget="entered-mail" { "Show the HTML" }
                }
                PreviewFrame::Stored { .. } if !fits => {
                    p.empty { "The sample data is too long for the frame; shorten it." }
                }
                PreviewFrame::Stored { version, revision } => {
                    iframe.mail sandbox="" title="The email as HTML" src={
                        (base) "/frame?version=" (encode(version)) "&revision=" (revision) (remote) "&sample=" (encode(&sample))
                    } {}
                }
            }
        }
    }

    pub fn view(&self) -> impl Renderable {
        let rendered = self.rendered;
        maud! {
            p.subject-line { span.soft { "Subject " } (rendered.subject.as_deref().unwrap_or("(none)")) }
            div.as-html {
                @match &rendered.html {
                    None => { p.empty { "There is no HTML body. Recipients see the plain text." } }
                    Some(_) => { (self.html_frame()) }
                }
            }
            div.as-text {
                @match &rendered.text {
                    None => { p.empty { "There is no plain text. It is generated from the HTML body when an email is \
                        sent." } }
                    Some(text) => { pre.wrap tabindex="0" role="group" aria-label="The email as plain text" { (text) } }
                }
            }
            (size_meter(if self.is_compiled { "Compiled HTML" } else { "HTML" }, rendered.html.as_deref().unwrap_or_default().len()))
            (variable_findings(rendered))
        }
    }
}

fn size_meter(label: &'static str, bytes: usize) -> impl Renderable {
    let (bytes, max) = (bytes, GMAIL_BYTES_MAX);
    let size = file_size(u64::try_from(bytes).unwrap_or(u64::MAX));
    maud! {
        div.size-meter {
            label for="size" { (label) ": " (size) " of 102 KB" }
            meter id="size" min="0" max=(max) low=(max / 2) high=(max / 10 * 9) optimum="0" value=(bytes.min(max)) {
                (size)
            }
            @if bytes > max {
                p.error { "Gmail clips the email at 102 KB: the end, with the unsubscribe link, is not shown." }
            }
        }
    }
}

fn variable_findings(rendered: &RenderedPreview) -> impl Renderable {
    let names = |names: &[String]| {
        let names = names.to_vec();
        maud! { @for name in &names { code.chip { (name) } " " } }.memoize()
    };
    maud! {
        @if !rendered.missing_variables.is_empty() {
            div.notice.warning {
                p { strong { "Missing in the sample: " } (names(&rendered.missing_variables)) }
                p { "Emails without them are refused. Send them, or define a fallback." }
            }
        }
        @if !rendered.unused_variables.is_empty() {
            p.small { strong { "Not used: " } (names(&rendered.unused_variables)) }
        }
        @if !rendered.warnings.is_empty() {
            ul.small.preview-warnings { @for warning in &rendered.warnings { li { (warning) } } }
        }
    }
}
