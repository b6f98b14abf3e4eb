//! `postrider admin`: asks the running server, or works on the directory of a stopped one.

use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use ::queue::clock::Clock;
use clap::builder::BoolishValueParser;
use clap::{Args, Subcommand};
use mail::account::Plan;
use mail::domain::TlsMode;
use serde_json::{Value, json};
use store::engine::{BackupError, BackupProgress, PostgresOptions, RedbOptions, Store};
use store::queue_hold;

use super::AdminArguments;
use super::affiliate::{self, AffiliateArguments};
use super::destination::{self, DestinationCommand};
use super::listing::{self, EmailCommand, EmailFilter, PageArguments};
use super::pool::{self, PoolCommand};
use super::progress::ProgressLine;
use super::queue::{self, QueueSubcommand};
use super::secrets::{self, Kind, SecretCommand};
use super::{store_check, table};
use crate::admin::check::progress;
use crate::admin::{AdminError, AdminRequest, DomainChange, PageAsked, ResponseLine, SOCKET};
use crate::config;
use crate::dev::directory::Directory;

/// The configuration file, unless another is named. Where it is missing, a `postrider dev` that runs is meant.
const CONFIGURATION: &str = "/etc/postrider/postrider.toml";

/// What the operator can do.
#[derive(Debug, Subcommand)]
pub enum AdminCommand {
    /// Accounts
    #[command(subcommand)]
    Account(AccountCommand),
    /// Sessions of users
    #[command(subcommand)]
    Session(SessionCommand),
    /// Users
    #[command(subcommand)]
    User(UserCommand),
    /// Sending domains
    #[command(subcommand)]
    Domain(DomainCommand),
    /// The queue
    #[command(subcommand)]
    Queue(QueueSubcommand),
    /// Destinations: leave them alone, pace them, send their mail another way
    #[command(subcommand)]
    Destination(DestinationCommand),
    /// Pools of source addresses: whose mail leaves from which, and how they are warmed up
    #[command(subcommand)]
    Pool(PoolCommand),
    /// Emails
    #[command(subcommand)]
    Email(EmailCommand),
    /// API keys
    #[command(subcommand)]
    Key(SecretCommand),
    /// SMTP credentials: passwords for submission
    #[command(subcommand)]
    Credential(SecretCommand),
    /// Explain an email: what happened, what it waits for, when it goes next. By its id, or by recipient, sender or
    /// Message-ID; where several emails fit, they are listed
    Trace {
        /// The email's id, or its recipient's address, or its Message-ID in angle brackets
        #[arg(required_unless_present_any = ["recipient", "sender", "message_id"])]
        #[arg(conflicts_with_all = ["recipient", "sender", "message_id", "account", "since"])]
        email: Option<String>,
        /// Which email
        #[command(flatten)]
        filter: EmailFilter,
    },
    /// Show whether the server is well; the exit status is 1 when something is wrong
    Status,
    /// How TLS went with the mail hosts of others, what was reported of it, and what others report of ours: of today and yesterday
    TlsReports {
        /// Of this domain alone, of all days that are kept
        #[arg(long)]
        domain: Option<String>,
        /// Of this day of UTC alone, like 2026-01-31
        #[arg(long)]
        day: Option<String>,
        /// At most so many
        #[arg(long, default_value_t = 1_000)]
        limit: usize,
    },
    /// What a reply of a mail host means: its category, and what is done about it
    Reply {
        /// The reply: "421 4.7.28 too much mail"
        reply: String,
        /// The mail host that says it
        #[arg(long)]
        host: Option<String>,
    },
    /// How the certificate by ACME stands: until when it holds, what went wrong last and what to do
    Certificate,
    /// Write a backup while the server runs
    Backup {
        /// The file to write
        file: PathBuf,
    },
    /// Fill an empty data directory from a backup (server stopped). The next start holds the queue, for some of it may
    /// have been sent after the backup was made: `queue release --all` lets it go
    Restore {
        /// The file to read
        file: PathBuf,
        /// Do not hold the queue: what waits in the backup is sent at the next start, again if it was sent since
        #[arg(long)]
        send: bool,
    },
    /// The store: check it, hold its queue, move it
    #[command(subcommand)]
    Store(StoreCommand),
    /// An account's affiliate program, in its owner's stead
    Affiliate(AffiliateArguments),
    /// What the clock says, and moving it (where [testing] allows it)
    Clock(ClockArguments),
}

