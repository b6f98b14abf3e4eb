//! Versions of templates: publish one, look at them, go back to one.

use std::sync::Arc;

use mail::template::{NOTE_BYTES_MAX, Published, Settings, TemplateKey, TemplateVersion};
use serde_json::{Value, json};
use store::access::Tenant;
use store::engine::Batch;

use super::view::{OneVersion, PublishedTemplate, TemplateView, VersionDetail, VersionList, VersionView};
use super::{OfTemplate, TRIES_MAX, changed_meanwhile, commit, find, find_whole, reserve};
use crate::call::{Call, Input, Media, Takes};
use crate::emails::template::version;
use crate::fields::{self, Given, Names, Notes};
use crate::page::{self, Page};
use crate::problem::Problem;
use crate::room::Room;
use crate::schema::{self, Schemas};

const NUMBER: &str = "number";
/// A body with a note.
const NOTE_REQUEST_BYTES_MAX: usize = 16 << 10;

/// A publication: of the draft, or of an earlier version once more.
#[derive(Debug)]
struct Publication {
    note: Option<String>,
    version: Option<u32>,
    warnings: Vec<String>,
}

impl Publication {
    fn read(body: &[u8], names: &Names) -> Result<Self, Problem> {
        let mut notes = Notes::default();
        let given = Given::sort(fields::body_or_nothing(body)?, names, "", &mut notes);
        let note = given.value("note").map(|value| fields::line(value, NOTE_BYTES_MAX)).transpose();
        let note = note.map_err(|text| notes.errors.add("note", text)).unwrap_or_default();
        let number = given.value("version").map(version).transpose();
        let number = number.map_err(|text| notes.errors.add("version", text)).unwrap_or_default();
        if !notes.errors.is_empty() {
            return Err(notes.errors.into());
        }
        Ok(Self { note: note.filter(|note| !note.is_empty()), version: number, warnings: notes.warnings })
    }

    /// The version that the template `after` has as its latest.
    fn version(&self, tenant: &Tenant, after: Published, settings: Settings) -> TemplateVersion {
        TemplateVersion {
            number: after.version,
            note: self.note.clone(),
            published_at: after.at,
            published_by: tenant.account().email.to_string(),
            settings,
        }
    }
}

/// The draft is to be published.
#[derive(Debug)]
pub struct Publish(Publication);

impl Input for (OfTemplate, Publish) {
    const BODY_BYTES_MAX: Option<usize> = Some(NOTE_REQUEST_BYTES_MAX);
    const MEDIA: Media = Media::JsonOrNothing;

    fn describe(_: &mut Schemas) -> Takes {
        let note = ("note", schema::string("Why"));
        takes(schema::object_with("A publication", &[], [note]), Self::BODY_BYTES_MAX)
    }

    fn read(call: &Call) -> Result<Self, Problem> {
        const NAMES: Names = Names { known: &[("note", "note")], foreign: &[("Note", "note")] };
        Ok((OfTemplate::of(call), Publish(Publication::read(&call.body, &NAMES)?)))
    }
}

/// An earlier version is to be published once more.
#[derive(Debug)]
pub struct RollBack(Publication, u32);

impl Input for (OfTemplate, RollBack) {
    const BODY_BYTES_MAX: Option<usize> = Some(NOTE_REQUEST_BYTES_MAX);

    fn describe(_: &mut Schemas) -> Takes {
        let number = json!({"type": "integer", "minimum": 1, "description": "The version to go back to"});
        let fields = [("version", number), ("note", schema::string("Why"))];
        takes(schema::object_with("A way back", &["version"], fields), Self::BODY_BYTES_MAX)
    }

    fn read(call: &Call) -> Result<Self, Problem> {
        const NAMES: Names = Names {
            known: &[("version", "version"), ("note", "note")],
            foreign: &[("Version", "version"), ("Note", "note")],
        };
        let publication = Publication::read(&call.body, &NAMES)?;
        let number = publication.version.ok_or_else(|| Problem::field("version", "is required"))?;
        Ok((OfTemplate::of(call), RollBack(publication, number)))
    }
}

fn takes(body: Value, body_bytes_max: Option<usize>) -> Takes {
    Takes { parameters: vec![OfTemplate::parameter()], body: Some(body), body_bytes_max }
}

