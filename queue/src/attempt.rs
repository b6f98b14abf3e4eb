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
use mail::attempt::{AttemptTls, TlsPolicy};
use mail::outcome::{AttemptPhase, Outcome};
use mail::task::{QueueName, Task};
use tokio::sync::OwnedSemaphorePermit;

use self::dial::connect;
use crate::courier::smtp;
use crate::courier::smtp::{
    DsnParameters, DsnReturn, OriginalRecipient, OutgoingMessage, SmtpConnection, TransactionResult, TransactionVerdict,
};
use crate::judgement::{self, Backpressure};
use crate::provider::ProviderConnectionPermit;
use crate::settle::AttemptResult;
use crate::site::{ConnectFailure, NextWork, ReadyQueue, ReadyTask};
use crate::tls_sessions::TlsSession;
use crate::worker::Worker;

mod dial;

/// How long a connection without work stays open: opening one costs more than keeping it this long.
const IDLE_TIMEOUT: Duration = Duration::from_secs(3);

/// A task with its message at hand.
struct MessageToSend {
    ready: ReadyTask,
    message: OutgoingMessage,
}

/// An open connection and where it leads.
struct OpenConnection {
    /// Its share of all connections to anywhere.
    _permit: OwnedSemaphorePermit,
    connection: SmtpConnection,
    /// As the attempt's record and a report name it.
    host: String,
    ip: IpAddr,
    /// What said how it is protected.
    policy: TlsPolicy,
    /// What is to be counted of its TLS, if something is.
    tls_session: Option<TlsSession>,
    /// It leads to ourselves: each message is looked at anew, for its domain's mail may come in here no more.
    is_self: bool,
    messages_sent: u32,
}

impl OpenConnection {
    /// It is to carry this one, too.
    fn count_message(&mut self, worker: &Worker, task: &Task) {
        self.messages_sent += 1;
        if let Some(meeting) = &mut self.tls_session {
            worker.count_tls_session(task, meeting);
        }
    }
}

/// A dial that led nowhere.
struct HostConnectError {
    result: AttemptResult,
    /// The site as a whole could not be reached (and not just: it did not want this message).
    is_queue_unreachable: bool,
}

/// Runs one connection to a site until it is not needed. The site has counted it already.
pub(crate) async fn run_connection(worker: Arc<Worker>, site: Arc<ReadyQueue>) {
    let mut line: Option<OpenConnection> = None;
    let mut next: Option<MessageToSend> = None;
    let mut counted = true;
    let mut share: Option<ProviderConnectionPermit> = None;
    loop {
        let this = match next_message(&worker, &site, (&mut line, &mut next, &mut share)).await {
            ConnectionWork::Message(this) => *this,
            ConnectionWork::Nothing => break,
            ConnectionWork::Close => {
                counted = false;
                break;
            }
        };
        if line.is_none() && defer_if_unavailable(&worker, &site, &this) {
            continue;
        }
        let mut open = match line.take() {
            Some(open) => open,
            // Looking up and connecting hold much in the task's memory, and are over soon: boxed, so
            // that a connection that waits for work costs little.
            None => match Box::pin(connect(&worker, &site, &this.ready.task)).await {
                Ok(open) => open,
                Err(no_line) => {
                    Box::pin(handle_connect_error(&worker, &site, this, no_line)).await;
                    break;
                }
            },
        };
        share.iter_mut().for_each(ProviderConnectionPermit::finish_dial);
        // To dial may have taken minutes, and so may the message before it.
        if defer_if_account_held(&worker, &this) || Box::pin(worker.expire_if_lapsed(&this.ready)).await {
            worker.wake_parked(&site);
            line = after_unsent(&site, open, &mut share).await;
            continue;
        }
        open.count_message(&worker, &this.ready.task);
        let last = is_last_message(&worker, &site, &open, share.as_ref());
        // Others may come for what waits while this one is busy.
        worker.follow_connect_decision(&site, site.connect_if_wanted());
        next = if last { None } else { try_take(&worker, &site).await };
        let began_at = worker.clock.now();
        let last = last || next.is_none() && !site.expects_more(began_at, IDLE_TIMEOUT);
        let delivery = deliver_message(&mut open.connection, &this, next.as_ref(), last).await;
        if delivery.phase == smtp::TransactionPhase::Idle && open.messages_sent > 1 {
            // The host closed the connection while it waited: the message was not tried.
            site.connection_closed();
            next.into_iter().for_each(|unsent| requeue(&worker, &site, unsent));
            next = Some(this);
            continue;
        }
        if delivery.fault == Some(smtp::SmtpFault::Cancelled) && delivery.verdict != TransactionVerdict::Unconfirmed {
            // Cut off before the message can have arrived: it waits for the next start, untried.
            site.connection_closed();
            requeue(&worker, &site, this);
            break;
        }
        Box::pin(handle_delivery(&worker, &site, &open, &this.ready, (delivery, began_at))).await;
        drop(this);
        worker.wake_parked(&site);
        if open.connection.is_usable() && !last {
            line = Some(open);
        } else {
            quit_connection(&site, open).await;
            share = None;
        }
    }
    drop(share);
    finish_connection(&worker, &site, (line, next), counted).await;
}

