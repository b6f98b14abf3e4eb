//! Reads `multipart/form-data` (RFC 7578): the forms of the dashboard that send files.

use bytes::Bytes;
use memchr::memmem;

const PARTS_MAX: usize = 200;
/// Longest boundary (RFC 2046 5.1.1).
const BOUNDARY_CHARS_MAX: usize = 70;

/// A field or a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FormPart {
    pub name: String,
    /// `None` for a field.
    pub file_name: Option<String>,
    pub content: Bytes,
}

/// The boundary in a media type; `None` if it is another one.
pub fn boundary(media_type: &str) -> Option<&str> {
    let (kind, parameters) = media_type.split_once(';')?;
    if !kind.trim().eq_ignore_ascii_case("multipart/form-data") {
        return None;
    }
    let found = parameters.split(';').find_map(|parameter| {
        let (name, value) = parameter.split_once('=')?;
        name.trim().eq_ignore_ascii_case("boundary").then(|| value.trim().trim_matches('"'))
    })?;
    (1..=BOUNDARY_CHARS_MAX).contains(&found.len()).then_some(found)
}

/// Reads the parts. Contents share the body's memory.
///
/// Returns `None` if the body does not end with the closing delimiter, has a part without a name, or too many parts.
pub fn parse(body: &Bytes, boundary: &str) -> Option<Vec<FormPart>> {
    let delimiter = format!("\r\n--{boundary}");
    // The first delimiter has no line end before it.
    let first = body.strip_prefix(&delimiter.as_bytes()[2..])?;
    let mut at = body.len() - first.len();
    let mut parts = Vec::new();
    loop {
        let rest = &body[at..];
        if rest.starts_with(b"--") {
            return Some(parts);
        }
        let head_start = at + 2;
        if !rest.starts_with(b"\r\n") || parts.len() == PARTS_MAX {
            return None;
        }
        let end = head_start + memmem::find(&body[head_start..], delimiter.as_bytes())?;
        let head_end = head_start + memmem::find(&body[head_start..end], b"\r\n\r\n")?;
        let (name, file_name) = read_disposition(&body[head_start..head_end])?;
        parts.push(FormPart { name, file_name, content: body.slice(head_end + 4..end) });
        at = end + delimiter.len();
    }
}

/// Name and file name of a part. Browsers write `"` as `%22`, CR and LF as `%0D` and `%0A` (HTML, "multipart/form-data
/// encoding algorithm").
fn read_disposition(head: &[u8]) -> Option<(String, Option<String>)> {
    let head = std::str::from_utf8(head).ok()?;
    let value = head.split("\r\n").find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("content-disposition").then_some(value)
    })?;
    let parameter = |wanted: &str| {
        let start = value.find(&format!("; {wanted}=\""))? + wanted.len() + 4;
        let text = value.get(start..)?;
        Some(text.get(..text.find('"')?)?.replace("%22", "\"").replace("%0D", "\r").replace("%0A", "\n"))
    };
    Some((parameter("name")?, parameter("filename")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn boundaries() {
        assert_eq!(boundary("multipart/form-data; boundary=\"a b\""), Some("a b"));
        assert_eq!(boundary("Multipart/Form-Data; charset=utf-8; Boundary=x"), Some("x"));
        assert_eq!(boundary("application/x-www-form-urlencoded"), None);
        assert_eq!(boundary("multipart/form-data; boundary="), None);
    }

    #[test]
    fn parts() {
        let text = "--x\r\nContent-Disposition: form-data; name=\"csrf\"\r\n\r\nabc\r\n--x\r\n\
                    content-disposition: form-data; name=\"file\"; filename=\"a%22.csv\"\r\nContent-Type: text/csv\r\n\r\n\
                    a\r\n--y\r\n\r\n--x--\r\n";
        let parts = parse(&Bytes::from(text), "x").unwrap();
        let part = |name: &str, file: Option<&str>, content: &'static str| FormPart {
            name: name.into(),
            file_name: file.map(str::to_owned),
            content: Bytes::from(content),
        };
        assert_eq!(parts, [part("csrf", None, "abc"), part("file", Some("a\".csv"), "a\r\n--y\r\n")]);
        for broken in ["", "--x", "--x\r\n", "--x\r\n\r\na\r\n--x--", &text[..text.len() - 4]] {
            assert_eq!(parse(&Bytes::from(broken.to_owned()), "x"), None, "{broken:?}");
        }
    }
}