/// Accounts.
#[derive(Debug, Subcommand)]
pub enum AccountCommand {
    /// List accounts, oldest first
    List(PageArguments),
    /// Create an account with an API key and an SMTP credential
    Create {
        /// The owner's address
        #[arg(long)]
        email: String,
        /// free, pro, scale or dedicated
        #[arg(long)]
        plan: Option<Plan>,
        /// It may send to anybody: a payment method is on file, or the operator vouches for it
        #[arg(long, visible_alias = "payment-method")]
        production: bool,
    },
    /// Change an account
    Update {
        /// Its id or its owner's address
        account: String,
        /// free, pro, scale or dedicated
        #[arg(long)]
        plan: Option<Plan>,
        /// on or off: whether it may send to anybody (a payment method is on file)
        #[arg(long, visible_alias = "payment-method", value_parser = BoolishValueParser::new())]
        production: Option<bool>,
        /// on or off: whether nothing is accepted from it, and what it has in the queue is held
        #[arg(long, value_parser = BoolishValueParser::new())]
        suspended: Option<bool>,
    },
}

/// Sessions of users.
#[derive(Debug, Subcommand)]
pub enum SessionCommand {
    /// Sign an account's owner in for 15 minutes, for use from scripts: the cookie and its x-csrf-token
    Create {
        /// The account's id or its owner's address; may be left out where there is one account
        #[arg(long)]
        account: Option<String>,
    },
}

/// Users.
#[derive(Debug, Subcommand)]
pub enum UserCommand {
    /// Remove a user's password, end all their sessions, and print a link that signs them in once, within an hour
    Reset {
        /// The user's email address
        email: String,
    },
}

/// Sending domains.
#[derive(Debug, Subcommand)]
pub enum DomainCommand {
    /// List sending domains by name
    List {
        /// Of this account: its id, or its owner's address; of all unless given
        #[arg(long)]
        account: Option<String>,
        /// How many
        #[command(flatten)]
        page: PageArguments,
    },
    /// Add a sending domain
    Create {
        /// Its name
        name: String,
        /// Whose it is: an id or the owner's address
        #[arg(long)]
        account: String,
        /// Take it as verified, without looking at its records
        #[arg(long)]
        verified: bool,
    },
    /// Look at a domain's records now
    Verify {
        /// Its name
        name: String,
        /// Take it as verified, without looking
        #[arg(long)]
        force: bool,
    },
    /// Change how a domain's mail is treated: tracking and TLS
    Update {
        /// Its name
        name: String,
        /// Whether HTML gets a pixel that tells when it is opened: on or off
        #[arg(long, value_parser = on_or_off)]
        open_tracking: Option<bool>,
        /// Whether links in HTML lead through us: on or off
        #[arg(long, value_parser = on_or_off)]
        click_tracking: Option<bool>,
        /// opportunistic, or enforced: never in the clear
        #[arg(long, value_parser = tls_mode)]
        tls_mode: Option<TlsMode>,
        /// The customer's host for tracking links, whose CNAME leads here; `none` for our own
        #[arg(long)]
        tracking_host: Option<String>,
    },
    /// Show a domain and its records
    Show {
        /// Its name
        name: String,
    },
}

fn on_or_off(word: &str) -> Result<bool, String> {
    match word {
        "on" | "true" => Ok(true),
        "off" | "false" => Ok(false),
        _ => Err("say `on` or `off`".to_owned()),
    }
}

