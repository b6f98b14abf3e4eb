//! Imports a list: first a dry run that says what would happen to each line, then the import.

use std::collections::HashMap;

use bytes::Bytes;
use hypertext::maud_borrow;
use hypertext::prelude::*;
use serde::Deserialize;
use serde_json::json;

use super::LIST;
use super::address_list::{self, ListEntry};
use super::check::{CheckReply, CheckedAddress};
use super::object::reason_badge;
use crate::dashboard::backend::{Call, CallBody, Failure};
use crate::dashboard::context::Context;
use crate::dashboard::form::{Control, Field, Form};
use crate::dashboard::kit::badge::{Badge, Tone};
use crate::dashboard::kit::facts::Facts;
use crate::dashboard::kit::table::{Row, Table};
use crate::dashboard::kit::text::grouped;
use crate::dashboard::page::Page;
use crate::dashboard::screens::encode;
use crate::dashboard::table::{Outcome, View};

/// Addresses of one call.
const CHECKED_AT_ONCE: usize = 1_000;
/// Most lines that the dry run checks.
const CHECKED_MAX: usize = 10_000;
/// Most lines that are shown.
const SHOWN_MAX: usize = 100;

/// The result that an import would have for a line.
#[derive(Debug, Clone, PartialEq, Eq)]
enum LineOutcome {
    Added,
    /// Nothing is sent to the address already, for this reason.
    Exists(String),
    /// The same address as on an earlier line.
    Repeated(usize),
    Refused(String),
}

fn form() -> Form<'static> {
    let fields = vec![
        Field::new("file", "CSV file", Control::File { accept: ".csv,.txt,text/csv,text/plain" })
            .ignored()
            .help("Exports of Amazon SES, Postmark, SendGrid, Mailgun and of this server are understood, and any list with a column of addresses."),
        Field::new("csv", "Or paste the list", Control::Code { rows: 6 })
            .placeholder("email,reason\ngrace@example.net,bounce")
            .help("One entry a line. The file counts if both are there."),
    ];
    Form::new("dry-run", "Show what would happen", fields)
}

pub(super) fn show(context: &Context<'_>) -> View {
    let form = form();
    let body = maud_borrow! { div.card { (form.within(context)) } };
    Page::new("Import suppressions", body)
        .below(LIST, "Suppressions")
        .lead("Nothing is changed yet: the next page shows what would happen to each line.")
        .same_as(Call::new("import_suppressions").json(json!({"csv": "email,reason\ngrace@example.net,bounce\n"})))
        .into()
}

/// The list of the form: the file, or the text.
fn list_text(context: &Context<'_>) -> Result<String, Failure> {
    let file = context.request.files.iter().find(|file| file.field == "file" && !file.content.is_empty());
    match file {
        Some(file) => {
            let text = std::str::from_utf8(&file.content);
            let text =
                text.map_err(|_| Failure::field("file", "The file is not UTF-8 text: save it as CSV in UTF-8"))?;
            Ok(text.replace("\r\n", "\n").replace('\r', "\n"))
        }
        None if context.form().get("csv").trim().is_empty() => {
            Err(Failure::field("file", "Choose a file, or paste the list below"))
        }
        None => Ok(context.form().get("csv").to_owned()),
    }
}

pub(super) async fn dry_run(context: &Context<'_>) -> Result<Outcome, Failure> {
    let text = list_text(context)?;
    let is_file = context.request.files.iter().any(|file| !file.content.is_empty());
    let entries =
        address_list::read(&text).map_err(|message| Failure::field(if is_file { "file" } else { "csv" }, message))?;
    let outcomes = outcomes(context, &entries[..entries.len().min(CHECKED_MAX)]).await?;
    let mut import = Form::new("import", "Import the list", vec![Field::hidden("csv", text)]);
    import.multipart = true;
    let report = DryRun { entries: &entries, outcomes: &outcomes };
    let is_useless =
        report.count(|outcome| matches!(outcome, LineOutcome::Added)) == 0 && entries.len() == outcomes.len();
    let body = maud_borrow! {
        section.card {
            (report.facts())
            @if outcomes.len() < entries.len() {
                p.soft { "Only the first " (grouped(outcomes.len() as u64)) " lines were checked; the import reads all " (grouped(entries.len() as u64)) "." }
            }
            @if is_useless {
                p { "The import would change nothing." }
            }
            (import.within(context))
            p { a href={ (LIST) "/import" } { "Choose another list" } }
        }
        (report.section("Lines that would be left out", |outcome| matches!(outcome, LineOutcome::Refused(_))))
        (report.section("Other lines", |outcome| !matches!(outcome, LineOutcome::Refused(_))))
    };
    let page = Page::new("What the import would do", body)
        .below(LIST, "Suppressions")
        .below(format!("{LIST}/import"), "Import")
        .lead("Nothing is changed yet.");
    Ok(Outcome::Once(Box::new(page)))
}

