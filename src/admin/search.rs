//! Searches accounts, domains and emails: for lists, and for the trace of an email whose id is not known.
//!
//! ```text
//! account by account ─► search index (status, recipient, author) ─► rows ─► message id? ─► page, cursor
//! ```
//!
//! Limits per request: [`LISTED_MAX`] rows, [`ACCOUNTS_MAX`] accounts and [`READ_MAX`] emails. A response that a limit
//! cut off reports how far the search got; the search continues from its cursor.

use std::time::Duration;

use ::net::clock::Clock;
use clap::Args;
use jiff::Timestamp;
use message::address::{Address, DomainName};
use model::account::Account;
use model::email::{Email, EmailStatus};
use model::email_index::EmailFilter;
use model::id::{AccountId, EmailId};
use model::task::Task;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use store::email::EmailWithRecipients;

use super::email_state::EmailState;
use super::error::{AdminError, AdminResult, error_text};
use super::request::PageQuery;
use super::views;
use crate::config::read_duration;
use crate::services::Server;

/// Maximum number of rows in a page.
const LISTED_MAX: usize = 1_000;
/// Maximum number of accounts searched for one request.
const ACCOUNTS_MAX: usize = 1_000;
/// Maximum number of emails read for one request, if no index matches the filter.
const READ_MAX: usize = 100_000;
/// Number of emails per read of the store.
const READ_AT_ONCE: usize = 500;
/// Maximum number of index pages that ended early because they reached their own cost limit.
const COSTLY_PAGES_MAX: usize = 100;
/// Maximum wait until the latest changes are indexed.
const INDEX_WAIT_MAX: Duration = Duration::from_millis(200);

/// Filter of emails; omitted fields match everything.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, Args)]
#[serde(default)]
pub struct EmailQuery {
    /// Only this account (id or owner's address)
    #[arg(long)]
    pub account: Option<String>,
    #[arg(skip)]
    pub status: Option<EmailState>,
    /// Only emails to this address
    #[arg(long, value_name = "ADDRESS")]
    pub recipient: Option<Address>,
    /// Only emails from this address (`From`)
    #[arg(long, value_name = "ADDRESS")]
    pub sender: Option<Address>,
    /// Only this Message-ID
    #[arg(long, value_name = "ID")]
    pub message_id: Option<String>,
    /// Only emails accepted since (`90m`, `2h`, `3d` ago, or 2026-01-31T12:00:00Z)
    #[arg(long, value_parser = parse_since)]
    pub since: Option<Timestamp>,
}

fn parse_since(text: &str) -> Result<Timestamp, String> {
    if let Ok(at) = text.parse::<Timestamp>() {
        return Ok(at);
    }
    let ago = read_duration(text)?;
    Clock::default().now().checked_sub(ago).map_err(|_| "the time is out of range".to_owned())
}

/// Filter of tasks by fields of their emails; omitted fields match everything.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, Args)]
#[serde(default)]
pub struct QueueSearch {
    /// Only mail to this address
    #[arg(long, value_name = "ADDRESS")]
    pub recipient: Option<Address>,
    /// Only mail from this address (`From` or MAIL FROM)
    #[arg(long, value_name = "ADDRESS")]
    pub sender: Option<Address>,
    /// Only this Message-ID
    #[arg(long, value_name = "ID")]
    pub message_id: Option<String>,
}

impl QueueSearch {
    /// Returns whether a task matches as far as its own row shows.
    pub(super) fn may_match(&self, task: &Task) -> bool {
        self.recipient.as_ref().is_none_or(|recipient| is_equal_ignoring_case(recipient, &task.address))
    }

    /// Returns whether matching requires the email's row.
    pub(super) fn reads_emails(&self) -> bool {
        self.sender.is_some() || self.message_id.is_some()
    }

    pub(super) fn matches_email(&self, email: &Email) -> bool {
        let is_sender = |sender: &Address| {
            is_equal_ignoring_case(sender, &email.from.address)
                || email.reverse_path.as_ref().is_some_and(|path| is_equal_ignoring_case(sender, path))
        };
        self.sender.as_ref().is_none_or(is_sender)
            && self.message_id.as_deref().is_none_or(|id| strip_angle_brackets(id) == email.header.message_id)
    }
}

