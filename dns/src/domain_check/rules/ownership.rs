//! Checks the ownership record: one TXT record with the exact value. Other records at its name are ignored.

use super::{RuleInput, RuleResult};

pub(super) fn check_ownership(case: &RuleInput<'_>) -> RuleResult {
    let value = case.record.value.as_str();
    let name = case.name();
    if case.record_set.texts().any(|text| text.trim() == value) {
        return RuleResult::verified();
    }
    if let Some(flawed) = case.flawed_text(|repaired| repaired.trim() == value) {
        return flawed;
    }
    if case.record_set.texts().any(|text| text.trim().eq_ignore_ascii_case(value)) {
        return RuleResult::mismatch(format!(
            "The TXT record at {name} differs from the value in upper and lower case. Copy it exactly."
        ));
    }
    if case.record_set.texts().next().is_none() || !case.record_set.aliases.is_empty() || case.misplaced_at().is_some()
    {
        return case.explain_missing();
    }
    RuleResult::mismatch(format!(
        "There is a TXT record at {name}, but none with the value of this one. Publish this one too; the others \
         can stay."
    ))
}
