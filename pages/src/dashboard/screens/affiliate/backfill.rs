//! Import of earlier payments from the processor, with its progress.

use super::program::load_program;
use super::{PATH, set_up_first};
use crate::dashboard::kit::progress::Progress;
use crate::dashboard::prelude::*;

const BACKFILL_PATH: &str = "/dashboard/affiliate/backfill";

pub const PAGES: &[PageRow] = page_rows! {
    "/affiliate/backfill" => new_page, reads ["get_affiliate_program", "begin_affiliate_backfill"], forms {
        "begin" => begin, calls "begin_affiliate_backfill";
    };
    "/affiliate/backfill/{id}" => detail, reads ["get_affiliate_backfill"];
};

/// A back-fill in the list.
#[answer]
struct ListedBackfill {
    id: String,
    status: String,
    since: Option<String>,
    invoices_seen: u64,
    lines_written: u64,
    created_at: Option<String>,
}

/// Earlier imports, newest first.
async fn earlier(context: &Context<'_>) -> Table {
    let call = Call::new("list_affiliate_backfills").query("limit", "10");
    let found = context.read_list_allowed::<ListedBackfill>("data", &call).await.unwrap_or_default();
    Table::of("Earlier imports", &found.entries)
        .column("Started", |backfill| {
            let path = format!("{BACKFILL_PATH}/{}", encode(&backfill.id));
            maud! { a href=(path) { (time_or_dash(backfill.created_at.as_deref())) } }
        })
        .column("State", |backfill| Badge::of(&backfill.status))
        .column("Payments since", |backfill| {
            maud! { @match backfill.since.as_deref() { Some(at) => { (time_or_dash(Some(at))) } None => "Everything" } }
        })
        .number("Invoices read", |backfill| grouped(backfill.invoices_seen))
        .number("Commissions written", |backfill| grouped(backfill.lines_written))
        .into()
}

#[answer]
struct Backfill {
    id: String,
    status: String,
    invoices_seen: u64,
    lines_written: u64,
    error: Option<String>,
}

fn form() -> Form<'static> {
    let fields = vec![
        Field::new("since", "Payments since", Control::DateTime)
            .help("In UTC. Leave empty for the processor's entire history."),
        Field::new("silent", "Send no notifications", Control::Checkbox)
            .value("true")
            .help("No webhook events and no partner emails are sent about imported payments."),
    ];
    Form::new("begin", "Import the payments", fields)
}

async fn new_page(context: &Context<'_>) -> Result<View, Failure> {
    let Some(state) = if_found(load_program(context).await)? else {
        return Ok(set_up_first("Import earlier payments"));
    };
    let has_key = state.processor.is_some_and(|processor| processor.has_key);
    let form = form();
    let earlier = earlier(context).await;
    let body = maud! {
        @if has_key {
            section.card {
                ul {
                    li { "Paid invoices, checkouts, subscriptions, refunds and disputes are read from the processor, \
                        oldest first." }
                    li { "Payments by referred customers become commissions, as if their events had arrived." }
                    li { "Nothing is recorded twice: importing the same period again changes nothing." }
                }
                (form.within(context))
            }
        } @else {
            div.empty {
                p.empty-title { "This requires an API key for the processor" }
                p { "The program only receives events. Connect the processor with a restricted key that may read \
                    customers, checkout sessions, subscriptions, invoices, charges and disputes." }
                p { a.button.primary href={ (PATH) "/processor" } { "Connect with a key" } }
            }
        }
        @if !earlier.is_empty() { section { h2 { "Earlier imports" } (earlier) } }
    };
    let page = Page::new("Import earlier payments", body)
        .below(PATH, "Affiliate program")
        .lead("Records payments made before the processor was connected.");
    Ok(page.same_as(Call::new("begin_affiliate_backfill")).into())
}

async fn begin(context: &Context<'_>) -> Result<Outcome, Failure> {
    let body = form().read(context.form())?;
    let backfill: Backfill = context.read_field("backfill", &Call::new("begin_affiliate_backfill").json(body)).await?;
    Ok(Outcome::done(format!("{BACKFILL_PATH}/{}", encode(&backfill.id)), "imported"))
}

async fn detail(context: &Context<'_>) -> Result<View, Failure> {
    let call = Call::new("get_affiliate_backfill").id(context.id());
    let backfill: Backfill = context.read_field("backfill", &call).await?;
    let is_ended = backfill.status != "running";
    let facts = Facts::new()
        .row("State", Badge::of(&backfill.status))
        .row("Invoices read", grouped(backfill.invoices_seen))
        .row("Commissions written", grouped(backfill.lines_written));
    let body = maud! {
        div data-fragment="progress" {
            section.card {
                (Progress { label: "Invoices read", done: backfill.invoices_seen, total: None, is_ended })
                (facts)
            }
            @if let Some(error) = &backfill.error {
                (Notice { tone: Tone::Bad, text: error })
                p {
                    "Objects that could not be processed are among the "
                    a href={ (PATH) "/processor/events?status=failed" } { "failed events" }
                    " and can be replayed. "
                    @if context.allows("begin_affiliate_backfill") {
                        "Otherwise " a href=(BACKFILL_PATH) { "import again" } ": it continues where nothing is written yet."
                    }
                }
            }
        }
        p {
            @if is_ended { a.button href={ (PATH) "/commissions" } { "Go to the commissions" } }
            @else { a.button href={ (BACKFILL_PATH) "/" (encode(&backfill.id)) } { "Refresh" } }
        }
    };
    let page = Page::new("Import of earlier payments", body).below(PATH, "Affiliate program").live();
    Ok(page.same_as(call).into())
}
