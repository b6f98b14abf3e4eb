//! Versions of templates: publish, list, get, roll back.

use std::sync::Arc;

use mail::template::{NOTE_BYTES_MAX, PublishedVersion, TemplateKey, TemplateSettings, TemplateVersion};
use serde_json::{Value, json};
use store::access::Tenant;
use store::engine::Batch;

use super::path::TemplatePath;
use super::storage::{TRIES_MAX, commit, conflict_problem, find, find_with_bodies, reserve_storage};
use super::view::{
    PublishTemplateResponse, TemplateVersionDetail, TemplateVersionList, TemplateVersionResponse, TemplateVersionView,
    TemplateView,
};
use crate::emails::template::parse_version;
use crate::fields::{self, FieldDiagnostics, FieldNames, ObjectFields};
use crate::paging::{self, PageParameters};
use crate::problem::Problem;
use crate::request::{FromRequest, Media, Request, RequestSpec};
use crate::schema::{self, Schemas};
use crate::state::AppState;

const NUMBER: &str = "number";
/// Longest body with a note.
const NOTE_REQUEST_BYTES_MAX: usize = 16 << 10;

/// The fields of a publication or rollback.
#[derive(Debug)]
struct PublishFields {
    note: Option<String>,
    version: Option<u32>,
    warnings: Vec<String>,
}

impl PublishFields {
    fn read(body: &[u8], names: &FieldNames) -> Result<Self, Problem> {
        let mut notes = FieldDiagnostics::default();
        let fields = ObjectFields::from_object(fields::parse_optional_body(body)?, names, "", &mut notes);
        let note = fields.value("note").map(|value| fields::parse_header_line(value, NOTE_BYTES_MAX)).transpose();
        let note = note.map_err(|text| notes.errors.add("note", text)).unwrap_or_default();
        let number = fields.value("version").map(parse_version).transpose();
        let number = number.map_err(|text| notes.errors.add("version", text)).unwrap_or_default();
        if !notes.errors.is_empty() {
            return Err(notes.errors.into());
        }
        Ok(Self { note: note.filter(|note| !note.is_empty()), version: number, warnings: notes.warnings })
    }

    /// The new version, with the number and time of `after`.
    fn build_version(&self, tenant: &Tenant, after: PublishedVersion, settings: TemplateSettings) -> TemplateVersion {
        TemplateVersion {
            number: after.version,
            note: self.note.clone(),
            published_at: after.at,
            published_by: tenant.account().email.to_string(),
            settings,
        }
    }
}

/// The request body of a publication.
#[derive(Debug)]
pub struct PublishTemplate(PublishFields);

impl FromRequest for (TemplatePath, PublishTemplate) {
    const BODY_BYTES_MAX: Option<usize> = Some(NOTE_REQUEST_BYTES_MAX);
    const MEDIA: Media = Media::OptionalJson;

    fn describe(_: &mut Schemas) -> RequestSpec {
        let note = ("note", schema::bounded_string(NOTE_BYTES_MAX, "Note of the version"));
        optional_body_spec(schema::object_with("A publication", &[], [note]), Self::BODY_BYTES_MAX)
    }

    fn read(call: &Request) -> Result<Self, Problem> {
        const NAMES: FieldNames = FieldNames { known: &[("note", "note")], foreign: &[("Note", "note")] };
        Ok((TemplatePath::from_request(call), PublishTemplate(PublishFields::read(&call.body, &NAMES)?)))
    }
}

/// The request body of a rollback.
#[derive(Debug)]
pub struct RollBackTemplate(PublishFields, u32);

impl FromRequest for (TemplatePath, RollBackTemplate) {
    const BODY_BYTES_MAX: Option<usize> = Some(NOTE_REQUEST_BYTES_MAX);

    fn describe(_: &mut Schemas) -> RequestSpec {
        let number = json!({"type": "integer", "minimum": 1, "description": "The version to publish again"});
        let fields = [("version", number), ("note", schema::bounded_string(NOTE_BYTES_MAX, "Note of the new version"))];
        optional_body_spec(schema::object_with("A rollback", &["version"], fields), Self::BODY_BYTES_MAX)
    }

    fn read(call: &Request) -> Result<Self, Problem> {
        const NAMES: FieldNames = FieldNames {
            known: &[("version", "version"), ("note", "note")],
            foreign: &[("Version", "version"), ("Note", "note")],
        };
        let publication = PublishFields::read(&call.body, &NAMES)?;
        let number = publication.version.ok_or_else(|| Problem::field("version", "is required"))?;
        Ok((TemplatePath::from_request(call), RollBackTemplate(publication, number)))
    }
}

fn optional_body_spec(body: Value, body_bytes_max: Option<usize>) -> RequestSpec {
    RequestSpec { parameters: vec![TemplatePath::parameter()], body: Some(body), body_bytes_max }
}

