//! Automations and their runs.
//!
//! `model::automation::read` parses a definition and reports errors by field. Activation checks what the definition
//! needs of the account: templates, senders, an SMS provider ([`activation_check`]). Long work (cancelling or deleting many runs)
//! is enqueued as a job in the commit of the request.

pub mod activation_check;
pub mod dry_run;
pub mod path;
pub mod replay;
pub mod request;
pub mod runs;
pub mod step_counts;
pub mod view;

use httpd::paging::{KIND_AUTOMATION, KIND_AUTOMATION_VERSION};
use model::automation::job::AutomationJobKind;
use model::automation::{
    AUTOMATIONS_MAX, Automation, AutomationStatus, AutomationVersion, DEFINITION_BYTES_MAX, NAME_BYTES_MAX,
    VERSIONS_MAX,
};
use model::quota::Noun;
use store::automation::StoredAutomation;

use crate::operation::{Operation, OperationTag};
use crate::prelude::*;
use crate::submit_problem;

use self::path::{AutomationPath, automation_not_found, find};
use self::request::{
    AutomationAction, AutomationChange, AutomationEdit, CreateAutomation, DuplicateAutomation, SDK_ACTIONS,
};
use self::view::{AutomationList, AutomationResponse, AutomationVersionList, AutomationVersionView, AutomationView};

/// Retries of a change after a concurrent change.
const TRIES_MAX: usize = 10;

pub fn operations() -> Vec<Operation> {
    let tag = OperationTag::new("automations");
    vec![
        tag.post("/automations", "Create an automation, as a draft")
            .storage_cost(&[(Noun::Automations, 1), (Noun::AutomationBytes, 0)])
            .mails_later()
            .full_key_or_session(("create_automation", "automations.create"), create),
        tag.get("/automations", "List automations, newest first")
            .full_key_or_session(("list_automations", "automations.list"), list),
        tag.get("/automations/{id}", "Get an automation")
            .full_key_or_session(("get_automation", "automations.get"), get),
        tag.post("/automations/{id}", "Activate, pause, archive or edit an automation, or cancel its runs")
            .errors(&[ErrorCode::CONFLICT])
            .storage_cost(&[(Noun::AutomationBytes, 0)])
            .sdk_actions(SDK_ACTIONS)
            .mails_later()
            .full_key_or_session(("update_automation", "automations.update"), update),
        tag.delete("/automations/{id}", "Delete an automation and its runs")
            .errors(&[ErrorCode::CONFLICT])
            .full_key_or_session(("delete_automation", "automations.delete"), delete),
        tag.post("/automations/{id}/duplicate", "Copy an automation into a new draft")
            .storage_cost(&[(Noun::Automations, 1), (Noun::AutomationBytes, DEFINITION_BYTES_MAX as u64)])
            .full_key_or_session(("duplicate_automation", "automations.duplicate"), duplicate),
        tag.post("/automations/{id}/dry-run", "Run an automation as a test, without sending anything")
            .risk(Risk::Read)
            .full_key_or_session(("dry_run_automation", "automations.dryRun"), dry_run::dry_run),
        tag.post("/automations/{id}/replay", "Run past events as a test, without sending anything")
            .risk(Risk::Read)
            .full_key_or_session(("replay_automation", "automations.replay"), replay::replay),
        tag.get("/automations/{id}/step-counts", "Get the number of runs at each step")
            .full_key_or_session(("count_automation_steps", "automations.stepCounts"), step_counts::get),
        tag.get("/automations/{id}/versions", "List versions, newest first")
            .full_key_or_session(("list_automation_versions", "automations.versions.list"), list_versions),
        tag.get("/automations/{id}/runs", "List runs, newest first")
            .full_key_or_session(("list_automation_runs", "automations.runs.list"), runs::list),
        tag.get("/automations/{id}/runs/{run}", "Get a run, step by step")
            .full_key_or_session(("get_automation_run", "automations.runs.get"), runs::get),
        tag.post("/automations/{id}/runs/{run}/cancel", "Cancel a run")
            .full_key_or_session(("cancel_automation_run", "automations.runs.cancel"), runs::cancel),
    ]
}

fn conflict_problem() -> Problem {
    Problem::new(ErrorCode::CONFLICT, "The automation was changed at the same time; read it again and retry")
}

