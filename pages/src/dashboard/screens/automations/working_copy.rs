//! The working copy of an automation: what the form of its page holds. Steps are moved in it without being saved.
//!
//! ```text
//! stored JSON ─► values of controls ─► form ─► moved, inserted … ─► form again
//!                                        └───► JSON ─► update_automation
//! ```

use std::collections::BTreeMap;

use serde_json::Map;

use super::AutomationDetail;
use super::step_form::{
    Pairs, StepKind, complete_step, find, naming_fields, read_comparisons, step_fields, to_pairs, trigger_fields,
};
use crate::dashboard::form::read_fields;
use crate::dashboard::prelude::*;

/// Most steps of an automation.
pub const STEPS_MAX: usize = 50;
/// Most comparisons of a condition.
const COMPARISONS_MAX: usize = 50;
/// The position of a step in the stored automation.
pub const ORIGIN: &str = "origin";

/// An automation as its form holds it.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct WorkingCopy {
    /// Name and trigger.
    pub head: Pairs,
    /// The steps; names have no prefix.
    pub steps: Vec<Pairs>,
}

impl WorkingCopy {
    pub fn stored(automation: &AutomationDetail) -> Self {
        let mut head = vec![("name".to_owned(), automation.name.clone())];
        head.extend(to_pairs(&automation.trigger).into_iter().map(|(name, value)| (format!("trigger.{name}"), value)));
        let step = |(n, step): (usize, &Value)| {
            let mut pairs = to_pairs(step);
            pairs.push((ORIGIN.into(), n.to_string()));
            pairs
        };
        Self { head, steps: automation.steps.iter().enumerate().map(step).collect() }
    }

    /// Reads the form. Comparisons without a field are left out, and the others are numbered without gaps.
    pub fn entered(form: &Fields) -> Self {
        let (mut head, mut steps) = (Pairs::new(), BTreeMap::<usize, Pairs>::new());
        for (name, value) in form.iter() {
            let pair = |name: &str| (name.to_owned(), value.to_owned());
            if let Some((n, local)) = split_step(name) {
                steps.entry(n).or_default().push(pair(local));
            } else if name == "name" || name.starts_with("trigger.") {
                head.push(pair(name));
            }
        }
        let steps = steps.into_values().take(STEPS_MAX).map(|step| without_blank(&without_blank(&step, ""), "filter."));
        Self { head: without_blank(&head, "trigger.filter."), steps: steps.collect() }
    }

    /// Carries out what a button asks for: `up-2`, `down-2`, `move-4-1`, `copy-2`, `remove-2`, `insert-2-delay`. Returns
    /// the position of the step that it was about.
    pub fn apply(&mut self, action: &str) -> Option<usize> {
        let mut words = action.splitn(3, '-');
        let (verb, at) = (words.next()?, words.next()?.parse::<usize>().ok()?);
        let argument = words.next().unwrap_or_default();
        match verb {
            "up" => self.move_step(at, at.checked_sub(1)?),
            "down" => self.move_step(at, at + 1),
            "move" => self.move_step(at, argument.parse().ok()?),
            "copy" if self.steps.len() < STEPS_MAX => {
                // A key is unique, and the copy has no runs of its own.
                let copy =
                    self.steps.get(at)?.iter().filter(|(name, _)| name != "key" && name != ORIGIN).cloned().collect();
                self.steps.insert(at + 1, copy);
                Some(at + 1)
            }
            "remove" if at < self.steps.len() => {
                self.steps.remove(at);
                None
            }
            "insert" if at <= self.steps.len() && self.steps.len() < STEPS_MAX => {
                let kind = StepKind::from_word(argument)?;
                self.steps.insert(at, vec![("type".into(), kind.word().into())]);
                Some(at)
            }
            "row" => Some(at),
            _ => None,
        }
    }

    fn move_step(&mut self, from: usize, to: usize) -> Option<usize> {
        if from >= self.steps.len() || to >= self.steps.len() {
            return None;
        }
        let step = self.steps.remove(from);
        self.steps.insert(to, step);
        Some(to)
    }

    /// The values of the controls by their full names.
    pub fn fields(&self) -> Fields {
        let mut pairs = self.head.clone();
        for (n, step) in self.steps.iter().enumerate() {
            pairs.extend(step.iter().map(|(name, value)| (format!("steps[{n}].{name}"), value.clone())));
        }
        Fields::from_pairs(pairs)
    }

    /// Reads name, trigger and steps as the API takes them.
    ///
    /// # Errors
    /// A field has no such value.
    pub fn read(&self) -> Result<Value, Failure> {
        let fields = self.fields();
        let mut rows: Vec<Field> = trigger_fields();
        rows.push(Field::text("name", "Name"));
        for (n, step) in self.steps.iter().enumerate() {
            let prefix = format!("steps[{n}]");
            rows.extend(naming_fields(&prefix));
            if let Some(kind) = kind_of(step) {
                rows.extend(step_fields(kind, &prefix, &[]));
            }
        }
        let mut body = read_fields(&rows, &fields)?;
        let mut steps = Vec::with_capacity(self.steps.len());
        for (n, pairs) in self.steps.iter().enumerate() {
            let read = body.as_object_mut().and_then(|body| body.remove(&format!("steps[{n}]")));
            let mut step = match read {
                Some(Value::Object(step)) => step,
                _ => Map::new(),
            };
            if let Some(kind) = kind_of(pairs) {
                complete_step(kind, &mut step, pairs);
            }
            steps.push(Value::Object(step));
        }
        body["steps"] = Value::from(steps);
        if let Some((mode, comparisons)) = read_comparisons(&self.head, "trigger.filter.") {
            body["trigger"]["filter"] = json!({mode: comparisons});
        }
        Ok(body)
    }
}

