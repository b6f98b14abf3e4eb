//! Delivery attempts: the life of one connection of a ready queue.
//!
//! ```text
//! take a task ─► dial (hosts in order) ─► deliver, with the next envelope pipelined behind ─► record the outcome ─► …
//! ```
//!
//! A connection carries messages until the queue is empty, its message limit is reached, the rate limits allow fewer
//! connections, or it breaks. It waits idle for more work only where messages follow one another; otherwise it quits
//! with its last message, so that a thousand hosts with one message each hold no idle sessions. An attempt is committed
//! before the last byte of the next message is sent: a crash repeats at most one message for each connection.

use net::limit::body_budget::BodyBudget;
use parking_lot::Mutex;
use std::collections::{HashMap, HashSet};
use std::net::IpAddr;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use bytes::Bytes;
use jiff::Timestamp;
use message::address::DomainName;
use message::outcome::{AttemptPhase, Outcome};
use model::attempt::{AttemptTls, TlsPolicy};
use model::slug::SmarthostName;
use model::task::{QueueName, Task};
use store::engine::ReadError;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use self::connect::{SmarthostOutages, connect};
use crate::delivery::client::smtp::{
    self, DsnParameters, DsnReturn, OriginalRecipient, OutgoingMessage, SmtpConnection, SmtpDialer, TlsSecurityLevel,
    TransactionResult, TransactionVerdict,
};
use crate::delivery::commit_retries::CommitRetries;
use crate::delivery::delivery_policy::SharedDeliveryPolicy;
use crate::delivery::dkim2::TransactionSigner;
use crate::delivery::keys::DeliveryKeys;
use crate::delivery::outcome::AttemptResult;
use crate::delivery::outcome_writer::OutcomeWriter;
use crate::delivery::reply_policy;
use crate::delivery::tls_session_stats::{TlsSession, TlsSessionStats};
use crate::routing::MailRoute;
use crate::scheduler::Scheduler;
use crate::scheduler::damaged_tasks::UnreadablePart;
use crate::scheduler::destination_queues::DestinationQueues;
use crate::scheduler::pacing::Backpressure;
use crate::scheduler::pause_state::PauseState;
use crate::scheduler::provider_limits::ProviderConnectionPermit;
use crate::scheduler::ready_queue::{
    ConnectDecision, ConnectFailure, DeferredTasks, IDLE_TIMEOUT, NextWork, ReadyQueue, ReadyTask, WorkAhead,
};
use crate::sealed_body;
use crate::services::Services;

mod connect;

/// Delivers the tasks of ready queues over SMTP.
pub(crate) struct DeliveryAgent {
    pub(crate) services: Services,
    pub(crate) queues: Arc<DestinationQueues>,
    pub(crate) scheduler: Arc<Scheduler>,
    pub(crate) outcomes: OutcomeWriter,
    pub(crate) pause: PauseState,
    pub(crate) policy: Arc<SharedDeliveryPolicy>,
    pub(crate) bodies: BodyBudget,
    pub(crate) connections: Arc<Semaphore>,
    /// Largest number of connections to mail hosts.
    pub(crate) connections_max: usize,
    pub(crate) dialer: SmtpDialer,
    pub(crate) tls: TlsSecurityLevel,
    pub(crate) tls_stats: Arc<TlsSessionStats>,
    pub(crate) keys: DeliveryKeys,
    /// Signer of transactions (DKIM2), if enabled.
    pub(crate) transaction_signer: OnceLock<TransactionSigner>,
    /// Smarthosts that failed, for the log. Their number is bounded by the configuration.
    pub(crate) smarthost_outages: Mutex<HashMap<SmarthostName, SmarthostOutages>>,
}

impl DeliveryAgent {
    /// Reads the message of a task from the store.
    async fn read_body(&self, task: &Task) -> Result<Option<Bytes>, ReadError> {
        let stored = store::email::get_body(&self.services.store, task.account, task.id.email).await?;
        let open = |stored| sealed_body::open(&self.keys.vault, task.account, task.id.email, stored);
        stored.map(open).transpose().map_err(|error| ReadError::Corrupt(error.to_string().into()))
    }

