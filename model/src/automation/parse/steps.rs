//! Parsing of the steps of an automation.

use serde_json::{Map, Value, json};

use super::object_reader::{DEPTH_MAX, ObjectReader, ParseNotes, depth};
use super::{parse_condition, parse_event_name, parse_gate};
use crate::automation::context;
use crate::automation::definition::{
    AutomationStep, ConditionStep, DelayLength, DelayStep, MatchBy, OnTimeout, SendEmailStep, SkipTarget, SmsStep,
    StepAction, TO_DEFAULT, TemplateSelector, WaitForEventStep,
};
use crate::automation::time_span::TimeSpan;
use crate::automation::time_window::{self, DAYS, TimeWindow};
use crate::email::Category;
use crate::raw_number;
use crate::tags::{TAG_BYTES_MAX, TAGS_MAX, check_line, check_name};
use crate::template::{ALIAS_BYTES_MAX, MARKUP_BYTES_MAX, SUBJECT_BYTES_MAX};

/// Longest key of a step in bytes.
pub const KEY_BYTES_MAX: usize = 64;
/// Longest name of a step in bytes.
pub const NAME_BYTES_MAX: usize = 200;
/// Longest text for an address in bytes.
const ADDRESSES_BYTES_MAX: usize = 1_024;
/// Maximum number of addresses in a field.
const ADDRESSES_MAX: usize = 50;
/// Longest text message in bytes: ten segments.
const SMS_BYTES_MAX: usize = 1_600;
/// Longest `until` text in bytes.
const UNTIL_BYTES_MAX: usize = 256;

/// Parses the step with this index; `keys` are the keys of all steps.
pub(super) fn parse_step(
    value: &Value,
    number: usize,
    keys: &[Option<&str>],
    notes: &mut ParseNotes,
) -> Option<AutomationStep> {
    let path = format!("steps[{number}]");
    let mut fields = ObjectReader::new(value, &path, notes)?;
    let key = fields.optional("key", parse_key);
    let name = fields.optional("name", |value| parse_line(value, NAME_BYTES_MAX));
    let kind = fields.take("type").map(|value| value.as_str().unwrap_or_default());
    let action = match kind {
        Some("send_email") => parse_send_email(&mut fields).map(|email| StepAction::SendEmail(Box::new(email))),
        Some("delay") => parse_delay(&mut fields).map(StepAction::Delay),
        Some("wait_for_event") => parse_wait(&mut fields).map(StepAction::WaitForEvent),
        Some("condition") => parse_condition_step(&mut fields, number, keys).map(StepAction::Condition),
        Some("sms") => parse_sms(&mut fields).map(StepAction::Sms),
        Some(_) | None => {
            let text = format!("must be one of {}", StepAction::WORDS.join(", "));
            fields.error("type", if kind.is_none() { "is required: ".to_owned() + &text } else { text });
            return None;
        }
    };
    fields.finish();
    Some(AutomationStep { key, name, action: action? })
}

fn parse_key(value: &Value) -> Result<String, String> {
    let text = parse_line(value, KEY_BYTES_MAX)?;
    let plain = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'.');
    if text.is_empty() || !text.bytes().all(plain) || text.bytes().all(|b| b.is_ascii_digit()) {
        return Err("must be letters, digits, `.`, `_` and `-`, and not digits alone".to_owned());
    }
    Ok(text)
}

fn parse_line(value: &Value, bytes_max: usize) -> Result<String, String> {
    let text = value.as_str().ok_or("must be a string")?;
    check_line(text, bytes_max)?;
    Ok(text.to_owned())
}

/// Parses a non-empty line that is a valid template.
fn parse_template_line(value: &Value, bytes_max: usize) -> Result<String, String> {
    let text = parse_line(value, bytes_max)?;
    if text.trim().is_empty() {
        return Err("is empty".to_owned());
    }
    check_markup(&text)?;
    Ok(text)
}

fn check_markup(text: &str) -> Result<(), String> {
    if !text.contains("{{") {
        return Ok(());
    }
    let errors = context::compile_template(None, None, Some(text)).err().unwrap_or_default();
    errors.into_iter().next().map_or(Ok(()), |(_, message)| Err(message))
}

