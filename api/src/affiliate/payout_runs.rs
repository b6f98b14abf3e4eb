//! `…/payout-runs`: the owner drafts, looks, approves or cancels, and gets files to pay by (affiliate-admin.md 4).
//!
//! A run may have very many payouts: its answer is made while it is read, some hundreds at a time.

use std::collections::BTreeMap;
use std::sync::Arc;

use ::affiliate::ledger::Ledger;
use ::affiliate::object::{DraftedObject, RunObject, SkippedObject};
use ::affiliate::payouts::{Drafted, Selection};
use ::affiliate::refusal::Noun;
use bytes::Bytes;
use http::StatusCode;
use http::header::{CONTENT_DISPOSITION, ETAG, HeaderValue};
use jiff::{SignedDuration, Timestamp};
use mail::affiliate::money::Currency;
use mail::affiliate::payout::{Format, PayoutRun, Skipped};
use mail::affiliate::program::PayoutMethod;
use mail::id::{AccountId, PayoutId, PayoutRunId};
use mail::idempotency::{Operation, Outcome, Partly};
use queue::once::{Claim, Slot};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Value, json};
use store::engine::{Batch, ReadError};
use tokio::sync::mpsc;

use super::answer::{Begun, One, REPLAYED, begin_own, of_operation};
use super::asked::{Act, Make, Opened, Read};
use super::fields::{self, Fields};
use super::payout_view::{Files, OneRun, whole_run_schema};
use super::view::Listed;
use super::{OfRun, filter, refused, wanted};
use crate::call::{Also, Answer, Broken, Call, Input, Media, Owner, Pieces, Reply, SMALL_BYTES_MAX, Takes};
use crate::fields::{Names, Notes};
use crate::idempotency::{self, Turn};
use crate::page::{self, KIND_PAYOUT_RUN, Page};
use crate::problem::{Code, Problem};
use crate::room::Room;
use crate::schema::{self, Schemas};

/// How long ago who approves may have signed in.
const SIGNED_IN_WITHIN: SignedDuration = SignedDuration::from_mins(15);
/// Payouts of one piece of an answer.
const PIECE_ROWS: usize = 500;
/// What is held of an answer before it is begun.
const WHOLE_BYTES_MAX: usize = 256 << 10;
/// Pieces that wait for the client.
const PIECES_AHEAD: usize = 2;
/// The largest number of a part.
const PART_MAX: usize = 100_000;

/// What `POST …/payout-runs` takes.
#[derive(Debug)]
pub struct Draft(Option<Timestamp>);

impl Input for Draft {
    const BODY_BYTES_MAX: Option<usize> = Some(SMALL_BYTES_MAX);
    const MEDIA: Media = Media::JsonOrNothing;

    fn describe(schemas: &mut Schemas) -> Takes {
        let body = schemas.named("DraftAffiliatePayoutRun", |_| {
            let mut cutoff = schema::time("Until when what is in it was earned, or Unix seconds; now");
            schema::or_null(&mut cutoff);
            let mut schema = schema::object_with("A payout run to be drafted", &[], [("cutoff", cutoff)]);
            schema["examples"] = json!([{"cutoff": "2026-11-01T00:00:00Z"}]);
            schema
        });
        Takes { body: Some(body), body_bytes_max: Self::BODY_BYTES_MAX, ..Takes::default() }
    }

    fn read(call: &Call) -> Result<Self, Problem> {
        const NAMES: Names = names!("cutoff");
        let mut notes = Notes::default();
        let given = call.given_if_any(&NAMES, &mut notes)?;
        let cutoff = given.value("cutoff").map(fields::moment).transpose();
        cutoff.map(Self).map_err(|why| Problem::field("cutoff", why))
    }
}

/// A run, written as far as it is held; the rest is made while it is read.
#[derive(Debug)]
pub struct Written<const DRAFTED: bool> {
    status: StatusCode,
    rev: Option<u64>,
    beginning: Bytes,
    more: Option<Pieces>,
    replayed: bool,
}

/// A run that is shown.
pub type WholeRun = Written<false>;
/// A run that was drafted; or none, since nobody is to be paid.
pub type DraftedRun = Written<true>;

