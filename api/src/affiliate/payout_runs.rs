//! `…/payout-runs`: the owner drafts, reviews, approves or cancels a run and downloads its payment files
//! (docs/PAYOUTS.md).
//!
//! A run can have very many payouts: its response is streamed, 500 rows per read.

use std::collections::BTreeMap;

use ::affiliate::api_objects::{DraftPayoutObject, PayoutRunObject, SkippedPartnerObject};
use ::affiliate::context::Context;
use ::affiliate::payouts::files::FileSelection;
use ::affiliate::payouts::runs::DraftResult;
use http::header::{CONTENT_DISPOSITION, ETAG, HeaderValue};
use httpd::paging::KIND_PAYOUT_RUN;
use httpd::response::{BodyStream, BodyStreamError, ExtraResponse, IntoResponse, Response};
use model::affiliate::money::Currency;
use model::affiliate::payout::{PayoutRun, SkippedPartner};
use model::idempotency::{IdempotencyScope, IdempotentResult, PartialResult};
use model::raw_number;
use queue::intake::idempotency::{IdempotencyGuard, IdempotencyKey};
use serde::Deserialize;
use store::engine::ReadError;
use tokio::sync::mpsc;

use super::fields::{TimeOrUnix, parse_integer};
use super::list_query::page_query;
use super::path::PayoutRunPath;
use super::payout_view::{PayoutFilesResponse, PayoutRunResponse, whole_run_schema};
use super::request::{ActionRequest, CreateRequest, ReadRequest, ResolvedRequest};
use super::response::{ResponseWriter, VersionedResponse, once, owner_claim};
use super::view::ListResponse;
use crate::access;
use crate::idempotency::{self, REPLAYED, RequestDecision};
use crate::prelude::*;

/// Payouts per chunk of a streamed response.
const CHUNK_ROWS: usize = 500;
/// Bytes of a response that are buffered before streaming begins.
const BUFFERED_BYTES_MAX: usize = 256 << 10;
/// Chunks buffered for a slow client.
const CHUNKS_BUFFERED: usize = 2;
/// Largest part number of a file.
const PART_MAX: usize = 100_000;

/// A new payout run
#[derive(Debug, RequestObject)]
#[schema(name = "DraftAffiliatePayoutRun", examples = [{"cutoff": "2026-11-01T00:00:00Z"}], body_bytes_max = SMALL_BYTES_MAX, optional_body)]
pub struct DraftPayoutRun {
    /// Include commissions earned until this time (RFC 3339 or Unix seconds); defaults to now
    #[field(reader = TimeOrUnix, nullable)]
    cutoff: Option<Timestamp>,
}

/// A run whose first bytes are buffered; the rest is read from the store while it is sent.
#[derive(Debug)]
pub struct StreamedRun<const DRAFTED: bool> {
    status: StatusCode,
    rev: Option<u64>,
    first_chunk: Bytes,
    stream: Option<BodyStream>,
    replayed: bool,
}

pub type PayoutRunDetailResponse = StreamedRun<false>;
/// A run that was drafted; `run` is null if nothing is payable.
pub type DraftPayoutRunResponse = StreamedRun<true>;

impl<const DRAFTED: bool> IntoResponse for StreamedRun<DRAFTED> {
    const STATUS: StatusCode = if DRAFTED { StatusCode::CREATED } else { StatusCode::OK };
    const EXTRA_RESPONSES: &'static [ExtraResponse] = if DRAFTED {
        &[ExtraResponse::json(200, "Nothing is payable: `run` is null and no run is created")]
    } else {
        &[]
    };

    fn describe(schemas: &mut Schemas) -> Value {
        whole_run_schema(schemas, DRAFTED)
    }

    fn into_response(self) -> Result<Response> {
        let etag = self.rev.map(|rev| HeaderValue::try_from(format!("\"{rev}\"")));
        let etag = etag.transpose().map_err(Problem::internal)?.map(|etag| (ETAG, etag));
        let replayed = self.replayed.then(|| (REPLAYED, HeaderValue::from_static("true")));
        Ok(Response {
            status: self.status,
            media_type: HeaderValue::from_static(Self::MEDIA_TYPE),
            headers: etag.into_iter().chain(replayed).collect(),
            body: self.first_chunk,
            stream: self.stream,
        })
    }
}

