//! The list of credentials.

use super::{Credential, CredentialPages, domain_cell};
use crate::dashboard::kit::time::Time;
use crate::dashboard::prelude::*;

pub(super) async fn show(context: &Context<'_>, pages: &CredentialPages) -> Result<View, Failure> {
    let call = Call::new(pages.list).query("cursor", context.query().get("cursor"));
    let found: &List<Credential> = &context.read_list(pages.entries, &call).await?;
    let is_restricted = found.entries.iter().any(|one| one.domain_id.is_some());
    let domains = if is_restricted { context.domain_choices().await? } else { Vec::new() };
    let new = format!("{}/new", pages.path);
    let scope = if pages.is_api_key { "Scope" } else { "User name" };
    let table = Table::of(pages.title, &found.entries)
        .column("Name", |one| link(pages.page_of(&one.id), &one.name))
        .column("State", |one| one.state(context.now()))
        .column(scope, |one| if pages.is_api_key { one.scope_label() } else { one.username.as_str() })
        .column("Domain", |one| domain_cell(one.domain_id.as_deref(), &domains))
        .column(pages.secret, |one| maud! { code { (one.hint) } })
        .column("Last used", |one| {
            maud! {
                @match one.last_used_at.as_deref().and_then(Time::parse) {
                    Some(time) => (time),
                    None => span.soft { "Never" },
                }
            }
        })
        .column("Expires", |one| time_or_dash(one.expires_at.as_deref()));
    let may_create = context.allows(pages.create);
    let (title, label) = (format!("No {} yet", pages.noun), format!("Create the first {}", pages.noun));
    let empty = EmptyState { title: &title, text: pages.lead, action: may_create.then_some((&new, &label)) };
    let body = found.fragment(context, &table, empty);
    let page = Page::new(pages.title, body).same_as(call);
    if table.is_empty() {
        return Ok(page.into());
    }
    let actions = maud! { @if may_create { a.button.primary href=(new) { "Create " (pages.noun) } } };
    Ok(page.lead(pages.lead).actions(actions).into())
}
