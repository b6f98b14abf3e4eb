//! Sending a product event by hand.

use super::LIST;
use super::object::{EventItem, event_path};
use crate::dashboard::prelude::*;

pub(super) const PATH: &str = "/dashboard/events/new";

#[answer]
struct AcceptedEvent {
    event: EventItem,
    matched_automations: u32,
    resumed_runs: u32,
    cancelled_runs: u32,
}

fn form(context: &Context<'_>) -> Form<'static> {
    let query = context.query();
    let given = |name: &str| query.get(name).to_owned();
    let fields = vec![
        Field::text("name", "Event").required().value(given("name")).placeholder("user.created"),
        Field::text("user_id", "User id")
            .value(given("user_id"))
            .placeholder("u_42")
            .help("The person's id in your product."),
        Field::new("email", "Email address", Control::Email)
            .value(given("email"))
            .placeholder("grace@example.net")
            .help("Automations send to this address."),
        Field::new("data", "Data", Control::Json { rows: 8 })
            .value(given("data"))
            .placeholder("{\"plan\": \"trial\"}")
            .help(
                "A JSON object for conditions and templates. With \"internal\": true, the event does not count \
                    as a sign-up or subscription.",
            ),
        form_key::field(context),
    ];
    Form::new("send", "Send the event", fields)
}

pub(super) async fn show(context: &Context<'_>) -> Result<View, Failure> {
    let form = form(context);
    let body = maud! {
        div.notice.warning role="note" {
            p { "This event counts like one from your product, and starts the automations that wait for it: they send \
                real emails." }
        }
        div.card { (form.within(context)) }
    };
    let call = Call::new("send_event").json(serde_json::json!({"name": "user.created", "email": "grace@example.net"}));
    Ok(Page::new("Send a test event", body).below(LIST, "Events").same_as(call).into())
}

pub(super) async fn send(context: &Context<'_>) -> Result<Outcome, Failure> {
    let body = form(context).read(context.form())?;
    let idempotency_key = form_key::request_key(context, &[body.to_string().as_bytes()]);
    let call = Call { idempotency_key, ..Call::new("send_event").json(body) };
    let accepted: AcceptedEvent = context.read(&call).await?;
    let (started, resumed, ended) = (accepted.matched_automations, accepted.resumed_runs, accepted.cancelled_runs);
    let path = event_path(&accepted.event.id);
    Ok(Outcome::SeeOther(format!("{path}?started={started}&resumed={resumed}&ended={ended}")))
}
