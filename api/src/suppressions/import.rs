//! `POST /suppressions/import`: accepts a CSV list, which is imported in the background; `GET
//! /suppressions/import/{id}` returns the progress, and `GET /suppressions/import` that of all imports.
//!
//! The request checks that the list has a column of addresses. The list is stored until it is read to its end, so an
//! import resumes after a restart. `model/src/import.rs` lists the known formats.

use http::header::CONTENT_TYPE;
use httpd::paging::KIND_SUPPRESSION_IMPORT;
use httpd::request_value::AnyText;
use model::csv::CsvReader;
use model::import::{ImportColumns, ImportCounts, ImportStatus, SuppressionImport};

use super::commit_error::commit_error_problem;
use crate::prelude::*;

/// Longest list in bytes: about half a million addresses.
const BODY_BYTES_MAX: usize = 16 << 20;
/// Most unfinished imports of one account.
const UNFINISHED_IMPORTS_MAX: usize = 10;
/// Most imports of one account that are retained.
const IMPORTS_KEPT_MAX: usize = 100;

/// A checked list.
#[derive(Debug)]
pub struct ImportSuppressions {
    pub(super) text: Bytes,
    pub(super) columns: ImportColumns,
    total: u64,
}

impl FromRequest for ImportSuppressions {
    const BODY_BYTES_MAX: Option<usize> = Some(BODY_BYTES_MAX);
    const MEDIA: Media = Media::JsonOrCsv;
    const BODY: Option<BodySchema> = Some(CsvField::schema);

    fn read(call: &Request) -> Result<Self> {
        let kind = call.headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
        let is_csv = kind.trim_start().get(..8).is_some_and(|kind| kind.eq_ignore_ascii_case("text/csv"));
        let text = if is_csv { call.body.clone() } else { read_body::<CsvField>(call)?.csv.into() };
        let error = |message: &str| Problem::field("csv", message);
        let list = std::str::from_utf8(&text).map_err(|_| error("is not UTF-8"))?;
        let columns = ImportColumns::detect(list).map_err(|message| error(&message))?;
        let total = CsvReader::new(list).count() - usize::from(columns.has_header);
        Ok(Self { total: total as u64, columns, text })
    }
}

/// A CSV list; it may also be sent as `text/csv`
#[derive(Debug, RequestObject)]
#[schema(name = "ImportSuppressions")]
struct CsvField {
    /// The list: CSV with a column of addresses, with or without a header line
    #[field(reader = AnyText)]
    csv: String,
}

/// An invalid line
#[derive(Debug, Serialize, ToSchema)]
struct BadLineView {
    /// Line number, from 1
    line: u64,
    /// The error message
    message: String,
}

object_view! {
    /// An import of suppressions
    pub struct ImportView, fn from_import(
        import: &SuppressionImport;
        let errors = import.errors.iter();
        let errors = errors.map(|bad| BadLineView { line: bad.line, message: bad.message.clone() })
    ) {
        /// Id (`imp_…`)
        id: ImportId = import.id,
        /// Status
        #[schema(as = String, enum = ["queued", "running", "completed", "failed"])]
        status: ImportStatus = import.status,
        counts: ImportCountsView = ImportCountsView::from_counts(import.counts),
        /// The first invalid lines
        errors: Vec<BadLineView> = errors.collect(),
        /// Time of the request
        created_at: JsonTimestamp = JsonTimestamp(import.created_at),
        /// Time of completion
        completed_at: Option<JsonTimestamp> = import.completed_at.map(JsonTimestamp),
    }
}

/// Progress
#[derive(Debug, Serialize, ToSchema)]
struct ImportCountsView {
    /// Records in the list
    total: u64,
    /// Records read so far
    processed: u64,
    /// Suppressions created
    created: u64,
    /// Addresses that were already suppressed
    exists: u64,
    /// Invalid records
    invalid: u64,
    /// Records refused because the plan's quota is used up
    refused: u64,
}

impl ImportCountsView {
    fn from_counts(counts: ImportCounts) -> Self {
        let ImportCounts { total, processed, created, exists, invalid, refused } = counts;
        Self { total, processed, created, exists, invalid, refused }
    }
}

object_response! { "An import of suppressions", pub ImportResponse { import: ImportView } as "OneImport" }

/// A page of the list
#[derive(Debug, Serialize, ToSchema)]
#[schema(name = "SuppressionImportList")]
pub struct ImportList {
    /// The imports, newest first; the newest 100 are kept
    imports: Vec<ImportView>,
    /// Whether there are more
    has_more: bool,
    /// The `cursor` of the next page
    next_cursor: Option<String>,
}

/// `GET /suppressions/import`.
pub async fn list(state: State, tenant: Tenant, page: PageParameters) -> Result<ImportList> {
    let before = page.before_id(KIND_SUPPRESSION_IMPORT)?.map(ImportId::from_bytes);
    let (store, account) = (&state.services.store, tenant.account().id);
    let mut found = store::suppression_import::list(store, account, before, page.limit + 1).await?;
    let next_cursor = page.cut(&mut found, |import| paging::after_id(KIND_SUPPRESSION_IMPORT, import.id.to_bytes()));
    let imports = found.iter().map(ImportView::from_import).collect();
    Ok(ImportList { imports, has_more: next_cursor.is_some(), next_cursor })
}

/// `POST /suppressions/import`.
///
/// # Errors
/// The list is invalid; too many imports are unfinished; the store cannot be read or written.
pub async fn start(state: State, tenant: Tenant, list: ImportSuppressions) -> Result<ImportResponse> {
    let ImportSuppressions { text, total, .. } = list;
    let (store, account, now) = (&state.services.store, tenant.account().id, state.services.clock.now());
    if store::suppression_import::list_open(store, Some(account), UNFINISHED_IMPORTS_MAX).await?.len()
        == UNFINISHED_IMPORTS_MAX
    {
        let text = format!("{UNFINISHED_IMPORTS_MAX} imports are not finished; wait for one of them");
        return Err(Problem::new(ErrorCode::CONFLICT, text));
    }
    let import = SuppressionImport {
        id: ImportId::new(now, state.services.entropy.unique_bits()),
        account,
        status: ImportStatus::Queued,
        counts: ImportCounts { total, ..ImportCounts::default() },
        place: (0, 1),
        errors: Vec::new(),
        created_at: now,
        completed_at: None,
    };
    let mut batch = Batch::intake();
    store::suppression_import::create(&mut batch, &import, text.into());
    store::suppression_import::purge_oldest(store, &mut batch, account, IMPORTS_KEPT_MAX).await?;
    store.commit(batch).await.map_err(commit_error_problem)?;
    state.accounts.suppression_importer.wake();
    Ok(ImportResponse { import: ImportView::from_import(&import) })
}

id_path! { pub ImportPath(ImportId), "The import's id (`imp_…`)", "import" }

/// `GET /suppressions/import/{id}`.
pub async fn get(state: State, tenant: Tenant, ImportPath(id): ImportPath) -> Result<ImportResponse> {
    let found = store::suppression_import::get(&state.services.store, tenant.account().id, id).await?;
    let found = found.ok_or_else(|| Problem::not_found("import"))?;
    Ok(ImportResponse { import: ImportView::from_import(&found.import) })
}
