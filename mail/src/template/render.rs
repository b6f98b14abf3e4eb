//! Rendering: a template and variables to the subject, the HTML and the text of an email.
//!
//! A [`Program`] is a template whose markup was read; a [`Compiled`] is a published version of one. What
//! rendering costs is bounded by its input: the variables' size and depth, the elements that blocks
//! render, the bytes that come out. Values are escaped in HTML and in nothing else; a subject is one line.

use std::fmt;
use std::sync::{Arc, LazyLock};

use handlebars::{Context, Handlebars, Output, RenderContext, RenderErrorReason, Renderable as _};
use serde_json::{Map, Value, json};

use super::blocks::{self, RenderProgress};
use super::markup::{self, MarkupError, MarkupPiece};
use super::usage::VariableUsage;
use super::{SUBJECT_BYTES_MAX, TemplateBodies, TemplateSettings, UNSUBSCRIBE_URL};
use crate::address::Mailbox;
use crate::draft::SendOptions;
use crate::email::{Category, SourceTemplate};
use crate::id::TemplateId;
use crate::number;

/// The variables of one email, about as many bytes of JSON.
pub const VARIABLES_BYTES_MAX: usize = 256 << 10;
/// Objects in lists in objects …
pub const VARIABLES_DEPTH_MAX: usize = 16;
/// A name in the variables: every look-up walks it.
pub const VARIABLE_NAME_BYTES_MAX: usize = 256;
/// What `html`, and `text`, may come to: ten times what Gmail shows.
pub const RENDERED_BYTES_MAX: usize = 1 << 20;

/// A template whose markup was read.
#[derive(Debug)]
pub struct ParsedTemplate {
    settings: TemplateSettings,
    subject: Option<Vec<MarkupPiece>>,
    preheader: Option<Vec<MarkupPiece>>,
    html: Option<Vec<MarkupPiece>>,
    text: Option<Vec<MarkupPiece>>,
    usage: VariableUsage,
    unsubscribe_url: bool,
    size_bytes: usize,
}

/// What came of a rendering.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RenderedTemplate {
    /// The subject: one line.
    pub subject: Option<String>,
    /// The HTML body, the preheader in it.
    pub html: Option<String>,
    /// The plain-text body.
    pub text: Option<String>,
}

/// Why a template cannot be rendered with these variables: everything at once.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RenderError {
    /// Variables that are needed and were not given: `name`, `user.city`, `items[2].price`.
    pub missing: Vec<String>,
    /// What will not do, and why.
    pub invalid: Vec<(String, String)>,
}

impl RenderError {
    /// Whether nothing is wrong.
    #[must_use]
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
            [one] => write!(f, "The template needs the variable `{one}`, which was not given"),
            many => write!(f, "The template needs variables that were not given: `{}`", many.join("`, `")),
        }
    }
}

impl std::error::Error for RenderError {}

impl ParsedTemplate {
    /// Reads the markup of a template.
    ///
    /// # Errors
    /// The parts that cannot be read, and where.
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
            unsubscribe_url: sources.iter().any(|source| source.contains(UNSUBSCRIBE_URL)),
            size_bytes: sources.iter().map(|source| source.len()).sum(),
        })
    }

    /// What it says beside its bodies.
    #[must_use]
    pub fn settings(&self) -> &TemplateSettings {
        &self.settings
    }

    /// The variables that it uses.
    #[must_use]
    pub fn usage(&self) -> &VariableUsage {
        &self.usage
    }

    /// Whether it names `{{unsubscribe_url}}`.
    #[must_use]
    pub fn has_unsubscribe_url(&self) -> bool {
        self.unsubscribe_url
    }

    /// Bytes of markup.
    #[must_use]
    pub fn size_bytes(&self) -> usize {
        self.size_bytes
    }

    /// Renders all of it.
    ///
    /// # Errors
    /// [`RenderError`].
    pub fn render(&self, variables: &Value) -> Result<RenderedTemplate, RenderError> {
        require_complete(self.render_parts(variables, true))
    }

    /// Renders the bodies alone, when the subject comes from elsewhere: what only the subject needs is not
    /// needed.
    ///
    /// # Errors
    /// [`RenderError`].
    pub fn render_bodies(&self, variables: &Value) -> Result<RenderedTemplate, RenderError> {
        require_complete(self.render_parts(variables, false))
    }

    /// Renders what can be rendered, and says what is wrong. Tags of missing variables stay.
    #[must_use]
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

    /// The variables as the template sees them: those that were given, fallbacks for the others. A null
    /// counts as not given.
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

/// A registry that knows no helpers.
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

