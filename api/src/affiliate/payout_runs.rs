//! `…/payout-runs`: the owner drafts, reviews, approves or cancels a run and downloads its payment files
//! (docs/PAYOUTS.md).
//!
//! A run can have very many payouts: its response is streamed, 500 rows per read.

use std::collections::BTreeMap;

use ::affiliate::api_objects::{DraftPayoutObject, PayoutRunObject, SkippedPartnerObject};
use ::affiliate::error::AffiliateNoun;
use ::affiliate::payouts::files::FileSelection;
use ::affiliate::payouts::runs::DraftResult;
use ::affiliate::payouts::runs::PayoutRuns;
use bytes::Bytes;
use http::StatusCode;
use http::header::{CONTENT_DISPOSITION, ETAG, HeaderValue};
use httpd::paging::KIND_PAYOUT_RUN;
use httpd::response::{BodyStream, BodyStreamError, ExtraResponse, IntoResponse, Response};
use jiff::Timestamp;
use model::affiliate::money::Currency;
use model::affiliate::payout::{PayoutFileFormat, PayoutRun, SkippedPartner};
use model::affiliate::program::PayoutMethod;
use model::id::{AccountId, PayoutId, PayoutRunId};
use model::idempotency::{IdempotencyScope, IdempotentResult, PartialResult};
use queue::intake::idempotency::{IdempotencyGuard, IdempotencyKey};
use serde::Deserialize;
use serde_json::value::RawValue;
use store::engine::{Batch, ReadError};
use tokio::sync::mpsc;