/// Compares addresses, ignoring case in the local part too.
fn is_equal_ignoring_case(left: &Address, right: &Address) -> bool {
    left.to_string().to_lowercase() == right.to_string().to_lowercase()
}

/// Removes the angle brackets of a Message-ID.
fn strip_angle_brackets(message_id: &str) -> &str {
    message_id.trim().trim_matches(['<', '>'])
}

/// Position in a list of emails: continues in this account with emails older than `before`.
struct Cursor {
    account: AccountId,
    before: Option<EmailId>,
}

impl Cursor {
    fn read(text: &str) -> Result<Self, String> {
        let error = || format!("`{text}` is not a valid cursor: use `next_cursor` of the previous page");
        let (account, before) = match text.split_once('/') {
            Some((account, before)) => (account, Some(before)),
            None => (text, None),
        };
        let before = before.map(|id| id.parse().map_err(|_| error())).transpose()?;
        Ok(Self { account: account.parse().map_err(|_| error())?, before })
    }

    fn text(&self) -> String {
        match self.before {
            Some(before) => format!("{}/{before}", self.account),
            None => self.account.to_string(),
        }
    }
}

/// Lists accounts, oldest first.
pub(super) async fn accounts(server: &Server, PageQuery { limit, cursor }: PageQuery) -> AdminResult {
    let after = cursor.map(|id| id.parse::<AccountId>().map_err(error_text)).transpose()?;
    let limit = limit.clamp(1, LISTED_MAX);
    let mut found = store::account::list(&server.store, after, limit + 1).await.map_err(error_text)?;
    let has_more = found.len() > limit;
    found.truncate(limit);
    let next = found.last().filter(|_| has_more).map(|account| account.id);
    Ok(json!({
        "accounts": found.iter().map(views::account_view).collect::<Vec<_>>(),
        "has_more": has_more,
        "next_cursor": next,
    }))
}

/// Lists sending domains of one or all accounts by name.
pub(super) async fn domains(
    server: &Server,
    account: Option<String>,
    PageQuery { limit, cursor }: PageQuery,
) -> AdminResult {
    let account = resolve_account(server, account.as_deref()).await?;
    let after = cursor.map(|name| name.parse::<DomainName>().map_err(|_| format!("`{name}` is not a domain name")));
    let mut after = after.transpose()?;
    let limit = limit.clamp(1, LISTED_MAX);
    let (mut found, mut read) = (Vec::new(), 0);
    let has_more = loop {
        let page = store::domain::by_names(&server.store, after.as_ref(), READ_AT_ONCE).await.map_err(error_text)?;
        let is_last = page.len() < READ_AT_ONCE;
        read += page.len();
        for domain in page {
            if found.len() == limit {
                break;
            }
            after = Some(domain.name.clone());
            if account.is_none_or(|account| account == domain.account) {
                found.push(domain);
            }
        }
        match (found.len() == limit, is_last) {
            // There may or may not be more: the next page shows it.
            (true, _) => break true,
            (false, true) => break false,
            (false, false) if read >= READ_MAX => break true,
            (false, false) => {}
        }
    };
    Ok(json!({
        "domains": found.iter().map(views::domain_in_list).collect::<Vec<_>>(),
        "has_more": has_more,
        "next_cursor": after.filter(|_| has_more),
    }))
}

/// The account with this id or owner's address.
pub(super) async fn find_account(server: &Server, name: &str) -> Result<Account, AdminError> {
    let found = store::account::find(&server.store, name).await.map_err(error_text)?;
    found.ok_or_else(|| AdminError::with_code("not_found", format!("account {name} does not exist")))
}

/// The id of the named account, if one is named.
pub(super) async fn resolve_account(server: &Server, name: Option<&str>) -> Result<Option<AccountId>, AdminError> {
    match name {
        Some(name) => Ok(Some(find_account(server, name).await?.id)),
        None => Ok(None),
    }
}

