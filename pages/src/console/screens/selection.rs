//! The filters of queued mail: read from the query, as fields of a request, and in words.

use jiff::Timestamp;
use serde_json::Map;

use crate::console::duration;
use crate::dashboard::prelude::*;

/// The filters that a command can take.
const FILTERS: &[&str] = &["to", "account", "from", "class", "older", "attempts", "held"];
/// The filters that only a list can take.
const SEARCHES: &[&str] = &["recipient", "sender", "message_id"];
/// Rows of the queue read to count a selection.
const COUNTED_ROWS_MAX: u64 = 100_000;
const CLASSES: &[&str] = &["expiring", "transactional", "product", "newsletter"];

/// A selection of queued recipients.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct MailSelection {
    /// `QueueFilter` of the request.
    filter: Map<String, Value>,
    /// `QueueSearch` of the request.
    search: Map<String, Value>,
    /// The parts in words.
    words: Vec<String>,
}

impl MailSelection {
    /// Reads the filters of a query.
    ///
    /// # Errors
    /// A duration or a number is none.
    pub(super) fn read(query: &Fields) -> Result<Self, Failure> {
        let (mut filter, mut search, mut words) = (Map::new(), Map::new(), Vec::new());
        let mut text = |name: &str, word: &str, into: &mut Map<String, Value>| {
            let value = query.get(name).trim();
            if !value.is_empty() {
                into.insert(name.to_owned(), value.into());
                words.push(format!("{word} {value}"));
            }
        };
        text("to", "to", &mut filter);
        text("from", "from the domain", &mut filter);
        text("account", "of the account", &mut filter);
        text("class", "of the class", &mut filter);
        text("recipient", "to the address", &mut search);
        text("sender", "from the address", &mut search);
        text("message_id", "with the Message-ID", &mut search);
        if let Some(seconds) = duration::parse("older", query.get("older"))? {
            filter.insert("older_seconds".to_owned(), seconds.into());
            words.push(format!("older than {}", duration::text(seconds)));
        }
        let attempts = query.get("attempts").trim();
        if !attempts.is_empty() {
            let attempts: u32 =
                attempts.parse().map_err(|_| Failure::field("attempts", "Enter a number of attempts"))?;
            filter.insert("attempts_min".to_owned(), attempts.into());
            words.push(format!("attempted at least {attempts} times"));
        }
        if query.get("held") == "held" {
            filter.insert("held".to_owned(), true.into());
            words.push("held".to_owned());
        }
        Ok(Self { filter, search, words })
    }

    /// True if a command can select the same: it knows no addresses and Message-IDs.
    pub(super) fn is_for_commands(&self) -> bool {
        self.search.is_empty()
    }

    /// True if the selection is the whole queue.
    pub(super) fn is_everything(&self) -> bool {
        self.filter.is_empty() && self.search.is_empty()
    }

    /// `to example.com, older than 2h`.
    pub(super) fn words(&self) -> String {
        self.words.join(", ")
    }

    /// Reads the selection of a command. A search cannot select for one, and a name that is not known could be a
    /// mistyped filter: without it the command would hit more than is meant.
    ///
    /// # Errors
    /// The query has a search, an unknown name, or an invalid filter.
    pub(super) fn read_for_commands(query: &Fields) -> Result<Self, Failure> {
        let is_own = |name: &str| FILTERS.contains(&name) || name == "done";
        match query.iter().find(|(name, value)| !is_own(name) && !value.trim().is_empty()) {
            Some((name, _)) => {
                let message = format!("A command cannot select mail by “{name}”; use the filters of the list");
                Err(Failure::new(400, "validation_error", message))
            }
            None => Self::read(query),
        }
    }

    /// Lists a page of the selection.
    pub(super) fn list(&self, limit: u64, cursor: &str) -> Call {
        let mut body = json!({"limit": limit, "filter": self.filter, "search": self.search});
        if !cursor.is_empty() {
            body["cursor"] = cursor.into();
        }
        Call::new("queue_list").json(body)
    }

    /// Counts the selection, in a limited number of rows of the queue.
    pub(super) fn count(&self) -> Call {
        Call::new("queue_count").json(json!({"filter": self.filter, "rows_max": COUNTED_ROWS_MAX}))
    }

    /// Runs a command on the selection.
    pub(super) fn command(&self, order: &str) -> Call {
        Call::new("queue_many").json(json!({"order": order, "filter": self.filter}))
    }

    /// Runs a command on the part of the selection that was accepted before a time.
    pub(super) fn command_before(&self, order: &str, before: Timestamp) -> Call {
        let mut filter = self.filter.clone();
        filter.insert("accepted_before".to_owned(), before.to_string().into());
        Call::new("queue_many").json(json!({"order": order, "filter": filter}))
    }
}

/// The query of a selection, without the page's own fields.
pub(super) fn selection_query(query: &Fields) -> String {
    let is_filter = |name: &str| FILTERS.contains(&name);
    let kept = query.iter().filter(|(name, _)| is_filter(name));
    Fields::from_pairs(kept.map(|(name, value)| (name.to_owned(), value.to_owned())).collect()).to_query()
}

/// True if a filter of the query is set.
pub(super) fn is_filtered(query: &Fields) -> bool {
    FILTERS.iter().chain(SEARCHES).any(|name| !query.get(name).trim().is_empty())
}

/// The controls.
pub(super) fn filters() -> Vec<Filter> {
    let held = choices(&[("", "All"), ("held", "Held")]);
    vec![
        Filter::text("to", "Recipient domain", "example.com"),
        Filter::text("account", "Account", "acct_… or owner"),
        Filter::select("held", "State", held),
        Filter::text("older", "Older than", "2h"),
        Filter::text("recipient", "Recipient", "ann@example.com"),
        Filter::text("sender", "Sender", "ada@example.com"),
        Filter::text("from", "Sending domain", "example.com"),
        Filter::words("class", "Class", CLASSES),
        Filter::text("attempts", "Minimum attempts", "1"),
        Filter::text("message_id", "Message-ID", "<id@example.com>"),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dashboard::backend::CallBody;

    #[test]
    fn a_query_becomes_a_filter() {
        let query = Fields::parse(b"to=a.example&older=2h&attempts=3&held=held&cursor=00&sender=");
        let selection = MailSelection::read(&query).unwrap();
        assert_eq!(selection.words(), "to a.example, older than 2h, attempted at least 3 times, held");
        let expected = json!({"to": "a.example", "older_seconds": 7200, "attempts_min": 3, "held": true});
        assert_eq!(selection.count().body, CallBody::Json(json!({"filter": expected, "rows_max": 100_000})));
        assert_eq!(selection_query(&query), "to=a.example&older=2h&attempts=3&held=held");
        assert!(selection.is_for_commands() && !selection.is_everything());
        assert!(MailSelection::read(&Fields::parse(b"older=soon")).is_err());
        assert!(MailSelection::read(&Fields::parse(b"attempts=-1")).is_err());
        assert!(!MailSelection::read(&Fields::parse(b"recipient=a%40b.example")).unwrap().is_for_commands());
    }
}
