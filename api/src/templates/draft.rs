//! Request bodies of `POST` and `PATCH /templates`, and of a duplication.
//!
//! Markup is parsed on input; a syntax error is reported with its line and column.

use httpd::request_object::{FieldReader, RequestValue, bounded_text_schema};
use httpd::request_value::{Line, Name};
use message::address::Mailbox;
use mjml::CompiledMjml;
use model::email::Category;
use model::raw_number;
use model::suppression::OPTIONAL_CATEGORIES;
use model::template::{
    ALIAS_BYTES_MAX, FALLBACKS_BYTES_MAX, KEY_BYTES_MAX, MARKUP_BYTES_MAX, NAME_BYTES_MAX, PREHEADER_BYTES_MAX,
    ParsedTemplate, SUBJECT_BYTES_MAX, Template, TemplateBodies, TemplateSettings, TemplateStatus, TemplateVariable,
    VARIABLES_MAX, VariableType, check_alias, check_key,
};

use crate::emails::recipients::{REPLY_TO_MAX, read_author, read_reply_to};
use crate::emails::send_fields::{addresses_schema, author_schema};
use crate::emails::tags_and_headers::read_category;
use crate::emails::template::{parse_version, version_schema};
use crate::prelude::*;

/// Longest body: both bodies at twice their size in JSON, and the other fields.
pub const REQUEST_BYTES_MAX: usize = 4 * MARKUP_BYTES_MAX + (256 << 10);

/// A template; `name` or `alias` is required. Markup is Handlebars: `{{a.b}}` (escaped in HTML), `{{{raw}}}`,
/// `{{#if}}`, `{{#unless}}`, `{{#each}}`, `{{#with}}`
// `None` leaves a field as it is, `Some(None)` (null) removes it.
#[derive(Debug, Default, RequestObject)]
#[schema(name = "TemplateDraft")]
pub(super) struct TemplateEdit {
    /// Name, unique in the account
    #[field(foreign = ["Name", "TemplateName"], reader = Name<NAME_BYTES_MAX>)]
    name: Option<String>,
    /// Name for API calls, unique in the account
    #[field(foreign = ["Alias"], parse = parse_alias, schema = alias_schema)]
    alias: Option<Option<String>>,
    /// Category
    #[field(read = read_given_category, schema = Category::schema)]
    category: Option<Category>,
    /// Managed unsubscribe; always on for product and newsletter
    #[field(aliases = ["unsubscribeEnabled"], null = false)]
    unsubscribe_enabled: Option<bool>,
    /// Default author, unless the send request has one: `Ada <ada@example.com>` or an object
    #[field(foreign = ["From"], read = read_given_author, schema = author_schema)]
    from: Option<Option<Mailbox>>,
    /// Default `Reply-To`, unless the send request has one
    #[field(
        aliases = ["replyTo"], foreign = ["ReplyTo"], read = read_given_reply_to,
        schema = addresses_schema(REPLY_TO_MAX),
        nullable,
    )]
    reply_to: Option<Vec<Mailbox>>,
    /// Markup of the subject
    #[field(foreign = ["Subject", "SubjectPart"], reader = Line<SUBJECT_BYTES_MAX>)]
    subject: Option<Option<String>>,
    /// Markup of the preview text after the subject
    #[field(reader = Line<PREHEADER_BYTES_MAX>)]
    preheader: Option<Option<String>>,
    /// Markup of the HTML body
    #[field(aliases = ["htmlBody", "html_body"], foreign = ["HtmlBody", "HtmlPart"], reader = Markup)]
    html: Option<Option<String>>,
    /// MJML source of the HTML body, in place of `html`, which is compiled from it. Null removes the source and keeps
    /// the compiled `html`; a new `html` removes the source
    #[field(reader = Markup)]
    mjml: Option<Option<String>>,
    /// Markup of the plain-text body
    #[field(aliases = ["textBody", "text_body", "plain_body"], foreign = ["TextBody", "TextPart"], reader = Markup)]
    text: Option<Option<String>>,
    /// Declared variables; undeclared ones are required
    #[field(
        read = read_given_variables,
        schema = json!({"type": "array", "maxItems": VARIABLES_MAX, "items": VariableFields::schema(schemas)}),
    )]
    variables: Option<Vec<TemplateVariable>>,
}

