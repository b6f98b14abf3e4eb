//! The relaxed canonicalization of RFC 6376 3.4: changes of white space by relays do not affect it.
//!
//! Every line of a message ends in CRLF. A bare CR or LF is refused on receipt, so it is passed through unchanged here.
//! The body is not copied: nearly all of it needs no change and is hashed in long runs, which a vectorized search
//! finds.

use memchr::memmem::Finder;

/// RFC 6376 3.4.2: the name in lower case, the value unfolded, each run of blanks as one space, none at either end.
pub(crate) fn canonicalize_field(name: &str, value: &[u8], out: &mut Vec<u8>) {
    out.extend(name.bytes().map(|b| b.to_ascii_lowercase()));
    out.push(b':');
    let start = out.len();
    let mut blank = false;
    for &byte in value {
        match byte {
            b'\r' | b'\n' => {}
            b' ' | b'\t' => blank = true,
            other => {
                if blank && out.len() > start {
                    out.push(b' ');
                }
                blank = false;
                out.push(other);
            }
        }
    }
    out.extend_from_slice(b"\r\n");
}

/// RFC 6376 3.4.4: each run of blanks as one space, none at the end of a line, no empty lines at the end of the body,
/// and one CRLF after a body that is not empty. The pieces form one body, split anywhere.
pub(crate) fn canonicalize_body(mut pieces: Vec<&[u8]>, mut write: impl FnMut(&[u8])) {
    while let Some(last) = pieces.last_mut() {
        *last = trim_end(last);
        if !last.is_empty() {
            break;
        }
        pieces.pop();
    }
    let (double, line_end) = (Finder::new(b"  "), Finder::new(b" \r"));
    // True if the previous piece ended in blanks.
    let mut open = false;
    for &piece in &pieces {
        let mut runs = BlankRuns { piece, double: &double, line_end: &line_end, next: [Some(0); 3], stale: [true; 3] };
        let mut written = 0;
        while let Some(start) = if open { Some(0) } else { runs.next(written) } {
            write(piece.get(written..start).unwrap_or_default());
            let end = start + leading_blanks(piece.get(start..).unwrap_or_default());
            written = end;
            open = false;
            match piece.get(end) {
                None => {
                    open = true;
                    break;
                }
                Some(b'\r' | b'\n') => {}
                Some(_) => write(b" "),
            }
        }
        write(piece.get(written..).unwrap_or_default());
    }
    if !pieces.is_empty() {
        write(b"\r\n");
    }
}

/// Trims blanks and line ends at the end (not `trim_ascii_end`, which would also trim a form feed).
pub(crate) fn trim_end(body: &[u8]) -> &[u8] {
    let end = body.iter().rposition(|b| !matches!(b, b' ' | b'\t' | b'\r' | b'\n')).map_or(0, |at| at + 1);
    body.get(..end).unwrap_or_default()
}

fn leading_blanks(text: &[u8]) -> usize {
    text.iter().position(|b| !matches!(b, b' ' | b'\t')).unwrap_or(text.len())
}

/// Finds runs of blanks other than a single space between words.
struct BlankRuns<'a> {
    piece: &'a [u8],
    double: &'a Finder<'a>,
    line_end: &'a Finder<'a>,
    /// Positions of the next two spaces, space before a line end, and tab; `None` if there are no more.
    next: [Option<usize>; 3],
    /// The position was not searched yet.
    stale: [bool; 3],
}

impl BlankRuns<'_> {
    /// The start of the next such run at or after `from`.
    fn next(&mut self, from: usize) -> Option<usize> {
        let rest = self.piece.get(from..)?;
        for (pattern, (at, stale)) in self.next.iter_mut().zip(&mut self.stale).enumerate() {
            if *stale || at.is_some_and(|at| at < from) {
                let found = match pattern {
                    0 => self.double.find(rest),
                    1 => self.line_end.find(rest),
                    _ => memchr::memchr(b'\t', rest),
                };
                (*at, *stale) = (found.map(|at| from + at), false);
            }
        }
        let [double, line_end, tab] = self.next;
        // A run can begin with one space and continue with a tab.
        let tab = tab.map(|at| if at > from && self.piece.get(at - 1) == Some(&b' ') { at - 1 } else { at });
        // A blank at the end of the piece: the next byte is in the next piece.
        let last = self.piece.len().checked_sub(1);
        let last = last.filter(|&at| at >= from && matches!(self.piece.get(at), Some(b' ' | b'\t')));
        [double, line_end, tab, last].into_iter().flatten().min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A slow reference implementation of RFC 6376 3.4.4.
    fn reference(body: &str) -> String {
        let mut lines: Vec<String> = Vec::new();
        for line in body.split("\r\n") {
            let mut out = String::new();
            for c in line.chars().map(|c| if c == '\t' { ' ' } else { c }) {
                if c != ' ' || !out.ends_with(' ') {
                    out.push(c);
                }
            }
            lines.push(out.trim_end_matches(' ').to_owned());
        }
        while lines.last().is_some_and(String::is_empty) {
            lines.pop();
        }
        lines.iter().map(|line| format!("{line}\r\n")).collect()
    }

    fn relaxed(pieces: Vec<&[u8]>) -> Vec<u8> {
        let mut out = Vec::new();
        canonicalize_body(pieces, |run| out.extend_from_slice(run));
        out
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2_000))]
        #[test]
        fn bodies_are_canonicalized_in_any_chunks(
            words in proptest::collection::vec(prop::sample::select(
                vec!["a", "bc", " ", " ", "\t", "\r\n", "\r\n", "\u{e9}", "a longer run of words, with commas"]), 0..60),
            cuts in proptest::collection::vec(0usize..300, 0..4),
        ) {
            let body = words.concat();
            let mut pieces = vec![body.as_bytes()];
            for cut in cuts {
                let last = pieces.pop().unwrap();
                let (a, b) = last.split_at(cut.min(last.len()));
                pieces.extend([a, b]);
            }
            prop_assert_eq!(relaxed(pieces), reference(&body).into_bytes());
        }
    }

    #[test]
    fn fields_are_canonicalized() {
        for (value, expected) in [
            (" a b\r\n", "subject:a b\r\n"),
            ("\r\n", "subject:\r\n"),
            (" \t \r\n", "subject:\r\n"),
            ("a,\r\n\tb \r\n  c\t\r\n", "subject:a, b c\r\n"),
        ] {
            let mut out = Vec::new();
            canonicalize_field("Subject", value.as_bytes(), &mut out);
            assert_eq!(String::from_utf8(out).unwrap(), expected);
        }
    }
}
