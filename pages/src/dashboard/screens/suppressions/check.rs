//! Checks whether mail goes to addresses.

use super::add::EntryError;
use super::object::reason_badge;
use super::{LIST, suppression_path};
use crate::dashboard::prelude::*;

#[answer]
pub(super) struct CheckedAddress {
    pub email: String,
    pub suppressed: bool,
    pub reason: Option<String>,
    pub categories: Vec<String>,
    pub suppression_id: Option<String>,
    pub expires_at: Option<String>,
    #[serde(deserialize_with = "message")]
    pub error: Option<String>,
}

fn message<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    let error = Option::<EntryError>::deserialize(deserializer)?;
    Ok(error.map(|error| error.plain()))
}

fn form(entered: &str) -> Form<'static> {
    let emails = Field::new("emails", "Addresses", Control::Lines { rows: 5 })
        .required()
        .value(entered)
        .placeholder("grace@example.net")
        .help("One per line, up to 1,000.");
    Form::new("check", "Check", vec![emails])
}

fn page(context: &Context<'_>, entered: &str, results: Option<&Table>) -> Page {
    let form = form(entered);
    let body = maud_borrow! {
        div.card { (form.within(context)) }
        @if let Some(results) = results {
            section {
                h2 { "Results" }
                (results)
            }
        }
    };
    let example = Call::new("check_suppressions").json(json!({"emails": ["grace@example.net"]}));
    Page::new("Check addresses", body)
        .below(LIST, "Suppressions")
        .lead("Shows for each address whether mail is sent to it, and if not, why.")
        .same_as(example)
}

pub(super) async fn show(context: &Context<'_>) -> Result<View, Failure> {
    Ok(page(context, "", None).into())
}

pub(super) async fn check(context: &Context<'_>) -> Result<Outcome, Failure> {
    let body = form("").read(context.form())?;
    let data: Vec<CheckedAddress> = context.read_field("data", &Call::new("check_suppressions").json(body)).await?;
    let table: Table = Table::of("Results", &data)
        .column("Address", |address| {
            link_or_text(address.suppression_id.as_deref().map(suppression_path), &address.email)
        })
        .column("Mail to it", |address| match (&address.error, address.suppressed, address.categories.is_empty()) {
            (Some(_), ..) => Badge::new("No address", Tone::Warning),
            (None, true, _) => Badge::new("Not sent", Tone::Bad),
            (None, false, false) => Badge::new("Partly sent", Tone::Warning),
            (None, false, true) => Badge::new("Sent", Tone::Good),
        })
        .column("Reason", |address| {
            maud! {
                @if let Some(error) = &address.error {
                    (error)
                } @else if let Some(reason) = &address.reason {
                    (reason_badge(reason))
                } @else {
                    "–"
                }
            }
        })
        .column("Until", |address| {
            let is_permanent = address.expires_at.is_none() && address.suppressed;
            maud! { @if is_permanent { "Permanently" } @else { (time_or_dash(address.expires_at.as_deref())) } }
        })
        .column("Opted out of", |address| {
            let categories: Vec<_> = address.categories.iter().map(|word| sentence_case(word)).collect();
            if categories.is_empty() { "–".to_owned() } else { categories.join(", ") }
        })
        .into();
    Ok(Outcome::once(page(context, context.form().get("emails"), Some(&table))))
}
