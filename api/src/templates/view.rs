//! Templates and their versions as clients see them (completions-email.md 2.5).

use mail::email::Category;
use mail::id::TemplateId;
use mail::template::{
    Template, TemplateBodies, TemplateSettings, TemplateStatus, TemplateVariable, TemplateVersion, VariableType,
};
use serde::Serialize;
use serde_json::{Value, json};

use crate::emails::view::JsonTimestamp;
use crate::schema::{self, Schemas, ToSchema};

/// A template: its draft, and what is published of it.
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

/// What a draft or a version says.
#[derive(Debug, Serialize)]
struct TemplateSettingsView {
    category: Category,
    unsubscribe_enabled: bool,
    from: Option<String>,
    reply_to: Vec<String>,
    subject: Option<String>,
    preheader: Option<String>,
    /// Left out in lists.
    #[serde(flatten)]
    bodies: Option<TemplateBodiesView>,
    variables: Vec<TemplateVariableView>,
}

#[derive(Debug, Serialize)]
struct TemplateVariableView {
    key: String,
    r#type: VariableType,
    required: bool,
    /// Null when there is none.
    #[serde(serialize_with = "mail::number::serialize")]
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
    /// What is shown of a template by itself.
    #[must_use]
    pub fn with_bodies(template: &Template, bodies: TemplateBodies) -> Self {
        Self::from_template(template, Some(bodies))
    }

    /// What a list shows of a template.
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
            // Of what was never published, nothing is.
            has_unpublished_changes: template.changed || template.published.is_none(),
            published_at: template.published.map(|published| JsonTimestamp(published.at)),
            created_at: JsonTimestamp(template.created_at),
            updated_at: JsonTimestamp(template.updated_at),
        }
    }
}

/// One template, in answer to whatever changes or shows it.
#[derive(Debug, Serialize)]
pub struct TemplateResponse {
    /// The template.
    pub template: TemplateView,
    /// What was ignored.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}

/// A page of templates.
#[derive(Debug, Serialize)]
pub struct TemplateList {
    /// The templates, newest first.
    pub templates: Vec<TemplateView>,
    /// Whether there are more.
    pub has_more: bool,
    /// Where they begin.
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
    /// What a list shows of a version.
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

/// A version by itself.
#[derive(Debug, Serialize)]
pub struct TemplateVersionDetail {
    #[serde(flatten)]
    version: TemplateVersionView,
    #[serde(flatten)]
    settings: TemplateSettingsView,
}

impl TemplateVersionDetail {
    /// All of a version.
    #[must_use]
    pub fn from_version(version: &TemplateVersion, bodies: TemplateBodies) -> Self {
        let settings = TemplateSettingsView::from_settings(&version.settings, Some(bodies));
        Self { version: TemplateVersionView::from_version(version), settings }
    }
}

/// One version.
#[derive(Debug, Serialize)]
pub struct TemplateVersionResponse {
    /// The version.
    pub version: TemplateVersionDetail,
}

/// A page of versions.
#[derive(Debug, Serialize)]
pub struct TemplateVersionList {
    /// The versions, newest first.
    pub versions: Vec<TemplateVersionView>,
    /// Whether there are more.
    pub has_more: bool,
    /// Where they begin.
    pub next_cursor: Option<String>,
}

/// A template was published.
#[derive(Debug, Serialize)]
pub struct PublishTemplateResponse {
    /// The template.
    pub template: TemplateView,
    /// The version that is sent from now on.
    pub version: TemplateVersionView,
    /// What was ignored.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}

/// The schema of a declared variable.
#[must_use]
pub fn variable_schema(schemas: &mut Schemas) -> Value {
    schemas.component("TemplateVariable", |_| {
        schema::object_with(
            "What a template says of a variable",
            &["key"],
            [
                ("key", schema::string("Its name")),
                ("type", schema::string_enum(VariableType::WORDS, "What it holds; `string` if nothing is said")),
                (
                    "required",
                    schema::boolean("Nothing is sent without it; true unless there is a fallback, if nothing is said"),
                ),
                ("fallback_value", json!({"description": "What stands in its place when it is not given"})),
            ],
        )
    })
}

fn settings_schema(schemas: &mut Schemas) -> Vec<(&'static str, Value)> {
    let variable = variable_schema(schemas);
    vec![
        ("category", schema::string_enum(Category::WORDS, "What it is for")),
        ("unsubscribe_enabled", schema::boolean("Managed unsubscribe; always on for product and newsletter")),
        ("from", schema::nullable_string("The author, unless the send request names one")),
        ("reply_to", schema::list(json!({"type": "string"}), "Where answers go, unless the send request says")),
        ("subject", schema::nullable_string("Markup of the subject")),
        ("preheader", schema::nullable_string("Markup of the line that mail programs show behind the subject")),
        ("variables", schema::list(variable, "What it says of its variables")),
    ]
}

fn object_schema(description: &str, fields: Vec<(&'static str, Value)>, not_in_lists: &[&str]) -> Value {
    let required: Vec<&str> = fields.iter().map(|(name, _)| *name).filter(|n| !not_in_lists.contains(n)).collect();
    let properties: Value = fields.iter().map(|(name, schema)| ((*name).to_owned(), schema.clone())).collect();
    json!({"type": "object", "description": description, "properties": properties, "required": required})
}

fn bodies_schema() -> [(&'static str, Value); 2] {
    [
        ("html", schema::nullable_string("Markup of the HTML body; not in lists")),
        ("text", schema::nullable_string("Markup of the plain-text body; not in lists")),
    ]
}

impl ToSchema for TemplateView {
    fn schema(schemas: &mut Schemas) -> Value {
        let settings = settings_schema(schemas);
        schemas.component("Template", |_| {
            let mut fields = vec![
                ("id", schema::string("Its id (`tpl_…`)")),
                ("alias", schema::nullable_string("Its name for programs")),
                ("name", schema::string("Its name for people")),
            ];
            fields.extend(settings);
            fields.extend(bodies_schema());
            fields.extend([
                ("status", schema::string_enum(TemplateStatus::WORDS, "Where it stands")),
                ("draft_version", schema::count("Counts changes of the draft: give it as `if_version`")),
                ("published_version", schema::nullable_count("The version that is sent")),
                ("has_unpublished_changes", schema::boolean("Whether the draft is not what is sent")),
                ("published_at", schema::nullable_time("When that version was published")),
                ("created_at", schema::time("When it was created")),
                ("updated_at", schema::time("When anything of it was changed")),
            ]);
            object_schema("A template: its draft, and what is published", fields, &["html", "text"])
        })
    }
}

impl ToSchema for TemplateVersionView {
    fn schema(schemas: &mut Schemas) -> Value {
        schemas.component("TemplateVersion", |_| {
            schema::object(
                "A published version",
                [
                    ("number", schema::count("1, 2, 3 …")),
                    ("note", schema::nullable_string("Why it was published")),
                    ("published_at", schema::time("When")),
                    ("published_by", schema::string("By whom")),
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
        let rest = object_schema("What it says", fields, &[]);
        schema::object("One version", [("version", json!({"allOf": [version, rest]}))])
    }
}

fn with_warnings<const N: usize>(description: &str, required: &[&str], fields: [(&str, Value); N]) -> Value {
    let mut schema = schema::object_with(description, required, fields);
    schema["properties"]["warnings"] = schema::list(json!({"type": "string"}), "What was ignored");
    schema
}

impl ToSchema for TemplateResponse {
    fn schema(schemas: &mut Schemas) -> Value {
        let template = TemplateView::schema(schemas);
        with_warnings("One template", &["template"], [("template", template)])
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
