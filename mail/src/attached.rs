//! The files in a finished message, held against the rules for attachments (email-api.md "Limits").
//!
//! ```text
//! message ─► may it hold files? ─► parts, one in another, attached messages too ─► names, number
//! ```
//!
//! This walk is stricter than a reader's: what clients would read in different ways is refused or read in all
//! of them. It is bounded in depth and parts, and decodes nothing but attached messages.

pub mod name;
pub(crate) mod parameter;

use std::borrow::Cow;

use base64::Engine as _;
use base64::alphabet::STANDARD;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use mail_parser::decoders::quoted_printable::quoted_printable_decode;
use thiserror::Error;

use crate::message::{HEADER_BYTES_MAX, parse_fields};

/// Files of an email (email-api.md "Limits").
pub const ATTACHMENTS_MAX: usize = 10;
/// Parts in one another: more than any client makes.
const DEPTH_MAX: usize = 16;
/// Parts of a message: ten files and their texts need a few dozen.
const PARTS_MAX: usize = 1_000;

/// Base 64 as clients read it: whatever the end looks like.
const LENIENT: GeneralPurpose = GeneralPurpose::new(
    &STANDARD,
    GeneralPurposeConfig::new()
        .with_decode_padding_mode(DecodePaddingMode::Indifferent)
        .with_decode_allow_trailing_bits(true),
);

/// Why the files of a message will not do. The texts go to the client.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum AttachmentError {
    /// It runs when it is opened.
    #[error("attachment `{name}`: files of type .{extension} are not accepted")]
    Blocked {
        /// The file.
        name: String,
        /// What it is.
        extension: &'static str,
    },
    /// The first of those that are too many.
    #[error("attachment `{0}`: a message may have at most {ATTACHMENTS_MAX} attachments")]
    TooMany(String),
    /// Which of them counts depends on who reads it (RFC 2045 3).
    #[error("a part of the message has more than one {0}")]
    DuplicateField(&'static str),
    /// RFC 2231 allows it, and clients disagree about what it says.
    #[error("a part of the message has its boundary in the encoding of RFC 2231")]
    BoundaryEncoded,
    /// Beyond our bounds.
    #[error(
        "the message has more than {PARTS_MAX} parts, parts nested deeper than {DEPTH_MAX}, or too long a header of a part"
    )]
    TooComplex,
}

/// Whether a message may hold files at all: most are one text, and are not looked at.
#[must_use]
pub fn may_have_attachments(message: &[u8]) -> bool {
    parse_fields(message).0.iter().any(|field| {
        let value = unfold_value(message.get(field.name_end..field.end).unwrap_or_default()).to_ascii_lowercase();
        field.has_name(message, "Content-Disposition")
            || (field.has_name(message, "Content-Type") && (!value.starts_with("text/") || value.contains("name")))
    })
}

/// Checks the files of a message.
///
/// # Errors
/// [`FileError`] names the file and the rule.
pub fn check_message(message: &[u8]) -> Result<(), AttachmentError> {
    let (fields, body) = parse_fields(message);
    let head = PartHeader::parse(fields.iter().filter_map(|field| message.get(field.start..field.end)))?;
    let body = message.get(body..).unwrap_or_default();
    AttachmentCheck::default().check_entity(&head, body, PartContext { depth: 0, attached: false, within: "" })
}

/// Checks the files of a message that is a file itself: their names alone, since it is one file.
///
/// # Errors
/// [`FileError`] names the file and the rule.
pub fn check_attached_message(message: &[u8]) -> Result<(), AttachmentError> {
    AttachmentCheck::default().check_part(message, PartContext { depth: 1, attached: true, within: "" })
}

/// Whether a file is a message by its type or name, so that its files count.
#[must_use]
pub fn is_message(content_type: &str, name: &str) -> bool {
    let kind = content_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    let name = name.trim_end_matches(['.', ' ']).to_ascii_lowercase();
    matches!(kind.as_str(), "message/rfc822" | "message/global" | "message/news" | "message/partial")
        || name.ends_with(".eml")
}

/// Where a part stands.
#[derive(Clone, Copy)]
struct PartContext<'a> {
    depth: usize,
    /// In an attached message.
    attached: bool,
    /// The type of what holds it.
    within: &'a str,
}

/// What a part's header says about it.
#[derive(Default)]
struct PartHeader {
    /// `type/subtype`, in lower case; empty when there is no Content-Type.
    kind: String,
    boundary: Option<String>,
    /// All names that the file has for some client.
    names: Vec<String>,
    is_attachment: bool,
    encoding: String,
}

