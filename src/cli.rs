//! The command line: commands, their arguments, and the modules that run them.

pub mod admin;
pub mod affiliate;
mod backup;
pub mod check;
mod copy;
pub mod destination;
pub mod doctor;
pub mod listing;
pub mod pool;
mod process;
mod progress;
pub mod queue;
mod readable;
pub mod run;
pub mod secrets;
pub mod setup;
mod status;
mod store_check;
mod table;

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};

/// Runs commands of the `cli` crate, also those that have the name of an operator's command.
pub const CLIENT_COMMAND: &str = "client";

const CLIENT_HELP: &str = "To call a server: postrider emails send, domains list, listen, login, … (`postrider client \
    --help` lists all commands; `postrider client doctor` checks the server that you call)";

/// Mail server that sends, receives and tracks a product's email
#[derive(Debug, Parser)]
#[command(name = "postrider", version, about, arg_required_else_help = true, after_help = CLIENT_HELP)]
pub struct CliArguments {
    /// Command to run
    #[command(subcommand)]
    pub command: CliCommand,
}

/// Commands of `postrider`.
#[derive(Debug, Subcommand)]
pub enum CliCommand {
    /// Run a development server on loopback: no mail leaves this machine, and a web inbox shows it
    Dev(DevArguments),
    /// Run the server
    Serve(ServeArguments),
    /// Set up this machine: check it, write the configuration, start the server, wait for DNS and the certificate, send
    /// a test email
    Setup(crate::setup::SetupOptions),
    /// Check a configuration and report every problem with its line
    Check(CheckArguments),
    /// Check this server, its names and its network, and suggest fixes
    Doctor(doctor::DoctorArguments),
    /// Show the health of the running server; the exit status is 1 if there is a problem
    Status(StatusArguments),
    /// Manage the running server
    Admin(AdminArguments),
}

/// Returns whether a word is a command of operators: they keep their names in this program.
pub fn is_operator_command(word: &str) -> bool {
    word == "help" || <CliArguments as clap::CommandFactory>::command().find_subcommand(word).is_some()
}

/// Selects the configuration file.
#[derive(Debug, Args)]
pub struct ConfigArguments {
    /// Configuration file
    #[arg(long, default_value = "/etc/postrider/postrider.toml")]
    pub config: PathBuf,
    /// Print one JSON value
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `postrider check`.
#[derive(Debug, Args)]
pub struct CheckArguments {
    #[command(flatten)]
    pub config: ConfigArguments,
    /// Check only the file and the environment, not this machine's files and addresses
    #[arg(long)]
    pub file_only: bool,
}

/// Arguments of `postrider serve`.
#[derive(Debug, Args)]
pub struct ServeArguments {
    /// Configuration file
    #[command(flatten)]
    pub config: ConfigArguments,
    /// Release a queue held since a restore, as `admin queue release --all` does
    #[arg(long)]
    pub send: bool,
}

/// Arguments of `postrider dev`.
#[derive(Debug, Args)]
pub struct DevArguments {
    /// Directory for the mail, the API key and the inbox [default: ~/.local/share/postrider/dev]
    #[arg(long)]
    pub data_dir: Option<PathBuf>,
    /// Delete the data of earlier runs first
    #[arg(long)]
    pub fresh: bool,
    /// Address of the HTTP API and the web inbox
    #[arg(long, default_value = "127.0.0.1:8025")]
    pub api: SocketAddr,
    /// Address of SMTP submission (login required)
    #[arg(long, default_value = "127.0.0.1:1587")]
    pub submission: SocketAddr,
    /// Address of SMTP without a login: mail for any address goes to the inbox
    #[arg(long, default_value = "127.0.0.1:1025")]
    pub mx: SocketAddr,
    /// Print one JSON line when ready
    #[arg(long)]
    pub json: bool,
}

/// Selects the server of `postrider status`.
#[derive(Debug, Args)]
pub struct StatusArguments {
    /// Configuration file, which names the data directory
    #[arg(long)]
    pub config: Option<PathBuf>,
    /// Data directory, instead of the configured one
    #[arg(long)]
    pub data_dir: Option<PathBuf>,
    /// Print one JSON value
    #[arg(long)]
    pub json: bool,
}

impl From<StatusArguments> for AdminArguments {
    fn from(arguments: StatusArguments) -> Self {
        let StatusArguments { config, data_dir, json } = arguments;
        Self { config, data_dir, json, command: admin::AdminCommand::Status }
    }
}

/// Arguments of `postrider admin`: the server and the command.
#[derive(Debug, Args)]
pub struct AdminArguments {
    /// Configuration file, which names the data directory
    #[arg(long, global = true)]
    pub config: Option<PathBuf>,
    /// Data directory, instead of the configured one
    #[arg(long, global = true)]
    pub data_dir: Option<PathBuf>,
    /// Print one JSON value
    #[arg(long, global = true)]
    pub json: bool,
    /// Command to run
    #[command(subcommand)]
    pub command: admin::AdminCommand,
}
