//! The command line of an operation: positional path parameters, a flag for each field, and flags of all commands.

use std::collections::BTreeMap;

use clap::builder::StyledStr;
use clap::{Arg, ArgAction, ArgMatches, Command, value_parser};
use serde_json::{Map, Value};

use crate::error::CliError;
use crate::example;
use crate::field::{Field, FieldKind, Location, check_numbers, scalar};
use crate::file_value;
use crate::operation::{Operation, Risk, example};
use crate::short_flag;

/// A flag without a value.
pub fn switch(name: &'static str, help: &'static str) -> Arg {
    Arg::new(name).long(name).action(ArgAction::SetTrue).help(help)
}

/// A flag with a value.
pub fn option(name: &'static str, value_name: &'static str, help: impl Into<StyledStr>) -> Arg {
    Arg::new(name).long(name).value_name(value_name).help(help)
}

/// Adds the flags that every command takes.
pub fn with_shared_flags(command: Command) -> Command {
    const HEADING: &str = "All commands";
    command
        .arg(option("profile", "NAME", "Stored server and key to use (see `postrider login`)").help_heading(HEADING))
        .arg(
            option("timeout", "SECONDS", "Maximum time for a request and its retries, in seconds")
                .value_parser(value_parser!(u64).range(1..=3600))
                .default_value("30")
                .help_heading(HEADING),
        )
        .arg(switch("json", "Print JSON even on a terminal").help_heading(HEADING))
}

/// Parses the arguments behind the words of a command. Prints its help and ends the process if they ask for it.
///
/// # Errors
/// The command line is wrong.
pub fn parse(command: Command, arguments: &[String]) -> Result<ArgMatches, CliError> {
    command.no_binary_name(true).try_get_matches_from(arguments).map_err(|error| usage_error(&error))
}

/// The error of a wrong command line. Help and version are no errors: they are printed, and the process ends.
pub fn usage_error(error: &clap::Error) -> CliError {
    if !error.use_stderr() {
        error.exit();
    }
    let text = error.to_string();
    CliError::usage(text.strip_prefix("error: ").unwrap_or(&text).trim_end())
}

pub fn operation_command(operation: &Operation, fields: &[Field], name: &str) -> Command {
    let mut command = Command::new(name.to_owned()).about(operation.summary.clone());
    if let Some(description) = &operation.description {
        command = command.long_about(format!("{}\n\n{description}", operation.summary));
    }
    if let Some(example) = example(operation) {
        command = command.after_help(example::section(&[example]));
    }
    for (index, parameter) in operation.path_parameters.iter().enumerate() {
        command = command.arg(
            Arg::new(format!("path:{index}"))
                .value_name(parameter.name.to_uppercase())
                .help(parameter.description.clone())
                .required(true),
        );
    }
    for field in fields.iter().filter(|field| field.wire != "cursor" || operation.pages.is_none()) {
        command = command.arg(field_flag(field));
    }
    for flag in short_flag::of_operation(&operation.command) {
        command = command.arg(flag.arg());
    }
    if operation.pages.is_some() {
        command = command
            .arg(
                Arg::new("field:cursor").long("cursor").value_name("CURSOR").help("`next_cursor` of the previous page"),
            )
            .arg(switch("all", "Fetch all pages"))
            .arg(switch("jsonl", "Print one JSON value per line"));
    }
    if operation.body.is_some() && operation.fixed.is_empty() {
        let help = "The whole request as JSON, @file or @- (standard input); flags override its fields";
        command = command.arg(option("body", "JSON|@FILE", help));
    }
    with_shared_flags(with_request_flags(command, operation))
}

