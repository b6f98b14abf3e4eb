//! `…/affiliate-campaigns`: what partners earn by.

pub mod request;

use std::sync::Arc;

use ::affiliate::object::CampaignObject;
use ::affiliate::refusal::AffiliateNoun;
use mail::affiliate::campaign::Campaign;
use mail::affiliate::program::AffiliateProgram;
use mail::idempotency::IdempotencyScope;
use serde_json::json;
use store::access::Tenant;

use self::request::{CreateCampaign, SetDefaultCampaign, UpdateCampaign};
use super::answer::{BeginDecision, VersionedResponse, begin_for_tenant};
use super::asked::{CreateRequest, ReadRequest, ResolvedRequest, UpdateRequest};
use super::view::{CampaignResponse, CreatedResponse, ListResponse};
use super::{CampaignPath, refusal_problem};
use crate::call::{FromRequest, Owner, Request, RequestSpec};
use crate::page;
use crate::problem::Problem;
use crate::room::AppState;
use crate::schema::{self, Schemas};

fn campaign_response((campaign, program): &(Campaign, AffiliateProgram)) -> VersionedResponse<CampaignResponse> {
    VersionedResponse::new(&CampaignResponse { campaign: CampaignObject::of(campaign, program) })
        .with_etag(campaign.rev)
}

fn created_campaign_response(
    (campaign, program): &(Campaign, AffiliateProgram),
) -> VersionedResponse<CreatedResponse<CampaignResponse>> {
    VersionedResponse::new(&CampaignResponse { campaign: CampaignObject::of(campaign, program) })
        .with_etag(campaign.rev)
}

/// What `GET /affiliate-campaigns` takes.
#[derive(Debug, Clone, Copy)]
pub struct ListCampaigns {
    with_archived: bool,
}

impl FromRequest for ListCampaigns {
    fn describe(_: &mut Schemas) -> RequestSpec {
        let archived = schema::query_parameter(
            "include_archived",
            "Whether archived ones are listed as well; false",
            json!({"type": "boolean", "default": false}),
        );
        RequestSpec { parameters: vec![archived], ..RequestSpec::default() }
    }

    fn read(call: &Request) -> Result<Self, Problem> {
        let given = page::parse_query(&call.query)?;
        Ok(Self { with_archived: page::parse_flag(&given, "include_archived")? })
    }
}

/// `GET /affiliate-campaigns`.
///
/// # Errors
/// The store cannot be read.
pub async fn list(
    room: Arc<AppState>,
    tenant: Tenant,
    asked: ReadRequest<ListCampaigns>,
) -> Result<ListResponse<CampaignObject>, Problem> {
    let ResolvedRequest { program, input: said, .. } = asked.require_set_up_program(&room, &tenant).await?;
    let found = room.affiliate.list_campaigns(program.account).await;
    let mut campaigns = Vec::new();
    for campaign in found.map_err(|refusal| refusal_problem(&room, refusal))? {
        if campaign.archived_at.is_some() && !said.with_archived {
            continue;
        }
        let partners = room.affiliate.count_partners(&campaign).await;
        let partners = partners.map_err(|refusal| refusal_problem(&room, refusal))?;
        campaigns.push(CampaignObject::of(&campaign, &program).with_count(partners));
    }
    Ok(ListResponse::new(campaigns, None))
}

/// `GET /affiliate-campaigns/{id}`.
///
/// # Errors
/// No such campaign; the store cannot be read.
pub async fn get(
    room: Arc<AppState>,
    tenant: Tenant,
    asked: ReadRequest<CampaignPath>,
) -> Result<VersionedResponse<CampaignResponse>, Problem> {
    let ResolvedRequest { program, input: said, .. } = asked.require_set_up_program(&room, &tenant).await?;
    let found = room.affiliate.campaign(program.account, said.id(AffiliateNoun::Campaign)?).await;
    found.map(|campaign| campaign_response(&(campaign, program))).map_err(|refusal| refusal_problem(&room, refusal))
}

/// `POST /affiliate-campaigns`.
///
/// # Errors
/// What is wrong with it; the name is another campaign's; there are as many as there may be.
pub async fn create(
    room: Arc<AppState>,
    tenant: Tenant,
    asked: CreateRequest<CreateCampaign>,
) -> Result<VersionedResponse<CreatedResponse<CampaignResponse>>, Problem> {
    let ResolvedRequest { input: said, claim, .. } = asked.require_set_up_program(&room, &tenant).await?;
    let doing = match begin_for_tenant(&room, &tenant, IdempotencyScope::CreateCampaign, claim).await? {
        BeginDecision::Replay(answer) => return Ok(answer),
        BeginDecision::Proceed(doing) => doing,
    };
    let keep = doing.response_writer(created_campaign_response);
    let done = room.affiliate.create_campaign(tenant.account().id, said.0, &keep).await;
    drop(keep);
    doing.finish(&room, done, created_campaign_response).await
}

/// `PATCH /affiliate-campaigns/{id}`.
///
/// # Errors
/// What is wrong with it; no such campaign; it was changed meanwhile; the default one stays.
pub async fn update(
    room: Arc<AppState>,
    tenant: Tenant,
    asked: UpdateRequest<UpdateCampaign>,
) -> Result<VersionedResponse<CampaignResponse>, Problem> {
    let ResolvedRequest { input: UpdateCampaign(of, fields), if_match: seen, .. } =
        asked.require_set_up_program(&room, &tenant).await?;
    let of = (tenant.account().id, of.id(AffiliateNoun::Campaign)?);
    let changed = room.affiliate.change_campaign(of, seen.as_ref(), &|before| fields.update_draft(before)).await;
    changed.map(|changed| campaign_response(&changed)).map_err(|refusal| refusal_problem(&room, refusal))
}

/// `PUT …/campaigns/default`.
///
/// # Errors
/// What is wrong with it; there is no program; the name is another campaign's.
pub async fn set_default(
    room: Arc<AppState>,
    owner: Owner,
    asked: UpdateRequest<SetDefaultCampaign>,
) -> Result<VersionedResponse<CampaignResponse>, Problem> {
    let ResolvedRequest { program, input: SetDefaultCampaign(fields), if_match: seen, .. } =
        asked.require_program(&room, owner.tenant()).await?;
    let how: (&::affiliate::campaigns::NewCampaign<'_>, ::affiliate::campaigns::CampaignChange<'_>) =
        (&|| fields.create_draft("Default"), &|before| fields.update_draft(before));
    let set = room.affiliate.set_default_campaign(program.account, seen.as_ref(), how).await;
    set.map(|set| campaign_response(&set)).map_err(|refusal| refusal_problem(&room, refusal))
}
