//! Attempting: the life of one connection to a site.
//!
//! ```text
//! take a task ─► dial (hosts in order) ─► deliver, with the next one's envelope behind ─► settle ─► …
//! ```
//!
//! A connection carries messages until the site has none, its number is full, the pace allows fewer
//! connections, or it breaks. An attempt is settled on disk before the next message's last byte goes
//! out: so a crash repeats at most one message a connection.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use mail::address::Name;
use mail::attempt::TlsFacts;
use mail::outcome::{Outcome, Phase};
use mail::reply::{Enhanced, Reply, Severity};
use mail::task::Task;

use crate::courier::smtp;
use crate::courier::smtp::{
    Connection, Credentials, Delivery, DialFailure, DialReason, Dsn, OriginalRecipient, Ret, Shipment,
    Target, TlsMode, Verdict,
};
use crate::plan::{Destination, NoRoute, Smarthost};
use crate::settle::Attempted;
use crate::site::{Ready, Site, Turn};
use crate::worker::Worker;

/// Addresses tried for one connection (Postfix: smtp_mx_address_limit 5).
const ADDRESSES_MAX: usize = 5;
/// How long a connection without work stays open: opening one costs more than keeping it this long.
const LINGER: Duration = Duration::from_secs(3);

/// A task with its message at hand.
struct Loaded {
    ready: Ready,
    shipment: Shipment,
}

/// An open connection and where it leads.
struct Line {
    connection: Connection,
    host: Name,
    ip: IpAddr,
    carried: u32,
}

/// A dial that led nowhere.
struct NoLine {
    attempted: Attempted,
    /// The site as a whole could not be reached (and not just: it did not want this message).
    unreachable: bool,
}

/// Runs one connection to a site until it is not needed. The site has counted it already.
pub(crate) async fn carry(worker: Arc<Worker>, site: Arc<Site>) {
    let mut line: Option<Line> = None;
    let mut next: Option<Loaded> = None;
    loop {
        let this = match next.take() {
            Some(this) => this,
            None => match take(&worker, &site, line.is_some()).await {
                Some(this) => this,
                None => break,
            },
        };
        let mut open = match line.take() {
            Some(open) => open,
            // Looking up and connecting hold much on the stack of the task, and are over soon: boxed, so
            // that a connection that waits for work costs little.
            None => match Box::pin(dial(&worker, &site)).await {
                Ok(open) => open,
                Err(no_line) => {
                    Box::pin(give_back(&worker, &site, this, no_line)).await;
                    break;
                }
            },
        };
        open.carried += 1;
        let last = open.carried >= site.messages_per_connection() || worker.stop.is_cancelled();
        if !last {
            next = take_waiting(&worker, &site).await;
        }
        let began_at = worker.clock.now();
        let delivery = open.connection.deliver(&this.shipment, next.as_ref().map(|n| &n.shipment)).await;
        if delivery.phase == smtp::Phase::Idle && open.carried > 1 {
            // The host closed the connection while it waited: the message was not tried.
            next.into_iter().for_each(|unsent| put_back(&worker, &site, unsent));
            next = Some(this);
            continue;
        }
        judge(&site, &delivery);
        let attempted = attempted(&open, delivery, began_at);
        Box::pin(worker.settle(&this.ready, &attempted)).await;
        drop(this);
        worker.unpark(&site);
        let call = site.wants_connection();
        worker.answer(&site, call);
        if open.connection.is_usable() && !last {
            line = Some(open);
        } else if open.connection.is_usable() {
            open.connection.quit().await;
        }
    }
    next.into_iter().for_each(|unsent| put_back(&worker, &site, unsent));
    if let Some(open) = line {
        open.connection.quit().await;
    }
    let call = site.closed();
    worker.answer(&site, call);
}

fn put_back(worker: &Arc<Worker>, site: &Arc<Site>, unsent: Loaded) {
    worker.flights.wait_again(unsent.ready.task.id);
    let call = site.put_back(unsent.ready);
    worker.answer(site, call);
}

/// Takes the next task, and waits for one while a connection is open.
async fn take(worker: &Arc<Worker>, site: &Arc<Site>, connected: bool) -> Option<Loaded> {
    loop {
        if worker.stop.is_cancelled() {
            return None;
        }
        match site.turn(worker.clock.now()) {
            Turn::Carry(ready) => {
                if let Some(loaded) = load(worker, *ready).await {
                    return Some(loaded);
                }
            }
            // Held open through a short wait; closed through a long one, and opened again after it.
            Turn::Wait(until)
                if connected && until.duration_since(worker.clock.now()) > LINGER.try_into().ok()? =>
            {
                return None;
            }
            Turn::Wait(until) => tokio::select! {
                () = worker.clock.sleep_until(until) => {}
                () = worker.stop.cancelled() => return None,
            },
            Turn::Close => return None,
            Turn::Empty if !connected => return None,
            Turn::Empty => tokio::select! {
                () = site.arrival() => {}
                () = tokio::time::sleep(LINGER) => return None,
                () = worker.stop.cancelled() => return None,
            },
        }
    }
}

