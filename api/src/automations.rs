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
use mail::automation::job::Work;
use mail::automation::{
    AUTOMATIONS_MAX, Automation, AutomationStatus, DEFINITION_BYTES_MAX, NAME_BYTES_MAX, VERSIONS_MAX,
    Version,
};
use mail::credential::Scope;
use mail::id::{AutomationId, RunId};
use mail::quota::Noun;
use serde_json::{Value, json};
use store::access::Tenant;
use store::automation::Found;
use store::engine::{Batch, CommitError};

use crate::call::{Call, Input, Takes};
use crate::done::Done;
use crate::operations::{Operation, operation};
use crate::page::{self, KIND_AUTOMATION, KIND_AUTOMATION_VERSION, Page};
use crate::problem::{Code, Problem};
use crate::room::Room;
use crate::schema::{self, Schemas};

use self::request::{Action, Change, CopyAutomation, CreateAutomation, Edit};
use self::view::{AutomationList, AutomationView, OneAutomation, VersionList, VersionView};

/// How often something is tried again that somebody else changed meanwhile.
const TRIES_MAX: usize = 10;

/// The operations on automations.
#[must_use]
pub fn operations() -> Vec<Operation> {
    use Scope::Full;
    let of = |method, path, id, summary| operation(method, path, id).about("automations", summary);
    let read = |path, id, summary| of(Method::GET, path, id, summary);
    let post = |path, id, summary| of(Method::POST, path, id, summary);
    vec![
        post("/automations", "create_automation", "Create an automation, as a draft")
            .stores(&[(Noun::Automations, 1), (Noun::AutomationBytes, 0)])
            .either(Full, create),
        read("/automations", "list_automations", "List automations, newest first").either(Full, list),
        read("/automations/{id}", "get_automation", "Get an automation").either(Full, get),
        post(
            "/automations/{id}",
            "update_automation",
            "Activate, pause or archive an automation, cancel its runs, or change what it does",
        )
        .fails(&[Code::CONFLICT])
        .stores(&[(Noun::AutomationBytes, 0)])
        .either(Full, update),
        of(Method::DELETE, "/automations/{id}", "delete_automation", "Delete an automation and its runs")
            .fails(&[Code::CONFLICT])
            .either(Full, delete),
        post("/automations/{id}/duplicate", "duplicate_automation", "Copy an automation into a new draft")
            .stores(&[(Noun::Automations, 1), (Noun::AutomationBytes, DEFINITION_BYTES_MAX as u64)])
            .either(Full, duplicate),
        read("/automations/{id}/versions", "list_automation_versions", "List versions, newest first")
            .either(Full, versions),
        read("/automations/{id}/runs", "list_automation_runs", "List runs, newest first")
            .either(Full, runs::list),
        read("/automations/{id}/runs/{run}", "get_automation_run", "Get a run, step by step")
            .either(Full, runs::get),
        post("/automations/{id}/runs/{run}/cancel", "cancel_automation_run", "Cancel a run")
            .either(Full, runs::cancel),
    ]
}

/// An automation, named in the path. What cannot be an id is the id of nothing.
#[derive(Debug, Clone, Copy)]
pub struct OfAutomation(Option<AutomationId>);

impl OfAutomation {
    fn parameter() -> Value {
        schema::path_parameter("id", "The automation's id (`aut_…`)")
    }

    fn of(call: &Call) -> Self {
        Self(call.path_parameter("id").parse().ok())
    }

    fn id(self) -> Result<AutomationId, Problem> {
        self.0.ok_or_else(no_such_automation)
    }
}

impl Input for OfAutomation {
    fn describe(_: &mut Schemas) -> Takes {
        Takes { parameters: vec![Self::parameter()], ..Takes::default() }
    }

    fn read(call: &Call) -> Result<Self, Problem> {
        Ok(Self::of(call))
    }
}

pub(crate) fn no_such_automation() -> Problem {
    Problem::not_found("automation")
}

fn changed_meanwhile() -> Problem {
    Problem::new(Code::CONFLICT, "The automation was changed at the same time; get it and try again")
}

pub(crate) async fn find(room: &Room, tenant: &Tenant, of: OfAutomation) -> Result<Found, Problem> {
    let found = store::automation::get(room.hall.store(), tenant.account().id, of.id()?).await?;
    found.ok_or_else(no_such_automation)
}

