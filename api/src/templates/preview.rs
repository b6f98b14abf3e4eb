//! Rendering a template: in the response (`preview`), or as a test email (`test-send`).
//!
//! A preview renders what it can, leaves the tags of missing variables visible, and returns warnings. A test email
//! passes the same checks as any other email.

use httpd::fields::JsonKind;
use message::address::Mailbox;
use message::compose::Composition;
use model::draft::{Draft, DraftContent, SendOptions, SubmissionEnvelope};
use model::email::{Category, Ingress};
use model::idempotency::IdempotencyScope;
use model::template::render::VARIABLES_BYTES_MAX;
use model::template::{ParsedTemplate, RenderedTemplate, TemplateBodies, TemplateKey, UNSUBSCRIBE_URL};
use serde_json::Map;

use super::draft::{self, TemplateEdit, UnsavedDraft};
use super::path::TemplatePath;
use super::render_error::render_error_problem;
use super::storage::{find, find_with_bodies};
use crate::emails::recipients::{RecipientLists, read_author, read_recipients};
use crate::emails::send::SendResponse;
use crate::emails::send_fields::{author_schema, recipients_schema};
use crate::emails::send_idempotent;
use crate::emails::template::{parse_variables, parse_version, variables_schema, version_schema};
use crate::idempotency::IdempotentResponse;
use crate::prelude::*;

/// Gmail clips a message whose HTML is longer than this.
const GMAIL_BYTES_MAX: usize = 102 << 10;
/// Longest body: the variables, and some addresses.
const REQUEST_BYTES_MAX: usize = 2 * VARIABLES_BYTES_MAX + (256 << 10);
/// Longest body with unsaved content.
const PREVIEW_BYTES_MAX: usize = REQUEST_BYTES_MAX + draft::REQUEST_BYTES_MAX;

/// The variables and version to render
#[derive(Debug, RequestObject)]
pub struct RenderRequest {
    /// The template's variables by name
    #[field(foreign = ["TestRenderModel"], read = read_variables, schema = variables_schema)]
    variables: Option<Map<String, Value>>,
    /// The version to render; default: the draft
    #[field(parse = parse_rendered_version, schema = json!({"oneOf": [{"const": "draft"}, version_schema(schemas)]}))]
    version: Option<RenderedVersion>,
}

/// The variables and version to render, and unsaved changes
#[derive(Debug, RequestObject)]
#[schema(body_bytes_max = PREVIEW_BYTES_MAX, optional_body)]
pub struct PreviewTemplate {
    #[field(flatten)]
    rendering: RenderRequest,
    /// Unsaved changes of the draft
    #[field(read = read_changes, schema = UnsavedDraft::schema)]
    changes: Option<TemplateEdit>,
}

fn read_changes(fields: &ObjectFields<'_>, notes: &mut FieldDiagnostics) -> Option<TemplateEdit> {
    UnsavedDraft::parse(fields.value("changes")?, "changes", notes)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RenderedVersion {
    Draft,
    Published(u32),
}

fn parse_rendered_version(value: &RawValue) -> Result<RenderedVersion, String> {
    if JsonKind::of_value(value) == JsonKind::Text && fields::parse_text(value).is_ok_and(|word| word == "draft") {
        return Ok(RenderedVersion::Draft);
    }
    let number = parse_version(value).map_err(|_| "must be \"draft\" or a version's number".to_owned());
    number.map(RenderedVersion::Published)
}

fn read_variables(fields: &ObjectFields<'_>, notes: &mut FieldDiagnostics) -> Option<Map<String, Value>> {
    parse_variables(fields.value("variables")?, "variables", notes)
}

impl RenderRequest {
    /// Loads and parses the template with unsaved changes of its draft, and runs `work` on a blocking thread. It gets
    /// the advice about an MJML source that was compiled for it.
    async fn render_blocking<T: Send + 'static>(
        self,
        state: &AppState,
        tenant: &Tenant,
        key: &TemplateKey,
        changes: Option<TemplateEdit>,
        work: impl FnOnce(&ParsedTemplate, &TemplateBodies, Option<Vec<String>>, &Value) -> T + Send + 'static,
    ) -> Result<T> {
        let mut advice = None;
        let (settings, bodies) = match self.version {
            None | Some(RenderedVersion::Draft) => {
                let (template, bodies) = find_with_bodies(state, tenant, key).await?;
                let (mut settings, mut bodies) = (template.draft, bodies);
                if let Some(changes) = changes {
                    let changes = changes.compile("changes").await?;
                    changes.apply(&mut settings, &mut bodies);
                    advice = changes.into_warnings();
                }
                (settings, bodies)
            }
            Some(RenderedVersion::Published(_)) if changes.is_some() => {
                return Err(Problem::field("changes", "are rendered with the draft only, not with a version"));
            }
            Some(RenderedVersion::Published(number)) => {
                let template = find(state, tenant, key).await?;
                let (store, account) = (&state.services.store, template.account);
                let found = store::template::get_version(store, account, template.id, number).await?;
                let (version, bodies) = found.ok_or_else(|| Problem::not_found("version"))?;
                (version.settings, bodies)
            }
        };
        let done = tokio::task::spawn_blocking(move || {
            // The markup was checked when it was stored or read, so this is a fault of the service.
            let program = ParsedTemplate::compile(&settings, &bodies).map_err(|errors| {
                let first = errors.first().map(|(part, error)| format!("{part}: {error}"));
                Problem::internal(format!("a stored template cannot be parsed: {}", first.unwrap_or_default()))
            })?;
            Ok(work(&program, &bodies, advice, &Value::Object(self.variables.unwrap_or_default())))
        });
        done.await.map_err(Problem::internal)?
    }
}

