//! Partners as their program's owner sees and settles them.

use std::sync::Arc;

use ::affiliate::office::no_extension;
use ::affiliate::partners::{PartnerStatusChange, PartnerView};
use ::affiliate::refusal::AffiliateNoun;
use mail::affiliate::particulars::DESTINATION_BYTES_MAX;
use mail::affiliate::partner::{PartnerAction, PayoutDestination};
use mail::affiliate::program::PayoutMethod;
use serde_json::json;

use super::answer::{BeginDecision, VersionedResponse, begin_for_owner};
use super::asked::{ActionRequest, ReadRequest, ResolvedRequest, UpdateRequest};
use super::fields::{BodyFieldReader, parse_word, text_schema};
use super::view::{CommissionOverride, OwnerPartnerDetail, PartnerResponse};
use super::{PartnerPath, refusal_problem};
use crate::call::{FromRequest, Owner, Request, RequestSpec, SMALL_BYTES_MAX};
use crate::fields::FieldNames;
use crate::problem::Problem;
use crate::room::AppState;
use crate::schema::{self, Schemas};

fn partner_response(shown: &PartnerView) -> VersionedResponse<PartnerResponse> {
    VersionedResponse::new(&PartnerResponse::from_partner(shown)).with_etag(shown.partner.rev)
}

/// `GET …/partners/{id}`.
///
/// # Errors
/// No such partner; the store cannot be read.
pub async fn get(
    room: Arc<AppState>,
    owner: Owner,
    asked: ReadRequest<PartnerPath>,
) -> Result<VersionedResponse<OwnerPartnerDetail>, Problem> {
    let ResolvedRequest { program, input: said, .. } = asked.require_program(&room, owner.tenant()).await?;
    let shown = room.affiliate.get_partner_view(program.account, said.id(AffiliateNoun::Partner)?).await;
    let shown = shown.map_err(|refusal| refusal_problem(&room, refusal))?;
    let partner = &shown.partner;
    let inside = OwnerPartnerDetail {
        affiliate: shown.object(),
        notes: partner.notes.clone(),
        payout_destination: partner.payout.as_ref().map(|payout| payout.destination.clone()),
        postback_url: partner.postback_url.clone(),
        postback_secret: room.affiliate.postback_secret(partner),
        email_opt_out: partner.email_opt_out,
        commission_override: partner
            .commission_override
            .map(|rate| CommissionOverride { commission_type: "percent", commission_bps: rate.get() }),
    };
    Ok(VersionedResponse::new(&inside).with_etag(partner.rev))
}

/// `POST …/partners/{id}/reactivate`.
///
/// # Errors
/// No such partner, or one who is not suspended.
pub async fn reactivate(
    room: Arc<AppState>,
    owner: Owner,
    asked: ActionRequest<PartnerPath>,
) -> Result<VersionedResponse<PartnerResponse>, Problem> {
    let ResolvedRequest { program, input: said, if_match: seen, claim } =
        asked.require_program(&room, owner.tenant()).await?;
    let of = (program.account, said.id(AffiliateNoun::Partner)?);
    let doing = match begin_for_owner(&room, &owner, "reactivate_affiliate", claim).await? {
        BeginDecision::Replay(answer) => return Ok(answer),
        BeginDecision::Proceed(doing) => doing,
    };
    let moving = PartnerStatusChange { action: PartnerAction::Reactivate, seen, reason: None, send_email: false };
    let keep = doing.response_writer(partner_response);
    let shown = room.affiliate.change_partner_status(of, &moving, &keep).await;
    drop(keep);
    doing.finish(&room, shown, partner_response).await
}

/// What `PUT …/partners/{id}/payout-method` takes.
#[derive(Debug)]
pub struct SetPayoutMethod(PartnerPath, PayoutDestination);

impl FromRequest for SetPayoutMethod {
    const BODY_BYTES_MAX: Option<usize> = Some(SMALL_BYTES_MAX);

    fn describe(schemas: &mut Schemas) -> RequestSpec {
        let body = schemas.component("SetAffiliatePayoutMethod", |_| {
            let about = "An address for `paypal` and `wise`, an `acct_…` for `stripe`, else words";
            let fields = [
                ("method", schema::string_enum(PayoutMethod::WORDS, "How it is paid")),
                ("destination", text_schema(DESTINATION_BYTES_MAX, about)),
            ];
            let mut schema = schema::object_with("Where a partner's money goes", &["method", "destination"], fields);
            schema["examples"] = json!([{"method": "wise", "destination": "ada@example.org"}]);
            schema
        });
        let parameters = vec![PartnerPath::parameter()];
        RequestSpec { parameters, body: Some(body), body_bytes_max: Self::BODY_BYTES_MAX }
    }

    fn read(call: &Request) -> Result<Self, Problem> {
        const NAMES: FieldNames = names!("method", "destination");
        let mut given = BodyFieldReader::from_body(call, &NAMES)?;
        given.require("method");
        let read = |value: &_| parse_word(PayoutMethod::WORDS, PayoutMethod::from_word, value);
        let method = given.read_optional("method", read);
        let destination = given
            .read_optional("destination", |value| super::fields::parse_multiline_text(value, DESTINATION_BYTES_MAX));
        let payout = method.map(|method| PayoutDestination::new(method, &destination.unwrap_or_default()));
        let payout = payout.and_then(|payout| payout.map_err(|why| given.add_error("destination", why)).ok());
        given.finish()?;
        let payout = payout.ok_or_else(|| Problem::field("method", "is required"))?;
        Ok(Self(PartnerPath::of(call), payout))
    }
}

/// `PUT …/partners/{id}/payout-method`.
///
/// # Errors
/// What is wrong with it; no such partner.
pub async fn set_payout_method(
    room: Arc<AppState>,
    owner: Owner,
    asked: UpdateRequest<SetPayoutMethod>,
) -> Result<VersionedResponse<PartnerResponse>, Problem> {
    let opened = asked.require_program(&room, owner.tenant()).await?;
    let ResolvedRequest { program, input: SetPayoutMethod(of, payout), if_match: seen, .. } = opened;
    let of = (program.account, of.id(AffiliateNoun::Partner)?);
    let shown = room.affiliate.set_payout_destination(of, (&payout, seen.as_ref()), &no_extension).await;
    shown.map(|shown| partner_response(&shown)).map_err(|refusal| refusal_problem(&room, refusal))
}
