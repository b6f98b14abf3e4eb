//! Runs the command of an operation: builds the request, asks before it deletes, calls, prints.

use std::io::IsTerminal as _;
use std::time::Duration;

use clap::ArgMatches;
use http::Method;
use mcp::arguments::{encode, encode_segment};
use mcp::exact_json::{self, ExactJson};
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use crate::arguments::{DottedFlags, FieldValues, operation_command, parse};
use crate::client::{ApiClient, ApiResponse, Call};
use crate::cursor_trail::CursorTrail;
use crate::error::CliError;
use crate::field::Field;
use crate::operation::{Operation, OperationTable, Risk};
use crate::output::{self, Format};
use crate::profile::Access;
use crate::secret_file::SecretFile;

/// Makes the client that the shared flags and the environment name.
///
/// # Errors
/// Server or key are missing or wrong.
pub fn client_of(matches: &ArgMatches, table: &OperationTable<'_>) -> Result<ApiClient, CliError> {
    let access = Access::find(matches.get_one::<String>("profile").map(String::as_str))?;
    let timeout = Duration::from_secs(matches.get_one::<u64>("timeout").copied().unwrap_or(30));
    Ok(ApiClient::new(access.base_url, access.credential, timeout, table.service_version))
}

/// Parses the arguments behind the words of a command, and runs it.
///
/// # Errors
/// The command line is wrong, or the call failed.
pub async fn run(operation: &Operation, arguments: &[String], table: &OperationTable<'_>) -> Result<(), CliError> {
    let fields = Field::of_operation(operation, table);
    let (dotted, others) = DottedFlags::take(arguments, &fields)?;
    let name = operation.command.clone();
    let command = operation_command(operation, &fields, &name).bin_name(format!("postrider {name}"));
    let matches = parse(command, &others)?;
    let values = FieldValues::read(operation, &fields, &matches, &dotted)?;
    OperationRun { operation, matches: &matches, table }.run(values).await
}

struct OperationRun<'a> {
    operation: &'a Operation,
    matches: &'a ArgMatches,
    table: &'a OperationTable<'a>,
}

