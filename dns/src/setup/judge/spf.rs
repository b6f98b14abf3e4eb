//! The SPF record: one, readable, within the limits, and one that lets our mail pass (RFC 7208).

use super::{Case, Verdict};
use crate::sender_policy::{LOOKUPS_MAX, VOIDS_MAX};
use crate::setup::spf::walk::{LOOKUPS_COUNTED_MAX, Walk};
use crate::setup::spf::{Mechanism, Qualifier, Record, Term, is_nearly_record, is_record, mechanisms, read};
use crate::setup::text::{list, short};

pub(super) fn verdict(case: &Case<'_>) -> Verdict {
    let records: Vec<&str> = case.look.texts().filter(|text| is_record(text)).collect();
    match records.as_slice() {
        [] => none(case),
        [one] => one_record(case, one),
        several => {
            let quoted: Vec<String> =
                several.iter().take(4).map(|text| format!("\"{}\"", short(text))).collect();
            let what = format!(
                "{} has {} SPF records, {}; receivers take none when there are several (RFC 7208 4.5).",
                case.name(),
                several.len(),
                list(&quoted)
            );
            with_merged(case, &what, "Replace them by one")
        }
    }
}

fn none(case: &Case<'_>) -> Verdict {
    let name = case.name();
    if let Some(flawed) = case.flawed(is_record) {
        return flawed;
    }
    if let Some(nearly) = case.look.texts().find(|text| is_nearly_record(text)) {
        return Verdict::mismatch(format!(
            "\"{}\" at {name} is meant as an SPF record, but does not begin with \"v=spf1\" and a space, so \
             receivers pass over it. Correct its beginning.",
            short(nearly)
        ));
    }
    if case.answers.spf.obsolete.iter().any(|text| is_record(text)) {
        return Verdict::missing(format!(
            "The SPF record of {name} was published with the type SPF (99), which receivers ask for no more and \
             which does not count (RFC 7208 3.1). Publish it as a TXT record."
        ));
    }
    if case.look.texts().next().is_some() {
        return Verdict::missing(format!(
            "None of the TXT records at {name} is an SPF record. Publish it beside them."
        ));
    }
    case.absent()
}

fn one_record(case: &Case<'_>, text: &str) -> Verdict {
    let name = case.name();
    let terms = match read(text) {
        Ok(terms) => terms,
        Err(why) => {
            return Verdict::mismatch(format!(
                "The SPF record of {name} cannot be read by receivers: {why}. Correct it."
            ));
        }
    };
    let walked = Walk::default();
    let walk = case.answers.spf.walk.as_ref().unwrap_or(&walked);
    let ours = mechanisms(&case.record.value);
    if ours.iter().any(|our| !walk.passes.contains(our)) {
        return without_ours(case, &terms, walk, &ours);
    }
    if let Some(fault) = fault(walk, &ours) {
        return Verdict::mismatch(format!(
            "Receivers give up on the SPF record of {name}: {fault}. Remove what you no longer use."
        ));
    }
    if let Some(fault) = walk.faults.first() {
        return Verdict::mismatch(format!(
            "Receivers give up on the SPF record of {name}: {fault}. That is for us to mend, and not for you."
        ));
    }
    match unwise(&terms, walk) {
        None => Verdict::verified(),
        Some(what) => Verdict {
            error: Some(format!("The SPF record of {name} works, but {what}.")),
            ..Verdict::verified()
        },
    }
}

