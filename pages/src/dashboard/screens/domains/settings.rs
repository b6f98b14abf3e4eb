//! Tracking, TLS and receiving of a domain.

use super::{SendingDomain, domain_call, domain_page, domain_view, read_domain};
use crate::dashboard::prelude::*;

fn form<'a>(domain: Option<&SendingDomain>) -> Form<'a> {
    let flag = |read: fn(&SendingDomain) -> bool| domain.is_some_and(read).to_string();
    let modes = choices(&[
        ("opportunistic", "TLS if the receiver offers it"),
        ("enforced", "Only with TLS; without it, the email waits and then fails"),
    ]);
    let host = domain.and_then(|domain| domain.tracking_host.clone()).unwrap_or_default();
    let fields = vec![
        Field::new("open_tracking", "Count opens", Control::Checkbox).value(flag(|domain| domain.open_tracking)).help(
            "With an invisible image. Many email programs load it automatically, so the counts are not reliable.",
        ),
        Field::new("click_tracking", "Count clicks", Control::Checkbox)
            .value(flag(|domain| domain.click_tracking))
            .help("Links go through a tracking host first."),
        Field::text("tracking_host", "Your own tracking host")
            .value(host)
            .placeholder("links.example.com")
            .empty(Empty::Null)
            .help("Links then show your domain. Requires one more DNS record. Leave empty for this service's host."),
        Field::new("tls_mode", "Encryption in transit", Control::Radio(modes))
            .value(domain.map_or("opportunistic", |domain| &domain.tls_mode)),
        Field::new("inbound_enabled", "Receive mail for this domain", Control::Checkbox)
            .value(flag(|domain| domain.inbound_enabled))
            .help("Requires one more DNS record (MX). If the domain receives mail elsewhere, use a subdomain instead."),
        Field::new("inbound_addresses", "Addresses that receive", Control::Lines { rows: 3 })
            .value(domain.map(|domain| domain.inbound_addresses.join("\n")).unwrap_or_default())
            .placeholder("support@example.com")
            .empty(Empty::Kept)
            .help("One per line; support+*@example.com accepts sub-addresses. Leave empty for all addresses."),
    ];
    Form::new("settings", "Save", fields)
}

pub(super) async fn show(context: &Context<'_>) -> Result<View, Failure> {
    let domain = read_domain(context).await?;
    let form = form(Some(&domain));
    let content = maud_borrow! { div.card { (form.within(context)) } };
    Ok(domain_view(
        context,
        &domain,
        "/settings",
        content,
        domain_call("update_domain", context).json(form_values(&domain)),
    ))
}

/// The settings as the operation takes them.
fn form_values(domain: &SendingDomain) -> serde_json::Value {
    serde_json::json!({
        "open_tracking": domain.open_tracking,
        "click_tracking": domain.click_tracking,
        "tls_mode": domain.tls_mode,
    })
}

pub(super) async fn submit(context: &Context<'_>) -> Result<Outcome, Failure> {
    let body = form(None).read(context.form())?;
    let call = domain_call("update_domain", context).json(body);
    context.act(&call, format!("{}/settings", domain_page(context.id())), "changed").await
}
