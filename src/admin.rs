//! The admin socket: a UNIX socket in the data directory, for anyone who can enter that directory.
//!
//! The client sends one request as a line of JSON. The server responds with lines of JSON: any number of
//! `{"progress": "…"}`, then `{"ok": …}` or `{"error": {"message": "…", "code": "…"}}`.
//! [`serve`] is the server; `cli/admin.rs` is the client.

pub mod check;
mod clock;
pub mod console_access;
mod email_state;
mod handler;
mod pool;
mod queue;
mod search;
mod status;
mod views;

use std::borrow::Cow;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use api::server::ApiServer;
use jiff::Timestamp;
use mail::account::Plan;
use mail::address::DomainName;
use mail::destination::{PaceOverride, RouteOverride};
use mail::domain::TlsMode;
use mail::pool::WarmUpOverride;
use mail::slug::PoolName;
use mail::task::TaskClass;
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use self::console_access::ConsoleAccess;
pub use self::email_state::EmailState;
pub(crate) use self::handler::handle_request as perform;
pub use self::search::{EmailQuery, QueueSearch};
pub use self::status::StatusFacts;
use crate::acme::CertificateRenewer;
use crate::services::Server;
use crate::store_references::StoreReferences;

/// File name of the socket in the data directory.
pub const SOCKET: &str = "admin.sock";
/// Maximum length of a request in bytes; the longest valid one imports a file of five thousand partners.
const LINE_BYTES_MAX: u64 = 8 << 20;

/// Requests of the operator.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "ask", rename_all = "snake_case")]
pub enum AdminRequest {
    /// Creates an account and its first secrets.
    AccountCreate {
        /// Email address of the owner.
        email: String,
        /// None: the configured default plan.
        plan: Option<Plan>,
        /// True: the account may send to any recipient.
        production: bool,
    },
    /// Changes an account.
    AccountUpdate {
        /// Account id or the owner's address.
        account: String,
        plan: Option<Plan>,
        /// True: the account may send to any recipient.
        production: Option<bool>,
        /// True: mail of the account is refused.
        suspended: Option<bool>,
    },
    /// Looks up what a configuration names, for `postrider check`.
    StoreFacts { references: StoreReferences },
    /// Lists all accounts.
    AccountList { page: PageQuery },
    /// Shows an account.
    AccountShow {
        /// Account id or the owner's address.
        account: String,
    },
    /// Creates a link that signs in to the console.
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
    DomainCreate {
        name: String,
        /// Account id or the owner's address.
        account: String,
        /// True: mark the domain as verified without checking DNS.
        verified: bool,
    },
    /// Checks a domain's DNS records.
    DomainVerify {
        name: String,
        /// True: mark the domain as verified without checking DNS.
        force: bool,
    },
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
        /// Name of the command ([`::queue::queue_command::QueueCommand::word`]).
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
        /// the name of the mail hosts.
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
    TlsReports {
        /// Only this domain.
        domain: Option<String>,
        /// Only this day.
        day: Option<String>,
        /// Maximum number of rows.
        limit: usize,
    },
    /// Explains how a reply of a mail host is classified.
    Reply {
        /// The reply as one line.
        reply: String,
        /// Name of the mail host that sent it.
        host: Option<String>,
    },
    /// Shows the status of the ACME certificate.
    CertificateShow,
    /// Orders the ACME certificate now, if none is installed or the last order failed.
    CertificateOrder,
    /// Writes a backup.
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

/// Changes to a domain's settings; omitted fields keep their values.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct DomainChange {
    /// True: an open-tracking pixel is added to HTML.
    pub open_tracking: Option<bool>,
    /// True: links in HTML are rewritten to the tracking host.
    pub click_tracking: Option<bool>,
    /// Required level of TLS.
    pub tls_mode: Option<TlsMode>,
    /// The customer's host for tracking links; `none` for the service's own.
    pub tracking_host: Option<String>,
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
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PageQuery {
    /// Maximum number of rows.
    pub limit: usize,
    /// `next_cursor` of the previous page.
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

/// One line of a response.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ResponseLine {
    /// A long operation reports progress; more lines follow.
    Progress(String),
    /// Result. The last line.
    Ok(serde_json::Value),
    /// Failure. The last line.
    Error(AdminError),
}

/// A refused or failed request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("{message}")]
pub struct AdminError {
    /// Text for the operator.
    pub message: String,
    /// Machine-readable code.
    pub code: Cow<'static, str>,
}

impl AdminError {
    /// Creates an error with a code other than `refused`.
    #[must_use]
    pub fn with_code(code: &'static str, message: impl Into<String>) -> Self {
        Self { message: message.into(), code: code.into() }
    }
}

impl From<String> for AdminError {
    fn from(message: String) -> Self {
        Self::with_code("refused", message)
    }
}

impl From<&str> for AdminError {
    fn from(message: &str) -> Self {
        Self::from(message.to_owned())
    }
}

/// Configured permissions and handles that requests need beyond [`Server`].
#[derive(Clone)]
pub struct Permissions {
    /// Plan of a new account.
    pub default_plan: Plan,
    /// User name at submission.
    pub submission_username: String,
    /// True: `clock advance` is permitted.
    pub may_advance_clock: bool,
    /// Directory where the clock shift is stored.
    pub data_dir: PathBuf,
    /// The ACME certificate, if ACME is configured.
    pub certificate: Option<Arc<CertificateRenewer>>,
    /// The API's state, through which an owner's operations run.
    pub api_server: Arc<ApiServer>,
    pub status: StatusFacts,
    /// One permit: one check of the store at a time.
    pub check_permit: Arc<Semaphore>,
    /// Sign-in to the console.
    pub console: Arc<ConsoleAccess>,
}

/// Creates the socket. Replaces a socket that a previous process left behind: the store's lock, which this process
/// holds, ensures that no other process serves this directory.
///
/// # Errors
/// The socket cannot be created in the directory.
pub fn bind(data_dir: &Path) -> std::io::Result<UnixListener> {
    use std::os::unix::fs::PermissionsExt as _;
    let path = data_dir.join(SOCKET);
    if let Err(error) = std::fs::remove_file(&path)
        && error.kind() != std::io::ErrorKind::NotFound
    {
        return Err(error);
    }
    let listener = UnixListener::bind(&path)?;
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600))?;
    store::engine::private_files::give_socket(&path)?;
    Ok(listener)
}