impl OperationRun<'_> {
    async fn run(&self, values: FieldValues) -> Result<(), CliError> {
        let call = self.call(&values)?;
        self.perform(&call, &values).await.map_err(|error| match &call.idempotency_key {
            Some(key) => error.with_idempotency_key(key),
            None => error,
        })
    }

    async fn perform(&self, call: &Call, values: &FieldValues) -> Result<(), CliError> {
        if self.flag("request") {
            return self.print_request(call);
        }
        self.confirm(call)?;
        let secret_file = self.text("save-secret").map(|path| SecretFile::create(&path)).transpose()?;
        let client = client_of(self.matches, self.table)?;
        if self.flag("all") {
            return self.print_all(&client, values).await;
        }
        let answer = client.call(call).await?;
        if !self.operation.response.media_type.starts_with("application/json") {
            return self.write_content(&answer);
        }
        let mut value = answer.json()?;
        let shown = match secret_file {
            Some(file) => {
                file.take_from(&mut value)?;
                output::raw_json(&value)
            }
            None => answer.raw_json()?,
        };
        self.print_warnings(&value);
        self.print_answer(&value, &shown)
    }

    fn flag(&self, name: &str) -> bool {
        self.matches.try_get_one::<bool>(name).ok().flatten().copied().unwrap_or(false)
    }

    fn text(&self, name: &str) -> Option<String> {
        self.matches.try_get_one::<String>(name).ok().flatten().cloned()
    }

    fn selected_fields(&self) -> Option<Vec<String>> {
        let fields = self.matches.try_get_many::<String>("fields").ok().flatten()?;
        Some(fields.cloned().collect())
    }

    fn format(&self) -> Format {
        Format::choose(self.flag("json"), self.flag("jsonl"))
    }

    fn call(&self, values: &FieldValues) -> Result<Call, CliError> {
        let method = Method::from_bytes(self.operation.http_method.as_bytes())
            .map_err(|_| CliError::usage("the operation has no valid method"))?;
        let body = values.body.as_ref().map(|body| Value::Object(body.clone()).to_string().into());
        let key = || ulid::Ulid::generate().to_string();
        Ok(Call {
            method,
            target: self.target(&values.query)?,
            body,
            idempotency_key: self.operation.idempotent.then(|| self.text("idempotency-key").unwrap_or_else(key)),
            if_match: self.text("if-match").map(quoted_version),
            retry: self.operation.retry,
            ..Call::get("")
        })
    }

    fn target(&self, query: &[(String, String)]) -> Result<String, CliError> {
        let mut path = self.operation.path.clone();
        for (index, parameter) in self.operation.path_parameters.iter().enumerate() {
            let value = self.text(&format!("path:{index}")).unwrap_or_default();
            if value.is_empty() {
                return Err(CliError::usage(format!("{} must not be empty", parameter.name.to_uppercase())));
            }
            path = path.replace(&format!("{{{}}}", parameter.name), &encode_segment(&value));
        }
        let query: Vec<String> =
            query.iter().map(|(name, value)| format!("{}={}", encode(name), encode(value))).collect();
        Ok(if query.is_empty() { path } else { format!("{path}?{}", query.join("&")) })
    }

    /// The request instead of its answer: `--dry-run`.
    fn print_request(&self, call: &Call) -> Result<(), CliError> {
        let body = call.body.as_deref().and_then(|body| serde_json::from_slice::<Value>(body).ok());
        let mut request = Map::new();
        request.insert("method".to_owned(), json!(call.method.as_str()));
        request.insert("path".to_owned(), json!(call.target));
        request.extend(body.map(|body| ("body".to_owned(), body)));
        request.extend(call.idempotency_key.as_ref().map(|key| ("idempotency_key".to_owned(), json!(key))));
        output::print_json(&json!({"dry_run": true, "request": request}))
    }

    /// Asks before a deletion and before money is paid; without a terminal, `--yes` is needed.
    fn confirm(&self, call: &Call) -> Result<(), CliError> {
        if !matches!(self.operation.risk, Risk::Delete | Risk::Money) || self.flag("yes") {
            return Ok(());
        }
        let question = format!("{} ({} {})?", self.operation.summary, call.method, call.target);
        confirm(&question)
    }

    fn print_warnings(&self, value: &Value) {
        for warning in value["warnings"].as_array().into_iter().flatten().filter_map(Value::as_str) {
            eprintln!("warning: {}", output::safe_text(warning));
        }
    }

    /// Prints an answer; `shown` is its text.
    fn print_answer(&self, value: &Value, shown: &RawValue) -> Result<(), CliError> {
        let fields = self.selected_fields();
        let entries = self.operation.pages.as_ref().and_then(|name| exact_json::entries(output::pick(shown, name)));
        match (self.format(), entries, &fields) {
            (Format::Text, Some(entries), _) => {
                output::print(&output::raw_table(&entries, fields.as_deref()))?;
                if let Some(cursor) = value["next_cursor"].as_str().filter(|_| value["has_more"] == true) {
                    eprintln!("more: --cursor {}, or --all", output::safe_text(cursor));
                }
                Ok(())
            }
            (Format::Text, None, None) => output::print_raw_object(shown),
            (Format::JsonLines, Some(entries), _) => {
                let mut lines = entries.iter().map(|entry| selected(entry, fields.as_deref()));
                lines.try_for_each(|entry| output::print_json_line(&ExactJson(&entry)))
            }
            (_, Some(entries), Some(fields)) => {
                let entries: Vec<Box<RawValue>> = entries.iter().map(|entry| output::select(entry, fields)).collect();
                output::print_json(&entries.iter().map(|entry| ExactJson(entry)).collect::<Vec<_>>())
            }
            (_, _, Some(fields)) => output::print_json(&ExactJson(&output::select(shown, fields))),
            (_, _, None) => output::print_json(&ExactJson(shown)),
        }
    }

    /// Prints the entries of all pages while they come. After an error the JSON array stays open, so that nobody takes
    /// a part of the list for all of it.
    async fn print_all(&self, client: &ApiClient, values: &FieldValues) -> Result<(), CliError> {
        let Some(field) = self.operation.pages.as_deref() else { return Ok(()) };
        let (fields, format) = (self.selected_fields(), self.format());
        let progress = std::io::stderr().is_terminal() && format != Format::Text;
        let (mut query, mut count, mut trail) = (values.query.clone(), 0_usize, CursorTrail::default());
        loop {
            let answer = client.call(&Call::get(self.target(&query)?)).await?;
            let (page, text) = (answer.json()?, answer.raw_json()?);
            let entries = exact_json::entries(output::pick(&text, field)).unwrap_or_default();
            match format {
                Format::Text => output::print(&output::raw_table(&entries, fields.as_deref()))?,
                Format::JsonLines => {
                    let mut lines = entries.iter().map(|entry| selected(entry, fields.as_deref()));
                    lines.try_for_each(|entry| output::print_json_line(&ExactJson(&entry)))?;
                }
                Format::Json => {
                    for (index, entry) in entries.iter().enumerate() {
                        let separator = if count + index == 0 { "[" } else { "," };
                        let entry = output::json_line(&ExactJson(&selected(entry, fields.as_deref())));
                        output::write(format!("{separator}{entry}").as_bytes())?;
                    }
                }
            }
            count += entries.len();
            if progress {
                eprint!("\r{count} entries");
            }
            let cursor = page["next_cursor"].as_str().filter(|_| page["has_more"] == true);
            let Some(cursor) = cursor else { break };
            trail.add(cursor)?;
            query.retain(|(name, _)| name != "cursor");
            query.push(("cursor".to_owned(), cursor.to_owned()));
        }
        if progress {
            eprintln!();
        }
        match format {
            Format::Json => output::print(if count == 0 { "[]" } else { "]" }),
            Format::Text | Format::JsonLines => Ok(()),
        }
    }

    /// Writes an answer that is no JSON.
    fn write_content(&self, answer: &ApiResponse) -> Result<(), CliError> {
        let Some(path) = self.text("output") else {
            if std::io::stdout().is_terminal() {
                // Somebody else wrote it, for example a received email.
                let text = String::from_utf8_lossy(&answer.body);
                return output::print(&text.lines().map(output::safe_line).collect::<Vec<_>>().join("\n"));
            }
            return output::write(&answer.body);
        };
        std::fs::write(&path, &answer.body).map_err(|error| CliError::Io(format!("cannot write {path}: {error}")))
    }
}

fn selected(entry: &RawValue, fields: Option<&[String]>) -> Box<RawValue> {
    fields.map_or_else(|| entry.to_owned(), |fields| output::select(entry, fields))
}

/// An entity tag (RFC 9110 8.8.3) of a version.
fn quoted_version(version: String) -> String {
    if version == "*" || version.contains('"') { version } else { format!("\"{version}\"") }
}

/// Asks a yes-or-no question on the terminal.
///
/// # Errors
/// There is no terminal, or the answer is not yes.
pub fn confirm(question: &str) -> Result<(), CliError> {
    if !std::io::stdin().is_terminal() || !std::io::stderr().is_terminal() {
        return Err(CliError::usage(format!("{question} Not done: without a terminal, this requires --yes")));
    }
    eprint!("{question} [y/N] ");
    let mut reply = String::new();
    let _ = std::io::stdin().read_line(&mut reply);
    match reply.trim().to_lowercase().as_str() {
        "y" | "yes" => Ok(()),
        _ => Err(CliError::usage("not done")),
    }
}
