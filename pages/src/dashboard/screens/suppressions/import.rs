//! Imports a list: first a dry run that says what would happen to each line, then the import.

use bytes::Bytes;

use super::LIST;
use super::object::reason_badge;
use crate::dashboard::backend::CallBody;
use crate::dashboard::prelude::*;

const EXAMPLE: &str = "email,reason\ngrace@example.net,bounce\n";
/// Lines of a result that the API lists.
const LISTED: u64 = 100;

/// The result that an import would have.
#[answer]
struct DryRun {
    counts: DryRunCounts,
    left_out: Vec<ListLine>,
    lines: Vec<ListLine>,
}

#[answer]
struct DryRunCounts {
    total: u64,
    created: u64,
    exists: u64,
    repeated: u64,
    invalid: u64,
    refused: u64,
}

/// A line of the list with its result.
#[answer]
struct ListLine {
    line: u64,
    email: Option<String>,
    reason: Option<String>,
    result: String,
    existing_reason: Option<String>,
    message: Option<String>,
}

fn form() -> Form<'static> {
    let fields = vec![
        Field::new("file", "CSV file", Control::File { accept: ".csv,.txt,text/csv,text/plain" }).ignored().help(
            "Accepts exports from Amazon SES, Postmark, SendGrid, Mailgun and this server, and any list with a \
                column of addresses.",
        ),
        Field::new("csv", "Or paste the list", Control::Code { rows: 6 })
            .placeholder("email,reason\ngrace@example.net,bounce")
            .help("One entry per line. If you also choose a file, the file is used."),
    ];
    Form::new("dry-run", "Show what would happen", fields)
}

pub(super) async fn show(context: &Context<'_>) -> Result<View, Failure> {
    let form = form();
    let lists_imports = context.allows("list_suppression_imports");
    let body = maud_borrow! { div.card { (form.within(context)) } };
    Ok(Page::new("Import suppressions", body)
        .below(LIST, "Suppressions")
        .lead("Nothing changes yet: the next page shows what would happen to each line.")
        .actions(maud! {
            @if lists_imports { a.button href={ (LIST) "/imports" } { "Earlier imports" } }
        })
        .same_as(Call::new("import_suppressions").json(json!({"csv": EXAMPLE})))
        .into())
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
    let list = Bytes::from(text.clone());
    let call = Call { body: CallBody::File("text/csv", list), ..Call::new("dry_run_suppression_import") };
    let report: DryRun = context.read_field("dry_run", &call).await.map_err(|mut failure| {
        // The list is in one of two fields.
        let message = if is_file { failure.fields.remove("csv") } else { None };
        failure.fields.extend(message.map(|message| ("file".to_owned(), message)));
        failure
    })?;
    let mut import = Form::new("import", "Import the list", vec![Field::hidden("csv", text)]);
    import.multipart = true;
    let body = maud_borrow! {
        section.card {
            (report.facts())
            @if report.counts.created == 0 {
                p { "The import would change nothing." }
            }
            (import.within(context))
            p { a href={ (LIST) "/import" } { "Choose another list" } }
        }
        (section("Lines that would be skipped", &report.left_out, report.counts.invalid))
        (section("Other lines", &report.lines, report.counts.total - report.counts.invalid.min(report.counts.total)))
    };
    let page = Page::new("What the import would do", body)
        .below(LIST, "Suppressions")
        .below(format!("{LIST}/import"), "Import")
        .lead("Nothing has been changed yet.")
        .same_as(Call::new("dry_run_suppression_import").json(json!({"csv": EXAMPLE})));
    Ok(Outcome::once(page))
}

impl DryRun {
    fn facts(&self) -> Facts {
        let counts = &self.counts;
        let exists = counts.exists.saturating_sub(counts.repeated);
        Facts::new()
            .row("Lines with entries", grouped(counts.total))
            .row("Would be added", grouped(counts.created))
            .row("Already suppressed", grouped(exists))
            .row("Repeated in the list", grouped(counts.repeated))
            .row("Would be skipped", grouped(counts.invalid))
            .optional("Your plan has no room for", (counts.refused > 0).then(|| grouped(counts.refused)))
    }
}

/// Lines with their results. `all` is the number of lines of which these are the first.
fn section(title: &'static str, lines: &[ListLine], all: u64) -> impl Renderable + use<> {
    let table: Table = Table::of(title, lines)
        .number("Line", |line| line.line)
        .column("Address", |line| line.email.clone().unwrap_or_else(|| "–".to_owned()))
        .column("Reason in the list", |line| match line.reason.as_deref() {
            Some(reason) => reason_badge(reason),
            None => Badge::new("–", Tone::Neutral),
        })
        .column("Result", |line| match line.result.as_str() {
            "created" => Badge::new("Added", Tone::Good),
            "exists" => Badge::new("Already present", Tone::Neutral),
            "repeated" => Badge::new("Repeated", Tone::Neutral),
            _ => Badge::new("Skipped", Tone::Warning),
        })
        .column("Remarks", |line| {
            let existing = line.existing_reason.as_deref().map(reason_badge);
            maud! {
                (line.message.as_deref().unwrap_or_default().replace('`', ""))
                @if let Some(existing) = &existing { (existing) }
            }
        })
        .into();
    maud! {
        @if all > 0 {
            section {
                h2 { (title) }
                (table)
                @if all > LISTED { p.soft.small { "The first " (LISTED) " of " (grouped(all)) " are shown." } }
            }
        }
    }
}

pub(super) async fn import(context: &Context<'_>) -> Result<Outcome, Failure> {
    #[derive(Deserialize)]
    struct StartedImport {
        id: String,
    }
    let list = Bytes::from(context.form().get("csv").to_owned());
    let call = Call { body: CallBody::File("text/csv", list), ..Call::new("import_suppressions") };
    let started: StartedImport = context.read_field("import", &call).await?;
    Ok(Outcome::done(format!("{LIST}/imports/{}", encode(&started.id)), "imported"))
}
