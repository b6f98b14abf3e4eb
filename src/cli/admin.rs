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
use store::engine::{BackupError, Database, Options, Progress, Store};
use store::queue_hold;

use super::AdminArguments;
use super::affiliate::{self, AffiliateArguments};
use super::destination::{self, DestinationCommand};
use super::listing::{self, EmailCommand, EmailFilter, PageArguments};
use super::pool::{self, PoolCommand};
use super::progress::ProgressLine;
use super::queue::{self, QueueCommand};
use super::secrets::{self, Kind, SecretCommand};
use super::{store_check, table};
use crate::admin::check::progress;
use crate::admin::{DomainChange, Line, PageAsked, Question, Refused, SOCKET};
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
    Queue(QueueCommand),
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
    super::run::make_private_files();
    if let AdminCommand::Affiliate(asked) = &arguments.command {
        let ask = |question: &Question| ask(&directory(arguments)?, question);
        return affiliate::run(asked, arguments.json, &ask);
    }
    if matches!(arguments.command, AdminCommand::Store(StoreCommand::Check)) {
        return check_store(arguments);
    }
    if matches!(arguments.command, AdminCommand::Status) {
        return super::status::run(arguments.json, &|question| ask(&directory(arguments)?, question));
    }
    let done = match &arguments.command {
        AdminCommand::Store(StoreCommand::Copy { from, to, cluster }) => {
            super::copy::run(from, to, cluster.as_deref(), &|| configuration(arguments))
                .map_err(Refused::from)
        }
        _ => {
            directory(arguments).map_err(Refused::from).and_then(|directory| carry_out(arguments, &directory))
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
        AdminCommand::Queue(QueueCommand::Top { .. }) => queue::top(shown),
        AdminCommand::Queue(QueueCommand::List { .. }) => queue::tasks(shown),
        AdminCommand::Account(AccountCommand::List(_)) => listing::accounts(shown),
        AdminCommand::Domain(DomainCommand::List { .. }) => listing::domains(shown),
        AdminCommand::Email(_) => listing::emails(shown),
        // Several fit.
        AdminCommand::Trace { .. } if shown["emails"].is_array() => listing::emails(shown),
        AdminCommand::Key(SecretCommand::List { .. }) => secrets::secrets(Kind::ApiKey, shown),
        AdminCommand::Credential(SecretCommand::List { .. }) => secrets::secrets(Kind::SmtpCredential, shown),
        _ => super::run::readable(shown),
    }
}

fn directory(arguments: &AdminArguments) -> Result<PathBuf, String> {
    if let Some(directory) = &arguments.data_dir {
        return Ok(directory.clone());
    }
    if arguments.config.is_none()
        && !Path::new(CONFIGURATION).exists()
        && let Some(directory) = Directory::of_running_server()
    {
        return Ok(directory);
    }
    let config = configuration(arguments);
    config
        .map(|config| config.data_dir)
        .map_err(|error| format!("{error} (or name the directory with --data-dir)"))
}

fn configuration(arguments: &AdminArguments) -> Result<config::Config, String> {
    let file = arguments.config.clone().unwrap_or_else(|| PathBuf::from(CONFIGURATION));
    config::from_file_alone(&file).map_err(|problems| {
        let first = problems.first().map(ToString::to_string).unwrap_or_default();
        format!("{}: {first}", file.display())
    })
}

fn store_options(directory: &Path) -> Options {
    Options::new(directory.join(crate::world::STORE_DIRECTORY))
}

fn check_store(arguments: &AdminArguments) -> ExitCode {
    let directory = match directory(arguments) {
        Ok(directory) => directory,
        Err(error) => {
            eprintln!("postrider: {error}");
            return ExitCode::FAILURE;
        }
    };
    let options = store_options(&directory);
    let target = store_check::Target { directory: &directory, database: database(arguments), options };
    store_check::run(target, arguments.json, &|question| ask(&directory, question))
}

fn carry_out(arguments: &AdminArguments, directory: &Path) -> Result<Value, Refused> {
    let options = || store_options(directory);
    match &arguments.command {
        AdminCommand::Restore { .. } if database(arguments).is_some() => {
            Err("a backup is restored into a data directory; `store copy` moves that into the database"
                .into())
        }
        AdminCommand::Restore { file, send } => {
            let done = restore(file, &options(), *send).map_err(|error| error.to_string())?;
            Ok(json!({"rows": done.rows, "bodies": done.bodies, "bytes": done.bytes, "queue_held": !send}))
        }
        AdminCommand::Store(StoreCommand::Hold) => {
            hold(database(arguments), &options())?;
            Ok(json!({"queue_held": true}))
        }
        AdminCommand::Queue(command) => {
            let shown = match command.confirmation() {
                Some(confirmation) => confirmation.ask(|question| ask(directory, question))?,
                None => None,
            };
            shown.map_or_else(|| ask(directory, &queue::question(command)), Ok)
        }
        AdminCommand::Key(command) => as_owner(directory, &secrets::question(Kind::ApiKey, command)?),
        AdminCommand::Credential(command) => {
            as_owner(directory, &secrets::question(Kind::SmtpCredential, command)?)
        }
        AdminCommand::Trace { email: None, filter } => trace(directory, filter),
        AdminCommand::Trace { email: Some(named), .. } => match EmailFilter::of_text(named)? {
            Some(filter) => trace(directory, &filter),
            None => ask(directory, &Question::Trace { email: named.clone() }),
        },
        command => ask(directory, &question(command)?),
    }
}

fn as_owner(directory: &Path, question: &Question) -> Result<Value, Refused> {
    secrets::answer(&ask(directory, question)?)
}

