//! `templates pull`: writes the drafts to files.

use serde_json::json;

use super::folder::TemplateFolder;
use super::{TemplateSync, conflict_result, print_rows};
use crate::commands::workflow::WorkflowRun;
use crate::error::CliError;

const ADVICE: &str = "its files have changes that the draft does not have; keep a copy of them, run `templates pull \
    --force`, merge your changes, and push";

pub(super) async fn run(sync: &TemplateSync, run: &WorkflowRun<'_>) -> Result<(), CliError> {
    let (mut rows, mut conflicts, is_rehearsal) = (Vec::new(), 0, run.flag("dry-run"));
    let names = sync.remote_names().await?;
    if let Some(missing) = sync.only.iter().find(|only| !names.contains(only)) {
        return Err(CliError::Failed(format!("the server has no template {missing}")));
    }
    for name in names {
        // A template that was deleted meanwhile.
        let Some(draft) = sync.remote(&name).await? else { continue };
        let folder = TemplateFolder::of(&sync.directory, &name)?;
        let action = match folder.read()? {
            None if is_rehearsal => "would create",
            None => "created",
            Some(local) if local.clone().with_defaults(&name) == draft.content => {
                if !is_rehearsal {
                    folder.write_state(&local, draft.version)?;
                }
                rows.push(json!({"template": name, "action": "unchanged", "draft_version": draft.version}));
                continue;
            }
            Some(local) => {
                let state = folder.state();
                let is_untouched = state.as_ref().is_some_and(|state| state.content == local.digest());
                // Nothing is new on the server; the files may be.
                if state.is_some_and(|state| state.draft_version == draft.version) && (is_untouched || !sync.force) {
                    let detail = if is_untouched { "" } else { "the files have changes that are not pushed" };
                    rows.push(json!({
                        "template": name, "action": "unchanged", "draft_version": draft.version, "detail": detail,
                    }));
                    continue;
                }
                if !is_untouched && !sync.force {
                    conflicts += 1;
                    rows.push(json!({"template": name, "action": "conflict", "draft_version": draft.version}));
                    continue;
                }
                if is_rehearsal { "would update" } else { "updated" }
            }
        };
        if !is_rehearsal {
            folder.write(&draft.content, draft.version)?;
        }
        rows.push(json!({"template": name, "action": action, "draft_version": draft.version}));
    }
    print_rows(&rows, run.format())?;
    conflict_result(conflicts, ADVICE)
}