impl<const DRAFTED: bool> Reply for Written<DRAFTED> {
    const STATUS: StatusCode = if DRAFTED { StatusCode::CREATED } else { StatusCode::OK };
    const ALSO: &'static [Also] = if DRAFTED {
        &[Also {
            status: 200,
            media_type: Some("application/json"),
            about: "Nobody is to be paid: `run` is null, and nothing is kept",
        }]
    } else {
        &[]
    };

    fn describe(schemas: &mut Schemas) -> Value {
        whole_run_schema(schemas, DRAFTED)
    }

    fn write(self) -> Result<Bytes, Problem> {
        Ok(self.beginning)
    }

    fn answer(self) -> Result<Answer, Problem> {
        let etag = self.rev.map(|rev| HeaderValue::try_from(format!("\"{rev}\"")));
        let etag = etag.transpose().map_err(Problem::internal)?.map(|etag| (ETAG, etag));
        let replayed = self.replayed.then(|| (REPLAYED, HeaderValue::from_static("true")));
        Ok(Answer {
            status: self.status,
            media_type: HeaderValue::from_static(Self::MEDIA_TYPE),
            headers: etag.into_iter().chain(replayed).collect(),
            body: self.beginning,
            more: self.more,
        })
    }
}

/// Writes a run piece by piece.
struct Writer {
    ledger: Ledger,
    run: PayoutRun,
    at: At,
    is_first: bool,
}

/// How far a run is written.
enum At {
    Beginning,
    Payouts(Option<PayoutId>),
    Skipped(Option<Skipped>),
    End,
}

fn text(value: &impl Serialize) -> String {
    // Of types that JSON has: this does not fail.
    serde_json::to_string(value).unwrap_or_default()
}

impl Writer {
    /// The next piece; nothing after the last.
    async fn next(&mut self) -> Result<Option<String>, ReadError> {
        let mut out = String::new();
        match &self.at {
            At::Beginning => {
                out = format!("{{\"run\":{},\"payouts\":[", text(&RunObject::from(&self.run)));
                self.at = At::Payouts(None);
            }
            At::Payouts(after) => {
                let (found, next) = self.ledger.payouts_of_run(&self.run, *after, PIECE_ROWS).await?;
                for shown in &found {
                    self.push(&mut out, &DraftedObject::from(shown));
                }
                self.at = At::Payouts(next);
                if next.is_none() {
                    out.push_str("],\"skipped\":[");
                    (self.at, self.is_first) = (At::Skipped(None), true);
                }
            }
            At::Skipped(after) => {
                let found = self.ledger.skipped(&self.run, after.as_ref(), PIECE_ROWS).await?;
                for skipped in &found {
                    self.push(&mut out, &SkippedObject::from(skipped));
                }
                if found.len() < PIECE_ROWS {
                    out.push_str("]}");
                    self.at = At::End;
                } else {
                    self.at = At::Skipped(found.last().cloned());
                }
            }
            At::End => return Ok(None),
        }
        Ok(Some(out))
    }

    fn push(&mut self, out: &mut String, object: &impl Serialize) {
        if !std::mem::take(&mut self.is_first) {
            out.push(',');
        }
        out.push_str(&text(object));
    }
}

async fn written<const DRAFTED: bool>(room: &Arc<Room>, run: PayoutRun) -> Result<Written<DRAFTED>, Problem> {
    let rev = Some(run.rev);
    let mut writer = Writer { ledger: room.affiliate.ledger(), run, at: At::Beginning, is_first: true };
    let mut beginning = String::new();
    let status = Written::<DRAFTED>::STATUS;
    while beginning.len() < WHOLE_BYTES_MAX {
        match writer.next().await? {
            Some(piece) => beginning.push_str(&piece),
            None => {
                return Ok(Written { status, rev, beginning: beginning.into(), more: None, replayed: false });
            }
        }
    }
    let (pieces, more) = mpsc::channel(PIECES_AHEAD);
    room.tasks.spawn(async move {
        loop {
            let piece = match writer.next().await {
                Ok(None) => return,
                Ok(Some(piece)) => Ok(piece.into()),
                Err(error) => {
                    tracing::error!(%error, "a payout run's answer broke off");
                    Err(Broken)
                }
            };
            let is_broken = piece.is_err();
            if pieces.send(piece).await.is_err() || is_broken {
                return;
            }
        }
    });
    Ok(Written { status, rev, beginning: beginning.into(), more: Some(more), replayed: false })
}

