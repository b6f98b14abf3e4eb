//! `man`: writes manual pages of all commands, for packages.

use std::path::{Path, PathBuf};

use clap::{Arg, Command};
use serde_json::json;

use super::workflow::WorkflowRun;
use crate::error::CliError;
use crate::operation::OperationTable;
use crate::tree;

pub(super) fn command() -> Command {
    super::described("man", &["postrider man man1"])
        .arg(Arg::new("dir").value_name("DIR").required(true).help("Directory; it is created if it does not exist"))
}

pub(super) fn run(arguments: &[String], table: &OperationTable<'_>) -> Result<(), CliError> {
    let run = WorkflowRun::parse(command(), arguments, table)?;
    let directory = PathBuf::from(run.text("dir").unwrap_or_default());
    let failed = |error: &std::io::Error| CliError::Io(format!("cannot write to {}: {error}", directory.display()));
    std::fs::create_dir_all(&directory).map_err(|error| failed(&error))?;
    let mut root = tree::whole(table).about("Send and receive email through a postrider server");
    root.build();
    let pages = write_pages(&root, "postrider", &directory).map_err(|error| failed(&error))?;
    run.print(&json!({"pages": pages, "directory": directory}))
}

/// Writes the page of a command and of those below it. Returns how many.
fn write_pages(command: &Command, name: &str, directory: &Path) -> std::io::Result<usize> {
    // The page names the whole command, for example postrider-emails-send(1).
    let titled = command.clone().name(name.to_owned()).display_name(name.to_owned());
    let mut page = Vec::new();
    clap_mangen::Man::new(titled).title(name.to_uppercase()).render(&mut page)?;
    std::fs::write(directory.join(format!("{name}.1")), page)?;
    let mut count = 1;
    for child in command.get_subcommands().filter(|child| !child.is_hide_set()) {
        count += write_pages(child, &format!("{name}-{}", child.get_name()), directory)?;
    }
    Ok(count)
}
