//! The table of replies that everybody has: `table.txt`, read once.
//!
//! The first row that matches counts. Rows of a provider stand before those of everybody.

use std::sync::LazyLock;
use std::time::Duration;

use super::action::Action;
use super::pattern::{Heard, Pattern, Words};
use super::{Meaning, Reason};
use crate::address::Name;

const TEXT: &str = include_str!("table.txt");

/// Read at the first reply; that every line can be read is a test.
static ROWS: LazyLock<Vec<Row>> = LazyLock::new(|| read(TEXT).unwrap_or_default());

/// What replies of a kind mean.
#[derive(Debug)]
struct Row {
    pattern: Pattern,
    meaning: Meaning,
}

/// What a reply means.
pub(super) fn look_up(heard: &Heard<'_>) -> Meaning {
    let row = ROWS.iter().find(|row| row.pattern.matches(heard));
    // The last rows match everything.
    row.map_or(Meaning { reason: Reason::Undetermined, action: None }, |row| row.meaning)
}

/// The provider whose name, or one above it, a mail host has.
pub(super) fn provider(host: &Name) -> Option<&'static Name> {
    let is_of = |row: &&Row| row.pattern.providers.iter().any(|name| is_at_or_below(host, name));
    ROWS.iter().find(is_of).and_then(|row| row.pattern.providers.first())
}

fn is_at_or_below(host: &Name, name: &Name) -> bool {
    let below = host.as_str().strip_suffix(name.as_str());
    below.is_some_and(|below| below.is_empty() || below.ends_with('.'))
}

/// What words mean by themselves, whoever says them, with whatever code.
pub(super) fn look_up_words(text: &str) -> Option<Reason> {
    let worded = |row: &&Row| {
        let Pattern { providers, code, when, words } = &row.pattern;
        providers.is_empty() && code.is_none() && when.is_none() && words.iter().any(|w| w.are_in(text))
    };
    ROWS.iter().find(worded).map(|row| row.meaning.reason)
}

fn read(text: &str) -> Result<Vec<Row>, String> {
    let mut providers = Vec::new();
    let mut rows = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let line = line.trim();
        let wrong = |what: String| format!("line {}: {what}", number + 1);
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        if let Some(names) = line.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
            let names = names.split_whitespace().filter(|name| *name != "*");
            providers = names.map(str::parse).collect::<Result<_, _>>().map_err(|e| wrong(format!("{e}")))?;
            continue;
        }
        let (meaning, pattern) = read_row(line).map_err(wrong)?;
        rows.push(Row { pattern: Pattern { providers: providers.clone(), ..pattern }, meaning });
    }
    Ok(rows)
}

/// `category[/action]  code  when  words | words`, with `-` for any code and any time.
fn read_row(line: &str) -> Result<(Meaning, Pattern), String> {
    let mut rest = line;
    let mut column = || {
        let (word, tail) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
        rest = tail.trim_start();
        word
    };
    let (meaning, code, when) = (column(), column(), column());
    let given = |text: &'static str, word: &str| (word != text).then(|| word.to_owned());
    let (reason, action) = meaning.split_once('/').map_or((meaning, None), |(r, a)| (r, Some(a)));
    let reason = Reason::of_word(reason).ok_or_else(|| format!("`{reason}` is no category"))?;
    let action = action.map(read_action).transpose()?;
    let code = given("-", code).map(|code| code.parse()).transpose()?;
    let when = given("-", when).map(|when| when.parse()).transpose()?;
    // A quoted one begins or ends with a space: a whole word is meant.
    let words = rest.split(" | ").filter(|words| !words.trim().is_empty());
    let words = words.map(|words| Words::new(words.trim().trim_matches('"'))).collect();
    Ok((Meaning { reason, action }, Pattern { providers: Vec::new(), code, when, words }))
}

/// `slow-down`, `pause:2h`.
fn read_action(text: &str) -> Result<Action, String> {
    let Some((word, hours)) = text.split_once(':') else { return Action::of_word(text, None) };
    let hours = hours.strip_suffix('h').and_then(|hours| hours.parse::<u64>().ok());
    let hours = hours.ok_or_else(|| format!("`{text}` has no hours"))?;
    Action::of_word(word, Some(Duration::from_secs(hours * 3600)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_of_one_provider_are_known_by_one_name() {
        for (host, expected) in [
            ("gmail-smtp-in.l.google.com", Some("google.com")),
            ("alt1.gmail-smtp-in.googlemail.com", Some("google.com")),
            ("acme-com.mail.protection.outlook.com", Some("outlook.com")),
            ("acme-com.k-v1.mx.microsoft", Some("outlook.com")),
            ("mta5.am0.yahoodns.net", Some("yahoodns.net")),
            ("notgoogle.com", None),
            ("mx.example.net", None),
        ] {
            let found = provider(&host.parse().unwrap()).map(Name::as_str);
            assert_eq!(found, expected, "{host}");
        }
    }

    #[test]
    fn every_line_of_the_table_is_read() {
        let rows = read(TEXT).unwrap();
        assert!(rows.len() > 100, "{}", rows.len());
        let words = rows.iter().flat_map(|row| &row.pattern.words).map(ToString::to_string);
        let odd: Vec<_> = words.filter(|w| w.contains('"') || w.trim().is_empty()).collect();
        assert!(odd.is_empty(), "quotes stand around all of it or nowhere: {odd:?}");
        let shadowed: Vec<_> = rows.iter().filter(|row| row.pattern == Pattern::default()).collect();
        assert_eq!(shadowed.len(), 1, "the last row is for all the rest");
        assert_eq!(rows.last().unwrap().pattern, Pattern::default());
    }
}
