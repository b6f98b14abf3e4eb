//! Creates the account and the sending domain, unless they exist.

use std::fmt::Write as _;
use std::fs::File;
use std::io::Write as _;

use serde_json::{Value, json};
use store::engine::private_files;
use tokio::sync::Mutex;

use super::admin_client::NOT_FOUND;
use super::dialog::Dialog;
use super::error::SetupError;
use super::installation::Installation;
use super::options::{SetupOptions, shell_word};
use crate::admin::{AccountCreate, AdminRequest, DomainCreate};

/// The failed step, as an error names it.
const CREATE_ACCOUNT: &str = "create the account";

/// Creates what is missing. `creating` is locked while the account is created and its secrets are written: an
/// interruption must wait for it.
pub(super) async fn create(
    dialog: &mut dyn Dialog,
    options: &SetupOptions,
    installation: &Installation,
    creating: &Mutex<()>,
) -> Result<(), SetupError> {
    {
        let _guard = creating.lock().await;
        create_account(dialog, options, installation).await?;
    }
    create_domain(dialog, installation).await
}

async fn create_account(
    dialog: &mut dyn Dialog,
    options: &SetupOptions,
    installation: &Installation,
) -> Result<(), SetupError> {
    let (admin, owner) = (installation.admin(), installation.answers.owner.to_string());
    match admin.request(&AdminRequest::AccountShow { account: owner.clone() }).await {
        Ok(_) => {
            dialog.print(&format!("The account of {owner} already exists. If you do not have its secrets:"));
            secret_commands(options, &owner).iter().for_each(|line| dialog.print(line));
            return Ok(());
        }
        Err(error) if error.code == NOT_FOUND => {}
        Err(error) => return Err(SetupError::admin(CREATE_ACCOUNT)(error)),
    }
    // The file is created first: a secret that cannot be stored would be lost.
    let file = match &options.secrets {
        Some(path) => Some(private_files::create_new_file(path).map_err(|source| secrets_error(options, source))?),
        None => None,
    };
    let created = request_account(dialog, options, installation, file).await;
    if let (Err(_), Some(path)) = (&created, &options.secrets) {
        // The next run creates it again. If it cannot be removed, that run says so.
        let _ = std::fs::remove_file(path);
    }
    created
}

/// Creates the account, and writes its secrets to the file or the terminal.
async fn request_account(
    dialog: &mut dyn Dialog,
    options: &SetupOptions,
    installation: &Installation,
    file: Option<File>,
) -> Result<(), SetupError> {
    let owner = installation.answers.owner.to_string();
    let request = AdminRequest::AccountCreate(AccountCreate { email: owner.clone(), plan: None, production: true });
    let created = installation.admin().request(&request).await.map_err(SetupError::admin(CREATE_ACCOUNT))?;
    dialog.print(&format!("Created the account of {owner}. It can send to anyone."));
    let secrets = secret_lines(&created).ok_or(SetupError::UnexpectedResponse { action: CREATE_ACCOUNT })?;
    match (file, &options.secrets) {
        (Some(mut file), Some(path)) => {
            let written = file.write_all(secrets.as_bytes()).and_then(|()| file.sync_all());
            written.map_err(|source| SetupError::SecretsLost {
                file: path.clone(),
                source,
                commands: secret_commands(options, &owner),
            })?;
            dialog.print(&format!("Its API key and SMTP password are in {}, which only you can read.", path.display()));
        }
        _ => {
            dialog
                .print("Copy these now; they are shown only once. The link signs in to the dashboard within 24 hours,");
            dialog.print("once DNS and the certificate are ready.\n");
            secrets.lines().for_each(|line| dialog.print(&format!("  {line}")));
            dialog.print("");
        }
    }
    Ok(())
}

/// Commands that give an account new secrets.
fn secret_commands(options: &SetupOptions, owner: &str) -> Vec<String> {
    let owner = shell_word(owner);
    [
        ("a new API key", "admin key create"),
        ("a new SMTP password", "admin credential create"),
        ("a sign-in link", "admin session create"),
    ]
    .into_iter()
    .map(|(what, words)| format!("  {what:<22} {} --account {owner}", options.command(words)))
    .collect()
}

fn secrets_error(options: &SetupOptions, source: std::io::Error) -> SetupError {
    SetupError::SecretsNotWritten { file: options.secrets.clone().unwrap_or_default(), source }
}

/// The secrets of a new account as lines of an environment file.
fn secret_lines(created: &Value) -> Option<String> {
    let mut lines = String::new();
    for (name, value) in [
        ("POSTRIDER_API_KEY", &created["api_key"]["secret"]),
        ("SMTP_USERNAME", &created["smtp_credential"]["username"]),
        ("SMTP_PASSWORD", &created["smtp_credential"]["password"]),
        ("SIGN_IN_LINK", &created["sign_in"]["link"]),
    ] {
        match value.as_str() {
            // Writing to a String does not fail.
            Some(text) => _ = writeln!(lines, "{name}={text}"),
            None if name == "SIGN_IN_LINK" => {}
            None => return None,
        }
    }
    Some(lines)
}

