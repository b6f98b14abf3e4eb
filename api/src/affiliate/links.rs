//! `…/affiliates/{id}/links`: a partner's links.

use ::affiliate::api_objects::LinkObject;
use ::affiliate::partners::links::LinkDraft;
use model::affiliate::partner::{Partner, PartnerLink, PartnerLinkToken};
use model::affiliate::program::AffiliateProgram;
use model::idempotency::IdempotencyScope;
use net::http_client::URL_BYTES_MAX;

use super::fields::ClearableLine;
use super::partners::LinkTokenText;
use super::path::{PartnerLinkPath, PartnerPath};
use super::request::{CreateRequest, ReadRequest, ResolvedRequest, UpdateRequest};
use super::response::{ResponseWriter, VersionedResponse, once};
use super::view::{CreatedResponse, ListResponse, PartnerLinkResponse};
use crate::prelude::*;

const LABEL_BYTES_MAX: usize = 200;

/// `GET /affiliates/{id}/links`.
pub async fn list(
    state: State,
    tenant: Tenant,
    request: ReadRequest<(PartnerPath, PageParameters)>,
) -> Result<ListResponse<LinkObject>> {
    let ResolvedRequest { input: (target, page), .. } = request.require_set_up_program(&state, &tenant).await?;
    let view = state.affiliate.context.get_partner_view(tenant.account().id, target.id()?).await;
    let view = view.or_problem(&state)?;
    let (links, next) = page.paginate(view.links)?;
    let object = |link: &PartnerLink| LinkObject::of(link, &view.partner, &view.program);
    Ok(ListResponse::new(links.iter().map(object).collect(), next))
}

/// A new link
#[derive(Debug, RequestObject)]
#[schema(name = "CreateAffiliateLink", examples = [{
    "token": "ada-podcast", "destination_url": "/pricing", "label": "Podcast",
}], body_bytes_max = SMALL_BYTES_MAX)]
pub struct LinkFields {
    /// The token of the link; it is not changed
    #[field(reader = LinkTokenText)]
    token: PartnerLinkToken,
    /// The destination: a path or a URL on the website
    #[field(reader = ClearableLine<URL_BYTES_MAX>, null = None)]
    destination_url: Option<Option<String>>,
    /// A label for your own use
    #[field(reader = ClearableLine<LABEL_BYTES_MAX>, null = None)]
    label: Option<Option<String>>,
}

fn created_link_response(
    (link, partner, program): &(PartnerLink, Partner, AffiliateProgram),
) -> VersionedResponse<CreatedResponse<PartnerLinkResponse>> {
    VersionedResponse::new(&PartnerLinkResponse { link: LinkObject::of(link, partner, program) })
}

/// `POST /affiliates/{id}/links`.
///
/// # Errors
/// The input is invalid, the partner does not exist or has reached its link limit, or the token is in use.
pub async fn create(
    state: State,
    tenant: Tenant,
    request: CreateRequest<(PartnerPath, LinkFields)>,
) -> Result<VersionedResponse<CreatedResponse<PartnerLinkResponse>>> {
    let ResolvedRequest { input: (target, fields), claim, .. } =
        request.require_set_up_program(&state, &tenant).await?;
    let LinkFields { token, destination_url, label } = fields;
    let draft = LinkDraft { token, destination_url: destination_url.flatten(), label: label.flatten() };
    let id = target.id()?;
    let service = &state.affiliate;
    let account = tenant.account().id;
    let change =
        |store: ResponseWriter<_>| async move { service.context.create_link(account, id, &draft, &store).await };
    once(&state, &tenant, (IdempotencyScope::CreateLink, claim), created_link_response, change).await
}

/// `DELETE /affiliates/{id}/links/{link_id}`.
///
/// # Errors
/// The partner or link does not exist, or the link is the primary one.
pub async fn delete(
    state: State,
    tenant: Tenant,
    request: UpdateRequest<(PartnerPath, PartnerLinkPath)>,
) -> Result<OkResponse> {
    let ResolvedRequest { input: (target, link), if_match, .. } =
        request.require_set_up_program(&state, &tenant).await?;
    let id = target.id()?;
    let deleted = state.affiliate.context.delete_link(tenant.account().id, id, link.id()?, if_match.as_ref()).await;
    deleted.map(|()| OkResponse::OK).or_problem(&state)
}
