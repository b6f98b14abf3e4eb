//! The built-in classification table: `table.txt`, parsed once.
//!
//! The first matching row wins. Rows of a provider precede the general rows.

use std::sync::LazyLock;
use std::time::Duration;

use super::reply_action::ReplyAction;
use super::reply_pattern::{ClassifierInput, ReplyPattern, TextPattern};
use super::{BounceClass, Classification};
use crate::address::DomainName;

const TABLE_TEXT: &str = include_str!("table.txt");

/// Parsed at the first use. A test ensures that every line is valid.
static RULES: LazyLock<Vec<ClassificationRule>> = LazyLock::new(|| parse_table(TABLE_TEXT).unwrap_or_default());

/// A row of the table.
#[derive(Debug)]
struct ClassificationRule {
    pattern: ReplyPattern,
    meaning: Classification,
}

/// Classifies a reply by the first matching row.
pub(super) fn classify(input: &ClassifierInput<'_>) -> Classification {
    let row = RULES.iter().find(|row| row.pattern.matches(input));
    // The last row matches every reply.
    row.map_or(Classification { reason: BounceClass::Undetermined, action: None }, |row| row.meaning)
}

/// The mailbox provider that operates a mail host, by its name or a parent domain. All hosts of a provider share one
/// view of a sender's reputation.
pub fn mailbox_provider(host: &DomainName) -> Option<&'static DomainName> {
    let is_of_provider = |row: &&ClassificationRule| row.pattern.providers.iter().any(|name| host.is_within(name));
    RULES.iter().find(is_of_provider).and_then(|row| row.pattern.providers.first())
}

/// Classifies a text by the rows that depend on nothing but text.
pub(super) fn classify_text(text: &str) -> Option<BounceClass> {
    let worded = |row: &&ClassificationRule| {
        let ReplyPattern { providers, code, when, words } = &row.pattern;
        providers.is_empty() && code.is_none() && when.is_none() && words.iter().any(|w| w.matches(text))
    };
    RULES.iter().find(worded).map(|row| row.meaning.reason)
}

fn parse_table(text: &str) -> Result<Vec<ClassificationRule>, String> {
    let mut providers = Vec::new();
    let mut rows = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let line = line.trim();
        let wrong = |error: String| format!("line {}: {error}", number + 1);
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        if let Some(names) = line.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
            let names = names.split_whitespace().filter(|name| *name != "*");
            providers = names.map(str::parse).collect::<Result<_, _>>().map_err(|e| wrong(format!("{e}")))?;
            continue;
        }
        let (meaning, pattern) = parse_row(line).map_err(wrong)?;
        rows.push(ClassificationRule { pattern: ReplyPattern { providers: providers.clone(), ..pattern }, meaning });
    }
    Ok(rows)
}

/// Parses `category[/action]  code  when  words | words`, with `-` for any code or any stage.
fn parse_row(line: &str) -> Result<(Classification, ReplyPattern), String> {
    let mut rest = line;
    let mut column = || {
        let (word, tail) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
        rest = tail.trim_start();
        word
    };
    let (meaning, code, when) = (column(), column(), column());
    let given = |text: &'static str, word: &str| (word != text).then(|| word.to_owned());
    let (reason, action) = meaning.split_once('/').map_or((meaning, None), |(r, a)| (r, Some(a)));
    let reason = BounceClass::from_word(reason).ok_or_else(|| format!("unknown category `{reason}`"))?;
    let action = action.map(parse_action).transpose()?;
    let code = given("-", code).map(|code| code.parse()).transpose()?;
    let when = given("-", when).map(|when| when.parse()).transpose()?;
    // A text in quotes keeps its leading or trailing space, to match a whole word.
    let words = rest.split(" | ").filter(|words| !words.trim().is_empty());
    let words = words.map(|words| TextPattern::new(words.trim().trim_matches('"'))).collect();
    Ok((Classification { reason, action }, ReplyPattern { providers: Vec::new(), code, when, words }))
}

/// Parses `slow-down` or `pause:2h`.
fn parse_action(text: &str) -> Result<ReplyAction, String> {
    let Some((word, hours)) = text.split_once(':') else { return ReplyAction::parse(text, None) };
    let hours = hours.strip_suffix('h').and_then(|hours| hours.parse::<u64>().ok());
    let hours = hours.ok_or_else(|| format!("`{text}` has no duration in hours"))?;
    ReplyAction::parse(word, Some(Duration::from_secs(hours * 3600)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_of_one_provider_map_to_one_name() {
        for (host, expected) in [
            ("gmail-smtp-in.l.google.com", Some("google.com")),
            ("alt1.gmail-smtp-in.googlemail.com", Some("google.com")),
            ("acme-com.mail.protection.outlook.com", Some("outlook.com")),
            ("acme-com.k-v1.mx.microsoft", Some("outlook.com")),
            ("mta5.am0.yahoodns.net", Some("yahoodns.net")),
            ("notgoogle.com", None),
            ("mx.example.net", None),
        ] {
            let found = mailbox_provider(&host.parse().unwrap()).map(DomainName::as_str);
            assert_eq!(found, expected, "{host}");
        }
    }

    #[test]
    fn every_line_of_the_table_is_valid() {
        let rows = parse_table(TABLE_TEXT).unwrap();
        assert!(rows.len() > 100, "{}", rows.len());
        let words = rows.iter().flat_map(|row| &row.pattern.words).map(ToString::to_string);
        let odd: Vec<_> = words.filter(|w| w.contains('"') || w.trim().is_empty()).collect();
        assert!(odd.is_empty(), "quotes must enclose the whole text: {odd:?}");
        let shadowed: Vec<_> = rows.iter().filter(|row| row.pattern == ReplyPattern::default()).collect();
        assert_eq!(shadowed.len(), 1, "only the last row matches every reply");
        assert_eq!(rows.last().unwrap().pattern, ReplyPattern::default());
    }
}
