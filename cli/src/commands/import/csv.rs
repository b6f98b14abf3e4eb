//! A reader of CSV (RFC 4180) that knows the line of each record. It also takes LF line ends and a byte order mark.

/// A record and the number of its first line, from 1.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct CsvRow {
    pub(super) line: u64,
    pub(super) cells: Vec<String>,
    /// False if a quotation mark is not closed.
    pub(super) is_whole: bool,
}

/// The records of a text; empty lines are skipped.
pub(super) struct CsvRows<'a> {
    rest: &'a str,
    line: u64,
}

impl<'a> CsvRows<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        Self { rest: text.strip_prefix('\u{feff}').unwrap_or(text), line: 1 }
    }

    fn record(&mut self) -> CsvRow {
        let mut row = CsvRow { line: self.line, cells: Vec::new(), is_whole: true };
        let (mut cell, mut is_quoted, mut length) = (String::new(), false, 0);
        let mut characters = self.rest.chars().peekable();
        while let Some(c) = characters.next() {
            length += c.len_utf8();
            match c {
                '"' if is_quoted && characters.peek() == Some(&'"') => {
                    characters.next();
                    length += 1;
                    cell.push('"');
                }
                '"' if is_quoted => is_quoted = false,
                '"' if cell.trim().is_empty() => {
                    is_quoted = true;
                    cell.clear();
                }
                ',' if !is_quoted => row.cells.push(std::mem::take(&mut cell).trim().to_owned()),
                '\n' if !is_quoted => break,
                other => cell.push(other),
            }
        }
        if is_quoted {
            // Only this line is lost, not those that follow.
            length = self.rest.find('\n').map_or(self.rest.len(), |end| end + 1);
            row.is_whole = false;
        }
        row.cells.push(cell.trim().to_owned());
        let (record, rest) = self.rest.split_at(length);
        self.line += record.matches('\n').count() as u64;
        self.rest = rest;
        row
    }
}

impl Iterator for CsvRows<'_> {
    type Item = CsvRow;

    fn next(&mut self) -> Option<CsvRow> {
        while !self.rest.is_empty() {
            let row = self.record();
            if row.cells.iter().any(|cell| !cell.is_empty()) {
                return Some(row);
            }
        }
        None
    }
}

/// Writes a record.
pub(super) fn write_row(out: &mut String, cells: &[&str]) {
    let quoted = cells.iter().map(|cell| format!("\"{}\"", cell.replace('"', "\"\"")));
    out.push_str(&quoted.collect::<Vec<_>>().join(","));
    out.push('\n');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_have_their_lines() {
        let text = "\u{feff}a,b\r\n\"x\ny\",\"say \"\"hi\"\"\"\n\n c ,d\n\"open,1\ne,f";
        let rows: Vec<CsvRow> = CsvRows::new(text).collect();
        let row = |line, cells: &[&str], is_whole| CsvRow {
            line,
            cells: cells.iter().map(|&cell| cell.to_owned()).collect(),
            is_whole,
        };
        assert_eq!(rows[0], row(1, &["a", "b"], true));
        assert_eq!(rows[1], row(2, &["x\ny", "say \"hi\""], true));
        assert_eq!(rows[2], row(5, &["c", "d"], true));
        assert!(!rows[3].is_whole && rows[3].line == 6);
        assert_eq!(rows[4], row(7, &["e", "f"], true));
    }
}
