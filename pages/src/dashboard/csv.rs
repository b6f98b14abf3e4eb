//! CSV files that pages make (RFC 4180).

/// Longest file: it is built in memory.
const BYTES_MAX: usize = 8 << 20;

/// A CSV file under construction.
#[derive(Debug, Clone)]
pub struct CsvText {
    text: String,
    rows: usize,
}

impl CsvText {
    /// A file with its header row.
    #[must_use]
    pub fn new(columns: &[&str]) -> Self {
        Self { text: columns.join(",") + "\r\n", rows: 0 }
    }

    /// The number of rows without the header.
    #[must_use]
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// True if the file has reached its longest size: no further page is read.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.text.len() >= BYTES_MAX
    }

    /// Adds a row. Values that spreadsheets would run as formulas get an apostrophe before them.
    pub fn push<T: AsRef<str>>(&mut self, values: &[T]) {
        for (n, value) in values.iter().enumerate() {
            if n > 0 {
                self.text.push(',');
            }
            self.push_value(value.as_ref());
        }
        self.text.push_str("\r\n");
        self.rows += 1;
    }

    fn push_value(&mut self, value: &str) {
        let begins_formula = |part: &str| part.trim_start().starts_with(['=', '+', '-', '@', '\t', '\r']);
        let is_formula = value.split([';', '\t', '\n']).any(begins_formula);
        // Some spreadsheets split at semicolons or tabs.
        if !is_formula && !value.contains(['"', ',', ';', '\t', '\n', '\r']) {
            self.text.push_str(value);
            return;
        }
        self.text.push('"');
        if is_formula {
            self.text.push('\'');
        }
        let quoted = value.replace('"', "\"\"");
        self.text.push_str(&quoted);
        self.text.push('"');
    }

    #[must_use]
    pub fn finish(self) -> String {
        self.text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_quoted_and_never_formulas() {
        let mut csv = CsvText::new(&["a", "b"]);
        csv.push(&["x, \"y\"", "=1+1"]);
        csv.push(&["a;=cmd|x", "b;c"]);
        assert_eq!(csv.rows(), 2);
        assert_eq!(csv.finish(), "a,b\r\n\"x, \"\"y\"\"\",\"'=1+1\"\r\n\"'a;=cmd|x\",\"b;c\"\r\n");
    }
}
