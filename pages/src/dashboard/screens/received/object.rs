//! Received mail with the fields that the pages show.

use crate::dashboard::prelude::*;

/// A mail as lists show it.
#[answer]
pub(super) struct ReceivedItem {
    pub email_id: String,
    pub to: Vec<String>,
    pub cc: Vec<String>,
    pub from: String,
    pub subject: String,
    pub rcpt_to: String,
    pub spam_status: String,
    pub attachment_count: u64,
    pub received_at: String,
    pub domain: String,
    pub envelope_from: Option<String>,
    pub auth: MailProofs,
}

impl ReceivedItem {
    pub(super) fn title(&self) -> &str {
        if self.subject.trim().is_empty() { "(no subject)" } else { &self.subject }
    }

    /// The spam status; `None` if there is nothing to warn of.
    pub(super) fn spam_badge(&self) -> Option<Badge> {
        (self.spam_status == "spam").then(|| Badge::new("Spam", Tone::Bad))
    }
}

/// Results of the proofs of the sender (RFC 8601).
#[answer]
pub(super) struct MailProofs {
    pub spf: String,
    pub dkim: String,
    pub dmarc: String,
    pub arc: Option<String>,
}

/// A result in words, and its tone.
pub(super) fn proof_badge(result: &str) -> Badge {
    match result {
        "pass" => Badge::new("Pass", Tone::Good),
        "fail" => Badge::new("Fail", Tone::Bad),
        "softfail" => Badge::new("Soft fail", Tone::Warning),
        "permerror" => Badge::new("Wrong record", Tone::Warning),
        "temperror" => Badge::new("Could not be checked", Tone::Warning),
        "neutral" => Badge::new("Neutral", Tone::Neutral),
        "none" | "" => Badge::new("None", Tone::Neutral),
        other => Badge::new(other, Tone::Neutral),
    }
}

/// A mail with its content.
#[answer]
pub(super) struct WholeReceived {
    #[serde(flatten)]
    pub item: ReceivedItem,
    pub message_id: String,
    pub in_reply_to: Option<String>,
    pub text: Option<String>,
    pub html: Option<String>,
    pub stripped_text: Option<String>,
    pub headers: Vec<ReceivedHeaderLine>,
    pub spam_score: Option<f64>,
    pub size: u64,
    pub attachments: Vec<ReceivedFile>,
}

impl WholeReceived {
    /// The call that reads a mail without the content of its files.
    pub(super) fn call(id: &str) -> Call {
        Call::new("get_received_email").id(id).query("attachments", "none")
    }

    pub(super) async fn read(context: &Context<'_>) -> Result<Self, Failure> {
        context.read_field("received_email", &Self::call(context.id())).await
    }
}

#[answer]
pub(super) struct ReceivedHeaderLine {
    pub name: String,
    pub value: String,
}

#[answer]
pub(super) struct ReceivedFile {
    pub id: String,
    pub filename: String,
    pub content_type: String,
    pub size: u64,
    pub content_id: Option<String>,
    pub disposition: String,
    /// Base64; only where asked for.
    pub data: Option<String>,
}
