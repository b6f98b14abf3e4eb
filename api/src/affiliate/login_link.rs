//! `POST /affiliates/{id}/login-link`: a program's own server has a partner signed in to the portal. The link is made on
//! demand, works once and for a minute, and is not mailed. Under an idempotency key it is kept sealed, and so the same link
//! for who asks once more.

use std::sync::Arc;

use ::affiliate::object::ApiTimestamp;
use ::affiliate::portal::entrance::NewLink;
use ::affiliate::refusal::AffiliateNoun;
use mail::idempotency::{IdempotencyScope, IdempotentResult};
use serde::Serialize;
use serde_json::Value;
use store::access::Tenant;
use store::engine::Batch;

use super::answer::{ResponseObject, VersionedResponse};
use super::asked::{CreateRequest, ResolvedRequest};
use super::fields::BodyFieldReader;
use super::{PartnerPath, refusal_problem};
use crate::call::{FromRequest, Media, Request, RequestSpec, SMALL_BYTES_MAX};
use crate::fields::FieldNames;
use crate::idempotency::{self, RequestDecision};
use crate::problem::Problem;
use crate::room::AppState;
use crate::schema::{self, Schemas, ToSchema};

/// A link that signs a partner in.
#[derive(Debug, Serialize)]
pub struct LoginLink {
    object: &'static str,
    url: String,
    expires_at: ApiTimestamp,
}

impl ToSchema for LoginLink {
    fn schema(schemas: &mut Schemas) -> Value {
        schemas.component("AffiliateLoginLink", |_| {
            schema::object(
                "A link that signs a partner in to the portal; send its browser there at once",
                [
                    ("object", schema::string_enum(&["affiliate_login_link"], "What it is")),
                    ("url", schema::string("Where the browser is sent; it works once")),
                    ("expires_at", schema::time("Until when it works: a minute")),
                ],
            )
        })
    }
}

impl ResponseObject for LoginLink {}

fn login_link_response(minted: &NewLink) -> VersionedResponse<LoginLink> {
    let expires_at = ApiTimestamp(minted.expires_at);
    VersionedResponse::new(&LoginLink { object: "affiliate_login_link", url: minted.url.clone(), expires_at })
}

/// What `POST /affiliates/{id}/login-link` takes: of whom, and nothing else.
#[derive(Debug)]
pub struct CreateLoginLink(PartnerPath);

impl FromRequest for CreateLoginLink {
    const BODY_BYTES_MAX: Option<usize> = Some(SMALL_BYTES_MAX);
    const MEDIA: Media = Media::OptionalJson;

    fn describe(schemas: &mut Schemas) -> RequestSpec {
        let body = schemas.component("MintAffiliateLoginLink", |_| {
            schema::object_with("Nothing has to be said", &[], Vec::<(&str, Value)>::new())
        });
        let parameters = vec![PartnerPath::parameter()];
        RequestSpec { parameters, body: Some(body), body_bytes_max: Self::BODY_BYTES_MAX }
    }

    fn read(call: &Request) -> Result<Self, Problem> {
        const NAMES: FieldNames = names!();
        BodyFieldReader::from_optional_body(call, &NAMES)?.finish()?;
        Ok(Self(PartnerPath::of(call)))
    }
}

/// `POST /affiliates/{id}/login-link`.
///
/// # Errors
/// No such partner; it was rejected.
pub async fn create(
    room: Arc<AppState>,
    tenant: Tenant,
    asked: CreateRequest<CreateLoginLink>,
) -> Result<VersionedResponse<LoginLink>, Problem> {
    let ResolvedRequest { input: CreateLoginLink(of), claim, .. } =
        asked.require_set_up_program(&room, &tenant).await?;
    let of = (tenant.account().id, of.id(AffiliateNoun::Partner)?);
    let again = async |sealed: &str| {
        let minted = room.affiliate.open_login_link(of.1, sealed).await;
        Ok::<_, Problem>(login_link_response(&minted.map_err(|refusal| refusal_problem(&room, refusal))?).as_replayed())
    };
    let slot = match idempotency::begin(&room, &tenant, IdempotencyScope::MintLoginLink, claim).await? {
        RequestDecision::Replay(sealed) => return again(&String::from_utf8_lossy(&sealed)).await,
        RequestDecision::Proceed(slot) => slot,
    };
    let now = room.intake.clock().now();
    let keep = |batch: &mut Batch, minted: &NewLink| {
        let Some(slot) = &slot else { return };
        match room.affiliate.seal_login_link(of.1, minted) {
            Ok(sealed) => slot.record_outcome(batch, IdempotentResult::Done(sealed), now),
            Err(refusal) => tracing::warn!(%refusal, "a link is not kept for who asks once more"),
        }
    };
    let refusal = match room.affiliate.create_login_link(of, &keep).await {
        Ok(minted) => return Ok(login_link_response(&minted)),
        Err(refusal) => refusal,
    };
    // Another node was quicker with the same key.
    if let Some(slot) = &slot
        && let Some(sealed) = slot.concurrent_result(room.intake.store()).await?
    {
        return again(&sealed).await;
    }
    Err(refusal_problem(&room, refusal))
}
