//! Fields of forms: how they are entered, and how their JSON is read.

use std::borrow::Cow;

use mcp::exact_json::changed_number;
use serde_json::Value;

use super::kit::money;
use super::request::Fields;

/// A field of a form. Its name is its path in the operation's body: `data.plan` is `{"data": {"plan": …}}`.
#[must_use]
#[derive(Debug, Clone)]
pub struct Field {
    pub name: Cow<'static, str>,
    pub label: Cow<'static, str>,
    pub control: Control,
    /// The value before anything was entered.
    pub value: String,
    pub help: Option<Cow<'static, str>>,
    pub placeholder: &'static str,
    pub required: bool,
    /// The meaning of an empty control.
    pub empty: Empty,
    /// `autocomplete` (HTML, "autofill").
    pub autocomplete: &'static str,
}

/// How a field is entered, and its type in JSON.
#[derive(Debug, Clone, PartialEq)]
pub enum Control {
    Text,
    Email,
    Url,
    Password,
    /// An integer.
    Number {
        min: Option<i64>,
        max: Option<i64>,
    },
    /// An amount of money in units of this currency, with decimals; in JSON an integer of minor units.
    Money {
        currency: String,
    },
    /// A rate in percent; in JSON an integer of basis points.
    Percent,
    /// Lines of text.
    Area {
        rows: u8,
    },
    /// Code in lines.
    Code {
        rows: u8,
    },
    /// One of several values, with their labels.
    Select(Vec<(String, String)>),
    /// One of several values, all visible.
    Radio(Vec<(String, String)>),
    /// A boolean.
    Checkbox,
    /// Several of several values, with their labels: an array.
    Checkboxes(Vec<(String, String)>),
    /// As [`Checkboxes`](Self::Checkboxes), in groups with titles.
    CheckboxGroups(Vec<ChoiceGroup>),
    /// An array: one entry a line, or separated by commas.
    Lines {
        rows: u8,
    },
    /// Any JSON value.
    Json {
        rows: u8,
    },
    /// Local date and time in UTC; `2026-01-31T09:00`.
    DateTime,
    /// A file; its content is read by the form's function.
    File {
        accept: &'static str,
    },
    /// Several files.
    Files {
        accept: &'static str,
    },
    Hidden,
}

/// Choices with a title.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChoiceGroup {
    pub title: &'static str,
    /// Values with their labels.
    pub choices: Vec<(String, String)>,
}

/// Choices from values with their labels.
pub fn choices(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
    pairs.iter().map(|(value, label)| ((*value).to_owned(), (*label).to_owned())).collect()
}

/// The meaning of an empty control.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Empty {
    /// The field is left out.
    #[default]
    Omitted,
    /// The field is null, which removes a value.
    Null,
    /// The field is an empty string or array.
    Kept,
    /// The field does not belong to the operation's body.
    Ignored,
}

impl Field {
    pub fn new(name: impl Into<Cow<'static, str>>, label: impl Into<Cow<'static, str>>, control: Control) -> Self {
        Self {
            name: name.into(),
            label: label.into(),
            control,
            value: String::new(),
            help: None,
            placeholder: "",
            required: false,
            empty: Empty::Omitted,
            autocomplete: "off",
        }
    }

    pub fn text(name: &'static str, label: &'static str) -> Self {
        Self::new(name, label, Control::Text)
    }

    /// A hidden field with a value.
    pub fn hidden(name: &'static str, value: impl Into<String>) -> Self {
        Self::new(name, "", Control::Hidden).value(value)
    }

    pub fn value(mut self, value: impl Into<String>) -> Self {
        self.value = value.into();
        self
    }

    pub fn help(mut self, help: impl Into<Cow<'static, str>>) -> Self {
        self.help = Some(help.into());
        self
    }

    pub fn placeholder(mut self, example: &'static str) -> Self {
        self.placeholder = example;
        self
    }

    pub fn required(mut self) -> Self {
        self.required = true;
        self
    }

    pub fn empty(mut self, meaning: Empty) -> Self {
        self.empty = meaning;
        self
    }

    /// The field does not belong to the operation's body.
    pub fn ignored(self) -> Self {
        self.empty(Empty::Ignored)
    }

    pub fn autocomplete(mut self, token: &'static str) -> Self {
        self.autocomplete = token;
        self
    }

    /// Reads the value; `None` leaves the field out.
    ///
    /// # Errors
    /// The entered text has no such value: what to enter.
    pub fn read(&self, fields: &Fields) -> Result<Option<Value>, String> {
        let entered = fields.get(&self.name);
        let trimmed = entered.trim();
        let value = match &self.control {
            Control::File { .. } | Control::Files { .. } => return Ok(None),
            Control::Checkbox => return Ok(Some(Value::Bool(fields.find(&self.name).is_some()))),
            Control::Checkboxes(_) | Control::CheckboxGroups(_) => {
                Value::from(fields.all(&self.name).map(Value::from).collect::<Vec<_>>())
            }
            Control::Lines { .. } => {
                let entries = entered.split(['\n', ',']).map(str::trim).filter(|entry| !entry.is_empty());
                Value::from(entries.map(Value::from).collect::<Vec<_>>())
            }
            _ if trimmed.is_empty() => Value::String(String::new()),
            Control::Number { .. } => match trimmed.parse::<i64>() {
                Ok(number) => Value::from(number),
                Err(_) => return Err("Enter a whole number".into()),
            },
            Control::Money { currency } => Value::from(money::parse_amount(trimmed, currency)?),
            Control::Percent => Value::from(money::parse_percent(trimmed)?),
            Control::Json { .. } => parse_json(trimmed)?,
            Control::DateTime => {
                Value::String(if trimmed.len() == 16 { format!("{trimmed}:00Z") } else { trimmed.into() })
            }
            Control::Area { .. } | Control::Code { .. } | Control::Password => Value::String(entered.into()),
            _ => Value::String(trimmed.into()),
        };
        let is_empty = value.as_str().is_some_and(str::is_empty) || value.as_array().is_some_and(Vec::is_empty);
        Ok(match self.empty {
            Empty::Omitted if is_empty => None,
            Empty::Null if is_empty => Some(Value::Null),
            _ => Some(value),
        })
    }
}

/// Parses JSON. A number that the request would round is refused: the server would store another one.
fn parse_json(text: &str) -> Result<Value, String> {
    let value = serde_json::from_str(text).map_err(|error| format!("This is not valid JSON: {error}"))?;
    match changed_number(text) {
        Some(number) => Err(format!("The number {number} would lose digits; write it as text: \"{number}\"")),
        None => Ok(value),
    }
}
