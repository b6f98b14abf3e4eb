//! Publishing the records: at a DNS provider by its API, by Domain Connect, or by a zone file.

use mcp::operation_table::DnsProvider;

use super::saved::saved_providers;
use super::{DomainRecord, PATH, SendingDomain, TITLE, domain_call, domain_view, providers, read_domain};
use crate::dashboard::kit::diff::CharDiff;
use crate::dashboard::prelude::*;

/// The fields that both ways of signing in share.
fn common_fields() -> [Field; 2] {
    let modes = choices(&[("true", "Only show what would change"), ("false", "Publish the records")]);
    [
        Field::new("dry_run", "What to do", Control::Radio(modes)).value("true").ignored(),
        Field::new("merge_spf", "Add this service to an existing SPF record", Control::Checkbox).value("true"),
    ]
}

fn saved_form<'a>(saved: &[String]) -> Form<'a> {
    let choices = saved.iter().map(|id| (id.clone(), providers::title(id).to_owned())).collect();
    let mut fields = vec![Field::new("provider", "Provider", Control::Select(choices))];
    fields.extend(common_fields());
    Form::new("apply-saved", "Continue", fields)
}

fn token_form<'a>(provider: &'static DnsProvider) -> Form<'a> {
    let mut fields = vec![Field::hidden("provider", &provider.name)];
    fields.extend(providers::fields(provider));
    fields.extend(common_fields());
    Form::new("apply", "Continue", fields)
}

/// The provider in the address, or of the form that was refused.
pub(super) fn chosen_provider<'c>(context: &'c Context<'_>, form: &str) -> &'c str {
    match context.query().get("provider") {
        "" if context.failure_of(form).is_some() => context.form().get("provider"),
        chosen => chosen,
    }
}

/// The choice of a provider: a form of its own, so that the fields of the provider can be shown without the script.
pub(super) fn provider_choice<'a>(path: &'a str, chosen: &'a str) -> impl Renderable + 'a {
    maud! {
        form.filters method="get" action=(path) {
            div.field {
                label for="provider" { "Provider" }
                select #provider name="provider" {
                    @for (id, title) in providers::choices() { option value=(id) selected[id == chosen] { (title) } }
                }
            }
            div.buttons { button.button type="submit" { "Choose" } }
        }
    }
}

pub(super) async fn show(context: &Context<'_>) -> Result<View, Failure> {
    let domain = read_domain(context).await?;
    let saved = saved_providers(context).await?;
    let chosen = chosen_provider(context, "apply");
    let path = format!("{}/publish", domain.page());
    let saved_form = saved_form(&saved);
    let token_form = providers::find(chosen).map(token_form);
    let connect = Form::new("connect", "Continue at your provider", Vec::new()).secondary();
    let content = maud_borrow! {
        div.columns {
            @if !saved.is_empty() {
                section.card {
                    h2 { "With saved DNS access" }
                    (saved_form.within(context))
                    p.small { a href={ (PATH) "/dns-credentials" } { "Saved DNS access" } }
                }
            }
            section.card {
                h2 { "With an API token" }
                p.soft { "Other records are never overwritten. The token is used once and not stored." }
                (provider_choice(&path, chosen))
                @if let Some(form) = &token_form { (form.within(context)) }
            }
            section.card {
                h2 { "By signing in to your provider" }
                p.soft { "Providers with Domain Connect let you approve the records on their own page." }
                @if context.allows("connect_domain_dns") { (connect.within(context)) }
            }
            section.card {
                h2 { "Manually" }
                p.soft { "Import the zone file, or copy the records one by one." }
                div.buttons {
                    a.button href={ (domain.page()) "/zone-file" } { "Download zone file" }
                    a.button href=(domain.page()) { "Show the records" }
                }
            }
        }
    };
    let call = domain_call("apply_domain_dns", context).json(
        json!({"provider": if chosen.is_empty() { "cloudflare" } else { chosen }, "use_saved": true, "dry_run": true}),
    );
    Ok(domain_view(context, &domain, "/publish", content, call))
}

#[derive(Debug, Deserialize)]
struct AppliedDns {
    domain: SendingDomain,
    #[serde(default)]
    changes: Vec<DnsChange>,
    applied: bool,
}

