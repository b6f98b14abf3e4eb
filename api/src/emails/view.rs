//! JSON objects and schemas of emails.

use std::collections::BTreeMap;

use jiff::Timestamp;
use mail::address::Mailbox;
use mail::credential::ApiKeyScope;
use mail::email::{Category, EmailRollup, EmailStatus, RecipientCounts, SourceTemplate, Tag};
use mail::event::EventKind;
use mail::id::EmailId;
use mail::parsed_body::{ParsedAttachment, ParsedBody};
use mail::recipient::{Recipient, RecipientKind, RecipientState};
use mail::reply::SmtpReply;
use mail::schedule::ScheduleState;
use mail::service_headers::decode_encoded_words;
use mail::tracking::counters::{HitCount, TrackingCounters};
use mail::tracking::restore_html;
use queue::queue_admin::{WaitCause, WaitStatus};
use serde::Serialize;
use serde_json::{Value, json};
use store::access::Tenant;
use store::email::EmailWithRecipients;

use crate::json_timestamp::JsonTimestamp;
use crate::problem::Problem;
use crate::request::READ_INLINE_BYTES_MAX;
use crate::schema::{self, Schemas, ToSchema};
use crate::state::AppState;

/// An email in a list.
#[derive(Debug, Serialize)]
pub struct EmailView {
    id: EmailId,
    from: String,
    to: Vec<String>,
    cc: Vec<String>,
    bcc: Vec<String>,
    reply_to: Vec<String>,
    subject: String,
    status: EmailStatus,
    last_event: EventKind,
    bounce_reason: Option<String>,
    tags: Vec<Tag>,
    scheduled_at: Option<JsonTimestamp>,
    cancelled_at: Option<JsonTimestamp>,
    created_at: JsonTimestamp,
    sent_at: Option<JsonTimestamp>,
    delivered_at: Option<JsonTimestamp>,
    bounced_at: Option<JsonTimestamp>,
}

fn mailbox_texts(mailboxes: &[Mailbox]) -> Vec<String> {
    mailboxes.iter().map(ToString::to_string).collect()
}

impl EmailView {
    /// The view of an email with its tracking counters.
    #[must_use]
    pub fn from_email(found: &EmailWithRecipients, tally: &TrackingCounters) -> Self {
        Self::from_rollup(found, EmailRollup::from_recipients(&found.recipients), tally)
    }

