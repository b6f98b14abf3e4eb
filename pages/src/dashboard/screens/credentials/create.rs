//! New secrets: creation and rotation. The page after each is the only one that shows the secret.

use super::{Credential, CredentialPages, OneCredential, addresses_field, name_field, policy, smtp_settings};
use crate::dashboard::kit::secret::{SecretUse, shown_secret};
use crate::dashboard::kit::snippet::{SnippetLanguage, snippet};
use crate::dashboard::prelude::*;

fn form<'a>(pages: &CredentialPages, domains: &[(String, String)]) -> Form<'a> {
    let mut fields = vec![name_field()];
    if pages.is_api_key {
        let scopes = choices(&[
            ("sending", "Sending only: send email, and read sent email"),
            ("full", "Full access: everything in the account"),
        ]);
        fields.push(Field::new("scope", "Scope", Control::Radio(scopes)).value("sending"));
    }
    let all = (String::new(), "All domains".to_owned());
    let choices = std::iter::once(all).chain(domains.iter().cloned()).collect();
    fields.push(Field::new("domain_id", "May send from", Control::Select(choices)));
    fields.push(addresses_field());
    fields.push(Field::new("expires_at", "Expires", Control::DateTime).help("In UTC. Empty: never."));
    fields.extend(policy::fields(pages.is_api_key, None));
    Form::new("create", if pages.is_api_key { "Create API key" } else { "Create SMTP credential" }, fields)
}

pub(super) async fn show(context: &Context<'_>, pages: &CredentialPages) -> Result<View, Failure> {
    let mut form = form(pages, &context.domain_choices().await?);
    form.fields.push(form_key::field(context));
    let body = maud_borrow! { div.card { (form.within(context)) } };
    let example = if pages.is_api_key {
        json!({"name": "shop-backend", "scope": "sending"})
    } else {
        json!({"name": "shop-backend"})
    };
    let page = Page::new(format!("Create {}", pages.noun), body).below(pages.path, pages.title).lead(pages.lead);
    Ok(page.same_as(Call::new(pages.create).json(example)).into())
}

pub(super) async fn submit(context: &Context<'_>, pages: &CredentialPages) -> Result<Outcome, Failure> {
    let body = form(pages, &[]).read(context.form())?;
    let create = async {
        let created: OneCredential = context.read(&Call::new(pages.create).json(body)).await?;
        Ok(secret_page(context, pages, &created, "The credential was created.").await)
    };
    form_key::once(context, (pages.path, pages.title), create).await
}

fn rotate_form<'a>() -> Form<'a> {
    let grace = Field::new(
        "grace_hours",
        "Hours that the old secret stays valid",
        Control::Number { min: Some(0), max: Some(336) },
    )
    .value("24")
    .help(
        "Replace it everywhere within this time. With 0, the old secret is refused at once; choose this if it has \
        leaked.",
    );
    Form::new("rotate", "Replace the secret", vec![grace])
}

pub(super) async fn show_rotate(context: &Context<'_>, pages: &CredentialPages) -> Result<View, Failure> {
    let credential = pages.read(context).await?;
    let mut form = rotate_form();
    form.fields.push(form_key::field(context));
    let body = maud_borrow! {
        div.card {
            p { "You get a new secret; the name, permissions and addresses stay the same. The current one is \
                " code { (credential.hint) } "." }
            (form.within(context))
        }
    };
    let call = Call::new(pages.rotate).id(&credential.id).json(json!({"grace_hours": 24}));
    let page = Page::new(format!("Replace the secret of {}", credential.name), body);
    Ok(page.below(pages.path, pages.title).below(pages.page_of(&credential.id), credential.name).same_as(call).into())
}

pub(super) async fn rotate(context: &Context<'_>, pages: &CredentialPages) -> Result<Outcome, Failure> {
    let body = rotate_form().read(context.form())?;
    let rotate = async {
        let rotated: OneCredential = context.read(&Call::new(pages.rotate).id(context.id()).json(body)).await?;
        Ok(secret_page(context, pages, &rotated, "The secret was replaced.").await)
    };
    form_key::once(context, (pages.path, pages.title), rotate).await
}

/// The page that shows the secret. If the domain's name cannot be read, the secret must be shown all the same.
async fn secret_page(context: &Context<'_>, pages: &CredentialPages, created: &OneCredential, lead: &str) -> Page {
    let domains = context.domain_choices().await.unwrap_or_default();
    let credential = &created.credential;
    let domain = match &credential.domain_id {
        Some(id) => domains.iter().find(|(other, _)| other == id),
        None => domains.last(),
    };
    let from = format!("hello@{}", domain.map_or("example.com", |(_, name)| name));
    let uses = if pages.is_api_key {
        api_uses(context, &created.secret, &from)
    } else {
        smtp_settings::uses(credential, &created.secret)
    };
    let path = pages.page_of(&credential.id);
    let label = format!("To {}", credential.name);
    let shown = shown_secret(pages.secret, &created.secret, &uses, (&path, &label));
    let body = maud_borrow! {
        (shown)
        @if !pages.is_api_key { (connection(credential)) }
    };
    Page::new(credential.name.clone(), body).below(pages.path, pages.title).lead(lead).location(&path)
}

/// Host, port and user name.
fn connection(credential: &Credential) -> impl Renderable {
    let facts = smtp_settings::facts(credential);
    maud! { section { h2 { "Connection" } div.card { (facts) } } }
}

/// First calls with a new key.
fn api_uses(context: &Context<'_>, secret: &str, from: &str) -> Vec<SecretUse> {
    let base_url = context.backend.base_url();
    let to = context.viewer.map_or("you@example.net", |viewer| &viewer.email);
    let call = Call::new("send_email").json(json!({"from": from, "to": [to], "subject": "Hello", "text": "It works."}));
    let environment = SecretUse {
        title: "Your program's environment",
        code: format!("export POSTRIDER_API_KEY={secret}\nexport POSTRIDER_BASE_URL={base_url}"),
    };
    let calls = SnippetLanguage::ALL
        .into_iter()
        .filter_map(|language| Some(SecretUse { title: language.label(), code: snippet(&call, language, base_url)? }));
    std::iter::once(environment).chain(calls).collect()
}
