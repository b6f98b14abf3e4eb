//! Suppressions: addresses and domains to which nothing is sent.
//!
//! Bounces and complaints create suppressions where they are processed. These operations let the customer list, add,
//! remove and check suppressions, [`import`] a CSV list and [`export`] one. An expired suppression counts as missing.

pub mod add;
pub mod check;
pub(crate) mod commit_error;
pub mod dry_run_import;
pub mod export;
pub mod import;
pub mod query;
pub mod view;

use accounts::suppressions::SuppressionService;
use httpd::paging::{KIND_SUPPRESSION, after_id};
use model::suppression::{Suppression, SuppressionReason, SuppressionTarget};
use store::suppression::StoredSuppression;

use crate::operation::{Operation, OperationTag};
use crate::prelude::*;

use self::commit_error::commit_error_problem;
use self::query::{ListSuppressions, SuppressionQuery};
use self::view::{SuppressionList, SuppressionResponse, SuppressionView};

/// Tries of a deletion that conflicts with a concurrent change.
const TRIES_MAX: usize = 20;

/// The operations on suppressions.
pub fn operations() -> Vec<Operation> {
    let tag = OperationTag::new("suppressions");
    vec![
        tag.get("/suppressions", "List suppressions, newest first")
            .full_key_or_session(("list_suppressions", "suppressions.list"), list),
        tag.post("/suppressions", "Create suppressions")
            .errors(&[ErrorCode::PLAN_FULL])
            .full_key_or_session(("create_suppression", "suppressions.create"), add::add),
        tag.post("/suppressions/check", "Check whether addresses are suppressed")
            .risk(Risk::Read)
            .full_key_or_session(("check_suppressions", "suppressions.check"), check::check),
        tag.post("/suppressions/import", "Import suppressions from CSV")
            .full_key_or_session(("import_suppressions", "suppressions.import"), import::start),
        tag.post("/suppressions/import/dry-run", "Show what an import of suppressions would do")
            .risk(Risk::Read)
            .full_key_or_session(("dry_run_suppression_import", "suppressions.dryRunImport"), dry_run_import::dry_run),
        tag.get("/suppressions/import", "List imports, newest first")
            .full_key_or_session(("list_suppression_imports", "suppressions.listImports"), import::list),
        tag.get("/suppressions/import/{id}", "Get the progress of an import")
            .full_key_or_session(("get_suppression_import", "suppressions.getImport"), import::get),
        tag.get("/suppressions/export", "Export suppressions as CSV")
            .full_key_or_session(("export_suppressions", "suppressions.export"), export::export),
        tag.get("/suppressions/{id_or_email}", "Get a suppression")
            .full_key_or_session(("get_suppression", "suppressions.get"), get_suppression),
        tag.delete("/suppressions/{id_or_email}", "Delete a suppression")
            .full_key_or_session(("delete_suppression", "suppressions.delete"), delete_suppression),
    ]
}

/// `GET /suppressions`.
pub async fn list(state: State, tenant: Tenant, input: ListSuppressions) -> Result<SuppressionList> {
    let ListSuppressions { page, selection } = input;
    let before = page.before_id(KIND_SUPPRESSION)?.map(SuppressionId::from_bytes);
    let SuppressionQuery { email, mut filter } = selection;
    let (store, account, now) = (&state.services.store, tenant.account().id, state.services.clock.now());
    filter.holding_at = Some(now);
    let listed = match email {
        Some(target) => {
            let found = store::suppression::get(store, account, &target).await?;
            let is_included = |s: &Suppression| filter.matches(s) && before.is_none_or(|before| s.id < before);
            let suppressions = found.map(|found| found.suppression).filter(is_included).into_iter().collect();
            store::suppression::SuppressionPage { suppressions, next: None }
        }
        None => store::suppression::list(store, account, &filter, before, page.limit).await?,
    };
    Ok(SuppressionList::new(
        listed.suppressions.iter().map(SuppressionView::from_suppression).collect(),
        listed.next.map(|id| after_id(KIND_SUPPRESSION, id.to_bytes())),
    ))
}

