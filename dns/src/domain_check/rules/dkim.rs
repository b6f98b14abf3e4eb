//! Checks a DKIM key by the meaning of its tags (RFC 6376 3.6.1, RFC 8463).

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_NO_PAD as BASE64;

use super::{RuleInput, RuleResult};
use crate::domain_check::display_text::{TextFlaw, repair_text, short_value};
use crate::domain_check::tag_list::{parse_tags, tag_value};

pub(super) fn check_dkim(case: &RuleInput<'_>) -> RuleResult {
    let name = case.name();
    let texts: Vec<&str> = case.record_set.texts().collect();
    match texts.as_slice() {
        [] => case.explain_missing(),
        [key_text] => check_one_key(case, key_text),
        several => RuleResult::mismatch(format!(
            "There are {} TXT records at {name}, and receivers use any one of them (RFC 6376 3.6.2.2){}. Remove \
             all but the one with this value.",
            several.len(),
            match several.iter().any(|text| is_same_key(text, &case.record.value)) {
                true => ", an old key as well as this one",
                false => ", none of which has this key",
            },
        )),
    }
}

/// Returns whether two records publish the same key.
pub(super) fn is_same_key(text: &str, value: &str) -> bool {
    public_key(text).is_some_and(|key| Some(key) == self::public_key(value))
}

/// The key of a record, without blanks and padding.
fn public_key(text: &str) -> Option<String> {
    let tags = parse_tags(text).ok()?;
    let key: String = tag_value(&tags, "p")?.split_whitespace().collect();
    Some(key.trim_end_matches('=').to_owned())
}

/// The difference between a text and the expected key record, as a sentence without advice.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct KeyMismatch {
    pub(crate) fault: KeyFault,
    pub(crate) sentence: String,
}

/// The kind of mistake in a key record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum KeyFault {
    /// Not a DKIM key record.
    NoKey,
    /// Revoked: `p=` is empty.
    Revoked,
    /// Quoted twice, or with backslashes.
    Flawed(TextFlaw),
    /// The expected key, damaged in transfer.
    Damaged,
    /// The expected key with tags that keep receivers from using it.
    OtherTags,
    /// A valid key that is not the expected one.
    OtherKey,
}

/// Compares the text at a name with the expected value. Both the domain check and the planner of changes at a provider
/// use this comparison.
pub(crate) fn compare_key(name: &str, text: &str, value: &str) -> Result<(), KeyMismatch> {
    let wrong = |fault, sentence| Err(KeyMismatch { fault, sentence });
    if let Some((_, flaw)) = repair_text(text).filter(|(repaired, _)| public_key(repaired).is_some()) {
        return wrong(KeyFault::Flawed(flaw), flaw.describe(name));
    }
    let read = match parse_tags(text) {
        Ok(read) => read,
        Err(why) => {
            return wrong(KeyFault::NoKey, format!("The TXT record at {name} is not a DKIM key: {why}."));
        }
    };
    let (Some(published), Some(expected)) = (public_key(text), public_key(value)) else {
        let sentence = format!("The TXT record at {name} is not a DKIM key: it has no tag \"p=\".");
        return wrong(KeyFault::NoKey, sentence);
    };
    if published.is_empty() {
        let sentence =
            format!("The DKIM key at {name} is revoked: its \"p=\" is empty, and receivers reject its signatures.");
        return wrong(KeyFault::Revoked, sentence);
    }
    if published != expected {
        return Err(other_key(name, &published, &expected));
    }
    match other_tags_fault(&read, value) {
        Some(problem) => {
            let sentence = format!("The DKIM record at {name} has the right key, but {problem}.");
            wrong(KeyFault::OtherTags, sentence)
        }
        None => Ok(()),
    }
}

fn check_one_key(case: &RuleInput<'_>, text: &str) -> RuleResult {
    let Err(KeyMismatch { fault, sentence }) = compare_key(case.name(), text, &case.record.value) else {
        return RuleResult::verified();
    };
    match (fault, case.record_set.aliases.first()) {
        (KeyFault::Flawed(flaw), _) => RuleResult::mismatch(format!("{sentence} {}", flaw.remedy())),
        (KeyFault::NoKey, Some(_)) => case.explain_missing(),
        (KeyFault::Damaged | KeyFault::OtherKey, Some(alias)) => case.conflict_with_alias(alias),
        _ => RuleResult::mismatch(format!("{sentence} Replace it with this record's value.")),
    }
}

