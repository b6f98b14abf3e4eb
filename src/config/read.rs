//! Reads the configuration and reports every problem with its line.
//!
//! ```text
//! text ─► table with the position of every key ─► invalid keys are reported and removed, until the rest is valid
//!      ─► environment variables applied one by one ─► check.rs: contradictory and impossible values
//! ```
//!
//! So one `check` reports all problems: those of the file with their line, those of the environment
//! (`POSTRIDER_API_LISTEN=127.0.0.1:8025` sets `listen` in `[api]`) with their variable.

use std::borrow::Cow;
use std::fmt;
use std::path::Path;

use serde::Deserialize as _;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::explain::{Key, explain, explain_syntax, is_unknown_key};
use super::fault::ConfigFault;
use super::{Config, check, files};

/// Prefix of environment variables that override the file.
const PREFIX: &str = "POSTRIDER_";
/// Variables of clients (command line and SDKs), which the server ignores.
const CLIENT_VARIABLES: [&str; 3] = ["POSTRIDER_API_KEY", "POSTRIDER_BASE_URL", "POSTRIDER_PROFILE"];
/// Maximum number of problems reported.
const PROBLEMS_MAX: usize = 50;
/// Replaces a missing `hostname` while the other keys are checked (RFC 6761 6.4: `.invalid` never resolves).
const PLACEHOLDER_HOSTNAME: &str = "hostname.invalid";

/// A problem of the configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigProblem {
    /// Line in the file, from 1; none if the problem has no line.
    pub line: Option<usize>,
    /// Description of the problem and its fix.
    pub text: String,
}

impl fmt::Display for ConfigProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            Some(line) => write!(f, "line {line}: {}", self.text),
            None => f.write_str(&self.text),
        }
    }
}

/// Reads a file, applies the process's environment, and checks files and addresses on this machine.
pub fn from_file(file: &Path) -> Result<Config, Vec<ConfigProblem>> {
    read_config(&read_text(file)?, environment(), check::check_machine)
}

/// Reads a file as [`from_file`] does, without checking this machine. Used by commands that only need the server's
/// location, and by `doctor`.
pub fn from_file_alone(file: &Path) -> Result<Config, Vec<ConfigProblem>> {
    from_text(&read_text(file)?, environment())
}

/// Reads the file's text. The problem does not name the file: callers print its path before each problem.
fn read_text(file: &Path) -> Result<String, Vec<ConfigProblem>> {
    std::fs::read_to_string(file)
        .map_err(|error| vec![ConfigProblem { line: None, text: files::file_error_reason(&error) }])
}

/// Parses a text and applies an environment, without checking this machine.
pub fn from_text(
    text: &str,
    environment: impl IntoIterator<Item = (String, String)>,
) -> Result<Config, Vec<ConfigProblem>> {
    read_config(text, environment, |_| Vec::new())
}

/// Variables of the process's environment with our prefix. Invalid UTF-8 in a value is replaced.
pub fn environment() -> Vec<(String, String)> {
    let text = |(name, value): (std::ffi::OsString, std::ffi::OsString)| {
        let name = name.into_string().ok().filter(|name| name.starts_with(PREFIX))?;
        Some((name, value.to_string_lossy().into_owned()))
    };
    std::env::vars_os().filter_map(text).collect()
}

