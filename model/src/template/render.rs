//! Rendering: a template and variables to the subject, HTML and text of an email.
//!
//! A [`ParsedTemplate`] has its markup parsed; a [`CompiledTemplate`] is a published version. The cost of rendering is
//! bounded: by the size and depth of the variables, the number of elements rendered in blocks, and the size of the
//! output. Values are escaped in HTML only; a subject is one line.

use std::fmt;
use std::sync::{Arc, LazyLock};

use handlebars::{Context, Handlebars, Output, RenderContext, RenderErrorReason, Renderable as _};
use message::address::Mailbox;
use serde_json::{Map, Value, json};

use super::blocks::{self, RenderProgress};
use super::markup::{self, MarkupError, MarkupPiece};
use super::usage::VariableUsage;
use super::{SUBJECT_BYTES_MAX, TemplateBodies, TemplateSettings, UNSUBSCRIBE_URL};
use crate::email::{Category, SendOptions, SourceTemplate};
use crate::id::TemplateId;
use crate::raw_number;

/// Maximum size of the variables of one email, in approximate bytes of JSON.
pub const VARIABLES_BYTES_MAX: usize = 256 << 10;
/// Maximum nesting of the variables.
pub const VARIABLES_DEPTH_MAX: usize = 16;
/// Maximum bytes of a name in the variables; each look-up compares names.
pub const VARIABLE_NAME_BYTES_MAX: usize = 256;
/// Maximum bytes of rendered `html`, and of `text`: ten times what Gmail shows.
pub const RENDERED_BYTES_MAX: usize = 1 << 20;

/// A template with parsed markup.
#[derive(Debug)]
pub struct ParsedTemplate {
    pub settings: TemplateSettings,
    subject: Option<Vec<MarkupPiece>>,
    preheader: Option<Vec<MarkupPiece>>,
    html: Option<Vec<MarkupPiece>>,
    text: Option<Vec<MarkupPiece>>,
    /// The variables that it uses.
    pub usage: VariableUsage,
    /// It contains `{{unsubscribe_url}}`.
    pub has_unsubscribe_url: bool,
    /// Size of the markup in bytes.
    pub size_bytes: usize,
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RenderedTemplate {
    /// One line.
    pub subject: Option<String>,
    /// The HTML body, including the preheader.
    pub html: Option<String>,
    pub text: Option<String>,
}

/// All errors of rendering a template with the given variables.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RenderError {
    /// Required variables without a value: `name`, `user.city`, `items[2].price`.
    pub missing: Vec<String>,
    /// Invalid fields, each with the reason.
    pub invalid: Vec<(String, String)>,
}

impl RenderError {
    /// Returns whether there is no error.
    pub fn is_empty(&self) -> bool {
        self.missing.is_empty() && self.invalid.is_empty()
    }
}

impl fmt::Display for RenderError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some((name, message)) = self.invalid.first() {
            return write!(f, "`{name}` {message}");
        }
        match self.missing.as_slice() {
            [name] => write!(f, "The template variable `{name}` is missing"),
            many => write!(f, "The template variables `{}` are missing", many.join("`, `")),
        }
    }
}

impl std::error::Error for RenderError {}

