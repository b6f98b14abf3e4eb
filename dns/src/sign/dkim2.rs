//! Signs messages with DKIM2 (draft-ietf-dkim-dkim2-spec) as the first sender of a message.
//!
//! ```text
//! accepted     message ─► hashes of its header and its body ─► Message-Instance
//! transaction  Message-Instance · MAIL FROM · RCPT TO · time ─► one key ─► DKIM2-Signature
//! ```
//!
//! The `Message-Instance` field has the hashes of the message. The `DKIM2-Signature` field is written for each
//! transaction. The signature covers these two fields only, so its cost does not depend on the size of the message,
//! whose bytes are not needed. Keys and their records are those of DKIM (draft-04 3).
//!
//! The drafts still change. This code writes what draft-04 and its successors up to -08 have in common:
//!
//! - The first signature of a message, with SHA-256 and one key, because each draft treats several keys differently.
//!   The key is Ed25519 if its record is published: all verifiers must support it (draft-04 3), and it is much cheaper
//!   than RSA.
//! - The drafts exclude different fields from the header's hash, so a message with one of those fields is not signed.
//! - A message that already has a DKIM2 signature is not signed. The next signer must have verified all previous
//!   signatures and continue the chain of custody.
//!
//! As in [`super`], mail-auth computes the signatures, but canonicalization and fields are written here: its signer
//! needs the message in one piece and reads the system clock.

use aws_lc_rs::digest;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use jiff::Timestamp;
use mail_auth::common::crypto::SigningKey as _;
use message::address::Address;

use super::{RawField, SignError, Signer, SplitMessage, field_end, fold_value, split_message};
use crate::canonicalization::canonicalize_field;

/// The name of the field with the hashes of the message.
const INSTANCE_FIELD: &str = "Message-Instance";
/// Size of a signature field: RSA's has some 700 bytes.
const SIGNATURE_BYTES: usize = 768;

/// Returns the `Message-Instance` line to prepend to a message that is sent for the first time, ending in CRLF. `None`
/// if the message must not be signed. `chunks` as for [`Signer::sign`].
pub fn message_instance(chunks: &[&[u8]]) -> Result<Option<Vec<u8>>, SignError> {
    let message = split_message(chunks)?;
    let Some(header) = header_hash(&message.fields) else { return Ok(None) };
    let (header, body) = (BASE64.encode(header), BASE64.encode(body_hash(&message)));
    Ok(Some(format!("{INSTANCE_FIELD}: m=1;\r\n\th=sha256:{header}:\r\n\t{body};\r\n").into_bytes()))
}

/// The length of the [`message_instance`] line at the start of a message; `None` if there is none.
pub fn instance_length(message: &[u8]) -> Option<usize> {
    let rest = message.strip_prefix(INSTANCE_FIELD.as_bytes())?;
    rest.starts_with(b": ").then(|| field_end(message))
}

impl Signer {
    /// Returns the `DKIM2-Signature` lines to prepend to a message and its [`message_instance`]. They are valid only
    /// for the transaction from `sender` (`None` is the null reverse path) to `recipient`.
    pub fn sign_transaction(
        &self,
        instance: &[u8],
        sender: Option<&Address>,
        recipient: &Address,
        now: Timestamp,
    ) -> Result<Vec<u8>, SignError> {
        // The last key is the Ed25519 one if there are two.
        let (selector, key) = self.keys.last().ok_or(SignError::Failed)?;
        let (time, domain, algorithm) = (now.as_second().max(0), &self.domain, key.algorithm().name());
        let mut lines = Vec::with_capacity(SIGNATURE_BYTES);
        let start = format!("DKIM2-Signature: i=1; m=1; t={time};\r\n\td={domain};\r\n\tmf=");
        lines.extend_from_slice(start.as_bytes());
        fold_value(encode_path(sender).as_bytes(), &mut lines);
        lines.extend_from_slice(b";\r\n\trt=");
        fold_value(encode_path(Some(recipient)).as_bytes(), &mut lines);
        lines.extend_from_slice(format!(";\r\n\ts={selector}:{algorithm}:").as_bytes());
        // The field is signed with an empty value (draft-04 9.6).
        let mut input = Vec::with_capacity(SIGNATURE_BYTES);
        canonicalize_compact(instance, b"\r\n", &mut input);
        canonicalize_compact(&lines, b";\r\n", &mut input);
        let value = key.sign(input.as_slice()).map_err(|_| SignError::Failed)?;
        lines.extend_from_slice(b"\r\n\t");
        fold_value(BASE64.encode(value).as_bytes(), &mut lines);
        lines.extend_from_slice(b";\r\n");
        Ok(lines)
    }
}

