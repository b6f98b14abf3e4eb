//! `postrider admin`: sends requests to the running server, or works on the data directory of a stopped one.

use std::io::{self, BufRead as _, BufReader, Write as _};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use ::net::clock::Clock;
use clap::{Args, Subcommand};
use serde_json::{Value, json};
use store::engine::{BackupError, BackupProgress, PostgresOptions, RedbOptions, Store};
use store::queue_hold;

use super::affiliate::{self, AffiliateArguments};
use super::destination::{self, DestinationCommand};
use super::listing::{self, EmailCommand};
use super::pool::{self, PoolCommand};
use super::progress::ProgressLine;
use super::queue::{self, QueueSubcommand};
use super::secrets::{self, Kind, SecretCommand, with_help};
use super::{AdminArguments, store_check, table};
use crate::admin::check::progress;
use crate::admin::{
    AccountCreate, AccountUpdate, AdminError, AdminRequest, DomainChange, DomainCreate, DomainVerify, EmailQuery,
    PageQuery, ReplyQuery, ResponseLine, SOCKET, TlsReportQuery,
};
use crate::config;
use crate::dev::directory::Directory;

/// Default configuration file. If it does not exist, a running `postrider dev` is used.
const CONFIGURATION: &str = "/etc/postrider/postrider.toml";

/// Commands of `postrider admin`.
#[derive(Debug, Subcommand)]
pub enum AdminCommand {
    /// Manage accounts
    #[command(subcommand)]
    Account(AccountCommand),
    /// Manage user sessions
    #[command(subcommand)]
    Session(SessionCommand),
    /// Manage users
    #[command(subcommand)]
    User(UserCommand),
    /// Manage sending domains
    #[command(subcommand)]
    Domain(DomainCommand),
    /// Inspect and manage the queue
    #[command(subcommand)]
    Queue(QueueSubcommand),
    /// Pause, throttle or reroute delivery to a destination
    #[command(subcommand)]
    Destination(DestinationCommand),
    /// Manage pools of source addresses and their warm-up
    #[command(subcommand)]
    Pool(PoolCommand),
    /// Search emails
    #[command(subcommand)]
    Email(EmailCommand),
    /// Manage API keys
    #[command(subcommand)]
    #[command(mut_subcommand("list", with_help("List API keys, newest first")))]
    #[command(mut_subcommand("create", with_help("Create an API key; its secret is printed once")))]
    #[command(mut_subcommand(
        "rotate",
        with_help("Replace the secret of an API key and print the new one once; the old one stays valid for a while")
    ))]
    #[command(mut_subcommand("delete", with_help("Delete an API key; it stops working at once")))]
    Key(SecretCommand),
    /// Manage SMTP credentials: passwords for submission
    #[command(subcommand)]
    #[command(mut_subcommand("list", with_help("List SMTP credentials, newest first")))]
    #[command(mut_subcommand("create", with_help("Create an SMTP credential; its secret is printed once")))]
    #[command(mut_subcommand(
        "rotate",
        with_help(
            "Replace the secret of an SMTP credential and print the new one once; the old one stays valid for a while"
        )
    ))]
    #[command(mut_subcommand("delete", with_help("Delete an SMTP credential; it stops working at once")))]
    Credential(SecretCommand),
    /// Trace an email: events, attempts, what it waits for, next attempt. Select it by id, recipient, sender or
    /// Message-ID; if several emails match, they are listed
    Trace {
        /// Email id, a recipient's address, or a Message-ID in angle brackets
        #[arg(required_unless_present_any = ["recipient", "sender", "message_id"])]
        #[arg(conflicts_with_all = ["recipient", "sender", "message_id", "account", "since"])]
        email: Option<String>,
        #[command(flatten)]
        filter: EmailQuery,
    },
    /// Print a single-use link that opens the console in a browser, valid for 15 minutes (requires `listen` in `[ops]`)
    Console,
    /// Show the health of the server; the exit status is 1 if there is a problem
    Status,
    /// Show TLS-RPT results for today and yesterday: sessions with other mail hosts, reports sent and reports received
    TlsReports(TlsReportQuery),
    /// Explain an SMTP error reply: its category and what the server does about it
    Reply(ReplyQuery),
    /// Show ACME certificate status: expiry, renewal, last error and its fix
    Certificate {
        /// Order a certificate now instead of waiting for the next attempt, for example after correcting DNS
        #[arg(long)]
        order: bool,
    },
    /// Write a backup while the server runs
    Backup {
        /// File to write
        file: PathBuf,
    },
    /// Restore a backup into an empty data directory (server stopped). The next start holds the queue, because some
    /// emails may have been sent since the backup; `queue release --all` resumes delivery
    Restore {
        /// File to read
        file: PathBuf,
        /// Do not hold the queue: send queued email at the next start, even if it was sent after the backup
        #[arg(long)]
        send: bool,
    },
    /// Check, hold or copy the store
    #[command(subcommand)]
    Store(StoreCommand),
    /// Manage an account's affiliate program
    Affiliate(AffiliateArguments),
    /// Show or advance the clock (requires `clock_offset` in `[testing]`)
    Clock(ClockArguments),
}

