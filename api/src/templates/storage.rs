//! Reads and commits of a template that concurrent changes may conflict with.

use model::quota::Noun;
use model::template::{Template, TemplateBodies, TemplateKey};
use queue::intake::storage_quota::StorageReservation;
use store::template::TemplateConflict;

use super::draft::CompiledEdit;
use crate::prelude::*;
use crate::submit_problem;

/// Tries of a change that conflicts with a concurrent one.
pub(super) const TRIES_MAX: usize = 5;

/// Approximate stored size of a draft or version without its bodies.
const SETTINGS_BYTES: u64 = 1 << 10;

pub(super) async fn find(state: &AppState, tenant: &Tenant, key: &TemplateKey) -> Result<Template> {
    let found = store::template::find(&state.services.store, tenant.account().id, key).await?;
    found.ok_or_else(|| Problem::not_found("template"))
}

/// Loads a template and its draft's bodies, consistent with each other.
pub(super) async fn find_with_bodies(
    state: &AppState,
    tenant: &Tenant,
    key: &TemplateKey,
) -> Result<(Template, TemplateBodies)> {
    for _ in 0..TRIES_MAX {
        let template = find(state, tenant, key).await?;
        if let Some(bodies) = store::template::get_draft(&state.services.store, &template).await? {
            return Ok((template, bodies));
        }
    }
    Err(conflict_problem())
}

pub(super) fn conflict_problem() -> Problem {
    Problem::new(ErrorCode::CONFLICT, "The template was changed concurrently; get it and try again")
}

/// Reserves storage quota for a copy of these bodies.
pub(super) async fn reserve_storage(
    state: &AppState,
    tenant: &Tenant,
    bodies: &TemplateBodies,
) -> Result<StorageReservation> {
    state.reserve_storage(tenant, Noun::TemplateBytes, bodies.size_bytes() + SETTINGS_BYTES).await
}

/// Reserves storage quota for the HTML that a change's MJML source compiles to; the request's own size is reserved
/// before.
pub(super) async fn reserve_compiled(
    state: &AppState,
    tenant: &Tenant,
    edit: &CompiledEdit,
) -> Result<StorageReservation> {
    state.reserve_storage(tenant, Noun::TemplateBytes, edit.compiled_bytes()).await
}

/// Commits a change; returns `false` when the template was changed concurrently.
pub(super) async fn commit(state: &AppState, batch: Batch) -> Result<bool> {
    let duplicate_problem = |field: &str| {
        Problem::new(ErrorCode::CONFLICT, format!("Another template already has this {field}"))
            .with_details(json!({"field": field}))
    };
    match state.services.store.commit(batch).await {
        Ok(()) => Ok(true),
        Err(CommitError::Conflict { key }) => match store::template::conflict_kind(&key) {
            Some(TemplateConflict::Alias) => Err(duplicate_problem("alias")),
            Some(TemplateConflict::Name) => Err(duplicate_problem("name")),
            None => Ok(false),
        },
        Err(error) => Err(submit_problem::from_refusal(error.into(), state.upgrade_url())),
    }
}
