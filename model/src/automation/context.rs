//! Run context: the event that started a run, and the event of its last wait.
//!
//! ```text
//! {"event": {"name", "email", "user_id", "data"}, "wait": {"received", "name", "email", "user_id", "data"}}
//! ```
//!
//! References (`{{event.data.plan}}`, `{{wait.received}}`) are template tags, which the template engine
//! ([`crate::template`]) renders within its limits. The context is stored encrypted while the run exists, because it
//! contains the customer's data, including fields that the stored event omits.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::email::Category;
use crate::raw_number;
use crate::received::AutoReplyContext;
use crate::template::render::{VARIABLE_NAME_BYTES_MAX, VARIABLES_DEPTH_MAX};
use crate::template::{ParsedTemplate, RenderError, RenderedTemplate, TemplateBodies, TemplateSettings};
use crate::trigger_event::TriggerEvent;

/// An event as it is received, and as references see it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct EventFacts {
    /// The event's name.
    pub name: String,
    /// The person's email address.
    pub email: Option<String>,
    /// The person's id in the customer's product.
    pub user_id: Option<String>,
    /// The event's payload: a JSON object.
    pub data: Value,
}

impl From<&TriggerEvent<'_>> for EventFacts {
    fn from(signal: &TriggerEvent<'_>) -> Self {
        Self {
            name: signal.name.to_owned(),
            email: signal.email.map(str::to_owned),
            user_id: signal.user_id.map(str::to_owned),
            data: signal.data.clone(),
        }
    }
}

/// Result of the last wait.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct WaitResult {
    /// True if the event arrived before the timeout.
    pub received: bool,
    /// The event, if it arrived.
    #[serde(flatten)]
    pub facts: Option<EventFacts>,
}

/// The data of a run.
#[message::row::omit_none]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunContext {
    /// The event that started the run.
    pub event: EventFacts,
    /// The result of the last wait; `None` before the first.
    pub wait: Option<WaitResult>,
    /// Set if a received email started the run: the data that automatic replies must respect. References cannot see it.
    pub answering: Option<AutoReplyContext>,
}

impl RunContext {
    /// The context of a run that this event starts.
    pub fn new(event: EventFacts) -> Self {
        Self { event, wait: None, answering: None }
    }

    /// The JSON object that references are resolved in. Before the first wait `wait.received` is false.
    pub fn to_json(&self) -> Value {
        let not_received = WaitResult { received: false, facts: None };
        json!({"event": self.event, "wait": self.wait.as_ref().unwrap_or(&not_received)})
    }
}

/// The JSON object that filters see: the event as `event`, and as `wait` for filters of a wait step.
pub fn event_context(facts: &EventFacts) -> Value {
    json!({"event": facts, "wait": WaitResult { received: true, facts: Some(facts.clone()) }})
}

/// Resolves a path: `event.data.items.0.name`.
pub fn resolve_path<'a>(root: &'a Value, path: &str) -> Option<&'a Value> {
    path.split('.').try_fold(root, |value, name| match value {
        Value::Object(fields) => fields.get(name),
        Value::Array(entries) => entries.get(name.parse::<usize>().ok()?),
        _ => None,
    })
}

/// The path of a text that consists of one reference.
pub fn reference_path(text: &str) -> Option<&str> {
    let path = text.trim().strip_prefix("{{")?.strip_suffix("}}")?.trim();
    let plain = |c: char| c.is_alphanumeric() || matches!(c, '.' | '_' | '-');
    (path.starts_with("event.") || path.starts_with("wait.")).then_some(path).filter(|p| p.chars().all(plain))
}

/// Compiles a step's own subject and bodies.
///
/// # Errors
/// The parts that are not valid templates, each with its error.
pub fn compile_template(
    subject: Option<&str>,
    html: Option<&str>,
    text: Option<&str>,
) -> Result<ParsedTemplate, Vec<(&'static str, String)>> {
    let settings = TemplateSettings {
        category: Category::Transactional,
        unsubscribe_enabled: false,
        from: None,
        reply_to: Vec::new(),
        subject: subject.map(str::to_owned),
        preheader: None,
        variables: Vec::new(),
    };
    let bodies = TemplateBodies { html: html.map(str::to_owned), text: text.map(str::to_owned), mjml: None };
    ParsedTemplate::compile(&settings, &bodies)
        .map_err(|errors| errors.into_iter().map(|(part, error)| (part, error.to_string())).collect())
}

/// Renders a subject and bodies with `root` and additional `variables`.
///
/// # Errors
/// A variable is missing, or the result exceeds a limit.
pub fn render_template(
    program: &ParsedTemplate,
    root: &Value,
    variables: &Map<String, Value>,
) -> Result<RenderedTemplate, RenderError> {
    program.render(&template_variables(root, variables))
}

/// The variables of a template: `root`, extended by `variables`.
pub fn template_variables(root: &Value, variables: &Map<String, Value>) -> Value {
    let mut fields = match prune(root, 0) {
        Value::Object(own) => own,
        _ => Map::new(),
    };
    fields.extend(variables.clone());
    Value::Object(fields)
}

/// Renders the references in a text. A text without references is returned unchanged.
///
/// # Errors
/// The text is not a valid template, a variable is missing, or the result exceeds a limit.
pub fn render_text<'a>(text: &'a str, root: &Value) -> Result<Cow<'a, str>, String> {
    if !text.contains("{{") {
        return Ok(Cow::Borrowed(text));
    }
    let program = compile_template(None, None, Some(text)).map_err(|errors| {
        errors.into_iter().next().map_or_else(|| "is not a valid template".to_owned(), |(_, message)| message)
    })?;
    let rendered = render_template(&program, root, &Map::new()).map_err(|error| error.to_string())?;
    Ok(Cow::Owned(rendered.text.unwrap_or_default()))
}

