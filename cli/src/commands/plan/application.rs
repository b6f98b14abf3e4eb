//! `Application`: makes the changes of a plan. It stops at the first that fails, or that others made meanwhile.

use std::path::PathBuf;

use http::Method;
use serde_json::{Value, json};

use super::change::{ObjectAction, Plan, PlannedChange};
use super::object_kind::{ObjectKind, StateField, VersionCheck};
use crate::client::{ApiClient, Call};
use crate::error::CliError;
use crate::secret_file::SecretFile;

/// Fields that change although nobody changes the object.
const VOLATILE_FIELDS: &[&str] = &[
    "counts",
    "records",
    "dkim",
    "dkim_ready",
    "degraded_since",
    "verified_at",
    "last_checked_at",
    "failing_since",
    "disabled_reason",
    "affiliate_count",
    "updated_at",
];

/// The changes made so far.
pub(super) struct Application<'a> {
    client: &'a ApiClient,
    secrets: Option<PathBuf>,
    results: Vec<Value>,
}

impl<'a> Application<'a> {
    pub(super) fn new(client: &'a ApiClient, secrets: Option<&str>) -> Self {
        Self { client, secrets: secrets.map(PathBuf::from), results: Vec::new() }
    }

    pub(super) fn into_results(self) -> Vec<Value> {
        self.results
    }

    /// Makes all changes.
    pub(super) async fn run(&mut self, plan: &Plan) -> Result<(), CliError> {
        for (index, change) in plan.changes.iter().enumerate() {
            let made = match &change.action {
                ObjectAction::Create => self.create(change).await,
                ObjectAction::Update(seen) => self.update(change, seen).await,
                ObjectAction::Delete(seen) => self.delete(change, seen).await,
            };
            if let Err(error) = made {
                let error = self.explain(error, change);
                self.record(change, "failed", json!({"error": error.to_string()}));
                let rest = plan.changes.len() - index - 1;
                if rest > 0 {
                    eprintln!("stopped after {index} of {} changes; run `postrider plan` again", plan.changes.len());
                }
                return Err(error);
            }
        }
        Ok(())
    }

    fn record(&mut self, change: &PlannedChange, result: &str, more: Value) {
        let mut entry =
            json!({"result": result, "section": change.kind.section, "object": change.kind.noun, "key": change.key});
        for (name, value) in more.as_object().into_iter().flatten() {
            entry[name] = value.clone();
        }
        self.results.push(entry);
    }

    /// Names the object in an error, and says what a conflict means.
    fn explain(&self, error: CliError, change: &PlannedChange) -> CliError {
        let name = format!("{} {}", change.kind.noun, change.key);
        match error {
            CliError::Api(error) if error.code == "conflict" && change.action != ObjectAction::Create => {
                let message = format!("{name}: {} (someone else may have changed it since the plan)", error.message);
                CliError::Failed(message)
            }
            other => other.about(&name),
        }
    }

    async fn create(&mut self, change: &PlannedChange) -> Result<(), CliError> {
        let kind = change.kind;
        let existing = kind.list(self.client).await?;
        if existing.iter().any(|object| kind.key_of(object) == change.key) {
            return Err(changed_since(change));
        }
        let secret = self.secret_file(change)?;
        let call = Call::with_json(Method::POST, kind.path, &Value::Object(change.body()));
        let call = Call { idempotency_key: takes_key(kind).then(|| ulid::Ulid::generate().to_string()), ..call };
        let mut answer = self.client.call(&call).await?.json()?;
        let mut more = json!({"id": answer[kind.object_field]["id"]});
        match secret {
            Some(file) => {
                file.take_from(&mut answer)?;
                more["saved_to"] = answer["saved_to"].clone();
            }
            None if answer["secret"].is_string() => more["secret"] = answer["secret"].clone(),
            None => {}
        }
        // The secret is kept even if the next call fails.
        self.record(change, "created", more);
        let object = answer[kind.object_field].clone();
        self.set_state(change, &object).await
    }

