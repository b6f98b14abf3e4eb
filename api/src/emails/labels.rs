//! What a customer hangs on an email: tags, headers of their own, a category.

use std::borrow::Cow;

use mail::compose::CustomHeader;
use mail::email::{Category, Tag};
use serde_json::value::RawValue;

use crate::fields::{self, Given, Kind, Names, Notes, show};

/// Tags of an email (email-api.md "Limits").
pub const TAGS_MAX: usize = 10;
/// A tag's name, and its value: they are stored and sent along with every event.
pub const TAG_BYTES_MAX: usize = 256;
/// Headers of the customer's own.
pub const HEADERS_MAX: usize = 50;

const TAG_NAMES: Names = Names {
    known: &[("name", "name"), ("value", "value")],
    later: &[],
    foreign: &[("Name", "name"), ("Value", "value")],
};

/// Reads `tags`: a list of `{name, value}`, or an object.
pub fn tags(given: &Given<'_>, notes: &mut Notes) -> Vec<Tag> {
    let Some(value) = given.value("tags") else { return Vec::new() };
    let outcome = match Kind::of(value) {
        Kind::List => fields::list(value, TAGS_MAX).map(|entries| tag_list(&entries, notes)),
        Kind::Object => fields::object(value).map(|object| {
            object
                .0
                .iter()
                .filter_map(|(name, value)| {
                    let place = format!("tags.{}", show(name));
                    check_tag_name(name).map_err(|text| notes.errors.add(&place, text)).ok()?;
                    let value = fields::line(value, TAG_BYTES_MAX);
                    let value = value.map_err(|text| notes.errors.add(&place, text)).ok()?;
                    Some(Tag { name: name.clone().into_owned(), value })
                })
                .collect()
        }),
        _ => Err("must be a list of {name, value} or an object".to_owned()),
    };
    let tags: Vec<Tag> = outcome.map_err(|text| notes.errors.add("tags", text)).unwrap_or_default();
    if tags.len() > TAGS_MAX {
        notes.errors.add("tags", format!("has more than {TAGS_MAX} entries"));
    }
    for (n, tag) in tags.iter().enumerate() {
        if tags.iter().take(n).any(|earlier| earlier.name == tag.name) {
            notes.errors.add("tags", format!("names `{}` twice", show(&tag.name)));
        }
    }
    tags
}

fn tag_list(entries: &[&RawValue], notes: &mut Notes) -> Vec<Tag> {
    let mut tags = Vec::with_capacity(entries.len());
    for (n, entry) in entries.iter().enumerate() {
        let place = format!("tags[{n}]");
        let object = match fields::object(entry) {
            Ok(object) => object,
            Err(text) => {
                notes.errors.add(&place, text);
                continue;
            }
        };
        let given = Given::sort(object, &TAG_NAMES, &format!("{place}."), notes);
        let mut part = |name: &str| match given.value(name) {
            Some(value) => fields::line(value, TAG_BYTES_MAX)
                .map_err(|text| notes.errors.add(&format!("{place}.{name}"), text))
                .ok(),
            None => {
                if !given.is_meant(name) {
                    notes.errors.add(&format!("{place}.{name}"), "is required");
                }
                None
            }
        };
        let (Some(name), Some(value)) = (part("name"), part("value")) else { continue };
        match check_tag_name(&name) {
            Ok(()) => tags.push(Tag { name, value }),
            Err(text) => notes.errors.add(&format!("{place}.name"), text),
        }
    }
    tags
}

fn check_tag_name(name: &str) -> Result<(), String> {
    if name.is_empty() {
        return Err("the name is empty".to_owned());
    }
    // Filters are written `tag=name:value`.
    if name.contains(':') {
        return Err("the name must not contain a colon".to_owned());
    }
    fields::check_line(name, TAG_BYTES_MAX)
}

/// Reads `headers`.
pub fn headers(given: &Given<'_>, notes: &mut Notes) -> Vec<CustomHeader> {
    let Some(value) = given.value("headers") else { return Vec::new() };
    let object = match fields::object(value) {
        Ok(object) if object.0.len() <= HEADERS_MAX => object,
        Ok(_) => {
            notes.errors.add("headers", format!("has more than {HEADERS_MAX} entries"));
            return Vec::new();
        }
        Err(text) => {
            notes.errors.add("headers", text);
            return Vec::new();
        }
    };
    let mut headers = Vec::with_capacity(object.0.len());
    let mut seen: Vec<Cow<'_, str>> = Vec::with_capacity(object.0.len());
    for (name, value) in object.0 {
        let outcome = if seen.iter().any(|earlier| earlier.eq_ignore_ascii_case(&name)) {
            Err("is given more than once".to_owned())
        } else {
            fields::text(value)
                .and_then(|text| CustomHeader::new(&name, &text).map_err(|error| error.to_string()))
        };
        match outcome {
            Ok(header) => headers.push(header),
            Err(text) => notes.errors.add(&format!("headers.{}", show(&name)), text),
        }
        seen.push(name);
    }
    headers
}

/// Reads `category`.
pub fn category(given: &Given<'_>, notes: &mut Notes) -> Option<Category> {
    let category = fields::text(given.value("category")?).ok().as_deref().and_then(category_of_word);
    if category.is_none() {
        notes.errors.add("category", "must be one of transactional, product, newsletter");
    }
    category
}

/// All categories, as they are written.
pub const CATEGORIES: &[&str] = &["transactional", "product", "newsletter"];

/// The category that is written like this.
#[must_use]
pub fn category_of_word(word: &str) -> Option<Category> {
    match word {
        "transactional" => Some(Category::Transactional),
        "product" => Some(Category::Product),
        "newsletter" => Some(Category::Newsletter),
        _ => None,
    }
}