/// Commands of `admin account`.
#[derive(Debug, Subcommand)]
pub enum AccountCommand {
    /// List accounts, oldest first
    List(PageQuery),
    /// Show an account: plan, the quota nearest to its limit, queued mail, pool
    Show {
        /// Account id or owner's address
        account: String,
    },
    /// Create an account with an API key and an SMTP credential; prints a single-use link that signs the owner in
    /// within 24 hours
    Create(AccountCreate),
    /// Change an account
    Update(AccountUpdate),
}

/// Commands of `admin session`.
#[derive(Debug, Subcommand)]
pub enum SessionCommand {
    /// Create a session for an account's owner, valid for 15 minutes; prints the cookie and its x-csrf-token for
    /// scripts, and a single-use URL that opens the dashboard in a browser
    Create {
        /// Account id or owner's address; optional if only one account exists
        #[arg(long)]
        account: Option<String>,
    },
}

/// Commands of `admin user`.
#[derive(Debug, Subcommand)]
pub enum UserCommand {
    /// Remove a user's password and one-time passwords, end their sessions, and print a single-use sign-in link that
    /// is valid for one hour
    Reset {
        /// Email address of the user
        email: String,
    },
}

/// Commands of `admin domain`.
#[derive(Debug, Subcommand)]
pub enum DomainCommand {
    /// List sending domains by name
    List {
        /// Only this account (id or owner's address)
        #[arg(long)]
        account: Option<String>,
        #[command(flatten)]
        page: PageQuery,
    },
    /// Add a sending domain
    Create(DomainCreate),
    /// Check a domain's DNS records now
    Verify(DomainVerify),
    /// Change a domain's tracking and TLS settings
    Update {
        /// Domain name
        name: String,
        #[command(flatten)]
        change: DomainChange,
    },
    /// Show a domain and its DNS records
    Show {
        /// Domain name
        name: String,
    },
}

/// Commands of `admin store`.
#[derive(Debug, Subcommand)]
pub enum StoreCommand {
    /// Read everything and report damage; works while the server runs
    Check,
    /// Show the store's format and whether this version can read it, without opening the store: for upgrades
    Format,
    /// Hold the queue at the next start (server stopped), as `restore` does: for a database restored by other means
    Hold,
    /// Copy the store into another engine and compare (all servers stopped); resumes after an interruption
    Copy {
        /// Source: a data directory, a postgres:// URL, or `config` for the configured store
        #[arg(long)]
        from: String,
        /// Target, in the same form; must be empty or contain an unfinished copy
        #[arg(long)]
        to: String,
        /// Cluster name in the database, for a postgres:// URL
        #[arg(long)]
        cluster: Option<String>,
    },
}

