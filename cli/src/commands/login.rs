//! `login` and `logout`: store and remove the server and key of a profile.

use std::io::{BufRead as _, IsTerminal as _};
use std::time::Duration;

use clap::{Arg, ArgMatches, Command};
use serde_json::{Value, json};

use crate::api_key::ApiKey;
use crate::arguments::with_shared_flags;
use crate::base_url::BaseUrl;
use crate::client::{ApiClient, Call};
use crate::error::CliError;
use crate::example;
use crate::operation::OperationTable;
use crate::output;
use crate::profile::{Profile, ProfileFile};

const PROFILE_DEFAULT: &str = "default";

pub(super) fn login_command() -> Command {
    Command::new("login")
        .about("Store the server and an API key")
        .after_help(format!(
            "The key is read from the terminal without being shown, or from standard input.\n\n{}",
            example::section(&["postrider login --base-url https://mail.example.com < key.txt"])
        ))
        .arg(
            Arg::new("base-url")
                .long("base-url")
                .value_name("URL")
                .help("The server, for example https://mail.example.com"),
        )
}

pub(super) fn logout_command() -> Command {
    Command::new("logout")
        .about("Remove a stored server and key")
        .after_help(example::section(&["postrider logout --profile staging"]))
}

/// Asks for a key, checks it at the server, and stores both.
///
/// # Errors
/// The server refuses the key, or the profile cannot be written.
pub(super) async fn login(arguments: &[String], table: &OperationTable<'_>) -> Result<(), CliError> {
    let matches = parse(login_command(), arguments);
    let url = matches.get_one::<String>("base-url").cloned();
    let url =
        url.or_else(|| std::env::var("POSTRIDER_BASE_URL").ok()).map_or_else(|| ask("Server (https://…): "), Ok)?;
    let insecure = std::env::var_os("POSTRIDER_ALLOW_INSECURE_HTTP").is_some();
    let base_url = BaseUrl::parse(&url, insecure)?;
    let key = ApiKey::parse(&read_key()?)?;
    let client = ApiClient::new(base_url.clone(), key.clone(), Duration::from_secs(30), table.service_version);
    let account = client.call(&Call::get("/account")).await?.json()?;
    let name = matches.get_one::<String>("profile").cloned().unwrap_or_else(|| PROFILE_DEFAULT.to_owned());
    let path = ProfileFile::path()?;
    let mut file = ProfileFile::read(&path)?;
    let profile = Profile { base_url: base_url.to_string(), api_key: key.expose().to_owned() };
    file.profiles.insert(name.clone(), profile);
    file.default.get_or_insert_with(|| name.clone());
    file.write(&path)?;
    let account = account.get("account").unwrap_or(&account);
    print(
        &matches,
        &json!({"profile": name, "base_url": base_url.to_string(), "account": account["email"], "file": path}),
    )
}

/// Removes a profile.
///
/// # Errors
/// There is no such profile, or the file cannot be written.
pub(super) fn logout(arguments: &[String]) -> Result<(), CliError> {
    let matches = parse(logout_command(), arguments);
    let path = ProfileFile::path()?;
    let mut file = ProfileFile::read(&path)?;
    let named = matches.get_one::<String>("profile").map(String::as_str);
    let Some((name, _)) = file.profile(named)? else {
        return Err(CliError::usage("no profile is stored"));
    };
    file.profiles.remove(&name);
    if file.default.as_deref() == Some(name.as_str()) {
        file.default = file.profiles.keys().next().cloned();
    }
    file.write(&path)?;
    print(
        &matches,
        &json!({"removed": name, "default": file.default, "note": "the key itself stays valid: `postrider api-keys delete` revokes it"}),
    )
}

fn parse(command: Command, arguments: &[String]) -> ArgMatches {
    let name = format!("postrider {}", command.get_name());
    let command = with_shared_flags(command).bin_name(name).no_binary_name(true);
    command.try_get_matches_from(arguments).unwrap_or_else(|error| error.exit())
}

fn print(matches: &ArgMatches, value: &Value) -> Result<(), CliError> {
    match output::Format::choose(matches.get_flag("json"), false) {
        output::Format::Text => output::print_object(value),
        _ => output::print_json(value),
    }
}

fn ask(question: &str) -> Result<String, CliError> {
    if !std::io::stdin().is_terminal() {
        return Err(CliError::usage("--base-url is missing"));
    }
    eprint!("{question}");
    read_line()
}

fn read_key() -> Result<String, CliError> {
    if std::io::stdin().is_terminal() {
        let read = rpassword::prompt_password("API key: ");
        return read.map_err(|error| CliError::Io(format!("cannot read the key from the terminal: {error}")));
    }
    read_line()
}

fn read_line() -> Result<String, CliError> {
    let mut line = String::new();
    let read = std::io::stdin().lock().read_line(&mut line);
    read.map_err(|error| CliError::Io(format!("cannot read standard input: {error}")))?;
    Ok(line.trim().to_owned())
}