fn read_config(
    text: &str,
    environment: impl IntoIterator<Item = (String, String)>,
    check_more: impl FnOnce(&Config) -> Vec<ConfigFault>,
) -> Result<Config, Vec<ConfigProblem>> {
    let (document, syntax_errors) = DeTable::parse_recoverable(text);
    if !syntax_errors.is_empty() {
        let to_problem = |error: &toml::de::Error| problem_from_error(text, error);
        return Err(sort_by_line(syntax_errors.iter().take(PROBLEMS_MAX).map(to_problem).collect()));
    }
    let (mut table, mut problems) = strip_invalid_keys(text, document.clone());
    let (mut variables, mut ignored) = (Vec::new(), Vec::new());
    for (variable, value) in environment {
        let Some(path) = variable.strip_prefix(PREFIX) else { continue };
        if CLIENT_VARIABLES.contains(&variable.as_str()) {
            continue;
        }
        let (section, key) = split_variable_name(path);
        match apply_variable(&table, section, &key, &value) {
            Ok(updated) => {
                table = updated;
                variables.push((section, key, variable));
            }
            // A variable of another program or of a later version must not prevent the start.
            Err(error) if is_unknown_key(&error) => ignored.push(variable),
            Err(error) => {
                let key = Key { section: section.to_owned(), name: key };
                problems.push(ConfigProblem { line: None, text: format!("{variable}: {}", explain(&error, &key)) });
            }
        }
    }
    if table.get("hostname").and_then(toml::Value::as_str) == Some(PLACEHOLDER_HOSTNAME)
        && !document.get_ref().contains_key("hostname")
    {
        problems.push(ConfigProblem {
            line: None,
            text: "`hostname` is missing (example: hostname = \"mx1.example.net\")".to_owned(),
        });
    }
    let config = match deserialize(&table) {
        Ok(config) => Config { ignored_variables: ignored, ..config },
        Err(error) => {
            problems.push(ConfigProblem { line: None, text: explain(&error, &Key::default()) });
            return Err(sort_by_line(problems));
        }
    };
    // Removed keys may cause further problems: other checks run when these problems are fixed.
    if !problems.is_empty() {
        return Err(sort_by_line(problems));
    }
    let mut faults = check::check_values(&config);
    faults.extend(check_more(&config));
    let to_problem = |fault: ConfigFault| {
        let variable =
            variables.iter().find(|(section, key, _)| (*section, key.as_str()) == (fault.section, fault.key));
        match variable {
            Some((_, _, variable)) => ConfigProblem { line: None, text: format!("{variable}: {}", fault.text) },
            None => ConfigProblem { line: fault_line(text, document.get_ref(), &fault), text: fault.into_text() },
        }
    };
    let problems: Vec<_> = faults.into_iter().map(to_problem).collect();
    if problems.is_empty() { Ok(config) } else { Err(sort_by_line(problems)) }
}

/// Deserializes a table from its text, so that only one deserializer of the whole [`Config`] is compiled.
fn deserialize(table: &toml::Table) -> Result<Config, String> {
    toml::from_str(&table.to_string()).map_err(|error| one_line(error.message()))
}

/// Sorts by line, problems without a line last.
fn sort_by_line(mut problems: Vec<ConfigProblem>) -> Vec<ConfigProblem> {
    problems.sort_by_key(|problem| problem.line.unwrap_or(usize::MAX));
    problems
}

fn one_line(text: &str) -> String {
    text.trim().replace('\n', " ")
}

fn line_of_byte(text: &str, byte: usize) -> usize {
    text.bytes().take(byte).filter(|byte| *byte == b'\n').count() + 1
}

fn problem_from_error(text: &str, error: &toml::de::Error) -> ConfigProblem {
    let span = error.span();
    let line = span.clone().map(|span| line_of_byte(text, span.start));
    let found = span.and_then(|span| text.get(span)).unwrap_or_default();
    ConfigProblem { line, text: explain_syntax(&one_line(error.message()), found) }
}

/// Removes keys that cannot be deserialized, one by one, and reports each.
fn strip_invalid_keys(text: &str, document: Spanned<DeTable<'_>>) -> (toml::Table, Vec<ConfigProblem>) {
    let (span, mut table) = (document.span(), document.into_inner());
    let mut problems = Vec::new();
    while problems.len() < PROBLEMS_MAX {
        if !table.contains_key("hostname") {
            let value = DeValue::String(Cow::Borrowed(PLACEHOLDER_HOSTNAME));
            table.insert(Spanned::new(0..0, Cow::Borrowed("hostname")), Spanned::new(0..0, value));
        }
        let deserializer = || toml::de::Deserializer::from(Spanned::new(span.clone(), table.clone()));
        // The second step finds a value that a field accepts but TOML cannot store: an integer above 64 bits.
        let result =
            Config::deserialize(deserializer()).map(drop).and_then(|()| toml::Table::deserialize(deserializer()));
        let error = match result {
            Ok(table) => return (table, problems),
            Err(error) => error,
        };
        let key = error.span().and_then(|span| find_key_at(&table, span.start)).unwrap_or_default();
        let line = error.span().map(|span| line_of_byte(text, span.start));
        problems.push(ConfigProblem { line, text: explain(error.message(), &key) });
        if !error.span().is_some_and(|span| remove_key_at(&mut table, span.start)) {
            break;
        }
    }
    // A problem has been reported; the rest is used to find more.
    let deserializer = toml::de::Deserializer::from(Spanned::new(span, table));
    (toml::Table::deserialize(deserializer).unwrap_or_default(), problems)
}

