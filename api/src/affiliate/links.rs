//! `…/affiliates/{id}/links`: a partner's links.

use std::sync::Arc;

use ::affiliate::links::LinkDraft;
use ::affiliate::object::LinkObject;
use ::affiliate::refusal::Noun;
use mail::affiliate::partner::{Partner, PartnerLink};
use mail::affiliate::program::Program;
use mail::idempotency::Operation;
use queue::courier::http::URL_BYTES_MAX;
use serde_json::json;
use store::access::Tenant;

use super::answer::{Begun, One, begin};
use super::asked::{Change, Make, Opened, Read};
use super::fields::{Fields, nullable_text_schema};
use super::partners::{parsed_token, token_schema};
use super::view::{Listed, Made, OneLink};
use super::{OfLink, OfPartner, refused};
use crate::call::{Call, Input, SMALL_BYTES_MAX, Takes};
use crate::done::Done;
use crate::fields::{self, Names};
use crate::page::Page;
use crate::problem::Problem;
use crate::room::Room;
use crate::schema::{self, Schemas};

/// The longest label.
const LABEL_BYTES_MAX: usize = 200;

/// What `GET /affiliates/{id}/links` takes.
#[derive(Debug)]
pub struct ListLinks(OfPartner, Page);

impl Input for ListLinks {
    fn describe(_: &mut Schemas) -> Takes {
        let mut parameters = vec![OfPartner::parameter()];
        parameters.extend(Page::parameters());
        Takes { parameters, ..Takes::default() }
    }

    fn read(call: &Call) -> Result<Self, Problem> {
        Ok(Self(OfPartner::of(call), Page::read(&call.query)?))
    }
}

/// `GET /affiliates/{id}/links`.
///
/// # Errors
/// No such partner; the cursor is none of this list's; the store cannot be read.
pub async fn list(
    room: Arc<Room>,
    tenant: Tenant,
    asked: Read<ListLinks>,
) -> Result<Listed<LinkObject>, Problem> {
    let Opened { said: ListLinks(of, page), .. } = asked.open(&room, &tenant).await?;
    let shown = room.affiliate.show_partner(tenant.account().id, of.id(Noun::Partner)?).await;
    let shown = shown.map_err(|refusal| refused(&room, refusal))?;
    let (links, next) = page.of(shown.links)?;
    let object = |link: &PartnerLink| LinkObject::of(link, &shown.partner, &shown.program);
    Ok(Listed::of(links.iter().map(object).collect(), next))
}

/// What `POST /affiliates/{id}/links` takes.
#[derive(Debug)]
pub struct CreateLink(OfPartner, LinkDraft);

impl Input for CreateLink {
    const BODY_BYTES_MAX: Option<usize> = Some(SMALL_BYTES_MAX);

    fn describe(schemas: &mut Schemas) -> Takes {
        let body = schemas.named("CreateAffiliateLink", |_| {
            let fields = [
                ("token", token_schema("Its token, exactly")),
                (
                    "destination_url",
                    nullable_text_schema(
                        URL_BYTES_MAX,
                        "Where it leads: a path or an address on the website",
                    ),
                ),
                ("label", nullable_text_schema(LABEL_BYTES_MAX, "What you call it")),
            ];
            let mut schema = schema::object_with("A link to be made", &["token"], fields);
            schema["examples"] = json!([{
                "token": "ada-podcast", "destination_url": "/pricing", "label": "Podcast",
            }]);
            schema
        });
        let parameters = vec![OfPartner::parameter()];
        Takes { parameters, body: Some(body), body_bytes_max: Self::BODY_BYTES_MAX }
    }

    fn read(call: &Call) -> Result<Self, Problem> {
        const NAMES: Names = names!("token", "destination_url", "label");
        let mut given = Fields::of(call, &NAMES)?;
        given.need("token");
        let token = given.take("token", |value| parsed_token(&fields::text(value)?));
        let destination_url = given.words("destination_url", URL_BYTES_MAX).flatten();
        let label = given.words("label", LABEL_BYTES_MAX).flatten();
        given.end()?;
        let token = token.ok_or_else(|| Problem::field("token", "is required"))?;
        Ok(Self(OfPartner::of(call), LinkDraft { token, destination_url, label }))
    }
}

fn made((link, partner, program): &(PartnerLink, Partner, Program)) -> One<Made<OneLink>> {
    One::of(&OneLink { link: LinkObject::of(link, partner, program) })
}

/// `POST /affiliates/{id}/links`.
///
/// # Errors
/// What is wrong with it; no such partner; it has as many as it may have; the token is taken.
pub async fn create(
    room: Arc<Room>,
    tenant: Tenant,
    asked: Make<CreateLink>,
) -> Result<One<Made<OneLink>>, Problem> {
    let Opened { said: CreateLink(of, draft), claim, .. } = asked.open(&room, &tenant).await?;
    let of = (tenant.account().id, of.id(Noun::Partner)?);
    let doing = match begin(&room, &tenant, Operation::CreateLink, claim).await? {
        Begun::Done(answer) => return Ok(answer),
        Begun::Go(doing) => doing,
    };
    let keep = doing.keeper(made);
    let done = room.affiliate.create_link(of, &draft, &keep).await;
    drop(keep);
    doing.end(&room, done, made).await
}

/// `DELETE /affiliates/{id}/links/{link_id}`.
///
/// # Errors
/// No such partner or link; it is the primary one.
pub async fn delete(room: Arc<Room>, tenant: Tenant, asked: Change<OfLink>) -> Result<Done, Problem> {
    let Opened { said: OfLink(of, link), seen, .. } = asked.open(&room, &tenant).await?;
    let of = (tenant.account().id, of.id(Noun::Partner)?);
    let link = link.ok_or_else(|| Problem::not_found(Noun::Link.as_str()))?;
    let deleted = room.affiliate.delete_link(of, link, seen.as_ref()).await;
    deleted.map(|()| Done::OK).map_err(|refusal| refused(&room, refusal))
}
