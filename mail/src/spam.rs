//! Is it spam? A small set of rules over what is known without a look into the text: where a message comes
//! from, and how it is made. Points add up; [`MARKED_FROM`] of them mark.
//!
//! SPF or DMARC failure marks by itself (completions-email.md 4). A failed SPF of a message whose author is
//! proven otherwise does not: that is how forwarded mail looks (RFC 7489 6.7).

use crate::received::{Auth, AuthResult, Heading, Score, SpamStatus};

/// Points that mark.
pub const MARKED_FROM: Score = Score(50);
/// The text by which filters are tried out (GTUBE).
const GTUBE: &[u8] = b"XJS*C4JDBQADN1.NSBN3*2IDNEN*GTUBE-STANDARD-ANTI-UBE-TEST-EMAIL*C.34X";
/// How much of a message it is looked for in.
const GTUBE_WITHIN_BYTES: usize = 64 << 10;
/// Ends of names of files that run where they are opened.
const PROGRAMS: &[&str] = &[
    ".exe", ".scr", ".com", ".bat", ".cmd", ".pif", ".vbs", ".js", ".jse", ".wsf", ".hta", ".lnk", ".msi",
    ".ps1", ".iso",
];

/// What the rules look at.
#[derive(Debug, Clone, Copy)]
pub struct Signs<'a> {
    /// Where it comes from.
    pub auth: Auth,
    /// The peer's address and name lead to each other.
    pub iprev: AuthResult,
    /// It has one From field with one address.
    pub has_author: bool,
    /// It is on a list of bad addresses.
    pub is_listed: bool,
    /// What its header says.
    pub heading: &'a Heading,
    /// It has a Date field.
    pub has_date: bool,
    /// The message.
    pub message: &'a [u8],
}

impl Signs<'_> {
    /// Whether it fails by where it comes from, whatever is in it.
    #[must_use]
    pub fn is_marked(&self) -> bool {
        let proven = self.auth.dmarc == AuthResult::Pass;
        !self.has_author
            || self.is_listed
            || self.auth.dmarc == AuthResult::Fail
            || self.auth.spf == AuthResult::Fail && !proven
    }

    /// Its points.
    #[must_use]
    pub fn score(&self) -> Score {
        let proven = self.auth.dmarc == AuthResult::Pass;
        let within = self.message.get(..self.message.len().min(GTUBE_WITHIN_BYTES)).unwrap_or_default();
        let runs = self.heading.attachments.iter().any(|file| {
            let name = file.filename.to_lowercase();
            PROGRAMS.iter().any(|end| name.ends_with(end))
        });
        let rules = [
            (self.auth.spf == AuthResult::Fail && !proven, 50),
            (self.auth.spf == AuthResult::SoftFail && !proven, 15),
            (self.auth.dmarc == AuthResult::Fail, 50),
            (self.auth.dkim == AuthResult::Fail && !proven, 10),
            (self.auth.arc == AuthResult::Fail, 5),
            (proven, -10),
            (!self.has_author, 50),
            (self.is_listed, 50),
            (matches!(self.iprev, AuthResult::Fail | AuthResult::PermError), 10),
            (!self.has_date, 10),
            (self.heading.message_id.is_empty(), 10),
            (self.heading.subject.is_empty(), 5),
            (runs, 30),
            (memchr::memmem::find(within, GTUBE).is_some(), 10_000),
        ];
        Score(rules.into_iter().filter(|(holds, _)| *holds).map(|(_, points)| points).sum())
    }
}

/// What so many points mean.
#[must_use]
pub fn status(score: Score) -> SpamStatus {
    if score >= MARKED_FROM { SpamStatus::Spam } else { SpamStatus::NotSpam }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judged(auth: Auth, message: &[u8]) -> SpamStatus {
        let heading =
            Heading { message_id: "<a@b>".to_owned(), subject: "s".to_owned(), ..Heading::default() };
        let signs = Signs {
            auth,
            iprev: AuthResult::Pass,
            has_author: true,
            is_listed: false,
            heading: &heading,
            has_date: true,
            message,
        };
        status(signs.score())
    }

    #[test]
    fn failure_marks() {
        use AuthResult::{Fail, None, Pass, SoftFail};
        let auth = |spf, dkim, dmarc| Auth { spf, dkim, dmarc, arc: None };
        assert_eq!(judged(auth(Pass, Pass, Pass), b""), SpamStatus::NotSpam);
        assert_eq!(judged(auth(None, None, None), b""), SpamStatus::NotSpam);
        assert_eq!(judged(auth(SoftFail, Fail, None), b""), SpamStatus::NotSpam);
        assert_eq!(judged(auth(Fail, None, None), b""), SpamStatus::Spam);
        assert_eq!(judged(auth(Pass, Fail, Fail), b""), SpamStatus::Spam);
        // Forwarded.
        assert_eq!(judged(auth(Fail, Pass, Pass), b""), SpamStatus::NotSpam);
        assert_eq!(judged(auth(Pass, Pass, Pass), GTUBE), SpamStatus::Spam);
    }
}
