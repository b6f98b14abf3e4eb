//! Parsing of automation definitions: from JSON to types. All errors are reported together, each with the path of its
//! field (`steps[2].duration`).
//!
//! [`steps`] parses the steps. Unknown fields are ignored and reported. Sizes and counts are limited, templates are
//! compiled to detect errors, and steps can only refer to later steps. Therefore every run terminates.

mod object_reader;
mod steps;

use serde_json::Value;

use self::object_reader::ObjectReader;
pub use self::object_reader::ParseNotes;
pub use self::steps::{KEY_BYTES_MAX, NAME_BYTES_MAX};
use super::condition::{CLAUSES_MAX, Condition, ConditionClause, FIELD_BYTES_MAX, LIST_MAX, Op, VALUE_BYTES_MAX};
use super::definition::{AutomationDefinition, AutomationStep, Reentry, Trigger};
use super::{DEFINITION_BYTES_MAX, STEPS_MAX};
use crate::product_event::check_name;
use crate::raw_number;

/// Maximum number of events that cancel runs.
pub const CANCEL_ON_MAX: usize = 20;

/// Parses a trigger and steps. Returns `None` if there are errors, which are added to `notes`.
pub fn parse_definition(trigger: &Value, steps: &Value, notes: &mut ParseNotes) -> Option<AutomationDefinition> {
    let size = trigger.to_string().len().saturating_add(steps.to_string().len());
    if size > DEFINITION_BYTES_MAX {
        notes.error("steps", format!("are larger than {DEFINITION_BYTES_MAX} bytes together with the trigger"));
        return None;
    }
    let trigger = self::parse_trigger(trigger, notes);
    let steps = self::parse_steps(steps, notes);
    if notes.errors.is_empty() { Some(AutomationDefinition { trigger: trigger?, steps: steps? }) } else { None }
}

/// Parses the JSON of [`AutomationDefinition::to_json`].
///
/// # Errors
/// The first error with the path of its field.
pub fn parse_stored(json: &Value) -> Result<AutomationDefinition, String> {
    let mut notes = ParseNotes::of_stored_steps();
    let part = |name: &str| json.get(name).unwrap_or(&Value::Null);
    parse_definition(part("trigger"), part("steps"), &mut notes).ok_or_else(|| {
        let first = notes.errors.into_iter().next();
        first.map_or_else(|| "invalid definition".to_owned(), |(field, text)| format!("{field}: {text}"))
    })
}

fn parse_trigger(value: &Value, notes: &mut ParseNotes) -> Option<Trigger> {
    let mut fields = ObjectReader::new(value, "trigger", notes)?;
    let event = fields.required("event", parse_event_name);
    let filter = fields.optional_with("filter", |value, path, notes| parse_condition(value, path, notes, false));
    let cancel_on_events = fields.list("cancel_on_events", CANCEL_ON_MAX, parse_event_name);
    let reentry = fields.word("reentry", Reentry::WORDS, Reentry::from_word).unwrap_or_default();
    let include_machine = fields.boolean("include_machine").unwrap_or_default();
    fields.finish();
    Some(Trigger { event: event?, filter, cancel_on_events, reentry, include_machine })
}

/// Parses an event name and applies the rules for names of product events.
fn parse_event_name(value: &Value) -> Result<String, String> {
    let text = value.as_str().ok_or("must be a string")?;
    check_name(text).map_err(|error| format!("{error}: use an event name such as `user.created`"))?;
    Ok(text.to_owned())
}

/// Parses `{"all": […]}` or `{"any": […]}`; a list alone means `all`. `waits` allows fields of `wait`.
fn parse_condition(value: &Value, path: &str, notes: &mut ParseNotes, waits: bool) -> Option<Condition> {
    if value.is_array() {
        return parse_clauses(value, path, notes, waits).map(|clauses| Condition { all: true, clauses });
    }
    let mut fields = ObjectReader::new(value, path, notes)?;
    let condition = parse_gate(&mut fields, waits);
    fields.finish();
    condition
}

/// Parses the condition in the fields `all` or `any` of an object.
fn parse_gate(fields: &mut ObjectReader<'_>, waits: bool) -> Option<Condition> {
    let read = |value: &Value, path: &str, notes: &mut ParseNotes| parse_clauses(value, path, notes, waits);
    let (all, any) = (fields.peek("all").is_some(), fields.peek("any").is_some());
    match (all, any) {
        (true, false) => fields.optional_with("all", read).map(|clauses| Condition { all: true, clauses }),
        (false, true) => fields.optional_with("any", read).map(|clauses| Condition { all: false, clauses }),
        (true, true) => {
            fields.error("any", "use either `all` or `any`");
            None
        }
        (false, false) => {
            fields.error("all", "is required (or `any`): a list of {field, op, value}");
            None
        }
    }
}

