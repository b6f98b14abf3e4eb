//! An SMTP credential, as this room wants it: with all that a mail client must be told.

use mail::credential::{LastUsed, SMTP_PASSWORD_PREFIX, SecretHash, SmtpCredential};
use mail::id::SmtpCredentialId;
use serde_json::{Value, json};
use store::access::Tenant;

use super::request::Create;
use super::{Kind, Parts, fields_of, schema_of_fields};
use crate::emails::view::Moment;
use crate::page::KIND_SMTP_CREDENTIAL;
use crate::room::Room;
use crate::schema;

impl Kind for SmtpCredential {
    const NOUN: &'static str = "SMTP credential";
    const COMPONENT: &'static str = "SmtpCredential";
    const ONE: &'static str = "smtp_credential";
    const MANY: &'static str = "smtp_credentials";
    const SECRET: &'static str = "password";
    const PREFIX: &'static str = SMTP_PASSWORD_PREFIX;
    const ID_PREFIX: &'static str = SmtpCredentialId::PREFIX;
    const CURSOR: u8 = KIND_SMTP_CREDENTIAL;
    const HAS_SCOPE: bool = false;

    fn new(room: &Room, tenant: &Tenant, asked: Create<Self>, hint: String) -> Self {
        let now = room.hall.clock().now();
        Self {
            id: SmtpCredentialId::new(now, room.hall.entropy().u128()),
            account: tenant.account().id,
            name: asked.name,
            hint,
            enabled: true,
            terms: asked.terms,
            created_at: now,
        }
    }

    fn id_of(text: &str) -> Option<[u8; 16]> {
        text.parse().ok().map(SmtpCredentialId::to_bytes)
    }

    fn hash_of(secret: &str) -> Option<SecretHash> {
        SecretHash::of_smtp_password(secret)
    }

    fn parts(&mut self) -> Parts<'_> {
        let Self { name, enabled, terms, hint, .. } = self;
        Parts { name, enabled, terms, hint }
    }

    fn view(&self, room: &Room, used: Option<LastUsed>) -> Value {
        let door = &room.options.submission;
        let first = [
            ("id", json!(self.id)),
            ("name", json!(self.name)),
            ("host", json!(door.host)),
            ("port", json!(door.port)),
            ("security", json!(if door.implicit_tls { "tls" } else { "starttls" })),
            ("username", json!(door.username)),
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
            "An SMTP credential, without its password",
            [
                ("id", schema::string("`smtp_…`")),
                ("name", schema::string("What people call it")),
                ("host", schema::string("Where to connect")),
                ("port", schema::count("The port")),
                ("security", schema::words(&["starttls", "tls"], "How TLS begins")),
                ("username", schema::string("The user name, one for all")),
                ("hint", schema::string("What may be shown of the password")),
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