impl ParsedTemplate {
    /// Parses the markup of a template.
    pub fn compile(
        settings: &TemplateSettings,
        bodies: &TemplateBodies,
    ) -> Result<Self, Vec<(&'static str, MarkupError)>> {
        let mut usage = VariableUsage::default();
        let mut errors = Vec::new();
        let mut read = |name: &'static str, source: &Option<String>| {
            let source = source.as_deref()?;
            let pieces = markup::parse(source).and_then(|pieces| {
                pieces.iter().try_for_each(|piece| VariableUsage::collect(piece).map(|found| usage.merge(found)))?;
                Ok(pieces)
            });
            pieces.map_err(|error| errors.push((name, error))).ok()
        };
        let subject = read("subject", &settings.subject);
        let preheader = read("preheader", &settings.preheader);
        let html = read("html", &bodies.html);
        let text = read("text", &bodies.text);
        if !errors.is_empty() {
            return Err(errors);
        }
        let sources = [&settings.subject, &settings.preheader, &bodies.html, &bodies.text];
        let sources: Vec<&str> = sources.into_iter().filter_map(|source| source.as_deref()).collect();
        Ok(Self {
            settings: settings.clone(),
            subject,
            preheader,
            html,
            text,
            usage,
            has_unsubscribe_url: sources.iter().any(|source| source.contains(UNSUBSCRIBE_URL)),
            size_bytes: sources.iter().map(|source| source.len()).sum(),
        })
    }

    /// Renders the subject and the bodies.
    pub fn render(&self, variables: &Value) -> Result<RenderedTemplate, RenderError> {
        require_complete(self.render_parts(variables, true))
    }

    /// Renders the bodies only, for an email with its own subject. Variables used only by the subject are not required.
    pub fn render_bodies(&self, variables: &Value) -> Result<RenderedTemplate, RenderError> {
        require_complete(self.render_parts(variables, false))
    }

    /// Renders as far as possible and returns the errors. Tags of missing variables stay in the text.
    pub fn preview(&self, variables: &Value) -> (RenderedTemplate, RenderError) {
        self.render_parts(variables, true)
    }

    fn render_parts(&self, variables: &Value, with_subject: bool) -> (RenderedTemplate, RenderError) {
        let mut error = RenderError::default();
        let mut progress = RenderProgress::default();
        let Some(data) = self.prepare_variables(variables, &mut progress, &mut error) else {
            return (RenderedTemplate::default(), error);
        };
        let Ok(context) = Context::wraps(data) else { return (RenderedTemplate::default(), error) };
        let progress = Arc::new(progress);
        let mut escaping = BARE_REGISTRY.clone();
        blocks::register(&mut escaping, &progress);
        let mut plain = escaping.clone();
        plain.register_escape_fn(handlebars::no_escape);
        let mut part = |name: &str, pieces: Option<&Vec<MarkupPiece>>, registry: &Handlebars<'static>| {
            let filled = render_part(pieces?, registry, &context);
            filled.map_err(|text| error.invalid.push((name.to_owned(), text))).ok()
        };
        let subject = part("subject", self.subject.as_ref().filter(|_| with_subject), &plain);
        let html = part("html", self.html.as_ref(), &escaping);
        let preheader = part("preheader", self.preheader.as_ref(), &escaping).filter(|_| self.html.is_some());
        let text = part("text", self.text.as_ref(), &plain);
        error.missing = progress.missing();
        let subject = subject.map(|subject| one_line(&subject));
        if subject.as_ref().is_some_and(|subject| subject.len() > SUBJECT_BYTES_MAX) {
            error.invalid.push(("subject".to_owned(), format!("is longer than {SUBJECT_BYTES_MAX} bytes")));
        }
        let html = match (html, preheader) {
            (Some(html), Some(preheader)) => Some(with_preheader(html, preheader.trim())),
            (html, _) => html,
        };
        (RenderedTemplate { subject, html: html.map(normalize_lines), text: text.map(normalize_lines) }, error)
    }

    /// Checks the given variables and adds fallbacks for missing ones. A null counts as missing.
    fn prepare_variables(
        &self,
        variables: &Value,
        progress: &mut RenderProgress,
        error: &mut RenderError,
    ) -> Option<Value> {
        let mut refuse = |text: String| error.invalid.push(("variables".to_owned(), text));
        let Value::Object(given) = variables else {
            refuse("must be an object".to_owned());
            return None;
        };
        let mut left = VARIABLES_BYTES_MAX;
        if let Err(text) = check_variable_limits(variables, 0, &mut left) {
            refuse(text);
            return None;
        }
        let mut data = without_nulls(given);
        for declared in &self.settings.variables {
            match (data.get(&declared.key), &declared.fallback_value) {
                (Some(value), _) if declared.r#type.accepts(value) => {}
                (Some(_), _) => {
                    let text = format!("must be {}", declared.r#type.phrase());
                    error.invalid.push((format!("variables.{}", declared.key), text));
                }
                (None, Some(fallback)) => {
                    data.insert(declared.key.clone(), fallback.clone());
                }
                (None, None) if declared.required => {
                    progress.note_missing(declared.key.clone());
                }
                (None, None) => {
                    progress.blank.insert(declared.key.clone());
                    data.insert(declared.key.clone(), Value::Null);
                }
            }
        }
        data.values_mut().for_each(show_numbers);
        data.insert(UNSUBSCRIBE_URL.to_owned(), json!(format!("{{{{{UNSUBSCRIBE_URL}}}}}")));
        Some(Value::Object(data))
    }
}

