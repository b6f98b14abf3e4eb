//! What a person is told of a value that cannot be read: the key, what was found there, and what it takes, in place of
//! the sentences of serde ("invalid type: string, expected a sequence").

/// Names of keys whose values are secret, or may hold a secret: they are not repeated.
const SECRET: [&str; 4] = ["password", "secret", "token", "url"];

/// A key of the configuration.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Key {
    /// The section, as it stands in brackets; empty at the top of the file.
    pub(super) section: String,
    /// The key; empty when the section as a whole is meant.
    pub(super) name: String,
}

impl Key {
    /// The section as a person writes it, with the brackets.
    fn section(&self) -> String {
        match self.section.as_str() {
            "" => "the file".to_owned(),
            section => format!("[{section}]"),
        }
    }

    fn shown(&self) -> String {
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

/// Whether an error says that there is no such key.
pub(super) fn is_unknown_key(error: &str) -> bool {
    error.starts_with("unknown field ")
}

/// An error about a key, for a person.
pub(super) fn explain(error: &str, key: &Key) -> String {
    let error = error.trim().replace('\n', " ");
    for kind in ["invalid type: ", "invalid value: ", "invalid length "] {
        if let Some((found, accepted)) = error.strip_prefix(kind).and_then(|rest| rest.split_once(", expected ")) {
            return format!("{} is {}, and takes {}", key.shown(), found_as(found, key), accepted_as(accepted));
        }
    }
    if let Some((name, known)) = error.strip_prefix("unknown field ").and_then(|rest| rest.split_once(", ")) {
        return format!("{name} is no key of {}; its keys are {}", key.section(), words(known));
    }
    if let Some((word, known)) = error.strip_prefix("unknown variant ").and_then(|rest| rest.split_once(", ")) {
        return format!("{} is {}, and takes {}", key.shown(), word.replace('`', "\""), words(known));
    }
    if let Some(name) = error.strip_prefix("missing field ") {
        return format!("{name} is missing in {}", key.section());
    }
    if error.contains("wanted string or table") {
        return format!("{} takes a word in quotation marks", key.shown());
    }
    let plain = error.replace(
        "invalid socket address syntax",
        "not an address with a port (say, \"127.0.0.1:8025\" or \"[::]:25\")",
    );
    format!("{}: {plain}", key.shown())
}

/// The values that may stand there: "expected one of `on`, `off`" and its variants.
fn words(known: &str) -> String {
    let known = known.trim_start_matches("expected ").trim_start_matches("one of ");
    if known == "there are no fields" { "none".to_owned() } else { known.to_owned() }
}

/// What was found, by serde's `Unexpected`.
fn found_as(found: &str, key: &Key) -> String {
    let (kind, value) = found.split_once(' ').unwrap_or((found, ""));
    let (kind, value) = match (kind, value.strip_prefix("point ")) {
        ("floating", Some(value)) => ("float", value),
        _ => (kind, value),
    };
    let value = if key.is_secret() { "" } else { value.trim_matches('`') };
    let name = match kind {
        "string" => "the text",
        "integer" | "float" => "the number",
        "boolean" => return if value.is_empty() { "true or false".to_owned() } else { value.to_owned() },
        "sequence" => "a list",
        "map" => "a section or a date",
        "character" => "a character",
        _ => return found.to_owned(),
    };
    if value.is_empty() { name.replace("the ", "a ") } else { format!("{name} {value}") }
}

/// What is accepted, by what the reader of the value says.
fn accepted_as(accepted: &str) -> String {
    let bits = |text: &str| text.strip_prefix('u').and_then(|bits| bits.parse::<u32>().ok());
    match accepted {
        "a string" | "string" | "path string" => "a text in quotation marks".to_owned(),
        "a boolean" => "true or false".to_owned(),
        "f64" | "f32" => "a number".to_owned(),
        "a sequence" => "a list in square brackets".to_owned(),
        "usize" => "a whole number, 0 or more".to_owned(),
        other => match bits(other) {
            Some(bits @ 1..=32) => format!("a whole number from 0 to {}", (1_u64 << bits) - 1),
            Some(_) => "a whole number, 0 or more".to_owned(),
            None if other.starts_with("struct ") || other == "a map" => "keys below it, as a section".to_owned(),
            None if other.starts_with("enum ") => "a word in quotation marks".to_owned(),
            None => other.to_owned(),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(error: &str, section: &str, name: &str) -> String {
        explain(error, &Key { section: section.to_owned(), name: name.to_owned() })
    }

    #[test]
    fn the_key_what_was_found_and_what_it_takes() {
        for (error, section, name, text) in [
            (
                "invalid type: string \"many\", expected u16",
                "delivery",
                "port",
                "`port` in [delivery] is the text \"many\", and takes a whole number from 0 to 65535",
            ),
            (
                "invalid value: integer `70000`, expected u16",
                "delivery",
                "port",
                "`port` in [delivery] is the number 70000, and takes a whole number from 0 to 65535",
            ),
            (
                "invalid type: integer `5`, expected a string",
                "delivery",
                "smarthost_password",
                "`smarthost_password` in [delivery] is a number, and takes a text in quotation marks",
            ),
            (
                "invalid type: sequence, expected a boolean",
                "api",
                "tls",
                "`tls` in [api] is a list, and takes true or false",
            ),
            (
                "invalid type: floating point `1.5`, expected usize",
                "mx",
                "errors_max",
                "`errors_max` in [mx] is the number 1.5, and takes a whole number, 0 or more",
            ),
            (
                "invalid type: boolean `true`, expected struct ApiSection",
                "",
                "api",
                "`api` is true, and takes keys below it, as a section",
            ),
            (
                "unknown field `colour`, expected one of `listen`, `tls`",
                "api",
                "colour",
                "`colour` is no key of [api]; its keys are `listen`, `tls`",
            ),
            (
                "unknown variant `blue`, expected `on` or `off`",
                "api",
                "rate_limit",
                "`rate_limit` in [api] is \"blue\", and takes `on` or `off`",
            ),
            ("`x y` is not a host name", "", "hostname", "`hostname`: `x y` is not a host name"),
        ] {
            assert_eq!(told(error, section, name), text);
        }
    }
}
