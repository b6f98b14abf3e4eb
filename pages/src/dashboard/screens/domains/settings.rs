//! Tracking, TLS and receiving of a domain.

use super::{SendingDomain, domain_call, domain_page, domain_view, read_domain};
use crate::dashboard::form::Empty;
use crate::dashboard::prelude::*;

fn form<'a>(domain: Option<&SendingDomain>) -> Form<'a> {
    let flag = |read: fn(&SendingDomain) -> bool| domain.is_some_and(read).to_string();
    let modes = choices(&[
        ("opportunistic", "TLS if the receiver offers it"),
        ("enforced", "Only with TLS; otherwise the email waits and then fails"),
    ]);
    let host = domain.and_then(|domain| domain.tracking_host.clone()).unwrap_or_default();
    let fields = vec![
        Field::new("open_tracking", "Count opens", Control::Checkbox)
            .value(flag(|domain| domain.open_tracking))
            .help("By an invisible picture. Many mail programs load it by themselves, so it tells little."),
        Field::new("click_tracking", "Count clicks", Control::Checkbox)
            .value(flag(|domain| domain.click_tracking))
            .help("Links lead through a tracking host first."),
        Field::text("tracking_host", "Tracking host of your own")
            .value(host)
            .placeholder("links.example.com")
            .empty(Empty::Null)
            .help("Links then show your domain. You publish one more record. Empty: the host of this service."),
        Field::new("tls_mode", "Encryption on the way", Control::Radio(modes))
            .value(domain.map_or("opportunistic", |domain| &domain.tls_mode)),
        Field::new("inbound_enabled", "Receive mail for this domain", Control::Checkbox)
            .value(flag(|domain| domain.inbound_enabled))
            .help(
                "You publish one more record (MX). Do not use a domain that receives mail elsewhere: take a subdomain.",
            ),
        Field::new("inbound_addresses", "Addresses that receive", Control::Lines { rows: 3 })
            .value(domain.map(|domain| domain.inbound_addresses.join("\n")).unwrap_or_default())
            .placeholder("support@example.com")
            .empty(Empty::Kept)
            .help("One a line; support+*@example.com takes sub-addresses. Empty: all addresses."),
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
    context
        .act(
            &domain_call("update_domain", context).json(body),
            format!("{}/settings", domain_page(context.id())),
            "changed",
        )
        .await
}
