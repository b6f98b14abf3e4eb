//! Requests of the operator, as the admin socket and the console make them.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use clap::builder::{BoolishValueParser, RangedU64ValueParser};
use jiff::Timestamp;
use message::address::DomainName;
use model::account::Plan;
use model::destination::{PaceOverride, RouteOverride};
use model::domain::TlsMode;
use model::pool::WarmUpOverride;
use model::slug::PoolName;
use model::task::TaskClass;
use serde::{Deserialize, Serialize};

use super::search::{EmailQuery, QueueSearch};
use crate::store_references::StoreReferences;

/// Requests of the operator.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "ask", rename_all = "snake_case")]
pub enum AdminRequest {
    /// Creates an account and its first secrets.
    AccountCreate(AccountCreate),
    /// Changes an account.
    AccountUpdate(AccountUpdate),
    /// Looks up what a configuration names, for `postrider check`.
    StoreFacts { references: StoreReferences },
    /// Lists all accounts.
    AccountList { page: PageQuery },
    AccountShow {
        /// Account id or the owner's address.
        account: String,
    },
    /// Creates a sign-in link for the console.
    Console,
    /// Creates a dashboard session of an account's owner.
    SessionCreate {
        /// Account id or the owner's address; optional if only one account exists.
        account: Option<String>,
    },
    /// Removes a user's password, ends their sessions and creates a sign-in link.
    UserReset {
        /// Email address of the user.
        email: String,
    },
    /// Calls an operation of the API with the rights of the account's owner.
    Owner {
        /// Account id or the owner's address; optional if only one account exists.
        account: Option<String>,
        /// HTTP method.
        method: String,
        /// Path, with the query after a `?`.
        target: String,
        body: serde_json::Value,
    },
    /// Adds a sending domain.
    DomainCreate(DomainCreate),
    /// Checks a domain's DNS records.
    DomainVerify(DomainVerify),
    /// Changes the settings of a domain.
    DomainUpdate { name: String, change: DomainChange },
    /// Lists the domains of an account, or of all accounts.
    DomainList {
        /// Account id or the owner's address; none for all accounts.
        account: Option<String>,
        page: PageQuery,
    },
    /// Shows a domain and its DNS records.
    DomainShow { name: String },
    /// Lists tasks in the queue.
    QueueList {
        /// Maximum number of tasks.
        limit: usize,
        #[serde(default)]
        filter: QueueFilter,
        /// Further conditions that the tasks must match.
        #[serde(default)]
        search: QueueSearch,
        /// `next_cursor` of the previous page.
        #[serde(default)]
        cursor: Option<String>,
    },
    /// Lists emails, also those that are no longer in the queue.
    EmailList { filter: EmailQuery, page: PageQuery },
    /// Reports the health of this server.
    Status,
    /// Lists the destinations with the longest queues.
    QueueTop {
        /// Maximum number of destinations.
        limit: usize,
    },
    /// Runs a command on one email in the queue.
    Queue {
        /// Name of the command ([`::queue::admin::queue_command::QueueCommand::word`]).
        order: String,
        /// Id of the email.
        email: String,
    },
    /// Runs a command on all emails in the queue that match a filter.
    QueueMany {
        /// Name of the command.
        order: String,
        filter: QueueFilter,
    },
    /// Counts the recipients in the queue that match a filter.
    QueueCount {
        filter: QueueFilter,
        /// Rows of the queue that are read; none: all.
        #[serde(default)]
        rows_max: Option<usize>,
    },
    /// Lists the operator's overrides of destinations.
    DestinationList,
    /// Overrides how a destination is served.
    Destination {
        /// Recipient domain; or
        to: Option<DomainName>,
        mail_host: Option<DomainName>,
        order: DestinationAction,
    },
    /// Lists the pools of source addresses.
    PoolList,
    /// Assigns an account to a pool.
    PoolAssign {
        /// Account id or the owner's address.
        account: String,
        /// None: the pool of the account's plan.
        pool: Option<PoolName>,
    },
    /// Restarts the warm-up of a pool on another day.
    PoolWarmUp {
        pool: PoolName,
        /// None: the configured warm-up.
        warm_up: Option<WarmUpOverride>,
    },
    /// Shows all attempts and the current state of an email.
    Trace {
        /// Id of the email.
        email: String,
    },
    /// Shows counts of TLS sessions with the mail hosts of domains, and the TLS reports sent (RFC 8460).
    TlsReports(TlsReportQuery),
    /// Explains how a reply of a mail host is classified.
    Reply(ReplyQuery),
    /// Shows the status of the ACME certificate.
    CertificateShow,
    /// Orders the ACME certificate now, if none is installed or the last order failed.
    CertificateOrder,
    Backup {
        /// Path of the file, which the server creates.
        file: PathBuf,
    },
    /// Reads and checks every row of the store.
    StoreCheck,
    /// Shows the server's clock.
    ClockShow,
    /// Advances the server's clock.
    ClockAdvance { seconds: u64 },
}

