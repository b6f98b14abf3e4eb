//! `…/affiliate-payouts`: payouts to partners. The owner can also mark a payout as failed.

use ::affiliate::api_objects::PayoutObject;
use ::affiliate::error::AffiliateNoun;
use ::affiliate::payouts::settle::PayoutQuery;
use ::affiliate::payouts::view::PayoutView;
use httpd::fields;
use httpd::paging::KIND_PAYOUT;
use httpd::request_object::RequestValue;
use model::affiliate::payout::PayoutStatus;
use model::idempotency::IdempotencyScope;
use serde_json::value::RawValue;

use super::list_query::{list_filter_parameter, page_query, parse_filter};
use super::path::PayoutPath;
use super::payout_view::PayoutResponse;
use super::refusal::refusal_problem;
use super::request::{ActionRequest, ReadRequest, ResolvedRequest};
use super::response::{BeginDecision, VersionedResponse, begin_for_owner, begin_for_tenant};
use super::view::ListResponse;
use crate::handler::Owner;
use crate::prelude::*;

/// In characters.
const REFERENCE_CHARS_MAX: usize = 200;
/// In characters.
const REASON_CHARS_MAX: usize = 500;

/// Query of `GET /affiliate-payouts`.
#[derive(Debug)]
pub struct ListPayouts {
    page: PageParameters,
    query: PayoutQuery,
}

impl FromRequest for ListPayouts {
    fn describe(_: &mut Schemas) -> RequestSpec {
        let text = || json!({"type": "string"});
        let mut parameters = PageParameters::parameters();
        parameters.extend([
            list_filter_parameter("status", PayoutStatus::WORDS, "Filter by status; several separated by commas"),
            schema::query_parameter("affiliate_id", "The partner (`aff_…`)", text()),
            schema::query_parameter("run_id", "The payout run (`prn_…`)", text()),
        ]);
        RequestSpec { parameters, ..RequestSpec::default() }
    }

    fn read(call: &Request) -> Result<Self, Problem> {
        let parameters = paging::parse_query(&call.query)?;
        let filter = PayoutQuery {
            statuses: paging::parse_words(&call.query, "status", PayoutStatus::WORDS, PayoutStatus::from_word)?,
            partner: parse_filter(&parameters, "affiliate_id", "a partner's id (`aff_…`)")?,
            run: parse_filter(&parameters, "run_id", "a payout run's id (`prn_…`)")?,
        };
        Ok(Self { page: PageParameters::from_query(&call.query)?, query: filter })
    }
}

/// `GET /affiliate-payouts`.
pub async fn list(
    state: Arc<AppState>,
    tenant: Tenant,
    request: ReadRequest<ListPayouts>,
) -> Result<ListResponse<PayoutObject>, Problem> {
    let input = request.require_set_up_program(&state, &tenant).await?.input;
    let page_request = page_query(&input.page, KIND_PAYOUT)?;
    let found = state.affiliate.ledger.payouts.list_payouts(tenant.account().id, &input.query, page_request).await?;
    let next = found.next.map(|id| paging::after_id(KIND_PAYOUT, id));
    Ok(ListResponse::new(found.payouts.iter().map(PayoutObject::from).collect(), next))
}

fn payout_response(view: &PayoutView) -> VersionedResponse<PayoutResponse> {
    VersionedResponse::new(&PayoutResponse { payout: PayoutObject::from(view) }).with_etag(view.rev())
}

/// `GET /affiliate-payouts/{id}`.
pub async fn get(
    state: Arc<AppState>,
    tenant: Tenant,
    request: ReadRequest<PayoutPath>,
) -> Result<VersionedResponse<PayoutResponse>, Problem> {
    let id = request.require_set_up_program(&state, &tenant).await?.input.id(AffiliateNoun::Payout)?;
    let found = state.affiliate.ledger.payouts.get_payout(tenant.account().id, id).await;
    found.map(|view| payout_response(&view)).map_err(|refusal| refusal_problem(&state, refusal))
}

