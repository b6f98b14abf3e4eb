//! An API key, as this room wants it.

use mail::credential::{API_KEY_PREFIX, ApiKey, LastUsed, Scope, SecretHash};
use mail::id::ApiKeyId;
use serde_json::{Value, json};
use store::access::Tenant;

use super::request::Create;
use super::{Kind, Parts, fields_of, schema_of_fields};
use crate::emails::view::Moment;
use crate::page::KIND_API_KEY;
use crate::room::Room;
use crate::schema;

impl Kind for ApiKey {
    const NOUN: &'static str = "API key";
    const COMPONENT: &'static str = "ApiKey";
    const ONE: &'static str = "api_key";
    const MANY: &'static str = "api_keys";
    const SECRET: &'static str = "secret";
    const PREFIX: &'static str = API_KEY_PREFIX;
    const ID_PREFIX: &'static str = ApiKeyId::PREFIX;
    const CURSOR: u8 = KIND_API_KEY;
    const HAS_SCOPE: bool = true;

    fn new(room: &Room, tenant: &Tenant, asked: Create<Self>, hint: String) -> Self {
        let now = room.hall.clock().now();
        Self {
            id: ApiKeyId::new(now, room.hall.entropy().u128()),
            account: tenant.account().id,
            name: asked.name,
            scope: asked.scope,
            hint,
            enabled: true,
            terms: asked.terms,
            created_at: now,
        }
    }

    fn id_of(text: &str) -> Option<[u8; 16]> {
        text.parse().ok().map(ApiKeyId::to_bytes)
    }

    fn hash_of(secret: &str) -> Option<SecretHash> {
        SecretHash::of_api_key(secret)
    }

    fn parts(&mut self) -> Parts<'_> {
        let Self { name, enabled, terms, hint, .. } = self;
        Parts { name, enabled, terms, hint }
    }

    fn view(&self, _: &Room, used: Option<LastUsed>) -> Value {
        let scope = match self.scope {
            Scope::Full => "full",
            Scope::Sending => "sending",
        };
        let first = [
            ("id", json!(self.id)),
            ("name", json!(self.name)),
            ("scope", json!(scope)),
            ("hint", json!(self.hint)),
            ("enabled", json!(self.enabled)),
        ];
        let last = [("created_at", json!(Moment(self.created_at)))];
        let all = first.into_iter().chain(fields_of(&self.terms, used)).chain(last);
        Value::Object(all.map(|(name, value)| (name.to_owned(), value)).collect())
    }

    fn schema() -> Value {
        let [domain, allowed, used_at, used_ip, expires] = schema_of_fields();
        schema::object(
            "An API key, without its secret",
            [
                ("id", schema::string("`key_…`")),
                ("name", schema::string("What people call it")),
                ("scope", schema::words(&["full", "sending"], "What it may do")),
                ("hint", schema::string("What may be shown of the secret")),
                ("enabled", schema::boolean("Whether it may be used")),
                domain,
                allowed,
                used_at,
                used_ip,
                expires,
                ("created_at", schema::time("When it was created")),
            ],
        )
    }
}