pub(crate) async fn current_version(state: &AppState, automation: &Automation) -> Result<AutomationVersion> {
    let (store, number) = (&state.services.store, automation.version);
    let found = store::automation::get_version(store, automation.account, automation.id, number).await?;
    // The automation was deleted between the two reads.
    found.ok_or_else(automation_not_found)
}

/// Commits a change. Returns false if the automation was changed concurrently. A change that cancels runs first cancels
/// as many as one request may, so that the response already shows them; its job cancels the remaining ones.
async fn commit(state: &AppState, tenant: &Tenant, batch: Batch, cancels: Option<&AutomationJobKind>) -> Result<bool> {
    let partitions = store::automation_run::due_work::partitions_of(&batch);
    match state.services.store.commit(batch).await {
        Ok(()) => {
            let account = tenant.account().id;
            state.accounts.automations.engine.invalidate(account);
            if let Some(AutomationJobKind::Cancel { automation, before }) = cancels {
                state.accounts.automations.cancel_runs(account, *automation, *before).await;
            }
            state.accounts.automations.engine.wake(&partitions);
            Ok(true)
        }
        Err(CommitError::Conflict { .. }) => Ok(false),
        Err(error) => Err(submit_problem::from_refusal(error.into(), state.upgrade_url())),
    }
}

async fn load_automation_view(
    state: &AppState,
    automation: &Automation,
    version: &AutomationVersion,
) -> Result<AutomationView> {
    let counts = state.accounts.automations.count_runs(automation).await?;
    Ok(AutomationView::from_automation(automation, &version.definition, counts))
}

async fn automation_response(
    state: &AppState,
    automation: &Automation,
    version: &AutomationVersion,
) -> Result<AutomationResponse> {
    Ok(AutomationResponse { automation: load_automation_view(state, automation, version).await? })
}

async fn store_new(
    state: &AppState,
    tenant: &Tenant,
    name: String,
    definition: model::automation::AutomationDefinition,
) -> Result<AutomationResponse> {
    let (store, account, now) = (&state.services.store, tenant.account().id, state.services.clock.now());
    if store::automation::count(store, account, AUTOMATIONS_MAX).await? >= AUTOMATIONS_MAX {
        let text = format!("The limit of {AUTOMATIONS_MAX} automations has been reached; delete one first");
        return Err(Problem::new(ErrorCode::VALIDATION_ERROR, text));
    }
    let automation = Automation {
        id: AutomationId::new(now, state.services.entropy.unique_bits()),
        account,
        name,
        status: AutomationStatus::Draft,
        version: 1,
        created_at: now,
        updated_at: now,
        activated_at: None,
    };
    let version = AutomationVersion { number: 1, definition, created_at: now };
    let mut batch = Batch::intake();
    store::automation::create(&mut batch, &automation);
    store::automation::put_version(&mut batch, &automation, &version);
    if !commit(state, tenant, batch, None).await? {
        return Err(conflict_problem());
    }
    automation_response(state, &automation, &version).await
}

/// `POST /automations`.
///
/// # Errors
/// The definition has SMS steps but no provider is configured; the account has the maximum number of automations; the
/// store cannot be written.
pub async fn create(state: State, tenant: Tenant, request: CreateAutomation) -> Result<AutomationResponse> {
    activation_check::check_text_messages(&state, &request.definition)?;
    activation_check::check_events(&state, &tenant, &request.definition).await?;
    store_new(&state, &tenant, request.name, request.definition).await
}

/// Query of `GET /automations`.
#[derive(Debug)]
pub struct ListAutomations {
    page: PageParameters,
    statuses: Vec<AutomationStatus>,
}

impl RequestQuery for ListAutomations {
    fn read_query(query: &mut Query) -> Result<Self> {
        let page = query.page()?;
        let about = |words: &str| format!("Only these values: {words}; several separated by commas");
        Ok(Self { page, statuses: query.words_in_text("status", about)? })
    }
}

