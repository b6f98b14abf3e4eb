//! What is asked of the affiliate program: judged after the program was looked up.
//!
//! ```text
//! call ─► read, right or wrong ─► is there a program? 404 ─► was it wrong? 400 ─► handler
//! ```
//!
//! To whom has no program all of it is nothing, whatever the request says (completions-affiliate.md 2.1).

use ::affiliate::office::IfMatch;
use http::header::IF_MATCH;
use mail::affiliate::program::AffiliateProgram;
use queue::once::IdempotencyKey;
use store::access::Tenant;

use super::refusal_problem;
use crate::call::{FromRequest, Media, Request, RequestSpec};
use crate::idempotency;
use crate::problem::Problem;
use crate::room::AppState;
use crate::schema::{self, Schemas};

/// What is asked. `ONCE`: with `Idempotency-Key` it is done once; `SEEN`: with `If-Match` only what was seen is changed.
#[derive(Debug)]
pub struct ProgramRequest<I, const ONCE: bool, const SEEN: bool> {
    input: Result<I, Problem>,
    if_match: Result<Option<IfMatch>, Problem>,
    claim: Result<Option<IdempotencyKey>, Problem>,
}

/// Something is read, or deleted.
pub type ReadRequest<I> = ProgramRequest<I, false, false>;
/// Something is made.
pub type CreateRequest<I> = ProgramRequest<I, true, false>;
/// Something is changed.
pub type UpdateRequest<I> = ProgramRequest<I, false, true>;
/// Something is done with what is there.
pub type ActionRequest<I> = ProgramRequest<I, true, true>;

/// What was asked of a program that is there.
#[derive(Debug)]
pub struct ResolvedRequest<I> {
    /// The program.
    pub program: AffiliateProgram,
    /// What was said.
    pub input: I,
    /// Which version the caller has seen.
    pub if_match: Option<IfMatch>,
    /// The idempotency key.
    pub claim: Option<IdempotencyKey>,
}

impl<I, const ONCE: bool, const SEEN: bool> ProgramRequest<I, ONCE, SEEN> {
    /// Looks the program up, and then at what was said: of a program that is set up.
    ///
    /// # Errors
    /// 404 where there is none, or steps are missing; what is wrong with what was said.
    pub async fn require_set_up_program(self, room: &AppState, tenant: &Tenant) -> Result<ResolvedRequest<I>, Problem> {
        let program = room.affiliate.require_set_up(tenant.account().id).await;
        self.validate(program.map_err(|refusal| refusal_problem(room, refusal))?)
    }

    /// The same of a program in whatever state.
    ///
    /// # Errors
    /// 404 where there is none; what is wrong with what was said.
    pub async fn require_program(self, room: &AppState, tenant: &Tenant) -> Result<ResolvedRequest<I>, Problem> {
        let program = room.affiliate.get_program(tenant.account().id).await;
        self.validate(program.map_err(|refusal| refusal_problem(room, refusal))?)
    }

    fn validate(self, program: AffiliateProgram) -> Result<ResolvedRequest<I>, Problem> {
        Ok(ResolvedRequest { program, input: self.input?, if_match: self.if_match?, claim: self.claim? })
    }
}

impl<I: FromRequest, const ONCE: bool, const SEEN: bool> FromRequest for ProgramRequest<I, ONCE, SEEN> {
    const BODY_BYTES_MAX: Option<usize> = I::BODY_BYTES_MAX;
    const MEDIA: Media = I::MEDIA;

    fn describe(schemas: &mut Schemas) -> RequestSpec {
        let mut takes = I::describe(schemas);
        takes.parameters.extend(ONCE.then(idempotency::header_parameter));
        let seen = "The version that was seen: the `etag` of an answer, or `updated_at`; of a link, its partner's. When \
                    it was changed since, 409 `conflict`, and nothing is changed";
        takes.parameters.extend(SEEN.then(|| schema::header_parameter("If-Match", seen)));
        takes
    }

    fn read(call: &Request) -> Result<Self, Problem> {
        let claim = if ONCE {
            idempotency::parse_claim(&call.headers, || idempotency::request_fingerprint(call).finish())
        } else {
            Ok(None)
        };
        let seen = if SEEN { parse_if_match(call) } else { Ok(None) };
        Ok(Self { input: I::read(call), if_match: seen, claim })
    }
}

/// The version that the caller has seen. `*` is any (RFC 9110 13.1.1).
fn parse_if_match(call: &Request) -> Result<Option<IfMatch>, Problem> {
    let values: Vec<_> = call.headers.get_all(IF_MATCH).iter().map(|value| value.to_str()).collect();
    if values.is_empty() {
        return Ok(None);
    }
    // Several fields are one list (RFC 9110 5.3).
    let text = values.into_iter().collect::<Result<Vec<_>, _>>().ok().map(|values| values.join(","));
    if text.as_ref().is_some_and(|text| text.trim() == "*") {
        return Ok(None);
    }
    let seen = text.and_then(|text| IfMatch::read(&text));
    let refused = || Problem::field("If-Match", "must be an `etag` or a time as in `updated_at`, or several");
    seen.map(Some).ok_or_else(refused)
}
