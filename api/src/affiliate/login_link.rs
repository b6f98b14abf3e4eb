//! `POST /affiliates/{id}/login-link`: creates a link that signs a partner in to the portal, for the program's own
//! server. The link is not emailed, works once and expires after a minute. With an idempotency key the link is stored
//! encrypted, and a repeated request receives the same link.

use ::affiliate::api_objects::ApiTimestamp;
use ::affiliate::portal::login::NewLink;
use model::idempotency::{IdempotencyScope, IdempotentResult};

use super::path::PartnerPath;
use super::request::{CreateRequest, ResolvedRequest};
use super::response::VersionedResponse;
use crate::idempotency::{self, RequestDecision};
use crate::prelude::*;

/// A link that signs a partner in to the portal; redirect the partner's browser to it at once
#[derive(Debug, Serialize, ToSchema)]
#[schema(name = "AffiliateLoginLink")]
pub struct LoginLink {
    /// The object type
    #[schema(enum = ["affiliate_login_link"])]
    object: &'static str,
    /// The URL to redirect the browser to; it works once
    url: String,
    /// When the link expires: one minute after its creation
    expires_at: ApiTimestamp,
}

fn login_link_response(link: &NewLink) -> VersionedResponse<LoginLink> {
    let expires_at = ApiTimestamp(link.expires_at);
    VersionedResponse::new(&LoginLink { object: "affiliate_login_link", url: link.url.clone(), expires_at })
}

/// No fields are required
#[derive(Debug, RequestObject)]
#[schema(name = "MintAffiliateLoginLink", body_bytes_max = SMALL_BYTES_MAX, optional_body)]
pub struct LoginLinkFields {}

/// `POST /affiliates/{id}/login-link`.
///
/// # Errors
/// The partner does not exist or was rejected.
pub async fn create(
    state: State,
    tenant: Tenant,
    request: CreateRequest<(PartnerPath, LoginLinkFields)>,
) -> Result<VersionedResponse<LoginLink>> {
    let ResolvedRequest { input: (target, LoginLinkFields {}), claim, .. } =
        request.require_set_up_program(&state, &tenant).await?;
    let (account, partner) = (tenant.account().id, target.id()?);
    let again = async |sealed: &str| {
        let link = state.affiliate.partners.open_login_link(partner, sealed).await;
        Ok::<_, Problem>(login_link_response(&link.or_problem(&state)?).as_replayed())
    };
    let guard = match idempotency::begin(&state, &tenant, IdempotencyScope::MintLoginLink, claim).await? {
        RequestDecision::Replay(sealed) => return again(&String::from_utf8_lossy(&sealed)).await,
        RequestDecision::Proceed(guard) => guard,
    };
    let now = state.services.clock.now();
    let store_response = |batch: &mut Batch, link: &NewLink| {
        let Some(guard) = &guard else { return };
        match state.affiliate.partners.seal_login_link(partner, link) {
            Ok(sealed) => guard.record_outcome(batch, IdempotentResult::Done(sealed), now),
            Err(refusal) => {
                tracing::warn!(%refusal, "cannot encrypt the login link: a repeated request will create a new one")
            }
        }
    };
    let refusal = match state.affiliate.hosts.create_login_link(account, partner, &store_response).await {
        Ok(link) => return Ok(login_link_response(&link)),
        Err(refusal) => refusal,
    };
    // Another node may have completed the same key first: replay its link.
    if let Some(guard) = &guard
        && let Some(sealed) = guard.concurrent_result(&state.services.store).await?
    {
        return again(&sealed).await;
    }
    Err(refusal.into_problem(&state))
}
