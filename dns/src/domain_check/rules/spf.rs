//! Checks the SPF record: there is exactly one, it is valid, within the limits, and authorizes the service (RFC 7208).

use super::{RuleInput, RuleResult};
use crate::domain_check::display_text::{display_value, join_list, short_value};
use crate::domain_check::spf_check::lookup_count::{LOOKUPS_COUNTED_MAX, SpfLookups};
use crate::domain_check::spf_check::{
    SpfMechanism, SpfQualifier, SpfRecord, SpfTerm, include_mechanisms, is_almost_record, is_record, parse_strict,
};
use crate::spf::{LOOKUPS_MAX, VOIDS_MAX};

pub(super) fn check_spf(case: &RuleInput<'_>) -> RuleResult {
    let records: Vec<&str> = case.record_set.texts().filter(|text| is_record(text)).collect();
    match records.as_slice() {
        [] => missing_spf(case),
        [record] => check_one_record(case, record),
        several => {
            let quoted: Vec<String> = several.iter().take(4).map(|text| format!("\"{}\"", short_value(text))).collect();
            let problem = format!(
                "{} has {} SPF records, {}; receivers ignore all of them if there are several (RFC 7208 4.5).",
                case.name(),
                several.len(),
                join_list(&quoted)
            );
            suggest_merged(case, &problem, "Replace them with one")
        }
    }
}

fn missing_spf(case: &RuleInput<'_>) -> RuleResult {
    let name = case.name();
    if let Some(flawed) = case.flawed_text(is_record) {
        return flawed;
    }
    if let Some(almost) = case.record_set.texts().find(|text| is_almost_record(text)) {
        return RuleResult::mismatch(format!(
            "\"{}\" at {name} is meant to be an SPF record, but does not begin with \"v=spf1\" and a space, so \
             receivers ignore it. Correct its beginning.",
            short_value(almost)
        ));
    }
    if case.answers.spf.obsolete.iter().any(|text| is_record(text)) {
        return RuleResult::missing(format!(
            "The SPF record of {name} was published with the type SPF (99), which receivers no longer query and \
             which does not count (RFC 7208 3.1). Publish it as a TXT record."
        ));
    }
    if case.record_set.texts().next().is_some() {
        return RuleResult::missing(format!(
            "None of the TXT records at {name} is an SPF record. Publish it next to them."
        ));
    }
    case.explain_missing()
}

fn check_one_record(case: &RuleInput<'_>, text: &str) -> RuleResult {
    let name = case.name();
    let terms = match parse_strict(text) {
        Ok(terms) => terms,
        Err(why) => {
            return RuleResult::mismatch(format!("The SPF record of {name} is invalid: {why}. Correct it."));
        }
    };
    let walked = SpfLookups::default();
    let walk = case.answers.spf.walk.as_ref().unwrap_or(&walked);
    let includes = include_mechanisms(&case.record.value);
    if includes.iter().any(|our| !walk.passes.contains(our)) {
        return missing_include(case, &terms, walk, &includes);
    }
    if let Some(fault) = record_fault(walk, &includes) {
        return RuleResult::mismatch(format!(
            "Receivers reject the SPF record of {name}: {fault}. Remove what you no longer use."
        ));
    }
    if let Some(fault) = walk.faults.first() {
        return RuleResult::mismatch(format!(
            "Receivers reject the SPF record of {name}: {fault}. This is our mistake; you need not change anything."
        ));
    }
    match warning(&terms, walk) {
        None => RuleResult::verified(),
        Some(problem) => RuleResult {
            error: Some(format!("The SPF record of {name} works, but {problem}.")),
            ..RuleResult::verified()
        },
    }
}