/// `GET /automations`.
pub async fn list(state: State, tenant: Tenant, input: ListAutomations) -> Result<AutomationList> {
    let before = input.page.before_id(KIND_AUTOMATION)?.map(AutomationId::from_bytes);
    let passes = |automation: &Automation| input.statuses.is_empty() || input.statuses.contains(&automation.status);
    let (store, account) = (&state.services.store, tenant.account().id);
    let (found, next) = store::automation::list(store, account, before, input.page.limit, passes).await?;
    let mut automations = Vec::with_capacity(found.len());
    for automation in &found {
        match current_version(&state, automation).await {
            Ok(version) => automations.push(load_automation_view(&state, automation, &version).await?.without_bodies()),
            Err(problem) if problem.code() == ErrorCode::NOT_FOUND => {}
            Err(problem) => return Err(problem),
        }
    }
    let next_cursor = next.map(|id| paging::after_id(KIND_AUTOMATION, id.to_bytes()));
    Ok(AutomationList::new(automations, next_cursor))
}

/// `GET /automations/{id}`.
pub async fn get(state: State, tenant: Tenant, path: AutomationPath) -> Result<AutomationResponse> {
    let found = find(&state, &tenant, path).await?;
    let version = current_version(&state, &found.automation).await?;
    automation_response(&state, &found.automation, &version).await
}

/// `POST /automations/{id}`.
///
/// # Errors
/// The automation does not exist, does not allow the action, or the new definition is invalid.
pub async fn update(
    state: State,
    tenant: Tenant,
    (path, change): (AutomationPath, AutomationChange),
) -> Result<AutomationResponse> {
    for _ in 0..TRIES_MAX {
        let found = find(&state, &tenant, path).await?;
        let version = current_version(&state, &found.automation).await?;
        let done = match &change {
            AutomationChange::Act(action) => apply_action(&state, &tenant, &found, &version, *action).await?,
            AutomationChange::Edit(edit) => self::apply_edit(&state, &tenant, &found, &version, edit).await?,
        };
        if let Some((automation, version)) = done {
            return automation_response(&state, &automation, &version).await;
        }
    }
    Err(conflict_problem())
}

type ChangedAutomation = Option<(Automation, AutomationVersion)>;

/// Applies an action. Returns `None` after a concurrent change.
async fn apply_action(
    state: &AppState,
    tenant: &Tenant,
    found: &StoredAutomation,
    version: &AutomationVersion,
    action: AutomationAction,
) -> Result<ChangedAutomation> {
    use AutomationStatus::{Active, Archived, Draft, Paused};
    let (before, now) = (&found.automation, state.services.clock.now());
    let automations = &state.accounts.automations.engine;
    let (mut after, mut batch) = (before.clone(), Batch::progress());
    let cancel = AutomationJobKind::Cancel { automation: before.id, before: RunId::new(now, u128::MAX) };
    match (action, before.status) {
        (AutomationAction::Activate, Active) | (AutomationAction::Pause, Paused) => {
            return Ok(Some((before.clone(), version.clone())));
        }
        (AutomationAction::Activate, Draft | Paused | Archived) => {
            activation_check::check_definition(state, tenant, before, &version.definition).await?;
            after = Automation { status: Active, activated_at: Some(now), ..after };
            store::automation::add_triggers(&mut batch, &after, &version.definition);
            automations.enqueue_job(&mut batch, before.account, AutomationJobKind::Release { automation: before.id });
        }
        (AutomationAction::Pause, Active) => {
            after.status = Paused;
            store::automation::remove_start_trigger(&mut batch, before, &version.definition);
        }
        (AutomationAction::Archive, _) => {
            after.status = Archived;
            store::automation::remove_start_trigger(&mut batch, before, &version.definition);
            automations.enqueue_job(&mut batch, before.account, cancel.clone());
        }
        (AutomationAction::CancelRuns, _) => automations.enqueue_job(&mut batch, before.account, cancel.clone()),
        (AutomationAction::Pause, status @ (Draft | Archived)) => {
            let text = format!("Only an active automation can be paused; this one is {}", status.word());
            let problem = Problem::new(ErrorCode::VALIDATION_ERROR, text);
            return Err(problem.with_details(json!({"status": status.word()})));
        }
    }
    after.updated_at = now;
    store::automation::update(&mut batch, found, &after);
    let cancels = matches!(action, AutomationAction::Archive | AutomationAction::CancelRuns).then_some(&cancel);
    Ok(commit(state, tenant, batch, cancels).await?.then(|| (after, version.clone())))
}

