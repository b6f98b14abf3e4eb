//! String literals and reserved words of the languages.

use std::fmt::Write;

use crate::reserved_words;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Language {
    Node,
    Python,
    Php,
    Ruby,
    Go,
    /// POSIX shell.
    Shell,
}

impl Language {
    pub fn parse(name: &str) -> Option<Self> {
        Some(match name {
            "node" => Self::Node,
            "python" => Self::Python,
            "php" => Self::Php,
            "ruby" => Self::Ruby,
            "go" => Self::Go,
            "shell" => Self::Shell,
            _ => return None,
        })
    }

    fn reserved(self) -> &'static [&'static str] {
        match self {
            Self::Node => reserved_words::NODE,
            Self::Python => reserved_words::PYTHON,
            Self::Php => reserved_words::PHP,
            Self::Ruby => reserved_words::RUBY,
            Self::Go => reserved_words::GO,
            Self::Shell => &[],
        }
    }

    /// The name, with an underscore after it if the language reserves it.
    pub fn escape_reserved(self, name: &str) -> String {
        if self.reserved().contains(&name) { format!("{name}_") } else { name.to_owned() }
    }
}

/// A string literal of the language, as its formatters write it.
pub fn quote(text: &str, language: Language) -> String {
    match language {
        Language::Php if !text.chars().any(char::is_control) => single_quoted(text),
        Language::Shell => shell_quoted(text),
        _ => double_quoted(text, language),
    }
}

fn single_quoted(text: &str) -> String {
    format!("'{}'", text.replace('\\', "\\\\").replace('\'', "\\'"))
}

/// Words of plain characters need no quotes in a shell, nor does a placeholder such as `{{email_id}}`.
fn shell_quoted(text: &str) -> String {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "-_./:@,+%=".contains(letter);
    let word = text.strip_prefix("{{").and_then(|text| text.strip_suffix("}}")).unwrap_or(text);
    if !word.is_empty() && word.chars().all(is_plain) {
        return text.to_owned();
    }
    format!("'{}'", text.replace('\'', r"'\''"))
}

fn double_quoted(text: &str, language: Language) -> String {
    let mut quoted = String::from('"');
    for letter in text.chars() {
        match letter {
            '"' | '\\' => {
                quoted.push('\\');
                quoted.push(letter);
            }
            '\n' => quoted.push_str("\\n"),
            '\r' => quoted.push_str("\\r"),
            '\t' => quoted.push_str("\\t"),
            '$' if language == Language::Php => quoted.push_str("\\$"),
            '#' if language == Language::Ruby => quoted.push_str("\\#"),
            letter if letter.is_control() => {
                let written = match language {
                    Language::Php | Language::Ruby => write!(quoted, "\\u{{{:x}}}", u32::from(letter)),
                    _ => write!(quoted, "\\u{:04x}", u32::from(letter)),
                };
                // Writing to a string does not fail.
                debug_assert!(written.is_ok());
            }
            letter => quoted.push(letter),
        }
    }
    quoted.push('"');
    quoted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_are_literals_of_each_language() {
        let text = "it's \"$a\" #{b}\n";
        assert_eq!(quote(text, Language::Node), r##""it's \"$a\" #{b}\n""##);
        assert_eq!(quote(text, Language::Php), r##""it's \"\$a\" #{b}\n""##);
        assert_eq!(quote(text, Language::Ruby), r##""it's \"$a\" \#{b}\n""##);
        assert_eq!(quote("it's", Language::Php), r"'it\'s'");
        assert_eq!(quote("it's", Language::Shell), r"'it'\''s'");
        assert_eq!(quote("a@b.c", Language::Shell), "a@b.c");
        assert_eq!(Language::Python.escape_reserved("import"), "import_");
        assert_eq!(Language::Node.escape_reserved("name"), "name");
    }
}
