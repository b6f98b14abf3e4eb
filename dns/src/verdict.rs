//! Verdicts on messages of others: on their signatures, for the development inbox; and, with all that is known
//! of where they come from, for the MX door ([`arrival`]).
//!
//! ```text
//! message ─► mail-auth (fields, hashes) ─► [keys] (one question for each key) ─► mail-auth (crypto) ─► [signature] ─► DkimVerdict
//! ```
//!
//! What is read here was written by anybody: it is parsed on a blocking thread, few at a time, under
//! `catch_unwind`, within a deadline; of its signatures the first [`SIGNATURES_MAX`] are looked at.
//! Standards: RFC 6376 6, RFC 8301 3 (no SHA-1), RFC 8463, RFC 8601 2.7.1 (the words).

pub mod arrival;
pub mod blocklist;
mod keys;
mod signature;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::BoxFuture;
use mail_auth::common::crypto::CryptoError;
use mail_auth::common::verify::VerifySignature as _;
use mail_auth::dkim::{Canonicalization, DkimError};
use mail_auth::{AuthenticatedMessage, DkimOutput, DkimResult, Error, Parameters};
use tokio::sync::Semaphore;

use self::keys::{FetchedKeys, offline_authenticator};
use crate::lookup::Resolver;
use crate::relax::trim_end;

/// Signatures looked at per message; each may cost a lookup.
pub const SIGNATURES_MAX: usize = 10;
/// Messages looked at at once.
const VERIFICATIONS_MAX: usize = 8;
/// How long the keys of one message may take to come.
const DEADLINE: Duration = Duration::from_secs(30);

static PERMITS: Semaphore = Semaphore::const_new(VERIFICATIONS_MAX);

/// Where public keys come from.
#[derive(Debug, Clone)]
pub enum DkimKeySource {
    /// From the DNS.
    Dns(Resolver),
    /// These, and no others: pairs of record name (`sel._domainkey.example.com`) and TXT value.
    Fixed(Vec<(String, String)>),
}

/// The result of one signature, in the words of RFC 8601 2.7.1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum DkimResultCode {
    /// It holds.
    Pass,
    /// It does not hold: the header or the body is not the one that was signed.
    Fail,
    /// It says nothing: written wrongly, expired, or over a part of the body only.
    Neutral,
    /// The key could not be fetched now.
    TempError,
    /// It cannot be verified: the key is missing or for something else, or it leaves the author unsigned.
    PermError,
}

impl DkimResultCode {
    /// As it stands in an Authentication-Results field.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pass => "pass",
            Self::Fail => "fail",
            Self::Neutral => "neutral",
            Self::TempError => "temperror",
            Self::PermError => "permerror",
        }
    }
}

/// What became of one signature.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DkimVerdict {
    /// Who signed (`d=`); empty when the signature cannot be read.
    pub domain: String,
    /// The selector (`s=`).
    pub selector: String,
    /// The algorithm (`a=`).
    pub algorithm: &'static str,
    /// The result.
    pub result: DkimResultCode,
    /// Why, for a person to read; empty for a pass.
    pub reason: String,
}

impl DkimVerdict {
    fn without_signature(result: DkimResultCode, reason: &str) -> Self {
        Self { domain: String::new(), selector: String::new(), algorithm: "", result, reason: reason.to_owned() }
    }
}