/// Takes the next task if there is one that may go now.
async fn take_waiting(worker: &Arc<Worker>, site: &Arc<Site>) -> Option<Loaded> {
    loop {
        match site.turn(worker.clock.now()) {
            Turn::Carry(ready) => {
                if let Some(loaded) = load(worker, *ready).await {
                    return Some(loaded);
                }
            }
            _ => return None,
        }
    }
}

/// Brings a task and its message together; none when the task was withdrawn or its message cannot be read.
async fn load(worker: &Arc<Worker>, ready: Ready) -> Option<Loaded> {
    let task = &ready.task;
    if !worker.flights.depart(task.id) {
        // Taken back while it waited here. Should it have been released since, disk knows.
        worker.note(task);
        return None;
    }
    let body = match &ready.body {
        Some(held) => held.chunks().to_vec(),
        None => match store::email::raw(&worker.store, task.account, task.id.email).await {
            Ok(Some(bytes)) => vec![bytes],
            Ok(None) | Err(_) => {
                tracing::error!(email.id = %task.id.email, "the message cannot be read; run `postrider admin store check`");
                let text = "the message could not be read from the store".to_owned();
                let attempted =
                    worker.not_dialled(Outcome::Unreachable(text), Phase::Dns, worker.clock.now());
                worker.settle(&ready, &attempted).await;
                return None;
            }
        },
    };
    let shipment = shipment(worker, task, body);
    Some(Loaded { ready, shipment })
}

fn shipment(worker: &Worker, task: &Task, body: Vec<bytes::Bytes>) -> Shipment {
    let sender =
        task.domain.as_ref().and_then(|domain| worker.verp.address(task.id, &domain.child("rp").ok()?));
    Shipment {
        sender,
        recipient: task.address.clone(),
        body,
        eight_bit: task.eight_bit,
        smtputf8: task.smtputf8,
        require_tls: task.require_tls,
        dsn: dsn(task),
    }
}

/// What the client asked to be told is passed on, but for failure: the bounce of our own return path
/// tells us, and we tell the client.
fn dsn(task: &Task) -> Option<Dsn> {
    if task.notify.is_default() && task.envelope_id.is_none() {
        return None;
    }
    let notify = match &task.notify {
        n if n.never => smtp::Notify::Never,
        n => smtp::Notify::On { success: n.success, failure: true, delay: n.delay },
    };
    Some(Dsn {
        ret: Some(if task.return_full { Ret::Full } else { Ret::Headers }),
        envid: task.envelope_id.clone(),
        notify: Some(notify),
        original_recipient: task.notify.original_recipient.as_deref().and_then(|text| {
            let (kind, address) = text.split_once(';')?;
            Some(OriginalRecipient { kind: kind.to_owned(), address: address.to_owned() })
        }),
    })
}

/// Opens a connection to the first host that takes one (RFC 5321 5.1).
async fn dial(worker: &Arc<Worker>, site: &Arc<Site>) -> Result<Line, NoLine> {
    let began_at = worker.clock.now();
    let seed = worker.entropy.u64();
    let addresses = match worker.planner.addresses(site.route(), seed, ADDRESSES_MAX).await {
        Ok(addresses) => addresses,
        Err(NoRoute::NotNow(text)) => {
            let attempted = worker.not_dialled(Outcome::Unreachable(text), Phase::Dns, began_at);
            return Err(NoLine { attempted, unreachable: true });
        }
        Err(NoRoute::Never(reply)) => {
            let attempted = worker.not_dialled(Outcome::Undeliverable(reply), Phase::Dns, began_at);
            return Err(NoLine { attempted, unreachable: false });
        }
    };
    let mut last = None;
    for (host, address) in addresses {
        let target = target(worker, site, host.clone(), address, seed);
        match worker.dialer.dial(&target).await {
            Ok(connection) => return Ok(Line { connection, host, ip: address.ip(), carried: 0 }),
            Err(failure) => last = Some((host, address, failure)),
        }
    }
    Err(match last {
        Some((host, address, failure)) => no_line(host, address, failure, began_at),
        None => {
            let text = "none of the mail hosts has an address".to_owned();
            let attempted = worker.not_dialled(Outcome::Unreachable(text), Phase::Dns, began_at);
            NoLine { attempted, unreachable: true }
        }
    })
}

