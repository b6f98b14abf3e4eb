//! Queue commands of the operator, and their stored form.

use model::destination::RouteOverride;

/// A command for queued tasks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum QueueCommand {
    /// Attempt the task now, whatever its due time.
    Retry,
    /// Do not attempt the task until it is released.
    Hold,
    /// Resume a held task at its due time.
    Release,
    /// Remove the task and cancel its recipient.
    Drop,
    /// End the task as a permanent failure. The account gets `email.failed`; a sender by SMTP gets a delivery status
    /// notification, unless its NOTIFY (RFC 3461 4.1) or null return path excludes that.
    Fail,
    /// Send by this route; `None` restores the default route.
    Reroute(Option<RouteOverride>),
}

const COMMAND_WORDS: [(&str, QueueCommand); 7] = [
    ("retry", QueueCommand::Retry),
    ("hold", QueueCommand::Hold),
    ("release", QueueCommand::Release),
    ("drop", QueueCommand::Drop),
    ("fail", QueueCommand::Fail),
    ("reroute usual", QueueCommand::Reroute(None)),
    ("reroute mx", QueueCommand::Reroute(Some(RouteOverride::MailHosts))),
];
const REROUTE_BY_PREFIX: &str = "reroute by ";

impl QueueCommand {
    /// Returns the stored form of the command.
    pub fn word(&self) -> String {
        match self {
            Self::Reroute(Some(RouteOverride::Smarthost(name))) => format!("{REROUTE_BY_PREFIX}{name}"),
            order => {
                let found = COMMAND_WORDS.iter().find(|(_, command)| command == order);
                found.map_or_else(String::new, |(word, _)| (*word).to_owned())
            }
        }
    }

    /// Parses the stored form of a command.
    pub fn from_word(word: &str) -> Option<Self> {
        match word.strip_prefix(REROUTE_BY_PREFIX) {
            Some(name) => Some(Self::Reroute(Some(RouteOverride::Smarthost(name.parse().ok()?)))),
            None => COMMAND_WORDS.iter().find(|(command, _)| *command == word).map(|(_, order)| order.clone()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_parsed_from_their_stored_form() {
        let reroute = QueueCommand::Reroute(Some(RouteOverride::Smarthost("partner".parse().unwrap())));
        for order in COMMAND_WORDS.iter().map(|(_, order)| order).chain([&reroute]) {
            assert_eq!(QueueCommand::from_word(&order.word()).as_ref(), Some(order), "{order:?}");
        }
        assert_eq!(QueueCommand::from_word("reroute by "), None);
        assert_eq!(QueueCommand::from_word("bury"), None);
    }
}
