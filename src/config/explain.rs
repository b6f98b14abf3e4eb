//! Error texts for values that cannot be parsed. Each names the key, the value found and the accepted values, in place
//! of serde's text ("invalid type: string, expected a sequence").

/// Parts of names of keys whose values are, or contain, secrets: these values are not printed.
const SECRET: [&str; 4] = ["password", "secret", "token", "url"];

/// Sections that can occur several times, each in double brackets.
const LIST_SECTIONS: [&str; 5] =
    ["relay", "delivery.pace", "delivery.replies", "delivery.smarthosts", "delivery.pools"];

/// A key of the configuration, for error texts.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Key {
    /// Section without brackets; empty at the top level.
    pub(super) section: String,
    /// Key; empty for the section as a whole.
    pub(super) name: String,
}

impl Key {
    /// Formats the section with its brackets.
    fn section(&self) -> String {
        match self.section.as_str() {
            "" => "the file".to_owned(),
            section if LIST_SECTIONS.contains(&section) => format!("[[{section}]]"),
            section => format!("[{section}]"),
        }
    }

    /// The section that this key begins, if that is written in double brackets.
    fn as_list_section(&self) -> Option<&'static str> {
        let path = if self.section.is_empty() { self.name.clone() } else { format!("{}.{}", self.section, self.name) };
        LIST_SECTIONS.into_iter().find(|section| *section == path)
    }

    pub(super) fn text(&self) -> String {
        match (self.section.is_empty(), self.name.is_empty()) {
            (true, true) => "this".to_owned(),
            (true, false) => format!("`{}`", self.name),
            (false, true) => self.section(),
            (false, false) => format!("`{}` in {}", self.name, self.section()),
        }
    }

    fn is_secret(&self) -> bool {
        SECRET.iter().any(|part| self.name.contains(part))
    }
}

/// Returns whether serde reports an unknown key.
pub(super) fn is_unknown_key(error: &str) -> bool {
    error.starts_with("unknown field ")
}

/// Rewrites serde's error about a key.
pub(super) fn explain(error: &str, key: &Key) -> String {
    let error = error.trim().replace('\n', " ");
    for kind in ["invalid type: ", "invalid value: ", "invalid length "] {
        if let Some((found, accepted)) = error.strip_prefix(kind).and_then(|parts| parts.split_once(", expected ")) {
            let found = describe_value(found, key);
            return match key.as_list_section() {
                Some(section) => format!("{} is {found}, but must be one or more sections [[{section}]]", key.text()),
                None => format!("{} is {found}, but must be {}", key.text(), describe_type(accepted)),
            };
        }
    }
    if let Some((name, known)) = error.strip_prefix("unknown field ").and_then(|parts| parts.split_once(", ")) {
        return format!("{name} is not a key of {}; its keys are {}", key.section(), words(known));
    }
    if let Some((word, known)) = error.strip_prefix("unknown variant ").and_then(|parts| parts.split_once(", ")) {
        return format!("{} is {}, but must be {}", key.text(), word.replace('`', "\""), words(known));
    }
    if let Some(name) = error.strip_prefix("missing field ") {
        return format!("{name} is missing in {}", key.section());
    }
    if error.contains("wanted string or table") {
        return format!("{} must be a string in quotation marks", key.text());
    }
    if error.ends_with("value was too large") || error == "integer number overflowed" {
        return format!("{} is a number that is too large: the maximum is {}", key.text(), i64::MAX);
    }
    let plain = error
        .replace(
            "invalid socket address syntax",
            "not an address with a port (examples: \"127.0.0.1:8025\", \"[::]:25\")",
        )
        .replace("invalid IP address syntax", "not an IP address (examples: \"203.0.113.20\", \"2001:db8::20\")");
    format!("{}: {plain}", key.text())
}

/// Rewrites the TOML parser's error about a text that is not TOML. `found` is the text at the error.
pub(super) fn explain_syntax(error: &str, found: &str) -> String {
    let (kind, _) = error.split_once(", expected ").unwrap_or((error, ""));
    let remedy = match kind {
        "duplicate key" => return format!("`{}` is set twice: remove one", found.trim_matches(['[', ']'])),
        "string values must be quoted" | "missing value" | "missing value for key" | "unquoted string" => {
            "the value is missing, or is a string without quotation marks (example: KEY = \"TEXT\")"
        }
        "invalid basic string" | "invalid literal string" | "invalid string" | "missing opening quote" => {
            "the string has no closing quotation mark, or has a character that needs a backslash (example: KEY = \
             \"TEXT\")"
        }
        "invalid multi-line basic string" | "invalid multi-line literal string" => {
            "the string has no closing quotation marks"
        }
        "missing escaped value" => "a backslash must be followed by a character; write \\\\ for a backslash",
        "invalid date-time" | "invalid date" | "invalid time" => "the date is invalid (example: 2026-01-31)",
        "unclosed array" | "missing comma between array elements" | "missing array opening" => {
            "the list is incomplete (example: KEY = [\"ONE\", \"TWO\"])"
        }
        "unclosed table" | "unclosed array table" | "invalid table" | "missing table open" => {
            "the section's name is incomplete (examples: [api], [[relay]])"
        }
        _ => return format!("this is not TOML, KEY = VALUE or [SECTION]: {kind}"),
    };
    remedy.to_owned()
}