/// Arguments of `admin clock`.
#[derive(Debug, Args)]
pub struct ClockArguments {
    /// Command; without one, shows the time
    #[command(subcommand)]
    pub command: Option<ClockCommand>,
}

/// Commands of `admin clock`.
#[derive(Debug, Subcommand)]
pub enum ClockCommand {
    /// Advance the running server's clock
    Advance {
        /// Number of seconds
        seconds: u64,
    },
}

/// Runs a command and prints its result. The exit code is 0 on success.
pub fn run(arguments: &AdminArguments) -> ExitCode {
    super::process::set_private_umask();
    if let AdminCommand::Affiliate(affiliate_arguments) = &arguments.command {
        let send = |request: &AdminRequest| send_request(&data_directory(arguments)?, request);
        return affiliate::run(affiliate_arguments, arguments.json, &send);
    }
    if matches!(arguments.command, AdminCommand::Store(StoreCommand::Check)) {
        return check_store(arguments);
    }
    if matches!(arguments.command, AdminCommand::Status) {
        return super::status::run(arguments.json, &|request| send_request(&data_directory(arguments)?, request));
    }
    let command_result = match &arguments.command {
        AdminCommand::Store(StoreCommand::Copy { from, to, cluster }) => {
            super::copy::run_copy(from, to, cluster.as_deref(), &|| load_configuration(arguments))
                .map_err(AdminError::from)
        }
        _ => {
            data_directory(arguments).map_err(AdminError::from).and_then(|directory| run_command(arguments, &directory))
        }
    };
    let mut out = std::io::stdout().lock();
    let (result, code) = match command_result {
        Ok(value) => (value, ExitCode::SUCCESS),
        Err(error) if arguments.json => (json!({"error": error}), ExitCode::FAILURE),
        Err(error) => {
            eprintln!("postrider: {error}");
            return ExitCode::FAILURE;
        }
    };
    let text = if arguments.json { format!("{result}\n") } else { text(&arguments.command, &result) };
    // The command has been carried out, even if stdout is closed.
    let _ = out.write_all(text.as_bytes());
    code
}

/// Formats a result as text.
fn text(command: &AdminCommand, result: &Value) -> String {
    match command {
        AdminCommand::Queue(QueueSubcommand::Top { .. }) => queue::top(result),
        AdminCommand::Queue(QueueSubcommand::List { .. }) => queue::tasks(result),
        AdminCommand::Account(AccountCommand::List(_)) => listing::accounts(result),
        AdminCommand::Domain(DomainCommand::List { .. }) => listing::domains(result),
        AdminCommand::Email(_) => listing::emails(result),
        // Several emails match.
        AdminCommand::Trace { .. } if result["emails"].is_array() => listing::emails(result),
        AdminCommand::Trace { .. } => super::readable::render_readable(&listing::label_source(result)),
        AdminCommand::Key(SecretCommand::List { .. }) => secrets::secrets(Kind::ApiKey, result),
        AdminCommand::Credential(SecretCommand::List { .. }) => secrets::secrets(Kind::SmtpCredential, result),
        _ => super::readable::render_readable(result),
    }
}

fn data_directory(arguments: &AdminArguments) -> Result<PathBuf, String> {
    if let Some(directory) = &arguments.data_dir {
        return Ok(directory.clone());
    }
    if arguments.config.is_none()
        && !Path::new(CONFIGURATION).exists()
        && let Some(directory) = Directory::find_running_server()
    {
        return Ok(directory);
    }
    let config = load_configuration(arguments);
    // A file with an error names it; without a file, the directory can be named.
    let is_absent = !arguments.config.as_deref().unwrap_or(Path::new(CONFIGURATION)).exists();
    let hint = if is_absent { " (or name the directory with --data-dir)" } else { "" };
    config.map(|config| config.data_dir).map_err(|error| format!("{error}{hint}"))
}

