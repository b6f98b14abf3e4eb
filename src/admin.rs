//! The operator's door: a UNIX socket in the data directory, for whoever may enter that directory.
//!
//! One line of JSON asks, lines of JSON answer: any number of `{"progress": "…"}`, then
//! `{"ok": …}` or `{"error": {"message": "…", "code": "…"}}`. [`serve`] is the server's side; `cli/admin.rs` the client's.

mod answer;
pub mod check;
mod clock;
mod email_state;
mod pool;
mod queue;
mod search;
mod show;
mod status;

use std::borrow::Cow;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use api::room::AppState;
use mail::account::Plan;
use mail::address::DomainName;
use mail::destination::{PaceOverride, RouteOverride};
use mail::domain::TlsMode;
use mail::given_name::PoolName;
use mail::pool::WarmUpOverride;
use mail::task::TaskClass;
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::{Semaphore, watch};
use tokio_util::sync::CancellationToken;

pub use self::email_state::EmailState;
pub use self::search::{EmailsAsked, QueueSearch};
pub use self::status::StatusFacts;
use crate::acme::CertificateStatus;
use crate::world::Services;

/// The socket's name in the data directory.
pub const SOCKET: &str = "admin.sock";
/// A question longer than this is no question: the longest holds a file of five thousand partners.
const LINE_BYTES_MAX: u64 = 8 << 20;

/// What the operator may ask.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "ask", rename_all = "snake_case")]
pub enum AdminRequest {
    /// Create an account with its first secrets.
    AccountCreate {
        /// The owner's address.
        email: String,
        /// What it pays for; none for the configured default.
        plan: Option<Plan>,
        /// It may send to anybody.
        production: bool,
    },
    /// Change an account.
    AccountUpdate {
        /// Its id or its owner's address.
        account: String,
        /// What it pays for.
        plan: Option<Plan>,
        /// It may send to anybody.
        production: Option<bool>,
        /// Nothing is accepted from it.
        suspended: Option<bool>,
    },
    /// All accounts.
    AccountList {
        /// Which of them.
        page: PageAsked,
    },
    /// Begin a session of an account's owner.
    SessionCreate {
        /// The account's id or its owner's address; none where there is one account.
        account: Option<String>,
    },
    /// Take a user's password away, end their sessions, and make a sign-in link.
    UserReset {
        /// The user's address.
        email: String,
    },
    /// Ask what an account's owner may ask, in the owner's stead.
    Owner {
        /// The account's id or its owner's address; none where there is one account.
        account: Option<String>,
        /// The method.
        method: String,
        /// The path, and the query after a `?`.
        target: String,
        /// The body.
        body: serde_json::Value,
    },
    /// Add a sending domain.
    DomainCreate {
        /// Its name.
        name: String,
        /// Whose it is: an id or the owner's address.
        account: String,
        /// Take it as verified.
        verified: bool,
    },
    /// Look at a domain's records.
    DomainVerify {
        /// Its name.
        name: String,
        /// Take it as verified, without looking.
        force: bool,
    },
    /// Change how a domain's mail is treated.
    DomainUpdate {
        /// Its name.
        name: String,
        /// What is changed.
        change: DomainChange,
    },
    /// The domains of an account, or of all.
    DomainList {
        /// Whose: an id or the owner's address; none for all.
        account: Option<String>,
        /// Which of them.
        page: PageAsked,
    },
    /// A domain and its records.
    DomainShow {
        /// Its name.
        name: String,
    },
    /// What lies in the queue.
    QueueList {
        /// At most so many tasks.
        limit: usize,
        /// Of which.
        #[serde(default)]
        filter: QueueFilter,
        /// And of which of these.
        #[serde(default)]
        search: QueueSearch,
        /// `next_cursor` of the page before.
        #[serde(default)]
        cursor: Option<String>,
    },
    /// Emails that are or were sent.
    EmailList {
        /// Which.
        filter: EmailsAsked,
        /// How many of them.
        page: PageAsked,
    },
    /// Whether this server is well.
    Status,
    /// Where the queue is long.
    QueueTop {
        /// At most so many destinations.
        limit: usize,
    },
    /// Do something to an email in the queue.
    Queue {
        /// What, in the queue's words ([`::queue::order::Order::word`]).
        order: String,
        /// Which email.
        email: String,
    },
    /// Do something to all emails in the queue that a filter names.
    QueueMany {
        /// What.
        order: String,
        /// To which.
        filter: QueueFilter,
    },
    /// How many recipients in the queue a filter names.
    QueueCount {
        /// To which.
        filter: QueueFilter,
    },
    /// What is ordered about destinations.
    DestinationList,
    /// Order something about a destination.
    Destination {
        /// The recipients' domain, or
        to: Option<DomainName>,
        /// the mail hosts' name.
        mail_host: Option<DomainName>,
        /// What.
        order: DestinationAction,
    },
    /// How the pools of source addresses stand.
    PoolList,
    /// Have an account's mail leave from a pool.
    PoolAssign {
        /// The account's id or its owner's address.
        account: String,
        /// The pool; none is that of its plan.
        pool: Option<PoolName>,
    },
    /// Have a pool be warmed up from another day on.
    PoolWarmUp {
        /// Which.
        pool: PoolName,
        /// Since when; none is as configured.
        warm_up: Option<WarmUpOverride>,
    },
    /// Explain an email.
    Trace {
        /// Which.
        email: String,
    },
    /// How TLS went with the mail hosts of domains, and what was reported of it.
    TlsReports {
        /// Of this domain alone.
        domain: Option<String>,
        /// Of this day alone.
        day: Option<String>,
        /// At most so many.
        limit: usize,
    },
    /// What a reply of a mail host means.
    Reply {
        /// The reply, in one line.
        reply: String,
        /// Whose.
        host: Option<String>,
    },
    /// How the certificate by ACME stands.
    CertificateShow,
    /// Write a backup.
    Backup {
        /// Where to; made by the server.
        file: PathBuf,
    },
    /// Read everything in the store.
    StoreCheck,
    /// What the clock says.
    ClockShow,
    /// Move the clock forward.
    ClockAdvance {
        /// By how much.
        seconds: u64,
    },
}

