//! Automations and their runs (completions-email.md 2.12).
//!
//! A definition is read by `mail::automation::read`, which tells what is wrong by field; what it needs of the
//! account (templates, senders, a provider of text messages) is looked at when it is activated ([`check`]). What
//! takes long (ending many runs, forgetting them) is left as a job in the commit that asks for it.

pub mod check;
pub mod request;
pub mod runs;
pub mod view;

use std::sync::Arc;

use http::Method;
use mail::automation::job::AutomationJobKind;
use mail::automation::{
    AUTOMATIONS_MAX, Automation, AutomationStatus, AutomationVersion, DEFINITION_BYTES_MAX, NAME_BYTES_MAX,
    VERSIONS_MAX,
};
use mail::credential::ApiKeyScope;
use mail::id::{AutomationId, RunId};
use mail::quota::Noun;
use serde_json::{Value, json};
use store::access::Tenant;
use store::automation::StoredAutomation;
use store::engine::{Batch, CommitError};

use crate::call::{FromRequest, Request, RequestSpec};
use crate::done::OkResponse;
use crate::operations::{Operation, operation};
use crate::page::{self, KIND_AUTOMATION, KIND_AUTOMATION_VERSION, PageParameters};
use crate::problem::{ErrorCode, Problem};
use crate::room::AppState;
use crate::schema::{self, Schemas};

use self::request::{AutomationAction, AutomationChange, AutomationEdit, CreateAutomation, DuplicateAutomation};
use self::view::{AutomationList, AutomationResponse, AutomationVersionList, AutomationVersionView, AutomationView};

/// How often something is tried again that somebody else changed meanwhile.
const TRIES_MAX: usize = 10;

/// The operations on automations.
#[must_use]
pub fn operations() -> Vec<Operation> {
    use ApiKeyScope::Full;
    let of = |method, path, id, summary| operation(method, path, id).about("automations", summary);
    let read = |path, id, summary| of(Method::GET, path, id, summary);
    let post = |path, id, summary| of(Method::POST, path, id, summary);
    vec![
        post("/automations", "create_automation", "Create an automation, as a draft")
            .storage_cost(&[(Noun::Automations, 1), (Noun::AutomationBytes, 0)])
            .api_key_or_session(Full, create),
        read("/automations", "list_automations", "List automations, newest first").api_key_or_session(Full, list),
        read("/automations/{id}", "get_automation", "Get an automation").api_key_or_session(Full, get),
        post(
            "/automations/{id}",
            "update_automation",
            "Activate, pause or archive an automation, cancel its runs, or change what it does",
        )
        .errors(&[ErrorCode::CONFLICT])
        .storage_cost(&[(Noun::AutomationBytes, 0)])
        .api_key_or_session(Full, update),
        of(Method::DELETE, "/automations/{id}", "delete_automation", "Delete an automation and its runs")
            .errors(&[ErrorCode::CONFLICT])
            .api_key_or_session(Full, delete),
        post("/automations/{id}/duplicate", "duplicate_automation", "Copy an automation into a new draft")
            .storage_cost(&[(Noun::Automations, 1), (Noun::AutomationBytes, DEFINITION_BYTES_MAX as u64)])
            .api_key_or_session(Full, duplicate),
        read("/automations/{id}/versions", "list_automation_versions", "List versions, newest first")
            .api_key_or_session(Full, list_versions),
        read("/automations/{id}/runs", "list_automation_runs", "List runs, newest first")
            .api_key_or_session(Full, runs::list),
        read("/automations/{id}/runs/{run}", "get_automation_run", "Get a run, step by step")
            .api_key_or_session(Full, runs::get),
        post("/automations/{id}/runs/{run}/cancel", "cancel_automation_run", "Cancel a run")
            .api_key_or_session(Full, runs::cancel),
    ]
}

/// An automation, named in the path. What cannot be an id is the id of nothing.
#[derive(Debug, Clone, Copy)]
pub struct AutomationPath(Option<AutomationId>);

impl AutomationPath {
    fn parameter() -> Value {
        schema::path_parameter("id", "The automation's id (`aut_…`)")
    }

    fn from_request(call: &Request) -> Self {
        Self(call.path_parameter("id").parse().ok())
    }

    fn id(self) -> Result<AutomationId, Problem> {
        self.0.ok_or_else(automation_not_found)
    }
}

impl FromRequest for AutomationPath {
    fn describe(_: &mut Schemas) -> RequestSpec {
        RequestSpec { parameters: vec![Self::parameter()], ..RequestSpec::default() }
    }

