//! JSON objects and schemas of emails.

use std::collections::BTreeMap;

use crate::prelude::*;
use httpd::request::READ_INLINE_BYTES_MAX;
use message::address::Mailbox;
use message::encoded_word::decode_encoded_words;
use message::reply::SmtpReply;
use model::email::{Category, EmailRollup, EmailStatus, RecipientCounts, SourceTemplate, Tag};
use model::event::EventKind;
use model::parsed_body::{ParsedAttachment, ParsedBody};
use model::received::attachment_id;
use model::recipient::{Recipient, RecipientKind, RecipientState};
use model::schedule::ScheduleState;
use model::tracking::counters::{HitCount, TrackingCounters};
use model::tracking::restore_html;
use queue::admin::queue_admin::{WaitCause, WaitStatus};
use store::email::EmailWithRecipients;

object_view! {
    /// An email
    #[schema(name = "Email")]
    pub struct EmailView, fn from_rollup(
        found: &EmailWithRecipients, rollup: EmailRollup, tally: &TrackingCounters;
        let EmailWithRecipients { email, recipients, .. } = found;
        let cancelled_at = (rollup.status == EmailStatus::Cancelled)
            .then(|| recipients.iter().map(|r| r.last_event.1).max())
            .flatten()
    ) {
        /// Its id (`msg_…`)
        id: EmailId = email.id,
        /// The author
        from: String = email.from.to_string(),
        /// Recipients
        to: Vec<String> = mailbox_texts(&email.header.to),
        /// Recipients of a copy
        cc: Vec<String> = mailbox_texts(&email.header.cc),
        /// Recipients of a blind copy
        bcc: Vec<String> = mailbox_texts(&email.header.bcc),
        /// Addresses for replies
        reply_to: Vec<String> = mailbox_texts(&email.header.reply_to),
        /// The subject
        subject: String = email.header.subject.clone(),
        /// The status
        #[schema(as = String, enum = STATUSES)]
        status: EmailStatus = rollup.status,
        /// The latest event, like `email.delivered`
        last_event: EventKind = last_event(found, &rollup, tally),
        /// The response of the first server that rejected the email
        bounce_reason: Option<String> = rollup.bounce_reason,
        /// The tags
        tags: Vec<TagView> = email.tags.iter().map(TagView::from_tag).collect(),
        /// True if only the recipient may read the content, like that of a sign-in link: it cannot be resent
        confidential: bool = email.is_confidential(),
        /// When the email is scheduled to be sent
        scheduled_at: Option<JsonTimestamp> =
            found.schedule.as_ref().map(|schedule| JsonTimestamp(schedule.scheduled_at)),
        /// When it was cancelled
        cancelled_at: Option<JsonTimestamp> = cancelled_at.map(JsonTimestamp),
        /// When it was accepted
        created_at: JsonTimestamp = JsonTimestamp(email.created_at),
        /// When it entered the queue
        sent_at: Option<JsonTimestamp> = sent_at(found).map(JsonTimestamp),
        /// When it was delivered to the first recipient
        delivered_at: Option<JsonTimestamp> = rollup.delivered_at.map(JsonTimestamp),
        /// When the first recipient bounced
        bounced_at: Option<JsonTimestamp> = rollup.bounced_at.map(JsonTimestamp),
    }
}

fn mailbox_texts(mailboxes: &[Mailbox]) -> Vec<String> {
    mailboxes.iter().map(ToString::to_string).collect()
}

impl EmailView {
    /// The view of an email with its tracking counters.
    pub fn from_email(found: &EmailWithRecipients, tally: &TrackingCounters) -> Self {
        Self::from_rollup(found, EmailRollup::from_recipients(&found.recipients), tally)
    }
}

