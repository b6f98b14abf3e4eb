//! `SUMMARY.md`: the order of the guides, in the form that mdBook reads.

/// A part: `# Title`, and the files of its list.
#[derive(Debug, PartialEq, Eq)]
pub struct SummaryPart<'a> {
    pub title: &'a str,
    pub entries: Vec<SummaryEntry<'a>>,
}

/// An entry of a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SummaryEntry<'a> {
    pub title: &'a str,
    pub file: &'a str,
    /// It is below another entry, which links to it; lists of pages leave it out.
    pub is_nested: bool,
}

/// Reads the parts. Entries before the first part (the introduction) are left out.
pub fn parse_summary(text: &str) -> Vec<SummaryPart<'_>> {
    let mut parts: Vec<SummaryPart<'_>> = Vec::new();
    for line in text.lines().skip(1) {
        if let Some(title) = line.strip_prefix("# ") {
            parts.push(SummaryPart { title, entries: Vec::new() });
        } else if let (Some(part), Some(entry)) = (parts.last_mut(), line.trim_start().strip_prefix("- [")) {
            let entry = entry.strip_suffix(')').and_then(|entry| entry.split_once("]("));
            let is_nested = line.starts_with(' ');
            part.entries.extend(entry.map(|(title, file)| SummaryEntry { title, file, is_nested }));
        }
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_have_their_files() {
        let text = "# Summary\n\n[Guides](README.md)\n\n# A\n\n- [One](user/one.md)\n  - [Two](TWO.md)\n";
        let one = SummaryEntry { title: "One", file: "user/one.md", is_nested: false };
        let two = SummaryEntry { title: "Two", file: "TWO.md", is_nested: true };
        assert_eq!(parse_summary(text), [SummaryPart { title: "A", entries: vec![one, two] }]);
    }
}