impl PartHeader {
    fn parse<'a>(fields: impl Iterator<Item = &'a [u8]>) -> Result<Self, AttachmentError> {
        let mut head = Self::default();
        let mut seen: Vec<&'static str> = Vec::new();
        for field in fields {
            let colon = memchr::memchr(b':', field).unwrap_or(field.len());
            let name = field.get(..colon).unwrap_or_default().trim_ascii();
            let known = ["Content-Type", "Content-Disposition", "Content-Transfer-Encoding"];
            let Some(known) = known.into_iter().find(|k| name.eq_ignore_ascii_case(k.as_bytes())) else {
                continue;
            };
            if seen.contains(&known) {
                return Err(AttachmentError::DuplicateField(known));
            }
            seen.push(known);
            let value = unfold_value(field.get(colon..).unwrap_or_default());
            match known {
                "Content-Type" => head.read_type(&value)?,
                "Content-Disposition" => {
                    head.is_attachment = first_token(&value) == "attachment";
                    head.names.extend(parameter::values(&value, "filename"));
                    head.names.extend(parameter::values(&value, "name"));
                }
                _ => head.encoding = first_token(&value),
            }
        }
        Ok(head)
    }

    fn read_type(&mut self, value: &str) -> Result<(), AttachmentError> {
        self.kind = first_token(value);
        self.names.extend(parameter::values(value, "name"));
        self.names.extend(parameter::values(value, "filename"));
        if self.kind.starts_with("multipart/") {
            let mut boundaries = parameter::values(value, "boundary");
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

    /// Whether people see it as a file. Another form of the text is none, nor is a message of a digest.
    fn is_file(&self, place: PartContext<'_>) -> bool {
        let is_text = self.kind.is_empty() || self.kind.starts_with("text/");
        let is_choice = matches!(place.within, "multipart/alternative" | "multipart/digest");
        self.is_attachment || self.names.iter().any(|name| !name.is_empty()) || !(is_text || is_choice)
    }

    fn decode_body<'a>(&self, body: &'a [u8]) -> Cow<'a, [u8]> {
        match self.encoding.as_str() {
            "base64" => Cow::Owned(decode_base64(body)),
            "quoted-printable" => quoted_printable_decode(body).map_or(Cow::Borrowed(body), Cow::Owned),
            _ => Cow::Borrowed(body),
        }
    }
}

/// What was seen so far.
#[derive(Default)]
struct AttachmentCheck {
    parts: usize,
    files: usize,
}

impl AttachmentCheck {
    fn check_part(&mut self, part: &[u8], place: PartContext<'_>) -> Result<(), AttachmentError> {
        let (fields, body) = lenient_fields(part)?;
        self.check_entity(&PartHeader::parse(fields.into_iter())?, body, place)
    }

    fn check_entity(&mut self, head: &PartHeader, body: &[u8], place: PartContext<'_>) -> Result<(), AttachmentError> {
        // The empty line ends the header.
        let body = body.strip_prefix(b"\r\n").or_else(|| body.strip_prefix(b"\n")).unwrap_or(body);
        self.parts += 1;
        if self.parts > PARTS_MAX || place.depth > DEPTH_MAX {
            return Err(AttachmentError::TooComplex);
        }
        for name in &head.names {
            if let Some(extension) = name::blocked_extension(name) {
                return Err(AttachmentError::Blocked { name: name::display_name(name), extension });
            }
        }
        let inside = PartContext { depth: place.depth + 1, within: &head.kind, ..place };
        if let Some(boundary) = &head.boundary {
            self.check_multipart(body, boundary, inside)?;
            // RFC 2045 6.4 forbids to encode it; some clients decode it all the same.
            return match head.encoding.as_str() {
                "base64" => self.check_multipart(&decode_base64(body), boundary, inside),
                _ => Ok(()),
            };
        }
        if !place.attached && head.is_file(place) {
            self.files += 1;
            if self.files > ATTACHMENTS_MAX {
                return Err(AttachmentError::TooMany(name::display_name(head.name())));
            }
        }
        let in_digest = head.kind.is_empty() && place.within == "multipart/digest";
        if in_digest || is_message(&head.kind, "") || head.names.iter().any(|name| is_message("", name)) {
            return self.check_part(&head.decode_body(body), PartContext { attached: true, within: "", ..inside });
        }
        Ok(())
    }

    /// The parts between lines that begin with the boundary. The end is none to some clients.
    fn check_multipart(&mut self, body: &[u8], boundary: &str, place: PartContext<'_>) -> Result<(), AttachmentError> {
        let delimiter = [b"--", boundary.trim_end().as_bytes()].concat();
        let mut start = None;
        for at in memchr::memmem::find_iter(body, &delimiter) {
            if at > 0 && body.get(at - 1) != Some(&b'\n') {
                continue;
            }
            if let Some(part) = start.and_then(|start| body.get(start..at)) {
                self.check_part(part, place)?;
            }
            let end = memchr::memchr(b'\n', body.get(at..).unwrap_or_default());
            start = Some(end.map_or(body.len(), |end| at + end + 1));
        }
        start.and_then(|start| body.get(start..)).map_or(Ok(()), |part| self.check_part(part, place))
    }
}

/// The fields of a part and its body. A line that is no field is passed over, as clients do.
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

/// A field's value from its colon on, unfolded.
pub(crate) fn unfold_value(value: &[u8]) -> String {
    let text = String::from_utf8_lossy(value);
    let text: String = text.chars().filter(|c| !matches!(c, '\r' | '\n')).collect();
    let text = text.trim_start();
    text.strip_prefix(':').unwrap_or(text).trim().to_owned()
}

/// What stands before the parameters, without comments and blanks, in lower case.
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

/// What is no base 64 is passed over, and what is joined is read on (RFC 2045 6.8).
pub(crate) fn decode_base64(body: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(body.len() / 4 * 3);
    for run in body.split(|byte| *byte == b'=') {
        let run: Vec<u8> =
            run.iter().copied().filter(|b| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'/')).collect();
        // A lone last character says nothing.
        let whole = if run.len() % 4 == 1 { run.len() - 1 } else { run.len() };
        out.extend(LENIENT.decode(run.get(..whole).unwrap_or_default()).unwrap_or_default());
    }
    out
}

#[cfg(test)]
mod tests;
