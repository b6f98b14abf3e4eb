//! Signs messages with DKIM (RFC 6376, RFC 8301, RFC 8463), once per message.
//!
//! ```text
//! chunks ─► header fields ─► canonical_headers ─┐
//!       └─► body ─► body_hash (bh=) ────────────┴─► one signature per key ─► DKIM-Signature lines
//! ```
//!
//! `chunks` is the message in pieces: the header lines that were prepended, then the message as submitted. Only the
//! signed header fields are copied. The header section is parsed once and the body is hashed once for all keys.
//!
//! Signatures are relaxed/relaxed, without `l=`. The fields of [`OVERSIGNED`] are listed once more than they occur, so
//! that none can be added later without breaking the signature (RFC 6376 8.15). Signing is a pure function of the
//! message and the time. It blocks (about 0.3 ms with RSA), so callers use [`crate::signing_pool`].
//!
//! mail-auth computes the signatures, but the canonicalization ([`crate::canonicalization`]) and the header field are written
//! here. mail-auth's hasher counts a last line of blanks as a line, so other verifiers compute another hash. Its writer
//! can fold the field between the signature and the `;` behind it, which some verifiers (dkimpy) refuse.
//!
//! [`dkim2`] signs each transaction in addition.

pub mod dkim2;

use aws_lc_rs::digest;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use jiff::Timestamp;
use mail_auth::common::crypto::{DkimKey as KeyPair, Ed25519Key, RsaKey, Sha256, SigningKey};
use message::address::DomainName;
use rustls_pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use thiserror::Error;

use crate::canonicalization::{canonicalize_body, canonicalize_field};
use crate::dkim_key::{DkimKey, DkimKeyError, KeyAlgorithm, record_name};

/// Fields that are listed in `h=` once more than they occur.
pub const OVERSIGNED: [&str; 14] = [
    "From",
    "To",
    "Cc",
    "Subject",
    "Date",
    "Message-ID",
    "Reply-To",
    "MIME-Version",
    "Content-Type",
    "Content-Transfer-Encoding",
    "In-Reply-To",
    "References",
    "List-Unsubscribe",
    "List-Unsubscribe-Post",
];
/// Fields that are signed if they occur. Large receivers attribute complaints by it only if it is signed.
const SIGNED: [&str; 1] = ["Feedback-ID"];
/// Maximum signed fields. No client sends so many, and each makes every signature longer.
const FIELDS_MAX: usize = 128;
/// The name of the signature's field.
const FIELD: &str = "DKIM-Signature";
/// Bytes of a list or value on one line, so that no line exceeds the 78 of RFC 5322 2.1.1.
const LINE_BYTES: usize = 72;
/// Size of a signature field with all names: RSA's has some 1,000 bytes.
const SIGNATURE_BYTES: usize = 1_024;

/// The reason why a message was not signed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum SignError {
    /// There is no From field, which must be signed (RFC 6376 5.4). Refuse the message.
    #[error("the message has no From field")]
    NoFrom,
    /// The header section has a malformed line. Refuse the message.
    #[error("the header section has a line that is not a header field")]
    Malformed,
    /// More than 128 fields would be signed. Refuse the message.
    #[error("the message has too many header fields")]
    TooManyFields,
    /// The key failed, or the pool has stopped: retry.
    #[error("DKIM signing failed")]
    Failed,
}

/// The signer of one domain. Parsing its keys takes time (about 0.1 ms for RSA), so signers are cached
/// ([`crate::signer_cache`]).
pub struct Signer {
    domain: DomainName,
    keys: Vec<(String, KeyPair)>,
}

impl std::fmt::Debug for Signer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let selectors: Vec<&str> = self.keys.iter().map(|(selector, _)| selector.as_str()).collect();
        f.debug_struct("Signer").field("domain", &self.domain).field("selectors", &selectors).finish()
    }
}

impl Signer {
    /// Creates a signer from one or both of a domain's keys, each with its selector.
    ///
    /// # Errors
    /// A key or a selector is invalid, or there is no key ([`DkimKeyError`]).
    pub fn new(
        domain: &DomainName,
        rsa: Option<(&str, &DkimKey)>,
        ed25519: Option<(&str, &DkimKey)>,
    ) -> Result<Self, DkimKeyError> {
        let mut keys = Vec::with_capacity(2);
        for (wanted, key_pair) in [(KeyAlgorithm::Rsa, rsa), (KeyAlgorithm::Ed25519, ed25519)] {
            let Some((selector, key)) = key_pair else { continue };
            if key.algorithm() != wanted {
                return Err(DkimKeyError::Malformed);
            }
            record_name(selector, domain)?;
            keys.push((selector.to_owned(), load_key(key)?));
        }
        if keys.is_empty() {
            return Err(DkimKeyError::NoKey);
        }
        Ok(Self { domain: domain.clone(), keys })
    }

    /// The signing domain (`d=`).
    pub fn domain(&self) -> &DomainName {
        &self.domain
    }

