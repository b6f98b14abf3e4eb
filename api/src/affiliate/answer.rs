//! One answer of the affiliate program: with the version of what it shows (`etag`), and kept under the key of who asked
//! for it to be done once.
//!
//! ```text
//! look (idempotency.rs) ─► Slot ─[ what is done + the answer ]─► end
//! ```

use std::marker::PhantomData;

use ::affiliate::refusal::Refusal;
use bytes::Bytes;
use http::StatusCode;
use http::header::{ETAG, HeaderName, HeaderValue};
use jiff::Timestamp;
use mail::idempotency::{Operation, Outcome};
use queue::once::{Claim, Slot};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use store::access::Tenant;
use store::engine::Batch;

use super::refused;
use crate::call::{Also, Answer, Owner, Reply};
use crate::emails::fingerprint::Fingerprint;
use crate::idempotency::{self, Turn};
use crate::problem::Problem;
use crate::room::Room;
use crate::schema::{Describe, Schemas};

/// Says that an answer was given before.
pub(super) const REPLAYED: HeaderName = HeaderName::from_static("idempotent-replayed");

/// What an answer shows.
pub trait Shape: Describe + Send + 'static {
    /// What else it may be.
    const ALSO: &'static [Also] = &[];
}

/// One answer, written.
#[derive(Debug)]
pub struct One<S> {
    kept: Kept,
    replayed: bool,
    shape: PhantomData<fn() -> S>,
}

/// What is kept of an answer.
#[derive(Debug, Serialize, Deserialize)]
struct Kept {
    status: u16,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    rev: Option<u64>,
    body: String,
}

impl<S: Shape> One<S> {
    /// An answer with the status that its shape has.
    pub fn of(body: &impl Serialize) -> Self {
        // Into memory, and of types that JSON has: this does not fail.
        let body = serde_json::to_string(body).unwrap_or_default();
        let kept = Kept { status: S::DONE.as_u16(), rev: None, body };
        Self { kept, replayed: false, shape: PhantomData }
    }

    /// With the version of what it shows.
    #[must_use]
    pub fn at(mut self, rev: u64) -> Self {
        self.kept.rev = Some(rev);
        self
    }

    /// With another status.
    #[must_use]
    pub fn with(mut self, status: StatusCode) -> Self {
        self.kept.status = status.as_u16();
        self
    }

    /// Given before.
    #[must_use]
    pub fn replayed(mut self) -> Self {
        self.replayed = true;
        self
    }

    fn again(kept: &[u8]) -> Result<Self, Problem> {
        let kept = serde_json::from_slice(kept).map_err(Problem::internal)?;
        Ok(Self { kept, replayed: true, shape: PhantomData })
    }

    fn outcome(&self) -> Outcome {
        idempotency::done(&self.kept)
    }
}

impl<S: Shape> Reply for One<S> {
    const STATUS: StatusCode = S::DONE;
    const ALSO: &'static [Also] = S::ALSO;

    fn describe(schemas: &mut Schemas) -> Value {
        S::schema(schemas)
    }

    fn write(self) -> Result<Bytes, Problem> {
        Ok(self.kept.body.into())
    }

    fn answer(self) -> Result<Answer, Problem> {
        let status = StatusCode::from_u16(self.kept.status).map_err(Problem::internal)?;
        let mut headers = Vec::new();
        if let Some(rev) = self.kept.rev {
            headers.push((ETAG, HeaderValue::try_from(format!("\"{rev}\"")).map_err(Problem::internal)?));
        }
        headers.extend(self.replayed.then(|| (REPLAYED, HeaderValue::from_static("true"))));
        let media_type = HeaderValue::from_static(Self::MEDIA_TYPE);
        Ok(Answer { status, media_type, headers, body: self.kept.body.into(), more: None })
    }
}

/// What is to be done now, under its key if it came with one.
pub struct Doing {
    slot: Option<Box<Slot>>,
    now: Timestamp,
}

/// Whether something is to be done.
pub enum Begun<S> {
    /// It is.
    Go(Doing),
    /// It was: this was answered.
    Done(One<S>),
}

/// Looks at the key of a request.
///
/// # Errors
/// It is at work, or was used for something else; the store cannot be read.
pub async fn begin<S: Shape>(
    room: &Room,
    tenant: &Tenant,
    operation: Operation,
    claim: Option<Claim>,
) -> Result<Begun<S>, Problem> {
    Ok(match idempotency::look(room, tenant, operation, claim).await? {
        Turn::Go(slot) => Begun::Go(Doing { slot, now: room.hall.clock().now() }),
        Turn::Done(kept) => Begun::Done(One::again(&kept)?),
    })
}

/// The same of what an owner does: there a key is of one operation, by its id.
///
/// # Errors
/// As [`begin`].
pub async fn begin_own<S: Shape>(
    room: &Room,
    owner: &Owner,
    id: &'static str,
    claim: Option<Claim>,
) -> Result<Begun<S>, Problem> {
    begin(room, owner.tenant(), Operation::Own, claim.map(|claim| of_operation(id, claim))).await
}

/// A claim that is about one operation alone.
pub(super) fn of_operation(id: &str, claim: Claim) -> Claim {
    let mut fingerprint = Fingerprint::new();
    fingerprint.add(id);
    fingerprint.add(&claim.fingerprint);
    Claim { fingerprint: fingerprint.finish(), ..claim }
}

impl Doing {
    /// Puts the answer into the commit of what is done.
    pub fn keeper<'a, T, S: Shape>(
        &'a self,
        show: fn(&T) -> One<S>,
    ) -> impl Fn(&mut Batch, &T) + Send + Sync + use<'a, T, S> {
        move |batch, done| {
            if let Some(slot) = &self.slot {
                slot.keep(batch, show(done).outcome(), self.now);
            }
        }
    }

    /// The answer: that of another node, where that one was quicker with the same key.
    ///
    /// # Errors
    /// What was refused.
    pub async fn end<T, S: Shape>(
        self,
        room: &Room,
        done: Result<T, Refusal>,
        show: fn(&T) -> One<S>,
    ) -> Result<One<S>, Problem> {
        let refusal = match done {
            Ok(done) => return Ok(show(&done)),
            Err(refusal) => refusal,
        };
        if let Some(slot) = &self.slot
            && let Some(kept) = slot.meanwhile(room.hall.store()).await?
        {
            return One::again(kept.as_bytes());
        }
        Err(refused(room, refusal))
    }
}
