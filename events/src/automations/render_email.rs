//! Rendering the email of a step: from the step's fields and the run's context to a draft.
//!
//! Each email declares itself automatic (`Auto-Submitted`, RFC 3834 5). In a run that a received email started, mail to
//! its author or to a templated address is an automatic reply: it carries the thread's header fields, and is withheld
//! where no reply may be sent ([`message::received::AutoReplyRefusal`]).

use message::address::Mailbox;
use message::compose::{Composition, CustomHeader};
use message::received::AutoReplyRefusal;
use model::automation::context::{self, RunContext};
use model::automation::definition::SendEmailStep;
use model::automation::run::AutomationRun;
use model::draft::{Draft, DraftContent, DraftRecipient, SendOptions, SubmissionEnvelope};
use model::email::{Ingress, Tag};
use model::recipient::{DsnOptions, RecipientKind};
use model::tags;
use model::template::{RenderedTemplate, TemplateKey, TemplateRef, TemplateUse};
use queue::intake::{RenderTemplateError, TemplateRenderer};
use serde_json::{Map, Value, json};
use store::access::Tenant;

/// Length limit of a rendered address field.
const ADDRESS_BYTES_MAX: usize = 1_024;

/// Why no draft was rendered.
#[derive(Debug)]
pub(super) enum RenderEmailError {
    /// The step can never be rendered.
    Permanent(String),
    /// A temporary failure.
    Transient(String),
    /// The email would be an automatic reply that must not be sent.
    Withheld(AutoReplyRefusal),
}

fn permanent(error: impl Into<String>) -> RenderEmailError {
    RenderEmailError::Permanent(error.into())
}

/// A rendered draft and its preview.
pub(super) struct StepEmail {
    pub(super) draft: Draft,
    pub(super) preview: Value,
    /// True if the email is an automatic reply.
    pub(super) answers: bool,
    /// Why recipients were left out, if some were.
    pub(super) withheld: Option<AutoReplyRefusal>,
}

pub(super) async fn render_email(
    templates: &TemplateRenderer,
    tenant: &Tenant,
    run: &AutomationRun,
    email: &SendEmailStep,
    run_context: &RunContext,
) -> Result<StepEmail, RenderEmailError> {
    let root = run_context.to_json();
    let variables = context::render_value(&Value::Object(email.variables.clone()), &root);
    let variables = match variables.map_err(|error| permanent(format!("`variables`: {error}")))? {
        Some(Value::Object(variables)) => variables,
        _ => Map::new(),
    };
    let mut options = SendOptions { run: Some((run.automation, run.id)), ..SendOptions::default() };
    let mut category = email.category;
    let (rendered, from, reply_to) = match &email.template {
        None => (render_own_text(email, &root, &variables)?, None, Vec::new()),
        Some(_) => render_template(templates, tenant, email, &root, variables, &mut category, &mut options).await?,
    };
    let from = match &email.from {
        Some(text) => parse_mailbox("from", text, &root)?,
        None => from.ok_or_else(|| permanent("`from` is required: set it in the step or in its template"))?,
    };
    let StepRecipients { to, answers, withheld } = step_recipients(email, &root, run_context)?;
    let own_reply_to: Result<Vec<_>, _> =
        email.reply_to.iter().map(|text| parse_mailbox("reply_to", text, &root)).collect();
    let own_reply_to = own_reply_to?;
    let reply_to = if own_reply_to.is_empty() { reply_to } else { own_reply_to };
    let subject = rendered.subject.filter(|subject| !subject.trim().is_empty());
    let parts = Composition {
        from: from.clone(),
        to,
        cc: Vec::new(),
        bcc: Vec::new(),
        reply_to,
        subject: subject.ok_or_else(|| permanent("`subject` is empty"))?,
        html: rendered.html,
        text: rendered.text,
        headers: auto_submitted_headers(run_context, answers),
        attachments: Vec::new(),
    };
    if parts.html.is_none() && parts.text.is_none() {
        return Err(permanent("`html` or `text` is required"));
    }
    let preview = email_preview(&parts, &options);
    let recipients = parts.to.iter().map(|to| DraftRecipient {
        address: to.address.clone(),
        kind: RecipientKind::To,
        notify: DsnOptions::default(),
    });
    let draft = Draft {
        ingress: Ingress::Api,
        from: Some(from),
        envelope: SubmissionEnvelope::default(),
        recipients: recipients.collect(),
        content: DraftContent::Parts(Box::new(parts)),
        tags: render_tags(email, &root)?,
        category: category.unwrap_or_default(),
        options,
    };
    Ok(StepEmail { draft, preview, answers, withheld })
}

struct StepRecipients {
    to: Vec<Mailbox>,
    answers: bool,
    withheld: Option<AutoReplyRefusal>,
}