/// The end of a connection's life.
async fn finish_connection(
    worker: &Arc<Worker>,
    site: &Arc<ReadyQueue>,
    (line, next): (Option<OpenConnection>, Option<MessageToSend>),
    is_counted: bool,
) {
    next.into_iter().for_each(|unsent| requeue(worker, site, unsent));
    let open = line.inspect(|_| site.connection_closed());
    if is_counted {
        worker.follow_connect_decision(site, site.connection_ended(worker.stop.is_cancelled()));
    }
    if let Some(open) = open {
        open.connection.quit().await;
    }
}

/// What a connection carries now: what was taken behind the message before, or the next of the site.
async fn next_message(
    worker: &Arc<Worker>,
    site: &Arc<ReadyQueue>,
    (line, next, share): (
        &mut Option<OpenConnection>,
        &mut Option<MessageToSend>,
        &mut Option<ProviderConnectionPermit>,
    ),
) -> ConnectionWork {
    let Some(this) = next.take() else { return take_when_unpaused(worker, site, (line, share)).await };
    if acquire_provider_permit(worker, site, share).await {
        return ConnectionWork::Message(Box::new(this));
    }
    *next = Some(this);
    ConnectionWork::Nothing
}

/// Whether a connection carries nothing more after this.
fn is_last_message(
    worker: &Worker,
    site: &ReadyQueue,
    open: &OpenConnection,
    share: Option<&ProviderConnectionPermit>,
) -> bool {
    open.is_self
        || share.is_some_and(|share| share.should_yield(open.messages_sent))
        || open.messages_sent >= site.messages_per_connection()
        || worker.is_stopped_or_paused()
}

async fn deliver_message(
    to: &mut SmtpConnection,
    this: &MessageToSend,
    next: Option<&MessageToSend>,
    last: bool,
) -> TransactionResult {
    match last {
        true => to.deliver_last(&this.message).await,
        false => to.deliver(&this.message, next.map(|next| &next.message)).await,
    }
}

/// A connection over which a message does not go after all. Its envelope may have gone ahead, where it is not the first:
/// no content follows, then.
async fn after_unsent(
    site: &ReadyQueue,
    open: OpenConnection,
    share: &mut Option<ProviderConnectionPermit>,
) -> Option<OpenConnection> {
    if open.messages_sent == 0 {
        return Some(open);
    }
    quit_connection(site, open).await;
    *share = None;
    None
}

async fn quit_connection(site: &ReadyQueue, open: OpenConnection) {
    site.connection_closed();
    open.connection.quit().await;
}

fn requeue(worker: &Arc<Worker>, site: &Arc<ReadyQueue>, unsent: MessageToSend) {
    worker.in_flight.requeue(unsent.ready.task.id);
    let call = site.requeue(unsent.ready);
    worker.follow_connect_decision(site, call);
}

