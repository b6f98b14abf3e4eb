//! Parameters of `Content-Type` and `Content-Disposition` (RFC 2045 5.1, RFC 2183 2, RFC 2231).
//!
//! Mail clients parse malformed fields in different ways. This parser returns every value that some client may see:
//! with and without comments, as a whole and joined from continuations.

/// A parameter: its name in lower case and its unquoted value.
type MimeParameter = (String, String);

/// Every possible value of the parameter with this name.
pub(crate) fn values(field: &str, name: &str) -> Vec<String> {
    let mut values = Vec::new();
    for comments in [false, true] {
        let mut sections: Vec<(u32, String)> = Vec::new();
        for (key, value) in parameters(field, comments) {
            let (base, section) = key.split_once('*').unwrap_or((&key, ""));
            if base.trim() != name {
                continue;
            }
            match section.trim_end_matches('*').trim().parse() {
                Ok(number) => sections.push((number, value)),
                Err(_) => values.push(value),
            }
        }
        values.extend(join_continuations(sections));
    }
    values.sort_unstable();
    values.dedup();
    values
}

/// Joins continuations in order (RFC 2231 3). For duplicate numbers three results are returned: with all, with the
/// first, and with the last of each.
fn join_continuations(mut sections: Vec<(u32, String)>) -> Vec<String> {
    fn text(sections: &[(u32, String)]) -> String {
        sections.iter().map(|(_, value)| value.as_str()).collect()
    }
    if sections.is_empty() {
        return Vec::new();
    }
    sections.sort_by_key(|(number, _)| *number);
    let mut values = vec![text(&sections)];
    let mut first = sections.clone();
    first.dedup_by_key(|(number, _)| *number);
    if first.len() < sections.len() {
        values.push(text(&first));
        sections.reverse();
        sections.dedup_by_key(|(number, _)| *number);
        sections.reverse();
        values.push(text(&sections));
    }
    values
}

/// The parameters in order. If `comments` is true, text in parentheses is skipped.
pub(crate) fn parameters(field: &str, comments: bool) -> Vec<MimeParameter> {
    let mut out = Vec::new();
    let (mut name, mut value) = (String::new(), None::<String>);
    let (mut quoted, mut escaped, mut depth) = (false, false, 0_usize);
    // An added semicolon ends the last parameter.
    for c in field.chars().chain([';']) {
        if escaped {
            escaped = false;
            if depth == 0 {
                value.get_or_insert_default().push(c);
            }
            continue;
        }
        match c {
            '\\' if quoted || depth > 0 => escaped = true,
            '"' if value.is_some() && depth == 0 => quoted = !quoted,
            c if quoted => value.get_or_insert_default().push(c),
            '(' if comments => depth += 1,
            ')' if depth > 0 => depth -= 1,
            _ if depth > 0 => {}
            '=' if value.is_none() => value = Some(String::new()),
            ';' => {
                let name = std::mem::take(&mut name);
                // Clients accept `attachment filename=x` although its semicolon is missing.
                let last = name.split_whitespace().next_back().unwrap_or_default();
                out.extend(value.take().map(|value| (last.to_ascii_lowercase(), value.trim().to_owned())));
            }
            c => value.as_mut().unwrap_or(&mut name).push(c),
        }
    }
    // An unterminated quoted string: use the text so far.
    out.extend(value.map(|value| (name.trim().to_ascii_lowercase(), value)));
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_interpretation_of_a_value_is_returned() {
        for (field, value) in [
            ("attachment; filename=a.exe", "a.exe"),
            ("attachment; FileName = \"a b.exe\"; size=1", "a b.exe"),
            ("attachment filename=a.exe", "a.exe"),
            ("attachment; filename*=utf-8''a%2eexe", "utf-8''a%2eexe"),
            ("attachment; filename*1=\"xe\"; filename*0=\"a.e\"", "a.exe"),
            ("attachment; filename*0*=utf-8''a; filename*1*=%2eexe", "utf-8''a%2eexe"),
            ("attachment; filename=a.pdf; filename*0=a.e; filename*1=xe", "a.exe"),
            ("attachment; filename*0=a.e; filename*0=a.p; filename*1=xe", "a.exe"),
            ("attachment; filename*0=a.p; filename*0=a.e; filename*1=xe", "a.exe"),
            ("attachment; filename=a.(x)exe", "a.exe"),
            ("attachment; (; x=) filename=a.exe(.pdf)", "a.exe"),
            ("attachment; filename=\"a\\.exe\"", "a.exe"),
            ("attachment; filename=\"a.exe", "a.exe"),
            ("attachment; filename=\"a; b\".exe", "a; b.exe"),
        ] {
            let values = values(field, "filename");
            assert!(values.iter().any(|v| v.trim_end_matches(';') == value), "{field}: {values:?}");
        }
        assert!(values("text/plain; x=\"filename=a.exe\"", "filename").is_empty());
    }
}
