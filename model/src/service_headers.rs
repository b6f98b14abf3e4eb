//! `Service-*` header fields: send options by SMTP that correspond to fields of an API request
//! (docs/SUBMISSION.md).
//!
//! ```text
//! fields ─► any `Service-*`? ─no─► None: nothing was copied
//!                └─yes─► unfolded, RFC 2047 decoded, parsed by type ─► ServiceOptions, or all errors
//! ```
//!
//! The fields are removed from every outgoing message ([`message::header::complete_message`]).

use std::fmt;

use jiff::Timestamp;
use message::encoded_word::decode_value;
use message::header::{HeaderField, MessageError, SubmittedMessage, is_service_field};
use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::{Map, Value};

use crate::email::{Category, Tag};
use crate::tags::{self, TAG_BYTES_MAX, TAGS_MAX};
use crate::template::render::VARIABLES_BYTES_MAX;
use crate::template::{ALIAS_BYTES_MAX, TemplateKey, TemplateRef, TemplateUse};
use crate::{idempotency, raw_number, timestamp};

/// The supported fields.
pub const NAMES: &[&str] = &[
    "Service-Idempotency-Key",
    "Service-Tags",
    "Service-Template",
    "Service-Variables",
    "Service-Category",
    "Service-Scheduled-At",
    "Service-Unsubscribe",
];
/// Maximum number of errors in one reply.
const ERRORS_MAX: usize = 8;
/// Bytes of an unknown field name that an error shows.
const NAME_SHOWN_BYTES_MAX: usize = 64;

/// Send options of a submitted message.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ServiceOptions {
    pub idempotency_key: Option<String>,
    pub tags: Vec<Tag>,
    /// Template from which the message is made.
    pub template: Option<TemplateUse>,
    pub category: Option<Category>,
    pub scheduled_at: Option<Timestamp>,
    /// Managed unsubscribe.
    pub unsubscribe: Option<bool>,
}

/// Reason why the options are rejected.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ServiceHeaderError {
    /// The header cannot be parsed.
    Message(MessageError),
    /// One error per invalid field.
    Fields(Vec<String>),
}

impl fmt::Display for ServiceHeaderError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Message(error) => error.fmt(f),
            Self::Fields(wrong) => f.write_str(&wrong.join("; ")),
        }
    }
}

/// Parses the options of a message; `None` if there are no `Service-*` fields.
///
/// # Errors
/// Returns all invalid fields, up to `ERRORS_MAX`.
pub fn parse(submitted: &SubmittedMessage) -> Result<Option<ServiceOptions>, ServiceHeaderError> {
    let message = submitted.bytes();
    let mut fields = submitted.fields().iter().filter(|field| is_service_field(message, field)).peekable();
    if fields.peek().is_none() {
        return Ok(None);
    }
    submitted.check_header_length().map_err(ServiceHeaderError::Message)?;
    let mut collected = ServiceFieldValues::default();
    fields.for_each(|field| collected.collect_field(message, field));
    let options = collected.take_options();
    if collected.wrong.is_empty() {
        return Ok(Some(options));
    }
    collected.wrong.truncate(ERRORS_MAX);
    Err(ServiceHeaderError::Fields(collected.wrong))
}

/// The collected fields, and the errors so far.
#[derive(Default)]
struct ServiceFieldValues {
    values: Vec<(&'static str, String)>,
    wrong: Vec<String>,
}

impl ServiceFieldValues {
    fn collect_field(&mut self, message: &[u8], field: &HeaderField) {
        let Some(name) = NAMES.iter().find(|name| field.has_name(message, name)) else {
            let name = message.get(field.start..field.name_end).unwrap_or_default();
            let printable = String::from_utf8_lossy(name.get(..NAME_SHOWN_BYTES_MAX).unwrap_or(name));
            let known = NAMES.join(", ");
            return self.wrong.push(format!("{printable}: unknown field; the fields are {known}"));
        };
        if self.values.iter().any(|(earlier, _)| earlier == name) {
            return self.add_error(name, "occurs more than once");
        }
        match decode_value(message, field) {
            Ok(value) => self.values.push((name, value)),
            Err(text) => self.add_error(name, text),
        }
    }

    fn add_error(&mut self, name: &str, text: &str) {
        self.wrong.push(format!("{name}: {text}"));
    }

    fn read<T>(&mut self, name: &str, read: impl Fn(&str) -> Result<T, String>) -> Option<T> {
        let (_, value) = self.values.iter().find(|(given, _)| *given == name)?;
        let read = read(value);
        read.map_err(|text| self.add_error(name, &text)).ok()
    }