/// What is kept of the answer to a draft.
#[derive(Serialize, Deserialize)]
struct Kept {
    status: u16,
    rev: Option<u64>,
    body: String,
}

/// `POST …/payout-runs`. A run is drafted in many commits: the first keeps under the key which run it is, so that whoever
/// was cut off and asks again gets that one, drafted to its end; the answer is kept when it is known.
///
/// # Errors
/// What is wrong with it; a draft is open.
pub async fn draft(room: Arc<Room>, owner: Owner, asked: Make<Draft>) -> Result<DraftedRun, Problem> {
    let Opened { program, said, claim, .. } = asked.open_any(&room, owner.tenant()).await?;
    let claim = claim.map(|claim| of_operation("draft_affiliate_payout_run", claim));
    let slot = match idempotency::look(&room, owner.tenant(), Operation::Own, claim.clone()).await? {
        Turn::Done(kept) => return again(&kept),
        Turn::Go(slot) => slot,
    };
    let run = match slot.as_deref().and_then(Slot::begun) {
        Some(begun) => begun.answer.parse().map_err(Problem::internal)?,
        None => match begin(&room, program.account, (said.0, slot.as_deref())).await? {
            Ok(run) => run,
            Err(kept) => return again(&kept),
        },
    };
    let drafted = room.affiliate.drive_run(program.account, run).await;
    let drafted = show(&room, drafted.map_err(|refusal| refused(&room, refusal))?).await?;
    if slot.is_some() {
        // Free for a moment: who takes it then goes on with the same run.
        drop(slot);
        keep(&room, &owner, (claim, &drafted)).await;
    }
    Ok(drafted)
}

/// Begins a run; or what was answered, where another node was quicker with the same key.
async fn begin(
    room: &Room,
    account: AccountId,
    (cutoff, slot): (Option<Timestamp>, Option<&Slot>),
) -> Result<Result<PayoutRunId, Bytes>, Problem> {
    let now = room.hall.clock().now();
    let beside = |batch: &mut Batch, run: &PayoutRunId| {
        if let Some(slot) = slot {
            let begun = Partly { answer: run.to_string(), open: vec![0] };
            slot.keep(batch, Outcome::Partly(begun), now);
        }
    };
    let refusal = match room.affiliate.ledger().begin_run(account, cutoff, &beside).await {
        Ok(run) => return Ok(Ok(run)),
        Err(refusal) => refusal,
    };
    if let Some(slot) = slot
        && let Some(kept) = slot.meanwhile(room.hall.store()).await?
    {
        return Ok(Err(kept.into()));
    }
    Err(refused(room, refusal))
}

async fn show(room: &Arc<Room>, drafted: Drafted) -> Result<DraftedRun, Problem> {
    if let Some(run) = drafted.run {
        return written(room, run).await;
    }
    let skipped: Vec<SkippedObject> = drafted.skipped.iter().map(SkippedObject::from).collect();
    let beginning = json!({"run": Value::Null, "payouts": [], "skipped": skipped}).to_string();
    Ok(Written {
        status: StatusCode::OK,
        rev: None,
        beginning: beginning.into(),
        more: None,
        replayed: false,
    })
}

/// Keeps an answer that is held whole. Of another one the key says which run it is, and that is shown.
async fn keep(room: &Room, owner: &Owner, (claim, drafted): (Option<Claim>, &DraftedRun)) {
    let body = std::str::from_utf8(&drafted.beginning).ok().filter(|_| drafted.more.is_none());
    let Some(body) = body.map(str::to_owned) else { return };
    let kept = Kept { status: drafted.status.as_u16(), rev: drafted.rev, body };
    let Ok(Turn::Go(Some(slot))) = idempotency::look(room, owner.tenant(), Operation::Own, claim).await
    else {
        return;
    };
    let mut batch = Batch::intake();
    slot.keep(&mut batch, idempotency::done(&kept), room.hall.clock().now());
    if let Err(error) = room.hall.store().commit(batch).await {
        tracing::warn!(%error, "a draft's answer is not kept under its idempotency key");
    }
}

