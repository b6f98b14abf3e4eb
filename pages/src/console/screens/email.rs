//! One email: what it waits for and why, its attempts, its events, and the commands on it.

use super::mail_change::{RouteChoice, check_confirmation, confirmation_field, order_word, route_fields};
use crate::console::PATH;
use crate::dashboard::kit::code::transcript_view;
use crate::dashboard::prelude::*;

const LIST: &str = "/console/emails";

pub const PAGES: &[PageRow] = page_rows! {
    "/emails/{id}" => show, reads ["trace"], forms {
        "retry" => change("retry", "retried"), calls "queue";
        "hold" => change("hold", "held"), calls "queue";
        "release" => change("release", "released"), calls "queue";
    };
    "/emails/{id}/fail" => show_end(&FAIL), reads ["trace"], forms {
        "fail" => end_email(&FAIL), calls "queue";
    };
    "/emails/{id}/drop" => show_end(&DROP), reads ["trace"], forms {
        "drop" => end_email(&DROP), calls "queue";
    };
    "/emails/{id}/reroute" => show_reroute, reads ["trace"], forms {
        "reroute" => change("reroute", "rerouted"), calls "queue";
    };
};

#[answer]
struct Trace {
    id: String,
    account: String,
    #[serde(rename = "door")]
    ingress: Option<String>,
    from: String,
    subject: Option<String>,
    size_bytes: u64,
    created_at: Option<String>,
    status: String,
    recipients: Vec<TracedRecipient>,
    events: Vec<TracedEvent>,
    attempts: Vec<TracedAttempt>,
    waiting: Vec<RecipientWait>,
}

#[answer]
struct TracedRecipient {
    index: u64,
    email: String,
    status: String,
    attempts: u64,
    last_response: Option<String>,
    error: Option<String>,
    next_attempt_at: Option<String>,
}

#[answer]
struct TracedEvent {
    #[serde(rename = "type")]
    kind: String,
    means: Option<String>,
    recipient: Option<String>,
    at: Option<String>,
    detail: Value,
}

#[answer]
struct TracedAttempt {
    recipient: Value,
    n: u64,
    created_at: Option<String>,
    duration_ms: u64,
    phase: String,
    mx_host: Option<String>,
    ip: Option<String>,
    source: Value,
    tls: Option<TracedTls>,
    response: Option<String>,
    error: Option<String>,
    transcript: Option<String>,
    next_attempt_at: Option<String>,
}

#[answer]
struct TracedTls {
    version: Option<String>,
    cipher: Option<String>,
}

#[answer]
struct RecipientWait {
    recipient: u64,
    /// The cause in words.
    #[serde(rename = "for")]
    reason: String,
    destination: Option<String>,
    place: Option<u64>,
    until: Option<String>,
    destination_error: Option<String>,
}

fn trace_call(context: &Context<'_>) -> Call {
    Call::new("trace").json(json!({"email": context.id()}))
}

async fn read_trace(context: &Context<'_>) -> Result<Trace, Failure> {
    context.read(&trace_call(context)).await
}

fn path(id: &str) -> String {
    format!("{LIST}/{}", encode(id))
}

impl Trace {
    fn address(&self, index: u64) -> &str {
        self.recipients.iter().find(|recipient| recipient.index == index).map_or("", |recipient| &recipient.email)
    }

    fn title(&self) -> &str {
        self.subject.as_deref().filter(|subject| !subject.trim().is_empty()).unwrap_or("No subject")
    }

    fn facts(&self) -> Facts {
        let account = format!("{PATH}/accounts/{}", encode(&self.account));
        Facts::new()
            .row("State", Badge::of(&self.status))
            .row("From", &self.from)
            .row("Account", maud_borrow! { a href=(account) { (self.account) } })
            .row("Accepted", time_or_dash(self.created_at.as_deref()))
            .optional("By", self.ingress.as_deref().map(sentence_case))
            .row("Size", file_size(self.size_bytes))
    }
}

