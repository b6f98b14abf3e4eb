//! The controls of a step by its kind, how a stored step fills them, and how they become JSON again.

use crate::dashboard::prelude::*;
use serde_json::Map;

/// Names with their values, as a form sends them.
pub type Pairs = Vec<(String, String)>;

/// The kinds of steps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StepKind {
    SendEmail,
    Delay,
    WaitForEvent,
    Condition,
    Sms,
}

impl StepKind {
    /// All kinds.
    pub const ALL: [Self; 5] = [Self::SendEmail, Self::Delay, Self::WaitForEvent, Self::Condition, Self::Sms];

    /// The kind with this word of the API.
    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.word() == word)
    }

    /// The word in the API.
    pub const fn word(self) -> &'static str {
        match self {
            Self::SendEmail => "send_email",
            Self::Delay => "delay",
            Self::WaitForEvent => "wait_for_event",
            Self::Condition => "condition",
            Self::Sms => "sms",
        }
    }

    /// The label for people.
    pub const fn label(self) -> &'static str {
        match self {
            Self::SendEmail => "Send an email",
            Self::Delay => "Wait for a time",
            Self::WaitForEvent => "Wait for an event",
            Self::Condition => "Check a condition",
            Self::Sms => "Send a text message",
        }
    }
}

/// The operators of comparisons with their labels.
pub const OPERATORS: [(&str, &str); 12] = [
    ("eq", "is"),
    ("neq", "is not"),
    ("gt", "is greater than"),
    ("gte", "is at least"),
    ("lt", "is less than"),
    ("lte", "is at most"),
    ("contains", "contains"),
    ("starts_with", "starts with"),
    ("ends_with", "ends with"),
    ("exists", "exists"),
    ("is_empty", "is empty"),
    ("in", "is one of"),
];
/// The days of the week: the word of the API, its label, and the name.
pub const DAYS: [(&str, &str, &str); 7] = [
    ("mon", "Mon", "Monday"),
    ("tue", "Tue", "Tuesday"),
    ("wed", "Wed", "Wednesday"),
    ("thu", "Thu", "Thursday"),
    ("fri", "Fri", "Friday"),
    ("sat", "Sat", "Saturday"),
    ("sun", "Sun", "Sunday"),
];

/// The fields of a step; their names begin with `prefix`, for example `steps[2]`. Comparisons have their own controls.
pub fn step_fields(kind: StepKind, prefix: &str, templates: &[(String, String)]) -> Vec<Field> {
    let field = |name: &str, label: &'static str, control| Field::new(format!("{prefix}.{name}"), label, control);
    let text = |name: &str, label| field(name, label, Control::Text);
    match kind {
        StepKind::SendEmail => vec![
            field("template", "Template", Control::Select(templates.to_vec())),
            text("subject", "Subject").help("Leave empty for the template's subject."),
            field("variables", "Variables", Control::Json { rows: 3 })
                .placeholder("{\"name\": \"{{event.data.name}}\"}")
                .help("Values for the template; {{event.data.name}} takes a value from the event."),
            field("html", "HTML", Control::Code { rows: 5 }).help("The body of the email, if there is no template."),
            field("text", "Plain text", Control::Code { rows: 4 }),
            field("to", "To", Control::Lines { rows: 1 })
                .placeholder("{{event.email}}")
                .help("Leave empty for the person."),
            text("from", "From").placeholder("Acme <hi@example.com>").help("Leave empty for the template's sender."),
            field("reply_to", "Reply to", Control::Lines { rows: 1 }),
            field(
                "category",
                "Category",
                Control::Select(choices(&[
                    ("", "The template's category"),
                    ("transactional", "Transactional"),
                    ("product", "Product"),
                    ("newsletter", "Newsletter"),
                ])),
            ),
            field("tags", "Tags", Control::Lines { rows: 1 })
                .placeholder("campaign: trial")
                .help("Name: value, one per line."),
            field("template_version", "Version of the template", Control::Number { min: Some(1), max: None })
                .help("Leave empty for the version that is published at that time."),
        ],
        StepKind::Delay => vec![
            text("duration", "For").placeholder("2d4h").help("Weeks, days, hours, minutes, seconds: 1w, 2d4h, 90m."),
            text("until", "Or until")
                .placeholder("{{event.data.trial_ends_at}}")
                .help("A time, or a value from the event."),
            field("window.days", "End only on", Control::Checkboxes(day_choices())),
            text("window.hours", "End only between").placeholder("09:00-17:00"),
            text("window.tz", "Time zone for days and hours").placeholder("Europe/Berlin"),
        ],
        StepKind::WaitForEvent => vec![
            text("event", "Event").required().placeholder("user.activated"),
            text("timeout", "At most").required().placeholder("3d").help("Weeks, days, hours, minutes: 1w, 2d4h, 90m."),
            field(
                "on_timeout",
                "If it does not occur",
                Control::Select(choices(&[
                    ("continue", "Continue with the next step"),
                    ("stop", "End the run"),
                    ("fail", "Let the run fail"),
                ])),
            ),
            field(
                "match",
                "Match the person by",
                Control::Select(choices(&[
                    ("auto", "User id, else email address"),
                    ("user_id", "User id"),
                    ("email", "Email address"),
                ])),
            ),
            field("include_machine", "Also count opens and clicks by machines", Control::Checkbox),
        ],
        StepKind::Condition => vec![
            field(
                "on_false",
                "If it is false",
                Control::Select(choices(&[("stop", "End the run"), ("skip_to", "Go to a later step")])),
            ),
            text("target", "That step").placeholder("last").help("A later step's key, or its index from 0."),
        ],
        StepKind::Sms => vec![
            text("to", "To").required().placeholder("{{event.data.phone}}"),
            field("body", "Text", Control::Area { rows: 3 }).required(),
        ],
    }
}