/// Removes the innermost key at this byte of the text, by its own span or that of its value.
fn remove_key_at(table: &mut DeTable<'_>, byte: usize) -> bool {
    for (_, value) in table.iter_mut() {
        let was_removed = match value.get_mut() {
            DeValue::Table(inner) => remove_key_at(inner, byte),
            DeValue::Array(items) => items.iter_mut().any(|item| match item.get_mut() {
                DeValue::Table(inner) => remove_key_at(inner, byte),
                _ => false,
            }),
            _ => false,
        };
        if was_removed {
            return true;
        }
    }
    let entry = table.iter().find(|(key, value)| key.span().contains(&byte) || value.span().contains(&byte));
    let Some(key) = entry.map(|(key, _)| key.clone()) else { return false };
    table.remove(&key).is_some()
}

/// Finds the innermost key at this byte of the text, by its own span or that of its value.
fn find_key_at(table: &DeTable<'_>, byte: usize) -> Option<Key> {
    // A section's span covers only its header, so the section's contents are searched first.
    let nested_key = table.iter().find_map(|(name, value)| {
        let inner = match value.get_ref() {
            DeValue::Table(inner) => find_key_at(inner, byte),
            DeValue::Array(items) => items.iter().find_map(|item| match item.get_ref() {
                DeValue::Table(inner) => find_key_at(inner, byte),
                _ => None,
            }),
            _ => None,
        }?;
        let section = match inner.section.as_str() {
            "" => name.get_ref().to_string(),
            section => format!("{}.{section}", name.get_ref()),
        };
        Some(Key { section, name: inner.name })
    });
    nested_key.or_else(|| {
        let contains_byte = |span: std::ops::Range<usize>| span.contains(&byte);
        let (key, _) = table.iter().find(|(key, value)| contains_byte(key.span()) || contains_byte(value.span()))?;
        Some(Key { section: String::new(), name: key.get_ref().to_string() })
    })
}

/// Line of a key in the text of a configuration, in the `index`-th section of that name. Returns the section's line if
/// the key is missing, and none if the section is missing.
pub fn find_line(text: &str, section: &'static str, index: usize, key: &'static str) -> Option<usize> {
    let (document, _) = DeTable::parse_recoverable(text);
    fault_line(text, document.get_ref(), &ConfigFault { section, index, key, text: String::new() })
}

/// Line of a fault: of its key, or of its section.
fn fault_line(text: &str, table: &DeTable<'_>, fault: &ConfigFault) -> Option<usize> {
    let line_of_span = |span: std::ops::Range<usize>| Some(line_of_byte(text, span.start));
    let key_span = |table: &DeTable<'_>| table.get_key_value(fault.key).map(|(key, _)| key.span());
    let mut line = None;
    let mut inner = table;
    for part in fault.section.split('.').filter(|part| !part.is_empty()) {
        let Some((name, value)) = inner.get_key_value(part) else { return line };
        line = line_of_span(name.span());
        inner = match value.get_ref() {
            DeValue::Table(section) => section,
            DeValue::Array(items) => match items.get(fault.index) {
                Some(item) => {
                    line = line_of_span(item.span());
                    let DeValue::Table(section) = item.get_ref() else { return line };
                    section
                }
                None => return line,
            },
            _ => return line,
        };
    }
    key_span(inner).map_or(line, line_of_span)
}