/// A path as in the envelope (draft-04 8.5, 8.6), with its brackets, in base64.
fn encode_path(address: Option<&Address>) -> String {
    BASE64.encode(address.map_or_else(|| "<>".to_owned(), |address| format!("<{address}>")))
}

/// The canonical form of a field (draft-04 9.6): the name in lower case, and no blanks.
fn canonicalize_compact(field: &[u8], end: &[u8], out: &mut Vec<u8>) {
    let (name, value) = field.split_at(memchr::memchr(b':', field).unwrap_or(field.len()));
    out.extend(name.iter().map(u8::to_ascii_lowercase));
    out.extend(value.iter().filter(|byte| !matches!(byte, b' ' | b'\t' | b'\r' | b'\n')));
    out.extend_from_slice(end);
}

/// The hash of the header (draft-04 6.2): fields sorted by name, those of one name from the last to the first, in the
/// relaxed form. `None` if the message must not be signed.
fn header_hash(fields: &[RawField<'_>]) -> Option<digest::Digest> {
    let mut signed = Vec::with_capacity(fields.len());
    for (name, value) in fields.iter().rev() {
        let name = String::from_utf8_lossy(name).to_ascii_lowercase();
        match name.as_str() {
            "message-instance" | "dkim2-signature" => return None,
            name if is_draft_dependent_field(name) => return None,
            name if is_excluded_field(name) => {}
            _ => signed.push((name, *value)),
        }
    }
    // The sort is stable, so fields of one name stay in reverse order.
    signed.sort_by(|(a, _), (b, _)| a.cmp(b));
    let mut hash = digest::Context::new(&digest::SHA256);
    let mut relaxed = Vec::new();
    for (name, value) in signed {
        relaxed.clear();
        canonicalize_field(&name, value, &mut relaxed);
        hash.update(&relaxed);
    }
    Some(hash.finish())
}

/// Trace fields and other signatures, which are added in transit (draft-04 6.2).
fn is_excluded_field(name: &str) -> bool {
    matches!(
        name,
        "received"
            | "return-path"
            | "delivered-to"
            | "authentication-results"
            | "dkim-signature"
            | "arc-authentication-results"
            | "arc-message-signature"
            | "arc-seal"
    ) || name.starts_with("x-")
}

/// Fields that draft-04 signs and -08 excludes.
fn is_draft_dependent_field(name: &str) -> bool {
    matches!(
        name,
        "apparently-to"
            | "dl-expansion-history"
            | "original-recipient"
            | "sio-label-history"
            | "x400-received"
            | "x400-trace"
    ) || name.starts_with("received-")
}

/// The hash of the body (draft-04 6.1): unchanged, with exactly one CRLF at its end.
fn body_hash(message: &SplitMessage<'_>) -> digest::Digest {
    let mut pieces = vec![message.body_start];
    pieces.extend_from_slice(message.body_rest);
    while let Some(last) = pieces.last_mut() {
        let end = last.iter().rposition(|byte| !matches!(byte, b'\r' | b'\n')).map_or(0, |at| at + 1);
        *last = last.get(..end).unwrap_or_default();
        if !last.is_empty() {
            break;
        }
        pieces.pop();
    }
    let mut hash = digest::Context::new(&digest::SHA256);
    pieces.iter().for_each(|piece| hash.update(piece));
    hash.update(b"\r\n");
    hash.finish()
}