/// The fields to change; null removes a field
#[derive(Debug, RequestObject)]
#[schema(name = "TemplateChange")]
struct TemplateChange {
    #[field(flatten)]
    edit: TemplateEdit,
    /// `archived`, or the status before archiving
    status: Option<TemplateStatus>,
    /// The `draft_version` that the client has seen: 409 if it has changed
    #[field(aliases = ["ifVersion"], parse = parse_version, schema = version_schema)]
    if_version: Option<u32>,
}

/// Content that a preview renders in place of the draft's; it is not stored. Null removes a field; `name` and `alias`
/// have no effect
#[derive(Debug, RequestObject)]
#[schema(name = "UnsavedTemplateDraft")]
pub(super) struct UnsavedDraft {
    #[field(flatten)]
    edit: TemplateEdit,
}

/// A declared variable
#[derive(Debug, RequestObject)]
#[schema(name = "TemplateVariable")]
pub(super) struct VariableFields {
    /// Name
    #[field(foreign = ["Key"], parse = parse_key, schema = bounded_text_schema(1, KEY_BYTES_MAX))]
    key: String,
    /// Type; default: `string`
    #[field(foreign = ["Type"], absent = VariableType::String)]
    r#type: VariableType,
    /// Whether a send without it is refused; default: true unless there is a fallback
    required: Option<bool>,
    /// Value if the send request has none
    #[field(aliases = ["fallbackValue"], parse = parse_fallback, schema = json!({}))]
    fallback_value: Option<Value>,
}

impl UnsavedDraft {
    /// Parses the object at `path` of a body; syntax errors of the markup are errors of its fields.
    pub(super) fn parse(value: &RawValue, path: &str, notes: &mut FieldDiagnostics) -> Option<TemplateEdit> {
        let object = fields::parse_object(value).map_err(|error| notes.errors.add(path, error)).ok()?;
        let fields = ObjectFields::from_object(object, &Self::FIELDS, &format!("{path}."), notes);
        let mut nested = FieldDiagnostics::default();
        let read = Self::read_fields(&mut FieldReader::new(&fields, &mut nested));
        let edit = read.map(|draft| draft.edit).unwrap_or_default();
        edit.check_markup(&mut nested);
        nested.warnings.into_iter().for_each(|text| notes.warn(text));
        notes.errors.add_nested(path, nested.errors);
        Some(edit)
    }
}

impl TemplateEdit {
    /// Parses the given markup, and adds its errors with line and column. The tags of an MJML source are those of HTML.
    fn check_markup(&self, notes: &mut FieldDiagnostics) -> Vec<Value> {
        let part = |part: &Option<Option<String>>| part.clone().flatten();
        let (html, mjml) = (part(&self.html), part(&self.mjml));
        if html.is_some() && mjml.is_some() {
            notes
                .errors
                .add("mjml", "cannot be combined with `html`, which is compiled from it: send only one of them");
            notes
                .errors
                .add("html", "cannot be combined with `mjml`, which it is compiled from: send only one of them");
            return Vec::new();
        }
        let html_field = if mjml.is_some() { "mjml" } else { "html" };
        let settings =
            TemplateSettings { subject: part(&self.subject), preheader: part(&self.preheader), ..blank_settings() };
        let bodies = TemplateBodies { html: html.or(mjml), text: part(&self.text), mjml: None };
        let errors = ParsedTemplate::compile(&settings, &bodies).err().unwrap_or_default();
        errors
            .into_iter()
            .map(|(field, error)| {
                let field = if field == "html" { html_field } else { field };
                notes.errors.add(field, error.to_string());
                json!({"field": field, "line": error.line, "column": error.column, "message": error.message})
            })
            .collect()
    }

    /// The warning when managed unsubscribe is switched off for a category that requires it
    /// (product email and newsletters).
    fn unsubscribe_warning(&self, category: Category) -> Option<String> {
        let is_overruled = self.unsubscribe_enabled == Some(false) && OPTIONAL_CATEGORIES.contains(&category);
        is_overruled.then(|| format!("`unsubscribe_enabled` stays on: {} mail always has it", category.word()))
    }

    /// The MJML source, if one is given.
    pub(super) fn mjml_source(&self) -> Option<&String> {
        self.mjml.as_ref().and_then(Option::as_ref)
    }

