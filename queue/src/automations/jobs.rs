//! Jobs: what there is to do beside steps, a slice at a time, each slice one commit with the note of what is left.

use std::collections::HashSet;

use mail::address::Name;
use mail::automation::context::Facts;
use mail::automation::job::{Job, Work};
use mail::automation::run::{CancelledBy, Run, RunStatus};
use mail::domain::Domain;
use mail::email::Rollup;
use mail::event::{Event, Subject};
use mail::id::{AccountId, AutomationId, ReceivedId};
use mail::payload;
use mail::received::{Answering, Received, Unanswerable};
use serde_json::Value;
use store::engine::{Batch, ReadError};
use store::run::About;
use store::run::due::{FoundJob, take_job};

use super::heard::Heard;
use super::react::{Room, Swept};
use super::retention::RUN_EVENTS_MAX;
use super::send::Tried;
use crate::accept::Hall;

/// Runs of one slice.
const SLICE: usize = 200;
/// Slices of runs that one request cancels: ten thousand runs.
const CANCELLED_SLICES_MAX: usize = 50;
/// Rows of lists forgotten in one slice.
const SLICE_ROWS: usize = 1_000;
/// Versions forgotten in one slice: each may be large.
const SLICE_VERSIONS: usize = 10;

impl Hall {
    /// Does a slice of a job.
    pub(super) async fn do_job(&self, found: &FoundJob) -> Result<Tried, ReadError> {
        let job = &found.job;
        let mut batch = Batch::progress();
        let left = match &job.work {
            Work::Hear { subject, event } => {
                self.hear_job(job, (*subject, *event), &mut batch).await?;
                None
            }
            Work::Rest { .. } => self.rest_job(job, &mut batch).await?,
            Work::Cancel { automation, before } => {
                let about = (job.account, *automation);
                self.cancel_some(about, *before, &mut batch).await?.then(|| job.work.clone())
            }
            Work::Release { automation } => {
                let about = (job.account, *automation);
                self.release_some(about, &mut batch).await?.then(|| job.work.clone())
            }
            Work::Forget { automation } => {
                let about = (job.account, *automation);
                self.forget_some(about, &mut batch).await?.then(|| job.work.clone())
            }
        };
        // What is left is put behind what others have to do meanwhile.
        let after = left.map(|work| Job { due: self.clock().now(), work, ..job.clone() });
        if let Some(after) = &after {
            self.worker.ears.appointments.note(after.partition, after.due);
        }
        take_job(&mut batch, found, after.as_ref());
        let partitions = store::run::due::partitions_of(&batch);
        let tried = self.book(batch).await?;
        if matches!(tried, Tried::Committed) {
            self.automations().wake(&partitions);
        }
        // Somebody changed a run under our hands: the slice is done again.
        Ok(if matches!(tried, Tried::Changed) { Tried::Again } else { tried })
    }

    async fn hear_job(
        &self,
        job: &Job,
        event: (Subject, mail::id::EventId),
        batch: &mut Batch,
    ) -> Result<(), ReadError> {
        let Some(event) = store::event::get(self.store(), job.account, event).await? else { return Ok(()) };
        if let Some(heard) = self.heard_of(&event).await? {
            self.automations().hear(&heard, batch).await?;
        }
        Ok(())
    }

    /// An event of ours, as automations hear it: with the payload of its webhooks as data. None when what it is
    /// about is gone.
    async fn heard_of(&self, event: &Event) -> Result<Option<Heard>, ReadError> {
        let mut answering = None;
        let (data, email, lineage) = match event.subject {
            Subject::Email(id) => {
                let Some(found) = store::email::get(self.store(), event.account, id).await? else {
                    return Ok(None);
                };
                let status = Rollup::of(&found.recipients).status;
                let data = payload::data_of(&found.email, event, status);
                let first = found.recipients.first().map(|recipient| recipient.address.to_string());
                let whom = event.recipient.as_ref().map(ToString::to_string).or(first);
                (Value::Object(data), whom, self.lineage(event.account, found.email.run).await?)
            }
            Subject::Received(id) => {
                let answer = self.answering(event.account, id).await?;
                let author = answer.author.as_ref().map(ToString::to_string);
                answering = Some(answer);
                (event.detail.clone(), author, Vec::new())
            }
            // What else happens is not heard ([`mail::event::EventKind::is_heard_by_automations`]).
            _ => return Ok(None),
        };
        let machine = ["open", "click"].iter().any(|kind| {
            event.detail.pointer(&format!("/{kind}/machine")).and_then(Value::as_bool).unwrap_or_default()
        });
        let facts = Facts { name: event.kind.name().to_owned(), email, user_id: None, data };
        let (account, at) = (event.account, event.created_at);
        Ok(Some(Heard { account, facts, source: event.id.to_string(), at, machine, lineage, answering }))
    }

    /// What an answer to a received email must heed. An author whose mail comes in here for the same account is the
    /// account itself: an answer would be received in turn.
    async fn answering(&self, account: AccountId, id: ReceivedId) -> Result<Answering, ReadError> {
        let Some(received) = store::received::get(self.store(), account, id).await? else {
            return Ok(Answering::of_deleted());
        };
        let mut answering = Answering::of(&received);
        if answering.unanswerable == Some(Unanswerable::AutoSubmitted) {
            answering.is_ours = self.is_of_this_service(&received).await?;
        }
        if let (None, Some(author)) = (answering.unanswerable, &answering.author) {
            let domain = store::domain::by_name(self.store(), author.domain()).await?;
            let is_own = |domain: &Domain| domain.account == account && domain.takes_mail_in();
            if domain.is_some_and(|domain| is_own(&domain) && domain.receives(author)) {
                answering.unanswerable = Some(Unanswerable::OwnAddress);
            }
        }
        Ok(answering)
    }

