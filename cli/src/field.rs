//! `Field`: a flag of a command, derived from the schema of a parameter or of a body's field.

use mcp::exact_json::changed_number;
use mcp::operation_table::is_session_field;
use serde_json::{Map, Value, json};

use crate::error::CliError;
use crate::file_value;
use crate::operation::{Operation, OperationTable, Parameter};

/// Where a field goes in the request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Location {
    Query,
    Body,
}

/// How the text of a flag becomes a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FieldKind {
    Text,
    /// A whole number.
    Integer,
    Number,
    Flag,
    /// A number if the text is one, otherwise text.
    Scalar,
    /// A flag that may be repeated; each is an entry.
    List,
    /// A flag that may be repeated; each is a JSON object, or a JSON array of them.
    ObjectList,
    /// Dotted flags (`--data.plan trial`), or one JSON object.
    Object,
}

/// A flag of a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Field {
    /// The API's name, for example `reply_to`.
    pub wire: String,
    pub description: String,
    pub required: bool,
    pub location: Location,
    pub kind: FieldKind,
    /// Known values; the server may accept others.
    pub values: Vec<String>,
    /// True if several values are several query parameters; otherwise they are joined by commas.
    pub repeats: bool,
    /// Names of an object's own fields that are lists.
    pub lists: Vec<String>,
}

impl Field {
    /// The flag without its dashes, for example `reply-to`.
    pub fn flag(&self) -> String {
        self.wire.replace('_', "-")
    }

    /// All fields of an operation that a key can give: those of the query, then those of the body.
    pub fn of_operation(operation: &Operation, table: &OperationTable<'_>) -> Vec<Self> {
        let query = operation.query_parameters.iter().map(|parameter| {
            Self::new(&parameter.name, &parameter.schema, (parameter.required, Location::Query), table)
                .of_parameter(parameter)
        });
        let body = operation.body.as_ref().and_then(|body| body.schema.as_ref()).map(|schema| table.resolve(schema));
        let required: Vec<&str> =
            body.iter().filter_map(|body| body["required"].as_array()).flatten().filter_map(Value::as_str).collect();
        let properties = body.as_ref().and_then(|body| body["properties"].as_object());
        let fields = properties
            .into_iter()
            .flatten()
            .map(|(name, schema)| Self::new(name, schema, (required.contains(&name.as_str()), Location::Body), table));
        query.chain(fields).filter(|field| !is_session_field(&field.description)).collect()
    }

    fn new(wire: &str, schema: &Value, place: (bool, Location), table: &OperationTable<'_>) -> Self {
        let description = schema["description"].as_str().unwrap_or_default().to_owned();
        let schema = table.resolve(schema);
        let (required, location) = place;
        Self {
            wire: wire.to_owned(),
            description,
            required,
            location,
            kind: kind_of(&schema, table),
            values: values_of(&schema),
            repeats: false,
            lists: list_properties(&schema, table),
        }
    }

    fn of_parameter(mut self, parameter: &Parameter) -> Self {
        if !parameter.description.is_empty() {
            self.description.clone_from(&parameter.description);
        }
        self.repeats = parameter.explode != Some(false);
        self
    }

    /// Converts the texts of a flag to the value of the field.
    ///
    /// # Errors
    /// A text has the wrong form, or the file that it names cannot be read.
    pub fn value(&self, texts: &[String]) -> Result<Value, CliError> {
        let texts: Vec<String> = texts.iter().map(|text| file_value::expand(text)).collect::<Result<_, _>>()?;
        let last = texts.last().map(String::as_str).unwrap_or_default();
        let invalid = |wanted: &str| CliError::usage(format!("--{} must be {wanted}, not `{last}`", self.flag()));
        Ok(match self.kind {
            FieldKind::Text => json!(last),
            FieldKind::Integer => json!(last.parse::<i64>().map_err(|_| invalid("a whole number"))?),
            FieldKind::Number => json!(last.parse::<f64>().map_err(|_| invalid("a number"))?),
            FieldKind::Flag => match last {
                "" | "true" => json!(true),
                "false" => json!(false),
                _ => return Err(invalid("true or false")),
            },
            FieldKind::Scalar => scalar(last),
            FieldKind::List => {
                // One JSON array is taken whole.
                match (texts.as_slice(), serde_json::from_str::<Vec<Value>>(last)) {
                    ([_], Ok(entries)) => {
                        check_numbers(&self.flag(), last)?;
                        json!(entries)
                    }
                    _ => json!(texts),
                }
            }
            FieldKind::ObjectList => Value::Array(self.objects(&texts)?),
            FieldKind::Object => {
                let object = serde_json::from_str::<Map<String, Value>>(last).map_err(|_| {
                    invalid(&format!("a JSON object (or use dotted flags such as --{}.name value)", self.flag()))
                })?;
                check_numbers(&self.flag(), last)?;
                Value::Object(object)
            }
        })
    }

    fn objects(&self, texts: &[String]) -> Result<Vec<Value>, CliError> {
        let mut objects = Vec::new();
        for text in texts {
            check_numbers(&self.flag(), text)?;
            match serde_json::from_str::<Value>(text) {
                Ok(Value::Array(entries)) => objects.extend(entries),
                Ok(Value::Object(entry)) => objects.push(Value::Object(entry)),
                _ => {
                    return Err(CliError::usage(format!(
                        "--{} must be a JSON object or an array of them, for example '{{\"name\":\"value\"}}', not `{text}`",
                        self.flag()
                    )));
                }
            }
        }
        Ok(objects)
    }
}