/// Lists the emails that match, newest first within each account.
pub(super) async fn emails(server: &Server, query: EmailQuery, PageQuery { limit, cursor }: PageQuery) -> AdminResult {
    let indexed_until = server.queue.events.outbox.dispatch_within(INDEX_WAIT_MAX).await;
    let mut search = Search::new(server, query, limit.clamp(1, LISTED_MAX)).await?;
    let next = search.run(cursor.as_deref().map(Cursor::read).transpose()?).await?;
    Ok(json!({
        "emails": search.found.iter().map(email_in_list).collect::<Vec<_>>(),
        "has_more": next.is_some(),
        "next_cursor": next.as_ref().map(Cursor::text),
        "accounts_searched": search.accounts,
        "emails_read": search.read,
        "searched_back_to": search.back_to,
        "as_of": indexed_until,
    }))
}

struct Search<'a> {
    server: &'a Server,
    account: Option<AccountId>,
    filter: EmailFilter,
    /// Needed because the filter's statuses do not distinguish queued from deferred emails.
    state: Option<EmailState>,
    message_id: Option<String>,
    limit: usize,
    found: Vec<EmailWithRecipients>,
    accounts: usize,
    read: usize,
    costly_pages: usize,
    /// Acceptance time of the oldest email that was read.
    back_to: Option<Timestamp>,
}

impl<'a> Search<'a> {
    async fn new(server: &'a Server, query: EmailQuery, limit: usize) -> Result<Self, AdminError> {
        let EmailQuery { account, status, recipient, sender, message_id, since } = query;
        let account = resolve_account(server, account.as_deref()).await?;
        let filter = EmailFilter {
            statuses: status.map(EmailState::statuses).unwrap_or_default(),
            to: recipient.into_iter().collect(),
            from: sender.into_iter().collect(),
            after: since,
            ..EmailFilter::default()
        };
        let message_id = message_id.map(|id| strip_angle_brackets(&id).to_owned());
        Ok(Self {
            server,
            account,
            filter,
            state: status,
            message_id,
            limit,
            found: Vec::new(),
            accounts: 0,
            read: 0,
            costly_pages: 0,
            back_to: None,
        })
    }

    /// Runs the search. Returns the position to continue at, if there may be more.
    async fn run(&mut self, cursor: Option<Cursor>) -> Result<Option<Cursor>, AdminError> {
        if let Some(id) = self.message_id.as_deref().and_then(parse_own_message_id)
            && let Some(email) = store::email::find_in_any_account(&self.server.store, id).await.map_err(error_text)?
            && self.matches_email(&email)
        {
            self.found.push(email);
            return Ok(None);
        }
        let mut position = match (cursor, self.account) {
            (Some(cursor), Some(account)) if cursor.account != account => {
                return Err("the cursor belongs to another account".into());
            }
            (Some(cursor), _) => Some(cursor),
            (None, Some(account)) => Some(Cursor { account, before: None }),
            (None, None) => self.next_account(None).await?,
        };
        while let Some(cursor) = position {
            let Cursor { account, before } = cursor;
            if self.has_reached_limit() {
                return Ok(Some(cursor));
            }
            position = match self.step(account, before).await? {
                Some(before) => Some(Cursor { account, before: Some(before) }),
                None if self.account.is_some() => None,
                None => self.next_account(Some(account)).await?,
            };
            if position.as_ref().is_none_or(|position| position.account != account) {
                self.accounts += 1;
            }
            tokio::task::yield_now().await;
        }
        Ok(None)
    }

    fn has_reached_limit(&self) -> bool {
        self.found.len() >= self.limit
            || self.accounts >= ACCOUNTS_MAX
            || self.read >= READ_MAX
            || self.costly_pages >= COSTLY_PAGES_MAX
    }

    async fn next_account(&self, after: Option<AccountId>) -> Result<Option<Cursor>, AdminError> {
        let next = store::account::list_ids(&self.server.store, after, 1).await.map_err(error_text)?;
        Ok(next.first().map(|account| Cursor { account: *account, before: None }))
    }

