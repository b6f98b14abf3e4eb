//! JSON views of templates and their versions.

use mail::email::Category;
use mail::id::TemplateId;
use mail::template::{
    Template, TemplateBodies, TemplateSettings, TemplateStatus, TemplateVariable, TemplateVersion, VariableType,
};
use serde::Serialize;
use serde_json::{Value, json};

use crate::json_timestamp::JsonTimestamp;
use crate::schema::{self, Schemas, ToSchema};

/// A template: its draft, and the state of its publication.
#[derive(Debug, Serialize)]
pub struct TemplateView {
    id: TemplateId,
    alias: Option<String>,
    name: String,
    #[serde(flatten)]
    settings: TemplateSettingsView,
    status: TemplateStatus,
    draft_version: u32,
    published_version: Option<u32>,
    has_unpublished_changes: bool,
    published_at: Option<JsonTimestamp>,
    created_at: JsonTimestamp,
    updated_at: JsonTimestamp,
}

/// The fields that a draft and a version share.
#[derive(Debug, Serialize)]
struct TemplateSettingsView {
    category: Category,
    unsubscribe_enabled: bool,
    from: Option<String>,
    reply_to: Vec<String>,
    subject: Option<String>,
    preheader: Option<String>,
    /// Omitted in lists.
    #[serde(flatten)]
    bodies: Option<TemplateBodiesView>,
    variables: Vec<TemplateVariableView>,
}

#[derive(Debug, Serialize)]
struct TemplateVariableView {
    key: String,
    r#type: VariableType,
    required: bool,
    /// Null if the variable has no fallback.
    #[serde(serialize_with = "mail::raw_number::serialize")]
    fallback_value: Value,
}

impl TemplateVariableView {
    fn from_variable(variable: &TemplateVariable) -> Self {
        Self {
            key: variable.key.clone(),
            r#type: variable.r#type,
            required: variable.required,
            fallback_value: variable.fallback_value.clone().unwrap_or_default(),
        }
    }
}

#[derive(Debug, Serialize)]
struct TemplateBodiesView {
    html: Option<String>,
    text: Option<String>,
}

impl TemplateSettingsView {
    fn from_settings(settings: &TemplateSettings, bodies: Option<TemplateBodies>) -> Self {
        Self {
            category: settings.category,
            unsubscribe_enabled: settings.has_managed_unsubscribe(),
            from: settings.from.as_ref().map(ToString::to_string),
            reply_to: settings.reply_to.iter().map(ToString::to_string).collect(),
            subject: settings.subject.clone(),
            preheader: settings.preheader.clone(),
            bodies: bodies.map(|TemplateBodies { html, text }| TemplateBodiesView { html, text }),
            variables: settings.variables.iter().map(TemplateVariableView::from_variable).collect(),
        }
    }
}

impl TemplateView {
    /// The view of one template, with its bodies.
    #[must_use]
    pub fn with_bodies(template: &Template, bodies: TemplateBodies) -> Self {
        Self::from_template(template, Some(bodies))
    }

    /// The view of a template in a list.
    #[must_use]
    pub fn without_bodies(template: &Template) -> Self {
        Self::from_template(template, None)
    }

    fn from_template(template: &Template, bodies: Option<TemplateBodies>) -> Self {
        Self {
            id: template.id,
            alias: template.alias.clone(),
            name: template.name.clone(),
            settings: TemplateSettingsView::from_settings(&template.draft, bodies),
            status: template.status(),
            draft_version: template.draft_version,
            published_version: template.published.map(|published| published.version),
            // A draft that was never published counts as unpublished changes.
            has_unpublished_changes: template.changed || template.published.is_none(),
            published_at: template.published.map(|published| JsonTimestamp(published.at)),
            created_at: JsonTimestamp(template.created_at),
            updated_at: JsonTimestamp(template.updated_at),
        }
    }
}

