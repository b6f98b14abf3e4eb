//! The addresses of a CSV list with their lines, for the dry run of an import.
//!
//! The list is split as the API splits it: fields separated by the comma, semicolon or tab that the first line has most
//! of; quotes as in RFC 4180; the column of addresses by its name in the first line, else by its first value.

/// Longest record in bytes.
const RECORD_BYTES_MAX: usize = 16 << 10;
/// Names of the column of addresses: lower case, letters only.
const ADDRESS_COLUMNS: &[&str] = &["email", "emailaddress", "address", "recipient", "recipientaddress", "mail"];
/// Names of the column of reasons.
const REASON_COLUMNS: &[&str] = &["suppressionreason", "reason", "type", "bouncetype"];
/// Characters that spreadsheets take for a formula. Exports write an apostrophe before them.
const FORMULA: [char; 6] = ['=', '+', '-', '@', '\t', '\r'];

/// A record of the list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ListEntry {
    /// Its first line, from 1.
    pub line: usize,
    /// `None` if a quote is not closed, or the record is too long.
    pub address: Option<String>,
    /// The reason as it is written; empty if there is none.
    pub reason: String,
}

/// Reads a list.
///
/// # Errors
/// The list is empty, or has no column of addresses.
pub(super) fn read(text: &str) -> Result<Vec<ListEntry>, String> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut records = Records { rest: text, line: 1, separator: separator(text) };
    let Some((line, first)) = records.next() else { return Err("The list is empty".into()) };
    let fields = first.clone().unwrap_or_default();
    let names: Vec<_> = fields.iter().map(|field| column_name(field)).collect();
    let column = |wanted: &[&str]| names.iter().position(|name| wanted.contains(&name.as_str()));
    let (address, reason, first) = match column(ADDRESS_COLUMNS) {
        Some(address) => (address, column(REASON_COLUMNS), None),
        None => {
            let found = fields.iter().position(|field| field.contains('@'));
            let found = found.ok_or_else(|| {
                let start: String = fields.join(", ").chars().take(80).collect();
                format!("No column has addresses. The first line is: {start}")
            })?;
            (found, None, Some((line, first)))
        }
    };
    let entry = |(line, fields): (usize, Option<Vec<String>>)| {
        let cell = |column: usize| fields.as_ref().map(|fields| fields.get(column).map_or("", String::as_str));
        ListEntry {
            line,
            address: cell(address).map(|cell| without_guard(cell).to_owned()),
            reason: reason.and_then(cell).unwrap_or_default().to_owned(),
        }
    };
    Ok(first.into_iter().chain(records).map(entry).collect())
}

fn separator(text: &str) -> char {
    let first = text.lines().next().unwrap_or_default();
    let count = |separator: &char| first.matches(*separator).count();
    // The last one of equals is taken: the comma.
    ['\t', ';', ','].into_iter().max_by_key(count).unwrap_or(',')
}

fn column_name(field: &str) -> String {
    field.chars().filter(char::is_ascii_alphanumeric).map(|one| one.to_ascii_lowercase()).collect()
}

fn without_guard(cell: &str) -> &str {
    match cell.strip_prefix('\'') {
        Some(rest) if rest.starts_with(FORMULA) => rest,
        _ => cell,
    }
}

/// The records with their lines; empty ones are skipped.
struct Records<'t> {
    rest: &'t str,
    line: usize,
    separator: char,
}

impl Iterator for Records<'_> {
    type Item = (usize, Option<Vec<String>>);

    fn next(&mut self) -> Option<Self::Item> {
        while !self.rest.is_empty() {
            let line = self.line;
            let (fields, length) = match split_record(self.rest, self.separator) {
                Some((fields, length)) => (Some(fields), length),
                None => (None, self.rest.find('\n').map_or(self.rest.len(), |end| end + 1)),
            };
            let (record, rest) = self.rest.split_at(length);
            self.line += record.matches('\n').count();
            self.rest = rest;
            if fields.as_ref().is_none_or(|fields| fields.iter().any(|field| !field.is_empty())) {
                return Some((line, fields));
            }
        }
        None
    }
}

/// The fields of the first record, and its length with the line end; `None` if a quote is not closed, or the record is
/// too long.
fn split_record(text: &str, separator: char) -> Option<(Vec<String>, usize)> {
    let (mut fields, mut field) = (Vec::new(), String::new());
    let (mut is_quoted, mut was_quoted) = (false, false);
    let mut chars = text.char_indices().peekable();
    while let Some((at, one)) = chars.next() {
        if at > RECORD_BYTES_MAX {
            return None;
        }
        if is_quoted {
            match one {
                '"' if chars.next_if(|(_, next)| *next == '"').is_some() => field.push('"'),
                '"' => is_quoted = false,
                one => field.push(one),
            }
        } else if one == separator || one == '\n' {
            fields.push(std::mem::take(&mut field).trim().to_owned());
            was_quoted = false;
            if one == '\n' {
                return Some((fields, at + 1));
            }
        } else if one == '"' && !was_quoted && field.trim().is_empty() {
            field.clear();
            (is_quoted, was_quoted) = (true, true);
        } else if !was_quoted {
            // Text between a closing quote and the separator is ignored.
            field.push(one);
        }
    }
    if is_quoted || text.len() > RECORD_BYTES_MAX {
        return None;
    }
    fields.push(field.trim().to_owned());
    Some((fields, text.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn addresses(text: &str) -> Vec<(usize, Option<String>, String)> {
        read(text).unwrap().into_iter().map(|entry| (entry.line, entry.address, entry.reason)).collect()
    }

    fn entry(line: usize, address: &str, reason: &str) -> (usize, Option<String>, String) {
        (line, Some(address.to_owned()), reason.to_owned())
    }

    #[test]
    fn lists_of_several_forms_are_read() {
        for (text, expected) in [
            ("a@example.net\n", entry(1, "a@example.net", "")),
            ("\u{feff}Email\r\na@example.net\r\n", entry(2, "a@example.net", "")),
            ("name;E-Mail;x\nAda;a@example.net;1", entry(2, "a@example.net", "")),
            ("EmailAddress,Reason\n\"a@example.net\" ,BOUNCE", entry(2, "a@example.net", "BOUNCE")),
            ("id\temail\treason\n1\t'@example.net\tmanual", entry(2, "@example.net", "manual")),
            ("\n\nAda,a@example.net\n", entry(3, "a@example.net", "")),
        ] {
            assert_eq!(addresses(text), [expected], "{text}");
        }
    }

    #[test]
    fn wrong_lines_do_not_spoil_the_others() {
        let text = "email,note\na@x.example,\"two\nlines, \"\"quoted\"\"\"\nnobody\n\"open@x.example\nb@x.example,\n";
        let expected = [
            entry(2, "a@x.example", ""),
            entry(4, "nobody", ""),
            (5, None, String::new()),
            entry(6, "b@x.example", ""),
        ];
        assert_eq!(addresses(text), expected);
        assert!(read("").is_err());
        assert!(read("name,phone\nAda,1").unwrap_err().contains("name, phone"));
        let long = format!("a@x.example,{}\nb@x.example", "y".repeat(RECORD_BYTES_MAX));
        assert!(read(&long).is_err());
    }
}
