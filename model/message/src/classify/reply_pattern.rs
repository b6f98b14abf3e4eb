//! Reply patterns: match a reply by host, code, phase and text.
//!
//! Texts are compared in lower case, with single spaces, and without email addresses. A local part such as `spam@` or
//! `quota@` must not match a pattern.

use std::fmt;
use std::str::FromStr;

use crate::address::DomainName;
use crate::outcome::AttemptPhase;
use crate::reply::SmtpReply;

/// A reply prepared for matching.
#[derive(Debug)]
pub struct ClassifierInput<'a> {
    host: Option<&'a str>,
    reply: &'a SmtpReply,
    phase: AttemptPhase,
    text: String,
}

impl<'a> ClassifierInput<'a> {
    /// Prepares a reply that this host sent in this phase.
    pub fn new(host: Option<&'a str>, reply: &'a SmtpReply, phase: AttemptPhase) -> Self {
        Self { host, reply, phase, text: normalize_text(&reply.text()) }
    }

    /// The phase in which the reply was received.
    pub fn phase(&self) -> AttemptPhase {
        self.phase
    }

    /// True if the host is this domain or a subdomain of it.
    fn is_host_under(&self, domain: &DomainName) -> bool {
        let Some(host) = self.host else { return false };
        let host = host.trim_end_matches('.');
        let domain = domain.as_str();
        let Some(at) = host.len().checked_sub(domain.len()) else { return false };
        // Compares bytes: host names are ASCII, and another text cannot match.
        let ends = host.as_bytes().get(at..).is_some_and(|end| end.eq_ignore_ascii_case(domain.as_bytes()));
        ends && (at == 0 || host.as_bytes().get(at - 1) == Some(&b'.'))
    }
}

/// Normalizes a text for matching. A space is added at both ends, so that patterns can match whole words.
pub(super) fn normalize_text(text: &str) -> String {
    let mut plain = String::with_capacity(text.len() + 2);
    plain.push(' ');
    for word in text.split_whitespace() {
        match word.contains('@') {
            true => push_without_address(word, &mut plain),
            false => plain.push_str(&word.to_lowercase()),
        }
        plain.push(' ');
    }
    plain
}

/// Appends a word without its address: only the brackets and punctuation around it, and in languages without spaces the
/// text around it.
fn push_without_address(word: &str, out: &mut String) {
    let is_outside = |c: char| !c.is_ascii() || "<>()[]:;,\"".contains(c);
    for piece in word.split_inclusive(is_outside) {
        match piece.contains('@') {
            true => out.extend(piece.chars().last().filter(|c| is_outside(*c))),
            false => out.push_str(&piece.to_lowercase()),
        }
    }
}

/// Matches reply codes (`421`, `55z`, `4yz`) or enhanced status codes (`4.7.28`, `*.1.1`, `5.7.*`, `5.7.606-649`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CodePattern {
    /// First and last reply code, inclusive.
    Reply(u16, u16),
    /// Class, subject, and first and last detail; `None` matches any.
    Enhanced(Option<u8>, Option<u16>, (u16, u16)),
}

impl CodePattern {
    fn matches(self, reply: &SmtpReply) -> bool {
        match (self, reply.enhanced) {
            (Self::Reply(from, to), _) => (from..=to).contains(&reply.code),
            (Self::Enhanced(class, subject, (from, to)), Some(code)) => {
                class.is_none_or(|class| class == code.class)
                    && subject.is_none_or(|subject| subject == code.subject)
                    && (from..=to).contains(&code.detail)
            }
            (Self::Enhanced(..), None) => false,
        }
    }

    /// The class of the matching codes: 4 or 5; `None` for both.
    pub fn class(self) -> Option<u8> {
        match self {
            Self::Reply(from, _) => u8::try_from(from / 100).ok(),
            Self::Enhanced(class, ..) => class,
        }
    }
}

impl FromStr for CodePattern {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || {
            format!(
                "`{text}` is not a 4yz or 5yz code (examples: \"421\", \"55z\", \"4yz\", \"4.7.28\", \"5.7.*\", \"5.7.606-649\")"
            )
        };
        let parts: Vec<&str> = text.split('.').collect();
        let code = match parts.as_slice() {
            [digits] => {
                let from = digits.replace(['y', 'z'], "0");
                let to = digits.replace(['y', 'z'], "9");
                let number = |text: &str| text.parse::<u16>().ok().filter(|_| text.len() == 3);
                Self::Reply(number(&from).ok_or_else(wrong)?, number(&to).ok_or_else(wrong)?)
            }
            [class, subject, detail] => {
                let any = |text: &str| -> Result<Option<u16>, String> {
                    if text == "*" { Ok(None) } else { text.parse().map(Some).map_err(|_| wrong()) }
                };
                let class = any(class)?.map(u8::try_from).transpose().map_err(|_| wrong())?;
                let (from, to) = detail.split_once('-').unwrap_or((detail, detail));
                let range = (any(from)?.unwrap_or(0), any(to)?.unwrap_or(u16::MAX));
                if range.0 > range.1 {
                    return Err(format!("`{text}` is not a valid code: the range is empty"));
                }
                Self::Enhanced(class, any(subject)?, range)
            }
            _ => return Err(wrong()),
        };
        if code.class().is_some_and(|class| !matches!(class, 4 | 5)) { Err(wrong()) } else { Ok(code) }
    }
}

