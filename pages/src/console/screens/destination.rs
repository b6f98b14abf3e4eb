//! A recipient domain: what waits for it now and waited over time, and what was decided about it.

use super::depth::{QueueDepth, depth_section};
use super::destinations::Override;
use super::queue::destination_page;
use crate::console::PATH;
use crate::dashboard::prelude::*;

pub const PAGES: &[PageRow] = page_rows! {
    "/queue/{domain}" => show, reads ["queue_depth", "destination_list"];
};

async fn show(context: &Context<'_>) -> Result<View, Failure> {
    let domain = context.parameter("domain");
    let depth = QueueDepth::read(context, Some(domain)).await?;
    let overrides = Override::read_of_domain(context, domain).await?;
    let now = depth.now.as_ref().ok_or_else(Failure::not_found)?;
    let facts = Facts::new()
        .row("Not attempted yet", grouped(now.queued))
        .row("Waiting for a retry", grouped(now.deferred))
        .row("Held by the operator", grouped(now.held))
        .row("Delivery", overrides.suspension_view())
        .row("Route", overrides.route.as_deref().unwrap_or("As configured"));
    let (path, name) = (destination_page(domain), encode(domain));
    let body = maud_borrow! {
        div.card { (facts) }
        (depth_section(&depth, &path))
        p.soft.small { "There is no figure for minutes in which the domain was not among the twenty with the longest \
            queues." }
    };
    let actions = maud_borrow! {
        a.button.primary href={ (PATH) "/mail?to=" (name) } { "Queued mail" }
        a.button href={ (PATH) "/destinations/suspend?to=" (name) } { "Suspend" }
        a.button href={ (PATH) "/destinations/route?to=" (name) } { "Route" }
    };
    let list = Call::new("queue_list").json(json!({"limit": 50, "filter": {"to": domain}, "search": {}}));
    let page = Page::new(domain, body).actions(actions).below(format!("{PATH}/queue"), "Queue by destination");
    Ok(page.same_as(list).into())
}
