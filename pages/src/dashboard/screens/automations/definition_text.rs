//! A definition as lines, to compare versions.

use serde_json::{Map, Value};

use super::step_form::{StepKind, to_pairs};

/// Writes name, trigger and steps as lines. Values that mean the same as none are left out.
pub fn definition_text(definition: &Value) -> String {
    let mut lines = Vec::new();
    if let Some(name) = definition["name"].as_str() {
        lines.push(format!("Name: {name}"));
    }
    lines.push("Trigger".to_owned());
    push_lines(&definition["trigger"], &mut lines);
    for step in definition["steps"].as_array().into_iter().flatten() {
        let word = step["type"].as_str().unwrap_or_default();
        lines.push(StepKind::from_word(word).map_or(word, |kind| kind.label()).to_owned());
        let settings: Map<String, Value> =
            step.as_object().into_iter().flatten().filter(|(name, _)| *name != "type").map(owned).collect();
        push_lines(&Value::Object(settings), &mut lines);
    }
    lines.join("\n") + "\n"
}

fn owned((name, value): (&String, &Value)) -> (String, Value) {
    (name.clone(), value.clone())
}

fn push_lines(object: &Value, lines: &mut Vec<String>) {
    let mut pairs = to_pairs(object);
    // The order of JSON objects carries no meaning, and that of days and comparisons does.
    pairs.sort_by(|(a, _), (b, _)| a.cmp(b));
    for (name, value) in pairs.iter().filter(|(_, value)| !value.is_empty()) {
        if value.contains('\n') {
            lines.push(format!("    {name}:"));
            lines.extend(value.lines().map(|line| format!("        {line}")));
        } else {
            lines.push(format!("    {name}: {value}"));
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn equal_definitions_have_equal_lines() {
        let canonical =
            json!({"trigger": {"event": "e"}, "steps": [{"type": "send_email", "text": "a\nb", "to": "x"}]});
        let entered = json!({
            "trigger": {"event": "e", "include_machine": false},
            "steps": [{"to": ["x"], "text": "a\nb", "type": "send_email"}],
        });
        assert_eq!(definition_text(&canonical), definition_text(&entered));
        assert_eq!(
            definition_text(&canonical),
            "Trigger\n    event: e\nSend an email\n    text:\n        a\n        b\n    to: x\n"
        );
    }
}