/// The response of operations on one template.
#[derive(Debug, Serialize)]
pub struct TemplateResponse {
    pub template: TemplateView,
    /// Warnings about ignored fields.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}

/// A page of templates.
#[derive(Debug, Serialize)]
pub struct TemplateList {
    /// Newest first.
    pub templates: Vec<TemplateView>,
    /// True if there are more entries.
    pub has_more: bool,
    pub next_cursor: Option<String>,
}

/// A version in a list.
#[derive(Debug, Serialize)]
pub struct TemplateVersionView {
    number: u32,
    note: Option<String>,
    published_at: JsonTimestamp,
    published_by: String,
}

impl TemplateVersionView {
    #[must_use]
    pub fn from_version(version: &TemplateVersion) -> Self {
        Self {
            number: version.number,
            note: version.note.clone(),
            published_at: JsonTimestamp(version.published_at),
            published_by: version.published_by.clone(),
        }
    }
}

/// A version with its settings and bodies.
#[derive(Debug, Serialize)]
pub struct TemplateVersionDetail {
    #[serde(flatten)]
    version: TemplateVersionView,
    #[serde(flatten)]
    settings: TemplateSettingsView,
}

impl TemplateVersionDetail {
    #[must_use]
    pub fn from_version(version: &TemplateVersion, bodies: TemplateBodies) -> Self {
        let settings = TemplateSettingsView::from_settings(&version.settings, Some(bodies));
        Self { version: TemplateVersionView::from_version(version), settings }
    }
}

/// The response of `GET /templates/{id_or_alias}/versions/{number}`.
#[derive(Debug, Serialize)]
pub struct TemplateVersionResponse {
    pub version: TemplateVersionDetail,
}

/// A page of versions.
#[derive(Debug, Serialize)]
pub struct TemplateVersionList {
    /// Newest first.
    pub versions: Vec<TemplateVersionView>,
    /// True if there are more entries.
    pub has_more: bool,
    pub next_cursor: Option<String>,
}

/// The response of a publication or rollback.
#[derive(Debug, Serialize)]
pub struct PublishTemplateResponse {
    pub template: TemplateView,
    /// The version that is now sent.
    pub version: TemplateVersionView,
    /// Warnings about ignored fields.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}

/// The schema of a declared variable.
#[must_use]
pub fn variable_schema(schemas: &mut Schemas) -> Value {
    schemas.component("TemplateVariable", |_| {
        schema::object_with(
            "A declared variable",
            &["key"],
            [
                ("key", schema::string("Name")),
                ("type", schema::string_enum(VariableType::WORDS, "Type; default: `string`")),
                (
                    "required",
                    schema::boolean("Whether a send without it is refused; default: true unless there is a fallback"),
                ),
                ("fallback_value", json!({"description": "Value if the send request has none"})),
            ],
        )
    })
}

fn settings_schema(schemas: &mut Schemas) -> Vec<(&'static str, Value)> {
    let variable = variable_schema(schemas);
    vec![
        ("category", schema::string_enum(Category::WORDS, "Category")),
        ("unsubscribe_enabled", schema::boolean("Managed unsubscribe; always on for product and newsletter")),
        ("from", schema::nullable_string("Default author, unless the send request has one")),
        ("reply_to", schema::list(json!({"type": "string"}), "Default `Reply-To`, unless the send request has one")),
        ("subject", schema::nullable_string("Markup of the subject")),
        ("preheader", schema::nullable_string("Markup of the preview line after the subject")),
        ("variables", schema::list(variable, "Declared variables")),
    ]
}

fn object_schema(description: &str, fields: Vec<(&'static str, Value)>, not_in_lists: &[&str]) -> Value {
    let required: Vec<&str> = fields.iter().map(|(name, _)| *name).filter(|n| !not_in_lists.contains(n)).collect();
    let properties: Value = fields.iter().map(|(name, schema)| ((*name).to_owned(), schema.clone())).collect();
    json!({"type": "object", "description": description, "properties": properties, "required": required})
}

fn bodies_schema() -> [(&'static str, Value); 2] {
    [
        ("html", schema::nullable_string("Markup of the HTML body; omitted in lists")),
        ("text", schema::nullable_string("Markup of the plain-text body; omitted in lists")),
    ]
}

impl ToSchema for TemplateView {
    fn schema(schemas: &mut Schemas) -> Value {
        let settings = settings_schema(schemas);
        schemas.component("Template", |_| {
            let mut fields = vec![
                ("id", schema::string("Id (`tpl_…`)")),
                ("alias", schema::nullable_string("Name for API calls")),
                ("name", schema::string("Display name")),
            ];
            fields.extend(settings);
            fields.extend(bodies_schema());
            fields.extend([
                ("status", schema::string_enum(TemplateStatus::WORDS, "Status")),
                ("draft_version", schema::count("Number of changes of the draft; send it as `if_version`")),
                ("published_version", schema::nullable_count("The published version, which is sent")),
                ("has_unpublished_changes", schema::boolean("Whether the draft differs from the published version")),
                ("published_at", schema::nullable_time("Time of the last publication")),
                ("created_at", schema::time("Time of creation")),
                ("updated_at", schema::time("Time of the last change")),
            ]);
            object_schema("A template: its draft, and the state of its publication", fields, &["html", "text"])
        })
    }
}

impl ToSchema for TemplateVersionView {
    fn schema(schemas: &mut Schemas) -> Value {
        schemas.component("TemplateVersion", |_| {
            schema::object(
                "A published version",
                [
                    ("number", schema::count("Version number: 1, 2, 3 …")),
                    ("note", schema::nullable_string("Note")),
                    ("published_at", schema::time("Time of publication")),
                    ("published_by", schema::string("Email of the account that published it")),
                ],
            )
        })
    }
}

impl ToSchema for TemplateVersionResponse {
    fn schema(schemas: &mut Schemas) -> Value {
        let version = TemplateVersionView::schema(schemas);
        let mut fields = settings_schema(schemas);
        fields.extend(bodies_schema());
        let rest = object_schema("Settings and bodies of a version", fields, &[]);
        schema::object("A version", [("version", json!({"allOf": [version, rest]}))])
    }
}

fn with_warnings<const N: usize>(description: &str, required: &[&str], fields: [(&str, Value); N]) -> Value {
    let mut schema = schema::object_with(description, required, fields);
    schema["properties"]["warnings"] = schema::list(json!({"type": "string"}), "Warnings about ignored fields");
    schema
}

impl ToSchema for TemplateResponse {
    fn schema(schemas: &mut Schemas) -> Value {
        let template = TemplateView::schema(schemas);
        with_warnings("A template", &["template"], [("template", template)])
    }
}

impl ToSchema for PublishTemplateResponse {
    fn schema(schemas: &mut Schemas) -> Value {
        let (template, version) = (TemplateView::schema(schemas), TemplateVersionView::schema(schemas));
        let fields = [("template", template), ("version", version)];
        with_warnings("The template and its new version", &["template", "version"], fields)
    }
}

impl ToSchema for TemplateList {
    fn schema(schemas: &mut Schemas) -> Value {
        let template = TemplateView::schema(schemas);
        schemas.component("TemplateList", |_| schema::list_page("templates", template))
    }
}

impl ToSchema for TemplateVersionList {
    fn schema(schemas: &mut Schemas) -> Value {
        let version = TemplateVersionView::schema(schemas);
        schemas.component("TemplateVersionList", |_| schema::list_page("versions", version))
    }
}
