//! An API key, as this room wants it.

use mail::credential::{API_KEY_PREFIX, ApiKey, Scope, SecretHash};
use mail::id::ApiKeyId;
use serde_json::{Value, json};
use store::access::Tenant;

use super::Kind;
use super::request::Create;
use crate::page::KIND_API_KEY;
use crate::room::Room;
use crate::schema;

impl Kind for ApiKey {
    const NOUN: &'static str = "API key";
    const ABOUT: &'static str = "An API key, without its secret";
    const COMPONENT: &'static str = "ApiKey";
    const ONE: &'static str = "api_key";
    const MANY: &'static str = "api_keys";
    const SECRET: &'static str = "secret";
    const PREFIX: &'static str = API_KEY_PREFIX;
    const CURSOR: u8 = KIND_API_KEY;
    const HAS_SCOPE: bool = true;

    fn new(room: &Room, tenant: &Tenant, asked: Create<Self>, hint: String) -> Self {
        let now = room.hall.clock().now();
        Self {
            id: ApiKeyId::new(now, room.hall.entropy().id()),
            account: tenant.account().id,
            name: asked.name,
            scope: asked.scope,
            hint,
            enabled: true,
            terms: asked.terms,
            created_at: now,
        }
    }

    fn hash_of(secret: &str) -> Option<SecretHash> {
        SecretHash::of_api_key(secret)
    }

    fn own(&self, _: &Room) -> Vec<(&'static str, Value)> {
        let scope = match self.scope {
            Scope::Full => "full",
            Scope::Sending => "sending",
        };
        vec![("scope", json!(scope))]
    }

    fn own_schema() -> Vec<(&'static str, Value)> {
        vec![("scope", schema::words(&["full", "sending"], "What it may do"))]
    }
}