/// The stage of the SMTP transaction in which a reply was received.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ReplyStage {
    /// Before RCPT.
    BeforeRecipient,
    /// In reply to RCPT.
    Rcpt,
    /// In reply to DATA or the content.
    Content,
}

impl ReplyStage {
    fn from_phase(phase: AttemptPhase) -> Self {
        match phase {
            AttemptPhase::Rcpt => Self::Rcpt,
            AttemptPhase::Data | AttemptPhase::Final => Self::Content,
            _ => Self::BeforeRecipient,
        }
    }
}

impl FromStr for ReplyStage {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "early" => Ok(Self::BeforeRecipient),
            "rcpt" => Ok(Self::Rcpt),
            "content" => Ok(Self::Content),
            _ => Err(format!("unknown phase `{text}`; use early, rcpt or content")),
        }
    }
}

/// A text to find; `*` matches anything.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TextPattern(Vec<String>);

impl TextPattern {
    /// Creates a pattern without regard to case.
    pub fn new(text: &str) -> Self {
        Self(text.split('*').map(str::to_lowercase).collect())
    }

    pub(super) fn matches(&self, text: &str) -> bool {
        let mut rest = text;
        self.0.iter().all(|piece| match rest.find(piece.as_str()) {
            Some(at) => {
                rest = rest.get(at + piece.len()..).unwrap_or_default();
                true
            }
            None => false,
        })
    }
}

impl fmt::Display for TextPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.join("*"))
    }
}

/// A pattern that matches if all its parts match.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct ReplyPattern {
    /// Hosts or their parent domains; empty for any host.
    pub providers: Vec<DomainName>,
    pub code: Option<CodePattern>,
    pub when: Option<ReplyStage>,
    /// Alternative texts; empty for any text.
    pub words: Vec<TextPattern>,
}

impl ReplyPattern {
    pub(super) fn matches(&self, input: &ClassifierInput<'_>) -> bool {
        (self.providers.is_empty() || self.providers.iter().any(|domain| input.is_host_under(domain)))
            && self.code.is_none_or(|code| code.matches(input.reply))
            && self.when.is_none_or(|when| when == ReplyStage::from_phase(input.phase))
            && (self.words.is_empty() || self.words.iter().any(|words| words.matches(&input.text)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reply::Enhanced;

    #[test]
    fn codes_are_parsed_and_matched() {
        let reply = |code, enhanced: Option<(u8, u16, u16)>| SmtpReply {
            code,
            enhanced: enhanced.map(|(class, subject, detail)| Enhanced::new(class, subject, detail)),
            lines: vec!["x".into()],
        };
        for (code, meant, not) in [
            ("421", reply(421, None), reply(422, None)),
            ("55z", reply(559, None), reply(549, None)),
            ("4yz", reply(452, Some((4, 1, 1))), reply(550, None)),
            ("4.7.28", reply(421, Some((4, 7, 28))), reply(421, Some((5, 7, 28)))),
            ("*.1.1", reply(550, Some((5, 1, 1))), reply(550, None)),
            ("5.7.*", reply(550, Some((5, 7, 999))), reply(550, Some((5, 6, 1)))),
            ("5.7.606-649", reply(550, Some((5, 7, 606))), reply(550, Some((5, 7, 650)))),
        ] {
            let read: CodePattern = code.parse().unwrap();
            assert!(read.matches(&meant) && !read.matches(&not), "{code}");
        }
        for wrong in ["", "42", "250", "4.7", "4.7.x", "a.7.1", "2.1.5", "4.7.1.1", "5000", "yz"] {
            assert!(wrong.parse::<CodePattern>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_provider_matches_its_name_and_subdomains() {
        let reply = SmtpReply::without_enhanced(550, "x");
        let domain: DomainName = "google.com".parse().unwrap();
        let is = |host| ClassifierInput::new(Some(host), &reply, AttemptPhase::Rcpt).is_host_under(&domain);
        assert!(is("google.com") && is("aspmx.l.GOOGLE.com") && is("mx.google.com."));
        assert!(!is("notgoogle.com") && !is("google.com.example") && !is("com") && !is("[192.0.2.1]"));
    }

    #[test]
    fn texts_are_matched_without_addresses() {
        let reply = SmtpReply::without_enhanced(550, "<spam@quota.example>:  User  UNKNOWN here");
        let input = ClassifierInput::new(None, &reply, AttemptPhase::Rcpt);
        let matches = |words: &str| TextPattern::new(words).matches(&input.text);
        assert!(matches("user unknown") && matches("user*here") && matches(" here "));
        assert!(!matches("spam") && !matches("quota") && !matches("here*user"));
        assert_eq!(normalize_text("收件人（ada@quota.example）不存在"), " 收件人（）不存在 ");
    }
}