/// Checks that the numbers of a JSON text are sent as they were written.
///
/// # Errors
/// A number would lose digits.
pub fn check_numbers(flag: &str, json: &str) -> Result<(), CliError> {
    match changed_number(json) {
        Some(number) => Err(CliError::usage(format!(
            "--{flag}: the number {number} would lose digits; write it as text: \"{number}\""
        ))),
        None => Ok(()),
    }
}

/// A number, true, false or null if the text is one; otherwise the text. A number that would lose digits stays text.
pub fn scalar(text: &str) -> Value {
    match serde_json::from_str(text) {
        Ok(Value::Number(_)) if changed_number(text).is_some() => json!(text),
        Ok(value @ (Value::Number(_) | Value::Bool(_) | Value::Null)) => value,
        _ => json!(text),
    }
}

/// Names of the JSON types that a schema allows, without null.
fn types_of(schema: &Value, table: &OperationTable<'_>) -> Vec<(String, Value)> {
    let alternatives = ["oneOf", "anyOf", "allOf"].iter().find_map(|keyword| schema[keyword].as_array());
    if let Some(alternatives) = alternatives {
        return alternatives.iter().flat_map(|one| types_of(&table.resolve(one), table)).collect();
    }
    let is_text =
        schema["const"].is_string() || schema["enum"].as_array().is_some_and(|all| all.iter().any(Value::is_string));
    let names: Vec<&str> = match &schema["type"] {
        // A constant or a list of texts needs no type.
        Value::Null if is_text => vec!["string"],
        Value::String(name) => vec![name],
        Value::Array(names) => names.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    };
    names.into_iter().filter(|name| *name != "null").map(|name| (name.to_owned(), schema.clone())).collect()
}

fn kind_of(schema: &Value, table: &OperationTable<'_>) -> FieldKind {
    let types = types_of(schema, table);
    let find = |name: &str| types.iter().find(|(one, _)| one == name).map(|(_, schema)| schema);
    if let Some(array) = find("array") {
        let entries = types_of(&table.resolve(&array["items"]), table);
        let has_objects = entries.iter().any(|(name, _)| name == "object");
        return if has_objects && find("string").is_none() { FieldKind::ObjectList } else { FieldKind::List };
    }
    match types.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>().as_slice() {
        ["boolean"] => FieldKind::Flag,
        ["integer"] => FieldKind::Integer,
        ["number"] => FieldKind::Number,
        ["object", ..] => FieldKind::Object,
        ["string"] => FieldKind::Text,
        types if types.contains(&"object") => FieldKind::Text,
        [] => FieldKind::Text,
        _ => FieldKind::Scalar,
    }
}

fn list_properties(schema: &Value, table: &OperationTable<'_>) -> Vec<String> {
    let properties = schema["properties"].as_object().into_iter().flatten();
    let is_list = |schema: &Value| types_of(&table.resolve(schema), table).iter().any(|(name, _)| name == "array");
    properties.filter(|(_, schema)| is_list(schema)).map(|(name, _)| name.clone()).collect()
}

fn values_of(schema: &Value) -> Vec<String> {
    let values = schema["enum"].as_array().or_else(|| schema["items"]["enum"].as_array());
    values.into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields(command: &str) -> Vec<Field> {
        let table = OperationTable::load();
        Field::of_operation(&table.find(command).unwrap(), &table)
    }

    fn field(command: &str, wire: &str) -> Field {
        fields(command).into_iter().find(|field| field.wire == wire).unwrap()
    }

    #[test]
    fn kinds_follow_the_schema() {
        assert_eq!(field("emails send", "to").kind, FieldKind::List);
        assert_eq!(field("emails send", "tags").kind, FieldKind::ObjectList);
        assert_eq!(field("emails send", "variables").kind, FieldKind::Object);
        assert_eq!(field("emails send", "subject").kind, FieldKind::Text);
        assert_eq!(field("emails list", "limit").kind, FieldKind::Integer);
        assert_eq!(field("templates preview", "version").kind, FieldKind::Scalar);
        assert_eq!(field("automations create", "trigger").kind, FieldKind::Object);
    }

    #[test]
    fn fields_of_dashboard_sessions_are_left_out() {
        let names: Vec<String> = fields("events send").into_iter().map(|field| field.wire).collect();
        assert!(names.contains(&"name".to_owned()), "{names:?}");
        assert!(
            !names.iter().any(|name| ["dry_run", "test_send", "automation_id"].contains(&name.as_str())),
            "{names:?}"
        );
    }

    #[test]
    fn values_are_converted() {
        let limit = field("emails list", "limit");
        assert_eq!(limit.value(&["5".to_owned()]).unwrap(), json!(5));
        assert!(limit.value(&["five".to_owned()]).unwrap_err().to_string().contains("--limit"));
        let tags = field("emails send", "tags");
        let tag = json!({"name": "a", "value": "b"});
        assert_eq!(tags.value(&[tag.to_string(), format!("[{tag}]")]).unwrap(), json!([tag, tag]));
        assert!(tags.value(&["a=b".to_owned()]).is_err());
        assert_eq!(scalar("12"), json!(12));
        assert_eq!(scalar("trial"), json!("trial"));
        assert_eq!(scalar("12345678901234567890123"), json!("12345678901234567890123"));
        assert_eq!(scalar("19.90"), json!(19.9));
    }
}