use super::fields::{TimeOrUnix, parse_integer};
use super::list_query::{page_query, parse_filter};
use super::path::PayoutRunPath;
use super::payout_view::{PayoutFilesResponse, PayoutRunResponse, whole_run_schema};
use super::refusal::refusal_problem;
use super::request::{ActionRequest, CreateRequest, ReadRequest, ResolvedRequest};
use super::response::{BeginDecision, REPLAYED, VersionedResponse, begin_for_owner, scope_claim};
use super::view::ListResponse;
use crate::access;
use crate::handler::Owner;
use crate::idempotency::{self, RequestDecision};
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
        &[ExtraResponse {
            status: 200,
            media_type: Some("application/json"),
            description: "Nothing is payable: `run` is null and no run is created",
        }]
    } else {
        &[]
    };

    fn describe(schemas: &mut Schemas) -> Value {
        whole_run_schema(schemas, DRAFTED)
    }

    fn into_body(self) -> Result<Bytes, Problem> {
        Ok(self.first_chunk)
    }

    fn into_response(self) -> Result<Response, Problem> {
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
    runs: PayoutRuns,
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
                let (found, next) = self.runs.list_payouts_of_run(&self.run, *after, CHUNK_ROWS).await?;
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
                let found = self.runs.list_skipped(&self.run, after.as_ref(), CHUNK_ROWS).await?;
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

async fn stream_run<const DRAFTED: bool>(
    state: &Arc<AppState>,
    run: PayoutRun,
) -> Result<StreamedRun<DRAFTED>, Problem> {
    let rev = Some(run.rev);
    let mut writer = RunWriter {
        runs: state.affiliate.ledger.runs.clone(),
        run,
        position: WritePosition::Beginning,
        is_first: true,
    };
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
    state: Arc<AppState>,
    owner: Owner,
    request: CreateRequest<DraftPayoutRun>,
) -> Result<DraftPayoutRunResponse, Problem> {
    let ResolvedRequest { program, input, claim, .. } = request.require_program(&state, owner.tenant()).await?;
    let claim = claim.map(|claim| scope_claim("draft_affiliate_payout_run", claim));
    let guard = match idempotency::begin(&state, owner.tenant(), IdempotencyScope::OwnerAction, claim.clone()).await? {
        RequestDecision::Replay(stored) => return replay_draft_response(&stored),
        RequestDecision::Proceed(guard) => guard,
    };
    let run = match guard.as_deref().and_then(IdempotencyGuard::partial_outcome) {
        Some(partial) => partial.answer.parse().map_err(Problem::internal)?,
        None => match begin_draft(&state, program.account, input.cutoff, guard.as_deref()).await? {
            Ok(run) => run,
            Err(stored) => return replay_draft_response(&stored),
        },
    };
    let draft = state.affiliate.finish_draft(program.account, run).await;
    let response = respond_to_draft(&state, draft.map_err(|refusal| refusal_problem(&state, refusal))?).await?;
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
) -> Result<Result<PayoutRunId, Bytes>, Problem> {
    let now = state.services.clock.now();
    let record_run = |batch: &mut Batch, run: &PayoutRunId| {
        if let Some(guard) = guard {
            let partial = PartialResult { answer: run.to_string(), open: vec![0] };
            guard.record_outcome(batch, IdempotentResult::Partly(partial), now);
        }
    };
    let refusal = match state.affiliate.ledger.runs.begin_run(account, cutoff, &record_run).await {
        Ok(run) => return Ok(Ok(run)),
        Err(refusal) => refusal,
    };
    if let Some(guard) = guard
        && let Some(stored) = guard.concurrent_result(&state.services.store).await?
    {
        return Ok(Err(stored.into()));
    }
    Err(refusal_problem(state, refusal))
}

async fn respond_to_draft(state: &Arc<AppState>, draft: DraftResult) -> Result<DraftPayoutRunResponse, Problem> {
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

fn replay_draft_response(stored: &[u8]) -> Result<DraftPayoutRunResponse, Problem> {
    let StoredDraftResponse { status, rev, body } = serde_json::from_slice(stored).map_err(Problem::internal)?;
    let status = StatusCode::from_u16(status).map_err(Problem::internal)?;
    Ok(StreamedRun { status, rev, first_chunk: body.into(), stream: None, replayed: true })
}

/// `GET …/payout-runs`.
pub async fn list(
    state: Arc<AppState>,
    owner: Owner,
    request: ReadRequest<PageParameters>,
) -> Result<ListResponse<PayoutRunObject>, Problem> {
    let ResolvedRequest { program, input, .. } = request.require_program(&state, owner.tenant()).await?;
    let page_request = page_query(&input, KIND_PAYOUT_RUN)?;
    let found = state.affiliate.ledger.runs.list_runs(program.account, page_request).await?;
    let next = found.next.map(|id| paging::after_id(KIND_PAYOUT_RUN, id));
    Ok(ListResponse::new(found.rows.iter().map(PayoutRunObject::from).collect(), next))
}

/// `GET …/payout-runs/{id}`.
pub async fn get(
    state: Arc<AppState>,
    owner: Owner,
    request: ReadRequest<PayoutRunPath>,
) -> Result<PayoutRunDetailResponse, Problem> {
    let ResolvedRequest { program, input, .. } = request.require_program(&state, owner.tenant()).await?;
    let found = state.affiliate.ledger.runs.get_run(program.account, input.id(AffiliateNoun::Run)?).await;
    stream_run(&state, found.map_err(|refusal| refusal_problem(&state, refusal))?).await
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
        let amount = amount.get().parse().map_err(|_| format!("`{name}` is not a whole number"))?;
        if totals.insert(currency, amount).is_some() {
            return Err(format!("`{name}` is given twice"));
        }
    }
    Ok(totals)
}

/// Requires a recent proof of identity, because approval moves money. The operator is exempt.
fn require_recent_authentication(owner: &Owner) -> Result<(), Problem> {
    match owner {
        Owner::SignedIn(signed_in) => access::require_recent_authentication(signed_in.tenant()),
        Owner::Operator(_) => Ok(()),
    }
}

/// `POST …/payout-runs/{id}/approve`.
///
/// # Errors
/// The input is invalid, the sign-in is too old, the run is not a draft, or it differs from the reviewed version.
pub async fn approve(
    state: Arc<AppState>,
    owner: Owner,
    request: CreateRequest<(PayoutRunPath, ReviewedRun)>,
) -> Result<VersionedResponse<PayoutRunResponse>, Problem> {
    let ResolvedRequest { program, input, claim, .. } = request.require_program(&state, owner.tenant()).await?;
    require_recent_authentication(&owner)?;
    let (run, reviewed) = input;
    let id = run.id(AffiliateNoun::Run)?;
    let in_progress = match begin_for_owner(&state, &owner, "approve_affiliate_payout_run", claim).await? {
        BeginDecision::Replay(body) => return Ok(body),
        BeginDecision::Proceed(in_progress) => in_progress,
    };
    let store_response = in_progress.response_writer(run_response);
    let approved = state
        .affiliate
        .ledger
        .runs
        .approve_run(program.account, id, reviewed.rev, &reviewed.totals, &store_response)
        .await;
    drop(store_response);
    in_progress.finish(&state, approved, run_response).await
}

/// `POST …/payout-runs/{id}/cancel`.
///
/// # Errors
/// The run does not exist or is not a draft.
pub async fn cancel(
    state: Arc<AppState>,
    owner: Owner,
    request: ActionRequest<PayoutRunPath>,
) -> Result<VersionedResponse<PayoutRunResponse>, Problem> {
    let ResolvedRequest { program, input, if_match, claim } = request.require_program(&state, owner.tenant()).await?;
    let id = input.id(AffiliateNoun::Run)?;
    let in_progress = match begin_for_owner(&state, &owner, "cancel_affiliate_payout_run", claim).await? {
        BeginDecision::Replay(body) => return Ok(body),
        BeginDecision::Proceed(in_progress) => in_progress,
    };
    let store_response = in_progress.response_writer(run_response);
    let cancelled =
        state.affiliate.ledger.runs.cancel_run(program.account, id, if_match.as_ref(), &store_response).await;
    drop(store_response);
    in_progress.finish(&state, cancelled, run_response).await
}

/// Selects the payment files of a run.
#[derive(Debug)]
pub struct PayoutFileQuery {
    run: PayoutRunPath,
    selection: FileSelection,
    part: usize,
}

impl PayoutFileQuery {
    fn parameters() -> Vec<Value> {
        let one_of = |words: &[&str]| json!({"type": "string", "enum": words});
        vec![
            PayoutRunPath::parameter(),
            schema::query_parameter("method", "The payout method", one_of(PayoutMethod::WORDS)),
            schema::query_parameter("currency", "The currency", json!({"type": "string", "pattern": "^[A-Za-z]{3}$"})),
            schema::query_parameter(
                "format",
                "The file format; defaults to the method's format",
                one_of(PayoutFileFormat::WORDS),
            ),
        ]
    }
}

/// Reads a query parameter with a closed set of values.
fn parse_word_parameter<T>(
    parameters: &[(String, String)],
    name: &str,
    words: &[&str],
    parse: impl Fn(&str) -> Option<T>,
) -> Result<Option<T>, Problem> {
    let Some(text) = paging::single_value(parameters, name)? else { return Ok(None) };
    let error = || Problem::field(name, format!("must be one of {}", words.join(", ")));
    parse(text.trim()).map(Some).ok_or_else(error)
}

impl PayoutFileQuery {
    fn from_request(call: &Request) -> Result<Self, Problem> {
        let parameters = paging::parse_query(&call.query)?;
        let selection = FileSelection {
            method: parse_word_parameter(&parameters, "method", PayoutMethod::WORDS, PayoutMethod::from_word)?,
            currency: parse_filter(&parameters, "currency", "a currency, three letters")?,
            format: parse_word_parameter(&parameters, "format", PayoutFileFormat::WORDS, PayoutFileFormat::from_word)?,
        };
        let part: Option<usize> = parse_filter(&parameters, "part", "a number from 1")?;
        let part = part.unwrap_or(1);
        if !(1..=PART_MAX).contains(&part) {
            return Err(Problem::field("part", "must be a number from 1"));
        }
        Ok(Self { run: PayoutRunPath::of(call), selection, part })
    }
}

/// Query of one payment file.
#[derive(Debug)]
pub struct GetPayoutFile(PayoutFileQuery);

impl FromRequest for GetPayoutFile {
    fn describe(_: &mut Schemas) -> RequestSpec {
        let mut parameters = PayoutFileQuery::parameters();
        parameters.push(schema::query_parameter(
            "part",
            "The part, if the payouts are split into several files",
            json!({"type": "integer", "minimum": 1, "maximum": PART_MAX, "default": 1}),
        ));
        RequestSpec { parameters, ..RequestSpec::default() }
    }

    fn read(call: &Request) -> Result<Self, Problem> {
        PayoutFileQuery::from_request(call).map(Self)
    }
}

/// Query of all payment files.
#[derive(Debug)]
pub struct ListPayoutFiles(PayoutFileQuery);

impl FromRequest for ListPayoutFiles {
    fn describe(_: &mut Schemas) -> RequestSpec {
        RequestSpec { parameters: PayoutFileQuery::parameters(), ..RequestSpec::default() }
    }

    fn read(call: &Request) -> Result<Self, Problem> {
        PayoutFileQuery::from_request(call).map(Self)
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

    fn into_body(self) -> Result<Bytes, Problem> {
        Ok(self.content.into())
    }

    fn into_response(self) -> Result<Response, Problem> {
        let attached = format!("attachment; filename=\"{}\"", self.name);
        let attached = HeaderValue::try_from(attached).map_err(Problem::internal)?;
        Ok(Response {
            status: StatusCode::OK,
            media_type: HeaderValue::from_static(Self::MEDIA_TYPE),
            headers: vec![(CONTENT_DISPOSITION, attached)],
            body: self.content.into(),
            stream: None,
        })
    }
}

/// `GET …/payout-runs/{id}/csv`.
///
/// # Errors
/// The run does not exist or is not approved, or the query selects more than one file.
pub async fn get_file(
    state: Arc<AppState>,
    owner: Owner,
    request: ReadRequest<GetPayoutFile>,
) -> Result<CsvFile, Problem> {
    let ResolvedRequest { program, input: GetPayoutFile(input), .. } =
        request.require_program(&state, owner.tenant()).await?;
    let id = input.run.id(AffiliateNoun::Run)?;
    let file = state.affiliate.ledger.files.get_file(program.account, id, &input.selection, input.part).await;
    let file = file.map_err(|refusal| refusal_problem(&state, refusal))?;
    Ok(CsvFile { name: file.name, content: file.content })
}

/// `GET …/payout-runs/{id}/files`.
///
/// # Errors
/// The run does not exist or is not approved.
pub async fn list_files(
    state: Arc<AppState>,
    owner: Owner,
    request: ReadRequest<ListPayoutFiles>,
) -> Result<PayoutFilesResponse, Problem> {
    let ResolvedRequest { program, input: ListPayoutFiles(input), .. } =
        request.require_program(&state, owner.tenant()).await?;
    let id = input.run.id(AffiliateNoun::Run)?;
    let files = state.affiliate.ledger.files.list_files(program.account, id, &input.selection).await;
    let files = files.map_err(|refusal| refusal_problem(&state, refusal))?;
    Ok(PayoutFilesResponse { files: files.into_iter().map(Into::into).collect() })
}