/// The version that an automation has now.
async fn current(room: &Room, automation: &Automation) -> Result<Version, Problem> {
    let (store, number) = (room.hall.store(), automation.version);
    let found = store::automation::version(store, automation.account, automation.id, number).await?;
    // Deleted this very moment.
    found.ok_or_else(no_such_automation)
}

/// Commits a change; false when somebody else changed the automation meanwhile. What cancels runs is answered when
/// they are cancelled, and not by what was before: those whom the change is to cancel are ended here, as many as
/// one request may; the job that it leaves finds the others.
async fn commit(
    room: &Room,
    tenant: &Tenant,
    (batch, cancels): (Batch, Option<&Work>),
) -> Result<bool, Problem> {
    let partitions = store::run::due::partitions_of(&batch);
    match room.hall.store().commit(batch).await {
        Ok(()) => {
            let account = tenant.account().id;
            room.hall.automations().forget(account);
            if let Some(Work::Cancel { automation, before }) = cancels {
                room.hall.cancel_runs((account, *automation), *before).await;
            }
            room.hall.automations().wake(&partitions);
            Ok(true)
        }
        Err(CommitError::Conflict { .. }) => Ok(false),
        Err(error) => Err(Problem::of_refusal(error.into(), room.upgrade_url())),
    }
}

async fn shown(room: &Room, automation: &Automation, version: &Version) -> Result<AutomationView, Problem> {
    let counts = room.hall.count_runs(automation).await?;
    Ok(AutomationView::of(automation, &version.definition, counts))
}

async fn answer(room: &Room, automation: &Automation, version: &Version) -> Result<OneAutomation, Problem> {
    Ok(OneAutomation { automation: shown(room, automation, version).await? })
}

async fn keep_new(
    room: &Room,
    tenant: &Tenant,
    (name, definition): (String, mail::automation::Definition),
) -> Result<OneAutomation, Problem> {
    let (store, account, now) = (room.hall.store(), tenant.account().id, room.hall.clock().now());
    if store::automation::count(store, account, AUTOMATIONS_MAX).await? >= AUTOMATIONS_MAX {
        let text = format!("There are {AUTOMATIONS_MAX} automations, the most that there may be");
        return Err(Problem::new(Code::VALIDATION_ERROR, text));
    }
    let automation = Automation {
        id: AutomationId::new(now, room.hall.entropy().id()),
        account,
        name,
        status: AutomationStatus::Draft,
        version: 1,
        created_at: now,
        updated_at: now,
        activated_at: None,
    };
    let version = Version { number: 1, definition, created_at: now };
    let mut batch = Batch::intake();
    store::automation::create(&mut batch, &automation);
    store::automation::put_version(&mut batch, &automation, &version);
    if !commit(room, tenant, (batch, None)).await? {
        return Err(changed_meanwhile());
    }
    answer(room, &automation, &version).await
}

/// `POST /automations`.
///
/// # Errors
/// Text messages without a provider; as many automations as there may be; the store cannot be written.
pub async fn create(
    room: Arc<Room>,
    tenant: Tenant,
    request: CreateAutomation,
) -> Result<OneAutomation, Problem> {
    check::texts(&room, &request.definition)?;
    check::events(&room, &tenant, &request.definition).await?;
    keep_new(&room, &tenant, (request.name, request.definition)).await
}

/// What `GET /automations` takes.
#[derive(Debug)]
pub struct ListAutomations {
    page: Page,
    statuses: Vec<AutomationStatus>,
}

impl Input for ListAutomations {
    fn describe(_: &mut Schemas) -> Takes {
        let mut parameters = Page::parameters();
        let text = format!("Only these: {}; several with commas", AutomationStatus::WORDS.join(", "));
        parameters.push(schema::query_parameter("status", &text, json!({"type": "string"})));
        Takes { parameters, ..Takes::default() }
    }

    fn read(call: &Call) -> Result<Self, Problem> {
        let words = AutomationStatus::WORDS;
        let statuses = page::words(&call.query, "status", words, AutomationStatus::of_word)?;
        Ok(Self { page: Page::read(&call.query)?, statuses })
    }
}