fn tls_mode(word: &str) -> Result<TlsMode, String> {
    match word {
        "opportunistic" => Ok(TlsMode::Opportunistic),
        "enforced" => Ok(TlsMode::Enforced),
        _ => Err("say `opportunistic` or `enforced`".to_owned()),
    }
}

/// The store.
#[derive(Debug, Subcommand)]
pub enum StoreCommand {
    /// Read everything and name what is wrong, also while the server runs
    Check,
    /// Hold the queue from the next start on (server stopped), as after `restore`: for a database that was restored by other means
    Hold,
    /// Move the store into another engine, and compare (all servers stopped); goes on where it was cut off
    Copy {
        /// A data directory, a postgres:// URL, or `config`: what the configuration names
        #[arg(long)]
        from: String,
        /// The same; it must be empty, or hold what an earlier copy began
        #[arg(long)]
        to: String,
        /// The cluster that a database given by its URL belongs to
        #[arg(long)]
        cluster: Option<String>,
    },
}

/// The clock.
#[derive(Debug, Args)]
pub struct ClockArguments {
    /// What to do with it; without it is said what the clock says
    #[command(subcommand)]
    pub command: Option<ClockCommand>,
}

/// What can be done with the clock.
#[derive(Debug, Subcommand)]
pub enum ClockCommand {
    /// Move the running server's clock forward
    Advance {
        /// By how many seconds
        seconds: u64,
    },
}

/// Carries out the command; the exit code is 0 when it was done.
#[must_use]
pub fn run(arguments: &AdminArguments) -> ExitCode {
    super::run::set_private_umask();
    if let AdminCommand::Affiliate(asked) = &arguments.command {
        let ask = |question: &AdminRequest| send_request(&data_directory(arguments)?, question);
        return affiliate::run(asked, arguments.json, &ask);
    }
    if matches!(arguments.command, AdminCommand::Store(StoreCommand::Check)) {
        return check_store(arguments);
    }
    if matches!(arguments.command, AdminCommand::Status) {
        return super::status::run(arguments.json, &|question| send_request(&data_directory(arguments)?, question));
    }
    let done = match &arguments.command {
        AdminCommand::Store(StoreCommand::Copy { from, to, cluster }) => {
            super::copy::run_copy(from, to, cluster.as_deref(), &|| load_configuration(arguments))
                .map_err(AdminError::from)
        }
        _ => {
            data_directory(arguments).map_err(AdminError::from).and_then(|directory| run_command(arguments, &directory))
        }
    };
    let mut out = std::io::stdout().lock();
    let (shown, code) = match done {
        Ok(value) => (value, ExitCode::SUCCESS),
        Err(refused) if arguments.json => (json!({"error": refused}), ExitCode::FAILURE),
        Err(error) => {
            eprintln!("postrider: {error}");
            return ExitCode::FAILURE;
        }
    };
    let text = if arguments.json { format!("{shown}\n") } else { text(&arguments.command, &shown) };
    // Nobody listening to the answer is no reason to fail what was done.
    let _ = out.write_all(text.as_bytes());
    code
}

/// An answer for people.
fn text(command: &AdminCommand, shown: &Value) -> String {
    match command {
        AdminCommand::Queue(QueueSubcommand::Top { .. }) => queue::top(shown),
        AdminCommand::Queue(QueueSubcommand::List { .. }) => queue::tasks(shown),
        AdminCommand::Account(AccountCommand::List(_)) => listing::accounts(shown),
        AdminCommand::Domain(DomainCommand::List { .. }) => listing::domains(shown),
        AdminCommand::Email(_) => listing::emails(shown),
        // Several fit.
        AdminCommand::Trace { .. } if shown["emails"].is_array() => listing::emails(shown),
        AdminCommand::Key(SecretCommand::List { .. }) => secrets::secrets(Kind::ApiKey, shown),
        AdminCommand::Credential(SecretCommand::List { .. }) => secrets::secrets(Kind::SmtpCredential, shown),
        _ => super::run::render_readable(shown),
    }
}

