//! Adds suppressions by hand.

use super::{LIST, suppression_path};
use crate::dashboard::prelude::*;

#[answer]
struct AddReplyEntry {
    id: Option<String>,
    status: String,
    warnings: Vec<String>,
    error: Option<EntryError>,
}

#[answer]
pub(super) struct EntryError {
    message: String,
}

impl EntryError {
    /// The message without the name of the field, which the page shows anyway.
    pub(super) fn plain(&self) -> String {
        let text = self.message.replace('`', "");
        text.strip_prefix("email: ").map_or_else(|| text.clone(), str::to_owned)
    }
}

fn form() -> Form<'static> {
    let fields = vec![
        Field::new("emails", "Addresses", Control::Lines { rows: 5 })
            .required()
            .placeholder("grace@example.net")
            .help("One per line, up to 1,000. “@example.net” suppresses the whole domain."),
        Field::text("note", "Note").help("Why, for you and your team."),
        Field::new("expires_at", "Until (UTC)", Control::DateTime).help("Leave empty for no expiry."),
    ];
    Form::new("add", "Add", fields)
}

pub(super) async fn show(context: &Context<'_>) -> Result<View, Failure> {
    let form = form();
    let body = maud_borrow! { div.card { (form.within(context)) } };
    let example = json!({"email": "grace@example.net", "note": "Requested by phone"});
    let page = Page::new("Add suppressions", body).below(LIST, "Suppressions");
    Ok(page
        .lead("Nothing more is sent to these addresses.")
        .same_as(Call::new("create_suppression").json(example))
        .into())
}

pub(super) async fn add(context: &Context<'_>) -> Result<Outcome, Failure> {
    let body = form().read(context.form())?;
    let emails: Vec<String> = match &body["emails"] {
        Value::Array(entries) => entries.iter().filter_map(Value::as_str).map(str::to_owned).collect(),
        _ => return Err(Failure::field("emails", "Enter at least one address")),
    };
    let added: Vec<AddReplyEntry> = context.read_field("data", &Call::new("create_suppression").json(body)).await?;
    let is_clean = added.iter().all(|entry| entry.error.is_none() && entry.warnings.is_empty());
    if is_clean {
        return Ok(Outcome::done(LIST, "added"));
    }
    let table = Table::new("Result for each address", &["Address", "Result", "Remarks"]).rows(
        emails.iter().zip(&added),
        |(email, entry)| {
            let badge = match entry.status.as_str() {
                "created" => Badge::new("Added", Tone::Good),
                "exists" => Badge::new("Already suppressed", Tone::Neutral),
                _ => Badge::new("Not added", Tone::Bad),
            };
            let remark = match &entry.error {
                Some(error) => error.plain(),
                None => entry.warnings.join("; ").replace('`', ""),
            };
            let row = match &entry.id {
                Some(id) => Row::new().link(suppression_path(id), email),
                None => Row::new().cell(email),
            };
            row.cell(badge).cell(remark)
        },
    );
    let body = maud! {
        (table)
        div.buttons { a.button href=(LIST) { "Go to the list" } a.button href={ (LIST) "/new" } { "Add more" } }
    };
    Ok(Outcome::once(Page::new("Some addresses need attention", body).below(LIST, "Suppressions")))
}
