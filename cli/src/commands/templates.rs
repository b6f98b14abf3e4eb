//! `templates push|pull|diff|watch`: templates in a directory that is tracked by version control.
//!
//! ```text
//! DIR/ALIAS/template.toml    name, subject, category, from, reply_to, preheader, unsubscribe_enabled, variables
//!           body.html        or body.mjml
//!           body.txt
//!           .postrider.json  the draft_version of the last push or pull, and a digest of the content it had
//! ```
//!
//! Nobody's change is overwritten: `push` sends `if_version`, and `pull` compares the digest with the files.

mod content;
mod diff;
mod folder;
mod pull;
mod push;
mod watch;

use std::path::PathBuf;

use clap::{Arg, ArgAction, Command};
use serde_json::{Value, json};

use self::content::TemplateContent;
use self::folder::TemplateFolder;
use super::workflow::WorkflowRun;
use crate::arguments::{option, switch};
use crate::client::{ApiClient, Call};
use crate::error::CliError;
use crate::operation::OperationTable;
use crate::output::{self, Format};
use mcp::arguments::encode;

fn directory_command(name: &'static str, example: &'static str) -> Command {
    super::described(name, &[example])
        .arg(Arg::new("dir").value_name("DIR").required(true).help("Directory with a folder for each template"))
        .arg(
            option("only", "A,B", "Only the templates with these aliases")
                .value_delimiter(',')
                .action(ArgAction::Append),
        )
}

pub(super) fn push_command() -> Command {
    directory_command("templates push", "postrider templates push templates --publish")
        .arg(switch("publish", "Also publish the drafts"))
        .arg(switch("dry-run", "Show what would be done"))
        .arg(switch("force", "Overwrite drafts that someone else has changed"))
}

pub(super) fn pull_command() -> Command {
    directory_command("templates pull", "postrider templates pull templates")
        .arg(switch("dry-run", "Show what would be written"))
        .arg(switch("force", "Overwrite files that have been changed"))
}

pub(super) fn diff_command() -> Command {
    directory_command("templates diff", "postrider templates diff templates")
        .about("Show how a directory differs from the drafts (exit status 1 if it does)")
}

pub(super) fn watch_command() -> Command {
    directory_command("templates watch", "postrider templates watch templates")
        .about("Push each change in a directory to the drafts and show the preview's findings")
}

/// Runs `push`, `pull`, `diff` or `watch`.
pub(super) async fn run(verb: &str, arguments: &[String], table: &OperationTable<'_>) -> Result<(), CliError> {
    let command = match verb {
        "push" => push_command(),
        "pull" => pull_command(),
        "diff" => diff_command(),
        _ => watch_command(),
    };
    let run = WorkflowRun::parse(command, arguments, table)?;
    let sync = TemplateSync {
        client: run.client()?,
        directory: PathBuf::from(run.text("dir").unwrap_or_default()),
        only: run.texts("only"),
        force: run.flag("force"),
    };
    match verb {
        "push" => Box::pin(push::run(&sync, &run)).await,
        "pull" => Box::pin(pull::run(&sync, &run)).await,
        "diff" => Box::pin(diff::run(&sync)).await,
        _ => Box::pin(watch::run(&sync)).await,
    }
}

/// A directory of templates and the server that has their drafts.
struct TemplateSync {
    client: ApiClient,
    directory: PathBuf,
    /// Aliases of the templates; empty for all.
    only: Vec<String>,
    force: bool,
}

/// A draft of the server.
struct RemoteDraft {
    version: u64,
    content: TemplateContent,
    has_unpublished_changes: bool,
}

impl RemoteDraft {
    fn from_api(template: &Value) -> Result<Self, CliError> {
        Ok(Self {
            version: template["draft_version"].as_u64().unwrap_or(0),
            content: TemplateContent::from_api(template)?,
            has_unpublished_changes: template["has_unpublished_changes"] == true
                || template["published_version"].is_null(),
        })
    }
}

impl TemplateSync {
    fn wants(&self, alias: &str) -> bool {
        self.only.is_empty() || self.only.iter().any(|only| only == alias)
    }

    /// The folders of the directory, by name.
    fn folders(&self) -> Result<Vec<TemplateFolder>, CliError> {
        let folders = TemplateFolder::list(&self.directory)?;
        let folders: Vec<TemplateFolder> = folders.into_iter().filter(|folder| self.wants(&folder.alias)).collect();
        match self.only.iter().find(|only| folders.iter().all(|folder| folder.alias != **only)) {
            Some(missing) => Err(CliError::usage(format!("{} has no template {missing}", self.directory.display()))),
            None => Ok(folders),
        }
    }

    /// The names of the server's templates: the alias, or the id of a template without one.
    async fn remote_names(&self) -> Result<Vec<String>, CliError> {
        let templates = self.client.list("/templates", "templates").await?;
        let name = |template: &Value| template["alias"].as_str().or(template["id"].as_str()).map(str::to_owned);
        let is_live = |template: &&Value| template["status"] != "archived";
        Ok(templates.iter().filter(is_live).filter_map(name).filter(|name| self.wants(name)).collect())
    }

    /// The draft of a template; `None` if the server has none.
    async fn remote(&self, name: &str) -> Result<Option<RemoteDraft>, CliError> {
        match self.client.call(&Call::get(target(name))).await {
            Ok(answer) => Ok(Some(RemoteDraft::from_api(&answer.json()?["template"])?)),
            Err(CliError::Api(error)) if error.status == 404 => Ok(None),
            Err(error) => Err(error),
        }
    }
}

fn target(name: &str) -> String {
    format!("/templates/{}", encode(name))
}

/// Prints a row for each template.
fn print_rows(rows: &[Value], format: Format) -> Result<(), CliError> {
    match format {
        Format::Text if rows.is_empty() => output::print("no templates"),
        Format::Text => {
            let columns = ["template", "action", "draft_version", "detail"].map(str::to_owned);
            output::print(&output::table(rows, Some(&columns)))
        }
        _ => output::print_json(&json!({"templates": rows})),
    }
}

/// Fails if a template was not written because of a conflict.
fn conflict_result(conflicts: usize, advice: &str) -> Result<(), CliError> {
    match conflicts {
        0 => Ok(()),
        1 => Err(CliError::Failed(format!("1 template was not written: {advice}"))),
        n => Err(CliError::Failed(format!("{n} templates were not written: {advice}"))),
    }
}
