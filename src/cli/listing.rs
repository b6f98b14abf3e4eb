//! Lists of accounts, domains and emails: which are meant, and how they are shown.

use std::fmt::Write as _;

use ::queue::clock::Clock;
use clap::{Args, Subcommand};
use jiff::Timestamp;
use mail::address::Address;
use serde_json::Value;

use super::table::{Column, list, table};
use crate::admin::{AdminRequest, EmailState, EmailsAsked, PageAsked};
use crate::config::read_duration;

/// Emails.
#[derive(Debug, Subcommand)]
pub enum EmailCommand {
    /// List emails, sent or to be sent, newest first within each account
    List {
        /// Which
        #[command(flatten)]
        filter: EmailFilter,
        /// Only with this status: scheduled, queued, deferred, delivered, bounced, failed or cancelled
        #[arg(long, value_parser = status)]
        status: Option<EmailState>,
        /// How many
        #[command(flatten)]
        page: PageArguments,
    },
}

/// Which page of a list.
#[derive(Debug, Args)]
pub struct PageArguments {
    /// At most so many
    #[arg(long, default_value_t = 100)]
    limit: usize,
    /// Go on with `next_cursor` of the page before
    #[arg(long)]
    cursor: Option<String>,
}

impl PageArguments {
    /// What the server is asked.
    pub fn asked(&self) -> PageAsked {
        PageAsked { limit: self.limit, cursor: self.cursor.clone() }
    }
}

/// What emails have in common.
#[derive(Debug, Default, Args)]
pub struct EmailFilter {
    /// Of this account: its id, or its owner's address
    #[arg(long)]
    account: Option<String>,
    /// To this address
    #[arg(long, value_name = "ADDRESS")]
    recipient: Option<Address>,
    /// From this address (`From`)
    #[arg(long, value_name = "ADDRESS")]
    sender: Option<Address>,
    /// With this Message-ID
    #[arg(long, value_name = "ID")]
    message_id: Option<String>,
    /// Accepted since (`90m`, `2h`, `3d` ago, or 2026-01-31T12:00:00Z)
    #[arg(long, value_parser = since)]
    since: Option<Timestamp>,
}

impl EmailFilter {
    /// Whether nothing is asked for.
    pub fn is_empty(&self) -> bool {
        let Self { account, recipient, sender, message_id, since } = self;
        account.is_none() && recipient.is_none() && sender.is_none() && message_id.is_none() && since.is_none()
    }

    /// What a text that is no id names: `<…>` is a Message-ID, and what has an `@` is a recipient; else none.
    ///
    /// # Errors
    /// It is no address.
    pub fn of_text(text: &str) -> Result<Option<Self>, String> {
        if text.starts_with('<') && text.ends_with('>') {
            return Ok(Some(Self { message_id: Some(text.to_owned()), ..Self::default() }));
        }
        if !text.contains('@') {
            return Ok(None);
        }
        let recipient = text.parse().map_err(|error| format!("`{text}` is no address: {error}"))?;
        Ok(Some(Self { recipient: Some(recipient), ..Self::default() }))
    }

    /// What the server is asked.
    pub fn asked(&self, status: Option<EmailState>) -> EmailsAsked {
        EmailsAsked {
            account: self.account.clone(),
            status,
            recipient: self.recipient.clone(),
            sender: self.sender.clone(),
            message_id: self.message_id.clone(),
            since: self.since,
        }
    }
}

fn status(word: &str) -> Result<EmailState, String> {
    serde_json::from_value(Value::from(word)).map_err(|_| {
        "say `scheduled`, `queued`, `deferred`, `delivered`, `bounced`, `failed` or `cancelled`".to_owned()
    })
}

fn since(text: &str) -> Result<Timestamp, String> {
    if let Ok(at) = text.parse::<Timestamp>() {
        return Ok(at);
    }
    let ago = read_duration(text)?;
    Clock::default().now().checked_sub(ago).map_err(|_| "that is before there were clocks".to_owned())
}

/// What the server is asked about emails.
pub fn question(command: &EmailCommand) -> AdminRequest {
    let EmailCommand::List { filter, status, page } = command;
    AdminRequest::EmailList { filter: filter.asked(*status), page: page.asked() }
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

/// The answer to `account list` as a table.
pub fn accounts(shown: &Value) -> String {
    table(&ACCOUNTS, list(shown, "accounts")) + &next(shown)
}

/// The answer to `domain list` as a table.
pub fn domains(shown: &Value) -> String {
    table(&DOMAINS, list(shown, "domains")) + &next(shown)
}

/// The answer to `email list` as a table, and how far it was looked.
pub fn emails(shown: &Value) -> String {
    let rows: Vec<Value> = list(shown, "emails").iter().map(email_row).collect();
    let mut out = table(&EMAILS, &rows);
    if shown["has_more"] == true
        && let Some(back_to) = shown["searched_back_to"].as_str()
    {
        // Writing to a String does not fail.
        let _ = writeln!(
            out,
            "{} accounts searched, {} emails read, back to {back_to}",
            shown["accounts_searched"], shown["emails_read"]
        );
    }
    if let Some(as_of) = shown["as_of"].as_str() {
        let _ = writeln!(out, "The index of emails is behind: as of {as_of}");
    }
    out + &next(shown)
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

/// How to go on, when there may be more.
pub fn next(shown: &Value) -> String {
    match shown["next_cursor"].as_str() {
        Some(cursor) => format!("There may be more: --cursor {cursor}\n"),
        None => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn emails_are_a_table() {
        let shown = json!({
            "emails": [{"id": "msg_1", "created_at": "2026-01-01T00:00:00Z", "status": "delivered",
                "from": "a@b.example", "recipients": ["c@d.example", "e@f.example"], "subject": "Hi"}],
            "has_more": true, "next_cursor": "acct_1/msg_1", "accounts_searched": 3, "emails_read": 12,
            "searched_back_to": "2025-01-01T00:00:00Z", "as_of": null,
        });
        assert_eq!(
            emails(&shown),
            "id     accepted              status     from         to                      subject\n\
             msg_1  2026-01-01T00:00:00Z  delivered  a@b.example  c@d.example and 1 more  Hi\n\
             3 accounts searched, 12 emails read, back to 2025-01-01T00:00:00Z\n\
             There may be more: --cursor acct_1/msg_1\n"
        );
    }

    #[test]
    fn a_text_names_a_recipient_or_a_message_id() {
        let of = |text: &str| EmailFilter::of_text(text).map(|found| found.map(|filter| filter.asked(None)));
        let recipient = of("grey@grey.test").unwrap().unwrap();
        assert_eq!(recipient.recipient, "grey@grey.test".parse().ok());
        let message = of("<1@example.com>").unwrap().unwrap();
        assert_eq!((message.message_id.as_deref(), message.recipient), (Some("<1@example.com>"), None));
        assert_eq!(of("msg_1"), Ok(None));
        assert!(of("a@@").is_err());
    }

    #[test]
    fn times_are_given_or_ago() {
        assert_eq!(since("2026-01-31T12:00:00Z").unwrap(), "2026-01-31T12:00:00Z".parse().unwrap());
        assert!(since("2h").unwrap() < Clock::default().now());
        assert!(since("yesterday").is_err() && since("99999999d").is_err());
        assert_eq!(status("bounced"), Ok(EmailState::Bounced));
        assert!(status("lost").is_err() && status("sent").is_err());
    }
}
