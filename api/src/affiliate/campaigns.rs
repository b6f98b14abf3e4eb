//! `…/affiliate-campaigns`: what partners earn by.

pub mod request;

use std::sync::Arc;

use ::affiliate::object::CampaignObject;
use ::affiliate::refusal::Noun;
use mail::affiliate::campaign::Campaign;
use mail::affiliate::program::Program;
use mail::idempotency::Operation;
use serde_json::json;
use store::access::Tenant;

use self::request::{ChangeCampaign, CreateCampaign, DefaultCampaign};
use super::answer::{Begun, One, begin};
use super::asked::{Change, Make, Opened, Read};
use super::view::{Listed, Made, OneCampaign};
use super::{OfCampaign, refused};
use crate::call::{Call, Input, Owner, Takes};
use crate::page;
use crate::problem::Problem;
use crate::room::Room;
use crate::schema::{self, Schemas};

fn one((campaign, program): &(Campaign, Program)) -> One<OneCampaign> {
    One::of(&OneCampaign { campaign: CampaignObject::of(campaign, program) }).at(campaign.rev)
}

fn made((campaign, program): &(Campaign, Program)) -> One<Made<OneCampaign>> {
    One::of(&OneCampaign { campaign: CampaignObject::of(campaign, program) }).at(campaign.rev)
}

/// What `GET /affiliate-campaigns` takes.
#[derive(Debug, Clone, Copy)]
pub struct ListCampaigns {
    with_archived: bool,
}

impl Input for ListCampaigns {
    fn describe(_: &mut Schemas) -> Takes {
        let archived = schema::query_parameter(
            "include_archived",
            "Whether archived ones are listed as well; false",
            json!({"type": "boolean", "default": false}),
        );
        Takes { parameters: vec![archived], ..Takes::default() }
    }

    fn read(call: &Call) -> Result<Self, Problem> {
        let given = page::parameters(&call.query)?;
        Ok(Self { with_archived: page::flag(&given, "include_archived")? })
    }
}

/// `GET /affiliate-campaigns`.
///
/// # Errors
/// The store cannot be read.
pub async fn list(
    room: Arc<Room>,
    tenant: Tenant,
    asked: Read<ListCampaigns>,
) -> Result<Listed<CampaignObject>, Problem> {
    let Opened { program, said, .. } = asked.open(&room, &tenant).await?;
    let found = room.affiliate.campaigns(program.account).await;
    let mut campaigns = Vec::new();
    for campaign in found.map_err(|refusal| refused(&room, refusal))? {
        if campaign.archived_at.is_some() && !said.with_archived {
            continue;
        }
        let partners = room.affiliate.partners_of(&campaign).await;
        let partners = partners.map_err(|refusal| refused(&room, refusal))?;
        campaigns.push(CampaignObject::of(&campaign, &program).with_count(partners));
    }
    Ok(Listed::of(campaigns, None))
}

/// `GET /affiliate-campaigns/{id}`.
///
/// # Errors
/// No such campaign; the store cannot be read.
pub async fn get(
    room: Arc<Room>,
    tenant: Tenant,
    asked: Read<OfCampaign>,
) -> Result<One<OneCampaign>, Problem> {
    let Opened { program, said, .. } = asked.open(&room, &tenant).await?;
    let found = room.affiliate.campaign(program.account, said.id(Noun::Campaign)?).await;
    found.map(|campaign| one(&(campaign, program))).map_err(|refusal| refused(&room, refusal))
}

/// `POST /affiliate-campaigns`.
///
/// # Errors
/// What is wrong with it; the name is another campaign's; there are as many as there may be.
pub async fn create(
    room: Arc<Room>,
    tenant: Tenant,
    asked: Make<CreateCampaign>,
) -> Result<One<Made<OneCampaign>>, Problem> {
    let Opened { said, claim, .. } = asked.open(&room, &tenant).await?;
    let doing = match begin(&room, &tenant, Operation::CreateCampaign, claim).await? {
        Begun::Done(answer) => return Ok(answer),
        Begun::Go(doing) => doing,
    };
    let keep = doing.keeper(made);
    let done = room.affiliate.create_campaign(tenant.account().id, said.0, &keep).await;
    drop(keep);
    doing.end(&room, done, made).await
}

/// `PATCH /affiliate-campaigns/{id}`.
///
/// # Errors
/// What is wrong with it; no such campaign; it was changed meanwhile; the default one stays.
pub async fn change(
    room: Arc<Room>,
    tenant: Tenant,
    asked: Change<ChangeCampaign>,
) -> Result<One<OneCampaign>, Problem> {
    let Opened { said: ChangeCampaign(of, fields), seen, .. } = asked.open(&room, &tenant).await?;
    let of = (tenant.account().id, of.id(Noun::Campaign)?);
    let changed = room.affiliate.change_campaign(of, seen.as_ref(), &|before| fields.change(before)).await;
    changed.map(|changed| one(&changed)).map_err(|refusal| refused(&room, refusal))
}

/// `PUT …/campaigns/default`.
///
/// # Errors
/// What is wrong with it; there is no program; the name is another campaign's.
pub async fn set_default(
    room: Arc<Room>,
    owner: Owner,
    asked: Change<DefaultCampaign>,
) -> Result<One<OneCampaign>, Problem> {
    let Opened { program, said: DefaultCampaign(fields), seen, .. } =
        asked.open_any(&room, owner.tenant()).await?;
    let how: (&::affiliate::campaigns::NewCampaign<'_>, ::affiliate::campaigns::CampaignChange<'_>) =
        (&|| fields.make("Default"), &|before| fields.change(before));
    let set = room.affiliate.set_default_campaign(program.account, seen.as_ref(), how).await;
    set.map(|set| one(&set)).map_err(|refusal| refused(&room, refusal))
}
