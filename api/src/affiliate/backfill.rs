//! `/dashboard/api/affiliate-program/backfill`: the past is read into the ledger.

use std::sync::Arc;

use http::StatusCode;
use jiff::Timestamp;
use mail::affiliate::backfill::{Backfill, BackfillStatus};
use mail::id::BackfillId;
use serde::Serialize;
use serde_json::Value;

use ::affiliate::refusal::AffiliateNoun;

use super::answer::{self, ResponseObject, VersionedResponse, begin_for_owner};
use super::asked::{CreateRequest, ReadRequest, ResolvedRequest};
use super::fields::{BodyFieldReader, parse_time_or_unix};
use super::{BackfillPath, refusal_problem};
use crate::call::{FromRequest, Media, Owner, Request, RequestSpec, SMALL_BYTES_MAX};
use crate::fields::{self, FieldNames};
use crate::problem::Problem;
use crate::room::AppState;
use crate::schema::{self, Schemas, ToSchema};

/// What `POST …/backfill` takes.
#[derive(Debug)]
pub struct StartBackfill {
    since: Option<Timestamp>,
    silent: bool,
}

impl FromRequest for StartBackfill {
    const BODY_BYTES_MAX: Option<usize> = Some(SMALL_BYTES_MAX);
    const MEDIA: Media = Media::OptionalJson;

    fn describe(schemas: &mut Schemas) -> RequestSpec {
        let body = schemas.component("BeginAffiliateBackfill", |_| {
            let mut since = schema::time("From when on, or Unix seconds; from the beginning otherwise");
            schema::allow_null(&mut since);
            let silent = schema::boolean("Whether nobody is told of what is written: no webhooks, no mail");
            schema::object_with("What is to be read", &[], [("since", since), ("silent", silent)])
        });
        RequestSpec { body: Some(body), body_bytes_max: Self::BODY_BYTES_MAX, ..RequestSpec::default() }
    }

    fn read(call: &Request) -> Result<Self, Problem> {
        const NAMES: FieldNames = names!("since", "silent");
        let mut given = BodyFieldReader::from_optional_body(call, &NAMES)?;
        let since = given.read_optional("since", parse_time_or_unix);
        let silent = given.read_optional("silent", fields::parse_bool).unwrap_or(false);
        given.finish()?;
        Ok(Self { since, silent })
    }
}

/// How far a back-fill is.
#[derive(Debug, Serialize)]
struct BackfillView {
    id: BackfillId,
    status: BackfillStatus,
    invoices_seen: u64,
    lines_written: u64,
    error: Option<String>,
}

/// A back-fill.
#[derive(Debug, Serialize)]
pub struct BackfillResponse {
    backfill: BackfillView,
}

impl From<Backfill> for BackfillResponse {
    fn from(backfill: Backfill) -> Self {
        let Backfill { id, status, invoices_seen, lines_written, error, .. } = backfill;
        Self { backfill: BackfillView { id, status, invoices_seen, lines_written, error } }
    }
}

impl ToSchema for BackfillResponse {
    fn schema(schemas: &mut Schemas) -> Value {
        schemas.component("OneAffiliateBackfill", |_| {
            let fields = [
                ("id", schema::string("Its id (`bkf_…`)")),
                ("status", schema::string_enum(BackfillStatus::WORDS, "How far it is")),
                ("invoices_seen", schema::count("Paid invoices that were read")),
                ("lines_written", schema::count("Commissions that were written for them")),
                ("error", schema::nullable_string("Why it failed")),
            ];
            let backfill = schema::object("How far a back-fill is", fields);
            schema::object("A back-fill", [("backfill", backfill)])
        })
    }
}

/// A back-fill that began.
#[derive(Debug, Serialize)]
#[serde(transparent)]
pub struct StartBackfillResponse(BackfillResponse);

impl ToSchema for StartBackfillResponse {
    const SUCCESS_STATUS: StatusCode = StatusCode::ACCEPTED;

    fn schema(schemas: &mut Schemas) -> Value {
        BackfillResponse::schema(schemas)
    }
}

impl ResponseObject for StartBackfillResponse {}

/// `POST …/backfill`.
///
/// # Errors
/// The processor is only listened to, or a back-fill goes on; there is no program.
pub async fn start(
    room: Arc<AppState>,
    owner: Owner,
    asked: CreateRequest<StartBackfill>,
) -> Result<VersionedResponse<StartBackfillResponse>, Problem> {
    let opened = asked.require_program(&room, owner.tenant()).await?;
    let ResolvedRequest { program, input: StartBackfill { since, silent }, claim, .. } = opened;
    let doing = match begin_for_owner(&room, &owner, "begin_affiliate_backfill", claim).await? {
        answer::BeginDecision::Replay(answer) => return Ok(answer),
        answer::BeginDecision::Proceed(doing) => doing,
    };
    let keep = doing.response_writer(start_response);
    let begun = room.affiliate.start_backfill(program.account, (since, silent), &keep).await;
    drop(keep);
    doing.finish(&room, begun, start_response).await
}

fn start_response(backfill: &Backfill) -> VersionedResponse<StartBackfillResponse> {
    VersionedResponse::new(&StartBackfillResponse(backfill.clone().into()))
}

/// `GET …/backfill/{id}`.
///
/// # Errors
/// No such back-fill, or no program.
pub async fn get(
    room: Arc<AppState>,
    owner: Owner,
    asked: ReadRequest<BackfillPath>,
) -> Result<BackfillResponse, Problem> {
    let ResolvedRequest { program, input: said, .. } = asked.require_program(&room, owner.tenant()).await?;
    let found = room.affiliate.backfill(program.account, said.id(AffiliateNoun::Backfill)?).await;
    found.map(BackfillResponse::from).map_err(|refusal| refusal_problem(&room, refusal))
}
