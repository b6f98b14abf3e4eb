//! The tree of commands: nouns, nouns below nouns, and verbs.

use clap::Command;

use crate::arguments::operation_command;
use crate::commands;
use crate::field::Field;
use crate::nouns::sentence_about;
use crate::operation::{Operation, OperationTable};

/// The command that a command line selects.
pub(crate) enum Selection<'a> {
    Operation(Box<Operation>, &'a [String]),
    /// A command written by hand below a noun, for example `templates push`.
    Workflow(String, &'a [String]),
    Help(Box<Command>),
    Unknown(String),
}

/// Returns whether a word begins the command of an operation.
pub(crate) fn is_noun(table: &OperationTable<'_>, word: &str) -> bool {
    table.heads().any(|head| head.command.split(' ').next() == Some(word))
}

/// Finds the command of the first words.
pub(crate) fn select<'a>(table: &OperationTable<'_>, arguments: &'a [String]) -> Selection<'a> {
    let words = arguments.iter().take_while(|word| !word.starts_with('-')).count();
    for length in (1..=words.min(3)).rev() {
        let (words, rest) = arguments.split_at(length);
        let command = words.join(" ");
        if commands::WORKFLOWS.iter().any(|workflow| workflow.command == command) {
            return Selection::Workflow(command, rest);
        }
        if let Some(operation) = table.find(&command) {
            return Selection::Operation(Box::new(operation), rest);
        }
    }
    let words: Vec<&str> = arguments.iter().take(words).map(String::as_str).filter(|word| *word != "help").collect();
    group_help(table, &words)
}

/// The help of a group: the groups and verbs below its words.
fn group_help<'a>(table: &OperationTable<'_>, words: &[&str]) -> Selection<'a> {
    let prefix = words.iter().map(|word| format!("{word} ")).collect::<String>();
    let mut children: Vec<(String, String)> = Vec::new();
    let mut add = |command: &str, summary: String| {
        let Some(rest) = command.strip_prefix(prefix.as_str()) else { return };
        let (word, is_verb) = rest.split_once(' ').map_or((rest, true), |(word, _)| (word, false));
        if !children.iter().any(|(known, _)| known == word) {
            let about = if is_verb { summary } else { sentence_about(&format!("{prefix}{word}")).to_owned() };
            children.push((word.to_owned(), about));
        }
    };
    for head in table.heads() {
        add(head.command, head.summary());
    }
    for workflow in commands::WORKFLOWS.iter().filter(|workflow| !workflow.is_hidden) {
        add(workflow.command, workflow.about.to_owned());
    }
    if children.is_empty() {
        let group = words.split_last().map(|(_, group)| group.join(" ")).unwrap_or_default();
        let help = if group.is_empty() { "postrider --help".to_owned() } else { format!("postrider {group} --help") };
        return Selection::Unknown(format!("`{}` is not a command; `{help}` lists them", words.join(" ")));
    }
    let mut command = Command::new("postrider")
        .bin_name(format!("postrider {}", words.join(" ")).trim_end().to_owned())
        .version(env!("CARGO_PKG_VERSION"))
        .disable_help_subcommand(true)
        .subcommand_value_name("COMMAND");
    if words.is_empty() {
        command = command.about("Send and receive email through a postrider server");
        let is_shown = |workflow: &&commands::Workflow| !workflow.is_hidden && !workflow.command.contains(' ');
        for workflow in commands::WORKFLOWS.iter().filter(is_shown) {
            command = command.subcommand(Command::new(workflow.command).about(workflow.about));
        }
        children.retain(|(word, _)| !commands::is_single_word(word));
    }
    for (word, about) in children {
        command = command.subcommand(Command::new(word).about(about));
    }
    Selection::Help(Box::new(command))
}

/// The whole tree, for completion scripts and manual pages.
pub(crate) fn whole(table: &OperationTable<'_>) -> Command {
    let mut root = Command::new("postrider").version(env!("CARGO_PKG_VERSION")).disable_help_subcommand(true);
    for workflow in commands::WORKFLOWS {
        let words: Vec<&str> = workflow.command.split(' ').collect();
        root = insert(root, "", &words, |name| workflow.parser().name(name.to_owned()).hide(workflow.is_hidden));
    }
    for operation in table.all() {
        let fields = Field::of_operation(&operation, table);
        let words: Vec<&str> = operation.command.split(' ').collect();
        root = insert(root, "", &words, |name| operation_command(&operation, &fields, name));
    }
    root
}

/// Adds a command below its groups.
///
/// `above`: the words of the parent, each with a space after it.
fn insert(parent: Command, above: &str, words: &[&str], leaf: impl FnOnce(&str) -> Command) -> Command {
    match words {
        [] => parent,
        [name] => parent.subcommand(leaf(name)),
        [group, rest @ ..] => {
            let noun = format!("{above}{group}");
            let above = format!("{noun} ");
            if parent.find_subcommand(group).is_some() {
                return parent.mut_subcommand(*group, |child| insert(child, &above, rest, leaf));
            }
            let child = Command::new((*group).to_owned()).about(sentence_about(&noun)).disable_help_subcommand(true);
            parent.subcommand(insert(child, &above, rest, leaf))
        }
    }
}
