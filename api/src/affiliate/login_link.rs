//! `POST /affiliates/{id}/login-link`: a program's own server has a partner signed in to the portal. The link is made on
//! demand, works once and for a minute, and is not mailed. Under an idempotency key it is kept sealed, and so the same link
//! for who asks once more.

use std::sync::Arc;

use ::affiliate::object::Moment;
use ::affiliate::portal::entrance::Minted;
use ::affiliate::refusal::Noun;
use mail::idempotency::{Operation, Outcome};
use serde::Serialize;
use serde_json::Value;
use store::access::Tenant;
use store::engine::Batch;

use super::answer::{One, Shape};
use super::asked::{Make, Opened};
use super::fields::Fields;
use super::{OfPartner, refused};
use crate::call::{Call, Input, Media, SMALL_BYTES_MAX, Takes};
use crate::fields::Names;
use crate::idempotency::{self, Turn};
use crate::problem::Problem;
use crate::room::Room;
use crate::schema::{self, Describe, Schemas};

/// A link that signs a partner in.
#[derive(Debug, Serialize)]
pub struct LoginLink {
    object: &'static str,
    url: String,
    expires_at: Moment,
}

impl Describe for LoginLink {
    fn schema(schemas: &mut Schemas) -> Value {
        schemas.named("AffiliateLoginLink", |_| {
            schema::object(
                "A link that signs a partner in to the portal; send its browser there at once",
                [
                    ("object", schema::words(&["affiliate_login_link"], "What it is")),
                    ("url", schema::string("Where the browser is sent; it works once")),
                    ("expires_at", schema::time("Until when it works: a minute")),
                ],
            )
        })
    }
}

impl Shape for LoginLink {}

fn one(minted: &Minted) -> One<LoginLink> {
    let expires_at = Moment(minted.expires_at);
    One::of(&LoginLink { object: "affiliate_login_link", url: minted.url.clone(), expires_at })
}

/// What `POST /affiliates/{id}/login-link` takes: of whom, and nothing else.
#[derive(Debug)]
pub struct Mint(OfPartner);

impl Input for Mint {
    const BODY_BYTES_MAX: Option<usize> = Some(SMALL_BYTES_MAX);
    const MEDIA: Media = Media::JsonOrNothing;

    fn describe(schemas: &mut Schemas) -> Takes {
        let body = schemas.named("MintAffiliateLoginLink", |_| {
            schema::object_with("Nothing has to be said", &[], Vec::<(&str, Value)>::new())
        });
        let parameters = vec![OfPartner::parameter()];
        Takes { parameters, body: Some(body), body_bytes_max: Self::BODY_BYTES_MAX }
    }

    fn read(call: &Call) -> Result<Self, Problem> {
        const NAMES: Names = names!();
        Fields::of_any(call, &NAMES)?.end()?;
        Ok(Self(OfPartner::of(call)))
    }
}

/// `POST /affiliates/{id}/login-link`.
///
/// # Errors
/// No such partner; it was rejected.
pub async fn create(room: Arc<Room>, tenant: Tenant, asked: Make<Mint>) -> Result<One<LoginLink>, Problem> {
    let Opened { said: Mint(of), claim, .. } = asked.open(&room, &tenant).await?;
    let of = (tenant.account().id, of.id(Noun::Partner)?);
    let again = async |sealed: &str| {
        let minted = room.affiliate.open_minted(of.1, sealed).await;
        Ok::<_, Problem>(one(&minted.map_err(|refusal| refused(&room, refusal))?).replayed())
    };
    let slot = match idempotency::look(&room, &tenant, Operation::MintLoginLink, claim).await? {
        Turn::Done(sealed) => return again(&String::from_utf8_lossy(&sealed)).await,
        Turn::Go(slot) => slot,
    };
    let now = room.hall.clock().now();
    let keep = |batch: &mut Batch, minted: &Minted| {
        let Some(slot) = &slot else { return };
        match room.affiliate.seal_minted(of.1, minted) {
            Ok(sealed) => slot.keep(batch, Outcome::Done(sealed), now),
            Err(refusal) => tracing::warn!(%refusal, "a link is not kept for who asks once more"),
        }
    };
    let refusal = match room.affiliate.mint_login_link(of, &keep).await {
        Ok(minted) => return Ok(one(&minted)),
        Err(refusal) => refusal,
    };
    // Another node was quicker with the same key.
    if let Some(slot) = &slot
        && let Some(sealed) = slot.meanwhile(room.hall.store()).await?
    {
        return again(&sealed).await;
    }
    Err(refused(&room, refusal))
}