fn parse_send_email(fields: &mut ObjectReader<'_>) -> Option<SendEmailStep> {
    let template = parse_template(fields);
    let subject = fields.optional("subject", |value| parse_line(value, SUBJECT_BYTES_MAX));
    let mut body = |names: &[&'static str]| {
        let value = fields.take_any(names)?;
        let text = match value.as_str() {
            None => Err("must be a string".to_owned()),
            Some(text) if text.len() > MARKUP_BYTES_MAX => Err(format!("is longer than {MARKUP_BYTES_MAX} bytes")),
            Some(text) => Ok(text.to_owned()),
        };
        text.map_err(|text| fields.error(names.first().copied().unwrap_or_default(), text)).ok()
    };
    let html = body(&["html", "htmlBody", "html_body"]);
    let text = body(&["text", "textBody", "text_body", "plain_body"]);
    check_contents(fields, template.is_some(), &subject, &html, &text);
    let variables = parse_variables(fields, &template);
    let from = fields.optional("from", parse_author);
    let to = parse_addresses(fields, &["to"]);
    let reply_to = parse_addresses(fields, &["reply_to", "replyTo"]);
    let category = fields.word("category", Category::WORDS, Category::from_word);
    let tags = parse_tags(fields);
    let to = if to.is_empty() { vec![TO_DEFAULT.to_owned()] } else { to };
    let template = template.map(|(named, _)| named);
    Some(SendEmailStep { template, subject, html, text, variables, from, to, reply_to, category, tags })
}

/// A template selector, and the `variables` in the same object.
type TemplateArgument = (TemplateSelector, Option<Map<String, Value>>);

fn parse_template(fields: &mut ObjectReader<'_>) -> Option<TemplateArgument> {
    let value = fields.take_any(&["template", "template_id", "templateId", "template_alias", "templateAlias"])?;
    let named = |value: &Value| match parse_line(value, ALIAS_BYTES_MAX) {
        Ok(text) if text.is_empty() => Err("is empty".to_owned()),
        other => other,
    };
    let path = fields.path_of("template");
    let Value::Object(object) = value else {
        let name = named(value).map_err(|text| fields.error("template", text)).ok()?;
        return Some((TemplateSelector { name, version: None }, None));
    };
    let name = match (object.get("id"), object.get("alias")) {
        (Some(value), None) | (None, Some(value)) => named(value),
        _ => Err("needs either `id` or `alias`".to_owned()),
    };
    let name = name.map_err(|text| fields.notes.error(&path, text)).ok()?;
    let version = match object.get("version") {
        None | Some(Value::Null) => None,
        Some(value) => match raw_number::as_integer::<u32>(value).filter(|n| *n > 0) {
            None => {
                fields.error("template.version", "must be a version number");
                return None;
            }
            version => version,
        },
    };
    let variables = object.get("variables").and_then(Value::as_object).cloned();
    Some((TemplateSelector { name, version }, variables))
}

fn check_contents(
    fields: &mut ObjectReader<'_>,
    template: bool,
    subject: &Option<String>,
    html: &Option<String>,
    text: &Option<String>,
) {
    if template && (html.is_some() || text.is_some()) {
        fields.error("html", "cannot be combined with a template");
    }
    let named = ["template", "template_id", "templateId", "template_alias", "templateAlias"];
    if !template && !named.iter().any(|name| fields.peek(name).is_some()) {
        let blank = |part: &Option<String>| part.as_ref().is_none_or(|part| part.trim().is_empty());
        if blank(html) && blank(text) && fields.peek("html").is_none_or(Value::is_string) {
            fields.error("template", "is required, or a `subject` and one of `html` and `text`");
        } else if blank(subject) && fields.peek("subject").is_none_or(Value::is_string) {
            fields.error("subject", "is required without a template");
        }
    }
    let read = context::compile_template(subject.as_deref(), html.as_deref(), text.as_deref());
    for (part, message) in read.err().unwrap_or_default() {
        fields.error(part, message);
    }
}

fn parse_variables(fields: &mut ObjectReader<'_>, template: &Option<TemplateArgument>) -> Map<String, Value> {
    let inner = template.as_ref().and_then(|(_, variables)| variables.clone());
    let names = ["variables", "template_data", "templateData", "data_variables", "dataVariables"];
    let outer = fields.take_any(&names);
    let variables = match (inner, outer) {
        (Some(_), Some(_)) => {
            fields.error("variables", "are set twice: here and in `template`");
            return Map::new();
        }
        (Some(inner), None) => inner,
        (None, Some(Value::Object(outer))) => outer.clone(),
        (None, Some(_)) => {
            fields.error("variables", "must be an object");
            return Map::new();
        }
        (None, None) => return Map::new(),
    };
    let whole = Value::Object(variables);
    if depth(&whole) > DEPTH_MAX {
        fields.error("variables", format!("are nested more than {DEPTH_MAX} levels deep"));
    } else if let Err((name, text)) = check_texts(&whole, "variables") {
        fields.error(&name, text);
    }
    if let Value::Object(variables) = whole { variables } else { Map::new() }
}

