//! Taking a message: what its `Service-*` fields ask becomes part of the draft, and the hall accepts it.
//!
//! ```text
//! message ─► asks nothing ───────────────────────────────────────────────► Draft ─► hall
//!        └─► key free? ─► template filled in ─► may it wait? ─► wishes ─► Draft ─► hall [ + the key ]
//! ```

use bytes::Bytes;
use mail::draft::{DeliverBy, Draft, DraftContent, SendOptions};
use mail::email::{Category, Ingress};
use mail::idempotency::{IdempotencyScope, IdempotentResult};
use mail::reply::{Enhanced, SmtpReply};
use mail::service::{self, ServiceHeaderError, ServiceOptions};
use mail::template::TemplateUse;
use mail::{attached, fingerprint, rewrite};
use queue::accept::{Intake, RenderTemplateError, SubmitReceipt};
use queue::once::{IdempotencyDecision, IdempotencyError, IdempotencyGuard, IdempotencyKey};
use queue::refusal::SubmitError;
use store::access::Tenant;
use store::engine::Batch;

use crate::answers::{HookVerdict, SmtpMessage};
use crate::policy::reply;
use crate::received;

/// Takes a message.
pub(crate) async fn submit_message(
    hall: &Intake,
    tenant: &Tenant,
    message: SmtpMessage,
    door: Ingress,
) -> Result<HookVerdict, SubmitError> {
    if message.binary && !is_text(&message.content) {
        return Ok(HookVerdict::Reply(reply(
            554,
            (5, 6, 1),
            "Binary content cannot be passed on from here; encode it in base 64",
        )));
    }
    let asked = match service::parse(&message.content) {
        Ok(asked) => asked,
        Err(ServiceHeaderError::Message(error)) => return Err(error.into()),
        Err(ServiceHeaderError::Fields(wrong)) => {
            // A line for each, none longer than a reply's may be (RFC 5321 4.5.3.1.5).
            let lines = wrong.iter().map(|text| printable(text).into()).collect();
            let enhanced = Some(Enhanced::new(5, 6, 0));
            return Ok(HookVerdict::Reply(SmtpReply { code: 550, enhanced, lines }));
        }
    };
    if attached::may_have_attachments(&message.content) {
        let content = message.content.clone();
        if let Err(error) = run_blocking(move || attached::check_message(&content)).await? {
            return Ok(rejected_reply(to_ascii(&error.to_string())));
        }
    }
    // Its share of the memory budget, until it is done.
    let _held = message.memory;
    let now = hall.clock().now();
    let received = received::received_field(&message.trace, message.envelope.smtputf8, now);
    let wishes = message.envelope.send_options(SendOptions::default(), now);
    let mut recipients = message.recipients;
    if matches!(message.envelope.deliver_by, Some(DeliverBy::Notify(_))) {
        // RFC 2852 4.1.2: whoever wants to be told of anything is told that it is late.
        recipients.iter_mut().for_each(|to| to.notify.delay |= !to.notify.never);
    }
    let draft = Draft {
        ingress: door,
        from: None,
        envelope: message.envelope,
        recipients,
        content: DraftContent::Raw { message: message.content, received },
        tags: Vec::new(),
        category: Category::default(),
        options: wishes,
    };
    if draft.options.scheduled_at.is_some()
        && let Some(refused) = reject_scheduled_attachments(&draft, "HOLDFOR, HOLDUNTIL").await?
    {
        return Ok(refused);
    }
    match asked {
        None => hall.submit(tenant, draft).await.map(|accepted| queued_reply(&accepted.id.to_string())),
        Some(asked) => Box::pin(submit_with_options(hall, tenant, draft, asked)).await,
    }
}

async fn submit_with_options(
    hall: &Intake,
    tenant: &Tenant,
    draft: Draft,
    mut asked: ServiceOptions,
) -> Result<HookVerdict, SubmitError> {
    let slot = match asked.idempotency_key.take() {
        None => None,
        Some(key) => match check_idempotency(hall, tenant, key, &draft).await? {
            Ok(slot) => Some(slot),
            Err(answer) => return Ok(answer),
        },
    };
    let draft = match apply_service_fields(hall, tenant, draft, asked).await? {
        Ok(draft) => draft,
        Err(answer) => return Ok(answer),
    };
    let now = hall.clock().now();
    let also = |accepted: &SubmitReceipt, batch: &mut Batch| {
        if let Some(slot) = &slot {
            slot.record_outcome(batch, IdempotentResult::Done(accepted.id.to_string()), now);
        }
    };
    match (hall.submit_with(tenant, draft, &also).await, &slot) {
        (Ok(accepted), _) => Ok(queued_reply(&accepted.id.to_string())),
        // Another node was quicker with this key: its answer counts.
        (Err(SubmitError::DoneConcurrently), Some(slot)) => match slot.concurrent_result(hall.store()).await? {
            Some(id) => Ok(queued_reply(&id)),
            None => Err(SubmitError::DoneConcurrently),
        },
        // A doubt needs no note: the client is told to try again, and finds by its key what came of it.
        (Err(refusal), _) => Err(refusal),
    }
}

