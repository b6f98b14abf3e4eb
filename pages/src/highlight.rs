//! Marks strings, numbers, keywords and comments of code for the style sheet. It is a scanner, no parser: it marks what
//! the short examples of the reference contain.

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CodeLanguage {
    Json,
    Shell,
    JavaScript,
    Python,
    Php,
    Ruby,
    Go,
    Toml,
    Http,
    Text,
}

impl CodeLanguage {
    /// The name after a fence of Markdown.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Json => "json",
            Self::Shell => "sh",
            Self::JavaScript => "js",
            Self::Python => "python",
            Self::Php => "php",
            Self::Ruby => "ruby",
            Self::Go => "go",
            Self::Toml => "toml",
            Self::Http => "http",
            Self::Text => "text",
        }
    }

    /// The language of a fence of Markdown, with its name for readers.
    pub fn of_fence(fence: &str) -> (Self, &'static str) {
        match fence.split(',').next().unwrap_or_default() {
            "json" => (Self::Json, "JSON"),
            "sh" | "bash" => (Self::Shell, "Shell"),
            "js" | "ts" => (Self::JavaScript, "JavaScript"),
            "python" => (Self::Python, "Python"),
            "php" => (Self::Php, "PHP"),
            "ruby" => (Self::Ruby, "Ruby"),
            "go" => (Self::Go, "Go"),
            "toml" => (Self::Toml, "TOML"),
            "java" => (Self::Go, "Java"),
            "csharp" => (Self::Go, "C#"),
            "ini" | "properties" => (Self::Text, "Settings"),
            "yaml" => (Self::Text, "YAML"),
            "html" => (Self::Text, "HTML"),
            "sql" => (Self::Text, "SQL"),
            "http" => (Self::Http, "HTTP"),
            _ => (Self::Text, "Text"),
        }
    }

    const fn keywords(self) -> &'static [&'static str] {
        match self {
            Self::Json => &["true", "false", "null"],
            Self::Shell => &["curl", "export", "postrider", "pip", "npm", "composer", "gem", "go", "install"],
            Self::JavaScript => &[
                "import", "from", "export", "const", "let", "await", "async", "new", "if", "else", "for", "of",
                "return", "throw", "true", "false", "null", "function",
            ],
            Self::Python => &[
                "import", "from", "def", "if", "else", "for", "in", "return", "raise", "try", "except", "as", "with",
                "True", "False", "None",
            ],
            Self::Php => &[
                "use", "new", "if", "else", "foreach", "as", "return", "throw", "try", "catch", "echo", "exit", "true",
                "false", "null", "require",
            ],
            Self::Ruby => &[
                "require", "def", "end", "if", "else", "do", "return", "raise", "begin", "rescue", "case", "when",
                "puts", "true", "false", "nil",
            ],
            Self::Go => &[
                "package", "import", "func", "if", "else", "for", "range", "return", "var", "switch", "case", "defer",
                "nil", "true", "false",
            ],
            Self::Toml => &["true", "false"],
            Self::Http | Self::Text => &[],
        }
    }

    const fn marks_numbers(self) -> bool {
        !matches!(self, Self::Shell | Self::Http | Self::Text)
    }

    fn comment_start(self) -> Option<&'static str> {
        match self {
            Self::Shell | Self::Python | Self::Ruby | Self::Toml => Some("# "),
            Self::JavaScript | Self::Php | Self::Go => Some("// "),
            Self::Json | Self::Http | Self::Text => None,
        }
    }

    fn is_quote(self, one: char) -> bool {
        match self {
            Self::Json | Self::Toml => one == '"',
            Self::JavaScript | Self::Go => matches!(one, '"' | '\'' | '`'),
            Self::Shell | Self::Python | Self::Php | Self::Ruby => matches!(one, '"' | '\''),
            Self::Http | Self::Text => false,
        }
    }
}

/// A role of a piece of code, which is a class of the style sheet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TokenRole {
    Plain,
    Comment,
    Keyword,
    Literal,
    /// A quoted name before a colon.
    Key,
    Number,
}