/// What the operator can change of a domain; what is not named stays.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct DomainChange {
    /// HTML gets a pixel.
    pub open_tracking: Option<bool>,
    /// Links in HTML lead through us.
    pub click_tracking: Option<bool>,
    /// What is asked of TLS.
    pub tls_mode: Option<TlsMode>,
    /// The customer's host for tracking links; `none` for our own.
    pub tracking_host: Option<String>,
}

/// Which mail in the queue is meant; what is not named may be anything.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct QueueFilter {
    /// The recipients' domain.
    pub to: Option<DomainName>,
    /// Whose: an id or the owner's address.
    pub account: Option<String>,
    /// The sending domain.
    pub from: Option<DomainName>,
    /// The class.
    pub class: Option<TaskClass>,
    /// Held or not.
    pub held: Option<bool>,
    /// Tried so often at least.
    pub attempts_min: Option<u32>,
    /// Accepted so long ago at least.
    pub older_seconds: Option<u64>,
}

/// Which page of a list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PageAsked {
    /// At most so many.
    pub limit: usize,
    /// `next_cursor` of the page before.
    pub cursor: Option<String>,
}

/// What can be ordered about a destination.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DestinationAction {
    /// Leave it alone.
    Suspend {
        /// For so long; none is: until it is resumed.
        seconds: Option<u64>,
        /// Why.
        because: Option<String>,
    },
    /// Serve it again.
    Resume,
    /// Serve it at this pace.
    Pace(PaceOverride),
    /// Send its mail this way; none is the usual one.
    Route(Option<RouteOverride>),
}

/// One line of an answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ResponseLine {
    /// It goes on.
    Progress(String),
    /// It is done.
    Ok(serde_json::Value),
    /// It is not.
    Error(AdminError),
}

/// Why something is not done.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("{message}")]
pub struct AdminError {
    /// In words for the operator.
    pub message: String,
    /// In a word for programs.
    pub code: Cow<'static, str>,
}

impl AdminError {
    /// With a word of its own.
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

/// What the operator may do beyond the world's own: as the configuration says.
#[derive(Clone)]
pub struct Permissions {
    /// The plan of a new account.
    pub default_plan: Plan,
    /// The user name at submission.
    pub submission_username: String,
    /// `clock advance` works.
    pub may_advance_clock: bool,
    /// Where it is kept how far the clock was moved.
    pub data_dir: PathBuf,
    /// How the certificate by ACME stands, if there is one.
    pub certificate: Option<watch::Receiver<CertificateStatus>>,
    /// Where an owner's operations are.
    pub api_state: Arc<AppState>,
    /// What a status is about.
    pub status: StatusFacts,
    /// One check of the store at a time.
    pub checking: Arc<Semaphore>,
}

/// Makes the socket. A socket left behind by a process that is gone is replaced: the store's lock
/// has shown by now that nobody else serves this directory.
///
/// # Errors
/// The directory cannot be written.
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
    store::engine::private::give_socket(&path)?;
    Ok(listener)
}

/// Answers until `stop`.
pub async fn serve(listener: UnixListener, world: Services, rights: Permissions, stop: CancellationToken) {
    loop {
        let accepted = tokio::select! {
            () = stop.cancelled() => return,
            accepted = listener.accept() => accepted,
        };
        match accepted {
            Ok((stream, _)) => {
                let (world, rights) = (world.clone(), rights.clone());
                tokio::spawn(async move {
                    if let Err(error) = handle_connection(stream, &world, &rights).await {
                        tracing::debug!(%error, "the operator hung up");
                    }
                });
            }
            Err(error) => {
                tracing::warn!(%error, "the operator's door");
                tokio::time::sleep(std::time::Duration::from_millis(100)).await;
            }
        }
    }
}

async fn handle_connection(stream: UnixStream, world: &Services, rights: &Permissions) -> std::io::Result<()> {
    let (read, mut write) = stream.into_split();
    let mut asked = String::new();
    BufReader::new(read.take(LINE_BYTES_MAX)).read_line(&mut asked).await?;
    let (progress, mut steps) = tokio::sync::mpsc::channel(16);
    let answering = async {
        match serde_json::from_str::<AdminRequest>(&asked) {
            Ok(question) => answer::handle_request(world, rights, question, progress).await,
            Err(error) => Err(format!("not understood: {error}").into()),
        }
    };
    let mut answering = std::pin::pin!(answering);
    loop {
        let (line, last) = tokio::select! {
            Some(step) = steps.recv() => (ResponseLine::Progress(step), false),
            answer = &mut answering => (answer.map_or_else(ResponseLine::Error, ResponseLine::Ok), true),
        };
        let mut text = serde_json::to_vec(&line)?;
        text.push(b'\n');
        write.write_all(&text).await?;
        if last {
            return Ok(());
        }
    }
}