/// A line with at least one character other than a space.
struct ShortText<const CHARS_MAX: usize>;

impl<const CHARS_MAX: usize> RequestValue for ShortText<CHARS_MAX> {
    type Value = String;

    fn schema(_: &mut Schemas) -> Value {
        json!({"type": "string", "minLength": 1, "maxLength": CHARS_MAX, "pattern": "\\S"})
    }

    fn parse(value: &RawValue) -> Result<String, String> {
        // A character has at most four bytes.
        let text = fields::parse_header_line(value, 4 * CHARS_MAX)?.trim().to_owned();
        match text.chars().count() {
            0 => Err("must not be empty".to_owned()),
            n if n > CHARS_MAX => Err(format!("has more than {CHARS_MAX} characters")),
            _ => Ok(text),
        }
    }
}

/// Proof of a manual payment
#[derive(Debug, RequestObject)]
#[schema(name = "MarkAffiliatePayoutPaid", examples = [{"reference": "PAYPAL-BATCH-7"}], body_bytes_max = SMALL_BYTES_MAX)]
pub struct PaymentProof {
    /// Reference of the payment, as proof
    #[field(reader = ShortText<REFERENCE_CHARS_MAX>)]
    reference: String,
}

/// A payout that failed
#[derive(Debug, RequestObject)]
#[schema(name = "FailAffiliatePayout", examples = [{"reason": "The account is closed"}], body_bytes_max = SMALL_BYTES_MAX)]
pub struct PayoutFailure {
    /// Why
    #[field(reader = ShortText<REASON_CHARS_MAX>)]
    reason: String,
}

/// `POST /affiliate-payouts/{id}/mark-paid`.
///
/// # Errors
/// The input is invalid, the run is not approved, the payout was paid with another reference, or the processor pays it.
pub async fn mark_paid(
    state: Arc<AppState>,
    tenant: Tenant,
    request: ActionRequest<(PayoutPath, PaymentProof)>,
) -> Result<VersionedResponse<PayoutResponse>, Problem> {
    let ResolvedRequest { program, input, if_match, claim } = request.require_set_up_program(&state, &tenant).await?;
    let (payout, PaymentProof { reference }) = input;
    let id = payout.id(AffiliateNoun::Payout)?;
    let in_progress = match begin_for_tenant(&state, &tenant, IdempotencyScope::MarkPaid, claim).await? {
        BeginDecision::Replay(body) => return Ok(body),
        BeginDecision::Proceed(in_progress) => in_progress,
    };
    let store_response = in_progress.response_writer(payout_response);
    let payouts = &state.affiliate.ledger.payouts;
    let done = payouts.mark_paid(program.account, id, &reference, if_match.as_ref(), &store_response).await;
    drop(store_response);
    in_progress.finish(&state, done, payout_response).await
}

/// `POST …/payouts/{id}/fail`.
///
/// # Errors
/// The input is invalid, the payout is not in progress, or the processor may be transferring it.
pub async fn fail(
    state: Arc<AppState>,
    owner: Owner,
    request: ActionRequest<(PayoutPath, PayoutFailure)>,
) -> Result<VersionedResponse<PayoutResponse>, Problem> {
    let ResolvedRequest { program, input, if_match, claim } = request.require_program(&state, owner.tenant()).await?;
    let (payout, PayoutFailure { reason }) = input;
    let id = payout.id(AffiliateNoun::Payout)?;
    let in_progress = match begin_for_owner(&state, &owner, "fail_affiliate_payout", claim).await? {
        BeginDecision::Replay(body) => return Ok(body),
        BeginDecision::Proceed(in_progress) => in_progress,
    };
    let store_response = in_progress.response_writer(payout_response);
    let failed = state
        .affiliate
        .ledger
        .payouts
        .fail_payout(program.account, id, &reason, if_match.as_ref(), &store_response)
        .await;
    drop(store_response);
    in_progress.finish(&state, failed, payout_response).await
}
