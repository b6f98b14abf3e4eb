//! `…/affiliates/{id}/links`: a partner's links.

use std::sync::Arc;

use ::affiliate::links::LinkDraft;
use ::affiliate::object::LinkObject;
use ::affiliate::refusal::AffiliateNoun;
use mail::affiliate::partner::{Partner, PartnerLink};
use mail::affiliate::program::AffiliateProgram;
use mail::idempotency::IdempotencyScope;
use queue::courier::http::URL_BYTES_MAX;
use serde_json::json;
use store::access::Tenant;

use super::answer::{BeginDecision, VersionedResponse, begin_for_tenant};
use super::asked::{CreateRequest, ReadRequest, ResolvedRequest, UpdateRequest};
use super::fields::{BodyFieldReader, nullable_text_schema};
use super::partners::{parse_token_text, token_schema};
use super::view::{CreatedResponse, ListResponse, PartnerLinkResponse};
use super::{PartnerLinkPath, PartnerPath, refusal_problem};
use crate::call::{FromRequest, Request, RequestSpec, SMALL_BYTES_MAX};
use crate::done::OkResponse;
use crate::fields::{self, FieldNames};
use crate::page::PageParameters;
use crate::problem::Problem;
use crate::room::AppState;
use crate::schema::{self, Schemas};

/// The longest label.
const LABEL_BYTES_MAX: usize = 200;

/// What `GET /affiliates/{id}/links` takes.
#[derive(Debug)]
pub struct ListPartnerLinks(PartnerPath, PageParameters);

impl FromRequest for ListPartnerLinks {
    fn describe(_: &mut Schemas) -> RequestSpec {
        let mut parameters = vec![PartnerPath::parameter()];
        parameters.extend(PageParameters::parameters());
        RequestSpec { parameters, ..RequestSpec::default() }
    }

    fn read(call: &Request) -> Result<Self, Problem> {
        Ok(Self(PartnerPath::of(call), PageParameters::from_query(&call.query)?))
    }
}

/// `GET /affiliates/{id}/links`.
///
/// # Errors
/// No such partner; the cursor is none of this list's; the store cannot be read.
pub async fn list(
    room: Arc<AppState>,
    tenant: Tenant,
    asked: ReadRequest<ListPartnerLinks>,
) -> Result<ListResponse<LinkObject>, Problem> {
    let ResolvedRequest { input: ListPartnerLinks(of, page), .. } =
        asked.require_set_up_program(&room, &tenant).await?;
    let shown = room.affiliate.get_partner_view(tenant.account().id, of.id(AffiliateNoun::Partner)?).await;
    let shown = shown.map_err(|refusal| refusal_problem(&room, refusal))?;
    let (links, next) = page.paginate(shown.links)?;
    let object = |link: &PartnerLink| LinkObject::of(link, &shown.partner, &shown.program);
    Ok(ListResponse::new(links.iter().map(object).collect(), next))
}

/// What `POST /affiliates/{id}/links` takes.
#[derive(Debug)]
pub struct CreatePartnerLink(PartnerPath, LinkDraft);

impl FromRequest for CreatePartnerLink {
    const BODY_BYTES_MAX: Option<usize> = Some(SMALL_BYTES_MAX);

    fn describe(schemas: &mut Schemas) -> RequestSpec {
        let body = schemas.component("CreateAffiliateLink", |_| {
            let fields = [
                ("token", token_schema("Its token, exactly")),
                (
                    "destination_url",
                    nullable_text_schema(URL_BYTES_MAX, "Where it leads: a path or an address on the website"),
                ),
                ("label", nullable_text_schema(LABEL_BYTES_MAX, "What you call it")),
            ];
            let mut schema = schema::object_with("A link to be made", &["token"], fields);
            schema["examples"] = json!([{
                "token": "ada-podcast", "destination_url": "/pricing", "label": "Podcast",
            }]);
            schema
        });
        let parameters = vec![PartnerPath::parameter()];
        RequestSpec { parameters, body: Some(body), body_bytes_max: Self::BODY_BYTES_MAX }
    }

    fn read(call: &Request) -> Result<Self, Problem> {
        const NAMES: FieldNames = names!("token", "destination_url", "label");
        let mut given = BodyFieldReader::from_body(call, &NAMES)?;
        given.require("token");
        let token = given.read_optional("token", |value| parse_token_text(&fields::parse_text(value)?));
        let destination_url = given.read_nullable_text("destination_url", URL_BYTES_MAX).flatten();
        let label = given.read_nullable_text("label", LABEL_BYTES_MAX).flatten();
        given.finish()?;
        let token = token.ok_or_else(|| Problem::field("token", "is required"))?;
        Ok(Self(PartnerPath::of(call), LinkDraft { token, destination_url, label }))
    }
}

fn created_link_response(
    (link, partner, program): &(PartnerLink, Partner, AffiliateProgram),
) -> VersionedResponse<CreatedResponse<PartnerLinkResponse>> {
    VersionedResponse::new(&PartnerLinkResponse { link: LinkObject::of(link, partner, program) })
}

/// `POST /affiliates/{id}/links`.
///
/// # Errors
/// What is wrong with it; no such partner; it has as many as it may have; the token is taken.
pub async fn create(
    room: Arc<AppState>,
    tenant: Tenant,
    asked: CreateRequest<CreatePartnerLink>,
) -> Result<VersionedResponse<CreatedResponse<PartnerLinkResponse>>, Problem> {
    let ResolvedRequest { input: CreatePartnerLink(of, draft), claim, .. } =
        asked.require_set_up_program(&room, &tenant).await?;
    let of = (tenant.account().id, of.id(AffiliateNoun::Partner)?);
    let doing = match begin_for_tenant(&room, &tenant, IdempotencyScope::CreateLink, claim).await? {
        BeginDecision::Replay(answer) => return Ok(answer),
        BeginDecision::Proceed(doing) => doing,
    };
    let keep = doing.response_writer(created_link_response);
    let done = room.affiliate.create_link(of, &draft, &keep).await;
    drop(keep);
    doing.finish(&room, done, created_link_response).await
}

/// `DELETE /affiliates/{id}/links/{link_id}`.
///
/// # Errors
/// No such partner or link; it is the primary one.
pub async fn delete(
    room: Arc<AppState>,
    tenant: Tenant,
    asked: UpdateRequest<PartnerLinkPath>,
) -> Result<OkResponse, Problem> {
    let ResolvedRequest { input: PartnerLinkPath(of, link), if_match: seen, .. } =
        asked.require_set_up_program(&room, &tenant).await?;
    let of = (tenant.account().id, of.id(AffiliateNoun::Partner)?);
    let link = link.ok_or_else(|| Problem::not_found(AffiliateNoun::Link.as_str()))?;
    let deleted = room.affiliate.delete_link(of, link, seen.as_ref()).await;
    deleted.map(|()| OkResponse::OK).map_err(|refusal| refusal_problem(&room, refusal))
}
