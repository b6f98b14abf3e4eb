//! The DNS providers at which records can be published, with the credentials that each asks for.

use mcp::operation_table::{CredentialField, DnsProvider};

use crate::dashboard::form::{Control, Empty, Field};
use crate::reference::operation::ApiTable;

pub(super) fn find(id: &str) -> Option<&'static DnsProvider> {
    ApiTable::load().dns_providers.iter().find(|provider| provider.name == id)
}

/// The title of a provider; its id if it is unknown.
pub(super) fn title(id: &str) -> &str {
    find(id).map_or(id, |provider| &provider.title)
}

/// The providers to choose from, by title; a name server of one's own is last.
pub(super) fn choices() -> Vec<(String, String)> {
    let choose = (String::new(), "Choose…".to_owned());
    let mut providers: Vec<_> = ApiTable::load().dns_providers.iter().collect();
    providers.sort_by_key(|one| (one.name == "rfc2136", one.title.to_lowercase()));
    std::iter::once(choose).chain(providers.iter().map(|one| (one.name.clone(), one.title.clone()))).collect()
}

/// The fields of a provider's credentials.
pub(super) fn fields(provider: &'static DnsProvider) -> impl Iterator<Item = Field> {
    provider.credentials.iter().map(field)
}

fn field(one: &'static CredentialField) -> Field {
    let control = if one.secret { Control::Password } else { Control::Text };
    let field = Field::new(format!("credentials.{}", one.name), one.label.as_str(), control).empty(Empty::Omitted);
    // Browsers must not fill in the password of the dashboard.
    let field = if one.secret { field.autocomplete("new-password") } else { field };
    if one.required { field.required() } else { field }
}
