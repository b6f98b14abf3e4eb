//! CSV reader and writer (RFC 4180).
//!
//! The reader can start at any record boundary, so that an import of a long file resumes after a restart. It also
//! accepts LF and CR line ends, `;` or tab as separator, spaces around fields, and a byte order mark. An unclosed
//! quote, or a record that is too long, invalidates its own line only, not the lines that follow.

use std::borrow::Cow;

/// Longest record in bytes, without its line end. In a longer one a closing quote or a line end is assumed to be
/// missing.
const RECORD_BYTES_MAX: usize = 16 << 10;
/// Maximum number of fields of a record; further fields are dropped.
const FIELDS_MAX: usize = 64;

/// A record of a CSV file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CsvRecord {
    /// Number of its first line, from 1.
    pub line: u64,
    /// The fields, without quotes and surrounding spaces; `None` if a quotation mark is not closed, or the record is
    /// too long.
    pub fields: Option<Vec<String>>,
}

impl CsvRecord {
    /// The field at an index; empty if the record has fewer fields.
    pub fn field(&self, index: usize) -> &str {
        self.fields.as_ref().and_then(|fields| fields.get(index)).map_or("", String::as_str)
    }
}

/// An iterator over the records of a text; empty records are skipped.
#[derive(Debug, Clone)]
pub struct CsvReader<'a> {
    text: &'a str,
    at: usize,
    line: u64,
    separator: u8,
}

impl<'a> CsvReader<'a> {
    /// Reads from the beginning.
    pub fn new(text: &'a str) -> Self {
        let at = if text.starts_with('\u{feff}') { '\u{feff}'.len_utf8() } else { 0 };
        Self { text, at, line: 1, separator: detect_separator(text) }
    }

    /// Resumes at a position that [`CsvReader::position`] returned.
    pub fn resume(text: &'a str, at: usize, line: u64) -> Self {
        if at == 0 || !text.is_char_boundary(at) {
            return Self::new(text);
        }
        Self { text, at, line, separator: detect_separator(text) }
    }

    /// Byte offset and line number of the next record.
    pub fn position(&self) -> (usize, u64) {
        (self.at, self.line)
    }

    fn rest(&self) -> &'a str {
        self.text.get(self.at..).unwrap_or_default()
    }
}

impl Iterator for CsvReader<'_> {
    type Item = CsvRecord;

    fn next(&mut self) -> Option<CsvRecord> {
        loop {
            let rest = self.rest();
            if rest.is_empty() {
                return None;
            }
            let line = self.line;
            let (fields, length) = match split_record(rest, self.separator) {
                Some((fields, length)) => (Some(fields), length),
                None => {
                    let end = rest.find(['\r', '\n']).unwrap_or(rest.len());
                    (None, end + line_end_length(rest, end))
                }
            };
            self.line += count_line_ends(rest.get(..length).unwrap_or_default()) as u64;
            self.at += length;
            if fields.as_ref().is_none_or(|fields| fields.iter().any(|field| !field.is_empty())) {
                return Some(CsvRecord { line, fields });
            }
        }
    }
}

/// Returns the fields of the first record, and its length in bytes with the line end; `None` if a quotation mark is
/// not closed, or the record is too long.
fn split_record(text: &str, separator: u8) -> Option<(Vec<String>, usize)> {
    // The longest record and the first byte of its line end: nothing behind them is scanned.
    let head = text.get(..text.floor_char_boundary(RECORD_BYTES_MAX + 1))?;
    let bytes = head.as_bytes();
    let is_too_long = |end: usize| end > RECORD_BYTES_MAX || (end == head.len() && end < text.len());
    let (mut fields, mut at) = (Vec::new(), 0);
    loop {
        let (field, end) = split_field(head, at, separator)?;
        if is_too_long(end) {
            return None;
        }
        if fields.len() < FIELDS_MAX {
            fields.push(field);
        }
        match bytes.get(end) {
            Some(byte) if *byte == separator => at = end + 1,
            _ => return Some((fields, end + line_end_length(text, end))),
        }
    }
}

/// Length in bytes of the line end at a byte offset: CRLF, LF, or CR as in old files of Macintosh programs. Zero at the
/// end of the text.
fn line_end_length(text: &str, at: usize) -> usize {
    let bytes = text.as_bytes();
    match (bytes.get(at), bytes.get(at + 1)) {
        (Some(b'\r'), Some(b'\n')) => 2,
        (Some(b'\r' | b'\n'), _) => 1,
        _ => 0,
    }
}

/// Counts the line ends of a text, also those in quotes. CRLF is counted at its LF.
fn count_line_ends(text: &str) -> usize {
    memchr::memchr2_iter(b'\r', b'\n', text.as_bytes()).filter(|at| line_end_length(text, *at) == 1).count()
}

