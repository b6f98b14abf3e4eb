//! Attempting: the life of one connection to a site.
//!
//! ```text
//! take a task ─► dial (hosts in order) ─► deliver, with the next one's envelope behind ─► settle ─► …
//! ```
//!
//! A connection carries messages until the site has none, its number is full, the pace allows fewer
//! connections, or it breaks. Where messages follow one another it waits for more; where one comes alone it
//! leaves with it: a thousand hosts that get a message each keep no session open for nothing. An attempt
//! is settled on disk before the next message's last byte goes out: so a crash repeats at most one message
//! a connection.

use std::collections::HashSet;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use mail::attempt::{TlsFacts, TlsPolicy};
use mail::outcome::{Outcome, Phase};
use mail::task::{QueueName, Task};
use tokio::sync::OwnedSemaphorePermit;

use self::dial::dial;
use crate::courier::smtp;
use crate::courier::smtp::{Connection, Delivery, Dsn, OriginalRecipient, Ret, Shipment, Verdict};
use crate::judgement::{self, Pressure};
use crate::provider::Share;
use crate::settle::Attempted;
use crate::site::{Ready, Site, Turn, Unreachable};
use crate::tls_sessions::Meeting;
use crate::worker::Worker;

mod dial;

/// How long a connection without work stays open: opening one costs more than keeping it this long.
const LINGER: Duration = Duration::from_secs(3);

/// A task with its message at hand.
struct Loaded {
    ready: Ready,
    shipment: Shipment,
}

/// An open connection and where it leads.
struct Line {
    /// Its share of all connections to anywhere.
    _permit: OwnedSemaphorePermit,
    connection: Connection,
    /// As the attempt's record and a report name it.
    host: String,
    ip: IpAddr,
    /// What said how it is protected.
    policy: TlsPolicy,
    /// What is to be counted of its TLS, if something is.
    meeting: Option<Meeting>,
    /// It leads to ourselves: each message is looked at anew, for its domain's mail may come in here no more.
    leads_here: bool,
    carried: u32,
}

impl Line {
    /// It is to carry this one, too.
    fn takes(&mut self, worker: &Worker, task: &Task) {
        self.carried += 1;
        if let Some(meeting) = &mut self.meeting {
            worker.count_session(task, meeting);
        }
    }
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
    let mut counted = true;
    let mut share: Option<Share> = None;
    loop {
        let this = match begin(&worker, &site, (&mut line, &mut next, &mut share)).await {
            Taken::Task(this) => *this,
            Taken::Nothing => break,
            Taken::Close => {
                counted = false;
                break;
            }
        };
        if line.is_none() && is_put_off(&worker, &site, &this) {
            continue;
        }
        let mut open = match line.take() {
            Some(open) => open,
            // Looking up and connecting hold much in the task's memory, and are over soon: boxed, so
            // that a connection that waits for work costs little.
            None => match Box::pin(dial(&worker, &site, &this.ready.task)).await {
                Ok(open) => open,
                Err(no_line) => {
                    Box::pin(give_back(&worker, &site, this, no_line)).await;
                    break;
                }
            },
        };
        share.iter_mut().for_each(Share::dialled);
        // To dial may have taken minutes, and so may the message before it.
        if is_held(&worker, &this) || Box::pin(worker.lapse(&this.ready)).await {
            worker.unpark(&site);
            line = unused(&site, open, &mut share).await;
            continue;
        }
        open.takes(&worker, &this.ready.task);
        let last = is_last(&worker, &site, &open, share.as_ref());
        // Others may come for what waits while this one is busy.
        worker.answer(&site, site.wants_connection());
        next = if last { None } else { take_waiting(&worker, &site).await };
        let began_at = worker.clock.now();
        let last = last || next.is_none() && !site.expects_more(began_at, LINGER);
        let delivery = deliver(&mut open.connection, &this, next.as_ref(), last).await;
        if delivery.phase == smtp::Phase::Idle && open.carried > 1 {
            // The host closed the connection while it waited: the message was not tried.
            site.hung_up();
            next.into_iter().for_each(|unsent| put_back(&worker, &site, unsent));
            next = Some(this);
            continue;
        }
        if delivery.fault == Some(smtp::Fault::Stopped) && delivery.verdict != Verdict::Unconfirmed {
            // Cut off before the message can have arrived: it waits for the next start, untried.
            site.hung_up();
            put_back(&worker, &site, this);
            break;
        }
        Box::pin(settle(&worker, &site, &open, &this.ready, (delivery, began_at))).await;
        drop(this);
        worker.unpark(&site);
        if open.connection.is_usable() && !last {
            line = Some(open);
        } else {
            hang_up(&site, open).await;
            share = None;
        }
    }
    drop(share);
    leave(&worker, &site, (line, next), counted).await;
}

