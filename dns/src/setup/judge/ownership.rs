//! The ownership record: one TXT of the exact value; others at its name are nobody's business.

use super::{Case, Verdict};

pub(super) fn verdict(case: &Case<'_>) -> Verdict {
    let value = case.record.value.as_str();
    let name = case.name();
    if case.look.texts().any(|text| text.trim() == value) {
        return Verdict::verified();
    }
    if let Some(flawed) = case.flawed(|meant| meant.trim() == value) {
        return flawed;
    }
    if case.look.texts().any(|text| text.trim().eq_ignore_ascii_case(value)) {
        return Verdict::mismatch(format!(
            "The TXT record at {name} has the value with other upper and lower case letters. Copy it exactly."
        ));
    }
    if case.look.texts().next().is_none() || !case.look.aliases.is_empty() || case.stray().is_some() {
        return case.absent();
    }
    Verdict::mismatch(format!(
        "There is a TXT record at {name}, but none with the value of this one. Publish this one too; the others \
         can stay."
    ))
}