    /// Ends a taken task if it has expired. Returns whether it has.
    pub(crate) async fn expire_if_lapsed(self: &Arc<Self>, ready: &ReadyTask) -> bool {
        let is_lapsed = ready.task.is_expired(self.services.clock.now());
        if is_lapsed {
            self.expire_task(ready).await;
        }
        is_lapsed
    }

    /// Ends an expired task that is not in an attempt. Returns false if it changed concurrently.
    pub(crate) async fn expire_task(self: &Arc<Self>, ready: &ReadyTask) -> bool {
        let reason = match self.queues.last_error(&ready.task) {
            Some(error) => {
                format!("expired before it could be attempted; the destination's last error: {error}")
            }
            None => "expired before its first attempt".to_owned(),
        };
        let result = self.outcomes.untried_result(&ready.task, &reason).await;
        matches!(self.outcomes.commit_outcome(ready, &result, CommitRetries::Unlimited).await, Ok(true))
    }

    /// Opens a connection if the ready queue requests one.
    pub(crate) fn follow_connect_decision(self: &Arc<Self>, site: &Arc<ReadyQueue>, call: ConnectDecision) {
        if call == ConnectDecision::Connect {
            if self.services.stop.is_cancelled() {
                // Shutdown: open no connections; queued tasks stay on disk.
                site.connection_ended(true);
                return;
            }
            self.services.spawn(run_connection(Arc::clone(self), Arc::clone(site)));
        }
    }
}

/// A task and its message in memory.
struct MessageToSend {
    ready: ReadyTask,
    message: OutgoingMessage,
}

/// An open SMTP connection and its peer.
struct OpenConnection {
    /// Permit of the limit on all outgoing connections.
    _permit: Arc<OwnedSemaphorePermit>,
    connection: SmtpConnection,
    /// Host name for attempt records and reports.
    host: String,
    ip: IpAddr,
    /// `None` for a smarthost.
    order: Option<HostOrder>,
    /// The policy that decided the protection of the connection.
    policy: TlsPolicy,
    /// TLS session to be counted for TLS reports, if it counts.
    tls_session: Option<TlsSession>,
    /// The peer is this server. Such a connection carries one message, so that each message's route is checked anew: its
    /// domain may no longer be local.
    is_self: bool,
    /// Number of messages sent on this connection.
    sent: u32,
}

/// Order in which a connection's hosts were tried. Preferences are numbered from 0, the best.
struct HostOrder {
    /// The preference at which the attempt began.
    first: usize,
    /// The preference of the connected host.
    connected: usize,
}

impl HostOrder {
    fn of_attempt(route: &MailRoute, task: &Task, host: &DomainName) -> Self {
        let first = route.first_preference(task.attempts);
        Self { first, connected: route.preference_number(host).unwrap_or(first) }
    }
}

impl OpenConnection {
    /// True if the task's attempt may use the connection. An attempt that begins at the best hosts may use one that was
    /// opened so, whichever host took it, and one that begins at another preference as well.
    fn serves(&self, site: &ReadyQueue, task: &Task) -> bool {
        let Some(order) = &self.order else { return true };
        match site.route.first_preference(task.attempts) {
            0 => order.first == 0 || order.connected == 0,
            _ => order.first != 0 || order.connected != 0,
        }
    }

    /// Counts a message that is sent on this connection.
    fn count_message(&mut self, agent: &DeliveryAgent, task: &Task) {
        self.sent += 1;
        if let Some(session) = &mut self.tls_session {
            agent.tls_stats.count_session(task, session);
        }
    }
}

/// No host could be connected to.
struct HostConnectError {
    result: AttemptResult,
    /// True if the destination as a whole is unreachable, rather than refusing this message.
    is_queue_unreachable: bool,
}