    /// Searches one page of an account. Returns the position to continue at, if there may be more in this account.
    async fn step(&mut self, account: AccountId, before: Option<EmailId>) -> Result<Option<EmailId>, AdminError> {
        // Uses larger pages if emails have to be read to be matched.
        let missing = self.limit.saturating_sub(self.found.len());
        let reads_emails =
            self.message_id.is_some() || self.state.is_some_and(|state| state.statuses().contains(&EmailStatus::Sent));
        let page_size = if reads_emails { READ_AT_ONCE } else { missing.min(READ_AT_ONCE) };
        let page = store::email_index::search::search(&self.server.store, account, &self.filter, before, page_size);
        let page = page.await.map_err(error_text)?;
        self.read += page.emails.len();
        self.costly_pages += usize::from(page.next.is_some() && page.emails.len() < page_size);
        self.back_to = page.emails.last().map(|email| email.email.created_at).or(self.back_to);
        for email in page.emails {
            let id = email.email.id;
            if self.matches_email(&email) {
                self.found.push(email);
                if self.found.len() == self.limit {
                    return Ok(Some(id));
                }
            }
        }
        Ok(page.next)
    }

    fn matches_email(&self, found: &EmailWithRecipients) -> bool {
        let EmailWithRecipients { email, recipients, .. } = found;
        self.account.is_none_or(|account| account == email.account)
            && self.message_id.as_ref().is_none_or(|id| *id == email.header.message_id)
            && self.state.is_none_or(|state| state == EmailState::of(recipients))
            && self.filter.matches(email, recipients)
            && self.filter.after.is_none_or(|after| email.created_at > after)
    }
}

/// Parses the email id from a Message-ID that this service generated ([`EmailId::message_id_left`]).
fn parse_own_message_id(message_id: &str) -> Option<EmailId> {
    let (local, _) = message_id.split_once('@')?;
    format!("{}{}", EmailId::PREFIX, local.to_ascii_uppercase()).parse().ok()
}

/// An email as a list shows it.
fn email_in_list(found: &EmailWithRecipients) -> Value {
    let EmailWithRecipients { email, recipients, .. } = found;
    json!({
        "id": email.id,
        "account": email.account,
        "from": email.from.address,
        "recipients": recipients.iter().map(|recipient| &recipient.address).collect::<Vec<_>>(),
        "subject": email.header.subject,
        "message_id": email.header.message_id,
        "status": EmailState::of(recipients),
        "size_bytes": email.size_bytes,
        "created_at": email.created_at,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_absolute_or_relative() {
        assert_eq!(parse_since("2026-01-31T12:00:00Z").unwrap(), "2026-01-31T12:00:00Z".parse().unwrap());
        assert!(parse_since("2h").unwrap() < Clock::default().now());
        assert!(parse_since("yesterday").is_err() && parse_since("99999999d").is_err());
    }

    #[test]
    fn generated_message_ids_contain_the_email_id() {
        let id = EmailId::new(Timestamp::from_second(1_767_261_601).unwrap(), 7);
        let author = "ada@example.com".parse().unwrap();
        assert_eq!(
            parse_own_message_id(&message::header::generate_message_id(&id.message_id_left(), &author)),
            Some(id)
        );
        assert_eq!(parse_own_message_id("CAB+xyz@mail.example.com"), None);
        assert_eq!(parse_own_message_id(""), None);
    }

    #[test]
    fn a_cursor_survives_a_round_trip() {
        let at = Timestamp::from_second(1_767_261_601).unwrap();
        let (account, before) = (AccountId::new(at, 1), EmailId::new(at, 2));
        for text in [account.to_string(), format!("{account}/{before}")] {
            assert_eq!(Cursor::read(&text).unwrap().text(), text);
        }
        for invalid in ["", "x", "acct_/msg_", &format!("{account}/")] {
            assert!(Cursor::read(invalid).is_err(), "{invalid}");
        }
    }
}