/// Renders a run chunk by chunk.
struct RunWriter {
    ledger: Context,
    run: PayoutRun,
    position: WritePosition,
    is_first: bool,
}

/// Rendering position in a run.
enum WritePosition {
    Beginning,
    Payouts(Option<PayoutId>),
    Skipped(Option<SkippedPartner>),
    End,
}

fn to_json_text(value: &impl Serialize) -> String {
    // JSON serialization of plain structs into memory cannot fail.
    serde_json::to_string(value).unwrap_or_default()
}

impl RunWriter {
    /// The next chunk; `None` after the last one.
    async fn next_chunk(&mut self) -> Result<Option<String>, ReadError> {
        let mut out = String::new();
        match &self.position {
            WritePosition::Beginning => {
                out = format!("{{\"run\":{},\"payouts\":[", to_json_text(&PayoutRunObject::from(&self.run)));
                self.position = WritePosition::Payouts(None);
            }
            WritePosition::Payouts(after) => {
                let (found, next) = self.ledger.list_payouts_of_run(&self.run, *after, CHUNK_ROWS).await?;
                for draft in &found {
                    self.append_object(&mut out, &DraftPayoutObject::from(draft));
                }
                self.position = WritePosition::Payouts(next);
                if next.is_none() {
                    out.push_str("],\"skipped\":[");
                    (self.position, self.is_first) = (WritePosition::Skipped(None), true);
                }
            }
            WritePosition::Skipped(after) => {
                let found = self.ledger.list_skipped(&self.run, after.as_ref(), CHUNK_ROWS).await?;
                for skipped in &found {
                    self.append_object(&mut out, &SkippedPartnerObject::from(skipped));
                }
                if found.len() < CHUNK_ROWS {
                    out.push_str("]}");
                    self.position = WritePosition::End;
                } else {
                    self.position = WritePosition::Skipped(found.last().cloned());
                }
            }
            WritePosition::End => return Ok(None),
        }
        Ok(Some(out))
    }

    fn append_object(&mut self, out: &mut String, object: &impl Serialize) {
        if !std::mem::take(&mut self.is_first) {
            out.push(',');
        }
        out.push_str(&to_json_text(object));
    }
}

async fn stream_run<const DRAFTED: bool>(state: &State, run: PayoutRun) -> Result<StreamedRun<DRAFTED>> {
    let rev = Some(run.rev);
    let mut writer =
        RunWriter { ledger: state.affiliate.ledger.clone(), run, position: WritePosition::Beginning, is_first: true };
    let mut first_chunk = String::new();
    let status = StreamedRun::<DRAFTED>::STATUS;
    while first_chunk.len() < BUFFERED_BYTES_MAX {
        match writer.next_chunk().await? {
            Some(chunk) => first_chunk.push_str(&chunk),
            None => {
                return Ok(StreamedRun { status, rev, first_chunk: first_chunk.into(), stream: None, replayed: false });
            }
        }
    }
    let (sender, stream) = mpsc::channel(CHUNKS_BUFFERED);
    state.background.tasks.spawn(async move {
        loop {
            let chunk = match writer.next_chunk().await {
                Ok(None) => return,
                Ok(Some(chunk)) => Ok(chunk.into()),
                Err(error) => {
                    tracing::error!(%error, "cannot read payout run: streaming response aborted");
                    Err(BodyStreamError)
                }
            };
            let is_broken = chunk.is_err();
            if sender.send(chunk).await.is_err() || is_broken {
                return;
            }
        }
    });
    Ok(StreamedRun { status, rev, first_chunk: first_chunk.into(), stream: Some(stream), replayed: false })
}

/// The response to a draft as stored under its idempotency key.
#[derive(Serialize, Deserialize)]
struct StoredDraftResponse {
    status: u16,
    rev: Option<u64>,
    body: String,
}