fn again(kept: &[u8]) -> Result<DraftedRun, Problem> {
    let Kept { status, rev, body } = serde_json::from_slice(kept).map_err(Problem::internal)?;
    let status = StatusCode::from_u16(status).map_err(Problem::internal)?;
    Ok(Written { status, rev, beginning: body.into(), more: None, replayed: true })
}

/// What `GET …/payout-runs` takes.
#[derive(Debug)]
pub struct ListRuns(Page);

impl Input for ListRuns {
    fn describe(_: &mut Schemas) -> Takes {
        Takes { parameters: Page::parameters(), ..Takes::default() }
    }

    fn read(call: &Call) -> Result<Self, Problem> {
        Page::read(&call.query).map(Self)
    }
}

/// `GET …/payout-runs`.
///
/// # Errors
/// The cursor is none of this list's; the store cannot be read.
pub async fn list(
    room: Arc<Room>,
    owner: Owner,
    asked: Read<ListRuns>,
) -> Result<Listed<RunObject>, Problem> {
    let Opened { program, said, .. } = asked.open_any(&room, owner.tenant()).await?;
    let wanted = wanted(&said.0, KIND_PAYOUT_RUN)?;
    let found = room.affiliate.ledger().runs(program.account, wanted).await?;
    let next = found.next.map(|id| page::after_id(KIND_PAYOUT_RUN, id));
    Ok(Listed::of(found.rows.iter().map(RunObject::from).collect(), next))
}

/// `GET …/payout-runs/{id}`.
///
/// # Errors
/// No such run; the store cannot be read.
pub async fn get(room: Arc<Room>, owner: Owner, asked: Read<OfRun>) -> Result<WholeRun, Problem> {
    let Opened { program, said, .. } = asked.open_any(&room, owner.tenant()).await?;
    let found = room.affiliate.ledger().run(program.account, said.id(Noun::Run)?).await;
    written(&room, found.map_err(|refusal| refused(&room, refusal))?).await
}

fn one(run: &PayoutRun) -> One<OneRun> {
    One::of(&OneRun { run: RunObject::from(run) }).at(run.rev)
}

/// What `POST …/payout-runs/{id}/approve` takes.
#[derive(Debug)]
pub struct Approve {
    of: OfRun,
    rev: u64,
    totals: BTreeMap<Currency, i64>,
}

impl Input for Approve {
    const BODY_BYTES_MAX: Option<usize> = Some(SMALL_BYTES_MAX);

    fn describe(schemas: &mut Schemas) -> Takes {
        let body = schemas.named("ApproveAffiliatePayoutRun", |_| {
            let totals = json!({
                "type": "object", "propertyNames": {"pattern": "^[A-Za-z]{3}$"},
                "additionalProperties": {"type": "integer"},
                "description": "What it comes to, as it was seen: all currencies",
            });
            let fields = [("rev", schema::count("Its `rev`, as it was seen")), ("totals", totals)];
            let about = "A payout run is approved as it was seen";
            let mut schema = schema::object_with(about, &["rev", "totals"], fields);
            schema["examples"] = json!([{"rev": 3, "totals": {"usd": 5000}}]);
            schema
        });
        let parameters = vec![OfRun::parameter()];
        Takes { parameters, body: Some(body), body_bytes_max: Self::BODY_BYTES_MAX }
    }

    fn read(call: &Call) -> Result<Self, Problem> {
        const NAMES: Names = names!("rev", "totals");
        let mut given = Fields::of(call, &NAMES)?;
        given.need("rev");
        given.need("totals");
        let rev = given.take("rev", |value| fields::whole(value, 0..=u64::MAX));
        let totals = given.take("totals", totals);
        given.end()?;
        match (rev, totals) {
            (Some(rev), Some(totals)) => Ok(Self { of: OfRun::of(call), rev, totals }),
            _ => Err(Problem::field("rev", "is required")),
        }
    }
}

