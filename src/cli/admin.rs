//! `postrider admin`: sends requests to the running server, or works on the data directory of a stopped one.

use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use ::net::clock::Clock;
use clap::builder::BoolishValueParser;
use clap::{Args, Subcommand};
use model::account::Plan;
use model::domain::TlsMode;
use serde_json::{Value, json};
use store::engine::{BackupError, BackupProgress, PostgresOptions, RedbOptions, Store};
use store::queue_hold;

use super::affiliate::{self, AffiliateArguments};
use super::destination::{self, DestinationCommand};
use super::listing::{self, EmailCommand, EmailFilter, ListPageArguments};
use super::pool::{self, PoolCommand};
use super::progress::ProgressLine;
use super::queue::{self, QueueSubcommand};
use super::secrets::{self, Kind, SecretCommand};
use super::{AdminArguments, store_check, table};
use crate::admin::check::progress;
use crate::admin::{AdminError, AdminRequest, DomainChange, PageQuery, ResponseLine, SOCKET};
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
    /// Manage sessions of users
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
    Key(SecretCommand),
    /// Manage SMTP credentials: passwords for submission
    #[command(subcommand)]
    Credential(SecretCommand),
    /// Trace an email: events, attempts, what it waits for, next attempt. Select it by id, recipient, sender or
    /// Message-ID; if several emails match, they are listed
    Trace {
        /// Email id, a recipient's address, or a Message-ID in angle brackets
        #[arg(required_unless_present_any = ["recipient", "sender", "message_id"])]
        #[arg(conflicts_with_all = ["recipient", "sender", "message_id", "account", "since"])]
        email: Option<String>,
        #[command(flatten)]
        filter: EmailFilter,
    },
    /// Print a link that signs in to the console in a browser, valid 15 minutes and used once (requires `listen` in `[ops]`)
    Console,
    /// Show the health of the server; the exit status is 1 if there is a problem
    Status,
    /// Show TLS-RPT results of today and yesterday: sessions with other mail hosts, reports sent and reports received
    TlsReports {
        /// Only this domain, all retained days
        #[arg(long)]
        domain: Option<String>,
        /// Only this day (UTC), for example 2026-01-31
        #[arg(long)]
        day: Option<String>,
        /// Maximum number of rows
        #[arg(long, default_value_t = 1_000)]
        limit: usize,
    },
    /// Explain an SMTP error reply: its category and what the server does about it
    Reply {
        /// The reply, for example "421 4.7.28 too much mail"
        reply: String,
        /// Name of the mail host that sent it
        #[arg(long)]
        host: Option<String>,
    },
    /// Show ACME certificate status: expiry, renewal, last error and its fix
    Certificate {
        /// Order a certificate now instead of at the time of the next try, for example after DNS was corrected
        #[arg(long)]
        order: bool,
    },
    /// Write a backup while the server runs
    Backup {
        /// File to write
        file: PathBuf,
    },
    /// Restore a backup into an empty data directory (server stopped). The next start holds the queue, because some
    /// email may have been sent after the backup; `queue release --all` resumes it
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
    List(ListPageArguments),
    /// Show an account: plan, the quota nearest to its limit, mail in the queue, pool
    Show {
        /// Account id or owner's address
        account: String,
    },
    /// Create an account with an API key and an SMTP credential; prints a single-use link that signs the owner in
    /// within 24 hours
    Create {
        /// Email address of the owner
        #[arg(long)]
        email: String,
        /// free, pro, scale or dedicated
        #[arg(long)]
        plan: Option<Plan>,
        /// Permit sending to any recipient: a payment method is on file, or the operator vouches for the account
        #[arg(long, visible_alias = "payment-method")]
        production: bool,
    },
    /// Change an account
    Update {
        /// Account id or owner's address
        account: String,
        /// free, pro, scale or dedicated
        #[arg(long)]
        plan: Option<Plan>,
        /// Permit sending to any recipient (a payment method is on file): on or off
        #[arg(long, visible_alias = "payment-method", value_parser = BoolishValueParser::new())]
        production: Option<bool>,
        /// Refuse new mail and hold queued mail of the account: on or off
        #[arg(long, value_parser = BoolishValueParser::new())]
        suspended: Option<bool>,
    },
}

/// Commands of `admin session`.
#[derive(Debug, Subcommand)]
pub enum SessionCommand {
    /// Create a session of an account's owner, valid 15 minutes; prints the cookie and its x-csrf-token for scripts, and
    /// a single-use URL that opens the dashboard in a browser
    Create {
        /// Account id or owner's address; optional if only one account exists
        #[arg(long)]
        account: Option<String>,
    },
}

/// Commands of `admin user`.
#[derive(Debug, Subcommand)]
pub enum UserCommand {
    /// Remove a user's password and one-time passwords, end their sessions, and print a single-use sign-in link that is valid for one hour
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
        page: ListPageArguments,
    },
    /// Add a sending domain
    Create {
        /// Domain name
        name: String,
        /// Account id or owner's address
        #[arg(long)]
        account: String,
        /// Mark as verified without checking its DNS records
        #[arg(long)]
        verified: bool,
    },
    /// Check a domain's DNS records now
    Verify {
        /// Domain name
        name: String,
        /// Mark as verified without checking its DNS records
        #[arg(long)]
        force: bool,
    },
    /// Change a domain's settings for tracking and TLS
    Update {
        /// Domain name
        name: String,
        /// Add an open-tracking pixel to HTML: on or off
        #[arg(long, value_parser = on_or_off)]
        open_tracking: Option<bool>,
        /// Rewrite links in HTML for click tracking: on or off
        #[arg(long, value_parser = on_or_off)]
        click_tracking: Option<bool>,
        /// opportunistic; or enforced: never send without TLS
        #[arg(long, value_parser = tls_mode)]
        tls_mode: Option<TlsMode>,
        /// Customer's host for tracking links, a CNAME to this service; `none` to use the service's own
        #[arg(long)]
        tracking_host: Option<String>,
    },
    /// Show a domain and its DNS records
    Show {
        /// Domain name
        name: String,
    },
}

