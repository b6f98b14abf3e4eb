//! Merging SPF records (RFC 7208): what we need goes into the record that a domain has.
//!
//! A domain has one SPF record (3.2); a second makes both void. So our terms are put into the one that is there,
//! before its `all`, for nothing after that is looked at (5.1), and after its last mechanism where it has none,
//! for a `redirect` counts only when no mechanism matched (6.1), wherever it stands. What else stands there stays
//! as it was written.

use thiserror::Error;

/// Terms of a record that ask the DNS, at most (RFC 7208 4.6.4): with more it is void.
const LOOKUPS_MAX: usize = 10;
/// Bytes of a record, at most: an answer with it is to fit into 512 bytes (3.4), and what is longer than this
/// is an error of somebody.
const RECORD_BYTES_MAX: usize = 2_048;
/// The terms that ask the DNS.
const ASKING: [&str; 6] = ["include", "a", "mx", "ptr", "exists", "redirect"];

/// Why two records cannot be one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum SpfError {
    /// More look-ups than are allowed.
    #[error(
        "the SPF record would ask the DNS {0} times, and 10 are allowed (RFC 7208 4.6.4); \
         take away what no longer sends for the domain"
    )]
    Lookups(usize),
    /// Too long.
    #[error("the SPF record would be too long; take away what no longer sends for the domain")]
    Long,
}

/// Whether a TXT value is an SPF record: its version is a word of its own (RFC 7208 4.5).
#[must_use]
pub fn is_spf(value: &str) -> bool {
    value.split(' ').next().is_some_and(|word| word.eq_ignore_ascii_case("v=spf1"))
}

/// `existing` with the mechanisms of `ours` in it; `None` when it has them all, where they count.
///
/// # Errors
/// [`SpfError`] when it would be void.
pub fn merge(existing: &str, ours: &str) -> Result<Option<String>, SpfError> {
    let mut terms: Vec<&str> = existing.split_ascii_whitespace().collect();
    let all = terms.iter().position(|term| is_all(term));
    let counts = all.unwrap_or(terms.len());
    let missing: Vec<&str> = ours
        .split_ascii_whitespace()
        .skip(1)
        .filter(|term| mechanism(term).is_some() && !is_all(term))
        .filter(|term| !terms.iter().take(counts).any(|there| same(there, term)))
        .collect();
    if missing.is_empty() {
        return Ok(None);
    }
    let at = all.unwrap_or_else(|| {
        terms.iter().rposition(|term| mechanism(term).is_some()).map_or(1, |last| last + 1)
    });
    terms.splice(at.min(terms.len())..at.min(terms.len()), missing);
    let lookups = terms.iter().filter(|term| asks(term)).count();
    if lookups > LOOKUPS_MAX {
        return Err(SpfError::Lookups(lookups));
    }
    let merged = terms.join(" ");
    if merged.len() > RECORD_BYTES_MAX { Err(SpfError::Long) } else { Ok(Some(merged)) }
}

/// A mechanism's qualifier and its name in lower case; `None` for the version and for modifiers (`name=…`).
fn mechanism(term: &str) -> Option<(char, String)> {
    let (qualifier, rest) = match term.chars().next() {
        Some(sign @ ('+' | '-' | '~' | '?')) => (sign, term.get(1..).unwrap_or_default()),
        _ => ('+', term),
    };
    let end = rest.find([':', '/', '=']).unwrap_or(rest.len());
    if rest[end..].starts_with('=') {
        return None;
    }
    Some((qualifier, rest[..end].to_ascii_lowercase()))
}

/// Whether a term is `all`, after which nothing counts.
pub(super) fn is_all(term: &str) -> bool {
    mechanism(term).is_some_and(|(_, name)| name == "all")
}

/// Names are compared without regard to case; `+` is what stands when nothing does.
fn same(a: &str, b: &str) -> bool {
    a.trim_start_matches('+')
        .trim_end_matches('.')
        .eq_ignore_ascii_case(b.trim_start_matches('+').trim_end_matches('.'))
}

