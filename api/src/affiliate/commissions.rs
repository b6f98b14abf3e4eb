//! `…/affiliate-commissions`: the lines of the ledger. Only events of the payment processor create them. The API
//! reverses them; the owner can reinstate a reversed one.

use ::affiliate::api_objects::CommissionObject;
use ::affiliate::context::no_extension;
use ::affiliate::error::AffiliateNoun;
use ::affiliate::ledger::manual_actions::CommissionReversal;
use httpd::paging::{KIND_COMMISSION, VALUES_MAX};
use model::affiliate::commission::{Commission, ReversalReason};
use model::affiliate::money::Currency;
use store::affiliate::commission::{CommissionFilter, CommissionStatus};

use super::calculation::CommissionDetail;
use super::fields::{Multiline, parse_word};
use super::list_query::page_query;
use super::path::CommissionPath;
use super::request::{ActionRequest, ReadRequest, ResolvedRequest, UpdateRequest};
use super::response::{ResponseWriter, VersionedResponse, once, owner_claim};
use super::view::{CommissionResponse, ListResponse};
use crate::prelude::*;

const NOTE_BYTES_MAX: usize = 1_000;
const REASONS: &[&str] = &[ReversalReason::Manual.word(), ReversalReason::Fraud.word()];

/// Query of `GET /affiliate-commissions`.
#[derive(Debug)]
pub struct ListCommissions {
    page: PageParameters,
    filter: CommissionFilter,
}

impl RequestQuery for ListCommissions {
    fn read_query(query: &mut Query) -> Result<Self> {
        let page = query.page()?;
        let filter = CommissionFilter {
            statuses: query.words_of(
                "status",
                "Filter by status; several separated by commas",
                CommissionStatus::WORDS,
                CommissionStatus::from_word,
            )?,
            partner: query.value("affiliate_id", "The partner (`aff_…`)", "a partner's id (`aff_…`)")?,
            referral: query.value("referral_id", "The referral (`ref_…`)", "a referral's id (`ref_…`)")?,
            payout: query.value(
                "payout_id",
                "The payout (`pay_…`) that the commissions are in",
                "a payout's id (`pay_…`)",
            )?,
            currencies: currency_filter(query)?,
            created_after: query.time("created_after", "Only those created at this time or later")?,
            created_before: query.time("created_before", "Only those created before this time")?,
        };
        Ok(Self { page, filter })
    }
}

fn currency_filter(query: &mut Query) -> Result<Vec<Currency>> {
    query.describe_list(
        "currency",
        "Filter by currency; several separated by commas",
        || json!({"type": "array", "maxItems": VALUES_MAX, "items": {"type": "string", "pattern": "^[A-Za-z]{3}$"}}),
    );
    paging::parse_values(query.given(), "currency", "a currency, three letters")
}

/// `GET /affiliate-commissions`.
pub async fn list(
    state: State,
    tenant: Tenant,
    request: ReadRequest<ListCommissions>,
) -> Result<ListResponse<CommissionObject>> {
    let input = request.require_set_up_program(&state, &tenant).await?.input;
    let page_request = page_query(&input.page, KIND_COMMISSION)?;
    let account = tenant.account().id;
    let found =
        store::affiliate::commission::list(state.affiliate.ledger.store(), account, &input.filter, page_request)
            .await?;
    let next = found.next.map(|id| paging::after_id(KIND_COMMISSION, id));
    Ok(ListResponse::new(found.rows.iter().map(CommissionObject::from).collect(), next))
}

fn commission_response(line: &Commission) -> VersionedResponse<CommissionResponse> {
    VersionedResponse::new(&CommissionResponse { commission: CommissionObject::from(line) }).with_etag(line.rev)
}

/// `GET /affiliate-commissions/{id}`.
pub async fn get(
    state: State,
    tenant: Tenant,
    request: ReadRequest<CommissionPath>,
) -> Result<VersionedResponse<CommissionDetail>> {
    let id = request.require_set_up_program(&state, &tenant).await?.input.id()?;
    let found = store::affiliate::commission::get(state.affiliate.ledger.store(), tenant.account().id, id).await?;
    let line = found.ok_or_else(|| Problem::not_found(AffiliateNoun::Commission.word()))?;
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
    #[field(parse = parse_reversed, schema = json!({"type": "string", "const": "reversed"}))]
    #[expect(dead_code, reason = "only one value is accepted")]
    status: ReversedStatus,
    /// The reason; `fraud` also reverses the recruiting partner's commission
    #[field(
        parse = parse_reason, schema = json!({"type": "string", "enum": REASONS}), absent = ReversalReason::Manual,
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

fn parse_reason(value: &RawValue) -> Result<ReversalReason, String> {
    let from_word = |text: &str| ReversalReason::from_word(text).filter(|reason| REASONS.contains(&reason.word()));
    parse_word(REASONS, from_word, value)
}

/// `PATCH /affiliate-commissions/{id}`: reverses a commission. A commission that is reversed already is not changed.
///
/// # Errors
/// The input is invalid, the commission is paid or in a payout, it was changed concurrently, or it does not exist.
pub async fn reverse(
    state: State,
    tenant: Tenant,
    request: UpdateRequest<(CommissionPath, ReversalFields)>,
) -> Result<VersionedResponse<CommissionResponse>> {
    let ResolvedRequest { program, input: (target, fields), if_match: seen, .. } =
        request.require_set_up_program(&state, &tenant).await?;
    let ReversalFields { reason, note, .. } = fields;
    let note = note.flatten().filter(|note| !note.trim().is_empty());
    let id = target.id()?;
    let reversal = CommissionReversal { reason, note, seen };
    let done = state.affiliate.ledger.reverse_commission(program.account, id, &reversal, &no_extension).await;
    done.map(|line| commission_response(&line)).or_problem(&state)
}

/// `POST /dashboard/api/affiliate-program/commissions/{id}/reinstate`.
///
/// # Errors
/// The commission is not reversed, its referral earns nothing, or it does not exist.
pub async fn reinstate(
    state: State,
    owner: Owner,
    request: ActionRequest<CommissionPath>,
) -> Result<VersionedResponse<CommissionResponse>> {
    let ResolvedRequest { program, input, if_match, claim } = request.require_program(&state, owner.tenant()).await?;
    let id = input.id()?;
    let service = &state.affiliate;
    let change = |store: ResponseWriter<_>| async move {
        service.ledger.reinstate_commission(program.account, id, if_match.as_ref(), &store).await
    };
    once(&state, owner.tenant(), owner_claim("reinstate_affiliate_commission", claim), commission_response, change)
        .await
}
