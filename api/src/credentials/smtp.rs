//! An SMTP credential, as this room wants it: with all that a mail client must be told.

use mail::credential::{SMTP_PASSWORD_PREFIX, SecretHash, SmtpCredential};
use mail::id::SmtpCredentialId;
use serde_json::{Value, json};
use store::access::Tenant;

use super::CredentialKind;
use super::request::CreateCredential;
use crate::page::KIND_SMTP_CREDENTIAL;
use crate::room::AppState;
use crate::schema;

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

    fn new(room: &AppState, tenant: &Tenant, asked: CreateCredential<Self>, hint: String) -> Self {
        let now = room.intake.clock().now();
        Self {
            id: SmtpCredentialId::new(now, room.intake.entropy().unique_bits()),
            account: tenant.account().id,
            name: asked.name,
            hint,
            enabled: true,
            terms: asked.terms,
            created_at: now,
        }
    }

    fn hash_secret(secret: &str) -> Option<SecretHash> {
        SecretHash::from_smtp_password(secret)
    }

    fn specific_fields(&self, room: &AppState) -> Vec<(&'static str, Value)> {
        let door = &room.options.submission;
        vec![
            ("host", json!(door.host)),
            ("port", json!(door.port)),
            ("security", json!(if door.implicit_tls { "tls" } else { "starttls" })),
            ("username", json!(door.username)),
        ]
    }

    fn specific_fields_schema() -> Vec<(&'static str, Value)> {
        vec![
            ("host", schema::string("Where to connect")),
            ("port", schema::count("The port")),
            ("security", schema::string_enum(&["starttls", "tls"], "How TLS begins")),
            ("username", schema::string("The user name, one for all")),
        ]
    }
}
