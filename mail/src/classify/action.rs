//! What a reply calls for at the site that gave it: slow down, back off, pause; or that its code says the wrong
//! thing, later for never or never for later.

use std::fmt;
use std::time::Duration;

use crate::address::Name;

use super::pattern::{Code, Heard, Pattern, Words};
use super::{Meaning, table};

/// What a reply calls for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
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
const WORDS: [(&str, Action); 4] = [
    ("slow-down", Action::SlowDown),
    ("back-off", Action::BackOff),
    ("permanent", Action::Permanent),
    ("temporary", Action::Temporary),
];
/// The word for the one with a time.
const PAUSE: &str = "pause";
/// How long a site is left alone unless it is said.
pub const PAUSE_FOR: Duration = Duration::from_secs(15 * 60);

impl Action {
    /// The action of a word, with how long it is to be done.
    ///
    /// # Errors
    /// There is no such action, or it is not done for a time.
    pub fn of_word(word: &str, lasts: Option<Duration>) -> Result<Self, String> {
        if word == PAUSE {
            return Ok(Self::Pause(lasts.unwrap_or(PAUSE_FOR)));
        }
        let known = WORDS.iter().find(|(known, _)| *known == word).map(|(_, action)| *action);
        let action = known.ok_or_else(|| {
            format!(
                "`{word}` is no action: \"slow-down\", \"back-off\", \"pause\", \"permanent\", \"temporary\""
            )
        })?;
        if lasts.is_some() {
            return Err(format!("`for` goes with `action = \"{PAUSE}\"`"));
        }
        Ok(action)
    }

    /// Whether the site is not to be asked for a while: then what it just refused may be tried again after it.
    #[must_use]
    pub fn leaves_alone(self) -> bool {
        matches!(self, Self::BackOff | Self::Pause(_))
    }
}

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Pause(lasts) => write!(f, "{PAUSE}, {} min", lasts.as_secs() / 60),
            other => f.write_str(WORDS.iter().find(|(_, known)| known == other).map_or("", |(word, _)| word)),
        }
    }
}

/// A row of the operator's: which replies, and what they call for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rule {
    /// The host, or the domain that it lies under; none is every host.
    pub provider: Option<Name>,
    /// The code; none is any.
    pub code: Option<Code>,
    /// Words of the text; none is any text.
    pub text: Option<Words>,
    /// What is done.
    pub action: Action,
}

/// What replies call for: the operator's rows, then those that everybody has.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Shaping(Vec<(Pattern, Action)>);

impl Shaping {
    /// With these rows before those that everybody has; the first that matches counts.
    #[must_use]
    pub fn new(rules: impl IntoIterator<Item = Rule>) -> Self {
        let row = |rule: Rule| {
            let pattern = Pattern {
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
    pub fn meaning(&self, heard: &Heard<'_>) -> Meaning {
        let meaning = table::look_up(heard);
        let own = self.0.iter().find(|(pattern, _)| pattern.matches(heard)).map(|(_, action)| *action);
        Meaning { action: own.or(meaning.action), ..meaning }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::outcome::Phase;
    use crate::reply::{Enhanced, Reply};

    #[test]
    fn the_operators_rows_come_first() {
        let rule = |provider: Option<&str>, code: Option<&str>, text: Option<&str>, action| Rule {
            provider: provider.map(|name| name.parse().unwrap()),
            code: code.map(|code| code.parse().unwrap()),
            text: text.map(Words::new),
            action,
        };
        let shaping = Shaping::new([
            rule(Some("google.com"), Some("4.7.*"), None, Action::Permanent),
            rule(None, None, Some("Come Back"), Action::Temporary),
        ]);
        let of = |host, reply: &Reply| shaping.meaning(&Heard::new(Some(host), reply, Phase::Final)).action;
        let slow = Reply::new(421, Enhanced::new(4, 7, 28), "an unusual rate of mail");
        assert_eq!(of("aspmx.l.google.com", &slow), Some(Action::Permanent));
        assert_eq!(of("mx.example.net", &slow), None);
        assert_eq!(of("mx.example.net", &Reply::plain(550, "come back later")), Some(Action::Temporary));
        let usual = Shaping::default();
        let heard = Heard::new(Some("aspmx.l.google.com"), &slow, Phase::Final);
        assert_eq!(usual.meaning(&heard).action, Some(Action::SlowDown));
    }

    #[test]
    fn only_a_pause_has_a_time() {
        let hour = Duration::from_secs(3600);
        assert_eq!(Action::of_word("pause", None), Ok(Action::Pause(PAUSE_FOR)));
        assert_eq!(Action::of_word("pause", Some(hour)), Ok(Action::Pause(hour)));
        assert_eq!(Action::of_word("back-off", None), Ok(Action::BackOff));
        assert!(Action::of_word("back-off", Some(hour)).is_err() && Action::of_word("stop", None).is_err());
    }
}
