//! Suppressions: to whom nothing is sent (completions-email.md 2.6).
//!
//! What the service finds is written where it is found; here the customer lists them, adds and removes
//! some, asks about addresses, brings a list along ([`import`]) and takes one away ([`export`]). One that
//! has ended is none.

pub mod add;
pub mod check;
pub mod export;
pub mod import;
pub mod select;
pub mod view;

use std::sync::Arc;

use http::Method;
use mail::credential::Scope;
use mail::id::SuppressionId;
use mail::suppression::{Reason, Suppression, Target};
use queue::contacts::ContactsError;
use queue::refusal::Refusal;
use serde_json::json;
use store::access::Tenant;
use store::engine::{Batch, CommitError};
use store::suppression::Found;

use crate::call::{Call, Input, Takes};
use crate::done::Done;
use crate::operations::{Operation, operation};
use crate::page;
use crate::problem::{Code, Problem};
use crate::room::Room;
use crate::schema::{self, Schemas};

use self::select::{ListSuppressions, Selection};
use self::view::{OneSuppression, SuppressionList, SuppressionView};

/// How often a deletion is tried when the suppression is changed at the same time.
const TRIES_MAX: usize = 20;

/// What can be asked.
#[must_use]
pub fn operations() -> Vec<Operation> {
    let of = |method, path, id, summary| operation(method, path, id).about("suppressions", summary);
    let (get, post, delete) = (Method::GET, Method::POST, Method::DELETE);
    vec![
        of(get.clone(), "/suppressions", "list_suppressions", "List suppressions, newest first")
            .either(Scope::Full, list),
        of(post.clone(), "/suppressions", "create_suppression", "Suppress one address, or up to 1000")
            .fails(&[Code::PLAN_FULL])
            .either(Scope::Full, add::add),
        of(post.clone(), "/suppressions/check", "check_suppressions", "Ask about up to 1000 addresses")
            .either(Scope::Full, check::check),
        of(post, "/suppressions/import", "import_suppressions", "Import a list in CSV, in the background")
            .either(Scope::Full, import::begin),
        of(get.clone(), "/suppressions/import/{id}", "get_suppression_import", "How far an import is")
            .either(Scope::Full, import::get),
        of(get.clone(), "/suppressions/export", "export_suppressions", "Export suppressions as CSV")
            .either(Scope::Full, export::export),
        of(get, "/suppressions/{id_or_email}", "get_suppression", "Get a suppression")
            .either(Scope::Full, get_one),
        of(delete, "/suppressions/{id_or_email}", "delete_suppression", "Let an address get mail again")
            .either(Scope::Full, delete_one),
    ]
}

/// `GET /suppressions`.
///
/// # Errors
/// The cursor is none of this list's; the store cannot be read.
pub async fn list(
    room: Arc<Room>,
    tenant: Tenant,
    input: ListSuppressions,
) -> Result<SuppressionList, Problem> {
    let ListSuppressions { page, selection } = input;
    let before = page.before_suppression()?;
    let Selection { email, mut filter } = selection;
    let (store, account, now) = (room.hall.store(), tenant.account().id, room.hall.clock().now());
    filter.holding_at = Some(now);
    let listed = match email {
        Some(target) => {
            let found = store::suppression::get(store, account, &target).await?;
            let wanted = |s: &Suppression| filter.takes(s) && before.is_none_or(|before| s.id < before);
            let suppressions = found.map(|found| found.suppression).filter(wanted).into_iter().collect();
            store::suppression::Listed { suppressions, next: None }
        }
        None => store::suppression::list(store, account, &filter, before, page.limit).await?,
    };
    Ok(SuppressionList {
        suppressions: listed.suppressions.iter().map(SuppressionView::of).collect(),
        has_more: listed.next.is_some(),
        next_cursor: listed.next.map(page::after_suppression),
    })
}

/// A suppression, by its id or by whom it is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Named {
    /// By its id.
    Id(SuppressionId),
    /// By whom it is about.
    Target(Target),
}

