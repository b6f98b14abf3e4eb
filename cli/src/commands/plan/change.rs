//! `Plan`: the differences between a declaration and the account.

use serde_json::{Map, Value, json};

use super::declaration::{Declaration, DeclaredObject, DeclaredSection};
use super::object_kind::{ObjectKind, StateField};
use super::value_match::{is_empty, matches};
use crate::client::ApiClient;
use crate::error::CliError;

/// A field that differs.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct FieldChange {
    pub(super) field: String,
    pub(super) old: Value,
    pub(super) new: Value,
}

/// The action that a change is.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum ObjectAction {
    Create,
    /// The server's object when the plan was made.
    Update(Value),
    Delete(Value),
}

impl ObjectAction {
    pub(super) const fn name(&self) -> &'static str {
        match self {
            Self::Create => "create",
            Self::Update(_) => "update",
            Self::Delete(_) => "delete",
        }
    }
}

/// A change of one object.
#[derive(Debug)]
pub(super) struct PlannedChange {
    pub(super) kind: &'static ObjectKind,
    pub(super) key: String,
    pub(super) action: ObjectAction,
    pub(super) fields: Vec<FieldChange>,
}

/// An object of the server that the file does not have.
#[derive(Debug)]
pub(super) struct UndeclaredObject {
    pub(super) kind: &'static ObjectKind,
    pub(super) key: String,
}

/// All changes, in the order in which they are made.
#[derive(Debug)]
pub(super) struct Plan {
    pub(super) changes: Vec<PlannedChange>,
    pub(super) undeclared: Vec<UndeclaredObject>,
}

impl Plan {
    /// Compares a declaration with the account.
    pub(super) async fn make(client: &ApiClient, declaration: &Declaration, delete: bool) -> Result<Self, CliError> {
        let mut plan = Self { changes: Vec::new(), undeclared: Vec::new() };
        let mut deletions = Vec::new();
        for section in &declaration.sections {
            plan.add_section(client, section, delete.then_some(&mut deletions)).await?;
        }
        // Objects are deleted last: others that refer to them are written before.
        plan.changes.extend(deletions.into_iter().rev());
        Ok(plan)
    }

    async fn add_section(
        &mut self,
        client: &ApiClient,
        section: &DeclaredSection,
        mut deletions: Option<&mut Vec<PlannedChange>>,
    ) -> Result<(), CliError> {
        let kind = section.kind;
        let existing = kind.list(client).await?;
        for declared in &section.objects {
            let mut found = existing.iter().filter(|object| kind.key_of(object) == declared.key);
            let object = found.next();
            if found.next().is_some() {
                return Err(CliError::Failed(format!(
                    "the account has two {} with the {} `{}`; delete or rename one",
                    kind.section, kind.key, declared.key
                )));
            }
            let change = match object {
                None => Some(creation(kind, declared)),
                Some(object) => update(kind, declared, kind.complete(client, object.clone()).await?),
            };
            self.changes.extend(change);
        }
        let is_declared = |key: &str| section.objects.iter().any(|declared| declared.key == key);
        for object in existing {
            let key = kind.key_of(&object);
            match deletions.as_deref_mut() {
                _ if is_declared(&key) => {}
                Some(deletions) if kind.can_delete => {
                    let object = kind.complete(client, object).await?;
                    let action = ObjectAction::Delete(object);
                    deletions.push(PlannedChange { kind, key, action, fields: Vec::new() });
                }
                _ => self.undeclared.push(UndeclaredObject { kind, key }),
            }
        }
        Ok(())
    }

    pub(super) fn to_json(&self) -> Value {
        let field = |change: &FieldChange| json!({"field": change.field, "old": change.old, "new": change.new});
        let change = |change: &PlannedChange| {
            json!({
                "action": change.action.name(),
                "section": change.kind.section,
                "key": change.key,
                "fields": change.fields.iter().map(field).collect::<Vec<_>>(),
            })
        };
        let undeclared = |one: &UndeclaredObject| json!({"section": one.kind.section, "key": one.key});
        json!({
            "changes": self.changes.iter().map(change).collect::<Vec<_>>(),
            "not_in_file": self.undeclared.iter().map(undeclared).collect::<Vec<_>>(),
        })
    }
}

fn creation(kind: &'static ObjectKind, declared: &DeclaredObject) -> PlannedChange {
    let field =
        |(field, new): (&String, &Value)| FieldChange { field: field.clone(), old: Value::Null, new: new.clone() };
    let fields = declared.fields.iter().map(field).collect();
    PlannedChange { kind, key: declared.key.clone(), action: ObjectAction::Create, fields }
}

fn update(kind: &'static ObjectKind, declared: &DeclaredObject, object: Value) -> Option<PlannedChange> {
    let mut fields = Vec::new();
    for (field, new) in &declared.fields {
        let old = match (kind.state, field.as_str()) {
            (StateField::Published, "published") => json!(is_published(&object)),
            _ => object[field].clone(),
        };
        if !matches(field, new, &old) {
            fields.push(FieldChange { field: field.clone(), old, new: new.clone() });
        }
    }
    // A changed draft has to be published again.
    let is_kept_published = declared.fields.contains_key("published") && kind.state == StateField::Published;
    if is_kept_published && !fields.is_empty() && fields.iter().all(|change| change.field != "published") {
        fields.push(FieldChange { field: "published".to_owned(), old: json!(false), new: json!(true) });
    }
    let action = ObjectAction::Update(object);
    (!fields.is_empty()).then(|| PlannedChange { kind, key: declared.key.clone(), action, fields })
}

fn is_published(template: &Value) -> bool {
    template["published_version"].is_u64() && template["has_unpublished_changes"] != true
}

impl PlannedChange {
    /// The body of the request that writes the fields; state fields are calls of their own.
    pub(super) fn body(&self) -> Map<String, Value> {
        let is_state = |field: &str| match self.kind.state {
            StateField::None => false,
            StateField::Published => field == "published",
            StateField::Status => field == "status",
        };
        let is_creation = self.action == ObjectAction::Create;
        let mut body = Map::new();
        for change in self.fields.iter().filter(|change| !is_state(&change.field)) {
            // An empty text removes a field; a new object does not have it.
            let is_removed = change.new.is_string() && is_empty(&change.new);
            match (is_removed, is_creation) {
                (true, true) => {}
                (true, false) => drop(body.insert(change.field.clone(), Value::Null)),
                (false, _) => drop(body.insert(change.field.clone(), change.new.clone())),
            }
        }
        body
    }

    /// The new value of a state field, if it changes.
    pub(super) fn new_state(&self) -> Option<&Value> {
        let name = match self.kind.state {
            StateField::None => return None,
            StateField::Published => "published",
            StateField::Status => "status",
        };
        self.fields.iter().find(|change| change.field == name).map(|change| &change.new)
    }
}
