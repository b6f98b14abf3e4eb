//! Versions of templates: publish, list, get, roll back.

use httpd::request_object::read_optional_body;
use httpd::request_value::Line;
use model::template::{NOTE_BYTES_MAX, PublishedVersion, TemplateKey, TemplateSettings, TemplateVersion};

use super::path::TemplatePath;
use super::storage::{TRIES_MAX, commit, conflict_problem, find, find_with_bodies, reserve_storage};
use super::view::{
    PublishTemplateResponse, TemplateVersionDetail, TemplateVersionList, TemplateVersionResponse, TemplateVersionView,
    TemplateView,
};
use crate::emails::template::{parse_version, version_schema};
use crate::prelude::*;

const NUMBER: &str = "number";
/// Longest body with a note.
const NOTE_REQUEST_BYTES_MAX: usize = 16 << 10;

/// A publication
#[derive(Debug, RequestObject)]
#[schema(body_bytes_max = NOTE_REQUEST_BYTES_MAX, optional_body)]
pub struct PublishTemplate {
    /// Note of the version
    #[field(foreign = ["Note"], reader = Line<NOTE_BYTES_MAX>)]
    note: Option<String>,
}

impl PublishTemplate {
    /// The new version, with the number and time of `after`.
    fn build_version(&self, tenant: &Tenant, after: PublishedVersion, settings: TemplateSettings) -> TemplateVersion {
        TemplateVersion {
            number: after.version,
            note: self.note.clone().filter(|note| !note.is_empty()),
            published_at: after.at,
            published_by: tenant.account().email.to_string(),
            settings,
        }
    }
}

/// A rollback
#[derive(Debug, RequestObject)]
pub struct RollBackTemplate {
    /// The version to publish again
    #[field(foreign = ["Version"], parse = parse_version, schema = version_schema)]
    version: u32,
    #[field(flatten)]
    publication: PublishTemplate,
}

impl FromRequest for RollBackTemplate {
    const BODY_BYTES_MAX: Option<usize> = Some(NOTE_REQUEST_BYTES_MAX);
    const BODY: Option<BodySchema> = Some(Self::schema);

    fn read(call: &Request) -> Result<Self> {
        read_optional_body(call)
    }
}

/// `POST /templates/{id_or_alias}/publish`.
///
/// # Errors
/// The template does not exist or has no body; the plan's quota is used up.
pub async fn publish(
    state: State,
    tenant: Tenant,
    (TemplatePath(key), request): (TemplatePath, PublishTemplate),
) -> Result<PublishTemplateResponse> {
    for _ in 0..TRIES_MAX {
        let (before, bodies) = find_with_bodies(&state, &tenant, &key).await?;
        if bodies.is_empty() {
            return Err(Problem::field("html", "`html` or `text` is required to publish a template"));
        }
        let reserved = reserve_storage(&state, &tenant, &bodies).await?;
        let now = state.services.clock.now();
        let (mut after, published) = before.with_next_version(now);
        after.changed = false;
        let version = request.build_version(&tenant, published, before.draft.clone());
        let mut batch = Batch::intake();
        store::template::update(&mut batch, &before, &after);
        store::template::put_version(&mut batch, &after, &version, &bodies);
        if commit(&state, batch).await? {
            reserved.confirm();
            let (template, version) =
                (TemplateView::with_bodies(&after, bodies), TemplateVersionView::from_version(&version));
            return Ok(PublishTemplateResponse { template, version });
        }
    }
    Err(conflict_problem())
}

/// `POST /templates/{id_or_alias}/rollback`: publishes a copy of an earlier version. The draft becomes that version
/// too, unless it has unpublished changes.
///
/// # Errors
/// The template or version does not exist; the plan's quota is used up.
pub async fn roll_back(
    state: State,
    tenant: Tenant,
    (TemplatePath(key), request): (TemplatePath, RollBackTemplate),
) -> Result<PublishTemplateResponse> {
    let RollBackTemplate { version: target_version, publication: request } = request;
    for _ in 0..TRIES_MAX {
        let (before, draft_bodies) = find_with_bodies(&state, &tenant, &key).await?;
        let (store, account) = (&state.services.store, before.account);
        let old = store::template::get_version(store, account, before.id, target_version).await?;
        let (old, bodies) = old.ok_or_else(|| Problem::not_found("version"))?;
        let reserved = reserve_storage(&state, &tenant, &bodies).await?;
        let now = state.services.clock.now();
        let (mut after, published) = before.with_next_version(now);
        let mut version = request.build_version(&tenant, published, old.settings.clone());
        version.note.get_or_insert_with(|| format!("Rollback to version {target_version}"));
        let mut batch = Batch::intake();
        let draft_bodies = if before.changed {
            after.changed = before.draft != old.settings || draft_bodies != bodies;
            draft_bodies
        } else {
            after.draft = old.settings;
            after.draft_version = before.draft_version.saturating_add(1);
            store::template::put_draft(&mut batch, &after, &bodies);
            bodies.clone()
        };
        store::template::update(&mut batch, &before, &after);
        store::template::put_version(&mut batch, &after, &version, &bodies);
        if commit(&state, batch).await? {
            reserved.confirm();
            let (template, version) =
                (TemplateView::with_bodies(&after, draft_bodies), TemplateVersionView::from_version(&version));
            return Ok(PublishTemplateResponse { template, version });
        }
    }
    Err(conflict_problem())
}

/// `GET /templates/{id_or_alias}/versions`.
pub async fn list(
    state: State,
    tenant: Tenant,
    (TemplatePath(key), page): (TemplatePath, PageParameters),
) -> Result<TemplateVersionList> {
    let before = page.before_template_version()?;
    let template = find(&state, &tenant, &key).await?;
    let mut found = store::template::list_versions(&state.services.store, &template, before, page.limit + 1).await?;
    let next_cursor = page.cut(&mut found, |last| paging::after_template_version(last.number));
    let versions = found.iter().map(TemplateVersionView::from_version).collect();
    Ok(TemplateVersionList::new(versions, next_cursor))
}

#[derive(Debug)]
pub struct TemplateVersionPath(TemplateKey, Option<u32>);

impl FromRequest for TemplateVersionPath {
    fn parameters() -> Vec<Value> {
        let number = schema::path_parameter(NUMBER, "The version's number");
        [TemplatePath::parameters(), vec![number]].concat()
    }

    fn read(call: &Request) -> Result<Self> {
        let TemplatePath(key) = TemplatePath::read(call)?;
        // Text that is not a positive number is answered 404.
        Ok(Self(key, call.path_parameter(NUMBER).parse().ok().filter(|n| *n > 0)))
    }
}

/// `GET /templates/{id_or_alias}/versions/{number}`.
pub async fn get(
    state: State,
    tenant: Tenant,
    TemplateVersionPath(key, number): TemplateVersionPath,
) -> Result<TemplateVersionResponse> {
    let template = find(&state, &tenant, &key).await?;
    let not_found = || Problem::not_found("version");
    let number = number.ok_or_else(not_found)?;
    let found = store::template::get_version(&state.services.store, template.account, template.id, number).await?;
    let (version, bodies) = found.ok_or_else(not_found)?;
    Ok(TemplateVersionResponse { version: TemplateVersionDetail::from_version(&version, bodies) })
}