fn totals(value: &RawValue) -> Result<BTreeMap<Currency, i64>, String> {
    let crate::fields::Object(entries) = crate::fields::object(value)?;
    let mut totals = BTreeMap::new();
    for (name, amount) in entries {
        let currency: Currency = name.parse().map_err(|_| format!("`{name}` is no currency"))?;
        let amount = amount.get().parse().map_err(|_| format!("`{name}` is no whole number"))?;
        if totals.insert(currency, amount).is_some() {
            return Err(format!("`{name}` is given twice"));
        }
    }
    Ok(totals)
}

/// Who moves money has signed in just now; the operator need not.
fn check_signed_in(room: &Room, owner: &Owner) -> Result<(), Problem> {
    let Owner::SignedIn(who) = owner else { return Ok(()) };
    let age = room.hall.clock().now().duration_since(who.session().created_at);
    if age <= SIGNED_IN_WITHIN {
        return Ok(());
    }
    let text = "Sign in again: a payout run is approved within 15 minutes after that";
    Err(Problem::new(Code::REAUTHENTICATION_REQUIRED, text))
}

/// `POST …/payout-runs/{id}/approve`.
///
/// # Errors
/// What is wrong with it; who asks signed in too long ago; it is no draft, or another one than was seen.
pub async fn approve(room: Arc<Room>, owner: Owner, asked: Make<Approve>) -> Result<One<OneRun>, Problem> {
    let Opened { program, said, claim, .. } = asked.open_any(&room, owner.tenant()).await?;
    check_signed_in(&room, &owner)?;
    let of = (program.account, said.of.id(Noun::Run)?);
    let doing = match begin_own(&room, &owner, "approve_affiliate_payout_run", claim).await? {
        Begun::Done(answer) => return Ok(answer),
        Begun::Go(doing) => doing,
    };
    let keep = doing.keeper(one);
    let approved = room.affiliate.ledger().approve_run(of, (said.rev, &said.totals), &keep).await;
    drop(keep);
    doing.end(&room, approved, one).await
}

/// `POST …/payout-runs/{id}/cancel`.
///
/// # Errors
/// No such run, or no draft.
pub async fn cancel(room: Arc<Room>, owner: Owner, asked: Act<OfRun>) -> Result<One<OneRun>, Problem> {
    let Opened { program, said, seen, claim } = asked.open_any(&room, owner.tenant()).await?;
    let id = said.id(Noun::Run)?;
    let doing = match begin_own(&room, &owner, "cancel_affiliate_payout_run", claim).await? {
        Begun::Done(answer) => return Ok(answer),
        Begun::Go(doing) => doing,
    };
    let keep = doing.keeper(one);
    let cancelled = room.affiliate.ledger().cancel_run((program.account, id), seen.as_ref(), &keep).await;
    drop(keep);
    doing.end(&room, cancelled, one).await
}

/// Which files, and which part.
#[derive(Debug)]
pub struct OfFile {
    of: OfRun,
    which: Selection,
    part: usize,
}

impl OfFile {
    fn parameters() -> Vec<Value> {
        let one_of = |words: &[&str]| json!({"type": "string", "enum": words});
        vec![
            OfRun::parameter(),
            schema::query_parameter("method", "How its payouts are paid", one_of(PayoutMethod::WORDS)),
            schema::query_parameter(
                "currency",
                "Of what",
                json!({"type": "string", "pattern": "^[A-Za-z]{3}$"}),
            ),
            schema::query_parameter(
                "format",
                "What the file is for; what fits the method",
                one_of(Format::WORDS),
            ),
        ]
    }
}

/// A word of a closed set in the query.
fn word<T>(
    given: &[(String, String)],
    (name, words): (&str, &[&str]),
    read: impl Fn(&str) -> Option<T>,
) -> Result<Option<T>, Problem> {
    let Some(text) = page::one(given, name)? else { return Ok(None) };
    let wrong = || Problem::field(name, format!("must be one of {}", words.join(", ")));
    read(text.trim()).map(Some).ok_or_else(wrong)
}

