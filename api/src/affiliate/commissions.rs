//! `…/affiliate-commissions`: the lines of the ledger. They are written by the processor's events alone; what is done to
//! them here is that they are taken back, and, by the owner, brought back.

use std::sync::Arc;

use ::affiliate::ledger::CommissionReversal;
use ::affiliate::object::CommissionObject;
use ::affiliate::office::no_extension;
use ::affiliate::refusal::AffiliateNoun;
use mail::affiliate::commission::{Commission, ReversalReason};
use store::access::Tenant;
use store::affiliate::commission::{CommissionFilter, CommissionStatus};

use serde_json::json;

use super::answer::{BeginDecision, VersionedResponse, begin_for_owner};
use super::asked::{ActionRequest, ReadRequest, ResolvedRequest, UpdateRequest};
use super::fields::{self, BodyFieldReader, nullable_text_schema, parse_word};
use super::view::{CommissionResponse, ListResponse};
use super::{CommissionPath, list_filter_parameter, page_query, parse_filter, refusal_problem};
use crate::call::{FromRequest, Owner, Request, RequestSpec, SMALL_BYTES_MAX};
use crate::fields::FieldNames;
use crate::page::{self, KIND_COMMISSION, PageParameters, VALUES_MAX};
use crate::problem::Problem;
use crate::room::AppState;
use crate::schema::{self, Schemas};

/// The longest note.
const NOTE_BYTES_MAX: usize = 1_000;
/// Why a line may be taken back by hand.
const REASONS: &[&str] = &[ReversalReason::Manual.as_str(), ReversalReason::Fraud.as_str()];

/// What `GET /affiliate-commissions` takes.
#[derive(Debug)]
pub struct ListCommissions {
    page: PageParameters,
    filter: CommissionFilter,
}

impl FromRequest for ListCommissions {
    fn describe(_: &mut Schemas) -> RequestSpec {
        let text = || json!({"type": "string"});
        let mut currencies = schema::query_parameter(
            "currency",
            "Its currency; of several, with commas, one",
            json!({"type": "array", "maxItems": VALUES_MAX, "items": {"type": "string", "pattern": "^[A-Za-z]{3}$"}}),
        );
        (currencies["style"], currencies["explode"]) = (json!("form"), json!(false));
        let mut parameters = PageParameters::parameters();
        parameters.extend([
            list_filter_parameter("status", CommissionStatus::WORDS, "Where it stands; of several, one"),
            schema::query_parameter("affiliate_id", "Whose it is (`aff_…`)", text()),
            schema::query_parameter("referral_id", "By whom it came (`ref_…`)", text()),
            currencies,
            schema::time_parameter("created_after", "Only those made at this time or later"),
            schema::time_parameter("created_before", "Only those made before this time"),
        ]);
        RequestSpec { parameters, ..RequestSpec::default() }
    }

    fn read(call: &Request) -> Result<Self, Problem> {
        let given = page::parse_query(&call.query)?;
        let filter = CommissionFilter {
            statuses: page::parse_words(&call.query, "status", CommissionStatus::WORDS, CommissionStatus::from_word)?,
            partner: parse_filter(&given, "affiliate_id", "a partner's id (`aff_…`)")?,
            referral: parse_filter(&given, "referral_id", "a referral's id (`ref_…`)")?,
            currencies: page::parse_values(&given, "currency", "a currency, three letters")?,
            payout: None,
            created_after: page::parse_time(&given, "created_after")?,
            created_before: page::parse_time(&given, "created_before")?,
        };
        Ok(Self { page: PageParameters::from_query(&call.query)?, filter })
    }
}

/// `GET /affiliate-commissions`.
///
/// # Errors
/// The cursor is none of this list's; the store cannot be read.
pub async fn list(
    room: Arc<AppState>,
    tenant: Tenant,
    asked: ReadRequest<ListCommissions>,
) -> Result<ListResponse<CommissionObject>, Problem> {
    let said = asked.require_set_up_program(&room, &tenant).await?.input;
    let wanted = page_query(&said.page, KIND_COMMISSION)?;
    let account = tenant.account().id;
    let found = store::affiliate::commission::list(room.affiliate.store(), account, &said.filter, wanted).await?;
    let next = found.next.map(|id| page::after_id(KIND_COMMISSION, id));
    Ok(ListResponse::new(found.rows.iter().map(CommissionObject::from).collect(), next))
}

fn commission_response(line: &Commission) -> VersionedResponse<CommissionResponse> {
    VersionedResponse::new(&CommissionResponse { commission: CommissionObject::from(line) }).with_etag(line.rev)
}

