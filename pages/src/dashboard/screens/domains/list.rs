//! The list of domains.

use super::{PATH, SendingDomain, TITLE};
use crate::dashboard::prelude::*;

/// Settings that differ from the usual ones, in words.
fn extras(domain: &SendingDomain) -> String {
    let extras = [
        (domain.open_tracking, "opens"),
        (domain.click_tracking, "clicks"),
        (domain.inbound_enabled, "receives mail"),
        (domain.tls_mode == "enforced", "only with TLS"),
    ];
    extras.iter().filter(|(is_on, _)| *is_on).map(|(_, name)| *name).collect::<Vec<_>>().join(", ")
}

pub(super) async fn show(context: &Context<'_>) -> Result<View, Failure> {
    let filters =
        [Filter::text("q", "Name", "example.com"), Filter::words("status", "State", &["verified", "unverified"])];
    let query = context.query();
    let call = Call::new("list_domains").filters(query, &["q", "status", "cursor"]);
    let found = &context.read_list::<SendingDomain>("domains", &call).await?;
    let bar = FilterBar { context, filters: &filters };
    let table = Table::of(TITLE, &found.entries)
        .column("Domain", |domain| link(domain.page(), &domain.name))
        .column("State", |domain| domain.badge())
        .column("Wrong records", |domain| {
            let wrong: Vec<_> = domain.wrong_records().map(super::DomainRecord::purpose_title).collect();
            or_dash((!wrong.is_empty()).then(|| wrong.join(", ")))
        })
        .column("Settings", |domain| or_dash(Some(extras(domain)).filter(|extras| !extras.is_empty())))
        .column("Checked", |domain| time_or_dash(domain.last_checked_at.as_deref()))
        .column("Added", |domain| time_or_dash(Some(&domain.created_at)));
    let new = format!("{PATH}/new");
    let may_add = context.allows("create_domain");
    let lead =
        "You send email from your own domain. Its DNS records prove that it is yours and that we may send for it.";
    let empty = if bar.is_active() {
        EmptyState {
            title: "No matching domains",
            text: "No domains match the filters.",
            action: Some((PATH, "Show all")),
        }
    } else {
        EmptyState { title: "No domains yet", text: lead, action: may_add.then_some((&new, "Add the first one")) }
    };
    let body = bar.with_list(found, &table, empty);
    let actions = maud_borrow! {
        @if context.allows("list_domain_claims") { a.button href={ (PATH) "/claims" } { "Claims" } }
        @if context.allows("list_dns_credentials") { a.button href={ (PATH) "/dns-credentials" } { "DNS access" } }
        @if may_add && !table.is_empty() { a.button.primary href=(new) { "Add a domain" } }
    };
    let page = Page::new(TITLE, body).actions(actions).same_as(call).live();
    Ok(if table.is_empty() { page } else { page.lead(lead) }.into())
}
