//! One credential: its properties and what it did; rename, restrict, disable, delete.

use super::activity::{KeyActivity, key_activity_view};
use super::{Credential, CredentialPages, addresses_field, domain_cell, name_field, policy, smtp_settings};
use crate::dashboard::kit::confirm::{confirm_field, delete_confirmed};
use crate::dashboard::kit::secret::secret_uses;
use crate::dashboard::kit::time::Time;
use crate::dashboard::prelude::*;

fn switch_form<'a>(credential: &Credential) -> Form<'a> {
    let (label, next) = if credential.enabled { ("Disable", "false") } else { ("Enable", "true") };
    Form::new("switch", label, vec![Field::hidden("enabled", next).ignored()]).secondary()
}

fn facts(
    context: &Context<'_>,
    pages: &CredentialPages,
    credential: &Credential,
    domains: &[(String, String)],
) -> Facts {
    let used = credential.last_used_at.as_deref().and_then(Time::parse);
    let facts = Facts::new().row("State", credential.state(context.now()));
    let facts = if pages.is_api_key { facts.row("Scope", credential.scope_label()) } else { facts };
    facts
        .row("May send from", domain_cell(credential.domain_id.as_deref(), domains))
        .row(pages.secret, maud_borrow! { code { (credential.hint) } })
        .row(
            "Last used",
            maud_borrow! {
                @match used {
                    Some(time) => {
                        (time)
                        @if let Some(ip) = &credential.last_used_ip { " from " code { (ip) } }
                    }
                    None => "Never",
                }
            },
        )
        .row(
            "Allowed IP addresses",
            maud_borrow! {
                @if credential.allowed_ips.is_empty() { span.soft { "From anywhere" } }
                @for (n, ip) in credential.allowed_ips.iter().enumerate() { @if n > 0 { ", " } code { (ip) } }
            },
        )
        .row("Expires", maud_borrow! { @if credential.expires_at.is_some() { (time_or_dash(credential.expires_at.as_deref())) } @else { span.soft { "Never" } } })
        .optional("Policy", credential.policy.as_ref().map(|policy| policy.summary()))
        .row("Created", time_or_dash(Some(&credential.created_at)))
}

pub(super) async fn show(context: &Context<'_>, pages: &CredentialPages) -> Result<View, Failure> {
    let credential = pages.read(context).await?;
    let domains = if credential.domain_id.is_some() { context.domain_choices().await? } else { Vec::new() };
    let activity = if pages.is_api_key && context.allows("list_logs") {
        Some(KeyActivity::read(context, &credential.id).await?)
    } else {
        None
    };
    let path = pages.page_of(&credential.id);
    let switch = switch_form(&credential);
    let uses = if pages.is_api_key { Vec::new() } else { smtp_settings::uses(&credential, smtp_settings::PASSWORD) };
    let body = maud_borrow! {
        div.card { (facts(context, pages, &credential, &domains)) }
        @if !pages.is_api_key { section { h2 { "Connection" } div.card { (smtp_settings::facts(&credential)) } } }
        @if let Some(activity) = &activity { (key_activity_view(activity, &credential)) }
        (secret_uses(&uses))
    };
    let actions = maud_borrow! {
        @if context.allows(pages.update) { a.button href={ (path) "/edit" } { "Edit" } (switch.within(context)) }
        @if context.allows(pages.rotate) { a.button href={ (path) "/rotate" } { "Replace the secret" } }
        @if context.allows(pages.delete) { a.button href={ (path) "/delete" } { "Delete" } }
    };
    let page = Page::new(credential.name.clone(), body).below(pages.path, pages.title).actions(actions);
    Ok(page.same_as(Call::new(pages.get).id(&credential.id)).into())
}

pub(super) async fn switch(context: &Context<'_>, pages: &CredentialPages) -> Result<Outcome, Failure> {
    let enabled = context.form().get("enabled") == "true";
    let call = Call::new(pages.update).id(context.id()).json(json!({"enabled": enabled}));
    context.act(&call, pages.page_of(context.id()), "changed").await
}

fn edit_form<'a>(pages: &CredentialPages, credential: Option<&Credential>) -> Form<'a> {
    let (name, addresses) =
        credential.map_or_else(Default::default, |one| (one.name.clone(), one.allowed_ips.join("\n")));
    let mut fields = vec![name_field().value(name), addresses_field().value(addresses)];
    fields.extend(policy::fields(pages.is_api_key, credential.and_then(|one| one.policy.as_ref())));
    Form::new("edit", "Save", fields)
}

pub(super) async fn show_edit(context: &Context<'_>, pages: &CredentialPages) -> Result<View, Failure> {
    let credential = pages.read(context).await?;
    let form = edit_form(pages, Some(&credential));
    let body = maud_borrow! {
        div.card { (form.within(context)) }
        @if let Some(ip) = &credential.last_used_ip { p.help { "It was last used from " code { (ip) } "." } }
    };
    let call = Call::new(pages.update).id(&credential.id).json(json!({"name": credential.name}));
    let page = Page::new(format!("Edit {}", credential.name), body).below(pages.path, pages.title);
    Ok(page.below(pages.page_of(&credential.id), credential.name).same_as(call).into())
}

pub(super) async fn edit(context: &Context<'_>, pages: &CredentialPages) -> Result<Outcome, Failure> {
    let body = edit_form(pages, None).read(context.form())?;
    context.act(&Call::new(pages.update).id(context.id()).json(body), pages.page_of(context.id()), "changed").await
}

pub(super) async fn show_delete(context: &Context<'_>, pages: &CredentialPages) -> Result<View, Failure> {
    let credential = pages.read(context).await?;
    let form = Form::new("delete", "Delete permanently", vec![confirm_field(&credential.name)]).danger();
    let body = maud_borrow! {
        div.card {
            p { "Programs that use it are refused at once, and it cannot be restored. Emails that have been accepted \
                are still sent." }
            p {
                @match credential.last_used_at.as_deref().and_then(Time::parse) {
                    Some(time) => { "It was last used " (time) @if let Some(ip) = &credential.last_used_ip { " from " code { (ip) } } "." }
                    None => "It has never been used.",
                }
            }
            (form.within(context))
        }
    };
    let call = Call::new(pages.delete).id(&credential.id);
    let page = Page::new(format!("Delete {}", credential.name), body).below(pages.path, pages.title);
    Ok(page.below(pages.page_of(&credential.id), credential.name).same_as(call).into())
}

pub(super) async fn delete(context: &Context<'_>, pages: &CredentialPages) -> Result<Outcome, Failure> {
    let credential = pages.read(context).await?;
    delete_confirmed(context, &credential.name, &Call::new(pages.delete).id(context.id()), pages.path).await
}
