//! Automation jobs: background work besides steps. Each batch is one commit that also stores what is left to do.

use std::collections::HashSet;

use message::address::DomainName;
use message::received::AutoReplyRefusal;
use model::automation::context::EventFacts;
use model::automation::job::{AutomationJob, AutomationJobKind};
use model::automation::run::{AutomationRun, CancelSource, RunStatus};
use model::domain::SendingDomain;
use model::email::EmailRollup;
use model::event::{Event, Subject};
use model::id::{AccountId, AutomationId, EventId, ReceivedId, RunId};
use model::received::{AutoReplyContext, ReceivedEmail};
use model::webhook_payload;
use serde_json::Value;
use store::automation_run::due_work::{StoredJob, replace_job};
use store::automation_run::{RunKey, run_indexes};
use store::engine::{Batch, ReadError};

use super::RUN_EVENTS_MAX;
use super::email_step::StepCommit;
use super::runner::AutomationRunner;
use super::signal_matching::{CommitBudget, MatchedRuns};
use super::trigger_signal::TriggerSignal;

/// Runs changed in one batch.
const BATCH_RUNS: usize = 200;
/// Batches that one request cancels: ten thousand runs.
const CANCELLED_BATCHES_MAX: usize = 50;
/// Index rows deleted in one batch.
const BATCH_ROWS: usize = 1_000;
/// Versions deleted in one batch; a version may be large.
const BATCH_VERSIONS: usize = 10;

impl AutomationRunner {
    /// Executes one batch of a job.
    pub(super) async fn run_job(&self, found: &StoredJob) -> Result<StepCommit, ReadError> {
        let job = &found.job;
        let mut batch = Batch::progress();
        let left = match &job.work {
            AutomationJobKind::Hear { subject, event } => {
                self.run_signal_job(job, *subject, *event, &mut batch).await?;
                None
            }
            AutomationJobKind::Rest { .. } => self.run_remaining_signal(job, &mut batch).await?,
            AutomationJobKind::Cancel { automation, before } => {
                self.cancel_batch(job.account, *automation, *before, &mut batch).await?.then(|| job.work.clone())
            }
            AutomationJobKind::Release { automation } => {
                self.release_batch(job.account, *automation, &mut batch).await?.then(|| job.work.clone())
            }
            AutomationJobKind::Forget { automation } => {
                self.purge_batch(job.account, *automation, &mut batch).await?.then(|| job.work.clone())
            }
        };
        // Due now, which orders the rest behind work that became due meanwhile.
        let after = left.map(|work| AutomationJob { due: self.services.clock.now(), work, ..job.clone() });
        if let Some(after) = &after {
            self.engine.0.trigger_index.timers.schedule(after.partition, after.due);
        }
        replace_job(&mut batch, found, after.as_ref());
        let partitions = store::automation_run::due_work::partitions_of(&batch);
        let committed = self.commit_step(batch).await?;
        if matches!(committed, StepCommit::Committed) {
            self.engine.wake(&partitions);
        }
        // A run changed concurrently: repeat the batch.
        Ok(if matches!(committed, StepCommit::Conflict) { StepCommit::Retry } else { committed })
    }

    async fn run_signal_job(
        &self,
        job: &AutomationJob,
        subject: Subject,
        event: EventId,
        batch: &mut Batch,
    ) -> Result<(), ReadError> {
        let Some(event) = store::event::get(&self.services.store, job.account, subject, event).await? else {
            return Ok(());
        };
        if let Some(trigger_signal) = self.signal_from_event(&event).await? {
            self.engine.apply_signal(&trigger_signal, batch).await?;
        }
        Ok(())
    }

