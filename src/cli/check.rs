//! `postrider check`: reports every problem of a configuration with its line, and notes about what it lacks.
//!
//! ```text
//! file, environment ─► config ─► problems (exit 1)
//!                        └──► store, or the running server ─► accounts of [[relay]], the sandbox sender's domain
//! ```

use std::io::Write as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::process::ExitCode;

use serde_json::json;
use store::engine::{OpenError, Store};

use super::admin::send_request;
use super::process::{NO_STORE_YET, build_runtime, load_config, set_private_umask};
use super::{CheckArguments, ConfigArguments};
use crate::acme::AcmeSettings;
use crate::admin::AdminRequest;
use crate::config::{self, Config, ConfigProblem};
use crate::services;
use crate::store_references::{StoreFacts, StoreReferences, relay_account_missing};

/// Problems and notes of a check.
#[derive(Debug, Default)]
struct CheckReport {
    /// Any problem makes the exit status 1.
    problems: Vec<ConfigProblem>,
    /// Printed, but do not change the exit status.
    notes: Vec<String>,
}

/// Runs `postrider check`. The exit code is 0, or 1 after printing each problem with its line.
pub fn check(CheckArguments { config: arguments, file_only }: &CheckArguments) -> ExitCode {
    let loaded = match file_only {
        true => config::from_file_alone(&arguments.config),
        false => load_config(arguments),
    };
    let (config, report) = match loaded {
        Ok(config) if *file_only => (Some(config), CheckReport::default()),
        Ok(config) => {
            let report = check_config(&config, &arguments.config);
            (Some(config), report)
        }
        Err(problems) => (None, CheckReport { problems, notes: Vec::new() }),
    };
    print_report(arguments, &report);
    if !report.problems.is_empty() {
        return ExitCode::FAILURE;
    }
    if let Some(config) = config.filter(|_| !arguments.json) {
        print_remaining_setup(&config);
    }
    ExitCode::SUCCESS
}

/// Prints the problems of a configuration that `postrider serve` refuses.
pub(super) fn refuse(arguments: &ConfigArguments, problems: Vec<ConfigProblem>) -> ExitCode {
    print_report(arguments, &CheckReport { problems, notes: Vec::new() });
    ExitCode::FAILURE
}

fn print_report(arguments: &ConfigArguments, CheckReport { problems, notes }: &CheckReport) {
    let mut out = std::io::stdout();
    // Stdout may be closed (`… | head`).
    if arguments.json {
        let problem_values: Vec<_> = problems.iter().map(|p| json!({"line": p.line, "problem": p.text})).collect();
        let _ = writeln!(out, "{}", json!({"ok": problems.is_empty(), "problems": problem_values, "notes": notes}));
        return;
    }
    let file = arguments.config.display();
    problems.iter().for_each(|problem| eprintln!("{file}: {problem}"));
    if problems.is_empty() {
        let _ = writeln!(out, "{file}: OK");
    }
    for note in notes {
        let _ = writeln!(out, "note: {note}");
    }
}

/// Prints what the operator still has to do outside of the file.
fn print_remaining_setup(config: &Config) {
    let mut out = std::io::stdout();
    if let Some(acme) = AcmeSettings::from_config(config) {
        let _ = writeln!(out, "{acme}");
    }
    let name = config.service.domain_connect_key_name.as_ref();
    if let (Some(name), Ok(Some(key))) = (name, config.domain_connect_key()) {
        let _ = writeln!(
            out,
            "Domain Connect requests are signed. Set \"syncPubKeyDomain\": \"{}\" in the template, and publish:\n{}",
            key.domain(),
            crate::doctor::domain_connect::key_records(&key, name)
        );
    }
}

fn check_config(config: &Config, file: &Path) -> CheckReport {
    let mut findings = CheckReport { problems: Vec::new(), notes: missing_listener_notes(config) };
    for address in config::missing_source_addresses(config) {
        findings.notes.push(format!("{address} is not an address of this machine: mail cannot be sent from it"));
    }
    let references = StoreReferences::from_config(config);
    if references.is_empty() {
        return findings;
    }
    let store_facts = store_unavailable_reason(config).map_or_else(|| query_store(config, &references), Err);
    match store_facts {
        Ok(StoreFacts { missing_relay_accounts: missing, sandbox_works }) => {
            let text = std::fs::read_to_string(file).unwrap_or_default();
            findings.problems.extend(missing.into_iter().map(|index| {
                let account = config.relay.get(index).map_or("", |relay| relay.account.as_str());
                ConfigProblem {
                    line: config::find_line(&text, "relay", index, "account"),
                    text: relay_account_missing(account),
                }
            }));
            if let Some(sender) = config.service.sandbox_sender.as_ref().filter(|_| !sandbox_works) {
                findings.notes.push(services::sandbox_not_set_up(sender.domain()));
            }
        }
        Err(reason) => findings
            .notes
            .push(format!("not checked: the accounts of [[relay]] and the domain of `sandbox_sender` ({reason})")),
    }
    findings
}

/// Notes about each kind of listener that is not configured.
fn missing_listener_notes(config: &Config) -> Vec<String> {
    let submission = config.submission.listen.is_empty() && config.submission.implicit_tls.is_empty();
    [
        (submission, "submission", "programs cannot submit mail by SMTP"),
        (config.mx.listen.is_empty(), "mx", "no mail, bounces or complaints are received"),
        (config.api.listen.is_empty(), "api", "there is no HTTP API, and links in mail do not work"),
        (config.ops.listen.is_empty(), "ops", "there is no /metrics"),
    ]
    .into_iter()
    .filter(|(is_missing, ..)| *is_missing)
    .map(|(_, section, consequence)| format!("no listener in [{section}]: {consequence}"))
    .collect()
}

