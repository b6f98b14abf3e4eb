//! `/dashboard/api/affiliate-program/backfill`: imports past invoices of the payment processor into the ledger.

use httpd::paging::KIND_BACKFILL;
use model::affiliate::backfill::{Backfill, BackfillStatus};

use ::affiliate::api_objects::ApiTimestamp;

use super::fields::TimeOrUnix;
use super::path::BackfillPath;
use super::request::{CreateRequest, ReadRequest, ResolvedRequest};
use super::response::{ResponseWriter, VersionedResponse, once, owner_claim};
use super::view::ListResponse;
use crate::prelude::*;

/// Parameters of the backfill
#[derive(Debug, RequestObject)]
#[schema(name = "BeginAffiliateBackfill", body_bytes_max = SMALL_BYTES_MAX, optional_body)]
pub struct StartBackfill {
    /// Import invoices from this time on (RFC 3339 or Unix seconds); all if omitted
    #[field(reader = TimeOrUnix, nullable)]
    since: Option<Timestamp>,
    /// Whether to suppress webhooks and email about the imported commissions
    #[field(absent = false)]
    silent: bool,
}

/// Progress of a backfill
#[derive(Debug, Serialize, ToSchema)]
pub struct BackfillView {
    /// Its id (`bkf_…`)
    id: BackfillId,
    /// The status
    status: BackfillStatus,
    /// Paid invoices read
    invoices_seen: u64,
    /// Commissions written
    lines_written: u64,
    /// The error, if it failed
    error: Option<String>,
}

object_response! { "A backfill", pub BackfillResponse { backfill: BackfillView } as "OneAffiliateBackfill" }

impl From<Backfill> for BackfillResponse {
    fn from(backfill: Backfill) -> Self {
        let Backfill { id, status, invoices_seen, lines_written, error, .. } = backfill;
        Self { backfill: BackfillView { id, status, invoices_seen, lines_written, error } }
    }
}

object_view! {
    /// A backfill in a list
    #[schema(name = "AffiliateBackfill")]
    pub struct BackfillObject, fn from_backfill(backfill: Backfill) {
        /// Its id (`bkf_…`)
        id: BackfillId = backfill.id,
        /// The status
        status: BackfillStatus = backfill.status,
        /// Whether it sends no webhooks and no email about what it writes
        silent: bool = backfill.silent,
        /// Invoices from this time on; null for all
        since: Option<ApiTimestamp> = backfill.since.map(ApiTimestamp),
        /// Invoices until this time were read
        read_until: ApiTimestamp = ApiTimestamp(backfill.read_until),
        /// Paid invoices read
        invoices_seen: u64 = backfill.invoices_seen,
        /// Commissions written
        lines_written: u64 = backfill.lines_written,
        /// The error, if it failed
        error: Option<String> = backfill.error,
        /// When it was started
        created_at: ApiTimestamp = ApiTimestamp(backfill.until),
    }
}

/// `GET …/backfill`.
pub async fn list(
    state: State,
    owner: Owner,
    request: ReadRequest<PageParameters>,
) -> Result<ListResponse<BackfillObject>> {
    let ResolvedRequest { program, input: page, .. } = request.require_program(&state, owner.tenant()).await?;
    let before = page.before_id(KIND_BACKFILL)?.map(BackfillId::from_bytes);
    let store = state.affiliate.ledger.store();
    let mut found = store::affiliate::backfill::list(store, program.account, before, page.limit + 1).await?;
    let next = page.cut(&mut found, |last| paging::after_id(KIND_BACKFILL, last.id.to_bytes()));
    Ok(ListResponse::new(found.into_iter().map(BackfillObject::from_backfill).collect(), next))
}

/// A backfill that was started; answered 202.
#[derive(Debug, Serialize)]
#[serde(transparent)]
pub struct StartBackfillResponse(BackfillResponse);

impl ToSchema for StartBackfillResponse {
    const SUCCESS_STATUS: StatusCode = StatusCode::ACCEPTED;

    fn schema(schemas: &mut Schemas) -> Value {
        BackfillResponse::schema(schemas)
    }
}

/// `POST …/backfill`.
///
/// # Errors
/// The processor is connected for events only, a backfill is running already, or there is no program.
pub async fn start(
    state: State,
    owner: Owner,
    request: CreateRequest<StartBackfill>,
) -> Result<VersionedResponse<StartBackfillResponse>> {
    let opened = request.require_program(&state, owner.tenant()).await?;
    let ResolvedRequest { program, input: StartBackfill { since, silent }, claim, .. } = opened;
    let service = &state.affiliate;
    let change = |store: ResponseWriter<_>| async move {
        service.processor.start_backfill(program.account, since, silent, &store).await
    };
    once(&state, owner.tenant(), owner_claim("begin_affiliate_backfill", claim), start_response, change).await
}

fn start_response(backfill: &Backfill) -> VersionedResponse<StartBackfillResponse> {
    VersionedResponse::new(&StartBackfillResponse(backfill.clone().into()))
}

/// `GET …/backfill/{id}`.
pub async fn get(state: State, owner: Owner, request: ReadRequest<BackfillPath>) -> Result<BackfillResponse> {
    let ResolvedRequest { program, input, .. } = request.require_program(&state, owner.tenant()).await?;
    let found = state.affiliate.processor.get_backfill(program.account, input.id()?).await;
    found.map(BackfillResponse::from).or_problem(&state)
}
