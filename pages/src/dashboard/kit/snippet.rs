//! A call of an operation on the command line and in the languages of the SDKs.
//!
//! A test compares the results with `sdk/snippets.json`, whose examples run against the server.

use std::borrow::Cow;

use serde_json::{Map, Value};

use crate::dashboard::backend::{Call, CallBody};
use crate::dashboard::screens::encode;
use crate::highlight::CodeLanguage;
use crate::reference::operation::{ApiTable, Operation, RequestBody};

/// Widest line of an object before it is broken into lines.
const LINE_CHARS_MAX: usize = 84;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SnippetLanguage {
    Curl,
    Cli,
    Node,
    Python,
}

impl SnippetLanguage {
    pub const ALL: [Self; 4] = [Self::Curl, Self::Cli, Self::Node, Self::Python];

    pub const fn label(self) -> &'static str {
        match self {
            Self::Curl => "curl",
            Self::Cli => "CLI",
            Self::Node => "Node",
            Self::Python => "Python",
        }
    }

    pub const fn code_language(self) -> CodeLanguage {
        match self {
            Self::Curl | Self::Cli => CodeLanguage::Shell,
            Self::Node => CodeLanguage::JavaScript,
            Self::Python => CodeLanguage::Python,
        }
    }
}

/// Writes a call in a language; `None` if the operation accepts no API keys, so that no other client has it.
pub fn snippet(call: &Call, language: SnippetLanguage, base_url: &str) -> Option<String> {
    let table = ApiTable::load();
    let operation = table.operation(call.operation)?;
    let writer = Writer { table, operation, call };
    Some(match language {
        SnippetLanguage::Curl => writer.curl(base_url),
        SnippetLanguage::Cli => writer.cli(),
        SnippetLanguage::Node => writer.node(),
        SnippetLanguage::Python => writer.python(),
    })
}

struct Writer<'a> {
    table: &'a ApiTable,
    operation: &'a Operation,
    call: &'a Call,
}

impl<'a> Writer<'a> {
    /// Query and body as one object: the parameters of the SDKs' methods.
    fn parameters(&self) -> Map<String, Value> {
        let mut parameters = Map::new();
        for (name, text) in &self.call.query {
            let described = self.operation.query_parameters.iter().find(|parameter| parameter.name == *name);
            let schema = described.map(|parameter| &parameter.schema);
            match schema.and_then(|schema| schema.get("type")).and_then(Value::as_str) {
                Some("array") => {
                    let entry = parameters.entry(name.clone()).or_insert_with(|| Value::Array(Vec::new()));
                    if let Value::Array(values) = entry {
                        values.extend(text.split(',').map(Value::from));
                    }
                }
                Some("integer" | "number" | "boolean") => {
                    let value = serde_json::from_str(text).unwrap_or_else(|_| Value::from(text.as_str()));
                    parameters.insert(name.clone(), value);
                }
                _ => {
                    parameters.insert(name.clone(), Value::from(text.as_str()));
                }
            }
        }
        if let CallBody::Json(Value::Object(body)) = &self.call.body {
            parameters.extend(body.iter().map(|(name, value)| (name.clone(), value.clone())));
        }
        parameters
    }

