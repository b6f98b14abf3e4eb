//! `POST /suppressions/import`: hands in a list in CSV, which is read in the background; `GET
//! /suppressions/import/{id}` tells how far it is.
//!
//! The list is looked at when it comes in (is there a column of addresses?) and kept on disk until it is
//! read to its end: a restart goes on where it was. See `mail/src/import.rs` for the lists that are known.

use std::sync::Arc;

use bytes::Bytes;
use http::header::CONTENT_TYPE;
use mail::csv::Records;
use mail::id::ImportId;
use mail::import::{Columns, Counts, Import, ImportStatus};
use serde::Serialize;
use serde_json::Value;
use store::access::Tenant;
use store::engine::Batch;

use super::not_written;
use crate::call::{Call, Input, Media, Takes};
use crate::emails::view::Moment;
use crate::fields::{self, Names, Notes};
use crate::problem::{Code, Problem};
use crate::room::Room;
use crate::schema::{self, Describe, Schemas};

/// A list of some half a million addresses.
const BODY_BYTES_MAX: usize = 16 << 20;
/// Lists of one account that wait or are read.
const OPEN_MAX: usize = 10;
/// Imports of one account that are remembered.
const KEPT_MAX: usize = 100;

const NAMES: Names = Names { known: &[("csv", "csv")], foreign: &[] };

/// A list.
#[derive(Debug)]
pub struct List {
    text: Bytes,
    total: u64,
}

impl Input for List {
    const BODY_BYTES_MAX: Option<usize> = Some(BODY_BYTES_MAX);
    const MEDIA: Media = Media::JsonOrCsv;

    fn describe(schemas: &mut Schemas) -> Takes {
        let body = schemas.named("ImportSuppressions", |_| {
            let csv = schema::string("The list: a column of addresses, with or without a line of names");
            schema::object("A list; or send it as `text/csv`", [("csv", csv)])
        });
        Takes { body: Some(body), body_bytes_max: Self::BODY_BYTES_MAX, ..Takes::default() }
    }

    fn read(call: &Call) -> Result<Self, Problem> {
        let kind = call.headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
        let is_csv = kind.trim_start().get(..8).is_some_and(|kind| kind.eq_ignore_ascii_case("text/csv"));
        let text = if is_csv { call.body.clone() } else { csv_field(call)? };
        let wrong = |message: &str| Problem::field("csv", message);
        let list = std::str::from_utf8(&text).map_err(|_| wrong("is not UTF-8"))?;
        let columns = Columns::find(list).map_err(|message| wrong(&message))?;
        let total = Records::new(list).count() - usize::from(columns.has_header);
        Ok(Self { total: total as u64, text })
    }
}

fn csv_field(call: &Call) -> Result<Bytes, Problem> {
    let mut notes = Notes::default();
    let given = call.given(&NAMES, &mut notes)?;
    match given.value("csv").map(fields::text) {
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
    counts: Counts,
    errors: Vec<BadLineView>,
    created_at: Moment,
    completed_at: Option<Moment>,
}

/// An import by itself.
#[derive(Debug, Serialize)]
pub struct OneImport {
    import: ImportView,
}

impl OneImport {
    fn of(import: &Import) -> Self {
        let errors = import.errors.iter();
        let errors = errors.map(|bad| BadLineView { line: bad.line, message: bad.message.clone() });
        let import = ImportView {
            id: import.id,
            status: import.status,
            counts: import.counts,
            errors: errors.collect(),
            created_at: Moment(import.created_at),
            completed_at: import.completed_at.map(Moment),
        };
        Self { import }
    }
}

impl Describe for OneImport {
    fn schema(schemas: &mut Schemas) -> Value {
        schemas.named("OneImport", |_| {
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
                    ("status", schema::words(&["queued", "running", "completed", "failed"], "How far it is")),
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
pub async fn begin(room: Arc<Room>, tenant: Tenant, list: List) -> Result<OneImport, Problem> {
    let List { text, total } = list;
    let (store, account, now) = (room.hall.store(), tenant.account().id, room.hall.clock().now());
    if store::import::open(store, Some(account), OPEN_MAX).await?.len() == OPEN_MAX {
        let text = format!("{OPEN_MAX} imports are not done yet; wait for one of them");
        return Err(Problem::new(Code::CONFLICT, text));
    }
    let import = Import {
        id: ImportId::new(now, room.hall.entropy().id()),
        account,
        status: ImportStatus::Queued,
        counts: Counts { total, ..Counts::default() },
        place: (0, 1),
        errors: Vec::new(),
        created_at: now,
        completed_at: None,
    };
    let mut batch = Batch::intake();
    store::import::create(&mut batch, &import, text.into());
    store::import::forget_oldest(store, &mut batch, account, KEPT_MAX).await?;
    store.commit(batch).await.map_err(not_written)?;
    room.hall.list_handed_in();
    Ok(OneImport::of(&import))
}

/// An import's id, from the path.
#[derive(Debug, Clone, Copy)]
pub struct OfImport(ImportId);

const ID: &str = "id";

impl Input for OfImport {
    fn describe(_: &mut Schemas) -> Takes {
        let parameters = vec![schema::path_parameter(ID, "The import's id (`imp_…`)")];
        Takes { parameters, ..Takes::default() }
    }

    fn read(call: &Call) -> Result<Self, Problem> {
        call.path_parameter(ID).parse().map(Self).map_err(|_| Problem::not_found("import"))
    }
}

/// `GET /suppressions/import/{id}`.
///
/// # Errors
/// No such import; the store cannot be read.
pub async fn get(room: Arc<Room>, tenant: Tenant, OfImport(id): OfImport) -> Result<OneImport, Problem> {
    let found = store::import::get(room.hall.store(), tenant.account().id, id).await?;
    let found = found.ok_or_else(|| Problem::not_found("import"))?;
    Ok(OneImport::of(&found.import))
}