/// Checks that all strings are valid templates. Returns the path and the error of the first that is not.
fn check_texts(value: &Value, path: &str) -> Result<(), (String, String)> {
    match value {
        Value::String(text) => check_markup(text).map_err(|error| (path.to_owned(), error)),
        Value::Array(entries) => {
            entries.iter().enumerate().try_for_each(|(n, entry)| check_texts(entry, &format!("{path}[{n}]")))
        }
        Value::Object(fields) => {
            fields.iter().try_for_each(|(name, value)| check_texts(value, &format!("{path}.{name}")))
        }
        _ => Ok(()),
    }
}

/// Parses `Ada <ada@example.com>` or `{email, name}`.
fn parse_author(value: &Value) -> Result<String, String> {
    let text = match value {
        Value::Object(fields) => {
            let email = fields.get("email").and_then(Value::as_str).ok_or("needs an `email`")?;
            match fields.get("name").and_then(Value::as_str) {
                Some(name) => json!(format!("{name} <{email}>")),
                None => json!(email),
            }
        }
        other => other.clone(),
    };
    parse_template_line(&text, ADDRESSES_BYTES_MAX)
}

/// Parses an address or a list of addresses.
fn parse_addresses(fields: &mut ObjectReader<'_>, names: &[&'static str]) -> Vec<String> {
    let name = names.first().copied().unwrap_or_default();
    let Some(value) = fields.take_any(names) else { return Vec::new() };
    let entries = match value {
        Value::Array(entries) if entries.len() > ADDRESSES_MAX => {
            fields.error(name, format!("has more than {ADDRESSES_MAX} entries"));
            return Vec::new();
        }
        Value::Array(entries) => entries.as_slice(),
        single => std::slice::from_ref(single),
    };
    let mut texts = Vec::with_capacity(entries.len());
    for entry in entries {
        match parse_template_line(entry, ADDRESSES_BYTES_MAX) {
            Ok(text) => texts.push(text),
            Err(error) => fields.error(name, error),
        }
    }
    texts
}

/// Parses `[{name, value}]` or `{name: value}`.
fn parse_tags(fields: &mut ObjectReader<'_>) -> Vec<(String, String)> {
    let Some(value) = fields.take("tags") else { return Vec::new() };
    let text = |value: Option<&Value>| value.and_then(Value::as_str).unwrap_or_default().to_owned();
    let tags: Vec<(String, String)> = match value {
        Value::Object(object) => object.iter().map(|(name, value)| (name.clone(), text(Some(value)))).collect(),
        Value::Array(entries) => {
            entries.iter().map(|entry| (text(entry.get("name")), text(entry.get("value")))).collect()
        }
        _ => {
            fields.error("tags", "must be a list of {name, value}");
            return Vec::new();
        }
    };
    if tags.len() > TAGS_MAX {
        fields.error("tags", format!("has more than {TAGS_MAX} entries"));
    }
    for (n, (name, value)) in tags.iter().enumerate().take(TAGS_MAX) {
        let result =
            check_name(name).and_then(|()| check_line(value, TAG_BYTES_MAX)).and_then(|()| check_markup(value));
        if let Err(text) = result {
            fields.error(&format!("tags[{n}]"), text);
        } else if tags.iter().take(n).any(|(earlier, _)| earlier == name) {
            fields.error(&format!("tags[{n}]"), "has the same name as an earlier tag");
        }
    }
    tags
}

fn parse_delay(fields: &mut ObjectReader<'_>) -> Option<DelayStep> {
    let span = fields.optional("duration", parse_span);
    let until = fields.optional("until", |value| parse_template_line(value, UNTIL_BYTES_MAX));
    let window = fields.optional_with("window", parse_window);
    let length = match (span, until) {
        (Some(span), None) => Some(DelayLength::For(span)),
        (None, Some(until)) => Some(DelayLength::Until(until)),
        (Some(_), Some(_)) => {
            fields.error("until", "use either `duration` or `until`");
            None
        }
        (None, None) => {
            if fields.peek("duration").is_none() && fields.peek("until").is_none() {
                fields.error("duration", "is required unless `until` is set");
            }
            None
        }
    };
    let delay = DelayStep { length: length?, window };
    // References are filled in by each run. A stored text may be of a release that did not check it.
    if let DelayLength::Until(text) = &delay.length
        && !text.contains("{{")
        && !fields.notes.is_stored
        && let Err(error) = delay.parse_until(text.trim())
    {
        fields.error("until", error);
        return None;
    }
    Some(delay)
}

