//! For tests: a dialog with prepared answers, and an installation.

use std::collections::VecDeque;

use super::dialog::Dialog;
use super::installation::{Answers, Installation};
use crate::doctor::render::OutputStyle;

/// Gives prepared answers, and collects what is printed.
pub(super) struct ScriptedDialog {
    answers: VecDeque<String>,
    can_ask: bool,
    pub(super) output: String,
}

impl ScriptedDialog {
    pub(super) fn new(answers: &[&str]) -> Self {
        Self {
            answers: answers.iter().map(|answer| format!("{answer}\n")).collect(),
            can_ask: true,
            output: String::new(),
        }
    }

    pub(super) fn without_terminal() -> Self {
        Self { can_ask: false, ..Self::new(&[]) }
    }
}

impl Dialog for ScriptedDialog {
    fn print(&mut self, text: &str) {
        self.output.push_str(text);
        self.output.push('\n');
    }

    fn ask(&mut self, prompt: &str) -> std::io::Result<Option<String>> {
        assert!(self.can_ask, "asked without a terminal: {prompt}");
        Ok(self.answers.pop_front())
    }

    fn can_ask(&self) -> bool {
        self.can_ask
    }

    fn style(&self) -> OutputStyle {
        OutputStyle::Words
    }

    fn is_live(&self) -> bool {
        false
    }

    fn show_live(&mut self, _: &[String]) {}
}

/// An installation of `mx1.example.net` with further keys in `[tls.acme]`, and further sections.
pub(super) fn installation(sections: &str) -> Installation {
    let text = format!(
        "hostname = \"mx1.example.net\"\ndata_dir = \"/nonexistent\"\n[dns]\nservers = [\"127.0.0.1:1\"]\n[api]\n\
         listen = \"127.0.0.1:443\"\nbase_url = \"https://mx1.example.net\"\ntls = true\n[tls.acme]\n{sections}"
    );
    Installation {
        config: crate::config::from_text(&text, []).unwrap(),
        answers: Answers {
            hostname: "mx1.example.net".parse().unwrap(),
            domain: "example.net".parse().unwrap(),
            owner: "you@example.org".parse().unwrap(),
            receive: false,
        },
        addresses: vec!["203.0.113.5".parse().unwrap()],
    }
}