/// `GET /affiliate-commissions/{id}`.
///
/// # Errors
/// No such commission; the store cannot be read.
pub async fn get(
    room: Arc<AppState>,
    tenant: Tenant,
    asked: ReadRequest<CommissionPath>,
) -> Result<VersionedResponse<CommissionResponse>, Problem> {
    let id = asked.require_set_up_program(&room, &tenant).await?.input.id(AffiliateNoun::Commission)?;
    let found = store::affiliate::commission::get(room.affiliate.store(), tenant.account().id, id).await?;
    found.as_ref().map(commission_response).ok_or_else(|| Problem::not_found(AffiliateNoun::Commission.as_str()))
}

/// What `PATCH /affiliate-commissions/{id}` takes.
#[derive(Debug)]
pub struct ReverseCommission {
    commission: CommissionPath,
    reason: ReversalReason,
    note: Option<String>,
}

impl FromRequest for ReverseCommission {
    const BODY_BYTES_MAX: Option<usize> = Some(SMALL_BYTES_MAX);

    fn describe(schemas: &mut Schemas) -> RequestSpec {
        let body = schemas.component("ReverseAffiliateCommission", |_| {
            let mut reason = schema::string_enum(REASONS, "Why; with `fraud` the recruiter's share goes too");
            reason["default"] = json!(ReversalReason::Manual.as_str());
            let fields = [
                ("status", json!({"type": "string", "const": "reversed", "description": "It is taken back"})),
                ("reason", reason),
                ("note", nullable_text_schema(NOTE_BYTES_MAX, "What your team says of it; told with the event")),
            ];
            let mut schema = schema::object_with("A commission is taken back", &["status"], fields);
            schema["examples"] = json!([{"status": "reversed", "reason": "fraud", "note": "stolen card"}]);
            schema
        });
        RequestSpec {
            parameters: vec![CommissionPath::parameter()],
            body: Some(body),
            body_bytes_max: Self::BODY_BYTES_MAX,
        }
    }

    fn read(call: &Request) -> Result<Self, Problem> {
        const NAMES: FieldNames = names!("status", "reason", "note");
        let mut given = BodyFieldReader::from_body(call, &NAMES)?;
        given.require("status");
        given.read_optional("status", |value| {
            parse_word(&["reversed"], |text| (text == "reversed").then_some(()), value)
        });
        let from_word =
            |text: &str| ReversalReason::from_word(text).filter(|reason| REASONS.contains(&reason.as_str()));
        let reason = given.read_optional("reason", |value| parse_word(REASONS, from_word, value));
        let note = given.read_nullable("note", |value| fields::parse_multiline_text(value, NOTE_BYTES_MAX)).flatten();
        given.finish()?;
        let note = note.filter(|note| !note.trim().is_empty());
        Ok(Self { commission: CommissionPath::of(call), reason: reason.unwrap_or(ReversalReason::Manual), note })
    }
}

/// `PATCH /affiliate-commissions/{id}`: a commission is taken back. One that is so already stays as it is.
///
/// # Errors
/// What is wrong with it; it is paid or in a payout; it was changed meanwhile; no such commission.
pub async fn reverse(
    room: Arc<AppState>,
    tenant: Tenant,
    asked: UpdateRequest<ReverseCommission>,
) -> Result<VersionedResponse<CommissionResponse>, Problem> {
    let ResolvedRequest { program, input: ReverseCommission { commission: of, reason, note }, if_match: seen, .. } =
        asked.require_set_up_program(&room, &tenant).await?;
    let of = (program.account, of.id(AffiliateNoun::Commission)?);
    let reversal = CommissionReversal { reason, note, seen };
    let done = room.affiliate.ledger().reverse(of, &reversal, &no_extension).await;
    done.map(|line| commission_response(&line)).map_err(|refusal| refusal_problem(&room, refusal))
}

/// `POST /dashboard/api/affiliate-program/commissions/{id}/reinstate`.
///
/// # Errors
/// It was not taken back, or its referral earns nothing; no such commission.
pub async fn reinstate(
    room: Arc<AppState>,
    owner: Owner,
    asked: ActionRequest<CommissionPath>,
) -> Result<VersionedResponse<CommissionResponse>, Problem> {
    let ResolvedRequest { program, input: said, if_match: seen, claim } =
        asked.require_program(&room, owner.tenant()).await?;
    let of = (program.account, said.id(AffiliateNoun::Commission)?);
    let doing = match begin_for_owner(&room, &owner, "reinstate_affiliate_commission", claim).await? {
        BeginDecision::Replay(answer) => return Ok(answer),
        BeginDecision::Proceed(doing) => doing,
    };
    let keep = doing.response_writer(commission_response);
    let done = room.affiliate.ledger().reinstate(of, seen.as_ref(), &keep).await;
    drop(keep);
    doing.finish(&room, done, commission_response).await
}
