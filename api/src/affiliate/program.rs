//! `/dashboard/api/affiliate-program`: the owner sets the program up (affiliate-admin.md 2).

use std::sync::Arc;

use ::affiliate::asking::API_BASE;
use ::affiliate::object::{Moment, ProcessorObject, ProgramObject};
use ::affiliate::refusal::Refusal;
use ::affiliate::set_up::{Connection, check_page};
use mail::affiliate::money::Currency;
use mail::affiliate::program::{Mode, Program};
use queue::courier::http::URL_BYTES_MAX;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::answer::One;
use super::asked::{Change, Opened, Read};
use super::fields::{Fields, currency, word};
use super::refused;
use super::settings::SetSettings;
use super::view::{Made, OneProcessor, OneProgram, Tested, WholeProgram};
use crate::call::{Call, Input, Nothing, Owner, SMALL_BYTES_MAX, Takes};
use crate::fields::{self, Names};
use crate::problem::{Code, Problem};
use crate::room::Room;
use crate::schema::{self, Schemas};

/// The most that may be asked for before referrals or bounties of one partner are looked at.
pub(super) const REVIEWED_MAX: u32 = 1_000_000;
/// The longest secret or key of the processor's.
const SECRET_BYTES_MAX: usize = 500;
/// The shortest secret that signs. The processor's own have 38 characters or 70; who plays one may have chosen it.
const SIGNING_BYTES_MIN: usize = 8;

async fn one(room: &Room, changed: Result<Program, Refusal>) -> Result<One<OneProgram>, Problem> {
    let program = changed.map_err(|refusal| refused(room, refusal))?;
    Ok(One::of(&OneProgram { program: object(room, &program).await? }).at(program.rev))
}

async fn object(room: &Room, program: &Program) -> Result<ProgramObject, Problem> {
    let portal_fault = room.affiliate.portal_fault(program).await?;
    Ok(ProgramObject::of(program, portal_fault, room.affiliate.mail_fault(program).await?))
}

/// An address of a page, as it was written.
pub(super) fn page(value: &RawValue) -> Result<String, String> {
    let text = fields::line(value, URL_BYTES_MAX)?.trim().to_owned();
    check_page(&text).map(|()| text)
}

pub(super) fn page_schema(description: &str) -> Value {
    json!({
        "type": "string", "format": "uri", "maxLength": URL_BYTES_MAX,
        "examples": ["https://shop.example"], "description": description,
    })
}

pub(super) fn currency_schema(description: &str) -> Value {
    json!({
        "type": "string", "pattern": "^[A-Za-z]{3}$", "examples": ["usd"], "description": description,
    })
}

/// What `POST …` takes.
#[derive(Debug)]
pub struct Enable {
    website_url: String,
    currency: Currency,
    mode: Mode,
}

impl Input for Enable {
    const BODY_BYTES_MAX: Option<usize> = Some(SMALL_BYTES_MAX);

    fn describe(schemas: &mut Schemas) -> Takes {
        let body = schemas.named("EnableAffiliateProgram", |_| {
            let fields = [
                ("website_url", page_schema("Where links lead")),
                ("currency", currency_schema("The currency of flat amounts, bounties and caps")),
                ("mode", schema::words(Mode::WORDS, "Whose money it is about; live")),
            ];
            schema::object_with("A program to be enabled", &["website_url", "currency"], fields)
        });
        Takes { body: Some(body), body_bytes_max: Self::BODY_BYTES_MAX, ..Takes::default() }
    }

    fn read(call: &Call) -> Result<Self, Problem> {
        const NAMES: Names = names!("website_url", "currency", "mode");
        let mut given = Fields::of(call, &NAMES)?;
        given.need("website_url");
        given.need("currency");
        let website_url = given.take("website_url", page);
        let currency = given.take("currency", currency);
        let mode = given.take("mode", |value| word(Mode::WORDS, Mode::of_word, value));
        given.end()?;
        match (website_url, currency) {
            (Some(website_url), Some(currency)) => {
                Ok(Self { website_url, currency, mode: mode.unwrap_or(Mode::Live) })
            }
            _ => Err(Problem::field("website_url", "is required")),
        }
    }
}