async fn show(context: &Context<'_>) -> Result<View, Failure> {
    let trace = read_trace(context).await?;
    let own = path(&trace.id);
    let forms = [("retry", "Retry now"), ("hold", "Hold"), ("release", "Release")]
        .map(|(name, label)| Form::new(name, label, Vec::new()).secondary());
    let body = maud_borrow! {
        div.sections {
            div.card { (trace.facts()) }
            @if !trace.waiting.is_empty() { (wait_reasons(&trace)) }
            (recipient_states(&trace))
            (attempt_list(&trace))
            (event_table(&trace.events))
        }
    };
    let actions = maud_borrow! {
        @if !trace.waiting.is_empty() {
            div.tools {
                @for form in &forms { (form.within(context)) }
                a.button href={ (own) "/reroute" } { "Reroute…" }
                a.button href={ (own) "/fail" } { "End delivery…" }
                a.button href={ (own) "/drop" } { "Remove…" }
            }
        }
    };
    let page = Page::new(trace.title(), body).below(LIST, "All emails").lead(&trace.id).actions(actions);
    Ok(page.same_as(trace_call(context)).into())
}

/// The cause for which unfinished recipients wait.
fn wait_reasons(trace: &Trace) -> impl Renderable {
    maud! {
        section {
            h2 { "Why it has not arrived yet" }
            @for wait in &trace.waiting {
                div.card.standing {
                    div.standing-head { h3 { (trace.address(wait.recipient)) } }
                    p { "Waits for: " (wait.reason) "." }
                    @if let Some(until) = &wait.until { p.soft.small { "Next step: " (time_or_dash(Some(until))) } }
                    @if let Some(destination) = &wait.destination { p.soft.small { "Destination: " (destination) } }
                    @if let Some(place) = wait.place { p.soft.small { "Ahead of it: " (counted(place, "recipient")) } }
                    @if let Some(error) = &wait.destination_error { p.said { q { (error) } } }
                }
            }
        }
    }
}

fn recipient_states(trace: &Trace) -> impl Renderable {
    let table = Table::of("Recipients", &trace.recipients)
        .column("Recipient", |recipient| address_cell(&recipient.email))
        .column("State", |recipient| Badge::of(&recipient.status))
        .number("Attempts", |recipient| grouped(recipient.attempts))
        .column("Last response", |recipient| {
            recipient.error.as_deref().or(recipient.last_response.as_deref()).unwrap_or("–")
        })
        .column("Next attempt", |recipient| time_or_dash(recipient.next_attempt_at.as_deref()));
    maud! { section { h2 { "Recipients" } (table) } }
}

/// The attempts, newest first.
fn attempt_list(trace: &Trace) -> impl Renderable {
    maud! {
        section {
            h2 { "Attempts" }
            @if trace.attempts.is_empty() { p.soft { "No delivery has been attempted." } }
            @for attempt in trace.attempts.iter().rev() { (attempt_view(trace, attempt)) }
        }
    }
}

fn attempt_view(trace: &Trace, attempt: &TracedAttempt) -> impl Renderable {
    let response = attempt.response.as_deref().or(attempt.error.as_deref()).unwrap_or_default();
    let badge = match response.as_bytes().first() {
        Some(b'2') if attempt.response.is_some() => Badge::new("Accepted", Tone::Good),
        _ if attempt.next_attempt_at.is_some() => Badge::new("Deferred", Tone::Warning),
        _ => Badge::new("Refused", Tone::Bad),
    };
    let who = attempt.recipient.as_u64().map_or("", |index| trace.address(index));
    let tls = attempt.tls.as_ref().map(|tls| {
        [tls.version.as_deref(), tls.cipher.as_deref()].into_iter().flatten().collect::<Vec<_>>().join(", ")
    });
    let facts = Facts::new()
        .optional("Mail host", attempt.mx_host.as_deref())
        .optional("Address of the host", attempt.ip.as_deref())
        .optional("Source", attempt.source.as_str())
        .row("Reached", sentence_case(&attempt.phase))
        .optional("TLS", tls)
        .optional("Next attempt", attempt.next_attempt_at.as_deref().map(|at| time_or_dash(Some(at))));
    maud! {
        details.card.attempt {
            summary {
                (badge)
                span.attempt-who { (who) }
                span.small.soft { "Attempt " (attempt.n) ", " (time_or_dash(attempt.created_at.as_deref())) ", " (attempt.duration_ms) " ms" }
            }
            @if !response.is_empty() { p { (response) } }
            (facts)
            @match attempt.transcript.as_deref().filter(|transcript| !transcript.is_empty()) {
                Some(transcript) => { (transcript_view(transcript)) }
                None => { p.soft { "There was no SMTP conversation." } }
            }
        }
    }
}

