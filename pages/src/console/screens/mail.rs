//! Queued mail: the recipients that wait, with filters, and the commands on all that match.

use super::queue::hold_notice;
use super::selection::{MailSelection, filters, is_filtered, selection_query};
use super::server_status::QueueHold;
use crate::console::PATH;
use crate::dashboard::kit::filter::{or_refused, refused_filter};
use crate::dashboard::prelude::*;

pub(super) const LIST: &str = "/console/mail";

pub const PAGES: &[PageRow] = page_rows! {
    "/mail" => show, reads ["queue_list"];
};

/// Recipients on a page.
const PAGE_SIZE: u64 = 50;

/// A page of queued recipients.
#[answer]
pub(super) struct QueuedMail {
    hold: Option<QueueHold>,
    pub(super) tasks: Vec<QueuedRecipient>,
    has_more: bool,
    next_cursor: Option<String>,
    tasks_read: u64,
    /// Rows that cannot be read.
    damaged: u64,
}

/// A recipient in the queue.
#[answer]
pub(super) struct QueuedRecipient {
    email: String,
    recipient: String,
    account: String,
    class: String,
    due: Option<String>,
    attempts: u64,
    held_by: Option<String>,
    #[serde(rename = "way")]
    route: Option<String>,
}

impl QueuedRecipient {
    fn state(&self) -> Badge {
        match self.held_by.as_deref() {
            Some("operator") => Badge::new("Held", Tone::Warning),
            Some("account_suspended") => Badge::new("Account suspended", Tone::Warning),
            Some("queue_held") => Badge::new("Queue held", Tone::Warning),
            Some(other) => Badge::new(sentence_case(other), Tone::Warning),
            None if self.attempts > 0 => Badge::new("Retry", Tone::Active),
            None => Badge::new("Ready", Tone::Neutral),
        }
    }
}

pub(super) fn recipient_table(recipients: &[QueuedRecipient]) -> impl Renderable {
    let columns = ["Recipient", "State", "Attempts", "Next", "Class", "Email and account"];
    Table::new("Queued recipients", &columns).numbers(&["Attempts"]).rows(recipients, |task| {
        let route = task.route.as_deref();
        let (email, account) = (&task.email, &task.account);
        Row::new()
            .cell(maud! {
                (address_cell(&task.recipient))
                @if let Some(route) = route { span.where-mail { "Route: " (route) } }
            })
            .cell(task.state())
            .cell(grouped(task.attempts))
            .cell(time_or_dash(task.due.as_deref()))
            .cell(maud! { span.nowrap { (sentence_case(&task.class)) } })
            .cell(maud! {
                a href={ (PATH) "/emails/" (encode(email)) } { (email) }
                span.where-mail { a href={ (PATH) "/accounts/" (encode(account)) } { (account) } }
            })
    })
}

async fn show(context: &Context<'_>) -> Result<View, Failure> {
    let query = context.query();
    let (selection, mut refused) = match MailSelection::read(query) {
        Ok(selection) => (Some(selection), None),
        Err(failure) => (None, Some(failure)),
    };
    let mut list = QueuedMail::default();
    let mut page_call = None;
    if let Some(selection) = &selection {
        let call = selection.list(PAGE_SIZE, query.get("cursor"));
        (list, refused) = or_refused(context.read(&call).await)?;
        page_call = Some(call);
    }
    let bar = FilterBar { context, filters: &filters() };
    let selected = selection_query(query);
    let may_command = selection.as_ref().is_some_and(MailSelection::is_for_commands);
    let body = maud_borrow! {
        (bar)
        div data-fragment="list" {
            (hold_notice(list.hold.as_ref()))
            @if let Some(refused) = &refused { (refused_filter(refused)) }
            @if list.damaged > 0 {
                div.notice.bad role="alert" { p { "Damaged rows of the queue: " (grouped(list.damaged)) ". " a href="/console/server" { "Check the store" } } }
            }
            @if refused.is_none() {
                @if list.tasks.is_empty() {
                    (empty_mail_list(is_filtered(query), list.tasks_read, list.has_more))
                } @else {
                    (mail_commands(&selected, may_command))
                    (recipient_table(&list.tasks))
                }
                (Pager { context, next_cursor: list.next_cursor.as_deref() })
            }
        }
    };
    let page = Page::new("Queued mail", body);
    Ok(match page_call {
        Some(call) => page.same_as(call),
        None => page,
    }
    .into())
}

fn empty_mail_list(is_filtered: bool, read: u64, has_more: bool) -> impl Renderable {
    let (title, text) = match (has_more, is_filtered) {
        (true, _) => ("Nothing found yet", format!("Recipients read: {}. Continue on the next page.", grouped(read))),
        (false, true) => ("Nothing in the queue matches", "Finished emails are under All emails.".to_owned()),
        (false, false) => ("The queue is empty", "Recipients waiting for delivery are listed here.".to_owned()),
    };
    maud! { (EmptyState { title, text: &text, action: None }) }
}

/// Links to the commands on all that match.
fn mail_commands(query: &str, may_command: bool) -> impl Renderable {
    let link = move |order: &str| {
        if query.is_empty() { format!("{LIST}/{order}") } else { format!("{LIST}/{order}?{query}") }
    };
    maud! {
        @if may_command {
            div.tools role="group" aria-label="All that match" {
                span.soft.small { "All that match:" }
                a.button href=(link("retry")) { "Retry now…" }
                a.button href=(link("hold")) { "Hold…" }
                a.button href=(link("release")) { "Release…" }
                a.button href=(link("reroute")) { "Reroute…" }
                a.button href=(link("fail")) { "End delivery…" }
                a.button href=(link("drop")) { "Remove…" }
            }
        } @else {
            p.help { "Commands on many emails can select by domain, account, class, age and state. To change a single \
                email, open it." }
        }
    }
}
