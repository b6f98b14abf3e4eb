//! A plan and its results for people.

use std::collections::BTreeMap;

use serde_json::Value;
use similar::TextDiff;

use super::change::{FieldChange, ObjectAction, Plan, PlannedChange};
use crate::output::{safe_line, safe_text};

/// Texts up to here are shown in one line.
const LINE_CHARS: usize = 100;

pub(super) fn plan_text(plan: &Plan) -> String {
    let mut lines: Vec<String> = plan.changes.iter().flat_map(change_lines).collect();
    for one in &plan.undeclared {
        let note = if one.kind.can_delete { "not in the file; --delete deletes it" } else { "not in the file" };
        lines.push(format!("  {} {} ({note})", one.kind.noun, safe_text(&one.key)));
    }
    lines.push(match plan.changes.len() {
        0 => "no changes".to_owned(),
        1 => "1 change".to_owned(),
        n => format!("{n} changes"),
    });
    lines.join("\n")
}

fn change_lines(change: &PlannedChange) -> Vec<String> {
    let sign = match change.action {
        ObjectAction::Create => '+',
        ObjectAction::Update(_) => '~',
        ObjectAction::Delete(_) => '-',
    };
    let is_update = sign == '~';
    let head = format!("{sign} {} {}", change.kind.noun, safe_text(&change.key));
    let fields = change.fields.iter().filter(|field| is_update || field.field != change.kind.key);
    std::iter::once(head).chain(fields.flat_map(|field| field_lines(field, is_update))).collect()
}

fn field_lines(change: &FieldChange, is_update: bool) -> Vec<String> {
    let is_long = [&change.old, &change.new].into_iter().any(needs_lines);
    let (old, new) = (shown(&change.old, is_long), shown(&change.new, is_long));
    if !is_update {
        let new = if is_long { format!("{} lines", new.lines().count()) } else { new };
        return vec![format!("    {}: {}", change.field, safe_text(&new))];
    }
    if !is_long {
        return vec![format!("    {}: {} → {}", change.field, safe_text(&old), safe_text(&new))];
    }
    let diff = TextDiff::from_lines(&old, &new).unified_diff().context_radius(2).to_string();
    let lines = diff.lines().filter(|line| !line.starts_with("\\ ")).map(|line| format!("      {}", safe_line(line)));
    std::iter::once(format!("    {}:", change.field)).chain(lines).collect()
}

/// Returns whether a value does not fit one line.
fn needs_lines(value: &Value) -> bool {
    value.to_string().chars().count() > LINE_CHARS || value.as_str().is_some_and(|text| text.contains('\n'))
}

/// A value as it is compared: long texts as they are, other long values as JSON of several lines.
fn shown(value: &Value, is_long: bool) -> String {
    match value {
        Value::Null => "none".to_owned(),
        Value::String(text) if text.contains('\n') => text.clone(),
        other if is_long => serde_json::to_string_pretty(&in_order(other)).unwrap_or_else(|_| other.to_string()),
        other => other.to_string(),
    }
}

/// The value with the fields of its objects in alphabetical order, so that only what differs is shown.
fn in_order(value: &Value) -> Value {
    match value {
        Value::Object(fields) => {
            let sorted: BTreeMap<&String, Value> = fields.iter().map(|(name, value)| (name, in_order(value))).collect();
            Value::Object(sorted.into_iter().map(|(name, value)| (name.clone(), value)).collect())
        }
        Value::Array(entries) => entries.iter().map(in_order).collect(),
        other => other.clone(),
    }
}

pub(super) fn result_text(result: &Value) -> String {
    let text = |name: &str| result[name].as_str().map(safe_text).unwrap_or_default();
    let mut line = format!("{} {} {}", text("result"), text("object"), text("key"));
    for (name, label) in [("secret", "secret (shown once)"), ("saved_to", "secret saved to"), ("error", "error")] {
        if !text(name).is_empty() {
            line.push_str(&format!("\n    {label}: {}", text(name)));
        }
    }
    line
}