/// `POST /templates/{id_or_alias}/publish`.
///
/// # Errors
/// The template does not exist or has no body; the plan's quota is used up.
pub async fn publish(
    state: Arc<AppState>,
    tenant: Tenant,
    (TemplatePath(key), PublishTemplate(request)): (TemplatePath, PublishTemplate),
) -> Result<PublishTemplateResponse, Problem> {
    for _ in 0..TRIES_MAX {
        let (before, bodies) = find_with_bodies(&state, &tenant, &key).await?;
        if bodies.is_empty() {
            return Err(Problem::field("html", "`html` or `text` is required to publish a template"));
        }
        let reserved = reserve_storage(&state, &tenant, &bodies).await?;
        let now = state.intake.clock().now();
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
            return Ok(PublishTemplateResponse { template, version, warnings: request.warnings });
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
    state: Arc<AppState>,
    tenant: Tenant,
    (TemplatePath(key), RollBackTemplate(request, target_version)): (TemplatePath, RollBackTemplate),
) -> Result<PublishTemplateResponse, Problem> {
    for _ in 0..TRIES_MAX {
        let (before, draft_bodies) = find_with_bodies(&state, &tenant, &key).await?;
        let (store, account) = (state.intake.store(), before.account);
        let old = store::template::get_version(store, account, before.id, target_version).await?;
        let (old, bodies) = old.ok_or_else(|| Problem::not_found("version"))?;
        let reserved = reserve_storage(&state, &tenant, &bodies).await?;
        let now = state.intake.clock().now();
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
            return Ok(PublishTemplateResponse { template, version, warnings: request.warnings });
        }
    }
    Err(conflict_problem())
}

/// Parameters of `GET /templates/{id_or_alias}/versions`.
#[derive(Debug)]
pub struct ListTemplateVersions(TemplatePath, PageParameters);

impl FromRequest for ListTemplateVersions {
    fn describe(_: &mut Schemas) -> RequestSpec {
        let mut parameters = vec![TemplatePath::parameter()];
        parameters.extend(PageParameters::parameters());
        RequestSpec { parameters, ..RequestSpec::default() }
    }

    fn read(call: &Request) -> Result<Self, Problem> {
        Ok(Self(TemplatePath::from_request(call), PageParameters::from_query(&call.query)?))
    }
}

/// `GET /templates/{id_or_alias}/versions`.
///
/// # Errors
/// The template does not exist; the cursor is invalid.
pub async fn list(
    state: Arc<AppState>,
    tenant: Tenant,
    input: ListTemplateVersions,
) -> Result<TemplateVersionList, Problem> {
    let ListTemplateVersions(TemplatePath(key), page) = input;
    let before = page.before_template_version()?;
    let template = find(&state, &tenant, &key).await?;
    let mut found = store::template::list_versions(state.intake.store(), &template, before, page.limit + 1).await?;
    let has_more = found.len() > page.limit;
    found.truncate(page.limit);
    let last = found.last().filter(|_| has_more);
    let next_cursor = last.map(|version| paging::after_template_version(version.number));
    Ok(TemplateVersionList {
        versions: found.iter().map(TemplateVersionView::from_version).collect(),
        has_more,
        next_cursor,
    })
}

/// A version of a template in a path.
#[derive(Debug)]
pub struct TemplateVersionPath(TemplateKey, Option<u32>);

impl FromRequest for TemplateVersionPath {
    fn describe(_: &mut Schemas) -> RequestSpec {
        let number = schema::path_parameter(NUMBER, "The version's number");
        RequestSpec { parameters: vec![TemplatePath::parameter(), number], ..RequestSpec::default() }
    }

    fn read(call: &Request) -> Result<Self, Problem> {
        let TemplatePath(key) = TemplatePath::from_request(call);
        // Text that is not a positive number is answered 404.
        Ok(Self(key, call.path_parameter(NUMBER).parse().ok().filter(|n| *n > 0)))
    }
}

/// `GET /templates/{id_or_alias}/versions/{number}`.
///
/// # Errors
/// The template or version does not exist.
pub async fn get(
    state: Arc<AppState>,
    tenant: Tenant,
    TemplateVersionPath(key, number): TemplateVersionPath,
) -> Result<TemplateVersionResponse, Problem> {
    let template = find(&state, &tenant, &key).await?;
    let not_found = || Problem::not_found("version");
    let number = number.ok_or_else(not_found)?;
    let found = store::template::get_version(state.intake.store(), template.account, template.id, number).await?;
    let (version, bodies) = found.ok_or_else(not_found)?;
    Ok(TemplateVersionResponse { version: TemplateVersionDetail::from_version(&version, bodies) })
}
