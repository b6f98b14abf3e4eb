//! `Declaration`: the file of `plan` and `apply`.

use std::collections::BTreeSet;
use std::path::Path;

use serde_json::{Map, Value, json};

use super::object_kind::{OBJECT_KINDS, ObjectKind, StateField};
use crate::error::CliError;
use crate::file_value;
use crate::operation::OperationTable;

/// An object of the file.
#[derive(Debug)]
pub(super) struct DeclaredObject {
    pub(super) key: String,
    pub(super) fields: Map<String, Value>,
}

/// A section of the file.
#[derive(Debug)]
pub(super) struct DeclaredSection {
    pub(super) kind: &'static ObjectKind,
    pub(super) objects: Vec<DeclaredObject>,
}

/// The sections that the file has, in the order in which they are written.
#[derive(Debug)]
pub(super) struct Declaration {
    pub(super) sections: Vec<DeclaredSection>,
}

impl Declaration {
    /// Reads a file, and those that its values name with `@`.
    pub(super) fn read(path: &str, table: &OperationTable<'_>) -> Result<Self, CliError> {
        let directory = Path::new(path).parent().unwrap_or(Path::new("")).to_owned();
        Self::parse(&file_value::read_text(path)?, &directory, table)
            .map_err(|message| CliError::usage(format!("{path}: {message}")))
    }

    fn parse(text: &str, directory: &Path, table: &OperationTable<'_>) -> Result<Self, String> {
        let mut file: Map<String, Value> = toml::from_str(text).map_err(|error| error.to_string())?;
        let mut sections = Vec::new();
        for kind in OBJECT_KINDS {
            let Some(entries) = file.remove(kind.section) else { continue };
            let Value::Array(entries) = entries else {
                return Err(format!("`{0}` must be a list of tables: begin each with [[{0}]]", kind.section));
            };
            let allowed = allowed_fields(kind, table);
            let mut objects: Vec<DeclaredObject> = Vec::new();
            for entry in entries {
                let object = declared_object(kind, entry, (&allowed, directory))?;
                if objects.iter().any(|other| other.key == object.key) {
                    return Err(format!("two {} have the {} `{}`", kind.section, kind.key, object.key));
                }
                objects.push(object);
            }
            sections.push(DeclaredSection { kind, objects });
        }
        match file.keys().next() {
            Some(unknown) => {
                let known: Vec<&str> = OBJECT_KINDS.iter().map(|kind| kind.section).collect();
                Err(format!("`{unknown}` is not a section; the sections are {}", known.join(", ")))
            }
            None => Ok(Self { sections }),
        }
    }
}

/// The fields that an object may have: those of the update, the key, and its state.
fn allowed_fields(kind: &ObjectKind, table: &OperationTable<'_>) -> BTreeSet<String> {
    let operation = table.find(kind.update_command);
    let schema = operation.and_then(|operation| operation.body?.schema).map(|schema| table.resolve(&schema));
    let properties = schema.as_ref().and_then(|schema| schema["properties"].as_object());
    let names = properties.into_iter().flat_map(|properties| properties.keys());
    let mut allowed: BTreeSet<String> =
        names.filter(|name| !kind.other_fields.contains(&name.as_str())).cloned().collect();
    allowed.insert(kind.key.to_owned());
    match kind.state {
        StateField::None => false,
        StateField::Published => allowed.insert("published".to_owned()),
        StateField::Status => allowed.insert("status".to_owned()),
    };
    allowed
}

fn declared_object(
    kind: &ObjectKind,
    entry: Value,
    (allowed, directory): (&BTreeSet<String>, &Path),
) -> Result<DeclaredObject, String> {
    let Value::Object(mut fields) = entry else { return Err(format!("`{}` must have tables", kind.section)) };
    let key = fields.get(kind.key).and_then(Value::as_str).filter(|key| !key.is_empty()).map(str::to_owned);
    let key = key.ok_or_else(|| format!("each of `{}` needs a `{}`", kind.section, kind.key))?;
    if let Some(unknown) = fields.keys().find(|name| !allowed.contains(*name)) {
        let known: Vec<&str> = allowed.iter().map(String::as_str).collect();
        return Err(format!("{} `{key}`: `{unknown}` is not a field; the fields are {}", kind.noun, known.join(", ")));
    }
    let invalid = |message: &str| Err(format!("{} `{key}`: {message}", kind.noun));
    match kind.state {
        StateField::Published if fields.get("published").is_some_and(|value| *value != json!(true)) => {
            return invalid("`published` can only be true; omit it to keep a draft");
        }
        StateField::Status if fields.get("status").is_some_and(|status| status != "active" && status != "paused") => {
            return invalid("`status` must be active or paused; omit it to keep a draft");
        }
        _ => {}
    }
    for value in fields.values_mut() {
        let Some(text) = value.as_str() else { continue };
        *value = match (text.strip_prefix("@@"), text.strip_prefix('@')) {
            (Some(literal), _) => json!(format!("@{literal}")),
            (None, Some(file)) => {
                let path = directory.join(file).display().to_string();
                json!(file_value::read_text(&path).map_err(|error| format!("{} `{key}`: {error}", kind.noun))?)
            }
            (None, None) => continue,
        };
    }
    Ok(DeclaredObject { key, fields })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Declaration, String> {
        let directory = tempfile::tempdir().unwrap();
        std::fs::write(directory.path().join("a.html"), "<p>").unwrap();
        Declaration::parse(text, directory.path(), &OperationTable::load())
    }

    #[test]
    fn sections_are_read_in_the_order_of_writing() {
        let file = parse(
            "[[templates]]\nalias = 'a'\nhtml = '@a.html'\nsubject = '@@x'\npublished = true\n[[domains]]\nname = 'example.com'\n",
        )
        .unwrap();
        let sections: Vec<&str> = file.sections.iter().map(|section| section.kind.section).collect();
        assert_eq!(sections, ["domains", "templates"]);
        let fields = &file.sections[1].objects[0].fields;
        assert_eq!((&fields["html"], &fields["subject"]), (&json!("<p>"), &json!("@x")));
        assert!(parse("webhooks = []").unwrap().sections[0].objects.is_empty());
    }

    #[test]
    fn wrong_files_are_refused() {
        for (text, part) in [
            ("[[domain]]\nname = 'a'", "the sections are domains, webhooks"),
            ("[domains]\nname = 'a'", "[[domains]]"),
            ("[[domains]]\nopen_tracking = true", "needs a `name`"),
            ("[[domains]]\nname = 'a'\ndkim_private_key = 'x'", "is not a field"),
            ("[[domains]]\nname = 'a'\n[[domains]]\nname = 'a'", "two domains"),
            ("[[automations]]\nname = 'a'\nstatus = 'draft'", "active or paused"),
            ("[[templates]]\nalias = 'a'\npublished = false", "can only be true"),
            ("[[templates]]\nalias = 'a'\nhtml = '@no.html'", "no.html"),
            ("[[templates]]\nalias = 'a'\nif_version = 3", "is not a field"),
            ("x", "TOML"),
        ] {
            let error = parse(text).unwrap_err();
            assert!(error.contains(part), "{text}: {error}");
        }
    }
}