/// Runs one connection of a ready queue until it is not needed. The queue has counted the connection already.
pub(crate) async fn run_connection(agent: Arc<DeliveryAgent>, site: Arc<ReadyQueue>) {
    let mut connection: Option<OpenConnection> = None;
    let mut next: Option<MessageToSend> = None;
    let mut counted = true;
    let mut share: Option<ProviderConnectionPermit> = None;
    loop {
        let message = match next_message(&agent, &site, &mut connection, &mut next, &mut share).await {
            ConnectionWork::Message(message) => *message,
            ConnectionWork::Nothing => break,
            ConnectionWork::Close => {
                counted = false;
                break;
            }
        };
        if connection.is_none() && defer_if_unavailable(&agent, &site, &message) {
            continue;
        }
        let mut open = match connection.take() {
            Some(open) => open,
            // Lookup and connect need large futures for a short time: boxed, so that an idle connection stays small.
            None => match Box::pin(connect(&agent, &site, &message.ready.task)).await {
                Ok(open) => open,
                Err(connect_error) => {
                    Box::pin(handle_connect_error(&agent, &site, message, connect_error)).await;
                    break;
                }
            },
        };
        share.iter_mut().for_each(ProviderConnectionPermit::finish_dial);
        // Dialling, or the message before, may have taken minutes: check again.
        if defer_if_account_held(&agent, &message) || Box::pin(agent.expire_if_lapsed(&message.ready)).await {
            agent.scheduler.wake_parked(&site);
            connection = after_unsent(&site, open, &mut share).await;
            continue;
        }
        open.count_message(&agent, &message.ready.task);
        let last = is_last_message(&agent, &open, share.as_ref());
        let WorkAhead { connect: decision, next: ahead, is_last: last } =
            site.work_ahead(open.sent, last, agent.services.clock.now());
        agent.follow_connect_decision(&site, decision);
        next = match ahead {
            Some(ready) => load_ahead(&agent, &site, *ready).await,
            None => None,
        };
        // A retry that begins at other hosts needs another connection.
        let last = last || next.as_ref().is_some_and(|next| !open.serves(&site, &next.ready.task));
        let began_at = agent.services.clock.now();
        let delivery = deliver_message(&mut open.connection, &message, next.as_ref(), last).await;
        if delivery.phase == smtp::TransactionPhase::Idle && open.sent > 1 {
            // The host closed the idle connection: this message was not tried, so dial again for it.
            site.connection_closed();
            next.into_iter().for_each(|unsent| requeue(&agent, &site, unsent));
            next = Some(message);
            continue;
        }
        if delivery.fault == Some(smtp::SmtpFault::Cancelled) && delivery.verdict != TransactionVerdict::Unconfirmed {
            // Shutdown cut it off before the message can have arrived: it stays queued for the next start, untried.
            site.connection_closed();
            requeue(&agent, &site, message);
            break;
        }
        Box::pin(handle_delivery(&agent, &site, &open, &message.ready, delivery, began_at)).await;
        drop(message);
        agent.scheduler.wake_parked(&site);
        if open.connection.is_usable() && !last {
            connection = Some(open);
        } else {
            quit_connection(&site, open).await;
            share = None;
        }
    }
    drop(share);
    finish_connection(&agent, &site, connection, next, counted).await;
}

/// Requeues the pipelined message, uncounts the connection and sends QUIT.
async fn finish_connection(
    agent: &Arc<DeliveryAgent>,
    site: &Arc<ReadyQueue>,
    connection: Option<OpenConnection>,
    next: Option<MessageToSend>,
    is_counted: bool,
) {
    next.into_iter().for_each(|unsent| requeue(agent, site, unsent));
    let open = connection.inspect(|_| site.connection_closed());
    if is_counted {
        agent.follow_connect_decision(site, site.connection_ended(agent.services.stop.is_cancelled()));
    }
    if let Some(open) = open {
        open.connection.quit().await;
    }
}

/// Returns the message that was taken ahead, or else the next one of the queue. Closes a connection whose host is not
/// the one at which the message's attempt begins.
async fn next_message(
    agent: &Arc<DeliveryAgent>,
    site: &Arc<ReadyQueue>,
    connection: &mut Option<OpenConnection>,
    next: &mut Option<MessageToSend>,
    share: &mut Option<ProviderConnectionPermit>,
) -> ConnectionWork {
    let work = take_message(agent, site, connection, next, share).await;
    let other = match &work {
        ConnectionWork::Message(message) => connection.take_if(|open| !open.serves(site, &message.ready.task)),
        ConnectionWork::Nothing | ConnectionWork::Close => None,
    };
    if let Some(other) = other {
        site.connection_closed();
        // The message does not wait for the reply to QUIT.
        tokio::spawn(async move {
            let OpenConnection { connection, _permit, .. } = other;
            connection.quit().await;
        });
    }
    work
}