/// Splits a variable's name into section and key. A key at the top level has an empty section.
fn split_variable_name(path: &str) -> (&'static str, String) {
    const SECTIONS: [&str; 25] = [
        "store",
        // Longer names first.
        "tls.acme",
        "tls",
        "submission",
        "mx",
        "proxy",
        "api",
        "ops",
        "log",
        "dns",
        "delivery",
        "sms",
        "webhooks",
        "billing",
        "service",
        "conversions",
        "plans.free.storage",
        "plans.pro.storage",
        "plans.scale.storage",
        "plans.dedicated.storage",
        "plans.free",
        "plans.pro",
        "plans.scale",
        "plans.dedicated",
        "testing",
    ];
    let path = path.to_ascii_lowercase();
    let in_section = |section: &&'static str| {
        Some((*section, path.strip_prefix(&section.replace('.', "_"))?.strip_prefix('_')?.to_owned()))
    };
    SECTIONS.iter().find_map(in_section).unwrap_or(("", path.clone()))
}

/// Returns the table with a variable's value set. The text is used as a string if the key accepts one (a password may
/// look like a number), otherwise parsed as TOML; lists are tried first.
fn apply_variable(table: &toml::Table, section: &str, key: &str, text: &str) -> Result<toml::Table, String> {
    let with_value = |value: toml::Value| {
        let mut changed = table.clone();
        let mut inner = &mut changed;
        for part in section.split('.').filter(|part| !part.is_empty()) {
            let entry = inner.entry(part).or_insert_with(|| toml::Value::Table(toml::Table::new()));
            inner = entry.as_table_mut().ok_or_else(|| format!("`{section}` is not a section"))?;
        }
        inner.insert(key.to_owned(), value);
        deserialize(&changed)?;
        Ok(changed)
    };
    if let Some(list) = parse_toml_value(text).filter(toml::Value::is_array)
        && let Ok(with_value) = with_value(list)
    {
        return Ok(with_value);
    }
    with_value(toml::Value::String(text.to_owned()))
        .or_else(|error| parse_toml_value(text).map_or(Err(error), with_value))
}

