//! Attachment policy: checks the attachments of a complete message.
//!
//! ```text
//! message ─► can it have attachments? ─► MIME parts, recursively, with attached messages ─► names, number
//! ```
//!
//! The check is stricter than a MIME reader. If mail clients interpret a construct in different ways, it is refused, or
//! every interpretation is checked. Depth and number of parts are bounded, and only attached messages are decoded.

pub mod filename_policy;
pub(crate) mod mime_parameter;

use std::borrow::Cow;

use base64::Engine as _;
use mail_parser::decoders::quoted_printable::quoted_printable_decode;
use thiserror::Error;

use crate::header::{HEADER_BYTES_MAX, HeaderField, SubmittedMessage, parse_fields};
use crate::mime::LENIENT_BASE64;

/// Maximum number of attachments of an email.
pub const ATTACHMENTS_MAX: usize = 10;
/// Maximum nesting of parts: deeper than any client produces.
const DEPTH_MAX: usize = 16;
/// Maximum number of parts: ten files and their texts need a few dozen.
const PARTS_MAX: usize = 1_000;

/// An attachment is not allowed. The text is sent to the client.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum AttachmentError {
    /// A type that is executed when it is opened.
    #[error("attachment `{name}`: files of type .{extension} are not accepted")]
    Blocked { name: String, extension: &'static str },
    /// The name of the first attachment above the limit.
    #[error("attachment `{0}`: a message may have at most {ATTACHMENTS_MAX} attachments")]
    TooMany(String),
    /// A header field or parameter occurs twice. Clients disagree about which one counts (RFC 2045 3).
    #[error("a part of the message has more than one {0}")]
    DuplicateField(&'static str),
    /// The boundary is encoded by RFC 2231. This is legal, but clients disagree about its value.
    #[error("a part of the message has an RFC 2231 encoded boundary, which is not accepted")]
    BoundaryEncoded,
    /// The message exceeds the limits of this check.
    #[error(
        "the message has more than {PARTS_MAX} parts, parts nested deeper than {DEPTH_MAX}, or a part header that is too long"
    )]
    TooComplex,
}

/// True if a message can have attachments. Most messages are a single text and need no check.
pub fn may_have_attachments(submitted: &SubmittedMessage) -> bool {
    let message = submitted.bytes();
    let is_text = |field: &HeaderField| {
        let value = unfold_value(message.get(field.name_end..field.end).unwrap_or_default()).to_ascii_lowercase();
        value.starts_with("text/") && !value.contains("name")
    };
    submitted.fields().iter().any(|field| {
        field.has_name(message, "Content-Disposition") || field.has_name(message, "Content-Type") && !is_text(field)
    })
}

/// Checks the attachments of a message.
///
/// # Errors
/// [`AttachmentError`] names the attachment and the rule.
pub fn check_message(submitted: &SubmittedMessage) -> Result<(), AttachmentError> {
    let fields = submitted.fields().iter();
    let head = PartHeader::parse(fields.filter_map(|field| submitted.bytes().get(field.start..field.end)))?;
    let context = PartContext { depth: 0, attached: false, within: "" };
    AttachmentCheck::default().check_entity(&head, submitted.body(), context)
}

/// Checks a message that is itself an attachment. Only the names of its attachments are checked, because it counts as
/// one attachment.
///
/// # Errors
/// [`AttachmentError`] names the attachment and the rule.
pub fn check_attached_message(message: &[u8]) -> Result<(), AttachmentError> {
    AttachmentCheck::default().check_part(message, PartContext { depth: 1, attached: true, within: "" })
}

/// True if an attachment is a message by its type or name, so that its own attachments are checked too.
pub fn is_message(content_type: &str, name: &str) -> bool {
    let kind = content_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    let name = name.trim_end_matches(['.', ' ']).to_ascii_lowercase();
    matches!(kind.as_str(), "message/rfc822" | "message/global" | "message/news" | "message/partial")
        || name.ends_with(".eml")
}

/// The position of a part in the message.
#[derive(Clone, Copy)]
struct PartContext<'a> {
    depth: usize,
    /// True inside an attached message.
    attached: bool,
    /// The media type of the enclosing part.
    within: &'a str,
}

