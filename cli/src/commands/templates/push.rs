//! `templates push`: creates or updates drafts.

use http::Method;
use serde_json::{Value, json};

use super::content::TemplateContent;
use super::folder::TemplateFolder;
use super::{RemoteDraft, TemplateSync, conflict_result, print_rows, target};
use crate::client::Call;
use crate::commands::workflow::WorkflowRun;
use crate::error::CliError;

const ADVICE: &str = "someone else has changed it since the last pull; keep a copy of your files, run `templates pull \
    --force`, merge your changes, and push; or overwrite the draft with `templates push --force`";

/// The step that a push takes for one template.
pub(super) enum PushStep {
    /// The draft has the content of the files.
    Keep(Box<RemoteDraft>),
    Create,
    Update {
        if_version: u64,
        /// The draft has an MJML source.
        has_mjml: bool,
    },
    /// Others changed the draft.
    Conflict {
        draft_version: u64,
    },
}

/// The result of a push for one template.
pub(super) struct PushResult {
    pub(super) action: &'static str,
    pub(super) draft_version: u64,
    needs_publication: bool,
}

pub(super) async fn run(sync: &TemplateSync, run: &WorkflowRun<'_>) -> Result<(), CliError> {
    let (publish, is_rehearsal) = (run.flag("publish"), run.flag("dry-run"));
    let (mut rows, mut conflicts) = (Vec::new(), 0);
    let mut failure = None;
    for folder in sync.folders()? {
        match push_and_publish(sync, &folder, (publish, is_rehearsal)).await {
            Ok(row) => {
                conflicts += usize::from(row["action"] == "conflict");
                rows.push(row);
            }
            // Say what was done before.
            Err(error) => {
                failure = Some(error.about(&folder.alias));
                break;
            }
        }
    }
    print_rows(&rows, run.format())?;
    failure.map_or_else(|| conflict_result(conflicts, ADVICE), Err)
}

async fn push_and_publish(
    sync: &TemplateSync,
    folder: &TemplateFolder,
    (publish, is_rehearsal): (bool, bool),
) -> Result<Value, CliError> {
    let Some(content) = folder.read()? else { return Ok(json!({"template": folder.alias, "action": "removed"})) };
    let step = decide(sync, folder, &content).await?;
    if is_rehearsal {
        let (action, needs) = match &step {
            PushStep::Keep(draft) => ("unchanged", draft.has_unpublished_changes),
            PushStep::Create => ("would create", true),
            PushStep::Update { .. } => ("would update", true),
            PushStep::Conflict { .. } => ("conflict", false),
        };
        let detail = if publish && needs { "would publish" } else { "" };
        return Ok(json!({"template": folder.alias, "action": action, "draft_version": null, "detail": detail}));
    }
    let result = carry_out(sync, folder, &content, step).await?;
    let mut detail = String::new();
    if publish && result.needs_publication {
        let call = Call::with_json(Method::POST, format!("{}/publish", target(&folder.alias)), &json!({}));
        let answer = sync.client.call(&call).await?.json()?;
        detail = format!("published version {}", answer["version"]["number"]);
    }
    Ok(json!({
        "template": folder.alias, "action": result.action, "draft_version": result.draft_version, "detail": detail,
    }))
}

/// Compares the files, the draft and what the last push or pull left.
pub(super) async fn decide(
    sync: &TemplateSync,
    folder: &TemplateFolder,
    content: &TemplateContent,
) -> Result<PushStep, CliError> {
    let Some(draft) = sync.remote(&folder.alias).await? else { return Ok(PushStep::Create) };
    let state = folder.state();
    let is_unchanged =
        state.as_ref().is_some_and(|state| state.draft_version == draft.version && state.content == content.digest());
    if is_unchanged || draft.content == content.clone().with_defaults(&folder.alias) {
        return Ok(PushStep::Keep(Box::new(draft)));
    }
    let is_seen = state.is_some_and(|state| state.draft_version == draft.version);
    Ok(if is_seen || sync.force {
        PushStep::Update { if_version: draft.version, has_mjml: draft.content.mjml.is_some() }
    } else {
        PushStep::Conflict { draft_version: draft.version }
    })
}

/// Writes the draft and remembers its version.
pub(super) async fn carry_out(
    sync: &TemplateSync,
    folder: &TemplateFolder,
    content: &TemplateContent,
    step: PushStep,
) -> Result<PushResult, CliError> {
    let (call, action) = match step {
        PushStep::Keep(draft) => {
            folder.write_state(content, draft.version)?;
            let needs_publication = draft.has_unpublished_changes;
            return Ok(PushResult { action: "unchanged", draft_version: draft.version, needs_publication });
        }
        PushStep::Conflict { draft_version } => {
            return Ok(PushResult { action: "conflict", draft_version, needs_publication: false });
        }
        PushStep::Create => {
            let mut request = content.clone().with_defaults(&folder.alias).to_request();
            request["alias"] = json!(folder.alias);
            (Call::with_json(Method::POST, "/templates", &request), "created")
        }
        PushStep::Update { if_version, has_mjml } => {
            let mut request = content.to_request();
            request["if_version"] = json!(if_version);
            // The HTML that a source compiles to would not replace the source.
            if has_mjml && content.mjml.is_none() {
                request["mjml"] = Value::Null;
            }
            let mut call = Call::with_json(Method::PATCH, target(&folder.alias), &request);
            // Repeated, it would meet the version that it made itself.
            call.retry = false;
            (call, "updated")
        }
    };
    let answer = match sync.client.call(&call).await {
        Ok(answer) => answer.json()?,
        Err(CliError::Api(error)) if error.code == "conflict" && action == "updated" => {
            let draft_version = error.fields["details"]["draft_version"].as_u64().unwrap_or(0);
            return Ok(PushResult { action: "conflict", draft_version, needs_publication: false });
        }
        Err(error) => return Err(error),
    };
    let draft = RemoteDraft::from_api(&answer["template"])?;
    folder.write_state(content, draft.version)?;
    Ok(PushResult { action, draft_version: draft.version, needs_publication: draft.has_unpublished_changes })
}