/// What a connection that asks for work gets.
enum ConnectionWork {
    /// A task with its message.
    Message(Box<MessageToSend>),
    /// None.
    Nothing,
    /// None, and it is counted out.
    Close,
}

/// Takes the next task; while delivery is paused, without a connection, it waits first.
async fn take_when_unpaused(
    worker: &Arc<Worker>,
    site: &Arc<ReadyQueue>,
    (line, share): (&mut Option<OpenConnection>, &mut Option<ProviderConnectionPermit>),
) -> ConnectionWork {
    if worker.is_paused() {
        if let Some(open) = line.take() {
            quit_connection(site, open).await;
        }
        worker.wait_unpaused().await;
    }
    wait_for_work(worker, site, line.is_some(), share).await
}

/// Takes the next task, and waits for one while a connection is open.
async fn wait_for_work(
    worker: &Arc<Worker>,
    site: &Arc<ReadyQueue>,
    connected: bool,
    share: &mut Option<ProviderConnectionPermit>,
) -> ConnectionWork {
    loop {
        // Before anything is taken: what waits for its provider is in nobody's way.
        if !acquire_provider_permit(worker, site, share).await {
            return ConnectionWork::Nothing;
        }
        // Paused, the site asks for another connection, and that one waits.
        if worker.is_stopped_or_paused() {
            return ConnectionWork::Nothing;
        }
        let (now, revived) = (worker.clock.now(), site.retry_requested());
        match site.next_work(now) {
            NextWork::Deliver(ready) => {
                let room = worker.bodies.acquire(ready.task.size_bytes);
                if let Some(loaded) = load_message(worker, site, *ready, room).await {
                    return ConnectionWork::Message(Box::new(loaded));
                }
            }
            // Held open through a short wait; closed through a long one, and opened again after it.
            NextWork::Wait(until) if connected && exceeds_idle_timeout(now, until) => {
                return ConnectionWork::Nothing;
            }
            NextWork::Wait(until) => {
                if !connected {
                    // Others of the provider may have it meanwhile.
                    *share = None;
                }
                tokio::select! {
                    () = worker.clock.sleep_until(until) => {}
                    () = revived => {}
                    () = worker.stop.cancelled() => return ConnectionWork::Nothing,
                }
            }
            NextWork::Close => return ConnectionWork::Close,
            NextWork::Empty if !connected || !site.expects_more(now, IDLE_TIMEOUT) => {
                return ConnectionWork::Nothing;
            }
            NextWork::Empty => tokio::select! {
                () = site.wait_for_work() => {}
                () = tokio::time::sleep(idle_timeout(worker, site)) => return ConnectionWork::Nothing,
                () = worker.stop.cancelled() => return ConnectionWork::Nothing,
            },
        }
    }
}

/// Waits for a connection that the provider may be sent by; false when nothing begins any more.
async fn acquire_provider_permit(
    worker: &Worker,
    site: &ReadyQueue,
    share: &mut Option<ProviderConnectionPermit>,
) -> bool {
    if share.is_none() {
        *share = tokio::select! {
            share = site.acquire_provider_permit() => Some(share),
            () = worker.stop.cancelled() => None,
        };
    }
    share.is_some()
}

fn exceeds_idle_timeout(now: Timestamp, until: Timestamp) -> bool {
    Duration::try_from(until.duration_since(now)).is_ok_and(|wait| wait > IDLE_TIMEOUT)
}

/// Idle connections give way when there are few left for others.
fn idle_timeout(worker: &Worker, site: &ReadyQueue) -> Duration {
    let scarce =
        site.provider_has_waiters() || worker.connections.available_permits() < worker.settings.connections_max / 4;
    if scarce { Duration::ZERO } else { IDLE_TIMEOUT }
}