/// The end of a connection's life.
async fn leave(
    worker: &Arc<Worker>,
    site: &Arc<Site>,
    (line, next): (Option<Line>, Option<Loaded>),
    is_counted: bool,
) {
    next.into_iter().for_each(|unsent| put_back(worker, site, unsent));
    let open = line.inspect(|_| site.hung_up());
    if is_counted {
        worker.answer(site, site.left(worker.stop.is_cancelled()));
    }
    if let Some(open) = open {
        open.connection.quit().await;
    }
}

/// What a connection carries now: what was taken behind the message before, or the next of the site.
async fn begin(
    worker: &Arc<Worker>,
    site: &Arc<Site>,
    (line, next, share): (&mut Option<Line>, &mut Option<Loaded>, &mut Option<Share>),
) -> Taken {
    let Some(this) = next.take() else { return take_unpaused(worker, site, (line, share)).await };
    if has_share(worker, site, share).await {
        return Taken::Task(Box::new(this));
    }
    *next = Some(this);
    Taken::Nothing
}

/// Whether a connection carries nothing more after this.
fn is_last(worker: &Worker, site: &Site, open: &Line, share: Option<&Share>) -> bool {
    open.leads_here
        || share.is_some_and(|share| share.is_over(open.carried))
        || open.carried >= site.messages_per_connection()
        || worker.rests()
}

async fn deliver(to: &mut Connection, this: &Loaded, next: Option<&Loaded>, last: bool) -> Delivery {
    match last {
        true => to.deliver_last(&this.shipment).await,
        false => to.deliver(&this.shipment, next.map(|next| &next.shipment)).await,
    }
}

/// A connection over which a message does not go after all. Its envelope may have gone ahead, where it is not the first:
/// no content follows, then.
async fn unused(site: &Site, open: Line, share: &mut Option<Share>) -> Option<Line> {
    if open.carried == 0 {
        return Some(open);
    }
    hang_up(site, open).await;
    *share = None;
    None
}

async fn hang_up(site: &Site, open: Line) {
    site.hung_up();
    open.connection.quit().await;
}

fn put_back(worker: &Arc<Worker>, site: &Arc<Site>, unsent: Loaded) {
    worker.flights.wait_again(unsent.ready.task.id);
    let call = site.put_back(unsent.ready);
    worker.answer(site, call);
}

/// What a connection that asks for work gets.
enum Taken {
    /// A task with its message.
    Task(Box<Loaded>),
    /// None.
    Nothing,
    /// None, and it is counted out.
    Close,
}

/// Takes the next task; while delivery is paused, without a connection, it waits first.
async fn take_unpaused(
    worker: &Arc<Worker>,
    site: &Arc<Site>,
    (line, share): (&mut Option<Line>, &mut Option<Share>),
) -> Taken {
    if worker.is_paused() {
        if let Some(open) = line.take() {
            hang_up(site, open).await;
        }
        worker.unpaused().await;
    }
    take(worker, site, line.is_some(), share).await
}