fn data_directory(arguments: &AdminArguments) -> Result<PathBuf, String> {
    if let Some(directory) = &arguments.data_dir {
        return Ok(directory.clone());
    }
    if arguments.config.is_none()
        && !Path::new(CONFIGURATION).exists()
        && let Some(directory) = Directory::of_running_server()
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
    RedbOptions::new(directory.join(crate::world::STORE_DIRECTORY))
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
    store_check::run(target, arguments.json, &|question| send_request(&directory, question))
}

fn run_command(arguments: &AdminArguments, directory: &Path) -> Result<Value, AdminError> {
    let options = || store_options(directory);
    match &arguments.command {
        AdminCommand::Restore { .. } if configured_database(arguments).is_some() => {
            Err("a backup is restored into a data directory; `store copy` moves that into the database".into())
        }
        AdminCommand::Restore { file, send } => {
            let done = restore(file, &options(), *send).map_err(|error| error.to_string())?;
            Ok(json!({"rows": done.rows, "bodies": done.bodies, "bytes": done.bytes, "queue_held": !send}))
        }
        AdminCommand::Store(StoreCommand::Hold) => {
            hold_queue(configured_database(arguments), &options())?;
            Ok(json!({"queue_held": true}))
        }
        AdminCommand::Queue(command) => {
            let shown = match command.confirmation() {
                Some(confirmation) => confirmation.ask(|question| send_request(directory, question))?,
                None => None,
            };
            shown.map_or_else(|| send_request(directory, &queue::build_request(command)), Ok)
        }
        AdminCommand::Key(command) => as_owner(directory, &secrets::question(Kind::ApiKey, command)?),
        AdminCommand::Credential(command) => as_owner(directory, &secrets::question(Kind::SmtpCredential, command)?),
        AdminCommand::Trace { email: None, filter } => trace(directory, filter),
        AdminCommand::Trace { email: Some(named), .. } => match EmailFilter::of_text(named)? {
            Some(filter) => trace(directory, &filter),
            None => send_request(directory, &AdminRequest::Trace { email: named.clone() }),
        },
        command => send_request(directory, &build_request(command)?),
    }
}

fn as_owner(directory: &Path, question: &AdminRequest) -> Result<Value, AdminError> {
    secrets::answer(&send_request(directory, question)?)
}

/// How many emails a trace lists, where more than one fits.
const TRACED_MAX: usize = 20;

/// Explains the one email that fits; lists them where several do.
fn trace(directory: &Path, filter: &EmailFilter) -> Result<Value, AdminError> {
    let page = PageAsked { limit: TRACED_MAX, cursor: None };
    let found = send_request(directory, &AdminRequest::EmailList { filter: filter.asked(None), page })?;
    match (table::list(&found, "emails"), found["has_more"] == true) {
        ([only], false) => {
            let email = only["id"].as_str().unwrap_or_default().to_owned();
            send_request(directory, &AdminRequest::Trace { email })
        }
        ([], is_unfinished) => {
            let searched =
                if is_unfinished { " as far as it was searched: narrow it with --account or --since" } else { "" };
            Err(AdminError::with_code("not_found", format!("no email fits{searched}")))
        }
        _ => Ok(found),
    }
}

/// Fills an empty directory from a backup. Its queue is held from the first start on, unless it is to `send`.
///
/// # Errors
/// The backup or the directory.
pub fn restore(file: &Path, options: &RedbOptions, send: bool) -> Result<BackupProgress, BackupError> {
    let hold = queue_hold::restore_batch(Clock::default().now(), !send);
    let mut line = ProgressLine::default();
    Store::restore_with(file, options, hold, move |done| line.tell(&progress(done)))
}

