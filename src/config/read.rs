//! Reading the configuration, with every problem and its line.
//!
//! The file is read again and again, each time with the line of the last problem blanked out, until
//! nothing is wrong any more or the rest cannot be made sense of: so one `check` names all problems.
//! The environment is laid over the file: `POSTRIDER_API_LISTEN=127.0.0.1:8025` is `listen` in `[api]`.

use std::fmt;
use std::path::Path;

use super::Config;

/// The environment's variables that are ours start so.
const PREFIX: &str = "POSTRIDER_";
/// More problems than these are not worth reading.
const PROBLEMS_MAX: usize = 50;

/// Something wrong with the configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// The line in the file, from 1; none when the problem is not of one line.
    pub line: Option<usize>,
    /// What is wrong, and what would be right.
    pub text: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            Some(line) => write!(f, "line {line}: {}", self.text),
            None => f.write_str(&self.text),
        }
    }
}

/// Reads a file, with the process's environment over it.
///
/// # Errors
/// All problems.
pub fn from_file(file: &Path) -> Result<Config, Vec<Problem>> {
    let text = std::fs::read_to_string(file)
        .map_err(|error| vec![Problem { line: None, text: format!("{}: {error}", file.display()) }])?;
    from_text(&text, std::env::vars())
}

/// Reads a text, with an environment over it.
///
/// # Errors
/// All problems.
pub fn from_text(
    text: &str,
    environment: impl IntoIterator<Item = (String, String)>,
) -> Result<Config, Vec<Problem>> {
    let mut problems = in_text(text);
    let mut table: toml::Table = match text.parse() {
        Ok(table) => table,
        Err(_) => return Err(problems),
    };
    let mut overridden = false;
    for (variable, value) in environment {
        if let Some(path) = variable.strip_prefix(PREFIX) {
            match lay_over(&mut table, path, &value) {
                Ok(()) => overridden = true,
                Err(text) => problems.push(Problem { line: None, text: format!("{variable}: {text}") }),
            }
        }
    }
    // What is missing in the file the environment may have brought; a wrong line stays wrong.
    let only_missing = problems.iter().all(|problem| problem.line.is_none());
    match table.try_into::<Config>() {
        Ok(config) if problems.is_empty() || (overridden && only_missing) => {
            let problems = in_config(text, &config);
            if problems.is_empty() { Ok(config) } else { Err(problems) }
        }
        Err(error) if problems.is_empty() => {
            Err(vec![Problem { line: None, text: error.message().to_owned() }])
        }
        _ => Err(problems),
    }
}

/// Every problem of the text by itself.
fn in_text(text: &str) -> Vec<Problem> {
    let mut problems = Vec::new();
    let mut rest = text.to_owned();
    while problems.len() < PROBLEMS_MAX {
        let Err(error) = toml::from_str::<Config>(&rest) else { break };
        let start = error.span().map_or(0, |span| span.start.min(rest.len()));
        let missing = error.message().starts_with("missing field");
        let line = rest[..start].matches('\n').count() + 1;
        let problem = Problem { line: (!missing).then_some(line), text: error.message().replace('\n', " ") };
        if missing {
            // A key whose line was blanked out is not missing: its own problem is told already.
            let key = problem.text.split('`').nth(1).unwrap_or_default();
            if !text.lines().any(|line| line.trim_start().starts_with(key)) {
                problems.push(problem);
            }
            break;
        }
        if problems.contains(&problem) {
            break;
        }
        problems.push(problem);
        rest = blank(&rest, line);
        if rest.parse::<toml::Table>().is_err() {
            break;
        }
    }
    problems.sort_by_key(|problem| problem.line.unwrap_or(usize::MAX));
    problems
}

fn blank(text: &str, line: usize) -> String {
    let keep = |(n, content): (usize, &str)| if n + 1 == line { String::new() } else { content.to_owned() };
    text.split('\n').enumerate().map(keep).collect::<Vec<_>>().join("\n")
}

/// Puts one variable's value where its name says: a section and a key, or a key at the top.
fn lay_over(table: &mut toml::Table, path: &str, value: &str) -> Result<(), String> {
    const SECTIONS: [&str; 10] =
        ["store", "tls", "submission", "proxy", "api", "ops", "dns", "delivery", "service", "testing"];
    let path = path.to_ascii_lowercase();
    let section = SECTIONS.iter().find_map(|section| {
        path.strip_prefix(section).and_then(|rest| rest.strip_prefix('_')).map(|key| (*section, key))
    });
    let value = read_value(value);
    match section {
        Some((section, key)) => {
            let entry = table.entry(section).or_insert_with(|| toml::Value::Table(toml::Table::new()));
            let inner = entry.as_table_mut().ok_or_else(|| format!("`{section}` is not a section"))?;
            inner.insert(key.to_owned(), value);
        }
        None => {
            table.insert(path, value);
        }
    }
    Ok(())
}