fn event_table(events: &[TracedEvent]) -> impl Renderable {
    let table = Table::of("Events", events)
        .column("Event", |event| maud! { code { (event.kind) } })
        .column("Recipient", |event| event.recipient.as_deref().unwrap_or("–"))
        .column("Detail", |event| {
            let detail =
                event.means.iter().cloned().chain(detail_words(&event.detail, "")).collect::<Vec<_>>().join("; ");
            maud! { span.small { (detail) } }
        })
        .column("Time", |event| time_or_dash(event.at.as_deref()));
    maud! { section { h2 { "Events" } (table) } }
}

/// The fields of an event's detail, in words.
fn detail_words(detail: &Value, name: &str) -> Vec<String> {
    let named =
        |text: &str| if name.is_empty() { text.to_owned() } else { format!("{}: {text}", name.replace('_', " ")) };
    match detail {
        Value::Null => Vec::new(),
        Value::Object(fields) => fields.iter().flat_map(|(name, value)| detail_words(value, name)).collect(),
        Value::Array(values) => values.iter().flat_map(|value| detail_words(value, name)).collect(),
        Value::String(text) => vec![named(text)],
        other => vec![named(&other.to_string())],
    }
}

async fn change(context: &Context<'_>, word: &str, done: &str) -> Result<Outcome, Failure> {
    let order = order_word(context, word)?;
    context.act(&queue_call(context, &order), path(context.id()), done).await
}

fn queue_call(context: &Context<'_>, order: &str) -> Call {
    Call::new("queue").json(json!({"order": order, "email": context.id()}))
}

/// A command that ends the delivery of an email.
struct EndOrder {
    word: &'static str,
    title: &'static str,
    button: &'static str,
    effect: &'static str,
    /// A code of the console's notices.
    done: &'static str,
}

const DROP: EndOrder = EndOrder {
    word: "drop",
    title: "Remove from the queue",
    button: "Remove",
    effect: "The waiting recipients become cancelled, and the account gets the event email.cancelled. Nobody gets a \
        bounce message. This cannot be undone.",
    done: "dropped",
};
const FAIL: EndOrder = EndOrder {
    word: "fail",
    title: "End delivery",
    button: "End delivery",
    effect: "The waiting recipients become failed, and the account gets the event email.failed. If the email came by \
        SMTP, its return path also gets a bounce message, unless its sender asked for none. This cannot be undone.",
    done: "failed",
};

async fn show_end(context: &Context<'_>, order: &'static EndOrder) -> Result<View, Failure> {
    let trace = read_trace(context).await?;
    let form = Form::new(order.word, order.button, vec![confirmation_field()]).danger();
    let body = maud_borrow! { div.card { p { (order.effect) } (form.within(context)) } };
    let page = Page::new(order.title, body).below(LIST, "All emails").below(path(&trace.id), trace.title());
    Ok(page.same_as(queue_call(context, order.word)).into())
}

async fn end_email(context: &Context<'_>, order: &'static EndOrder) -> Result<Outcome, Failure> {
    check_confirmation(context)?;
    change(context, order.word, order.done).await
}

async fn show_reroute(context: &Context<'_>) -> Result<View, Failure> {
    let trace = read_trace(context).await?;
    let form = Form::new("reroute", "Reroute", route_fields(&RouteChoice::default()));
    let body = maud_borrow! { div.card { (form.within(context)) } };
    let page = Page::new("Reroute", body).below(LIST, "All emails").below(path(&trace.id), trace.title());
    Ok(page.same_as(queue_call(context, "reroute usual")).into())
}