    /// A new file for the secret of a new webhook.
    fn secret_file(&self, change: &PlannedChange) -> Result<Option<SecretFile>, CliError> {
        let Some(directory) = self.secrets.as_ref().filter(|_| change.kind.section == "webhooks") else {
            return Ok(None);
        };
        std::fs::create_dir_all(directory)
            .map_err(|error| CliError::Io(format!("cannot make {}: {error}", directory.display())))?;
        let name = change.key.split_once("://").map_or(change.key.as_str(), |(_, rest)| rest);
        let name: String = name.chars().map(|c| if c.is_ascii_alphanumeric() || c == '.' { c } else { '-' }).collect();
        let path = directory.join(format!("{}.secret", name.chars().take(200).collect::<String>()));
        SecretFile::create(&path.display().to_string()).map(Some)
    }

    async fn update(&mut self, change: &PlannedChange, seen: &Value) -> Result<(), CliError> {
        let (kind, id) = (change.kind, seen["id"].as_str().unwrap_or_default());
        let mut object = self.read_unchanged(change, seen).await?;
        let mut body = change.body();
        if !body.is_empty() {
            let mut call = Call::with_json(kind.update_method.clone(), kind.target(id), &Value::Null);
            match kind.version {
                VersionCheck::None => {}
                VersionCheck::DraftVersion => drop(body.insert("if_version".to_owned(), seen["draft_version"].clone())),
                VersionCheck::IfMatch => call.if_match = seen["updated_at"].as_str().map(|at| format!("\"{at}\"")),
            }
            // Repeated, it would meet the version that it made itself.
            call.retry = kind.version == VersionCheck::None;
            call.body = Some(Value::Object(body).to_string().into());
            object = self.client.call(&call).await?.json()?[kind.object_field].clone();
        }
        self.set_state(change, &object).await?;
        self.record(change, "updated", json!({"id": id}));
        Ok(())
    }

    async fn delete(&mut self, change: &PlannedChange, seen: &Value) -> Result<(), CliError> {
        let id = seen["id"].as_str().unwrap_or_default();
        self.read_unchanged(change, seen).await?;
        self.client.call(&Call { method: Method::DELETE, ..Call::get(change.kind.target(id)) }).await?;
        self.record(change, "deleted", json!({"id": id}));
        Ok(())
    }

    /// Reads the object again and compares it with what the plan saw.
    async fn read_unchanged(&self, change: &PlannedChange, seen: &Value) -> Result<Value, CliError> {
        let object = match change.kind.get(self.client, seen["id"].as_str().unwrap_or_default()).await {
            Err(CliError::Api(error)) if error.status == 404 => return Err(changed_since(change)),
            other => other?,
        };
        if settled(&object) == settled(seen) { Ok(object) } else { Err(changed_since(change)) }
    }

    /// Publishes a template, or starts or pauses an automation.
    async fn set_state(&self, change: &PlannedChange, object: &Value) -> Result<(), CliError> {
        let Some(state) = change.new_state() else { return Ok(()) };
        let (kind, id) = (change.kind, object["id"].as_str().unwrap_or_default());
        let call = match kind.state {
            StateField::None => return Ok(()),
            StateField::Published => Call::with_json(Method::POST, format!("{}/publish", kind.target(id)), &json!({})),
            // A new automation is a draft, which does not run: nothing is to be paused.
            StateField::Status if state == "paused" && object["status"] == "draft" => return Ok(()),
            StateField::Status => {
                let action = if state == "active" { "activate" } else { "pause" };
                Call::with_json(kind.update_method.clone(), kind.target(id), &json!({"action": action}))
            }
        };
        self.client.call(&call).await.map(drop)
    }
}

/// Returns whether the creation takes an idempotency key.
fn takes_key(kind: &ObjectKind) -> bool {
    kind.version == VersionCheck::IfMatch
}

/// The object without volatile fields.
fn settled(object: &Value) -> Value {
    let mut object = object.clone();
    if let Some(fields) = object.as_object_mut() {
        fields.retain(|name, _| !VOLATILE_FIELDS.contains(&name.as_str()));
    }
    object
}

fn changed_since(change: &PlannedChange) -> CliError {
    CliError::Failed(format!(
        "{} {}: someone else has changed it since the plan was made; it was left as it is. Run `postrider plan` again",
        change.kind.noun, change.key
    ))
}