    fn take_options(&mut self) -> ServiceOptions {
        let category = |text: &str| {
            let words = || format!("must be one of {}", Category::WORDS.join(", "));
            Category::from_word(&text.to_ascii_lowercase()).ok_or_else(words)
        };
        let boolean = |text: &str| match text.to_ascii_lowercase().as_str() {
            "true" => Ok(true),
            "false" => Ok(false),
            _ => Err("must be true or false".to_owned()),
        };
        let time = |text: &str| timestamp::parse(text).map_err(str::to_owned);
        let key = |text: &str| idempotency::check_key(text).map(|()| text.to_owned());
        ServiceOptions {
            idempotency_key: self.read("Service-Idempotency-Key", key),
            tags: self.read("Service-Tags", parse_tags).unwrap_or_default(),
            template: self.parse_template(),
            category: self.read("Service-Category", category),
            scheduled_at: self.read("Service-Scheduled-At", time),
            unsubscribe: self.read("Service-Unsubscribe", boolean),
        }
    }

    fn parse_template(&mut self) -> Option<TemplateUse> {
        let named = |text: &str| match text.len() {
            0 => Err("is empty".to_owned()),
            1..=ALIAS_BYTES_MAX => Ok(TemplateRef { key: TemplateKey::parse(text), version: None }),
            _ => Err(format!("is longer than {ALIAS_BYTES_MAX} bytes")),
        };
        let reference = self.read("Service-Template", named);
        let variables = self.read("Service-Variables", parse_variables);
        if variables.is_some() && !self.values.iter().any(|(name, _)| *name == "Service-Template") {
            self.add_error("Service-Variables", "needs Service-Template");
        }
        let variables = Value::Object(variables.unwrap_or_default());
        reference.map(|reference| TemplateUse { reference, variables })
    }
}

fn parse_variables(text: &str) -> Result<Map<String, Value>, String> {
    // Escapes and blanks may make the JSON text longer than its contents.
    if text.len() > 2 * VARIABLES_BYTES_MAX {
        return Err(format!("must not exceed {VARIABLES_BYTES_MAX} bytes"));
    }
    if crate::json::has_reserved_name(text.as_bytes()) {
        return Err("contain a reserved name".to_owned());
    }
    match raw_number::parse(text) {
        Ok(Value::Object(variables)) => Ok(variables),
        Ok(_) => Err("must be a JSON object".to_owned()),
        Err(error) => Err(format!("must be a JSON object: {error}")),
    }
}

/// Parses `name=value, name2=value2`, or JSON as in the API: an object, or a list of `{name, value}`.
fn parse_tags(text: &str) -> Result<Vec<Tag>, String> {
    let shape = "must be name=value, name2=value2, or a JSON object of strings";
    let tags: Vec<Tag> = match text.as_bytes().first() {
        Some(b'{') => serde_json::from_str::<TagPairs>(text).map_err(|error| format!("{shape}: {error}"))?.0,
        Some(b'[') => serde_json::from_str(text).map_err(|error| format!("{shape}: {error}"))?,
        _ => {
            let parts = text.split(',').map(str::trim).filter(|part| !part.is_empty()).take(TAGS_MAX + 1);
            let pair = |part: &str| {
                let (name, value) = part.split_once('=').ok_or_else(|| shape.to_owned())?;
                Ok(Tag { name: name.trim().to_owned(), value: value.trim().to_owned() })
            };
            parts.map(pair).collect::<Result<_, String>>()?
        }
    };
    for tag in tags.iter().take(TAGS_MAX) {
        tags::check_name(&tag.name)?;
        tags::check_line(&tag.value, TAG_BYTES_MAX).map_err(|wrong| format!("a value {wrong}"))?;
    }
    match tags::tag_errors(&tags).into_iter().next() {
        Some(fault) => Err(fault),
        None => Ok(tags),
    }
}

/// An object of strings with duplicate names preserved, so that they are reported.
struct TagPairs(Vec<Tag>);

impl<'de> Deserialize<'de> for TagPairs {
    fn deserialize<D: Deserializer<'de>>(input: D) -> Result<Self, D::Error> {
        struct TagPairsVisitor;
        impl<'de> Visitor<'de> for TagPairsVisitor {
            type Value = TagPairs;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object of strings")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<TagPairs, A::Error> {
                let mut pairs = Vec::new();
                while let Some((name, value)) = map.next_entry()? {
                    pairs.push(Tag { name, value });
                }
                Ok(TagPairs(pairs))
            }
        }
        input.deserialize_map(TagPairsVisitor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn parse_header_text(header: &str) -> Result<Option<ServiceOptions>, String> {
        parse(&SubmittedMessage::new(format!("From: a@b.example\r\n{header}\r\nhi\r\n")))
            .map_err(|error| error.to_string())
    }

    fn tag(name: &str, value: &str) -> Tag {
        Tag { name: name.to_owned(), value: value.to_owned() }
    }

    #[test]
    fn messages_without_service_fields_are_not_parsed() {
        assert_eq!(parse_header_text("Subject: Service-Tags: a=b\r\n"), Ok(None));
        assert_eq!(parse_header_text("X: y\r\n Service-Tags: a=b\r\n\r\nService-Tags: a=b\r\n"), Ok(None));
        assert_eq!(parse(&SubmittedMessage::new("")), Ok(None));
        assert_eq!(parse(&SubmittedMessage::new("no header\r\nService-Tags: a=b\r\n\r\n")), Ok(None));
    }

    #[test]
    fn every_service_field_is_parsed() {
        let parsed = parse_header_text(
            "SERVICE-Category: Newsletter\r\nservice-tags: flow=welcome,\r\n  step = 2\r\n\
                        Service-Template : Welcome\r\nService-Variables: {\"name\":\r\n \"Ada\"}\r\n\
                        Service-Scheduled-At: 2030-01-31T09:00:00+01:00\r\nService-Unsubscribe: FALSE\r\n\
                        Service-Idempotency-Key: order-7\r\n",
        );
        let template = TemplateUse {
            reference: TemplateRef { key: TemplateKey::parse("welcome"), version: None },
            variables: json!({"name": "Ada"}),
        };
        let wanted = ServiceOptions {
            idempotency_key: Some("order-7".to_owned()),
            tags: vec![tag("flow", "welcome"), tag("step", "2")],
            template: Some(template),
            category: Some(Category::Newsletter),
            scheduled_at: Some("2030-01-31T08:00:00Z".parse().unwrap()),
            unsubscribe: Some(false),
        };
        assert_eq!(parsed, Ok(Some(wanted)));
    }

    #[test]
    fn three_notations_of_tags_are_decoded() {
        for (text, wanted) in [
            ("a=b", vec![tag("a", "b")]),
            ("a=b=c, d=", vec![tag("a", "b=c"), tag("d", "")]),
            ("{\"a\": \"b, c\"}", vec![tag("a", "b, c")]),
            ("[{\"name\": \"a\", \"value\": \"b\"}]", vec![tag("a", "b")]),
            ("=?utf-8?q?stadt=3DK=C3=B6ln?=", vec![tag("stadt", "K\u{f6}ln")]),
            ("{\"a\": \"=?utf-8?q?=C3=B6?=\", \"b\":  \"x  y\"}", vec![tag("a", "\u{f6}"), tag("b", "x  y")]),
            ("a==?utf-8?b?w7Y=?=  =?iso-8859-1?q?=F6_x?= y", vec![tag("a", "\u{f6}\u{f6} x y")]),
            ("a==?utf-8?q?never ends", vec![tag("a", "=?utf-8?q?never ends")]),
            ("stadt=K\u{f6}ln", vec![tag("stadt", "K\u{f6}ln")]),
            ("", vec![]),
        ] {
            assert_eq!(
                parse_header_text(&format!("Service-Tags: {text}\r\n")).unwrap().unwrap().tags,
                wanted,
                "{text}"
            );
        }
    }

    #[test]
    fn invalid_fields_are_named() {
        for (header, part) in [
            ("Service-Tag: a=b", "Service-Tag: unknown field"),
            ("Service-: x", "Service-: unknown field"),
            ("Service-Tags: a=b\r\nSERVICE-TAGS: c=d", "Service-Tags: occurs more than once"),
            ("Service-Tags: a", "Service-Tags: must be name=value"),
            ("Service-Tags: a:b=c", "Service-Tags: the name must not contain a colon"),
            ("Service-Tags: {\"a\":\"1\",\"a\":\"2\"}", "Service-Tags: names `a` twice"),
            ("Service-Tags: {\"a\":1}", "Service-Tags: must be"),
            ("Service-Tags: a=,b=,c=,d=,e=,f=,g=,h=,i=,j=,k=", "Service-Tags: has more than 10"),
            ("Service-Category: spam", "Service-Category: must be one of"),
            ("Service-Scheduled-At: 2030-01-31T09:00:00", "Service-Scheduled-At: must be an ISO 8601 time"),
            ("Service-Unsubscribe: yes", "Service-Unsubscribe: must be true or false"),
            ("Service-Template: ", "Service-Template: is empty"),
            ("Service-Template: x\r\nService-Variables: []", "Service-Variables: must be a JSON object"),
            ("Service-Variables: {}", "Service-Variables: needs Service-Template"),
            ("Service-Idempotency-Key: ", "Service-Idempotency-Key: must be 1 to"),
        ] {
            let wrong = parse_header_text(&format!("{header}\r\n")).unwrap_err();
            assert!(wrong.starts_with(part), "{header}: {wrong}");
        }
        let two = parse_header_text("Service-Category: x\r\nService-Unsubscribe: x\r\n").unwrap_err();
        assert!(two.contains("Service-Category") && two.contains("; Service-Unsubscribe"), "{two}");
        let many = "Service-X: y\r\n".repeat(1_000);
        assert!(parse_header_text(&many).unwrap_err().len() < 4_000);
    }
}