/// `POST …/payout-runs`. Drafting takes several commits. The first one stores the run's id under the idempotency key,
/// so that a repeated request completes the same run. The response is stored under the key when it is complete.
///
/// # Errors
/// The input is invalid; another draft exists.
pub async fn draft(
    state: State,
    owner: Owner,
    request: CreateRequest<DraftPayoutRun>,
) -> Result<DraftPayoutRunResponse> {
    let ResolvedRequest { program, input, claim, .. } = request.require_program(&state, owner.tenant()).await?;
    let (scope, claim) = owner_claim("draft_affiliate_payout_run", claim);
    let guard = match idempotency::begin(&state, owner.tenant(), scope, claim.clone()).await? {
        RequestDecision::Replay(stored) => return replay_draft_response(&stored),
        RequestDecision::Proceed(guard) => guard,
    };
    let run = match guard.as_deref().and_then(|guard| guard.partial.as_ref()) {
        Some(partial) => partial.answer.parse().map_err(Problem::internal)?,
        None => match begin_draft(&state, program.account, input.cutoff, guard.as_deref()).await? {
            Ok(run) => run,
            Err(stored) => return replay_draft_response(&stored),
        },
    };
    let draft = state.affiliate.finish_draft(program.account, run).await;
    let response = respond_to_draft(&state, draft.or_problem(&state)?).await?;
    if guard.is_some() {
        // Releases the key, so that the response can be stored. A request that acquires it meanwhile continues the same
        // run.
        drop(guard);
        store_draft_response(&state, &owner, claim, &response).await;
    }
    Ok(response)
}

/// Starts a run. Returns the stored response if another node completed the same key first.
async fn begin_draft(
    state: &AppState,
    account: AccountId,
    cutoff: Option<Timestamp>,
    guard: Option<&IdempotencyGuard>,
) -> Result<Result<PayoutRunId, Bytes>> {
    let now = state.services.clock.now();
    let record_run = |batch: &mut Batch, run: &PayoutRunId| {
        if let Some(guard) = guard {
            let partial = PartialResult { answer: run.to_string(), open: vec![0] };
            guard.record_outcome(batch, IdempotentResult::Partly(partial), now);
        }
    };
    let refusal = match state.affiliate.ledger.begin_run(account, cutoff, &record_run).await {
        Ok(run) => return Ok(Ok(run)),
        Err(refusal) => refusal,
    };
    if let Some(guard) = guard
        && let Some(stored) = guard.concurrent_result(&state.services.store).await?
    {
        return Ok(Err(stored.into()));
    }
    Err(refusal.into_problem(state))
}

async fn respond_to_draft(state: &State, draft: DraftResult) -> Result<DraftPayoutRunResponse> {
    if let Some(run) = draft.run {
        return stream_run(state, run).await;
    }
    let skipped: Vec<SkippedPartnerObject> = draft.skipped.iter().map(SkippedPartnerObject::from).collect();
    let first_chunk = json!({"run": Value::Null, "payouts": [], "skipped": skipped}).to_string();
    Ok(StreamedRun {
        status: StatusCode::OK,
        rev: None,
        first_chunk: first_chunk.into(),
        stream: None,
        replayed: false,
    })
}

/// Stores a response that is completely buffered. For a streamed one the key holds the run's id, which is enough to
/// render it again.
async fn store_draft_response(
    state: &AppState,
    owner: &Owner,
    claim: Option<IdempotencyKey>,
    response: &DraftPayoutRunResponse,
) {
    let body = std::str::from_utf8(&response.first_chunk).ok().filter(|_| response.stream.is_none());
    let Some(body) = body.map(str::to_owned) else { return };
    let stored = StoredDraftResponse { status: response.status.as_u16(), rev: response.rev, body };
    let Ok(RequestDecision::Proceed(Some(guard))) =
        idempotency::begin(state, owner.tenant(), IdempotencyScope::OwnerAction, claim).await
    else {
        return;
    };
    let mut batch = Batch::intake();
    guard.record_outcome(&mut batch, idempotency::stored_outcome(&stored), state.services.clock.now());
    if let Err(error) = state.services.store.commit(batch).await {
        tracing::warn!(%error, "cannot store the draft's response under its idempotency key");
    }
}

