//! The forms of destinations: suspend, limits, route.

use super::destinations::{LIST, Override, destination_call};
use super::mail_change::{RouteChoice, route_fields, smarthost_name};
use crate::console::duration;
use crate::dashboard::prelude::*;

pub const PAGES: &[PageRow] = page_rows! {
    "/destinations/suspend" => show_suspend, forms {
        "suspend" => suspend, calls "destination";
    };
    "/destinations/pace" => show_pace, reads ["destination_list"], forms {
        "pace" => pace, calls "destination";
    };
    "/destinations/route" => show_route, reads ["destination_list"], forms {
        "route" => route, calls "destination";
    };
};

/// The destination of the examples in "same as".
const EXAMPLE: &str = "example.com";

fn named<'c>(context: &'c Context<'_>, name: &str) -> &'c str {
    context.query().get(name)
}

fn example(context: &Context<'_>, name: &str) -> String {
    let entered = named(context, name);
    if entered.is_empty() { EXAMPLE.to_owned() } else { entered.to_owned() }
}

fn domain_field(context: &Context<'_>) -> Field {
    Field::text("to", "Recipient domain").value(named(context, "to")).ignored().placeholder(EXAMPLE)
}

fn host_field(context: &Context<'_>) -> Field {
    Field::text("mail_host", "Mail hosts")
        .value(named(context, "mail_host"))
        .ignored()
        .placeholder("mail.example.net")
        .help("All mail hosts with this name or below it, for all domains that they serve.")
}

async fn show_suspend(context: &Context<'_>) -> Result<View, Failure> {
    let fields = vec![
        domain_field(context),
        host_field(context),
        Field::text("for", "Duration").ignored().placeholder("2h").help("90m, 2h, 3d. If empty: until you resume it."),
        Field::text("because", "Reason")
            .ignored()
            .help("Keep it short. Customers see it in the history of their email."),
    ];
    let form = Form::new("suspend", "Suspend", fields);
    let body = maud_borrow! {
        div.card {
            p.soft { "Mail to the destination is accepted and stays in the queue, but it still expires." }
            (form.within(context))
        }
    };
    let order = json!({"suspend": {"seconds": 7200, "because": "They asked us to"}});
    let call = Call::new("destination").json(json!({"to": example(context, "to"), "order": order}));
    Ok(Page::new("Suspend a destination", body).below(LIST, "Destinations").same_as(call).into())
}

async fn suspend(context: &Context<'_>) -> Result<Outcome, Failure> {
    let seconds = duration::parse("for", context.form().get("for"))?;
    let because = Some(context.form().get("because").trim()).filter(|text| !text.is_empty());
    let call = destination_call(context, json!({"suspend": {"seconds": seconds, "because": because}}))?;
    context.act(&call, LIST, "suspended").await
}

async fn show_pace(context: &Context<'_>) -> Result<View, Failure> {
    let present = Override::read_named(context).await?;
    let fields = vec![
        host_field(context).required(),
        Field::new("connections", "Connections", Control::Number { min: Some(1), max: None })
            .value(present.connections_max.map(|max| max.to_string()).unwrap_or_default())
            .ignored(),
        Field::text("per_second", "Messages per second")
            .value(present.messages_per_second.map(|rate| rate.to_string()).unwrap_or_default())
            .ignored()
            .placeholder("0.5"),
    ];
    let form = Form::new("pace", "Save", fields);
    let body = maud_borrow! {
        div.card {
            p.soft { "Leave a limit empty to use the configured one. Leave both empty to remove the override." }
            (form.within(context))
        }
    };
    let order = json!({"pace": {"connections_max": 2, "messages_per_second": 0.5}});
    let call = Call::new("destination").json(json!({"mail_host": example(context, "mail_host"), "order": order}));
    Ok(Page::new("Limits for mail hosts", body).below(LIST, "Destinations").same_as(call).into())
}

async fn pace(context: &Context<'_>) -> Result<Outcome, Failure> {
    let (connections, rate) = (context.form().get("connections").trim(), context.form().get("per_second").trim());
    let connections: Option<u32> = match connections {
        "" => None,
        text => Some(text.parse().ok().filter(|number| *number > 0).ok_or_else(|| {
            Failure::field("connections", "Enter a whole number above 0; to stop delivery, suspend the destination")
        })?),
    };
    let rate: Option<f64> = match rate {
        "" => None,
        text => Some(text.parse().ok().filter(|rate: &f64| rate.is_finite() && *rate > 0.0).ok_or_else(|| {
            Failure::field("per_second", "Enter a number above 0; to stop delivery, suspend the destination")
        })?),
    };
    let order = json!({"pace": {"connections_max": connections, "messages_per_second": rate}});
    if context.form().get("mail_host").trim().is_empty() {
        return Err(Failure::field("mail_host", "Enter the name of the mail hosts"));
    }
    context.act(&destination_call(context, order)?, LIST, "paced").await
}

async fn show_route(context: &Context<'_>) -> Result<View, Failure> {
    let present = RouteChoice::of_override(Override::read_named(context).await?.route.as_deref());
    let fields = std::iter::once(domain_field(context).required()).chain(route_fields(&present)).collect();
    let form = Form::new("route", "Save", fields);
    let body = maud_borrow! { div.card { (form.within(context)) } };
    let call = Call::new("destination").json(json!({"to": example(context, "to"), "order": {"route": "mail_hosts"}}));
    Ok(Page::new("Route of a domain", body).below(LIST, "Destinations").same_as(call).into())
}

async fn route(context: &Context<'_>) -> Result<Outcome, Failure> {
    let route = match context.form().get("route") {
        "mx" => json!("mail_hosts"),
        "smarthost" => json!({"smarthost": smarthost_name(context)?}),
        _ => Value::Null,
    };
    if context.form().get("to").trim().is_empty() {
        return Err(Failure::field("to", "Enter a recipient domain"));
    }
    context.act(&destination_call(context, json!({"route": route}))?, LIST, "routed").await
}
