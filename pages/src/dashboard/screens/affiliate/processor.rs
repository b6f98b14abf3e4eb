//! The payment processor: connect and test it, its events, and replaying those that failed.

use super::program::{ProgramState, copy_text, load_program, program_call};
use super::{PATH, filled, set_up_first};
use crate::dashboard::kit::row_button::row_button;
use crate::dashboard::prelude::*;

const PROCESSOR_PATH: &str = "/dashboard/affiliate/processor";
const EVENTS_PATH: &str = "/dashboard/affiliate/processor/events";

/// The events of the processor that have an effect.
const EVENT_TYPES: &str = "checkout.session.completed, checkout.session.async_payment_succeeded, customer.created, \
    customer.updated, customer.subscription.created, customer.subscription.updated, customer.subscription.deleted, \
    invoice.paid, invoice.payment_succeeded, invoice_payment.paid, charge.refunded, charge.refund.updated, \
    refund.created, refund.updated, refund.failed, credit_note.created, credit_note.updated, credit_note.voided, \
    charge.dispute.created, charge.dispute.updated, charge.dispute.closed, charge.dispute.funds_withdrawn, \
    charge.dispute.funds_reinstated, charge.succeeded, charge.updated, transfer.reversed, account.updated";

pub const PAGES: &[PageRow] = page_rows! {
    "/affiliate/processor" => connect_page, reads ["get_affiliate_program", "connect_affiliate_processor"], forms {
        "connect" => connect(PATH), calls "connect_affiliate_processor";
    };
    "/affiliate/processor/events" => events, reads ["list_affiliate_processor_events"], forms {
        "replay" => replay, calls "replay_affiliate_processor_event";
    };
};

/// The address for the processor's events, before it is connected.
pub fn event_address(url: &str) -> impl Renderable {
    maud! {
        p { "In Stripe, add a webhook endpoint with this URL:" }
        (copy_text(url))
        details {
            summary { "The events to send" }
            p.small { (EVENT_TYPES) }
            p.small.soft { "Other events are accepted and ignored." }
        }
        p { "Then copy its signing secret here." }
    }
}

/// The processor as it is connected.
///
/// `test`: with a button for a test.
pub fn processor_card(context: &Context<'_>, state: &ProgramState, test: bool) -> Fragment {
    let Some(processor) = &state.processor else {
        return Fragment::new(maud! {
            p {
                "Not connected. "
                @if context.allows("connect_affiliate_processor") { a href=(PROCESSOR_PATH) { "Connect it" } }
            }
        });
    };
    let mode = match processor.livemode {
        Some(true) => "Live payments",
        Some(false) => "Test payments",
        None => "Unknown until the first event",
    };
    let access = if processor.has_key { "Webhook events and a key" } else { "Webhook events only" };
    let account = processor.account_id.clone().unwrap_or_else(|| "Unknown".into());
    let failed = processor.failed_events;
    let facts = Facts::new()
        .row("Connection", access)
        .row("Account", maud! { code { (account) } })
        .row("Mode", mode)
        .row("Signing secrets", processor.webhook_secrets_count)
        .row("Last event", time_or_dash(processor.last_event_at.as_deref()))
        .row(
            "Failed events",
            maud! {
                @if failed == 0 { "None" } @else { a href={ (EVENTS_PATH) "?status=failed" } { (failed) } }
            },
        );
    Fragment::new(maud! {
        (facts)
        p.small.soft { "URL for its events" }
        (copy_text(&processor.webhook_url))
        div.buttons {
            @if test && context.allows("test_affiliate_processor") {
                (row_button(context, "test", "Test the connection", ("now", "1")))
            }
            @if context.allows("list_affiliate_processor_events") { a.button href=(EVENTS_PATH) { "Events" } }
            @if context.allows("connect_affiliate_processor") { a.button href=(PROCESSOR_PATH) { "Reconnect" } }
        }
    })
}

