//! Attachments of a send request: at most ten files of at most 10 MB, in base64.
//!
//! A file's name decides how the recipient's machine opens it. Therefore a name must be plain text: no path, no control
//! or bidirectional characters, no encoding that a mail client could decode into another name (RFC 2047, RFC 2231), and
//! no `name` parameter in the content type.

use std::borrow::Cow;

use base64::Engine as _;
use base64::alphabet::STANDARD;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use httpd::fields::{self, FieldDiagnostics, FieldNames, JsonKind, ObjectFields};
use message::attachment_policy::filename_policy::{blocked_extension, has_invisible};
use message::attachment_policy::{self, ATTACHMENTS_MAX};
use message::compose::Attachment;
use serde_json::value::RawValue;

/// Maximum size of one decoded file.
pub const ATTACHMENT_BYTES_MAX: usize = 10 << 20;
/// Maximum length of a file name, as in common file systems.
pub const NAME_BYTES_MAX: usize = 255;
pub(super) const CONTENT_TYPE_BYTES_MAX: usize = 255;
pub(super) const CONTENT_TYPE_DEFAULT: &str = "application/octet-stream";
pub(super) const CONTENT_ID_BYTES_MAX: usize = 200;

/// Field names of an attachment.
pub(super) const NAMES: FieldNames = FieldNames {
    known: &[
        ("name", "name"),
        ("filename", "name"),
        ("content_type", "content_type"),
        ("contentType", "content_type"),
        ("data", "data"),
        ("content", "data"),
        ("content_id", "content_id"),
        ("contentId", "content_id"),
    ],
    foreign: &[
        ("Name", "name"),
        ("Filename", "name"),
        ("FileName", "name"),
        ("ContentType", "content_type"),
        ("Content", "data"),
        ("Data", "data"),
        ("ContentID", "content_id"),
        ("ContentId", "content_id"),
    ],
};

/// The standard alphabet, with or without padding.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &STANDARD,
    GeneralPurposeConfig::new()
        .with_decode_padding_mode(DecodePaddingMode::Indifferent)
        .with_decode_allow_trailing_bits(false),
);

/// Returns whether `attachments` is given and is not an empty list.
pub(super) fn has_any(fields: &ObjectFields<'_>) -> bool {
    let is_empty =
        |list: &RawValue| JsonKind::of_value(list) == JsonKind::List && list.get()[1..].trim_start().starts_with(']');
    fields.value("attachments").is_some_and(|files| !is_empty(files))
}

/// Parses `attachments`.
pub fn read_attachments(fields: &ObjectFields<'_>, notes: &mut FieldDiagnostics) -> Vec<Attachment> {
    let Some(value) = fields.value("attachments") else { return Vec::new() };
    let entries = match fields::parse_list(value, ATTACHMENTS_MAX) {
        Ok(entries) => entries,
        Err(text) => {
            notes.errors.add("attachments", text);
            return Vec::new();
        }
    };
    entries.into_iter().enumerate().filter_map(|(n, entry)| read_attachment(entry, n, notes)).collect()
}