fn parse_clauses(value: &Value, path: &str, notes: &mut ParseNotes, waits: bool) -> Option<Vec<ConditionClause>> {
    let Some(entries) = value.as_array().filter(|entries| (1..=CLAUSES_MAX).contains(&entries.len())) else {
        notes.error(path, format!("must be a list of 1 to {CLAUSES_MAX} entries {{field, op, value}}"));
        return None;
    };
    let read = entries.iter().enumerate().map(|(n, entry)| parse_clause(entry, &format!("{path}[{n}]"), notes, waits));
    let read: Vec<_> = read.collect();
    read.into_iter().collect()
}

fn parse_clause(value: &Value, path: &str, notes: &mut ParseNotes, waits: bool) -> Option<ConditionClause> {
    let mut fields = ObjectReader::new(value, path, notes)?;
    let field = fields.required("field", |value| parse_field_name(value, waits));
    let op = fields.word("op", Op::WORDS, Op::from_word);
    if op.is_none() && fields.peek("op").is_none() {
        fields.error("op", format!("is required: one of {}", Op::WORDS.join(", ")));
    }
    let value = fields.take("value");
    let wrong = op.and_then(|op| operand_error(op, value));
    if let Some(text) = wrong {
        fields.error("value", text);
    }
    fields.finish();
    Some(ConditionClause { field: field?, op: op?, value: value.cloned().unwrap_or_default() })
}

/// Returns the error in the value of a clause, if there is one.
fn operand_error(op: Op, value: Option<&Value>) -> Option<String> {
    let reference = value.and_then(Value::as_str).is_some_and(|text| super::context::reference_path(text).is_some());
    match (op, value) {
        (op, None) if !op.is_unary() && !matches!(op, Op::Eq | Op::Neq) => Some("is required".to_owned()),
        (op, Some(value)) if op.is_unary() && !value.is_boolean() => Some("must be true or false".to_owned()),
        (Op::In, Some(Value::Array(entries))) if entries.len() > LIST_MAX => {
            Some(format!("has more than {LIST_MAX} entries"))
        }
        (Op::In, Some(value)) if !value.is_array() && !reference => Some("must be a list".to_owned()),
        (Op::StartsWith | Op::EndsWith, Some(value)) if !value.is_string() => Some("must be a string".to_owned()),
        (Op::Gt | Op::Gte | Op::Lt | Op::Lte, Some(value)) if !value.is_string() && !raw_number::is_number(value) => {
            Some("must be a number or a string".to_owned())
        }
        (_, Some(value)) if object_reader::depth(value) > object_reader::DEPTH_MAX => {
            Some(format!("is nested more than {} levels deep", object_reader::DEPTH_MAX))
        }
        (_, Some(value)) if value.to_string().len() > VALUE_BYTES_MAX => {
            Some(format!("is longer than {VALUE_BYTES_MAX} bytes"))
        }
        _ => None,
    }
}

fn parse_field_name(value: &Value, waits: bool) -> Result<String, String> {
    let text = value.as_str().ok_or("must be a string")?;
    let (root, rest) = text.split_once('.').unwrap_or((text, ""));
    let first = rest.split('.').next().unwrap_or_default();
    let known = match root {
        "event" => matches!(first, "name" | "email" | "user_id" | "data"),
        "wait" if waits => matches!(first, "received" | "name" | "email" | "user_id" | "data"),
        _ => false,
    };
    if !known || text.split('.').any(str::is_empty) {
        let wait_fields = if waits { ", `wait.received` or `wait.data.…`" } else { "" };
        return Err(format!(
            "must be a field such as `event.name`, `event.email`, `event.user_id`, `event.data.plan`{wait_fields}"
        ));
    }
    crate::tags::check_line(text, FIELD_BYTES_MAX)?;
    Ok(text.to_owned())
}

fn parse_steps(value: &Value, notes: &mut ParseNotes) -> Option<Vec<AutomationStep>> {
    let Some(entries) = value.as_array() else {
        notes.error("steps", "must be a list of steps");
        return None;
    };
    if entries.len() > STEPS_MAX {
        notes.error("steps", format!("has more than {STEPS_MAX} entries"));
        return None;
    }
    let keys: Vec<Option<&str>> = entries.iter().map(|entry| entry.get("key").and_then(Value::as_str)).collect();
    let mut read = Vec::with_capacity(entries.len());
    for (n, entry) in entries.iter().enumerate() {
        if keys.iter().take(n).flatten().any(|earlier| keys.get(n).copied().flatten() == Some(earlier)) {
            notes.error(&format!("steps[{n}].key"), "is already used by another step");
        }
        read.push(steps::parse_step(entry, n, &keys, notes));
    }
    read.into_iter().collect()
}

#[cfg(test)]
mod tests;