/// `POST /dashboard/api/affiliate-program`.
///
/// # Errors
/// What is wrong with it; there is one.
pub async fn enable(room: Arc<Room>, owner: Owner, said: Enable) -> Result<One<Made<OneProgram>>, Problem> {
    let Enable { website_url, currency, mode } = said;
    let account = owner.tenant().account().id;
    if !room.hall.plans().of(owner.tenant().account().plan).affiliates {
        let text = "The plan does not include an affiliate program; take a larger plan";
        return Err(Problem::new(Code::PLAN_FULL, text)
            .upgrade(room.upgrade_url())
            .details(json!({"limit": "affiliates", "used": 0, "cap": 0})));
    }
    let made = room.affiliate.enable(account, (website_url, currency, mode)).await;
    let program = made.map_err(|refusal| refused(&room, refusal))?;
    Ok(One::of(&OneProgram { program: object(&room, &program).await? }).at(program.rev))
}

/// `GET /dashboard/api/affiliate-program`.
///
/// # Errors
/// There is none; the store cannot be read.
pub async fn get(room: Arc<Room>, owner: Owner, asked: Read<Nothing>) -> Result<One<WholeProgram>, Problem> {
    let program = asked.open_any(&room, owner.tenant()).await?.program;
    let whole = WholeProgram {
        program: object(&room, &program).await?,
        processor: processor(&room, &program).await?,
        missing: program.missing(),
    };
    Ok(One::of(&whole).at(program.rev))
}

async fn processor(room: &Room, program: &Program) -> Result<Option<ProcessorObject>, Problem> {
    let hearing = room.affiliate.hearing(program.account).await.map_err(|refusal| refused(room, refusal))?;
    Ok(ProcessorObject::of(program, hearing, &room.options.base_url))
}

/// `PATCH /dashboard/api/affiliate-program`.
///
/// # Errors
/// What is wrong with it; there is no program; it was changed meanwhile; the currency and the mode are settled.
pub async fn set(
    room: Arc<Room>,
    owner: Owner,
    asked: Change<SetSettings>,
) -> Result<One<OneProgram>, Problem> {
    let Opened { program, said, seen, .. } = asked.open_any(&room, owner.tenant()).await?;
    if let Some(Some(sender)) = said.mail_from() {
        let checked = room.affiliate.check_sender(program.account, sender).await;
        checked.map_err(|refusal| refused(&room, refusal))?;
    }
    let change = |settings: &mut _| {
        said.apply(settings);
        Ok(())
    };
    let set = room.affiliate.set(program.account, seen.as_ref(), &change).await;
    one(&room, set).await
}

/// What `PUT …/processor` takes. It holds secrets: it is not shown.
pub struct Connect(Connection);

impl Input for Connect {
    const BODY_BYTES_MAX: Option<usize> = Some(SMALL_BYTES_MAX);

    fn describe(schemas: &mut Schemas) -> Takes {
        let secret = |about: &str, at_least: usize| {
            json!({
                "type": "string", "minLength": at_least, "maxLength": SECRET_BYTES_MAX, "pattern": "^[!-~]+$",
                "description": about,
            })
        };
        let body = schemas.named("ConnectAffiliateProcessor", |_| {
            let mut secrets = schema::list(
                secret("A signing secret (`whsec_…`)", SIGNING_BYTES_MIN),
                "What its events are signed with: one, or two while one takes the other's place",
            );
            (secrets["minItems"], secrets["maxItems"]) = (json!(1), json!(2));
            let mut api_base = page_schema("The address of its API; Stripe's");
            api_base["examples"] = json!([API_BASE]);
            let mut key = secret("A restricted key, to ask it; without one it is only listened to", 1);
            schema::or_null(&mut key);
            let mut account = secret("The account there, when there is no key; a key tells it itself", 1);
            schema::or_null(&mut account);
            let fields = [
                ("webhook_secrets", secrets),
                ("api_base", api_base),
                ("restricted_key", key),
                ("account_id", account),
            ];
            let mut schema =
                schema::object_with("The payment processor, whole", &["webhook_secrets"], fields);
            schema["examples"] = json!([{"webhook_secrets": ["whsec_0123456789abcdef"]}]);
            schema
        });
        Takes { body: Some(body), body_bytes_max: Self::BODY_BYTES_MAX, ..Takes::default() }
    }

