//! Tags, custom headers and category of a send request.

use std::borrow::Cow;

use httpd::fields::{self, FieldDiagnostics, FieldNames, JsonKind, ObjectFields, printable_name};
use message::compose::CustomHeader;
use model::email::{Category, Tag};
use model::tags::{self, TAG_BYTES_MAX, TAGS_MAX};
use serde_json::value::RawValue;

/// Maximum number of custom headers.
pub const HEADERS_MAX: usize = 50;

const TAG_NAMES: FieldNames =
    FieldNames { known: &[("name", "name"), ("value", "value")], foreign: &[("Name", "name"), ("Value", "value")] };

/// Parses `tags`: a list of `{name, value}` or an object.
pub fn read_tags(fields: &ObjectFields<'_>, notes: &mut FieldDiagnostics) -> Vec<Tag> {
    let Some(value) = fields.value("tags") else { return Vec::new() };
    let outcome = match JsonKind::of_value(value) {
        JsonKind::List => fields::parse_list(value, TAGS_MAX).map(|entries| read_tag_list(&entries, notes)),
        JsonKind::Object => fields::parse_object(value).map(|object| {
            object
                .0
                .iter()
                .filter_map(|(name, value)| {
                    let path = format!("tags.{}", printable_name(name));
                    tags::check_name(name).map_err(|text| notes.errors.add(&path, text)).ok()?;
                    let value = fields::parse_header_line(value, TAG_BYTES_MAX);
                    let value = value.map_err(|text| notes.errors.add(&path, text)).ok()?;
                    Some(Tag { name: name.clone().into_owned(), value })
                })
                .collect()
        }),
        _ => Err("must be a list of {name, value} or an object".to_owned()),
    };
    let tags: Vec<Tag> = outcome.map_err(|text| notes.errors.add("tags", text)).unwrap_or_default();
    for fault in tags::tag_errors(&tags) {
        notes.errors.add("tags", fault);
    }
    tags
}

fn read_tag_list(entries: &[&RawValue], notes: &mut FieldDiagnostics) -> Vec<Tag> {
    let mut tags = Vec::with_capacity(entries.len());
    for (n, entry) in entries.iter().enumerate() {
        let path = format!("tags[{n}]");
        let object = fields::parse_object(entry).map_err(|text| notes.errors.add(&path, text));
        let Ok(object) = object else { continue };
        let fields = ObjectFields::from_object(object, &TAG_NAMES, &format!("{path}."), notes);
        let mut part = |name: &str| match fields.value(name) {
            Some(value) => fields::parse_header_line(value, TAG_BYTES_MAX)
                .map_err(|text| notes.errors.add(&format!("{path}.{name}"), text))
                .ok(),
            None => {
                if !fields.is_present_or_misnamed(name) {
                    notes.errors.add(&format!("{path}.{name}"), "is required");
                }
                None
            }
        };
        let (Some(name), Some(value)) = (part("name"), part("value")) else { continue };
        match tags::check_name(&name) {
            Ok(()) => tags.push(Tag { name, value }),
            Err(text) => notes.errors.add(&format!("{path}.name"), text),
        }
    }
    tags
}

/// Parses `headers`.
pub fn read_headers(fields: &ObjectFields<'_>, notes: &mut FieldDiagnostics) -> Vec<CustomHeader> {
    let Some(value) = fields.value("headers") else { return Vec::new() };
    let object = fields::parse_object(value).and_then(|object| match object.0.len() {
        0..=HEADERS_MAX => Ok(object),
        _ => Err(format!("has more than {HEADERS_MAX} entries")),
    });
    let Ok(object) = object.map_err(|text| notes.errors.add("headers", text)) else { return Vec::new() };
    let mut headers = Vec::with_capacity(object.0.len());
    let mut names: Vec<Cow<'_, str>> = Vec::with_capacity(object.0.len());
    for (name, value) in object.0 {
        let outcome = if names.iter().any(|earlier| earlier.eq_ignore_ascii_case(&name)) {
            Err("is given more than once".to_owned())
        } else {
            fields::parse_text(value)
                .and_then(|text| CustomHeader::new(&name, &text).map_err(|error| error.to_string()))
        };
        match outcome {
            Ok(header) => headers.push(header),
            Err(text) => notes.errors.add(&format!("headers.{}", printable_name(&name)), text),
        }
        names.push(name);
    }
    headers
}

/// Parses `category`.
pub fn read_category(fields: &ObjectFields<'_>, notes: &mut FieldDiagnostics) -> Option<Category> {
    let category = fields::parse_text(fields.value("category")?).ok().as_deref().and_then(Category::from_word);
    if category.is_none() {
        notes.errors.add("category", "must be one of transactional, product, newsletter");
    }
    category
}
