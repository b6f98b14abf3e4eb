//! SPF records of customers' domains: finds mistakes, counts lookups, and merges the service's includes.
//!
//! [`parse_strict`] parses a record as receivers do and reports mistakes. [`lookup_count`] counts the lookups that a receiver
//! needs, and [`record_merge`] adds the includes of the service to an existing record.

pub(crate) mod lookup_count;
pub(crate) mod record_merge;

pub(crate) use crate::spf::record::{SpfMechanism, SpfQualifier, SpfRecord, SpfTerm, is_record, record_terms};

/// The `include:` terms of a record of the service.
pub fn include_mechanisms(record: &str) -> Vec<String> {
    record_terms(record).map(str::to_ascii_lowercase).filter(|word| word.starts_with("include:")).collect()
}

/// Returns whether a text was meant to be an SPF record, but is not.
pub(crate) fn is_almost_record(text: &str) -> bool {
    let bare: String = text.chars().filter(|c| c.is_ascii_alphanumeric() || *c == '=').take(16).collect();
    let bare = bare.to_ascii_lowercase();
    !is_record(text) && (bare.starts_with("v=spf") || bare.starts_with("vspf1") || bare.starts_with("spf1"))
}

/// Parses a record.
///
/// # Errors
/// The mistake, as the end of a sentence: a syntax error, or a term that receivers understand differently than its
/// owner meant.
pub(crate) fn parse_strict(text: &str) -> Result<SpfRecord, String> {
    let record = SpfRecord::parse(text)?;
    for (word, term) in record_terms(text).zip(&record.0) {
        let SpfTerm::Unknown { name } = term else { continue };
        let why = match name.as_str() {
            "v" => "is in the middle of it: two records were joined into one",
            "include" | "a" | "mx" | "ip4" | "ip6" | "exists" | "all" | "ptr" => {
                "has \"=\" where \":\" belongs, so receivers ignore it"
            }
            _ => continue,
        };
        return Err(format!("\"{}\" {why}", super::display_text::short_value(word)));
    }
    Ok(record)
}

/// Returns whether an `include:` of the record itself is effective and has the qualifier `+`.
pub(crate) fn passes_include(record: &SpfRecord, include: &str) -> bool {
    let is_included_host =
        |host: &str| include.strip_prefix("include:").is_some_and(|our| our.eq_ignore_ascii_case(host));
    // The first match decides (RFC 7208 4.6.2).
    let first = record.effective_terms().find_map(|term| match term {
        SpfTerm::Mechanism(qualifier, SpfMechanism::Include(host)) if is_included_host(host.as_str()) => {
            Some(*qualifier)
        }
        _ => None,
    });
    first == Some(SpfQualifier::Pass)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spf_records_are_recognised() {
        for (text, is_record_expected, is_almost) in [
            ("v=spf1 -all", true, false),
            ("V=SPF1 -all", true, false),
            ("v=spf1", true, false),
            ("v=spf1; -all", false, true),
            ("v=spf1include:a.example -all", false, true),
            ("\"v=spf1 -all\"", false, true),
            ("v = spf1 -all", false, true),
            ("spf1 -all", false, true),
            ("v=spf2.0/pra -all", false, true),
            ("v=DMARC1; p=none", false, false),
            ("", false, false),
        ] {
            assert_eq!((is_record(text), is_almost_record(text)), (is_record_expected, is_almost), "{text}");
        }
    }

    #[test]
    fn misspelled_spf_records_are_recognised() {
        for (bad, why) in [
            ("v=spf1 include=a.example -all", "\"=\" where \":\""),
            ("v=spf1 -all v=spf1 mx -all", "two records were joined"),
            ("v=spf1 everything", "is not an SPF term"),
        ] {
            let found = parse_strict(bad).unwrap_err();
            assert!(found.contains(why), "{bad}: {found}");
        }
        assert!(parse_strict("v=spf1 mx unknown=thing -all").is_ok());
    }
}
