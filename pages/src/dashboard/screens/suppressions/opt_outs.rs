//! Opt-outs: recipients who take no mail of a category, but do take other mail.

use super::object::source_text;
use super::{OPT_OUTS, tabs};
use crate::dashboard::kit::confirm::{confirm, confirm_field};
use crate::dashboard::prelude::*;

const CATEGORIES: &[&str] = &["product", "newsletter"];

#[answer]
struct CategoryOptOut {
    id: String,
    email: String,
    category_label: String,
    source: String,
    email_id: Option<String>,
    created_at: String,
}

pub(super) async fn show(context: &Context<'_>) -> Result<View, Failure> {
    let query = context.query();
    let call =
        Call::new("list_category_opt_outs").query("limit", "50").filters(query, &["email", "category", "cursor"]);
    let found = &context.read_filtered::<CategoryOptOut>("category_opt_outs", &call).await?;
    let filters =
        [Filter::text("email", "Address", "grace@example.net"), Filter::words("category", "Category", CATEGORIES)];
    let bar = FilterBar { context, filters: &filters };
    let empty = if bar.is_active() || !query.get("cursor").is_empty() {
        EmptyState {
            title: "No opt-outs match the filters",
            text: "Enter the complete address.",
            action: Some((OPT_OUTS, "Show all opt-outs")),
        }
    } else {
        EmptyState {
            title: "No opt-outs yet",
            text: "Recipients who unsubscribe from one category, for example the newsletter, are listed here. They still get other mail, such as receipts.",
            action: None,
        }
    };
    let table = table(context, &found.entries);
    let body = maud! {
        (tabs(context, OPT_OUTS))
        (bar.with_list(found, &table, empty.clone()))
    };
    let actions = maud! { @if context.allows("create_category_opt_out") { a.button.primary href={ (OPT_OUTS) "/new" } { "Add" } } };
    let page = Page::new("Opt-outs", body).actions(actions);
    Ok(page.lead("These recipients get no mail in one category, but all other mail.").same_as(call).live().into())
}

fn table(context: &Context<'_>, opt_outs: &[CategoryOptOut]) -> Table {
    let can_remove = context.allows("delete_category_opt_out");
    let columns: &[&str] = &["Address", "Category", "Added by", "Caused by", "Added", "Remove"];
    Table::new("Opt-outs", if can_remove { columns } else { &columns[..5] }).rows(opt_outs, |opt_out| {
        let mut row = Row::new()
            .cell(address_cell(&opt_out.email))
            .cell(&opt_out.category_label)
            .cell(source_text(&opt_out.source))
            .cell(maud! {
                @match &opt_out.email_id {
                    Some(id) => { a href={ "/dashboard/emails/" (encode(id)) } { "An email" } }
                    None => { span.dash { "–" } }
                }
            })
            .cell(time_or_dash(Some(&opt_out.created_at)));
        if can_remove {
            // The address leads to the entry: there is no operation that reads one opt-out.
            let path = format!("{OPT_OUTS}/{}/delete?email={}", encode(&opt_out.id), encode(&opt_out.email));
            let label = format!("Remove the opt-out of {} from {}", opt_out.email, opt_out.category_label);
            row = row.cell(maud! { a href=(path) aria-label=(label) { "Remove" } });
        }
        row
    })
}

fn form() -> Form<'static> {
    let categories = [("newsletter", "Newsletter"), ("product", "Product updates")];
    let categories = choices(&categories);
    let fields = vec![
        Field::new("email", "Address", Control::Email).required().placeholder("grace@example.net"),
        Field::new("category", "Category", Control::Select(categories)),
    ];
    Form::new("add", "Add", fields)
}

pub(super) async fn show_new(context: &Context<'_>) -> Result<View, Failure> {
    let form = form();
    let body = maud_borrow! { div.card { (form.within(context)) } };
    let example = json!({"email": "grace@example.net", "category": "newsletter"});
    Ok(Page::new("Add an opt-out", body)
        .below(OPT_OUTS, "Opt-outs")
        .lead("The recipient gets no more mail in this category, but all other mail.")
        .same_as(Call::new("create_category_opt_out").json(example))
        .into())
}

pub(super) async fn add(context: &Context<'_>) -> Result<Outcome, Failure> {
    let body = form().read(context.form())?;
    context.act(&Call::new("create_category_opt_out").json(body), OPT_OUTS, "added").await
}

/// The opt-out of the page's path, among those of the address in its query.
async fn read(context: &Context<'_>) -> Result<CategoryOptOut, Failure> {
    let call = Call::new("list_category_opt_outs").query("limit", "100").query("email", context.query().get("email"));
    let found: List<CategoryOptOut> = context.read_list("category_opt_outs", &call).await?;
    let found = found.entries.into_iter().find(|opt_out| opt_out.id == context.id());
    found.ok_or_else(|| Failure { message: "This opt-out no longer exists".into(), ..Failure::not_found() })
}

pub(super) async fn show_remove(context: &Context<'_>) -> Result<View, Failure> {
    let opt_out = read(context).await?;
    let form = Form::new("remove", "Remove the opt-out", vec![confirm_field(&opt_out.email)]).danger();
    let body = maud_borrow! {
        div.card {
            p { (opt_out.email) " will get mail in the category “" (opt_out.category_label) "” again. Remove the \
                opt-out only if the recipient has asked for it." }
            (form.within(context))
        }
    };
    let call = Call::new("delete_category_opt_out").id(&opt_out.id);
    Ok(Page::new("Remove the opt-out", body).below(OPT_OUTS, "Opt-outs").same_as(call).into())
}

pub(super) async fn remove(context: &Context<'_>) -> Result<Outcome, Failure> {
    let opt_out = read(context).await?;
    confirm(context, &opt_out.email)?;
    context.act(&Call::new("delete_category_opt_out").id(&opt_out.id), OPT_OUTS, "deleted").await
}
