//! The keys with which a domain's email is signed, and their rotation.

use super::records::RecordCard;
use super::{domain_call, domain_page, domain_view, read_domain};
use crate::dashboard::prelude::*;

pub(super) async fn show(context: &Context<'_>) -> Result<View, Failure> {
    let domain = read_domain(context).await?;
    let dkim = &domain.dkim;
    let ready =
        if domain.dkim_ready { Badge::new("Ready", Tone::Good) } else { Badge::new("Not ready", Tone::Warning) };
    let facts = Facts::new()
        .row("Signing", ready)
        .row("Selector", maud_borrow! { code { (dkim.selector) } })
        .row("Keys", maud_borrow! { "RSA with " (dkim.key_bits) " bits, and Ed25519" })
        .optional("New selector", dkim.pending_selector.as_ref().map(|selector| maud! { code { (selector) } }))
        .optional("Former selector", dkim.former_selector.as_ref().map(|selector| maud! { code { (selector) } }))
        .optional("Keep its record until", dkim.former_until.as_deref().map(|time| time_or_dash(Some(time))));
    let rotate = Form::new("rotate", "Create new keys", Vec::new());
    let cancel = Form::new("cancel", "Cancel the rotation", Vec::new()).secondary();
    let is_new = |name: &str| dkim.pending_selector.as_deref().is_some_and(|selector| name.starts_with(selector));
    let new_records: Vec<_> = domain.records.iter().filter(|one| one.purpose == "dkim" && is_new(&one.name)).collect();
    let is_rotating = dkim.pending_selector.is_some();
    let content = maud_borrow! {
        div.card { (facts) }
        @if is_rotating {
            (Notice { tone: Tone::Active, text: "New keys have been created. Publish their record: once it is found, \
                email is signed with them. Until then, the current keys are used." })
            @if !new_records.is_empty() {
                section { h2 { "Record of the new keys" } @for record in &new_records { (RecordCard { record, domain: &domain.name }) } }
            }
        }
        section {
            h2 { "Rotation" }
            div.card {
                @if is_rotating {
                    p { "If you cancel, the new keys are deleted and the current ones stay in use." }
                    @if context.allows("cancel_domain_dkim_rotation") { (cancel.within(context)) }
                } @else {
                    p { "Replace the keys once or twice a year, or if a key may have leaked. Nothing changes until \
                        you have published the new record. Keep the old record until all email signed with the old \
                        key has arrived." }
                    @if context.allows("rotate_domain_dkim") { (rotate.within(context)) }
                }
            }
        }
    };
    Ok(domain_view(context, &domain, "/keys", content, domain_call("rotate_domain_dkim", context)))
}

pub(super) async fn rotate(context: &Context<'_>) -> Result<Outcome, Failure> {
    context
        .act(&domain_call("rotate_domain_dkim", context), format!("{}/keys", domain_page(context.id())), "created")
        .await
}

pub(super) async fn cancel(context: &Context<'_>) -> Result<Outcome, Failure> {
    let call = domain_call("cancel_domain_dkim_rotation", context);
    context.act(&call, format!("{}/keys", domain_page(context.id())), "cancelled").await
}
