//! `POST /suppressions/import`: hands in a list in CSV, which is read in the background; `GET
//! /suppressions/import/{id}` tells how far it is.
//!
//! The list is looked at when it comes in (is there a column of addresses?) and kept on disk until it is
//! read to its end: a restart goes on where it was. See `mail/src/import.rs` for the lists that are known.

use std::sync::Arc;

use bytes::Bytes;
use http::header::CONTENT_TYPE;
use mail::csv::CsvReader;
use mail::id::ImportId;
use mail::import::{ImportColumns, ImportCounts, ImportStatus, SuppressionImport};
use serde::Serialize;
use serde_json::Value;
use store::access::Tenant;
use store::engine::Batch;

use super::commit_error_problem;
use crate::call::{FromRequest, Media, Request, RequestSpec};
use crate::emails::view::JsonTimestamp;
use crate::fields::{self, FieldDiagnostics, FieldNames};
use crate::problem::{ErrorCode, Problem};
use crate::room::AppState;
use crate::schema::{self, Schemas, ToSchema};

/// A list of some half a million addresses.
const BODY_BYTES_MAX: usize = 16 << 20;
/// Lists of one account that wait or are read.
const UNFINISHED_IMPORTS_MAX: usize = 10;
/// Imports of one account that are remembered.
const IMPORTS_KEPT_MAX: usize = 100;

const NAMES: FieldNames = FieldNames { known: &[("csv", "csv")], foreign: &[] };

/// A list.
#[derive(Debug)]
pub struct ImportSuppressions {
    text: Bytes,
    total: u64,
}

impl FromRequest for ImportSuppressions {
    const BODY_BYTES_MAX: Option<usize> = Some(BODY_BYTES_MAX);
    const MEDIA: Media = Media::JsonOrCsv;

    fn describe(schemas: &mut Schemas) -> RequestSpec {
        let body = schemas.component("ImportSuppressions", |_| {
            let csv = schema::string("The list: a column of addresses, with or without a line of names");
            schema::object("A list; or send it as `text/csv`", [("csv", csv)])
        });
        RequestSpec { body: Some(body), body_bytes_max: Self::BODY_BYTES_MAX, ..RequestSpec::default() }
    }

    fn read(call: &Request) -> Result<Self, Problem> {
        let kind = call.headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
        let is_csv = kind.trim_start().get(..8).is_some_and(|kind| kind.eq_ignore_ascii_case("text/csv"));
        let text = if is_csv { call.body.clone() } else { csv_field(call)? };
        let wrong = |message: &str| Problem::field("csv", message);
        let list = std::str::from_utf8(&text).map_err(|_| wrong("is not UTF-8"))?;
        let columns = ImportColumns::detect(list).map_err(|message| wrong(&message))?;
        let total = CsvReader::new(list).count() - usize::from(columns.has_header);
        Ok(Self { total: total as u64, text })
    }
}

fn csv_field(call: &Request) -> Result<Bytes, Problem> {
    let mut notes = FieldDiagnostics::default();
    let given = call.body_fields(&NAMES, &mut notes)?;
    match given.value("csv").map(fields::parse_text) {
        Some(Ok(text)) => return Ok(Bytes::from(text.into_owned())),
        Some(Err(text)) => notes.errors.add("csv", text),
        None => notes.errors.add("csv", "is required"),
    }
    Err(notes.errors.into())
}

/// A line that could not be used.
#[derive(Debug, Serialize)]
struct BadLineView {
    line: u64,
    message: String,
}

/// An import.
#[derive(Debug, Serialize)]
struct ImportView {
    id: ImportId,
    status: ImportStatus,
    counts: ImportCounts,
    errors: Vec<BadLineView>,
    created_at: JsonTimestamp,
    completed_at: Option<JsonTimestamp>,
}

/// An import by itself.
#[derive(Debug, Serialize)]
pub struct ImportResponse {
    import: ImportView,
}

