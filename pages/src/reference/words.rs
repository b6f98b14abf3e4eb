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

const fn error(name: &'static str, class: &'static str, advice: &'static str) -> ErrorAdvice {
    ErrorAdvice { name, class, advice }
}

pub const ERRORS: &[ErrorAdvice] = &[
    error(
        "bad_request",
        "ValidationError",
        "Correct the request line or the header section. An HTTP library does this for you.",
    ),
    error("invalid_json", "ValidationError", "Send valid JSON in UTF-8, nested at most 128 levels."),
    error(
        "validation_error",
        "ValidationError",
        "Correct each field in `details.fields`. Do not repeat the request unchanged.",
    ),
    error(
        "invalid_idempotency_key",
        "ValidationError",
        "Use a key of 1 to 256 printable characters, for example a UUID.",
    ),
    error(
        "invalid_cursor",
        "ValidationError",
        "Pass `next_cursor` of the previous page unchanged, to the same list with the same filters.",
    ),
    error(
        "unauthorized",
        "AuthenticationError",
        "Send `Authorization: Bearer` with a valid key. [API keys](/docs/api-keys) can be listed and rotated.",
    ),
    error(
        "forbidden",
        "PermissionError",
        "Use a key with full access, or one that is not restricted to a different domain. Each operation shows what \
         it requires.",
    ),
    error(
        "policy_violation",
        "PermissionError",
        "`details.rule` names the policy rule. A person can perform the operation in the dashboard, or change the \
         policy.",
    ),
    error(
        "reauthentication_required",
        "AuthenticationError",
        "Sign in again, then repeat the operation. API keys do not get this error.",
    ),
    error(
        "domain_not_verified",
        "PermissionError",
        "[Verify the domain](/docs/domains#verify-domain), or send from one that is verified.",
    ),
    error(
        "sandbox_restricted",
        "PermissionError",
        "Send to the address of the account's owner, or add and verify a domain.",
    ),
    error(
        "production_access_required",
        "PermissionError",
        "Ask the operator of the server for production access, at `upgrade_url` if it is present.",
    ),
    error(
        "ip_not_allowed",
        "PermissionError",
        "Call from an address that the key allows, or change the key's list of networks.",
    ),
    error(
        "account_suspended",
        "PermissionError",
        "Contact the operator of the server. Nothing is sent until the account is active again.",
    ),
    error("not_found", "NotFoundError", "Check the id and the path. Objects of other accounts are not found either."),
    error("method_not_allowed", "ValidationError", "Use a method listed in the `Allow` header."),
    error("request_timeout", "ServerError", "Repeat the request. Send bodies without pauses."),
    error(
        "idempotency_conflict",
        "IdempotencyConflictError",
        "Use a new key for a new request. The same key needs the same method, path and body.",
    ),
    error(
        "idempotency_in_progress",
        "ConflictError",
        "Wait for the time in `retry-after`, then repeat the request with the same key.",
    ),
    error(
        "domain_claimed",
        "ConflictError",
        "Prove that the domain is yours with a [claim](/docs/domains#create-domain-claim).",
    ),
    error("conflict", "ConflictError", "Read the object again, and decide based on its current state."),
    error("gone", "ApiError", "Request a new link."),
    error(
        "payload_too_large",
        "ValidationError",
        "Make the body smaller: fewer entries, smaller attachments, or several requests.",
    ),
    error(
        "validation_error_422",
        "SuppressedRecipientError",
        "Remove the recipients listed in `details`, or set `on_suppressed` to `skip`.",
    ),
    error(
        "upstream_error",
        "UpstreamError",
        "Read `message`: it contains the other server's response. Correct what it rejects.",
    ),
    error(
        "plan_limit",
        "PlanLimitError",
        "Wait until `details.resets_at`, or choose a larger plan. Do not repeat the request before then.",
    ),
    error(
        "plan_limit_403",
        "PlanLimitError",
        "Delete objects of this kind that you do not need, or choose a larger plan.",
    ),
    error(
        "unsupported_media_type",
        "ValidationError",
        "Send `Content-Type: application/json`, uncompressed or with `Content-Encoding: gzip` or `zstd`.",
    ),
    error("rate_limit_exceeded", "RateLimitError", "Wait for the time in `retry-after`. The SDKs do this for you."),
    error("headers_too_large", "ValidationError", "Send fewer and shorter header fields."),
    error(
        "internal_error",
        "ServerError",
        "Repeat the request later. If it fails again, tell the operator the `request_id`.",
    ),
    error(
        "mail_server_error",
        "ServerError",
        "Repeat the request with the same `Idempotency-Key`. Nothing was accepted.",
    ),
    error(
        "service_unavailable",
        "ServerError",
        "Repeat the request after `retry-after`, with the same `Idempotency-Key`.",
    ),
    error(
        "send_unconfirmed",
        "SendUnconfirmedError",
        "Do not send it again. Look up the status of [the email](/docs/emails#get-email); the SDKs do this with \
         `resolve()`.",
    ),
];

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
        let mut names: Vec<&str> = ERRORS.iter().map(|error| error.name).collect();
        let mut expected: Vec<&str> = table.error_codes.keys().map(String::as_str).collect();
        names.sort_unstable();
        expected.sort_unstable();
        assert_eq!(names, expected);
    }

    #[test]
    fn classes_are_those_of_the_sdks() {
        for error in ERRORS {
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