fn day_choices() -> Vec<(String, String)> {
    choices(&DAYS.map(|(word, label, _)| (word, label)))
}

/// Name and key, which every kind has.
pub fn naming_fields(prefix: &str) -> [Field; 2] {
    [
        Field::new(format!("{prefix}.name"), "Name of the step", Control::Text),
        Field::new(format!("{prefix}.key"), "Key", Control::Text).help("Conditions refer to it to jump to this step."),
    ]
}

/// The controls of a trigger; its comparisons have their own.
pub fn trigger_fields() -> Vec<Field> {
    vec![
        Field::text("trigger.event", "Event that starts a run").required().placeholder("user.created"),
        Field::new("trigger.cancel_on_events", "Events that cancel it", Control::Lines { rows: 1 })
            .placeholder("subscription.started")
            .help("One per line: they end the runs of the same person."),
        Field::new(
            "trigger.reentry",
            "Runs per person",
            Control::Select(choices(&[
                ("always", "Every event starts a run"),
                ("while_not_running", "One at a time"),
                ("once", "One, ever"),
            ])),
        ),
        Field::new("trigger.include_machine", "Also count opens and clicks by machines", Control::Checkbox),
    ]
}

/// The controls of a comparison.
pub fn comparison_fields(prefix: &str, n: usize) -> [Field; 3] {
    let name = |part: &str| format!("{prefix}all[{n}].{part}");
    [
        Field::new(name("field"), "Field", Control::Text).placeholder("event.data.plan"),
        Field::new(name("op"), "Comparison", Control::Select(choices(&OPERATORS))),
        Field::new(name("value"), "Value", Control::Text).placeholder("trial"),
    ]
}

/// Writes a stored step, or a trigger, as the values of its controls. Names have no prefix.
pub fn to_pairs(object: &Value) -> Pairs {
    let mut pairs = Pairs::new();
    for (name, value) in object.as_object().into_iter().flatten() {
        match (name.as_str(), value) {
            ("template", Value::Object(selector)) => {
                let id = selector.get("id").or_else(|| selector.get("alias"));
                pairs.push(("template".into(), as_text(id.unwrap_or(&Value::Null))));
                pairs.push(("template_version".into(), as_text(selector.get("version").unwrap_or(&Value::Null))));
            }
            ("variables", value) => pairs.push((name.clone(), serde_json::to_string_pretty(value).unwrap_or_default())),
            ("tags", Value::Array(tags)) => {
                let tag = |tag: &Value| format!("{}: {}", as_text(&tag["name"]), as_text(&tag["value"]));
                pairs.push((name.clone(), tags.iter().map(tag).collect::<Vec<_>>().join("\n")));
            }
            ("all" | "any", Value::Array(comparisons)) => comparison_pairs(name, comparisons, &mut pairs),
            ("filter" | "window", Value::Object(_)) => {
                pairs.extend(to_pairs(value).into_iter().map(|(inner, value)| (format!("{name}.{inner}"), value)));
            }
            ("days", Value::Array(days)) => pairs.extend(days.iter().map(|day| (name.clone(), as_text(day)))),
            (_, Value::Array(entries)) => {
                pairs.push((name.clone(), entries.iter().map(as_text).collect::<Vec<_>>().join("\n")));
            }
            (_, Value::Null | Value::Bool(false)) => {}
            (_, value) => pairs.push((name.clone(), as_text(value))),
        }
    }
    pairs
}