    fn read(call: &Call) -> Result<Self, Problem> {
        const NAMES: Names = names!("webhook_secrets", "api_base", "restricted_key", "account_id");
        let mut given = Fields::of(call, &NAMES)?;
        given.need("webhook_secrets");
        let secrets = given.take("webhook_secrets", |value| {
            let entries = fields::list(value, 2).map_err(|_| "must be a list of one or two secrets")?;
            if entries.is_empty() {
                return Err("must be a list of one or two secrets".to_owned());
            }
            entries.into_iter().map(signing).collect::<Result<Vec<_>, _>>()
        });
        let api_base = given.take("api_base", page);
        let restricted_key = given.take("restricted_key", secret);
        let account_id = given.take("account_id", secret);
        given.end()?;
        Ok(Self(Connection {
            webhook_secrets: secrets.unwrap_or_default(),
            api_base: api_base.unwrap_or_else(|| API_BASE.to_owned()),
            restricted_key,
            account_id,
        }))
    }
}

/// A secret that events are signed with. Whoever guesses it writes commissions.
fn signing(value: &RawValue) -> Result<String, String> {
    let secret = secret(value)?;
    if secret.len() < SIGNING_BYTES_MIN {
        return Err(format!(
            "must be secrets of at least {SIGNING_BYTES_MIN} characters, as the processor shows them (`whsec_…`)"
        ));
    }
    Ok(secret)
}

/// A secret, a key or an id: printable characters without spaces.
fn secret(value: &RawValue) -> Result<String, String> {
    let text = fields::text(value)?;
    if (1..=SECRET_BYTES_MAX).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Ok(text.into_owned());
    }
    Err(format!("must be 1 to {SECRET_BYTES_MAX} printable characters without spaces"))
}

/// `PUT …/processor`.
///
/// # Errors
/// What is wrong with it; there is no program; the processor does not answer as it must.
pub async fn connect(
    room: Arc<Room>,
    owner: Owner,
    asked: Change<Connect>,
) -> Result<One<OneProcessor>, Problem> {
    let Opened { program, said, seen, .. } = asked.open_any(&room, owner.tenant()).await?;
    let connected = room.affiliate.connect(program.account, seen.as_ref(), &said.0).await;
    let program = connected.map_err(|refusal| refused(&room, refusal))?;
    let processor = processor(&room, &program).await?;
    let processor = processor.ok_or_else(|| Problem::internal("what was connected is not there"))?;
    Ok(One::of(&OneProcessor { processor }).at(program.rev))
}

/// `POST …/processor/test`.
///
/// # Errors
/// There is no program; no processor is connected; it does not answer as it must.
pub async fn test(room: Arc<Room>, owner: Owner, asked: Read<Nothing>) -> Result<Tested, Problem> {
    let program = asked.open_any(&room, owner.tenant()).await?.program;
    let told = room.affiliate.test_processor(program.account).await;
    let told = told.map_err(|refusal| refused(&room, refusal))?;
    let account_id = Some(told.id).filter(|id| !id.is_empty());
    let hearing = room.affiliate.hearing(program.account).await.map_err(|refusal| refused(&room, refusal))?;
    let last_event_at = hearing.last_event_at.map(Moment);
    Ok(Tested { ok: true, account_id, livemode: told.livemode, last_event_at })
}

/// `POST …/go-live`.
///
/// # Errors
/// There is no program; steps are missing.
pub async fn go_live(
    room: Arc<Room>,
    owner: Owner,
    asked: Change<Nothing>,
) -> Result<One<OneProgram>, Problem> {
    let Opened { program, seen, .. } = asked.open_any(&room, owner.tenant()).await?;
    let live = room.affiliate.go_live(program.account, seen.as_ref()).await;
    one(&room, live).await
}

/// `POST …/pause`.
///
/// # Errors
/// There is no program, or it was never live.
pub async fn pause(
    room: Arc<Room>,
    owner: Owner,
    asked: Change<Nothing>,
) -> Result<One<OneProgram>, Problem> {
    let Opened { program, seen, .. } = asked.open_any(&room, owner.tenant()).await?;
    let paused = room.affiliate.pause(program.account, seen.as_ref()).await;
    one(&room, paused).await
}
