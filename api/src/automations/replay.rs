//! `POST /automations/{id}/replay`: past events against stored or unsaved steps, to see who would have got what.
//!
//! ```text
//! past events of the trigger, newest first ─► filter ─► reentry ─► dry run ─► messages, beside the run of then
//! ```
//!
//! Suppressions and the rule of one run per person are applied as a real run applies them now; a run before the replayed
//! events counts. A run is taken as ended before the person's next event.
//!
//! Events are read in pages and only the results are kept. A replay runs on a blocking thread, because it renders every
//! message, and an account has one at a time. It ends after [`TIME_MAX`]: the response then says that it is not
//! complete.

use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, BTreeSet, HashMap};

use events::automations::DryRun;
use httpd::request_value::Integer;
use model::automation::Automation;
use model::automation::context::{self, EventFacts};
use model::automation::definition::{AutomationDefinition, Reentry, StepAction};
use model::automation::person_key::{PersonIdentity, PersonKey};
use model::automation::run::{AutomationRun, CompletionReason, RunMode, RunStatus, StepState, StepStatus};
use model::product_event::ProductEvent;
use model::trigger_event::TriggerEvent;
use store::automation_run::run_indexes;
use store::product_event::ProductEventFilter;

use super::dry_run::UnsavedDefinition;
use super::path::AutomationPath;
use super::request::REQUEST_BYTES_MAX;
use crate::account_permits::AccountPermit;
use crate::prelude::*;

/// Most events of a replay.
const EVENTS_MAX: i64 = 1_000;
const EVENTS_DEFAULT: usize = 100;
/// Events per read: their data is in memory at a time.
const PAGE: usize = 50;
/// The longest time that a replay takes.
const TIME_MAX: Duration = Duration::from_secs(8);
/// Runs among which the run of an event is searched.
const RUNS_MAX: usize = 2_000;
/// Messages of a response; a replay with more ends early.
const MESSAGES_MAX: usize = 10_000;
/// Subjects and texts are truncated to this length.
const TEXT_CHARS_MAX: usize = 200;

/// The steps to run, and how many past events to run them with
#[derive(Debug, RequestObject)]
#[schema(name = "ReplayAutomation", examples = [{"limit": 1000}], body_bytes_max = REQUEST_BYTES_MAX, optional_body)]
pub struct ReplayAutomation {
    #[field(flatten)]
    definition: UnsavedDefinition,
    /// The number of past events, newest first; default: 100
    #[field(reader = Integer<usize, 1, EVENTS_MAX>)]
    limit: Option<usize>,
}

message::words! {
    /// The effect that an event would have.
    ReplayEffect {
        /// It starts a run.
        Run = "run",
        /// The trigger's filter refuses it.
        Filtered = "filtered",
        /// The person had a run before, and may have one only.
        Repeated = "repeated",
    }
}

/// A message that would be sent, unless it is suppressed
#[derive(Debug, Serialize, ToSchema)]
struct ReplayedMessage {
    /// The position of its step, from 0
    step_index: usize,
    /// The step type
    #[schema(enum = StepAction::WORDS)]
    r#type: &'static str,
    /// The email's subject, or the beginning of the text message
    text: String,
    /// Whether its recipients are suppressed or have opted out, so that it would not be sent
    suppressed: bool,
}

/// The run that the event started then
#[derive(Debug, Clone, Serialize, ToSchema)]
struct PastRun {
    /// The run's id (`run_…`)
    id: RunId,
    /// The version that it followed
    automation_version: u32,
    /// Its status
    status: RunStatus,
    /// Emails and text messages that it has sent
    messages_sent: usize,
}

