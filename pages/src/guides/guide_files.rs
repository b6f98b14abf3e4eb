//! The embedded files of `docs/`.

/// The order of the guides.
pub const SUMMARY: &str = include_str!("../../../docs/SUMMARY.md");
/// The introduction, which becomes the lead of the list of guides.
pub const INDEX_FILE: &str = "README.md";

macro_rules! embed {
    ($($file:literal),* $(,)?) => {
        &[$(($file, include_str!(concat!("../../../docs/", $file)))),*]
    };
}

/// Path below `docs/` and text of each file.
pub const FILES: &[(&str, &str)] = embed![
    "README.md",
    "user/quick-start.md",
    "user/smtp-frameworks.md",
    "user/migrate.md",
    "user/faq.md",
    "user/deliverability.md",
    "user/templates.md",
    "user/webhook-receivers.md",
    "RECEIVING.md",
    "SUBMISSION.md",
    "DOMAINS.md",
    "WEBHOOKS.md",
    "TRACKING.md",
    "BOUNCES.md",
    "EVENTS.md",
    "AUTOMATIONS.md",
    "CLI.md",
    "OAUTH.md",
    "MCP.md",
    "POLICIES.md",
    "DASHBOARD.md",
    "user/first-payout.md",
    "AFFILIATE.md",
    "STX.md",
    "PORTAL.md",
    "PAYOUTS.md",
    "user/self-hosting.md",
    "user/configuration.md",
    "user/monitoring.md",
    "user/backup.md",
    "user/upgrade.md",
    "user/tuning.md",
    "user/security.md",
    "user/troubleshooting.md",
    "OPERATING.md",
    "CONSOLE.md",
    "LOGS.md",
    "DOCTOR.md",
    "DELIVERY.md",
    "CLUSTER.md",
    "PROXY.md",
    "BILLING.md",
    "SECURITY-MODEL.md",
    "RFC.md",
    "ARCHITECTURE.md",
    "FLOW.md",
    "DATA.md",
    "TESTING.md",
    "GLOSSARY.md",
    "decisions/README.md",
    "decisions/001-eight-bit-content.md",
    "decisions/002-commit-log-before-redb.md",
    "decisions/003-own-smtp-transaction.md",
    "decisions/004-own-spf-evaluation.md",
    "decisions/005-one-recipient-a-transaction.md",
    "decisions/006-boxed-futures.md",
    "decisions/007-own-http-client.md",
    "decisions/008-names-of-the-field.md",
    "decisions/009-email-index.md",
    "decisions/010-outbox-yields-to-intake.md",
    "decisions/011-domain-checks.md",
    "decisions/012-row-compression.md",
    "decisions/013-schemas-from-types.md",
    "decisions/014-dashboard.md",
    "decisions/015-mcp-protocol.md",
    "decisions/016-one-way-to-write-html.md",
    "decisions/017-no-elicitation.md",
    "decisions/018-mjml.md",
    "decisions/019-size-of-clients.md",
];

/// The documented configuration, which `user/configuration.md` includes.
const CONFIGURATION: &str = include_str!("../../../etc/postrider.toml");
/// How mdBook includes it.
const INCLUDE: &str = "{{#include ../../etc/postrider.toml}}";

/// The text of a file, if it is embedded.
pub fn text_of(file: &str) -> Option<&'static str> {
    FILES.iter().find(|(name, _)| *name == file).map(|(_, text)| *text)
}

/// A text with the files that it includes.
pub fn with_includes(text: &str) -> String {
    text.replace(INCLUDE, CONFIGURATION.trim_end())
}

/// The path of a file's page below `/docs`: `guides/webhooks` of `WEBHOOKS.md`, `guides/backup` of `user/backup.md`.
pub fn guide_path(file: &str) -> String {
    let name = file.strip_suffix(".md").unwrap_or(file).to_lowercase();
    match name.strip_prefix("user/").unwrap_or(&name) {
        "readme" => "guides".to_owned(),
        name => format!("guides/{}", name.strip_suffix("/readme").unwrap_or(name)),
    }
}