/// The rendered template
#[derive(Debug, Serialize, ToSchema)]
#[schema(name = "TemplatePreview")]
pub struct PreviewResponse {
    /// The subject
    subject: Option<String>,
    /// The HTML body; tags of missing variables stay
    html: Option<String>,
    /// The plain-text body
    text: Option<String>,
    /// Required variables that are missing: a send would be refused
    missing_variables: Vec<String>,
    /// Given or declared variables that the template does not use
    unused_variables: Vec<String>,
    /// Example variables for this template
    #[serde(serialize_with = "model::raw_number::serialize")]
    #[schema(type = "object")]
    suggested_variables: Value,
    /// Warnings about the content
    warnings: Vec<String>,
    /// Size of both bodies in bytes
    size_bytes: usize,
}

impl PreviewResponse {
    fn render(
        program: &ParsedTemplate,
        bodies: &TemplateBodies,
        advice: Option<Vec<String>>,
        variables: &Value,
    ) -> Self {
        let (rendered, error) = program.preview(variables);
        let declared = &program.settings.variables;
        let given_keys = variables.as_object().into_iter().flat_map(Map::keys);
        let declared_keys = declared.iter().map(|variable| &variable.key);
        let mut unused_variables: Vec<String> = Vec::new();
        for name in given_keys.chain(declared_keys) {
            if !program.usage.uses(name) && !unused_variables.contains(name) {
                unused_variables.push(name.clone());
            }
        }
        let mut warnings: Vec<String> =
            error.invalid.iter().map(|(name, message)| format!("`{name}` {message}")).collect();
        warnings.extend(content_warnings(program, &rendered));
        // The source of a stored draft or version was compiled when it was stored.
        let advice = advice.or_else(|| bodies.mjml.as_deref().map(mjml::warnings));
        warnings.extend(advice.unwrap_or_default());
        let RenderedTemplate { subject, html, text } = rendered;
        let size_bytes = [&html, &text].into_iter().flatten().map(String::len).sum();
        Self {
            subject,
            html,
            text,
            missing_variables: error.missing,
            unused_variables,
            suggested_variables: Value::Object(program.usage.example_variables(declared)),
            warnings,
            size_bytes,
        }
    }
}

/// Warnings about deliverability.
fn content_warnings(program: &ParsedTemplate, rendered: &RenderedTemplate) -> Vec<String> {
    let mut advice = Vec::new();
    let settings = &program.settings;
    let html_bytes = rendered.html.as_ref().map_or(0, String::len);
    if html_bytes > GMAIL_BYTES_MAX {
        advice.push(format!("The HTML has {html_bytes} bytes: Gmail clips messages after 102 KB"));
    }
    if rendered.subject.as_ref().is_none_or(String::is_empty) {
        advice.push("The template has no subject: every send must set one".to_owned());
    }
    if rendered.html.is_none() && rendered.text.is_none() {
        advice.push("The template has neither html nor text: it cannot be published".to_owned());
    } else if rendered.text.is_none() {
        advice.push("The template has no text: some email programs and filters expect one".to_owned());
    }
    match (settings.has_managed_unsubscribe(), program.has_unsubscribe_url) {
        (true, false) => advice.push(format!(
            "Managed unsubscribe is on, but the template has no `{{{{{UNSUBSCRIBE_URL}}}}}`: only the header offers it"
        )),
        (false, true) if settings.category == Category::Transactional => advice.push(format!(
            "`{{{{{UNSUBSCRIBE_URL}}}}}` is filled in only when managed unsubscribe is on: set `unsubscribe_enabled`"
        )),
        _ => {}
    }
    advice
}

