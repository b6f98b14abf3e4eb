//! Built-in spam rules over authentication, headers and attachment names; the text is only searched for GTUBE. Points
//! add up, and [`SPAM_THRESHOLD`] marks a message as spam.
//!
//! A failure of SPF or DMARC marks by itself. A failed SPF does not count if DMARC passes:
//! forwarded mail fails SPF (RFC 7489 6.7).

use message::received::{AuthResult, AuthenticationResults, ReceivedHeader};

use crate::received::{SpamScore, SpamStatus};

/// Score from which a message is spam.
pub const SPAM_THRESHOLD: SpamScore = SpamScore(50);
/// The GTUBE test string.
const GTUBE: &[u8] = b"XJS*C4JDBQADN1.NSBN3*2IDNEN*GTUBE-STANDARD-ANTI-UBE-TEST-EMAIL*C.34X";
/// Bytes of a message that are searched for GTUBE.
const GTUBE_WITHIN_BYTES: usize = 64 << 10;
/// File name extensions of executable files.
const EXECUTABLE_EXTENSIONS: &[&str] = &[
    ".exe", ".scr", ".com", ".bat", ".cmd", ".pif", ".vbs", ".js", ".jse", ".wsf", ".hta", ".lnk", ".msi", ".ps1",
    ".iso",
];

/// Input of the rules.
#[derive(Debug, Clone, Copy)]
pub struct SpamSignals<'a> {
    pub auth: AuthenticationResults,
    /// Result of the iprev check (RFC 8601 2.7.3): forward-confirmed reverse DNS of the client.
    pub iprev: AuthResult,
    /// The message has one From field with one address.
    pub has_author: bool,
    /// The client's IP address is on a block list.
    pub is_listed: bool,
    pub heading: &'a ReceivedHeader,
    pub has_date: bool,
    pub message: &'a [u8],
}

impl SpamSignals<'_> {
    /// Returns whether the message fails by authentication or reputation alone, whatever its contents.
    pub fn fails_authentication(&self) -> bool {
        let proven = self.auth.dmarc == AuthResult::Pass;
        !self.has_author
            || self.is_listed
            || self.auth.dmarc == AuthResult::Fail
            || self.auth.spf == AuthResult::Fail && !proven
    }

    pub fn score(&self) -> SpamScore {
        let proven = self.auth.dmarc == AuthResult::Pass;
        let within = self.message.get(..self.message.len().min(GTUBE_WITHIN_BYTES)).unwrap_or_default();
        let runs = self.heading.attachments.iter().any(|file| {
            let name = file.filename.to_lowercase();
            EXECUTABLE_EXTENSIONS.iter().any(|end| name.ends_with(end))
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
        SpamScore(rules.into_iter().filter(|(holds, _)| *holds).map(|(_, points)| points).sum())
    }
}

pub fn spam_status(score: SpamScore) -> SpamStatus {
    if score >= SPAM_THRESHOLD { SpamStatus::Spam } else { SpamStatus::NotSpam }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn classify(auth: AuthenticationResults, message: &[u8]) -> SpamStatus {
        let heading =
            ReceivedHeader { message_id: "<a@b>".to_owned(), subject: "s".to_owned(), ..ReceivedHeader::default() };
        let signs = SpamSignals {
            auth,
            iprev: AuthResult::Pass,
            has_author: true,
            is_listed: false,
            heading: &heading,
            has_date: true,
            message,
        };
        spam_status(signs.score())
    }

    #[test]
    fn authentication_failures_add_to_the_score() {
        use AuthResult::{Fail, None, Pass, SoftFail};
        let auth = |spf, dkim, dmarc| AuthenticationResults { spf, dkim, dmarc, arc: None };
        assert_eq!(classify(auth(Pass, Pass, Pass), b""), SpamStatus::NotSpam);
        assert_eq!(classify(auth(None, None, None), b""), SpamStatus::NotSpam);
        assert_eq!(classify(auth(SoftFail, Fail, None), b""), SpamStatus::NotSpam);
        assert_eq!(classify(auth(Fail, None, None), b""), SpamStatus::Spam);
        assert_eq!(classify(auth(Pass, Fail, Fail), b""), SpamStatus::Spam);
        // Forwarded.
        assert_eq!(classify(auth(Fail, Pass, Pass), b""), SpamStatus::NotSpam);
        assert_eq!(classify(auth(Pass, Pass, Pass), GTUBE), SpamStatus::Spam);
    }
}