/// Applies an edit. Returns `None` after a concurrent change.
async fn apply_edit(
    state: &AppState,
    tenant: &Tenant,
    found: &StoredAutomation,
    version: &AutomationVersion,
    edit: &AutomationEdit,
) -> Result<ChangedAutomation> {
    let (before, now) = (&found.automation, state.services.clock.now());
    let definition = edit.apply(&version.definition)?;
    let (mut after, mut batch) = (before.clone(), Batch::progress());
    after.updated_at = now;
    set_given(&mut after.name, &edit.name);
    let mut current = version.clone();
    if definition != version.definition {
        activation_check::check_text_messages(state, &definition)?;
        activation_check::check_events(state, tenant, &definition).await?;
        current = AutomationVersion { number: version.number, definition, created_at: now };
        // A version that was never activated has no runs and is overwritten.
        if before.activated_at.is_some() {
            if version.number >= VERSIONS_MAX {
                let text = format!(
                    "The automation has the maximum of {VERSIONS_MAX} versions; duplicate it and edit the copy"
                );
                return Err(Problem::new(ErrorCode::VALIDATION_ERROR, text));
            }
            current.number = version.number + 1;
            after.version = current.number;
        }
        if before.status == AutomationStatus::Active {
            activation_check::check_definition(state, tenant, before, &current.definition).await?;
            store::automation::remove_start_trigger(&mut batch, before, &version.definition);
            store::automation::add_triggers(&mut batch, &after, &current.definition);
        }
        store::automation::put_version(&mut batch, &after, &current);
    }
    store::automation::update(&mut batch, found, &after);
    Ok(commit(state, tenant, batch, None).await?.then_some((after, current)))
}

/// `DELETE /automations/{id}`.
pub async fn delete(state: State, tenant: Tenant, path: AutomationPath) -> Result<OkResponse> {
    for _ in 0..TRIES_MAX {
        let found = find(&state, &tenant, path).await?;
        let version = current_version(&state, &found.automation).await?;
        let automation = &found.automation;
        let mut batch = Batch::progress();
        store::automation::remove_start_trigger(&mut batch, automation, &version.definition);
        store::automation::delete(&mut batch, &found);
        let forget_job = AutomationJobKind::Forget { automation: automation.id };
        state.accounts.automations.engine.enqueue_job(&mut batch, automation.account, forget_job);
        if commit(&state, &tenant, batch, None).await? {
            return Ok(OkResponse::OK);
        }
    }
    Err(conflict_problem())
}

/// `POST /automations/{id}/duplicate`.
///
/// # Errors
/// The automation does not exist; the account has the maximum number of automations.
pub async fn duplicate(
    state: State,
    tenant: Tenant,
    (path, request): (AutomationPath, DuplicateAutomation),
) -> Result<AutomationResponse> {
    let found = find(&state, &tenant, path).await?;
    let version = current_version(&state, &found.automation).await?;
    let name = request.name.unwrap_or_else(|| copy_name(&found.automation.name));
    store_new(&state, &tenant, name, version.definition).await
}

fn copy_name(name: &str) -> String {
    const SUFFIX: &str = " (copy)";
    let end = name.floor_char_boundary(NAME_BYTES_MAX - SUFFIX.len());
    format!("{}{SUFFIX}", name.get(..end).unwrap_or_default())
}

/// `GET /automations/{id}/versions`.
pub async fn list_versions(
    state: State,
    tenant: Tenant,
    (path, page): (AutomationPath, PageParameters),
) -> Result<AutomationVersionList> {
    let automation = find(&state, &tenant, path).await?.automation;
    let before = page.cursor_number(KIND_AUTOMATION_VERSION)?.and_then(|number| u32::try_from(number).ok());
    let (store, limit) = (&state.services.store, page.limit + 1);
    let mut found = store::automation::list_versions(store, automation.account, automation.id, before, limit).await?;
    let next_cursor =
        page.cut(&mut found, |version| paging::after_number(KIND_AUTOMATION_VERSION, version.number.into()));
    let versions = found.iter().map(AutomationVersionView::from_version).collect();
    Ok(AutomationVersionList::new(versions, next_cursor))
}