async fn take_message(
    agent: &Arc<DeliveryAgent>,
    site: &Arc<ReadyQueue>,
    connection: &mut Option<OpenConnection>,
    next: &mut Option<MessageToSend>,
    share: &mut Option<ProviderConnectionPermit>,
) -> ConnectionWork {
    let Some(message) = next.take() else { return take_when_unpaused(agent, site, connection, share).await };
    // A stop waits for attempts in progress only for a time: it would abort one that begins now, and repeat it.
    if !agent.services.stop.is_cancelled() && acquire_provider_permit(agent, site, share).await {
        return ConnectionWork::Message(Box::new(message));
    }
    *next = Some(message);
    ConnectionWork::Nothing
}

/// Returns whether the connection closes after this message, whatever the queue holds.
fn is_last_message(agent: &DeliveryAgent, open: &OpenConnection, share: Option<&ProviderConnectionPermit>) -> bool {
    open.is_self || share.is_some_and(|share| share.should_yield(open.sent)) || agent.pause.is_stopped_or_paused()
}

async fn deliver_message(
    to: &mut SmtpConnection,
    message: &MessageToSend,
    next: Option<&MessageToSend>,
    last: bool,
) -> TransactionResult {
    match last {
        true => to.deliver_last(&message.message).await,
        false => to.deliver(&message.message, next.map(|next| &next.message)).await,
    }
}