/// The latest event. Opens and clicks count if they are later than the last delivery event.
fn last_event(found: &EmailWithRecipients, rollup: &EmailRollup, tally: &TrackingCounters) -> EventKind {
    let settled_at = found.recipients.iter().map(|recipient| recipient.last_event.1).max();
    let (opened, clicked) = tally.last();
    let visits = [(opened, EventKind::Opened), (clicked, EventKind::Clicked)];
    let last = visits.into_iter().filter(|(at, _)| *at > settled_at).max_by_key(|(at, _)| *at);
    last.map_or(rollup.last_event, |(_, kind)| kind)
}

/// When the email entered the queue: when it was accepted, or released if it was scheduled.
/// `None` if it was not released or all recipients are suppressed.
fn sent_at(found: &EmailWithRecipients) -> Option<Timestamp> {
    match found.schedule.as_ref().map(|schedule| schedule.state) {
        Some(ScheduleState::Released(at)) => Some(at),
        Some(_) => None,
        None => {
            let blocked = found.recipients.iter().all(|r| r.last_event.0 == EventKind::Suppressed);
            (!blocked).then_some(found.email.created_at)
        }
    }
}

/// A page of the list
#[derive(Debug, Serialize, ToSchema)]
#[schema(name = "EmailList")]
pub struct EmailList {
    /// The entries, newest first
    pub emails: Vec<EmailView>,
    /// Whether there are more
    pub has_more: bool,
    /// The `cursor` of the next page
    pub next_cursor: Option<String>,
    /// Present if a page has fewer entries than requested although there are more: emails accepted before this time have not been searched yet
    #[serde(skip_serializing_if = "Option::is_none")]
    pub searched_until: Option<JsonTimestamp>,
    /// Present while the search index lags: later events may not be found yet
    #[serde(skip_serializing_if = "Option::is_none")]
    pub as_of: Option<JsonTimestamp>,
}

object_view! {
    /// An email with its recipients
    #[schema(name = "EmailDetail")]
    pub struct EmailDetail, fn from_contents(
        found: &EmailWithRecipients, contents: ParsedBody, tally: &TrackingCounters, waits: &[WaitStatus];
        let rollup = EmailRollup::from_recipients(&found.recipients);
        let counts = RecipientCountsView::from_counts(rollup.counts);
        let email = &found.email;
        // With several recipients an open or click cannot be attributed to one of them.
        let named = Some(tally).filter(|_| found.recipients.len() == 1)
    ) {
        #[serde(flatten)]
        #[schema(all_of = "Fields that lists omit")]
        email: EmailView = EmailView::from_rollup(found, rollup, tally),
        /// The Message-ID (RFC 5322) with its angle brackets
        message_id: String = format!("<{}>", email.header.message_id),
        /// The HTML body; null when the message is no longer stored
        html: Option<String> = contents.html,
        /// The plain-text body; null when the message is no longer stored
        text: Option<String> = contents.text,
        /// Custom headers
        // Decoded: encoded words (RFC 2047) are only a transport encoding.
        headers: BTreeMap<String, String> =
            contents.headers.into_iter().map(|(name, value)| (name, decode_encoded_words(&value))).collect(),
        /// The category
        category: Category = email.category,
        /// The attachments without their content
        attachments: Vec<EmailAttachmentView> =
            contents.files.into_iter().enumerate().map(EmailAttachmentView::from_file).collect(),
        /// The template that was used
        template: Option<SourceTemplateView> = email.template.as_ref().map(SourceTemplateView::from_template),
        /// The email that this one was resent from
        resent_from: Option<EmailId> = email.resent_from,
        /// Lifetime in seconds
        expires_in: Option<u64> = email.expires_in.map(|after| after.as_secs()),
        /// Whether managed unsubscribe is on
        unsubscribe: bool = email.unsubscribe,
        /// Size of the message in bytes
        size: u64 = email.size_bytes,
        /// Recipients with their status
        recipients: Vec<RecipientView> = found
            .recipients
            .iter()
            .map(|recipient| {
                let waits_for = waits.iter().find(|wait| wait.recipient == recipient.index);
                RecipientView::from_recipient(recipient, named, waits_for)
            })
            .collect(),
        counts: RecipientCountsView = counts,
    }
}

