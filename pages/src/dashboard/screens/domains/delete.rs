//! Deleting a domain.

use super::{PATH, TITLE, domain_call, read_domain};
use crate::dashboard::kit::confirm::{confirm, confirm_field};
use crate::dashboard::prelude::*;

pub(super) async fn show(context: &Context<'_>) -> Result<View, Failure> {
    let domain = read_domain(context).await?;
    let force =
        Field::new("force", "Delete it even if emails from it are scheduled; they will not be sent", Control::Checkbox);
    let form = Form::new("delete", "Delete permanently", vec![confirm_field(&domain.name), force.ignored()]).danger();
    let body = maud_borrow! {
        div.card {
            ul.plain {
                li { "Email can no longer be sent from " b { (domain.name) } @if domain.inbound_enabled { ", and mail to it is refused" } "." }
                li { "API keys and SMTP credentials that are restricted to it stop working." }
                li { "Its signing keys are deleted. To use the domain again, you must publish new records." }
                li { "Sent emails stay in the list." }
            }
            (form.within(context))
        }
    };
    let page = Page::new(format!("Delete {}", domain.name), body).below(PATH, TITLE);
    Ok(page.below(domain.page(), domain.name.clone()).same_as(domain_call("delete_domain", context)).into())
}

pub(super) async fn submit(context: &Context<'_>) -> Result<Outcome, Failure> {
    confirm(context, &read_domain(context).await?.name)?;
    let force = if context.form().find("force").is_some() { "true" } else { "" };
    context.act(&domain_call("delete_domain", context).query("force", force), PATH, "deleted").await
}