    fn read(call: &Request) -> Result<Self, Problem> {
        Ok(Self::from_request(call))
    }
}

pub(crate) fn automation_not_found() -> Problem {
    Problem::not_found("automation")
}

fn conflict_problem() -> Problem {
    Problem::new(ErrorCode::CONFLICT, "The automation was changed at the same time; get it and try again")
}

pub(crate) async fn find(room: &AppState, tenant: &Tenant, of: AutomationPath) -> Result<StoredAutomation, Problem> {
    let found = store::automation::get(room.intake.store(), tenant.account().id, of.id()?).await?;
    found.ok_or_else(automation_not_found)
}

/// The version that an automation has now.
async fn current_version(room: &AppState, automation: &Automation) -> Result<AutomationVersion, Problem> {
    let (store, number) = (room.intake.store(), automation.version);
    let found = store::automation::get_version(store, automation.account, automation.id, number).await?;
    // Deleted this very moment.
    found.ok_or_else(automation_not_found)
}

/// Commits a change; false when somebody else changed the automation meanwhile. What cancels runs is answered when
/// they are cancelled, and not by what was before: those whom the change is to cancel are ended here, as many as
/// one request may; the job that it leaves finds the others.
async fn commit(
    room: &AppState,
    tenant: &Tenant,
    (batch, cancels): (Batch, Option<&AutomationJobKind>),
) -> Result<bool, Problem> {
    let partitions = store::run::due::partitions_of(&batch);
    match room.intake.store().commit(batch).await {
        Ok(()) => {
            let account = tenant.account().id;
            room.intake.automations().invalidate(account);
            if let Some(AutomationJobKind::Cancel { automation, before }) = cancels {
                room.intake.cancel_runs((account, *automation), *before).await;
            }
            room.intake.automations().wake(&partitions);
            Ok(true)
        }
        Err(CommitError::Conflict { .. }) => Ok(false),
        Err(error) => Err(Problem::from_refusal(error.into(), room.upgrade_url())),
    }
}

async fn load_automation_view(
    room: &AppState,
    automation: &Automation,
    version: &AutomationVersion,
) -> Result<AutomationView, Problem> {
    let counts = room.intake.count_runs(automation).await?;
    Ok(AutomationView::from_automation(automation, &version.definition, counts))
}

async fn automation_response(
    room: &AppState,
    automation: &Automation,
    version: &AutomationVersion,
) -> Result<AutomationResponse, Problem> {
    Ok(AutomationResponse { automation: load_automation_view(room, automation, version).await? })
}

