//! Adding a domain; and the offer to claim it if another account has it.

use super::{PATH, SendingDomain, TITLE};
use crate::dashboard::prelude::*;

fn form<'a>() -> Form<'a> {
    let name = Field::text("name", "Domain")
        .required()
        .placeholder("mail.example.com")
        .help("Use a subdomain for newsletters, so that their reputation does not affect your other email.");
    Form::new("add", "Add the domain", vec![name])
}

pub(super) async fn show(context: &Context<'_>) -> Result<View, Failure> {
    let form = form();
    let claimed = context.failure_of("add").filter(|failure| failure.code == "domain_claimed");
    let body = maud_borrow! {
        div.card { (form.within(context)) }
        @if let Some(failure) = claimed { (claim_offer(context, failure)) }
    };
    let call = Call::new("create_domain").json(json!({"name": "example.com"}));
    let page = Page::new("Add a domain", body).below(PATH, TITLE).same_as(call);
    Ok(page.lead("Next, you publish a few DNS records; many providers can do that with one click.").into())
}

/// A domain of another account can be claimed by whom controls its DNS.
fn claim_offer<'a>(context: &'a Context<'a>, failure: &'a Failure) -> impl Renderable + 'a {
    let text = |value: &serde_json::Value| value.as_str().unwrap_or_default().to_owned();
    let (domain, claim) = (text(&failure.details["domain"]), &failure.details["claim"]);
    let (name, value) = (text(&claim["name"]), text(&claim["value"]));
    let form = Form::new("claim", "Start the claim", vec![Field::hidden("name", domain.clone())]);
    maud! {
        section {
            h2 { "Is " (domain) " yours?" }
            div.card {
                p { "Another account uses this domain. If you control its DNS, you can move it to this account:" }
                ol.steps {
                    li { "Start the claim." }
                    li {
                        "Publish this TXT record."
                        dl.record {
                            div { dt { "Name" } dd { code { (name) } (copy_button(&name, "the name")) } }
                            div { dt { "Value" } dd { code { (value) } (copy_button(&value, "the value")) } }
                        }
                    }
                    li { "Verify it. The other account is notified and has 72 hours to object." }
                }
                @if context.allows("create_domain_claim") { (form.within(context)) }
            }
        }
    }
}

pub(super) async fn submit(context: &Context<'_>) -> Result<Outcome, Failure> {
    let body = form().read(context.form())?;
    let domain: SendingDomain = context.read_field("domain", &Call::new("create_domain").json(body)).await?;
    Ok(Outcome::done(domain.page(), "added"))
}
