//! Request bodies of `POST` and `PATCH /templates`, and of a duplication.
//!
//! Markup is parsed on input; a syntax error is reported with its line and column.

use jiff::Timestamp;
use mail::address::Mailbox;
use mail::email::Category;
use mail::id::{AccountId, TemplateId};
use mail::raw_number;
use mail::suppression::{OPTIONAL_CATEGORIES, category_word};
use mail::template::{
    ALIAS_BYTES_MAX, FALLBACKS_BYTES_MAX, MARKUP_BYTES_MAX, NAME_BYTES_MAX, PREHEADER_BYTES_MAX, ParsedTemplate,
    SUBJECT_BYTES_MAX, Template, TemplateBodies, TemplateSettings, TemplateStatus, TemplateVariable, VARIABLES_MAX,
    VariableType, check_alias, check_key,
};
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::path::TemplatePath;
use super::view::variable_schema;
use crate::emails::recipients::{self, MAILBOX_BYTES_MAX, REPLY_TO_MAX, read_author, read_reply_to};
use crate::emails::tags_and_headers::read_category;
use crate::emails::template::parse_version;
use crate::fields::{self, FieldDiagnostics, FieldNames, ObjectFields};
use crate::problem::{ErrorCode, Problem};
use crate::request::{FromRequest, Media, Request, RequestSpec};
use crate::schema::{self, Schemas};

/// Longest body: both bodies at twice their size in JSON, and the other fields.
pub const REQUEST_BYTES_MAX: usize = 4 * MARKUP_BYTES_MAX + (256 << 10);

const NAMES: FieldNames = FieldNames {
    known: &[
        ("name", "name"),
        ("alias", "alias"),
        ("category", "category"),
        ("unsubscribe_enabled", "unsubscribe_enabled"),
        ("unsubscribeEnabled", "unsubscribe_enabled"),
        ("from", "from"),
        ("reply_to", "reply_to"),
        ("replyTo", "reply_to"),
        ("subject", "subject"),
        ("preheader", "preheader"),
        ("html", "html"),
        ("htmlBody", "html"),
        ("html_body", "html"),
        ("text", "text"),
        ("textBody", "text"),
        ("text_body", "text"),
        ("plain_body", "text"),
        ("variables", "variables"),
        ("status", "status"),
        ("if_version", "if_version"),
        ("ifVersion", "if_version"),
    ],
    foreign: &[
        ("Name", "name"),
        ("Alias", "alias"),
        ("From", "from"),
        ("ReplyTo", "reply_to"),
        ("Subject", "subject"),
        ("HtmlBody", "html"),
        ("TextBody", "text"),
        ("HtmlPart", "html"),
        ("TextPart", "text"),
        ("TemplateName", "name"),
        ("SubjectPart", "subject"),
    ],
};

const VARIABLE_NAMES: FieldNames = FieldNames {
    known: &[
        ("key", "key"),
        ("type", "type"),
        ("required", "required"),
        ("fallback_value", "fallback_value"),
        ("fallbackValue", "fallback_value"),
    ],
    foreign: &[("Key", "key"), ("Type", "type")],
};

/// A change of a template: `None` leaves a field as it is, `Some(None)` (JSON null) removes it.
#[derive(Debug, Default)]
struct TemplateEdit {
    name: Option<String>,
    alias: Option<Option<String>>,
    category: Option<Category>,
    unsubscribe_enabled: Option<bool>,
    from: Option<Option<Mailbox>>,
    reply_to: Option<Vec<Mailbox>>,
    subject: Option<Option<String>>,
    preheader: Option<Option<String>>,
    html: Option<Option<String>>,
    text: Option<Option<String>>,
    variables: Option<Vec<TemplateVariable>>,
}

