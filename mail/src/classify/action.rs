//! What a reply calls for at the site that gave it: slow down, back off, pause; or that its code says the wrong
//! thing, later for never or never for later.

use std::fmt;
use std::time::Duration;

use crate::address::DomainName;

use super::pattern::{ClassifierInput, CodePattern, ReplyPattern, TextPattern};
use super::{Classification, table};

/// What a reply calls for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReplyAction {
    /// Fewer connections and messages, until it takes them again.
    SlowDown,
    /// The site is left alone for a while, longer each time.
    BackOff,
    /// The site is left alone for so long.
    Pause(Duration),
    /// What it calls "not now" is "not ever".
    Permanent,
    /// What it calls "not ever" is "not now".
    Temporary,
}

/// The words for those without a time.
const WORDS: [(&str, ReplyAction); 4] = [
    ("slow-down", ReplyAction::SlowDown),
    ("back-off", ReplyAction::BackOff),
    ("permanent", ReplyAction::Permanent),
    ("temporary", ReplyAction::Temporary),
];
/// The word for the one with a time.
const PAUSE: &str = "pause";
/// How long a site is left alone unless it is said.
pub const PAUSE_DEFAULT: Duration = Duration::from_secs(15 * 60);

impl ReplyAction {
    /// The action of a word, with how long it is to be done.
    ///
    /// # Errors
    /// There is no such action, or it is not done for a time.
    pub fn parse(word: &str, lasts: Option<Duration>) -> Result<Self, String> {
        if word == PAUSE {
            return Ok(Self::Pause(lasts.unwrap_or(PAUSE_DEFAULT)));
        }
        let known = WORDS.iter().find(|(known, _)| *known == word).map(|(_, action)| *action);
        let action = known.ok_or_else(|| {
            format!("`{word}` is no action: \"slow-down\", \"back-off\", \"pause\", \"permanent\", \"temporary\"")
        })?;
        if lasts.is_some() {
            return Err(format!("`for` goes with `action = \"{PAUSE}\"`"));
        }
        Ok(action)
    }

    /// Whether the site is not to be asked for a while: then what it just refused may be tried again after it.
    #[must_use]
    pub fn suspends(self) -> bool {
        matches!(self, Self::BackOff | Self::Pause(_))
    }
}

impl fmt::Display for ReplyAction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Pause(lasts) => write!(f, "{PAUSE}, {} min", lasts.as_secs() / 60),
            other => f.write_str(WORDS.iter().find(|(_, known)| known == other).map_or("", |(word, _)| word)),
        }
    }
}

/// A row of the operator's: which replies, and what they call for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReplyRule {
    /// The host, or the domain that it lies under; none is every host.
    pub provider: Option<DomainName>,
    /// The code; none is any.
    pub code: Option<CodePattern>,
    /// Words of the text; none is any text.
    pub text: Option<TextPattern>,
    /// What is done.
    pub action: ReplyAction,
}

/// What replies call for: the operator's rows, then those that everybody has.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ReplyRules(Vec<(ReplyPattern, ReplyAction)>);

impl ReplyRules {
    /// With these rows before those that everybody has; the first that matches counts.
    #[must_use]
    pub fn new(rules: impl IntoIterator<Item = ReplyRule>) -> Self {
        let row = |rule: ReplyRule| {
            let pattern = ReplyPattern {
                providers: rule.provider.into_iter().collect(),
                code: rule.code,
                when: None,
                words: rule.text.into_iter().collect(),
            };
            (pattern, rule.action)
        };
        Self(rules.into_iter().map(row).collect())
    }

    /// What a reply means, and what it calls for.
    #[must_use]
    pub fn classify(&self, heard: &ClassifierInput<'_>) -> Classification {
        let meaning = table::classify(heard);
        let own = self.0.iter().find(|(pattern, _)| pattern.matches(heard)).map(|(_, action)| *action);
        Classification { action: own.or(meaning.action), ..meaning }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::outcome::AttemptPhase;
    use crate::reply::{Enhanced, SmtpReply};

    #[test]
    fn the_operators_rows_come_first() {
        let rule = |provider: Option<&str>, code: Option<&str>, text: Option<&str>, action| ReplyRule {
            provider: provider.map(|name| name.parse().unwrap()),
            code: code.map(|code| code.parse().unwrap()),
            text: text.map(TextPattern::new),
            action,
        };
        let shaping = ReplyRules::new([
            rule(Some("google.com"), Some("4.7.*"), None, ReplyAction::Permanent),
            rule(None, None, Some("Come Back"), ReplyAction::Temporary),
        ]);
        let of = |host, reply: &SmtpReply| {
            shaping.classify(&ClassifierInput::new(Some(host), reply, AttemptPhase::Final)).action
        };
        let slow = SmtpReply::new(421, Enhanced::new(4, 7, 28), "an unusual rate of mail");
        assert_eq!(of("aspmx.l.google.com", &slow), Some(ReplyAction::Permanent));
        assert_eq!(of("mx.example.net", &slow), None);
        assert_eq!(
            of("mx.example.net", &SmtpReply::without_enhanced(550, "come back later")),
            Some(ReplyAction::Temporary)
        );
        let usual = ReplyRules::default();
        let heard = ClassifierInput::new(Some("aspmx.l.google.com"), &slow, AttemptPhase::Final);
        assert_eq!(usual.classify(&heard).action, Some(ReplyAction::SlowDown));
    }

    #[test]
    fn only_a_pause_has_a_time() {
        let hour = Duration::from_secs(3600);
        assert_eq!(ReplyAction::parse("pause", None), Ok(ReplyAction::Pause(PAUSE_DEFAULT)));
        assert_eq!(ReplyAction::parse("pause", Some(hour)), Ok(ReplyAction::Pause(hour)));
        assert_eq!(ReplyAction::parse("back-off", None), Ok(ReplyAction::BackOff));
        assert!(ReplyAction::parse("back-off", Some(hour)).is_err() && ReplyAction::parse("stop", None).is_err());
    }
}