/// Looks at an idempotency key: what is to be done goes into its slot, what was done is answered again.
async fn check_idempotency(
    hall: &Intake,
    tenant: &Tenant,
    key: String,
    draft: &Draft,
) -> Result<Result<Box<IdempotencyGuard>, HookVerdict>, SubmitError> {
    let fingerprint = match &draft.content {
        DraftContent::Raw { message, .. } => {
            let (message, to) = (message.clone(), draft.recipients.clone());
            run_blocking(move || fingerprint::message_fingerprint(to.iter().map(|to| &to.address), &message)).await?
        }
        DraftContent::Parts(_) => String::new(),
    };
    Ok(
        match IdempotencyGuard::begin(hall, tenant, IdempotencyScope::Submit, IdempotencyKey { key, fingerprint }).await
        {
            Ok(IdempotencyDecision::Proceed(slot)) => Ok(slot),
            Ok(IdempotencyDecision::Replay(id)) => Err(queued_reply(&id)),
            Ok(IdempotencyDecision::Unconfirmed(id)) => return Err(SubmitError::Unconfirmed { id }),
            Err(IdempotencyError::InProgress) => {
                let text = "idempotency_in_progress: a message with this key is being taken; try again later";
                Err(HookVerdict::Reply(reply(451, (4, 7, 0), text)))
            }
            Err(IdempotencyError::KeyReused) => {
                let text = "idempotency_conflict: this key was used for another message; take a new one";
                Err(HookVerdict::Reply(reply(550, (5, 7, 1), text)))
            }
            Err(IdempotencyError::Read(error)) => return Err(error.into()),
        },
    )
}

/// The draft as it was asked for.
async fn apply_service_fields(
    hall: &Intake,
    tenant: &Tenant,
    mut draft: Draft,
    asked: ServiceOptions,
) -> Result<Result<Draft, HookVerdict>, SubmitError> {
    draft.tags = asked.tags;
    draft.options = SendOptions {
        // The message's own word counts before its envelope's.
        scheduled_at: asked.scheduled_at.or(draft.options.scheduled_at),
        unsubscribe: asked.unsubscribe,
        ..draft.options
    };
    let mut category = asked.category;
    if let (DraftContent::Raw { message, .. }, Some(wanted)) = (&mut draft.content, asked.template) {
        match render_template(hall, tenant, message.clone(), wanted).await? {
            Ok((new, compiled)) => {
                compiled.apply_defaults(&mut category, &mut draft.options);
                *message = new;
            }
            Err(answer) => return Ok(Err(answer)),
        }
    }
    if asked.scheduled_at.is_some()
        && let Some(refused) = reject_scheduled_attachments(&draft, "Service-Scheduled-At").await?
    {
        return Ok(Err(refused));
    }
    draft.category = category.unwrap_or_default();
    Ok(Ok(draft))
}

/// What is said of a message with files that is to be sent later.
async fn reject_scheduled_attachments(draft: &Draft, asked_by: &str) -> Result<Option<HookVerdict>, SubmitError> {
    let DraftContent::Raw { message, .. } = &draft.content else { return Ok(None) };
    let message = message.clone();
    let has_files = run_blocking(move || rewrite::has_attachments(&message)).await?;
    let text = || format!("{asked_by}: attachments are not supported on scheduled emails");
    Ok(has_files.then(|| rejected_reply(text())))
}

type RenderedMessage = (Bytes, std::sync::Arc<mail::template::CompiledTemplate>);

/// The message with the bodies of a template.
async fn render_template(
    hall: &Intake,
    tenant: &Tenant,
    message: Bytes,
    wanted: TemplateUse,
) -> Result<Result<RenderedMessage, HookVerdict>, SubmitError> {
    let own_subject = rewrite::has_subject(&message);
    let (compiled, rendered) = match hall.render_template(tenant, wanted, own_subject).await {
        Ok(filled) => filled,
        Err(RenderTemplateError::NotFound) => {
            return Ok(Err(rejected_reply("not_found: Service-Template: no such template")));
        }
        Err(RenderTemplateError::Unpublished) => {
            return Ok(Err(rejected_reply("not_found: Service-Template: the template was never published")));
        }
        Err(RenderTemplateError::Render(error)) => {
            return Ok(Err(rejected_reply(format!("Service-Variables: {}", printable(&error.to_string())))));
        }
        Err(RenderTemplateError::Read(error)) => return Err(error.into()),
    };
    let reply_to = compiled.reply_to().to_vec();
    let new = run_blocking(move || Bytes::from(rewrite::replace_bodies(&message, &rendered, &reply_to))).await?;
    Ok(Ok((new, compiled)))
}

/// Does what takes a while for a large message: its parts are decoded.
async fn run_blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, SubmitError> {
    tokio::task::spawn_blocking(work).await.map_err(|error| {
        tracing::error!(%error, "a message cannot be taken apart");
        SubmitError::Unavailable
    })
}

fn queued_reply(id: &str) -> HookVerdict {
    HookVerdict::Reply(reply(250, (2, 0, 0), format!("OK {id}")))
}

fn rejected_reply(text: impl Into<std::borrow::Cow<'static, str>>) -> HookVerdict {
    HookVerdict::Reply(reply(550, (5, 6, 0), text))
}

/// A text of somebody's making, as much of it as a reply holds.
fn printable(text: &str) -> String {
    const SHOWN_CHARS_MAX: usize = 400;
    text.chars().filter(|c| !c.is_control()).take(SHOWN_CHARS_MAX).collect()
}

/// A reply is in ASCII, whatever a file is called (RFC 5321 4.2).
fn to_ascii(text: &str) -> String {
    printable(text).chars().map(|c| if c.is_ascii() { c } else { '?' }).collect()
}

/// Whether content that was declared binary can go out by DATA as well: most hosts know no other way.
fn is_text(content: &[u8]) -> bool {
    let mut before = 0;
    let lines = content.iter().all(|&byte| {
        let good = byte != 0 && (before == b'\r') == (byte == b'\n');
        before = byte;
        good
    });
    lines && before != b'\r'
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn binary_that_is_text_may_pass() {
        for (content, text) in
            [(&b"a\r\nb"[..], true), (b"", true), (b"a\nb", false), (b"a\rb", false), (b"a\r", false), (b"\0", false)]
        {
            assert_eq!(is_text(content), text, "{content:?}");
        }
    }
}