impl EmailDetail {
    /// Loads the complete view. The content is included while the message is stored and the tenant may read it.
    pub async fn load(state: &AppState, tenant: &Tenant, found: &EmailWithRecipients) -> Result<Self> {
        let email = &found.email;
        let raw = match tenant.scope() {
            _ if email.is_confidential() => None,
            ApiKeyScope::Full => store::email::get_body(&state.services.store, email.account, email.id).await?,
            // A sending-only key may not read content, neither here nor by `GET /emails/{id}/raw`.
            ApiKeyScope::Sending => None,
        };
        let raw = raw.unwrap_or_default();
        let (links, length) = (state.accounts.links.key.clone(), raw.len());
        let is_managed = email.unsubscribe;
        let read = move || {
            // Shows the author's HTML without the recipient's tracking and unsubscribe links.
            let mut contents = ParsedBody::parse(&raw);
            contents.html = contents.html.map(|html| restore_html(&html, &links));
            if is_managed {
                contents.take_managed_unsubscribe();
            }
            contents
        };
        let contents = if length <= READ_INLINE_BYTES_MAX {
            read()
        } else {
            tokio::task::spawn_blocking(read).await.map_err(Problem::internal)?
        };
        let recipient_counts = std::iter::once((email.id, found.recipients.len()));
        let tallies = store::tracking::list_tallies(&state.services.store, email.account, recipient_counts).await?;
        let waits = state.queue.delivery.admin.explain_waits(found).await?;
        Ok(Self::from_contents(found, contents, &tallies.into_iter().next().unwrap_or_default(), &waits))
    }
}

object_view! {
    /// A tag
    struct TagView, fn from_tag(tag: &Tag) {
        /// The name
        name: String = tag.name.clone(),
        /// The value
        value: String = tag.value.clone(),
    }
}

object_view! {
    /// A template
    struct SourceTemplateView, fn from_template(template: &SourceTemplate) {
        /// The template's id (`tpl_…`)
        id: TemplateId = template.id,
        /// The template's alias at that time
        alias: Option<String> = template.alias.clone(),
        /// The version
        version: u32 = template.version,
    }
}

/// Number of recipients by status; `suppressed` and `cancelled` are omitted if zero
#[message::row::omit_none]
#[derive(Debug, Serialize, ToSchema)]
struct RecipientCountsView {
    /// In the queue
    queued: u32,
    /// Delivered
    delivered: u32,
    /// Bounced
    bounced: u32,
    /// Failed
    failed: u32,
    /// Not sent because suppressed or opted out
    suppressed: Option<u32>,
    /// Cancelled
    cancelled: Option<u32>,
}

impl RecipientCountsView {
    fn from_counts(counts: RecipientCounts) -> Self {
        let RecipientCounts { queued, delivered, bounced, failed, suppressed, cancelled } = counts;
        let unless_zero = |count| (count > 0).then_some(count);
        Self {
            queued,
            delivered,
            bounced,
            failed,
            suppressed: unless_zero(suppressed),
            cancelled: unless_zero(cancelled),
        }
    }
}

object_view! {
    /// A file
    pub struct EmailAttachmentView, fn from_file(entry: (usize, ParsedAttachment); let (index, file) = entry) {
        /// Id (`att_…`) for `GET /emails/{id}/attachments/{att_id}`
        id: String = attachment_id(index),
        /// The name
        name: Option<String> = file.name,
        /// The MIME type
        content_type: String = file.content_type,
        /// Decoded size in bytes
        size: u64 = file.size_bytes,
        /// The Content-ID that `cid:` in the HTML refers to
        content_id: Option<String> = file.content_id,
    }
}

object_response! { "A response with an email", pub EmailResponse { email: EmailDetail } }

