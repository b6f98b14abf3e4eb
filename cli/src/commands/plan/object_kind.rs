//! `ObjectKind`: what the sections of a declaration are in the API.

use http::Method;
use serde_json::Value;

use crate::client::{ApiClient, Call};
use crate::error::CliError;
use mcp::arguments::encode;

/// How the API compares versions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum VersionCheck {
    /// It does not; the object is read again right before it is written.
    None,
    /// `if_version` in the body.
    DraftVersion,
    /// `If-Match` with `updated_at`.
    IfMatch,
}

/// A field of the file that is a call of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StateField {
    None,
    /// `published = true`: the draft is published.
    Published,
    /// `status = "active"` or `"paused"`.
    Status,
}

#[derive(Debug)]
pub(super) struct ObjectKind {
    /// Name of the section.
    pub(super) section: &'static str,
    /// One object, in sentences.
    pub(super) noun: &'static str,
    /// Field that tells objects apart.
    pub(super) key: &'static str,
    pub(super) path: &'static str,
    list_field: &'static str,
    pub(super) object_field: &'static str,
    /// Command of the operation whose fields the file may have.
    pub(super) update_command: &'static str,
    pub(super) update_method: Method,
    /// Fields of that operation that are no settings.
    pub(super) other_fields: &'static [&'static str],
    pub(super) version: VersionCheck,
    pub(super) state: StateField,
    pub(super) can_delete: bool,
    /// Lists do not have all fields, so each object is read.
    is_list_short: bool,
}

/// All kinds, in the order in which they are written.
pub(super) const OBJECT_KINDS: &[ObjectKind] = &[
    ObjectKind {
        section: "domains",
        noun: "domain",
        key: "name",
        path: "/domains",
        list_field: "domains",
        object_field: "domain",
        update_command: "domains update",
        update_method: Method::PATCH,
        other_fields: &[],
        version: VersionCheck::None,
        state: StateField::None,
        can_delete: true,
        is_list_short: false,
    },
    ObjectKind {
        section: "webhooks",
        noun: "webhook",
        key: "url",
        path: "/webhooks",
        list_field: "webhooks",
        object_field: "webhook",
        update_command: "webhooks update",
        update_method: Method::PATCH,
        other_fields: &[],
        version: VersionCheck::None,
        state: StateField::None,
        can_delete: true,
        is_list_short: false,
    },
    ObjectKind {
        section: "templates",
        noun: "template",
        key: "alias",
        path: "/templates",
        list_field: "templates",
        object_field: "template",
        update_command: "templates update",
        update_method: Method::PATCH,
        other_fields: &["if_version", "status"],
        version: VersionCheck::DraftVersion,
        state: StateField::Published,
        can_delete: true,
        is_list_short: true,
    },
    ObjectKind {
        section: "automations",
        noun: "automation",
        key: "name",
        path: "/automations",
        list_field: "automations",
        object_field: "automation",
        update_command: "automations update",
        update_method: Method::POST,
        other_fields: &["action"],
        version: VersionCheck::None,
        state: StateField::Status,
        can_delete: true,
        is_list_short: false,
    },
    ObjectKind {
        section: "affiliate_campaigns",
        noun: "affiliate campaign",
        key: "name",
        path: "/affiliate-campaigns",
        list_field: "data",
        object_field: "campaign",
        update_command: "affiliate-campaigns update",
        update_method: Method::PATCH,
        other_fields: &["make_default", "archived_at"],
        version: VersionCheck::IfMatch,
        state: StateField::None,
        can_delete: false,
        is_list_short: false,
    },
];

impl ObjectKind {
    /// Path of an object.
    pub(super) fn target(&self, id: &str) -> String {
        format!("{}/{}", self.path, encode(id))
    }

    /// All objects of the account that are not archived.
    pub(super) async fn list(&self, client: &ApiClient) -> Result<Vec<Value>, CliError> {
        let objects = if self.section == "affiliate_campaigns" {
            // This list has no pages.
            let page = client.call(&Call::get(self.path)).await?.json()?;
            page[self.list_field].as_array().cloned().unwrap_or_default()
        } else {
            client.list(self.path, self.list_field).await?
        };
        let is_live = |object: &Value| object["status"] != "archived" && !object["archived_at"].is_string();
        Ok(objects.into_iter().filter(is_live).collect())
    }

    /// The object of a list with all its fields.
    pub(super) async fn complete(&self, client: &ApiClient, object: Value) -> Result<Value, CliError> {
        match object["id"].as_str().filter(|_| self.is_list_short) {
            Some(id) => self.get(client, id).await,
            None => Ok(object),
        }
    }

    /// Reads one object.
    pub(super) async fn get(&self, client: &ApiClient, id: &str) -> Result<Value, CliError> {
        let answer = client.call(&Call::get(self.target(id))).await?.json()?;
        Ok(answer[self.object_field].clone())
    }

    /// The name of an object in the file.
    pub(super) fn key_of(&self, object: &Value) -> String {
        object[self.key].as_str().or(object["id"].as_str()).unwrap_or_default().to_owned()
    }
}