/// Handles a connection whose message is not sent after all. Unless the message would be the first, its envelope may be
/// pipelined already: quit rather than send content.
async fn after_unsent(
    site: &ReadyQueue,
    open: OpenConnection,
    share: &mut Option<ProviderConnectionPermit>,
) -> Option<OpenConnection> {
    if open.sent == 0 {
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

fn requeue(agent: &Arc<DeliveryAgent>, site: &Arc<ReadyQueue>, unsent: MessageToSend) {
    agent.scheduler.in_flight.requeue(unsent.ready.task.id);
    let call = site.requeue(unsent.ready);
    agent.follow_connect_decision(site, call);
}

/// Work for a connection.
enum ConnectionWork {
    Message(Box<MessageToSend>),
    /// No work.
    Nothing,
    /// No work, and the queue no longer counts the connection.
    Close,
}

/// Takes the next task. While delivery is paused, closes the connection and waits first.
async fn take_when_unpaused(
    agent: &Arc<DeliveryAgent>,
    site: &Arc<ReadyQueue>,
    connection: &mut Option<OpenConnection>,
    share: &mut Option<ProviderConnectionPermit>,
) -> ConnectionWork {
    if agent.pause.is_paused() {
        if let Some(open) = connection.take() {
            quit_connection(site, open).await;
        }
        agent.pause.wait_unpaused().await;
    }
    wait_for_work(agent, site, connection.is_some(), share).await
}

/// Takes the next task; an open connection waits for one.
async fn wait_for_work(
    agent: &Arc<DeliveryAgent>,
    site: &Arc<ReadyQueue>,
    connected: bool,
    share: &mut Option<ProviderConnectionPermit>,
) -> ConnectionWork {
    loop {
        // Acquire it before a task is taken: a connection that waits for its provider blocks no task.
        if !acquire_provider_permit(agent, site, share).await {
            return ConnectionWork::Nothing;
        }
        // While paused, the queue requests another connection, which waits until delivery resumes.
        if agent.pause.is_stopped_or_paused() {
            return ConnectionWork::Nothing;
        }
        let (now, revived) = (agent.services.clock.now(), site.retry_requested());
        match site.next_work(now) {
            NextWork::Deliver(ready) => {
                let permit = agent.bodies.acquire(ready.task.size_bytes);
                if let Some(loaded) = load_message(agent, site, *ready, permit).await {
                    return ConnectionWork::Message(Box::new(loaded));
                }
            }
            // Keep the connection through a short wait; close it before a long one and reopen it afterwards.
            NextWork::Wait(until) if connected && exceeds_idle_timeout(now, until) => {
                return ConnectionWork::Nothing;
            }
            NextWork::Wait(until) => {
                if !connected {
                    // Let another connection to this provider use the permit meanwhile.
                    *share = None;
                }
                tokio::select! {
                    () = agent.services.clock.sleep_until(until) => {}
                    () = revived => {}
                    () = agent.services.stop.cancelled() => return ConnectionWork::Nothing,
                }
            }
            NextWork::Close => return ConnectionWork::Close,
            NextWork::Idle if connected => tokio::select! {
                () = site.wait_for_work() => {}
                () = tokio::time::sleep(idle_timeout(agent, site)) => return ConnectionWork::Nothing,
                () = agent.services.stop.cancelled() => return ConnectionWork::Nothing,
            },
            NextWork::Idle | NextWork::Empty => return ConnectionWork::Nothing,
        }
    }
}

/// Waits for a connection permit of the provider; false on shutdown.
async fn acquire_provider_permit(
    agent: &DeliveryAgent,
    site: &ReadyQueue,
    share: &mut Option<ProviderConnectionPermit>,
) -> bool {
    if share.is_none() {
        *share = tokio::select! {
            share = site.acquire_provider_permit() => Some(share),
            () = agent.services.stop.cancelled() => None,
        };
    }
    share.is_some()
}

fn exceeds_idle_timeout(now: Timestamp, until: Timestamp) -> bool {
    Duration::try_from(until.duration_since(now)).is_ok_and(|wait| wait > IDLE_TIMEOUT)
}

/// Idle connections close at once when few permits are left for others.
fn idle_timeout(agent: &DeliveryAgent, site: &ReadyQueue) -> Duration {
    let scarce = site.provider_has_waiters() || agent.connections.available_permits() < agent.connections_max / 4;
    if scarce { Duration::ZERO } else { IDLE_TIMEOUT }
}

/// Loads the message whose envelope is to be pipelined, if there is memory for it now.
async fn load_ahead(agent: &Arc<DeliveryAgent>, site: &ReadyQueue, ready: ReadyTask) -> Option<MessageToSend> {
    let permit = std::future::ready(agent.bodies.try_acquire(ready.task.size_bytes));
    load_message(agent, site, ready, permit).await
}

/// Loads the message of a task. Returns `None` if the task was withdrawn, expired or held, its message cannot be read,
/// or there is no memory for it now.
async fn load_message(
    agent: &Arc<DeliveryAgent>,
    site: &ReadyQueue,
    mut ready: ReadyTask,
    permit: impl Future<Output = Option<OwnedSemaphorePermit>>,
) -> Option<MessageToSend> {
    if !agent.scheduler.in_flight.start(ready.task.id, ready.task.partition) {
        // Withdrawn while it waited here. The stored row is authoritative: reload it.
        agent.scheduler.schedule_task(&ready.task);
        return None;
    }
    if !agent.services.leases.is_active(ready.task.partition) {
        // The partition moved to another node, which loads the task from the store.
        agent.scheduler.in_flight.finish(ready.task.id);
        return None;
    }
    if agent.scheduler.holds.is_account_held(ready.task.account) {
        agent.scheduler.park(&ready.task);
        return None;
    }
    if let Some(resumes_at) = agent.queues.routes.suspended_until(ready.task.address.domain(), Some(&site.route)) {
        agent.queues.routes.defer_suspended(&ready.task, Some(&site.route), resumes_at);
        return None;
    }
    if Box::pin(agent.expire_if_lapsed(&ready)).await {
        return None;
    }
    if ready.body.is_none() {
        let Some(share) = permit.await else {
            agent.scheduler.defer(&ready.task, agent.services.clock.after(IDLE_TIMEOUT));
            return None;
        };
        match agent.read_body(&ready.task).await {
            Ok(Some(bytes)) => ready.body = Some(agent.bodies.buffer(bytes, share)),
            Err(ReadError::Away(_)) => {
                // The database is away and nothing was tried: retry later.
                agent.scheduler.defer(&ready.task, agent.services.clock.after(IDLE_TIMEOUT));
                return None;
            }
            unreadable => {
                let error = unreadable.as_ref().err().map(tracing::field::display);
                tracing::error!(
                    email.id = %ready.task.id.email, error,
                    "cannot read a queued message; check the key file, and run `postrider admin store check`"
                );
                if matches!(unreadable, Ok(_) | Err(ReadError::Corrupt(_))) {
                    agent.scheduler.damaged.record(UnreadablePart::Message(ready.task.id));
                }
                let text = "cannot read the message from the store".to_owned();
                let attempted = agent.outcomes.no_connection_result(
                    Outcome::Unreachable(text),
                    AttemptPhase::Connect,
                    agent.services.clock.now(),
                );
                agent.outcomes.record_outcome(&ready, &attempted).await;
                return None;
            }
        }
    }
    let body = ready.body.as_ref().map(|held| held.chunks().to_vec()).unwrap_or_default();
    let message = outgoing_message(agent, &ready.task, body).await;
    Some(MessageToSend { ready, message })
}

async fn outgoing_message(agent: &DeliveryAgent, task: &Task, mut body: Vec<bytes::Bytes>) -> OutgoingMessage {
    let sender = task.domain.as_ref().and_then(|domain| agent.keys.verp.address(task.id, &domain.child("rp").ok()?));
    if let Some(signer) = agent.transaction_signer.get() {
        body = signer.sign(task, sender.as_ref(), body, agent.services.clock.now()).await;
    }
    OutgoingMessage {
        sender,
        recipient: task.address.clone(),
        body,
        eight_bit: task.eight_bit,
        smtputf8: task.smtputf8,
        require_tls: task.require_tls,
        dsn: dsn_parameters(task),
        deliver_by: task.deliver_by.map(|by| smtp::DeliverByParameter {
            seconds: by.at.duration_since(agent.services.clock.now()).as_secs(),
            since: tokio::time::Instant::now(),
            return_if_late: by.returns,
        }),
        priority: task.priority,
    }
}

/// Always requests NOTIFY=FAILURE, whatever the client requested: the report arrives at our own return path, and we
/// decide whether to send the client a DSN.
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

/// Handles a message that no connection could be opened for. While other connections are open, the message waits for
/// them. If the destination is dead, all its tasks return to disk until the next probe, untried.
async fn handle_connect_error(
    agent: &Arc<DeliveryAgent>,
    site: &Arc<ReadyQueue>,
    message: MessageToSend,
    mut connect_error: HostConnectError,
) {
    let now = agent.services.clock.now();
    site.record_error(connect_error.result.error_text(), now);
    match classify_connect_failure(agent, &mut connect_error.result) {
        // Fewer connections may be all that the host requires: do not penalise the message.
        Some(pressure @ Backpressure::SlowDown) => apply_backpressure(agent, site, pressure, &connect_error.result),
        Some(pressure) => {
            apply_backpressure(agent, site, pressure, &connect_error.result);
            return agent.outcomes.record_outcome(&message.ready, &connect_error.result).await;
        }
        None => {}
    }
    if !connect_error.is_queue_unreachable {
        // Only replies of the host lower its connection count, not failures that we raise ourselves.
        if !matches!(connect_error.result.outcome, Outcome::Undeliverable(_)) {
            apply_backpressure(agent, site, Backpressure::FewerConnections, &connect_error.result);
        }
        return agent.outcomes.record_outcome(&message.ready, &connect_error.result).await;
    }
    match site.connect_failed(now) {
        ConnectFailure::AtConnectionLimit => requeue(agent, site, message),
        ConnectFailure::Failed => agent.outcomes.record_outcome(&message.ready, &connect_error.result).await,
        ConnectFailure::Dead(deferred) => {
            defer_all(agent, site, deferred);
            agent.queues.note_delay(message.ready.task.queue_name(), site);
            agent.outcomes.record_outcome(&message.ready, &connect_error.result).await;
        }
    }
}

/// Defers a task if its destination was suspended after the task was taken.
fn defer_if_unavailable(agent: &DeliveryAgent, site: &ReadyQueue, message: &MessageToSend) -> bool {
    let Some(until) = site.unavailable_until(agent.services.clock.now()) else { return false };
    agent.scheduler.defer(&message.ready.task, until);
    agent.queues.note_delay(message.ready.task.queue_name(), site);
    true
}

/// Parks a task whose account was suspended after the task was taken.
fn defer_if_account_held(agent: &DeliveryAgent, message: &MessageToSend) -> bool {
    let task = &message.ready.task;
    let is_held = agent.scheduler.holds.is_account_held(task.account);
    if is_held {
        agent.scheduler.park(task);
    }
    is_held
}

/// Returns tasks of an unavailable destination to disk, untried, and notes the delay for DSNs.
fn defer_all(agent: &DeliveryAgent, site: &ReadyQueue, deferred: DeferredTasks) {
    let queues: HashSet<QueueName> = deferred.tasks.iter().map(|ready| ready.task.queue_name()).collect();
    agent.scheduler.defer_all(deferred.tasks, deferred.until);
    queues.into_iter().for_each(|queue| agent.queues.note_delay(queue, site));
}

/// Classifies a refusal before MAIL; `None` if it counts as an ordinary connect failure.
fn classify_connect_failure(agent: &DeliveryAgent, attempted: &mut AttemptResult) -> Option<Backpressure> {
    let (Outcome::Deferred(reply), Some(host)) = (&attempted.outcome, &attempted.mx_host) else {
        return None;
    };
    let decision = reply_policy::classify_connect_reply(&agent.policy.current().shaping, host, attempted.phase, reply)?;
    if decision.verdict == TransactionVerdict::PermanentFailure {
        attempted.outcome = Outcome::Failed(reply.clone());
    }
    Some(decision.backpressure)
}

/// Classifies the result of a transaction, applies its back-pressure to the ready queue and records the outcome.
async fn handle_delivery(
    agent: &Arc<DeliveryAgent>,
    site: &ReadyQueue,
    open: &OpenConnection,
    ready: &ReadyTask,
    mut delivery: TransactionResult,
    began_at: Timestamp,
) {
    let shaping = &agent.policy.current().shaping;
    let decision =
        reply_policy::classify_reply(shaping, &open.host, delivery.verdict, delivery.phase, delivery.reply.as_ref());
    delivery.verdict = decision.verdict;
    let mut attempted = attempt_result(open, delivery, began_at);
    apply_backpressure(agent, site, decision.backpressure, &attempted);
    if open.is_self && is_relaying_denied(&attempted.outcome) {
        // The domain was local when we connected and is no longer: a mail loop, not a fault of the address.
        attempted.outcome = Outcome::Undeliverable(crate::routing::loop_reply(ready.task.address.domain()));
    }
    if !matches!(attempted.outcome, Outcome::Delivered(_)) {
        site.record_error(attempted.error_text(), agent.services.clock.now());
    }
    agent.outcomes.record_outcome(ready, &attempted).await;
}

fn is_relaying_denied(outcome: &Outcome) -> bool {
    let Outcome::Failed(reply) = outcome else { return false };
    reply.enhanced.is_some_and(|enhanced| (enhanced.class, enhanced.subject, enhanced.detail) == (5, 7, 1))
}

fn apply_backpressure(agent: &DeliveryAgent, site: &ReadyQueue, pressure: Backpressure, result: &AttemptResult) {
    if let Backpressure::BackOff(_, reason) = &pressure {
        tracing::warn!(site = %site.route.queue_name, because = reason, "destination suspended after its reply");
    }
    let deferred = site.apply_backpressure(pressure, || result.diagnostic(), agent.services.clock.now());
    deferred.into_iter().for_each(|deferred| defer_all(agent, site, deferred));
}

fn attempt_tls(tls: smtp::OutboundTls, policy: TlsPolicy) -> AttemptTls {
    AttemptTls { version: tls.version.to_owned(), cipher: tls.cipher.to_owned(), verified: tls.verified, policy }
}

fn attempt_result(open: &OpenConnection, delivery: TransactionResult, began_at: Timestamp) -> AttemptResult {
    let fault = || delivery.fault.map_or_else(|| "connection lost".to_owned(), |fault| fault.to_string());
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
        phase: reply_policy::attempt_phase(delivery.phase),
        began_at,
        duration: delivery.duration,
        mx_host: Some(open.host.clone()),
        ip: Some(open.ip),
        source: open.connection.source_ip,
        tls: delivery.tls.map(|tls| attempt_tls(tls, open.policy)),
        transcript: delivery.transcript.to_string(),
        is_untried: false,
        earlier_reply: None,
    }
}