impl TemplateEdit {
    fn read(fields: &ObjectFields<'_>, notes: &mut FieldDiagnostics) -> Self {
        Self {
            name: read_nullable(fields, "name", notes, parse_name).flatten(),
            alias: read_nullable(fields, "alias", notes, |value| {
                let alias = fields::parse_text(value)?;
                check_alias(&alias).map(|()| alias.into_owned())
            }),
            category: is_present(fields, "category").then(|| read_category(fields, notes).unwrap_or_default()),
            unsubscribe_enabled: read_nullable(fields, "unsubscribe_enabled", notes, fields::parse_bool)
                .map(Option::unwrap_or_default),
            from: is_present(fields, "from").then(|| fields.value("from").and_then(|_| read_author(fields, notes))),
            reply_to: is_present(fields, "reply_to").then(|| read_reply_to(fields, notes)),
            subject: read_nullable(fields, "subject", notes, |value| {
                fields::parse_header_line(value, SUBJECT_BYTES_MAX)
            }),
            preheader: read_nullable(fields, "preheader", notes, |value| {
                fields::parse_header_line(value, PREHEADER_BYTES_MAX)
            }),
            html: read_nullable(fields, "html", notes, parse_markup),
            text: read_nullable(fields, "text", notes, parse_markup),
            variables: is_present(fields, "variables").then(|| read_variables(fields, notes)),
        }
    }

    /// Parses the given markup, and adds its errors with line and column.
    fn check_markup(&self, notes: &mut FieldDiagnostics) -> Vec<Value> {
        let part = |part: &Option<Option<String>>| part.clone().flatten();
        let settings =
            TemplateSettings { subject: part(&self.subject), preheader: part(&self.preheader), ..blank_settings() };
        let bodies = TemplateBodies { html: part(&self.html), text: part(&self.text) };
        let errors = ParsedTemplate::compile(&settings, &bodies).err().unwrap_or_default();
        errors
            .into_iter()
            .map(|(field, error)| {
                notes.errors.add(field, error.to_string());
                json!({"field": field, "line": error.line, "column": error.column, "message": error.message})
            })
            .collect()
    }

    /// The warning when managed unsubscribe is switched off for a category that requires it
    /// (product email and newsletters).
    fn unsubscribe_warning(&self, category: Category) -> Option<String> {
        let is_overruled = self.unsubscribe_enabled == Some(false) && OPTIONAL_CATEGORIES.contains(&category);
        is_overruled.then(|| format!("`unsubscribe_enabled` stays on: {} mail always has it", category_word(category)))
    }

    fn apply(&self, settings: &mut TemplateSettings, bodies: &mut TemplateBodies) {
        fn set<T: Clone>(field: &mut T, value: &Option<T>) {
            if let Some(value) = value {
                field.clone_from(value);
            }
        }
        set(&mut settings.category, &self.category);
        set(&mut settings.unsubscribe_enabled, &self.unsubscribe_enabled);
        set(&mut settings.from, &self.from);
        set(&mut settings.reply_to, &self.reply_to);
        set(&mut settings.subject, &self.subject);
        set(&mut settings.preheader, &self.preheader);
        set(&mut settings.variables, &self.variables);
        set(&mut bodies.html, &self.html);
        set(&mut bodies.text, &self.text);
    }
}