/// `POST /templates/{id_or_alias}/preview`.
pub async fn preview(
    state: State,
    tenant: Tenant,
    (TemplatePath(key), preview): (TemplatePath, PreviewTemplate),
) -> Result<PreviewResponse> {
    let PreviewTemplate { rendering, changes } = preview;
    rendering.render_blocking(&state, &tenant, &key, changes, PreviewResponse::render).await
}

/// A test email
#[derive(Debug, RequestObject)]
#[schema(body_bytes_max = REQUEST_BYTES_MAX)]
pub struct SendTestTemplate {
    /// Recipients: an address or a list
    #[field(foreign = ["To"], read = read_to, schema = recipients_schema)]
    to: RecipientLists,
    /// Author; default: the template's
    #[field(foreign = ["From"], read = read_given_author, schema = author_schema)]
    from: Option<Mailbox>,
    #[field(flatten)]
    rendering: RenderRequest,
}

fn read_to(fields: &ObjectFields<'_>, notes: &mut FieldDiagnostics) -> Option<RecipientLists> {
    Some(read_recipients(fields, notes))
}

fn read_given_author(fields: &ObjectFields<'_>, notes: &mut FieldDiagnostics) -> Option<Mailbox> {
    fields.value("from").and_then(|_| read_author(fields, notes))
}

/// `POST /templates/{id_or_alias}/test-send`.
///
/// # Errors
/// The template or version does not exist, or cannot be rendered with these variables; the intake refuses the email.
pub async fn send_test(
    state: State,
    tenant: Tenant,
    (TemplatePath(key), test): (TemplatePath, SendTestTemplate),
) -> Result<IdempotentResponse<SendResponse>> {
    let draft = build_test_draft(&state, &tenant, key, test);
    // This operation has no idempotency key.
    send_idempotent(&state, &tenant, IdempotencyScope::Send, None, draft).await
}

/// The email of a request of `POST /templates/{id_or_alias}/test-send`.
///
/// # Errors
/// The template or version does not exist, or cannot be rendered with these variables.
pub async fn resolve_test(
    state: State,
    tenant: Tenant,
    (TemplatePath(key), test): (TemplatePath, SendTestTemplate),
) -> Result<Vec<Draft>> {
    let (draft, _) = build_test_draft(&state, &tenant, key, test).await?;
    Ok(vec![draft])
}

async fn build_test_draft(
    state: &AppState,
    tenant: &Tenant,
    key: TemplateKey,
    test: SendTestTemplate,
) -> Result<(Draft, Vec<String>)> {
    let SendTestTemplate { rendering, to: people, from } = test;
    let work = |program: &ParsedTemplate, _: &TemplateBodies, _: Option<Vec<String>>, variables: &Value| {
        program.render(variables).map(|rendered| (rendered, program.settings.clone()))
    };
    let outcome = rendering.render_blocking(state, tenant, &key, None, work).await?;
    let (rendered, settings) = outcome.map_err(|error| render_error_problem(&error))?;
    let needed = |name: &str| Problem::field(name, "is required: the template has none");
    let from = from.or(settings.from).ok_or_else(|| needed("from"))?;
    let subject = rendered.subject.filter(|subject| !subject.is_empty()).ok_or_else(|| needed("subject"))?;
    if rendered.html.is_none() && rendered.text.is_none() {
        return Err(needed("html"));
    }
    let parts = Composition {
        from: from.clone(),
        to: people.to,
        cc: people.cc,
        bcc: people.bcc,
        reply_to: settings.reply_to.clone(),
        subject,
        html: rendered.html,
        text: rendered.text,
        headers: Vec::new(),
        attachments: Vec::new(),
    };
    let unsubscribe = settings.unsubscribe_enabled.then_some(true);
    let draft = Draft {
        ingress: Ingress::Api,
        from: Some(from),
        envelope: SubmissionEnvelope::default(),
        recipients: people.envelope,
        content: DraftContent::Parts(Box::new(parts)),
        tags: Vec::new(),
        category: settings.category,
        options: SendOptions { unsubscribe, ..SendOptions::default() },
    };
    Ok((draft, Vec::new()))
}
