//! [`CredentialKind`] of API keys.

use httpd::paging::KIND_API_KEY;
use model::credential::{API_KEY_PREFIX, ApiKey, SecretHash};

use super::kind::{CreateCredential, CredentialKind};
use crate::prelude::*;

impl CredentialKind for ApiKey {
    const NOUN: &'static str = "API key";
    const ABOUT: &'static str = "An API key, without its secret";
    const COMPONENT: &'static str = "ApiKey";
    const OBJECT_FIELD: &'static str = "api_key";
    const LIST_FIELD: &'static str = "api_keys";
    const SECRET_FIELD: &'static str = "secret";
    const PREFIX: &'static str = API_KEY_PREFIX;
    const CURSOR: u8 = KIND_API_KEY;
    const HAS_SCOPE: bool = true;

    fn new(state: &AppState, tenant: &Tenant, request: CreateCredential<Self>, hint: String) -> Self {
        let now = state.services.clock.now();
        Self {
            id: ApiKeyId::new(now, state.services.entropy.unique_bits()),
            account: tenant.account().id,
            name: request.name,
            scope: request.scope,
            hint,
            enabled: true,
            terms: request.terms,
            created_at: now,
        }
    }

    fn hash_secret(secret: &str) -> Option<SecretHash> {
        SecretHash::from_api_key(secret)
    }

    fn specific_fields(&self, _: &AppState) -> Vec<(&'static str, Value)> {
        vec![("scope", json!(self.scope))]
    }

    fn specific_fields_schema() -> Vec<(&'static str, Value)> {
        vec![("scope", schema::string_enum(&["full", "sending"], "The scope"))]
    }
}