/// Recipients without duplicates, and without those who must not be answered.
fn step_recipients(
    email: &SendEmailStep,
    root: &Value,
    run_context: &RunContext,
) -> Result<StepRecipients, RenderEmailError> {
    let mut recipients = StepRecipients { to: Vec::with_capacity(email.to.len()), answers: false, withheld: None };
    for text in &email.to {
        // A stranger controls rendered addresses: not only the author, but everyone the message names. Check before
        // rendering, since there may be no author.
        let reply = run_context.answering.as_ref().filter(|reply| text.contains("{{") || reply.is_ours);
        if let Some(reason) = reply.and_then(|reply| reply.unanswerable) {
            recipients.withheld = Some(reason);
            continue;
        }
        let mailbox = parse_mailbox("to", text, root)?;
        let answering =
            reply.or(run_context.answering.as_ref().filter(|reply| reply.is_author_address(&mailbox.address)));
        if let Some(reason) = answering.and_then(|reply| reply.unanswerable) {
            recipients.withheld = Some(reason);
            continue;
        }
        recipients.answers |= answering.is_some();
        if !recipients.to.iter().any(|earlier| earlier.address == mailbox.address) {
            recipients.to.push(mailbox);
        }
    }
    match recipients.withheld {
        Some(reason) if recipients.to.is_empty() => Err(RenderEmailError::Withheld(reason)),
        _ => Ok(recipients),
    }
}

/// Header fields that declare an automatic message and its thread (RFC 3834 3.1.5, 3.1.6, 5).
fn auto_submitted_headers(run_context: &RunContext, answers: bool) -> Vec<CustomHeader> {
    let thread = run_context.answering.as_ref().filter(|_| answers).map(|reply| reply.thread.as_slice());
    let auto_submitted = if answers { "auto-replied" } else { "auto-generated" };
    let thread = thread.unwrap_or_default().iter().map(|(name, value)| (name.as_str(), value.as_str()));
    let fields = std::iter::once(("Auto-Submitted", auto_submitted)).chain(thread);
    fields.filter_map(|(name, value)| CustomHeader::new(name, value).ok()).collect()
}

fn email_preview(parts: &Composition, options: &SendOptions) -> Value {
    let texts = |boxes: &[Mailbox]| boxes.iter().map(ToString::to_string).collect::<Vec<_>>();
    json!({
        "from": parts.from.to_string(),
        "to": texts(&parts.to),
        "subject": parts.subject,
        "html": parts.html,
        "text": parts.text,
        "template_id": options.template.as_ref().map(|template| template.id),
    })
}

/// Renders the step's own subject and bodies.
fn render_own_text(
    email: &SendEmailStep,
    root: &Value,
    variables: &Map<String, Value>,
) -> Result<RenderedTemplate, RenderEmailError> {
    let program = context::compile_template(email.subject.as_deref(), email.html.as_deref(), email.text.as_deref());
    let program = program.map_err(|errors| {
        permanent(errors.first().map(|(part, error)| format!("`{part}`: {error}")).unwrap_or_default())
    })?;
    context::render_template(&program, root, variables).map_err(|error| permanent(error.to_string()))
}

type FilledTemplate = (RenderedTemplate, Option<Mailbox>, Vec<Mailbox>);

async fn render_template(
    templates: &TemplateRenderer,
    tenant: &Tenant,
    email: &SendEmailStep,
    root: &Value,
    variables: Map<String, Value>,
    category: &mut Option<model::email::Category>,
    options: &mut SendOptions,
) -> Result<FilledTemplate, RenderEmailError> {
    let Some(named) = &email.template else { return Err(permanent("the step has no template")) };
    let reference = TemplateRef { key: TemplateKey::parse(&named.name), version: named.version };
    let used_variables = context::template_variables(root, &variables);
    let wanted = TemplateUse { reference, variables: used_variables };
    let (compiled, mut rendered) =
        templates.render(tenant, wanted, email.subject.is_some()).await.map_err(|error| match error {
            RenderTemplateError::NotFound => permanent(format!("template `{}` not found", named.name)),
            RenderTemplateError::Unpublished => permanent(format!("template `{}` is not published", named.name)),
            RenderTemplateError::Render(error) => permanent(error.to_string()),
            RenderTemplateError::Read(error) => RenderEmailError::Transient(error.to_string()),
        })?;
    if email.subject.is_some() {
        let subject = SendEmailStep { html: None, text: None, ..email.clone() };
        rendered.subject = render_own_text(&subject, root, &variables)?.subject;
    }
    compiled.apply_defaults(category, options);
    Ok((rendered, compiled.from().cloned(), compiled.reply_to().to_vec()))
}

/// Parses one address. Event data is rendered into it and must not add a second address.
fn parse_mailbox(field: &str, text: &str, root: &Value) -> Result<Mailbox, RenderEmailError> {
    let invalid = |error: String| permanent(format!("`{field}`: {error}"));
    let text = context::render_text(text, root).map_err(invalid)?;
    tags::check_line(&text, ADDRESS_BYTES_MAX).map_err(invalid)?;
    let mailbox: Mailbox = text.trim().parse().map_err(|error| invalid(format!("{error}")))?;
    let several = mailbox.name.as_deref().is_some_and(|name| {
        !text.trim_start().starts_with('"') && (name.contains(['<', '>']) || (name.contains(',') && name.contains('@')))
    });
    if several {
        return Err(invalid("must be one address; give several as a list".to_owned()));
    }
    Ok(mailbox)
}

fn render_tags(email: &SendEmailStep, root: &Value) -> Result<Vec<Tag>, RenderEmailError> {
    let fill = |(name, value): &(String, String)| {
        let invalid = |error: String| permanent(format!("`tags.{name}`: {error}"));
        let value = context::render_text(value, root).map_err(invalid)?.into_owned();
        tags::check_line(&value, tags::TAG_BYTES_MAX).map_err(invalid)?;
        Ok(Tag { name: name.clone(), value })
    };
    email.tags.iter().map(fill).collect()
}