/// Adds the flags that follow from an operation's properties.
fn with_request_flags(mut command: Command, operation: &Operation) -> Command {
    command = command.arg(option("fields", "A,B", "Only these fields of the response").value_delimiter(','));
    // An operation with a `dry_run` of its own tells more than its request.
    let has_own = command.get_arguments().any(|arg| arg.get_long() == Some("dry-run"));
    if !operation.only_reads() && !has_own {
        command = command.arg(switch("request", "Print the request, but do not send it").long("dry-run"));
    }
    if operation.idempotent {
        let help = "Makes the request idempotent for 24 hours [default: a new key]";
        command = command.arg(option("idempotency-key", "KEY", help));
    }
    if operation.takes_header("If-Match") {
        let help = "Only if the object still has this version";
        command = command.arg(option("if-match", "VERSION", help));
    }
    if matches!(operation.risk, Risk::Delete | Risk::Money) {
        command = command.arg(switch("yes", "Do not ask for confirmation").short('y'));
    }
    if operation.risk == Risk::Secret {
        let help = "Write the secret to this new file (mode 0600) instead of printing it";
        command = command.arg(option("save-secret", "FILE", help));
    }
    if !operation.response.media_type.starts_with("application/json") {
        let help = "Write the response to this file [default: standard output]";
        command = command.arg(option("output", "FILE", help).short('o'));
    }
    command
}

fn field_flag(field: &Field) -> Arg {
    let flag = field.flag();
    let mut help = field.description.clone();
    if !field.values.is_empty() {
        help.push_str(&format!(" [{}]", field.values.join(", ")));
    }
    if field.required {
        help.push_str(" (required)");
    }
    let mut arg = Arg::new(format!("field:{}", field.wire)).help(help).allow_hyphen_values(true);
    if flag != field.wire {
        arg = arg.alias(field.wire.clone());
    }
    arg = arg.long(flag);
    match field.kind {
        FieldKind::Flag => arg
            .value_name("BOOL")
            .num_args(0..=1)
            .require_equals(true)
            .default_missing_value("true")
            .action(ArgAction::Append),
        FieldKind::Text | FieldKind::Scalar => arg.value_name("TEXT").action(ArgAction::Append),
        FieldKind::Integer | FieldKind::Number => arg.value_name("NUMBER").action(ArgAction::Append),
        FieldKind::List => arg.value_name("TEXT").action(ArgAction::Append),
        FieldKind::ObjectList => arg.value_name("JSON").action(ArgAction::Append),
        FieldKind::Object => arg.value_name("JSON").action(ArgAction::Append),
    }
}

/// Flags with a dot, by field and path: `--data.plan trial`, `--trigger.event=user.created`.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct DottedFlags(BTreeMap<String, Vec<(Vec<String>, String)>>);

impl DottedFlags {
    /// Takes the dotted flags of object fields out of the arguments.
    ///
    /// # Errors
    /// A dotted flag has no value.
    pub fn take(arguments: &[String], fields: &[Field]) -> Result<(Self, Vec<String>), CliError> {
        let (mut flags, mut others) = (Self::default(), Vec::new());
        let mut arguments = arguments.iter();
        let takes_value = |flag: &str| {
            let is_field = |field: &Field| field.flag() == flag || field.wire == flag;
            fields.iter().any(|field| field.kind != FieldKind::Flag && is_field(field))
        };
        while let Some(argument) = arguments.next() {
            if argument == "--" {
                others.push(argument.clone());
                others.extend(arguments.cloned());
                break;
            }
            // The value of a flag may look like another flag.
            if argument.strip_prefix("--").is_some_and(takes_value) {
                others.push(argument.clone());
                others.extend(arguments.next().cloned());
                continue;
            }
            let name = argument.strip_prefix("--").map(|name| name.split_once('=').map_or(name, |(name, _)| name));
            let field = name.and_then(|name| name.split_once('.')).and_then(|(flag, path)| {
                let is_object =
                    |field: &&Field| field.kind == FieldKind::Object && (field.flag() == flag || field.wire == flag);
                fields.iter().find(is_object).map(|field| (field, path))
            });
            let Some((field, path)) = field else {
                others.push(argument.clone());
                continue;
            };
            let value = match argument.split_once('=') {
                Some((_, value)) => value.to_owned(),
                None => {
                    arguments.next().cloned().ok_or_else(|| CliError::usage(format!("{argument} needs a value")))?
                }
            };
            let path: Vec<String> = path.split('.').map(str::to_owned).collect();
            if path.iter().any(String::is_empty) {
                return Err(CliError::usage(format!("{argument}: a name between dots is empty")));
            }
            flags.0.entry(field.wire.clone()).or_default().push((path, file_value::expand(&value)?));
        }
        Ok((flags, others))
    }

