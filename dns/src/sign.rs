//! DKIM signing (RFC 6376, RFC 8301, RFC 8463), once per message.
//!
//! `chunks` is the message in pieces, as it lies in memory: header lines that were put before it, then
//! what the client sent. Nothing is copied but the signed header fields. The header section is split
//! once, the body hashed once, and each key signs the result: so the second signature costs only
//! itself.
//!
//! relaxed/relaxed; no `l=`; the fields of [`OVERSIGNED`] are listed once more than they occur, so that
//! none can be added later without breaking the signature (RFC 6376 8.15). A pure function of the
//! message and the time, blocking (about 0.3 ms with RSA): the caller runs it in
//! [`crate::signing_pool`].
//!
//! mail-auth's keys sign, but the forms are our own ([`crate::relax`]) and so is the field: its hasher
//! counts a last line of blanks as a line, and its writer may fold between the signature's value and
//! the `;` behind it. Other verifiers find another hash in the first case, and some (dkimpy) refuse the
//! second.
//!
//! [`dkim2`] signs a second time, for each transaction.

pub mod dkim2;

use aws_lc_rs::digest;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use jiff::Timestamp;
use mail::address::DomainName;
use mail_auth::common::crypto::{DkimKey as KeyPair, Ed25519Key, RsaKey, Sha256, SigningKey};
use rustls_pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use thiserror::Error;

use crate::dkim_key::{DkimKey, DkimKeyError, KeyAlgorithm, record_name};
use crate::relax::{canonicalize_body, canonicalize_field};

/// Signed wherever they occur, and once more.
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
/// Signed where they occur (large receivers count complaints by it only when it is signed).
const SIGNED: [&str; 1] = ["Feedback-ID"];
/// Fields signed of one message. No client writes so many; each would lengthen every signature.
const FIELDS_MAX: usize = 128;
/// The name of the field made here.
const FIELD: &str = "DKIM-Signature";
/// Bytes of a list or a value on one line, so that none passes the 78 of RFC 5322 2.1.1.
const LINE_BYTES: usize = 72;
/// Bytes of a signature header with all names listed: RSA's is some 1,000.
const SIGNATURE_BYTES: usize = 1_024;

/// Why a message was not signed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum SignError {
    /// No From field: RFC 6376 5.4 demands that it be signed. Refuse the message.
    #[error("the message has no From field")]
    NoFrom,
    /// The header section has a line that is no field. Refuse the message.
    #[error("the header section has a line that is no header field")]
    Malformed,
    /// More than 128 of the fields that are signed. Refuse the message.
    #[error("the message has too many header fields")]
    TooManyFields,
    /// The key failed, or the pool is gone: try again.
    #[error("the signature could not be made")]
    Failed,
}

/// What signs for one domain. Keys are loaded once (about 0.1 ms for RSA), so keep it
/// ([`crate::signers`]).
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
    /// Puts a signer together from one or both of a domain's keys, each with its selector.
    ///
    /// # Errors
    /// [`KeyError`].
    pub fn new(
        domain: &DomainName,
        rsa: Option<(&str, &DkimKey)>,
        ed25519: Option<(&str, &DkimKey)>,
    ) -> Result<Self, DkimKeyError> {
        let mut keys = Vec::with_capacity(2);
        for (wanted, given) in [(KeyAlgorithm::Rsa, rsa), (KeyAlgorithm::Ed25519, ed25519)] {
            let Some((selector, key)) = given else { continue };
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

    /// Who signs.
    #[must_use]
    pub fn domain(&self) -> &DomainName {
        &self.domain
    }

    /// The `DKIM-Signature` lines to put before the message, one field per key, each ending in CRLF.
    /// A header field may not be cut by the end of a chunk.
    ///
    /// # Errors
    /// [`SignError`].
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
            // The signature's own field is signed with an empty `b=` and no line end (RFC 6376 3.7).
            input.truncate(headers_end);
            canonicalize_field(FIELD, lines.get(start + FIELD.len() + 1..).unwrap_or_default(), &mut input);
            input.truncate(input.len() - b"\r\n".len());
            let value = key.sign(input.as_slice()).map_err(|_| SignError::Failed)?;
            fold_value(BASE64.encode(value).as_bytes(), &mut lines);
            // There must be no blank behind the value, not even before a `;`. RFC 6376 3.7 would have the verifier drop
            // it; some do not.
            lines.extend_from_slice(b"\r\n");
        }
        Ok(lines)
    }
}

/// Writes a value in lines; nothing stands behind it.
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

/// A header field: its name, and its value up to and with the last line's end.
type RawField<'a> = (&'a [u8], &'a [u8]);

struct SplitMessage<'a> {
    fields: Vec<RawField<'a>>,
    body_start: &'a [u8],
    body_rest: &'a [&'a [u8]],
}

/// Finds the fields and the body. A message without an empty line is all header.
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

/// Where the field at the start of `text` ends: at a line end that no blank follows.
fn field_end(text: &[u8]) -> usize {
    memchr::memchr_iter(b'\n', text)
        .find(|&at| !matches!(text.get(at + 1), Some(b' ' | b'\t')))
        .map_or(text.len(), |at| at + 1)
}

/// The list of names for `h=`, and the fields in the relaxed form, in the same order: of each name the
/// last field first (RFC 6376 5.4.2).
fn canonical_headers(fields: &[RawField<'_>]) -> Result<(String, Vec<u8>), SignError> {
    let mut names = SignedFieldNames::default();
    let mut bytes = Vec::with_capacity(2 * SIGNATURE_BYTES);
    let wanted = OVERSIGNED.iter().map(|name| (name, true)).chain(SIGNED.iter().map(|name| (name, false)));
    for (name, over) in wanted {
        for (_, value) in fields.iter().rev().filter(|(given, _)| given.eq_ignore_ascii_case(name.as_bytes())) {
            names.push(name)?;
            canonicalize_field(name, value, &mut bytes);
        }
        if *name == "From" && names.count == 0 {
            return Err(SignError::NoFrom);
        }
        if over {
            names.push(name)?;
        }
    }
    Ok((names.text, bytes))
}

/// The value of `h=`, folded.
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