/// The reason why receivers abort the evaluation, as the end of a sentence. A missing record at a host of the service
/// is not the customer's mistake, and does not hide one of theirs.
fn record_fault(walk: &SpfLookups, includes: &[String]) -> Option<String> {
    let hosts = || includes.iter().filter_map(|our| our.strip_prefix("include:"));
    let is_own = |fault: &str| hosts().any(|host| fault.starts_with(&format!("it includes {host}, ")));
    if let Some(fault) = walk.faults.iter().find(|fault| !is_own(&fault.to_ascii_lowercase())) {
        return Some(fault.clone());
    }
    if walk.lookups > LOOKUPS_MAX {
        let at_least = if walk.lookups >= LOOKUPS_COUNTED_MAX { "at least " } else { "" };
        return Some(format!(
            "it needs {at_least}{} DNS lookups, but at most {LOOKUPS_MAX} are allowed (RFC 7208 4.6.4)",
            walk.lookups
        ));
    }
    let voids: Vec<&String> =
        walk.voids.iter().filter(|name| !hosts().any(|host| host.eq_ignore_ascii_case(name))).collect();
    (voids.len() > VOIDS_MAX).then(|| {
        format!(
            "{} of its names have no records ({}), but at most {VOIDS_MAX} are allowed (RFC 7208 4.6.4)",
            voids.len(),
            join_list(&voids.iter().take(5).map(|name| short_value(name)).collect::<Vec<String>>())
        )
    })
}

fn missing_include(case: &RuleInput<'_>, terms: &SpfRecord, walk: &SpfLookups, includes: &[String]) -> RuleResult {
    let name = case.name();
    let unanswered = walk.unanswered.iter().take(5).map(|host| short_value(host)).collect::<Vec<String>>();
    if !unanswered.is_empty() {
        return RuleResult::pending(format!(
            "The SPF record of {name} includes {}, which could not be looked up, so it is not known whether \
             it authorizes our mail. We check again.",
            join_list(&unanswered)
        ));
    }
    let named = join_list(includes);
    let is_own = |term: &&SpfTerm| match term {
        SpfTerm::Mechanism(_, SpfMechanism::Include(host)) => includes.contains(&format!("include:{}", host.as_str())),
        _ => false,
    };
    let problem = if terms.effective_terms().any(|term| is_own(&term)) {
        format!("The SPF record of {name} has {named} with a qualifier that does not authorize our mail.")
    } else if terms.0.iter().any(|term| is_own(&term)) {
        format!("The SPF record of {name} has {named} after its \"all\", which receivers ignore.")
    } else {
        format!("The SPF record of {name} does not authorize our mail: {named} is missing.")
    };
    suggest_merged(case, &problem, "Replace it with one")
}

/// Returns the mistake and proposes the merged record, unless that would fail too.
fn suggest_merged(case: &RuleInput<'_>, problem: &str, todo: &str) -> RuleResult {
    match &case.answers.spf.merged {
        None => RuleResult::mismatch(format!("{problem} {todo} that has everything.")),
        Some((merged, walk)) => match record_fault(walk, &include_mechanisms(&case.record.value)) {
            // A record to be copied is shown in full, up to the recommended size of an SPF record (RFC 7208 3.4).
            None => RuleResult {
                merged: Some(merged.clone()),
                ..RuleResult::mismatch(format!("{problem} {todo} that holds both: \"{}\".", display_value(merged)))
            },
            Some(fault) => RuleResult::mismatch(format!(
                "{problem} A record with both would fail as well: {fault}. First remove what you no longer use."
            )),
        },
    }
}

/// A warning about a record that works, as the end of a sentence.
fn warning(terms: &SpfRecord, walk: &SpfLookups) -> Option<String> {
    if !walk.unanswered.is_empty() {
        let names: Vec<String> = walk.unanswered.iter().take(5).map(|host| short_value(host)).collect();
        return Some(format!("{}, which it names, could not be looked up", join_list(&names)));
    }
    match terms.all_qualifier() {
        Some(SpfQualifier::Pass) => {
            Some("its \"+all\" lets anyone send as your domain. End it with \"~all\" or \"-all\"".to_owned())
        }
        Some(SpfQualifier::Neutral) => {
            Some("its \"?all\" makes no statement about other senders. End it with \"~all\" or \"-all\"".to_owned())
        }
        None if terms.redirect().is_none() => Some(
            "it has no \"all\" and so makes no statement about other senders. End it with \"~all\" or \"-all\""
                .to_owned(),
        ),
        _ => None,
    }
}