fn read_attachment(value: &RawValue, index: usize, notes: &mut FieldDiagnostics) -> Option<Attachment> {
    let prefix = format!("attachments[{index}]");
    let object = fields::parse_object(value).map_err(|text| notes.errors.add(&prefix, text)).ok()?;
    let prefix = format!("{prefix}.");
    let fields = ObjectFields::from_object(object, &NAMES, &prefix, notes);
    let mut required = |name: &str, parse: &dyn Fn(&RawValue) -> Result<(), String>| {
        let outcome = match fields.value(name) {
            Some(value) => parse(value),
            None if fields.is_present_or_misnamed(name) => Ok(()),
            None => Err("is required".to_owned()),
        };
        if let Err(text) = outcome {
            notes.errors.add(&format!("{prefix}{name}"), text);
        }
    };
    required("name", &|value| parse_file_name(value).map(drop));
    // `data` is decoded last, only if the other fields are valid.
    required("data", &|_| Ok(()));
    let mut optional = |name: &str, parse: fn(&RawValue) -> Result<String, String>| {
        fields.value(name).map(parse).transpose().unwrap_or_else(|text| {
            notes.errors.add(&format!("{prefix}{name}"), text);
            None
        })
    };
    let content_type = optional("content_type", parse_content_type);
    let content_id = optional("content_id", parse_content_id);
    let data = match decode_base64(fields.value("data")?) {
        Ok(data) => data,
        Err(text) => {
            notes.errors.add(&format!("{prefix}data"), text);
            return None;
        }
    };
    let name = parse_file_name(fields.value("name")?).ok()?;
    let content_type = content_type.unwrap_or_else(|| CONTENT_TYPE_DEFAULT.to_owned());
    if attachment_policy::is_message(&content_type, &name)
        && let Err(error) = attachment_policy::check_attached_message(&data)
    {
        notes.errors.add(&format!("{prefix}data"), format!("is not an acceptable message: {error}"));
        return None;
    }
    Some(Attachment { name, content_type, data, content_id })
}

fn parse_file_name(value: &RawValue) -> Result<String, String> {
    let name = fields::parse_header_line(value, NAME_BYTES_MAX)?;
    check_file_name(&name)?;
    Ok(name)
}

fn check_file_name(name: &str) -> Result<(), String> {
    if name.trim_matches([' ', '.']).is_empty() {
        return Err("is empty".to_owned());
    }
    if name.contains(['/', '\\']) {
        return Err("must be a file name, not a path".to_owned());
    }
    if has_invisible(name) {
        return Err("must not contain invisible characters".to_owned());
    }
    if name.contains("=?") {
        return Err("must be plain text, not an encoded word".to_owned());
    }
    match blocked_extension(name) {
        Some(extension) => Err(format!("files of type .{extension} are not accepted")),
        None => Ok(()),
    }
}

/// Parses `type/subtype; parameter=value` (RFC 2045 5.1). Parameters that name the file or affect the MIME structure
/// are rejected.
fn parse_content_type(value: &RawValue) -> Result<String, String> {
    let text = fields::parse_header_line(value, CONTENT_TYPE_BYTES_MAX)?;
    let mut parts = text.split(';');
    let (kind, subtype) = parts
        .next()
        .and_then(|essence| essence.trim().split_once('/'))
        .filter(|(kind, subtype)| is_token(kind) && is_token(subtype))
        .ok_or("must have the form type/subtype")?;
    if kind.eq_ignore_ascii_case("multipart") {
        return Err("must not be a multipart type".to_owned());
    }
    let mut out = format!("{}/{}", kind.to_ascii_lowercase(), subtype.to_ascii_lowercase());
    for parameter in parts.filter(|p| !p.trim().is_empty()) {
        let (name, value) = parameter.trim().split_once('=').ok_or("has a parameter that is not name=value")?;
        let value = value.strip_prefix('"').and_then(|v| v.strip_suffix('"')).unwrap_or(value);
        if !is_token(name) || name.contains(['*', '%']) || !is_token(value) {
            return Err("has a parameter that is not name=value".to_owned());
        }
        if ["name", "filename", "boundary"].iter().any(|reserved| name.eq_ignore_ascii_case(reserved)) {
            return Err(format!("must not have the parameter {}", name.to_ascii_lowercase()));
        }
        out.push_str("; ");
        out.push_str(name);
        out.push('=');
        out.push_str(value);
    }
    Ok(out)
}

/// RFC 2045 5.1 `token`.
fn is_token(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_graphic() && !b"()<>@,;:\\\"/[]?=".contains(&b))
}

/// Parses a Content-ID without its angle brackets (RFC 2045 7), to which `cid:` URLs in the HTML refer.
fn parse_content_id(value: &RawValue) -> Result<String, String> {
    let text = fields::parse_header_line(value, CONTENT_ID_BYTES_MAX)?;
    let text = text.trim();
    let id = text.strip_prefix('<').and_then(|rest| rest.strip_suffix('>')).unwrap_or(text);
    if id.is_empty() || !id.bytes().all(|b| b.is_ascii_graphic() && !b"<>()\\\"".contains(&b)) {
        return Err("must be printable ASCII without spaces and brackets".to_owned());
    }
    Ok(id.to_owned())
}