object_view! {
    /// A recipient
    #[schema(name = "Recipient")]
    pub struct RecipientView,
    /// The view of a recipient with its tracking counters and what it waits for.
    pub fn from_recipient(
        recipient: &Recipient, tally: Option<&TrackingCounters>, waits_for: Option<&WaitStatus>;
        let first =
            |count: fn(&TrackingCounters) -> &HitCount| tally.and_then(|tally| count(tally).first).map(JsonTimestamp);
        let next_attempt_at =
            waits_for.map_or(recipient.next_attempt_at, |wait| wait.next_attempt_at(recipient.next_attempt_at))
    ) {
        /// The address
        email: String = recipient.address.to_string(),
        /// The header field
        #[schema(as = String, enum = ["to", "cc", "bcc"])]
        r#type: RecipientKind = recipient.kind,
        /// The delivery status
        #[schema(enum = RECIPIENT_STATUSES)]
        status: &'static str = status_word(recipient.state),
        /// Number of delivery attempts
        attempts: u32 = recipient.attempts,
        /// The last response of the destination
        last_response: Option<SmtpResponseView> = recipient.last_response.as_ref().map(SmtpResponseView::from_reply),
        /// Why the last attempt failed, if it was not a response of a host
        error: Option<String> = recipient.error.clone(),
        /// The mail host of the last response
        mx_host: Option<String> = recipient.mx_host.clone(),
        /// When it was delivered
        delivered_at: Option<JsonTimestamp> = recipient.delivered_at.map(JsonTimestamp),
        /// When it bounced
        bounced_at: Option<JsonTimestamp> = recipient.bounced_at.map(JsonTimestamp),
        /// When it was first opened
        opened_at: Option<JsonTimestamp> = first(|tally| &tally.opened),
        /// When a link was first clicked
        clicked_at: Option<JsonTimestamp> = first(|tally| &tally.clicked),
        /// When the recipient reported spam
        complained_at: Option<JsonTimestamp> = recipient.complained_at.map(JsonTimestamp),
        /// When the next attempt is due
        next_attempt_at: Option<JsonTimestamp> = next_attempt_at.map(JsonTimestamp),
        /// Why the recipient waits; null if no further automatic action is pending
        waits_for: Option<RecipientWaitView> = waits_for.map(RecipientWaitView::from_waiting),
    }
}

object_view! {
    /// Why a recipient waits
    struct RecipientWaitView, fn from_waiting(wait: &WaitStatus) {
        /// The limit or schedule that blocks the recipient
        #[schema(enum = WaitCause::WORDS)]
        cause: &'static str = wait.cause.word(),
        /// The cause as a sentence
        text: String = wait.cause.to_string(),
        /// The destination's mail hosts, once known
        destination: Option<String> = wait.destination.clone(),
        /// Number of recipients ahead in the destination's queue, if known
        place: Option<usize> = wait.position,
        /// When the wait ends, if known
        until: Option<JsonTimestamp> = wait.until.map(JsonTimestamp),
    }
}

/// The recipient's status. Recipients that are scheduled or held count as queued.
fn status_word(state: RecipientState) -> &'static str {
    match state {
        RecipientState::Scheduled | RecipientState::Held | RecipientState::Queued => "queued",
        RecipientState::Deferred => "deferred",
        RecipientState::Delivered => "delivered",
        RecipientState::Bounced => "bounced",
        RecipientState::Failed => "failed",
        RecipientState::Suppressed => "suppressed",
        RecipientState::Cancelled => "cancelled",
    }
}

object_view! {
    /// An SMTP reply
    pub struct SmtpResponseView, fn from_reply(reply: &SmtpReply) {
        /// The three-digit SMTP reply code
        #[schema(as = i64)]
        smtp_code: u16 = reply.code,
        /// The enhanced status code (RFC 3463), like `5.1.1`
        enhanced_code: Option<String> = reply.enhanced.map(|code| code.to_string()),
        /// The text of the response
        text: String = reply.text().into_owned(),
    }
}

/// All statuses of the API contract, including those of later versions.
const STATUSES: &[&str] = &["queued", "scheduled", "sent", "delivered", "bounced", "failed", "cancelled"];
const RECIPIENT_STATUSES: &[&str] =
    &["queued", "deferred", "delivered", "bounced", "failed", "cancelled", "suppressed"];
