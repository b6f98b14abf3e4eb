//! The examples in the help of a command.

/// Columns of a line; help is wrapped at the width of the terminal, which is seldom narrower.
const COLUMNS: usize = 80;
const INDENT: &str = "  ";
const CONTINUATION_INDENT: &str = "    ";

/// The section with a command's examples. Long commands continue on the next line behind a backslash, so that they can be
/// copied.
pub(crate) fn section<T: AsRef<str>>(commands: &[T]) -> String {
    let mut section = String::from(if commands.len() == 1 { "Example:" } else { "Examples:" });
    for command in commands {
        section.push_str(&format!("\n{INDENT}{}", in_lines(command.as_ref())));
    }
    section
}

fn in_lines(command: &str) -> String {
    let (mut lines, mut column) = (String::new(), INDENT.len());
    for part in parts(command) {
        if lines.is_empty() {
            lines.push_str(part);
        } else if column + 1 + part.len() + " \\".len() > COLUMNS {
            lines.push_str(&format!(" \\\n{CONTINUATION_INDENT}{part}"));
            column = CONTINUATION_INDENT.len();
        } else {
            lines.push_str(&format!(" {part}"));
            column += 1;
        }
        column += part.len();
    }
    lines
}

/// Splits a command before each long flag and redirection that is not in quotes.
fn parts(command: &str) -> Vec<&str> {
    let (mut parts, mut begin, mut is_quoted) = (Vec::new(), 0, false);
    for (at, character) in command.char_indices() {
        match character {
            '\'' => is_quoted = !is_quoted,
            ' ' if !is_quoted
                && ["--", "> "]
                    .iter()
                    .any(|&next| command.get(at + 1..).is_some_and(|rest| rest.starts_with(next))) =>
            {
                parts.extend(command.get(begin..at));
                begin = at + 1;
            }
            _ => {}
        }
    }
    parts.extend(command.get(begin..));
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_commands_continue_on_the_next_line() {
        let short = section(&["postrider open", "postrider open docs"]);
        assert_eq!(short, "Examples:\n  postrider open\n  postrider open docs");
        let text = format!("'{} --to x'", "a".repeat(40));
        let long = section(&[format!("postrider emails send --to a@example.net --text {text} --subject Hello")]);
        let expected =
            format!("Example:\n  postrider emails send --to a@example.net \\\n    --text {text} --subject Hello");
        assert_eq!(long, expected);
    }
}