    fn apply(&self, compiled: Option<&String>, settings: &mut TemplateSettings, bodies: &mut TemplateBodies) {
        set_given(&mut settings.category, &self.category);
        set_given(&mut settings.unsubscribe_enabled, &self.unsubscribe_enabled);
        set_given(&mut settings.from, &self.from);
        set_given(&mut settings.reply_to, &self.reply_to);
        set_given(&mut settings.subject, &self.subject);
        set_given(&mut settings.preheader, &self.preheader);
        set_given(&mut settings.variables, &self.variables);
        set_given(&mut bodies.text, &self.text);
        if compiled.is_some() {
            bodies.html = compiled.cloned();
            bodies.mjml = self.mjml_source().cloned();
        } else {
            // The HTML of a source that is sent back unchanged does not replace the source.
            let is_other = self.html.as_ref().is_some_and(|html| *html != bodies.html);
            set_given(&mut bodies.html, &self.html);
            if is_other || self.mjml.is_some() {
                bodies.mjml = None;
            }
        }
    }
}

/// A change whose MJML source, if there is one, is compiled.
#[derive(Debug)]
pub(super) struct CompiledEdit {
    edit: TemplateEdit,
    compiled: Option<CompiledMjml>,
}

impl CompiledEdit {
    pub(super) fn new(edit: TemplateEdit, compiled: Option<CompiledMjml>) -> Self {
        Self { edit, compiled }
    }

    /// Advice about the MJML source.
    pub(super) fn warnings(&self) -> &[String] {
        self.compiled.as_ref().map_or(&[], |compiled| &compiled.warnings)
    }

    /// Advice about the MJML source; `None` if the change has none.
    pub(super) fn into_warnings(self) -> Option<Vec<String>> {
        self.compiled.map(|compiled| compiled.warnings)
    }

    /// Bytes that are stored beyond the request.
    pub(super) fn compiled_bytes(&self) -> u64 {
        self.compiled.as_ref().map_or(0, |compiled| compiled.html.len() as u64)
    }

    /// Warnings about what a change of the draft did and did not.
    pub(super) fn update_warnings(&self, before: &TemplateBodies, after: (&Template, &TemplateBodies)) -> Vec<String> {
        let mut warnings = self.warnings().to_vec();
        warnings.extend(self.edit.unsubscribe_warning(after.0.draft.category));
        let is_given = self.edit.html.is_some() && self.edit.mjml.is_none();
        if is_given && before.mjml.is_some() && after.1.mjml.is_none() {
            warnings.push("The MJML source was removed, because `html` was given".to_owned());
        }
        warnings
    }

    pub(super) fn apply(&self, settings: &mut TemplateSettings, bodies: &mut TemplateBodies) {
        self.edit.apply(self.compiled.as_ref().map(|compiled| &compiled.html), settings, bodies);
    }
}

pub(super) fn blank_settings() -> TemplateSettings {
    TemplateSettings {
        category: Category::default(),
        unsubscribe_enabled: false,
        from: None,
        reply_to: Vec::new(),
        subject: None,
        preheader: None,
        variables: Vec::new(),
    }
}

fn is_present(fields: &ObjectFields<'_>, name: &str) -> bool {
    fields.fields().iter().any(|(n, _)| *n == name)
}

fn parse_alias(value: &RawValue) -> Result<String, String> {
    let alias = fields::parse_text(value)?;
    check_alias(&alias).map(|()| alias.into_owned())
}

fn alias_schema(_: &mut Schemas) -> Value {
    bounded_text_schema(1, ALIAS_BYTES_MAX)
}

fn read_given_category(fields: &ObjectFields<'_>, notes: &mut FieldDiagnostics) -> Option<Category> {
    is_present(fields, "category").then(|| read_category(fields, notes).unwrap_or_default())
}

fn read_given_author(fields: &ObjectFields<'_>, notes: &mut FieldDiagnostics) -> Option<Option<Mailbox>> {
    is_present(fields, "from").then(|| fields.value("from").and_then(|_| read_author(fields, notes)))
}

fn read_given_reply_to(fields: &ObjectFields<'_>, notes: &mut FieldDiagnostics) -> Option<Vec<Mailbox>> {
    is_present(fields, "reply_to").then(|| read_reply_to(fields, notes))
}

fn read_given_variables(fields: &ObjectFields<'_>, notes: &mut FieldDiagnostics) -> Option<Vec<TemplateVariable>> {
    is_present(fields, "variables").then(|| read_variables(fields, notes))
}

/// Markup of a body, with line ends as LF.
struct Markup;

impl RequestValue for Markup {
    type Value = String;

    fn schema(_: &mut Schemas) -> Value {
        bounded_text_schema(0, MARKUP_BYTES_MAX)
    }

