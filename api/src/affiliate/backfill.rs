//! `/dashboard/api/affiliate-program/backfill`: the past is read into the ledger.

use std::sync::Arc;

use http::StatusCode;
use jiff::Timestamp;
use mail::affiliate::backfill::{Backfill, BackfillStatus};
use mail::id::BackfillId;
use serde::Serialize;
use serde_json::Value;

use ::affiliate::refusal::Noun;

use super::answer::{self, One, Shape, begin_own};
use super::asked::{Make, Opened, Read};
use super::fields::{Fields, moment};
use super::{OfBackfill, refused};
use crate::call::{Call, Input, Media, Owner, SMALL_BYTES_MAX, Takes};
use crate::fields::{self, Names};
use crate::problem::Problem;
use crate::room::Room;
use crate::schema::{self, Describe, Schemas};

/// What `POST …/backfill` takes.
#[derive(Debug)]
pub struct Begin {
    since: Option<Timestamp>,
    silent: bool,
}

impl Input for Begin {
    const BODY_BYTES_MAX: Option<usize> = Some(SMALL_BYTES_MAX);
    const MEDIA: Media = Media::JsonOrNothing;

    fn describe(schemas: &mut Schemas) -> Takes {
        let body = schemas.named("BeginAffiliateBackfill", |_| {
            let mut since = schema::time("From when on, or Unix seconds; from the beginning otherwise");
            schema::or_null(&mut since);
            let silent = schema::boolean("Whether nobody is told of what is written: no webhooks, no mail");
            schema::object_with("What is to be read", &[], [("since", since), ("silent", silent)])
        });
        Takes { body: Some(body), body_bytes_max: Self::BODY_BYTES_MAX, ..Takes::default() }
    }

    fn read(call: &Call) -> Result<Self, Problem> {
        const NAMES: Names = names!("since", "silent");
        let mut given = Fields::of_any(call, &NAMES)?;
        let since = given.take("since", moment);
        let silent = given.take("silent", fields::boolean).unwrap_or(false);
        given.end()?;
        Ok(Self { since, silent })
    }
}

/// How far a back-fill is.
#[derive(Debug, Serialize)]
struct BackfillView {
    id: BackfillId,
    status: BackfillStatus,
    invoices_seen: u64,
    lines_written: u64,
    error: Option<String>,
}

/// A back-fill.
#[derive(Debug, Serialize)]
pub struct OneBackfill {
    backfill: BackfillView,
}

impl From<Backfill> for OneBackfill {
    fn from(backfill: Backfill) -> Self {
        let Backfill { id, status, invoices_seen, lines_written, error, .. } = backfill;
        Self { backfill: BackfillView { id, status, invoices_seen, lines_written, error } }
    }
}

impl Describe for OneBackfill {
    fn schema(schemas: &mut Schemas) -> Value {
        schemas.named("OneAffiliateBackfill", |_| {
            let fields = [
                ("id", schema::string("Its id (`bkf_…`)")),
                ("status", schema::words(BackfillStatus::WORDS, "How far it is")),
                ("invoices_seen", schema::count("Paid invoices that were read")),
                ("lines_written", schema::count("Commissions that were written for them")),
                ("error", schema::nullable_string("Why it failed")),
            ];
            let backfill = schema::object("How far a back-fill is", fields);
            schema::object("A back-fill", [("backfill", backfill)])
        })
    }
}

/// A back-fill that began.
#[derive(Debug, Serialize)]
#[serde(transparent)]
pub struct Begun(OneBackfill);

impl Describe for Begun {
    const DONE: StatusCode = StatusCode::ACCEPTED;

    fn schema(schemas: &mut Schemas) -> Value {
        OneBackfill::schema(schemas)
    }
}

impl Shape for Begun {}

/// `POST …/backfill`.
///
/// # Errors
/// The processor is only listened to, or a back-fill goes on; there is no program.
pub async fn begin(room: Arc<Room>, owner: Owner, asked: Make<Begin>) -> Result<One<Begun>, Problem> {
    let opened = asked.open_any(&room, owner.tenant()).await?;
    let Opened { program, said: Begin { since, silent }, claim, .. } = opened;
    let doing = match begin_own(&room, &owner, "begin_affiliate_backfill", claim).await? {
        answer::Begun::Done(answer) => return Ok(answer),
        answer::Begun::Go(doing) => doing,
    };
    let keep = doing.keeper(one);
    let begun = room.affiliate.back_fill(program.account, (since, silent), &keep).await;
    drop(keep);
    doing.end(&room, begun, one).await
}

fn one(backfill: &Backfill) -> One<Begun> {
    One::of(&Begun(backfill.clone().into()))
}

/// `GET …/backfill/{id}`.
///
/// # Errors
/// No such back-fill, or no program.
pub async fn get(room: Arc<Room>, owner: Owner, asked: Read<OfBackfill>) -> Result<OneBackfill, Problem> {
    let Opened { program, said, .. } = asked.open_any(&room, owner.tenant()).await?;
    let found = room.affiliate.backfill(program.account, said.id(Noun::Backfill)?).await;
    found.map(OneBackfill::from).map_err(|refusal| refused(&room, refusal))
}
