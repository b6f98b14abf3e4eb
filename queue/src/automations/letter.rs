//! The email of a step: from what it says and what the run knows to a draft for the hall.
//!
//! Every one says that a machine sends it (`Auto-Submitted`, RFC 3834 5). In a run that a received email began, mail to
//! who wrote that, or to an address that was filled in, is an answer: it stands in the thread of what it answers, and
//! is left out where nobody is to be answered ([`mail::received::Unanswerable`]).

use mail::address::Mailbox;
use mail::automation::context::{self, RunContext};
use mail::automation::definition::SendEmailStep;
use mail::automation::run::AutomationRun;
use mail::compose::{Composition, CustomHeader};
use mail::draft::{Draft, DraftContent, DraftRecipient, SendOptions, SubmissionEnvelope};
use mail::email::{Ingress, Tag};
use mail::received::AutoReplyRefusal;
use mail::recipient::{DsnOptions, RecipientKind};
use mail::tags;
use mail::template::{RenderedTemplate, TemplateKey, TemplateRef, TemplateUse};
use serde_json::{Map, Value, json};
use store::access::Tenant;

use crate::accept::{Intake, RenderTemplateError};

/// A text of addresses that was filled in.
const ADDRESS_BYTES_MAX: usize = 1_024;

/// Why there is no draft.
#[derive(Debug)]
pub(super) enum RenderEmailError {
    /// It cannot be written.
    Permanent(String),
    /// It cannot be written at the moment.
    Transient(String),
    /// It would be an answer, and nobody is to be answered.
    Withheld(AutoReplyRefusal),
}

fn permanent(error: impl Into<String>) -> RenderEmailError {
    RenderEmailError::Permanent(error.into())
}

/// A draft, and what it looks like.
pub(super) struct StepEmail {
    pub(super) draft: Draft,
    pub(super) preview: Value,
    /// Somebody is answered by it.
    pub(super) answers: bool,
    /// Somebody else of its recipients is not, for this.
    pub(super) withheld: Option<AutoReplyRefusal>,
}

/// Writes the email of a step.
pub(super) async fn render_email(
    hall: &Intake,
    tenant: &Tenant,
    (run, email): (&AutomationRun, &SendEmailStep),
    known: &RunContext,
) -> Result<StepEmail, RenderEmailError> {
    let root = known.to_json();
    let variables = context::render_value(&Value::Object(email.variables.clone()), &root);
    let variables = match variables.map_err(|error| permanent(format!("`variables`: {error}")))? {
        Some(Value::Object(variables)) => variables,
        _ => Map::new(),
    };
    let mut wishes = SendOptions { run: Some((run.automation, run.id)), ..SendOptions::default() };
    let mut category = email.category;
    let (rendered, from, reply_to) = match &email.template {
        None => (render_own_text(email, &root, &variables)?, None, Vec::new()),
        Some(_) => render_template(hall, tenant, (email, &root, variables), (&mut category, &mut wishes)).await?,
    };
    let from = match &email.from {
        Some(text) => parse_mailbox("from", text, &root)?,
        None => from.ok_or_else(|| permanent("`from` is needed: the step has none, nor has its template"))?,
    };
    let StepRecipients { to, answers, withheld } = step_recipients(email, &root, known)?;
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
        headers: auto_submitted_headers(known, answers),
        attachments: Vec::new(),
    };
    if parts.html.is_none() && parts.text.is_none() {
        return Err(permanent("there is no body to send"));
    }
    let shown = email_preview(&parts, &wishes);
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
        options: wishes,
    };
    Ok(StepEmail { draft, preview: shown, answers, withheld })
}

/// To whom an email goes.
struct StepRecipients {
    to: Vec<Mailbox>,
    answers: bool,
    withheld: Option<AutoReplyRefusal>,
}

/// Each recipient once, without those who are not to be answered.
fn step_recipients(
    email: &SendEmailStep,
    root: &Value,
    known: &RunContext,
) -> Result<StepRecipients, RenderEmailError> {
    let mut found = StepRecipients { to: Vec::with_capacity(email.to.len()), answers: false, withheld: None };
    for text in &email.to {
        // A stranger wrote what is filled in: not only the author, but all whom they name. It is asked before it is
        // filled in, since there may be no author at all.
        let filled = known.answering.as_ref().filter(|known| text.contains("{{") || known.is_ours);
        if let Some(why) = filled.and_then(|known| known.unanswerable) {
            found.withheld = Some(why);
            continue;
        }
        let one = parse_mailbox("to", text, root)?;
        let answering = filled.or(known.answering.as_ref().filter(|known| known.is_author_address(&one.address)));
        if let Some(why) = answering.and_then(|known| known.unanswerable) {
            found.withheld = Some(why);
            continue;
        }
        found.answers |= answering.is_some();
        if !found.to.iter().any(|earlier| earlier.address == one.address) {
            found.to.push(one);
        }
    }
    match found.withheld {
        Some(why) if found.to.is_empty() => Err(RenderEmailError::Withheld(why)),
        _ => Ok(found),
    }
}