pub fn kind_of(step: &Pairs) -> Option<StepKind> {
    StepKind::from_word(find(step, "type"))
}

/// Splits `steps[2].window.tz` into 2 and `window.tz`.
fn split_step(name: &str) -> Option<(usize, &str)> {
    let (n, local) = name.strip_prefix("steps[")?.split_once("].")?;
    Some((n.parse().ok()?, local))
}

/// Leaves out comparisons without a field and numbers the others without gaps.
fn without_blank(pairs: &Pairs, prefix: &str) -> Pairs {
    let list = format!("{prefix}all[");
    let mut kept: Pairs = pairs.iter().filter(|(name, _)| !name.starts_with(&list)).cloned().collect();
    let mut next = 0;
    for n in 0..=COMPARISONS_MAX {
        let value = |part: &str| find(pairs, &format!("{list}{n}].{part}"));
        if value("field").trim().is_empty() && value("value").trim().is_empty() {
            continue;
        }
        for part in ["field", "op", "value"] {
            kept.push((format!("{list}{next}].{part}"), value(part).to_owned()));
        }
        next += 1;
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    fn example() -> AutomationDetail {
        serde_json::from_value(json!({
            "name": "Trial",
            "trigger": {
                "event": "user.created", "cancel_on_events": ["a", "b"], "reentry": "once",
                "filter": {"any": [{"field": "event.data.plan", "op": "in", "value": ["x", "5"]}]},
            },
            "steps": [
                {"type": "send_email", "key": "hello", "template": {"id": "welcome", "version": 2}, "to": "{{event.email}}",
                 "variables": {"n": 1}, "tags": [{"name": "a", "value": "b: c"}]},
                {"type": "condition", "all": [{"field": "event.data.n", "op": "eq", "value": "5"},
                    {"field": "event.data.n", "op": "exists"}], "on_false": "skip_to", "target": 3},
                {"type": "delay", "duration": "2d", "window": {"tz": "UTC", "days": ["mon", "tue"], "hours": "09:00-17:00"}},
                {"type": "wait_for_event", "event": "e", "match": "auto", "timeout": "3d", "on_timeout": "stop",
                 "filter": {"all": [{"field": "event.data.x", "op": "gt", "value": 5}]}},
                {"type": "sms", "to": "1", "body": "x"},
            ],
        }))
        .unwrap()
    }

    #[test]
    fn stored_steps_survive_the_form() {
        let automation = example();
        let body = WorkingCopy::stored(&automation).read().unwrap();
        let mut expected = automation.steps.clone();
        expected[0]["to"] = json!(["{{event.email}}"]);
        expected[3]["include_machine"] = json!(false);
        assert_eq!(body["steps"], Value::from(expected));
        let mut trigger = automation.trigger.clone();
        trigger["include_machine"] = json!(false);
        assert_eq!(body["trigger"], trigger);
        let again = WorkingCopy::entered(&WorkingCopy::stored(&automation).fields());
        assert_eq!(again.read().unwrap(), body);
    }

    #[test]
    fn steps_are_moved_copied_and_removed() {
        let mut copy = WorkingCopy::stored(&example());
        let kinds =
            |copy: &WorkingCopy| copy.steps.iter().map(|step| find(step, "type").to_owned()).collect::<Vec<_>>();
        assert_eq!(copy.apply("down-0"), Some(1));
        assert_eq!(kinds(&copy)[..2], ["condition", "send_email"]);
        assert_eq!(copy.apply("copy-1"), Some(2));
        assert_eq!((find(&copy.steps[2], "template"), find(&copy.steps[2], "key")), ("welcome", ""));
        assert_eq!(copy.apply("insert-0-wait_for_event"), Some(0));
        assert_eq!(copy.apply("remove-1"), None);
        assert_eq!(kinds(&copy)[..3], ["wait_for_event", "send_email", "send_email"]);
        for nothing in ["up-0", "down-99", "copy-99", "insert-0-x", "remove-99", "x", "up-x"] {
            let before = copy.clone();
            assert_eq!(copy.apply(nothing), None, "{nothing}");
            assert_eq!(copy, before, "{nothing}");
        }
    }

    #[test]
    fn blank_comparisons_are_left_out() {
        let form = Fields::parse(b"steps%5B1%5D.type=condition&steps%5B1%5D.all%5B0%5D.field=&steps%5B1%5D.all%5B1%5D.field=event.email&steps%5B1%5D.all%5B1%5D.op=exists&steps%5B1%5D.all%5B1%5D.value=&steps%5B1%5D.on_false=stop");
        let body = WorkingCopy::entered(&form).read().unwrap();
        assert_eq!(
            body["steps"][0],
            json!({"type": "condition", "all": [{"field": "event.email", "op": "exists"}], "on_false": "stop"})
        );
    }
}
