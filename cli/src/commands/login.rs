//! `login` and `logout`: store and remove the server of a profile with a sign-in or an API key.
//!
//! ```text
//! login            browser of this machine ─► consent ─► tokens
//! login --device   browser of another one  ─► consent ─► tokens
//! login --key      API key from the terminal or standard input
//! ```

mod device;
mod web;

use std::io::{BufRead as _, IsTerminal as _};
use std::time::Duration;

use clap::Command;
use serde_json::json;

use super::workflow::WorkflowRun;
use crate::account::read_account;
use crate::api_key::ApiKey;
use crate::arguments::{option, switch};
use crate::base_url::BaseUrl;
use crate::client::{ApiClient, Credential};
use crate::error::CliError;
use crate::example;
use crate::oauth::AuthorizationServer;
use crate::operation::OperationTable;
use crate::profile::{Profile, ProfileFile};
use crate::sign_in::{ProfileLock, Tokens};

const PROFILE_DEFAULT: &str = "default";
const SCOPE_DEFAULT: &str = "read send manage";
/// The scope of a key that cannot read the account.
pub(super) const KEY_SCOPE_SENDING: &str = "sending";

pub(super) fn login_command() -> Command {
    Command::new("login")
        .about("Sign in to a server with the browser, or store an API key")
        .after_help(format!(
            "The sign-in permits what its scopes and your role allow, except anything to do with secrets, money or \
             the team. An API key is read from the terminal without being shown, or from standard input.\n\n{}",
            example::section(&[
                "postrider login --base-url https://mail.example.com",
                "postrider login --base-url https://mail.example.com --device",
                "postrider login --base-url https://mail.example.com --key < key.txt",
            ])
        ))
        .arg(option("base-url", "URL", "The server, for example https://mail.example.com"))
        .arg(option("scope", "SCOPES", "Scopes to request: `read`, `send`, `manage`").default_value(SCOPE_DEFAULT))
        .arg(
            switch("web", "Use the browser, even if standard input is not a terminal")
                .conflicts_with_all(["device", "key"]),
        )
        .arg(switch("device", "Show a code to enter in a browser on another device").conflicts_with("key"))
        .arg(switch("key", "Store an API key; the default if standard input is not a terminal"))
}

pub(super) fn logout_command() -> Command {
    super::described("logout", &["postrider logout --profile staging"])
        .about("End a sign-in, and remove the stored server and its key")
}

/// Signs in, or asks for a key, checks it at the server, and stores it.
///
/// # Errors
/// The server refuses, the user denies it, or the profile cannot be written.
pub(super) async fn login(arguments: &[String], table: &OperationTable<'_>) -> Result<(), CliError> {
    let run = WorkflowRun::parse(login_command(), arguments, table)?;
    let url = run.text("base-url").map(str::to_owned);
    let url =
        url.or_else(|| std::env::var("POSTRIDER_BASE_URL").ok()).map_or_else(|| ask("Server (https://…): "), Ok)?;
    let insecure = std::env::var_os("POSTRIDER_ALLOW_INSECURE_HTTP").is_some();
    let base_url = BaseUrl::parse(&url, insecure)?;
    let scope = run.text("scope").unwrap_or(SCOPE_DEFAULT);
    let server = AuthorizationServer::new(base_url.clone());
    let is_piped = !std::io::stdin().is_terminal() && !run.flag("web");
    let (key, sign_in) = if run.flag("device") {
        (None, Some(Tokens::from_reply(device::sign_in(&server, scope).await?)?))
    } else if run.flag("key") || is_piped {
        (Some(ApiKey::parse(&read_key()?)?), None)
    } else {
        (None, Some(Tokens::from_reply(web::sign_in(&server, scope).await?)?))
    };
    let bearer = match (&key, &sign_in) {
        (Some(key), _) => key.clone(),
        (None, tokens) => ApiKey::parse(tokens.as_ref().map_or("", |tokens| &tokens.access_token))?,
    };
    let can_read = sign_in.as_ref().is_none_or(|tokens| tokens.scope.split(' ').any(|scope| scope == "read"));
    let account = match can_read {
        true => {
            let (credential, timeout) = (Credential::Key(bearer), Duration::from_secs(30));
            read_account(&ApiClient::new(base_url.clone(), credential, timeout, table.service_version)).await?
        }
        false => None,
    };
    let scope = match (&sign_in, &account) {
        (Some(tokens), _) => Some(tokens.scope.clone()),
        (None, Some(_)) => None,
        (None, None) => Some(KEY_SCOPE_SENDING.to_owned()),
    };
    let email = account.map(|account| account["email"].clone());
    let profile = Profile { base_url: base_url.to_string(), api_key: key.map(|key| key.expose().to_owned()), sign_in };
    let name = run.text("profile").unwrap_or(PROFILE_DEFAULT).to_owned();
    let path = ProfileFile::path()?;
    {
        let _lock = ProfileLock::acquire(&path).await?;
        let mut file = ProfileFile::read(&path)?;
        file.profiles.insert(name.clone(), profile);
        file.default.get_or_insert_with(|| name.clone());
        file.write(&path)?;
    }
    let stored = json!({
        "profile": name, "base_url": base_url.to_string(), "account": email, "scope": scope, "file": path,
    });
    run.print(&stored)
}

/// Ends the sign-in of a profile at the server, and removes the profile.
///
/// # Errors
/// There is no such profile, or the file cannot be written.
pub(super) async fn logout(arguments: &[String], table: &OperationTable<'_>) -> Result<(), CliError> {
    let run = WorkflowRun::parse(logout_command(), arguments, table)?;
    let path = ProfileFile::path()?;
    let _lock = ProfileLock::acquire(&path).await?;
    let mut file = ProfileFile::read(&path)?;
    let Some((name, profile)) = file.profile(run.text("profile"))? else {
        return Err(CliError::usage("no profile is stored"));
    };
    let note = match &profile.sign_in {
        Some(tokens) => match revoke(&profile.base_url, tokens).await {
            Ok(()) => "signed out on the server".to_owned(),
            Err(error) => {
                format!("the sign-in could not be revoked ({error}); revoke it in the dashboard under Connected apps")
            }
        },
        None => "the key itself stays valid: `postrider api-keys delete` revokes it".to_owned(),
    };
    file.profiles.remove(&name);
    if file.default.as_deref() == Some(name.as_str()) {
        file.default = file.profiles.keys().next().cloned();
    }
    file.write(&path)?;
    run.print(&json!({"removed": name, "default": file.default, "note": note}))
}

async fn revoke(base_url: &str, tokens: &Tokens) -> Result<(), CliError> {
    let insecure = std::env::var_os("POSTRIDER_ALLOW_INSECURE_HTTP").is_some();
    let server = AuthorizationServer::new(BaseUrl::parse(base_url, insecure)?);
    server.revoke(&tokens.refresh_token).await?.map(drop).map_err(CliError::from)
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
