//! Causes that SMTP replies name (RFC 3463; the registry of enhanced status codes, RFC 5248).

use serde::{Deserialize, Serialize};

use crate::explanation::NextStep;

/// The last reply of the recipient's mail host.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct SmtpResponse {
    pub smtp_code: u16,
    pub enhanced_code: Option<String>,
    pub text: String,
}

/// A cause, in words that need no knowledge of SMTP.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ReplyCause {
    UnknownMailbox,
    DisabledMailbox,
    FullMailbox,
    UnknownDomain,
    TooLarge,
    Greylisted,
    Unauthenticated,
    Reputation,
    RateLimited,
    Content,
    Refused,
    Busy,
    Network,
    Encryption,
    MailLoop,
}

impl SmtpResponse {
    /// `550 5.1.1 No such mailbox`.
    pub(crate) fn line(&self) -> String {
        let enhanced = self.enhanced_code.as_deref().map(|code| format!("{code} ")).unwrap_or_default();
        format!("{} {enhanced}{}", self.smtp_code, self.text.trim()).trim_end().to_owned()
    }

    /// The cause, if the reply names one that is known.
    pub(crate) fn cause(&self) -> Option<ReplyCause> {
        let text = self.text.to_ascii_lowercase();
        let says = |words: &[&str]| words.iter().any(|word| text.contains(word));
        let is_temporary = (400..500).contains(&self.smtp_code);
        if is_temporary && says(&["greylist", "graylist", "grey-list", "gray-list", "greylisting"]) {
            return Some(ReplyCause::Greylisted);
        }
        if says(&[
            "spamhaus",
            "blocklist",
            "blacklist",
            "block list",
            "blocked using",
            "poor reputation",
            "bad reputation",
        ]) {
            return Some(ReplyCause::Reputation);
        }
        let code = self.enhanced_code.as_deref().unwrap_or_default();
        let (class, detail) = code.split_once('.').unwrap_or_default();
        if !matches!(class, "4" | "5") {
            return self.cause_without_enhanced_code(&text);
        }
        Some(match detail {
            "1.1" | "1.3" | "1.6" | "2.4" => ReplyCause::UnknownMailbox,
            "1.2" | "1.10" | "4.4" => ReplyCause::UnknownDomain,
            "2.1" if is_temporary => ReplyCause::Busy,
            "2.1" => ReplyCause::DisabledMailbox,
            "2.2" => ReplyCause::FullMailbox,
            "2.3" | "3.4" => ReplyCause::TooLarge,
            "3.1" | "3.2" | "3.5" | "4.5" => ReplyCause::Busy,
            "4.1" | "4.2" | "4.3" | "4.7" => ReplyCause::Network,
            "4.6" => ReplyCause::MailLoop,
            "5.3" | "7.28" => ReplyCause::RateLimited,
            "7.5" | "7.7" | "7.10" | "7.11" | "7.30" => ReplyCause::Encryption,
            "7.20" | "7.21" | "7.22" | "7.23" | "7.24" | "7.26" | "7.27" | "7.29" | "1.8" => {
                ReplyCause::Unauthenticated
            }
            "7.25" => ReplyCause::Reputation,
            "6.0" | "6.1" | "6.2" | "6.3" | "6.7" => ReplyCause::Content,
            "7.1" | "7.0" if says(&["spf", "dkim", "dmarc", "authenticat"]) => ReplyCause::Unauthenticated,
            "7.1" | "7.0" if says(&["spam", "content"]) => ReplyCause::Content,
            _ if detail.starts_with("7.") && is_temporary => ReplyCause::RateLimited,
            _ if detail.starts_with("7.") => ReplyCause::Refused,
            _ => return self.cause_without_enhanced_code(&text),
        })
    }

    fn cause_without_enhanced_code(&self, text: &str) -> Option<ReplyCause> {
        let says = |words: &[&str]| words.iter().any(|word| text.contains(word));
        Some(match self.smtp_code {
            _ if says(&["quota", "mailbox full", "mailbox is full", "over quota"]) => ReplyCause::FullMailbox,
            _ if says(&["spf", "dkim", "dmarc"]) => ReplyCause::Unauthenticated,
            550 | 551 | 553
                if says(&[
                    "unknown",
                    "no such",
                    "not found",
                    "does not exist",
                    "doesn't exist",
                    "invalid recipient",
                ]) =>
            {
                ReplyCause::UnknownMailbox
            }
            552 if says(&["size", "large"]) => ReplyCause::TooLarge,
            421 | 450 | 451 | 452 => ReplyCause::Busy,
            454 | 523 | 530 | 538 => ReplyCause::Encryption,
            _ => return None,
        })
    }
}

impl ReplyCause {
    pub(crate) fn sentence(self) -> &'static str {
        match self {
            Self::UnknownMailbox => "The mailbox does not exist.",
            Self::DisabledMailbox => "The mailbox is disabled, or does not accept mail.",
            Self::FullMailbox => "The mailbox is full.",
            Self::UnknownDomain => "The domain of the address does not exist, or does not accept mail.",
            Self::TooLarge => "The email is larger than the mail host accepts.",
            Self::Greylisted => "The mail host makes every new sender wait a few minutes (greylisting).",
            Self::Unauthenticated => "The mail host could not verify that the mail is yours (SPF, DKIM or DMARC).",
            Self::Reputation => "The mail host refuses mail from the sending IP address because of its reputation.",
            Self::RateLimited => "The mail host limits how much mail it accepts at once.",
            Self::Content => "The mail host refuses the content.",
            Self::Refused => "The mail host's policy refuses it.",
            Self::Busy => "The mail host cannot accept it at the moment.",
            Self::Network => "The mail host has a network problem.",
            Self::Encryption => "The two servers could not agree on how to encrypt the connection.",
            Self::MailLoop => "The recipient's mail servers pass it around in a loop.",
        }
    }

    /// The advice if it was refused for good.
    pub(crate) fn advice(self) -> &'static str {
        match self {
            Self::UnknownMailbox => {
                "Check the spelling of the address. If it is correct, remove the address from your lists."
            }
            Self::DisabledMailbox => "Remove the address from your lists, and contact the person another way.",
            Self::FullMailbox => "Send it again in a few days. The recipient must free up space first.",
            Self::UnknownDomain => "Check the spelling of the part after the @.",
            Self::TooLarge => "Send it with smaller attachments, or with a link to the files.",
            Self::Greylisted | Self::Busy | Self::Network | Self::RateLimited => "Send it again later.",
            Self::Unauthenticated => "Check the records of your sending domain, then send it again.",
            Self::Reputation => {
                "Ask the operator of this server: the mail host's reply names the blocklist or the \
                reason."
            }
            Self::Content => "Change the words, links or attachments that the mail host names, then send it again.",
            Self::Refused => {
                "Ask the recipient's administrator to accept your mail. The mail host's reply helps them find the rule."
            }
            Self::Encryption => "Ask the operator of this server to check TLS in the last attempt.",
            Self::MailLoop => "Tell the recipient's administrator: only they can fix the loop.",
        }
    }

    pub(crate) fn next_step(self) -> Option<NextStep> {
        match self {
            Self::FullMailbox
            | Self::TooLarge
            | Self::Greylisted
            | Self::Busy
            | Self::Network
            | Self::RateLimited
            | Self::Content => Some(NextStep::Resend),
            Self::Unauthenticated => Some(NextStep::CheckDomain),
            _ => None,
        }
    }
}
