//! What the operator can have done to a task in the queue.

use mail::destination::RouteOverride;

/// An order about tasks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum QueueCommand {
    /// Try it now, whenever it is due.
    Retry,
    /// Do not try it.
    Hold,
    /// Try it again as it is due.
    Release,
    /// Take it out: its recipients are cancelled.
    Drop,
    /// It goes this way; none is: the usual one.
    Reroute(Option<RouteOverride>),
}

const COMMAND_WORDS: [(&str, QueueCommand); 6] = [
    ("retry", QueueCommand::Retry),
    ("hold", QueueCommand::Hold),
    ("release", QueueCommand::Release),
    ("drop", QueueCommand::Drop),
    ("reroute usual", QueueCommand::Reroute(None)),
    ("reroute mx", QueueCommand::Reroute(Some(RouteOverride::MailHosts))),
];
const REROUTE_BY_PREFIX: &str = "reroute by ";

impl QueueCommand {
    /// The words for it, as it is left for whoever carries it out.
    #[must_use]
    pub fn word(&self) -> String {
        match self {
            Self::Reroute(Some(RouteOverride::Smarthost(name))) => format!("{REROUTE_BY_PREFIX}{name}"),
            order => {
                let found = COMMAND_WORDS.iter().find(|(_, known)| known == order);
                found.map_or_else(String::new, |(word, _)| (*word).to_owned())
            }
        }
    }

    /// The order of these words.
    #[must_use]
    pub fn from_word(word: &str) -> Option<Self> {
        match word.strip_prefix(REROUTE_BY_PREFIX) {
            Some(name) => Some(Self::Reroute(Some(RouteOverride::Smarthost(name.parse().ok()?)))),
            None => COMMAND_WORDS.iter().find(|(known, _)| *known == word).map(|(_, order)| order.clone()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_there_and_back() {
        let by = QueueCommand::Reroute(Some(RouteOverride::Smarthost("partner".parse().unwrap())));
        for order in COMMAND_WORDS.iter().map(|(_, order)| order).chain([&by]) {
            assert_eq!(QueueCommand::from_word(&order.word()).as_ref(), Some(order), "{order:?}");
        }
        assert_eq!(QueueCommand::from_word("reroute by "), None);
        assert_eq!(QueueCommand::from_word("bury"), None);
    }
}
