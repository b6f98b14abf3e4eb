//! A kind of credential: API keys and SMTP credentials.

use std::marker::PhantomData;

use crate::prelude::*;
use model::credential::{CredentialPolicy, SecretHash};
use store::credential::Credential;

/// A kind of credential that these operations manage.
pub trait CredentialKind: Credential {
    /// Noun in messages.
    const NOUN: &'static str;
    /// Description of the object in the OpenAPI document.
    const ABOUT: &'static str;
    /// Component name in the OpenAPI document.
    const COMPONENT: &'static str;
    /// JSON field of a single object.
    const OBJECT_FIELD: &'static str;
    /// JSON field of a list.
    const LIST_FIELD: &'static str;
    /// JSON field of the secret.
    const SECRET_FIELD: &'static str;
    /// Prefix of the secret.
    const PREFIX: &'static str;
    /// Kind byte of the list's cursors.
    const CURSOR: u8;
    /// Whether the credential has a scope.
    const HAS_SCOPE: bool;

    /// Builds a new credential; `hint` is the displayable part of its secret.
    fn new(state: &AppState, tenant: &Tenant, request: CreateCredential<Self>, hint: String) -> Self;
    /// Returns `None` if the secret is malformed.
    fn hash_secret(secret: &str) -> Option<SecretHash>;
    /// JSON fields that only this kind has.
    fn specific_fields(&self, state: &AppState) -> Vec<(&'static str, Value)>;
    /// Schema of these fields.
    fn specific_fields_schema() -> Vec<(&'static str, Value)>;
}

pub(super) fn not_found<K: CredentialKind>() -> Problem {
    Problem::not_found(K::NOUN)
}

/// The fields of a new credential.
#[derive(Debug)]
pub struct CreateCredential<K> {
    /// Trimmed and not empty.
    pub name: String,
    /// The scope; `Sending` for SMTP credentials, which have no choice.
    pub scope: ApiKeyScope,
    /// The conditions of use; the secret is added later.
    pub terms: CredentialPolicy,
    pub(super) kind: PhantomData<fn() -> K>,
}