/// What says that a machine sends it, and what it answers (RFC 3834 3.1.5, 3.1.6, 5).
fn auto_submitted_headers(known: &RunContext, answers: bool) -> Vec<CustomHeader> {
    let thread = known.answering.as_ref().filter(|_| answers).map(|known| known.thread.as_slice());
    let says = if answers { "auto-replied" } else { "auto-generated" };
    let thread = thread.unwrap_or_default().iter().map(|(name, value)| (name.as_str(), value.as_str()));
    let fields = std::iter::once(("Auto-Submitted", says)).chain(thread);
    fields.filter_map(|(name, value)| CustomHeader::new(name, value).ok()).collect()
}

fn email_preview(parts: &Composition, wishes: &SendOptions) -> Value {
    let texts = |boxes: &[Mailbox]| boxes.iter().map(ToString::to_string).collect::<Vec<_>>();
    json!({
        "from": parts.from.to_string(),
        "to": texts(&parts.to),
        "subject": parts.subject,
        "html": parts.html,
        "text": parts.text,
        "template_id": wishes.template.as_ref().map(|template| template.id),
    })
}

/// The step's own subject and bodies.
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
    hall: &Intake,
    tenant: &Tenant,
    (email, root, variables): (&SendEmailStep, &Value, Map<String, Value>),
    (category, wishes): (&mut Option<mail::email::Category>, &mut SendOptions),
) -> Result<FilledTemplate, RenderEmailError> {
    let Some(named) = &email.template else { return Err(permanent("there is no template")) };
    let reference = TemplateRef { key: TemplateKey::parse(&named.name), version: named.version };
    let seen = context::template_variables(root, &variables);
    let wanted = TemplateUse { reference, variables: seen };
    let (compiled, mut rendered) =
        hall.render_template(tenant, wanted, email.subject.is_some()).await.map_err(|error| match error {
            RenderTemplateError::NotFound => permanent(format!("there is no template `{}`", named.name)),
            RenderTemplateError::Unpublished => permanent(format!("the template `{}` is not published", named.name)),
            RenderTemplateError::Render(error) => permanent(error.to_string()),
            RenderTemplateError::Read(error) => RenderEmailError::Transient(error.to_string()),
        })?;
    if email.subject.is_some() {
        let subject = SendEmailStep { html: None, text: None, ..email.clone() };
        rendered.subject = render_own_text(&subject, root, &variables)?.subject;
    }
    compiled.apply_defaults(category, wishes);
    Ok((rendered, compiled.from().cloned(), compiled.reply_to().to_vec()))
}

/// One address. What an event says is filled in here, and makes no second one.
fn parse_mailbox(field: &str, text: &str, root: &Value) -> Result<Mailbox, RenderEmailError> {
    let wrong = |error: String| permanent(format!("`{field}`: {error}"));
    let text = context::render_text(text, root).map_err(wrong)?;
    tags::check_line(&text, ADDRESS_BYTES_MAX).map_err(wrong)?;
    let mailbox: Mailbox = text.trim().parse().map_err(|error| wrong(format!("{error}")))?;
    let several = mailbox.name.as_deref().is_some_and(|name| {
        !text.trim_start().starts_with('"') && (name.contains(['<', '>']) || (name.contains(',') && name.contains('@')))
    });
    if several {
        return Err(wrong("must be one address; give several as a list".to_owned()));
    }
    Ok(mailbox)
}

fn render_tags(email: &SendEmailStep, root: &Value) -> Result<Vec<Tag>, RenderEmailError> {
    let fill = |(name, value): &(String, String)| {
        let wrong = |error: String| permanent(format!("`tags.{name}`: {error}"));
        let value = context::render_text(value, root).map_err(wrong)?.into_owned();
        tags::check_line(&value, tags::TAG_BYTES_MAX).map_err(wrong)?;
        Ok(Tag { name: name.clone(), value })
    };
    email.tags.iter().map(fill).collect()
}
