//! [`CredentialKind`] of SMTP credentials; the object includes the connection settings that a mail client needs.

use httpd::paging::KIND_SMTP_CREDENTIAL;
use model::credential::{SMTP_PASSWORD_PREFIX, SecretHash, SmtpCredential};

use super::kind::{CreateCredential, CredentialKind};
use crate::prelude::*;

impl CredentialKind for SmtpCredential {
    const NOUN: &'static str = "SMTP credential";
    const ABOUT: &'static str = "An SMTP credential, without its password";
    const COMPONENT: &'static str = "SmtpCredential";
    const OBJECT_FIELD: &'static str = "smtp_credential";
    const LIST_FIELD: &'static str = "smtp_credentials";
    const SECRET_FIELD: &'static str = "password";
    const PREFIX: &'static str = SMTP_PASSWORD_PREFIX;
    const CURSOR: u8 = KIND_SMTP_CREDENTIAL;
    const HAS_SCOPE: bool = false;

    fn new(state: &AppState, tenant: &Tenant, request: CreateCredential<Self>, hint: String) -> Self {
        let now = state.services.clock.now();
        Self {
            id: SmtpCredentialId::new(now, state.services.entropy.unique_bits()),
            account: tenant.account().id,
            name: request.name,
            hint,
            enabled: true,
            terms: request.terms,
            created_at: now,
        }
    }

    fn hash_secret(secret: &str) -> Option<SecretHash> {
        SecretHash::from_smtp_password(secret)
    }

    fn specific_fields(&self, state: &AppState) -> Vec<(&'static str, Value)> {
        let endpoint = &state.options.submission;
        vec![
            ("host", json!(endpoint.host)),
            ("port", json!(endpoint.port)),
            ("security", json!(if endpoint.implicit_tls { "tls" } else { "starttls" })),
            ("username", json!(endpoint.username)),
        ]
    }

    fn specific_fields_schema() -> Vec<(&'static str, Value)> {
        vec![
            ("host", schema::string("The SMTP host")),
            ("port", schema::count("The port")),
            ("security", schema::string_enum(&["starttls", "tls"], "How TLS is started")),
            ("username", schema::string("The user name; the same for all credentials")),
        ]
    }
}
