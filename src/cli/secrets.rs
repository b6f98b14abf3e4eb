//! `postrider admin key` and `postrider admin credential`: API keys, and passwords for SMTP submission. The server makes
//! them as it does for the account's owner; a secret is printed once, and stored as a hash.

use clap::{Args, Subcommand};
use serde_json::{Map, Value, json};

use super::affiliate::encode_path_segment;
use super::listing::next;
use super::table::{Column, list, table};
use crate::admin::{AdminError, AdminRequest};

/// API keys or SMTP credentials.
#[derive(Debug, Subcommand)]
pub enum SecretCommand {
    /// List them, newest first
    List {
        /// Whose
        #[command(flatten)]
        owner: OwnerArguments,
        /// At most so many
        #[arg(long, default_value_t = 100)]
        limit: usize,
        /// Go on with `next_cursor` of the page before
        #[arg(long)]
        cursor: Option<String>,
    },
    /// Create one; its secret is printed once
    Create {
        /// Whose
        #[command(flatten)]
        owner: OwnerArguments,
        /// What people call it
        #[arg(long, default_value = "by the operator")]
        name: String,
        /// Only for sending from this domain (`dom_…`)
        #[arg(long, value_name = "ID")]
        domain: Option<String>,
        /// Only until then (2026-12-31T00:00:00Z)
        #[arg(long, value_name = "TIME")]
        expires: Option<String>,
        /// API keys: only sending, and reading what was sent with it
        #[arg(long)]
        sending: bool,
    },
    /// Give one a new secret, which is printed once; the old one stays valid for a while
    Rotate {
        /// Its id
        id: String,
        /// Whose
        #[command(flatten)]
        owner: OwnerArguments,
    },
    /// Delete one: it is valid no longer
    Delete {
        /// Its id
        id: String,
        /// Whose
        #[command(flatten)]
        owner: OwnerArguments,
    },
}

/// Whose secrets.
#[derive(Debug, Args)]
pub struct OwnerArguments {
    /// The account's id or its owner's address; may be left out where there is one account
    #[arg(long)]
    account: Option<String>,
}

/// Which of both kinds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// API keys.
    ApiKey,
    /// SMTP credentials.
    SmtpCredential,
}

impl Kind {
    fn path(self) -> &'static str {
        match self {
            Self::ApiKey => "/api-keys",
            Self::SmtpCredential => "/smtp-credentials",
        }
    }

    fn many(self) -> &'static str {
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

/// What the server is asked.
///
/// # Errors
/// The command is not for this kind.
pub(super) fn question(kind: Kind, command: &SecretCommand) -> Result<AdminRequest, String> {
    let path = kind.path();
    let (owner, method, target, body) = match command {
        SecretCommand::List { owner, limit, cursor } => {
            let cursor = cursor.as_deref().map(|cursor| format!("&cursor={}", encode_path_segment(cursor)));
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
                    return Err("an SMTP credential is for sending only: leave `--sending` out".to_owned());
                }
                Kind::SmtpCredential => {}
            }
            body.extend(domain.iter().map(|id| ("domain_id".to_owned(), Value::from(id.as_str()))));
            body.extend(expires.iter().map(|at| ("expires_at".to_owned(), Value::from(at.as_str()))));
            (owner, "POST", path.to_owned(), Value::Object(body))
        }
        SecretCommand::Rotate { id, owner } => {
            (owner, "POST", format!("{path}/{}/rotate", encode_path_segment(id)), json!({}))
        }
        SecretCommand::Delete { id, owner } => {
            (owner, "DELETE", format!("{path}/{}", encode_path_segment(id)), json!({}))
        }
    };
    Ok(AdminRequest::Owner { account: owner.account.clone(), method: method.to_owned(), target, body })
}

/// What is answered to the owner: the body, or why it was refused.
///
/// # Errors
/// It was refused.
pub(super) fn answer(answer: &Value) -> Result<Value, AdminError> {
    let body = &answer["body"];
    if answer["status"].as_u64().is_some_and(|status| status < 400) {
        return Ok(body.clone());
    }
    let error = &body["error"];
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let message = text(&error["message"]).unwrap_or_else(|| body.to_string());
    let code = text(&error["code"]).unwrap_or_else(|| "refused".to_owned());
    Err(AdminError { message, code: code.into() })
}

/// A list as a table.
pub(super) fn secrets(kind: Kind, shown: &Value) -> String {
    table(&COLUMNS, list(shown, kind.many())) + &next(shown)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_owner_was_refused_is_said() {
        let refused = json!({"status": 409, "body": {"error": {"message": "Too many", "code": "conflict"}}});
        assert_eq!(answer(&refused), Err(AdminError { message: "Too many".into(), code: "conflict".into() }));
        assert_eq!(answer(&json!({"status": 200, "body": {"a": 1}})), Ok(json!({"a": 1})));
    }
}