    /// Converts an event of the service to a signal, with its webhook payload as data. Returns `None` if the event's
    /// subject was deleted or does not trigger automations.
    async fn signal_from_event(&self, event: &Event) -> Result<Option<TriggerSignal>, ReadError> {
        let mut answering = None;
        let (data, email, lineage) = match event.subject {
            Subject::Email(id) => {
                let Some(found) = store::email::get(&self.services.store, event.account, id).await? else {
                    return Ok(None);
                };
                let status = EmailRollup::from_recipients(&found.recipients).status;
                let data = webhook_payload::email_event_data(&found.email, event, status);
                let first = found.recipients.first().map(|recipient| recipient.address.to_string());
                let address = event.recipient.as_ref().map(ToString::to_string).or(first);
                (Value::Object(data), address, self.lineage(event.account, found.email.run).await?)
            }
            Subject::Received(id) => {
                let answer = self.answering_context(event.account, id).await?;
                let author = answer.author.as_ref().map(ToString::to_string);
                answering = Some(answer);
                (event.detail.clone(), author, Vec::new())
            }
            // Other subjects never trigger ([`model::event::EventKind::can_trigger_automations`]).
            _ => return Ok(None),
        };
        let machine = ["open", "click"]
            .iter()
            .any(|kind| event.detail.pointer(&format!("/{kind}/machine")).and_then(Value::as_bool).unwrap_or_default());
        let facts = EventFacts { name: event.kind.name().to_owned(), email, user_id: None, data };
        let (account, at) = (event.account, event.created_at);
        Ok(Some(TriggerSignal { account, facts, source: event.id.to_string(), at, machine, lineage, answering }))
    }

    /// Facts for the automatic reply to a received email. An author at an address that the same account receives mail
    /// for is not answered: the reply would be received in turn, a loop.
    async fn answering_context(&self, account: AccountId, id: ReceivedId) -> Result<AutoReplyContext, ReadError> {
        let Some(received) = store::received_email::get(&self.services.store, account, id).await? else {
            return Ok(AutoReplyContext::for_deleted());
        };
        let mut answering = AutoReplyContext::from_received(&received);
        if answering.unanswerable == Some(AutoReplyRefusal::AutoSubmitted) {
            answering.is_ours = self.is_own_message(&received).await?;
        }
        if let (None, Some(author)) = (answering.unanswerable, &answering.author) {
            let domain = store::domain::find_by_name(&self.services.store, author.domain()).await?;
            let is_own = |domain: &SendingDomain| domain.account == account && domain.accepts_inbound();
            if domain.is_some_and(|domain| is_own(&domain) && domain.accepts_address(author)) {
                answering.unanswerable = Some(AutoReplyRefusal::OwnAddress);
            }
        }
        Ok(answering)
    }

    /// Returns whether a received email originated on this server: its Message-ID survives forwarding and names a
    /// domain that sends from here.
    async fn is_own_message(&self, received: &ReceivedEmail) -> Result<bool, ReadError> {
        let id = received.heading.message_id.trim().trim_matches(|c| c == '<' || c == '>');
        let Some(Ok(domain)) = id.rsplit_once('@').map(|(_, domain)| domain.parse::<DomainName>()) else {
            return Ok(false);
        };
        if self.intake.sender_authorization.service_domain() == Some(&domain) {
            return Ok(true);
        }
        Ok(store::domain::find_by_name(&self.services.store, &domain).await?.is_some())
    }

    /// Automations that caused an email: the one of its run and that run's own lineage.
    async fn lineage(
        &self,
        account: AccountId,
        run: Option<(AutomationId, RunId)>,
    ) -> Result<Vec<AutomationId>, ReadError> {
        let Some((automation, run)) = run else { return Ok(Vec::new()) };
        let found = store::automation_run::get(&self.services.store, (account, automation, run)).await?;
        let mut lineage = found.map(|found| found.run.lineage).unwrap_or_default();
        lineage.push(automation);
        Ok(lineage)
    }

    async fn run_remaining_signal(
        &self,
        job: &AutomationJob,
        batch: &mut Batch,
    ) -> Result<Option<AutomationJobKind>, ReadError> {
        let AutomationJobKind::Rest { signal, cancels, after } = &job.work else { return Ok(None) };
        let (trigger_signal, automations) = (self.engine.unseal_signal(signal)?, &self.engine);
        let (mut budget, mut done) = (CommitBudget::new(), HashSet::new());
        let MatchedRuns { left, .. } = if *cancels {
            let (store, name) = (&self.services.store, &trigger_signal.facts.name);
            let triggered = store::automation::list_triggered(store, trigger_signal.account, name).await?;
            let ids: Vec<_> = triggered
                .into_iter()
                .filter(|(role, _)| *role == store::automation::TriggerRole::Cancels)
                .map(|(_, id)| id)
                .collect();
            automations.cancel_matching(&trigger_signal, &ids, &mut budget, &mut done, batch).await?
        } else {
            automations.resume_waiting(&trigger_signal, after, &mut budget, &done, batch).await?
        };
        Ok(left.map(|after| AutomationJobKind::Rest { signal: signal.clone(), cancels: *cancels, after }))
    }