impl PastRun {
    fn from_run(run: &AutomationRun) -> Self {
        let is_sent = |step: &&StepState| {
            let is_sent_email = step.output["email_id"].is_string() && step.output["suppressed"] != true;
            step.status == StepStatus::Completed && (step.r#type == "sms" || is_sent_email)
        };
        let messages_sent = run.steps.iter().filter(is_sent).count();
        Self { id: run.id, automation_version: run.version, status: run.status, messages_sent }
    }
}

object_view! {
    /// A past event, and what the steps would do with it
    struct ReplayedEvent, fn new(
        replay: &Replay, event: ProductEvent, effect: ReplayEffect, run: Option<&AutomationRun>
    ) {
        /// The event's id (`ae_…`)
        event_id: ProductEventId = event.id,
        /// When it was received
        created_at: JsonTimestamp = JsonTimestamp(event.created_at),
        /// The person's user id
        user_id: Option<String> = event.user_id,
        /// The person's email address
        email: Option<String> = event.email,
        /// `run`: it starts a run; `filtered`: the trigger's filter excludes it; `repeated`: an earlier event had already started the person's only run
        #[schema(as = String, enum = ReplayEffect::WORDS)]
        effect: ReplayEffect = effect,
        /// The messages that would be sent or suppressed, in order
        messages: Vec<ReplayedMessage> = run.map(|run| replay.messages(run)).unwrap_or_default(),
        /// `completed` or `failed`; null without a run
        status: Option<RunStatus> = run.map(|run| run.status),
        /// How the run would complete
        ended_by: Option<CompletionReason> = run.and_then(|run| run.ended_by),
        /// The position of its last step, from 0
        last_step_index: Option<usize> = run.map(|run| run.index),
        /// Why it would fail
        error: Option<String> = run.and_then(|run| run.error.clone()),
        /// The run that the event started then, if it is among the newest 2,000 runs
        past_run: Option<PastRun> = replay.past_runs.get(&event.id.to_string()).cloned(),
    }
}

/// Sums of all replayed events
#[derive(Debug, Default, Serialize, ToSchema)]
struct ReplayTotals {
    /// Replayed events
    events: usize,
    /// Events that start a run
    runs: usize,
    /// Events for which a message would be sent
    reached: usize,
    /// Messages that would be sent
    messages: usize,
    /// Messages that would not be sent, because their recipients are suppressed or have opted out
    suppressed: usize,
    /// Runs that would fail
    failed: usize,
    /// Events that started a run then
    past_runs: usize,
    /// Messages that these runs have sent
    past_messages: usize,
}

impl ReplayTotals {
    fn add(&mut self, event: &ReplayedEvent) {
        self.events += 1;
        self.runs += usize::from(event.effect == ReplayEffect::Run);
        let suppressed = event.messages.iter().filter(|message| message.suppressed).count();
        self.reached += usize::from(event.messages.len() > suppressed);
        self.messages += event.messages.len() - suppressed;
        self.suppressed += suppressed;
        self.failed += usize::from(event.status == Some(RunStatus::Failed));
        self.past_runs += usize::from(event.past_run.is_some());
        self.past_messages += event.past_run.as_ref().map_or(0, |run| run.messages_sent);
    }
}

/// The result of a replay
#[derive(Debug, Serialize, ToSchema)]
#[schema(name = "AutomationReplay")]
pub struct ReplayView {
    totals: ReplayTotals,
    /// The events, newest first
    events: Vec<ReplayedEvent>,
    /// Whether all requested events were replayed; false if time ran out
    complete: bool,
}

object_response! { "A response with a replay", pub ReplayResponse { replay: ReplayView } }

/// The definition whose steps run, and what is known of earlier runs.
struct Replay {
    state: State,
    tenant: Tenant,
    automation: Automation,
    definition: AutomationDefinition,
    limit: usize,
    /// The time of the replay: that of every run.
    begun_at: Timestamp,
    /// The newest runs by the id of their event.
    past_runs: BTreeMap<String, PastRun>,
    /// Events of persons who had an earlier one, if a person has only one run.
    repeated: BTreeSet<ProductEventId>,
    _permit: AccountPermit,
}

/// `POST /automations/{id}/replay`.
///
/// # Errors
/// The automation does not exist; the definition is invalid; another replay of the account is running; the store cannot
/// be read.
pub async fn replay(
    state: State,
    tenant: Tenant,
    (path, request): (AutomationPath, ReplayAutomation),
) -> Result<ReplayResponse> {
    let limit = request.limit.unwrap_or(EVENTS_DEFAULT);
    let (automation, definition) = request.definition.load(&state, &tenant, path).await?;
    let permit = state.replay_permits.try_acquire(automation.account).ok_or_else(|| {
        Problem::new(ErrorCode::RATE_LIMIT_EXCEEDED, "Another replay is running; try again when it has ended")
            .with_header(http::header::RETRY_AFTER, TIME_MAX.as_secs().to_string())
    })?;
    let newest =
        store::automation_run::list_newest(&state.services.store, automation.account, automation.id, RUNS_MAX).await?;
    let replay = Replay {
        begun_at: state.services.clock.now(),
        past_runs: newest.iter().map(|run| (run.source.clone(), PastRun::from_run(run))).collect(),
        state,
        tenant,
        automation,
        definition,
        limit,
        repeated: BTreeSet::new(),
        _permit: permit,
    };
    let runtime = tokio::runtime::Handle::current();
    let running = tokio::task::spawn_blocking(move || runtime.block_on(replay.run()));
    Ok(ReplayResponse { replay: running.await.map_err(Problem::internal)?? })
}

/// The person of an event or a run.
#[derive(Clone)]
struct Person {
    user_id: Option<String>,
    email: Option<String>,
}

impl Person {
    fn identity(&self) -> PersonIdentity<'_> {
        PersonIdentity { user_id: self.user_id.as_deref(), email: self.email.as_deref() }
    }
}

