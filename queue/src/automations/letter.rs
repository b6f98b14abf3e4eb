//! The email of a step: from what it says and what the run knows to a draft for the hall.
//!
//! Every one says that a machine sends it (`Auto-Submitted`, RFC 3834 5). In a run that a received email began, mail to
//! who wrote that, or to an address that was filled in, is an answer: it stands in the thread of what it answers, and
//! is left out where nobody is to be answered ([`mail::received::Unanswerable`]).

use mail::address::Mailbox;
use mail::automation::context::{self, Context};
use mail::automation::definition::SendEmail;
use mail::automation::run::Run;
use mail::compose::{Composition, CustomHeader};
use mail::draft::{Content, Draft, DraftRecipient, Envelope, Wishes};
use mail::email::{Door, Tag};
use mail::received::Unanswerable;
use mail::recipient::{Notify, RecipientKind};
use mail::tags;
use mail::template::{Rendered, TemplateKey, TemplateRef, TemplateUse};
use serde_json::{Map, Value, json};
use store::access::Tenant;

use crate::accept::{FillError, Hall};

/// A text of addresses that was filled in.
const ADDRESS_BYTES_MAX: usize = 1_024;

/// Why there is no draft.
#[derive(Debug)]
pub(super) enum Unwritten {
    /// It cannot be written.
    Never(String),
    /// It cannot be written at the moment.
    NotNow(String),
    /// It would be an answer, and nobody is to be answered.
    Withheld(Unanswerable),
}

fn never(error: impl Into<String>) -> Unwritten {
    Unwritten::Never(error.into())
}

/// A draft, and what it looks like.
pub(super) struct Written {
    pub(super) draft: Draft,
    pub(super) shown: Value,
    /// Somebody is answered by it.
    pub(super) answers: bool,
    /// Somebody else of its recipients is not, for this.
    pub(super) withheld: Option<Unanswerable>,
}

/// Writes the email of a step.
pub(super) async fn write(
    hall: &Hall,
    tenant: &Tenant,
    (run, email): (&Run, &SendEmail),
    known: &Context,
) -> Result<Written, Unwritten> {
    let root = known.to_json();
    let variables = context::fill_value(&Value::Object(email.variables.clone()), &root);
    let variables = match variables.map_err(|error| never(format!("`variables`: {error}")))? {
        Some(Value::Object(variables)) => variables,
        _ => Map::new(),
    };
    let mut wishes = Wishes { run: Some((run.automation, run.id)), ..Wishes::default() };
    let mut category = email.category;
    let (rendered, from, reply_to) = match &email.template {
        None => (own(email, &root, &variables)?, None, Vec::new()),
        Some(_) => template(hall, tenant, (email, &root, variables), (&mut category, &mut wishes)).await?,
    };
    let from = match &email.from {
        Some(text) => mailbox("from", text, &root)?,
        None => from.ok_or_else(|| never("`from` is needed: the step has none, nor has its template"))?,
    };
    let Recipients { to, answers, withheld } = recipients(email, &root, known)?;
    let own_reply_to: Result<Vec<_>, _> =
        email.reply_to.iter().map(|text| mailbox("reply_to", text, &root)).collect();
    let own_reply_to = own_reply_to?;
    let reply_to = if own_reply_to.is_empty() { reply_to } else { own_reply_to };
    let subject = rendered.subject.filter(|subject| !subject.trim().is_empty());
    let parts = Composition {
        from: from.clone(),
        to,
        cc: Vec::new(),
        bcc: Vec::new(),
        reply_to,
        subject: subject.ok_or_else(|| never("`subject` is empty"))?,
        html: rendered.html,
        text: rendered.text,
        headers: headers(known, answers),
        attachments: Vec::new(),
    };
    if parts.html.is_none() && parts.text.is_none() {
        return Err(never("there is no body to send"));
    }
    let shown = shown(&parts, &wishes);
    let recipients = parts.to.iter().map(|to| DraftRecipient {
        address: to.address.clone(),
        kind: RecipientKind::To,
        notify: Notify::default(),
    });
    let draft = Draft {
        door: Door::Api,
        from: Some(from),
        envelope: Envelope::default(),
        recipients: recipients.collect(),
        content: Content::Parts(Box::new(parts)),
        tags: filled_tags(email, &root)?,
        category: category.unwrap_or_default(),
        wishes,
    };
    Ok(Written { draft, shown, answers, withheld })
}

/// To whom an email goes.
struct Recipients {
    to: Vec<Mailbox>,
    answers: bool,
    withheld: Option<Unanswerable>,
}