fn target(worker: &Worker, site: &Site, host: Name, address: SocketAddr, seed: u64) -> Target {
    let credentials = match &site.route().to {
        Destination::Smarthost(Smarthost { credentials: Some((username, password)), .. }) => {
            Some(Credentials { username: username.clone(), password: password.clone() })
        }
        _ => None,
    };
    let of_family: Vec<_> = worker
        .settings
        .source_addresses
        .iter()
        .filter(|source| source.is_ipv4() == address.is_ipv4())
        .copied()
        .collect();
    let count = u64::try_from(of_family.len()).unwrap_or(1).max(1);
    let source = usize::try_from(seed % count).ok().and_then(|n| of_family.get(n)).copied();
    let tls = if site.verified_tls() { TlsMode::Verified } else { worker.settings.tls };
    Target { host, address, source, tls, credentials }
}

/// What a failed dial comes to. A host that refuses us at its greeting says nothing about the message
/// yet, whatever its code: another host, or another hour, may be kinder.
fn no_line(host: Name, address: SocketAddr, failure: DialFailure, began_at: Timestamp) -> NoLine {
    let (phase, unreachable) = match &failure.reason {
        DialReason::Private(_) | DialReason::Connect(_) => (Phase::Connect, true),
        DialReason::Lost(_) => (Phase::Greeting, true),
        DialReason::Greeting => (Phase::Greeting, true),
        DialReason::Hello => (Phase::Ehlo, true),
        DialReason::NoTls | DialReason::Tls(_) => (Phase::Tls, false),
        DialReason::NoAuth | DialReason::Auth => (Phase::Auth, true),
    };
    let outcome = match (&failure.reason, failure.reply) {
        // RFC 8689 5, RFC 7372-like: the sender asked for TLS and the host has none.
        (DialReason::NoTls, _) => Outcome::Deferred(Reply::new(
            450,
            Enhanced::new(4, 7, 30),
            format!("{host} does not offer TLS, which is required here"),
        )),
        (_, Some(reply)) => Outcome::Deferred(reply),
        (reason, None) => Outcome::Unreachable(format!("{host} [{}]: {reason}", address.ip())),
    };
    let attempted = Attempted {
        outcome,
        phase,
        began_at,
        duration: failure.duration,
        mx_host: Some(host.to_string()),
        ip: Some(address.ip()),
        tls: None,
        transcript: failure.transcript.to_string(),
    };
    NoLine { attempted, unreachable }
}

/// A message for which there was no connection; and, when the site is dead, all others that wait for it.
async fn give_back(worker: &Arc<Worker>, site: &Arc<Site>, this: Loaded, no_line: NoLine) {
    let waiting = if no_line.unreachable { site.unreachable(worker.clock.now()) } else { Vec::new() };
    worker.settle(&this.ready, &no_line.attempted).await;
    for ready in waiting {
        if worker.flights.depart(ready.task.id) {
            worker.settle(&ready, &no_line.attempted).await;
        } else {
            worker.note(&ready.task);
        }
    }
    worker.unpark(site);
}

/// Tells the pace what a delivery says about the site.
fn judge(site: &Site, delivery: &Delivery) {
    let early = matches!(delivery.phase, smtp::Phase::Mail);
    match (&delivery.reply, delivery.verdict) {
        (Some(reply), _) if reply.code == 421 => site.pushed_back(),
        (Some(reply), _) if early && reply.severity() == Severity::Transient => site.pushed_back(),
        (_, Verdict::Broken | Verdict::Unconfirmed) => site.pushed_back(),
        _ => site.answered(),
    }
}

fn attempted(open: &Line, delivery: Delivery, began_at: Timestamp) -> Attempted {
    let fault =
        || delivery.fault.map_or_else(|| "the connection broke".to_owned(), |fault| fault.to_string());
    let outcome = match (delivery.verdict, delivery.reply) {
        (Verdict::Accepted, Some(reply)) => Outcome::Delivered(reply),
        (Verdict::Refused5, Some(reply)) if delivery.phase == smtp::Phase::Local => {
            Outcome::Undeliverable(reply)
        }
        (Verdict::Refused5, Some(reply)) => Outcome::Failed(reply),
        (Verdict::Refused4, Some(reply)) => Outcome::Deferred(reply),
        (Verdict::Unsupported, Some(reply)) => Outcome::Undeliverable(reply),
        (Verdict::Unconfirmed, _) => Outcome::Unconfirmed(fault()),
        _ => Outcome::Unreachable(fault()),
    };
    let phase = match delivery.phase {
        smtp::Phase::Idle => Phase::Connect,
        smtp::Phase::Local | smtp::Phase::Mail => Phase::Mail,
        smtp::Phase::Rcpt => Phase::Rcpt,
        smtp::Phase::Data => Phase::Data,
        smtp::Phase::Content => Phase::Final,
    };
    Attempted {
        outcome,
        phase,
        began_at,
        duration: delivery.duration,
        mx_host: Some(open.host.to_string()),
        ip: Some(open.ip),
        tls: delivery.tls.map(|tls| TlsFacts {
            version: tls.version.to_owned(),
            cipher: tls.cipher.to_owned(),
            verified: tls.verified,
        }),
        transcript: delivery.transcript.to_string(),
    }
}