fn asks(term: &str) -> bool {
    let name = match mechanism(term) {
        Some((_, name)) => name,
        None => term.split('=').next().unwrap_or_default().to_ascii_lowercase(),
    };
    ASKING.contains(&name.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    const OURS: &str = "v=spf1 include:spf.post.example ~all";

    #[test]
    fn ours_goes_where_it_counts() {
        let cases = [
            ("v=spf1 -all", Some("v=spf1 include:spf.post.example -all")),
            ("v=spf1 mx ~all", Some("v=spf1 mx include:spf.post.example ~all")),
            ("v=spf1", Some("v=spf1 include:spf.post.example")),
            ("V=SPF1  a   ?ALL", Some("V=SPF1 a include:spf.post.example ?ALL")),
            (
                "v=spf1 a redirect=_spf.other.example",
                Some("v=spf1 a include:spf.post.example redirect=_spf.other.example"),
            ),
            (
                "v=spf1 redirect=_spf.other.example",
                Some("v=spf1 include:spf.post.example redirect=_spf.other.example"),
            ),
            (
                "v=spf1 exp=why.example ip4:192.0.2.0/24 -all",
                Some("v=spf1 exp=why.example ip4:192.0.2.0/24 include:spf.post.example -all"),
            ),
            // After `all` it does not count.
            (
                "v=spf1 -all include:spf.post.example",
                Some("v=spf1 include:spf.post.example -all include:spf.post.example"),
            ),
            // A softer word than ours does not count either.
            (
                "v=spf1 ?include:spf.post.example -all",
                Some("v=spf1 ?include:spf.post.example include:spf.post.example -all"),
            ),
            ("v=spf1 a +include:SPF.post.example. -all", None),
            ("v=spf1 include:spf.post.example -all", None),
            ("v=spf1 include:spf.post.example ~all", None),
        ];
        for (existing, merged) in cases {
            assert_eq!(merge(existing, OURS), Ok(merged.map(str::to_owned)), "{existing}");
        }
    }

    #[test]
    fn a_void_record_is_not_made() {
        let full =
            format!("v=spf1 {} -all", (0..10).map(|n| format!("include:{n}.example ")).collect::<String>());
        assert_eq!(merge(&full, OURS), Err(SpfError::Lookups(11)));
        let addresses = format!("v=spf1 {} -all", "ip4:192.0.2.1 ".repeat(200));
        assert_eq!(merge(&addresses, OURS), Err(SpfError::Long));
        // Addresses ask nothing, however many.
        let some = format!("v=spf1 {} -all", "ip4:192.0.2.1 ".repeat(20));
        assert!(merge(&some, OURS).unwrap().is_some());
    }

    #[test]
    fn what_is_spf() {
        assert!(is_spf("v=spf1") && is_spf("V=spf1 -all"));
        assert!(!is_spf("v=spf10 -all") && !is_spf("spf2.0/pra") && !is_spf("google-site-verification=x"));
    }

    proptest::proptest! {
        #[test]
        fn what_stands_stays_and_merging_again_changes_nothing(
            terms in proptest::collection::vec("[+?~-]?(a|mx|all|include:[a-z.]{1,9}|ip4:[0-9./]{1,9}|[a-z]{1,5}=[a-z.]{0,5})", 0..9),
        ) {
            let existing = format!("v=spf1 {}", terms.join(" "));
            if let Ok(Some(merged)) = merge(&existing, OURS) {
                let mut left = merged.split(' ').peekable();
                for term in existing.split_ascii_whitespace() {
                    proptest::prop_assert!(left.any(|there| there == term), "{term} of {existing} in {merged}");
                }
                proptest::prop_assert_eq!(merge(&merged, OURS), Ok(None));
            }
        }

        #[test]
        fn nothing_breaks_it(existing in ".{0,200}", ours in ".{0,60}") {
            let _ = (is_spf(&existing), merge(&existing, &ours));
        }
    }
}
