//! What is asked of the affiliate program: judged after the program was looked up.
//!
//! ```text
//! call ─► read, right or wrong ─► is there a program? 404 ─► was it wrong? 400 ─► handler
//! ```
//!
//! To whom has no program all of it is nothing, whatever the request says (completions-affiliate.md 2.1).

use ::affiliate::office::Seen;
use http::header::IF_MATCH;
use mail::affiliate::program::Program;
use queue::once::Claim;
use store::access::Tenant;

use super::refused;
use crate::call::{Call, Input, Media, Takes};
use crate::idempotency;
use crate::problem::Problem;
use crate::room::Room;
use crate::schema::{self, Schemas};

/// What is asked. `ONCE`: with `Idempotency-Key` it is done once; `SEEN`: with `If-Match` only what was seen is changed.
#[derive(Debug)]
pub struct Asked<I, const ONCE: bool, const SEEN: bool> {
    said: Result<I, Problem>,
    seen: Result<Option<Seen>, Problem>,
    claim: Result<Option<Claim>, Problem>,
}

/// Something is read, or deleted.
pub type Read<I> = Asked<I, false, false>;
/// Something is made.
pub type Make<I> = Asked<I, true, false>;
/// Something is changed.
pub type Change<I> = Asked<I, false, true>;
/// Something is done with what is there.
pub type Act<I> = Asked<I, true, true>;

/// What was asked of a program that is there.
#[derive(Debug)]
pub struct Opened<I> {
    /// The program.
    pub program: Program,
    /// What was said.
    pub said: I,
    /// Which version the caller has seen.
    pub seen: Option<Seen>,
    /// The idempotency key.
    pub claim: Option<Claim>,
}

impl<I, const ONCE: bool, const SEEN: bool> Asked<I, ONCE, SEEN> {
    /// Looks the program up, and then at what was said: of a program that is set up.
    ///
    /// # Errors
    /// 404 where there is none, or steps are missing; what is wrong with what was said.
    pub async fn open(self, room: &Room, tenant: &Tenant) -> Result<Opened<I>, Problem> {
        let program = room.affiliate.set_up(tenant.account().id).await;
        self.with(program.map_err(|refusal| refused(room, refusal))?)
    }

    /// The same of a program in whatever state.
    ///
    /// # Errors
    /// 404 where there is none; what is wrong with what was said.
    pub async fn open_any(self, room: &Room, tenant: &Tenant) -> Result<Opened<I>, Problem> {
        let program = room.affiliate.program(tenant.account().id).await;
        self.with(program.map_err(|refusal| refused(room, refusal))?)
    }

    fn with(self, program: Program) -> Result<Opened<I>, Problem> {
        Ok(Opened { program, said: self.said?, seen: self.seen?, claim: self.claim? })
    }
}

impl<I: Input, const ONCE: bool, const SEEN: bool> Input for Asked<I, ONCE, SEEN> {
    const BODY_BYTES_MAX: Option<usize> = I::BODY_BYTES_MAX;
    const MEDIA: Media = I::MEDIA;

    fn describe(schemas: &mut Schemas) -> Takes {
        let mut takes = I::describe(schemas);
        takes.parameters.extend(ONCE.then(idempotency::parameter));
        let seen = "The version that was seen: the `etag` of an answer, or `updated_at`; of a link, its partner's. When \
                    it was changed since, 409 `conflict`, and nothing is changed";
        takes.parameters.extend(SEEN.then(|| schema::header_parameter("If-Match", seen)));
        takes
    }

    fn read(call: &Call) -> Result<Self, Problem> {
        let claim = if ONCE {
            idempotency::claim(&call.headers, || idempotency::fingerprint(call).finish())
        } else {
            Ok(None)
        };
        let seen = if SEEN { seen(call) } else { Ok(None) };
        Ok(Self { said: I::read(call), seen, claim })
    }
}

/// The version that the caller has seen. `*` is any (RFC 9110 13.1.1).
fn seen(call: &Call) -> Result<Option<Seen>, Problem> {
    let values: Vec<_> = call.headers.get_all(IF_MATCH).iter().map(|value| value.to_str()).collect();
    if values.is_empty() {
        return Ok(None);
    }
    // Several fields are one list (RFC 9110 5.3).
    let text = values.into_iter().collect::<Result<Vec<_>, _>>().ok().map(|values| values.join(","));
    if text.as_ref().is_some_and(|text| text.trim() == "*") {
        return Ok(None);
    }
    let seen = text.and_then(|text| Seen::read(&text));
    let refused = || Problem::field("If-Match", "must be an `etag` or a time as in `updated_at`, or several");
    seen.map(Some).ok_or_else(refused)
}
