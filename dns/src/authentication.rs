//! Verifies received messages: their DKIM signatures, and with the facts of the session all sender authentication
//! ([`inbound`]).
//!
//! ```text
//! message ─► mail-auth (fields, hashes) ─► keys (one lookup per key) ─► mail-auth (crypto) ─► signature ─► DkimVerdict
//! ```
//!
//! A message is untrusted. It is verified on a blocking thread, a few at a time, under `catch_unwind`, within a
//! deadline. Only its first [`SIGNATURES_MAX`] signatures are verified.
//!
//! Standards: RFC 6376 6, RFC 8301 3 (no SHA-1), RFC 8463, RFC 8601 2.7.1 (result codes).

pub mod blocklist;
mod dkim_keys;
pub mod inbound;
mod signature;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::BoxFuture;
use mail_auth::common::crypto::CryptoError;
use mail_auth::common::verify::VerifySignature as _;
use mail_auth::dkim::{Canonicalization, DkimError};
use mail_auth::{AuthenticatedMessage, DkimOutput, DkimResult, Error, Parameters};
use message::received::AuthResult;
use tokio::sync::Semaphore;

use self::dkim_keys::{FetchedKeys, KeyObjection, offline_authenticator};
use crate::canonicalization::trim_end;
use crate::resolver::Resolver;

/// Maximum signatures verified per message; each can need a DNS lookup.
pub const SIGNATURES_MAX: usize = 10;
/// Maximum messages verified at once.
const VERIFICATIONS_MAX: usize = 8;
/// Timeout for fetching the keys of one message.
const DEADLINE: Duration = Duration::from_secs(30);

static PERMITS: Semaphore = Semaphore::const_new(VERIFICATIONS_MAX);

/// The source of public keys.
#[derive(Debug, Clone)]
pub enum DkimKeySource {
    Dns(Resolver),
    /// A fixed list of record names (`sel._domainkey.example.com`) and TXT values.
    Fixed(Vec<(String, String)>),
}

/// The verdict on one signature.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DkimVerdict {
    /// The signing domain (`d=`); empty if the signature is malformed.
    pub domain: String,
    pub selector: String,
    pub algorithm: &'static str,
    /// Never `None` or `SoftFail`: those are no results of a signature (RFC 8601 2.7.1).
    pub result: AuthResult,
    /// The reason, for display; empty for a pass.
    pub reason: String,
    /// True if the only objection is that the key is for TLS reports: the signature is valid for them (RFC 8460 3).
    pub is_valid_for_tls_reports: bool,
}

impl DkimVerdict {
    fn without_signature(result: AuthResult, reason: &str) -> Self {
        Self {
            domain: String::new(),
            selector: String::new(),
            algorithm: "",
            result,
            reason: reason.to_owned(),
            is_valid_for_tls_reports: false,
        }
    }
}

/// Verifies the DKIM signatures of a message. Returns one verdict each, in the order of the header.
pub fn verify_dkim(message: Bytes, keys: DkimKeySource) -> BoxFuture<'static, Vec<DkimVerdict>> {
    Box::pin(async move {
        // The semaphore is never closed.
        let Ok(permit) = PERMITS.acquire().await else { return Vec::new() };
        let runtime = tokio::runtime::Handle::current();
        let verification = tokio::task::spawn_blocking(move || {
            let _permit = permit;
            // A panic on a message ends this verification only.
            catch_unwind(AssertUnwindSafe(|| runtime.block_on(verify_message(&message, &keys))))
        });
        match verification.await {
            Ok(Ok(verdicts)) => verdicts,
            _ => {
                vec![DkimVerdict::without_signature(AuthResult::Neutral, "the message could not be parsed")]
            }
        }
    })
}

async fn verify_message(raw: &[u8], keys: &DkimKeySource) -> Vec<DkimVerdict> {
    match AuthenticatedMessage::parse(raw) {
        Some(message) => verify_signatures(&limit_signatures(message), keys, DEADLINE).await,
        None => Vec::new(),
    }
}