/// Takes the next task if there is one that may go now.
async fn try_take(worker: &Arc<Worker>, site: &Arc<ReadyQueue>) -> Option<MessageToSend> {
    loop {
        match site.try_next_work(worker.clock.now()) {
            Some(ready) => {
                let room = std::future::ready(worker.bodies.try_acquire(ready.task.size_bytes));
                if let Some(loaded) = load_message(worker, site, *ready, room).await {
                    return Some(loaded);
                }
            }
            None => return None,
        }
    }
}

/// Brings a task and its message together; none when the task was withdrawn, its message cannot be read,
/// or there is no room in memory for it now.
async fn load_message(
    worker: &Arc<Worker>,
    site: &ReadyQueue,
    mut ready: ReadyTask,
    room: impl Future<Output = Option<OwnedSemaphorePermit>>,
) -> Option<MessageToSend> {
    if !worker.in_flight.start(ready.task.id, ready.task.partition) {
        // Taken back while it waited here. Should it have been released since, disk knows.
        worker.schedule_task(&ready.task);
        return None;
    }
    if !worker.leases.is_active(ready.task.partition) {
        // Its partition goes, or went, to another node, which finds it on disk.
        worker.in_flight.finish(ready.task.id);
        return None;
    }
    if worker.holds.is_account_held(ready.task.account) {
        worker.park(&ready.task);
        return None;
    }
    if let Some(again) = worker.suspended_until(ready.task.address.domain(), Some(site.route())) {
        worker.defer_suspended(&ready.task, Some(site.route()), again);
        return None;
    }
    if Box::pin(worker.expire_if_lapsed(&ready)).await {
        return None;
    }
    if ready.body.is_none() {
        let Some(share) = room.await else {
            worker.defer(&ready.task, worker.after(IDLE_TIMEOUT));
            return None;
        };
        match store::email::get_body(&worker.store, ready.task.account, ready.task.id.email).await {
            Ok(Some(bytes)) => ready.body = Some(worker.bodies.buffer(bytes, share)),
            Err(store::engine::ReadError::Away(_)) => {
                // It comes back by itself; nothing was tried.
                worker.defer(&ready.task, worker.after(IDLE_TIMEOUT));
                return None;
            }
            Ok(None) | Err(_) => {
                tracing::error!(
                    email.id = %ready.task.id.email,
                    "the message cannot be read; run `postrider admin store check`"
                );
                let text = "the message could not be read from the store".to_owned();
                let attempted =
                    worker.no_connection_result(Outcome::Unreachable(text), AttemptPhase::Connect, worker.clock.now());
                worker.record_outcome(&ready, &attempted).await;
                return None;
            }
        }
    }
    let body = ready.body.as_ref().map(|held| held.chunks().to_vec()).unwrap_or_default();
    let shipment = outgoing_message(worker, &ready.task, body).await;
    Some(MessageToSend { ready, message: shipment })
}

async fn outgoing_message(worker: &Worker, task: &Task, mut body: Vec<bytes::Bytes>) -> OutgoingMessage {
    let sender = task.domain.as_ref().and_then(|domain| worker.verp.address(task.id, &domain.child("rp").ok()?));
    if let Some(signer) = worker.transaction_signer.get() {
        body = signer.sign(task, sender.as_ref(), body, worker.clock.now()).await;
    }
    OutgoingMessage {
        sender,
        recipient: task.address.clone(),
        body,
        eight_bit: task.eight_bit,
        smtputf8: task.smtputf8,
        require_tls: task.require_tls,
        dsn: dsn_parameters(task),
        deliver_by: task.by.map(|by| smtp::DeliverByParameter {
            seconds: by.at.duration_since(worker.clock.now()).as_secs(),
            since: tokio::time::Instant::now(),
            return_if_late: by.returns,
        }),
        priority: task.priority,
    }
}

