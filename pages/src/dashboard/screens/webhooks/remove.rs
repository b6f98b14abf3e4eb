//! Deletes an endpoint.

use super::object::Webhook;
use super::{LIST, webhook_path};
use crate::dashboard::kit::confirm::{confirm_field, delete_confirmed};
use crate::dashboard::prelude::*;

pub(super) async fn show(context: &Context<'_>) -> Result<View, Failure> {
    let webhook = Webhook::read(context).await?;
    let form = Form::new("delete", "Delete the endpoint", vec![confirm_field(webhook.host())]).danger();
    let body = maud_borrow! {
        div.card {
            p { "No more events are posted to " code { (webhook.url) } ". Its deliveries and its secret are deleted \
                too, and cannot be restored." }
            p.soft { "To stop it only for a while, disable it on its page." }
            (form.within(context))
        }
    };
    let call = Call::new("delete_webhook").id(&webhook.id);
    let page = Page::new("Delete the endpoint", body).below(LIST, "Webhooks");
    Ok(page.below(webhook_path(&webhook.id), webhook.host()).same_as(call).into())
}

pub(super) async fn remove(context: &Context<'_>) -> Result<Outcome, Failure> {
    let webhook = Webhook::read(context).await?;
    delete_confirmed(context, webhook.host(), &Call::new("delete_webhook").id(context.id()), LIST).await
}