/// Each recipient once, without those who are not to be answered.
fn recipients(email: &SendEmail, root: &Value, known: &Context) -> Result<Recipients, Unwritten> {
    let mut found = Recipients { to: Vec::with_capacity(email.to.len()), answers: false, withheld: None };
    for text in &email.to {
        // A stranger wrote what is filled in: not only the author, but all whom they name. It is asked before it is
        // filled in, since there may be no author at all.
        let filled = known.answering.as_ref().filter(|known| text.contains("{{") || known.is_ours);
        if let Some(why) = filled.and_then(|known| known.unanswerable) {
            found.withheld = Some(why);
            continue;
        }
        let one = mailbox("to", text, root)?;
        let answering = filled.or(known.answering.as_ref().filter(|known| known.is_to(&one.address)));
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
        Some(why) if found.to.is_empty() => Err(Unwritten::Withheld(why)),
        _ => Ok(found),
    }
}

/// What says that a machine sends it, and what it answers (RFC 3834 3.1.5, 3.1.6, 5).
fn headers(known: &Context, answers: bool) -> Vec<CustomHeader> {
    let thread = known.answering.as_ref().filter(|_| answers).map(|known| known.thread.as_slice());
    let says = if answers { "auto-replied" } else { "auto-generated" };
    let thread = thread.unwrap_or_default().iter().map(|(name, value)| (name.as_str(), value.as_str()));
    let fields = std::iter::once(("Auto-Submitted", says)).chain(thread);
    fields.filter_map(|(name, value)| CustomHeader::new(name, value).ok()).collect()
}

fn shown(parts: &Composition, wishes: &Wishes) -> Value {
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
fn own(email: &SendEmail, root: &Value, variables: &Map<String, Value>) -> Result<Rendered, Unwritten> {
    let program = context::compile(email.subject.as_deref(), email.html.as_deref(), email.text.as_deref());
    let program = program.map_err(|errors| {
        never(errors.first().map(|(part, error)| format!("`{part}`: {error}")).unwrap_or_default())
    })?;
    context::fill(&program, root, variables).map_err(|error| never(error.to_string()))
}

type Filled = (Rendered, Option<Mailbox>, Vec<Mailbox>);

async fn template(
    hall: &Hall,
    tenant: &Tenant,
    (email, root, variables): (&SendEmail, &Value, Map<String, Value>),
    (category, wishes): (&mut Option<mail::email::Category>, &mut Wishes),
) -> Result<Filled, Unwritten> {
    let Some(named) = &email.template else { return Err(never("there is no template")) };
    let reference = TemplateRef { key: TemplateKey::of(&named.name), version: named.version };
    let seen = context::seen(root, &variables);
    let wanted = TemplateUse { reference, variables: seen };
    let (compiled, mut rendered) =
        hall.fill(tenant, wanted, email.subject.is_some()).await.map_err(|error| match error {
            FillError::NotFound => never(format!("there is no template `{}`", named.name)),
            FillError::Unpublished => never(format!("the template `{}` is not published", named.name)),
            FillError::Unrendered(error) => never(error.to_string()),
            FillError::Unread(error) => Unwritten::NotNow(error.to_string()),
        })?;
    if email.subject.is_some() {
        let subject = SendEmail { html: None, text: None, ..email.clone() };
        rendered.subject = own(&subject, root, &variables)?.subject;
    }
    compiled.lend(category, wishes);
    Ok((rendered, compiled.from().cloned(), compiled.reply_to().to_vec()))
}

/// One address. What an event says is filled in here, and makes no second one.
fn mailbox(field: &str, text: &str, root: &Value) -> Result<Mailbox, Unwritten> {
    let wrong = |error: String| never(format!("`{field}`: {error}"));
    let text = context::fill_text(text, root).map_err(wrong)?;
    tags::check_line(&text, ADDRESS_BYTES_MAX).map_err(wrong)?;
    let mailbox: Mailbox = text.trim().parse().map_err(|error| wrong(format!("{error}")))?;
    let several = mailbox.name.as_deref().is_some_and(|name| {
        !text.trim_start().starts_with('"')
            && (name.contains(['<', '>']) || (name.contains(',') && name.contains('@')))
    });
    if several {
        return Err(wrong("must be one address; give several as a list".to_owned()));
    }
    Ok(mailbox)
}

fn filled_tags(email: &SendEmail, root: &Value) -> Result<Vec<Tag>, Unwritten> {
    let fill = |(name, value): &(String, String)| {
        let wrong = |error: String| never(format!("`tags.{name}`: {error}"));
        let value = context::fill_text(value, root).map_err(wrong)?.into_owned();
        tags::check_line(&value, tags::TAG_BYTES_MAX).map_err(wrong)?;
        Ok(Tag { name: name.clone(), value })
    };
    email.tags.iter().map(fill).collect()
}