async fn create_domain(dialog: &mut dyn Dialog, installation: &Installation) -> Result<(), SetupError> {
    const ACTION: &str = "add the domain";
    let (admin, answers) = (installation.admin(), &installation.answers);
    let (name, owner) = (answers.domain.to_string(), answers.owner.to_string());
    let found = admin.call_as_owner(&owner, "GET", format!("/domains/{name}"), json!({})).await;
    let domain = match found {
        Ok(mut found) => {
            dialog.print(&format!("The domain {name} already exists."));
            found["domain"].take()
        }
        Err(error) if error.code != NOT_FOUND => return Err(SetupError::admin(ACTION)(error)),
        Err(_) => {
            let request = AdminRequest::DomainCreate(DomainCreate {
                name: name.clone(),
                account: owner.clone(),
                verified: false,
            });
            admin.request(&request).await.map_err(SetupError::admin(ACTION))?;
            dialog.print(&format!("Added the domain {name}, with new DKIM keys."));
            Value::Null
        }
    };
    if answers.receive && domain["inbound_enabled"] != true {
        let body = json!({"inbound_enabled": true});
        let changed = admin.call_as_owner(&owner, "PATCH", format!("/domains/{name}"), body).await;
        changed.map_err(SetupError::admin("enable receiving for the domain"))?;
        dialog.print(&format!("Mail for {name} will be received once the domain is verified."));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
    use tokio::net::UnixListener;

    use super::super::testing::{ScriptedDialog, installation};
    use super::*;

    /// A server without accounts, which responds to the creation of one with `created`, and refuses everything else.
    fn start_server(data_dir: &Path, created: Value) {
        let listener = UnixListener::bind(data_dir.join(crate::admin::SOCKET)).unwrap();
        tokio::spawn(async move {
            loop {
                let (reader, mut writer) = listener.accept().await.unwrap().0.into_split();
                let line = BufReader::new(reader).lines().next_line().await.unwrap().unwrap();
                let request: Value = serde_json::from_str(&line).unwrap();
                let response = match request["ask"].as_str() {
                    Some("account_show") => json!({"error": {"code": "not_found", "message": "no such account"}}),
                    Some("account_create") => created.clone(),
                    _ => json!({"error": {"code": "refused", "message": "the store is away"}}),
                };
                writer.write_all(format!("{response}\n").as_bytes()).await.unwrap();
            }
        });
    }

    /// Creates an account whose secrets go to a file. Returns the error, and the contents of the file.
    async fn create_with_file(created: Value) -> (SetupError, Option<String>) {
        let directory = tempfile::tempdir().unwrap();
        start_server(directory.path(), created);
        let mut installation = installation("");
        installation.config.data_dir = directory.path().to_owned();
        let secrets = directory.path().join("secrets");
        let options = SetupOptions { secrets: Some(secrets.clone()), ..SetupOptions::default() };
        let mut dialog = ScriptedDialog::without_terminal();
        let error = create(&mut dialog, &options, &installation, &Mutex::new(())).await.unwrap_err();
        (error, std::fs::read_to_string(secrets).ok())
    }

    #[tokio::test]
    async fn no_file_is_left_without_an_account() {
        let refused = json!({"error": {"code": "refused", "message": "the store is full"}});
        let (error, file) = create_with_file(refused).await;
        assert!(error.to_string().contains("the store is full"), "{error}");
        assert_eq!(file, None);
    }

    #[tokio::test]
    async fn a_domain_is_created_only_if_it_does_not_exist() {
        let secrets = json!({"api_key": {"secret": "rnl_1"}, "smtp_credential": {"username": "u", "password": "p"}});
        let (error, file) = create_with_file(json!({"ok": secrets})).await;
        assert!(error.to_string().contains("cannot add the domain: the store is away"), "{error}");
        assert!(file.unwrap().starts_with("POSTRIDER_API_KEY=rnl_1\n"), "the secrets stay");
    }

    #[test]
    fn secrets_are_lines_of_an_environment_file() {
        let mut created = json!({
            "api_key": {"secret": "rnl_1"},
            "smtp_credential": {"username": "postrider", "password": "stxsmtp_2"},
            "sign_in": {"link": "https://mx1.example.net/auth/link/3"},
        });
        assert_eq!(
            secret_lines(&created).unwrap(),
            "POSTRIDER_API_KEY=rnl_1\nSMTP_USERNAME=postrider\nSMTP_PASSWORD=stxsmtp_2\n\
             SIGN_IN_LINK=https://mx1.example.net/auth/link/3\n"
        );
        created["sign_in"] = Value::Null;
        assert_eq!(secret_lines(&created).unwrap().lines().count(), 3);
        assert_eq!(secret_lines(&json!({})), None);
    }
}
