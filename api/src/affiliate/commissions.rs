//! `…/affiliate-commissions`: the lines of the ledger. Only events of the payment processor create them. The API
//! reverses them; the owner can reinstate a reversed one.

use ::affiliate::api_objects::CommissionObject;
use ::affiliate::context::no_extension;
use ::affiliate::error::AffiliateNoun;
use ::affiliate::ledger::manual_actions::CommissionReversal;
use httpd::paging::{KIND_COMMISSION, VALUES_MAX};
use model::affiliate::commission::{Commission, ReversalReason};
use store::affiliate::commission::{CommissionFilter, CommissionStatus};

use serde_json::value::RawValue;

use super::calculation::CommissionDetail;
use super::fields::{Multiline, parse_word};
use super::list_query::{list_filter_parameter, page_query, parse_filter};
use super::path::CommissionPath;
use super::refusal::refusal_problem;
use super::request::{ActionRequest, ReadRequest, ResolvedRequest, UpdateRequest};
use super::response::{BeginDecision, VersionedResponse, begin_for_owner};
use super::view::{CommissionResponse, ListResponse};
use crate::handler::Owner;
use crate::prelude::*;

const NOTE_BYTES_MAX: usize = 1_000;
const REASONS: &[&str] = &[ReversalReason::Manual.word(), ReversalReason::Fraud.word()];

/// Query of `GET /affiliate-commissions`.
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
            "Filter by currency; several separated by commas",
            json!({"type": "array", "maxItems": VALUES_MAX, "items": {"type": "string", "pattern": "^[A-Za-z]{3}$"}}),
        );
        (currencies["style"], currencies["explode"]) = (json!("form"), json!(false));
        let mut parameters = PageParameters::parameters();
        parameters.extend([
            list_filter_parameter("status", CommissionStatus::WORDS, "Filter by status; several separated by commas"),
            schema::query_parameter("affiliate_id", "The partner (`aff_…`)", text()),
            schema::query_parameter("referral_id", "The referral (`ref_…`)", text()),
            schema::query_parameter("payout_id", "The payout (`pay_…`) that the commissions are in", text()),
            currencies,
            schema::time_parameter("created_after", "Only those created at this time or later"),
            schema::time_parameter("created_before", "Only those created before this time"),
        ]);
        RequestSpec { parameters, ..RequestSpec::default() }
    }

    fn read(call: &Request) -> Result<Self, Problem> {
        let parameters = paging::parse_query(&call.query)?;
        let filter = CommissionFilter {
            statuses: paging::parse_words(&call.query, "status", CommissionStatus::WORDS, CommissionStatus::from_word)?,
            partner: parse_filter(&parameters, "affiliate_id", "a partner's id (`aff_…`)")?,
            referral: parse_filter(&parameters, "referral_id", "a referral's id (`ref_…`)")?,
            currencies: paging::parse_values(&parameters, "currency", "a currency, three letters")?,
            payout: parse_filter(&parameters, "payout_id", "a payout's id (`pay_…`)")?,
            created_after: paging::parse_time(&parameters, "created_after")?,
            created_before: paging::parse_time(&parameters, "created_before")?,
        };
        Ok(Self { page: PageParameters::from_query(&call.query)?, filter })
    }
}

/// `GET /affiliate-commissions`.
pub async fn list(
    state: Arc<AppState>,
    tenant: Tenant,
    request: ReadRequest<ListCommissions>,
) -> Result<ListResponse<CommissionObject>, Problem> {
    let input = request.require_set_up_program(&state, &tenant).await?.input;
    let page_request = page_query(&input.page, KIND_COMMISSION)?;
    let account = tenant.account().id;
    let found = store::affiliate::commission::list(
        state.affiliate.ledger.context.store(),
        account,
        &input.filter,
        page_request,
    )
    .await?;
    let next = found.next.map(|id| paging::after_id(KIND_COMMISSION, id));
    Ok(ListResponse::new(found.rows.iter().map(CommissionObject::from).collect(), next))
}

fn commission_response(line: &Commission) -> VersionedResponse<CommissionResponse> {
    VersionedResponse::new(&CommissionResponse { commission: CommissionObject::from(line) }).with_etag(line.rev)
}

