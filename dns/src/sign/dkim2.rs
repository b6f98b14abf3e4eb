//! DKIM2 (draft-ietf-dkim-dkim2-spec), as who sends a message first writes it: what the message is, said once, and
//! for which transaction this copy of it is meant, said for each.
//!
//! ```text
//! accepted     message ─► [hashes of its header and its body] ─► Message-Instance
//! transaction  Message-Instance · MAIL FROM · RCPT TO · time ─► [one key] ─► DKIM2-Signature
//! ```
//!
//! The signature covers the two fields and nothing else, so a transaction costs the same for a message of any
//! size, and needs none of its bytes. Keys and their records are those of DKIM (draft-04 3).
//!
//! Drafts change. What is written here is what draft-04 and its successors up to -08 read alike: the first
//! signature of a message, SHA-256, one key. Several keys are another matter in each, so one signs: Ed25519 where its
//! record is published, which all verifiers must know (draft-04 3), and costs far less than RSA. The drafts leave
//! different fields out of the header's hash: a message that has one of those is not signed. Nor is one
//! that was signed before it came here: whoever signs next must have verified all before, and keep custody of it.
//!
//! As in [`super`], mail-auth's keys sign, and the forms are our own: its signer wants the message in one piece,
//! and asks the machine for the time.

use aws_lc_rs::digest;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use jiff::Timestamp;
use mail::address::Address;
use mail_auth::common::crypto::SigningKey as _;

use super::{RawField, SignError, Signer, SplitMessage, field_end, fold_value, split_message};
use crate::relax::canonicalize_field;

/// The name of the field that says what the message is.
const INSTANCE_FIELD: &str = "Message-Instance";
/// Bytes of a signature's field: RSA's has some 700.
const SIGNATURE_BYTES: usize = 768;

/// The `Message-Instance` line to put before a message that is sent for the first time, ending in CRLF; none for a
/// message that is not to be signed. `chunks` as for [`Signer::sign`].
///
/// # Errors
/// [`SignError::Malformed`].
pub fn message_instance(chunks: &[&[u8]]) -> Result<Option<Vec<u8>>, SignError> {
    let message = split_message(chunks)?;
    let Some(header) = header_hash(&message.fields) else { return Ok(None) };
    let (header, body) = (BASE64.encode(header), BASE64.encode(body_hash(&message)));
    Ok(Some(format!("{INSTANCE_FIELD}: m=1;\r\n\th=sha256:{header}:\r\n\t{body};\r\n").into_bytes()))
}

/// How many bytes of a message are the [`instance`] that was put before it.
#[must_use]
pub fn instance_length(message: &[u8]) -> Option<usize> {
    let rest = message.strip_prefix(INSTANCE_FIELD.as_bytes())?;
    rest.starts_with(b": ").then(|| field_end(message))
}

impl Signer {
    /// The `DKIM2-Signature` lines to put before a message and its [`instance`], for a transaction from `sender`
    /// (none is the null path) to `recipient`, and no other.
    ///
    /// # Errors
    /// [`SignError::Failed`].
    pub fn sign_transaction(
        &self,
        instance: &[u8],
        (sender, recipient): (Option<&Address>, &Address),
        now: Timestamp,
    ) -> Result<Vec<u8>, SignError> {
        // Ed25519 stands behind RSA.
        let (selector, key) = self.keys.last().ok_or(SignError::Failed)?;
        let (time, domain, algorithm) = (now.as_second().max(0), &self.domain, key.algorithm().name());
        let mut lines = Vec::with_capacity(SIGNATURE_BYTES);
        let start = format!("DKIM2-Signature: i=1; m=1; t={time};\r\n\td={domain};\r\n\tmf=");
        lines.extend_from_slice(start.as_bytes());
        fold_value(encode_path(sender).as_bytes(), &mut lines);
        lines.extend_from_slice(b";\r\n\trt=");
        fold_value(encode_path(Some(recipient)).as_bytes(), &mut lines);
        lines.extend_from_slice(format!(";\r\n\ts={selector}:{algorithm}:").as_bytes());
        // Signed is the field with an empty value (draft-04 9.6).
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

/// A path as the envelope has it (draft-04 8.5, 8.6): with its brackets, in Base64.
fn encode_path(address: Option<&Address>) -> String {
    BASE64.encode(address.map_or_else(|| "<>".to_owned(), |address| format!("<{address}>")))
}

/// The form in which a field is signed (draft-04 9.6): the name in small letters, and no blanks anywhere.
fn canonicalize_compact(field: &[u8], end: &[u8], out: &mut Vec<u8>) {
    let (name, value) = field.split_at(memchr::memchr(b':', field).unwrap_or(field.len()));
    out.extend(name.iter().map(u8::to_ascii_lowercase));
    out.extend(value.iter().filter(|byte| !matches!(byte, b' ' | b'\t' | b'\r' | b'\n')));
    out.extend_from_slice(end);
}

/// The hash of the header (draft-04 6.2): fields by name, those of one name from the last to the first, relaxed. None
/// when it is not for us to sign.
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
    // Stable.
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

/// Traces, and signatures of other kinds: what is put on a message on its way (draft-04 6.2).
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

/// Signed by draft-04, and left out by -08.
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

/// The hash of the body (draft-04 6.1): as it is, with one CRLF for all line ends behind it.
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