impl OfFile {
    fn of(call: &Call) -> Result<Self, Problem> {
        let given = page::parameters(&call.query)?;
        let which = Selection {
            method: word(&given, ("method", PayoutMethod::WORDS), PayoutMethod::of_word)?,
            currency: filter(&given, "currency", "a currency, three letters")?,
            format: word(&given, ("format", Format::WORDS), Format::of_word)?,
        };
        let part: Option<usize> = filter(&given, "part", "a number from 1 on")?;
        let part = part.unwrap_or(1);
        if !(1..=PART_MAX).contains(&part) {
            return Err(Problem::field("part", "must be a number from 1 on"));
        }
        Ok(Self { of: OfRun::of(call), which, part })
    }
}

/// One file.
#[derive(Debug)]
pub struct OneFile(OfFile);

impl Input for OneFile {
    fn describe(_: &mut Schemas) -> Takes {
        let mut parameters = OfFile::parameters();
        parameters.push(schema::query_parameter(
            "part",
            "Which part, where one file does not hold all",
            json!({"type": "integer", "minimum": 1, "maximum": PART_MAX, "default": 1}),
        ));
        Takes { parameters, ..Takes::default() }
    }

    fn read(call: &Call) -> Result<Self, Problem> {
        OfFile::of(call).map(Self)
    }
}

/// All files.
#[derive(Debug)]
pub struct AllFiles(OfFile);

impl Input for AllFiles {
    fn describe(_: &mut Schemas) -> Takes {
        Takes { parameters: OfFile::parameters(), ..Takes::default() }
    }

    fn read(call: &Call) -> Result<Self, Problem> {
        OfFile::of(call).map(Self)
    }
}

/// A file.
#[derive(Debug)]
pub struct Csv {
    name: String,
    content: String,
}

impl Reply for Csv {
    const MEDIA_TYPE: &'static str = "text/csv; charset=utf-8";

    fn describe(_: &mut Schemas) -> Value {
        json!({"type": "string", "description": "A line of names, and one for each payout; lines end in CRLF"})
    }

    fn write(self) -> Result<Bytes, Problem> {
        Ok(self.content.into())
    }

    fn answer(self) -> Result<Answer, Problem> {
        let attached = format!("attachment; filename=\"{}\"", self.name);
        let attached = HeaderValue::try_from(attached).map_err(Problem::internal)?;
        Ok(Answer {
            status: StatusCode::OK,
            media_type: HeaderValue::from_static(Self::MEDIA_TYPE),
            headers: vec![(CONTENT_DISPOSITION, attached)],
            body: self.content.into(),
            more: None,
        })
    }
}

/// `GET …/payout-runs/{id}/csv`.
///
/// # Errors
/// No such run; it is not approved; several files fit what is asked for.
pub async fn csv(room: Arc<Room>, owner: Owner, asked: Read<OneFile>) -> Result<Csv, Problem> {
    let Opened { program, said: OneFile(said), .. } = asked.open_any(&room, owner.tenant()).await?;
    let of = (program.account, said.of.id(Noun::Run)?);
    let file = room.affiliate.ledger().file(of, (&said.which, said.part)).await;
    let file = file.map_err(|refusal| refused(&room, refusal))?;
    Ok(Csv { name: file.name, content: file.content })
}

/// `GET …/payout-runs/{id}/files`.
///
/// # Errors
/// No such run; it is not approved.
pub async fn files(room: Arc<Room>, owner: Owner, asked: Read<AllFiles>) -> Result<Files, Problem> {
    let Opened { program, said: AllFiles(said), .. } = asked.open_any(&room, owner.tenant()).await?;
    let of = (program.account, said.of.id(Noun::Run)?);
    let files = room.affiliate.ledger().files(of, &said.which).await;
    let files = files.map_err(|refusal| refused(&room, refusal))?;
    Ok(Files { files: files.into_iter().map(Into::into).collect() })
}