/// Timeout of a client between two lines of the server.
const SILENCE_MAX: Duration = Duration::from_secs(30);

impl AdminRequest {
    /// How long a client waits for the next line of the server. None if the server can work for longer without sending
    /// one: it reads many rows, queries name servers, waits for deliveries, or does the work of an API operation.
    pub(crate) fn silence_max(&self) -> Option<Duration> {
        match self {
            Self::Backup { .. }
            | Self::QueueMany { .. }
            | Self::QueueCount { .. }
            | Self::QueueTop { .. }
            | Self::QueueList { .. }
            | Self::EmailList { .. }
            | Self::DomainVerify(_)
            | Self::ClockAdvance { .. }
            | Self::Owner { .. } => None,
            _ => Some(SILENCE_MAX),
        }
    }

    /// True if the request commits a change to the store.
    pub(crate) fn is_change(&self) -> bool {
        match self {
            Self::AccountCreate(_)
            | Self::AccountUpdate(_)
            | Self::SessionCreate { .. }
            | Self::UserReset { .. }
            | Self::DomainCreate(_)
            | Self::DomainVerify(_)
            | Self::DomainUpdate { .. }
            | Self::Queue { .. }
            | Self::QueueMany { .. }
            | Self::Destination { .. }
            | Self::PoolAssign { .. }
            | Self::PoolWarmUp { .. } => true,
            Self::Owner { method, .. } => !matches!(method.as_str(), "GET" | "HEAD"),
            Self::StoreFacts { .. }
            | Self::AccountList { .. }
            | Self::AccountShow { .. }
            | Self::Console
            | Self::DomainList { .. }
            | Self::DomainShow { .. }
            | Self::QueueList { .. }
            | Self::EmailList { .. }
            | Self::Status
            | Self::QueueTop { .. }
            | Self::QueueCount { .. }
            | Self::DestinationList
            | Self::PoolList
            | Self::Trace { .. }
            | Self::TlsReports(_)
            | Self::Reply(_)
            | Self::CertificateShow
            | Self::CertificateOrder
            | Self::Backup { .. }
            | Self::StoreCheck
            | Self::ClockShow
            | Self::ClockAdvance { .. } => false,
        }
    }
}

/// The account to create.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Args)]
pub struct AccountCreate {
    /// Email address of the owner
    #[arg(long)]
    pub email: String,
    /// free, pro, scale or dedicated
    #[arg(long)]
    pub plan: Option<Plan>,
    /// Permit sending to any recipient: a payment method is on file, or the operator vouches for the account
    #[arg(long, visible_alias = "payment-method")]
    pub production: bool,
}

/// Changes to an account; omitted fields keep their values.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Args)]
pub struct AccountUpdate {
    /// Account id or owner's address
    pub account: String,
    /// free, pro, scale or dedicated
    #[arg(long)]
    pub plan: Option<Plan>,
    /// Permit sending to any recipient (a payment method is on file): on or off
    #[arg(long, visible_alias = "payment-method")]
    #[arg(value_parser = BoolishValueParser::new(), hide_possible_values = true)]
    pub production: Option<bool>,
    /// Refuse new mail and hold queued mail of the account: on or off
    #[arg(long, value_parser = BoolishValueParser::new(), hide_possible_values = true)]
    pub suspended: Option<bool>,
}

/// The sending domain to add.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Args)]
pub struct DomainCreate {
    /// Domain name
    pub name: String,
    /// Account id or owner's address
    #[arg(long)]
    pub account: String,
    /// Mark as verified without checking its DNS records
    #[arg(long)]
    pub verified: bool,
}

/// The domain to check.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Args)]
pub struct DomainVerify {
    /// Domain name
    pub name: String,
    /// Mark as verified without checking its DNS records
    #[arg(long)]
    pub force: bool,
}