    /// Adds the flags of a field to its value.
    fn apply(&self, wire: &str, lists: &[String], value: &mut Value) -> Result<(), CliError> {
        for (path, text) in self.0.get(wire).into_iter().flatten() {
            let mut at = &mut *value;
            for name in path {
                if at.is_null() {
                    *at = Value::Object(Map::new());
                }
                let Value::Object(object) = at else {
                    return Err(CliError::usage(format!(
                        "--{wire}.{}: `{name}` is inside a value that is not an object",
                        path.join(".")
                    )));
                };
                at = object.entry(name.clone()).or_insert(Value::Null);
            }
            match at {
                // A flag that is given again adds an entry.
                Value::Array(entries) => entries.push(scalar(text)),
                Value::Null if lists.contains(&path.join(".")) => *at = Value::Array(vec![scalar(text)]),
                Value::Null => *at = scalar(text),
                _ => *at = Value::Array(vec![at.take(), scalar(text)]),
            }
        }
        Ok(())
    }
}

/// The values that a command line gives to the fields of an operation.
#[derive(Debug, Default, Clone, PartialEq)]
pub struct FieldValues {
    /// Name and text of query parameters.
    pub query: Vec<(String, String)>,
    /// `None` if the operation takes no body.
    pub body: Option<Map<String, Value>>,
}

impl FieldValues {
    /// Reads the fields from the parsed command line.
    ///
    /// # Errors
    /// A value has the wrong form.
    pub fn read(
        operation: &Operation,
        fields: &[Field],
        matches: &ArgMatches,
        dotted: &DottedFlags,
    ) -> Result<Self, CliError> {
        let mut values = Self::default();
        let mut body = match matches.try_get_one::<String>("body").ok().flatten() {
            Some(text) => {
                let text = file_value::expand(text)?;
                let body = serde_json::from_str(&text)
                    .map_err(|error| CliError::usage(format!("--body must be a JSON object: {error}")))?;
                check_numbers("body", &text)?;
                body
            }
            None => Map::new(),
        };
        for field in fields {
            let texts = matches.try_get_many::<String>(&format!("field:{}", field.wire)).ok().flatten();
            let texts: Vec<String> = texts.into_iter().flatten().cloned().collect();
            let mut value = match texts.as_slice() {
                [] => Value::Null,
                texts => field.value(texts)?,
            };
            dotted.apply(&field.wire, &field.lists, &mut value)?;
            if value.is_null() {
                continue;
            }
            match field.location {
                Location::Body => {
                    body.insert(field.wire.clone(), value);
                }
                Location::Query => match value {
                    Value::Array(entries) if field.repeats => {
                        values.query.extend(entries.iter().map(|entry| (field.wire.clone(), query_text(entry))));
                    }
                    value => values.query.push((field.wire.clone(), query_text(&value))),
                },
            }
        }
        for flag in short_flag::of_operation(&operation.command) {
            let texts = matches.try_get_many::<String>(flag.flag).ok().flatten();
            texts.into_iter().flatten().try_for_each(|text| flag.apply(text, &mut body))?;
        }
        body.extend(operation.fixed.clone());
        values.body = operation.body.is_some().then_some(body);
        Ok(values)
    }
}

