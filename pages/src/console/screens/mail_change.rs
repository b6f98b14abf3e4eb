//! A command on all queued mail that matches a filter: first what will be hit, then the button.

use jiff::Timestamp;

use super::commands;
use super::mail::{LIST, QueuedMail, recipient_table};
use super::selection::{MailSelection, selection_query};
use crate::dashboard::kit::time::Time;
use crate::dashboard::prelude::*;

pub const PAGES: &[PageRow] = page_rows! {
    "/mail/{order}" => show, reads ["queue_list", "queue_count"], forms {
        "apply" => apply, calls "queue_many";
    };
};

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
        effect: "They are attempted now, regardless of their schedule. Held mail is released.",
        button: "Retry now",
    },
    QueueOrder {
        word: "hold",
        title: "Hold",
        effect: "They are not attempted until they are released. Meanwhile, only mail that was sent with a time limit \
            (expires_in, BY) expires.",
        button: "Hold",
    },
    QueueOrder {
        word: "release",
        title: "Release",
        effect: "Held mail is attempted again when it is due. Mail from suspended accounts stays held.",
        button: "Release",
    },
    QueueOrder { word: "reroute", title: "Reroute", effect: "Their next attempts take this route.", button: "Reroute" },
    QueueOrder {
        word: "fail",
        title: "End delivery",
        effect: "Nothing is delivered to them: they become failed, and the accounts get the event email.failed. For \
            mail that came by SMTP, the return path also gets a bounce message, unless the sender asked for none. \
            This cannot be undone.",
        button: "End delivery",
    },
    QueueOrder {
        word: "drop",
        title: "Remove from the queue",
        effect: "Nothing is delivered to them: they become cancelled, and the accounts get the event email.cancelled. \
            Nobody gets a bounce message. This cannot be undone.",
        button: "Remove",
    },
];

/// A route as a form has it.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) enum RouteChoice {
    #[default]
    Usual,
    MailHosts,
    Smarthost(String),
}

impl RouteChoice {
    /// Reads the words of an override: `mx`, or `smarthost NAME`.
    pub(super) fn of_override(words: Option<&str>) -> Self {
        match words {
            Some("mx") => Self::MailHosts,
            Some(words) => {
                words.strip_prefix("smarthost ").map_or(Self::Usual, |name| Self::Smarthost(name.to_owned()))
            }
            None => Self::Usual,
        }
    }
}

/// The fields of a route, with a choice made before.
pub(super) fn route_fields(chosen: &RouteChoice) -> Vec<Field> {
    let routes = [("usual", "The configured route"), ("mx", "The domain's mail hosts"), ("smarthost", "A smarthost")];
    let choices = choices(&routes);
    let (route, name) = match chosen {
        RouteChoice::Usual => ("usual", ""),
        RouteChoice::MailHosts => ("mx", ""),
        RouteChoice::Smarthost(name) => ("smarthost", name.as_str()),
    };
    vec![
        Field::new("route", "Route", Control::Radio(choices)).value(route).ignored(),
        Field::text("smarthost", "Name of the smarthost")
            .value(name)
            .ignored()
            .help("As in [[delivery.smarthosts]] in the configuration; only if you choose a smarthost."),
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
    Err(Failure::field("smarthost", "Enter the name of a configured smarthost"))
}

#[answer]
struct MailCount {
    /// `None` if counting took too long.
    recipients: Option<u64>,
    /// The queue is longer than what was counted.
    has_more: bool,
}

impl MailCount {
    /// The number that is known to be exact.
    fn exact(&self) -> Option<u64> {
        self.recipients.filter(|_| !self.has_more)
    }

    fn words(&self) -> String {
        match self.recipients {
            None => "An unknown number of recipients: counting them takes too long".to_owned(),
            Some(count) if self.has_more => {
                format!("At least {}: the queue is longer than what is counted here", counted(count, "recipient"))
            }
            Some(count) => counted(count, "recipient"),
        }
    }
}

/// The hidden field with the time at which the page was made: mail that arrives later is left alone, unless the command
/// [applies to all mail](applies_to_all).
const SHOWN_AT: &str = "shown_at";

/// The time at which the page of a form was made, as the server wrote it.
fn shown_at(context: &Context<'_>) -> Result<Timestamp, Failure> {
    let shown_at = context.form().get(SHOWN_AT).parse::<Timestamp>().ok().filter(|at| *at <= context.now());
    let message = "The form does not say when its page was shown; reload the page";
    shown_at.ok_or_else(|| Failure::new(400, "validation_error", message))
}

fn order(context: &Context<'_>) -> Result<&'static QueueOrder, Failure> {
    let word = context.parameter("order");
    ORDERS.iter().find(|order| order.word == word).ok_or_else(Failure::not_found)
}

fn form(order: &'static QueueOrder, now: Timestamp) -> Form<'static> {
    let mut form = match order.word {
        "reroute" => Form::new("apply", order.button, route_fields(&RouteChoice::default())),
        "drop" | "fail" => Form::new("apply", order.button, vec![confirmation_field()]).danger(),
        _ => Form::new("apply", order.button, Vec::new()),
    };
    form.fields.push(Field::hidden(SHOWN_AT, now.to_string()).ignored());
    form
}

/// True for the release of the whole queue. It lifts the hold that a restore set, which no time can restrict: the hold
/// is one of all mail.
fn applies_to_all(order: &QueueOrder, selection: &MailSelection) -> bool {
    order.word == "release" && selection.is_everything()
}

async fn show(context: &Context<'_>) -> Result<View, Failure> {
    let order = order(context)?;
    let selection = MailSelection::read_for_commands(context.query())?;
    // Before the queue is read: what is not shown must not be hit.
    let now = context.now();
    let (sample, count): (QueuedMail, MailCount) =
        (context.read(&selection.list(SAMPLE, "")).await?, context.read(&selection.count()).await?);
    let (form, words, shown) = (form(order, now), selection.words(), sample.tasks.len() as u64);
    let is_empty = sample.tasks.is_empty() && order.word != "release";
    let applies_to_all = applies_to_all(order, &selection);
    let body = maud_borrow! {
        div.card {
            p { strong { (count.words()) } @if selection.is_everything() { ": everything in the queue" } @else { ": " (words) } "." }
            p.soft { (order.effect) }
            @if applies_to_all {
                p.soft { "If the whole queue has been held since a restore, that hold is lifted for all mail. Mail \
                    that you held yourself stays held until you release it." }
            } @else {
                p.soft { "Mail that arrives after this page was made (" (Time(now)) ") is left alone." }
            }
            @if is_empty { p.soft { "Nothing matches at the moment." } }
            (form.within(context))
        }
        @if shown > 0 {
            section {
                h2 { @if count.exact() == Some(shown) { "These" } @else { "The first " (shown) } }
                (recipient_table(&sample.tasks))
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
    let (word, shown_at) = (order_word(context, order.word)?, shown_at(context)?);
    let call = match applies_to_all(order, &selection) {
        true => selection.command(&word),
        false => selection.command_before(&word, shown_at),
    };
    commands::start(context, &call).await
}