/// Extracts the accepted values from "expected one of `on`, `off`" and its variants.
fn words(known: &str) -> String {
    let known = known.trim_start_matches("expected ").trim_start_matches("one of ");
    if known == "there are no fields" { "none".to_owned() } else { known.to_owned() }
}

/// Describes the value found, from serde's `Unexpected`.
fn describe_value(found: &str, key: &Key) -> String {
    let (kind, value) = found.split_once(' ').unwrap_or((found, ""));
    let (kind, value) = match (kind, value.strip_prefix("point ")) {
        ("floating", Some(value)) => ("float", value),
        _ => (kind, value),
    };
    // An integer beyond 64 bits is followed by its type: "`99999999999999999999` as i128".
    let value = if kind == "integer" { value.split('`').nth(1).unwrap_or(value) } else { value };
    let value = if key.is_secret() { "" } else { value.trim_matches('`') };
    let name = match kind {
        "string" => "the string",
        "integer" | "float" => "the number",
        "boolean" => return if value.is_empty() { "true or false".to_owned() } else { value.to_owned() },
        "sequence" => "a list",
        "map" => "a section or a date",
        "character" => "a character",
        _ => return found.to_owned(),
    };
    if value.is_empty() { name.replace("the ", "a ") } else { format!("{name} {value}") }
}

/// Describes the accepted type, from serde's `Expected`.
fn describe_type(accepted: &str) -> String {
    let bits = |text: &str| text.strip_prefix('u').and_then(|bits| bits.parse::<u32>().ok());
    match accepted {
        "a string" | "string" | "path string" => "a string in quotation marks".to_owned(),
        "a boolean" => "true or false".to_owned(),
        "f64" | "f32" => "a number".to_owned(),
        "a sequence" => "a list in square brackets".to_owned(),
        "usize" => "a whole number, 0 or more".to_owned(),
        other => match bits(other) {
            Some(bits @ 1..=32) => format!("a whole number from 0 to {}", (1_u64 << bits) - 1),
            Some(_) => "a whole number, 0 or more".to_owned(),
            None if other.starts_with("struct ") || other == "a map" => "a section with keys".to_owned(),
            None if other.starts_with("enum ") => "a string in quotation marks".to_owned(),
            None => other.to_owned(),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn explain_error(error: &str, section: &str, name: &str) -> String {
        explain(error, &Key { section: section.to_owned(), name: name.to_owned() })
    }

    #[test]
    fn error_texts_name_key_value_and_accepted_values() {
        for (error, section, name, text) in [
            (
                "invalid type: string \"many\", expected u16",
                "delivery",
                "port",
                "`port` in [delivery] is the string \"many\", but must be a whole number from 0 to 65535",
            ),
            (
                "invalid value: integer `70000`, expected u16",
                "delivery",
                "port",
                "`port` in [delivery] is the number 70000, but must be a whole number from 0 to 65535",
            ),
            (
                "invalid type: integer `5`, expected a string",
                "delivery",
                "smarthost_password",
                "`smarthost_password` in [delivery] is a number, but must be a string in quotation marks",
            ),
            (
                "invalid type: sequence, expected a boolean",
                "api",
                "tls",
                "`tls` in [api] is a list, but must be true or false",
            ),
            (
                "invalid type: floating point `1.5`, expected usize",
                "mx",
                "errors_max",
                "`errors_max` in [mx] is the number 1.5, but must be a whole number, 0 or more",
            ),
            (
                "invalid type: boolean `true`, expected struct ApiSection",
                "",
                "api",
                "`api` is true, but must be a section with keys",
            ),
            (
                "unknown field `colour`, expected one of `listen`, `tls`",
                "api",
                "colour",
                "`colour` is not a key of [api]; its keys are `listen`, `tls`",
            ),
            (
                "unknown variant `blue`, expected `on` or `off`",
                "api",
                "rate_limit",
                "`rate_limit` in [api] is \"blue\", but must be `on` or `off`",
            ),
            ("`x y` is not a host name", "", "hostname", "`hostname`: `x y` is not a host name"),
        ] {
            assert_eq!(explain_error(error, section, name), text);
        }
    }
}
