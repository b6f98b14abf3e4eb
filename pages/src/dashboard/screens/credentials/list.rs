//! The list of credentials.

use super::{CredentialList, CredentialPages, domain_cell, domains};
use crate::dashboard::kit::time::Time;
use crate::dashboard::prelude::*;

pub(super) async fn show(context: &Context<'_>, pages: &CredentialPages) -> Result<View, Failure> {
    let call = Call::new(pages.list).query("cursor", context.query().get("cursor"));
    let found: CredentialList = context.read(&call).await?;
    let is_restricted = found.credentials.iter().any(|one| one.domain_id.is_some());
    let domains = if is_restricted { domains(context).await? } else { Vec::new() };
    let new = format!("{}/new", pages.path);
    let scope = if pages.is_api_key { "Scope" } else { "User name" };
    let columns = ["Name", "State", scope, "Domain", pages.secret, "Last used", "Expires"];
    let mut table = Table::new(pages.title, &columns);
    for one in &found.credentials {
        let scope = if pages.is_api_key { one.scope_label() } else { one.username.as_str() };
        table.push(
            Row::new()
                .link(pages.page_of(&one.id), &one.name)
                .cell(one.state(context.now()))
                .cell(scope)
                .cell(domain_cell(one.domain_id.as_deref(), &domains))
                .cell(maud! { code { (one.hint) } })
                .cell(maud! {
                    @match one.last_used_at.as_deref().and_then(Time::parse) {
                        Some(time) => (time),
                        None => span.soft { "Never" },
                    }
                })
                .cell(time_or_dash(one.expires_at.as_deref())),
        );
    }
    let may_create = context.allows(pages.create);
    let (title, label) = (format!("No {} yet", pages.noun), format!("Create the first {}", pages.noun));
    let empty = EmptyState { title: &title, text: pages.lead, action: may_create.then_some((&new, &label)) };
    let body = maud_borrow! {
        div data-fragment="list" {
            @if table.is_empty() { (empty) } @else { (table) (Pager { context, next_cursor: found.next_cursor.as_deref() }) }
        }
    };
    let page = Page::new(pages.title, body).same_as(call);
    if table.is_empty() {
        return Ok(page.into());
    }
    let actions = maud! { @if may_create { a.button.primary href=(new) { "Create " (pages.noun) } } };
    Ok(page.lead(pages.lead).actions(actions).into())
}
