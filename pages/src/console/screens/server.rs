//! This server: listeners, nodes, store, certificate.

use super::commands;
use super::server_status::{ServerStatus, StoreHealth};
use crate::dashboard::prelude::*;

pub const PAGES: &[PageRow] = page_rows! {
    "/server" => show, reads ["status"], forms {
        "check" => check_store, calls "store_check";
    };
};

/// The state of the ACME certificate.
#[answer]
struct Certificate {
    names: Vec<String>,
    expires_at: Option<String>,
    renews_at: Option<String>,
    tries_again_at: Option<String>,
    last_failure: Option<String>,
}

async fn show(context: &Context<'_>) -> Result<View, Failure> {
    let status = ServerStatus::read(context).await?;
    let call = Call::new("certificate_show");
    let is_acme = status.certificate.as_ref().is_some_and(|certificate| certificate.source == "acme");
    let certificate: Option<Certificate> = if is_acme { context.read(&call).await.ok() } else { None };
    let check = Form::new("check", "Check the store", Vec::new()).secondary();
    let body = maud_borrow! {
        div.sections {
            section { h2 { "Server" } div.card { (facts(&status)) } }
            section { h2 { "Listeners" } (listener_table(&status)) }
            section {
                div.section-head { h2 { "Store" } }
                div.card {
                    (store_facts(&status.store))
                    p.help { "A check reads every row and every message and compares checksums. Delivery continues." }
                    (check.within(context))
                }
            }
            section { h2 { "Certificate" } div.card { (certificate_view(&status, certificate.as_ref())) } }
            section { h2 { "Nodes" } (node_table(&status)) }
        }
    };
    let page = Page::new("Server", body).lead(&status.hostname).same_as(ServerStatus::call());
    let page = if is_acme { page.same_as(call) } else { page };
    Ok(page.same_as(Call::new("store_check")).into())
}

async fn check_store(context: &Context<'_>) -> Result<Outcome, Failure> {
    commands::start(context, &Call::new("store_check")).await
}

fn facts(status: &ServerStatus) -> Facts {
    let dns = match &status.dns.error {
        Some(error) => error.clone(),
        None if status.dns.answers => format!("Responds in {} ms", status.dns.took_ms),
        None => "No response".to_owned(),
    };
    let disk = status.disk.as_ref();
    let delivery = status.queue.as_ref().map(|queue| match (&queue.hold, queue.paused) {
        (Some(_), _) => Badge::new("Queue held", Tone::Warning),
        (None, true) => Badge::new("Paused by the configuration", Tone::Warning),
        (None, false) => Badge::new("Running", Tone::Good),
    });
    Facts::new()
        .row("Host name", &status.hostname)
        .row("Version", &status.version)
        .optional("Delivery", delivery)
        .row("DNS", dns)
        .optional("Disk", disk.map(|disk| format!("{} of {} free", file_size(disk.free_bytes), file_size(disk.bytes))))
        .row("Received in the last hour", grouped(status.last_hour.received))
}

fn store_facts(store: &StoreHealth) -> Facts {
    let (label, tone) = match store.state.as_str() {
        "healthy" => ("Healthy", Tone::Good),
        "full" => ("The disk is full: mail is refused", Tone::Bad),
        "away" => ("The database is not responding", Tone::Bad),
        "fenced" => ("Stopped after a disk failure", Tone::Bad),
        other => (other, Tone::Neutral),
    };
    Facts::new()
        .row("State", Badge::new(label, tone))
        .optional("Reason", store.reason.as_deref())
        .row("Commits since startup", grouped(store.commits))
        .row("Messages", format!("{} in {}", grouped(store.live_bodies), file_size(store.live_body_bytes)))
        .row("Log", file_size(store.log_bytes))
        .row("Index", file_size(store.index_bytes))
        .row("Rows for the next checkpoint", grouped(store.pending_rows))
        .row("Last checkpoint", format!("{} ms", store.last_checkpoint_us / 1_000))
}

fn listener_table(status: &ServerStatus) -> impl Renderable {
    let table = Table::of("Listeners", &status.listeners)
        .column("Listener", |listener| &listener.name)
        .column("Address", |listener| &listener.address)
        .column("State", |listener| {
            if listener.open { Badge::new("Open", Tone::Good) } else { Badge::new("Not open", Tone::Bad) }
        });
    maud! { @if table.is_empty() { p.card.calm { "The configuration has no fixed ports." } } @else { (table) } }
}

fn node_table(status: &ServerStatus) -> impl Renderable {
    let table = Table::of("Nodes", status.members.iter().flatten())
        .column("Node", |node| &node.name)
        .number("Partitions", |node| grouped(node.partitions))
        .column("Started", |node| time_or_dash(Some(node.started_at.as_str())));
    maud! {
        @if table.is_empty() { p.card.calm { "Only this node: " (status.partitions) " of 64 partitions." } } @else { (table) }
    }
}

fn certificate_view(status: &ServerStatus, acme: Option<&Certificate>) -> Fragment {
    let Some(installed) = &status.certificate else {
        return Fragment::new(maud! { p.soft { "None configured." } });
    };
    let source = if installed.source == "acme" { "ACME" } else { "Files" };
    let mut facts =
        Facts::new().row("Source", source).row("Valid until", time_or_dash(installed.expires_at.as_deref()));
    if let Some(acme) = acme {
        facts = facts
            .optional("Names", (!acme.names.is_empty()).then(|| acme.names.join(", ")))
            .optional("Renewal", acme.renews_at.as_deref().map(|at| time_or_dash(Some(at))))
            .optional("Next attempt", acme.tries_again_at.as_deref().map(|at| time_or_dash(Some(at))))
            .optional("Last failure", acme.last_failure.as_deref());
    }
    Fragment::new(facts)
}