/// Returns why this process must not open the store, if so.
fn store_unavailable_reason(config: &Config) -> Option<String> {
    if services::database(config).is_some() {
        return None;
    }
    let directory = services::store_options(config).directory;
    match std::fs::metadata(&directory) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Some(NO_STORE_YET.to_owned()),
        Err(error) => Some(format!("{}: {error}", directory.display())),
        // Opening writes files. Files of another user would make the server's start fail.
        Ok(found) if found.uid() != rustix::process::geteuid().as_raw() => {
            Some(format!("{} belongs to another user; run this command as that user", directory.display()))
        }
        Ok(_) => None,
    }
}

fn query_store(config: &Config, references: &StoreReferences) -> Result<StoreFacts, String> {
    set_private_umask();
    let runtime = build_runtime().map_err(|error| error.to_string())?;
    let opened = runtime.block_on(async {
        match services::database(config) {
            Some(database) => Store::connect_existing(&database).await,
            None => Store::open(&services::store_options(config)).map(Some),
        }
    });
    let store = match opened {
        Ok(Some(store)) => store,
        Ok(None) => return Err(NO_STORE_YET.to_owned()),
        Err(OpenError::InUse { .. }) => return ask_server(config, references),
        Err(error) => return Err(error.to_string()),
    };
    runtime.block_on(async {
        let store_facts = references.look_up(&store).await.map_err(|error| error.to_string());
        store.close().await;
        store_facts
    })
}

/// Asks the running server, which has the store open.
fn ask_server(config: &Config, references: &StoreReferences) -> Result<StoreFacts, String> {
    let request = AdminRequest::StoreFacts { references: references.clone() };
    let answer = send_request(&config.data_dir, &request).map_err(|error| error.message.to_string());
    let facts = answer.and_then(|facts| serde_json::from_value(facts).map_err(|error| error.to_string()));
    facts.map_err(|reason| format!("the server is running and has locked the store, but did not answer: {reason}"))
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead as _, BufReader};
    use std::os::unix::net::UnixListener;

    use super::*;
    use crate::admin::SOCKET;

    const HEAD: &str = "hostname = \"mx.example.net\"\n";

    fn config(data_dir: &Path, extra: &str) -> (Config, std::path::PathBuf) {
        let text = format!("{HEAD}data_dir = {data_dir:?}\n{extra}");
        let file = data_dir.join("postrider.toml");
        std::fs::write(&file, &text).unwrap();
        (config::from_text(&text, []).unwrap(), file)
    }

    #[test]
    fn a_relay_without_its_account_is_a_problem_with_its_line() {
        let directory = tempfile::tempdir().unwrap();
        let relay = "[[relay]]\nlisten = \"127.0.0.1:1\"\nnetworks = \"127.0.0.0/8\"\naccount = \"owner@example.net\"\n\
                     [service]\nsandbox_sender = \"sandbox@example.net\"\n";
        let (config, file) = config(directory.path(), relay);
        let found = check_config(&config, &file);
        assert!(found.problems.is_empty() && found.notes.iter().any(|note| note.contains("no store yet")));

        let runtime = build_runtime().unwrap();
        let store = runtime.block_on(async { Store::open(&services::store_options(&config)).unwrap() });
        let found = check_config(&config, &file);
        assert!(found.problems.is_empty(), "{found:?}");
        assert!(found.notes.iter().any(|note| note.contains("not checked") && note.contains("the server is running")));
        let listener = UnixListener::bind(directory.path().join(SOCKET)).unwrap();
        let found = std::thread::scope(|scope| {
            scope.spawn(|| {
                let (stream, _) = listener.accept().unwrap();
                let mut line = String::new();
                BufReader::new(&stream).read_line(&mut line).unwrap();
                let AdminRequest::StoreFacts { references } = serde_json::from_str(&line).unwrap() else {
                    panic!("{line}")
                };
                let facts = runtime.block_on(references.look_up(&store)).unwrap();
                writeln!(&stream, "{}", json!({"ok": facts})).unwrap();
            });
            check_config(&config, &file)
        });
        assert_eq!(found.problems.len(), 1, "{found:?}");
        assert!(!found.notes.iter().any(|note| note.contains("not checked")), "{found:?}");
        runtime.block_on(store.close());
        drop(store);

        let found = check_config(&config, &file);
        assert_eq!(found.problems.len(), 1, "{found:?}");
        assert_eq!(found.problems[0].line, Some(6));
        assert!(found.problems[0].text.contains("the account owner@example.net does not exist"));
        assert!(found.notes.iter().any(|note| note.contains("the sandbox is not set up")), "{found:?}");
    }

    #[test]
    fn kinds_of_listeners_that_are_missing_are_named() {
        let directory = tempfile::tempdir().unwrap();
        let (config, file) = config(directory.path(), "[api]\nlisten = \"127.0.0.1:1\"\n");
        let found = check_config(&config, &file);
        let headings: Vec<_> = found.notes.iter().filter_map(|note| note.split([':']).next()).collect();
        assert_eq!(
            headings,
            ["no listener in [submission]", "no listener in [mx]", "no listener in [ops]"],
            "{found:?}"
        );
    }
}