fn load_configuration(arguments: &AdminArguments) -> Result<config::Config, String> {
    let file = arguments.config.clone().unwrap_or_else(|| PathBuf::from(CONFIGURATION));
    config::from_file_alone(&file).map_err(|problems| {
        let first = problems.first().map(ToString::to_string).unwrap_or_default();
        format!("{}: {first}", file.display())
    })
}

fn store_options(directory: &Path) -> RedbOptions {
    RedbOptions::new(directory.join(crate::services::STORE_DIRECTORY))
}

fn check_store(arguments: &AdminArguments) -> ExitCode {
    let directory = match data_directory(arguments) {
        Ok(directory) => directory,
        Err(error) => {
            eprintln!("postrider: {error}");
            return ExitCode::FAILURE;
        }
    };
    let options = store_options(&directory);
    let target = store_check::Target { directory: &directory, database: configured_database(arguments), options };
    store_check::run(target, arguments.json, &|request| send_request(&directory, request))
}

fn run_command(arguments: &AdminArguments, directory: &Path) -> Result<Value, AdminError> {
    let options = || store_options(directory);
    match &arguments.command {
        AdminCommand::Backup { file } => {
            super::backup::back_up(directory, file, &|request| send_request(directory, request))
        }
        AdminCommand::Restore { .. } if configured_database(arguments).is_some() => {
            Err("restore writes into a data directory: restore there, then run `store copy` into the database".into())
        }
        AdminCommand::Restore { file, send } => {
            let restored = restore(file, &options(), *send).map_err(|error| error.to_string())?;
            Ok(json!({"rows": restored.rows, "bodies": restored.bodies, "bytes": restored.bytes, "queue_held": !send}))
        }
        AdminCommand::Store(StoreCommand::Format) => read_format(configured_database(arguments), &options()),
        AdminCommand::Store(StoreCommand::Hold) => {
            hold_queue(configured_database(arguments), &options())?;
            Ok(json!({"queue_held": true}))
        }
        AdminCommand::Queue(command) => {
            let result = match command.confirmation() {
                Some(confirmation) => confirmation.confirm(|request| send_request(directory, request))?,
                None => None,
            };
            result.map_or_else(|| send_request(directory, &queue::build_request(command)), Ok)
        }
        AdminCommand::Key(command) => as_owner(directory, &secrets::build_request(Kind::ApiKey, command)?),
        AdminCommand::Credential(command) => {
            as_owner(directory, &secrets::build_request(Kind::SmtpCredential, command)?)
        }
        AdminCommand::Trace { email: None, filter } => trace(directory, filter),
        AdminCommand::Trace { email: Some(reference), .. } => match listing::parse_reference(reference)? {
            Some(filter) => trace(directory, &filter),
            None => send_request(directory, &AdminRequest::Trace { email: reference.clone() }),
        },
        command => send_request(directory, &build_request(command)?),
    }
}

fn as_owner(directory: &Path, request: &AdminRequest) -> Result<Value, AdminError> {
    secrets::parse_response(&send_request(directory, request)?)
}

/// Maximum number of emails listed if several match.
const TRACED_MAX: usize = 20;

/// Traces the email that matches; lists them if several match.
fn trace(directory: &Path, filter: &EmailQuery) -> Result<Value, AdminError> {
    let page = PageQuery { limit: TRACED_MAX, cursor: None };
    let page = send_request(directory, &AdminRequest::EmailList { filter: filter.clone(), page })?;
    match (table::list(&page, "emails"), page["has_more"] == true) {
        ([email], false) => {
            let email = email["id"].as_str().unwrap_or_default().to_owned();
            send_request(directory, &AdminRequest::Trace { email })
        }
        ([], is_unfinished) => {
            let searched = if is_unfinished {
                " in the part that was searched: narrow the search with --account or --since"
            } else {
                ""
            };
            Err(AdminError::with_code("not_found", format!("no matching email{searched}")))
        }
        _ => Ok(page),
    }
}

