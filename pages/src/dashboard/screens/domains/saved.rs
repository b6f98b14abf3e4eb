//! Saved access to DNS providers.

use mcp::operation_table::DnsProvider;

use super::publish::{chosen_provider, provider_choice};
use super::{PATH, TITLE, providers};
use crate::dashboard::kit::confirm::{confirm, confirm_field};
use crate::dashboard::prelude::*;

const SAVED: &str = "/dashboard/domains/dns-credentials";
const NEW: &str = "/dashboard/domains/dns-credentials/new";
const SAVED_TITLE: &str = "DNS access";
const LEAD: &str =
    "Saved DNS provider tokens can publish the records of any domain. They are stored encrypted and never shown.";

#[derive(Debug, Deserialize)]
struct SavedAccess {
    provider: String,
    saved_at: String,
}

/// The providers with saved access; none if the role may not list them.
pub(super) async fn saved_providers(context: &Context<'_>) -> Result<Vec<String>, Failure> {
    let call = Call::new("list_dns_credentials");
    let dns_credentials: Vec<SavedAccess> = context.read_allowed("dns_credentials", &call).await?;
    Ok(dns_credentials.into_iter().map(|saved| saved.provider).collect())
}

pub(super) async fn show(context: &Context<'_>) -> Result<View, Failure> {
    let call = Call::new("list_dns_credentials");
    let dns_credentials: Vec<SavedAccess> = context.read_field("dns_credentials", &call).await?;
    let (may_save, may_delete) = (context.allows("save_dns_credentials"), context.allows("delete_dns_credentials"));
    let table = Table::of(SAVED_TITLE, &dns_credentials)
        .column("Provider", |saved| providers::title(&saved.provider))
        .column("Saved", |saved| time_or_dash(Some(&saved.saved_at)))
        .column("Change", |saved| {
            let id = encode(&saved.provider);
            maud! {
                span.buttons {
                    @if may_save { a href={ (NEW) "?provider=" (id) } { "Replace" } }
                    @if may_delete { a href={ (SAVED) "/" (id) "/delete" } { "Delete" } }
                }
            }
        });
    let empty =
        EmptyState { title: "No saved DNS access", text: LEAD, action: may_save.then_some((NEW, "Save a token")) };
    let body = maud_borrow! { @if table.is_empty() { (empty) } @else { (table) } };
    let page = Page::new(SAVED_TITLE, body).below(PATH, TITLE).same_as(call);
    if table.is_empty() {
        return Ok(page.into());
    }
    let actions = maud! { @if may_save { a.button.primary href=(NEW) { "Save a token" } } };
    Ok(page.lead(LEAD).actions(actions).into())
}

fn save_form<'a>(provider: &'static DnsProvider) -> Form<'a> {
    let mut fields = vec![Field::hidden("provider", &provider.name).ignored()];
    fields.extend(providers::fields(provider));
    Form::new("save", "Save", fields)
}

pub(super) async fn show_save(context: &Context<'_>) -> Result<View, Failure> {
    let chosen = chosen_provider(context, "save");
    let form = providers::find(chosen).map(save_form);
    let body = maud_borrow! {
        div.card {
            (provider_choice(NEW, chosen))
            @if let Some(form) = &form { (form.within(context)) }
        }
    };
    let provider = if chosen.is_empty() { "cloudflare" } else { chosen };
    let call = Call::new("save_dns_credentials")
        .parameter("provider", provider)
        .json(json!({"credentials": {"api_token": "…"}}));
    let page = Page::new("Save DNS access", body).below(PATH, TITLE).below(SAVED, SAVED_TITLE).lead(LEAD);
    Ok(page.same_as(call).into())
}

pub(super) async fn save(context: &Context<'_>) -> Result<Outcome, Failure> {
    let provider = providers::find(context.form().get("provider"))
        .ok_or_else(|| Failure::field("provider", "Choose a provider"))?;
    let body = save_form(provider).read(context.form())?;
    context
        .act(&Call::new("save_dns_credentials").parameter("provider", &provider.name).json(body), SAVED, "changed")
        .await
}

pub(super) async fn show_delete(context: &Context<'_>) -> Result<View, Failure> {
    let provider = context.parameter("provider");
    if !saved_providers(context).await?.iter().any(|saved| saved == provider) {
        return Err(Failure::not_found());
    }
    let title = providers::title(provider);
    let form = Form::new("delete", "Delete permanently", vec![confirm_field(title)]).danger();
    let body = maud_borrow! {
        div.card {
            p { "Published records stay. New records cannot be published at " (title) " until you save access again. \
                Also revoke the token at the provider." }
            (form.within(context))
        }
    };
    let call = Call::new("delete_dns_credentials").parameter("provider", provider);
    let page = Page::new(format!("Delete the access to {title}"), body).below(PATH, TITLE).below(SAVED, SAVED_TITLE);
    Ok(page.same_as(call).into())
}

pub(super) async fn delete(context: &Context<'_>) -> Result<Outcome, Failure> {
    let provider = context.parameter("provider");
    confirm(context, providers::title(provider))?;
    context.act(&Call::new("delete_dns_credentials").parameter("provider", provider), SAVED, "deleted").await
}
