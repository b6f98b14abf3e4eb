//! Submits a received message: its `Service-*` fields become options of the draft, and the intake accepts it.
//!
//! ```text
//! message ─► no Service-* fields ────────────────────────────────────────────────────────► Draft ─► submit
//!        └─► idempotency key ─► template ─► scheduling with attachments? ─► SendOptions ─► Draft ─► submit_with
//! ```

use std::sync::Arc;

use bytes::Bytes;
use message::header::SubmittedMessage;
use message::reply::{Enhanced, SmtpReply};
use message::{attachment_policy, fingerprint};
use model::draft::{DeliverBy, Draft, DraftContent, SendOptions};
use model::email::{Category, Ingress};
use model::idempotency::{IdempotencyScope, IdempotentResult};
use model::rewrite;
use model::service_headers::{self, ServiceHeaderError, ServiceOptions};
use model::template::TemplateUse;
use queue::intake::idempotency::{
    IdempotencyDecision, IdempotencyError, IdempotencyGuard, IdempotencyKey, IdempotencyKeys,
};
use queue::intake::submit_error::SubmitError;
use queue::intake::{Intake, RenderTemplateError, SubmitReceipt, TemplateRenderer};
use queue::services::Services;
use store::access::Tenant;
use store::engine::Batch;

use crate::handler::{HookVerdict, SmtpMessage};
use crate::received_field;
use crate::sending_handlers::reply;

/// Submits the messages that clients send.
pub struct MessageSubmitter {
    pub services: Services,
    pub intake: Arc<Intake>,
    pub templates: Arc<TemplateRenderer>,
    pub idempotency: Arc<IdempotencyKeys>,
}

impl MessageSubmitter {
    /// Submits a message for an account and returns the reply.
    pub(crate) async fn submit(
        &self,
        tenant: &Tenant,
        message: SmtpMessage,
        ingress: Ingress,
    ) -> Result<HookVerdict, SubmitError> {
        if message.binary && !is_text(&message.content) {
            return Ok(HookVerdict::Reply(reply(
                554,
                (5, 6, 1),
                "Binary content cannot be relayed; encode it in base64",
            )));
        }
        let content = SubmittedMessage::new(message.content);
        let options = match service_headers::parse(&content) {
            Ok(options) => options,
            Err(ServiceHeaderError::Message(error)) => return Err(error.into()),
            Err(ServiceHeaderError::Fields(wrong)) => {
                // One line per error, none longer than a reply line may be (RFC 5321 4.5.3.1.5).
                let lines = wrong.iter().map(|text| printable(text).into()).collect();
                let enhanced = Some(Enhanced::new(5, 6, 0));
                return Ok(HookVerdict::Reply(SmtpReply { code: 550, enhanced, lines }));
            }
        };
        if attachment_policy::may_have_attachments(&content) {
            let content = content.clone();
            if let Err(error) = run_blocking(move || attachment_policy::check_message(&content)).await? {
                return Ok(rejected_reply(to_ascii(&error.to_string())));
            }
        }
        // Holds the message's part of the content budget until it is submitted.
        let _held = message.memory;
        let now = self.services.clock.now();
        let received = received_field::received_field(&message.trace, message.envelope.smtputf8, now);
        let send_options = message.envelope.send_options(SendOptions::default(), now);
        let mut recipients = message.recipients;
        if matches!(message.envelope.deliver_by, Some(DeliverBy::Notify(_))) {
            // RFC 2852 4.1.2: unless NOTIFY=NEVER, the sender is notified of the delay.
            recipients.iter_mut().for_each(|to| to.notify.delay |= !to.notify.never);
        }
        let draft = Draft {
            ingress,
            from: None,
            envelope: message.envelope,
            recipients,
            content: DraftContent::Raw { message: content, received },
            tags: Vec::new(),
            category: Category::default(),
            options: send_options,
        };
        if draft.options.scheduled_at.is_some()
            && let Some(refused) = reject_scheduled_attachments(&draft, "HOLDFOR, HOLDUNTIL").await?
        {
            return Ok(refused);
        }
        match options {
            None => self.intake.submit(tenant, draft).await.map(|accepted| queued_reply(&accepted.id.to_string())),
            Some(options) => Box::pin(self.submit_with_options(tenant, draft, options)).await,
        }
    }

    async fn submit_with_options(
        &self,
        tenant: &Tenant,
        draft: Draft,
        mut options: ServiceOptions,
    ) -> Result<HookVerdict, SubmitError> {
        let guard = match options.idempotency_key.take() {
            None => None,
            Some(key) => match self.check_idempotency(tenant, key, &draft).await? {
                Ok(guard) => Some(guard),
                Err(answer) => return Ok(answer),
            },
        };
        let draft = match self.apply_service_fields(tenant, draft, options).await? {
            Ok(draft) => draft,
            Err(answer) => return Ok(answer),
        };
        let now = self.services.clock.now();
        let record_outcome = |accepted: &SubmitReceipt, batch: &mut Batch| {
            if let Some(guard) = &guard {
                guard.record_outcome(batch, IdempotentResult::Done(accepted.id.to_string()), now);
            }
        };
        match (self.intake.submit_with(tenant, draft, &record_outcome).await, &guard) {
            (Ok(accepted), _) => Ok(queued_reply(&accepted.id.to_string())),
            // Another node completed the request with this key first: its result is the answer.
            (Err(SubmitError::DoneConcurrently), Some(guard)) => {
                match guard.concurrent_result(&self.services.store).await? {
                    Some(id) => Ok(queued_reply(&id)),
                    None => Err(SubmitError::DoneConcurrently),
                }
            }
            // An unconfirmed result needs no record: the client retries, and the key then finds the result.
            (Err(refusal), _) => Err(refusal),
        }
    }