/// Parses a text as a TOML value (`true`, `25`, `["a", "b"]`).
fn parse_toml_value(text: &str) -> Option<toml::Value> {
    format!("value = {text}").parse::<toml::Table>().ok()?.remove("value")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problems(text: &str) -> Vec<String> {
        match from_text(text, []) {
            Ok(_) => Vec::new(),
            Err(problems) => problems.iter().map(ToString::to_string).collect(),
        }
    }

    #[test]
    fn every_problem_is_named_with_its_line() {
        let found = problems(
            "hostname = \"mx.example.net\"\n[api]\nlisten = \"nonsense\"\ncolour = 1\n[delivery]\nretry = [\"soon\"]\n",
        );
        assert_eq!(found.len(), 3, "{found:#?}");
        assert!(found.iter().any(|p| p.starts_with("line 3: ")), "{found:#?}");
        assert!(found.iter().any(|p| p.starts_with("line 4: ") && p.contains("colour")), "{found:#?}");
        assert!(found.iter().any(|p| p.starts_with("line 6: ") && p.contains("soon")), "{found:#?}");
        let found = problems("hostname = \"x y\"\n[api]\ncolour = 1\n");
        assert!(found.len() == 2 && found[0].starts_with("line 1: ") && found[1].starts_with("line 3: "), "{found:#?}");
    }

    #[test]
    fn contradictions_are_reported() {
        let found = problems("hostname = \"mx.example.net\"\n[submission]\nlisten = \"127.0.0.1:587\"\n");
        assert!(found[0].contains("certificate"), "{found:#?}");
        let found = problems(
            "hostname = \"mx.example.net\"\n[api]\nlisten = \"0.0.0.0:80\"\n[testing]\nclock_offset = \"1h\"\n",
        );
        assert!(found[0].starts_with("line 5: ") && found[0].contains("loopback"), "{found:#?}");
        assert!(problems("data_dir = \"x\"\n")[0].contains("hostname"));
    }

    #[test]
    fn the_environment_overrides_the_file() {
        let text = "hostname = \"mx.example.net\"\n[api]\nlisten = \"127.0.0.1:1\"\n";
        let variables = [
            ("POSTRIDER_API_LISTEN".to_owned(), "127.0.0.1:2".to_owned()),
            ("POSTRIDER_DELIVERY_PORT".to_owned(), "2525".to_owned()),
            ("POSTRIDER_PROXY_NETWORKS".to_owned(), "[\"10.0.0.0/8\", \"::1\"]".to_owned()),
            ("POSTRIDER_DELIVERY_PAUSED".to_owned(), "true".to_owned()),
            ("POSTRIDER_DATA_DIR".to_owned(), "/tmp/x".to_owned()),
            ("PATH".to_owned(), "/bin".to_owned()),
        ];
        let config = from_text(text, variables).unwrap();
        assert_eq!(config.api.listen, ["127.0.0.1:2".parse().unwrap()]);
        assert_eq!((config.delivery.port, config.delivery.paused), (2525, true));
        assert_eq!(config.data_dir, Path::new("/tmp/x"));
        assert_eq!(config.proxy.networks, ["10.0.0.0/8", "::1"].map(|text| text.parse().unwrap()));
        for password in ["0x1f", "1_000", "true", "1e5", "2026-11-21", "\"quoted\"", "007"] {
            let variables = [
                ("POSTRIDER_DELIVERY_SMARTHOST".to_owned(), "127.0.0.1:2".to_owned()),
                ("POSTRIDER_DELIVERY_SMARTHOST_USERNAME".to_owned(), password.to_owned()),
                ("POSTRIDER_DELIVERY_SMARTHOST_PASSWORD".to_owned(), password.to_owned()),
            ];
            let config = from_text(text, variables).unwrap();
            assert_eq!(config.delivery.smarthost_username.as_deref(), Some(password));
            assert_eq!(config.delivery.smarthost_password.unwrap().0, password);
        }
        let unknown = ["POSTRIDER_API_COLOUR", "POSTRIDER_COLOUR", "POSTRIDER_API_KEY", "POSTRIDER_PROFILE"];
        let config = from_text(text, unknown.map(|name| (name.to_owned(), "1".to_owned()))).unwrap();
        assert_eq!(
            config.ignored_variables,
            ["POSTRIDER_API_COLOUR", "POSTRIDER_COLOUR"],
            "client variables are not reported"
        );
    }

    #[test]
    fn several_problems_of_one_line_are_reported() {
        let found = problems(
            "hostname = \"mx.example.net\"\napi = { listen = \"nonsense\", colour = 1, tls = 3 }\n\
             delivery = { retry = [\"soon\", \"1m\", \"later\"] }\n",
        );
        let lines: Vec<_> = found.iter().map(|problem| &problem[..7]).collect();
        assert_eq!(lines, ["line 2:", "line 2:", "line 2:", "line 3:"], "{found:#?}");
        assert!(found[3].contains("soon") && found[3].contains("later"), "{found:#?}");
    }

    #[test]
    fn an_invalid_relay_does_not_hide_other_problems() {
        let found = problems("[[relay]]\nlisten = \"x\"\nnetworks = [\n\"y\",\n\"z\"]\n[delivery]\nport = \"a\"\n");
        assert_eq!(found.len(), 4, "{found:#?}");
        assert!(found[2].starts_with("line 7: ") && found[3].contains("hostname"), "{found:#?}");
        let found = problems("hostname = \"a\nport = [\n");
        assert!(!found.is_empty() && found.iter().all(|problem| problem.starts_with("line ")), "{found:#?}");
    }

    #[test]
    fn no_error_text_of_serde_is_shown() {
        let text = "hostname = 5\ndata_dir = true\nwebhooks = 1\n[api]\nlisten = 8025\ntls = \"yes\"\nrate_limit = 3\n\
                    [delivery]\nretry = 5\nport = \"a\"\nsmarthost_password = 7\nsmarthost = [1]\ndkim2 = \"maybe\"\n\
                    tls = true\ngive_up_after = 4\n[plans.free]\ndomains = \"many\"\naffiliates = 1\n\
                    [[delivery.pace]]\nmessages_per_second = \"x\"\nconnections_max = -1\n[[relay]]\nlisten = \"x\"\n\
                    networks = [5]\naccount = 1\n[submission]\nsessions_max = -1\nrecipients_max = 2.5\n[dns]\n\
                    servers = [1]\n[store]\nengine = 2026-01-01\nreserve_bytes = 1e3\n[tls]\ncertificate = 1\n\
                    [tls.acme]\nnames = \"x y\"\ncolour = 1\n[service]\nauto_verify_domains = [true]\n";
        let found = problems(text);
        assert_eq!(found.len(), text.matches(" = ").count(), "{found:#?}");
        for problem in &found {
            for sentence in ["invalid ", "expected", "unknown ", "struct", "wanted", "floating point", "sequence"] {
                assert!(!problem.contains(sentence), "{problem}");
            }
        }
        assert_eq!(
            found[0], "line 1: `hostname` is the number 5, but must be a string in quotation marks",
            "{found:#?}"
        );
        assert!(!found.iter().any(|problem| problem.contains('7') && problem.contains("password")));
    }

    #[test]
    fn an_integer_beyond_all_bounds_is_named() {
        let found = problems(
            "hostname = \"x y\"\n[submission]\nmessage_bytes_max = 18446744073709551615\n[delivery]\nport = \"a\"\n",
        );
        let lines: Vec<_> = found.iter().map(|problem| &problem[..7]).collect();
        assert_eq!(lines, ["line 1:", "line 3:", "line 5:"], "{found:#?}");
    }

    #[test]
    fn problems_are_plain_sentences_with_a_remedy() {
        let head = "hostname = \"mx.example.net\"\n";
        for (section, expected) in [
            (
                "[submission]\nmessage_bytes_max = 999999999999999999999999999999999999999999999\n",
                "line 3: `message_bytes_max` in [submission] is a number that is too large: the maximum is \
                 9223372036854775807",
            ),
            (
                "[submission]\nmessage_bytes_max = 18446744073709551615\n",
                "line 3: `message_bytes_max` in [submission] is a number that is too large: the maximum is \
                 9223372036854775807",
            ),
            (
                "[delivery]\nport = 99999999999999999999999\n",
                "line 3: `port` in [delivery] is the number 99999999999999999999999, but must be a whole number from 0 \
                 to 65535",
            ),
            (
                "[delivery]\nsource_addresses = [\"localhost\"]\n",
                "line 3: `source_addresses` in [delivery]: `localhost`: not an IP address (examples: \"203.0.113.20\", \
                 \"2001:db8::20\")",
            ),
            (
                "[mx]\ndnsbl = [\"zen spamhaus\"]\n",
                "line 3: `dnsbl` in [mx]: `zen spamhaus` is not a host name (example: \"mx1.example.net\")",
            ),
            (
                "[service]\nsandbox_sender = \"x\"\n",
                "line 3: `sandbox_sender` in [service]: `x` is not an email address: an address has the form \
                 local@domain (example: \"postmaster@example.net\")",
            ),
            (
                "[relay]\nlisten = \"x\"\n",
                "line 2: `relay` is a section or a date, but must be one or more sections [[relay]]",
            ),
            ("[api]\ntls = true\ntls = false\n", "line 4: `tls` is set twice: remove one"),
            (
                "[api]\nbase_url = https://api.example.net\n",
                "line 3: the value is missing, or is a string without quotation marks (example: KEY = \"TEXT\")",
            ),
            (
                "[[delivery.replies]]\ncode = 421\n",
                "line 3: `code` in [[delivery.replies]] is the number 421, but must be a string in quotation marks",
            ),
        ] {
            let found = problems(&format!("{head}{section}"));
            assert_eq!(found.first().map(String::as_str), Some(expected), "{found:#?}");
        }
    }

    #[test]
    fn a_wrong_variable_is_named() {
        let text = "hostname = \"mx.example.net\"\n[api]\nlisten = \"127.0.0.1:1\"\n";
        let problems_with = |name: &str, value: &str| {
            let found = from_text(text, [(name.to_owned(), value.to_owned())]).err().unwrap_or_default();
            found.iter().map(ToString::to_string).collect::<Vec<_>>()
        };
        for (name, value) in [
            ("POSTRIDER_DELIVERY_PORT", "many"),
            ("POSTRIDER_DELIVERY_RETRY", "[\"soon\"]"),
            ("POSTRIDER_SUBMISSION_SESSIONS_MAX", "0"),
            ("POSTRIDER_HOSTNAME", "x y"),
        ] {
            let found = problems_with(name, value);
            assert!(found.len() == 1 && found[0].starts_with(&format!("{name}: ")), "{found:?}");
        }
        let named = [("POSTRIDER_HOSTNAME".to_owned(), "mx.example.net".to_owned())];
        assert!(from_text("[api]\nlisten = \"127.0.0.1:1\"\n", named).is_ok());
    }
}