/// `POST /templates/{id_or_alias}/publish`.
///
/// # Errors
/// No such template; nothing in it to send; the plan includes no more.
pub async fn publish(
    room: Arc<Room>,
    tenant: Tenant,
    (OfTemplate(key), Publish(request)): (OfTemplate, Publish),
) -> Result<PublishedTemplate, Problem> {
    for _ in 0..TRIES_MAX {
        let (before, bodies) = find_whole(&room, &tenant, &key).await?;
        if bodies.is_empty() {
            return Err(Problem::field("html", "one of html and text is needed to publish a template"));
        }
        let reserved = reserve(&room, &tenant, &bodies).await?;
        let now = room.hall.clock().now();
        let (mut after, published) = before.with_next_version(now);
        after.changed = false;
        let version = request.version(&tenant, published, before.draft.clone());
        let mut batch = Batch::intake();
        store::template::update(&mut batch, &before, &after);
        store::template::put_version(&mut batch, &after, &version, &bodies);
        if commit(&room, batch).await? {
            reserved.keep();
            let (template, version) = (TemplateView::whole(&after, bodies), VersionView::of(&version));
            return Ok(PublishedTemplate { template, version, warnings: request.warnings });
        }
    }
    Err(changed_meanwhile())
}

/// `POST /templates/{id_or_alias}/rollback`: publishes a copy of an earlier version. The draft follows,
/// unless it has changes that are published nowhere.
///
/// # Errors
/// No such template or version; the plan includes no more.
pub async fn roll_back(
    room: Arc<Room>,
    tenant: Tenant,
    (OfTemplate(key), RollBack(request, wanted)): (OfTemplate, RollBack),
) -> Result<PublishedTemplate, Problem> {
    for _ in 0..TRIES_MAX {
        let (before, draft_bodies) = find_whole(&room, &tenant, &key).await?;
        let (store, account) = (room.hall.store(), before.account);
        let old = store::template::version(store, account, before.id, wanted).await?;
        let (old, bodies) = old.ok_or_else(|| Problem::not_found("version"))?;
        let reserved = reserve(&room, &tenant, &bodies).await?;
        let now = room.hall.clock().now();
        let (mut after, published) = before.with_next_version(now);
        let mut version = request.version(&tenant, published, old.settings.clone());
        version.note.get_or_insert_with(|| format!("Rollback to version {wanted}"));
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
        if commit(&room, batch).await? {
            reserved.keep();
            let (template, version) = (TemplateView::whole(&after, draft_bodies), VersionView::of(&version));
            return Ok(PublishedTemplate { template, version, warnings: request.warnings });
        }
    }
    Err(changed_meanwhile())
}

/// A page of a template's versions.
#[derive(Debug)]
pub struct PageOfVersions(OfTemplate, Page);

impl Input for PageOfVersions {
    fn describe(_: &mut Schemas) -> Takes {
        let mut parameters = vec![OfTemplate::parameter()];
        parameters.extend(Page::parameters());
        Takes { parameters, ..Takes::default() }
    }

    fn read(call: &Call) -> Result<Self, Problem> {
        Ok(Self(OfTemplate::of(call), Page::read(&call.query)?))
    }
}

/// `GET /templates/{id_or_alias}/versions`.
///
/// # Errors
/// No such template; the cursor is none of this list's.
pub async fn list(room: Arc<Room>, tenant: Tenant, input: PageOfVersions) -> Result<VersionList, Problem> {
    let PageOfVersions(OfTemplate(key), page) = input;
    let before = page.before_template_version()?;
    let template = find(&room, &tenant, &key).await?;
    let mut found = store::template::versions(room.hall.store(), &template, before, page.limit + 1).await?;
    let has_more = found.len() > page.limit;
    found.truncate(page.limit);
    let last = found.last().filter(|_| has_more);
    let next_cursor = last.map(|version| page::after_template_version(version.number));
    Ok(VersionList { versions: found.iter().map(VersionView::of).collect(), has_more, next_cursor })
}

/// A version of a template, named in the path.
#[derive(Debug)]
pub struct OfVersion(TemplateKey, Option<u32>);

impl Input for OfVersion {
    fn describe(_: &mut Schemas) -> Takes {
        let number = schema::path_parameter(NUMBER, "The version's number");
        Takes { parameters: vec![OfTemplate::parameter(), number], ..Takes::default() }
    }

    fn read(call: &Call) -> Result<Self, Problem> {
        let OfTemplate(key) = OfTemplate::of(call);
        // What is no number is the number of nothing; 0 is none either.
        Ok(Self(key, call.path_parameter(NUMBER).parse().ok().filter(|n| *n > 0)))
    }
}

/// `GET /templates/{id_or_alias}/versions/{number}`.
///
/// # Errors
/// No such template or version.
pub async fn get(
    room: Arc<Room>,
    tenant: Tenant,
    OfVersion(key, number): OfVersion,
) -> Result<OneVersion, Problem> {
    let template = find(&room, &tenant, &key).await?;
    let no_such_version = || Problem::not_found("version");
    let number = number.ok_or_else(no_such_version)?;
    let found = store::template::version(room.hall.store(), template.account, template.id, number).await?;
    let (version, bodies) = found.ok_or_else(no_such_version)?;
    Ok(OneVersion { version: VersionDetail::of(&version, bodies) })
}
