//! `…/affiliate-campaigns`: campaigns, the commission terms of partners.

pub mod request;

use ::affiliate::api_objects::CampaignObject;
use model::affiliate::campaign::Campaign;
use model::affiliate::program::AffiliateProgram;
use model::idempotency::IdempotencyScope;

use self::request::{CreateCampaign, SetDefaultCampaign, UpdateCampaign};
use super::path::CampaignPath;
use super::request::{CreateRequest, ReadRequest, ResolvedRequest, UpdateRequest};
use super::response::{ResponseWriter, VersionedResponse, once};
use super::view::{CampaignResponse, CreatedResponse, ListResponse};
use crate::prelude::*;

fn campaign_response((campaign, program): &(Campaign, AffiliateProgram)) -> VersionedResponse<CampaignResponse> {
    VersionedResponse::new(&CampaignResponse { campaign: CampaignObject::of(campaign, program, None) })
        .with_etag(campaign.rev)
}

fn created_campaign_response(
    (campaign, program): &(Campaign, AffiliateProgram),
) -> VersionedResponse<CreatedResponse<CampaignResponse>> {
    VersionedResponse::new(&CampaignResponse { campaign: CampaignObject::of(campaign, program, None) })
        .with_etag(campaign.rev)
}

/// Query of `GET /affiliate-campaigns`.
#[derive(Debug, Clone, Copy)]
pub struct ListCampaigns {
    with_archived: bool,
}

impl RequestQuery for ListCampaigns {
    fn read_query(query: &mut Query) -> Result<Self> {
        Ok(Self { with_archived: query.flag("include_archived", "Whether to include archived campaigns")? })
    }
}

/// `GET /affiliate-campaigns`.
pub async fn list(
    state: State,
    tenant: Tenant,
    request: ReadRequest<ListCampaigns>,
) -> Result<ListResponse<CampaignObject>> {
    let ResolvedRequest { program, input, .. } = request.require_set_up_program(&state, &tenant).await?;
    let found = state.affiliate.context.list_campaigns(program.account).await;
    let mut campaigns = Vec::new();
    for campaign in found.or_problem(&state)? {
        if campaign.archived_at.is_some() && !input.with_archived {
            continue;
        }
        let partners = state.affiliate.context.count_partners(&campaign).await.or_problem(&state)?;
        campaigns.push(CampaignObject::of(&campaign, &program, Some(partners)));
    }
    Ok(ListResponse::new(campaigns, None))
}

/// `GET /affiliate-campaigns/{id}`.
pub async fn get(
    state: State,
    tenant: Tenant,
    request: ReadRequest<CampaignPath>,
) -> Result<VersionedResponse<CampaignResponse>> {
    let ResolvedRequest { program, input, .. } = request.require_set_up_program(&state, &tenant).await?;
    let found = state.affiliate.context.get_campaign(program.account, input.id()?).await;
    found.map(|campaign| campaign_response(&(campaign, program))).or_problem(&state)
}

/// `POST /affiliate-campaigns`.
///
/// # Errors
/// The input is invalid, another campaign has the name, or the plan's campaign limit is reached.
pub async fn create(
    state: State,
    tenant: Tenant,
    request: CreateRequest<CreateCampaign>,
) -> Result<VersionedResponse<CreatedResponse<CampaignResponse>>> {
    let ResolvedRequest { input, claim, .. } = request.require_set_up_program(&state, &tenant).await?;
    let service = &state.affiliate;
    let account = tenant.account().id;
    let change =
        |store: ResponseWriter<_>| async move { service.context.create_campaign(account, input.0, &store).await };
    once(&state, &tenant, (IdempotencyScope::CreateCampaign, claim), created_campaign_response, change).await
}

/// `PATCH /affiliate-campaigns/{id}`.
///
/// # Errors
/// The input is invalid, the campaign does not exist, it was changed concurrently, or the default would be archived.
pub async fn update(
    state: State,
    tenant: Tenant,
    request: UpdateRequest<(CampaignPath, UpdateCampaign)>,
) -> Result<VersionedResponse<CampaignResponse>> {
    let ResolvedRequest { input: (target, UpdateCampaign(fields)), if_match, .. } =
        request.require_set_up_program(&state, &tenant).await?;
    let (account, id) = (tenant.account().id, target.id()?);
    let changed = state
        .affiliate
        .context
        .change_campaign(account, id, if_match.as_ref(), &|before| fields.update_draft(before))
        .await;
    changed.map(|changed| campaign_response(&changed)).or_problem(&state)
}

/// `PUT …/campaigns/default`.
///
/// # Errors
/// The input is invalid, there is no program, or another campaign has the name.
pub async fn set_default(
    state: State,
    owner: Owner,
    request: UpdateRequest<SetDefaultCampaign>,
) -> Result<VersionedResponse<CampaignResponse>> {
    let ResolvedRequest { program, input: SetDefaultCampaign(fields), if_match, .. } =
        request.require_program(&state, owner.tenant()).await?;
    let new: &::affiliate::program::campaigns::NewCampaign<'_> = &|| fields.create_draft("Default");
    let change: ::affiliate::program::campaigns::CampaignChange<'_> = &|before| fields.update_draft(before);
    let set = state.affiliate.context.set_default_campaign(program.account, if_match.as_ref(), new, change).await;
    set.map(|set| campaign_response(&set)).or_problem(&state)
}