    fn parse(value: &RawValue) -> Result<String, String> {
        let text = fields::parse_multiline_text(value, MARKUP_BYTES_MAX)?;
        Ok(text.replace("\r\n", "\n").replace('\r', "\n"))
    }
}

fn read_variables(fields: &ObjectFields<'_>, notes: &mut FieldDiagnostics) -> Vec<TemplateVariable> {
    let Some(value) = fields.value("variables") else { return Vec::new() };
    let entries = match fields::parse_list(value, VARIABLES_MAX) {
        Ok(entries) => entries,
        Err(text) => {
            notes.errors.add("variables", format!("{text} of {{key, type, required, fallback_value}}"));
            return Vec::new();
        }
    };
    let mut variables: Vec<TemplateVariable> = Vec::with_capacity(entries.len());
    let mut fallback_bytes = 0;
    for (n, entry) in entries.iter().enumerate() {
        let path = format!("variables[{n}]");
        let object = match fields::parse_object(entry) {
            Ok(object) => object,
            Err(text) => {
                notes.errors.add(&path, text);
                continue;
            }
        };
        let entry = ObjectFields::from_object(object, &VariableFields::FIELDS, &format!("{path}."), notes);
        fallback_bytes += entry.value("fallback_value").map_or(0, |value| value.get().len());
        if fallback_bytes > FALLBACKS_BYTES_MAX {
            let text = format!("have fallback values of more than {FALLBACKS_BYTES_MAX} bytes");
            notes.errors.add("variables", text);
            return Vec::new();
        }
        let Some(variable) = read_variable(&entry, &path, notes) else { continue };
        if variables.iter().any(|earlier| earlier.key == variable.key) {
            notes.errors.add(&format!("{path}.key"), format!("`{}` is declared twice", variable.key));
        }
        variables.push(variable);
    }
    variables
}

