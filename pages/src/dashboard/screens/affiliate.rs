//! The affiliate program: set-up and settings, partners, campaigns, referrals, commissions and payouts.

pub mod audit;
pub mod backfill;
pub mod campaign_fields;
pub mod campaigns;
pub mod commissions;
pub mod ledger;
pub mod overview;
pub mod partner;
pub mod partner_import;
pub mod partner_pages;
pub mod partner_totals;
pub mod partners;
pub mod payout_results;
pub mod payout_runs;
pub mod payouts;
pub mod processor;
pub mod program;
pub mod referrals;
pub mod reviews;
pub mod run_approval;
pub mod run_page;
#[cfg(test)]
mod screen_tests;
pub mod settings;
pub mod setup;
pub mod terms;

use std::collections::{BTreeMap, BTreeSet};

use futures_util::future::join_all;

use crate::dashboard::prelude::*;

/// The path of the overview; the other pages are below it.
pub const PATH: &str = "/dashboard/affiliate";
/// The largest CSV file of an import, in bytes.
const CSV_BYTES_MAX: usize = 4 << 20;

/// A page that says to set up the program first. Pages show it if their first read finds no program.
pub fn set_up_first(title: &str) -> View {
    let empty = EmptyState {
        title: "The affiliate program is not set up",
        text: "Turn on the program, connect your payment processor and set a commission. Partners can then join, and \
            what they earn is listed here.",
        action: Some((PATH, "Set up the program")),
    };
    Page::new(title, empty).into()
}

/// Names of partners by id, for lists whose rows have only ids.
#[derive(Debug, Clone, Default)]
pub struct PartnerNames(BTreeMap<String, String>);

impl PartnerNames {
    /// Reads the partners of some rows. A partner that cannot be read is shown by id.
    pub async fn load(context: &Context<'_>, ids: impl Iterator<Item = &str>) -> Self {
        let ids: BTreeSet<&str> = ids.collect();
        let reads = ids.into_iter().map(|id| async move {
            let found: Result<partners::OnePartner, Failure> = context.read(&Call::new("get_affiliate").id(id)).await;
            found.ok().map(|found| (id.to_owned(), found.affiliate.name()))
        });
        Self(join_all(reads).await.into_iter().flatten().collect())
    }

    /// A partner's name that leads to its page.
    pub fn link(&self, id: &str) -> impl Renderable {
        maud! { span.address { a href={ (PATH) "/partners/" (encode(id)) } { (self.name(id)) } } }
    }

    pub fn name<'n>(&'n self, id: &'n str) -> &'n str {
        self.0.get(id).map_or(id, String::as_str)
    }
}

/// The name of a payout method.
pub fn method_name(method: &str) -> String {
    match method {
        "paypal" => "PayPal".into(),
        "bank" => "Bank transfer".into(),
        "stripe" => "Stripe transfer".into(),
        other => sentence_case(other),
    }
}

/// The payout methods with their names.
pub fn method_choices() -> Vec<(String, String)> {
    ["paypal", "wise", "bank", "other", "stripe"].map(|word| (word.to_owned(), method_name(word))).into()
}

/// The start of a day for a filter by time: the control gives a date.
pub fn start_of_day(date: &str) -> String {
    if date.len() == 10 { format!("{date}T00:00:00Z") } else { date.to_owned() }
}

/// The fields of a CSV upload: a file, or pasted text.
pub fn csv_fields(pasted_help: &'static str) -> Vec<Field> {
    vec![
        Field::new("file", "CSV file", Control::File { accept: ".csv,text/csv" }),
        Field::new("csv", "Or paste the rows", Control::Code { rows: 6 }).help(pasted_help).ignored(),
    ]
}

/// The uploaded file, or else the pasted text.
///
/// # Errors
/// There is neither, it is too large, or it is not UTF-8.
pub fn read_csv(context: &Context<'_>) -> Result<String, Failure> {
    let file = context.request.files.iter().find(|file| file.field == "file" && !file.content.is_empty());
    let text = match file {
        Some(file) if file.content.len() > CSV_BYTES_MAX => {
            return Err(Failure::field("file", "The file is larger than 4 MiB; split it"));
        }
        Some(file) => match std::str::from_utf8(&file.content) {
            Ok(text) => text.to_owned(),
            Err(_) => return Err(Failure::field("file", "The file is not UTF-8 text; save it as CSV in UTF-8")),
        },
        None => context.form().get("csv").to_owned(),
    };
    let text = text.trim_start_matches('\u{feff}').to_owned();
    if text.trim().is_empty() { Err(Failure::field("csv", "Choose a file, or paste its rows")) } else { Ok(text) }
}

/// Shows an error of an uploaded file beside the field for its rows.
pub fn at_csv(mut failure: Failure) -> Failure {
    if failure.status == 400 {
        let message = failure.fields.remove("body").unwrap_or_else(|| failure.message.clone());
        failure.message = format!("The rows cannot be read: {message}");
        failure.fields.insert("csv".into(), message);
    }
    failure
}

/// Shows an error without a field of the form as the message of the form.
pub fn without_field(mut failure: Failure, name: &str) -> Failure {
    if let Some(message) = failure.fields.remove(name) {
        failure.message = sentence(&message);
    }
    failure
}

/// Shows a conflict beside a field.
pub fn conflict_at(mut failure: Failure, name: &str) -> Failure {
    if failure.status == 409 && failure.fields.is_empty() {
        failure.fields.insert(name.to_owned(), failure.message.clone());
    }
    failure
}

/// A number of days: `1 day`, `30 days`.
pub fn days_text(days: i64) -> String {
    if days == 1 { "1 day".into() } else { format!("{days} days") }
}

/// The trimmed value of a field, unless it is empty.
pub fn filled(fields: &Fields, name: &str) -> Option<String> {
    fields.find(name).map(str::trim).filter(|value| !value.is_empty()).map(str::to_owned)
}

/// A message of the API as a sentence.
pub fn sentence(message: &str) -> String {
    let mut chars = message.chars();
    let first = chars.next().map(|first| first.to_uppercase().to_string()).unwrap_or_default();
    let end = if message.ends_with(['.', '!', '?']) { "" } else { "." };
    format!("{first}{}{end}", chars.as_str().replace('`', ""))
}

/// A JSON object from pairs.
pub fn object<const N: usize>(pairs: [(&str, Value); N]) -> Value {
    Value::Object(pairs.into_iter().map(|(name, value)| (name.to_owned(), value)).collect())
}
