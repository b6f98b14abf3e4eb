//! JSON views of templates and their versions.

use httpd::request_object::RequestObject as _;
use model::email::Category;
use model::template::{
    Template, TemplateBodies, TemplateSettings, TemplateStatus, TemplateVariable, TemplateVersion, VariableType,
};

use super::draft::VariableFields;
use crate::prelude::*;

object_view! {
    /// A template: its draft, and the state of its publication
    #[schema(name = "Template")]
    pub struct TemplateView, fn from_template(template: &Template, bodies: Option<TemplateBodies>) {
        /// Id (`tpl_…`)
        id: TemplateId = template.id,
        /// Name for API calls
        alias: Option<String> = template.alias.clone(),
        /// Display name
        name: String = template.name.clone(),
        #[serde(flatten)]
        settings: TemplateSettingsView = TemplateSettingsView::from_settings(&template.draft, bodies),
        /// Status
        status: TemplateStatus = template.status(),
        /// Number of changes of the draft; send it as `if_version`
        draft_version: u32 = template.draft_version,
        /// The published version, which is sent
        published_version: Option<u32> = template.published.map(|published| published.version),
        /// Whether the draft differs from the published version
        // A draft that was never published counts as unpublished changes.
        has_unpublished_changes: bool = template.changed || template.published.is_none(),
        /// Time of the last publication
        published_at: Option<JsonTimestamp> = template.published.map(|published| JsonTimestamp(published.at)),
        /// Time of creation
        created_at: JsonTimestamp = JsonTimestamp(template.created_at),
        /// Time of the last change
        updated_at: JsonTimestamp = JsonTimestamp(template.updated_at),
    }
}

object_view! {
    /// Settings and bodies of a version
    struct TemplateSettingsView, fn from_settings(settings: &TemplateSettings, bodies: Option<TemplateBodies>) {
        /// Category
        category: Category = settings.category,
        /// Managed unsubscribe; always on for product and newsletter
        unsubscribe_enabled: bool = settings.has_managed_unsubscribe(),
        /// Default author, unless the send request has one
        from: Option<String> = settings.from.as_ref().map(ToString::to_string),
        /// Default `Reply-To`, unless the send request has one
        reply_to: Vec<String> = settings.reply_to.iter().map(ToString::to_string).collect(),
        /// Markup of the subject
        subject: Option<String> = settings.subject.clone(),
        /// Markup of the preview text after the subject
        preheader: Option<String> = settings.preheader.clone(),
        #[serde(flatten)]
        bodies: Option<TemplateBodiesView> =
            bodies.map(|TemplateBodies { html, text, mjml }| TemplateBodiesView { html, mjml, text }),
        /// Declared variables
        variables: Vec<TemplateVariableView> =
            settings.variables.iter().map(TemplateVariableView::from_variable).collect(),
    }
}

#[derive(Debug, Serialize)]
struct TemplateVariableView {
    key: String,
    r#type: VariableType,
    required: bool,
    /// Null if the variable has no fallback.
    #[serde(serialize_with = "model::raw_number::serialize")]
    fallback_value: Value,
}

/// The schema of requests: there the type, `required` and the fallback may be absent.
impl ToSchema for TemplateVariableView {
    fn schema(schemas: &mut Schemas) -> Value {
        VariableFields::schema(schemas)
    }
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

#[derive(Debug, Serialize, ToSchema)]
struct TemplateBodiesView {
    /// Markup of the HTML body, compiled if there is `mjml`; omitted in lists
    html: Option<String>,
    /// MJML source of the HTML body, or null; omitted in lists
    mjml: Option<String>,
    /// Markup of the plain-text body; omitted in lists
    text: Option<String>,
}

impl TemplateView {
    /// The view of one template, with its bodies.
    pub fn with_bodies(template: &Template, bodies: TemplateBodies) -> Self {
        Self::from_template(template, Some(bodies))
    }

    /// The view of a template in a list.
    pub fn without_bodies(template: &Template) -> Self {
        Self::from_template(template, None)
    }
}

/// A template
#[derive(Debug, Serialize, ToSchema)]
pub struct TemplateResponse {
    pub template: TemplateView,
    /// Warnings about ignored fields
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}

list_response! { pub TemplateList { templates: TemplateView } as "TemplateList" }

object_view! {
    /// A published version
    #[schema(name = "TemplateVersion")]
    pub struct TemplateVersionView, pub fn from_version(version: &TemplateVersion) {
        /// Version number: 1, 2, 3 …
        number: u32 = version.number,
        /// Note
        note: Option<String> = version.note.clone(),
        /// Time of publication
        published_at: JsonTimestamp = JsonTimestamp(version.published_at),
        /// Email of the account that published it
        published_by: String = version.published_by.clone(),
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
    pub fn from_version(version: &TemplateVersion, bodies: TemplateBodies) -> Self {
        let settings = TemplateSettingsView::from_settings(&version.settings, Some(bodies));
        Self { version: TemplateVersionView::from_version(version), settings }
    }
}

/// A version
#[derive(Debug, Serialize, ToSchema)]
pub struct TemplateVersionResponse {
    #[schema(with = version_detail_schema)]
    pub version: TemplateVersionDetail,
}

list_response! { pub TemplateVersionList { versions: TemplateVersionView } as "TemplateVersionList" }

/// The template and its new version
#[derive(Debug, Serialize, ToSchema)]
pub struct PublishTemplateResponse {
    pub template: TemplateView,
    pub version: TemplateVersionView,
}

/// Schema of [`TemplateVersionDetail`], which always has its bodies.
fn version_detail_schema(schemas: &mut Schemas) -> Value {
    let version = TemplateVersionView::schema(schemas);
    let properties = TemplateSettingsView::PROPERTIES;
    let mut rest = schema::object_schema(schemas, Some("Settings and bodies of a version"), properties);
    if let Some(required) = rest["required"].as_array_mut() {
        required.extend(["html", "mjml", "text"].map(Value::from));
    }
    schema::all_of(version, rest, None)
}
