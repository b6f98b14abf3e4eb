//! Limits of tags, for the API and for SMTP: number, length, characters.

use crate::email::Tag;

/// Maximum number of tags of an email.
pub const TAGS_MAX: usize = 10;
/// Maximum bytes of a tag's name and of its value; every event carries both.
pub const TAG_BYTES_MAX: usize = 256;
/// Characters of an invalid name that an error shows.
const NAME_SHOWN_CHARS_MAX: usize = 64;

/// Checks that a text is at most `bytes_max` long and has no control characters or line ends.
///
/// # Errors
/// Returns the reason, to be appended to the field's name.
pub fn check_line(text: &str, bytes_max: usize) -> Result<(), String> {
    if text.len() > bytes_max {
        return Err(format!("is longer than {bytes_max} bytes"));
    }
    if text.chars().any(|c| c.is_control() || matches!(c, '\u{2028}' | '\u{2029}')) {
        return Err("must not contain line ends or control characters".to_owned());
    }
    Ok(())
}

/// Validates the name of a tag.
pub fn check_name(name: &str) -> Result<(), String> {
    if name.is_empty() {
        return Err("the name is empty".to_owned());
    }
    // Filters have the form `tag=name:value`.
    if name.contains(':') {
        return Err("the name must not contain a colon".to_owned());
    }
    check_line(name, TAG_BYTES_MAX)
}

/// Checks a list of valid tags: returns an error if there are too many, and one for each duplicate name.
pub fn tag_errors(tags: &[Tag]) -> Vec<String> {
    let mut faults = Vec::new();
    if tags.len() > TAGS_MAX {
        faults.push(format!("has more than {TAGS_MAX} entries"));
    }
    for (n, tag) in tags.iter().enumerate().take(TAGS_MAX + 1) {
        if tags.iter().take(n).any(|earlier| earlier.name == tag.name) {
            let printable: String = tag.name.chars().take(NAME_SHOWN_CHARS_MAX).collect();
            faults.push(format!("names `{printable}` twice"));
        }
    }
    faults
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tag_names_and_counts_are_bounded() {
        for good in ["flow", "a b", "\u{e4}", &"x".repeat(TAG_BYTES_MAX)] {
            assert_eq!(check_name(good), Ok(()), "{good}");
        }
        for bad in ["", "a:b", "a\nb", "\u{2028}", &"x".repeat(TAG_BYTES_MAX + 1)] {
            assert!(check_name(bad).is_err(), "{bad}");
        }
        let tag = |name: &str| Tag { name: name.to_owned(), value: String::new() };
        assert!(tag_errors(&[tag("a"), tag("b")]).is_empty());
        assert_eq!(tag_errors(&[tag("a"), tag("b"), tag("a")]), ["names `a` twice"]);
        let many: Vec<Tag> = (0..=TAGS_MAX).map(|n| tag(&n.to_string())).collect();
        assert_eq!(tag_errors(&many), ["has more than 10 entries"]);
    }
}
