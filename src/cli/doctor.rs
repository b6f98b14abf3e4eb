//! `postrider doctor`: from arguments to an exit code.

use std::io::{IsTerminal as _, Write as _};
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use queue::clock::Clock;

use super::run::build_runtime;
use crate::config;
use crate::doctor::CheckRunner;
use crate::doctor::finding::{CheckStatus, DoctorFinding};
use crate::doctor::place::{CheckContext, DoctorOptions, ProbeTarget};
use crate::doctor::show::{self, OutputStyle};

/// It could not be run: the configuration cannot be read, or there is no name server to ask.
const EXIT_NOT_RUN: u8 = 2;

/// What to look at, and whom to ask.
#[derive(Debug, Args)]
#[command(after_help = "Exit status: 0 nothing is wrong (there may be warnings; with --strict there are none), \
1 something is wrong, 2 it could not be run.\n\
It needs no root, but sees more as root or as the user that the server runs as: key files, the data directory.")]
pub struct DoctorArguments {
    /// The configuration file
    #[arg(long, default_value = "/etc/postrider/postrider.toml")]
    pub config: PathBuf,
    /// Print one JSON value: {"checks":[{"name","status":"ok|warning|failed|skipped","found","fix"}]}
    #[arg(long)]
    pub json: bool,
    /// Count warnings as wrong
    #[arg(long)]
    pub strict: bool,
    /// The mail host to try port 25 out with, HOST or HOST:PORT [default: those of gmail.com and outlook.com]
    #[arg(long, value_name = "HOST:PORT")]
    pub out: Option<ProbeTarget>,
    /// The time server to compare the clock with, HOST or HOST:PORT [default: pool.ntp.org]
    #[arg(long, value_name = "HOST:PORT")]
    pub ntp: Option<ProbeTarget>,
    /// Our public address, where this machine is behind a NAT; once for each
    #[arg(long, value_name = "IP")]
    pub address: Vec<std::net::IpAddr>,
}

/// Runs the checks and tells what they found.
#[must_use]
pub fn run(arguments: &DoctorArguments) -> ExitCode {
    let mut told = FindingPrinter::new(arguments.json);
    let runtime = match build_runtime() {
        Ok(runtime) => runtime,
        Err(error) => {
            eprintln!("postrider: {error}");
            return ExitCode::from(EXIT_NOT_RUN);
        }
    };
    let done = runtime.block_on(run_checks(arguments, &mut told));
    // A disk that hangs would hold up the end for as long.
    runtime.shutdown_background();
    told.finish();
    match done {
        Err(()) => ExitCode::from(EXIT_NOT_RUN),
        Ok(()) => {
            let wrong = if arguments.strict { CheckStatus::Warning } else { CheckStatus::Failed };
            ExitCode::from(u8::from(told.findings.iter().any(|found| found.status >= wrong)))
        }
    }
}

async fn run_checks(arguments: &DoctorArguments, told: &mut FindingPrinter) -> Result<(), ()> {
    let file = arguments.config.display();
    // What it names on this machine is looked at by the checks, one by one.
    let config = config::from_file_alone(&arguments.config).map_err(|problems| {
        let lines: Vec<String> = problems.iter().map(|problem| format!("{file}: {problem}")).collect();
        let fix = format!("Mend it, and try: postrider check --config {file}");
        told.print(DoctorFinding::failed("configuration", lines.join("\n"), fix));
    })?;
    told.print(DoctorFinding::good("configuration", format!("{file}: good")));
    let options =
        DoctorOptions { out: arguments.out.clone(), ntp: arguments.ntp.clone(), addresses: arguments.address.clone() };
    told.print_progress(&["the addresses of this machine"]);
    let place = CheckContext::gather(config, options, Clock::default()).await.map_err(|error| {
        let fix = "Name one: servers = [\"127.0.0.1:53\"] in [dns], or nameserver lines in /etc/resolv.conf.";
        told.print(DoctorFinding::failed("dns", error.to_string(), fix.to_owned()));
    })?;
    let mut examination = CheckRunner::start(place);
    loop {
        told.print_progress(&examination.running());
        match examination.next_finding().await {
            Some(found) => told.print(found),
            None => return Ok(()),
        }
    }
}

/// What was told so far, and how.
struct FindingPrinter {
    findings: Vec<DoctorFinding>,
    /// None for JSON, which is told at the end.
    style: Option<OutputStyle>,
    /// Progress is for who looks on.
    live: bool,
}

impl FindingPrinter {
    fn new(json: bool) -> Self {
        let terminal = std::io::stdout().is_terminal();
        let colours = std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
        let marks = match (terminal, colours) {
            (true, true) => OutputStyle::Coloured,
            (true, false) => OutputStyle::Plain,
            (false, _) => OutputStyle::Words,
        };
        Self { findings: Vec::new(), style: (!json).then_some(marks), live: terminal && !json }
    }

    /// A line that the next finding overwrites.
    fn print_progress(&self, waiting: &[&str]) {
        if self.live && !waiting.is_empty() {
            let line: String = format!("  looking at {}", waiting.join(", ")).chars().take(78).collect();
            let _ = write!(std::io::stdout(), "\r\x1b[K\x1b[2m{line}\x1b[0m");
            let _ = std::io::stdout().flush();
        }
    }

    fn print(&mut self, found: DoctorFinding) {
        if let Some(marks) = self.style {
            let clear = if self.live { "\r\x1b[K" } else { "" };
            // Nobody may be listening any more (`… | head`).
            let _ = write!(std::io::stdout(), "{clear}{}", show::render_finding(&found, marks));
        }
        self.findings.push(found);
    }

    fn finish(&self) {
        let clear = if self.live { "\r\x1b[K" } else { "" };
        let _ = match self.style {
            Some(_) => writeln!(std::io::stdout(), "{clear}\n{}", show::render_summary(&self.findings)),
            None => writeln!(std::io::stdout(), "{}", show::to_json(&self.findings)),
        };
    }
}