/// How many emails a trace lists, where more than one fits.
const TRACED_MAX: usize = 20;

/// Explains the one email that fits; lists them where several do.
fn trace(directory: &Path, filter: &EmailFilter) -> Result<Value, Refused> {
    let page = PageAsked { limit: TRACED_MAX, cursor: None };
    let found = ask(directory, &Question::EmailList { filter: filter.asked(None), page })?;
    match (table::list(&found, "emails"), found["has_more"] == true) {
        ([only], false) => {
            let email = only["id"].as_str().unwrap_or_default().to_owned();
            ask(directory, &Question::Trace { email })
        }
        ([], is_unfinished) => {
            let searched = if is_unfinished {
                " as far as it was searched: narrow it with --account or --since"
            } else {
                ""
            };
            Err(Refused::of("not_found", format!("no email fits{searched}")))
        }
        _ => Ok(found),
    }
}

/// Fills an empty directory from a backup. Its queue is held from the first start on, unless it is to `send`.
///
/// # Errors
/// The backup or the directory.
pub fn restore(file: &Path, options: &Options, send: bool) -> Result<Progress, BackupError> {
    let hold = queue_hold::of_stopped_store(Clock::default().now(), !send);
    let mut line = ProgressLine::default();
    Store::restore_and(file, options, hold, move |done| line.tell(&progress(done)))
}

/// Holds the queue of a store that no server has open.
fn hold(database: Option<Database>, options: &Options) -> Result<(), String> {
    let runtime = super::run::runtime().map_err(|error| error.to_string())?;
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
        let held = store.commit(queue_hold::of_stopped_store(Clock::default().now(), true)).await;
        store.close().await;
        held.map_err(|error| error.to_string())
    })
}

/// The database that the configuration names, unless a directory is meant.
fn database(arguments: &AdminArguments) -> Option<Database> {
    let config = arguments.data_dir.is_none().then(|| configuration(arguments).ok()).flatten()?;
    crate::world::database(&config)
}

fn question(command: &AdminCommand) -> Result<Question, String> {
    Ok(match command {
        AdminCommand::Account(AccountCommand::List(page)) => Question::AccountList { page: page.asked() },
        AdminCommand::Account(AccountCommand::Create { email, plan, production }) => {
            Question::AccountCreate { email: email.clone(), plan: *plan, production: *production }
        }
        AdminCommand::Account(AccountCommand::Update { account, plan, production, suspended }) => {
            Question::AccountUpdate {
                account: account.clone(),
                plan: *plan,
                production: *production,
                suspended: *suspended,
            }
        }
        AdminCommand::Session(SessionCommand::Create { account }) => {
            Question::SessionCreate { account: account.clone() }
        }
        AdminCommand::User(UserCommand::Reset { email }) => Question::UserReset { email: email.clone() },
        AdminCommand::Domain(command) => domain_question(command),
        AdminCommand::Email(command) => listing::question(command),
        AdminCommand::Queue(command) => queue::question(command),
        AdminCommand::Destination(command) => destination::question(command)?,
        AdminCommand::Pool(command) => pool::question(command),
        AdminCommand::Status => Question::Status,
        AdminCommand::TlsReports { domain, day, limit } => {
            Question::TlsReports { domain: domain.clone(), day: day.clone(), limit: *limit }
        }
        AdminCommand::Reply { reply, host } => Question::Reply { reply: reply.clone(), host: host.clone() },
        AdminCommand::Certificate => Question::CertificateShow,
        AdminCommand::Backup { file } => {
            // The server writes it, from a directory of its own.
            Question::Backup { file: std::path::absolute(file).map_err(|error| error.to_string())? }
        }
        AdminCommand::Clock(ClockArguments { command: None }) => Question::ClockShow,
        AdminCommand::Clock(ClockArguments { command: Some(ClockCommand::Advance { seconds }) }) => {
            Question::ClockAdvance { seconds: *seconds }
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

fn domain_question(command: &DomainCommand) -> Question {
    match command {
        DomainCommand::List { account, page } => {
            Question::DomainList { account: account.clone(), page: page.asked() }
        }
        DomainCommand::Create { name, account, verified } => {
            Question::DomainCreate { name: name.clone(), account: account.clone(), verified: *verified }
        }
        DomainCommand::Verify { name, force } => Question::DomainVerify { name: name.clone(), force: *force },
        DomainCommand::Update { name, open_tracking, click_tracking, tls_mode, tracking_host } => {
            let change = DomainChange {
                open_tracking: *open_tracking,
                click_tracking: *click_tracking,
                tls_mode: *tls_mode,
                tracking_host: tracking_host.clone(),
            };
            Question::DomainUpdate { name: name.clone(), change }
        }
        DomainCommand::Show { name } => Question::DomainShow { name: name.clone() },
    }
}

fn ask(directory: &Path, question: &Question) -> Result<Value, Refused> {
    let socket = directory.join(SOCKET);
    let mut stream = UnixStream::connect(&socket).map_err(|error| {
        format!("{}: {error}; is the server running with this data directory?", socket.display())
    })?;
    let mut asked = serde_json::to_vec(question).map_err(|error| error.to_string())?;
    asked.push(b'\n');
    stream.write_all(&asked).map_err(|error| error.to_string())?;
    let mut shown = ProgressLine::default();
    for line in BufReader::new(stream).lines() {
        let line = line.map_err(|error| error.to_string())?;
        match serde_json::from_str::<Line>(&line).map_err(|error| error.to_string())? {
            Line::Progress(step) => shown.tell(&step),
            Line::Ok(value) => return Ok(value),
            Line::Error(error) => return Err(error),
        }
    }
    Err("the server hung up before it answered".into())
}
