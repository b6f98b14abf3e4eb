//! MIME parser for reports: leaf parts in order, decoded, bounded in number and depth.
//!
//! Enclosed messages are not parsed, because their content is not a statement of the reporting host.

use std::borrow::Cow;

use mail_parser::decoders::charsets::map::charset_decoder;

use crate::attachment_policy::{decode_body, first_token, mime_parameter, unfold_value};
use crate::header::parse_fields;

/// Maximum nesting: a report is one multipart; lists and gateways wrap it in others.
const DEPTH_MAX: usize = 5;
const PARTS_MAX: usize = 32;
/// Maximum bytes of a field value.
const VALUE_BYTES_MAX: usize = 8 * 1024;

/// A leaf part.
#[derive(Debug, Clone)]
pub struct ReportPart<'m> {
    /// Media type in lower case; `text/plain` by default (RFC 2045 5.2).
    pub kind: String,
    /// File name.
    pub name: String,
    /// Character set in lower case.
    charset: String,
    /// Body with its transfer encoding decoded.
    pub body: Cow<'m, [u8]>,
}

impl ReportPart<'_> {
    /// The body as text.
    pub fn text(&self) -> Cow<'_, str> {
        match charset_decoder(self.charset.as_bytes()) {
            Some(decode) if !self.charset.is_empty() => Cow::Owned(decode(&self.body)),
            _ => String::from_utf8_lossy(&self.body),
        }
    }
}

/// The value of the first header field with this name, unfolded but not decoded.
pub fn header_field(message: &[u8], name: &str) -> Option<String> {
    let (fields, _) = parse_fields(message);
    let found = fields.iter().find(|field| field.has_name(message, name))?;
    let value = message.get(found.name_end..found.end)?;
    Some(unfold_value(value.get(..VALUE_BYTES_MAX).unwrap_or(value)))
}

/// The leaf parts of a message in order.
pub fn parse_parts(message: &[u8]) -> Vec<ReportPart<'_>> {
    let mut out = Vec::new();
    collect_parts(message, 0, &mut out);
    out
}

fn collect_parts<'m>(part: &'m [u8], depth: usize, out: &mut Vec<ReportPart<'m>>) {
    if out.len() >= PARTS_MAX || depth > DEPTH_MAX {
        return;
    }
    let kind_field = header_field(part, "Content-Type").unwrap_or_default();
    let kind = Some(first_token(&kind_field)).filter(|kind| kind.contains('/'));
    let kind = kind.unwrap_or_else(|| "text/plain".to_owned());
    let parameter = |name: &str| mime_parameter::values(&kind_field, name).into_iter().next();
    let body = part.get(parse_fields(part).1..).unwrap_or_default();
    let body = body.strip_prefix(b"\r\n").or_else(|| body.strip_prefix(b"\n")).unwrap_or(body);
    if let (true, Some(boundary)) = (kind.starts_with("multipart/"), parameter("boundary")) {
        return split_multipart(body, &boundary, depth, out);
    }
    let disposition = header_field(part, "Content-Disposition").unwrap_or_default();
    let name = mime_parameter::values(&disposition, "filename").into_iter().next();
    let encoding = first_token(&header_field(part, "Content-Transfer-Encoding").unwrap_or_default());
    out.push(ReportPart {
        charset: parameter("charset").unwrap_or_default().to_ascii_lowercase(),
        name: name.or_else(|| parameter("name")).unwrap_or_default(),
        kind,
        body: decode_body(&encoding, body),
    });
}

/// Splits a multipart at lines that begin with the boundary (RFC 2046 5.1.1).
fn split_multipart<'m>(body: &'m [u8], boundary: &str, depth: usize, out: &mut Vec<ReportPart<'m>>) {
    let delimiter = [b"--", boundary.trim_end().as_bytes()].concat();
    if boundary.is_empty() {
        return;
    }
    let mut start = None;
    for at in memchr::memmem::find_iter(body, &delimiter) {
        if at > 0 && body.get(at - 1) != Some(&b'\n') {
            continue;
        }
        if let Some(part) = start.and_then(|start| body.get(start..at)) {
            collect_parts(part, depth + 1, out);
        }
        if out.len() >= PARTS_MAX {
            return;
        }
        let rest = body.get(at + delimiter.len()..).unwrap_or_default();
        if rest.starts_with(b"--") {
            return;
        }
        let end = memchr::memchr(b'\n', rest).map_or(body.len(), |end| at + delimiter.len() + end + 1);
        start = Some(end);
    }
    // The closing delimiter is missing: the message was truncated.
    if let Some(part) = start.and_then(|start| body.get(start..)) {
        collect_parts(part, depth + 1, out);
    }
}

/// Parses groups of fields separated by empty lines (RFC 3464 2.1): names in lower case, values unfolded.
pub fn field_groups(text: &str) -> Vec<Vec<(String, String)>> {
    /// One group per recipient; reports about mail of this server concern one recipient.
    const GROUPS_MAX: usize = 128;
    const FIELDS_MAX: usize = 64;
    let mut groups: Vec<Vec<(String, String)>> = vec![Vec::new()];
    for line in text.lines() {
        if groups.len() > GROUPS_MAX {
            break;
        }
        let Some(group) = groups.last_mut() else { break };
        if line.trim().is_empty() {
            if !group.is_empty() {
                groups.push(Vec::new());
            }
        } else if line.starts_with([' ', '\t']) {
            if let Some((_, value)) = group.last_mut().filter(|(_, value)| value.len() < VALUE_BYTES_MAX) {
                value.push(' ');
                value.push_str(line.trim());
            }
        } else if let Some((name, value)) = line.split_once(':').filter(|_| group.len() < FIELDS_MAX) {
            group.push((name.trim().to_ascii_lowercase(), value.trim().to_owned()));
        }
    }
    groups.retain(|group| !group.is_empty());
    groups
}

pub fn group_field<'g>(group: &'g [(String, String)], name: &str) -> Option<&'g str> {
    group.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
}