async fn store_new(
    room: &AppState,
    tenant: &Tenant,
    (name, definition): (String, mail::automation::AutomationDefinition),
) -> Result<AutomationResponse, Problem> {
    let (store, account, now) = (room.intake.store(), tenant.account().id, room.intake.clock().now());
    if store::automation::count(store, account, AUTOMATIONS_MAX).await? >= AUTOMATIONS_MAX {
        let text = format!("There are {AUTOMATIONS_MAX} automations, the most that there may be");
        return Err(Problem::new(ErrorCode::VALIDATION_ERROR, text));
    }
    let automation = Automation {
        id: AutomationId::new(now, room.intake.entropy().unique_bits()),
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
    if !commit(room, tenant, (batch, None)).await? {
        return Err(conflict_problem());
    }
    automation_response(room, &automation, &version).await
}

/// `POST /automations`.
///
/// # Errors
/// Text messages without a provider; as many automations as there may be; the store cannot be written.
pub async fn create(
    room: Arc<AppState>,
    tenant: Tenant,
    request: CreateAutomation,
) -> Result<AutomationResponse, Problem> {
    check::check_text_messages(&room, &request.definition)?;
    check::check_events(&room, &tenant, &request.definition).await?;
    store_new(&room, &tenant, (request.name, request.definition)).await
}

/// What `GET /automations` takes.
#[derive(Debug)]
pub struct ListAutomations {
    page: PageParameters,
    statuses: Vec<AutomationStatus>,
}

impl FromRequest for ListAutomations {
    fn describe(_: &mut Schemas) -> RequestSpec {
        let mut parameters = PageParameters::parameters();
        let text = format!("Only these: {}; several with commas", AutomationStatus::WORDS.join(", "));
        parameters.push(schema::query_parameter("status", &text, json!({"type": "string"})));
        RequestSpec { parameters, ..RequestSpec::default() }
    }

    fn read(call: &Request) -> Result<Self, Problem> {
        let words = AutomationStatus::WORDS;
        let statuses = page::parse_words(&call.query, "status", words, AutomationStatus::from_word)?;
        Ok(Self { page: PageParameters::from_query(&call.query)?, statuses })
    }
}

/// `GET /automations`.
///
/// # Errors
/// The cursor is none of this list's; the store cannot be read.
pub async fn list(room: Arc<AppState>, tenant: Tenant, input: ListAutomations) -> Result<AutomationList, Problem> {
    let before = input.page.before_id(KIND_AUTOMATION)?.map(AutomationId::from_bytes);
    let passes = |automation: &Automation| input.statuses.is_empty() || input.statuses.contains(&automation.status);
    let (store, account) = (room.intake.store(), tenant.account().id);
    let (found, next) = store::automation::list(store, account, before, input.page.limit, passes).await?;
    let mut automations = Vec::with_capacity(found.len());
    for automation in &found {
        match current_version(&room, automation).await {
            Ok(version) => automations.push(load_automation_view(&room, automation, &version).await?.without_bodies()),
            Err(problem) if problem.code() == ErrorCode::NOT_FOUND => {}
            Err(problem) => return Err(problem),
        }
    }
    let next_cursor = next.map(|id| page::after_id(KIND_AUTOMATION, id.to_bytes()));
    Ok(AutomationList { automations, has_more: next.is_some(), next_cursor })
}

/// `GET /automations/{id}`.
///
/// # Errors
/// No such automation; the store cannot be read.
pub async fn get(room: Arc<AppState>, tenant: Tenant, of: AutomationPath) -> Result<AutomationResponse, Problem> {
    let found = find(&room, &tenant, of).await?;
    let version = current_version(&room, &found.automation).await?;
    automation_response(&room, &found.automation, &version).await
}

/// `POST /automations/{id}`.
///
/// # Errors
/// No such automation; an action that it cannot take; a definition that cannot be followed.
pub async fn update(
    room: Arc<AppState>,
    tenant: Tenant,
    (of, change): (AutomationPath, AutomationChange),
) -> Result<AutomationResponse, Problem> {
    for _ in 0..TRIES_MAX {
        let found = find(&room, &tenant, of).await?;
        let version = current_version(&room, &found.automation).await?;
        let done = match &change {
            AutomationChange::Act(action) => apply_action(&room, &tenant, (&found, &version), *action).await?,
            AutomationChange::Edit(edit) => self::apply_edit(&room, &tenant, (&found, &version), edit).await?,
        };
        if let Some((automation, version)) = done {
            return automation_response(&room, &automation, &version).await;
        }
    }
    Err(conflict_problem())
}

type ChangedAutomation = Option<(Automation, AutomationVersion)>;

/// Does what is asked; none when somebody else was quicker.
async fn apply_action(
    room: &AppState,
    tenant: &Tenant,
    (found, version): (&StoredAutomation, &AutomationVersion),
    action: AutomationAction,
) -> Result<ChangedAutomation, Problem> {
    use AutomationStatus::{Active, Archived, Draft, Paused};
    let (before, now) = (&found.automation, room.intake.clock().now());
    let automations = room.intake.automations();
    let (mut after, mut batch) = (before.clone(), Batch::progress());
    let cancel = AutomationJobKind::Cancel { automation: before.id, before: RunId::new(now, u128::MAX) };
    match (action, before.status) {
        (AutomationAction::Activate, Active) | (AutomationAction::Pause, Paused) => {
            return Ok(Some((before.clone(), version.clone())));
        }
        (AutomationAction::Activate, Draft | Paused | Archived) => {
            check::check_definition(room, tenant, before, &version.definition).await?;
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
    Ok(commit(room, tenant, (batch, cancels)).await?.then(|| (after, version.clone())))
}

/// Changes what is given; none when somebody else was quicker.
async fn apply_edit(
    room: &AppState,
    tenant: &Tenant,
    (found, version): (&StoredAutomation, &AutomationVersion),
    edit: &AutomationEdit,
) -> Result<ChangedAutomation, Problem> {
    let (before, now) = (&found.automation, room.intake.clock().now());
    let definition = edit.apply(&version.definition)?;
    let (mut after, mut batch) = (before.clone(), Batch::progress());
    after.updated_at = now;
    if let Some(name) = &edit.name {
        after.name.clone_from(name);
    }
    let mut current = version.clone();
    if definition != version.definition {
        check::check_text_messages(room, &definition)?;
        check::check_events(room, tenant, &definition).await?;
        current = AutomationVersion { number: version.number, definition, created_at: now };
        // What no run can follow yet is written anew.
        if before.activated_at.is_some() {
            if version.number >= VERSIONS_MAX {
                let text = format!("It has {VERSIONS_MAX} versions: duplicate it, and go on with the copy");
                return Err(Problem::new(ErrorCode::VALIDATION_ERROR, text));
            }
            current.number = version.number + 1;
            after.version = current.number;
        }
        if before.status == AutomationStatus::Active {
            check::check_definition(room, tenant, before, &current.definition).await?;
            store::automation::remove_start_trigger(&mut batch, before, &version.definition);
            store::automation::add_triggers(&mut batch, &after, &current.definition);
        }
        store::automation::put_version(&mut batch, &after, &current);
    }
    store::automation::update(&mut batch, found, &after);
    Ok(commit(room, tenant, (batch, None)).await?.then_some((after, current)))
}

/// `DELETE /automations/{id}`.
///
/// # Errors
/// No such automation; the store cannot be written.
pub async fn delete(room: Arc<AppState>, tenant: Tenant, of: AutomationPath) -> Result<OkResponse, Problem> {
    for _ in 0..TRIES_MAX {
        let found = find(&room, &tenant, of).await?;
        let version = current_version(&room, &found.automation).await?;
        let automation = &found.automation;
        let mut batch = Batch::progress();
        store::automation::remove_start_trigger(&mut batch, automation, &version.definition);
        store::automation::delete(&mut batch, &found);
        let forget = AutomationJobKind::Forget { automation: automation.id };
        room.intake.automations().enqueue_job(&mut batch, automation.account, forget);
        if commit(&room, &tenant, (batch, None)).await? {
            return Ok(OkResponse::OK);
        }
    }
    Err(conflict_problem())
}

/// `POST /automations/{id}/duplicate`.
///
/// # Errors
/// No such automation; as many automations as there may be.
pub async fn duplicate(
    room: Arc<AppState>,
    tenant: Tenant,
    (of, request): (AutomationPath, DuplicateAutomation),
) -> Result<AutomationResponse, Problem> {
    let found = find(&room, &tenant, of).await?;
    let version = current_version(&room, &found.automation).await?;
    let name = request.name.unwrap_or_else(|| copy_name(&found.automation.name));
    store_new(&room, &tenant, (name, version.definition)).await
}

fn copy_name(name: &str) -> String {
    const SUFFIX: &str = " (copy)";
    let mut end = name.len().min(NAME_BYTES_MAX - SUFFIX.len());
    while !name.is_char_boundary(end) {
        end -= 1;
    }
    format!("{}{SUFFIX}", name.get(..end).unwrap_or_default())
}

/// A page of what an automation has.
#[derive(Debug)]
pub struct ListAutomationVersions {
    page: PageParameters,
}

impl FromRequest for (AutomationPath, ListAutomationVersions) {
    fn describe(_: &mut Schemas) -> RequestSpec {
        let mut parameters = vec![AutomationPath::parameter()];
        parameters.extend(PageParameters::parameters());
        RequestSpec { parameters, ..RequestSpec::default() }
    }

    fn read(call: &Request) -> Result<Self, Problem> {
        Ok((
            AutomationPath::from_request(call),
            ListAutomationVersions { page: PageParameters::from_query(&call.query)? },
        ))
    }
}

/// `GET /automations/{id}/versions`.
///
/// # Errors
/// No such automation; the cursor is none of this list's.
pub async fn list_versions(
    room: Arc<AppState>,
    tenant: Tenant,
    (of, ListAutomationVersions { page }): (AutomationPath, ListAutomationVersions),
) -> Result<AutomationVersionList, Problem> {
    let automation = find(&room, &tenant, of).await?.automation;
    let before = page.cursor_number(KIND_AUTOMATION_VERSION)?.and_then(|number| u32::try_from(number).ok());
    let (store, limit) = (room.intake.store(), page.limit + 1);
    let mut found = store::automation::list_versions(store, automation.account, automation.id, (before, limit)).await?;
    let has_more = found.len() > page.limit;
    found.truncate(page.limit);
    let next = found.last().filter(|_| has_more);
    let next_cursor = next.map(|version| page::after_number(KIND_AUTOMATION_VERSION, version.number.into()));
    let versions = found.iter().map(AutomationVersionView::from_version).collect();
    Ok(AutomationVersionList { versions, has_more, next_cursor })
}