fn replay_draft_response(stored: &[u8]) -> Result<DraftPayoutRunResponse> {
    let StoredDraftResponse { status, rev, body } = serde_json::from_slice(stored).map_err(Problem::internal)?;
    let status = StatusCode::from_u16(status).map_err(Problem::internal)?;
    Ok(StreamedRun { status, rev, first_chunk: body.into(), stream: None, replayed: true })
}

/// `GET …/payout-runs`.
pub async fn list(
    state: State,
    owner: Owner,
    request: ReadRequest<PageParameters>,
) -> Result<ListResponse<PayoutRunObject>> {
    let ResolvedRequest { program, input, .. } = request.require_program(&state, owner.tenant()).await?;
    let page_request = page_query(&input, KIND_PAYOUT_RUN)?;
    let found = state.affiliate.ledger.list_runs(program.account, page_request).await?;
    let next = found.next.map(|id| paging::after_id(KIND_PAYOUT_RUN, id));
    Ok(ListResponse::new(found.rows.iter().map(PayoutRunObject::from).collect(), next))
}

/// `GET …/payout-runs/{id}`.
pub async fn get(state: State, owner: Owner, request: ReadRequest<PayoutRunPath>) -> Result<PayoutRunDetailResponse> {
    let ResolvedRequest { program, input, .. } = request.require_program(&state, owner.tenant()).await?;
    let found = state.affiliate.ledger.get_run(program.account, input.id()?).await;
    stream_run(&state, found.or_problem(&state)?).await
}

fn run_response(run: &PayoutRun) -> VersionedResponse<PayoutRunResponse> {
    VersionedResponse::new(&PayoutRunResponse { run: PayoutRunObject::from(run) }).with_etag(run.rev)
}

/// Approval of a payout run in the reviewed version
#[derive(Debug, RequestObject)]
#[schema(name = "ApproveAffiliatePayoutRun", examples = [{"rev": 3, "totals": {"usd": 5000}}], body_bytes_max = SMALL_BYTES_MAX)]
pub struct ReviewedRun {
    /// The run's `rev`, as reviewed
    #[field(parse = parse_rev, schema = u64::schema)]
    rev: u64,
    /// The run's total per currency, as reviewed; all currencies
    #[field(parse = parse_totals, schema = totals_schema)]
    totals: BTreeMap<Currency, i64>,
}

fn parse_rev(value: &RawValue) -> Result<u64, String> {
    parse_integer(value, 0..=u64::MAX)
}

fn totals_schema(_: &mut Schemas) -> Value {
    json!({
        "type": "object", "propertyNames": {"pattern": "^[A-Za-z]{3}$"}, "additionalProperties": {"type": "integer"},
    })
}

fn parse_totals(value: &RawValue) -> Result<BTreeMap<Currency, i64>, String> {
    let httpd::fields::JsonObject(entries) = httpd::fields::parse_object(value)?;
    let mut totals = BTreeMap::new();
    for (name, amount) in entries {
        let currency: Currency = name.parse().map_err(|_| format!("`{name}` is not a currency"))?;
        let amount = raw_number::parse_integer::<i64>(amount.get());
        let amount = amount.ok_or_else(|| format!("`{name}` is not a whole number"))?;
        if totals.insert(currency, amount).is_some() {
            return Err(format!("`{name}` is given twice"));
        }
    }
    Ok(totals)
}

/// `POST …/payout-runs/{id}/approve`.
///
/// # Errors
/// The input is invalid, the sign-in is too old, the run is not a draft, or it differs from the reviewed version.
pub async fn approve(
    state: State,
    owner: Owner,
    request: CreateRequest<(PayoutRunPath, ReviewedRun)>,
) -> Result<VersionedResponse<PayoutRunResponse>> {
    let ResolvedRequest { program, input, claim, .. } = request.require_program(&state, owner.tenant()).await?;
    // Approval moves money. The operator needs no proof.
    access::require_recent_authentication(owner.tenant())?;
    let (run, reviewed) = input;
    let id = run.id()?;
    let service = &state.affiliate;
    let change = |store: ResponseWriter<_>| async move {
        service.ledger.approve_run(program.account, id, reviewed.rev, &reviewed.totals, &store).await
    };
    once(&state, owner.tenant(), owner_claim("approve_affiliate_payout_run", claim), run_response, change).await
}