    async fn update_runs(
        &self,
        account: AccountId,
        automation: AutomationId,
        ids: Vec<RunId>,
        batch: &mut Batch,
        change: impl Fn(&mut AutomationRun),
    ) -> Result<(), ReadError> {
        let runs: Vec<RunKey> = ids.into_iter().map(|id| (account, automation, id)).collect();
        for (found, _) in store::automation_run::get_each(&self.services.store, &runs).await? {
            // The run may have ended since the list was read.
            if !found.run.status.is_active() {
                continue;
            }
            let mut after = found.run.clone();
            change(&mut after);
            if let Some(due) = after.due {
                self.engine.0.trigger_index.timers.schedule(after.partition, due);
            }
            store::automation_run::update(batch, &found, &after);
        }
        Ok(())
    }

    async fn cancel_batch(
        &self,
        account: AccountId,
        automation: AutomationId,
        before: RunId,
        batch: &mut Batch,
    ) -> Result<bool, ReadError> {
        let now = self.services.clock.now();
        for status in [RunStatus::Queued, RunStatus::Running, RunStatus::Waiting] {
            let store = &self.services.store;
            let ids = run_indexes::list_in_state(store, account, automation, status, before, BATCH_RUNS).await?;
            if !ids.is_empty() {
                let cancel = |run: &mut AutomationRun| run.cancel(CancelSource::Api, now);
                self.update_runs(account, automation, ids, batch, cancel).await?;
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Cancels runs of an automation created before `before`, as many as one request waits for. The job that the
    /// request enqueues cancels the rest, and retries after errors.
    pub async fn cancel_runs(&self, account: AccountId, automation: AutomationId, before: RunId) {
        for _ in 0..CANCELLED_BATCHES_MAX {
            let mut batch = Batch::progress();
            let cancelled = match self.cancel_batch(account, automation, before, &mut batch).await {
                Ok(true) => self.commit_step(batch).await,
                Ok(false) => return,
                Err(error) => Err(error),
            };
            // On a conflict, repeat the batch.
            if !matches!(cancelled, Ok(StepCommit::Committed | StepCommit::Conflict)) {
                return;
            }
        }
    }

    async fn release_batch(
        &self,
        account: AccountId,
        automation: AutomationId,
        batch: &mut Batch,
    ) -> Result<bool, ReadError> {
        let now = self.services.clock.now();
        let ids = run_indexes::list_held(&self.services.store, account, automation, BATCH_RUNS).await?;
        let is_incomplete = ids.len() == BATCH_RUNS;
        self.update_runs(account, automation, ids, batch, |run| run.release(now)).await?;
        Ok(is_incomplete)
    }

    async fn purge_batch(
        &self,
        account: AccountId,
        automation: AutomationId,
        batch: &mut Batch,
    ) -> Result<bool, ReadError> {
        let store = &self.services.store;
        let runs = store::automation_run::list_oldest(store, account, automation, None, BATCH_RUNS).await?;
        for found in &runs {
            store::automation_run::delete(batch, found);
            store::event::delete_by_subject(store, batch, account, found.run.id.into(), RUN_EVENTS_MAX).await?;
        }
        if !runs.is_empty() {
            return Ok(true);
        }
        let versions = store::automation::purge_versions(store, batch, account, automation, BATCH_VERSIONS).await?;
        if !batch.is_empty() || versions {
            self.engine.invalidate(account);
            return Ok(true);
        }
        run_indexes::purge_indexes(store, batch, account, automation, BATCH_ROWS).await
    }
}