fn limit_signatures(mut message: AuthenticatedMessage<'_>) -> AuthenticatedMessage<'_> {
    message.dkim_headers.truncate(SIGNATURES_MAX);
    message.errors.truncate(SIGNATURES_MAX);
    for signature in &mut message.dkim_headers {
        // Third-party signing (ATPS, RFC 6541) and failure reports (RFC 6651) are not supported.
        (signature.header.atps, signature.header.r) = (None, false);
    }
    fix_body_hashes(&mut message);
    message
}

/// Verifies the signatures of a message: first the verdicts on malformed ones, then on the others, in the order of the
/// header.
async fn verify_signatures(
    message: &AuthenticatedMessage<'_>,
    source: &DkimKeySource,
    within: Duration,
) -> Vec<DkimVerdict> {
    let Some(verifier) = offline_authenticator() else { return Vec::new() };
    let names: Vec<String> = message.dkim_headers.iter().map(|signature| signature.header.domain_key()).collect();
    let keys = FetchedKeys::fetch(&names, source, within).await;
    let outputs = verifier.verify_dkim(Parameters::new(message).with_txt_cache(&keys)).await;
    unreadable_signatures(message)
        .chain(outputs.iter().map(|output| signature_verdict(output, message, &keys)))
        .collect()
}

/// Verdicts on DKIM-Signature fields that cannot be parsed at all, which mail-auth's results omit.
fn unreadable_signatures(message: &AuthenticatedMessage<'_>) -> impl Iterator<Item = DkimVerdict> {
    let is_unreadable = |name: &[u8], error: &Error| {
        name.trim_ascii().eq_ignore_ascii_case(b"DKIM-Signature") && !matches!(error, Error::Dkim(_))
    };
    let unreadable = message.errors.iter().filter(move |field| is_unreadable(field.name, &field.header));
    unreadable.map(|field| DkimVerdict::without_signature(AuthResult::Neutral, &field.header.to_string()))
}

/// mail-auth counts blanks at the end of a relaxed body as a line, contrary to RFC 6376 3.4.4. If there are some, the
/// hash is computed again without them.
fn fix_body_hashes(message: &mut AuthenticatedMessage<'_>) {
    let offset = usize::try_from(message.body_offset).unwrap_or(usize::MAX);
    let body = message.raw_message.get(offset..).unwrap_or_default();
    let trimmed = trim_end(body);
    let tail = body.get(trimmed.len()..).unwrap_or_default();
    if !tail.iter().any(|b| matches!(b, b' ' | b'\t')) {
        return;
    }
    for (canonicalization, algorithm, limit, hash) in &mut message.body_hashes {
        if *canonicalization == Canonicalization::Relaxed && *limit == 0 {
            *hash = algorithm.hash(canonicalization.canonical_body(trimmed, 0)).as_ref().to_vec();
        }
    }
}

fn signature_verdict(output: &DkimOutput<'_>, message: &AuthenticatedMessage<'_>, keys: &FetchedKeys) -> DkimVerdict {
    let (result, reason) = match output.result() {
        DkimResult::Pass => (AuthResult::Pass, String::new()),
        DkimResult::None => (AuthResult::Neutral, "no result".to_owned()),
        DkimResult::TempError(error) => (AuthResult::TempError, error.to_string()),
        DkimResult::PermError(error) => (AuthResult::PermError, error.to_string()),
        DkimResult::Neutral(error) | DkimResult::Fail(error) => (result_for_error(error), error.to_string()),
    };
    let Some(signature) = output.signature() else { return DkimVerdict::without_signature(result, &reason) };
    let field = message.dkim_headers.iter().find(|field| std::ptr::eq(&raw const field.header, signature));
    let flaw = field.and_then(|field| signature::tag_list_fault(field.value, signature::DKIM_REQUIRED_TAGS));
    let key_objection = keys.objection(&signature.domain_key());
    let signature_objection = signature::signature_objection(signature.a, &signature.h);
    let is_valid_for_tls_reports = result == AuthResult::Pass
        && flaw.is_none()
        && signature_objection.is_none()
        && key_objection == Some(KeyObjection::TlsReportsOnly);
    let unusable = key_objection.map(KeyObjection::reason).or(signature_objection);
    let (result, reason) = match (result, flaw, unusable) {
        (_, Some(flaw), _) => (AuthResult::Neutral, flaw.to_owned()),
        (AuthResult::Pass, None, Some(why)) => (AuthResult::PermError, why.to_owned()),
        _ => (result, reason),
    };
    DkimVerdict {
        domain: signature.d.clone(),
        selector: signature.s.clone(),
        algorithm: signature.a.name(),
        result,
        reason,
        is_valid_for_tls_reports,
    }
}

/// The result code for an error of the signature itself (RFC 8601 2.7.1).
fn result_for_error(error: &Error) -> AuthResult {
    match error {
        // The signing identity is not within the domain, or the key has another algorithm.
        Error::Dkim(DkimError::FailedAuidMatch) | Error::Crypto(CryptoError::IncompatibleAlgorithms) => {
            AuthResult::PermError
        }
        // The key was parsed before, so the other crypto errors mean that the signature does not match (for Ed25519 the
        // library has separate errors).
        Error::Dkim(DkimError::FailedBodyHashMatch) | Error::Crypto(_) => AuthResult::Fail,
        _ => AuthResult::Neutral,
    }
}