    /// Returns the `DKIM-Signature` lines to prepend to the message, one field per key, each ending in CRLF. A header
    /// field must not be split across chunks.
    ///
    /// # Errors
    /// The message is invalid, or the key failed ([`SignError`]).
    pub fn sign(&self, chunks: &[&[u8]], now: Timestamp) -> Result<Vec<u8>, SignError> {
        let message = split_message(chunks)?;
        let (names, mut input) = canonical_headers(&message.fields)?;
        let headers_end = input.len();
        let bh = BASE64.encode(body_hash(message.body_start, message.body_rest));
        let time = now.as_second().max(0);
        let mut lines = Vec::with_capacity(self.keys.len() * SIGNATURE_BYTES);
        for (selector, key) in &self.keys {
            let start = lines.len();
            let (algorithm, domain) = (key.algorithm().name(), &self.domain);
            let text = format!(
                "{FIELD}: v=1; a={algorithm}; c=relaxed/relaxed;\r\n\td={domain};\r\n\ts={selector}; \
                 t={time};\r\n\th={names};\r\n\tbh={bh};\r\n\tb="
            );
            lines.extend_from_slice(text.as_bytes());
            // The signature's own field is signed with an empty `b=` and without a line end (RFC 6376 3.7).
            input.truncate(headers_end);
            canonicalize_field(FIELD, lines.get(start + FIELD.len() + 1..).unwrap_or_default(), &mut input);
            input.truncate(input.len() - b"\r\n".len());
            let value = key.sign(input.as_slice()).map_err(|_| SignError::Failed)?;
            fold_value(BASE64.encode(value).as_bytes(), &mut lines);
            // No blank may follow the value, not even before a `;`. By RFC 6376 3.7 verifiers ignore it, but some do
            // not.
            lines.extend_from_slice(b"\r\n");
        }
        Ok(lines)
    }
}

/// Writes a value folded into lines, without a line end after the last one.
fn fold_value(value: &[u8], lines: &mut Vec<u8>) {
    for (n, piece) in value.chunks(LINE_BYTES).enumerate() {
        if n > 0 {
            lines.extend_from_slice(b"\r\n\t");
        }
        lines.extend_from_slice(piece);
    }
}

fn load_key(key: &DkimKey) -> Result<KeyPair, DkimKeyError> {
    match key.algorithm() {
        KeyAlgorithm::Rsa => {
            let der = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.pkcs8()));
            RsaKey::<Sha256>::from_key_der(der).map(KeyPair::Rsa)
        }
        KeyAlgorithm::Ed25519 => Ed25519Key::from_pkcs8_der(key.pkcs8()).map(KeyPair::Ed25519),
    }
    .map_err(|_| DkimKeyError::Malformed)
}

/// A header field: its name, and its value including the last line end.
type RawField<'a> = (&'a [u8], &'a [u8]);

struct SplitMessage<'a> {
    fields: Vec<RawField<'a>>,
    body_start: &'a [u8],
    body_rest: &'a [&'a [u8]],
}

/// Splits a message into fields and body. A message without an empty line has no body.
fn split_message<'a>(chunks: &'a [&'a [u8]]) -> Result<SplitMessage<'a>, SignError> {
    let mut fields = Vec::with_capacity(32);
    let mut rest_of_chunks = chunks;
    while let Some((&chunk, after)) = rest_of_chunks.split_first() {
        let mut rest = chunk;
        while !rest.is_empty() {
            if let Some(body) = rest.strip_prefix(b"\r\n").or_else(|| rest.strip_prefix(b"\n")) {
                return Ok(SplitMessage { fields, body_start: body, body_rest: after });
            }
            let (field, next) = rest.split_at(field_end(rest));
            let colon = memchr::memchr(b':', field).ok_or(SignError::Malformed)?;
            let (name, value) = field.split_at(colon);
            let bytes_fit = name.iter().all(|b| matches!(b, b'!'..=b'~' | b' ' | b'\t'));
            if !bytes_fit || !name.first().is_some_and(u8::is_ascii_graphic) {
                return Err(SignError::Malformed);
            }
            fields.push((name.trim_ascii_end(), value.get(1..).unwrap_or_default()));
            rest = next;
        }
        rest_of_chunks = after;
    }
    Ok(SplitMessage { fields, body_start: b"", body_rest: &[] })
}

/// The end of the field at the start of `text`: the first line end that is not followed by a blank.
fn field_end(text: &[u8]) -> usize {
    memchr::memchr_iter(b'\n', text)
        .find(|&at| !matches!(text.get(at + 1), Some(b' ' | b'\t')))
        .map_or(text.len(), |at| at + 1)
}

/// Returns the list of names for `h=`, and the canonicalized fields in the same order: for each name the last field
/// first (RFC 6376 5.4.2).
fn canonical_headers(fields: &[RawField<'_>]) -> Result<(String, Vec<u8>), SignError> {
    let mut names = SignedFieldNames::default();
    let mut bytes = Vec::with_capacity(2 * SIGNATURE_BYTES);
    let wanted = OVERSIGNED.iter().map(|name| (name, true)).chain(SIGNED.iter().map(|name| (name, false)));
    for (name, is_oversigned) in wanted {
        for (_, value) in fields.iter().rev().filter(|(field_name, _)| field_name.eq_ignore_ascii_case(name.as_bytes()))
        {
            names.push(name)?;
            canonicalize_field(name, value, &mut bytes);
        }
        if *name == "From" && names.count == 0 {
            return Err(SignError::NoFrom);
        }
        if is_oversigned {
            names.push(name)?;
        }
    }
    Ok((names.text, bytes))
}

/// The folded value of `h=`.
#[derive(Default)]
struct SignedFieldNames {
    text: String,
    count: usize,
    line_bytes: usize,
}

impl SignedFieldNames {
    fn push(&mut self, name: &str) -> Result<(), SignError> {
        if self.count >= FIELDS_MAX {
            return Err(SignError::TooManyFields);
        }
        if self.count > 0 {
            self.text.push(':');
        }
        if self.line_bytes + name.len() > LINE_BYTES {
            self.text.push_str("\r\n\t");
            self.line_bytes = 0;
        }
        self.text.push_str(name);
        self.line_bytes += name.len() + 1;
        self.count += 1;
        Ok(())
    }
}

fn body_hash(start: &[u8], rest: &[&[u8]]) -> digest::Digest {
    let mut hash = digest::Context::new(&digest::SHA256);
    canonicalize_body(std::iter::once(start).chain(rest.iter().copied()).collect(), |run| hash.update(run));
    hash.finish()
}
