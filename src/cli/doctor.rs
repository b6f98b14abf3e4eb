//! `postrider doctor`: parses arguments, runs the checks, prints findings, returns the exit code.

use std::io::{IsTerminal as _, Write as _};
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use net::clock::Clock;

use super::process::build_runtime;
use crate::config;
use crate::doctor::CheckRunner;
use crate::doctor::context::{CheckContext, DoctorOptions, ProbeTarget};
use crate::doctor::finding::{CheckStatus, DoctorFinding};
use crate::doctor::render::{self, OutputStyle};
use crate::reload::masked_problem;

/// The checks cannot run: the configuration is invalid, or no name server is configured.
const EXIT_NOT_RUN: u8 = 2;

/// Arguments of `postrider doctor`.
#[derive(Debug, Args)]
#[command(after_help = "Exit status: 0 no check failed (with --strict: and none has a warning), \
1 a check failed, 2 the checks could not run.\n\
Root is not required, but root or the server's user can check more: key files, the data directory.")]
pub struct DoctorArguments {
    /// Configuration file
    #[arg(long, default_value = "/etc/postrider/postrider.toml")]
    pub config: PathBuf,
    /// Print one JSON value: {"checks":[{"name","status":"ok|warning|failed|skipped","found","fix"}]}
    #[arg(long)]
    pub json: bool,
    /// Treat warnings as failures
    #[arg(long)]
    pub strict: bool,
    /// Mail host for testing outgoing port 25, HOST or HOST:PORT [default: those of gmail.com and outlook.com]
    #[arg(long, value_name = "HOST:PORT")]
    pub out: Option<ProbeTarget>,
    /// Time server for the clock check, HOST or HOST:PORT [default: pool.ntp.org]
    #[arg(long, value_name = "HOST:PORT")]
    pub ntp: Option<ProbeTarget>,
    /// Public address of this machine if it is behind NAT; may be repeated
    #[arg(long, value_name = "IP")]
    pub address: Vec<std::net::IpAddr>,
}

/// Runs the checks and prints their findings.
pub fn run(arguments: &DoctorArguments) -> ExitCode {
    let mut printer = FindingPrinter::new(arguments.json);
    let runtime = match build_runtime() {
        Ok(runtime) => runtime,
        Err(error) => {
            eprintln!("postrider: {error}");
            return ExitCode::from(EXIT_NOT_RUN);
        }
    };
    let result = runtime.block_on(run_checks(arguments, &mut printer));
    // Does not wait for blocking calls: a hanging disk would delay the exit.
    runtime.shutdown_background();
    printer.finish();
    match result {
        Err(()) => ExitCode::from(EXIT_NOT_RUN),
        Ok(()) => {
            let failing_status = if arguments.strict { CheckStatus::Warning } else { CheckStatus::Failed };
            ExitCode::from(u8::from(printer.findings.iter().any(|found| found.status >= failing_status)))
        }
    }
}

async fn run_checks(arguments: &DoctorArguments, printer: &mut FindingPrinter) -> Result<(), ()> {
    let file = arguments.config.display();
    // The checks themselves verify files and addresses that the configuration names.
    let config = config::from_file_alone(&arguments.config).map_err(|problems| {
        let lines: Vec<String> =
            problems.iter().map(|problem| format!("{file}: {}", masked_problem(problem))).collect();
        let fix = format!("Fix it, then run: postrider check --config {file}");
        printer.print(DoctorFinding::failed("configuration", lines.join("\n"), fix));
    })?;
    printer.print(DoctorFinding::good("configuration", format!("{file}: OK")));
    let options =
        DoctorOptions { out: arguments.out.clone(), ntp: arguments.ntp.clone(), addresses: arguments.address.clone() };
    printer.print_progress(&["the addresses of this machine"]);
    let context = CheckContext::build(config, options, Clock::default()).await.map_err(|error| {
        let fix = "Configure one: servers = [\"127.0.0.1:53\"] in [dns], or nameserver lines in /etc/resolv.conf.";
        printer.print(DoctorFinding::failed("dns", error.to_string(), fix.to_owned()));
    })?;
    let mut runner = CheckRunner::start(context);
    loop {
        printer.print_progress(&runner.running());
        match runner.next_finding().await {
            Some(finding) => printer.print(finding),
            None => return Ok(()),
        }
    }
}

/// Prints findings, and collects them for the summary.
struct FindingPrinter {
    findings: Vec<DoctorFinding>,
    /// None for JSON, which is printed at the end.
    style: Option<OutputStyle>,
    /// True if progress is shown: stdout is a terminal.
    live: bool,
}

impl FindingPrinter {
    fn new(json: bool) -> Self {
        let live = std::io::stdout().is_terminal() && !json;
        Self { findings: Vec::new(), style: (!json).then(OutputStyle::for_stdout), live }
    }

    /// Prints a line that the next finding overwrites.
    fn print_progress(&self, waiting: &[&str]) {
        if self.live && !waiting.is_empty() {
            let line: String = format!("  checking {}", waiting.join(", ")).chars().take(78).collect();
            let _ = write!(std::io::stdout(), "\r\x1b[K\x1b[2m{line}\x1b[0m");
            let _ = std::io::stdout().flush();
        }
    }

    fn print(&mut self, finding: DoctorFinding) {
        if let Some(style) = self.style {
            let clear = if self.live { "\r\x1b[K" } else { "" };
            // Stdout may be closed (`… | head`).
            let _ = write!(std::io::stdout(), "{clear}{}", render::render_finding(&finding, style));
        }
        self.findings.push(finding);
    }

    fn finish(&self) {
        let clear = if self.live { "\r\x1b[K" } else { "" };
        let _ = match self.style {
            Some(_) => writeln!(std::io::stdout(), "{clear}\n{}", render::render_summary(&self.findings)),
            None => writeln!(std::io::stdout(), "{}", render::to_json(&self.findings)),
        };
    }
}