/// The host is asked to report failure, whatever the client wants to be told: what it reports comes to our
/// own return path, and we tell the client, or not.
fn dsn_parameters(task: &Task) -> Option<DsnParameters> {
    if task.notify.is_default() && task.envelope_id.is_none() {
        return None;
    }
    let notify = smtp::DsnNotify::On { success: false, failure: true, delay: false };
    Some(DsnParameters {
        ret: Some(if task.return_full { DsnReturn::Full } else { DsnReturn::Headers }),
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
async fn handle_connect_error(
    worker: &Arc<Worker>,
    site: &Arc<ReadyQueue>,
    this: MessageToSend,
    mut no_line: HostConnectError,
) {
    let now = worker.clock.now();
    let because = no_line.result.diagnostic();
    site.record_error(no_line.result.error_text(), now);
    match classify_connect_failure(worker, &mut no_line.result) {
        // Fewer connections may be all that is wanted: the message is not to blame.
        Some(Backpressure::SlowDown) => site.reduce_rate(&because, now),
        Some(pressure) => {
            apply_backpressure(worker, site, pressure, &no_line.result);
            return worker.record_outcome(&this.ready, &no_line.result).await;
        }
        None => {}
    }
    if !no_line.is_queue_unreachable {
        // What we say in its stead the site has not said.
        if !matches!(no_line.result.outcome, Outcome::Undeliverable(_)) {
            site.reduce_connections(&because);
        }
        return worker.record_outcome(&this.ready, &no_line.result).await;
    }
    match site.connect_failed(now) {
        ConnectFailure::AtConnectionLimit => requeue(worker, site, this),
        ConnectFailure::Failed => worker.record_outcome(&this.ready, &no_line.result).await,
        ConnectFailure::Dead { until, waiting } => {
            defer_all(worker, site, waiting, until);
            worker.note_delay(this.ready.task.queue_name(), site);
            worker.record_outcome(&this.ready, &no_line.result).await;
        }
    }
}

/// Puts a task off that was taken while another connection heard that the site wants to be left alone.
fn defer_if_unavailable(worker: &Worker, site: &ReadyQueue, taken: &MessageToSend) -> bool {
    let Some(until) = site.unavailable_until(worker.clock.now()) else { return false };
    worker.defer(&taken.ready.task, until);
    worker.note_delay(taken.ready.task.queue_name(), site);
    true
}

/// Leaves a task to disk whose account was suspended since it was taken.
fn defer_if_account_held(worker: &Worker, taken: &MessageToSend) -> bool {
    let task = &taken.ready.task;
    let is_held = worker.holds.is_account_held(task.account);
    if is_held {
        worker.park(task);
    }
    is_held
}

/// Puts tasks of a site that is left alone back to disk, untried, and has their senders told.
fn defer_all(worker: &Worker, site: &ReadyQueue, waiting: Vec<ReadyTask>, until: Timestamp) {
    let queues: HashSet<QueueName> = waiting.iter().map(|ready| ready.task.queue_name()).collect();
    defer_to_disk(worker, waiting, until);
    queues.into_iter().for_each(|queue| worker.note_delay(queue, site));
}

/// Leaves tasks to disk, untried.
pub(crate) fn defer_to_disk(worker: &Worker, waiting: Vec<ReadyTask>, until: Timestamp) {
    for ready in waiting {
        if worker.in_flight.start(ready.task.id, ready.task.partition) {
            worker.defer(&ready.task, until);
        } else {
            worker.schedule_task(&ready.task);
        }
    }
}

/// Judges a host that refused to be spoken to; none when it is as any that cannot be reached.
fn classify_connect_failure(worker: &Worker, attempted: &mut AttemptResult) -> Option<Backpressure> {
    let (Outcome::Deferred(reply), Some(host)) = (&attempted.outcome, &attempted.mx_host) else {
        return None;
    };
    let judged = judgement::classify_connect_reply(&worker.delivery_policy().shaping, host, attempted.phase, reply)?;
    if judged.verdict == TransactionVerdict::PermanentFailure {
        attempted.outcome = Outcome::Failed(reply.clone());
    }
    Some(judged.backpressure)
}

/// Judges how a message fared, and settles it: what the site is given after it, and what becomes of it.
async fn handle_delivery(
    worker: &Arc<Worker>,
    site: &ReadyQueue,
    open: &OpenConnection,
    ready: &ReadyTask,
    (mut delivery, began_at): (TransactionResult, Timestamp),
) {
    let said = (delivery.verdict, delivery.phase);
    let shaping = &worker.delivery_policy().shaping;
    let judged = judgement::classify_reply(shaping, &open.host, said, delivery.reply.as_ref());
    delivery.verdict = judged.verdict;
    let mut attempted = attempt_result(open, delivery, began_at);
    apply_backpressure(worker, site, judged.backpressure, &attempted);
    if open.is_self && is_relaying_denied(&attempted.outcome) {
        // The domain's mail came in here when we dialled, and does no more: a loop, and nothing about the address.
        attempted.outcome = Outcome::Undeliverable(crate::plan::loop_reply(ready.task.address.domain()));
    }
    if !matches!(attempted.outcome, Outcome::Delivered(_)) {
        site.record_error(attempted.error_text(), worker.clock.now());
    }
    worker.record_outcome(ready, &attempted).await;
}

fn is_relaying_denied(outcome: &Outcome) -> bool {
    let Outcome::Failed(reply) = outcome else { return false };
    reply.enhanced.is_some_and(|enhanced| (enhanced.class, enhanced.subject, enhanced.detail) == (5, 7, 1))
}

fn apply_backpressure(worker: &Worker, site: &ReadyQueue, pressure: Backpressure, after: &AttemptResult) {
    let now = worker.clock.now();
    match pressure {
        Backpressure::Unchanged => {}
        Backpressure::Answered => site.record_answer(),
        Backpressure::Accepted => site.record_accepted(now),
        Backpressure::FewerConnections => site.reduce_connections(&after.diagnostic()),
        Backpressure::SlowDown => site.reduce_rate(&after.diagnostic(), now),
        Backpressure::BackOff(rest, because) => {
            tracing::warn!(site = %site.route().queue_name, because, "a site asks to be left alone");
            let (until, waiting) = site.back_off(rest, because, now);
            defer_all(worker, site, waiting, until);
        }
    }
}

fn attempt_tls(tls: smtp::OutboundTls, policy: TlsPolicy) -> AttemptTls {
    AttemptTls { version: tls.version.to_owned(), cipher: tls.cipher.to_owned(), verified: tls.verified, policy }
}

fn attempt_result(open: &OpenConnection, delivery: TransactionResult, began_at: Timestamp) -> AttemptResult {
    let fault = || delivery.fault.map_or_else(|| "the connection broke".to_owned(), |fault| fault.to_string());
    let outcome = match (delivery.verdict, delivery.reply) {
        (TransactionVerdict::Accepted, Some(reply)) => Outcome::Delivered(reply),
        (TransactionVerdict::PermanentFailure, Some(reply)) if delivery.phase == smtp::TransactionPhase::Local => {
            Outcome::Undeliverable(reply)
        }
        (TransactionVerdict::PermanentFailure, Some(reply)) => Outcome::Failed(reply),
        (TransactionVerdict::TransientFailure, Some(reply)) => Outcome::Deferred(reply),
        (TransactionVerdict::Unsupported, Some(reply)) => Outcome::Undeliverable(reply),
        (TransactionVerdict::Unconfirmed, _) => Outcome::Unconfirmed(fault()),
        _ => Outcome::Unreachable(fault()),
    };
    AttemptResult {
        outcome,
        phase: judgement::attempt_phase(delivery.phase),
        began_at,
        duration: delivery.duration,
        mx_host: Some(open.host.clone()),
        ip: Some(open.ip),
        source: open.connection.source_ip(),
        tls: delivery.tls.map(|tls| attempt_tls(tls, open.policy)),
        transcript: delivery.transcript.to_string(),
        is_untried: false,
        earlier_reply: None,
    }
}
