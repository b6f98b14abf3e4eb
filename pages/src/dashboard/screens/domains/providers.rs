//! The DNS providers at which records can be published, with the credentials that each asks for.

use crate::dashboard::form::{Control, Empty, Field};

pub(super) struct DnsProvider {
    pub(super) id: &'static str,
    pub(super) title: &'static str,
    fields: &'static [CredentialField],
}

/// A credential that a provider asks for.
struct CredentialField {
    /// The path in the body of the operation.
    name: &'static str,
    label: &'static str,
    is_secret: bool,
    is_required: bool,
}

const fn secret(name: &'static str, label: &'static str) -> CredentialField {
    CredentialField { name, label, is_secret: true, is_required: true }
}

const fn plain(name: &'static str, label: &'static str) -> CredentialField {
    CredentialField { name, label, is_secret: false, is_required: true }
}

const fn optional(field: CredentialField) -> CredentialField {
    CredentialField { is_required: false, ..field }
}

const API_TOKEN: &[CredentialField] = &[secret("credentials.api_token", "API token")];

const fn by_token(id: &'static str, title: &'static str) -> DnsProvider {
    DnsProvider { id, title, fields: API_TOKEN }
}

const ROUTE53: &[CredentialField] = &[
    plain("credentials.access_key_id", "Access key id"),
    secret("credentials.secret_access_key", "Secret access key"),
    optional(secret("credentials.session_token", "Session token")),
    optional(plain("credentials.region", "Region")),
    optional(plain("credentials.hosted_zone_id", "Hosted zone id")),
];
const RFC2136: &[CredentialField] = &[
    plain("credentials.server", "Name server"),
    plain("credentials.key_name", "Name of the TSIG key"),
    optional(plain("credentials.algorithm", "Algorithm of the TSIG key")),
    secret("credentials.secret", "TSIG key in base64"),
];

pub(super) const ALL: &[DnsProvider] = &[
    by_token("bunny", "bunny.net"),
    by_token("cloudflare", "Cloudflare"),
    by_token("desec", "deSEC"),
    by_token("digitalocean", "DigitalOcean"),
    DnsProvider {
        id: "dnsimple",
        title: "DNSimple",
        fields: &[plain("credentials.account_id", "Account id"), secret("credentials.api_token", "API token")],
    },
    by_token("gandi", "Gandi"),
    by_token("gcore", "Gcore"),
    DnsProvider {
        id: "godaddy",
        title: "GoDaddy",
        fields: &[secret("credentials.api_key", "API key"), secret("credentials.api_secret", "API secret")],
    },
    by_token("hetzner", "Hetzner"),
    by_token("hostinger", "Hostinger"),
    by_token("infomaniak", "Infomaniak"),
    by_token("ionos", "IONOS"),
    by_token("linode", "Linode"),
    DnsProvider {
        id: "namecom",
        title: "Name.com",
        fields: &[plain("credentials.username", "User name"), secret("credentials.api_token", "API token")],
    },
    by_token("netlify", "Netlify"),
    by_token("ns1", "NS1"),
    DnsProvider {
        id: "porkbun",
        title: "Porkbun",
        fields: &[secret("credentials.api_key", "API key"), secret("credentials.secret_api_key", "Secret API key")],
    },
    DnsProvider { id: "route53", title: "Amazon Route 53", fields: ROUTE53 },
    by_token("scaleway", "Scaleway"),
    by_token("vercel", "Vercel"),
    by_token("vultr", "Vultr"),
    DnsProvider { id: "rfc2136", title: "Your own name server (RFC 2136)", fields: RFC2136 },
];

pub(super) fn find(id: &str) -> Option<&'static DnsProvider> {
    ALL.iter().find(|provider| provider.id == id)
}

/// The title of a provider; its id if it is unknown.
pub(super) fn title(id: &str) -> &str {
    find(id).map_or(id, |provider| provider.title)
}

/// The providers to choose from.
pub(super) fn choices() -> Vec<(String, String)> {
    let choose = (String::new(), "Choose…".to_owned());
    std::iter::once(choose).chain(ALL.iter().map(|one| (one.id.to_owned(), one.title.to_owned()))).collect()
}

impl DnsProvider {
    /// The fields of the credentials.
    pub(super) fn fields(&self) -> Vec<Field> {
        let field = |one: &CredentialField| {
            let control = if one.is_secret { Control::Password } else { Control::Text };
            let field = Field::new(one.name, one.label, control).empty(Empty::Omitted);
            // Browsers must not fill in the password of the dashboard.
            let field = if one.is_secret { field.autocomplete("new-password") } else { field };
            if one.is_required { field.required() } else { field }
        };
        self.fields.iter().map(field).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reference::operation::ApiTable;

    /// The API describes the fields as `cloudflare: \`api_token\`; route53: …, \`region?\``.
    #[test]
    fn providers_and_fields_are_those_of_the_api() {
        let schema = &ApiTable::load().schemas["SaveDnsCredentials"]["properties"]["credentials"];
        let text = schema["description"].as_str().unwrap().strip_prefix("An object. ").unwrap();
        let mut expected: Vec<(String, Vec<String>)> = Vec::new();
        for provider in text.split("; ") {
            let (id, fields) = provider.split_once(": ").unwrap();
            expected.push((id.into(), fields.split(", ").map(|field| field.trim_matches('`').to_owned()).collect()));
        }
        expected.sort();
        let name = |field: &CredentialField| {
            let name = field.name.strip_prefix("credentials.").unwrap();
            if field.is_required { name.to_owned() } else { format!("{name}?") }
        };
        let mut actual: Vec<(String, Vec<String>)> =
            ALL.iter().map(|one| (one.id.to_owned(), one.fields.iter().map(name).collect())).collect();
        actual.sort();
        assert_eq!(actual, expected);
    }
}
