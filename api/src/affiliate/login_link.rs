//! `POST /affiliates/{id}/login-link`: a program's own server has a partner signed in to the portal. The link is made on
//! demand, works once and for a minute, and is neither mailed nor kept: so it comes under no idempotency key either.

use std::sync::Arc;

use ::affiliate::object::Moment;
use ::affiliate::refusal::Noun;
use serde::Serialize;
use serde_json::Value;
use store::access::Tenant;

use super::asked::Read;
use super::{OfPartner, refused};
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

/// `POST /affiliates/{id}/login-link`.
///
/// # Errors
/// No such partner; it was rejected.
pub async fn create(room: Arc<Room>, tenant: Tenant, asked: Read<OfPartner>) -> Result<LoginLink, Problem> {
    let id = asked.open(&room, &tenant).await?.said.id(Noun::Partner)?;
    let minted = room.affiliate.mint_login_link(tenant.account().id, id).await;
    let minted = minted.map_err(|refusal| refused(&room, refusal))?;
    Ok(LoginLink { object: "affiliate_login_link", url: minted.url, expires_at: Moment(minted.expires_at) })
}