/// The verdicts on the DKIM signatures of a message, in the order of its header; none when it has none.
pub fn verify_dkim(message: Bytes, keys: DkimKeySource) -> BoxFuture<'static, Vec<DkimVerdict>> {
    Box::pin(async move {
        // Never closed.
        let Ok(place) = PERMITS.acquire().await else { return Vec::new() };
        let runtime = tokio::runtime::Handle::current();
        let judged = tokio::task::spawn_blocking(move || {
            let _place = place;
            // A bug met while reading it ends this verdict, nothing else.
            catch_unwind(AssertUnwindSafe(|| runtime.block_on(verify_message(&message, &keys))))
        });
        match judged.await {
            Ok(Ok(verdicts)) => verdicts,
            _ => {
                vec![DkimVerdict::without_signature(DkimResultCode::Neutral, "the message could not be read")]
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

/// A message with no more signatures than are looked at.
fn limit_signatures(mut message: AuthenticatedMessage<'_>) -> AuthenticatedMessage<'_> {
    message.dkim_headers.truncate(SIGNATURES_MAX);
    message.errors.truncate(SIGNATURES_MAX);
    for signature in &mut message.dkim_headers {
        // Who may sign for whom by another record (RFC 6541, and where to report, RFC 6651) is not asked for.
        (signature.header.atps, signature.header.r) = (None, false);
    }
    fix_body_hashes(&mut message);
    message
}

/// The verdicts on the signatures of a message: those that cannot be read, and then the others, in the order of its
/// header.
async fn verify_signatures(
    message: &AuthenticatedMessage<'_>,
    source: &DkimKeySource,
    within: Duration,
) -> Vec<DkimVerdict> {
    let Some(verifier) = offline_authenticator() else { return Vec::new() };
    let names: Vec<String> = message.dkim_headers.iter().map(|one| one.header.domain_key()).collect();
    let keys = FetchedKeys::fetch(&names, source, within).await;
    let outputs = verifier.verify_dkim(Parameters::new(message).with_txt_cache(&keys)).await;
    unreadable_signatures(message)
        .chain(outputs.iter().map(|output| signature_verdict(output, message, &keys)))
        .collect()
}

/// Of the fields that are no signature at all: mail-auth tells only of those that nearly are one.
fn unreadable_signatures(message: &AuthenticatedMessage<'_>) -> impl Iterator<Item = DkimVerdict> {
    let is_untold = |name: &[u8], error: &Error| {
        name.trim_ascii().eq_ignore_ascii_case(b"DKIM-Signature") && !matches!(error, Error::Dkim(_))
    };
    let untold = message.errors.iter().filter(move |field| is_untold(field.name, &field.header));
    untold.map(|field| DkimVerdict::without_signature(DkimResultCode::Neutral, &field.header.to_string()))
}

/// mail-auth counts blanks at the end of a relaxed body as a line; RFC 6376 3.4.4 does not. Where there
/// are some, the hash is made anew without them.
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
        DkimResult::Pass => (DkimResultCode::Pass, String::new()),
        DkimResult::None => (DkimResultCode::Neutral, "no result".to_owned()),
        DkimResult::TempError(error) => (DkimResultCode::TempError, error.to_string()),
        DkimResult::PermError(error) => (DkimResultCode::PermError, error.to_string()),
        DkimResult::Neutral(error) | DkimResult::Fail(error) => (result_for_error(error), error.to_string()),
    };
    let Some(signature) = output.signature() else { return DkimVerdict::without_signature(result, &reason) };
    let field = message.dkim_headers.iter().find(|field| std::ptr::eq(&raw const field.header, signature));
    let flaw = field.and_then(|field| signature::tag_list_fault(field.value, signature::DKIM_REQUIRED_TAGS));
    let unusable =
        keys.objection(&signature.domain_key()).or_else(|| signature::signature_objection(signature.a, &signature.h));
    let (result, reason) = match (result, flaw, unusable) {
        (_, Some(flaw), _) => (DkimResultCode::Neutral, flaw.to_owned()),
        (DkimResultCode::Pass, None, Some(why)) => (DkimResultCode::PermError, why.to_owned()),
        _ => (result, reason),
    };
    DkimVerdict {
        domain: signature.d.clone(),
        selector: signature.s.clone(),
        algorithm: signature.a.name(),
        result,
        reason,
    }
}

/// The word for what went wrong with a signature itself (RFC 8601 2.7.1).
fn result_for_error(error: &Error) -> DkimResultCode {
    match error {
        // What signs for a name that is not its own, or with a key of another kind.
        Error::Dkim(DkimError::FailedAuidMatch) | Error::Crypto(CryptoError::IncompatibleAlgorithms) => {
            DkimResultCode::PermError
        }
        // The key was read before: what the library says otherwise is that the signature is not of it (of an
        // Ed25519 signature in words of its own).
        Error::Dkim(DkimError::FailedBodyHashMatch) | Error::Crypto(_) => DkimResultCode::Fail,
        _ => DkimResultCode::Neutral,
    }
}