fn read_variable(fields: &ObjectFields<'_>, path: &str, notes: &mut FieldDiagnostics) -> Option<TemplateVariable> {
    let prefix = format!("{path}.");
    let variable = VariableFields::read_fields(&mut FieldReader::nested(fields, &prefix, notes))?;
    let VariableFields { key, r#type, required, fallback_value } = variable;
    if fallback_value.as_ref().is_some_and(|value| !r#type.accepts(value)) {
        notes.errors.add(&format!("{path}.fallback_value"), format!("must be {}", r#type.phrase()));
    }
    let required = required.unwrap_or(fallback_value.is_none());
    Some(TemplateVariable { key, r#type, required, fallback_value })
}

fn parse_key(value: &RawValue) -> Result<String, String> {
    let key = fields::parse_text(value)?.into_owned();
    check_key(&key).map(|()| key)
}

fn parse_fallback(value: &RawValue) -> Result<Value, String> {
    raw_number::parse(value.get()).map_err(|_| "cannot be parsed".to_owned())
}

/// All errors, with the position of the first syntax error and all syntax errors in `markup`.
fn validation_problem(notes: FieldDiagnostics, markup: &[Value]) -> Problem {
    let problem = Problem::from(notes.errors);
    match markup.first() {
        None => problem,
        Some(first) => problem
            .with_detail("line", first["line"].clone())
            .with_detail("column", first["column"].clone())
            .with_detail("markup", json!(markup)),
    }
}

/// The request body of `POST /templates`.
#[derive(Debug)]
pub struct CreateTemplate {
    pub(super) name: String,
    pub(super) edit: TemplateEdit,
}

impl CompiledEdit {
    /// Builds a new template.
    pub(super) fn build(
        &self,
        name: &str,
        id: TemplateId,
        account: AccountId,
        now: Timestamp,
    ) -> (Template, TemplateBodies) {
        let (mut draft, mut bodies) = (blank_settings(), TemplateBodies::default());
        self.apply(&mut draft, &mut bodies);
        let template = Template {
            id,
            account,
            name: name.to_owned(),
            alias: self.edit.alias.clone().flatten(),
            draft,
            draft_version: 1,
            published: None,
            changed: false,
            archived: false,
            created_at: now,
            updated_at: now,
        };
        (template, bodies)
    }
}

impl FromRequest for CreateTemplate {
    const BODY_BYTES_MAX: Option<usize> = Some(REQUEST_BYTES_MAX);
    const BODY: Option<BodySchema> = Some(TemplateEdit::schema);

    fn read(call: &Request) -> Result<Self> {
        let mut notes = FieldDiagnostics::default();
        // The fields of a change are known: they have warnings of their own.
        let fields = call.body_fields(&TemplateChange::FIELDS, &mut notes)?;
        let edit = TemplateEdit::read_fields(&mut FieldReader::new(&fields, &mut notes)).unwrap_or_default();
        for name in ["status", "if_version"] {
            if is_present(&fields, name) {
                notes.warn(format!("`{name}` has no effect on a new template and was ignored"));
            }
        }
        let warning = edit.unsubscribe_warning(edit.category.unwrap_or_default());
        warning.into_iter().for_each(|text| notes.warn(text));
        // Without a name the alias becomes the name.
        let name = edit.name.clone().or_else(|| edit.alias.clone().flatten());
        if name.is_none() && !fields.is_present_or_misnamed("name") && !fields.is_present_or_misnamed("alias") {
            notes.errors.add("name", "is required");
        }
        let markup = edit.check_markup(&mut notes);
        call.warnings.borrow_mut().append(&mut notes.warnings);
        match name {
            Some(name) if notes.errors.is_empty() => Ok(Self { name, edit }),
            _ => Err(validation_problem(notes, &markup)),
        }
    }
}

/// The request body of `PATCH /templates/{id_or_alias}`.
#[derive(Debug)]
pub struct UpdateTemplate {
    pub(super) edit: TemplateEdit,
    pub(super) update: DraftUpdate,
}

/// Status and version of a change, beside the content.
#[derive(Debug)]
pub(super) struct DraftUpdate {
    status: Option<TemplateStatus>,
    if_version: Option<u32>,
}

impl DraftUpdate {
    /// Checks that the draft still has the version that the client has seen.
    ///
    /// # Errors
    /// 409 `conflict` when `if_version` does not match.
    pub(super) fn check_version(&self, template: &Template) -> Result<()> {
        match self.if_version {
            Some(expected) if expected != template.draft_version => {
                let text = format!("The draft is at version {}, not {expected}", template.draft_version);
                Err(Problem::new(ErrorCode::CONFLICT, text)
                    .with_details(json!({"draft_version": template.draft_version})))
            }
            _ => Ok(()),
        }
    }

    /// Applies the change.
    ///
    /// # Errors
    /// The requested status is not possible.
    pub(super) fn apply(
        &self,
        change: &CompiledEdit,
        before: (&Template, &TemplateBodies),
        now: Timestamp,
    ) -> Result<(Template, TemplateBodies)> {
        let (mut after, mut bodies) = (Template { updated_at: now, ..before.0.clone() }, before.1.clone());
        change.apply(&mut after.draft, &mut bodies);
        set_given(&mut after.name, &change.edit.name);
        set_given(&mut after.alias, &change.edit.alias);
        if let Some(status) = self.status {
            after.archived = status == TemplateStatus::Archived;
            if after.status() != status {
                let text = match status {
                    TemplateStatus::Published => "is set by POST /templates/{id}/publish",
                    _ => "cannot become draft again after it was published; archive it instead",
                };
                return Err(Problem::field("status", text));
            }
        }
        Ok((after, bodies))
    }
}

impl FromRequest for UpdateTemplate {
    const BODY_BYTES_MAX: Option<usize> = Some(REQUEST_BYTES_MAX);
    const BODY: Option<BodySchema> = Some(TemplateChange::schema);

    fn read(call: &Request) -> Result<Self> {
        let mut notes = FieldDiagnostics::default();
        let fields = call.body_fields(&TemplateChange::FIELDS, &mut notes)?;
        let change = TemplateChange::read_fields(&mut FieldReader::new(&fields, &mut notes));
        let TemplateChange { edit, status, if_version } =
            change.ok_or_else(|| Problem::internal("a change without required fields is incomplete"))?;
        if fields.is_null("name") {
            notes.errors.add("name", "cannot be removed");
        }
        let markup = edit.check_markup(&mut notes);
        call.warnings.borrow_mut().append(&mut notes.warnings);
        if !notes.errors.is_empty() {
            return Err(validation_problem(notes, &markup));
        }
        Ok(Self { edit, update: DraftUpdate { status, if_version } })
    }
}

/// The copy
#[derive(Debug, RequestObject)]
#[schema(body_bytes_max = 16 << 10, optional_body)]
pub struct DuplicateTemplate {
    /// Name; default: `… (copy)`
    #[field(foreign = ["Name"], reader = Name<NAME_BYTES_MAX>)]
    pub name: Option<String>,
    /// Alias; none by default
    #[field(foreign = ["Alias"], parse = parse_alias, schema = alias_schema)]
    pub alias: Option<String>,
}