const ID_OR_EMAIL: &str = "id_or_email";

impl Input for Named {
    fn describe(_: &mut Schemas) -> Takes {
        let id = schema::path_parameter(ID_OR_EMAIL, "The suppression's id (`sup_…`), or the address");
        Takes { parameters: vec![id], ..Takes::default() }
    }

    /// What cannot be an id or an address is the name of nothing.
    fn read(call: &Call) -> Result<Self, Problem> {
        let text = call.path_text(ID_OR_EMAIL).ok_or_else(no_such_suppression)?;
        match text.parse() {
            Ok(id) => Ok(Self::Id(id)),
            Err(_) => Target::read(&text).map(Self::Target).map_err(|_| no_such_suppression()),
        }
    }
}

fn no_such_suppression() -> Problem {
    Problem::not_found("suppression")
}

async fn find(room: &Room, tenant: &Tenant, named: &Named) -> Result<Found, Problem> {
    let (store, account) = (room.hall.store(), tenant.account().id);
    let found = match named {
        Named::Id(id) => store::suppression::by_id(store, account, *id).await?,
        Named::Target(target) => store::suppression::get(store, account, target).await?,
    };
    let now = room.hall.clock().now();
    found.filter(|found| found.suppression.holds(now)).ok_or_else(no_such_suppression)
}

/// `GET /suppressions/{id_or_email}`.
///
/// # Errors
/// No such suppression; the store cannot be read.
pub async fn get_one(room: Arc<Room>, tenant: Tenant, named: Named) -> Result<OneSuppression, Problem> {
    let found = find(&room, &tenant, &named).await?;
    Ok(OneSuppression::of(&found.suppression))
}

/// What `DELETE /suppressions/{id_or_email}` takes.
#[derive(Debug)]
pub struct DeleteSuppression {
    named: Named,
    force: bool,
}

impl Input for DeleteSuppression {
    fn describe(schemas: &mut Schemas) -> Takes {
        let mut takes = Named::describe(schemas);
        let yes = json!({"type": "boolean", "default": false});
        takes.parameters.push(schema::query_parameter("force", "Delete it also after a complaint", yes));
        takes
    }

    fn read(call: &Call) -> Result<Self, Problem> {
        let parameters = page::parameters(&call.query)?;
        Ok(Self { named: Named::read(call)?, force: page::flag(&parameters, "force")? })
    }
}

/// `DELETE /suppressions/{id_or_email}`.
///
/// # Errors
/// No such suppression; it came of a complaint and is not forced; the store cannot be used.
pub async fn delete_one(room: Arc<Room>, tenant: Tenant, input: DeleteSuppression) -> Result<Done, Problem> {
    for _ in 0..TRIES_MAX {
        let found = find(&room, &tenant, &input.named).await?;
        if found.suppression.reason == Reason::Complaint && !input.force {
            let text = "The recipient complained about spam: to mail them again harms your reputation. \
                        If they asked for it, delete with ?force=true";
            return Err(Problem::new(Code::CONFLICT, text).details(json!({"reason": Reason::Complaint})));
        }
        let mut batch = Batch::progress();
        room.hall.contacts().release(&mut batch, &found);
        match room.hall.store().commit(batch).await {
            Ok(()) => {
                room.hall.something_to_tell();
                return Ok(Done::OK);
            }
            Err(CommitError::Conflict { .. }) => {}
            Err(error) => return Err(not_written(error)),
        }
    }
    Err(Problem::busy())
}

/// What a commit that failed is to a client.
pub(crate) fn not_written(error: CommitError) -> Problem {
    match error {
        CommitError::Conflict { .. } => Problem::busy(),
        error => Problem::of_refusal(Refusal::from(error), None),
    }
}

impl From<ContactsError> for Problem {
    fn from(error: ContactsError) -> Self {
        match error {
            ContactsError::Read(error) => error.into(),
            ContactsError::Commit(error) => not_written(error),
        }
    }
}