fn blank_settings() -> TemplateSettings {
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

/// `None` for a missing or invalid field, `Some(None)` for null, else the parsed value.
fn read_nullable<T>(
    fields: &ObjectFields<'_>,
    name: &str,
    notes: &mut FieldDiagnostics,
    parse: impl Fn(&RawValue) -> Result<T, String>,
) -> Option<Option<T>> {
    let Some(value) = fields.value(name) else { return is_present(fields, name).then_some(None) };
    match parse(value) {
        Ok(value) => Some(Some(value)),
        Err(text) => {
            notes.errors.add(name, text);
            None
        }
    }
}

fn parse_name(value: &RawValue) -> Result<String, String> {
    let name = fields::parse_header_line(value, NAME_BYTES_MAX)?.trim().to_owned();
    if name.is_empty() { Err("is empty".to_owned()) } else { Ok(name) }
}

fn parse_markup(value: &RawValue) -> Result<String, String> {
    let text = fields::parse_text(value)?;
    if text.len() > MARKUP_BYTES_MAX {
        return Err(format!("is longer than {MARKUP_BYTES_MAX} bytes"));
    }
    if text.chars().any(|c| c.is_control() && !matches!(c, '\n' | '\r' | '\t')) {
        return Err("must not contain control characters".to_owned());
    }
    Ok(text.replace("\r\n", "\n").replace('\r', "\n"))
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
        let entry = ObjectFields::from_object(object, &VARIABLE_NAMES, &format!("{path}."), notes);
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
    let key = match fields.value("key") {
        Some(value) => fields::parse_text(value).and_then(|key| check_key(&key).map(|()| key.into_owned())),
        None if fields.is_present_or_misnamed("key") => return None,
        None => Err("is required".to_owned()),
    };
    let kind = fields.value("type").map_or(Ok(VariableType::String), |value| {
        let word = fields::parse_text(value).ok().and_then(|word| VariableType::from_word(&word));
        word.ok_or_else(|| format!("must be one of {}", VariableType::WORDS.join(", ")))
    });
    let required = fields.value("required").map(fields::parse_bool).transpose();
    let fallback = fields.value("fallback_value").map(|value| {
        let value = raw_number::parse(value.get()).map_err(|_| "cannot be parsed".to_owned())?;
        match &kind {
            Ok(kind) if !kind.accepts(&value) => Err(format!("must be {}", kind.phrase())),
            _ => Ok(value),
        }
    });
    let mut note = |name: &str, text: &String| notes.errors.add(&format!("{path}.{name}"), text);
    let fallback = fallback.transpose().inspect_err(|text| note("fallback_value", text));
    let key = key.inspect_err(|text| note("key", text));
    let kind = kind.inspect_err(|text| note("type", text));
    let required = required.inspect_err(|text| note("required", text));
    match (key, kind, required, fallback) {
        (Ok(key), Ok(kind), Ok(required), Ok(fallback_value)) => {
            let required = required.unwrap_or(fallback_value.is_none());
            Some(TemplateVariable { key, r#type: kind, required, fallback_value })
        }
        _ => None,
    }
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
    name: String,
    edit: TemplateEdit,
    /// Warnings about ignored fields.
    pub warnings: Vec<String>,
}

impl CreateTemplate {
    /// Builds the template.
    #[must_use]
    pub fn build(&self, id: TemplateId, account: AccountId, now: Timestamp) -> (Template, TemplateBodies) {
        let (mut draft, mut bodies) = (blank_settings(), TemplateBodies::default());
        self.edit.apply(&mut draft, &mut bodies);
        let template = Template {
            id,
            account,
            name: self.name.clone(),
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

    fn describe(schemas: &mut Schemas) -> RequestSpec {
        let variable = variable_schema(schemas);
        let body = schemas.component("TemplateDraft", |_| draft_schema(variable));
        RequestSpec { body: Some(body), body_bytes_max: Self::BODY_BYTES_MAX, ..RequestSpec::default() }
    }

    fn read(call: &Request) -> Result<Self, Problem> {
        let mut notes = FieldDiagnostics::default();
        let fields = ObjectFields::from_object(fields::parse_body(&call.body)?, &NAMES, "", &mut notes);
        let edit = TemplateEdit::read(&fields, &mut notes);
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
        match name {
            Some(name) if notes.errors.is_empty() => Ok(Self { name, edit, warnings: notes.warnings }),
            _ => Err(validation_problem(notes, &markup)),
        }
    }
}

/// The request body of `PATCH /templates/{id_or_alias}`.
#[derive(Debug)]
pub struct UpdateTemplate {
    edit: TemplateEdit,
    status: Option<TemplateStatus>,
    if_version: Option<u32>,
    /// Warnings about ignored fields.
    pub warnings: Vec<String>,
}

impl UpdateTemplate {
    /// Checks that the draft still has the version that the client has seen.
    ///
    /// # Errors
    /// 409 `conflict` when `if_version` does not match.
    pub fn check_version(&self, template: &Template) -> Result<(), Problem> {
        match self.if_version {
            Some(expected) if expected != template.draft_version => {
                let text = format!("The draft is at version {}, not {expected}", template.draft_version);
                Err(Problem::new(ErrorCode::CONFLICT, text)
                    .with_details(json!({"draft_version": template.draft_version})))
            }
            _ => Ok(()),
        }
    }

    /// The warning about a setting that was not applied.
    #[must_use]
    pub fn unsubscribe_warning(&self, after: &Template) -> Option<String> {
        self.edit.unsubscribe_warning(after.draft.category)
    }

    /// Applies the change.
    ///
    /// # Errors
    /// The requested status is not possible.
    pub fn apply(
        &self,
        before: &Template,
        bodies: &TemplateBodies,
        now: Timestamp,
    ) -> Result<(Template, TemplateBodies), Problem> {
        let (mut after, mut bodies) = (Template { updated_at: now, ..before.clone() }, bodies.clone());
        self.edit.apply(&mut after.draft, &mut bodies);
        if let Some(name) = &self.edit.name {
            after.name.clone_from(name);
        }
        if let Some(alias) = &self.edit.alias {
            after.alias.clone_from(alias);
        }
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

impl FromRequest for (TemplatePath, UpdateTemplate) {
    const BODY_BYTES_MAX: Option<usize> = Some(REQUEST_BYTES_MAX);

    fn describe(schemas: &mut Schemas) -> RequestSpec {
        let variable = variable_schema(schemas);
        let body = schemas.component("TemplateChange", |_| {
            let mut change = draft_schema(variable);
            change["description"] = json!("The fields to change; null removes a field");
            change["properties"]["status"] =
                schema::string_enum(TemplateStatus::WORDS, "`archived`, or the status before archiving");
            change["properties"]["if_version"] = json!({
                "type": "integer", "minimum": 1,
                "description": "The `draft_version` that the client has seen: 409 if it has changed",
            });
            change
        });
        let parameters = vec![TemplatePath::parameter()];
        RequestSpec { parameters, body: Some(body), body_bytes_max: Self::BODY_BYTES_MAX }
    }

    fn read(call: &Request) -> Result<Self, Problem> {
        let mut notes = FieldDiagnostics::default();
        let fields = ObjectFields::from_object(fields::parse_body(&call.body)?, &NAMES, "", &mut notes);
        let edit = TemplateEdit::read(&fields, &mut notes);
        if is_present(&fields, "name") && fields.value("name").is_none() {
            notes.errors.add("name", "cannot be removed");
        }
        let status = read_nullable(&fields, "status", &mut notes, |value| {
            let word = fields::parse_text(value)?;
            let text = || format!("must be one of {}", TemplateStatus::WORDS.join(", "));
            TemplateStatus::from_word(&word).ok_or_else(text)
        });
        let if_version = read_nullable(&fields, "if_version", &mut notes, parse_version);
        let markup = edit.check_markup(&mut notes);
        if !notes.errors.is_empty() {
            return Err(validation_problem(notes, &markup));
        }
        let warnings = notes.warnings;
        let (status, if_version) = (status.flatten(), if_version.flatten());
        Ok((TemplatePath::from_request(call), UpdateTemplate { edit, status, if_version, warnings }))
    }
}

/// The request body of a duplication.
#[derive(Debug)]
pub struct DuplicateTemplate {
    /// The name; generated from the original's name if `None`.
    pub name: Option<String>,
    /// The alias; the copy has none if `None`.
    pub alias: Option<String>,
    /// Warnings about ignored fields.
    pub warnings: Vec<String>,
}

const COPY_NAMES: FieldNames =
    FieldNames { known: &[("name", "name"), ("alias", "alias")], foreign: &[("Name", "name"), ("Alias", "alias")] };

impl FromRequest for (TemplatePath, DuplicateTemplate) {
    const BODY_BYTES_MAX: Option<usize> = Some(16 << 10);
    const MEDIA: Media = Media::OptionalJson;

    fn describe(_: &mut Schemas) -> RequestSpec {
        let body = schema::object_with(
            "The copy",
            &[],
            [
                ("name", schema::bounded_string(NAME_BYTES_MAX, "Name; default: `… (copy)`")),
                ("alias", schema::bounded_string(ALIAS_BYTES_MAX, "Alias; none by default")),
            ],
        );
        let parameters = vec![TemplatePath::parameter()];
        RequestSpec { parameters, body: Some(body), body_bytes_max: Self::BODY_BYTES_MAX }
    }

    fn read(call: &Request) -> Result<Self, Problem> {
        let mut notes = FieldDiagnostics::default();
        let fields = ObjectFields::from_object(fields::parse_optional_body(&call.body)?, &COPY_NAMES, "", &mut notes);
        let edit = TemplateEdit::read(&fields, &mut notes);
        if !notes.errors.is_empty() {
            return Err(notes.errors.into());
        }
        let (name, alias) = (edit.name, edit.alias.flatten());
        Ok((TemplatePath::from_request(call), DuplicateTemplate { name, alias, warnings: notes.warnings }))
    }
}

fn draft_schema(variable: Value) -> Value {
    let nullable = |bytes_max: usize, description: &str| {
        let mut text = schema::bounded_string(bytes_max, description);
        schema::allow_null(&mut text);
        text
    };
    let mailbox = json!({"type": "string", "minLength": 1, "maxLength": MAILBOX_BYTES_MAX});
    let mailboxes = json!({
        "description": "Default `Reply-To`, unless the send request has one",
        "oneOf": [mailbox, {"type": "array", "items": mailbox, "maxItems": REPLY_TO_MAX}, {"type": "null"}],
    });
    let author = json!({
        "description": "Default author, unless the send request has one: `Ada <ada@example.com>` or an object",
        "oneOf": [mailbox, {"type": "null"}, schema::object_with(
            "An address and a display name",
            &["email"],
            [
                ("email", schema::address("The address")),
                ("name", schema::bounded_string(recipients::NAME_BYTES_MAX, "The display name")),
            ],
        )],
    });
    schema::object_with(
        "A template; `name` or `alias` is required. Markup is Handlebars: `{{a.b}}` (escaped in HTML), `{{{raw}}}`, \
         `{{#if}}`, `{{#unless}}`, `{{#each}}`, `{{#with}}`",
        &[],
        [
            (
                "name",
                json!({"type": "string", "maxLength": NAME_BYTES_MAX, "description": "Name, unique in the account"}),
            ),
            ("alias", nullable(ALIAS_BYTES_MAX, "Name for API calls, unique in the account")),
            ("category", schema::string_enum(Category::WORDS, "Category")),
            ("unsubscribe_enabled", schema::boolean("Managed unsubscribe; always on for product and newsletter")),
            ("from", author),
            ("reply_to", mailboxes),
            ("subject", nullable(SUBJECT_BYTES_MAX, "Markup of the subject")),
            ("preheader", nullable(PREHEADER_BYTES_MAX, "Markup of the preview line after the subject")),
            ("html", nullable(MARKUP_BYTES_MAX, "Markup of the HTML body")),
            ("text", nullable(MARKUP_BYTES_MAX, "Markup of the plain-text body")),
            (
                "variables",
                json!({
                    "type": "array", "maxItems": VARIABLES_MAX, "items": variable,
                    "description": "Declared variables; undeclared ones are required",
                }),
            ),
        ],
    )
}