impl TokenRole {
    /// The class, `None` for plain code.
    pub const fn class(self) -> Option<&'static str> {
        match self {
            Self::Plain => None,
            Self::Comment => Some("tc"),
            Self::Keyword => Some("tk"),
            Self::Literal => Some("ts"),
            Self::Key => Some("tp"),
            Self::Number => Some("tn"),
        }
    }
}

/// Splits code into pieces, which together are the code.
pub fn tokens(language: CodeLanguage, code: &str) -> Vec<(TokenRole, &str)> {
    let mut pieces: Vec<(TokenRole, &str)> = Vec::new();
    let (mut plain_start, mut position) = (0, 0);
    while position < code.len() {
        let (role, length) = scan(language, code, position);
        if role != TokenRole::Plain {
            if plain_start < position {
                pieces.push((TokenRole::Plain, &code[plain_start..position]));
            }
            pieces.push((role, &code[position..position + length]));
            plain_start = position + length;
        }
        position += length;
    }
    if plain_start < code.len() {
        pieces.push((TokenRole::Plain, &code[plain_start..]));
    }
    pieces
}

/// The piece at a position: its role and its length in bytes, which is at least that of a character.
fn scan(language: CodeLanguage, code: &str, position: usize) -> (TokenRole, usize) {
    let rest = &code[position..];
    let first = rest.chars().next().unwrap_or(' ');
    let is_line_start = position == 0 || code[..position].ends_with(['\n', ' ']);
    if is_line_start && language.comment_start().is_some_and(|start| rest.starts_with(start)) {
        return (TokenRole::Comment, rest.find('\n').unwrap_or(rest.len()));
    }
    if language.is_quote(first) {
        let length = quoted_length(rest, first);
        let is_key = rest[length..].starts_with(':') || rest[length..].starts_with(" =>");
        return (if is_key { TokenRole::Key } else { TokenRole::Literal }, length);
    }
    let is_word = |one: char| one.is_alphanumeric() || one == '_';
    let follows_word = code[..position].ends_with(|one: char| is_word(one) || one == '-' || one == '/' || one == '.');
    if is_word(first) {
        let word = &rest[..rest.find(|one| !is_word(one)).unwrap_or(rest.len())];
        let role = if follows_word {
            TokenRole::Plain
        } else if language.keywords().contains(&word) {
            TokenRole::Keyword
        } else if word.bytes().all(|byte| byte.is_ascii_digit()) && language.marks_numbers() {
            TokenRole::Number
        } else {
            TokenRole::Plain
        };
        return (role, word.len());
    }
    (TokenRole::Plain, first.len_utf8())
}

/// The length of a quoted text with its quotes; to the end if the last quote is missing.
fn quoted_length(text: &str, quote: char) -> usize {
    let mut is_escaped = false;
    for (position, one) in text.char_indices().skip(1) {
        if is_escaped {
            is_escaped = false;
        } else if one == '\\' {
            is_escaped = true;
        } else if one == quote {
            return position + one.len_utf8();
        }
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn marked(language: CodeLanguage, code: &str) -> Vec<(TokenRole, &str)> {
        tokens(language, code).into_iter().filter(|(role, _)| *role != TokenRole::Plain).collect()
    }

    #[test]
    fn pieces_have_their_roles() {
        assert_eq!(
            marked(CodeLanguage::Json, "{\"a\": \"b\\\"\", \"c\": 5, \"d\": null}"),
            [
                (TokenRole::Key, "\"a\""),
                (TokenRole::Literal, "\"b\\\"\""),
                (TokenRole::Key, "\"c\""),
                (TokenRole::Number, "5"),
                (TokenRole::Key, "\"d\""),
                (TokenRole::Keyword, "null"),
            ]
        );
        assert_eq!(marked(CodeLanguage::Python, "x # if"), [(TokenRole::Comment, "# if")]);
    }

    #[test]
    fn pieces_together_are_the_code() {
        for code in ["", "\"", "'\\", "é\u{1f600}\"ü", "const a = `x`; // é", "{}\n# \n"] {
            for language in [CodeLanguage::Json, CodeLanguage::Shell, CodeLanguage::Go, CodeLanguage::Text] {
                let joined: String = tokens(language, code).into_iter().map(|(_, piece)| piece).collect();
                assert_eq!(joined, code);
            }
        }
    }
}
