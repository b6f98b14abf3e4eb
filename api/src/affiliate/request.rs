//! Input of an affiliate operation; its errors are reported only after the program was found.
//!
//! ```text
//! request ─► parse, keep the errors ─► program missing? 404 ─► input invalid? 400 ─► handler
//! ```
//!
//! An account without a program is answered 404 whatever the request contains.

use ::affiliate::if_match::IfMatch;
use http::header::IF_MATCH;
use model::affiliate::program::AffiliateProgram;
use queue::intake::idempotency::IdempotencyKey;

use crate::idempotency;
use crate::prelude::*;

/// A parsed request. `ONCE`: accepts `Idempotency-Key`. `SEEN`: accepts `If-Match`.
#[derive(Debug)]
pub struct ProgramRequest<I, const ONCE: bool, const SEEN: bool> {
    input: Result<I>,
    if_match: Result<Option<IfMatch>>,
    claim: Result<Option<IdempotencyKey>>,
}

/// Reads or deletes.
pub type ReadRequest<I> = ProgramRequest<I, false, false>;
/// Creates; accepts `Idempotency-Key`.
pub type CreateRequest<I> = ProgramRequest<I, true, false>;
/// Updates; accepts `If-Match`.
pub type UpdateRequest<I> = ProgramRequest<I, false, true>;
/// Performs an action on an existing object; accepts both headers.
pub type ActionRequest<I> = ProgramRequest<I, true, true>;

/// A valid request of an account that has a program.
#[derive(Debug)]
pub struct ResolvedRequest<I> {
    pub program: AffiliateProgram,
    pub input: I,
    /// Version that the object must still have (`If-Match`).
    pub if_match: Option<IfMatch>,
    pub claim: Option<IdempotencyKey>,
}

impl<I, const ONCE: bool, const SEEN: bool> ProgramRequest<I, ONCE, SEEN> {
    /// Loads the program, which must be set up, then reports errors of the input.
    ///
    /// # Errors
    /// 404 if there is no program or set-up steps are missing; then the error of the input.
    pub async fn require_set_up_program(self, state: &AppState, tenant: &Tenant) -> Result<ResolvedRequest<I>> {
        let program = state.affiliate.context.require_set_up(tenant.account().id).await;
        self.validate(program.or_problem(state)?)
    }

    /// Loads the program in any state, then reports errors of the input.
    ///
    /// # Errors
    /// 404 if there is no program; then the error of the input.
    pub async fn require_program(self, state: &AppState, tenant: &Tenant) -> Result<ResolvedRequest<I>> {
        let program = state.affiliate.context.get_program(tenant.account().id).await;
        self.validate(program.or_problem(state)?)
    }

    fn validate(self, program: AffiliateProgram) -> Result<ResolvedRequest<I>> {
        Ok(ResolvedRequest { program, input: self.input?, if_match: self.if_match?, claim: self.claim? })
    }
}

impl<I: FromRequest, const ONCE: bool, const SEEN: bool> FromRequest for ProgramRequest<I, ONCE, SEEN> {
    const BODY_BYTES_MAX: Option<usize> = I::BODY_BYTES_MAX;
    const MEDIA: Media = I::MEDIA;
    const BODY: Option<BodySchema> = I::BODY;

    fn parameters() -> Vec<Value> {
        let mut parameters = I::parameters();
        parameters.extend(ONCE.then(idempotency::header_parameter));
        let description = "The version that the object must still have: the `etag` of a response, or `updated_at` (for a \
                    link, its partner's). If it has changed since, the request fails with 409 `conflict`";
        parameters.extend(SEEN.then(|| schema::header_parameter("If-Match", description)));
        parameters
    }

    fn read(call: &Request) -> Result<Self> {
        let claim = if ONCE {
            idempotency::parse_claim(&call.headers, || idempotency::request_fingerprint(call).finish())
        } else {
            Ok(None)
        };
        let if_match = if SEEN { parse_if_match(call) } else { Ok(None) };
        Ok(Self { input: I::read(call), if_match, claim })
    }

    fn deferred_error(&self) -> Option<&Problem> {
        let input = self.input.as_ref().err();
        input.or(self.if_match.as_ref().err()).or(self.claim.as_ref().err())
    }
}

/// Parses `If-Match`. `*` matches any version (RFC 9110 13.1.1).
fn parse_if_match(call: &Request) -> Result<Option<IfMatch>> {
    let values: Vec<_> = call.headers.get_all(IF_MATCH).iter().map(|value| value.to_str()).collect();
    if values.is_empty() {
        return Ok(None);
    }
    // Repeated headers form one list (RFC 9110 5.3).
    let text = values.into_iter().collect::<Result<Vec<_>, _>>().ok().map(|values| values.join(","));
    if text.as_ref().is_some_and(|text| text.trim() == "*") {
        return Ok(None);
    }
    let if_match = text.and_then(|text| IfMatch::read(&text));
    let refused = || Problem::field("If-Match", "must be one or more `etag` values, or times as in `updated_at`");
    if_match.map(Some).ok_or_else(refused)
}