/// A value as TOML writes it (`true`, `25`, `["a", "b"]`), else a string.
fn read_value(text: &str) -> toml::Value {
    match format!("value = {text}").parse::<toml::Table>() {
        Ok(mut table) => table.remove("value").unwrap_or_else(|| toml::Value::String(text.to_owned())),
        Err(_) => toml::Value::String(text.to_owned()),
    }
}

/// What is wrong although each value is right.
fn in_config(text: &str, config: &Config) -> Vec<Problem> {
    let mut problems = Vec::new();
    let mut say = |key: &str, what: String| {
        let begins = |line: &str| line.trim_start().starts_with(key);
        let line = text.lines().position(begins).map(|n| n + 1);
        problems.push(Problem { line, text: what });
    };
    if config.tls.certificate.is_some() != config.tls.private_key.is_some() {
        say("[tls]", "[tls] needs both `certificate` and `private_key`".to_owned());
    }
    let needs_tls = !config.submission.listen.is_empty() || !config.submission.implicit_tls.is_empty();
    if needs_tls && config.tls.certificate.is_none() {
        say(
            "[submission]",
            "[submission] needs a certificate: set `certificate` and `private_key` in [tls]".to_owned(),
        );
    }
    if config.api.tls && config.tls.certificate.is_none() {
        say("[api]", "`tls = true` in [api] needs a certificate: set both keys in [tls]".to_owned());
    }
    for file in [&config.tls.certificate, &config.tls.private_key].into_iter().flatten() {
        if let Err(error) = std::fs::File::open(file) {
            say("[tls]", format!("{}: {error}", file.display()));
        }
    }
    if config.testing.clock_offset.is_some()
        && let Some(public) = config.listeners().find(|address| !address.ip().is_loopback())
    {
        say("clock_offset", format!("`clock_offset` needs every listener on loopback, and {public} is not"));
    }
    for (key, what) in out_of_bounds(config) {
        say(key, what.to_owned());
    }
    let mut seen = std::collections::HashSet::new();
    for address in config.listeners().filter(|address| address.port() != 0) {
        if !seen.insert(address) {
            say("listen", format!("{address} is listened on twice"));
        }
    }
    if config.listeners().next().is_none() {
        say(
            "hostname",
            "nothing is listened on: set `listen` in [submission], [[relay]] or [api]".to_owned(),
        );
    }
    if config.delivery.smarthost_username.is_some() != config.delivery.smarthost_password.is_some() {
        say("smarthost_", "`smarthost_username` and `smarthost_password` go together".to_owned());
    }
    problems
}

/// Values that can only go wrong: the key, and what would be right.
fn out_of_bounds(config: &Config) -> Vec<(&'static str, &'static str)> {
    let bounds = [
        (
            "retry",
            config.delivery.retry.iter().any(|wait| wait.as_secs() == 0),
            "a wait in `retry` is at least 1s",
        ),
        ("give_up_after", config.delivery.give_up_after.as_secs() == 0, "`give_up_after` is at least 1s"),
        (
            "tasks_in_memory_max",
            config.delivery.tasks_in_memory_max == 0,
            "`tasks_in_memory_max` is at least 1",
        ),
        (
            "recipients_max",
            !(1..=store::email::RECIPIENTS_MAX).contains(&config.submission.recipients_max),
            "`recipients_max` is 1 to 1000",
        ),
        (
            "bytes_in_flight_max",
            (config.submission.bytes_in_flight_max as u64) < config.submission.message_bytes_max,
            "`bytes_in_flight_max` has room for one message at least (`message_bytes_max`)",
        ),
        (
            "retention",
            config.store.retention < config.delivery.give_up_after,
            "`retention` is longer than `give_up_after`",
        ),
    ];
    bounds.into_iter().filter(|(_, wrong, _)| *wrong).map(|(key, _, what)| (key, what)).collect()
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
        assert!(
            found.len() == 2 && found[0].starts_with("line 1: ") && found[1].starts_with("line 3: "),
            "{found:#?}"
        );
    }

    #[test]
    fn what_contradicts_itself_is_named() {
        let found = problems("hostname = \"mx.example.net\"\n[submission]\nlisten = \"127.0.0.1:587\"\n");
        assert!(found[0].contains("certificate"), "{found:#?}");
        let found = problems(
            "hostname = \"mx.example.net\"\n[api]\nlisten = \"0.0.0.0:80\"\n[testing]\nclock_offset = \"1h\"\n",
        );
        assert!(found[0].starts_with("line 5: ") && found[0].contains("loopback"), "{found:#?}");
        assert!(problems("data_dir = \"x\"\n")[0].contains("hostname"));
    }

    #[test]
    fn the_environment_lies_over_the_file() {
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
        let unknown = [("POSTRIDER_API_COLOUR".to_owned(), "1".to_owned())];
        assert!(from_text(text, unknown).unwrap_err()[0].text.contains("colour"));
    }
}
