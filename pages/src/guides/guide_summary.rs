//! `SUMMARY.md`: the order of the guides, in the form that mdBook reads.

/// A part: `# Title`, and the files of its list.
#[derive(Debug, PartialEq, Eq)]
pub struct SummaryPart<'a> {
    pub title: &'a str,
    /// Title and file of each entry.
    pub files: Vec<(&'a str, &'a str)>,
}

/// Reads the parts. Entries before the first part (the introduction) are left out.
#[must_use]
pub fn parse_summary(text: &str) -> Vec<SummaryPart<'_>> {
    let mut parts: Vec<SummaryPart<'_>> = Vec::new();
    for line in text.lines().skip(1) {
        if let Some(title) = line.strip_prefix("# ") {
            parts.push(SummaryPart { title, files: Vec::new() });
        } else if let (Some(part), Some(entry)) = (parts.last_mut(), line.trim_start().strip_prefix("- [")) {
            part.files.extend(entry.strip_suffix(')').and_then(|entry| entry.split_once("](")));
        }
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_have_their_files() {
        let text = "# Summary\n\n[Guides](user/README.md)\n\n# A\n\n- [One](user/one.md)\n- [Two](TWO.md)\n";
        let files = vec![("One", "user/one.md"), ("Two", "TWO.md")];
        assert_eq!(parse_summary(text), [SummaryPart { title: "A", files }]);
    }
}