fn on_or_off(word: &str) -> Result<bool, String> {
    match word {
        "on" | "true" => Ok(true),
        "off" | "false" => Ok(false),
        _ => Err("use `on` or `off`".to_owned()),
    }
}

fn tls_mode(word: &str) -> Result<TlsMode, String> {
    match word {
        "opportunistic" => Ok(TlsMode::Opportunistic),
        "enforced" => Ok(TlsMode::Enforced),
        _ => Err("use `opportunistic` or `enforced`".to_owned()),
    }
}

/// Commands of `admin store`.
#[derive(Debug, Subcommand)]
pub enum StoreCommand {
    /// Read everything and report damage; works while the server runs
    Check,
    /// Show the format of the store and whether this version reads it, without opening it: for upgrades
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
        /// Cluster name in the database, with a postgres:// URL
        #[arg(long)]
        cluster: Option<String>,
    },
}

/// Arguments of `admin clock`.
#[derive(Debug, Args)]
pub struct ClockArguments {
    /// Command; without one, the time is shown
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
    config.map(|config| config.data_dir).map_err(|error| format!("{error} (or name the directory with --data-dir)"))
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
        AdminCommand::Trace { email: Some(reference), .. } => match EmailFilter::parse_reference(reference)? {
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
fn trace(directory: &Path, filter: &EmailFilter) -> Result<Value, AdminError> {
    let page = PageQuery { limit: TRACED_MAX, cursor: None };
    let page = send_request(directory, &AdminRequest::EmailList { filter: filter.to_query(None), page })?;
    match (table::list(&page, "emails"), page["has_more"] == true) {
        ([email], false) => {
            let email = email["id"].as_str().unwrap_or_default().to_owned();
            send_request(directory, &AdminRequest::Trace { email })
        }
        ([], is_unfinished) => {
            let searched =
                if is_unfinished { " in the part that was searched: narrow it with --account or --since" } else { "" };
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
            Some(database) => Store::connect(database).await,
            None => Store::open(options),
        };
        let store = opened.map_err(|error| error.to_string())?;
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
        AdminCommand::Account(AccountCommand::List(page)) => AdminRequest::AccountList { page: page.to_query() },
        AdminCommand::Account(AccountCommand::Show { account }) => {
            AdminRequest::AccountShow { account: account.clone() }
        }
        AdminCommand::Account(AccountCommand::Create { email, plan, production }) => {
            AdminRequest::AccountCreate { email: email.clone(), plan: *plan, production: *production }
        }
        AdminCommand::Account(AccountCommand::Update { account, plan, production, suspended }) => {
            AdminRequest::AccountUpdate {
                account: account.clone(),
                plan: *plan,
                production: *production,
                suspended: *suspended,
            }
        }
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
        AdminCommand::TlsReports { domain, day, limit } => {
            AdminRequest::TlsReports { domain: domain.clone(), day: day.clone(), limit: *limit }
        }
        AdminCommand::Reply { reply, host } => AdminRequest::Reply { reply: reply.clone(), host: host.clone() },
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
        | AdminCommand::Trace { .. } => return Err("not a direct admin request".to_owned()),
        AdminCommand::Restore { .. } | AdminCommand::Store(_) => {
            return Err("runs without the server".to_owned());
        }
    })
}

fn build_domain_request(command: &DomainCommand) -> AdminRequest {
    match command {
        DomainCommand::List { account, page } => {
            AdminRequest::DomainList { account: account.clone(), page: page.to_query() }
        }
        DomainCommand::Create { name, account, verified } => {
            AdminRequest::DomainCreate { name: name.clone(), account: account.clone(), verified: *verified }
        }
        DomainCommand::Verify { name, force } => AdminRequest::DomainVerify { name: name.clone(), force: *force },
        DomainCommand::Update { name, open_tracking, click_tracking, tls_mode, tracking_host } => {
            let change = DomainChange {
                open_tracking: *open_tracking,
                click_tracking: *click_tracking,
                tls_mode: *tls_mode,
                tracking_host: tracking_host.clone(),
            };
            AdminRequest::DomainUpdate { name: name.clone(), change }
        }
        DomainCommand::Show { name } => AdminRequest::DomainShow { name: name.clone() },
    }
}

/// Sends a request to the server with this data directory, and waits for its result.
pub(super) fn send_request(directory: &Path, request: &AdminRequest) -> Result<Value, AdminError> {
    let socket = directory.join(SOCKET);
    let mut stream = UnixStream::connect(&socket)
        .map_err(|error| format!("{}: {error}; is the server running with this data directory?", socket.display()))?;
    let mut request_line = serde_json::to_vec(request).map_err(|error| error.to_string())?;
    request_line.push(b'\n');
    stream.write_all(&request_line).map_err(|error| error.to_string())?;
    let mut progress = ProgressLine::default();
    for line in BufReader::new(stream).lines() {
        let line = line.map_err(|error| error.to_string())?;
        match serde_json::from_str::<ResponseLine>(&line).map_err(|error| error.to_string())? {
            ResponseLine::Progress(step) => progress.print(&step),
            ResponseLine::Ok(value) => return Ok(value),
            ResponseLine::Error(error) => return Err(error),
        }
    }
    Err("the server closed the connection without a result".into())
}
