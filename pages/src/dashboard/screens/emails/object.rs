//! Emails, attempts and events with the fields that the pages show.

use crate::dashboard::prelude::*;
use explain::explanation::RecipientDelivery;
use serde_json::Map;

/// An email as lists show it.
#[answer]
pub(in crate::dashboard::screens) struct EmailItem {
    pub id: String,
    pub from: String,
    pub to: Vec<String>,
    pub cc: Vec<String>,
    pub bcc: Vec<String>,
    pub subject: String,
    pub status: String,
    pub last_event: String,
    pub bounce_reason: Option<String>,
    pub tags: Vec<EmailTag>,
    pub confidential: bool,
    pub scheduled_at: Option<String>,
    pub created_at: String,
    pub sent_at: Option<String>,
    pub delivered_at: Option<String>,
}

impl EmailItem {
    /// The recipients in words: `a@example.net and 2 more`.
    pub(super) fn recipients(&self) -> String {
        let mut all = self.to.iter().chain(&self.cc).chain(&self.bcc);
        let first = all.next().map_or("nobody", String::as_str);
        match all.count() {
            0 => first.to_owned(),
            more => format!("{first} and {more} more"),
        }
    }

    pub(super) fn title(&self) -> &str {
        if self.subject.trim().is_empty() { "(no subject)" } else { &self.subject }
    }

    /// Scheduled emails can be cancelled, and sent at another time; others were sent already.
    pub(super) fn is_scheduled(&self) -> bool {
        self.status == "scheduled"
    }

    /// An email can be sent again unless it is still to be sent, or only its recipient may read it.
    pub(super) fn is_resendable(&self) -> bool {
        !self.confidential && !matches!(self.status.as_str(), "scheduled" | "queued")
    }
}

/// The time of an email in a list: when it was sent, or when it is due.
pub(in crate::dashboard::screens) fn sent_time<'t>(
    sent_at: Option<&'t str>,
    scheduled_at: Option<&'t str>,
    status: &str,
) -> impl Renderable + use<'t> {
    let is_scheduled = status == "scheduled";
    maud! {
        @match scheduled_at.filter(|_| is_scheduled) {
            Some(at) => { "due " (time_or_dash(Some(at))) }
            None => { (time_or_dash(sent_at)) }
        }
    }
}

#[answer]
pub(in crate::dashboard::screens) struct EmailTag {
    pub name: String,
    pub value: String,
}

/// An email with its content.
#[answer]
pub(super) struct WholeEmail {
    #[serde(flatten)]
    pub item: EmailItem,
    pub reply_to: Vec<String>,
    pub message_id: String,
    pub html: Option<String>,
    pub text: Option<String>,
    pub headers: Map<String, Value>,
    pub category: String,
    pub attachments: Vec<SentAttachment>,
    pub template: Option<UsedTemplate>,
    pub resent_from: Option<String>,
    pub size: u64,
    pub recipients: Vec<RecipientDelivery>,
}

impl WholeEmail {
    /// Reads an email.
    pub(super) fn has_content(&self) -> bool {
        self.html.is_some() || self.text.is_some()
    }

    pub(super) async fn read(context: &Context<'_>, id: &str) -> Result<Self, Failure> {
        context.read_field("email", &Call::new("get_email").id(id)).await
    }
}

#[answer]
pub(super) struct SentAttachment {
    pub id: String,
    pub name: Option<String>,
    pub content_type: String,
    pub size: u64,
}

#[answer]
pub(super) struct UsedTemplate {
    pub id: String,
    pub alias: Option<String>,
    pub version: u64,
}

#[answer]
pub(super) struct EmailAttempt {
    pub n: u64,
    pub recipient: Option<String>,
    pub mx_host: Option<String>,
    pub ip: Option<String>,
    pub tls: Option<EmailAttemptTls>,
    pub smtp_code: Option<u16>,
    pub enhanced_code: Option<String>,
    pub response: Option<String>,
    pub error: Option<String>,
    pub phase: String,
    pub duration_ms: u64,
    pub created_at: String,
    pub next_attempt_at: Option<String>,
    pub transcript: String,
}

#[answer]
pub(super) struct EmailAttemptTls {
    pub version: String,
    pub cipher: String,
    pub verified: bool,
    pub policy: String,
}

#[answer]
pub(super) struct EmailEvent {
    pub r#type: String,
    pub recipient: Option<String>,
    pub created_at: String,
    pub detail: Value,
}