/// Renders the references in all strings of a value. A string that consists of one reference becomes the referenced
/// value of any type. If the reference has no value, the field or list entry is omitted.
///
/// # Errors
/// A text is not a valid template, a variable is missing, or a result exceeds a limit.
pub fn render_value(value: &Value, root: &Value) -> Result<Option<Value>, String> {
    Ok(match value {
        Value::String(text) => match reference_path(text) {
            Some(path) => resolve_path(root, path).filter(|found| !found.is_null()).cloned(),
            None => Some(Value::String(render_text(text, root)?.into_owned())),
        },
        Value::Array(entries) => {
            let filled: Result<Vec<_>, _> = entries.iter().map(|entry| render_value(entry, root)).collect();
            Some(Value::Array(filled?.into_iter().flatten().collect()))
        }
        number if raw_number::is_number(number) => Some(number.clone()),
        Value::Object(fields) => {
            let mut filled = Map::new();
            for (name, value) in fields {
                if let Some(value) = render_value(value, root)? {
                    filled.insert(name.clone(), value);
                }
            }
            Some(Value::Object(filled))
        }
        other => Some(other.clone()),
    })
}

/// Removes values that are nested too deeply and fields with names that are too long. The template engine would refuse
/// the whole data for them, even if the template does not use them.
fn prune(value: &Value, depth: usize) -> Value {
    match value {
        Value::Array(entries) if depth < VARIABLES_DEPTH_MAX => {
            entries.iter().map(|entry| prune(entry, depth + 1)).collect()
        }
        number if raw_number::is_number(number) => number.clone(),
        Value::Object(fields) if depth < VARIABLES_DEPTH_MAX => {
            let fits = fields.iter().filter(|(name, _)| name.len() <= VARIABLE_NAME_BYTES_MAX);
            fits.map(|(name, value)| (name.clone(), prune(value, depth + 1))).collect()
        }
        Value::Array(_) | Value::Object(_) => Value::Null,
        other => other.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn root() -> Value {
        let data = json!({"name": "Ada <b>", "items": [1, 2], "none": null});
        let event =
            EventFacts { name: "user.created".to_owned(), email: Some("a@x.example".to_owned()), user_id: None, data };
        RunContext::new(event).to_json()
    }

    #[test]
    fn references_are_rendered() {
        let root = root();
        for (given, expected) in [
            (json!("plain"), Some(json!("plain"))),
            (json!("{{event.data.items}}"), Some(json!([1, 2]))),
            (json!("{{ event.data.items.1 }}"), Some(json!(2))),
            (json!("{{event.data.none}}"), None),
            (json!("{{event.user_id}}"), None),
            (json!("Hi {{event.data.name}}"), Some(json!("Hi Ada <b>"))),
            (json!("{{wait.received}}"), Some(json!(false))),
            (json!({"a": "{{event.data.x}}", "b": [1, "{{event.email}}"]}), Some(json!({"b": [1, "a@x.example"]}))),
        ] {
            assert_eq!(render_value(&given, &root), Ok(expected), "{given}");
        }
        let data = raw_number::parse(r#"{"price":19.90,"order":12345678901234567890123,"owed":0.00}"#).unwrap();
        let event = EventFacts { name: "paid".to_owned(), email: None, user_id: None, data };
        let exact = RunContext::new(event).to_json();
        let text = "{{event.data.order}}: {{event.data.price}}{{#if event.data.owed}}, and more{{/if}}";
        assert_eq!(render_text(text, &exact).unwrap(), "12345678901234567890123: 19.90");
        assert_eq!(render_value(&json!("{{event.data.price}}"), &exact).unwrap(), raw_number::parse("19.90").ok());
        let error = render_value(&json!("Hi {{event.data.nobody}}"), &root).unwrap_err();
        assert!(error.contains("event.data.nobody"), "{error}");
        assert!(render_text("{{#if", &root).is_err());
    }

    #[test]
    fn html_is_escaped_and_a_subject_is_one_line() {
        let program =
            compile_template(Some("Hi {{event.data.name}}"), Some("{{event.data.name}} {{plan}}"), None).unwrap();
        let variables = json!({"plan": "pro"}).as_object().cloned().unwrap();
        let filled = render_template(&program, &root(), &variables).unwrap();
        assert_eq!(filled.subject.as_deref(), Some("Hi Ada <b>"));
        assert_eq!(filled.html.as_deref(), Some("Ada &lt;b&gt; pro"));
    }

    #[test]
    fn values_nested_too_deeply_are_pruned() {
        let deep = (0..60).fold(json!(1), |inner, _| json!({"a": inner}));
        let event =
            EventFacts { name: "x".to_owned(), email: None, user_id: None, data: json!({"deep": deep, "n": 1}) };
        let root = RunContext::new(event).to_json();
        assert_eq!(render_text("{{event.data.n}}!", &root).unwrap(), "1!");
    }

    #[test]
    fn contexts_round_trip() {
        let event =
            EventFacts { name: "a".to_owned(), email: None, user_id: Some("7".to_owned()), data: json!({"b": 1}) };
        let mut context = RunContext::new(event.clone());
        for wait in [
            None,
            Some(WaitResult { received: false, facts: None }),
            Some(WaitResult { received: true, facts: Some(event) }),
        ] {
            context.wait = wait;
            let text = serde_json::to_string(&context).unwrap();
            assert_eq!(serde_json::from_str::<RunContext>(&text).unwrap(), context);
        }
    }
}
