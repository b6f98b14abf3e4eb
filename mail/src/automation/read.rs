//! Reading a definition: from JSON to its types, with all that is wrong told at once, by field
//! (`steps[2].duration`).
//!
//! [`steps`] reads what steps do. What nobody knows is ignored and named. Everything is bounded while it is read,
//! markup is compiled to see that it can be, and steps lead forward only: a run ends.

mod fields;
mod steps;

use serde_json::Value;

use self::fields::ObjectReader;
pub use self::fields::ParseNotes;
use super::condition::{CLAUSES_MAX, Condition, ConditionClause, FIELD_BYTES_MAX, LIST_MAX, Op, VALUE_BYTES_MAX};
use super::definition::{AutomationDefinition, AutomationStep, Reentry, Trigger};
use super::{DEFINITION_BYTES_MAX, STEPS_MAX};
use crate::number;
use crate::product_event::check_name;

/// Events that end runs.
pub const CANCEL_ON_MAX: usize = 20;

/// Reads a trigger and steps; either may be left out where it was read before.
///
/// # Errors
/// What is wrong is in the notes; then there is no definition.
pub fn parse_definition(trigger: &Value, steps: &Value, notes: &mut ParseNotes) -> Option<AutomationDefinition> {
    let size = trigger.to_string().len().saturating_add(steps.to_string().len());
    if size > DEFINITION_BYTES_MAX {
        notes.error("steps", format!("come to more than {DEFINITION_BYTES_MAX} bytes with the trigger"));
        return None;
    }
    let trigger = self::parse_trigger(trigger, notes);
    let steps = self::parse_steps(steps, notes);
    if notes.errors.is_empty() { Some(AutomationDefinition { trigger: trigger?, steps: steps? }) } else { None }
}

/// Reads what [`Definition::to_json`] wrote.
///
/// # Errors
/// What is wrong with it.
pub fn parse_stored(json: &Value) -> Result<AutomationDefinition, String> {
    let mut notes = ParseNotes::default();
    let part = |name: &str| json.get(name).unwrap_or(&Value::Null);
    parse_definition(part("trigger"), part("steps"), &mut notes).ok_or_else(|| {
        let first = notes.errors.into_iter().next();
        first.map_or_else(|| "no definition".to_owned(), |(field, text)| format!("{field}: {text}"))
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

/// An event's name, as who tells of one writes it.
fn parse_event_name(value: &Value) -> Result<String, String> {
    let text = value.as_str().ok_or("must be a string")?;
    check_name(text).map_err(|error| format!("{error}: it is the name of an event, like `user.created`"))?;
    Ok(text.to_owned())
}

/// `{"all": […]}` or `{"any": […]}`; a list alone is `all` of it.
fn parse_condition(value: &Value, path: &str, notes: &mut ParseNotes, waits: bool) -> Option<Condition> {
    if value.is_array() {
        return parse_clauses(value, path, notes, waits).map(|questions| Condition { all: true, clauses: questions });
    }
    let mut fields = ObjectReader::new(value, path, notes)?;
    let condition = parse_gate(&mut fields, waits);
    fields.finish();
    condition
}

/// The condition among the fields of an object.
fn parse_gate(fields: &mut ObjectReader<'_>, waits: bool) -> Option<Condition> {
    let read = |value: &Value, path: &str, notes: &mut ParseNotes| parse_clauses(value, path, notes, waits);
    let (all, any) = (fields.peek("all").is_some(), fields.peek("any").is_some());
    match (all, any) {
        (true, false) => fields.optional_with("all", read).map(|questions| Condition { all: true, clauses: questions }),
        (false, true) => {
            fields.optional_with("any", read).map(|questions| Condition { all: false, clauses: questions })
        }
        (true, true) => {
            fields.error("any", "give one of `all` and `any`");
            None
        }
        (false, false) => {
            fields.error("all", "is required: a list of {field, op, value}; or `any`");
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
    let given = fields.take("value");
    let wrong = op.and_then(|op| operand_error(op, given));
    if let Some(text) = wrong {
        fields.error("value", text);
    }
    fields.finish();
    Some(ConditionClause { field: field?, op: op?, value: given.cloned().unwrap_or_default() })
}

/// What is wrong with the value of a question.
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
        (Op::Gt | Op::Gte | Op::Lt | Op::Lte, Some(value)) if !value.is_string() && !number::is_number(value) => {
            Some("must be a number or a string".to_owned())
        }
        (_, Some(value)) if fields::depth(value) > fields::DEPTH_MAX => {
            Some(format!("is more than {} deep", fields::DEPTH_MAX))
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
        let also = if waits { ", `wait.received` or `wait.data.…`" } else { "" };
        return Err(format!("must be like `event.name`, `event.email`, `event.user_id`, `event.data.plan`{also}"));
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
            notes.error(&format!("steps[{n}].key"), "is another step's already");
        }
        read.push(steps::parse_step(entry, n, &keys, notes));
    }
    read.into_iter().collect()
}

#[cfg(test)]
mod tests;
