//! Conditions: questions about what is known, with one answer each.
//!
//! ```text
//! {"all" | "any": [{"field": "event.data.plan", "op": "eq", "value": "trial"}, …]}
//! ```
//!
//! | op | holds when |
//! |---|---|
//! | `eq` `neq` | the field is (is not) the value: numbers by size, to the digit, all else by kind and content; `null` is a field that is missing |
//! | `gt` `gte` `lt` `lte` | both are numbers; or both are texts: as times where both are times, else by their characters |
//! | `contains` | a text holds the text; a list holds the value |
//! | `starts_with` `ends_with` | a text begins (ends) so |
//! | `exists` | the field is there and not null; with the value `false`, that it is not |
//! | `is_empty` | the field is missing, null, or an empty text, list or object; with `false`, that it is not |
//! | `in` | the value is a list, and the field is one of its entries |
//!
//! A field that is missing is nothing: `neq` holds (unless the value is null), `is_empty` holds, all else does
//! not. Values of different kinds are never equal and never in an order: `"5"` is not 5.

use std::cmp::Ordering;

use serde_json::{Value, json};

use super::context;
use crate::{moment, number};

/// Questions of one condition.
pub const CLAUSES_MAX: usize = 50;
/// A value, as JSON.
pub const VALUE_BYTES_MAX: usize = 4 << 10;
/// Entries of a value that is a list.
pub const LIST_MAX: usize = 100;
/// A field's path.
pub const FIELD_BYTES_MAX: usize = 256;

macro_rules! ops {
    ($($(#[$doc:meta])* $name:ident $word:literal,)*) => {
        /// What is asked.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum Op {
            $($(#[$doc])* $name,)*
        }

        impl Op {
            /// All of them, as they are written.
            pub const WORDS: &'static [&'static str] = &[$($word,)*];

            /// The one that is written like this.
            #[must_use]
            pub fn from_word(word: &str) -> Option<Self> {
                match word {
                    $($word => Some(Self::$name),)*
                    _ => None,
                }
            }

            /// How it is written.
            #[must_use]
            pub fn word(self) -> &'static str {
                match self {
                    $(Self::$name => $word,)*
                }
            }
        }
    };
}

ops! {
    /// Is it this?
    Eq "eq",
    /// Is it not this?
    Neq "neq",
    /// Is it more?
    Gt "gt",
    /// Is it as much or more?
    Gte "gte",
    /// Is it less?
    Lt "lt",
    /// Is it as much or less?
    Lte "lte",
    /// Does it hold this?
    Contains "contains",
    /// Does it begin so?
    StartsWith "starts_with",
    /// Does it end so?
    EndsWith "ends_with",
    /// Is it there?
    Exists "exists",
    /// Is there nothing in it?
    IsEmpty "is_empty",
    /// Is it one of these?
    In "in",
}

impl Op {
    /// Whether the value may be left out.
    #[must_use]
    pub fn is_unary(self) -> bool {
        matches!(self, Self::Exists | Self::IsEmpty)
    }
}

/// One question.
#[derive(Debug, Clone, PartialEq)]
pub struct ConditionClause {
    /// Of what: `event.data.plan`.
    pub field: String,
    /// What is asked.
    pub op: Op,
    /// What it is compared with; null where it was left out.
    pub value: Value,
}

/// Questions that are one.
#[derive(Debug, Clone, PartialEq)]
pub struct Condition {
    /// All must hold; else any does.
    pub all: bool,
    /// At least one.
    pub clauses: Vec<ConditionClause>,
}

impl Condition {
    /// Whether it holds of what `here` is known. A value that is a reference (`{{event.data.plan}}`) is looked up
    /// in `run`.
    #[must_use]
    pub fn evaluate(&self, here: &Value, run: &Value) -> bool {
        let mut answers = self.clauses.iter().map(|question| question.holds(here, run));
        if self.all { answers.all(|yes| yes) } else { answers.any(|yes| yes) }
    }

    /// As it is written.
    #[must_use]
    pub fn to_json(&self) -> Value {
        let questions: Value = self.clauses.iter().map(ConditionClause::to_json).collect();
        json!({if self.all { "all" } else { "any" }: questions})
    }
}

impl ConditionClause {
    fn holds(&self, here: &Value, run: &Value) -> bool {
        let field = context::resolve_path(here, &self.field).unwrap_or(&Value::Null);
        let value = match self.value.as_str().and_then(context::reference_path) {
            Some(path) => context::resolve_path(run, path).unwrap_or(&Value::Null),
            None => &self.value,
        };
        evaluate_op(self.op, field, value)
    }

    fn to_json(&self) -> Value {
        let mut json = json!({"field": self.field, "op": self.op.word()});
        if !(self.op.is_unary() && self.value.is_null()) {
            json["value"] = self.value.clone();
        }
        json
    }
}

fn evaluate_op(op: Op, field: &Value, value: &Value) -> bool {
    match op {
        Op::Eq => is_equal(field, value),
        Op::Neq => !is_equal(field, value),
        Op::Gt => compare_order(field, value) == Some(Ordering::Greater),
        Op::Gte => matches!(compare_order(field, value), Some(Ordering::Greater | Ordering::Equal)),
        Op::Lt => compare_order(field, value) == Some(Ordering::Less),
        Op::Lte => matches!(compare_order(field, value), Some(Ordering::Less | Ordering::Equal)),
        Op::Contains => match (field, value) {
            (Value::String(text), Value::String(part)) => text.contains(part.as_str()),
            (Value::Array(entries), one) => entries.iter().any(|entry| is_equal(entry, one)),
            _ => false,
        },
        Op::StartsWith => as_texts(field, value).is_some_and(|(text, part)| text.starts_with(part)),
        Op::EndsWith => as_texts(field, value).is_some_and(|(text, part)| text.ends_with(part)),
        Op::Exists => field.is_null() == (*value == Value::Bool(false)),
        Op::IsEmpty => is_empty(field) != (*value == Value::Bool(false)),
        Op::In => match value {
            Value::Array(entries) => !field.is_null() && entries.iter().any(|entry| is_equal(field, entry)),
            _ => false,
        },
    }
}

fn as_texts<'a>(field: &'a Value, value: &'a Value) -> Option<(&'a str, &'a str)> {
    Some((field.as_str()?, value.as_str()?))
}

