//! What the operator can have done to a task in the queue.

use mail::destination::Way;

/// An order about tasks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Order {
    /// Try it now, whenever it is due.
    Retry,
    /// Do not try it.
    Hold,
    /// Try it again as it is due.
    Release,
    /// Take it out: its recipients are cancelled.
    Drop,
    /// It goes this way; none is: the usual one.
    Reroute(Option<Way>),
}

const WORDS: [(&str, Order); 6] = [
    ("retry", Order::Retry),
    ("hold", Order::Hold),
    ("release", Order::Release),
    ("drop", Order::Drop),
    ("reroute usual", Order::Reroute(None)),
    ("reroute mx", Order::Reroute(Some(Way::MailHosts))),
];
const BY: &str = "reroute by ";

impl Order {
    /// The words for it, as it is left for whoever carries it out.
    #[must_use]
    pub fn word(&self) -> String {
        match self {
            Self::Reroute(Some(Way::Smarthost(name))) => format!("{BY}{name}"),
            order => {
                let found = WORDS.iter().find(|(_, known)| known == order);
                found.map_or_else(String::new, |(word, _)| (*word).to_owned())
            }
        }
    }

    /// The order of these words.
    #[must_use]
    pub fn of_word(word: &str) -> Option<Self> {
        match word.strip_prefix(BY) {
            Some(name) => Some(Self::Reroute(Some(Way::Smarthost(name.parse().ok()?)))),
            None => WORDS.iter().find(|(known, _)| *known == word).map(|(_, order)| order.clone()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_there_and_back() {
        let by = Order::Reroute(Some(Way::Smarthost("partner".parse().unwrap())));
        for order in WORDS.iter().map(|(_, order)| order).chain([&by]) {
            assert_eq!(Order::of_word(&order.word()).as_ref(), Some(order), "{order:?}");
        }
        assert_eq!(Order::of_word("reroute by "), None);
        assert_eq!(Order::of_word("bury"), None);
    }
}
