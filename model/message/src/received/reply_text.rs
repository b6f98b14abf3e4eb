//! The new text of a reply, without the quoted message and the signature.
//!
//! This is a heuristic: a quote begins at the introductory line of a common mail client, or at the trailing block of
//! `>` lines. If the result would be empty, the whole text is returned.

/// Lines with which Outlook and others begin a quote, in several languages.
const DIVIDERS: &[&str] = &[
    "-----original message-----",
    "----- original message -----",
    "-----ursprüngliche nachricht-----",
    "-----message d'origine-----",
    "-----mensaje original-----",
    "---------- forwarded message",
    "begin forwarded message:",
    "________________________________",
];
/// Endings of introductory lines: `On Monday Ada wrote:`.
const QUOTE_INTRO_ENDS: &[&str] =
    &["wrote:", "schrieb:", "a écrit :", "escribió:", "ha scritto:", "schreef:", "napisał(a):"];
/// Beginnings of introductory lines.
const QUOTE_INTRO_STARTS: &[&str] = &["on ", "am ", "le ", "el ", "il ", "op ", "w dniu "];
/// Signature separator (RFC 3676 4.3).
const SIGNATURE: &str = "--";
/// Lines of a folded introduction.
const INTRODUCTION_LINES_MAX: usize = 3;

/// Removes the quote and the signature of a reply.
pub fn strip_quote(text: &str) -> String {
    let lines: Vec<&str> = text.lines().collect();
    let end = (0..lines.len()).find(|at| is_quote_start(&lines, *at)).unwrap_or(lines.len());
    let mut unquoted = lines.get(..end).unwrap_or_default();
    while let Some((last, before)) = unquoted.split_last() {
        if !last.trim_start().starts_with('>') && !last.trim().is_empty() {
            break;
        }
        unquoted = before;
    }
    if let Some(at) = unquoted.iter().rposition(|line| line.trim_end() == SIGNATURE) {
        unquoted = unquoted.get(..at).unwrap_or_default();
    }
    let stripped = unquoted.join("\n").trim().to_owned();
    if stripped.is_empty() { text.trim().to_owned() } else { stripped }
}

fn is_quote_start(lines: &[&str], at: usize) -> bool {
    let Some(line) = lines.get(at).map(|line| line.trim()) else { return false };
    // Long lines are prose; skipping them bounds the work.
    if line.is_empty() || line.len() > 500 {
        return false;
    }
    let low = line.to_lowercase();
    if DIVIDERS.iter().any(|divider| low.starts_with(divider)) {
        return true;
    }
    if low.starts_with("from: ") || low.starts_with("von: ") || low.starts_with("de : ") {
        let next = lines.iter().skip(at + 1).take(3).map(|line| line.trim().to_lowercase());
        return next.into_iter().any(|line| {
            ["sent: ", "to: ", "date: ", "gesendet: ", "an: ", "envoyé : "].iter().any(|word| line.starts_with(word))
        });
    }
    if !QUOTE_INTRO_STARTS.iter().any(|word| low.starts_with(word)) {
        return false;
    }
    let introduction: Vec<&str> = lines.iter().skip(at).take(INTRODUCTION_LINES_MAX).map(|line| line.trim()).collect();
    let ends = introduction.iter().position(|line| {
        let low = line.to_lowercase();
        QUOTE_INTRO_ENDS.iter().any(|word| low.ends_with(word))
    });
    ends.is_some_and(|ends| introduction.iter().take(ends).all(|line| !line.is_empty()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotes_are_removed() {
        for (text, wanted) in [
            ("Yes.\n\nOn Mon, 1 Jan 2026 at 10:00, Ada <a@b.example> wrote:\n> Do you?\n", "Yes."),
            ("Yes.\n\nOn Mon, 1 Jan 2026 at 10:00,\nAda <a@b.example> wrote:\n> Do you?\n", "Yes."),
            ("Ja.\n\nAm 1.1.2026 um 10:00 schrieb:\n> Und?\n", "Ja."),
            ("Yes.\n\n-----Original Message-----\nFrom: a\n", "Yes."),
            ("Yes.\n\nFrom: Ada\nSent: Monday\nTo: Bob\n\nDo you?", "Yes."),
            ("Yes.\n> Do you?\n> Really?\n", "Yes."),
            ("> Do you?\nYes.\n", "> Do you?\nYes."),
            ("Yes.\n-- \nAda\nACME\n", "Yes."),
            ("From: here to there\nis far", "From: here to there\nis far"),
            ("On time.\n\nHe wrote:\nx", "On time.\n\nHe wrote:\nx"),
            ("> all quoted", "> all quoted"),
            ("", ""),
        ] {
            assert_eq!(strip_quote(text), wanted, "{text}");
        }
    }
}
