//! `ShortFlag`: a flag that is easier to type than the field that it sets, for example `--html-file page.html`.

use std::path::Path;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use clap::{Arg, ArgAction};
use serde_json::{Map, Value, json};

use crate::error::CliError;
use crate::field::scalar;
use crate::file_value;

/// How the text of a short flag becomes a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ShortFlagKind {
    /// Path of a file whose text is the field.
    TextFile,
    /// `FILE[;cid=…][;name=…][;type=…]`, added to a list of attachments.
    Attachment,
    /// `name=value`, added to an object; dots in the name make objects below it.
    Variable,
}

/// A flag that sets a field of some operations.
#[derive(Debug)]
pub(crate) struct ShortFlag {
    pub(crate) flag: &'static str,
    field: &'static str,
    kind: ShortFlagKind,
    help: &'static str,
    commands: &'static [&'static str],
}

const WITH_BODIES: &[&str] = &["emails send", "templates create", "templates update"];

const SHORT_FLAGS: &[ShortFlag] = &[
    ShortFlag {
        flag: "html-file",
        field: "html",
        kind: ShortFlagKind::TextFile,
        help: "The HTML body from this file",
        commands: WITH_BODIES,
    },
    ShortFlag {
        flag: "text-file",
        field: "text",
        kind: ShortFlagKind::TextFile,
        help: "The text body from this file",
        commands: WITH_BODIES,
    },
    ShortFlag {
        flag: "attachment",
        field: "attachments",
        kind: ShortFlagKind::Attachment,
        help: "Attach a file; `cid` makes it inline, `name` and `type` override its own",
        commands: &["emails send"],
    },
    ShortFlag {
        flag: "var",
        field: "variables",
        kind: ShortFlagKind::Variable,
        help: "A template variable, for example name=Ada",
        commands: &["emails send", "templates preview", "templates test-send"],
    },
];

/// Content types by the end of a file's name; others are `application/octet-stream`.
const CONTENT_TYPES: &[(&str, &str)] = &[
    ("csv", "text/csv"),
    ("docx", "application/vnd.openxmlformats-officedocument.wordprocessingml.document"),
    ("eml", "message/rfc822"),
    ("gif", "image/gif"),
    ("html", "text/html"),
    ("ics", "text/calendar"),
    ("jpeg", "image/jpeg"),
    ("jpg", "image/jpeg"),
    ("json", "application/json"),
    ("md", "text/markdown"),
    ("mp3", "audio/mpeg"),
    ("mp4", "video/mp4"),
    ("pdf", "application/pdf"),
    ("png", "image/png"),
    ("svg", "image/svg+xml"),
    ("txt", "text/plain"),
    ("webp", "image/webp"),
    ("xlsx", "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"),
    ("xml", "application/xml"),
    ("zip", "application/zip"),
];

pub(crate) fn of_operation(command: &str) -> impl Iterator<Item = &'static ShortFlag> {
    SHORT_FLAGS.iter().filter(move |flag| flag.commands.contains(&command))
}

impl ShortFlag {
    /// The flag for the parser.
    pub(crate) fn arg(&self) -> Arg {
        let arg = Arg::new(self.flag).long(self.flag).help(self.help);
        match self.kind {
            ShortFlagKind::TextFile => arg.value_name("FILE").conflicts_with(format!("field:{}", self.field)),
            ShortFlagKind::Attachment => {
                arg.value_name("FILE[;cid=ID][;name=NAME][;type=TYPE]").action(ArgAction::Append)
            }
            ShortFlagKind::Variable => arg.value_name("NAME=VALUE").action(ArgAction::Append),
        }
    }

    /// Sets the field of the body.
    ///
    /// # Errors
    /// The text has the wrong form, or a file cannot be read.
    pub(crate) fn apply(&self, text: &str, body: &mut Map<String, Value>) -> Result<(), CliError> {
        match self.kind {
            ShortFlagKind::TextFile => {
                body.insert(self.field.to_owned(), json!(file_value::read_text(text)?));
            }
            ShortFlagKind::Attachment => {
                let attachments = body.entry(self.field).or_insert_with(|| json!([]));
                let attachments = attachments.as_array_mut().ok_or_else(|| self.conflict())?;
                attachments.push(attachment(text)?);
            }
            ShortFlagKind::Variable => {
                let invalid = || CliError::usage(format!("--var {text}: use NAME=VALUE, for example name=Ada"));
                let (path, value) = text.split_once('=').ok_or_else(invalid)?;
                if path.split('.').any(str::is_empty) {
                    return Err(invalid());
                }
                let mut at = body.entry(self.field).or_insert_with(|| json!({}));
                for name in path.split('.') {
                    if at.is_null() {
                        *at = json!({});
                    }
                    at = at.as_object_mut().ok_or_else(|| self.conflict())?.entry(name).or_insert(Value::Null);
                }
                *at = scalar(&file_value::expand(value)?);
            }
        }
        Ok(())
    }

    fn conflict(&self) -> CliError {
        CliError::usage(format!("--{} conflicts with the `{}` of another flag or of --body", self.flag, self.field))
    }
}

/// Reads the file of `FILE[;cid=…][;name=…][;type=…]`.
fn attachment(text: &str) -> Result<Value, CliError> {
    let (path, options) = text.split_once(';').unwrap_or((text, ""));
    let name = Path::new(path).file_name().and_then(|name| name.to_str()).unwrap_or(path);
    let extension = Path::new(path).extension().and_then(|end| end.to_str()).unwrap_or_default().to_ascii_lowercase();
    let content_type = CONTENT_TYPES.iter().find(|(end, _)| *end == extension);
    let mut attachment = json!({
        "name": name,
        "content_type": content_type.map_or("application/octet-stream", |(_, content_type)| content_type),
        "data": BASE64_STANDARD.encode(file_value::read(path)?),
    });
    for option in options.split(';').map(str::trim).filter(|option| !option.is_empty()) {
        let field = match option.split_once('=') {
            Some(("cid", value)) => ("content_id", value),
            Some(("name", value)) => ("name", value),
            Some(("type", value)) => ("content_type", value),
            _ => {
                let message = format!("--attachment {text}: `{option}` is not cid=…, name=… or type=…");
                return Err(CliError::usage(message));
            }
        };
        attachment[field.0] = json!(field.1);
    }
    Ok(attachment)
}