    fn path_values(&self) -> impl Iterator<Item = &'a str> {
        let (operation, call) = (self.operation, self.call);
        operation.path_parameters.iter().filter_map(move |parameter| {
            call.path.iter().find(|(name, _)| *name == parameter.name).map(|(_, value)| value.as_str())
        })
    }

    fn saves_file(&self) -> Option<&'static str> {
        let media_type = &self.operation.response.media_type;
        let is_file = !media_type.is_empty() && !media_type.contains("json") && !media_type.starts_with("text/");
        is_file.then(|| if media_type.contains("rfc822") { "message.eml" } else { "attachment" })
    }

    fn curl(&self, base_url: &str) -> String {
        let mut path = self.operation.path.clone();
        for (name, value) in &self.call.path {
            path = path.replace(&format!("{{{name}}}"), &encode(value));
        }
        let query = &self.call.query;
        if !query.is_empty() {
            let pairs = query.iter().map(|(name, value)| format!("{}={}", encode(name), encode(value)));
            path = format!("{path}?{}", pairs.collect::<Vec<_>>().join("&"));
        }
        let method = match self.operation.http_method.as_str() {
            "GET" => String::new(),
            method => format!(" -X {method}"),
        };
        let mut text =
            format!("curl{method} \"{base_url}{path}\" \\\n  -H \"Authorization: Bearer $POSTRIDER_API_KEY\"");
        match &self.call.body {
            CallBody::Json(body) if body.as_object().is_none_or(|body| !body.is_empty()) => {
                let body = serde_json::to_string_pretty(body).unwrap_or_default().replace('\n', "\n  ");
                text += " \\\n  -H \"Content-Type: application/json\" \\\n  -d ";
                text += &shell_quoted(&body);
            }
            CallBody::File(media_type, _) => {
                text += &format!(" \\\n  -H \"Content-Type: {media_type}\" \\\n  --data-binary @FILE");
            }
            _ => {}
        }
        if let Some(file) = self.saves_file() {
            text += " \\\n  -o ";
            text += file;
        }
        text
    }

    fn cli(&self) -> String {
        let mut text = format!("postrider {}", self.operation.command);
        for value in self.path_values() {
            text += " ";
            text += &shell_quoted(value);
        }
        for (name, value) in self.parameters() {
            flags(&format!("--{}", name.replace('_', "-")), &value, &mut text);
        }
        if let Some(file) = self.saves_file() {
            text += " > ";
            text += file;
        }
        text
    }

    fn node(&self) -> String {
        let start = format!("const {{ data, error }} = await client.{}(", self.operation.name);
        let schema = self.operation.body.as_ref().map(RequestBody::schema);
        let literal = Literal { table: self.table, is_node: true };
        self.sdk_call(start, &literal, schema) + ";"
    }

    fn python(&self) -> String {
        let name: Vec<_> = self.operation.name.split('.').map(python_name).collect();
        let start = format!("result = client.{}(", name.join("."));
        let literal = Literal { table: self.table, is_node: false };
        self.sdk_call(start, &literal, None)
    }

    fn sdk_call(&self, start: String, literal: &Literal<'_>, schema: Option<&Value>) -> String {
        let mut arguments: Vec<String> = self.path_values().map(quoted).collect();
        let parameters = self.parameters();
        if !parameters.is_empty() {
            let used = start.len() + arguments.iter().map(|argument| argument.len() + 2).sum::<usize>();
            let described = ValueSchema { schema, is_top: true };
            arguments.push(literal.broken(&Value::Object(parameters), described, 0, used));
        }
        format!("{start}{})", arguments.join(", "))
    }
}

/// The schema of a value, to tell fields of the API from keys of the caller.
#[derive(Clone, Copy)]
struct ValueSchema<'a> {
    schema: Option<&'a Value>,
    /// The parameters of a method: all are fields of the API.
    is_top: bool,
}

/// Writes values in a language.
struct Literal<'a> {
    table: &'a ApiTable,
    is_node: bool,
}

