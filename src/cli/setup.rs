//! `postrider setup`: parses arguments, runs the setup, returns the exit code.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;

use super::process::build_runtime;
use crate::doctor::context::ProbeTarget;
use crate::setup::{
    self, AnswerFlags, DEFAULT_CONFIG, Dialog as _, EXIT_AGAIN, SetupError, SetupOptions, StandardDialog,
};

/// Arguments of `postrider setup`.
#[derive(Debug, Args)]
#[command(
    after_help = "Run it as root. It asks four questions, which flags can answer; without a terminal, all four flags \
are required. If it is interrupted, run it again: it continues.\n\
Exit status: 0 complete, 1 a problem to correct, 2 invalid usage, 64 a flag is missing or its value is refused, 75 still \
waiting for the server, DNS or the test email: run it again.\n\n\
Example:\n  \
postrider setup --hostname mx1.example.net --domain example.net --owner you@example.org --no-receive"
)]
pub struct SetupArguments {
    /// Host name of this server, such as mx1.example.net
    #[arg(long, value_name = "NAME")]
    pub hostname: Option<String>,
    /// Sending domain: the part after the @ of the addresses that you send from
    #[arg(long, value_name = "NAME")]
    pub domain: Option<String>,
    /// Email address of the account's owner, who gets the test email
    #[arg(long, value_name = "ADDRESS")]
    pub owner: Option<String>,
    /// Receive the domain's mail on this server
    #[arg(long)]
    pub receive: bool,
    /// Do not receive the domain's mail on this server
    #[arg(long, conflicts_with = "receive")]
    pub no_receive: bool,
    /// Configuration file, which is written if it does not exist
    #[arg(long, default_value = DEFAULT_CONFIG)]
    pub config: PathBuf,
    /// Data directory in a new configuration [default: /var/lib/postrider]
    #[arg(long, value_name = "DIR")]
    pub data: Option<PathBuf>,
    /// Accept the defaults for hostname, domain and receiving, without asking for confirmation
    #[arg(long)]
    pub yes: bool,
    /// Check only once for DNS, and for a server that you start yourself; exit with status 75 if they are not ready
    #[arg(long)]
    pub no_wait: bool,
    /// Public address of this machine if it is behind NAT; may be repeated
    #[arg(long, value_name = "IP")]
    pub address: Vec<std::net::IpAddr>,
    /// Mail host for testing outgoing port 25, HOST or HOST:PORT [default: those of gmail.com and outlook.com]
    #[arg(long, value_name = "HOST:PORT")]
    pub out: Option<ProbeTarget>,
    /// Continue without testing outgoing port 25
    #[arg(long)]
    pub skip_port_25: bool,
    /// Write the API key and the SMTP password to this new file instead of the terminal
    #[arg(long, value_name = "FILE")]
    pub secrets: Option<PathBuf>,
    /// Directory URL of a certificate authority other than Let's Encrypt, for a new configuration
    #[arg(long, value_name = "URL")]
    pub acme_directory: Option<String>,
    /// CA certificates (PEM) that sign that directory's own certificate
    #[arg(long, value_name = "FILE")]
    pub acme_roots: Option<PathBuf>,
}

impl From<&SetupArguments> for SetupOptions {
    fn from(arguments: &SetupArguments) -> Self {
        let receive = match (arguments.receive, arguments.no_receive) {
            (true, _) => Some(true),
            (false, true) => Some(false),
            (false, false) => None,
        };
        // The server has another working directory.
        let absolute = |path: &PathBuf| std::path::absolute(path).unwrap_or_else(|_| path.clone());
        Self {
            flags: AnswerFlags {
                hostname: arguments.hostname.clone(),
                domain: arguments.domain.clone(),
                owner: arguments.owner.clone(),
                receive,
            },
            config: absolute(&arguments.config),
            data_dir: arguments.data.as_ref().map(absolute),
            yes: arguments.yes,
            no_wait: arguments.no_wait,
            addresses: arguments.address.clone(),
            out: arguments.out.clone(),
            skip_port_25: arguments.skip_port_25,
            secrets: arguments.secrets.as_ref().map(absolute),
            acme_directory: arguments.acme_directory.clone(),
            acme_roots: arguments.acme_roots.as_ref().map(absolute),
        }
    }
}

/// Runs the setup.
pub fn run(arguments: &SetupArguments) -> ExitCode {
    let (mut dialog, options) = (StandardDialog::default(), SetupOptions::from(arguments));
    let result = build_runtime().map_err(SetupError::from).and_then(|runtime| {
        let result = runtime.block_on(run_phases(&mut dialog, &options));
        // Does not wait for blocking calls: a hanging disk would delay the exit.
        runtime.shutdown_background();
        result
    });
    match result {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(EXIT_AGAIN),
        Err(error) => {
            // Removes live lines.
            dialog.print("");
            eprintln!("postrider: {error}");
            ExitCode::from(error.exit_status())
        }
    }
}

/// Returns false if the operator interrupted the second part. In the first one, questions are read from the terminal,
/// and Ctrl-C ends the process as usual.
async fn run_phases(dialog: &mut StandardDialog, options: &SetupOptions) -> Result<bool, SetupError> {
    let installation = setup::prepare(dialog, options).await?;
    let is_complete = setup::complete(dialog, options, &installation, tokio::signal::ctrl_c()).await?;
    if !is_complete {
        setup::print_interrupted(dialog, options);
    }
    Ok(is_complete)
}
