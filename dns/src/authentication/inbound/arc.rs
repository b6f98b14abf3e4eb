//! Verifies ARC chains (RFC 8617).
//!
//! mail-auth parses the fields and verifies the newest message signature and every seal. It accepts some fields that
//! the standard does not: malformed tag lists, SHA-1, unsuitable keys. These make the chain fail here.

use std::time::Duration;

use mail_auth::common::verify::VerifySignature as _;
use mail_auth::{AuthenticatedMessage, DkimResult, Parameters};
use message::received::AuthResult;

use crate::authentication::dkim_keys::{FetchedKeys, offline_authenticator};
use crate::authentication::{DkimKeySource, signature};

/// Maximum ARC sets that are verified (RFC 8617 5.2 allows 50).
const ARC_SETS_MAX: usize = 20;
/// A field that a message signature must not cover: seals are added after it (RFC 8617 4.1.2).
const NEVER_COVERED: &str = "arc-seal";

pub(super) async fn verify_chain(
    message: &AuthenticatedMessage<'_>,
    source: &DkimKeySource,
    within: Duration,
) -> AuthResult {
    let (signatures, seals) = (&message.ams_headers, &message.as_headers);
    if message.has_arc_errors {
        return AuthResult::Fail;
    }
    let sets = signatures.len().max(seals.len()).max(message.aar_headers.len());
    if sets == 0 {
        return AuthResult::None;
    }
    if sets > ARC_SETS_MAX || has_flaw(message) {
        return AuthResult::Fail;
    }
    let Some(verifier) = offline_authenticator() else { return AuthResult::TempError };
    let names = signatures.last().map(|signature| signature.header.domain_key());
    let names: Vec<String> =
        names.into_iter().chain(seals.iter().map(|signature| signature.header.domain_key())).collect();
    let keys = FetchedKeys::fetch(&names, source, within).await;
    let unusable = names.iter().any(|name| keys.objection(name).is_some());
    match verifier.verify_arc(Parameters::new(message).with_txt_cache(&keys)).await.result() {
        DkimResult::Pass if unusable => AuthResult::Fail,
        DkimResult::Pass => AuthResult::Pass,
        DkimResult::TempError(_) => AuthResult::TempError,
        // RFC 8617 4.4: a chain is none, pass or fail. Here there is a chain, even if it is incomplete.
        DkimResult::None | DkimResult::Fail(_) | DkimResult::Neutral(_) | DkimResult::PermError(_) => AuthResult::Fail,
    }
}

/// Returns whether a field is malformed or uses SHA-1 (RFC 8301).
fn has_flaw(message: &AuthenticatedMessage<'_>) -> bool {
    let signature = message.ams_headers.iter().any(|field| {
        let covered = &field.header.h;
        let is_never_covered = |name: &String| name.trim().eq_ignore_ascii_case(NEVER_COVERED);
        signature::tag_list_fault(field.value, signature::ARC_MESSAGE_REQUIRED_TAGS).is_some()
            || signature::signature_objection(field.header.a, covered).is_some()
            || covered.iter().any(is_never_covered)
    });
    signature
        || message.as_headers.iter().any(|field| {
            let sha1 = mail_auth::common::crypto::Algorithm::RsaSha1;
            signature::tag_list_fault(field.value, signature::ARC_SEAL_REQUIRED_TAGS).is_some()
                || field.header.a == sha1
        })
}