fn comparison_pairs(mode: &str, comparisons: &[Value], pairs: &mut Pairs) {
    pairs.push(("mode".into(), mode.into()));
    for (n, comparison) in comparisons.iter().enumerate() {
        pairs.push((format!("all[{n}].field"), as_text(&comparison["field"])));
        pairs.push((format!("all[{n}].op"), as_text(&comparison["op"])));
        pairs.push((format!("all[{n}].value"), write_value(&comparison["value"])));
    }
}

fn as_text(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// Writes the value of a comparison so that [`parse_value`] reads the same.
fn write_value(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) if parse_value("eq", text) == *value => text.clone(),
        other => other.to_string(),
    }
}

/// Reads the value of a comparison: JSON, or else text. `is one of` takes entries with commas.
pub fn parse_value(operator: &str, entered: &str) -> Value {
    let entered = entered.trim();
    match serde_json::from_str::<Value>(entered) {
        Ok(value) => value,
        Err(_) if operator == "in" => entered.split(',').map(|entry| parse_value("eq", entry)).collect(),
        Err(_) => Value::from(entered),
    }
}

/// The value of a name.
pub fn find<'p>(pairs: &'p Pairs, name: &str) -> &'p str {
    pairs.iter().find(|(other, _)| other == name).map_or("", |(_, value)| value.as_str())
}

/// Reads comparisons; `None` if there are none. `prefix` is empty or `filter.`.
pub fn read_comparisons(pairs: &Pairs, prefix: &str) -> Option<(String, Value)> {
    let mut comparisons = Vec::new();
    for n in 0.. {
        let name = |part: &str| format!("{prefix}all[{n}].{part}");
        if !pairs.iter().any(|(other, _)| *other == name("field")) {
            break;
        }
        let operator = find(pairs, &name("op"));
        let mut comparison = json!({"field": find(pairs, &name("field")).trim(), "op": operator});
        let value = find(pairs, &name("value"));
        if !value.trim().is_empty() || !matches!(operator, "exists" | "is_empty") {
            comparison["value"] = parse_value(operator, value);
        }
        comparisons.push(comparison);
    }
    let mode = if find(pairs, &format!("{prefix}mode")) == "any" { "any" } else { "all" };
    (!comparisons.is_empty()).then(|| (mode.to_owned(), Value::from(comparisons)))
}

/// Completes the JSON of a step that was read from plain fields.
pub fn complete_step(kind: StepKind, step: &mut Map<String, Value>, pairs: &Pairs) {
    step.insert("type".into(), kind.word().into());
    if let Some(version) = step.remove("template_version")
        && let Some(id) = step.remove("template")
    {
        step.insert("template".into(), json!({"id": id, "version": version}));
    }
    if let Some(Value::Array(tags)) = step.get_mut("tags") {
        for tag in tags {
            let text = as_text(tag);
            let (name, value) = text.split_once(':').unwrap_or((&text, ""));
            *tag = json!({"name": name.trim(), "value": value.trim()});
        }
    }
    if kind == StepKind::Condition {
        let (mode, comparisons) = read_comparisons(pairs, "").unwrap_or_else(|| ("all".into(), json!([])));
        step.insert(mode, comparisons);
        if step.get("on_false").is_some_and(|word| word != "skip_to") {
            step.remove("target");
        } else if let Some(index) = step.get("target").and_then(Value::as_str).and_then(|text| text.parse::<u64>().ok())
        {
            step.insert("target".into(), index.into());
        }
    }
    if let Some((mode, comparisons)) = read_comparisons(pairs, "filter.") {
        step.insert("filter".into(), json!({mode: comparisons}));
    }
}