/// The suppression in a path, by id or by address or domain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SuppressionPath {
    Id(SuppressionId),
    /// The suppressed address or domain.
    Target(SuppressionTarget),
}

const ID_OR_EMAIL: &str = "id_or_email";

impl FromRequest for SuppressionPath {
    fn parameters() -> Vec<Value> {
        vec![schema::path_parameter(ID_OR_EMAIL, "The suppression's id (`sup_…`), or the address")]
    }

    /// Text that is neither an id nor an address is answered 404.
    fn read(call: &Request) -> Result<Self> {
        let text = call.path_text(ID_OR_EMAIL).ok_or_else(suppression_not_found)?;
        match text.parse() {
            Ok(id) => Ok(Self::Id(id)),
            Err(_) => SuppressionTarget::parse(&text).map(Self::Target).map_err(|_| suppression_not_found()),
        }
    }
}

fn suppression_not_found() -> Problem {
    Problem::not_found("suppression")
}

async fn find(state: &AppState, tenant: &Tenant, named: &SuppressionPath) -> Result<StoredSuppression> {
    let (store, account) = (&state.services.store, tenant.account().id);
    let found = match named {
        SuppressionPath::Id(id) => store::suppression::find_by_id(store, account, *id).await?,
        SuppressionPath::Target(target) => store::suppression::get(store, account, target).await?,
    };
    let now = state.services.clock.now();
    found.filter(|found| found.suppression.is_active(now)).ok_or_else(suppression_not_found)
}

/// `GET /suppressions/{id_or_email}`.
pub async fn get_suppression(state: State, tenant: Tenant, named: SuppressionPath) -> Result<SuppressionResponse> {
    let found = find(&state, &tenant, &named).await?;
    Ok(SuppressionResponse { suppression: SuppressionView::from_suppression(&found.suppression) })
}

/// Query of `DELETE /suppressions/{id_or_email}`.
#[derive(Debug)]
pub struct DeleteSuppression {
    force: bool,
}

impl RequestQuery for DeleteSuppression {
    fn read_query(query: &mut Query) -> Result<Self> {
        Ok(Self { force: query.flag("force", "Also delete a suppression caused by a complaint")? })
    }
}

/// The suppression was deleted
#[derive(Debug, Serialize, ToSchema)]
pub struct DeletedSuppression {
    #[schema(const = true)]
    ok: bool,
    /// Its id
    id: SuppressionId,
}

/// `DELETE /suppressions/{id_or_email}`.
///
/// # Errors
/// The suppression does not exist, or was caused by a complaint and `force` is not set; the store cannot be written.
pub async fn delete_suppression(
    state: State,
    tenant: Tenant,
    (named, input): (SuppressionPath, DeleteSuppression),
) -> Result<DeletedSuppression> {
    for _ in 0..TRIES_MAX {
        let found = find(&state, &tenant, &named).await?;
        if found.suppression.reason == SuppressionReason::Complaint && !input.force {
            let text = "The recipient reported your email as spam: sending again harms your reputation. If they have \
                asked for your email again, delete with ?force=true";
            return Err(
                Problem::new(ErrorCode::CONFLICT, text).with_details(json!({"reason": SuppressionReason::Complaint}))
            );
        }
        let mut batch = Batch::progress();
        SuppressionService::new(&state.services).delete_suppression(&mut batch, &found);
        match state.services.store.commit(batch).await {
            Ok(()) => {
                state.services.outbox_wakeup.notify_one();
                return Ok(DeletedSuppression { ok: true, id: found.suppression.id });
            }
            Err(CommitError::Conflict { .. }) => {}
            Err(error) => return Err(commit_error_problem(error)),
        }
    }
    Err(Problem::busy())
}
