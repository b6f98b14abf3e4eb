//! The command line: what can be said, and who carries it out.

pub mod admin;
pub mod affiliate;
pub mod check;
mod copy;
pub mod destination;
pub mod doctor;
pub mod listing;
pub mod pool;
mod progress;
pub mod queue;
pub mod run;
pub mod secrets;
mod status;
mod store_check;
mod table;

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};

/// Sends, receives and accounts for a product's email, on infrastructure its operator owns.
#[derive(Debug, Parser)]
#[command(name = "postrider", version, about, arg_required_else_help = true)]
pub struct CliArguments {
    /// What to do.
    #[command(subcommand)]
    pub command: CliCommand,
}

/// What postrider does.
#[derive(Debug, Subcommand)]
pub enum CliCommand {
    /// Run on this machine for trying out: everything on loopback, mail caught in a web inbox
    Dev(DevArguments),
    /// Run with a configuration
    Serve(ServeArguments),
    /// Check a configuration and name every problem with its line
    Check(ConfigArguments),
    /// Look for what is wrong with this server, its names and its network, and tell the fix
    Doctor(doctor::DoctorArguments),
    /// Show whether the running server is well; the exit status is 1 when something is wrong
    Status(StatusArguments),
    /// Talk to the running server
    Admin(AdminArguments),
}

/// Which configuration.
#[derive(Debug, Args)]
pub struct ConfigArguments {
    /// The configuration file
    #[arg(long, default_value = "/etc/postrider/postrider.toml")]
    pub config: PathBuf,
    /// Print one JSON value
    #[arg(long)]
    pub json: bool,
}

/// How to run.
#[derive(Debug, Args)]
pub struct ServeArguments {
    /// With which configuration
    #[command(flatten)]
    pub config: ConfigArguments,
    /// Let the queue go that is held since its store was restored, as `admin queue release --all` does
    #[arg(long)]
    pub send: bool,
}

/// Where the development server is.
#[derive(Debug, Args)]
pub struct DevArguments {
    /// Where to keep mail, the API key and the inbox [default: ~/.local/share/postrider/dev]
    #[arg(long)]
    pub data_dir: Option<PathBuf>,
    /// Remove what earlier runs have kept there, and begin anew
    #[arg(long)]
    pub fresh: bool,
    /// The HTTP API, and the web inbox for a browser
    #[arg(long, default_value = "127.0.0.1:8025")]
    pub api: SocketAddr,
    /// SMTP submission, with a login
    #[arg(long, default_value = "127.0.0.1:1587")]
    pub submission: SocketAddr,
    /// SMTP without a login: mail for anybody goes into the inbox
    #[arg(long, default_value = "127.0.0.1:1025")]
    pub mx: SocketAddr,
    /// Print one JSON line when ready
    #[arg(long)]
    pub json: bool,
}

/// Which server.
#[derive(Debug, Args)]
pub struct StatusArguments {
    /// The configuration file, which names the data directory
    #[arg(long)]
    pub config: Option<PathBuf>,
    /// The data directory, instead of the configuration's
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

/// Which server, and what of it.
#[derive(Debug, Args)]
pub struct AdminArguments {
    /// The configuration file, which names the data directory
    #[arg(long, global = true)]
    pub config: Option<PathBuf>,
    /// The data directory, instead of the configuration's
    #[arg(long, global = true)]
    pub data_dir: Option<PathBuf>,
    /// Print one JSON value
    #[arg(long, global = true)]
    pub json: bool,
    /// What to do
    #[command(subcommand)]
    pub command: admin::AdminCommand,
}