/// Restores a backup into an empty directory. Unless `send` is true, its queue is held from the first start.
///
/// # Errors
/// The backup cannot be read or is damaged, or the directory is not empty or not writable.
pub fn restore(file: &Path, options: &RedbOptions, send: bool) -> Result<BackupProgress, BackupError> {
    let hold = queue_hold::restore_batch(Clock::default().now(), !send);
    let mut line = ProgressLine::default();
    Store::restore_with(file, options, hold, move |copied| line.print(&progress(copied)))
}

/// Reads the store's format.
fn read_format(database: Option<PostgresOptions>, options: &RedbOptions) -> Result<Value, AdminError> {
    let format = match database {
        Some(database) => {
            let runtime = super::process::build_runtime().map_err(|error| error.to_string())?;
            runtime.block_on(Store::database_format(&database))
        }
        None => Store::format(options),
    };
    let format = format.map_err(|error| error.to_string())?;
    Ok(json!({"stored": format.stored, "reads": [format.oldest_readable, format.newest_readable]}))
}

/// Holds the queue of a store that no server has open.
fn hold_queue(database: Option<PostgresOptions>, options: &RedbOptions) -> Result<(), String> {
    let runtime = super::process::build_runtime().map_err(|error| error.to_string())?;
    runtime.block_on(async {
        let opened = match &database {
            // `Store::open` would create one.
            None if !options.directory.exists() => {
                return Err(format!("{}: no store exists here", options.directory.display()));
            }
            Some(database) => Store::connect_existing(database).await,
            None => Store::open(options).map(Some),
        };
        let store = opened.map_err(|error| error.to_string())?.ok_or("the database contains no store")?;
        let committed = store.commit(queue_hold::restore_batch(Clock::default().now(), true)).await;
        store.close().await;
        committed.map_err(|error| error.to_string())
    })
}

/// Returns the configured database, unless `--data-dir` is given.
fn configured_database(arguments: &AdminArguments) -> Option<PostgresOptions> {
    let config = arguments.data_dir.is_none().then(|| load_configuration(arguments).ok()).flatten()?;
    crate::services::database(&config)
}

pub(crate) fn build_request(command: &AdminCommand) -> Result<AdminRequest, String> {
    Ok(match command {
        AdminCommand::Account(AccountCommand::List(page)) => AdminRequest::AccountList { page: page.clone() },
        AdminCommand::Account(AccountCommand::Show { account }) => {
            AdminRequest::AccountShow { account: account.clone() }
        }
        AdminCommand::Account(AccountCommand::Create(create)) => AdminRequest::AccountCreate(create.clone()),
        AdminCommand::Account(AccountCommand::Update(update)) => AdminRequest::AccountUpdate(update.clone()),
        AdminCommand::Session(SessionCommand::Create { account }) => {
            AdminRequest::SessionCreate { account: account.clone() }
        }
        AdminCommand::User(UserCommand::Reset { email }) => AdminRequest::UserReset { email: email.clone() },
        AdminCommand::Domain(command) => build_domain_request(command),
        AdminCommand::Email(command) => listing::build_request(command),
        AdminCommand::Queue(command) => queue::build_request(command),
        AdminCommand::Destination(command) => destination::build_request(command)?,
        AdminCommand::Pool(command) => pool::build_request(command),
        AdminCommand::Console => AdminRequest::Console,
        AdminCommand::Status => AdminRequest::Status,
        AdminCommand::TlsReports(query) => AdminRequest::TlsReports(query.clone()),
        AdminCommand::Reply(query) => AdminRequest::Reply(query.clone()),
        AdminCommand::Certificate { order: false } => AdminRequest::CertificateShow,
        AdminCommand::Certificate { order: true } => AdminRequest::CertificateOrder,
        AdminCommand::Clock(ClockArguments { command: None }) => AdminRequest::ClockShow,
        AdminCommand::Clock(ClockArguments { command: Some(ClockCommand::Advance { seconds }) }) => {
            AdminRequest::ClockAdvance { seconds: *seconds }
        }
        AdminCommand::Affiliate(_)
        | AdminCommand::Backup { .. }
        | AdminCommand::Key(_)
        | AdminCommand::Credential(_)
        | AdminCommand::Trace { .. } => return Err("not an admin request".to_owned()),
        AdminCommand::Restore { .. } | AdminCommand::Store(_) => {
            return Err("runs without the server".to_owned());
        }
    })
}

