//! A command on all queued mail that matches a filter: first what will be hit, then the button.

use hypertext::{maud_borrow, prelude::*};
use serde::Deserialize;

use super::commands;
use super::mail::{LIST, QueuedMail, RecipientTable};
use super::queue::counted;
use super::selection::{MailSelection, selection_query};
use crate::dashboard::backend::{Call, Failure};
use crate::dashboard::context::Context;
use crate::dashboard::form::{Control, Field, Form};
use crate::dashboard::page::Page;
use crate::dashboard::table::{FormRow, Outcome, PageAccess, PageRow, View};

pub const PAGES: &[PageRow] = &[PageRow {
    path: "/mail/{order}",
    access: PageAccess::SignedIn,
    reads: &["queue_list", "queue_count"],
    show: |context| Box::pin(show(context)),
    forms: &[FormRow { name: "apply", operation: "queue_many", submit: |context| Box::pin(apply(context)) }],
}];

/// Recipients shown before the command.
const SAMPLE: u64 = 10;
/// The word to enter before a delivery is ended, and its field.
const CONFIRM: &str = "confirm";
const CONFIRMATION: &str = "confirm";

/// The field that confirms the end of a delivery.
pub(super) fn confirmation_field() -> Field {
    Field::text(CONFIRMATION, "Confirmation").required().ignored().help("Enter “confirm”.")
}

/// Checks that field.
///
/// # Errors
/// It has another word.
pub(super) fn check_confirmation(context: &Context<'_>) -> Result<(), Failure> {
    if context.form().get(CONFIRMATION).trim() == CONFIRM {
        return Ok(());
    }
    Err(Failure::field(CONFIRMATION, "Enter the word “confirm”"))
}

/// A command of the queue in words.
pub(super) struct QueueOrder {
    pub(super) word: &'static str,
    pub(super) title: &'static str,
    pub(super) effect: &'static str,
    pub(super) button: &'static str,
}

pub(super) const ORDERS: &[QueueOrder] = &[
    QueueOrder {
        word: "retry",
        title: "Retry now",
        effect: "They are attempted now, whatever their schedule. Held mail is released.",
        button: "Retry now",
    },
    QueueOrder {
        word: "hold",
        title: "Hold",
        effect: "They are not attempted until they are released. They still expire.",
        button: "Hold",
    },
    QueueOrder {
        word: "release",
        title: "Release",
        effect: "Held mail is attempted again when it is due. Mail of suspended accounts stays held.",
        button: "Release",
    },
    QueueOrder { word: "reroute", title: "Reroute", effect: "Their next attempts take this route.", button: "Reroute" },
    QueueOrder {
        word: "fail",
        title: "Return to the senders",
        effect: "They are not delivered: their recipients become failed, and the senders get a bounce message. This cannot be taken back.",
        button: "Return",
    },
    QueueOrder {
        word: "drop",
        title: "Remove from the queue",
        effect: "They are not delivered: their recipients become canceled, and the accounts get an event. Senders get no bounce message. This cannot be taken back.",
        button: "Remove",
    },
];

/// The route of `reroute`.
pub(super) fn route_fields() -> Vec<Field> {
    let routes =
        [("usual", "The configured route"), ("mx", "The mail hosts of the domain"), ("smarthost", "A smarthost")];
    let choices = routes.map(|(value, label)| (value.to_owned(), label.to_owned())).to_vec();
    vec![
        Field::new("route", "Route", Control::Radio(choices)).value("usual").ignored(),
        Field::text("smarthost", "Name of the smarthost")
            .ignored()
            .help("From [[delivery.smarthosts]] in the configuration; only for a smarthost."),
    ]
}

/// The command with its route, as a request writes it.
///
/// # Errors
/// A smarthost has no name, or the name cannot be one.
pub(super) fn order_word(context: &Context<'_>, word: &str) -> Result<String, Failure> {
    if word != "reroute" {
        return Ok(word.to_owned());
    }
    match context.form().get("route") {
        "mx" => Ok("reroute mx".to_owned()),
        "smarthost" => Ok(format!("reroute by {}", smarthost_name(context)?)),
        _ => Ok("reroute usual".to_owned()),
    }
}

/// The name in the field `smarthost`.
pub(super) fn smarthost_name<'c>(context: &'c Context<'_>) -> Result<&'c str, Failure> {
    let name = context.form().get("smarthost").trim();
    let is_name = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b".-_".contains(&byte);
    if !name.is_empty() && name.bytes().all(is_name) {
        return Ok(name);
    }
    Err(Failure::field("smarthost", "Enter the name of a smarthost of the configuration"))
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct MailCount {
    /// `None` if the queue is too long to be counted.
    recipients: Option<u64>,
}

fn order(context: &Context<'_>) -> Result<&'static QueueOrder, Failure> {
    let word = context.parameter("order");
    ORDERS.iter().find(|order| order.word == word).ok_or_else(Failure::not_found)
}

fn form(order: &'static QueueOrder) -> Form<'static> {
    match order.word {
        "reroute" => Form::new("apply", order.button, route_fields()),
        "drop" | "fail" => Form::new("apply", order.button, vec![confirmation_field()]).danger(),
        _ => Form::new("apply", order.button, Vec::new()),
    }
}

async fn show(context: &Context<'_>) -> Result<View, Failure> {
    let order = order(context)?;
    let selection = MailSelection::read_for_commands(context.query())?;
    let (sample, count): (QueuedMail, MailCount) =
        (context.read(&selection.list(SAMPLE, "")).await?, context.read(&selection.count()).await?);
    let number = match count.recipients {
        Some(count) => counted(count, "recipient"),
        None => "More recipients than can be counted in 10 seconds".to_owned(),
    };
    let (form, words, shown) = (form(order), selection.words(), sample.tasks.len() as u64);
    let is_empty = sample.tasks.is_empty() && order.word != "release";
    let body = maud_borrow! {
        div.card {
            p { strong { (number) } @if selection.is_everything() { ": everything in the queue" } @else { ": " (words) } "." }
            p.soft { (order.effect) }
            @if order.word == "release" && selection.is_everything() {
                p.soft { "If the whole queue is held since a restore, that hold is lifted first." }
            }
            @if is_empty { p.soft { "Nothing matches at the moment." } }
            (form.within(context))
        }
        @if shown > 0 {
            section {
                h2 { @if count.recipients == Some(shown) { "These" } @else { "The first " (shown) } }
                (RecipientTable(&sample.tasks))
            }
        }
    };
    let query = selection_query(context.query());
    let back = if query.is_empty() { LIST.to_owned() } else { format!("{LIST}?{query}") };
    let shown_order = if order.word == "reroute" { "reroute usual" } else { order.word };
    let page = Page::new(order.title, body).below(back, "Queued mail").same_as(selection.command(shown_order));
    Ok(page.into())
}

async fn apply(context: &Context<'_>) -> Result<Outcome, Failure> {
    let order = order(context)?;
    if matches!(order.word, "drop" | "fail") {
        check_confirmation(context)?;
    }
    let selection = MailSelection::read_for_commands(context.query())?;
    let call: Call = selection.command(&order_word(context, order.word)?);
    commands::start(context, &call).await
}
