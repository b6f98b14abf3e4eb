//! Idempotency keys for the owner's POST operations: the response is stored after the operation was carried out.
//!
//! ```text
//! key ─► in progress? 409 ─► used before? replay, or 409 ─► carry out ─► store the response under the key
//! ```
//!
//! Operations that move money or start a job store their response in their own commit (`affiliate/response.rs`,
//! [`crate::operation::OperationBuilder::owner_idempotent`]). The others may crash between the change and storing the
//! response, so repeating each of them must be harmless:
//!
//! - enabling a program fails if there is one, and testing the processor changes nothing;
//! - `go-live`, `pause`, a review decision and a results file change nothing when repeated;
//! - an import skips existing partners: a repeated request lists them as `already_partner`;
//! - a replayed event is not processed again.

use http::header::{ETAG, HeaderName, HeaderValue};
use httpd::response::Response;
use model::idempotency::IdempotencyScope;
use queue::intake::idempotency::IdempotencyGuard;
use serde::Deserialize;

use crate::handler::CallerHandler;
use crate::idempotency::{self, REPLAYED, RequestDecision};
use crate::prelude::*;

/// Larger responses are not stored.
const STORED_RESPONSE_BYTES_MAX: usize = 1 << 20;

/// A response as stored under an idempotency key.
#[derive(Serialize, Deserialize)]
struct StoredOwnerResponse {
    status: u16,
    media_type: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    etag: Option<String>,
    body: String,
}

/// Wraps an owner's handler with the check of the idempotency key.
pub(crate) fn make_idempotent(id: &'static str, handler: CallerHandler<Owner>) -> CallerHandler<Owner> {
    let handler = Arc::new(handler);
    Box::new(move |state, user, call| {
        let handler = Arc::clone(&handler);
        Box::pin(async move {
            let claim = idempotency::parse_claim(&call.headers, || request_fingerprint(id, &call))?;
            let guard = match idempotency::begin(&state, user.tenant(), IdempotencyScope::OwnerAction, claim).await? {
                RequestDecision::Proceed(None) => return handler(state, user, call).await,
                RequestDecision::Proceed(Some(guard)) => guard,
                RequestDecision::Replay(stored) => return replay(&stored),
            };
            let response = handler(Arc::clone(&state), user, call).await?;
            store_response(&state, &guard, &response).await;
            Ok(response)
        })
    })
}

/// The operation's input with the additional header parameter.
pub(crate) fn describe<I: FromRequest>(schemas: &mut Schemas) -> RequestSpec {
    let mut request_spec = I::describe(schemas);
    request_spec.parameters.push(idempotency::header_parameter());
    request_spec
}

/// Fingerprint of a request: operation, path, query and body.
fn request_fingerprint(id: &str, call: &Request) -> String {
    let mut fingerprint = idempotency::request_fingerprint(call);
    fingerprint.add(id);
    fingerprint.add(&call.query);
    fingerprint.finish()
}

fn replay(stored: &[u8]) -> Result<Response> {
    let StoredOwnerResponse { status, media_type, etag, body } =
        serde_json::from_slice(stored).map_err(Problem::internal)?;
    let value = |text: String| HeaderValue::try_from(text).map_err(Problem::internal);
    let mut headers: Vec<(HeaderName, HeaderValue)> = vec![(REPLAYED, HeaderValue::from_static("true"))];
    if let Some(etag) = etag {
        headers.push((ETAG, value(etag)?));
    }
    let status = StatusCode::from_u16(status).map_err(Problem::internal)?;
    Ok(Response { status, media_type: value(media_type)?, headers, body: Bytes::from(body), stream: None })
}

/// Stores the response. A failure is only logged, because the operation was carried out.
async fn store_response(state: &AppState, guard: &IdempotencyGuard, response: &Response) {
    let text = |value: &HeaderValue| value.to_str().map(str::to_owned).ok();
    let body = std::str::from_utf8(&response.body).ok().filter(|body| body.len() <= STORED_RESPONSE_BYTES_MAX);
    let (Some(body), Some(media_type), None) = (body, text(&response.media_type), &response.stream) else {
        return;
    };
    let etag = response.headers.iter().find(|(name, _)| *name == ETAG).and_then(|(_, value)| text(value));
    let stored = StoredOwnerResponse { status: response.status.as_u16(), media_type, etag, body: body.to_owned() };
    let mut batch = Batch::intake();
    guard.record_outcome(&mut batch, idempotency::stored_outcome(&stored), state.services.clock.now());
    if let Err(error) = state.services.store.commit(batch).await {
        tracing::warn!(%error, "cannot store the owner operation's response under its idempotency key");
    }
}