    /// Whether a received email was made here: its Message-ID stays, whoever passed it on, and is at a domain that is
    /// sent from here.
    async fn is_of_this_service(&self, received: &Received) -> Result<bool, ReadError> {
        let id = received.heading.message_id.trim().trim_matches(|c| c == '<' || c == '>');
        let Some(Ok(domain)) = id.rsplit_once('@').map(|(_, domain)| domain.parse::<Name>()) else {
            return Ok(false);
        };
        if self.service_domain().is_some_and(|own| own == domain) {
            return Ok(true);
        }
        Ok(store::domain::by_name(self.store(), &domain).await?.is_some())
    }

    /// The automations whose mail an email is, and whose mail led to that.
    async fn lineage(
        &self,
        account: AccountId,
        run: Option<(AutomationId, mail::id::RunId)>,
    ) -> Result<Vec<AutomationId>, ReadError> {
        let Some((automation, run)) = run else { return Ok(Vec::new()) };
        let found = store::run::get(self.store(), (account, automation, run)).await?;
        let mut lineage = found.map(|found| found.run.lineage).unwrap_or_default();
        lineage.push(automation);
        Ok(lineage)
    }

    async fn rest_job(&self, job: &Job, batch: &mut Batch) -> Result<Option<Work>, ReadError> {
        let Work::Rest { signal, cancels, after } = &job.work else { return Ok(None) };
        let (heard, automations) = (self.automations().left(signal)?, self.automations());
        let (mut room, mut done) = (Room::new(), HashSet::new());
        let Swept { left, .. } = if *cancels {
            let hearers = store::automation::hearers(self.store(), heard.account, &heard.facts.name).await?;
            let ids: Vec<_> = hearers
                .into_iter()
                .filter(|(role, _)| *role == store::automation::Role::Cancels)
                .map(|(_, id)| id)
                .collect();
            automations.cancel_by(&heard, &ids, (&mut room, &mut done), batch).await?
        } else {
            automations.resume(&heard, after, (&mut room, &done), batch).await?
        };
        Ok(left.map(|after| Work::Rest { signal: signal.clone(), cancels: *cancels, after }))
    }

    async fn change_each(
        &self,
        (account, automation): (AccountId, AutomationId),
        ids: Vec<mail::id::RunId>,
        batch: &mut Batch,
        change: impl Fn(&mut Run),
    ) -> Result<(), ReadError> {
        let abouts: Vec<About> = ids.into_iter().map(|id| (account, automation, id)).collect();
        for (found, _) in store::run::get_each(self.store(), &abouts).await? {
            // It may have ended since it was looked for: what has ended stays as it did.
            if !found.run.status.is_active() {
                continue;
            }
            let mut after = found.run.clone();
            change(&mut after);
            if let Some(due) = after.due {
                self.worker.ears.appointments.note(after.partition, due);
            }
            store::run::update(batch, &found, &after);
        }
        Ok(())
    }

    async fn cancel_some(
        &self,
        about: (AccountId, AutomationId),
        before: mail::id::RunId,
        batch: &mut Batch,
    ) -> Result<bool, ReadError> {
        let now = self.clock().now();
        for status in [RunStatus::Queued, RunStatus::Running, RunStatus::Waiting] {
            let ids = store::run::by::in_state(self.store(), about, status, (before, SLICE)).await?;
            if !ids.is_empty() {
                let cancel = |run: &mut Run| run.cancel(CancelledBy::Api, now);
                self.change_each(about, ids, batch, cancel).await?;
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Cancels runs of an automation that were made before one, as many as one request waits for. What goes wrong
    /// is left to the job that the request leaves.
    pub async fn cancel_runs(&self, about: (AccountId, AutomationId), before: mail::id::RunId) {
        for _ in 0..CANCELLED_SLICES_MAX {
            let mut batch = Batch::progress();
            let cancelled = match self.cancel_some(about, before, &mut batch).await {
                Ok(true) => self.book(batch).await,
                Ok(false) => return,
                Err(error) => Err(error),
            };
            // Where somebody changed a run under our hands, the slice is done again.
            if !matches!(cancelled, Ok(Tried::Committed | Tried::Changed)) {
                return;
            }
        }
    }

    async fn release_some(
        &self,
        about: (AccountId, AutomationId),
        batch: &mut Batch,
    ) -> Result<bool, ReadError> {
        let now = self.clock().now();
        let ids = store::run::by::held_of(self.store(), about, SLICE).await?;
        let more = ids.len() == SLICE;
        self.change_each(about, ids, batch, |run| run.release(now)).await?;
        Ok(more)
    }

    async fn forget_some(
        &self,
        about: (AccountId, AutomationId),
        batch: &mut Batch,
    ) -> Result<bool, ReadError> {
        let runs = store::run::oldest(self.store(), about, None, SLICE).await?;
        for found in &runs {
            store::run::forget(batch, found);
            let of = (found.run.id.into(), RUN_EVENTS_MAX);
            store::event::forget_about(self.store(), batch, about.0, of).await?;
        }
        if !runs.is_empty() {
            return Ok(true);
        }
        let versions = store::automation::forget_versions(self.store(), batch, about, SLICE_VERSIONS).await?;
        if !batch.is_empty() || versions {
            self.automations().forget(about.0);
            return Ok(true);
        }
        store::run::by::forget_lists(self.store(), batch, about, SLICE_ROWS).await
    }
}