/// `POST …/payout-runs/{id}/cancel`.
///
/// # Errors
/// The run does not exist or is not a draft.
pub async fn cancel(
    state: State,
    owner: Owner,
    request: ActionRequest<PayoutRunPath>,
) -> Result<VersionedResponse<PayoutRunResponse>> {
    let ResolvedRequest { program, input, if_match, claim } = request.require_program(&state, owner.tenant()).await?;
    let id = input.id()?;
    let service = &state.affiliate;
    let change = |store: ResponseWriter<_>| async move {
        service.ledger.cancel_run(program.account, id, if_match.as_ref(), &store).await
    };
    once(&state, owner.tenant(), owner_claim("cancel_affiliate_payout_run", claim), run_response, change).await
}

/// Selects the payment files of a run.
#[derive(Debug)]
pub struct ListPayoutFiles(FileSelection);

impl RequestQuery for ListPayoutFiles {
    fn read_query(query: &mut Query) -> Result<Self> {
        let currency = || json!({"type": "string", "pattern": "^[A-Za-z]{3}$"});
        Ok(Self(FileSelection {
            method: query.word("method", "The payout method")?,
            currency: query.value_with("currency", "The currency", "a currency, three letters", currency)?,
            format: query.word("format", "The file format; defaults to the method's format")?,
        }))
    }
}

/// Selects one payment file of a run.
#[derive(Debug)]
pub struct GetPayoutFile {
    selection: FileSelection,
    part: usize,
}

impl RequestQuery for GetPayoutFile {
    fn read_query(query: &mut Query) -> Result<Self> {
        let ListPayoutFiles(selection) = ListPayoutFiles::read_query(query)?;
        let schema = || json!({"type": "integer", "minimum": 1, "maximum": PART_MAX, "default": 1});
        let about = "The part, if the payouts are split into several files";
        let part = query.value_with("part", about, "a number from 1", schema)?.unwrap_or(1);
        if !(1..=PART_MAX).contains(&part) {
            return Err(Problem::field("part", "must be a number from 1"));
        }
        Ok(Self { selection, part })
    }
}

/// A CSV file as a download.
#[derive(Debug)]
pub struct CsvFile {
    name: String,
    content: String,
}

impl IntoResponse for CsvFile {
    const MEDIA_TYPE: &'static str = "text/csv; charset=utf-8";

    fn describe(_: &mut Schemas) -> Value {
        json!({"type": "string", "description": "A header line and one line per payout; lines end in CRLF"})
    }

    fn into_response(self) -> Result<Response> {
        let attached = format!("attachment; filename=\"{}\"", self.name);
        let attached = HeaderValue::try_from(attached).map_err(Problem::internal)?;
        Ok(Response::new(StatusCode::OK, Self::MEDIA_TYPE, vec![(CONTENT_DISPOSITION, attached)], self.content.into()))
    }
}

/// `GET …/payout-runs/{id}/csv`.
///
/// # Errors
/// The run does not exist or is not approved, or the query selects more than one file.
pub async fn get_file(
    state: State,
    owner: Owner,
    request: ReadRequest<(PayoutRunPath, GetPayoutFile)>,
) -> Result<CsvFile> {
    let ResolvedRequest { program, input: (run, input), .. } = request.require_program(&state, owner.tenant()).await?;
    let id = run.id()?;
    let file = state.affiliate.ledger.get_payout_file(program.account, id, &input.selection, input.part).await;
    let file = file.or_problem(&state)?;
    Ok(CsvFile { name: file.name, content: file.content })
}

/// `GET …/payout-runs/{id}/files`.
///
/// # Errors
/// The run does not exist or is not approved.
pub async fn list_files(
    state: State,
    owner: Owner,
    request: ReadRequest<(PayoutRunPath, ListPayoutFiles)>,
) -> Result<PayoutFilesResponse> {
    let ResolvedRequest { program, input, .. } = request.require_program(&state, owner.tenant()).await?;
    let (run, ListPayoutFiles(selection)) = input;
    let id = run.id()?;
    let files = state.affiliate.ledger.list_payout_files(program.account, id, &selection).await.or_problem(&state)?;
    Ok(PayoutFilesResponse { files: files.into_iter().map(Into::into).collect() })
}