/// The known earlier run of a person.
enum EarlierRun {
    None,
    /// It was deleted after its retention.
    Deleted,
    Of(Person),
}

impl EarlierRun {
    /// Whether it keeps a person from another run.
    fn blocks(&self, person: &Person) -> bool {
        match self {
            Self::None => false,
            Self::Deleted => true,
            Self::Of(earlier) => earlier.identity().is_same_person(person.identity()),
        }
    }
}

impl Replay {
    /// Reads the next page of past events, newest first; `before` is the last one of the page before.
    async fn read_page(&self, before: &mut Option<ProductEventId>, left: usize) -> Result<Vec<ProductEvent>> {
        let filter = ProductEventFilter {
            name: Some(self.definition.trigger.event.clone()),
            email: None,
            user_id: None,
            sent_by: self.tenant.confined_to(),
            since: None,
            before: *before,
        };
        let account = self.automation.account;
        let page = store::product_event::list(&self.state.services.store, account, &filter, PAGE.min(left)).await?;
        *before = page.next;
        Ok(page.events)
    }

    /// Returns whether the trigger's filter lets an event start a run.
    fn passes_filter(&self, event: &ProductEvent) -> bool {
        let facts = context::event_context(&EventFacts::from(&TriggerEvent::from(event)));
        self.definition.trigger.filter.as_ref().is_none_or(|filter| filter.evaluate(&facts, &facts))
    }

    /// Finds the events of persons who have an earlier run: by an earlier event of the replay, or before all of them.
    async fn find_repeated(&self) -> Result<BTreeSet<ProductEventId>> {
        let (mut starts, mut before, mut left) = (Vec::new(), None, self.limit);
        while left > 0 {
            let events = self.read_page(&mut before, left).await?;
            left = left.saturating_sub(events.len());
            let starting = events.into_iter().filter(|event| self.passes_filter(event));
            starts.extend(starting.map(|event| {
                let person = Person { user_id: event.user_id, email: event.email };
                (event.id, event.created_at, person)
            }));
            if before.is_none() {
                break;
            }
        }
        let Some((_, oldest, _)) = starts.last() else { return Ok(BTreeSet::new()) };
        let first_run = RunId::new(*oldest, 0);
        let (mut last_runs, mut repeated) = (HashMap::<PersonKey, EarlierRun>::new(), BTreeSet::new());
        for (id, _, person) in starts.into_iter().rev() {
            let keys = person.identity().keys();
            let mut is_repeated = false;
            for key in keys.into_iter().flatten() {
                let earlier = match last_runs.entry(key) {
                    Entry::Occupied(entry) => entry.into_mut(),
                    Entry::Vacant(entry) => entry.insert(self.find_run_before(key, first_run).await?),
                };
                is_repeated |= earlier.blocks(&person);
            }
            if is_repeated {
                repeated.insert(id);
            } else {
                last_runs.extend(keys.into_iter().flatten().map(|key| (key, EarlierRun::Of(person.clone()))));
            }
        }
        Ok(repeated)
    }