    /// Checks an idempotency key. Returns a guard for a new request, or the stored answer of a completed one.
    async fn check_idempotency(
        &self,
        tenant: &Tenant,
        key: String,
        draft: &Draft,
    ) -> Result<Result<Box<IdempotencyGuard>, HookVerdict>, SubmitError> {
        let fingerprint = match &draft.content {
            DraftContent::Raw { message, .. } => {
                let (message, to) = (message.bytes().clone(), draft.recipients.clone());
                run_blocking(move || fingerprint::message_fingerprint(to.iter().map(|to| &to.address), &message))
                    .await?
            }
            DraftContent::Parts(_) => String::new(),
        };
        Ok(match self.idempotency.begin(tenant, IdempotencyScope::Submit, IdempotencyKey { key, fingerprint }).await {
            Ok(IdempotencyDecision::Proceed(guard)) => Ok(guard),
            Ok(IdempotencyDecision::Replay(id)) => Err(queued_reply(&id)),
            Ok(IdempotencyDecision::Unconfirmed(id)) => return Err(SubmitError::Unconfirmed { id }),
            Err(IdempotencyError::InProgress) => {
                let text = "idempotency_in_progress: a message with this key is being processed; try again later";
                Err(HookVerdict::Reply(reply(451, (4, 7, 0), text)))
            }
            Err(IdempotencyError::KeyReused) => {
                let text = "idempotency_conflict: this key was used for another message; use a new key";
                Err(HookVerdict::Reply(reply(550, (5, 7, 1), text)))
            }
            Err(IdempotencyError::Read(error)) => return Err(error.into()),
        })
    }

    /// Applies the options to the draft.
    async fn apply_service_fields(
        &self,
        tenant: &Tenant,
        mut draft: Draft,
        options: ServiceOptions,
    ) -> Result<Result<Draft, HookVerdict>, SubmitError> {
        draft.tags = options.tags;
        draft.options = SendOptions {
            // The header field takes precedence over the envelope's parameter.
            scheduled_at: options.scheduled_at.or(draft.options.scheduled_at),
            unsubscribe: options.unsubscribe,
            ..draft.options
        };
        let mut category = options.category;
        if let (DraftContent::Raw { message, .. }, Some(template)) = (&mut draft.content, options.template) {
            match self.render_template(tenant, message.bytes().clone(), template).await? {
                Ok((new, compiled)) => {
                    compiled.apply_defaults(&mut category, &mut draft.options);
                    *message = new;
                }
                Err(answer) => return Ok(Err(answer)),
            }
        }
        if options.scheduled_at.is_some()
            && let Some(refused) = reject_scheduled_attachments(&draft, "Service-Scheduled-At").await?
        {
            return Ok(Err(refused));
        }
        draft.category = category.unwrap_or_default();
        Ok(Ok(draft))
    }

    /// Replaces the bodies of the message with those of a rendered template.
    async fn render_template(
        &self,
        tenant: &Tenant,
        message: Bytes,
        template: TemplateUse,
    ) -> Result<Result<RenderedMessage, HookVerdict>, SubmitError> {
        let own_subject = rewrite::has_subject(&message);
        let (compiled, rendered) = match self.templates.render(tenant, template, own_subject).await {
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
        let new = move || SubmittedMessage::new(rewrite::replace_bodies(&message, &rendered, &reply_to));
        let new = run_blocking(new).await?;
        Ok(Ok((new, compiled)))
    }
}

/// Refuses a scheduled message with attachments.
async fn reject_scheduled_attachments(draft: &Draft, asked_by: &str) -> Result<Option<HookVerdict>, SubmitError> {
    let DraftContent::Raw { message, .. } = &draft.content else { return Ok(None) };
    let message = message.bytes().clone();
    let has_files = run_blocking(move || rewrite::has_attachments(&message)).await?;
    let text = || format!("{asked_by}: attachments are not supported on scheduled emails");
    Ok(has_files.then(|| rejected_reply(text())))
}

type RenderedMessage = (SubmittedMessage, Arc<model::template::CompiledTemplate>);

/// Runs work that decodes a large message, on the blocking pool.
async fn run_blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, SubmitError> {
    tokio::task::spawn_blocking(work).await.map_err(|error| {
        tracing::error!(%error, "cannot parse a message");
        SubmitError::Unavailable
    })
}

fn queued_reply(id: &str) -> HookVerdict {
    HookVerdict::Reply(reply(250, (2, 0, 0), format!("OK {id}")))
}

fn rejected_reply(text: impl Into<std::borrow::Cow<'static, str>>) -> HookVerdict {
    HookVerdict::Reply(reply(550, (5, 6, 0), text))
}

/// Text from the client, without control characters and cut to the length of a reply line.
fn printable(text: &str) -> String {
    const SHOWN_CHARS_MAX: usize = 400;
    text.chars().filter(|c| !c.is_control()).take(SHOWN_CHARS_MAX).collect()
}

/// Replies are ASCII (RFC 5321 4.2), even if an attachment's name is not.
fn to_ascii(text: &str) -> String {
    printable(text).chars().map(|c| if c.is_ascii() { c } else { '?' }).collect()
}

/// Returns whether content that was declared binary can also be sent by DATA, which is all that most hosts support.
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
    fn binary_content_that_is_text_is_accepted() {
        for (content, text) in
            [(&b"a\r\nb"[..], true), (b"", true), (b"a\nb", false), (b"a\rb", false), (b"a\r", false), (b"\0", false)]
        {
            assert_eq!(is_text(content), text, "{content:?}");
        }
    }
}
