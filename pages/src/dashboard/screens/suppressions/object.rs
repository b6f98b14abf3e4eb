//! A suppression as the API has it, and its reasons in words.

use crate::dashboard::prelude::*;

pub(super) const REASONS: &[&str] =
    &["hard_bounce", "soft_bounce", "complaint", "unsubscribe", "smtp_failure", "manual", "import"];
pub(super) const SOURCES: &[&str] = &["system", "api", "dashboard", "recipient", "import"];

#[answer]
pub(in crate::dashboard::screens) struct Suppression {
    pub id: String,
    /// An address, or `@domain.tld`.
    pub email: String,
    pub reason: String,
    pub source: String,
    pub email_id: Option<String>,
    pub detail: Option<ServerReply>,
    pub note: Option<String>,
    pub expires_at: Option<String>,
    pub created_at: String,
}

/// The reply of the mail host that caused it.
#[answer]
pub(in crate::dashboard::screens) struct ServerReply {
    pub smtp_code: Option<u16>,
    pub enhanced_code: Option<String>,
    pub diagnostic: String,
}

impl Suppression {
    pub(in crate::dashboard::screens) async fn read(context: &Context<'_>, id: &str) -> Result<Self, Failure> {
        context.read_field("suppression", &Call::new("get_suppression").parameter("id_or_email", id)).await
    }

    pub(super) fn is_complaint(&self) -> bool {
        self.reason == "complaint"
    }

    pub(super) fn is_domain(&self) -> bool {
        self.email.starts_with('@')
    }
}

impl ServerReply {
    /// The codes and the text.
    pub(super) fn text(&self) -> String {
        let code = self.smtp_code.map(|code| code.to_string());
        let parts = [code.as_deref(), self.enhanced_code.as_deref(), Some(self.diagnostic.as_str())];
        parts.into_iter().flatten().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(" ")
    }
}

pub(super) fn reason_badge(reason: &str) -> Badge {
    let tone = match reason {
        "hard_bounce" | "complaint" | "smtp_failure" => Tone::Bad,
        "soft_bounce" => Tone::Warning,
        _ => Tone::Neutral,
    };
    let label = if reason == "smtp_failure" { "Refused".to_owned() } else { sentence_case(reason) };
    Badge::new(label, tone)
}

/// Why nothing is sent, in a sentence.
pub(super) fn reason_text(reason: &str) -> &'static str {
    match reason {
        "hard_bounce" => {
            "The recipient's mail host permanently refused an email: the mailbox does not exist, or does not accept \
             mail."
        }
        "soft_bounce" => "Emails bounced several times, each time for a temporary reason.",
        "complaint" => "The recipient reported an email as spam.",
        "unsubscribe" => "The recipient unsubscribed from all emails.",
        "smtp_failure" => "A mail host permanently refused an email.",
        "manual" => "Someone in your account added it.",
        "import" => "It was in an imported list.",
        _ => "",
    }
}

/// The source in words: the person or the event that added it.
pub(super) fn source_text(source: &str) -> String {
    match source {
        "system" => "The server".to_owned(),
        "api" => "An API call".to_owned(),
        "dashboard" => "A person in the dashboard".to_owned(),
        "recipient" => "The recipient".to_owned(),
        "import" => "An import".to_owned(),
        other => sentence_case(other),
    }
}
