//! The list of endpoints.

use futures_util::future::join_all;

use super::object::{Delivery, Webhook};
use super::{EVENTS, LIST, delivery_path, webhook_path};
use crate::dashboard::prelude::*;

pub(super) async fn show(context: &Context<'_>) -> Result<View, Failure> {
    let call = Call::new("list_webhooks").query("cursor", context.query().get("cursor"));
    let found: &List<Webhook> = &context.read_list("webhooks", &call).await?;
    let last = join_all(found.entries.iter().map(|webhook| last_delivery(context, &webhook.id))).await;
    let mut table = Table::new("Endpoints", &["Endpoint", "Events", "State", "Last delivery"]);
    for (webhook, last) in found.entries.iter().zip(last) {
        table.push(row(webhook, last?.as_ref()));
    }
    let can_create = context.allows("create_webhook");
    let empty = EmptyState {
        title: "No webhook endpoints yet",
        text: "An endpoint is a URL of your program. Each event is posted to it as signed JSON: an email was \
            delivered, bounced, was opened and so on. Failed deliveries are retried.",
        action: can_create.then_some(("/dashboard/webhooks/new", "Add the first endpoint")),
    };
    let body = found.fragment(context, &table, empty);
    let actions = maud! {
        @if context.allows("list_webhook_events") { a.button href=(EVENTS) { "Watch events" } }
        @if can_create { a.button.primary href={ (LIST) "/new" } { "Add an endpoint" } }
    };
    let page = Page::new("Webhooks", body).lead("Your endpoints, and the result of the last delivery to each.");
    Ok(page.actions(actions).same_as(call).live().into())
}

/// The newest delivery of an endpoint. An endpoint that was deleted meanwhile has none.
async fn last_delivery(context: &Context<'_>, id: &str) -> Result<Option<Delivery>, Failure> {
    let call = Call::new("list_webhook_deliveries").id(id).query("limit", "1");
    let found: Option<List<Delivery>> = if_found(context.read_list("deliveries", &call).await)?;
    Ok(found.and_then(|list| list.entries.into_iter().next()))
}

fn row(webhook: &Webhook, last: Option<&Delivery>) -> Row {
    let path = webhook_path(&webhook.id);
    Row::new()
        .cell(maud! {
            a href=(path) { (webhook.url) }
            @if let Some(description) = &webhook.description { div.small.soft { (description) } }
        })
        .cell(webhook.subscription())
        .cell(webhook.badge())
        .cell(maud! {
            @match last {
                Some(delivery) => {
                    a.plain-link href=(delivery_path(&webhook.id, &delivery.id)) { (delivery.badge()) }
                    " "
                    span.small.soft { (time_or_dash(Some(&delivery.created_at))) }
                    div.small.soft { (delivery.r#type) }
                }
                None => { span.soft { "None yet" } }
            }
        })
}
