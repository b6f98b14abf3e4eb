//! Taking a message: what its `Service-*` fields ask becomes part of the draft, and the hall accepts it.
//!
//! ```text
//! message ─► asks nothing ───────────────────────────────────────────────► Draft ─► hall
//!        └─► key free? ─► template filled in ─► may it wait? ─► wishes ─► Draft ─► hall [ + the key ]
//! ```

use bytes::Bytes;
use mail::draft::{Content, DeliverBy, Draft, Wishes};
use mail::email::{Category, Door};
use mail::idempotency::{Operation, Outcome};
use mail::reply::{Enhanced, Reply};
use mail::service::{self, Asked, ServiceError};
use mail::template::TemplateUse;
use mail::{attached, fingerprint, rewrite};
use queue::accept::{Accepted, FillError, Hall};
use queue::once::{Claim, NotNow, Slot, Turn};
use queue::refusal::Refusal;
use store::access::Tenant;
use store::engine::Batch;

use crate::answers::{Answer, Message};
use crate::policy::reply;
use crate::received;

/// Takes a message.
pub(crate) async fn take(
    hall: &Hall,
    tenant: &Tenant,
    message: Message,
    door: Door,
) -> Result<Answer, Refusal> {
    if message.binary && !is_text(&message.content) {
        return Ok(Answer::Said(reply(
            554,
            (5, 6, 1),
            "Binary content cannot be passed on from here; encode it in base 64",
        )));
    }
    let asked = match service::read(&message.content) {
        Ok(asked) => asked,
        Err(ServiceError::Message(error)) => return Err(error.into()),
        Err(ServiceError::Fields(wrong)) => {
            // A line for each, none longer than a reply's may be (RFC 5321 4.5.3.1.5).
            let lines = wrong.iter().map(|text| shown(text).into()).collect();
            let enhanced = Some(Enhanced::new(5, 6, 0));
            return Ok(Answer::Said(Reply { code: 550, enhanced, lines }));
        }
    };
    if attached::may_hold_files(&message.content) {
        let content = message.content.clone();
        if let Err(error) = apart(move || attached::check(&content)).await? {
            return Ok(wrong(in_ascii(&error.to_string())));
        }
    }
    // Its share of the memory budget, until it is done.
    let _held = message.held;
    let now = hall.clock().now();
    let received = received::field(&message.trace, message.envelope.smtputf8, now);
    let wishes = message.envelope.wishes(Wishes::default(), now);
    let mut recipients = message.recipients;
    if matches!(message.envelope.deliver_by, Some(DeliverBy::Notify(_))) {
        // RFC 2852 4.1.2: whoever wants to be told of anything is told that it is late.
        recipients.iter_mut().for_each(|to| to.notify.delay |= !to.notify.never);
    }
    let draft = Draft {
        door,
        from: None,
        envelope: message.envelope,
        recipients,
        content: Content::Raw { message: message.content, received },
        tags: Vec::new(),
        category: Category::default(),
        wishes,
    };
    if draft.wishes.scheduled_at.is_some()
        && let Some(refused) = holds_files(&draft, "HOLDFOR, HOLDUNTIL").await?
    {
        return Ok(refused);
    }
    match asked {
        None => hall.accept(tenant, draft).await.map(|accepted| ok(&accepted.id.to_string())),
        Some(asked) => Box::pin(take_asked(hall, tenant, draft, asked)).await,
    }
}

async fn take_asked(hall: &Hall, tenant: &Tenant, draft: Draft, mut asked: Asked) -> Result<Answer, Refusal> {
    let slot = match asked.idempotency_key.take() {
        None => None,
        Some(key) => match look(hall, tenant, key, &draft).await? {
            Ok(slot) => Some(slot),
            Err(answer) => return Ok(answer),
        },
    };
    let draft = match filled(hall, tenant, draft, asked).await? {
        Ok(draft) => draft,
        Err(answer) => return Ok(answer),
    };
    let now = hall.clock().now();
    let also = |accepted: &Accepted, batch: &mut Batch| {
        if let Some(slot) = &slot {
            slot.keep(batch, Outcome::Done(accepted.id.to_string()), now);
        }
    };
    match (hall.accept_with(tenant, draft, &also).await, &slot) {
        (Ok(accepted), _) => Ok(ok(&accepted.id.to_string())),
        // Another node was quicker with this key: its answer counts.
        (Err(Refusal::DoneMeanwhile), Some(slot)) => match slot.meanwhile(hall.store()).await? {
            Some(id) => Ok(ok(&id)),
            None => Err(Refusal::DoneMeanwhile),
        },
        // A doubt needs no note: the client is told to try again, and finds by its key what came of it.
        (Err(refusal), _) => Err(refusal),
    }
}