fn require_complete((rendered, error): (RenderedTemplate, RenderError)) -> Result<RenderedTemplate, RenderError> {
    if error.is_empty() { Ok(rendered) } else { Err(error) }
}

/// A registry without helpers.
static BARE_REGISTRY: LazyLock<Handlebars<'static>> = LazyLock::new(|| {
    let mut bare = Handlebars::new();
    for helper in [
        "if", "unless", "each", "with", "lookup", "raw", "log", "eq", "ne", "gt", "gte", "lt", "lte", "and", "or",
        "not", "len",
    ] {
        bare.unregister_helper(helper);
    }
    bare
});

fn render_part(pieces: &[MarkupPiece], registry: &Handlebars<'static>, context: &Context) -> Result<String, String> {
    let mut out = BoundedOutput(String::new());
    let mut render =
        |piece: &MarkupPiece| piece.parsed.render(registry, context, &mut RenderContext::new(None), &mut out);
    let outcome = pieces.iter().try_for_each(&mut render);
    outcome.map_err(|error| match error.reason() {
        RenderErrorReason::IOError(_) => format!("exceeds {RENDERED_BYTES_MAX} bytes"),
        RenderErrorReason::InvalidJsonIndex(name) => format!("uses `{name}` on a list"),
        reason => reason.to_string(),
    })?;
    Ok(out.0)
}

struct BoundedOutput(String);

impl Output for BoundedOutput {
    fn write(&mut self, piece: &str) -> std::io::Result<()> {
        if self.0.len() + piece.len() > RENDERED_BYTES_MAX {
            return Err(std::io::Error::other("too much"));
        }
        self.0.push_str(piece);
        Ok(())
    }
}

/// Checks the size and depth of the variables.
fn check_variable_limits(value: &Value, depth: usize, left: &mut usize) -> Result<(), String> {
    /// Size of a number, brackets or quotes.
    const VALUE_BYTES: usize = 4;
    let mut take = |bytes: usize| {
        *left = left.checked_sub(bytes).ok_or_else(|| format!("must not exceed {VARIABLES_BYTES_MAX} bytes"))?;
        Ok(())
    };
    if depth > VARIABLES_DEPTH_MAX {
        return Err(format!("must not be nested deeper than {VARIABLES_DEPTH_MAX} levels"));
    }
    match value {
        Value::String(text) => take(text.len() + VALUE_BYTES),
        Value::Array(list) => {
            take(VALUE_BYTES)?;
            list.iter().try_for_each(|entry| check_variable_limits(entry, depth + 1, left))
        }
        marked @ Value::Object(_) if raw_number::is_number(marked) => {
            take(raw_number::digits(marked).map_or(0, |digits| digits.len()) + VALUE_BYTES)
        }
        Value::Object(fields) => {
            for (name, value) in fields {
                if name.len() > VARIABLE_NAME_BYTES_MAX {
                    return Err(format!("must not have names longer than {VARIABLE_NAME_BYTES_MAX} bytes"));
                }
                *left = left.saturating_sub(name.len());
                check_variable_limits(value, depth + 1, left)?;
            }
            Ok(())
        }
        _ => take(VALUE_BYTES),
    }
}