/// Changes to a domain's settings; omitted fields keep their values.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, Args)]
#[serde(default)]
pub struct DomainChange {
    /// Add an open-tracking pixel to HTML: on or off
    #[arg(long, value_parser = on_or_off)]
    pub open_tracking: Option<bool>,
    /// Rewrite links in HTML for click tracking: on or off
    #[arg(long, value_parser = on_or_off)]
    pub click_tracking: Option<bool>,
    /// opportunistic; or enforced: never send without TLS
    #[arg(long, value_parser = tls_mode)]
    pub tls_mode: Option<TlsMode>,
    /// Customer's host for tracking links, a CNAME to this service; `none` to use the service's own
    #[arg(long)]
    pub tracking_host: Option<String>,
}

/// Parser of a number of rows, at least one.
pub(crate) fn row_limit() -> RangedU64ValueParser<usize> {
    RangedU64ValueParser::new().range(1..)
}

fn on_or_off(word: &str) -> Result<bool, String> {
    match word {
        "on" | "true" => Ok(true),
        "off" | "false" => Ok(false),
        _ => Err("use `on` or `off`".to_owned()),
    }
}

fn tls_mode(word: &str) -> Result<TlsMode, String> {
    TlsMode::from_word(word).ok_or_else(|| "use `opportunistic` or `enforced`".to_owned())
}

/// The TLS results to show.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Args)]
pub struct TlsReportQuery {
    /// Only this domain, all retained days
    #[arg(long)]
    pub domain: Option<String>,
    /// Only this day (UTC), for example 2026-01-31
    #[arg(long)]
    pub day: Option<String>,
    /// Maximum number of rows
    #[arg(long, default_value_t = 1_000, value_parser = row_limit())]
    pub limit: usize,
}

/// The SMTP reply to explain.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Args)]
pub struct ReplyQuery {
    /// The reply, for example "421 4.7.28 too much mail"
    pub reply: String,
    /// Name of the mail host that sent it
    #[arg(long)]
    pub host: Option<String>,
}

/// Filter of tasks in the queue; omitted fields match everything.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct QueueFilter {
    /// Recipient domain.
    pub to: Option<DomainName>,
    /// Account id or the owner's address.
    pub account: Option<String>,
    /// Sending domain.
    pub from: Option<DomainName>,
    pub class: Option<TaskClass>,
    /// True: held tasks only; false: tasks that are not held.
    pub held: Option<bool>,
    /// Minimum number of attempts.
    pub attempts_min: Option<u32>,
    /// Minimum age in seconds, counted from acceptance.
    pub older_seconds: Option<u64>,
    /// Only mail accepted before this time.
    pub accepted_before: Option<Timestamp>,
}

/// One page of a list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Args)]
pub struct PageQuery {
    /// Maximum number of rows
    #[arg(long, default_value_t = 100, value_parser = row_limit())]
    pub limit: usize,
    /// Continue with `next_cursor` of the previous page
    #[arg(long)]
    pub cursor: Option<String>,
}

/// Overrides of a destination.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DestinationAction {
    /// Pauses delivery.
    Suspend {
        /// Duration in seconds; none: until resumed.
        seconds: Option<u64>,
        /// Reason, as free text.
        because: Option<String>,
    },
    /// Resumes delivery.
    Resume,
    /// Overrides connection and rate limits.
    Pace(PaceOverride),
    /// Overrides the route; none restores the configured one.
    Route(Option<RouteOverride>),
}

#[cfg(test)]
mod tests {
    use clap::Command;

    use super::*;

    #[test]
    fn a_list_has_at_least_one_row() {
        let mut command = PageQuery::augment_args(Command::new("list"));
        let error = command.try_get_matches_from_mut(["list", "--limit", "0"]).unwrap_err();
        assert_eq!(error.kind(), clap::error::ErrorKind::ValueValidation);
        let matches = command.try_get_matches_from(["list", "--limit", "1"]).unwrap();
        assert_eq!(matches.get_one::<usize>("limit"), Some(&1));
    }

    #[test]
    fn switches_of_an_account_are_on_or_off() {
        let mut command = AccountUpdate::augment_args(Command::new("update"));
        let help = command.render_help().to_string();
        assert!(help.contains("on or off") && !help.contains("possible values"), "{help}");
        let matches = command.try_get_matches_from(["update", "acct_1", "--suspended", "on"]).unwrap();
        assert_eq!(matches.get_one::<bool>("suspended"), Some(&true));
    }
}