/// Looks at an idempotency key: what is to be done goes into its slot, what was done is answered again.
async fn look(
    hall: &Hall,
    tenant: &Tenant,
    key: String,
    draft: &Draft,
) -> Result<Result<Box<Slot>, Answer>, Refusal> {
    let fingerprint = match &draft.content {
        Content::Raw { message, .. } => {
            let (message, to) = (message.clone(), draft.recipients.clone());
            apart(move || fingerprint::of(to.iter().map(|to| &to.address), &message)).await?
        }
        Content::Parts(_) => String::new(),
    };
    Ok(match Slot::look(hall, tenant, Operation::Submit, Claim { key, fingerprint }).await {
        Ok(Turn::Go(slot)) => Ok(slot),
        Ok(Turn::Done(id)) => Err(ok(&id)),
        Ok(Turn::Unconfirmed(id)) => return Err(Refusal::Unconfirmed { id }),
        Err(NotNow::InProgress) => {
            let text = "idempotency_in_progress: a message with this key is being taken; try again later";
            Err(Answer::Said(reply(451, (4, 7, 0), text)))
        }
        Err(NotNow::Conflict) => {
            let text = "idempotency_conflict: this key was used for another message; take a new one";
            Err(Answer::Said(reply(550, (5, 7, 1), text)))
        }
        Err(NotNow::Unread(error)) => return Err(error.into()),
    })
}

/// The draft as it was asked for.
async fn filled(
    hall: &Hall,
    tenant: &Tenant,
    mut draft: Draft,
    asked: Asked,
) -> Result<Result<Draft, Answer>, Refusal> {
    draft.tags = asked.tags;
    draft.wishes = Wishes {
        // The message's own word counts before its envelope's.
        scheduled_at: asked.scheduled_at.or(draft.wishes.scheduled_at),
        unsubscribe: asked.unsubscribe,
        ..draft.wishes
    };
    let mut category = asked.category;
    if let (Content::Raw { message, .. }, Some(wanted)) = (&mut draft.content, asked.template) {
        match from_template(hall, tenant, message.clone(), wanted).await? {
            Ok((new, compiled)) => {
                compiled.lend(&mut category, &mut draft.wishes);
                *message = new;
            }
            Err(answer) => return Ok(Err(answer)),
        }
    }
    if asked.scheduled_at.is_some()
        && let Some(refused) = holds_files(&draft, "Service-Scheduled-At").await?
    {
        return Ok(Err(refused));
    }
    draft.category = category.unwrap_or_default();
    Ok(Ok(draft))
}

/// What is said of a message with files that is to be sent later.
async fn holds_files(draft: &Draft, asked_by: &str) -> Result<Option<Answer>, Refusal> {
    let Content::Raw { message, .. } = &draft.content else { return Ok(None) };
    let message = message.clone();
    let has_files = apart(move || rewrite::has_files(&message)).await?;
    let text = || format!("{asked_by}: attachments are not supported on scheduled emails");
    Ok(has_files.then(|| wrong(text())))
}

type Filled = (Bytes, std::sync::Arc<mail::template::Compiled>);

/// The message with the bodies of a template.
async fn from_template(
    hall: &Hall,
    tenant: &Tenant,
    message: Bytes,
    wanted: TemplateUse,
) -> Result<Result<Filled, Answer>, Refusal> {
    let own_subject = rewrite::has_subject(&message);
    let (compiled, rendered) = match hall.fill(tenant, wanted, own_subject).await {
        Ok(filled) => filled,
        Err(FillError::NotFound) => {
            return Ok(Err(wrong("not_found: Service-Template: no such template")));
        }
        Err(FillError::Unpublished) => {
            return Ok(Err(wrong("not_found: Service-Template: the template was never published")));
        }
        Err(FillError::Unrendered(error)) => {
            return Ok(Err(wrong(format!("Service-Variables: {}", shown(&error.to_string())))));
        }
        Err(FillError::Unread(error)) => return Err(error.into()),
    };
    let reply_to = compiled.reply_to().to_vec();
    let new = apart(move || Bytes::from(rewrite::with_bodies(&message, &rendered, &reply_to))).await?;
    Ok(Ok((new, compiled)))
}

/// Does what takes a while for a large message: its parts are decoded.
async fn apart<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, Refusal> {
    tokio::task::spawn_blocking(work).await.map_err(|error| {
        tracing::error!(%error, "a message cannot be taken apart");
        Refusal::Unavailable
    })
}

fn ok(id: &str) -> Answer {
    Answer::Said(reply(250, (2, 0, 0), format!("OK {id}")))
}

fn wrong(text: impl Into<std::borrow::Cow<'static, str>>) -> Answer {
    Answer::Said(reply(550, (5, 6, 0), text))
}

/// A text of somebody's making, as much of it as a reply holds.
fn shown(text: &str) -> String {
    const SHOWN_CHARS_MAX: usize = 400;
    text.chars().filter(|c| !c.is_control()).take(SHOWN_CHARS_MAX).collect()
}

/// A reply is in ASCII, whatever a file is called (RFC 5321 4.2).
fn in_ascii(text: &str) -> String {
    shown(text).chars().map(|c| if c.is_ascii() { c } else { '?' }).collect()
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
        for (content, text) in [
            (&b"a\r\nb"[..], true),
            (b"", true),
            (b"a\nb", false),
            (b"a\rb", false),
            (b"a\r", false),
            (b"\0", false),
        ] {
            assert_eq!(is_text(content), text, "{content:?}");
        }
    }
}