/// Holds the queue of a store that no server has open.
fn hold_queue(database: Option<PostgresOptions>, options: &RedbOptions) -> Result<(), String> {
    let runtime = super::run::build_runtime().map_err(|error| error.to_string())?;
    runtime.block_on(async {
        let opened = match &database {
            // Opening would make one.
            None if !options.directory.exists() => {
                return Err(format!("{}: there is no store", options.directory.display()));
            }
            Some(database) => Store::connect(database).await,
            None => Store::open(options),
        };
        let store = opened.map_err(|error| error.to_string())?;
        let held = store.commit(queue_hold::restore_batch(Clock::default().now(), true)).await;
        store.close().await;
        held.map_err(|error| error.to_string())
    })
}

/// The database that the configuration names, unless a directory is meant.
fn configured_database(arguments: &AdminArguments) -> Option<PostgresOptions> {
    let config = arguments.data_dir.is_none().then(|| load_configuration(arguments).ok()).flatten()?;
    crate::world::database(&config)
}

fn build_request(command: &AdminCommand) -> Result<AdminRequest, String> {
    Ok(match command {
        AdminCommand::Account(AccountCommand::List(page)) => AdminRequest::AccountList { page: page.asked() },
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
        AdminCommand::Domain(command) => domain_question(command),
        AdminCommand::Email(command) => listing::question(command),
        AdminCommand::Queue(command) => queue::build_request(command),
        AdminCommand::Destination(command) => destination::build_request(command)?,
        AdminCommand::Pool(command) => pool::build_request(command),
        AdminCommand::Status => AdminRequest::Status,
        AdminCommand::TlsReports { domain, day, limit } => {
            AdminRequest::TlsReports { domain: domain.clone(), day: day.clone(), limit: *limit }
        }
        AdminCommand::Reply { reply, host } => AdminRequest::Reply { reply: reply.clone(), host: host.clone() },
        AdminCommand::Certificate => AdminRequest::CertificateShow,
        AdminCommand::Backup { file } => {
            // The server writes it, from a directory of its own.
            AdminRequest::Backup { file: std::path::absolute(file).map_err(|error| error.to_string())? }
        }
        AdminCommand::Clock(ClockArguments { command: None }) => AdminRequest::ClockShow,
        AdminCommand::Clock(ClockArguments { command: Some(ClockCommand::Advance { seconds }) }) => {
            AdminRequest::ClockAdvance { seconds: *seconds }
        }
        AdminCommand::Affiliate(_)
        | AdminCommand::Key(_)
        | AdminCommand::Credential(_)
        | AdminCommand::Trace { .. } => return Err("is asked in another way".to_owned()),
        AdminCommand::Restore { .. } | AdminCommand::Store(_) => {
            return Err("works without the server".to_owned());
        }
    })
}

fn domain_question(command: &DomainCommand) -> AdminRequest {
    match command {
        DomainCommand::List { account, page } => {
            AdminRequest::DomainList { account: account.clone(), page: page.asked() }
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

fn send_request(directory: &Path, question: &AdminRequest) -> Result<Value, AdminError> {
    let socket = directory.join(SOCKET);
    let mut stream = UnixStream::connect(&socket)
        .map_err(|error| format!("{}: {error}; is the server running with this data directory?", socket.display()))?;
    let mut asked = serde_json::to_vec(question).map_err(|error| error.to_string())?;
    asked.push(b'\n');
    stream.write_all(&asked).map_err(|error| error.to_string())?;
    let mut shown = ProgressLine::default();
    for line in BufReader::new(stream).lines() {
        let line = line.map_err(|error| error.to_string())?;
        match serde_json::from_str::<ResponseLine>(&line).map_err(|error| error.to_string())? {
            ResponseLine::Progress(step) => shown.tell(&step),
            ResponseLine::Ok(value) => return Ok(value),
            ResponseLine::Error(error) => return Err(error),
        }
    }
    Err("the server hung up before it answered".into())
}