/// Decodes base64 with or without padding and line breaks.
fn decode_base64(value: &RawValue) -> Result<Vec<u8>, String> {
    const ENCODED_BYTES_MAX: usize = ATTACHMENT_BYTES_MAX.div_ceil(3) * 4;
    let too_large = || format!("is larger than {} MB decoded", ATTACHMENT_BYTES_MAX >> 20);
    let text = fields::parse_text(value)?;
    if text.starts_with("data:") {
        return Err("must be plain base64 without the prefix `data:…;base64,`".to_owned());
    }
    let text: Cow<'_, str> = if text.bytes().any(|b| b.is_ascii_whitespace()) {
        Cow::Owned(text.chars().filter(|c| !c.is_ascii_whitespace()).collect())
    } else {
        text
    };
    if text.len() > ENCODED_BYTES_MAX {
        return Err(too_large());
    }
    let data = BASE64.decode(text.as_bytes()).map_err(|_| "is not base64 (standard alphabet)".to_owned())?;
    if data.len() > ATTACHMENT_BYTES_MAX { Err(too_large()) } else { Ok(data) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raw(text: &str) -> Box<RawValue> {
        RawValue::from_string(serde_json::to_string(text).unwrap()).unwrap()
    }

    /// `filename_policy` of `message` tests disguised executables; these are names that are no plain file name.
    #[test]
    fn unsafe_file_names_are_rejected() {
        for bad in [
            "a.exe",
            "a.exe;.pdf",
            "=?utf-8?Q?a=2Epdf?=",
            "../a.txt",
            "a\\b.txt",
            "a\r\nb.txt",
            "a\u{0}.txt",
            "a.txt\u{180e}",
            "",
            " . ",
        ] {
            assert!(parse_file_name(&raw(bad)).is_err(), "{bad:?}");
        }
        for good in ["a.pdf", "Rechnung 10:30.pdf", "\u{fc}ber.txt"] {
            assert_eq!(parse_file_name(&raw(good)).as_deref(), Ok(good));
        }
    }

    #[test]
    fn content_types() {
        let parse = |text: &str| parse_content_type(&raw(text));
        assert_eq!(parse("Text/Plain; charset=UTF-8").as_deref(), Ok("text/plain; charset=UTF-8"));
        assert_eq!(parse("application/pdf").as_deref(), Ok("application/pdf"));
        for bad in [
            "",
            "pdf",
            "a/b/c",
            "text/plain; name=a.exe",
            "text/plain; NAME=\"a.exe\"",
            "text/plain; name*=utf-8''a.exe",
            "text/plain; name*0=a.exe",
            "text/plain; x",
            "multipart/mixed",
            "text/plain\r\nX: y",
            "text/pl ain",
        ] {
            assert!(parse(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn base64_in_its_forms() {
        for good in ["aGk=", "aGk", "aG\nk=", "aG\r\nk=\r\n"] {
            assert_eq!(decode_base64(&raw(good)).as_deref(), Ok(&b"hi"[..]), "{good:?}");
        }
        assert_eq!(decode_base64(&raw("")).as_deref(), Ok(&b""[..]));
        for bad in ["a", "aGk==", "a-_k", "data:text/plain;base64,aGk=", "aGl=", "h\u{e9}"] {
            assert!(decode_base64(&raw(bad)).is_err(), "{bad:?}");
        }
        let largest = "AAAA".repeat(ATTACHMENT_BYTES_MAX / 3);
        assert!(decode_base64(&raw(&format!("{largest}AA=="))).is_ok_and(|d| d.len() == ATTACHMENT_BYTES_MAX));
        assert!(decode_base64(&raw(&format!("{largest}AAA="))).is_err());
    }
}