    /// A person's last run, if it began before another one.
    async fn find_run_before(&self, person: PersonKey, before: RunId) -> Result<EarlierRun> {
        let (store, automation) = (&self.state.services.store, &self.automation);
        let last = run_indexes::find_last(store, automation.account, automation.id, person).await?;
        let Some(id) = last.run.filter(|id| *id < before) else { return Ok(EarlierRun::None) };
        let found = store::automation_run::get(store, (automation.account, automation.id, id)).await?;
        Ok(found.map_or(EarlierRun::Deleted, |found| {
            EarlierRun::Of(Person { user_id: found.run.user_id, email: found.run.email })
        }))
    }

    async fn run(mut self) -> Result<ReplayView> {
        if self.definition.trigger.reentry == Reentry::Once {
            self.repeated = self.find_repeated().await?;
        }
        let clock = &self.state.services.clock;
        let (mut totals, mut results, mut before) = (ReplayTotals::default(), Vec::new(), None);
        while results.len() < self.limit {
            for event in self.read_page(&mut before, self.limit - results.len()).await? {
                let is_late = clock.now().duration_since(self.begun_at).unsigned_abs() > TIME_MAX;
                if is_late || totals.messages + totals.suppressed >= MESSAGES_MAX {
                    return Ok(ReplayView { totals, events: results, complete: false });
                }
                let result = self.replay_event(event).await;
                totals.add(&result);
                results.push(result);
            }
            if before.is_none() {
                break;
            }
        }
        Ok(ReplayView { totals, events: results, complete: true })
    }

    async fn replay_event(&self, event: ProductEvent) -> ReplayedEvent {
        let effect = match (self.passes_filter(&event), self.repeated.contains(&event.id)) {
            (false, _) => ReplayEffect::Filtered,
            (true, true) => ReplayEffect::Repeated,
            (true, false) => ReplayEffect::Run,
        };
        let run = match effect {
            ReplayEffect::Run => {
                let signal = TriggerEvent::from(&event);
                let dry_run = DryRun { tenant: &self.tenant, mode: RunMode::DryRun, now: self.begun_at };
                let runner = &self.state.accounts.automations;
                Some(runner.dry_run_definition(&dry_run, &self.automation, &self.definition, &signal).await)
            }
            ReplayEffect::Filtered | ReplayEffect::Repeated => None,
        };
        ReplayedEvent::new(self, event, effect, run.as_ref())
    }

    /// The messages of a dry run.
    fn messages(&self, run: &AutomationRun) -> Vec<ReplayedMessage> {
        let steps = self.definition.steps.iter().zip(&run.steps).enumerate();
        let messages = steps.filter_map(|(step_index, (step, state))| {
            let text = match &step.action {
                StepAction::SendEmail(_) => state.output["subject"].as_str()?,
                StepAction::Sms(_) => state.output["body"].as_str()?,
                StepAction::Delay(_) | StepAction::WaitForEvent(_) | StepAction::Condition(_) => return None,
            };
            let text = text.chars().take(TEXT_CHARS_MAX).collect();
            let suppressed = state.output["suppressed"] == true;
            Some(ReplayedMessage { step_index, r#type: step.action.word(), text, suppressed })
        });
        messages.collect()
    }
}
