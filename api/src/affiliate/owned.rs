//! Partners as their program's owner sees and settles them.

use std::sync::Arc;

use ::affiliate::office::nothing_beside;
use ::affiliate::partners::{Moving, Shown};
use ::affiliate::refusal::Noun;
use mail::affiliate::particulars::DESTINATION_BYTES_MAX;
use mail::affiliate::partner::{Move, PayoutDestination};
use mail::affiliate::program::PayoutMethod;
use serde_json::json;

use super::answer::{Begun, One, begin_own};
use super::asked::{Act, Change, Opened, Read};
use super::fields::{Fields, text_schema, word};
use super::view::{OnePartner, Override, PartnerInside};
use super::{OfPartner, refused};
use crate::call::{Call, Input, Owner, SMALL_BYTES_MAX, Takes};
use crate::fields::Names;
use crate::problem::Problem;
use crate::room::Room;
use crate::schema::{self, Schemas};

fn one(shown: &Shown) -> One<OnePartner> {
    One::of(&OnePartner::of(shown)).at(shown.partner.rev)
}

/// `GET …/partners/{id}`.
///
/// # Errors
/// No such partner; the store cannot be read.
pub async fn show(
    room: Arc<Room>,
    owner: Owner,
    asked: Read<OfPartner>,
) -> Result<One<PartnerInside>, Problem> {
    let Opened { program, said, .. } = asked.open_any(&room, owner.tenant()).await?;
    let shown = room.affiliate.show_partner(program.account, said.id(Noun::Partner)?).await;
    let shown = shown.map_err(|refusal| refused(&room, refusal))?;
    let partner = &shown.partner;
    let inside = PartnerInside {
        affiliate: shown.object(),
        notes: partner.notes.clone(),
        payout_destination: partner.payout.as_ref().map(|payout| payout.destination.clone()),
        postback_url: partner.postback_url.clone(),
        postback_secret: room.affiliate.postback_secret(partner),
        email_opt_out: partner.email_opt_out,
        commission_override: partner
            .commission_override
            .map(|rate| Override { commission_type: "percent", commission_bps: rate.get() }),
    };
    Ok(One::of(&inside).at(partner.rev))
}

/// `POST …/partners/{id}/reactivate`.
///
/// # Errors
/// No such partner, or one who is not suspended.
pub async fn reactivate(
    room: Arc<Room>,
    owner: Owner,
    asked: Act<OfPartner>,
) -> Result<One<OnePartner>, Problem> {
    let Opened { program, said, seen, claim } = asked.open_any(&room, owner.tenant()).await?;
    let of = (program.account, said.id(Noun::Partner)?);
    let doing = match begin_own(&room, &owner, "reactivate_affiliate", claim).await? {
        Begun::Done(answer) => return Ok(answer),
        Begun::Go(doing) => doing,
    };
    let moving = Moving { action: Move::Reactivate, seen, reason: None, send_email: false };
    let keep = doing.keeper(one);
    let shown = room.affiliate.move_partner(of, &moving, &keep).await;
    drop(keep);
    doing.end(&room, shown, one).await
}

/// What `PUT …/partners/{id}/payout-method` takes.
#[derive(Debug)]
pub struct SetPayout(OfPartner, PayoutDestination);

impl Input for SetPayout {
    const BODY_BYTES_MAX: Option<usize> = Some(SMALL_BYTES_MAX);

    fn describe(schemas: &mut Schemas) -> Takes {
        let body = schemas.named("SetAffiliatePayoutMethod", |_| {
            let about = "An address for `paypal` and `wise`, an `acct_…` for `stripe`, else words";
            let fields = [
                ("method", schema::words(PayoutMethod::WORDS, "How it is paid")),
                ("destination", text_schema(DESTINATION_BYTES_MAX, about)),
            ];
            let mut schema =
                schema::object_with("Where a partner's money goes", &["method", "destination"], fields);
            schema["examples"] = json!([{"method": "wise", "destination": "ada@example.org"}]);
            schema
        });
        let parameters = vec![OfPartner::parameter()];
        Takes { parameters, body: Some(body), body_bytes_max: Self::BODY_BYTES_MAX }
    }

    fn read(call: &Call) -> Result<Self, Problem> {
        const NAMES: Names = names!("method", "destination");
        let mut given = Fields::of(call, &NAMES)?;
        given.need("method");
        let read = |value: &_| word(PayoutMethod::WORDS, PayoutMethod::of_word, value);
        let method = given.take("method", read);
        let destination =
            given.take("destination", |value| super::fields::lines(value, DESTINATION_BYTES_MAX));
        let payout = method.map(|method| PayoutDestination::new(method, &destination.unwrap_or_default()));
        let payout = payout.and_then(|payout| payout.map_err(|why| given.wrong("destination", why)).ok());
        given.end()?;
        let payout = payout.ok_or_else(|| Problem::field("method", "is required"))?;
        Ok(Self(OfPartner::of(call), payout))
    }
}

/// `PUT …/partners/{id}/payout-method`.
///
/// # Errors
/// What is wrong with it; no such partner.
pub async fn set_payout(
    room: Arc<Room>,
    owner: Owner,
    asked: Change<SetPayout>,
) -> Result<One<OnePartner>, Problem> {
    let opened = asked.open_any(&room, owner.tenant()).await?;
    let Opened { program, said: SetPayout(of, payout), seen, .. } = opened;
    let of = (program.account, of.id(Noun::Partner)?);
    let shown = room.affiliate.set_payout(of, (&payout, seen.as_ref()), &nothing_beside).await;
    shown.map(|shown| one(&shown)).map_err(|refusal| refused(&room, refusal))
}