impl ImportResponse {
    fn from_import(import: &SuppressionImport) -> Self {
        let errors = import.errors.iter();
        let errors = errors.map(|bad| BadLineView { line: bad.line, message: bad.message.clone() });
        let import = ImportView {
            id: import.id,
            status: import.status,
            counts: import.counts,
            errors: errors.collect(),
            created_at: JsonTimestamp(import.created_at),
            completed_at: import.completed_at.map(JsonTimestamp),
        };
        Self { import }
    }
}

impl ToSchema for ImportResponse {
    fn schema(schemas: &mut Schemas) -> Value {
        schemas.component("OneImport", |_| {
            let counts = schema::object(
                "What it has come to so far",
                [
                    ("total", schema::count("Records in the list")),
                    ("processed", schema::count("Records read so far")),
                    ("created", schema::count("Addresses that were suppressed by them")),
                    ("exists", schema::count("Addresses that were suppressed already")),
                    ("invalid", schema::count("Records that say nothing that can be used")),
                    ("refused", schema::count("Records that the plan has no room for")),
                ],
            );
            let error = schema::object(
                "A line that could not be used",
                [("line", schema::count("Its number, from 1")), ("message", schema::string("Why"))],
            );
            let import = schema::object(
                "A list that is being imported",
                [
                    ("id", schema::string("`imp_…`")),
                    ("status", schema::string_enum(&["queued", "running", "completed", "failed"], "How far it is")),
                    ("counts", counts),
                    ("errors", schema::list(error, "The first lines that could not be used")),
                    ("created_at", schema::time("When it was handed in")),
                    ("completed_at", schema::nullable_time("When it was done")),
                ],
            );
            schema::object("An import", [("import", import)])
        })
    }
}

/// `POST /suppressions/import`.
///
/// # Errors
/// What is wrong with the list; too many lists wait; the store cannot be used.
pub async fn start(room: Arc<AppState>, tenant: Tenant, list: ImportSuppressions) -> Result<ImportResponse, Problem> {
    let ImportSuppressions { text, total } = list;
    let (store, account, now) = (room.intake.store(), tenant.account().id, room.intake.clock().now());
    if store::import::list_open(store, Some(account), UNFINISHED_IMPORTS_MAX).await?.len() == UNFINISHED_IMPORTS_MAX {
        let text = format!("{UNFINISHED_IMPORTS_MAX} imports are not done yet; wait for one of them");
        return Err(Problem::new(ErrorCode::CONFLICT, text));
    }
    let import = SuppressionImport {
        id: ImportId::new(now, room.intake.entropy().unique_bits()),
        account,
        status: ImportStatus::Queued,
        counts: ImportCounts { total, ..ImportCounts::default() },
        place: (0, 1),
        errors: Vec::new(),
        created_at: now,
        completed_at: None,
    };
    let mut batch = Batch::intake();
    store::import::create(&mut batch, &import, text.into());
    store::import::purge_oldest(store, &mut batch, account, IMPORTS_KEPT_MAX).await?;
    store.commit(batch).await.map_err(commit_error_problem)?;
    room.intake.notify_suppression_import();
    Ok(ImportResponse::from_import(&import))
}

/// An import's id, from the path.
#[derive(Debug, Clone, Copy)]
pub struct ImportPath(ImportId);

const ID: &str = "id";

impl FromRequest for ImportPath {
    fn describe(_: &mut Schemas) -> RequestSpec {
        let parameters = vec![schema::path_parameter(ID, "The import's id (`imp_…`)")];
        RequestSpec { parameters, ..RequestSpec::default() }
    }

    fn read(call: &Request) -> Result<Self, Problem> {
        call.path_parameter(ID).parse().map(Self).map_err(|_| Problem::not_found("import"))
    }
}

/// `GET /suppressions/import/{id}`.
///
/// # Errors
/// No such import; the store cannot be read.
pub async fn get(room: Arc<AppState>, tenant: Tenant, ImportPath(id): ImportPath) -> Result<ImportResponse, Problem> {
    let found = store::import::get(room.intake.store(), tenant.account().id, id).await?;
    let found = found.ok_or_else(|| Problem::not_found("import"))?;
    Ok(ImportResponse::from_import(&found.import))
}
