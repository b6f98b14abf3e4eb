//! Texts that the operation table does not have.

use super::operation::ApiTable;

/// Advice about an error.
#[derive(Debug, Clone, Copy)]
pub struct ErrorAdvice {
    /// The name in the operation table; an anchor of `/docs/errors`.
    pub name: &'static str,
    /// The class of the SDKs (`sdk/README.md`).
    pub class: &'static str,
    pub advice: &'static str,
}

/// Name, class and advice of each error, one error a line.
const ERRORS: &str = include_str!("errors.txt");

pub fn errors() -> impl Iterator<Item = ErrorAdvice> {
    ERRORS.lines().filter_map(|line| {
        let (name, rest) = line.split_once(' ')?;
        let (class, advice) = rest.trim_start().split_once(' ')?;
        Some(ErrorAdvice { name, class, advice: advice.trim_start() })
    })
}

/// The groups of the navigation, with their resources.
const GROUPS: &[(&str, &[&str])] = &[
    ("Sending", &["emails", "templates", "suppressions", "categoryOptOuts"]),
    ("Receiving", &["receivedEmails"]),
    ("Domains", &["domains", "dnsCredentials"]),
    ("Webhooks", &["webhooks", "webhookEvents"]),
    ("Product events", &["events", "funnels", "conversions", "visits", "automations"]),
    (
        "Affiliate program",
        &["affiliates", "affiliateCampaigns", "affiliateReferrals", "affiliateCommissions", "affiliatePayouts"],
    ),
    ("Account", &["account", "apiKeys", "smtpCredentials", "grants", "approvals", "auditLog", "logs"]),
];
/// The group of resources that no other group has.
const REST: &str = "More";

/// The groups of the navigation with the resources of the table. Each resource is in one group.
pub fn groups(table: &ApiTable) -> Vec<(&'static str, Vec<&str>)> {
    let mut resources: Vec<&str> = Vec::new();
    for operation in &table.operations {
        if !resources.contains(&operation.top_resource()) {
            resources.push(operation.top_resource());
        }
    }
    let mut groups: Vec<(&'static str, Vec<&str>)> = Vec::new();
    for (title, names) in GROUPS {
        groups.push((title, names.iter().copied().filter(|name| resources.contains(name)).collect()));
        resources.retain(|name| !names.contains(name));
    }
    groups.push((REST, resources));
    groups.retain(|(_, resources)| !resources.is_empty());
    groups
}

/// The slug of a resource's page: `received-emails`. `/docs/webhooks` explains the events, so that the operations on
/// endpoints have another one.
pub fn resource_slug(resource: &str) -> String {
    match resource {
        "webhooks" => "webhook-endpoints".into(),
        _ => separated(resource, '-'),
    }
}

/// The title of a resource: `Received emails`.
pub fn resource_title(resource: &str) -> String {
    match resource {
        "webhooks" => "Webhook endpoints".into(),
        "webhookEvents" => "Event log and stream".into(),
        "events" => "Product events".into(),
        "apiKeys" => "API keys".into(),
        "smtpCredentials" => "SMTP credentials".into(),
        "dnsCredentials" => "DNS credentials".into(),
        "logs" => "Request log".into(),
        "categoryOptOuts" => "Category opt-outs".into(),
        _ => {
            let words = separated(resource, ' ');
            let first = words.chars().next().map(|first| first.to_ascii_uppercase());
            first.into_iter().chain(words.chars().skip(1)).collect()
        }
    }
}

/// `receivedEmails` as lower-case words.
fn separated(name: &str, separator: char) -> String {
    let mut words = String::new();
    for one in name.chars() {
        if one.is_ascii_uppercase() {
            words.push(separator);
        }
        words.push(one.to_ascii_lowercase());
    }
    words
}

/// The page and anchor of an operation.
pub fn operation_path(operation: &super::operation::Operation) -> String {
    format!("{}#{}", super::page_path(&resource_slug(operation.top_resource())), super::operation::anchor(operation))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SDK_README: &str = include_str!("../../../sdk/README.md");

    #[test]
    fn every_error_has_its_text() {
        let table = ApiTable::load();
        let mut names: Vec<&str> = errors().map(|error| error.name).collect();
        let mut expected: Vec<&str> = table.error_codes.keys().map(String::as_str).collect();
        names.sort_unstable();
        expected.sort_unstable();
        assert_eq!(names, expected);
    }

    #[test]
    fn classes_are_those_of_the_sdks() {
        for error in errors() {
            let code = error.name.trim_end_matches("_422").trim_end_matches("_403");
            let row = SDK_README.lines().find(|line| line.starts_with(&format!("| `{}`", error.class)));
            let row = row.unwrap_or_else(|| panic!("{}: no class {}", error.name, error.class));
            assert!(row.contains(&format!("`{code}`")), "{}: {row}", error.name);
        }
    }

    #[test]
    fn every_resource_has_a_group_and_a_slug_of_its_own() {
        let groups = groups(ApiTable::load());
        assert!(groups.iter().all(|(title, _)| *title != REST), "{groups:?}");
        assert_eq!(resource_slug("receivedEmails"), "received-emails");
        assert_eq!(resource_title("affiliateCampaigns"), "Affiliate campaigns");
    }
}
