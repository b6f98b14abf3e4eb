//! Parses tag lists: `v=DKIM1; k=rsa; p=MIIB…` (RFC 6376 3.2, RFC 7489 6.4).

/// More tags are a mistake or an attack.
const TAGS_MAX: usize = 64;

/// Parses the tags of a text in their order. Blanks around names, values and semicolons are ignored.
///
/// # Errors
/// The mistake, as the end of a sentence.
pub(super) fn parse_tags(text: &str) -> Result<Vec<(&str, &str)>, String> {
    let mut tags: Vec<(&str, &str)> = Vec::new();
    if text.bytes().filter(|byte| *byte == b';').count() > TAGS_MAX {
        return Err(format!("it has more than {TAGS_MAX} tags"));
    }
    for part in text.trim_end().trim_end_matches(';').split(';') {
        let wrong =
            || format!("\"{}\" is not a tag of the form \"name=value\"", super::display_text::short_value(part.trim()));
        let (name, value) = part.split_once('=').ok_or_else(wrong)?;
        let (name, value) = (name.trim(), value.trim());
        if name.is_empty() || !name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_') {
            return Err(wrong());
        }
        if tags.iter().any(|(other, _)| *other == name) {
            return Err(format!("the tag \"{name}=\" occurs twice"));
        }
        tags.push((name, value));
    }
    Ok(tags)
}

pub(super) fn tag_value<'a>(tags: &[(&str, &'a str)], name: &str) -> Option<&'a str> {
    tags.iter().find(|(tag, _)| *tag == name).map(|(_, value)| *value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn valid_tag_lists_are_read_and_others_refused() {
        assert_eq!(parse_tags("v=DKIM1; p = A B= ;").unwrap(), [("v", "DKIM1"), ("p", "A B=")]);
        assert_eq!(tag_value(&parse_tags("v=DKIM1;p=").unwrap(), "p"), Some(""));
        for (text, why) in [
            ("v=DMARC1 p=none", ""),
            ("v=DMARC1; none", "not a tag"),
            ("v=DMARC1; ; p=none", "not a tag"),
            ("p=a; p=b", "twice"),
            ("", "not a tag"),
        ] {
            assert!(why.is_empty() == parse_tags(text).is_ok(), "{text}");
            assert!(parse_tags(text).err().unwrap_or_default().contains(why), "{text}");
        }
    }
}
