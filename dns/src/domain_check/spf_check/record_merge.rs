//! Merges the service's includes into existing SPF records, since a domain can have only one record.

use super::{SpfMechanism, SpfQualifier, SpfTerm, parse_strict, record_terms};

const RECORDS_MAX: usize = 4;

/// Merges existing records and the service's mechanisms (`include:spf.example.net`) into one record. The terms keep
/// their spelling and order; the service's are inserted before the final `all` or `redirect=`. Several records are
/// merged with the most lenient of their `all` terms, so that no mail is refused because of the merge. Returns `None`
/// if a record is invalid or there are too many.
pub(crate) fn merge_records(records: &[&str], includes: &[String]) -> Option<String> {
    if records.len() > RECORDS_MAX {
        return None;
    }
    let mut merged: Vec<String> = Vec::new();
    let (mut all_terms, mut redirects) = (Vec::new(), Vec::new());
    for record in records {
        let terms = parse_strict(record).ok()?;
        for (word, term) in record_terms(record).zip(&terms.0) {
            match term {
                SpfTerm::Mechanism(qualifier, SpfMechanism::All) => all_terms.push((*qualifier, word.to_owned())),
                SpfTerm::Redirect(host) => redirects.push((host.as_str().to_owned(), word.to_owned())),
                // With another qualifier, or after the `all`, the include has no effect, so it is inserted again.
                _ if includes.iter().any(|our| is_same_mechanism(word, our)) => {}
                _ if merged.iter().any(|known| known.eq_ignore_ascii_case(word)) => {}
                _ => merged.push(word.to_owned()),
            }
        }
    }
    merged.extend(includes.iter().cloned());
    match (records, redirects.as_slice()) {
        ([_], [(_, redirect)]) if all_terms.is_empty() => merged.push(redirect.clone()),
        ([_], _) => merged.extend(all_terms.first().map(|(_, word)| word.clone())),
        _ => {
            // Next to another record's `all`, a redirect would never be evaluated.
            for (host, _) in &redirects {
                merged.push(format!("include:{host}"));
            }
            merged.push(mildest_all(&all_terms));
        }
    }
    Some(format!("v=spf1 {}", merged.join(" ")))
}

/// The most lenient `all`. A `+all` authorizes everybody, so it is never used.
fn mildest_all(all_terms: &[(SpfQualifier, String)]) -> String {
    let has = |sign| all_terms.iter().any(|(qualifier, _)| *qualifier == sign);
    match (has(SpfQualifier::Neutral), has(SpfQualifier::SoftFail), has(SpfQualifier::Fail)) {
        (true, _, _) => "?all",
        (_, false, true) => "-all",
        _ => "~all",
    }
    .to_owned()
}

fn is_same_mechanism(word: &str, our: &str) -> bool {
    word.trim_start_matches(['+', '-', '~', '?']).trim_end_matches('.').eq_ignore_ascii_case(our)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn includes_are_inserted_before_the_all_term() {
        let includes = ["include:our.example".to_owned()];
        for (records, merged) in [
            (&["v=spf1 mx -all"][..], "v=spf1 mx include:our.example -all"),
            (&["v=spf1 mx"], "v=spf1 mx include:our.example"),
            (&["v=spf1 redirect=a.example"], "v=spf1 include:our.example redirect=a.example"),
            (&["v=spf1 -all include:our.example"], "v=spf1 include:our.example -all"),
            (&["v=spf1 ~include:our.example. Mx ?all"], "v=spf1 Mx include:our.example ?all"),
            (
                &["v=spf1 mx include:a.example -all", "v=spf1 mx include:our.example ~all"],
                "v=spf1 mx include:a.example include:our.example ~all",
            ),
            (&["v=spf1 redirect=a.example", "v=spf1 mx -all"], "v=spf1 mx include:our.example include:a.example -all"),
            (&["v=spf1 +all", "v=spf1 mx"], "v=spf1 mx include:our.example ~all"),
        ] {
            assert_eq!(merge_records(records, &includes).as_deref(), Some(merged), "{records:?}");
        }
        assert_eq!(merge_records(&["v=spf1 nonsense -all"], &includes), None);
    }
}
