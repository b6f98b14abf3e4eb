//! Reading a definition: from JSON to its types, with all that is wrong told at once, by field
//! (`steps[2].duration`).
//!
//! [`steps`] reads what steps do. What nobody knows is ignored and named. Everything is bounded while it is read,
//! markup is compiled to see that it can be, and steps lead forward only: a run ends.

mod fields;
mod steps;

use serde_json::Value;

use self::fields::Fields;
pub use self::fields::Notes;
use super::condition::{Condition, FIELD_BYTES_MAX, LIST_MAX, Op, QUESTIONS_MAX, Question, VALUE_BYTES_MAX};
use super::definition::{Definition, Reentry, Step, Trigger};
use super::{DEFINITION_BYTES_MAX, STEPS_MAX};
use crate::number;
use crate::product_event::check_name;

/// Events that end runs.
pub const CANCEL_ON_MAX: usize = 20;

/// Reads a trigger and steps; either may be left out where it was read before.
///
/// # Errors
/// What is wrong is in the notes; then there is no definition.
pub fn definition(trigger: &Value, steps: &Value, notes: &mut Notes) -> Option<Definition> {
    let size = trigger.to_string().len().saturating_add(steps.to_string().len());
    if size > DEFINITION_BYTES_MAX {
        notes.error("steps", format!("come to more than {DEFINITION_BYTES_MAX} bytes with the trigger"));
        return None;
    }
    let trigger = self::trigger(trigger, notes);
    let steps = self::all_steps(steps, notes);
    if notes.errors.is_empty() { Some(Definition { trigger: trigger?, steps: steps? }) } else { None }
}

/// Reads what [`Definition::to_json`] wrote.
///
/// # Errors
/// What is wrong with it.
pub fn stored(json: &Value) -> Result<Definition, String> {
    let mut notes = Notes::default();
    let part = |name: &str| json.get(name).unwrap_or(&Value::Null);
    definition(part("trigger"), part("steps"), &mut notes).ok_or_else(|| {
        let first = notes.errors.into_iter().next();
        first.map_or_else(|| "no definition".to_owned(), |(field, text)| format!("{field}: {text}"))
    })
}

fn trigger(value: &Value, notes: &mut Notes) -> Option<Trigger> {
    let mut fields = Fields::of(value, "trigger", notes)?;
    let event = fields.required("event", event_name);
    let filter = fields.optional_with("filter", |value, path, notes| condition(value, path, notes, false));
    let cancel_on_events = fields.list("cancel_on_events", CANCEL_ON_MAX, event_name);
    let reentry = fields.word("reentry", Reentry::WORDS, Reentry::of_word).unwrap_or_default();
    let include_machine = fields.boolean("include_machine").unwrap_or_default();
    fields.end();
    Some(Trigger { event: event?, filter, cancel_on_events, reentry, include_machine })
}

/// An event's name, as who tells of one writes it.
fn event_name(value: &Value) -> Result<String, String> {
    let text = value.as_str().ok_or("must be a string")?;
    check_name(text).map_err(|error| format!("{error}: it is the name of an event, like `user.created`"))?;
    Ok(text.to_owned())
}

/// `{"all": […]}` or `{"any": […]}`; a list alone is `all` of it.
fn condition(value: &Value, path: &str, notes: &mut Notes, waits: bool) -> Option<Condition> {
    if value.is_array() {
        return questions(value, path, notes, waits).map(|questions| Condition { all: true, questions });
    }
    let mut fields = Fields::of(value, path, notes)?;
    let condition = gate(&mut fields, waits);
    fields.end();
    condition
}