/// `GET /affiliate-commissions/{id}`.
pub async fn get(
    state: Arc<AppState>,
    tenant: Tenant,
    request: ReadRequest<CommissionPath>,
) -> Result<VersionedResponse<CommissionDetail>, Problem> {
    let id = request.require_set_up_program(&state, &tenant).await?.input.id(AffiliateNoun::Commission)?;
    let found =
        store::affiliate::commission::get(state.affiliate.ledger.context.store(), tenant.account().id, id).await?;
    let line = found.ok_or_else(|| Problem::not_found(AffiliateNoun::Commission.as_str()))?;
    Ok(VersionedResponse::new(&CommissionDetail::from_line(&line)).with_etag(line.rev))
}

/// Reversal of a commission
#[derive(Debug, RequestObject)]
#[schema(
    name = "ReverseAffiliateCommission", examples = [{"status": "reversed", "reason": "fraud", "note": "stolen card"}],
    body_bytes_max = SMALL_BYTES_MAX,
)]
pub struct ReversalFields {
    /// Reverses the commission
    #[field(parse = parse_reversed, schema = reversed_schema)]
    #[expect(dead_code, reason = "only one value is accepted")]
    status: ReversedStatus,
    /// The reason; `fraud` also reverses the recruiting partner's commission
    #[field(
        parse = parse_reason, schema = reason_schema, absent = ReversalReason::Manual,
        default = ReversalReason::Manual.word(),
    )]
    reason: ReversalReason,
    /// Your team's note; sent with the event
    #[field(reader = Multiline<NOTE_BYTES_MAX>)]
    note: Option<Option<String>>,
}

/// The status that reverses a commission.
#[derive(Debug)]
struct ReversedStatus;

fn parse_reversed(value: &RawValue) -> Result<ReversedStatus, String> {
    parse_word(&["reversed"], |text| (text == "reversed").then_some(ReversedStatus), value)
}

fn reversed_schema(_: &mut Schemas) -> Value {
    json!({"type": "string", "const": "reversed"})
}

fn parse_reason(value: &RawValue) -> Result<ReversalReason, String> {
    let from_word = |text: &str| ReversalReason::from_word(text).filter(|reason| REASONS.contains(&reason.word()));
    parse_word(REASONS, from_word, value)
}

fn reason_schema(_: &mut Schemas) -> Value {
    json!({"type": "string", "enum": REASONS})
}

/// `PATCH /affiliate-commissions/{id}`: reverses a commission. A commission that is reversed already is not changed.
///
/// # Errors
/// The input is invalid, the commission is paid or in a payout, it was changed concurrently, or it does not exist.
pub async fn reverse(
    state: Arc<AppState>,
    tenant: Tenant,
    request: UpdateRequest<(CommissionPath, ReversalFields)>,
) -> Result<VersionedResponse<CommissionResponse>, Problem> {
    let ResolvedRequest { program, input: (target, fields), if_match: seen, .. } =
        request.require_set_up_program(&state, &tenant).await?;
    let ReversalFields { reason, note, .. } = fields;
    let note = note.flatten().filter(|note| !note.trim().is_empty());
    let id = target.id(AffiliateNoun::Commission)?;
    let reversal = CommissionReversal { reason, note, seen };
    let done = state.affiliate.ledger.actions.reverse(program.account, id, &reversal, &no_extension).await;
    done.map(|line| commission_response(&line)).map_err(|refusal| refusal_problem(&state, refusal))
}

/// `POST /dashboard/api/affiliate-program/commissions/{id}/reinstate`.
///
/// # Errors
/// The commission is not reversed, its referral earns nothing, or it does not exist.
pub async fn reinstate(
    state: Arc<AppState>,
    owner: Owner,
    request: ActionRequest<CommissionPath>,
) -> Result<VersionedResponse<CommissionResponse>, Problem> {
    let ResolvedRequest { program, input, if_match, claim } = request.require_program(&state, owner.tenant()).await?;
    let id = input.id(AffiliateNoun::Commission)?;
    let in_progress = match begin_for_owner(&state, &owner, "reinstate_affiliate_commission", claim).await? {
        BeginDecision::Replay(body) => return Ok(body),
        BeginDecision::Proceed(in_progress) => in_progress,
    };
    let store_response = in_progress.response_writer(commission_response);
    let done = state.affiliate.ledger.actions.reinstate(program.account, id, if_match.as_ref(), &store_response).await;
    drop(store_response);
    in_progress.finish(&state, done, commission_response).await
}
