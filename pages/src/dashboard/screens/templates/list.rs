//! The list of templates, and the form for a new one.

use super::{TemplateDetail, path, status_badges};
use crate::dashboard::prelude::*;

/// The categories of emails with what they mean.
pub const CATEGORIES: [(&str, &str); 3] = [
    ("transactional", "Transactional: a response to what someone did"),
    ("product", "Product: news about a product that someone uses"),
    ("newsletter", "Newsletter: to those who asked for it"),
];

/// The list.
pub async fn show(context: &Context<'_>) -> Result<View, Failure> {
    let filters = [
        Filter::words("status", "Status", &["draft", "published", "archived"]),
        Filter::words("category", "Category", &["transactional", "product", "newsletter"]),
    ];
    let query = context.query();
    let call = Call::new("list_templates").filters(query, &["status", "category", "cursor"]);
    let found = &context.read_list::<TemplateDetail>("templates", &call).await?;
    let bar = FilterBar { context, filters: &filters };
    let table = Table::of("Templates", &found.entries)
        .column("Name", |template| link(path(&template.id), &template.name))
        .column("Alias", |one| or_dash(one.alias.as_ref().map(|alias| maud! { code { (address_cell(alias)) } })))
        .column("Category", |template| maud! { span.nowrap { (sentence_case(&template.category)) } })
        .column("Status", status_badges)
        .column("Version", |template| or_dash(template.published_version))
        .column("Changed", |template| time_or_dash(template.updated_at.as_deref()));
    let may_create = context.allows("create_template");
    let is_filtered = bar.is_active();
    let empty = if is_filtered {
        EmptyState { title: "No matching templates", text: "No templates have this status and category.", action: None }
    } else {
        EmptyState {
            title: "No templates yet",
            text: "A template has a subject and bodies with variables. Emails and automations refer to it, so you can \
                change a text in one place, without a deployment.",
            action: may_create.then_some(("/dashboard/templates/new", "Create the first one")),
        }
    };
    let body = maud! {
        @if is_filtered || !table.is_empty() { (bar) }
        (found.fragment(context, &table, empty.clone()))
    };
    let page = Page::new("Templates", body).lead("Email texts with variables, in published versions.");
    let page = if may_create {
        page.actions(maud! { a.button.primary href="/dashboard/templates/new" { "New template" } })
    } else {
        page
    };
    Ok(page.same_as(call).into())
}

/// The formats of the HTML body's source with what they mean.
const FORMATS: [(&str, &str); 2] =
    [("html", "HTML: sent as it is"), ("mjml", "MJML: sections and columns, compiled to HTML for all email programs")];

/// The source of a new template in MJML.
const MJML_START: &str = include_str!("start.mjml");

fn create_form() -> Form<'static> {
    let categories = choices(&CATEGORIES);
    let formats = choices(&FORMATS);
    let fields = vec![
        Field::text("name", "Name").required().placeholder("Welcome"),
        Field::text("alias", "Alias")
            .placeholder("welcome")
            .help("The name in API calls: “template”: “welcome”. You can change it; calls with the old one then fail."),
        Field::new("category", "Category", Control::Radio(categories))
            .value("transactional")
            .help("Product emails and newsletters always have an unsubscribe link."),
        Field::text("subject", "Subject").placeholder("Welcome, {{name}}"),
        Field::new("format", "Source of the HTML body", Control::Radio(formats))
            .value("html")
            .ignored()
            .help("You can convert MJML to HTML later."),
    ];
    Form::new("create", "Create and edit", fields)
}

/// The form for a new template.
pub async fn show_new(context: &Context<'_>) -> Result<View, Failure> {
    let form = create_form();
    let body = maud! { div.card { (form.within(context)) } };
    Ok(Page::new("New template", body)
        .below("/dashboard/templates", "Templates")
        .same_as(Call::new("create_template").json(serde_json::json!({"name": "Welcome", "alias": "welcome"})))
        .into())
}

/// Creates a template.
pub async fn create(context: &Context<'_>) -> Result<Outcome, Failure> {
    let mut body = create_form().read(context.form())?;
    if context.form().get("format") == "mjml" {
        body["mjml"] = MJML_START.into();
    }
    let created: TemplateDetail = context.read_field("template", &Call::new("create_template").json(body)).await?;
    Ok(Outcome::done(path(&created.id), "created"))
}