/// A query parameter with several values has them separated by commas.
fn query_text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(entries) => entries.iter().map(query_text).collect::<Vec<_>>().join(","),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operation::OperationTable;
    use serde_json::json;

    fn parse(command: &str, arguments: &[&str]) -> Result<FieldValues, CliError> {
        let table = OperationTable::load();
        let operation = table.find(command).unwrap();
        let fields = Field::of_operation(&operation, &table);
        let arguments: Vec<String> = arguments.iter().map(|&one| one.to_owned()).collect();
        let (dotted, others) = DottedFlags::take(&arguments, &fields)?;
        let matches = super::parse(operation_command(&operation, &fields, "verb"), &others)?;
        FieldValues::read(&operation, &fields, &matches, &dotted)
    }

    #[test]
    fn every_operation_has_a_valid_command() {
        let table = OperationTable::load();
        for operation in table.all() {
            let fields = Field::of_operation(&operation, &table);
            operation_command(&operation, &fields, "verb").debug_assert();
        }
    }

    #[test]
    fn flags_become_fields() {
        let values = parse(
            "emails send",
            &[
                "--from",
                "a@example.com",
                "--to",
                "b@example.net",
                "--to=c@example.net",
                "--subject",
                "-x",
                "--variables.user.name",
                "Ada",
                "--variables.count=3",
                "--body",
                r#"{"text":"t","subject":"from the body"}"#,
            ],
        )
        .unwrap();
        assert_eq!(
            Value::Object(values.body.unwrap()),
            json!({
                "text": "t", "subject": "-x", "from": "a@example.com", "to": ["b@example.net", "c@example.net"],
                "variables": {"user": {"name": "Ada"}, "count": 3},
            })
        );
    }

    #[test]
    fn short_flags_become_fields() {
        let directory = tempfile::tempdir().unwrap();
        let file = |name: &str, content: &str| {
            let path = directory.path().join(name);
            std::fs::write(&path, content).unwrap();
            path.display().to_string()
        };
        let page = file("page.html", "<p>Hello</p>");
        let logo = format!("--attachment={};cid=logo;type=image/x-logo", file("logo.png", "png"));
        let bill = format!("--attachment={};name=March.pdf", file("bill.pdf", "pdf"));
        let values =
            parse("emails send", &["--html-file", &page, &logo, &bill, "--var", "name=Ada", "--var", "order.count=3"]);
        assert_eq!(
            Value::Object(values.unwrap().body.unwrap()),
            json!({
                "html": "<p>Hello</p>",
                "attachments": [
                    {"name": "logo.png", "content_type": "image/x-logo", "content_id": "logo", "data": "cG5n"},
                    {"name": "March.pdf", "content_type": "application/pdf", "data": "cGRm"},
                ],
                "variables": {"name": "Ada", "order": {"count": 3}},
            })
        );
        for wrong in ["--attachment=/no/such/file", "--var=name", "--html-file=/no/such/file"] {
            assert!(parse("emails send", &[wrong]).is_err(), "{wrong}");
        }
        assert!(parse("emails send", &["--attachment", &format!("{page};size=1")]).is_err());
        assert!(parse("emails send", &["--html", "x", "--html-file", &page]).is_err());
    }

    #[test]
    fn fixed_fields_are_sent_without_flags() {
        let values = parse("automations cancel-runs", &["aut_1"]).unwrap();
        assert_eq!(Value::Object(values.body.unwrap()), json!({"action": "cancel_runs"}));
        assert!(parse("automations pause", &["aut_1", "--body", "{}"]).is_err());
        assert!(parse("automations pause", &["aut_1", "--name", "x"]).is_err());
    }

    #[test]
    fn query_flags_become_parameters() {
        let values = parse("emails list", &["--limit", "5", "--to", "a@example.net"]).unwrap();
        assert!(values.body.is_none());
        assert!(values.query.contains(&("limit".to_owned(), "5".to_owned())));
    }

    #[test]
    fn a_value_that_looks_like_a_dotted_flag_is_a_value() {
        let values = parse("emails send", &["--text", "--variables.a=1", "--subject", "--variables.b"]).unwrap();
        let body = Value::Object(values.body.unwrap());
        assert_eq!(body, json!({"subject": "--variables.b", "text": "--variables.a=1"}));
    }

    #[test]
    fn wrong_flags_are_refused() {
        assert!(parse("emails send", &["--sbject", "x"]).unwrap_err().to_string().contains("--subject"));
        assert!(parse("emails send", &["--variables.a"]).unwrap_err().to_string().contains("needs a value"));
        assert!(parse("emails send", &["--variables.a=1", "--variables.a.b=2"]).is_err());
        assert!(parse("emails send", &["--body", "[]"]).unwrap_err().to_string().contains("--body"));
        assert!(parse("emails get", &[]).unwrap_err().to_string().contains("ID"));
    }
}
