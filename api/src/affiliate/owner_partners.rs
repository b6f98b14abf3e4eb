//! Partners as the program's owner sees and manages them.

use ::affiliate::context::no_extension;
use ::affiliate::partners::changes::PartnerStatusChange;
use httpd::request_object::bounded_text_schema;
use model::affiliate::partner::{PartnerAction, PayoutDestination};
use model::affiliate::partner_fields::DESTINATION_BYTES_MAX;
use model::affiliate::program::PayoutMethod;

use super::partners::partner_response;
use super::path::PartnerPath;
use super::request::{ActionRequest, ReadRequest, ResolvedRequest, UpdateRequest};
use super::response::{ResponseWriter, VersionedResponse, once, owner_claim};
use super::view::{OwnerPartnerDetail, PartnerResponse};
use crate::prelude::*;

/// `GET …/partners/{id}`.
pub async fn get(
    state: State,
    owner: Owner,
    request: ReadRequest<PartnerPath>,
) -> Result<VersionedResponse<OwnerPartnerDetail>> {
    let ResolvedRequest { program, input, .. } = request.require_program(&state, owner.tenant()).await?;
    let view = state.affiliate.context.get_partner_view(program.account, input.id()?).await;
    let view = view.or_problem(&state)?;
    let secret = state.affiliate.partners.postback_secret(&view.partner);
    let detail = OwnerPartnerDetail::from_partner(&view, secret);
    Ok(VersionedResponse::new(&detail).with_etag(view.partner.rev))
}

/// `POST …/partners/{id}/reactivate`.
///
/// # Errors
/// The partner does not exist or is not suspended.
pub async fn reactivate(
    state: State,
    owner: Owner,
    request: ActionRequest<PartnerPath>,
) -> Result<VersionedResponse<PartnerResponse>> {
    let ResolvedRequest { program, input, if_match, claim } = request.require_program(&state, owner.tenant()).await?;
    let id = input.id()?;
    let to = PartnerStatusChange { action: PartnerAction::Reactivate, seen: if_match, reason: None, send_email: false };
    let service = &state.affiliate;
    let change = |store: ResponseWriter<_>| async move {
        service.partners.change_partner_status(program.account, id, &to, &store).await
    };
    once(&state, owner.tenant(), owner_claim("reactivate_affiliate", claim), partner_response, change).await
}

/// A partner's payout method
#[derive(Debug, RequestObject)]
#[schema(name = "SetAffiliatePayoutMethod", examples = [{"method": "wise", "destination": "ada@example.org"}])]
struct PayoutMethodFields {
    /// The payout method
    method: PayoutMethod,
    /// An email address for `paypal` and `wise`, an `acct_…` id for `stripe`, free text for other methods
    #[field(read = read_destination, schema = bounded_text_schema(0, DESTINATION_BYTES_MAX))]
    destination: String,
}

/// An absent one is empty, which is as invalid.
fn read_destination(fields: &ObjectFields<'_>, notes: &mut FieldDiagnostics) -> Option<String> {
    let Some(value) = fields.value("destination") else { return Some(String::new()) };
    fields::parse_multiline_text(value, DESTINATION_BYTES_MAX)
        .map_err(|text| notes.errors.add("destination", text))
        .ok()
}

/// Body of `PUT …/partners/{id}/payout-method`.
#[derive(Debug)]
pub struct SetPayoutMethod(PayoutDestination);

impl FromRequest for SetPayoutMethod {
    const BODY_BYTES_MAX: Option<usize> = Some(SMALL_BYTES_MAX);
    const BODY: Option<BodySchema> = Some(PayoutMethodFields::schema);

    fn read(call: &Request) -> Result<Self> {
        let PayoutMethodFields { method, destination } = read_body(call)?;
        let payout = PayoutDestination::new(method, &destination);
        payout.map(Self).map_err(|reason| Problem::field("destination", reason))
    }
}

/// `PUT …/partners/{id}/payout-method`.
pub async fn set_payout_method(
    state: State,
    owner: Owner,
    request: UpdateRequest<(PartnerPath, SetPayoutMethod)>,
) -> Result<VersionedResponse<PartnerResponse>> {
    let opened = request.require_program(&state, owner.tenant()).await?;
    let ResolvedRequest { program, input: (target, SetPayoutMethod(payout)), if_match, .. } = opened;
    let id = target.id()?;
    let view = state
        .affiliate
        .partners
        .set_payout_destination(program.account, id, &payout, if_match.as_ref(), &no_extension)
        .await;
    view.map(|view| partner_response(&view)).or_problem(&state)
}