/// Returns the field at a byte offset, and the offset of the separator, line end or end of the text after it.
fn split_field(text: &str, at: usize, separator: u8) -> Option<(String, usize)> {
    let bytes = text.as_bytes();
    let ends = |byte: u8| byte == separator || byte == b'\n' || byte == b'\r';
    let unquoted_end =
        |from: usize| bytes.iter().skip(from).position(|byte| ends(*byte)).map_or(bytes.len(), |found| from + found);
    let blanks = bytes.iter().skip(at).take_while(|byte| **byte == b' ').count();
    let start = at + blanks;
    if bytes.get(start) != Some(&b'"') {
        let end = unquoted_end(at);
        return Some((text.get(at..end)?.trim().to_owned(), end));
    }
    let (mut out, mut from) = (String::new(), start + 1);
    loop {
        let quote = from + memchr::memchr(b'"', bytes.get(from..)?)?;
        out.push_str(text.get(from..quote)?);
        if bytes.get(quote + 1) != Some(&b'"') {
            // Text between the closing quote and the separator is ignored.
            return Some((out.trim().to_owned(), unquoted_end(quote + 1)));
        }
        out.push('"');
        from = quote + 2;
    }
}

/// Detects the separator: the one that occurs most often in the first line.
fn detect_separator(text: &str) -> u8 {
    let first = text.split(['\r', '\n']).next().unwrap_or_default();
    let count = |separator: &u8| first.bytes().filter(|byte| byte == separator).count();
    [b',', b';', b'\t'].into_iter().rev().max_by_key(count).unwrap_or(b',')
}

/// First characters that a spreadsheet takes for a formula (OWASP, "CSV Injection").
const FORMULA: [char; 6] = ['=', '+', '-', '@', '\t', '\r'];

fn looks_like_formula(text: &str) -> bool {
    // Leading apostrophes are ignored here, so that `strip_formula_guard` can restore any text.
    text.trim_start_matches('\'').starts_with(FORMULA)
}

/// A cell to write. Its constructors guard it against formula injection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CsvCell<'a>(Cow<'a, str>);

impl<'a> CsvCell<'a> {
    /// A text. If a spreadsheet would interpret it as a formula, it gets an apostrophe as prefix;
    /// [`strip_formula_guard`] removes it.
    pub fn text(text: &'a str) -> Self {
        Self(if looks_like_formula(text) { Cow::Owned(format!("'{text}")) } else { Cow::Borrowed(text) })
    }

    /// A displayable value as text, guarded as by [`CsvCell::text`].
    pub fn from_display(text: impl ToString) -> Self {
        let text = text.to_string();
        Self(Cow::Owned(if looks_like_formula(&text) { format!("'{text}") } else { text }))
    }

    /// A number such as `-5.00`. Anything else is guarded as a text.
    pub fn number(number: impl ToString) -> Self {
        let text = number.to_string();
        if is_number(&text) { Self(Cow::Owned(text)) } else { Self::from_display(text) }
    }
}

/// True for digits with an optional minus sign and an optional decimal point between them.
fn is_number(text: &str) -> bool {
    let digits = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    let unsigned = text.strip_prefix('-').unwrap_or(text);
    let (whole, fraction) = unsigned.split_once('.').unwrap_or((unsigned, "0"));
    digits(whole) && digits(fraction)
}

/// Removes the prefix that [`CsvCell::text`] adds.
pub fn strip_formula_guard(text: &str) -> &str {
    text.strip_prefix('\'').filter(|rest| looks_like_formula(rest)).unwrap_or(text)
}

