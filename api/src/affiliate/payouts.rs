//! `…/affiliate-payouts`: payouts to partners. The owner can also mark a payout as failed.

use ::affiliate::api_objects::PayoutObject;
use ::affiliate::payouts::settle::PayoutQuery;
use ::affiliate::payouts::view::PayoutView;
use httpd::paging::KIND_PAYOUT;
use httpd::request_object::RequestValue;
use model::idempotency::IdempotencyScope;

use super::list_query::page_query;
use super::path::PayoutPath;
use super::payout_view::PayoutResponse;
use super::request::{ActionRequest, ReadRequest, ResolvedRequest};
use super::response::{ResponseWriter, VersionedResponse, once, owner_claim};
use super::view::ListResponse;
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

impl RequestQuery for ListPayouts {
    fn read_query(query: &mut Query) -> Result<Self> {
        let page = query.page()?;
        let filter = PayoutQuery {
            statuses: query.words("status", "Filter by status; several separated by commas")?,
            partner: query.value("affiliate_id", "The partner (`aff_…`)", "a partner's id (`aff_…`)")?,
            run: query.value("run_id", "The payout run (`prn_…`)", "a payout run's id (`prn_…`)")?,
        };
        Ok(Self { page, query: filter })
    }
}

/// `GET /affiliate-payouts`.
pub async fn list(
    state: State,
    tenant: Tenant,
    request: ReadRequest<ListPayouts>,
) -> Result<ListResponse<PayoutObject>> {
    let input = request.require_set_up_program(&state, &tenant).await?.input;
    let page_request = page_query(&input.page, KIND_PAYOUT)?;
    let found = state.affiliate.ledger.list_payouts(tenant.account().id, &input.query, page_request).await?;
    let next = found.next.map(|id| paging::after_id(KIND_PAYOUT, id));
    Ok(ListResponse::new(found.rows.iter().map(PayoutObject::from).collect(), next))
}

fn payout_response(view: &PayoutView) -> VersionedResponse<PayoutResponse> {
    VersionedResponse::new(&PayoutResponse { payout: PayoutObject::from(view) }).with_etag(view.rev())
}

/// `GET /affiliate-payouts/{id}`.
pub async fn get(
    state: State,
    tenant: Tenant,
    request: ReadRequest<PayoutPath>,
) -> Result<VersionedResponse<PayoutResponse>> {
    let id = request.require_set_up_program(&state, &tenant).await?.input.id()?;
    let found = state.affiliate.ledger.get_payout(tenant.account().id, id).await;
    found.map(|view| payout_response(&view)).or_problem(&state)
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
    state: State,
    tenant: Tenant,
    request: ActionRequest<(PayoutPath, PaymentProof)>,
) -> Result<VersionedResponse<PayoutResponse>> {
    let ResolvedRequest { program, input, if_match, claim } = request.require_set_up_program(&state, &tenant).await?;
    let (payout, PaymentProof { reference }) = input;
    let id = payout.id()?;
    let ledger = &state.affiliate.ledger;
    let change = |store: ResponseWriter<_>| async move {
        ledger.mark_payout_paid(program.account, id, &reference, if_match.as_ref(), &store).await
    };
    once(&state, &tenant, (IdempotencyScope::MarkPaid, claim), payout_response, change).await
}

/// `POST …/payouts/{id}/fail`.
///
/// # Errors
/// The input is invalid, the payout is not in progress, or the processor may be transferring it.
pub async fn fail(
    state: State,
    owner: Owner,
    request: ActionRequest<(PayoutPath, PayoutFailure)>,
) -> Result<VersionedResponse<PayoutResponse>> {
    let ResolvedRequest { program, input, if_match, claim } = request.require_program(&state, owner.tenant()).await?;
    let (payout, PayoutFailure { reason }) = input;
    let id = payout.id()?;
    let service = &state.affiliate;
    let change = |store: ResponseWriter<_>| async move {
        service.ledger.fail_payout(program.account, id, &reason, if_match.as_ref(), &store).await
    };
    once(&state, owner.tenant(), owner_claim("fail_affiliate_payout", claim), payout_response, change).await
}
