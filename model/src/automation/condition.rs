//! Conditions: comparisons of fields with values, evaluated to true or false.
//!
//! ```text
//! {"all" | "any": [{"field": "event.data.plan", "op": "eq", "value": "trial"}, …]}
//! ```
//!
//! | op | true if |
//! |---|---|
//! | `eq` `neq` | the field equals (does not equal) the value: numbers by exact decimal value, anything else by type
//! and content; `null` equals a missing field |
//! | `gt` `gte` `lt` `lte` | both are numbers, or both are strings; strings are compared as timestamps if both are,
//! else by code points |
//! | `contains` | a string contains the string, or a list contains the value |
//! | `starts_with` `ends_with` | a string starts (ends) with the value |
//! | `exists` | the field is present and not null; with the value `false`: the opposite |
//! | `is_empty` | the field is missing, null, or an empty string, list or object; with the value `false`: the opposite
//! |
//! | `in` | the value is a list that contains the field |
//!
//! For a missing field `neq` is true (unless the value is null), `is_empty` is true, and every other operator is false.
//! Values of different types are never equal and have no order: `"5"` is not 5.

use std::cmp::Ordering;

use message::words;
use serde_json::{Value, json};

use super::context;
use crate::{raw_number, timestamp};

pub const CLAUSES_MAX: usize = 50;
/// Longest JSON text of a value in bytes.
pub const VALUE_BYTES_MAX: usize = 4 << 10;
/// Maximum number of entries of a list value.
pub const LIST_MAX: usize = 100;
/// Longest path of a field in bytes.
pub const FIELD_BYTES_MAX: usize = 256;

words! {
    /// A comparison operator. The module page defines each of them.
    Op {
        Eq = "eq",
        Neq = "neq",
        Gt = "gt",
        Gte = "gte",
        Lt = "lt",
        Lte = "lte",
        Contains = "contains",
        StartsWith = "starts_with",
        EndsWith = "ends_with",
        Exists = "exists",
        IsEmpty = "is_empty",
        In = "in",
    }
}

impl Op {
    /// True if the value is optional.
    pub fn is_unary(self) -> bool {
        matches!(self, Self::Exists | Self::IsEmpty)
    }
}

/// One comparison.
#[derive(Debug, Clone, PartialEq)]
pub struct ConditionClause {
    /// The path of the field: `event.data.plan`.
    pub field: String,
    pub op: Op,
    /// The value to compare with; null if it was omitted.
    pub value: Value,
}

/// Clauses joined by `all` or `any`.
#[derive(Debug, Clone, PartialEq)]
pub struct Condition {
    /// True for `all`, false for `any`.
    pub all: bool,
    /// The clauses; at least one.
    pub clauses: Vec<ConditionClause>,
}

impl Condition {
    /// Evaluates the condition for the data in `scope`. A value that is a reference (`{{event.data.plan}}`) is resolved
    /// in `run`.
    pub fn evaluate(&self, scope: &Value, run: &Value) -> bool {
        let mut results = self.clauses.iter().map(|clause| clause.holds(scope, run));
        if self.all { results.all(|holds| holds) } else { results.any(|holds| holds) }
    }

    /// The JSON form, which the reader accepts.
    pub fn to_json(&self) -> Value {
        let clauses: Value = self.clauses.iter().map(ConditionClause::to_json).collect();
        json!({if self.all { "all" } else { "any" }: clauses})
    }
}

impl ConditionClause {
    fn holds(&self, scope: &Value, run: &Value) -> bool {
        let field = context::resolve_path(scope, &self.field).unwrap_or(&Value::Null);
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
            (Value::Array(entries), scalar) => entries.iter().any(|entry| is_equal(entry, scalar)),
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
    raw_number::compare(one, other).map_or_else(|| one == other, Ordering::is_eq)
}

fn compare_order(one: &Value, other: &Value) -> Option<Ordering> {
    match (one, other) {
        (Value::String(one), Value::String(other)) => match (timestamp::parse(one), timestamp::parse(other)) {
            (Ok(one), Ok(other)) => Some(one.cmp(&other)),
            _ => Some(one.cmp(other)),
        },
        _ => raw_number::compare(one, other),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operators_compare_values() {
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
            (raw_number::parse("19.90").unwrap(), Eq, json!(19.9), true),
            (raw_number::parse("12345678901234567890123").unwrap(), Gt, json!(1e22), true),
            (raw_number::parse("[1.10]").unwrap(), Contains, json!(1.1), true),
            (raw_number::parse("-0").unwrap(), In, json!([1, 0]), true),
            (raw_number::parse("0.00").unwrap(), IsEmpty, Value::Null, false),
            (raw_number::parse("1.10").unwrap(), Eq, json!("1.10"), false),
        ] {
            assert_eq!(evaluate_op(op, &field, &value), holds, "{field} {} {value}", op.word());
        }
    }

    #[test]
    fn all_any_and_references_are_evaluated() {
        let clause = |field: &str, op, value| ConditionClause { field: field.to_owned(), op, value };
        let clauses = vec![
            clause("event.data.order", Op::Eq, json!("{{event.data.order}}")),
            clause("event.data.items.1", Op::Eq, json!("b")),
        ];
        let scope = json!({"event": {"data": {"order": 7, "items": ["a", "b"]}}});
        let all = Condition { all: true, clauses: clauses.clone() };
        assert!(all.evaluate(&scope, &json!({"event": {"data": {"order": 7}}})));
        let other = json!({"event": {"data": {"order": 8}}});
        assert!(!all.evaluate(&scope, &other));
        assert!(Condition { all: false, clauses }.evaluate(&scope, &other));
    }
}
