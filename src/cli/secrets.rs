//! `postrider admin key` and `postrider admin credential`: manage API keys and passwords for SMTP submission through
//! the API's operations. A secret is printed once; the store contains only its hash.

use clap::{Args, Command, Subcommand};
use message::percent::encode_segment;
use serde_json::{Map, Value, json};

use super::listing::next;
use super::table::{Column, list, table};
use crate::admin::{AdminError, AdminRequest};

/// Commands for API keys or SMTP credentials.
#[derive(Debug, Subcommand)]
pub enum SecretCommand {
    /// List credentials, newest first
    List {
        #[command(flatten)]
        owner: OwnerArguments,
        /// Maximum number of rows
        #[arg(long, default_value_t = 100)]
        limit: usize,
        /// Continue with `next_cursor` of the previous page
        #[arg(long)]
        cursor: Option<String>,
    },
    /// Create a credential; its secret is printed once
    Create {
        #[command(flatten)]
        owner: OwnerArguments,
        /// Descriptive name
        #[arg(long, default_value = "by the operator")]
        name: String,
        /// Restrict sending to this domain (`dom_…`)
        #[arg(long, value_name = "ID")]
        domain: Option<String>,
        /// Expiry (2026-12-31T00:00:00Z) [default: never]
        #[arg(long, value_name = "TIME")]
        expires: Option<String>,
        /// API keys only: permit only sending, and reading what was sent with the key
        #[arg(long)]
        sending: bool,
    },
    /// Replace the secret and print the new one once; the old one stays valid for a while
    Rotate {
        /// Id
        id: String,
        #[command(flatten)]
        owner: OwnerArguments,
    },
    /// Delete a credential; it stops working at once
    Delete {
        /// Id
        id: String,
        #[command(flatten)]
        owner: OwnerArguments,
    },
}

/// Names the kind of secret in the help of a subcommand.
pub(super) fn with_help(text: &'static str) -> impl FnOnce(Command) -> Command {
    move |command| command.about(text)
}

/// Selects the account.
#[derive(Debug, Args)]
pub struct OwnerArguments {
    /// Account id or owner's address; optional if only one account exists
    #[arg(long)]
    account: Option<String>,
}

/// Kind of secret.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    ApiKey,
    SmtpCredential,
}

impl Kind {
    fn path(self) -> &'static str {
        match self {
            Self::ApiKey => "/api-keys",
            Self::SmtpCredential => "/smtp-credentials",
        }
    }

    fn list_field(self) -> &'static str {
        match self {
            Self::ApiKey => "api_keys",
            Self::SmtpCredential => "smtp_credentials",
        }
    }
}

const COLUMNS: [Column; 6] = [
    Column::new("id", "id", 40),
    Column::new("name", "name", 32),
    Column::new("secret", "hint", 24),
    Column::new("enabled", "enabled", 7),
    Column::new("last used", "last_used_at", 24),
    Column::new("expires", "expires_at", 24),
];

/// Builds the admin request.
///
/// # Errors
/// The arguments do not apply to this kind.
pub(super) fn build_request(kind: Kind, command: &SecretCommand) -> Result<AdminRequest, String> {
    let path = kind.path();
    let (owner, method, target, body) = match command {
        SecretCommand::List { owner, limit, cursor } => {
            let cursor = cursor.as_deref().map(|cursor| format!("&cursor={}", encode_segment(cursor)));
            let target = format!("{path}?limit={limit}{}", cursor.unwrap_or_default());
            (owner, "GET", target, json!({}))
        }
        SecretCommand::Create { owner, name, domain, expires, sending } => {
            let mut body = Map::from_iter([("name".to_owned(), Value::from(name.as_str()))]);
            match kind {
                Kind::ApiKey => {
                    let scope = if *sending { "sending" } else { "full" };
                    body.insert("scope".to_owned(), Value::from(scope));
                }
                Kind::SmtpCredential if *sending => {
                    return Err("an SMTP credential permits sending only: omit `--sending`".to_owned());
                }
                Kind::SmtpCredential => {}
            }
            body.extend(domain.iter().map(|id| ("domain_id".to_owned(), Value::from(id.as_str()))));
            body.extend(expires.iter().map(|at| ("expires_at".to_owned(), Value::from(at.as_str()))));
            (owner, "POST", path.to_owned(), Value::Object(body))
        }
        SecretCommand::Rotate { id, owner } => {
            (owner, "POST", format!("{path}/{}/rotate", encode_segment(id)), json!({}))
        }
        SecretCommand::Delete { id, owner } => (owner, "DELETE", format!("{path}/{}", encode_segment(id)), json!({})),
    };
    Ok(AdminRequest::Owner { account: owner.account.clone(), method: method.to_owned(), target, body })
}

/// Extracts the API's response from the result of the admin request.
///
/// # Errors
/// Returns the API's error when it refused the request.
pub(super) fn parse_response(response: &Value) -> Result<Value, AdminError> {
    let body = &response["body"];
    if response["status"].as_u64().is_some_and(|status| status < 400) {
        return Ok(body.clone());
    }
    let error = &body["error"];
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let message = text(&error["message"]).unwrap_or_else(|| body.to_string());
    let code = text(&error["code"]).unwrap_or_else(|| "refused".to_owned());
    Err(AdminError { message, code: code.into() })
}

/// Formats a list.
pub(super) fn secrets(kind: Kind, result: &Value) -> String {
    table(&COLUMNS, list(result, kind.list_field())) + &next(result)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_api_error_becomes_an_admin_error() {
        let refused = json!({"status": 409, "body": {"error": {"message": "Too many", "code": "conflict"}}});
        assert_eq!(parse_response(&refused), Err(AdminError { message: "Too many".into(), code: "conflict".into() }));
        assert_eq!(parse_response(&json!({"status": 200, "body": {"a": 1}})), Ok(json!({"a": 1})));
    }

    #[test]
    fn the_help_names_the_kind_of_secret() {
        let help_of = |noun: &str| {
            let mut root = super::super::AdminArguments::augment_args(Command::new("admin"));
            root.find_subcommand_mut(noun).unwrap().render_help().to_string()
        };
        assert!(help_of("key").contains("Delete an API key; it stops working at once"), "{}", help_of("key"));
        let credential = help_of("credential");
        assert!(credential.contains("Create an SMTP credential; its secret is printed once"), "{credential}");
    }
}