/// `GET /automations`.
///
/// # Errors
/// The cursor is none of this list's; the store cannot be read.
pub async fn list(
    room: Arc<Room>,
    tenant: Tenant,
    input: ListAutomations,
) -> Result<AutomationList, Problem> {
    let before = input.page.before_id(KIND_AUTOMATION)?.map(AutomationId::from_bytes);
    let passes =
        |automation: &Automation| input.statuses.is_empty() || input.statuses.contains(&automation.status);
    let (store, account) = (room.hall.store(), tenant.account().id);
    let (found, next) = store::automation::list(store, account, before, input.page.limit, passes).await?;
    let mut automations = Vec::with_capacity(found.len());
    for automation in &found {
        match current(&room, automation).await {
            Ok(version) => automations.push(shown(&room, automation, &version).await?.listed()),
            Err(problem) if problem.code() == Code::NOT_FOUND => {}
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
pub async fn get(room: Arc<Room>, tenant: Tenant, of: OfAutomation) -> Result<OneAutomation, Problem> {
    let found = find(&room, &tenant, of).await?;
    let version = current(&room, &found.automation).await?;
    answer(&room, &found.automation, &version).await
}

/// `POST /automations/{id}`.
///
/// # Errors
/// No such automation; an action that it cannot take; a definition that cannot be followed.
pub async fn update(
    room: Arc<Room>,
    tenant: Tenant,
    (of, change): (OfAutomation, Change),
) -> Result<OneAutomation, Problem> {
    for _ in 0..TRIES_MAX {
        let found = find(&room, &tenant, of).await?;
        let version = current(&room, &found.automation).await?;
        let done = match &change {
            Change::Act(action) => act(&room, &tenant, (&found, &version), *action).await?,
            Change::Edit(edit) => self::edit(&room, &tenant, (&found, &version), edit).await?,
        };
        if let Some((automation, version)) = done {
            return answer(&room, &automation, &version).await;
        }
    }
    Err(changed_meanwhile())
}

type Changed = Option<(Automation, Version)>;

/// Does what is asked; none when somebody else was quicker.
async fn act(
    room: &Room,
    tenant: &Tenant,
    (found, version): (&Found, &Version),
    action: Action,
) -> Result<Changed, Problem> {
    use AutomationStatus::{Active, Archived, Draft, Paused};
    let (before, now) = (&found.automation, room.hall.clock().now());
    let automations = room.hall.automations();
    let (mut after, mut batch) = (before.clone(), Batch::progress());
    let cancel = Work::Cancel { automation: before.id, before: RunId::new(now, u128::MAX) };
    match (action, before.status) {
        (Action::Activate, Active) | (Action::Pause, Paused) => {
            return Ok(Some((before.clone(), version.clone())));
        }
        (Action::Activate, Draft | Paused | Archived) => {
            check::whole(room, tenant, before, &version.definition).await?;
            after = Automation { status: Active, activated_at: Some(now), ..after };
            store::automation::listen(&mut batch, &after, &version.definition);
            automations.plan(&mut batch, before.account, Work::Release { automation: before.id });
        }
        (Action::Pause, Active) => {
            after.status = Paused;
            store::automation::unlisten(&mut batch, before, &version.definition);
        }
        (Action::Archive, _) => {
            after.status = Archived;
            store::automation::unlisten(&mut batch, before, &version.definition);
            automations.plan(&mut batch, before.account, cancel.clone());
        }
        (Action::CancelRuns, _) => automations.plan(&mut batch, before.account, cancel.clone()),
        (Action::Pause, status @ (Draft | Archived)) => {
            let text = format!("Only an active automation can be paused; this one is {}", status.word());
            let problem = Problem::new(Code::VALIDATION_ERROR, text);
            return Err(problem.details(json!({"status": status.word()})));
        }
    }
    after.updated_at = now;
    store::automation::update(&mut batch, found, &after);
    let cancels = matches!(action, Action::Archive | Action::CancelRuns).then_some(&cancel);
    Ok(commit(room, tenant, (batch, cancels)).await?.then(|| (after, version.clone())))
}

/// Changes what is given; none when somebody else was quicker.
async fn edit(
    room: &Room,
    tenant: &Tenant,
    (found, version): (&Found, &Version),
    edit: &Edit,
) -> Result<Changed, Problem> {
    let (before, now) = (&found.automation, room.hall.clock().now());
    let definition = edit.apply(&version.definition)?;
    let (mut after, mut batch) = (before.clone(), Batch::progress());
    after.updated_at = now;
    if let Some(name) = &edit.name {
        after.name.clone_from(name);
    }
    let mut current = version.clone();
    if definition != version.definition {
        check::texts(room, &definition)?;
        check::events(room, tenant, &definition).await?;
        current = Version { number: version.number, definition, created_at: now };
        // What no run can follow yet is written anew.
        if before.activated_at.is_some() {
            if version.number >= VERSIONS_MAX {
                let text = format!("It has {VERSIONS_MAX} versions: duplicate it, and go on with the copy");
                return Err(Problem::new(Code::VALIDATION_ERROR, text));
            }
            current.number = version.number + 1;
            after.version = current.number;
        }
        if before.status == AutomationStatus::Active {
            check::whole(room, tenant, before, &current.definition).await?;
            store::automation::unlisten(&mut batch, before, &version.definition);
            store::automation::listen(&mut batch, &after, &current.definition);
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
pub async fn delete(room: Arc<Room>, tenant: Tenant, of: OfAutomation) -> Result<Done, Problem> {
    for _ in 0..TRIES_MAX {
        let found = find(&room, &tenant, of).await?;
        let version = current(&room, &found.automation).await?;
        let automation = &found.automation;
        let mut batch = Batch::progress();
        store::automation::unlisten(&mut batch, automation, &version.definition);
        store::automation::delete(&mut batch, &found);
        let forget = Work::Forget { automation: automation.id };
        room.hall.automations().plan(&mut batch, automation.account, forget);
        if commit(&room, &tenant, (batch, None)).await? {
            return Ok(Done::OK);
        }
    }
    Err(changed_meanwhile())
}

/// `POST /automations/{id}/duplicate`.
///
/// # Errors
/// No such automation; as many automations as there may be.
pub async fn duplicate(
    room: Arc<Room>,
    tenant: Tenant,
    (of, request): (OfAutomation, CopyAutomation),
) -> Result<OneAutomation, Problem> {
    let found = find(&room, &tenant, of).await?;
    let version = current(&room, &found.automation).await?;
    let name = request.name.unwrap_or_else(|| name_of_copy(&found.automation.name));
    keep_new(&room, &tenant, (name, version.definition)).await
}

fn name_of_copy(name: &str) -> String {
    const SUFFIX: &str = " (copy)";
    let mut end = name.len().min(NAME_BYTES_MAX - SUFFIX.len());
    while !name.is_char_boundary(end) {
        end -= 1;
    }
    format!("{}{SUFFIX}", name.get(..end).unwrap_or_default())
}

/// A page of what an automation has.
#[derive(Debug)]
pub struct PageOf {
    page: Page,
}

impl Input for (OfAutomation, PageOf) {
    fn describe(_: &mut Schemas) -> Takes {
        let mut parameters = vec![OfAutomation::parameter()];
        parameters.extend(Page::parameters());
        Takes { parameters, ..Takes::default() }
    }

    fn read(call: &Call) -> Result<Self, Problem> {
        Ok((OfAutomation::of(call), PageOf { page: Page::read(&call.query)? }))
    }
}

/// `GET /automations/{id}/versions`.
///
/// # Errors
/// No such automation; the cursor is none of this list's.
pub async fn versions(
    room: Arc<Room>,
    tenant: Tenant,
    (of, PageOf { page }): (OfAutomation, PageOf),
) -> Result<VersionList, Problem> {
    let automation = find(&room, &tenant, of).await?.automation;
    let before = page.number(KIND_AUTOMATION_VERSION)?.and_then(|number| u32::try_from(number).ok());
    let (store, limit) = (room.hall.store(), page.limit + 1);
    let mut found =
        store::automation::versions(store, automation.account, automation.id, (before, limit)).await?;
    let has_more = found.len() > page.limit;
    found.truncate(page.limit);
    let next = found.last().filter(|_| has_more);
    let next_cursor = next.map(|version| page::after_number(KIND_AUTOMATION_VERSION, version.number.into()));
    let versions = found.iter().map(VersionView::of).collect();
    Ok(VersionList { versions, has_more, next_cursor })
}