#[derive(Debug, Deserialize)]
struct DnsChange {
    action: String,
    outcome: String,
    record: DomainRecord,
    replaces: Option<String>,
    reason: Option<String>,
}

pub(super) async fn apply(context: &Context<'_>) -> Result<Outcome, Failure> {
    let entered = context.form();
    let provider = entered.get("provider");
    let use_saved = entered.get("form") == "apply-saved";
    let mut body = if use_saved {
        saved_form(&[]).read(entered)?
    } else {
        let known = providers::find(provider).ok_or_else(|| Failure::field("provider", "Choose a provider"))?;
        token_form(known).read(entered)?
    };
    if let Value::Object(body) = &mut body {
        body.insert("dry_run".into(), Value::Bool(entered.get("dry_run") != "false"));
        body.insert("use_saved".into(), Value::Bool(use_saved));
    }
    let applied: AppliedDns = context.read(&domain_call("apply_domain_dns", context).json(body)).await?;
    Ok(Outcome::once(result_page(&applied, provider, entered.get("dry_run") != "false")))
}

fn action_badge(change: &DnsChange) -> Badge {
    match (change.action.as_str(), change.outcome.as_str()) {
        ("conflict", _) => Badge::new("Conflict", Tone::Bad),
        (_, "failed") => Badge::new("Failed", Tone::Bad),
        (_, "unclear") => Badge::new("Unknown", Tone::Warning),
        ("skip", _) | (_, "unchanged") => Badge::new("Already correct", Tone::Good),
        ("create", "done") => Badge::new("Created", Tone::Good),
        ("update", "done") => Badge::new("Changed", Tone::Good),
        ("create", _) => Badge::new("Will be created", Tone::Active),
        ("update", _) => Badge::new("Will be changed", Tone::Active),
        (action, _) => Badge::of(action),
    }
}

/// The changes that were made, or would be.
fn result_page(applied: &AppliedDns, provider: &str, is_dry_run: bool) -> Page {
    let domain = &applied.domain;
    let table = Table::of("Changes", &applied.changes)
        .column("Record", |change| maud_borrow! { b { (change.record.kind) } " " (change.record.name) })
        .column("Change", action_badge)
        .column("Value", |change| {
            maud_borrow! {
                @match &change.replaces {
                    Some(before) => (CharDiff { found: before, right: &change.record.value }),
                    None => code { (change.record.value) },
                }
                @if let Some(reason) = &change.reason { p.help { (reason) } }
            }
        });
    let (tone, text) = match (is_dry_run, applied.applied) {
        (true, _) => (Tone::Neutral, "Nothing has been changed yet. This is what would happen:"),
        (false, true) => {
            (Tone::Good, "All records are published. It can take a few minutes until they are visible everywhere.")
        }
        (false, false) => (Tone::Warning, "Not all records could be published; see the table for the reasons."),
    };
    let path = domain.page();
    let back = format!("{path}/publish?provider={}", encode(provider));
    let body = maud_borrow! {
        (Notice { tone, text })
        @if table.is_empty() { p.card { "There is nothing to change." } } @else { (table) }
        div.buttons {
            @if is_dry_run { a.button.primary href=(back) { "Go back to publish them" } }
            a.button href=(path) { "Go to the records" }
        }
    };
    let title = if is_dry_run { "What would change" } else { "Published" };
    Page::new(format!("{title}: {}", domain.name), body).below(PATH, TITLE).below(path.clone(), domain.name.clone())
}

/// Shows the link to the provider. A redirect from a form to another host is refused by the page's own policy.
pub(super) async fn connect(context: &Context<'_>) -> Result<Outcome, Failure> {
    let url: String = context.read_field("url", &domain_call("connect_domain_dns", context)).await?;
    let path = super::domain_page(context.id());
    let is_web = url.starts_with("https://");
    let body = maud_borrow! {
        div.card {
            p { "Your provider supports Domain Connect. Sign in there and approve the records; then come back and verify." }
            div.buttons {
                @if is_web { a.button.primary href=(url) rel="noreferrer" { "Continue at your provider" } }
                a.button href=(path) { "Go to the records" }
            }
            p.help { code { (url) } }
        }
    };
    Ok(Outcome::once(Page::new("Continue at your provider", body).below(PATH, TITLE).below(path.clone(), "Domain")))
}