/// Appends a record, ended by CRLF.
pub fn write_record(out: &mut String, cells: &[CsvCell<'_>]) {
    for (n, CsvCell(field)) in cells.iter().enumerate() {
        if n > 0 {
            out.push(',');
        }
        if field.contains(['"', ',', ';', '\t', '\n', '\r']) || field.trim() != field.as_ref() {
            out.push('"');
            out.push_str(&field.replace('"', "\"\""));
            out.push('"');
        } else {
            out.push_str(field);
        }
    }
    out.push_str("\r\n");
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn read(text: &str) -> Vec<(u64, Vec<String>)> {
        CsvReader::new(text).map(|record| (record.line, record.fields.unwrap_or_default())).collect()
    }

    fn row(line: u64, fields: &[&str]) -> (u64, Vec<String>) {
        (line, fields.iter().map(|field| (*field).to_owned()).collect())
    }

    #[test]
    fn files_of_other_programs_are_read() {
        assert_eq!(read(""), []);
        assert_eq!(read("\u{feff}a,b\r\n\r\nc , d\n"), [row(1, &["a", "b"]), row(3, &["c", "d"])]);
        assert_eq!(read("\"a,\"\"b\"\"\nc\",d"), [row(1, &["a,\"b\"\nc", "d"])]);
        assert_eq!(read("a;b,c;d\n1;2;3"), [row(1, &["a", "b,c", "d"]), row(2, &["1", "2", "3"])]);
        assert_eq!(read("a\tb"), [row(1, &["a", "b"])]);
        assert_eq!(read("x,\n,y\n,\n"), [row(1, &["x", ""]), row(2, &["", "y"])]);
        let carriage_returns = "a;b\r1;\"2\r,,\"\r3;4\n5;6\r\n";
        let rows = [row(1, &["a", "b"]), row(2, &["1", "2\r,,"]), row(4, &["3", "4"]), row(5, &["5", "6"])];
        assert_eq!(read(carriage_returns), rows);
    }

    #[test]
    fn an_unclosed_quote_invalidates_its_own_line_only() {
        let text = "a,b\n\"c,d\ne,f\n";
        assert_eq!(read(text), [row(1, &["a", "b"]), row(2, &[]), row(3, &["e", "f"])]);
        assert_eq!(read(&text.replace('\n', "\r")), read(text));
    }

    #[test]
    fn a_record_that_is_too_long_invalidates_its_own_line_only() {
        let long = "x".repeat(RECORD_BYTES_MAX);
        assert_eq!(read(&format!("{long}\nc")), [row(1, &[&long]), row(2, &["c"])]);
        assert_eq!(read(&long), [row(1, &[&long])]);
        let half = &long[..RECORD_BYTES_MAX / 2];
        for too_long in [
            format!("{long}x"),
            format!("{half},{half}"),
            format!("\"{half}\",\"{half}\""),
            "\u{e9}".repeat(RECORD_BYTES_MAX),
        ] {
            assert_eq!(read(&format!("a,b\n{too_long}\ne,f")), [row(1, &["a", "b"]), row(2, &[]), row(3, &["e", "f"])]);
            assert_eq!(read(&too_long), [row(1, &[])]);
        }
    }

    #[test]
    fn formulas_are_guarded() {
        for (text, written) in [
            ("=1+1", "'=1+1"),
            ("+1", "'+1"),
            ("-", "'-"),
            ("@SUM(A1)", "'@SUM(A1)"),
            ("'=1", "''=1"),
            ("\t=1", "'\t=1"),
            ("'quoted'", "'quoted'"),
            ("a=b", "a=b"),
            ("", ""),
        ] {
            assert_eq!((CsvCell::text(text).0.as_ref(), CsvCell::from_display(text).0.as_ref()), (written, written));
            assert_eq!(strip_formula_guard(written), text);
        }
    }

    #[test]
    fn numbers_are_not_guarded() {
        for number in ["-5.00", "-5", "0", "12.50"] {
            assert_eq!(CsvCell::number(number).0, number);
            assert_eq!(CsvCell::text(number).0.starts_with('\''), number.starts_with('-'));
        }
        for (no_number, written) in [("-5+1", "'-5+1"), ("--5", "'--5"), ("-", "'-"), ("-.5", "'-.5"), ("+5", "'+5")] {
            assert_eq!(CsvCell::number(no_number).0, written);
        }
    }

    proptest! {
        #[test]
        fn records_round_trip(rows in proptest::collection::vec(
            proptest::collection::vec("[a-z\",;\n\t]{1,6}", 1..5), 1..6,
        )) {
            let mut text = String::from("one,two,three,four,five,six\r\n");
            let mut wanted = Vec::new();
            for fields in &rows {
                let fields: Vec<String> = fields.iter().map(|field| format!("x{field}x")).collect();
                write_record(&mut text, &fields.iter().map(|field| CsvCell::text(field)).collect::<Vec<_>>());
                wanted.push(fields);
            }
            let back: Vec<_> = CsvReader::new(&text).skip(1).map(|record| record.fields.unwrap()).collect();
            prop_assert_eq!(back, wanted);
        }

        #[test]
        fn reading_can_resume_at_every_record(text in "[a\",;\n\r \u{e9}]{0,60}") {
            let whole: Vec<CsvRecord> = CsvReader::new(&text).collect();
            let ((mut at, mut line), mut steps) = ((0, 1), Vec::new());
            loop {
                let mut records = CsvReader::resume(&text, at, line);
                let Some(record) = records.next() else { break };
                steps.push(record);
                (at, line) = records.position();
            }
            prop_assert_eq!(whole, steps);
        }
    }
}