/// Takes the next task, and waits for one while a connection is open.
async fn take(worker: &Arc<Worker>, site: &Arc<Site>, connected: bool, share: &mut Option<Share>) -> Taken {
    loop {
        // Before anything is taken: what waits for its provider is in nobody's way.
        if !has_share(worker, site, share).await {
            return Taken::Nothing;
        }
        // Paused, the site asks for another connection, and that one waits.
        if worker.rests() {
            return Taken::Nothing;
        }
        let (now, revived) = (worker.clock.now(), site.revived());
        match site.turn(now) {
            Turn::Carry(ready) => {
                let room = worker.bodies.room(ready.task.size_bytes);
                if let Some(loaded) = load(worker, site, *ready, room).await {
                    return Taken::Task(Box::new(loaded));
                }
            }
            // Held open through a short wait; closed through a long one, and opened again after it.
            Turn::Wait(until) if connected && is_long(now, until) => return Taken::Nothing,
            Turn::Wait(until) => {
                if !connected {
                    // Others of the provider may have it meanwhile.
                    *share = None;
                }
                tokio::select! {
                    () = worker.clock.sleep_until(until) => {}
                    () = revived => {}
                    () = worker.stop.cancelled() => return Taken::Nothing,
                }
            }
            Turn::Close => return Taken::Close,
            Turn::Empty if !connected || !site.expects_more(now, LINGER) => return Taken::Nothing,
            Turn::Empty => tokio::select! {
                () = site.arrival() => {}
                () = tokio::time::sleep(linger(worker, site)) => return Taken::Nothing,
                () = worker.stop.cancelled() => return Taken::Nothing,
            },
        }
    }
}

/// Waits for a connection that the provider may be sent by; false when nothing begins any more.
async fn has_share(worker: &Worker, site: &Site, share: &mut Option<Share>) -> bool {
    if share.is_none() {
        *share = tokio::select! {
            share = site.share() => Some(share),
            () = worker.stop.cancelled() => None,
        };
    }
    share.is_some()
}

fn is_long(now: Timestamp, until: Timestamp) -> bool {
    Duration::try_from(until.duration_since(now)).is_ok_and(|wait| wait > LINGER)
}

/// Idle connections give way when there are few left for others.
fn linger(worker: &Worker, site: &Site) -> Duration {
    let scarce =
        site.is_awaited() || worker.connections.available_permits() < worker.settings.connections_max / 4;
    if scarce { Duration::ZERO } else { LINGER }
}

/// Takes the next task if there is one that may go now.
async fn take_waiting(worker: &Arc<Worker>, site: &Arc<Site>) -> Option<Loaded> {
    loop {
        match site.turn_at_once(worker.clock.now()) {
            Some(ready) => {
                let room = std::future::ready(worker.bodies.room_now(ready.task.size_bytes));
                if let Some(loaded) = load(worker, site, *ready, room).await {
                    return Some(loaded);
                }
            }
            None => return None,
        }
    }
}

/// Brings a task and its message together; none when the task was withdrawn, its message cannot be read,
/// or there is no room in memory for it now.
async fn load(
    worker: &Arc<Worker>,
    site: &Site,
    mut ready: Ready,
    room: impl Future<Output = Option<OwnedSemaphorePermit>>,
) -> Option<Loaded> {
    if !worker.flights.depart(ready.task.id, ready.task.partition) {
        // Taken back while it waited here. Should it have been released since, disk knows.
        worker.note(&ready.task);
        return None;
    }
    if !worker.leases.is_active(ready.task.partition) {
        // Its partition goes, or went, to another node, which finds it on disk.
        worker.flights.land(ready.task.id);
        return None;
    }
    if worker.holds.holds(ready.task.account) {
        worker.park(&ready.task);
        return None;
    }
    if let Some(again) = worker.left_alone_until(ready.task.address.domain(), Some(site.route())) {
        worker.leave_alone(&ready.task, Some(site.route()), again);
        return None;
    }
    if Box::pin(worker.lapse(&ready)).await {
        return None;
    }
    if ready.body.is_none() {
        let Some(share) = room.await else {
            worker.put_off(&ready.task, worker.later(LINGER));
            return None;
        };
        match store::email::raw(&worker.store, ready.task.account, ready.task.id.email).await {
            Ok(Some(bytes)) => ready.body = Some(worker.bodies.read(bytes, share)),
            Err(store::engine::ReadError::Away(_)) => {
                // It comes back by itself; nothing was tried.
                worker.put_off(&ready.task, worker.later(LINGER));
                return None;
            }
            Ok(None) | Err(_) => {
                tracing::error!(
                    email.id = %ready.task.id.email,
                    "the message cannot be read; run `postrider admin store check`"
                );
                let text = "the message could not be read from the store".to_owned();
                let attempted =
                    worker.not_dialled(Outcome::Unreachable(text), Phase::Connect, worker.clock.now());
                worker.settle(&ready, &attempted).await;
                return None;
            }
        }
    }
    let body = ready.body.as_ref().map(|held| held.chunks().to_vec()).unwrap_or_default();
    let shipment = shipment(worker, &ready.task, body).await;
    Some(Loaded { ready, shipment })
}