/// The header fields of a part that matter here.
#[derive(Default)]
struct PartHeader {
    /// `type/subtype` in lower case; empty without Content-Type.
    kind: String,
    boundary: Option<String>,
    /// All names that some client would show for the file.
    names: Vec<String>,
    is_attachment: bool,
    encoding: String,
}

impl PartHeader {
    fn parse<'a>(fields: impl Iterator<Item = &'a [u8]>) -> Result<Self, AttachmentError> {
        let mut head = Self::default();
        let mut found: Vec<&'static str> = Vec::new();
        for field in fields {
            let colon = memchr::memchr(b':', field).unwrap_or(field.len());
            let name = field.get(..colon).unwrap_or_default().trim_ascii();
            let known = ["Content-Type", "Content-Disposition", "Content-Transfer-Encoding"];
            let Some(known) = known.into_iter().find(|k| name.eq_ignore_ascii_case(k.as_bytes())) else {
                continue;
            };
            if found.contains(&known) {
                return Err(AttachmentError::DuplicateField(known));
            }
            found.push(known);
            let value = unfold_value(field.get(colon..).unwrap_or_default());
            match known {
                "Content-Type" => head.read_type(&value)?,
                "Content-Disposition" => {
                    head.is_attachment = first_token(&value) == "attachment";
                    head.names.extend(mime_parameter::values(&value, "filename"));
                    head.names.extend(mime_parameter::values(&value, "name"));
                }
                _ => head.encoding = first_token(&value),
            }
        }
        Ok(head)
    }

    fn read_type(&mut self, value: &str) -> Result<(), AttachmentError> {
        self.kind = first_token(value);
        self.names.extend(mime_parameter::values(value, "name"));
        self.names.extend(mime_parameter::values(value, "filename"));
        if self.kind.starts_with("multipart/") {
            let mut boundaries = mime_parameter::values(value, "boundary");
            if value.to_ascii_lowercase().contains("boundary*") {
                return Err(AttachmentError::BoundaryEncoded);
            }
            self.boundary = boundaries.pop();
            if !boundaries.is_empty() {
                return Err(AttachmentError::DuplicateField("boundary"));
            }
        }
        Ok(())
    }

    fn name(&self) -> &str {
        self.names.first().map_or("unnamed", String::as_str)
    }

    /// True if mail clients show the part as a file. Alternatives of a text and messages of a digest are not files.
    fn is_file(&self, context: PartContext<'_>) -> bool {
        let is_text = self.kind.is_empty() || self.kind.starts_with("text/");
        let is_choice = matches!(context.within, "multipart/alternative" | "multipart/digest");
        self.is_attachment || self.names.iter().any(|name| !name.is_empty()) || !(is_text || is_choice)
    }
}

/// Counters of one check.
#[derive(Default)]
struct AttachmentCheck {
    parts: usize,
    files: usize,
}

impl AttachmentCheck {
    fn check_part(&mut self, part: &[u8], context: PartContext<'_>) -> Result<(), AttachmentError> {
        let (fields, body) = lenient_fields(part)?;
        self.check_entity(&PartHeader::parse(fields.into_iter())?, body, context)
    }

    fn check_entity(
        &mut self,
        head: &PartHeader,
        body: &[u8],
        context: PartContext<'_>,
    ) -> Result<(), AttachmentError> {
        // The header ends with an empty line.
        let body = body.strip_prefix(b"\r\n").or_else(|| body.strip_prefix(b"\n")).unwrap_or(body);
        self.parts += 1;
        if self.parts > PARTS_MAX || context.depth > DEPTH_MAX {
            return Err(AttachmentError::TooComplex);
        }
        for name in &head.names {
            if let Some(extension) = filename_policy::blocked_extension(name) {
                return Err(AttachmentError::Blocked { name: filename_policy::display_name(name), extension });
            }
        }
        let inside = PartContext { depth: context.depth + 1, within: &head.kind, ..context };
        if let Some(boundary) = &head.boundary {
            self.check_multipart(body, boundary, inside)?;
            // RFC 2045 6.4 forbids a transfer encoding of multiparts, but some clients decode it.
            return match head.encoding.as_str() {
                "base64" => self.check_multipart(&decode_base64(body), boundary, inside),
                _ => Ok(()),
            };
        }
        if !context.attached && head.is_file(context) {
            self.files += 1;
            if self.files > ATTACHMENTS_MAX {
                return Err(AttachmentError::TooMany(filename_policy::display_name(head.name())));
            }
        }
        let in_digest = head.kind.is_empty() && context.within == "multipart/digest";
        if in_digest || is_message(&head.kind, "") || head.names.iter().any(|name| is_message("", name)) {
            let body = decode_body(&head.encoding, body);
            return self.check_part(&body, PartContext { attached: true, within: "", ..inside });
        }
        Ok(())
    }

