//! API keys and SMTP credentials: what programs sign in with.

mod activity;
mod create;
mod detail;
mod list;
mod smtp_settings;
#[cfg(test)]
mod tests;

use jiff::Timestamp;

use super::client_policy::{self as policy, Policy};
use crate::dashboard::prelude::*;

/// The two kinds of credentials have the same pages.
pub(super) struct CredentialPages {
    /// Below `/dashboard`.
    path: &'static str,
    title: &'static str,
    lead: &'static str,
    /// In a sentence.
    noun: &'static str,
    /// The name of the secret.
    secret: &'static str,
    /// Only API keys have a scope, and requests in the log.
    is_api_key: bool,
    list: &'static str,
    /// The field with the entries of the list.
    entries: &'static str,
    get: &'static str,
    create: &'static str,
    update: &'static str,
    rotate: &'static str,
    delete: &'static str,
}

const API_KEYS: CredentialPages = CredentialPages {
    path: "/dashboard/api-keys",
    title: "API keys",
    lead: "Your programs sign in to the API with a key. Give each program its own key, with no more permissions than \
        it needs.",
    noun: "API key",
    secret: "API key",
    is_api_key: true,
    list: "list_api_keys",
    entries: "api_keys",
    get: "get_api_key",
    create: "create_api_key",
    update: "update_api_key",
    rotate: "rotate_api_key",
    delete: "delete_api_key",
};

const SMTP: CredentialPages = CredentialPages {
    path: "/dashboard/smtp-credentials",
    title: "SMTP credentials",
    lead: "Programs that cannot call the API send by SMTP with a user name and a password.",
    noun: "SMTP credential",
    secret: "Password",
    is_api_key: false,
    list: "list_smtp_credentials",
    entries: "smtp_credentials",
    get: "get_smtp_credential",
    create: "create_smtp_credential",
    update: "update_smtp_credential",
    rotate: "rotate_smtp_credential",
    delete: "delete_smtp_credential",
};

impl CredentialPages {
    fn page_of(&self, id: &str) -> String {
        format!("{}/{}", self.path, encode(id))
    }

    /// Reads the credential of the path.
    async fn read(&self, context: &Context<'_>) -> Result<Credential, Failure> {
        let one: OneCredential = context.read(&Call::new(self.get).id(context.id())).await?;
        Ok(one.credential)
    }
}

/// The rows of one kind.
macro_rules! rows {
    ($path:literal, $pages:expr) => {
        page_rows! {
            $path => list::show(&$pages), reads [$pages.list];
            concat!($path, "/new") => create::show(&$pages), reads [$pages.create], forms {
                "create" => create::submit(&$pages), calls $pages.create;
            };
            concat!($path, "/{id}") => detail::show(&$pages), reads [$pages.get], forms {
                "switch" => detail::switch(&$pages), calls $pages.update;
            };
            concat!($path, "/{id}/edit") => detail::show_edit(&$pages), reads [$pages.get, $pages.update], forms {
                "edit" => detail::edit(&$pages), calls $pages.update;
            };
            concat!($path, "/{id}/rotate") => create::show_rotate(&$pages), reads [$pages.get, $pages.rotate], forms {
                "rotate" => create::rotate(&$pages), calls $pages.rotate;
            };
            concat!($path, "/{id}/delete") => detail::show_delete(&$pages), reads [$pages.get, $pages.delete], forms {
                "delete" => detail::delete(&$pages), calls $pages.delete;
            };
        }
    };
}

pub const API_KEY_PAGES: &[PageRow] = rows!("/api-keys", API_KEYS);
pub const SMTP_PAGES: &[PageRow] = rows!("/smtp-credentials", SMTP);

#[derive(Debug, Deserialize)]
struct OneCredential {
    #[serde(alias = "api_key", alias = "smtp_credential")]
    credential: Credential,
    /// Only in the answers of creation and rotation.
    #[serde(default, alias = "password")]
    secret: String,
}

#[answer]
pub(super) struct Credential {
    pub id: String,
    pub name: String,
    /// Only of API keys.
    scope: String,
    hint: String,
    pub enabled: bool,
    domain_id: Option<String>,
    allowed_ips: Vec<String>,
    pub last_used_at: Option<String>,
    last_used_ip: Option<String>,
    pub expires_at: Option<String>,
    policy: Option<Policy>,
    pub created_at: String,
    /// The fields from here on are only of SMTP credentials.
    host: String,
    port: u16,
    security: String,
    username: String,
}

impl Credential {
    fn state(&self, now: Timestamp) -> Badge {
        let expires: Option<Timestamp> = self.expires_at.as_deref().and_then(|time| time.parse().ok());
        match (self.enabled, expires) {
            (false, _) => Badge::of("disabled"),
            (true, Some(time)) if time <= now => Badge::of("expired"),
            (true, _) => Badge::new("Active", Tone::Good),
        }
    }

    fn scope_label(&self) -> &'static str {
        match self.scope.as_str() {
            "full" => "Full access",
            "sending" => "Sending only",
            _ => "SMTP",
        }
    }
}

/// The domain that a credential may send from.
fn domain_cell<'a>(id: Option<&'a str>, domains: &'a [(String, String)]) -> impl Renderable + 'a {
    let name = id.map(|id| domains.iter().find(|(other, _)| other == id).map_or(id, |(_, name)| name));
    maud! { @match name { Some(name) => (name), None => span.soft { "All domains" } } }
}

fn name_field() -> Field {
    Field::text("name", "Name").required().placeholder("shop-backend").help("Name the program that uses it.")
}

fn addresses_field() -> Field {
    Field::new("allowed_ips", "Allowed IP addresses", Control::Lines { rows: 3 })
        .placeholder("203.0.113.7")
        .empty(Empty::Kept)
        .help("Addresses or networks such as 203.0.113.0/24, one per line. Leave empty to allow any.")
}