/// The form that connects the processor.
pub fn connect_form() -> Form<'static> {
    let secret = Field::new("webhook_secrets[0]", "Signing secret", Control::Password)
        .required()
        .placeholder("whsec_…")
        .help("Stripe shows it for the webhook endpoint.")
        .ignored();
    let second = Field::new("webhook_secrets[1]", "Second signing secret", Control::Password)
        .placeholder("whsec_…")
        .help("Only during a rotation: both secrets are accepted.")
        .ignored();
    let key = Field::new("restricted_key", "Restricted key", Control::Password).placeholder("rk_live_…").help(
        "With a key, missing details are fetched, refunds are checked before each payout run, earlier payments can be \
         imported, and partners can be paid by Stripe transfers. Without one, the program only receives events.",
    );
    let account = Field::text("account_id", "Account at the processor")
        .placeholder("acct_…")
        .help("Only without a key: events from other accounts are then ignored.");
    let base = Field::new("api_base", "URL of the processor's API", Control::Url)
        .help("Only for a processor with a Stripe-compatible API. Leave empty for Stripe.");
    Form::new("connect", "Connect", vec![secret, key, second, account, base])
}

/// Connects the processor.
pub async fn connect(context: &Context<'_>, then: &str) -> Result<Outcome, Failure> {
    let mut body = connect_form().read(context.form())?;
    let secrets = ["webhook_secrets[0]", "webhook_secrets[1]"];
    let secrets: Vec<_> = secrets.iter().filter_map(|name| filled(context.form(), name)).map(Value::from).collect();
    body["webhook_secrets"] = Value::from(secrets);
    let connected = context.perform(&Call::new("connect_affiliate_processor").json(body)).await;
    connected.map_err(|mut failure| {
        // An error of the whole list belongs to the first field.
        if let Some(message) = failure.fields.remove("webhook_secrets") {
            failure.fields.insert("webhook_secrets[0]".into(), message);
        }
        failure
    })?;
    Ok(Outcome::done(then, "connected"))
}

#[derive(Debug, Deserialize)]
struct ProcessorTest {
    ok: bool,
    account_id: Option<String>,
    livemode: Option<bool>,
    last_event_at: Option<String>,
}

/// Tests the connection and shows the result.
pub async fn test(context: &Context<'_>) -> Result<Outcome, Failure> {
    let call = Call::new("test_affiliate_processor");
    let found: ProcessorTest = context.read(&call).await?;
    let livemode = match found.livemode {
        Some(true) => "Live payments",
        Some(false) => "Test payments",
        None => "Not known: the program only receives events",
    };
    let facts = Facts::new()
        .row("Account", found.account_id.unwrap_or_else(|| "Unknown".into()))
        .row("Payments", livemode)
        .row("Last event", time_or_dash(found.last_event_at.as_deref()));
    let (tone, text) = match (found.ok, found.livemode, &found.last_event_at) {
        (false, ..) => {
            (Tone::Warning, "The processor's response was not as expected. Check the key, and connect again.")
        }
        (true, None, None) => (Tone::Active, "Without a key, only an event can show that the connection works."),
        (true, None, Some(_)) => (Tone::Good, "Events from the processor are arriving."),
        (true, Some(_), _) => (Tone::Good, "The processor accepts the key."),
    };
    let body = maud! {
        (Notice { tone, text })
        div.card {
            (facts)
            @if found.last_event_at.is_none() {
                p { "No events have arrived yet. Send a test event from the processor to check the URL and the \
                    secret." }
            }
            p { a.button href=(PATH) { "Go to the program" } }
        }
    };
    Ok(Outcome::once(Page::new("Test of the processor", body).below(PATH, "Affiliate program").same_as(call)))
}