/// Replaces marked numbers by their digits.
fn show_numbers(value: &mut Value) {
    if let Some(displayed) = raw_number::display_value(value) {
        *value = displayed;
        return;
    }
    match value {
        Value::Array(entries) => entries.iter_mut().for_each(show_numbers),
        Value::Object(fields) => fields.values_mut().for_each(show_numbers),
        _ => {}
    }
}

fn without_nulls(fields: &Map<String, Value>) -> Map<String, Value> {
    fn clean(value: &Value) -> Value {
        match value {
            Value::Object(fields) => Value::Object(without_nulls(fields)),
            Value::Array(list) => list.iter().map(clean).collect(),
            other => other.clone(),
        }
    }
    let present = fields.iter().filter(|(_, value)| !value.is_null());
    present.map(|(name, value)| (name.clone(), clean(value))).collect()
}

/// Makes a subject one line: line ends in a variable must not become line ends in the header (RFC 5322 2.2). Runs of
/// white space and control characters become one space.
fn one_line(text: &str) -> String {
    let mut line = String::with_capacity(text.len());
    for word in text.split(|c: char| c.is_whitespace() || c.is_control()).filter(|word| !word.is_empty()) {
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
    }
    line
}

/// Converts line ends to LF and removes NUL, as the composer requires.
fn normalize_lines(text: String) -> String {
    if text.contains(['\r', '\0']) {
        return text.replace("\r\n", "\n").replace('\r', "\n").replace('\0', "");
    }
    text
}

/// Inserts the preheader at the start of the body, hidden from readers but found by mail clients.
fn with_preheader(html: String, preheader: &str) -> String {
    if preheader.is_empty() {
        return html;
    }
    let body = html.as_bytes().windows(5).position(|five| five.eq_ignore_ascii_case(b"<body"));
    let after = |at: usize| html.get(at..).and_then(|rest| rest.find('>')).map(|n| at + n + 1);
    let (before, rest) = html.split_at(body.and_then(after).unwrap_or(0));
    format!("{before}<div style=\"display:none;max-height:0;overflow:hidden;mso-hide:all\">{preheader}</div>{rest}")
}

/// A published version of a template, ready to be rendered.
#[derive(Debug, Clone)]
pub struct CompiledTemplate {
    pub id: TemplateId,
    pub alias: Option<String>,
    pub version: u32,
    program: Arc<ParsedTemplate>,
}

impl CompiledTemplate {
    pub fn new(id: TemplateId, alias: Option<String>, version: u32, program: Arc<ParsedTemplate>) -> Self {
        Self { id, alias, version, program }
    }

    /// Author, unless the send request names one.
    pub fn from(&self) -> Option<&Mailbox> {
        self.program.settings.from.as_ref()
    }

    /// Reply-To addresses, unless the send request names some.
    pub fn reply_to(&self) -> &[Mailbox] {
        &self.program.settings.reply_to
    }

    /// Category, unless the send request names one.
    pub fn category(&self) -> Category {
        self.program.settings.category
    }

    /// Managed unsubscribe, unless the send request sets it.
    pub fn unsubscribe_enabled(&self) -> bool {
        self.program.settings.has_managed_unsubscribe()
    }

    pub fn has_subject(&self) -> bool {
        self.program.subject.is_some()
    }

    /// Sets the category and managed unsubscribe of an email if the request did not, and records the template used.
    pub fn apply_defaults(&self, category: &mut Option<Category>, options: &mut SendOptions) {
        category.get_or_insert(self.category());
        options.unsubscribe = options.unsubscribe.or_else(|| self.unsubscribe_enabled().then_some(true));
        options.template = Some(SourceTemplate { id: self.id, alias: self.alias.clone(), version: self.version });
    }

    /// Renders the subject and the bodies.
    pub fn render(&self, variables: &Value) -> Result<RenderedTemplate, RenderError> {
        self.program.render(variables)
    }

    /// Renders the bodies only, for an email with its own subject.
    pub fn render_bodies(&self, variables: &Value) -> Result<RenderedTemplate, RenderError> {
        self.program.render_bodies(variables)
    }
}

#[cfg(test)]
mod tests;