fn is_empty(field: &Value) -> bool {
    match field {
        Value::Null => true,
        Value::String(text) => text.is_empty(),
        Value::Array(entries) => entries.is_empty(),
        Value::Object(fields) => fields.is_empty(),
        _ => false,
    }
}

fn is_equal(one: &Value, other: &Value) -> bool {
    number::compare(one, other).map_or_else(|| one == other, Ordering::is_eq)
}

fn compare_order(one: &Value, other: &Value) -> Option<Ordering> {
    match (one, other) {
        (Value::String(one), Value::String(other)) => match (moment::parse(one), moment::parse(other)) {
            (Ok(one), Ok(other)) => Some(one.cmp(&other)),
            _ => Some(one.cmp(other)),
        },
        _ => number::compare(one, other),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_question_has_one_answer() {
        use Op::{Contains, EndsWith, Eq, Exists, Gt, Gte, In, IsEmpty, Lt, Lte, Neq, StartsWith};
        for (field, op, value, holds) in [
            (json!("trial"), Eq, json!("trial"), true),
            (json!("trial"), Eq, json!("Trial"), false),
            (json!(1), Eq, json!(1.0), true),
            (json!("1"), Eq, json!(1), false),
            (json!(true), Eq, json!("true"), false),
            (json!(9_007_199_254_740_993_u64), Eq, json!(9_007_199_254_740_992_u64), false),
            (Value::Null, Eq, json!("x"), false),
            (Value::Null, Eq, Value::Null, true),
            (Value::Null, Neq, json!("x"), true),
            (json!("x"), Neq, Value::Null, true),
            (json!({"a": [1]}), Eq, json!({"a": [1]}), true),
            (json!(5), Gt, json!(4), true),
            (json!(5), Gt, json!("4"), false),
            (json!(5), Gte, json!(5.0), true),
            (json!(-1), Lt, json!(0), true),
            (json!(u64::MAX), Gt, json!(-1), true),
            (Value::Null, Lt, json!(1), false),
            (Value::Null, Gte, Value::Null, false),
            (json!("b"), Gt, json!("a"), true),
            (json!("2026-01-01T01:00:00+02:00"), Lt, json!("2026-01-01T00:00:00Z"), true),
            (json!("2026-01-01"), Lte, json!("2026-01-02"), true),
            (json!("hello"), Contains, json!("ell"), true),
            (json!(["a", 1]), Contains, json!(1.0), true),
            (json!(["ab"]), Contains, json!("a"), false),
            (json!(11), Contains, json!(1), false),
            (json!({"a": 1}), Contains, json!("a"), false),
            (json!("hello"), StartsWith, json!("he"), true),
            (json!("hello"), EndsWith, json!("lo"), true),
            (json!(12), StartsWith, json!(1), false),
            (Value::Null, StartsWith, json!(""), false),
            (json!(0), Exists, Value::Null, true),
            (json!(0), Exists, json!(true), true),
            (json!(0), Exists, json!(false), false),
            (Value::Null, Exists, Value::Null, false),
            (Value::Null, Exists, json!(false), true),
            (Value::Null, IsEmpty, Value::Null, true),
            (json!(""), IsEmpty, json!(true), true),
            (json!([]), IsEmpty, Value::Null, true),
            (json!(0), IsEmpty, Value::Null, false),
            (json!(" "), IsEmpty, json!(false), true),
            (json!("a"), In, json!(["b", "a"]), true),
            (json!("a"), In, json!("abc"), false),
            (Value::Null, In, json!([null]), false),
            (number::parse("19.90").unwrap(), Eq, json!(19.9), true),
            (number::parse("12345678901234567890123").unwrap(), Gt, json!(1e22), true),
            (number::parse("[1.10]").unwrap(), Contains, json!(1.1), true),
            (number::parse("-0").unwrap(), In, json!([1, 0]), true),
            (number::parse("0.00").unwrap(), IsEmpty, Value::Null, false),
            (number::parse("1.10").unwrap(), Eq, json!("1.10"), false),
        ] {
            assert_eq!(evaluate_op(op, &field, &value), holds, "{field} {} {value}", op.word());
        }
    }

    #[test]
    fn all_and_any_and_references() {
        let question = |field: &str, op, value| ConditionClause { field: field.to_owned(), op, value };
        let questions = vec![
            question("event.data.order", Op::Eq, json!("{{event.data.order}}")),
            question("event.data.items.1", Op::Eq, json!("b")),
        ];
        let here = json!({"event": {"data": {"order": 7, "items": ["a", "b"]}}});
        let all = Condition { all: true, clauses: questions.clone() };
        assert!(all.evaluate(&here, &json!({"event": {"data": {"order": 7}}})));
        let other = json!({"event": {"data": {"order": 8}}});
        assert!(!all.evaluate(&here, &other));
        assert!(Condition { all: false, clauses: questions }.evaluate(&here, &other));
    }
}