    /// Checks the parts between lines that start with the boundary. Some clients ignore the closing boundary, so the
    /// text after it is checked as a part too.
    fn check_multipart(
        &mut self,
        body: &[u8],
        boundary: &str,
        context: PartContext<'_>,
    ) -> Result<(), AttachmentError> {
        let delimiter = [b"--", boundary.trim_end().as_bytes()].concat();
        let mut start = None;
        for at in memchr::memmem::find_iter(body, &delimiter) {
            if at > 0 && body.get(at - 1) != Some(&b'\n') {
                continue;
            }
            if let Some(part) = start.and_then(|start| body.get(start..at)) {
                self.check_part(part, context)?;
            }
            let end = memchr::memchr(b'\n', body.get(at..).unwrap_or_default());
            start = Some(end.map_or(body.len(), |end| at + end + 1));
        }
        start.and_then(|start| body.get(start..)).map_or(Ok(()), |part| self.check_part(part, context))
    }
}

/// Returns the header fields of a part and its body. Malformed lines are skipped, as mail clients do.
fn lenient_fields(part: &[u8]) -> Result<(Vec<&[u8]>, &[u8]), AttachmentError> {
    let mut found = Vec::new();
    let mut rest = part;
    loop {
        let (fields, end) = parse_fields(rest);
        found.extend(fields.iter().filter_map(|field| rest.get(field.start..field.end)));
        rest = rest.get(end..).unwrap_or_default();
        if rest.is_empty() || rest.starts_with(b"\r\n") || rest.starts_with(b"\n") {
            return Ok((found, rest));
        }
        if part.len() - rest.len() > HEADER_BYTES_MAX {
            return Err(AttachmentError::TooComplex);
        }
        let line = memchr::memchr(b'\n', rest).map_or(rest.len(), |end| end + 1);
        rest = rest.get(line..).unwrap_or_default();
    }
}

/// The unfolded value of a field; `value` starts at the colon.
pub(crate) fn unfold_value(value: &[u8]) -> String {
    let text = String::from_utf8_lossy(value);
    let text: String = text.chars().filter(|c| !matches!(c, '\r' | '\n')).collect();
    let text = text.trim_start();
    text.strip_prefix(':').unwrap_or(text).trim().to_owned()
}

/// The text before the first parameter, in lower case and without comments and white space.
pub(crate) fn first_token(value: &str) -> String {
    let mut depth = 0_usize;
    let mut out = String::new();
    for c in value.chars() {
        match c {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            _ if depth > 0 => {}
            ';' => break,
            c if c.is_whitespace() => {}
            c => out.push(c.to_ascii_lowercase()),
        }
    }
    out.trim_matches('"').to_owned()
}

/// Decodes the body of a part. One that cannot be decoded is returned as it is.
pub(crate) fn decode_body<'a>(encoding: &str, body: &'a [u8]) -> Cow<'a, [u8]> {
    match encoding {
        "base64" => Cow::Owned(decode_base64(body)),
        "quoted-printable" => quoted_printable_decode(body).map_or(Cow::Borrowed(body), Cow::Owned),
        _ => Cow::Borrowed(body),
    }
}

/// Decodes base64, skipping other characters. Data after padding is decoded too, because concatenated encodings occur
/// (RFC 2045 6.8).
fn decode_base64(body: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(body.len() / 4 * 3);
    for run in body.split(|byte| *byte == b'=') {
        let run: Vec<u8> =
            run.iter().copied().filter(|b| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'/')).collect();
        // A single trailing character encodes no complete byte.
        let whole = if run.len() % 4 == 1 { run.len() - 1 } else { run.len() };
        out.extend(LENIENT_BASE64.decode(run.get(..whole).unwrap_or_default()).unwrap_or_default());
    }
    out
}

#[cfg(test)]
mod tests;