fn build_domain_request(command: &DomainCommand) -> AdminRequest {
    match command {
        DomainCommand::List { account, page } => {
            AdminRequest::DomainList { account: account.clone(), page: page.clone() }
        }
        DomainCommand::Create(create) => AdminRequest::DomainCreate(create.clone()),
        DomainCommand::Verify(verify) => AdminRequest::DomainVerify(verify.clone()),
        DomainCommand::Update { name, change } => {
            AdminRequest::DomainUpdate { name: name.clone(), change: change.clone() }
        }
        DomainCommand::Show { name } => AdminRequest::DomainShow { name: name.clone() },
    }
}

/// Sends a request to the server with this data directory, and waits for its result.
pub(super) fn send_request(directory: &Path, request: &AdminRequest) -> Result<Value, AdminError> {
    send_with_timeout(directory, request, request.silence_max())
}

/// Sends a request. Fails after `silence_max` without a line of the response.
fn send_with_timeout(
    directory: &Path,
    request: &AdminRequest,
    silence_max: Option<Duration>,
) -> Result<Value, AdminError> {
    let socket = directory.join(SOCKET);
    let mut stream = UnixStream::connect(&socket)
        .map_err(|error| format!("{}: {error}; is the server running with this data directory?", socket.display()))?;
    stream.set_read_timeout(silence_max).map_err(|error| error.to_string())?;
    let mut request_line = serde_json::to_vec(request).map_err(|error| error.to_string())?;
    request_line.push(b'\n');
    stream.write_all(&request_line).map_err(|error| error.to_string())?;
    let mut progress = ProgressLine::default();
    for line in BufReader::new(stream).lines() {
        let line = line.map_err(|error| match (error.kind(), silence_max) {
            (io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut, Some(silence_max)) => {
                AdminError::with_code("unavailable", no_answer_text(request, silence_max))
            }
            _ => error.to_string().into(),
        })?;
        match serde_json::from_str::<ResponseLine>(&line).map_err(|error| error.to_string())? {
            ResponseLine::Progress(step) => progress.print(&step),
            ResponseLine::Ok(value) => return Ok(value),
            ResponseLine::Error(error) => return Err(error),
        }
    }
    Err("the server closed the connection without a result".into())
}

fn no_answer_text(request: &AdminRequest, silence_max: Duration) -> String {
    let text = format!("the server does not answer: no response within {} s", silence_max.as_secs());
    match request.is_change() {
        true => format!("{text}; the command may still be carried out, so look before you repeat it"),
        false => text,
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixListener;

    use super::*;

    #[test]
    fn a_server_that_accepts_no_connection_does_not_answer() {
        let directory = tempfile::tempdir().unwrap();
        // The system completes the connection, as with a stopped process.
        let _listener = UnixListener::bind(directory.path().join(SOCKET)).unwrap();
        let silence_max = Some(Duration::from_millis(1));
        let error = send_with_timeout(directory.path(), &AdminRequest::Status, silence_max).unwrap_err();
        assert_eq!(error.code, "unavailable");
        assert!(error.message.starts_with("the server does not answer"), "{error}");
    }

    #[test]
    fn short_requests_and_those_with_regular_progress_have_a_timeout() {
        let backup = AdminRequest::Backup { file: PathBuf::from("backup") };
        assert!(AdminRequest::Status.silence_max().is_some() && AdminRequest::StoreCheck.silence_max().is_some());
        assert_eq!(backup.silence_max(), None);
    }
}