/// The condition among the fields of an object.
fn gate(fields: &mut Fields<'_>, waits: bool) -> Option<Condition> {
    let read = |value: &Value, path: &str, notes: &mut Notes| questions(value, path, notes, waits);
    let (all, any) = (fields.raw("all").is_some(), fields.raw("any").is_some());
    match (all, any) {
        (true, false) => {
            fields.optional_with("all", read).map(|questions| Condition { all: true, questions })
        }
        (false, true) => {
            fields.optional_with("any", read).map(|questions| Condition { all: false, questions })
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

fn questions(value: &Value, path: &str, notes: &mut Notes, waits: bool) -> Option<Vec<Question>> {
    let Some(entries) = value.as_array().filter(|entries| (1..=QUESTIONS_MAX).contains(&entries.len()))
    else {
        notes.error(path, format!("must be a list of 1 to {QUESTIONS_MAX} entries {{field, op, value}}"));
        return None;
    };
    let read =
        entries.iter().enumerate().map(|(n, entry)| question(entry, &format!("{path}[{n}]"), notes, waits));
    let read: Vec<_> = read.collect();
    read.into_iter().collect()
}

fn question(value: &Value, path: &str, notes: &mut Notes, waits: bool) -> Option<Question> {
    let mut fields = Fields::of(value, path, notes)?;
    let field = fields.required("field", |value| field_name(value, waits));
    let op = fields.word("op", Op::WORDS, Op::of_word);
    if op.is_none() && fields.raw("op").is_none() {
        fields.error("op", format!("is required: one of {}", Op::WORDS.join(", ")));
    }
    let given = fields.take("value");
    let wrong = op.and_then(|op| operand(op, given));
    if let Some(text) = wrong {
        fields.error("value", text);
    }
    fields.end();
    Some(Question { field: field?, op: op?, value: given.cloned().unwrap_or_default() })
}

/// What is wrong with the value of a question.
fn operand(op: Op, value: Option<&Value>) -> Option<String> {
    let reference =
        value.and_then(Value::as_str).is_some_and(|text| super::context::reference(text).is_some());
    match (op, value) {
        (op, None) if !op.is_unary() && !matches!(op, Op::Eq | Op::Neq) => Some("is required".to_owned()),
        (op, Some(value)) if op.is_unary() && !value.is_boolean() => Some("must be true or false".to_owned()),
        (Op::In, Some(Value::Array(entries))) if entries.len() > LIST_MAX => {
            Some(format!("has more than {LIST_MAX} entries"))
        }
        (Op::In, Some(value)) if !value.is_array() && !reference => Some("must be a list".to_owned()),
        (Op::StartsWith | Op::EndsWith, Some(value)) if !value.is_string() => {
            Some("must be a string".to_owned())
        }
        (Op::Gt | Op::Gte | Op::Lt | Op::Lte, Some(value))
            if !value.is_string() && !number::is_number(value) =>
        {
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

fn field_name(value: &Value, waits: bool) -> Result<String, String> {
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
        return Err(format!(
            "must be like `event.name`, `event.email`, `event.user_id`, `event.data.plan`{also}"
        ));
    }
    crate::tags::check_line(text, FIELD_BYTES_MAX)?;
    Ok(text.to_owned())
}

fn all_steps(value: &Value, notes: &mut Notes) -> Option<Vec<Step>> {
    let Some(entries) = value.as_array() else {
        notes.error("steps", "must be a list of steps");
        return None;
    };
    if entries.len() > STEPS_MAX {
        notes.error("steps", format!("has more than {STEPS_MAX} entries"));
        return None;
    }
    let keys: Vec<Option<&str>> =
        entries.iter().map(|entry| entry.get("key").and_then(Value::as_str)).collect();
    let mut read = Vec::with_capacity(entries.len());
    for (n, entry) in entries.iter().enumerate() {
        if keys.iter().take(n).flatten().any(|earlier| keys.get(n).copied().flatten() == Some(earlier)) {
            notes.error(&format!("steps[{n}].key"), "is another step's already");
        }
        read.push(steps::step(entry, n, &keys, notes));
    }
    read.into_iter().collect()
}

#[cfg(test)]
mod tests;