async fn shipment(worker: &Worker, task: &Task, mut body: Vec<bytes::Bytes>) -> Shipment {
    let sender =
        task.domain.as_ref().and_then(|domain| worker.verp.address(task.id, &domain.child("rp").ok()?));
    if let Some(signer) = worker.transaction_signer.get() {
        body = signer.sign(task, sender.as_ref(), body, worker.clock.now()).await;
    }
    Shipment {
        sender,
        recipient: task.address.clone(),
        body,
        eight_bit: task.eight_bit,
        smtputf8: task.smtputf8,
        require_tls: task.require_tls,
        dsn: dsn(task),
        by: task.by.map(|by| smtp::Within {
            seconds: by.at.duration_since(worker.clock.now()).as_secs(),
            since: tokio::time::Instant::now(),
            returns: by.returns,
        }),
        priority: task.priority,
    }
}

/// The host is asked to report failure, whatever the client wants to be told: what it reports comes to our
/// own return path, and we tell the client, or not.
fn dsn(task: &Task) -> Option<Dsn> {
    if task.notify.is_default() && task.envelope_id.is_none() {
        return None;
    }
    let notify = smtp::Notify::On { success: false, failure: true, delay: false };
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

/// A message for which there was no connection. While others are open it waits for them; when the site
/// is dead, all that waits for it goes back to disk until it is probed, untried.
async fn give_back(worker: &Arc<Worker>, site: &Arc<Site>, this: Loaded, mut no_line: NoLine) {
    let now = worker.clock.now();
    let because = no_line.attempted.diagnostic();
    site.failed(no_line.attempted.error(), now);
    match judge_dial(worker, &mut no_line.attempted) {
        // Fewer connections may be all that is wanted: the message is not to blame.
        Some(Pressure::SlowDown) => site.slow_down(&because, now),
        Some(pressure) => {
            press(worker, site, pressure, &no_line.attempted);
            return worker.settle(&this.ready, &no_line.attempted).await;
        }
        None => {}
    }
    if !no_line.unreachable {
        // What we say in its stead the site has not said.
        if !matches!(no_line.attempted.outcome, Outcome::Undeliverable(_)) {
            site.pushed_back(&because);
        }
        return worker.settle(&this.ready, &no_line.attempted).await;
    }
    match site.unreachable(now) {
        Unreachable::Crowded => put_back(worker, site, this),
        Unreachable::Failed => worker.settle(&this.ready, &no_line.attempted).await,
        Unreachable::Dead { until, waiting } => {
            put_all_off(worker, site, waiting, until);
            worker.note_delay(this.ready.task.queue(), site);
            worker.settle(&this.ready, &no_line.attempted).await;
        }
    }
}

/// Puts a task off that was taken while another connection heard that the site wants to be left alone.
fn is_put_off(worker: &Worker, site: &Site, taken: &Loaded) -> bool {
    let Some(until) = site.alone_until(worker.clock.now()) else { return false };
    worker.put_off(&taken.ready.task, until);
    worker.note_delay(taken.ready.task.queue(), site);
    true
}

/// Leaves a task to disk whose account was suspended since it was taken.
fn is_held(worker: &Worker, taken: &Loaded) -> bool {
    let task = &taken.ready.task;
    let is_held = worker.holds.holds(task.account);
    if is_held {
        worker.park(task);
    }
    is_held
}

/// Puts tasks of a site that is left alone back to disk, untried, and has their senders told.
fn put_all_off(worker: &Worker, site: &Site, waiting: Vec<Ready>, until: Timestamp) {
    let queues: HashSet<QueueName> = waiting.iter().map(|ready| ready.task.queue()).collect();
    leave_to_disk(worker, waiting, until);
    queues.into_iter().for_each(|queue| worker.note_delay(queue, site));
}

/// Leaves tasks to disk, untried.
pub(crate) fn leave_to_disk(worker: &Worker, waiting: Vec<Ready>, until: Timestamp) {
    for ready in waiting {
        if worker.flights.depart(ready.task.id, ready.task.partition) {
            worker.put_off(&ready.task, until);
        } else {
            worker.note(&ready.task);
        }
    }
}

/// Judges a host that refused to be spoken to; none when it is as any that cannot be reached.
fn judge_dial(worker: &Worker, attempted: &mut Attempted) -> Option<Pressure> {
    let (Outcome::Deferred(reply), Some(host)) = (&attempted.outcome, &attempted.mx_host) else {
        return None;
    };
    let judged = judgement::of_dial(&worker.manners().shaping, host, attempted.phase, reply)?;
    if judged.verdict == Verdict::Refused5 {
        attempted.outcome = Outcome::Failed(reply.clone());
    }
    Some(judged.pressure)
}

/// Judges how a message fared, and settles it: what the site is given after it, and what becomes of it.
async fn settle(
    worker: &Arc<Worker>,
    site: &Site,
    open: &Line,
    ready: &Ready,
    (mut delivery, began_at): (Delivery, Timestamp),
) {
    let said = (delivery.verdict, delivery.phase);
    let shaping = &worker.manners().shaping;
    let judged = judgement::of_delivery(shaping, &open.host, said, delivery.reply.as_ref());
    delivery.verdict = judged.verdict;
    let mut attempted = attempted(open, delivery, began_at);
    press(worker, site, judged.pressure, &attempted);
    if open.leads_here && is_relaying_denied(&attempted.outcome) {
        // The domain's mail came in here when we dialled, and does no more: a loop, and nothing about the address.
        attempted.outcome = Outcome::Undeliverable(crate::plan::loops(ready.task.address.domain()));
    }
    if !matches!(attempted.outcome, Outcome::Delivered(_)) {
        site.failed(attempted.error(), worker.clock.now());
    }
    worker.settle(ready, &attempted).await;
}

fn is_relaying_denied(outcome: &Outcome) -> bool {
    let Outcome::Failed(reply) = outcome else { return false };
    reply.enhanced.is_some_and(|enhanced| (enhanced.class, enhanced.subject, enhanced.detail) == (5, 7, 1))
}

fn press(worker: &Worker, site: &Site, pressure: Pressure, after: &Attempted) {
    let now = worker.clock.now();
    match pressure {
        Pressure::Same => {}
        Pressure::Answered => site.answered(),
        Pressure::Accepted => site.accepted(now),
        Pressure::PushedBack => site.pushed_back(&after.diagnostic()),
        Pressure::SlowDown => site.slow_down(&after.diagnostic(), now),
        Pressure::Rest(rest, because) => {
            tracing::warn!(site = %site.route().site, because, "a site asks to be left alone");
            let (until, waiting) = site.rest(rest, because, now);
            put_all_off(worker, site, waiting, until);
        }
    }
}

fn facts(tls: smtp::TlsFacts, policy: TlsPolicy) -> TlsFacts {
    TlsFacts {
        version: tls.version.to_owned(),
        cipher: tls.cipher.to_owned(),
        verified: tls.verified,
        policy,
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
    Attempted {
        outcome,
        phase: judgement::phase_of(delivery.phase),
        began_at,
        duration: delivery.duration,
        mx_host: Some(open.host.clone()),
        ip: Some(open.ip),
        source: open.connection.local(),
        tls: delivery.tls.map(|tls| facts(tls, open.policy)),
        transcript: delivery.transcript.to_string(),
        is_untried: false,
        answered_before: None,
    }
}