    fn from_rollup(found: &EmailWithRecipients, rollup: EmailRollup, tally: &TrackingCounters) -> Self {
        let EmailWithRecipients { email, recipients, .. } = found;
        let cancelled_at = (rollup.status == EmailStatus::Cancelled)
            .then(|| recipients.iter().map(|r| r.last_event.1).max())
            .flatten();
        Self {
            id: email.id,
            from: email.from.to_string(),
            to: mailbox_texts(&email.facts.to),
            cc: mailbox_texts(&email.facts.cc),
            bcc: mailbox_texts(&email.facts.bcc),
            reply_to: mailbox_texts(&email.facts.reply_to),
            subject: email.facts.subject.clone(),
            status: rollup.status,
            last_event: last_event(found, &rollup, tally),
            bounce_reason: rollup.bounce_reason,
            tags: email.tags.clone(),
            scheduled_at: found.schedule.as_ref().map(|schedule| JsonTimestamp(schedule.scheduled_at)),
            cancelled_at: cancelled_at.map(JsonTimestamp),
            created_at: JsonTimestamp(email.created_at),
            sent_at: sent_at(found).map(JsonTimestamp),
            delivered_at: rollup.delivered_at.map(JsonTimestamp),
            bounced_at: rollup.bounced_at.map(JsonTimestamp),
        }
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

#[derive(Debug, Serialize)]
pub struct EmailList {
    pub emails: Vec<EmailView>,
    pub has_more: bool,
    /// `None` on the last page.
    pub next_cursor: Option<String>,
    /// Later events may not be found by filters yet; `None` if the index is up to date.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub as_of: Option<JsonTimestamp>,
}

/// An email with its recipients and content.
#[derive(Debug, Serialize)]
pub struct EmailDetail {
    #[serde(flatten)]
    email: EmailView,
    message_id: String,
    html: Option<String>,
    text: Option<String>,
    headers: BTreeMap<String, String>,
    category: Category,
    attachments: Vec<EmailAttachmentView>,
    template: Option<SourceTemplate>,
    resent_from: Option<EmailId>,
    expires_in: Option<u64>,
    unsubscribe: bool,
    size: u64,
    recipients: Vec<RecipientView>,
    counts: RecipientCounts,
}

impl EmailDetail {
    /// Loads the complete view. The content is included while the message is stored and the tenant may read it.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn load(state: &AppState, tenant: &Tenant, found: &EmailWithRecipients) -> Result<Self, Problem> {
        let email = &found.email;
        let raw = match tenant.scope() {
            _ if email.is_confidential() => None,
            ApiKeyScope::Full => store::email::get_body(state.intake().store(), email.account, email.id).await?,
            // A sending-only key may not read content, neither here nor by `GET /emails/{id}/raw`.
            ApiKeyScope::Sending => None,
        };
        let raw = raw.unwrap_or_default();
        let (links, length) = (state.intake().link_key().clone(), raw.len());
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
        let tallies = store::tracking::list_tallies(state.intake().store(), email.account, recipient_counts).await?;
        let waits = state.intake().explain_waits(found).await?;
        Ok(Self::from_contents(found, contents, &tallies.into_iter().next().unwrap_or_default(), &waits))
    }

    fn from_contents(
        found: &EmailWithRecipients,
        contents: ParsedBody,
        tally: &TrackingCounters,
        waits: &[WaitStatus],
    ) -> Self {
        let rollup = EmailRollup::from_recipients(&found.recipients);
        let counts = rollup.counts;
        let email = &found.email;
        // With several recipients an open or click cannot be attributed to one of them.
        let named = Some(tally).filter(|_| found.recipients.len() == 1);
        Self {
            email: EmailView::from_rollup(found, rollup, tally),
            message_id: format!("<{}>", email.facts.message_id),
            html: contents.html,
            text: contents.text,
            // Decoded: encoded words (RFC 2047) are only a transport encoding.
            headers: contents.headers.into_iter().map(|(name, value)| (name, decode_encoded_words(&value))).collect(),
            category: email.category,
            attachments: contents.files.into_iter().map(EmailAttachmentView::from_file).collect(),
            template: email.template.clone(),
            resent_from: email.resent_from,
            expires_in: email.expires_in.map(|after| after.as_secs()),
            unsubscribe: email.unsubscribe,
            size: email.size_bytes,
            recipients: found
                .recipients
                .iter()
                .map(|recipient| {
                    let waits_for = waits.iter().find(|wait| wait.recipient == recipient.index);
                    RecipientView::from_recipient(recipient, named, waits_for)
                })
                .collect(),
            counts,
        }
    }
}

/// An attachment without its content.
#[derive(Debug, Serialize)]
pub struct EmailAttachmentView {
    name: Option<String>,
    content_type: String,
    size: u64,
    content_id: Option<String>,
}

impl EmailAttachmentView {
    fn from_file(file: ParsedAttachment) -> Self {
        let ParsedAttachment { name, content_type, size_bytes, content_id } = file;
        Self { name, content_type, size: size_bytes, content_id }
    }
}

#[derive(Debug, Serialize)]
pub struct EmailResponse {
    pub email: EmailDetail,
}

/// A recipient with its delivery status.
#[derive(Debug, Serialize)]
pub struct RecipientView {
    email: String,
    r#type: RecipientKind,
    status: &'static str,
    attempts: u32,
    last_response: Option<SmtpResponseView>,
    error: Option<String>,
    mx_host: Option<String>,
    delivered_at: Option<JsonTimestamp>,
    bounced_at: Option<JsonTimestamp>,
    opened_at: Option<JsonTimestamp>,
    clicked_at: Option<JsonTimestamp>,
    complained_at: Option<JsonTimestamp>,
    next_attempt_at: Option<JsonTimestamp>,
    waits_for: Option<RecipientWaitView>,
}

/// The cause and expected end of a recipient's wait.
#[derive(Debug, Serialize)]
struct RecipientWaitView {
    cause: &'static str,
    text: String,
    destination: Option<String>,
    place: Option<usize>,
    until: Option<JsonTimestamp>,
}

impl RecipientWaitView {
    fn from_waiting(wait: &WaitStatus) -> Self {
        Self {
            cause: wait.cause.word(),
            text: wait.cause.to_string(),
            destination: wait.destination.clone(),
            place: wait.position,
            until: wait.until.map(JsonTimestamp),
        }
    }