impl<'a> Literal<'a> {
    /// The schema without references; of the first variant that has the value's fields.
    fn resolved(&self, schema: &'a Value, value: &Value) -> &'a Value {
        let schema = self.table.referenced(schema).map_or(schema, |(_, schema)| schema);
        let variants = ["oneOf", "anyOf", "allOf"].iter().find_map(|key| schema.get(key)?.as_array());
        let has_fields = |schema: &Value| match value {
            Value::Object(object) => object.keys().all(|key| schema.pointer(&format!("/properties/{key}")).is_some()),
            Value::Array(_) => schema.get("items").is_some(),
            _ => true,
        };
        let found = variants.into_iter().flatten().map(|variant| self.resolved(variant, value)).find(|v| has_fields(v));
        found.unwrap_or(schema)
    }

    fn field(&self, described: ValueSchema<'a>, object: &Value, name: &str) -> Option<&'a Value> {
        let schema = self.resolved(described.schema?, object);
        schema.get("properties")?.get(name)
    }

    fn key(&self, name: &str, is_field: bool) -> String {
        if !self.is_node {
            return quoted(name);
        }
        let written = if is_field { camel(name) } else { Cow::Borrowed(name) };
        let is_identifier = written.chars().next().is_some_and(|first| first.is_ascii_alphabetic() || first == '_')
            && written.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '_');
        if is_identifier { written.into_owned() } else { quoted(&written) }
    }

    fn entries(
        &self,
        object: &'a Map<String, Value>,
        whole: &Value,
        described: ValueSchema<'a>,
    ) -> Vec<(String, &'a Value, ValueSchema<'a>)> {
        let entry = |(name, value): (&'a String, &'a Value)| {
            let field = self.field(described, whole, name);
            (self.key(name, described.is_top || field.is_some()), value, ValueSchema { schema: field, is_top: false })
        };
        object.iter().map(entry).collect()
    }

    fn items(&self, described: ValueSchema<'a>, value: &Value) -> ValueSchema<'a> {
        let items = described.schema.and_then(|schema| self.resolved(schema, value).get("items"));
        ValueSchema { schema: items, is_top: false }
    }

    fn inline(&self, value: &Value, described: ValueSchema<'_>) -> String {
        let literal = Literal { table: self.table, is_node: self.is_node };
        match value {
            Value::Object(object) => {
                let entries = literal.entries(object, value, described);
                let entries =
                    entries.iter().map(|(key, value, inner)| format!("{key}: {}", literal.inline(value, *inner)));
                let joined = entries.collect::<Vec<_>>().join(", ");
                if self.is_node { format!("{{ {joined} }}") } else { format!("{{{joined}}}") }
            }
            Value::Array(values) => {
                let inner = literal.items(described, value);
                format!("[{}]", values.iter().map(|value| literal.inline(value, inner)).collect::<Vec<_>>().join(", "))
            }
            Value::String(text) => quoted(text),
            Value::Bool(truth) if !self.is_node => (if *truth { "True" } else { "False" }).to_owned(),
            Value::Null if !self.is_node => "None".to_owned(),
            other => other.to_string(),
        }
    }

    /// In one line if it fits, otherwise with an entry a line.
    fn broken(&self, value: &Value, described: ValueSchema<'_>, indent: usize, used: usize) -> String {
        let line = self.inline(value, described);
        let is_simple = !value.is_object() && !value.is_array();
        // The generator breaks the parameters of Node's methods always.
        if is_simple || line.chars().count() + used <= LINE_CHARS_MAX {
            return line;
        }
        let literal = Literal { table: self.table, is_node: self.is_node };
        let width = if self.is_node { 2 } else { 4 };
        let (outer, inner) = (" ".repeat(indent * width), " ".repeat((indent + 1) * width));
        let (open, close, lines): (_, _, Vec<String>) = match value {
            Value::Object(object) => {
                let entries = literal.entries(object, value, described).into_iter().map(|(key, value, within)| {
                    let used = inner.len() + key.len() + 3;
                    format!("{inner}{key}: {},", literal.broken(value, within, indent + 1, used))
                });
                ("{", "}", entries.collect())
            }
            Value::Array(values) => {
                let within = literal.items(described, value);
                let entries = values
                    .iter()
                    .map(|value| format!("{inner}{},", literal.broken(value, within, indent + 1, inner.len() + 1)));
                ("[", "]", entries.collect())
            }
            _ => return line,
        };
        format!("{open}\n{}\n{outer}{close}", lines.join("\n"))
    }
}

/// The flags of a parameter: objects become dotted flags, arrays repeated ones, objects in arrays JSON.
fn flags(name: &str, value: &Value, text: &mut String) {
    match value {
        Value::Object(object) => object.iter().for_each(|(key, value)| flags(&format!("{name}.{key}"), value, text)),
        Value::Array(values) => {
            for value in values {
                *text += &format!(" {name} {}", shell_quoted(&plain(value)));
            }
        }
        Value::Bool(true) if !name.contains('.') => *text += &format!(" {name}"),
        Value::Bool(false) if !name.contains('.') => *text += &format!(" {name}=false"),
        value => *text += &format!(" {name} {}", shell_quoted(&plain(value))),
    }
}

fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// Quotes a word for a POSIX shell, if it needs it.
pub fn shell_quoted(text: &str) -> String {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "-_./:@,+%=".contains(letter);
    if !text.is_empty() && text.chars().all(is_plain) {
        text.to_owned()
    } else {
        format!("'{}'", text.replace('\'', r"'\''"))
    }
}

/// A string literal of JavaScript and Python: both read JSON's.
fn quoted(text: &str) -> String {
    Value::from(text).to_string()
}

fn camel(name: &str) -> Cow<'_, str> {
    let mut words = name.split('_');
    let first = words.next().unwrap_or_default();
    let rest: String = words
        .map(|word| {
            let mut letters = word.chars();
            letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
        })
        .collect();
    if rest.is_empty() { Cow::Borrowed(name) } else { Cow::Owned(format!("{first}{rest}")) }
}

/// The name of an attribute: snake case, with an underscore after a keyword.
fn python_name(name: &str) -> String {
    let written = snake(name);
    if written == "import" { "import_".to_owned() } else { written }
}

/// `apiKeys` as `api_keys`.
fn snake(name: &str) -> String {
    let mut written = String::with_capacity(name.len() + 2);
    for letter in name.chars() {
        if letter.is_uppercase() {
            written.push('_');
        }
        written.extend(letter.to_lowercase());
    }
    written
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde::Deserialize;

    use super::*;

    #[derive(Deserialize)]
    struct Example {
        path: Vec<String>,
        params: Map<String, Value>,
    }

    fn without_layout(text: &str) -> String {
        let joined: String = text.chars().filter(|letter| !letter.is_whitespace()).collect();
        joined.replace(",}", "}").replace(",]", "]").replace(",)", ")")
    }

    fn call(operation: &'static Operation, example: Example) -> Call {
        let mut call = Call::new(&operation.id);
        for (parameter, value) in operation.path_parameters.iter().zip(example.path) {
            call = call.parameter(&parameter.name, value);
        }
        let mut body = Map::new();
        for (name, value) in example.params {
            match operation.query_parameters.iter().find(|parameter| parameter.name == name) {
                Some(_) => {
                    let texts = match &value {
                        Value::Array(values) => values.iter().map(plain).collect(),
                        value => vec![plain(value)],
                    };
                    call.query.extend(texts.into_iter().map(|text| (name.clone(), text)));
                }
                None => {
                    body.insert(name, value);
                }
            }
        }
        if body.is_empty() { call } else { call.json(Value::Object(body)) }
    }

    #[test]
    fn snippets_are_those_that_run() {
        // Placeholders of the examples, which a shell would need quotes for.
        let without_marks = |text: &str| text.replace("{{", "").replace("}}", "");
        let examples = without_marks(include_str!("../../../../sdk/examples.json"));
        let examples: BTreeMap<String, Example> = serde_json::from_str(&examples).unwrap();
        let table = ApiTable::load();
        let (mut different, mut same) = (Vec::new(), 0);
        for (id, example) in examples {
            let (Some(operation), Some(expected)) = (table.operation(&id), table.snippets.get(&id)) else { continue };
            let call = call(operation, example);
            for (key, language) in
                [("cli", SnippetLanguage::Cli), ("node", SnippetLanguage::Node), ("python", SnippetLanguage::Python)]
            {
                let Some(expected) = expected.get(key).map(|text| without_marks(text)) else { continue };
                let written = snippet(&call, language, "").unwrap();
                // The order of query parameters is that of the operation in some languages.
                let sorted = |text: &str| {
                    let mut letters: Vec<char> = without_layout(text).chars().collect();
                    letters.sort_unstable();
                    letters
                };
                if sorted(&written) == sorted(&expected) {
                    same += 1
                } else {
                    different.push(format!("{expected}\n{written}\n"))
                }
            }
        }
        assert!(
            different.is_empty() && same > 300,
            "{same} are the same, {} not:\n{}",
            different.len(),
            different.join("\n")
        );
    }
}
