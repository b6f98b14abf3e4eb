//! `templates watch`: pushes each change of the files to the drafts, and shows what the preview says.

use std::collections::HashMap;
use std::time::Duration;

use http::Method;
use serde_json::{Value, json};

use super::content::{HTML_FILE, MJML_FILE, SETTINGS_FILE, TEXT_FILE};
use super::folder::{FolderStamp, TemplateFolder};
use super::push::{self, PushStep};
use super::{TemplateSync, target};
use crate::client::Call;
use crate::error::CliError;
use crate::output;

/// Time between two looks at the files.
const PAUSE: Duration = Duration::from_millis(300);

pub(super) async fn run(sync: &TemplateSync) -> Result<(), CliError> {
    eprintln!("watching {}; press Ctrl-C to stop", sync.directory.display());
    let mut stamps: HashMap<String, FolderStamp> = HashMap::new();
    loop {
        let folders = sync.folders()?;
        stamps.retain(|alias, _| folders.iter().any(|folder| folder.alias == *alias));
        for folder in folders {
            let stamp = folder.stamp();
            if stamps.get(&folder.alias) != Some(&stamp) {
                let is_first = stamps.insert(folder.alias.clone(), stamp).is_none();
                push_one(sync, &folder, is_first).await?;
            }
        }
        tokio::time::sleep(PAUSE).await;
    }
}

/// Pushes a template. Errors that the next change may mend are printed.
async fn push_one(sync: &TemplateSync, folder: &TemplateFolder, is_first: bool) -> Result<(), CliError> {
    let pushed = async {
        let Some(content) = folder.read()? else { return Ok(None) };
        let step = push::decide(sync, folder, &content).await?;
        if is_first && matches!(step, PushStep::Keep(_)) {
            return Ok(None);
        }
        let result = push::carry_out(sync, folder, &content, step).await?;
        Ok(Some(result))
    };
    let say = |text: &str| output::print(&format!("{}  {}", folder.alias, output::safe_text(text)));
    match pushed.await {
        Ok(None) => Ok(()),
        Ok(Some(result)) if result.action == "conflict" => say(
            "not pushed: someone else has changed the draft; stop, then pull, or run `push --force` and watch again",
        ),
        Ok(Some(result)) => {
            say(&format!("{}, draft {}", result.action, result.draft_version))?;
            show_preview(sync, folder).await
        }
        Err(error) if is_passing(&error) => problems(&error).iter().try_for_each(|problem| say(problem)),
        Err(error) => Err(error),
    }
}

/// Returns whether the next change may succeed.
fn is_passing(error: &CliError) -> bool {
    match error {
        CliError::Api(error) => ![401, 403].contains(&error.status),
        CliError::Usage(_) | CliError::Connection(..) | CliError::Timeout(_) => true,
        _ => false,
    }
}

/// The places of errors in the markup; otherwise the message.
fn problems(error: &CliError) -> Vec<String> {
    let CliError::Api(api) = error else { return vec![error.to_string()] };
    let places = api.fields.get("details").and_then(|details| details["markup"].as_array());
    let place = |one: &Value| {
        let file = match one["field"].as_str() {
            Some("html") => HTML_FILE,
            Some("mjml") => MJML_FILE,
            Some("text") => TEXT_FILE,
            _ => SETTINGS_FILE,
        };
        let field = if file == SETTINGS_FILE {
            format!(" ({})", one["field"].as_str().unwrap_or_default())
        } else {
            String::new()
        };
        format!("{file}:{}:{}{field}: {}", one["line"], one["column"], one["message"].as_str().unwrap_or_default())
    };
    match places {
        Some(places) if !places.is_empty() => places.iter().map(place).collect(),
        _ => vec![api.message.clone()],
    }
}

async fn show_preview(sync: &TemplateSync, folder: &TemplateFolder) -> Result<(), CliError> {
    let call =
        Call::with_json(Method::POST, format!("{}/preview", target(&folder.alias)), &json!({"version": "draft"}));
    let preview = match sync.client.call(&call).await {
        Ok(answer) => answer.json()?,
        Err(error) if is_passing(&error) => {
            return problems(&error)
                .iter()
                .try_for_each(|problem| output::print(&format!("  {}", output::safe_text(problem))));
        }
        Err(error) => return Err(error),
    };
    let texts = |name: &str| {
        let list = preview[name].as_array().cloned().unwrap_or_default();
        list.iter().filter_map(Value::as_str).map(output::safe_text).collect::<Vec<_>>()
    };
    for (label, names) in [("missing", texts("missing_variables")), ("unused", texts("unused_variables"))] {
        if !names.is_empty() {
            output::print(&format!("  {label} variables: {}", names.join(", ")))?;
        }
    }
    texts("warnings").iter().try_for_each(|warning| output::print(&format!("  warning: {warning}")))
}
