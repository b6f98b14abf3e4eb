//! Reply actions: what a reply requires at the destination that sent it.
//!
//! The destination is slowed down, backed off from or suspended, or the reply is treated as permanent or temporary
//! against its code.

use std::fmt;
use std::time::Duration;

use crate::address::DomainName;

use super::reply_pattern::{ClassifierInput, CodePattern, ReplyPattern, TextPattern};
use super::{Classification, table};

/// The action that a reply requires.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReplyAction {
    /// Reduce connections and message rate until replies are positive again.
    SlowDown,
    /// Suspend the destination; repeated suspensions take longer.
    BackOff,
    /// Suspend the destination for this time.
    Pause(Duration),
    /// Treat a 4yz reply as permanent.
    Permanent,
    /// Treat a 5yz reply as temporary.
    Temporary,
}

/// Configuration words of actions without a duration.
const WORDS: [(&str, ReplyAction); 4] = [
    ("slow-down", ReplyAction::SlowDown),
    ("back-off", ReplyAction::BackOff),
    ("permanent", ReplyAction::Permanent),
    ("temporary", ReplyAction::Temporary),
];
/// Configuration word of [`ReplyAction::Pause`].
const PAUSE: &str = "pause";
/// Default duration of [`ReplyAction::Pause`].
pub const PAUSE_DEFAULT: Duration = Duration::from_secs(15 * 60);

impl ReplyAction {
    /// Parses an action, with the duration of a pause.
    ///
    /// # Errors
    /// The word is unknown, or a duration is given for an action other than `pause`.
    pub fn parse(word: &str, duration: Option<Duration>) -> Result<Self, String> {
        if word == PAUSE {
            return Ok(Self::Pause(duration.unwrap_or(PAUSE_DEFAULT)));
        }
        let known = WORDS.iter().find(|(known, _)| *known == word).map(|(_, action)| *action);
        let action = known.ok_or_else(|| {
            format!(
                "unknown action `{word}`; use \"slow-down\", \"back-off\", \"pause\", \"permanent\" or \"temporary\""
            )
        })?;
        if duration.is_some() {
            return Err(format!("`for` requires `action = \"{PAUSE}\"`"));
        }
        Ok(action)
    }
}

impl fmt::Display for ReplyAction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Pause(duration) => match duration.as_secs() {
                seconds if seconds.is_multiple_of(60) => write!(f, "{PAUSE}, {} min", seconds / 60),
                seconds => write!(f, "{PAUSE}, {seconds} s"),
            },
            other => f.write_str(WORDS.iter().find(|(_, known)| known == other).map_or("", |(word, _)| word)),
        }
    }
}

/// A rule that the operator configured.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReplyRule {
    /// A host name or a parent domain of it; `None` for any host.
    pub provider: Option<DomainName>,
    /// `None` for any code.
    pub code: Option<CodePattern>,
    /// `None` for any text.
    pub text: Option<TextPattern>,
    pub action: ReplyAction,
}

/// The operator's rules, which take precedence over the built-in table.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ReplyRules(Vec<(ReplyPattern, ReplyAction)>);

impl ReplyRules {
    /// Creates rules from the operator's configuration. The first match wins; the built-in table follows.
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

    /// Classifies a reply. The operator's rules replace the action of the built-in table, not its category.
    pub fn classify(&self, input: &ClassifierInput<'_>) -> Classification {
        let builtin = table::classify(input);
        let own = self.0.iter().find(|(pattern, _)| pattern.matches(input)).map(|(_, action)| *action);
        Classification { action: own.or(builtin.action), ..builtin }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::outcome::AttemptPhase;
    use crate::reply::{Enhanced, SmtpReply};

    #[test]
    fn the_operators_rules_take_precedence() {
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
        let action_of = |host, reply: &SmtpReply| {
            shaping.classify(&ClassifierInput::new(Some(host), reply, AttemptPhase::Final)).action
        };
        let slow = SmtpReply::new(421, Enhanced::new(4, 7, 28), "an unusual rate of mail");
        assert_eq!(action_of("aspmx.l.google.com", &slow), Some(ReplyAction::Permanent));
        assert_eq!(action_of("mx.example.net", &slow), None);
        assert_eq!(
            action_of("mx.example.net", &SmtpReply::without_enhanced(550, "come back later")),
            Some(ReplyAction::Temporary)
        );
        let usual = ReplyRules::default();
        let input = ClassifierInput::new(Some("aspmx.l.google.com"), &slow, AttemptPhase::Final);
        assert_eq!(usual.classify(&input).action, Some(ReplyAction::SlowDown));
    }

    #[test]
    fn only_a_pause_has_a_duration() {
        let hour = Duration::from_secs(3600);
        assert_eq!(ReplyAction::parse("pause", None), Ok(ReplyAction::Pause(PAUSE_DEFAULT)));
        assert_eq!(ReplyAction::parse("pause", Some(hour)), Ok(ReplyAction::Pause(hour)));
        let shown = [hour, Duration::from_secs(30)].map(|time| ReplyAction::Pause(time).to_string());
        assert_eq!(shown, ["pause, 60 min", "pause, 30 s"]);
        assert_eq!(ReplyAction::parse("back-off", None), Ok(ReplyAction::BackOff));
        assert!(ReplyAction::parse("back-off", Some(hour)).is_err() && ReplyAction::parse("stop", None).is_err());
    }
}
