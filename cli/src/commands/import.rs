//! `import SERVICE FILE…`: takes over suppressions and templates from the export files of another service.
//!
//! ```text
//! file ─► rows (CSV or JSON) ─► suppressions: one CSV list in our words ─► POST /suppressions/import, in batches
//!                            └► templates ─► POST /templates (drafts)
//! ```
//!
//! An address that is suppressed already, and a template whose alias is taken, are counted and left as they are, so the
//! command can be repeated.

mod csv;
mod export;
mod service;
mod suppressions;
mod template;

use std::collections::BTreeMap;

use clap::{Arg, Command};
use serde_json::{Value, json};

use self::export::ExportFile;
use self::service::{Service, SuppressionReason};
use super::workflow::WorkflowRun;
use crate::arguments::{option, switch};
use crate::error::CliError;
use crate::operation::OperationTable;
use crate::output::{self, Format};

/// Rows with errors that are shown.
const ERRORS_SHOWN: usize = 20;

pub(super) fn command() -> Command {
    super::described(
        "import",
        &[
            "postrider import postmark suppressions.csv --dry-run",
            "postrider import resend contacts.csv",
            "postrider import mailgun complaints.csv --reason complaint",
            "postrider import ses welcome.json",
        ],
    )
    .arg(
        Arg::new("service")
            .value_name("SERVICE")
            .required(true)
            .value_parser(Service::NAMES.to_vec())
            .help("The service that the files come from"),
    )
    .arg(
        Arg::new("files")
            .value_name("FILE")
            .required(true)
            .num_args(1..)
            .help("Export files (CSV or JSON), or a template folder of the Postmark command line"),
    )
    .arg(option("reason", "REASON", "Reason for rows that have none").value_parser(SuppressionReason::NAMES.to_vec()))
    .arg(switch("dry-run", "Count the addresses by reason and show the rows that cannot be read; send nothing"))
}

pub(super) async fn run(arguments: &[String], table: &OperationTable<'_>) -> Result<(), CliError> {
    let run = WorkflowRun::parse(command(), arguments, table)?;
    let service = Service::parse(run.text("service").unwrap_or_default());
    let reason = run.text("reason").and_then(SuppressionReason::parse);
    let mut found = ImportedRows::default();
    for path in run.texts("files") {
        found.read(service, &path, reason)?;
    }
    let (mut report, is_rehearsal) = (found.report(), run.flag("dry-run"));
    if !is_rehearsal {
        let client = run.client()?;
        if !found.suppressions.is_empty() {
            report["import"] = suppressions::send(&client, &found.suppressions).await?;
        }
        if !found.templates.is_empty() {
            report["template_results"] = template::send(&client, &found.templates).await?;
        }
    }
    print_report(&report, run.format())?;
    if found.is_last_page_missing() {
        eprintln!("warning: the list has more pages than these files; export the other pages and import them too");
    }
    let rejected = [&report["import"]["invalid"], &report["import"]["refused"]];
    let failed_templates = report["template_results"].as_array().into_iter().flatten();
    let failed = failed_templates.filter(|result| result["status"] == "failed").count() as u64
        + rejected.iter().filter_map(|count| count.as_u64()).sum::<u64>();
    match failed + found.errors.len() as u64 {
        0 => Ok(()),
        1 if is_rehearsal => Err(CliError::Failed("1 row cannot be read".to_owned())),
        n if is_rehearsal => Err(CliError::Failed(format!("{n} rows cannot be read"))),
        1 => Err(CliError::Failed("1 row was not imported".to_owned())),
        n => Err(CliError::Failed(format!("{n} rows were not imported"))),
    }
}

/// A row that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq)]
struct RowError {
    file: String,
    /// Line of a CSV file, or position in a JSON list, from 1.
    line: u64,
    message: String,
}

/// A suppressed address and where it was read.
#[derive(Debug, Clone, PartialEq, Eq)]
struct SuppressedAddress {
    email: String,
    reason: SuppressionReason,
    file: String,
    line: u64,
}

/// All rows of the files.
#[derive(Debug, Default)]
struct ImportedRows {
    suppressions: Vec<SuppressedAddress>,
    /// Requests of templates.
    templates: Vec<Value>,
    errors: Vec<RowError>,
    duplicates: u64,
    /// Rows that are no suppression, for example contacts that are subscribed.
    skipped: u64,
    /// For each answer of an API that says it: whether another page follows.
    next_pages: Vec<bool>,
}

impl ImportedRows {
    fn read(&mut self, service: Service, path: &str, reason: Option<SuppressionReason>) -> Result<(), CliError> {
        let file = ExportFile::read(path)?;
        let mut known: std::collections::HashSet<String> =
            self.suppressions.iter().map(|one| one.email.to_lowercase()).collect();
        let rows = file.rows(service)?;
        self.next_pages.extend(rows.next_pages);
        for row in rows.rows {
            let error = |message: String| RowError { file: path.to_owned(), line: row.line, message };
            let fields = match &row.fields {
                Ok(fields) => fields,
                Err(message) => {
                    self.errors.push(error(message.clone()));
                    continue;
                }
            };
            if let Some(template) = template::read(service, fields) {
                match template {
                    Ok(template) => self.templates.push(template),
                    Err(message) => self.errors.push(error(message)),
                }
                continue;
            }
            match service.suppression(fields, reason) {
                Ok(None) => self.skipped += 1,
                Ok(Some((email, reason))) => {
                    if known.insert(email.to_lowercase()) {
                        let file = path.to_owned();
                        self.suppressions.push(SuppressedAddress { email, reason, file, line: row.line });
                    } else {
                        self.duplicates += 1;
                    }
                }
                Err(message) => self.errors.push(error(message)),
            }
        }
        Ok(())
    }

    /// True if the files have pages of a list, but not its last one.
    fn is_last_page_missing(&self) -> bool {
        !self.next_pages.is_empty() && self.next_pages.iter().all(|follows| *follows)
    }

    fn report(&self) -> Value {
        let mut by_reason: BTreeMap<&str, u64> = BTreeMap::new();
        for one in &self.suppressions {
            *by_reason.entry(one.reason.name()).or_default() += 1;
        }
        let error = |error: &RowError| json!({"file": error.file, "line": error.line, "message": error.message});
        json!({
            "suppressions": self.suppressions.len(),
            "by_reason": by_reason,
            "duplicates": self.duplicates,
            "skipped": self.skipped,
            "last_page_missing": self.is_last_page_missing(),
            "templates": self.templates.iter().map(|template| template["alias"].clone()).collect::<Vec<_>>(),
            "unreadable": self.errors.len(),
            "errors": self.errors.iter().take(ERRORS_SHOWN).map(error).collect::<Vec<_>>(),
        })
    }
}

fn print_report(report: &Value, format: Format) -> Result<(), CliError> {
    if format != Format::Text {
        return output::print_json(report);
    }
    let mut shown = report.clone();
    let errors = shown.as_object_mut().and_then(|shown| shown.remove("errors")).unwrap_or_default();
    output::print_object(&shown)?;
    for error in errors.as_array().into_iter().flatten() {
        let text = |name: &str| error[name].as_str().map(output::safe_text).unwrap_or_default();
        output::print(&format!("{}:{}: {}", text("file"), error["line"], text("message")))?;
    }
    Ok(())
}
