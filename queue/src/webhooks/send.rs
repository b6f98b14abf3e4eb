//! Sending: a task for each endpoint that has something due reads its line a slice at a time, posts some side by
//! side, and has done when nothing more is due.
//!
//! How many are side by side follows what the endpoint does: one more with each that it takes, half with each that
//! it does not.

use std::collections::{HashSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use jiff::Timestamp;
use mail::delivery::{Delivery, DeliveryAttempt, RESPONSE_BYTES_MAX};
use mail::id::DeliveryId;
use mail::webhook::sign;
use store::delivery::{Due, LineName};
use store::engine::ReadError;
use tokio::sync::Notify;
use tokio::time::Instant;

use super::Webhooks;
use super::destination::Destination;
use crate::clock::Clock;
use crate::courier::http::{Again, Post};
use crate::worker::Worker;

/// Deliveries of one endpoint read at once.
const SLICE: usize = 64;
/// Posts to one endpoint side by side.
const WIDTH_MAX: usize = 32;
/// Those at first.
const WIDTH_FIRST: usize = 8;
/// Deliveries of one endpoint that are posted or being booked: when the store is slow, posting waits for it.
const UNDER_WAY_MAX: usize = 512;
/// How soon is looked again what the store could not read or take.
const AGAIN: Duration = Duration::from_secs(1);

/// An attempt that was made.
#[derive(Debug)]
pub(super) struct Tried {
    pub(super) due: Due,
    pub(super) delivery: Delivery,
    pub(super) attempt: DeliveryAttempt,
    /// For how long the endpoint asked to be left alone.
    pub(super) retry_after: Option<Duration>,
}

impl Tried {
    /// Whether the endpoint took it.
    pub(super) fn is_taken(&self) -> bool {
        self.attempt.response_status.is_some_and(|status| (200..300).contains(&status))
    }
}

impl Worker {
    /// Keeps serving lines that are due until the worker stops.
    pub(crate) async fn keep_sending(self: Arc<Self>) {
        while !self.stop.is_cancelled() {
            let (due, next) = self.webhooks.lines.due(self.clock.now());
            for (line, wake) in due {
                let worker = Arc::clone(&self);
                self.spawn(async move { worker.serve(line, &wake).await });
            }
            tokio::select! {
                () = self.webhooks.lines.heard() => {}
                () = self.clock.sleep_until(next) => {}
                () = self.stop.cancelled() => return,
            }
        }
    }

    /// Finds the lines of a partition on disk: one look-up each.
    pub(crate) async fn find_lines(&self, partition: u16) -> Result<(), ReadError> {
        let mut from = None;
        while let Some((line, due, next)) = store::delivery::next_line(&self.store, partition, from).await? {
            self.webhooks.lines.note(line, due);
            from = Some(next);
        }
        Ok(())
    }

    async fn serve(self: Arc<Self>, line: LineName, wake: &Notify) {
        let next = match self.serve_due(line, wake).await {
            Ok(next) => next,
            Err(error) => {
                store::warn_unless_away!(self.store, %error, webhook.id = %line.webhook, "deliveries cannot be read at the moment");
                Some(self.later(AGAIN))
            }
        };
        // What is not ours any more, its new owner finds.
        let ours = self.leases.is_active(line.partition);
        self.webhooks.lines.leave(line, next.filter(|_| ours));
    }

    /// Tries all that is due; says when the next is.
    async fn serve_due(&self, line: LineName, wake: &Notify) -> Result<Option<Timestamp>, ReadError> {
        let mut service = Service { width: WIDTH_FIRST, ..Service::default() };
        let (mut posting, mut settling) = (FuturesUnordered::new(), FuturesUnordered::new());
        loop {
            let goes_on = !self.stop.is_cancelled() && self.leases.is_active(line.partition);
            if goes_on && service.waiting.is_empty() && !service.is_done {
                self.read_slice(line, &mut service).await?;
            }
            while goes_on && posting.len() < service.width && service.under_way.len() < UNDER_WAY_MAX {
                let Some((due, delivery)) = service.waiting.pop_front() else { break };
                service.under_way.insert(due.delivery);
                posting.push(self.post(service.destination.clone(), due, delivery));
            }
            if posting.is_empty() && settling.is_empty() {
                if goes_on && !service.is_done {
                    continue;
                }
                return Ok(service.next.filter(|_| goes_on));
            }
            tokio::select! {
                Some(tried) = posting.next(), if !posting.is_empty() => {
                    // Those that are ready by now are booked together.
                    let mut tried = vec![tried];
                    while let Some(Some(one)) = futures_util::FutureExt::now_or_never(posting.next()) {
                        tried.push(one);
                    }
                    tried.iter().for_each(|one| service.learn(one.is_taken()));
                    settling.push(self.settle_deliveries(line, tried));
                }
                Some(settled) = settling.next(), if !settling.is_empty() => {
                    for id in settled {
                        service.under_way.remove(&id);
                    }
                    // Something may be due again.
                    service.is_done = false;
                }
                () = wake.notified() => service.is_done = false,
                () = self.clock.sleep_until(service.next.unwrap_or(Timestamp::MAX)), if service.is_done => {
                    service.is_done = false;
                }
            }
        }
    }

    /// Reads what is due and not under way.
    async fn read_slice(&self, line: LineName, service: &mut Service) -> Result<(), ReadError> {
        self.webhooks.lines.look(line);
        let limit = service.under_way.len() + SLICE;
        let (due, next) = store::delivery::due(&self.store, line, self.clock.now(), limit).await?;
        let fresh: Vec<_> =
            due.into_iter().filter(|(due, _)| !service.under_way.contains(&due.delivery)).collect();
        (service.next, service.is_done) = (next, fresh.is_empty());
        if fresh.is_empty() {
            return Ok(());
        }
        match Destination::of(&self.store, line).await? {
            Some(destination) if destination.is_open() => {
                service.destination = Some(Arc::new(destination));
                let mut orphans = Vec::new();
                for (due, delivery) in fresh {
                    match delivery {
                        Some(delivery) => service.waiting.push_back((due, delivery)),
                        None => orphans.push((due, None)),
                    }
                }
                if !orphans.is_empty() && !self.drop_deliveries(line, orphans, true).await {
                    (service.next, service.is_done) = (Some(self.later(AGAIN)), true);
                }
            }
            found => {
                let dropped = self.drop_deliveries(line, fresh, found.is_none()).await;
                if !dropped {
                    (service.next, service.is_done) = (Some(self.later(AGAIN)), true);
                }
            }
        }
        Ok(())
    }

    async fn post(&self, to: Option<Arc<Destination>>, due: Due, delivery: Delivery) -> Tried {
        let at = self.clock.now();
        let (mut answer, mut duration_ms) = (Err("the endpoint is gone".to_owned()), 0);
        if let Some(destination) = to {
            let _place = self.webhooks.posts.take(destination.account()).await;
            let begun = Instant::now();
            answer = match self.webhooks.body(&self.store, &delivery).await {
                Ok(Some(body)) => {
                    let post = self.webhooks.signed(&destination, &delivery, body, &self.clock);
                    match post {
                        Some(post) => {
                            self.webhooks.poster.post(post).await.map_err(|error| error.to_string())
                        }
                        None => Err("the endpoint's secret cannot be opened".to_owned()),
                    }
                }
                Ok(None) => Err("the event is not kept any more".to_owned()),
                Err(error) => Err(format!("the event cannot be read: {error}")),
            };
            duration_ms = u32::try_from(begun.elapsed().as_millis()).unwrap_or(u32::MAX);
        }
        let number = delivery.attempts.saturating_add(1);
        let (attempt, retry_after) = match answer {
            Ok(answer) => {
                let kept = answer.body.get(..RESPONSE_BYTES_MAX).unwrap_or(&answer.body);
                let response_body = String::from_utf8_lossy(kept).into_owned();
                let pause = answer.retry_after_s.filter(|_| matches!(answer.status, 429 | 503));
                let response_status = Some(answer.status);
                (
                    DeliveryAttempt { number, at, response_status, response_body, duration_ms, error: None },
                    pause.map(Duration::from_secs),
                )
            }
            Err(error) => {
                let (response_status, response_body) = (None, String::new());
                let error = Some(error);
                (DeliveryAttempt { number, at, response_status, response_body, duration_ms, error }, None)
            }
        };
        Tried { due, delivery, attempt, retry_after }
    }
}

impl Webhooks {
    /// A delivery, signed now: at the machine's time, for receivers compare it with theirs, and know nothing of a clock
    /// that was moved for a test.
    fn signed(
        &self,
        destination: &Destination,
        delivery: &Delivery,
        body: bytes::Bytes,
        clock: &Clock,
    ) -> Option<Post> {
        let now = clock.now();
        let (row, secret) = destination.secret();
        let mut secrets = vec![self.open(row, &secret.0)?];
        if let Destination::Endpoint(endpoint, _) = destination {
            let former = endpoint.former_secrets.iter().filter(|former| former.until > now);
            secrets.extend(former.filter_map(|former| self.open_former(endpoint.id, &former.sealed.0)));
        }
        let id = delivery.event.to_string();
        let signed = sign(secrets.iter().map(AsRef::as_ref), &id, clock.machine_now(), &body);
        Some(Post {
            url: destination.url().to_owned(),
            headers: vec![
                ("service-signature", signed.service_signature),
                ("webhook-id", id),
                ("webhook-timestamp", signed.timestamp),
                ("webhook-signature", signed.webhook_signature),
            ],
            body,
            timeout: destination.attempt_max(),
            // By `webhook-id`.
            again: Again::Harmless,
        })
    }
}

/// One line while it is served.
#[derive(Debug, Default)]
struct Service {
    destination: Option<Arc<Destination>>,
    /// Read and not begun.
    waiting: VecDeque<(Due, Delivery)>,
    /// Begun and not booked.
    under_way: HashSet<DeliveryId>,
    /// How many are posted side by side.
    width: usize,
    /// Nothing more is due, as of the last look.
    is_done: bool,
    /// When the next is due, as of the last look.
    next: Option<Timestamp>,
}

impl Service {
    fn learn(&mut self, is_taken: bool) {
        self.width = if is_taken { (self.width + 1).min(WIDTH_MAX) } else { (self.width / 2).max(1) };
    }
}
