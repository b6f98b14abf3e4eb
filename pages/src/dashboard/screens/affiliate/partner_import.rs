//! Import of partners from CSV: first a dry run with the table of what would happen, then the import.

use super::partners::{PARTNERS_PATH, partner_path};
use super::{at_csv, csv_fields, read_csv};
use crate::dashboard::backend::CallBody;
use crate::dashboard::prelude::*;

/// Rows of the report that are shown.
const SHOWN_MAX: usize = 500;

pub const PAGES: &[PageRow] = page_rows! {
    "/affiliate/partners/import" => show, reads ["import_affiliates"], forms {
        "check" => check, calls "import_affiliates";
        "import" => import, calls "import_affiliates";
    };
};

#[answer]
struct ImportReport {
    imported: u64,
    partners: Vec<ImportedPartner>,
    skipped: Vec<SkippedRow>,
    ignored_columns: Vec<String>,
}

#[derive(Debug, Clone, Deserialize)]
struct ImportedPartner {
    row: u64,
    email: String,
    token: String,
    id: Option<String>,
}

#[derive(Debug, Clone, Deserialize)]
struct SkippedRow {
    row: u64,
    email: String,
    reason: String,
}

fn invites_field() -> Field {
    Field::new("send_invites", "Notify the new partners by email", Control::Checkbox).ignored()
}

fn check_form() -> Form<'static> {
    let mut fields = csv_fields("The first line must name the columns. Only email is required.");
    fields.push(invites_field());
    Form::new("check", "Check the rows", fields)
}

fn import_form(csv: &str, invites: bool) -> Form<'static> {
    let invites = Field::hidden("send_invites", if invites { "true" } else { "" }).ignored();
    Form::new("import", "Import these partners", vec![Field::hidden("csv", csv).ignored(), invites])
}

async fn show(context: &Context<'_>) -> Result<View, Failure> {
    let form = check_form();
    let body = maud! {
        section.card {
            p { "The rows are checked first, and you see what would happen. Nothing is added before you confirm it." }
            (form.within(context))
        }
        section.card {
            h2 { "Columns" }
            p { code { "email" } " is required. Optional: " code { "first_name" } ", " code { "last_name" } ", " code { "company" } ", "
                code { "website" } ", " code { "country" } ", " code { "campaign" } ", " code { "token" } ", " code { "paypal_email" } ", "
                code { "tags" } ", " code { "status" } ", " code { "notes" } ", " code { "parent_email" } "." }
            p { "Column names of other programs work too, such as " code { "name" } " or " code { "referral code" } ". A file has at most 5 000 rows. If you import a file again, only the missing partners are \
                added." }
        }
    };
    Ok(Page::new("Import partners", body)
        .below(PARTNERS_PATH, "Partners")
        .same_as(Call::new("import_affiliates"))
        .into())
}

fn import_call(csv: String, dry_run: bool, invites: bool) -> Call {
    let call = Call::new("import_affiliates")
        .query("dry_run", if dry_run { "true" } else { "" })
        .query("send_invites", if invites { "true" } else { "" });
    Call { body: CallBody::File("text/csv", csv.into()), ..call }
}

async fn check(context: &Context<'_>) -> Result<Outcome, Failure> {
    let csv = read_csv(context)?;
    let invites = context.form().get("send_invites") == "true";
    let report: ImportReport = context.read(&import_call(csv.clone(), true, invites)).await.map_err(at_csv)?;
    let form = import_form(&csv, invites);
    let email = if invites { "Each of them gets an email." } else { "No email is sent to them." };
    let body = maud! {
        @if report.imported == 0 {
            (Notice { tone: Tone::Warning, text: "No partner would be added." })
        } @else {
            section.card {
                p { strong { (report.imported) } @if report.imported == 1 { " partner would be added. " } @else { " partners would be added. " } (email) }
                (form.within(context))
            }
        }
        (report_view(&report, "Partners that would be added"))
        p { a.button href={ (PARTNERS_PATH) "/import" } { "Choose other rows" } }
    };
    Ok(Outcome::once(report_page("Check the import", body)))
}

async fn import(context: &Context<'_>) -> Result<Outcome, Failure> {
    let csv = read_csv(context)?;
    let invites = context.form().get("send_invites") == "true";
    let report: ImportReport = context.read(&import_call(csv, false, invites)).await.map_err(at_csv)?;
    let text = match report.imported {
        1 => "1 partner was added.".to_owned(),
        count => format!("{count} partners were added."),
    };
    let body = maud! {
        (Notice { tone: Tone::Good, text: &text })
        (report_view(&report, "Added partners"))
        p { a.button href=(PARTNERS_PATH) { "Go to the partners" } }
    };
    Ok(Outcome::once(report_page("Import partners", body)))
}

fn report_page(title: &str, body: impl Renderable) -> Page {
    Page::new(title, body).below(PARTNERS_PATH, "Partners").same_as(Call::new("import_affiliates"))
}

/// Why a row is skipped.
fn reason_text(reason: &str) -> String {
    match reason {
        "invalid_email" => "The email address is not valid".into(),
        "duplicate_in_file" => "An earlier row has the same email address".into(),
        "already_partner" => "This person is already a partner".into(),
        other => match other.strip_prefix("invalid_") {
            Some(column) => format!("The column {column} is not valid"),
            None => sentence_case(other),
        },
    }
}

fn report_view(report: &ImportReport, title: &'static str) -> impl Renderable {
    let added = Table::of(title, report.partners.iter().take(SHOWN_MAX))
        .column("Row", |partner| partner.row)
        .column("Email address", |partner| link_or_text(partner.id.as_deref().map(partner_path), &partner.email))
        .column("Link token", |partner| maud! { code { (partner.token) } });
    let skipped = Table::of("Skipped rows", report.skipped.iter().take(SHOWN_MAX))
        .column("Row", |row| row.row)
        .column("Email address", |row| &row.email)
        .column("Reason", |row| reason_text(&row.reason));
    maud! {
        @if !report.ignored_columns.is_empty() {
            p { "Ignored columns: " @for column in &report.ignored_columns { code { (column) } " " } }
        }
        @if !skipped.is_empty() {
            section { h2 { (report.skipped.len()) " skipped" } (skipped) }
        }
        @if !added.is_empty() {
            section {
                h2 { (title) }
                (added)
                @if report.partners.len() > SHOWN_MAX { p.soft.small { "The first " (SHOWN_MAX) " of " (report.partners.len()) } }
            }
        }
    }
}
