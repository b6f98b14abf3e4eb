//! `templates diff`: how the files differ from the drafts, as a unified diff.

use similar::TextDiff;

use super::folder::TemplateFolder;
use super::{TemplateSync, push};
use crate::error::{CliError, exit_status};
use crate::output;

pub(super) async fn run(sync: &TemplateSync) -> Result<(), CliError> {
    let mut differs = false;
    let folders = sync.folders()?;
    for folder in &folders {
        let Some(content) = folder.read()? else { continue };
        let old = match push::decide(sync, folder, &content).await? {
            push::PushStep::Keep(_) => continue,
            push::PushStep::Create => None,
            _ => sync.remote(&folder.alias).await?,
        };
        let new = content.with_defaults(&folder.alias).files()?;
        let old = old.map(|draft| draft.content.files()).transpose()?;
        for (index, (file, new)) in new.iter().enumerate() {
            let old = old.as_ref().and_then(|files| files.get(index)).and_then(|(_, text)| text.as_deref());
            differs |= print_diff(&folder.alias, file, old, new.as_deref())?;
        }
    }
    let names = sync.remote_names().await?;
    for name in names.iter().filter(|name| folders.iter().all(|folder: &TemplateFolder| folder.alias != **name)) {
        output::print(&format!("only on the server: {}", output::safe_text(name)))?;
        differs = true;
    }
    if differs { Err(CliError::Differences(exit_status::REFUSED)) } else { Ok(()) }
}

/// Prints the difference of a file. Returns whether there is one.
fn print_diff(alias: &str, file: &str, old: Option<&str>, new: Option<&str>) -> Result<bool, CliError> {
    if old == new {
        return Ok(false);
    }
    let label = |side: &str, text: Option<&str>| match text {
        Some(_) => format!("{side}/{alias}/{file}"),
        None => "/dev/null".to_owned(),
    };
    let diff = TextDiff::from_lines(old.unwrap_or_default(), new.unwrap_or_default());
    let text = diff.unified_diff().header(&label("server", old), &label("files", new)).to_string();
    // Empty files differ from missing ones.
    let text =
        if text.is_empty() { format!("--- {}\n+++ {}\n", label("server", old), label("files", new)) } else { text };
    output::print(&text.lines().map(output::safe_line).collect::<Vec<_>>().join("\n"))?;
    Ok(true)
}