fn parse_span(value: &Value) -> Result<TimeSpan, String> {
    TimeSpan::parse(value.as_str().ok_or("must be a duration like `3d` or `2d4h`")?)
}

fn parse_window(value: &Value, path: &str, notes: &mut ParseNotes) -> Option<TimeWindow> {
    let mut fields = ObjectReader::new(value, path, notes)?;
    let tz = fields.required("tz", |value| {
        let name = value.as_str().ok_or("must be a string")?;
        time_window::parse_zone(name).map(|_| name.to_owned())
    });
    let days = fields.list("days", DAYS.len(), |value| {
        let word = value.as_str().unwrap_or_default().to_ascii_lowercase();
        let short = word.get(..3).unwrap_or_default();
        let long = ["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"];
        let known = word == short || long.contains(&word.as_str());
        let found = DAYS.iter().find(|(name, _)| known && *name == short);
        found.map(|(_, day)| *day).ok_or_else(|| "must be one of mon, tue, wed, thu, fri, sat, sun".to_owned())
    });
    let hours = fields.optional("hours", |value| match value {
        // `[9, 17]` is accepted for `09:00-17:00`.
        Value::Array(ends) if ends.len() == 2 => {
            let clock = |end: &Value| end.as_str().map_or_else(|| end.to_string(), str::to_owned);
            time_window::parse_hours(&ends.iter().map(clock).collect::<Vec<_>>().join("-"))
        }
        other => time_window::parse_hours(other.as_str().unwrap_or_default()),
    });
    fields.finish();
    TimeWindow::new(&tz?, days, hours).ok()
}

fn parse_wait(fields: &mut ObjectReader<'_>) -> Option<WaitForEventStep> {
    let event = fields.required("event", parse_event_name);
    let by = fields.word("match", MatchBy::WORDS, MatchBy::from_word).unwrap_or_default();
    let filter = fields.optional_with("filter", |value, path, notes| parse_condition(value, path, notes, true));
    let timeout = fields.required("timeout", parse_span);
    let on_timeout = fields.word("on_timeout", OnTimeout::WORDS, OnTimeout::from_word).unwrap_or_default();
    let include_machine = fields.boolean("include_machine").unwrap_or_default();
    Some(WaitForEventStep { event: event?, by, filter, timeout: timeout?, on_timeout, include_machine })
}

fn parse_condition_step(fields: &mut ObjectReader<'_>, number: usize, keys: &[Option<&str>]) -> Option<ConditionStep> {
    for name in ["all", "any"] {
        let _known = fields.take(name);
    }
    let condition = parse_gate(fields, true);
    let skips = fields.word("on_false", &["stop", "skip_to"], |word| match word {
        "stop" => Some(false),
        "skip_to" => Some(true),
        _ => None,
    });
    let target = fields.take("target");
    let skip_to = match (skips.unwrap_or_default(), target) {
        (false, None) => None,
        (false, Some(_)) => {
            fields.error("target", "needs `\"on_false\": \"skip_to\"`");
            None
        }
        (true, target) => {
            let found = parse_skip_target(target, number, keys);
            Some(found.map_err(|text| fields.error("target", text)).ok()?)
        }
    };
    Some(ConditionStep { condition: condition?, skip_to })
}

/// Resolves a reference to a later step by key or index.
fn parse_skip_target(target: Option<&Value>, number: usize, keys: &[Option<&str>]) -> Result<SkipTarget, String> {
    let index = match target {
        None => return Err("is required: a later step's key, or its index counted from 0".to_owned()),
        Some(Value::String(key)) => keys.iter().position(|known| *known == Some(key.as_str())),
        Some(value) => raw_number::as_integer::<usize>(value).filter(|n| *n < keys.len()),
    };
    let index = index.ok_or_else(|| "is not a step's key, or its index counted from 0".to_owned())?;
    if index <= number {
        return Err("must be a later step".to_owned());
    }
    // A node of an older release reads the number only without a fraction.
    let target = target.filter(|target| target.is_string()).cloned().unwrap_or_else(|| index.into());
    Ok(SkipTarget { target, index })
}

fn parse_sms(fields: &mut ObjectReader<'_>) -> Option<SmsStep> {
    let to = fields.required("to", |value| parse_template_line(value, 256));
    let body = fields.required("body", |value| {
        let text = value.as_str().ok_or("must be a string")?;
        match text.len() {
            _ if text.trim().is_empty() => Err("is empty".to_owned()),
            0..=SMS_BYTES_MAX => check_markup(text).map(|()| text.to_owned()),
            _ => Err(format!("is longer than {SMS_BYTES_MAX} bytes")),
        }
    });
    Some(SmsStep { to: to?, body: body? })
}