/// The result that an import would have for each line.
async fn outcomes(context: &Context<'_>, entries: &[ListEntry]) -> Result<Vec<LineOutcome>, Failure> {
    let mut first_lines: HashMap<String, usize> = HashMap::new();
    let mut unique: Vec<&str> = Vec::new();
    for address in entries.iter().filter_map(|entry| entry.address.as_deref()).filter(|address| !address.is_empty()) {
        if !first_lines.contains_key(address) {
            first_lines.insert(address.to_owned(), 0);
            unique.push(address);
        }
    }
    let mut checked: HashMap<&str, CheckedAddress> = HashMap::new();
    for part in unique.chunks(CHECKED_AT_ONCE) {
        let call = Call::new("check_suppressions").json(json!({"emails": part}));
        let answer: CheckReply = context.read(&call).await?;
        checked.extend(part.iter().copied().zip(answer.data));
    }
    first_lines.clear();
    let outcomes = entries.iter().map(|entry| {
        let address = match entry.address.as_deref() {
            None => return LineOutcome::Refused("A quote is not closed, or the line is too long".to_owned()),
            Some("") => return LineOutcome::Refused("The address is missing".to_owned()),
            Some(address) => address,
        };
        let Some(status) = checked.get(address) else {
            return LineOutcome::Refused("The address could not be checked".to_owned());
        };
        if let Some(error) = &status.error {
            return LineOutcome::Refused(error.clone());
        }
        // The API answers with the address as it is compared.
        match first_lines.get(&status.email) {
            Some(line) => return LineOutcome::Repeated(*line),
            None => first_lines.insert(status.email.clone(), entry.line),
        };
        if status.suppressed {
            return LineOutcome::Exists(status.reason.clone().unwrap_or_default());
        }
        LineOutcome::Added
    });
    Ok(outcomes.collect())
}

/// The result of a dry run.
struct DryRun<'r> {
    entries: &'r [ListEntry],
    outcomes: &'r [LineOutcome],
}

impl DryRun<'_> {
    fn count(&self, is_wanted: impl Fn(&LineOutcome) -> bool) -> u64 {
        self.outcomes.iter().filter(|outcome| is_wanted(outcome)).count() as u64
    }

    fn facts(&self) -> Facts {
        let count = |is_wanted: fn(&LineOutcome) -> bool| grouped(self.count(is_wanted));
        Facts::new()
            .row("Lines with entries", grouped(self.entries.len() as u64))
            .row("Would be added", count(|outcome| matches!(outcome, LineOutcome::Added)))
            .row("Suppressed already", count(|outcome| matches!(outcome, LineOutcome::Exists(_))))
            .row("Repeated in the list", count(|outcome| matches!(outcome, LineOutcome::Repeated(_))))
            .row("Would be left out", count(|outcome| matches!(outcome, LineOutcome::Refused(_))))
    }

    /// The first lines with some outcomes.
    fn section(&self, title: &'static str, is_wanted: fn(&LineOutcome) -> bool) -> impl Renderable + use<> {
        let wanted = || self.entries.iter().zip(self.outcomes).filter(|(_, outcome)| is_wanted(outcome));
        let all = wanted().count();
        let mut table =
            Table::new(title, &["Line", "Address", "Reason in the list", "Result", "Remarks"]).numbers(&["Line"]);
        for (entry, outcome) in wanted().take(SHOWN_MAX) {
            let (badge, remark) = match outcome {
                LineOutcome::Added => (Badge::new("Added", Tone::Good), String::new()),
                LineOutcome::Exists(_) => (Badge::new("Already there", Tone::Neutral), String::new()),
                LineOutcome::Repeated(line) => (Badge::new("Repeated", Tone::Neutral), format!("As on line {line}")),
                LineOutcome::Refused(reason) => (Badge::new("Left out", Tone::Warning), reason.clone()),
            };
            let reason = match outcome {
                LineOutcome::Exists(reason) if !reason.is_empty() => Some(reason),
                _ => None,
            };
            let dash = |text: &str| if text.is_empty() { "–".to_owned() } else { text.chars().take(200).collect() };
            table.push(
                Row::new()
                    .cell(entry.line)
                    .cell(dash(entry.address.as_deref().unwrap_or_default()))
                    .cell(dash(&entry.reason))
                    .cell(badge)
                    .cell(maud! {
                        (remark)
                        @if let Some(reason) = reason { (reason_badge(reason)) }
                    }),
            );
        }
        maud! {
            @if all > 0 {
                section {
                    h2 { (title) }
                    (table)
                    @if all > SHOWN_MAX { p.soft.small { "The first " (SHOWN_MAX) " of " (grouped(all as u64)) " are shown." } }
                }
            }
        }
    }
}

pub(super) async fn import(context: &Context<'_>) -> Result<Outcome, Failure> {
    #[derive(Deserialize)]
    struct Started {
        import: StartedImport,
    }
    #[derive(Deserialize)]
    struct StartedImport {
        id: String,
    }
    let list = Bytes::from(context.form().get("csv").to_owned());
    let call = Call { body: CallBody::File("text/csv", list), ..Call::new("import_suppressions") };
    let started: Started = context.read(&call).await?;
    Ok(Outcome::done(format!("{LIST}/imports/{}", encode(&started.import.id)), "imported"))
}