async fn connect_page(context: &Context<'_>) -> Result<View, Failure> {
    let Some(state) = if_found(load_program(context).await)? else {
        return Ok(set_up_first("Connect the payment processor"));
    };
    let form = connect_form();
    let body = maud! {
        section.card {
            @if state.processor.is_some() {
                (Notice { tone: Tone::Warning, text: "This replaces the secrets and the key: enter all of them, \
                    including unchanged ones." })
            }
            (event_address(&state.webhook_url))
            (form.within(context))
        }
    };
    let page = Page::new("Connect the payment processor", body).below(PATH, "Affiliate program");
    Ok(page.same_as(program_call()).into())
}

#[answer]
struct ProcessorEvent {
    id: String,
    #[serde(rename = "type")]
    kind: String,
    status: String,
    error: Option<String>,
    attempts: u32,
    received_at: Option<String>,
}

async fn events(context: &Context<'_>) -> Result<View, Failure> {
    let filters = [Filter::words("status", "Result", &["failed", "done", "ignored"])];
    let query = context.query();
    let call = Call::new("list_affiliate_processor_events").filters(query, &["status", "cursor"]);
    let Some(found) = &if_found(context.read_list::<ProcessorEvent>("data", &call).await)? else {
        return Ok(set_up_first("Events of the processor"));
    };
    let bar = FilterBar { context, filters: &filters };
    let may_replay = context.allows("replay_affiliate_processor_event");
    let table = Table::of("Events of the payment processor", &found.entries)
        .column("Event", |event| maud! { code { (event.kind) } br; span.small.soft { (event.id) } })
        .column("Result", |event| {
            maud! {
                (Badge::of(&event.status))
                @if let Some(error) = &event.error { p.small { (error) } }
            }
        })
        .number("Attempts", |event| event.attempts)
        .column("Received", |event| time_or_dash(event.received_at.as_deref()))
        .column("", |event| {
            let replay = row_button(context, "replay", "Replay", ("event", &event.id));
            maud! { @if may_replay && event.status == "failed" { (replay) } }
        });
    let empty = EmptyState {
        title: if bar.is_active() { "No matching events" } else { "No events yet" },
        text: "Paid invoices, refunds and disputes that the processor reports are listed here. An event that could \
            not be processed is kept, and can be replayed once the cause is fixed.",
        action: None,
    };
    let body = bar.with_list(found, &table, empty);
    let page = Page::new("Events of the processor", body)
        .below(PATH, "Affiliate program")
        .lead("Replaying an event that has already been processed changes nothing.");
    Ok(page.same_as(call).into())
}

async fn replay(context: &Context<'_>) -> Result<Outcome, Failure> {
    let call = Call::new("replay_affiliate_processor_event").id(context.form().get("event"));
    let event: ProcessorEvent = context.read_field("event", &call).await?;
    if event.status == "failed" {
        let reason = event.error.unwrap_or_default();
        return Err(Failure::new(409, "conflict", format!("The event {} failed again: {reason}", event.id)));
    }
    Ok(Outcome::done(context.request.target(), "booked"))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::dashboard::form::Empty;
    use crate::dashboard::request::Fields;

    #[test]
    fn the_events_are_those_of_the_guide() {
        let guide = include_str!("../../../../../docs/AFFILIATE.md");
        let (_, section) = guide.split_once("## Events of the payment processor").unwrap();
        let (list, _) = section.split_once("Each event's signature").unwrap();
        let words = list.split('`').skip(1).step_by(2);
        let named: BTreeSet<&str> = words.filter(|word| word.contains('.')).collect();
        assert_eq!(EVENT_TYPES.split(", ").collect::<BTreeSet<_>>(), named);
    }

    #[test]
    fn empty_fields_of_the_connection_are_left_out() {
        let fields = Fields::parse(b"webhook_secrets%5B0%5D=whsec_1&restricted_key=&account_id=acct_1&api_base=");
        assert_eq!(connect_form().read(&fields).unwrap(), serde_json::json!({"account_id": "acct_1"}));
        assert!(connect_form().fields.iter().all(|field| field.empty != Empty::Null));
    }
}
