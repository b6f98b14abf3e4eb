//! Creates the account and the sending domain, unless they exist.

use std::fmt::Write as _;
use std::io::Write as _;

use serde_json::{Value, json};
use store::engine::private_files;

use super::dialog::Dialog;
use super::error::SetupError;
use super::installation::Installation;
use super::options::SetupOptions;
use crate::admin::AdminRequest;

/// Creates what is missing.
pub(super) async fn create(
    dialog: &mut dyn Dialog,
    options: &SetupOptions,
    installation: &Installation,
) -> Result<(), SetupError> {
    create_account(dialog, options, installation).await?;
    create_domain(dialog, installation).await
}

async fn create_account(
    dialog: &mut dyn Dialog,
    options: &SetupOptions,
    installation: &Installation,
) -> Result<(), SetupError> {
    const ACTION: &str = "create the account";
    let (admin, owner) = (installation.admin(), installation.answers.owner.to_string());
    match admin.request(&AdminRequest::AccountShow { account: owner.clone() }).await {
        Ok(_) => {
            let command = options.command("admin key create");
            dialog.print(&format!("The account of {owner} exists. Its API key was shown when it was created;"));
            dialog.print(&format!("for another one: {command} --account {owner}"));
            return Ok(());
        }
        Err(error) if error.code == "not_found" => {}
        Err(error) => return Err(SetupError::admin(ACTION)(error)),
    }
    // The file is created first: a secret that cannot be stored would be lost.
    let file = match &options.secrets {
        Some(path) => Some(private_files::create_new_file(path).map_err(|source| secrets_error(options, source))?),
        None => None,
    };
    let request = AdminRequest::AccountCreate { email: owner.clone(), plan: None, production: true };
    let created = admin.request(&request).await.map_err(SetupError::admin(ACTION))?;
    dialog.print(&format!("Created the account of {owner}. It may send to anybody."));
    let secrets = secret_lines(&created).ok_or(SetupError::UnexpectedResponse { action: ACTION })?;
    match (file, &options.secrets) {
        (Some(mut file), Some(path)) => {
            let written = file.write_all(secrets.as_bytes()).and_then(|()| file.sync_all());
            written.map_err(|source| secrets_error(options, source))?;
            dialog.print(&format!("Its API key and SMTP password are in {}, which only you can read.", path.display()));
        }
        _ => {
            dialog
                .print("Copy these now; they are shown only once. The link signs in to the dashboard within 24 hours,");
            dialog.print("when DNS and the certificate are ready.\n");
            secrets.lines().for_each(|line| dialog.print(&format!("  {line}")));
            dialog.print("");
        }
    }
    Ok(())
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
            dialog.print(&format!("The domain {name} exists."));
            found["domain"].take()
        }
        Err(_) => {
            let request = AdminRequest::DomainCreate { name: name.clone(), account: owner.clone(), verified: false };
            admin.request(&request).await.map_err(SetupError::admin(ACTION))?;
            dialog.print(&format!("Added the domain {name}, with new DKIM keys."));
            Value::Null
        }
    };
    if answers.receive && domain["inbound_enabled"] != true {
        let body = json!({"inbound_enabled": true});
        let changed = admin.call_as_owner(&owner, "PATCH", format!("/domains/{name}"), body).await;
        changed.map_err(SetupError::admin("enable receiving for the domain"))?;
        dialog.print(&format!("Mail for {name} is received once the domain is verified."));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

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