    fn schema() -> Value {
        json!({"description": "Why the recipient waits; null if no further automatic action is pending", "oneOf": [
            {"type": "null"},
            schema::object("Why a recipient waits", [
                ("cause", schema::string_enum(WaitCause::WORDS, "The limit or schedule that blocks the recipient")),
                ("text", schema::string("The cause as a sentence")),
                ("destination", schema::nullable_string("The destination's mail hosts, once known")),
                ("place", schema::nullable_count("Number of recipients ahead in the destination's queue, if known")),
                ("until", schema::nullable_time("When the wait ends, if known")),
            ]),
        ]})
    }
}

impl RecipientView {
    fn from_recipient(recipient: &Recipient, tally: Option<&TrackingCounters>, waits_for: Option<&WaitStatus>) -> Self {
        let first =
            |count: fn(&TrackingCounters) -> &HitCount| tally.and_then(|tally| count(tally).first).map(JsonTimestamp);
        Self {
            email: recipient.address.to_string(),
            r#type: recipient.kind,
            status: status_word(recipient.state),
            attempts: recipient.attempts,
            last_response: recipient.last_response.as_ref().map(SmtpResponseView::from_reply),
            error: recipient.error.clone(),
            mx_host: recipient.mx_host.clone(),
            delivered_at: recipient.delivered_at.map(JsonTimestamp),
            bounced_at: recipient.bounced_at.map(JsonTimestamp),
            opened_at: first(|tally| &tally.opened),
            clicked_at: first(|tally| &tally.clicked),
            complained_at: recipient.complained_at.map(JsonTimestamp),
            next_attempt_at: recipient.next_attempt_at.map(JsonTimestamp),
            waits_for: waits_for.map(RecipientWaitView::from_waiting),
        }
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

/// The last SMTP reply of the destination.
#[derive(Debug, Serialize)]
pub struct SmtpResponseView {
    smtp_code: u16,
    enhanced_code: Option<String>,
    text: String,
}

impl SmtpResponseView {
    fn from_reply(reply: &SmtpReply) -> Self {
        Self {
            smtp_code: reply.code,
            enhanced_code: reply.enhanced.map(|code| code.to_string()),
            text: reply.text().into_owned(),
        }
    }
}

/// All statuses of the API contract, including those of later versions.
const STATUSES: &[&str] = &["queued", "scheduled", "sent", "delivered", "bounced", "failed", "cancelled"];
const RECIPIENT_STATUSES: &[&str] =
    &["queued", "deferred", "delivered", "bounced", "failed", "cancelled", "suppressed"];

fn address_list_schema(description: &str) -> Value {
    schema::list(json!({"type": "string"}), description)
}

impl ToSchema for EmailView {
    fn schema(schemas: &mut Schemas) -> Value {
        schemas.component("Email", |_| {
            let tag =
                schema::object("A tag", [("name", schema::string("The name")), ("value", schema::string("The value"))]);
            schema::object(
                "An email",
                [
                    ("id", schema::string("Its id (`msg_…`)")),
                    ("from", schema::string("The author")),
                    ("to", address_list_schema("Recipients")),
                    ("cc", address_list_schema("Recipients of a copy")),
                    ("bcc", address_list_schema("Recipients of a blind copy")),
                    ("reply_to", address_list_schema("Addresses for replies")),
                    ("subject", schema::string("The subject")),
                    ("status", schema::string_enum(STATUSES, "The status")),
                    ("last_event", schema::string("The latest event, like `email.delivered`")),
                    (
                        "bounce_reason",
                        schema::nullable_string("The response of the first server that rejected the email"),
                    ),
                    ("tags", schema::list(tag, "The tags")),
                    ("scheduled_at", schema::nullable_time("When the email is scheduled to be sent")),
                    ("cancelled_at", schema::nullable_time("When it was cancelled")),
                    ("created_at", schema::time("When it was accepted")),
                    ("sent_at", schema::nullable_time("When it entered the queue")),
                    ("delivered_at", schema::nullable_time("When it was delivered to the first recipient")),
                    ("bounced_at", schema::nullable_time("When the first recipient bounced")),
                ],
            )
        })
    }
}

impl ToSchema for RecipientView {
    fn schema(schemas: &mut Schemas) -> Value {
        schemas.component("Recipient", |_| {
            let response = json!({
                "description": "The last response of the destination",
                "oneOf": [{"type": "null"}, schema::object("An SMTP reply", [
                    ("smtp_code", json!({"type": "integer", "description": "The three-digit SMTP reply code"})),
                    ("enhanced_code", schema::nullable_string("The enhanced status code (RFC 3463), like `5.1.1`")),
                    ("text", schema::string("The text of the response")),
                ])],
            });
            schema::object(
                "A recipient",
                [
                    ("email", schema::string("The address")),
                    ("type", schema::string_enum(&["to", "cc", "bcc"], "The header field")),
                    ("status", schema::string_enum(RECIPIENT_STATUSES, "The delivery status")),
                    ("attempts", schema::count("Number of delivery attempts")),
                    ("last_response", response),
                    (
                        "error",
                        schema::nullable_string("Why the last attempt failed, if it was not a response of a host"),
                    ),
                    ("mx_host", schema::nullable_string("The mail host of the last response")),
                    ("delivered_at", schema::nullable_time("When it was delivered")),
                    ("bounced_at", schema::nullable_time("When it bounced")),
                    ("opened_at", schema::nullable_time("When it was first opened")),
                    ("clicked_at", schema::nullable_time("When a link was first clicked")),
                    ("complained_at", schema::nullable_time("When the recipient reported spam")),
                    ("next_attempt_at", schema::nullable_time("When the next attempt is due")),
                    ("waits_for", RecipientWaitView::schema()),
                ],
            )
        })
    }
}

impl ToSchema for EmailDetail {
    fn schema(schemas: &mut Schemas) -> Value {
        let email = EmailView::schema(schemas);
        let recipient = RecipientView::schema(schemas);
        schemas.component("EmailDetail", |_| {
            let counts = schema::object_with(
                "Number of recipients by status; `suppressed` and `cancelled` are omitted if zero",
                &["queued", "delivered", "bounced", "failed"],
                [
                    ("queued", schema::count("In the queue")),
                    ("delivered", schema::count("Delivered")),
                    ("bounced", schema::count("Bounced")),
                    ("failed", schema::count("Failed")),
                    ("suppressed", schema::count("Not sent because suppressed or opted out")),
                    ("cancelled", schema::count("Cancelled")),
                ],
            );
            let rest = schema::object(
                "Fields that lists omit",
                [
                    ("message_id", schema::string("The Message-ID (RFC 5322) with its angle brackets")),
                    ("html", schema::nullable_string("The HTML body; null when the message is no longer stored")),
                    ("text", schema::nullable_string("The plain-text body; null when the message is no longer stored")),
                    (
                        "headers",
                        json!({
                            "type": "object", "additionalProperties": {"type": "string"},
                            "description": "Custom headers",
                        }),
                    ),
                    ("category", schema::string_enum(&["transactional", "product", "newsletter"], "The category")),
                    ("attachments", schema::list(file_schema(), "The attachments without their content")),
                    ("template", template_schema()),
                    ("resent_from", schema::nullable_string("The email that this one was resent from")),
                    ("expires_in", schema::nullable_count("Lifetime in seconds")),
                    ("unsubscribe", schema::boolean("Whether managed unsubscribe is on")),
                    ("size", schema::count("Size of the message in bytes")),
                    ("recipients", schema::list(recipient, "Recipients with their status")),
                    ("counts", counts),
                ],
            );
            json!({"allOf": [email, rest], "description": "An email with its recipients"})
        })
    }
}

fn template_schema() -> Value {
    json!({"description": "The template that was used", "oneOf": [{"type": "null"}, schema::object("A template", [
        ("id", schema::string("The template's id (`tpl_…`)")),
        ("alias", schema::nullable_string("The template's alias at that time")),
        ("version", schema::count("The version")),
    ])]})
}

fn file_schema() -> Value {
    schema::object(
        "A file",
        [
            ("name", schema::nullable_string("The name")),
            ("content_type", schema::string("The MIME type")),
            ("size", schema::count("Decoded size in bytes")),
            ("content_id", schema::nullable_string("The Content-ID that `cid:` in the HTML refers to")),
        ],
    )
}

impl ToSchema for EmailResponse {
    fn schema(schemas: &mut Schemas) -> Value {
        let email = EmailDetail::schema(schemas);
        schema::object("A response with an email", [("email", email)])
    }
}

impl ToSchema for EmailList {
    fn schema(schemas: &mut Schemas) -> Value {
        let email = EmailView::schema(schemas);
        schemas.component("EmailList", |_| {
            let mut page = schema::list_page("emails", email);
            let as_of = schema::time("Present while the search index lags: later events may not be found yet");
            page["properties"]["as_of"] = as_of;
            page
        })
    }
}