/// Accepts connections and responds to requests until `stop`.
pub async fn serve(listener: UnixListener, server: Server, permissions: Permissions, stop: CancellationToken) {
    loop {
        let accepted = tokio::select! {
            () = stop.cancelled() => return,
            accepted = listener.accept() => accepted,
        };
        match accepted {
            Ok((stream, _)) => {
                let (server, permissions) = (server.clone(), permissions.clone());
                tokio::spawn(async move {
                    if let Err(error) = handle_connection(stream, &server, &permissions).await {
                        tracing::debug!(%error, "admin socket: connection closed early");
                    }
                });
            }
            Err(error) => {
                tracing::warn!(%error, "admin socket: cannot accept a connection");
                tokio::time::sleep(std::time::Duration::from_millis(100)).await;
            }
        }
    }
}

async fn handle_connection(stream: UnixStream, server: &Server, permissions: &Permissions) -> std::io::Result<()> {
    let (read, mut write) = stream.into_split();
    let mut request_line = String::new();
    BufReader::new(read.take(LINE_BYTES_MAX)).read_line(&mut request_line).await?;
    let (progress, mut steps) = tokio::sync::mpsc::channel(16);
    let response = async {
        match serde_json::from_str::<AdminRequest>(&request_line) {
            Ok(request) => handler::handle_request(server, permissions, request, progress).await,
            Err(error) => Err(format!("invalid request: {error}").into()),
        }
    };
    let mut response = std::pin::pin!(response);
    loop {
        let (line, is_last) = tokio::select! {
            Some(step) = steps.recv() => (ResponseLine::Progress(step), false),
            result = &mut response => (result.map_or_else(ResponseLine::Error, ResponseLine::Ok), true),
        };
        let mut text = serde_json::to_vec(&line)?;
        text.push(b'\n');
        write.write_all(&text).await?;
        if is_last {
            return Ok(());
        }
    }
}