/// Why receivers stop with an error, as the end of a sentence. That a host of ours has no record is no fault of a
/// customer's, and hides none.
fn fault(walk: &Walk, ours: &[String]) -> Option<String> {
    let hosts = || ours.iter().filter_map(|our| our.strip_prefix("include:"));
    let is_ours = |fault: &str| hosts().any(|host| fault.starts_with(&format!("it includes {host}, ")));
    if let Some(fault) = walk.faults.iter().find(|fault| !is_ours(&fault.to_ascii_lowercase())) {
        return Some(fault.clone());
    }
    if walk.lookups > LOOKUPS_MAX {
        let more = if walk.lookups >= LOOKUPS_COUNTED_MAX { "at least " } else { "" };
        return Some(format!(
            "it needs {more}{} DNS lookups, and at most {LOOKUPS_MAX} are made (RFC 7208 4.6.4)",
            walk.lookups
        ));
    }
    let voids: Vec<&String> =
        walk.voids.iter().filter(|name| !hosts().any(|host| host.eq_ignore_ascii_case(name))).collect();
    (voids.len() > VOIDS_MAX).then(|| {
        format!(
            "{} of the names in it lead to nothing ({}), and at most {VOIDS_MAX} may (RFC 7208 4.6.4)",
            voids.len(),
            list(&voids.iter().take(5).map(|name| short(name)).collect::<Vec<String>>())
        )
    })
}

fn without_ours(case: &Case<'_>, terms: &Record, walk: &Walk, ours: &[String]) -> Verdict {
    let name = case.name();
    let unanswered = walk.unanswered.iter().take(5).map(|host| short(host)).collect::<Vec<String>>();
    if !unanswered.is_empty() {
        return Verdict::pending(format!(
            "The SPF record of {name} includes {}, about which the DNS gave no answer, so it is not known whether \
             it lets our mail pass. We look again.",
            list(&unanswered)
        ));
    }
    let named = list(ours);
    let is_ours = |term: &&Term| match term {
        Term::Mechanism(_, Mechanism::Include(host)) => ours.contains(&format!("include:{}", host.as_str())),
        _ => false,
    };
    let what = if terms.read().any(|term| is_ours(&term)) {
        format!(
            "The SPF record of {name} has {named} with a sign before it that keeps our mail from passing."
        )
    } else if terms.0.iter().any(|term| is_ours(&term)) {
        format!("The SPF record of {name} has {named} behind its \"all\", where receivers no longer read.")
    } else {
        format!("The SPF record of {name} does not let our mail pass: it lacks {named}.")
    };
    with_merged(case, &what, "Replace it by one")
}

/// Says what is wrong and offers the record that holds both, unless that one would fail too.
fn with_merged(case: &Case<'_>, what: &str, todo: &str) -> Verdict {
    match &case.answers.spf.merged {
        None => Verdict::mismatch(format!("{what} {todo} that has everything.")),
        Some((merged, walk)) => match fault(walk, &mechanisms(&case.record.value)) {
            None => Verdict {
                merged: Some(merged.clone()),
                ..Verdict::mismatch(format!("{what} {todo} that holds both: \"{}\".", short_enough(merged)))
            },
            Some(fault) => Verdict::mismatch(format!(
                "{what} A record that holds both would fail as well: {fault}. Remove what you no longer use first."
            )),
        },
    }
}

/// A record that is to be copied is shown whole, as far as one fits a DNS answer (RFC 7208 3.4).
fn short_enough(merged: &str) -> String {
    super::shown(merged)
}

/// What works and should not stay so, as the end of a sentence.
fn unwise(terms: &Record, walk: &Walk) -> Option<String> {
    if !walk.unanswered.is_empty() {
        let names: Vec<String> = walk.unanswered.iter().take(5).map(|host| short(host)).collect();
        return Some(format!("the DNS gave no answer about {}, which it names", list(&names)));
    }
    match terms.all() {
        Some(Qualifier::Pass) => Some(
            "its \"+all\" lets everybody send as your domain. End it with \"~all\" or \"-all\"".to_owned(),
        ),
        Some(Qualifier::Neutral) => {
            Some("its \"?all\" says nothing about other senders. End it with \"~all\" or \"-all\"".to_owned())
        }
        None if terms.redirect().is_none() => Some(
            "it has no \"all\" and so says nothing about other senders. End it with \"~all\" or \"-all\""
                .to_owned(),
        ),
        _ => None,
    }
}
