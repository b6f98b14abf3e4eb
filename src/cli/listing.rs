//! Lists of accounts, domains and emails: arguments, requests and tables.

use std::fmt::Write as _;

use clap::Subcommand;
use serde_json::Value;

use super::table::{Column, list, table};
use crate::admin::{AdminRequest, EmailQuery, EmailState, PageQuery};

/// Commands of `admin email`.
#[derive(Debug, Subcommand)]
pub enum EmailCommand {
    /// List emails, sent and scheduled, newest first within each account
    List {
        #[command(flatten)]
        filter: EmailQuery,
        /// Only this status: scheduled, queued, deferred, delivered, bounced, failed or cancelled
        #[arg(long, value_parser = parse_status)]
        status: Option<EmailState>,
        #[command(flatten)]
        page: PageQuery,
    },
}

/// Parses an email reference: `<…>` is a Message-ID, a text with `@` is a recipient. Returns none for all others,
/// which are email ids.
///
/// # Errors
/// The text has an `@` but is not an address.
pub fn parse_reference(text: &str) -> Result<Option<EmailQuery>, String> {
    if text.starts_with('<') && text.ends_with('>') {
        return Ok(Some(EmailQuery { message_id: Some(text.to_owned()), ..EmailQuery::default() }));
    }
    if !text.contains('@') {
        return Ok(None);
    }
    let recipient = text.parse().map_err(|error| format!("`{text}` is not an email address: {error}"))?;
    Ok(Some(EmailQuery { recipient: Some(recipient), ..EmailQuery::default() }))
}

fn parse_status(word: &str) -> Result<EmailState, String> {
    serde_json::from_value(Value::from(word)).map_err(|_| {
        "use `scheduled`, `queued`, `deferred`, `delivered`, `bounced`, `failed` or `cancelled`".to_owned()
    })
}

/// Builds the admin request of an email command.
pub fn build_request(command: &EmailCommand) -> AdminRequest {
    let EmailCommand::List { filter, status, page } = command;
    AdminRequest::EmailList { filter: EmailQuery { status: *status, ..filter.clone() }, page: page.clone() }
}

const ACCOUNTS: [Column; 6] = [
    Column::new("id", "id", 40),
    Column::new("owner", "email", 44),
    Column::new("plan", "plan", 10),
    Column::new("production", "production", 10),
    Column::new("suspended", "suspended", 9),
    Column::new("created", "created_at", 24),
];

const DOMAINS: [Column; 5] = [
    Column::new("domain", "name", 60),
    Column::new("status", "status", 10),
    Column::new("inbound", "inbound", 7),
    Column::new("account", "account", 40),
    Column::new("created", "created_at", 24),
];

const EMAILS: [Column; 6] = [
    Column::new("id", "id", 40),
    Column::new("accepted", "created_at", 24),
    Column::new("status", "status", 9),
    Column::new("from", "from", 32),
    Column::new("to", "to", 40),
    Column::new("subject", "subject", 40),
];

/// Formats the result of `account list`.
pub fn accounts(result: &Value) -> String {
    table(&ACCOUNTS, list(result, "accounts")) + &next(result)
}

/// Formats the result of `domain list`.
pub fn domains(result: &Value) -> String {
    table(&DOMAINS, list(result, "domains")) + &next(result)
}

/// Formats the result of `email list`, and how far the search got.
pub fn emails(result: &Value) -> String {
    let rows: Vec<Value> = list(result, "emails").iter().map(email_row).collect();
    let mut out = table(&EMAILS, &rows);
    if result["has_more"] == true
        && let Some(back_to) = result["searched_back_to"].as_str()
    {
        // Writing to a String does not fail.
        let _ = writeln!(
            out,
            "{} accounts searched, {} emails read, back to {back_to}",
            result["accounts_searched"], result["emails_read"]
        );
    }
    if let Some(as_of) = result["as_of"].as_str() {
        let _ = writeln!(out, "The email index lags behind: complete up to {as_of}");
    }
    out + &next(result)
}

fn email_row(email: &Value) -> Value {
    let mut row = email.clone();
    let recipients = list(email, "recipients");
    let first = recipients.first().and_then(Value::as_str).unwrap_or("-");
    row["to"] = match recipients.len() {
        0 | 1 => Value::from(first),
        count => Value::from(format!("{first} and {} more", count - 1)),
    };
    row
}

/// Labels how the email of a trace was submitted as `source`. The field of the JSON keeps its name.
pub(super) fn label_source(trace: &Value) -> Value {
    let label = |name: &str| if name == "door" { "source".to_owned() } else { name.to_owned() };
    let fields = trace.as_object().into_iter().flatten();
    fields.map(|(name, value)| (label(name), value.clone())).collect()
}

/// Prints the cursor of the next page, if there may be one.
pub fn next(result: &Value) -> String {
    match result["next_cursor"].as_str() {
        Some(cursor) => format!("There may be more: --cursor {cursor}\n"),
        None => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_trace_shows_the_source_of_the_email() {
        let text = super::super::readable::render_readable(&label_source(&json!({"id": "msg_1", "door": "api"})));
        assert_eq!(text, "id: msg_1\nsource: api\n");
    }

    #[test]
    fn emails_are_a_table() {
        let result = json!({
            "emails": [{"id": "msg_1", "created_at": "2026-01-01T00:00:00Z", "status": "delivered",
                "from": "a@b.example", "recipients": ["c@d.example", "e@f.example"], "subject": "Hi"}],
            "has_more": true, "next_cursor": "acct_1/msg_1", "accounts_searched": 3, "emails_read": 12,
            "searched_back_to": "2025-01-01T00:00:00Z", "as_of": null,
        });
        assert_eq!(
            emails(&result),
            "id     accepted              status     from         to                      subject\n\
             msg_1  2026-01-01T00:00:00Z  delivered  a@b.example  c@d.example and 1 more  Hi\n\
             3 accounts searched, 12 emails read, back to 2025-01-01T00:00:00Z\n\
             There may be more: --cursor acct_1/msg_1\n"
        );
    }

    #[test]
    fn a_text_names_a_recipient_or_a_message_id() {
        let parse = parse_reference;
        let recipient = parse("grey@grey.test").unwrap().unwrap();
        assert_eq!(recipient.recipient, "grey@grey.test".parse().ok());
        let message = parse("<1@example.com>").unwrap().unwrap();
        assert_eq!((message.message_id.as_deref(), message.recipient), (Some("<1@example.com>"), None));
        assert_eq!(parse("msg_1"), Ok(None));
        assert!(parse("a@@").is_err());
    }

    #[test]
    fn a_status_is_one_of_the_list() {
        assert_eq!(parse_status("bounced"), Ok(EmailState::Bounced));
        assert!(parse_status("lost").is_err() && parse_status("sent").is_err());
    }
}