/// Renders one part.
fn render_part(pieces: &[MarkupPiece], registry: &Handlebars<'static>, context: &Context) -> Result<String, String> {
    let mut out = BoundedOutput(String::new());
    let mut render =
        |piece: &MarkupPiece| piece.parsed.render(registry, context, &mut RenderContext::new(None), &mut out);
    let outcome = pieces.iter().try_for_each(&mut render);
    outcome.map_err(|error| match error.reason() {
        RenderErrorReason::IOError(_) => format!("comes to more than {RENDERED_BYTES_MAX} bytes"),
        RenderErrorReason::InvalidJsonIndex(name) => format!("asks for `{name}` of a list"),
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

/// Holds variables to their bounds.
fn check_variable_limits(value: &Value, depth: usize, left: &mut usize) -> Result<(), String> {
    /// A number, brackets, quotes.
    const VALUE_BYTES: usize = 4;
    let mut take = |bytes: usize| {
        *left = left.checked_sub(bytes).ok_or_else(|| format!("come to more than {VARIABLES_BYTES_MAX} bytes"))?;
        Ok(())
    };
    if depth > VARIABLES_DEPTH_MAX {
        return Err(format!("are more than {VARIABLES_DEPTH_MAX} deep"));
    }
    match value {
        Value::String(text) => take(text.len() + VALUE_BYTES),
        Value::Array(list) => {
            take(VALUE_BYTES)?;
            list.iter().try_for_each(|entry| check_variable_limits(entry, depth + 1, left))
        }
        marked @ Value::Object(_) if number::is_number(marked) => {
            take(number::digits(marked).map_or(0, |digits| digits.len()) + VALUE_BYTES)
        }
        Value::Object(fields) => {
            for (name, value) in fields {
                if name.len() > VARIABLE_NAME_BYTES_MAX {
                    return Err(format!("have a name of more than {VARIABLE_NAME_BYTES_MAX} bytes"));
                }
                *left = left.saturating_sub(name.len());
                check_variable_limits(value, depth + 1, left)?;
            }
            Ok(())
        }
        _ => take(VALUE_BYTES),
    }
}

/// Numbers that are kept by their digits are shown by them.
fn show_numbers(value: &mut Value) {
    if let Some(shown) = number::display_value(value) {
        *value = shown;
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
    let there = fields.iter().filter(|(_, value)| !value.is_null());
    there.map(|(name, value)| (name.clone(), clean(value))).collect()
}

/// A line end in a variable must not become one in the header (RFC 5322 2.2): whatever is no printable
/// character is a space, several are one.
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

/// Line ends are LF, and no NUL comes through: what a body must be for the composer.
fn normalize_lines(text: String) -> String {
    if text.contains(['\r', '\0']) {
        return text.replace("\r\n", "\n").replace('\r', "\n").replace('\0', "");
    }
    text
}

/// Puts the preheader where mail programs look for it and readers do not see it: first in the body.
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
    /// The template's id.
    pub id: TemplateId,
    /// Its alias.
    pub alias: Option<String>,
    /// The version's number.
    pub version: u32,
    program: Arc<ParsedTemplate>,
}

impl CompiledTemplate {
    /// A version of a template.
    #[must_use]
    pub fn new(id: TemplateId, alias: Option<String>, version: u32, program: Arc<ParsedTemplate>) -> Self {
        Self { id, alias, version, program }
    }

    /// The author, unless the send request names one.
    #[must_use]
    pub fn from(&self) -> Option<&Mailbox> {
        self.program.settings.from.as_ref()
    }

    /// Where answers go, unless the send request says.
    #[must_use]
    pub fn reply_to(&self) -> &[Mailbox] {
        &self.program.settings.reply_to
    }

    /// What it is for, unless the send request says.
    #[must_use]
    pub fn category(&self) -> Category {
        self.program.settings.category
    }

    /// Whether managed unsubscribe is on, unless the send request says.
    #[must_use]
    pub fn unsubscribe_enabled(&self) -> bool {
        self.program.settings.has_managed_unsubscribe()
    }

    /// Whether it has a subject of its own.
    #[must_use]
    pub fn has_subject(&self) -> bool {
        self.program.subject.is_some()
    }

    /// Gives an email what it does not say itself: what it is for, and managed unsubscribe; and says that it
    /// was made from this.
    pub fn apply_defaults(&self, category: &mut Option<Category>, wishes: &mut SendOptions) {
        category.get_or_insert(self.category());
        wishes.unsubscribe = wishes.unsubscribe.or_else(|| self.unsubscribe_enabled().then_some(true));
        wishes.template = Some(SourceTemplate { id: self.id, alias: self.alias.clone(), version: self.version });
    }

    /// Renders it.
    ///
    /// # Errors
    /// [`RenderError`].
    pub fn render(&self, variables: &Value) -> Result<RenderedTemplate, RenderError> {
        self.program.render(variables)
    }

    /// Renders the bodies alone, when the subject comes from elsewhere.
    ///
    /// # Errors
    /// [`RenderError`].
    pub fn render_bodies(&self, variables: &Value) -> Result<RenderedTemplate, RenderError> {
        self.program.render_bodies(variables)
    }
}

#[cfg(test)]
mod tests;
