//! A state as a small label with a colour. The colour repeats what the word says.

use hypertext::{Buffer, prelude::*};

use crate::text::sentence_case;

/// The colour of a state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tone {
    Good,
    Bad,
    Warning,
    Neutral,
    Active,
}

impl Tone {
    /// The tone of a word of the API: of an email's status, a domain's, a delivery's and so on.
    pub fn of(word: &str) -> Self {
        match word {
            "delivered" | "verified" | "active" | "succeeded" | "completed" | "paid" | "approved" | "earned"
            | "opened" | "clicked" | "live" | "published" | "success" | "received" | "enabled" | "done" => Self::Good,
            "bounced" | "failed" | "complained" | "rejected" | "mismatch" | "conflict" | "error" | "suppressed"
            | "reversed" | "expired" | "blocked" | "hard_bounce" | "complaint" | "suspended" => Self::Bad,
            "delivery_delayed" | "delayed" | "missing" | "unverified" | "degraded" | "on_hold" | "held" | "paused"
            | "review" | "trialing" | "soft_bounce" | "retrying" | "disabled" | "invited" => Self::Warning,
            "queued" | "sending" | "processing" | "running" | "waiting" | "sent" | "pending" => Self::Active,
            _ => Self::Neutral,
        }
    }

    /// The class in the style sheet.
    pub const fn class(self) -> &'static str {
        match self {
            Self::Good => "good",
            Self::Bad => "bad",
            Self::Warning => "warning",
            Self::Neutral => "neutral",
            Self::Active => "active",
        }
    }
}

/// A badge.
#[derive(Debug, Clone)]
pub struct Badge {
    label: String,
    tone: Tone,
}

impl Badge {
    pub fn new(label: impl Into<String>, tone: Tone) -> Self {
        Self { label: label.into(), tone }
    }

    /// The badge of a word of the API.
    pub fn of(word: &str) -> Self {
        Self { label: sentence_case(word), tone: Tone::of(word) }
    }
}

impl Renderable for Badge {
    fn render_to(&self, buffer: &mut Buffer) {
        maud! { span class={ "badge " (self.tone.class()) } { (self.label) } }.render_to(buffer);
    }
}