/// The mistake in the tags other than `p=`, as the end of a sentence.
fn other_tags_fault(read: &[(&str, &str)], value: &str) -> Option<String> {
    let expected = parse_tags(value).unwrap_or_default();
    let algorithm = tag_value(&expected, "k").unwrap_or("rsa");
    let published = tag_value(read, "k").unwrap_or("rsa");
    let lists = |tag: &str, wanted: &[&str]| tag.split(':').any(|word| wanted.contains(&word.trim()));
    if tag_value(read, "v").is_some_and(|version| version != "DKIM1") {
        return Some("its version is not \"v=DKIM1\", so receivers ignore it".to_owned());
    }
    if read.iter().position(|(name, _)| *name == "v").is_some_and(|at| at > 0) {
        return Some("\"v=DKIM1\" is not its first tag, so receivers ignore it".to_owned());
    }
    if published != algorithm {
        return Some(format!("\"k={}\" declares a key type other than \"k={algorithm}\"", short_value(published)));
    }
    if let Some(hashes) = tag_value(read, "h").filter(|hashes| !lists(hashes, &["sha256"])) {
        return Some(format!("\"h={}\" excludes the hash that we sign with, sha256", short_value(hashes)));
    }
    if let Some(services) = tag_value(read, "s").filter(|services| !lists(services, &["*", "email"])) {
        return Some(format!("\"s={}\" declares that it is not for email", short_value(services)));
    }
    tag_value(read, "t")
        .filter(|flags| lists(flags, &["y"]))
        .map(|_| "its testing flag \"t=y\" tells receivers to treat signed mail as if it were not signed".to_owned())
}

/// Explains a key that differs from the expected one.
fn other_key(name: &str, published: &str, expected: &str) -> KeyMismatch {
    let damaged = |sentence| KeyMismatch { fault: KeyFault::Damaged, sentence };
    if expected.starts_with(published) {
        return damaged(format!(
            "The DKIM key at {name} was cut off after {} of its {} characters: your provider requires the value in \
             parts of at most 255 characters, all in one record.",
            published.len(),
            expected.len()
        ));
    }
    if expected.eq_ignore_ascii_case(published) {
        return damaged(format!("The DKIM key at {name} was altered: its upper and lower case letters differ."));
    }
    let Ok(der) = BASE64.decode(published) else {
        return damaged(format!("The key at {name} is damaged: its \"p=\" is not valid base64."));
    };
    let sentence = match (rsa_bits(&der), rsa_bits(&BASE64.decode(expected).unwrap_or_default())) {
        (Some(bits), _) if bits < 2_048 => {
            format!("The DKIM key at {name} is a different key of {bits} bits, which is too weak: probably an old key.")
        }
        (None, Some(_)) => format!("The DKIM key at {name} is a different key, and not one of our RSA keys."),
        _ => format!("The DKIM key at {name} is a different key: an old one, or one of another service."),
    };
    KeyMismatch { fault: KeyFault::OtherKey, sentence }
}

/// The length of an RSA key's modulus in bits: of the first INTEGER of `RSAPublicKey` within `SubjectPublicKeyInfo`
/// (RFC 8017 A.1.1, RFC 5280 4.1.2.7), or of a bare `RSAPublicKey`, as some publish it.
fn rsa_bits(der: &[u8]) -> Option<usize> {
    const INTEGER: u8 = 0x02;
    const BIT_STRING: u8 = 0x03;
    const SEQUENCE: u8 = 0x30;
    let (_, outer, _) = der_element(der).filter(|(tag, ..)| *tag == SEQUENCE)?;
    let (tag, first, rest) = der_element(outer)?;
    let modulus = match tag {
        INTEGER => first,
        SEQUENCE => {
            let (_, bits, _) = der_element(rest).filter(|(tag, ..)| *tag == BIT_STRING)?;
            let (_, key, _) = der_element(bits.get(1..)?).filter(|(tag, ..)| *tag == SEQUENCE)?;
            der_element(key).filter(|(tag, ..)| *tag == INTEGER)?.1
        }
        _ => return None,
    };
    let from = modulus.iter().position(|byte| *byte != 0)?;
    let leading = modulus.get(from)?.leading_zeros() as usize;
    Some((modulus.len() - from) * 8 - leading)
}

/// Parses a DER element into its tag, its content and the bytes behind it (X.690 8.1).
fn der_element(der: &[u8]) -> Option<(u8, &[u8], &[u8])> {
    let (&tag, rest) = der.split_first()?;
    let (&short, rest) = rest.split_first()?;
    let (length, rest) = match short {
        0..=0x7f => (usize::from(short), rest),
        0x81 | 0x82 => {
            let (bytes, rest) = rest.split_at_checked(usize::from(short - 0x80))?;
            (bytes.iter().fold(0, |length, byte| length << 8 | usize::from(*byte)), rest)
        }
        _ => return None,
    };
    let (content, rest) = rest.split_at_checked(length)?;
    Some((tag, content, rest))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dkim_key::{DkimKey, KeyAlgorithm};

    #[test]
    fn rsa_key_lengths_are_read() {
        let record = DkimKey::generate(KeyAlgorithm::Rsa).unwrap().txt_record();
        let der = BASE64.decode(public_key(&record).unwrap()).unwrap();
        assert_eq!(rsa_bits(&der), Some(2_048));
        assert!((0..der.len()).all(|end| rsa_bits(&der[..end]).is_none()));
    }

    #[test]
    fn equivalent_dkim_records_are_accepted() {
        assert!(is_same_key("v=DKIM1; p=A B\tC", "p=ABC"));
        assert!(!is_same_key("p=ABC; p=ABC", "p=ABC"));
        assert!(is_same_key("k=ed25519; p=ABC=", "p=ABC"));
        assert!(!is_same_key("", ""));
    }
}
